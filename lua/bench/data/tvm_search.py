"""TVM's side of `msched bench search`: draws candidates from a workload's design space and mutates them, each replayed,
postprocessed, hashed and described by features; prints one JSON object, microseconds of each that is accepted, refused ones
among them; nothing of a kind of which none is.
usage: tvm_search.py DIRECTORY NAME MACHINE COUNT; MACHINE: cores of this CPU, or a GPU's architecture"""
import json, random, sys, time
import tvm
from tvm_ffi.structural import structural_hash
import tvm.s_tir as s_tir
import tvm.s_tir.meta_schedule as ms
from tvm.s_tir.schedule import Trace


def accept(trace, module, seed, rules):
    """The candidate's schedule, postprocessed and described; None: it is refused."""
    schedule = s_tir.Schedule(module, seed=seed)
    try:
        trace.apply_to_schedule(schedule, remove_postproc=True)
    except Exception:
        return None
    schedule.enter_postproc()
    return schedule if all(rule.apply(schedule) for rule in rules) else None


def describe(context, schedule):
    structural_hash(schedule.mod)
    candidate = ms.MeasureCandidate(schedule, ms.arg_info.ArgInfo.from_entry_func(schedule.mod, remove_preproc=True))
    ms.FeatureExtractor.create("per-store-feature").extract_from(context, [candidate])


def target_of(machine):
    if not machine.startswith("sm_"):
        return tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": int(machine)})
    return tvm.target.Target({"kind": "cuda", "arch": machine, "max_threads_per_block": 1024, "max_shared_memory_per_block": 49152,
                              "thread_warp_size": 32, "registers_per_block": 65536})


def main(directory, name, machine, count):
    module = tvm.script.from_source(open("%s/workloads/%s.py" % (directory, name)).read())
    module = module if isinstance(module, tvm.IRModule) else tvm.IRModule({"main": module})
    context = ms.TuneContext(mod=module, target=target_of(machine), space_generator="post-order-apply", search_strategy="evolutionary", rand_state=1)
    sketches = [Trace(s.trace.insts, {}) for s in context.generate_design_space()]
    rules, mutators = list(context.space_generator.postprocs), dict(context.space_generator.mutator_probs)
    draw = random.Random(1)
    parents, seconds = [], {}
    for kind in ("drawn", "mutated"):
        accepted, start = 0, time.perf_counter()
        for i in range(count if kind == "drawn" or parents else 0):
            if kind == "drawn":
                trace = sketches[i % len(sketches)]
            else:
                parent = draw.choice(parents)
                trace = draw.choices(list(mutators), [float(p) for p in mutators.values()])[0].apply(parent) or parent
            schedule = accept(trace, module, i + 1, rules)
            if schedule is None:
                continue
            describe(context, schedule)
            accepted += 1
            if kind == "drawn":
                parents.append(schedule.trace.simplified(True))
        if accepted:
            seconds[kind] = (time.perf_counter() - start) / accepted
    print(json.dumps({kind: s * 1e6 for kind, s in seconds.items()}))


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
