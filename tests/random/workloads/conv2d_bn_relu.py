# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 8, 8, 4), "float32"), W: T.Buffer((3, 3, 4, 8), "float32"), scale: T.Buffer((8,), "float32"), shift: T.Buffer((8,), "float32"), relu: T.Buffer((1, 8, 8, 8), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad = T.sblock_alloc_buffer((1, 10, 10, 4))
        Y = T.sblock_alloc_buffer((1, 8, 8, 8))
        bn = T.sblock_alloc_buffer((1, 8, 8, 8))
        for b, y, x, q in T.grid(1, 10, 10, 4):
            with T.sblock("pad"):
                v_b, v_y, v_x, v_q = T.axis.remap("SSSS", [b, y, x, q])
                T.reads(X[v_b, v_y - 1, v_x - 1, v_q])
                T.writes(pad[v_b, v_y, v_x, v_q])
                pad[v_b, v_y, v_x, v_q] = T.if_then_else(1 <= v_y and v_y < 9 and 1 <= v_x and v_x < 9, X[v_b, v_y - 1, v_x - 1, v_q], T.float32(0.0))
        for n, h, w, o, rh, rw, rc in T.grid(1, 8, 8, 8, 3, 3, 4):
            with T.sblock("Y"):
                v_n, v_h, v_w, v_o, v_rh, v_rw, v_rc = T.axis.remap("SSSSRRR", [n, h, w, o, rh, rw, rc])
                T.reads(pad[v_n, v_h + v_rh, v_w + v_rw, v_rc], W[v_rh, v_rw, v_rc, v_o])
                T.writes(Y[v_n, v_h, v_w, v_o])
                with T.init():
                    Y[v_n, v_h, v_w, v_o] = T.float32(0.0)
                Y[v_n, v_h, v_w, v_o] = Y[v_n, v_h, v_w, v_o] + pad[v_n, v_h + v_rh, v_w + v_rw, v_rc] * W[v_rh, v_rw, v_rc, v_o]
        for n, h, w, o in T.grid(1, 8, 8, 8):
            with T.sblock("bn"):
                v_n, v_h, v_w, v_o = T.axis.remap("SSSS", [n, h, w, o])
                T.reads(Y[v_n, v_h, v_w, v_o], scale[v_o], shift[v_o])
                T.writes(bn[v_n, v_h, v_w, v_o])
                bn[v_n, v_h, v_w, v_o] = Y[v_n, v_h, v_w, v_o] * scale[v_o] + shift[v_o]
        for i0, i1, i2, i3 in T.grid(1, 8, 8, 8):
            with T.sblock("relu"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(bn[v_i0, v_i1, v_i2, v_i3])
                T.writes(relu[v_i0, v_i1, v_i2, v_i3])
                relu[v_i0, v_i1, v_i2, v_i3] = T.max(bn[v_i0, v_i1, v_i2, v_i3], T.float32(0.0))
