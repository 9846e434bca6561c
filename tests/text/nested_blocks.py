# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        # with T.sblock("root"):
        for i in range(8):
            with T.sblock("a"):
                vi = T.axis.spatial(8, i)
                T.reads(A[i, 0:8])
                T.writes(B[i, 0:8])
                for j in range(8):
                    with T.sblock("b"):
                        vi2, vj = T.axis.remap("SS", [i, j])
                        T.reads(A[vi2, vj])
                        T.writes(B[vi2, vj])
                        B[vi2, vj] = A[vi2, vj] + T.float32(1.0)
