# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def foo(A: T.Buffer(("n", "m * 2"), "float32"), B: T.Buffer((n, "k"), "float32"), k: T.int64) -> T.int32:
        m = T.int32()
        n = T.int32()
        for i in range(n):
            A[i, 0] = B[i, 0]
        return 0