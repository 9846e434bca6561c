"""TVM's side of `msched bench tune` and `bench gemm`: tunes a float32 matrix product, prints one JSON object.
usage: tvm_tune.py M N K TRIALS"""
import json, multiprocessing, sys, tempfile, time
import tvm
from tvm import te
import tvm.s_tir.meta_schedule as ms


def gemm(m, n, k):
    a, b = te.placeholder((m, k), "float32", "A"), te.placeholder((k, n), "float32", "B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), "C")
    return te.create_prim_func([a, b, c])


def main(m, n, k, trials):
    cores = multiprocessing.cpu_count()
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": cores})
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(mod=gemm(m, n, k), target=target, work_dir=folder, max_trials_global=trials, num_trials_per_iter=64)
        took = time.perf_counter() - start
        best = min(float(s) for r in database.get_all_tuning_records() for s in r.run_secs or [1e9])
    print(json.dumps({"trials": trials, "seconds": took, "seconds_per_trial": took / trials, "best_seconds": best}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
