# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 28, 28, 64), "float32"), max_pool: T.Buffer((1, 14, 14, 64), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for n, y, x, c, rh, rw in T.grid(1, 14, 14, 64, 2, 2):
            with T.sblock("max_pool"):
                v_n, v_y, v_x, v_c, v_rh, v_rw = T.axis.remap("SSSSRR", [n, y, x, c, rh, rw])
                T.reads(X[v_n, v_y * 2 + v_rh, v_x * 2 + v_rw, v_c])
                T.writes(max_pool[v_n, v_y, v_x, v_c])
                with T.init():
                    max_pool[v_n, v_y, v_x, v_c] = T.float32(-340282346638528859811704183484516925440.0)
                max_pool[v_n, v_y, v_x, v_c] = T.max(max_pool[v_n, v_y, v_x, v_c], X[v_n, v_y * 2 + v_rh, v_x * 2 + v_rw, v_c])
