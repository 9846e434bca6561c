# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(P: T.Buffer((8,), "int32"), Q: T.Buffer((8,), "int32"), A: T.Buffer((8, 8), "int32")):
        # with T.sblock("root"):
        for i in range(4):
            with T.sblock("outer"):
                wi = T.axis.spatial(4, i)
                T.reads(P[0:8], Q[0:8])
                T.writes(A[wi, 0:8])
                for j in range(8):
                    with T.sblock("inner"):
                        vj = T.axis.spatial(8, j)
                        vk = T.axis.opaque(8, Q[j])
                        T.where(P[j] < 3)
                        T.reads(P[wi])
                        T.writes(A[wi, vj])
                        A[wi, vj] = P[wi] + vk
