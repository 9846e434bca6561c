import tvm
from tvm.script import ir as I, tirx as Tx

@tvm.script.ir_module
class Mod:
    @Tx.prim_func(s_tir=True, check_well_formed=False)
    def first(A: Tx.Buffer(16)):
        for i in range(16): A[i] = 1
        Module.second(A.data)
        second(A.data)

    @Tx.prim_func(private=True, s_tir=True)
    def second(A: Tx.Buffer((16, 2), "int8")) -> Tx.int32:
        return 0
