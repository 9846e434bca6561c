# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8, 10), "float32"), C: T.Buffer((8, 16), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i, j in T.grid(8, 16):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_i, v_j], B[v_i, T.max(v_j - 6, 0)])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = T.if_then_else(v_j < 6, A[v_i, v_j], B[v_i, T.max(v_j - 6, 0)])
