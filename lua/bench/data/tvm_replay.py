"""TVM's side of `msched bench replay`: replays a workload's sketches in turn, every decision resampled, each replay
ending in the module's structural hash; prints one JSON object.  usage: tvm_replay.py DIRECTORY TARGET/NAME SECONDS"""
import json, sys, time
import tvm
import tvm.s_tir as s_tir
from tvm_ffi.structural import structural_hash
from tvm.s_tir.schedule import Trace


def sketches(directory, name, module):
    traces = []
    for text in open("%s/%s.jsonl" % (directory, name)):
        schedule = s_tir.Schedule(module)
        Trace.apply_json_to_schedule(value(json.loads(text)), schedule)
        traces.append(Trace(schedule.trace.insts, {}))
    return traces


def value(x):
    return tvm.runtime.convert([value(y) for y in x]) if isinstance(x, list) else tvm.runtime.convert(x)


def main(directory, name, seconds):
    module = tvm.script.from_source(open("%s/workloads/%s.py" % (directory, name.split("/")[1])).read())
    traces = sketches(directory, name, module)
    done = refused = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        trace = traces[(done + refused) % len(traces)]
        schedule = s_tir.Schedule(module, seed=done + refused + 1)
        try:
            trace.apply_to_schedule(schedule, remove_postproc=False)
        except Exception:
            refused += 1
            continue
        structural_hash(schedule.mod)
        done += 1
    took = time.perf_counter() - start
    print(json.dumps({"workload": name, "replays": done, "refused": refused, "seconds": took, "rate": done / took}))


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
