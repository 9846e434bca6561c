# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 9, 9, 8), "float32"), Y: T.Buffer((1, 4, 4, 8), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for n, h, w, c, rh, rw in T.grid(1, 4, 4, 8, 3, 3):
            with T.sblock("Y"):
                v_n, v_h, v_w, v_c, v_rh, v_rw = T.axis.remap("SSSSRR", [n, h, w, c, rh, rw])
                T.reads(X[v_n, v_h * 2 + v_rh, v_w * 2 + v_rw, v_c])
                T.writes(Y[v_n, v_h, v_w, v_c])
                with T.init():
                    Y[v_n, v_h, v_w, v_c] = T.float32(-340282346638528859811704183484516925440.0)
                Y[v_n, v_h, v_w, v_c] = T.max(Y[v_n, v_h, v_w, v_c], X[v_n, v_h * 2 + v_rh, v_w * 2 + v_rw, v_c])
