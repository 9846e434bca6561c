# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((2, 12, 20), "float32"), N: T.Buffer((2,), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        S = T.sblock_alloc_buffer((2,))
        for b in range(2):
            with T.sblock("S_init"):
                v_b = T.axis.spatial(2, b)
                T.reads()
                T.writes(S[v_b])
                S[v_b] = T.float32(0.0)
            for i, j in T.grid(12, 20):
                with T.sblock("S_update"):
                    v_b, v_i, v_j = T.axis.remap("SRR", [b, i, j])
                    T.reads(S[v_b], A[v_b, v_i, v_j])
                    T.writes(S[v_b])
                    S[v_b] = S[v_b] + A[v_b, v_i, v_j] * A[v_b, v_i, v_j]
        for b_0_b_1_fused in range(4):
            with T.sblock("N"):
                v_b = T.axis.spatial(2, b_0_b_1_fused)
                T.where(T.Mul(0, 4) + b_0_b_1_fused % 4 < 2)
                T.reads(S[v_b])
                T.writes(N[v_b])
                N[v_b] = T.sqrt(S[v_b])