# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        # with T.sblock("root"):
        for i in range(8):
            with T.sblock("a"):
                vi = T.axis.spatial(8, i)
                T.reads(A[T.min(vi, 7 - vi):T.min(vi, 7 - vi) + (T.max(vi, 7 - vi) + 1 - T.min(vi, 7 - vi)), 0:8])
                T.writes(B[vi, 0:8])
                for j in range(8):
                    if j < 6:
                        B[vi, j] = A[vi, j + 2] + A[7 - vi, j]
                    else:
                        B[vi, j] = A[vi, j // 2] + A[vi, j % 4]
        for i in range(4):
            with T.sblock("c"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi * 2:vi * 2 + 2, 0:4])
                T.writes(B[vi * 2, 0:8])
                x: T.let[T.int32] = vi * 2
                for j in range(4):
                    B[x, j * 2] = A[x + 1, T.min(j, 3)]
                B[x, 7] = T.if_then_else(vi < 2, A[x, 0], T.float32(0.0))