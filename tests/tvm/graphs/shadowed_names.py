# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((), "float32"), i: T.int32, i_1: T.int32):
        B[()] = T.float32(1.0)
        for i_2 in range(16):
            for i_3 in range(3):
                A[i_3] = B[()] + A[i_1]
            for lambda_ in range(4):
                A[lambda_] = T.float32(3.0)