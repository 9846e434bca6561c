# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 56, 56, 32), "float32"), W: T.Buffer((3, 3, 32), "float32"), depthwise: T.Buffer((1, 56, 56, 32), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad = T.sblock_alloc_buffer((1, 58, 58, 32))
        for i0, i1, i2, i3 in T.grid(1, 58, 58, 32):
            with T.sblock("pad"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(X[v_i0, v_i1 - 1, v_i2 - 1, v_i3])
                T.writes(pad[v_i0, v_i1, v_i2, v_i3])
                pad[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(1 <= v_i1 and v_i1 < 57 and 1 <= v_i2 and v_i2 < 57, X[v_i0, v_i1 - 1, v_i2 - 1, v_i3], T.float32(0.0))
        for n, y, x, c, rh, rw in T.grid(1, 56, 56, 32, 3, 3):
            with T.sblock("depthwise"):
                v_n, v_y, v_x, v_c, v_rh, v_rw = T.axis.remap("SSSSRR", [n, y, x, c, rh, rw])
                T.reads(pad[v_n, v_y + v_rh, v_x + v_rw, v_c], W[v_rh, v_rw, v_c])
                T.writes(depthwise[v_n, v_y, v_x, v_c])
                with T.init():
                    depthwise[v_n, v_y, v_x, v_c] = T.float32(0.0)
                depthwise[v_n, v_y, v_x, v_c] = depthwise[v_n, v_y, v_x, v_c] + pad[v_n, v_y + v_rh, v_x + v_rw, v_c] * W[v_rh, v_rw, v_c]
