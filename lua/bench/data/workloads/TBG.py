# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(Q: T.Buffer((1, 128, 12, 64), "float32"), K: T.Buffer((1, 128, 12, 64), "float32"), C: T.Buffer((1, 12, 128, 128), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        query_T = T.sblock_alloc_buffer((1, 12, 128, 64))
        key_T = T.sblock_alloc_buffer((1, 12, 64, 128))
        for b, h, s, d in T.grid(1, 12, 128, 64):
            with T.sblock("query_T"):
                v_b, v_h, v_s, v_d = T.axis.remap("SSSS", [b, h, s, d])
                T.reads(Q[v_b, v_s, v_h, v_d])
                T.writes(query_T[v_b, v_h, v_s, v_d])
                query_T[v_b, v_h, v_s, v_d] = Q[v_b, v_s, v_h, v_d]
        for b, h, d, s in T.grid(1, 12, 64, 128):
            with T.sblock("key_T"):
                v_b, v_h, v_d, v_s = T.axis.remap("SSSS", [b, h, d, s])
                T.reads(K[v_b, v_s, v_h, v_d])
                T.writes(key_T[v_b, v_h, v_d, v_s])
                key_T[v_b, v_h, v_d, v_s] = K[v_b, v_s, v_h, v_d]
        for b, h, i, j, k in T.grid(1, 12, 128, 128, 64):
            with T.sblock("C"):
                v_b, v_h, v_i, v_j, v_k = T.axis.remap("SSSSR", [b, h, i, j, k])
                T.reads(query_T[v_b, v_h, v_i, v_k], key_T[v_b, v_h, v_k, v_j])
                T.writes(C[v_b, v_h, v_i, v_j])
                with T.init():
                    C[v_b, v_h, v_i, v_j] = T.float32(0.0)
                C[v_b, v_h, v_i, v_j] = C[v_b, v_h, v_i, v_j] + query_T[v_b, v_h, v_i, v_k] * key_T[v_b, v_h, v_k, v_j]
