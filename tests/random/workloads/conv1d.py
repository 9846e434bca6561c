# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 20, 4), "float32"), W: T.Buffer((3, 4, 8), "float32"), Y: T.Buffer((1, 10, 8), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        P = T.sblock_alloc_buffer((1, 22, 4))
        for n, l, c in T.grid(1, 22, 4):
            with T.sblock("P"):
                v_n, v_l, v_c = T.axis.remap("SSS", [n, l, c])
                T.reads(X[v_n, v_l - 1, v_c])
                T.writes(P[v_n, v_l, v_c])
                P[v_n, v_l, v_c] = T.if_then_else(1 <= v_l and v_l < 21, X[v_n, v_l - 1, v_c], T.float32(0.0))
        for n, l, o, rl, rc in T.grid(1, 10, 8, 3, 4):
            with T.sblock("Y"):
                v_n, v_l, v_o, v_rl, v_rc = T.axis.remap("SSSRR", [n, l, o, rl, rc])
                T.reads(P[v_n, v_l * 2 + v_rl, v_rc], W[v_rl, v_rc, v_o])
                T.writes(Y[v_n, v_l, v_o])
                with T.init():
                    Y[v_n, v_l, v_o] = T.float32(0.0)
                Y[v_n, v_l, v_o] = Y[v_n, v_l, v_o] + P[v_n, v_l * 2 + v_rl, v_rc] * W[v_rl, v_rc, v_o]
