# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(Q: T.Buffer((2, 6, 3, 8), "float32"), K: T.Buffer((2, 6, 3, 8), "float32"), C: T.Buffer((2, 3, 6, 6), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        qt = T.sblock_alloc_buffer((2, 3, 6, 8))
        kt = T.sblock_alloc_buffer((2, 3, 8, 6))
        for b, h, s, d in T.grid(2, 3, 6, 8):
            with T.sblock("qt"):
                v_b, v_h, v_s, v_d = T.axis.remap("SSSS", [b, h, s, d])
                T.reads(Q[v_b, v_s, v_h, v_d])
                T.writes(qt[v_b, v_h, v_s, v_d])
                qt[v_b, v_h, v_s, v_d] = Q[v_b, v_s, v_h, v_d]
        for b, h, d, s in T.grid(2, 3, 8, 6):
            with T.sblock("kt"):
                v_b, v_h, v_d, v_s = T.axis.remap("SSSS", [b, h, d, s])
                T.reads(K[v_b, v_s, v_h, v_d])
                T.writes(kt[v_b, v_h, v_d, v_s])
                kt[v_b, v_h, v_d, v_s] = K[v_b, v_s, v_h, v_d]
        for b, h, i, j, k in T.grid(2, 3, 6, 6, 8):
            with T.sblock("C"):
                v_b, v_h, v_i, v_j, v_k = T.axis.remap("SSSSR", [b, h, i, j, k])
                T.reads(qt[v_b, v_h, v_i, v_k], kt[v_b, v_h, v_k, v_j])
                T.writes(C[v_b, v_h, v_i, v_j])
                with T.init():
                    C[v_b, v_h, v_i, v_j] = T.float32(0.0)
                C[v_b, v_h, v_i, v_j] = C[v_b, v_h, v_i, v_j] + qt[v_b, v_h, v_i, v_k] * kt[v_b, v_h, v_k, v_j]
