# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((6, 20), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        B = T.sblock_alloc_buffer((120,))
        for i in range(120):
            with T.sblock("B"):
                v_i = T.axis.spatial(120, i)
                T.reads(A[v_i // 10, v_i % 10])
                T.writes(B[v_i])
                B[v_i] = A[v_i // 10, v_i % 10]
        for i, j in T.grid(6, 20):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(B[v_i * 20 + v_j])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = B[v_i * 20 + v_j] * T.float32(2.0)
