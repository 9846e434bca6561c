# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        # with T.sblock("root"):
        U = T.sblock_alloc_buffer((8,))
        for i in range(4):
            with T.sblock("b"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, 0:8])
                T.writes(B[vi])
                V = T.decl_buffer((8,), data=U.data)
                for k in range(8):
                    V[k] = A[vi, k]
                B[vi] = U[7]
