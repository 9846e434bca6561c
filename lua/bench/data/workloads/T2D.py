# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 4, 4, 64), "float32"), W: T.Buffer((4, 4, 64, 32), "float32"), conv2d_transpose: T.Buffer((1, 8, 8, 32), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        dilate = T.sblock_alloc_buffer((1, 7, 7, 64))
        pad = T.sblock_alloc_buffer((1, 11, 11, 64))
        for n, y, x, c in T.grid(1, 7, 7, 64):
            with T.sblock("dilate"):
                v_n, v_y, v_x, v_c = T.axis.remap("SSSS", [n, y, x, c])
                T.reads(X[v_n, v_y // 2, v_x // 2, v_c])
                T.writes(dilate[v_n, v_y, v_x, v_c])
                dilate[v_n, v_y, v_x, v_c] = T.if_then_else(v_y % 2 == 0 and v_x % 2 == 0, X[v_n, v_y // 2, v_x // 2, v_c], T.float32(0.0))
        for i0, i1, i2, i3 in T.grid(1, 11, 11, 64):
            with T.sblock("pad"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(dilate[v_i0, v_i1 - 2, v_i2 - 2, v_i3])
                T.writes(pad[v_i0, v_i1, v_i2, v_i3])
                pad[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(2 <= v_i1 and v_i1 < 9 and 2 <= v_i2 and v_i2 < 9, dilate[v_i0, v_i1 - 2, v_i2 - 2, v_i3], T.float32(0.0))
        for n, y, x, o, rh, rw, rc in T.grid(1, 8, 8, 32, 4, 4, 64):
            with T.sblock("conv2d_transpose"):
                v_n, v_y, v_x, v_o, v_rh, v_rw, v_rc = T.axis.remap("SSSSRRR", [n, y, x, o, rh, rw, rc])
                T.reads(pad[v_n, v_y + v_rh, v_x + v_rw, v_rc], W[3 - v_rh, 3 - v_rw, v_rc, v_o])
                T.writes(conv2d_transpose[v_n, v_y, v_x, v_o])
                with T.init():
                    conv2d_transpose[v_n, v_y, v_x, v_o] = T.float32(0.0)
                conv2d_transpose[v_n, v_y, v_x, v_o] = conv2d_transpose[v_n, v_y, v_x, v_o] + pad[v_n, v_y + v_rh, v_x + v_rw, v_rc] * W[3 - v_rh, 3 - v_rw, v_rc, v_o]
