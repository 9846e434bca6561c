# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 24), "float32"), E: T.Buffer((24, 12), "float32"), F: T.Buffer((16, 12), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        C = T.sblock_alloc_buffer((16, 24))
        for i, j, k in T.grid(16, 24, 8):
            with T.sblock("C"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                T.reads(A[v_i, v_k], B[v_k, v_j])
                T.writes(C[v_i, v_j])
                with T.init():
                    C[v_i, v_j] = T.float32(0.0)
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
        for i, j, r in T.grid(16, 12, 24):
            with T.sblock("F"):
                v_i, v_j, v_r = T.axis.remap("SSR", [i, j, r])
                T.reads(C[v_i, v_r], E[v_r, v_j])
                T.writes(F[v_i, v_j])
                with T.init():
                    F[v_i, v_j] = T.float32(0.0)
                F[v_i, v_j] = F[v_i, v_j] + C[v_i, v_r] * E[v_r, v_j]
