"""What msched writes as a folder of TVM's JSONDatabase, opened by TVM: the same functions and records as in the folder
that TVM wrote itself, and each record gives the same schedule.  usage: tvm_store.py TVM_FOLDER MSCHED_FOLDER"""

import sys

import tvm_ffi
from tvm.s_tir import meta_schedule as ms


def modules_of(database):
    """The functions, each once, of all records."""
    found = []
    for record in database.get_all_tuning_records():
        mod = record.workload.mod
        if not any(tvm_ffi.structural_equal(mod, other) for other in found):
            found.append(mod)
    return found


def schedules_of(database, mod):
    """What the records of a function make of it, fastest first, and their times."""
    records = database.get_top_k(database.commit_workload(mod), 100)
    return [(r.as_measure_candidate().sch.mod, [float(t) for t in r.run_secs], str(r.target)) for r in records]


def main():
    theirs, ours = (ms.database.JSONDatabase(work_dir=folder) for folder in sys.argv[1:3])
    functions = modules_of(theirs)
    assert functions and len(functions) == len(modules_of(ours)), "other functions"
    assert len(theirs) == len(ours), f"{len(ours)} records for {len(theirs)}"
    for mod in functions:
        assert ours.has_workload(mod), f"a function is not found:\n{mod.script()}"
        expected, found = schedules_of(theirs, mod), schedules_of(ours, mod)
        assert len(expected) == len(found), "other records"
        for (a, seconds, target), (b, others, same) in zip(expected, found):
            difference = tvm_ffi.get_first_structural_mismatch(a, b)
            assert difference is None, f"another schedule: {difference}"
            assert abs(sorted(seconds)[0] - others[0]) < 0.1 * seconds[0], "another time"
            assert target == same, "another target"
        query = ours.query_ir_module(mod, theirs.get_all_tuning_records()[0].target, "main")
        assert tvm_ffi.structural_equal(query, expected[0][0]), "the query finds another"
    print(f"{len(ours)} records of {len(functions)} functions: the same")


main()
