# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 56, 56, 64), "float32"), W: T.Buffer((3, 3, 64, 64), "float32"), conv2d: T.Buffer((1, 56, 56, 64), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad = T.sblock_alloc_buffer((1, 60, 60, 64))
        for i0, i1, i2, i3 in T.grid(1, 60, 60, 64):
            with T.sblock("pad"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(X[v_i0, v_i1 - 2, v_i2 - 2, v_i3])
                T.writes(pad[v_i0, v_i1, v_i2, v_i3])
                pad[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(2 <= v_i1 and v_i1 < 58 and 2 <= v_i2 and v_i2 < 58, X[v_i0, v_i1 - 2, v_i2 - 2, v_i3], T.float32(0.0))
        for n, y, x, o, rh, rw, rc in T.grid(1, 56, 56, 64, 3, 3, 64):
            with T.sblock("conv2d"):
                v_n, v_y, v_x, v_o, v_rh, v_rw, v_rc = T.axis.remap("SSSSRRR", [n, y, x, o, rh, rw, rc])
                T.reads(pad[v_n, v_rh * 2 + v_y, v_rw * 2 + v_x, v_rc], W[v_rh, v_rw, v_rc, v_o])
                T.writes(conv2d[v_n, v_y, v_x, v_o])
                with T.init():
                    conv2d[v_n, v_y, v_x, v_o] = T.float32(0.0)
                conv2d[v_n, v_y, v_x, v_o] = conv2d[v_n, v_y, v_x, v_o] + pad[v_n, v_rh * 2 + v_y, v_rw * 2 + v_x, v_rc] * W[v_rh, v_rw, v_rc, v_o]
