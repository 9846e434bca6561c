# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 64), "bfloat16"), B: T.Buffer((32, 16, 2), "bfloat16"), C: T.Buffer((16, 16), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i, j, p, q in T.grid(16, 16, 32, 2):
            with T.sblock("C"):
                v_i, v_j, v_p, v_q = T.axis.remap("SSRR", [i, j, p, q])
                T.reads(A[v_i, v_p * 2 + v_q], B[v_p, v_j, v_q])
                T.writes(C[v_i, v_j])
                with T.init():
                    C[v_i, v_j] = T.float32(0.0)
                C[v_i, v_j] = C[v_i, v_j] + T.Cast("float32", A[v_i, v_p * 2 + v_q]) * T.Cast("float32", B[v_p, v_j, v_q])
