# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4, 12, 8), "float32"), B: T.Buffer((4, 8, 10), "float32"), C: T.Buffer((4, 12, 10), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for b, i, j, k in T.grid(4, 12, 10, 8):
            with T.sblock("C"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(A[v_b, v_i, v_k], B[v_b, v_k, v_j])
                T.writes(C[v_b, v_i, v_j])
                with T.init():
                    C[v_b, v_i, v_j] = T.float32(0.0)
                C[v_b, v_i, v_j] = C[v_b, v_i, v_j] + A[v_b, v_i, v_k] * B[v_b, v_k, v_j]
