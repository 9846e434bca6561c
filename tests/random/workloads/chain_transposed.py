# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        B = T.sblock_alloc_buffer((16, 8))
        for i, j in T.grid(16, 8):
            with T.sblock("B"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_j, v_i])
                T.writes(B[v_i, v_j])
                B[v_i, v_j] = A[v_j, v_i] + T.float32(1.0)
        for i, j in T.grid(8, 16):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(B[v_j, v_i])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = B[v_j, v_i] * B[v_j, v_i]
