# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((18, 18), "float32"), C: T.Buffer((16, 16), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        B = T.sblock_alloc_buffer((18, 16))
        for i, j in T.grid(18, 16):
            with T.sblock("B"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_i, v_j:v_j + 3])
                T.writes(B[v_i, v_j])
                B[v_i, v_j] = A[v_i, v_j] + A[v_i, v_j + 1] + A[v_i, v_j + 2]
        for i, j in T.grid(16, 16):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(B[v_i:v_i + 3, v_j])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = B[v_i, v_j] + B[v_i + 1, v_j] + B[v_i + 2, v_j]
