# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((18, 14), "float32"), C: T.Buffer((18, 14), "float32")):
        T.func_attr({"tirx.noalias": True})
        B = T.sblock_alloc_buffer((18, 14))
        for i, j in T.grid(18, 14):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(16, 12):
            with T.sblock("C"):
                vi = T.axis.spatial((1, 17), i + 1)
                vj = T.axis.spatial((1, 13), j + 1)
                C[vi, vj] = B[vi - 1, vj] + B[vi + 1, vj] + B[vi, vj - 1] + B[vi, vj + 1]
        for e in range(18):
            with T.sblock("edge_l"):
                ve = T.axis.spatial(18, e)
                C[ve, 0] = B[ve, 0]
                C[ve, 13] = B[ve, 13]
        for e in range(1, 13):
            with T.sblock("edge_t"):
                ve = T.axis.spatial((1, 13), e)
                C[0, ve] = B[0, ve]
                C[17, ve] = B[17, ve]
