# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def first(A: T.Buffer((16,), "float32")):
        for i in range(16):
            A[i] = T.float32(1.0)
        Module.second(A.data)
        Module.second(A.data)

    @T.prim_func(private=True, s_tir=True)
    def second(A: T.Buffer((16, 2), "int8")) -> T.int32:
        return 0