# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 128), "int8"), B: T.Buffer((32, 16, 4), "int8"), C: T.Buffer((16, 16), "int32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i, j, p, q in T.grid(16, 16, 32, 4):
            with T.sblock("C"):
                v_i, v_j, v_p, v_q = T.axis.remap("SSRR", [i, j, p, q])
                T.reads(A[v_i, v_p * 4 + v_q], B[v_p, v_j, v_q])
                T.writes(C[v_i, v_j])
                with T.init():
                    C[v_i, v_j] = 0
                C[v_i, v_j] = C[v_i, v_j] + T.Cast("int32", A[v_i, v_p * 4 + v_q]) * T.Cast("int32", B[v_p, v_j, v_q])
