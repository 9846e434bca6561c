"""TVM's side of `msched bench quality`: tunes a workload with its defaults, prints one JSON object: seconds that tuning
took, and of its best kernel, by its own measurements.
usage: tvm_quality.py DIRECTORY NAME CORES TRIALS"""
import json, sys, tempfile, time
import tvm
import tvm.s_tir.meta_schedule as ms


def main(directory, name, cores, trials):
    module = tvm.script.from_source(open("%s/workloads/%s.py" % (directory, name)).read())
    module = module if isinstance(module, tvm.IRModule) else tvm.IRModule({"main": module})
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": cores})
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(mod=module, target=target, work_dir=folder, max_trials_global=trials, num_trials_per_iter=min(64, trials))
        took = time.perf_counter() - start
        best = min(float(s) for r in database.get_all_tuning_records() for s in r.run_secs or [1e9])
    print(json.dumps({"trials": trials, "seconds": took, "best_seconds": best}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
