# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def foo(A: T.Buffer(("n", "T.Cast(\"int32\", m) * 2"), "float32")):
        n = T.int32()
        m = T.int16()
        for i in range(n):
            A[i, 0] = T.float32(0.0)
