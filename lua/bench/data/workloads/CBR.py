# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 56, 56, 64), "float32"), W: T.Buffer((3, 3, 64, 64), "float32"), bias: T.Buffer((64,), "float32"), scale: T.Buffer((64,), "float32"), shift: T.Buffer((64,), "float32"), relu: T.Buffer((1, 56, 56, 64), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad = T.sblock_alloc_buffer((1, 58, 58, 64))
        conv2d = T.sblock_alloc_buffer((1, 56, 56, 64))
        bias_add = T.sblock_alloc_buffer((1, 56, 56, 64))
        bn_mul = T.sblock_alloc_buffer((1, 56, 56, 64))
        bn_add = T.sblock_alloc_buffer((1, 56, 56, 64))
        for i0, i1, i2, i3 in T.grid(1, 58, 58, 64):
            with T.sblock("pad"):
                v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
                T.reads(X[v_i0, v_i1 - 1, v_i2 - 1, v_i3])
                T.writes(pad[v_i0, v_i1, v_i2, v_i3])
                pad[v_i0, v_i1, v_i2, v_i3] = T.if_then_else(1 <= v_i1 and v_i1 < 57 and 1 <= v_i2 and v_i2 < 57, X[v_i0, v_i1 - 1, v_i2 - 1, v_i3], T.float32(0.0))
        for n, y, x, o, rh, rw, rc in T.grid(1, 56, 56, 64, 3, 3, 64):
            with T.sblock("conv2d"):
                v_n, v_y, v_x, v_o, v_rh, v_rw, v_rc = T.axis.remap("SSSSRRR", [n, y, x, o, rh, rw, rc])
                T.reads(pad[v_n, v_y + v_rh, v_x + v_rw, v_rc], W[v_rh, v_rw, v_rc, v_o])
                T.writes(conv2d[v_n, v_y, v_x, v_o])
                with T.init():
                    conv2d[v_n, v_y, v_x, v_o] = T.float32(0.0)
                conv2d[v_n, v_y, v_x, v_o] = conv2d[v_n, v_y, v_x, v_o] + pad[v_n, v_y + v_rh, v_x + v_rw, v_rc] * W[v_rh, v_rw, v_rc, v_o]
        for n, y, x, o in T.grid(1, 56, 56, 64):
            with T.sblock("bias_add"):
                v_n, v_y, v_x, v_o = T.axis.remap("SSSS", [n, y, x, o])
                T.reads(conv2d[v_n, v_y, v_x, v_o], bias[v_o])
                T.writes(bias_add[v_n, v_y, v_x, v_o])
                bias_add[v_n, v_y, v_x, v_o] = conv2d[v_n, v_y, v_x, v_o] + bias[v_o]
        for n, y, x, o in T.grid(1, 56, 56, 64):
            with T.sblock("bn_mul"):
                v_n, v_y, v_x, v_o = T.axis.remap("SSSS", [n, y, x, o])
                T.reads(bias_add[v_n, v_y, v_x, v_o], scale[v_o])
                T.writes(bn_mul[v_n, v_y, v_x, v_o])
                bn_mul[v_n, v_y, v_x, v_o] = bias_add[v_n, v_y, v_x, v_o] * scale[v_o]
        for n, y, x, o in T.grid(1, 56, 56, 64):
            with T.sblock("bn_add"):
                v_n, v_y, v_x, v_o = T.axis.remap("SSSS", [n, y, x, o])
                T.reads(bn_mul[v_n, v_y, v_x, v_o], shift[v_o])
                T.writes(bn_add[v_n, v_y, v_x, v_o])
                bn_add[v_n, v_y, v_x, v_o] = bn_mul[v_n, v_y, v_x, v_o] + shift[v_o]
        for n, y, x, o in T.grid(1, 56, 56, 64):
            with T.sblock("relu"):
                v_n, v_y, v_x, v_o = T.axis.remap("SSSS", [n, y, x, o])
                T.reads(bn_add[v_n, v_y, v_x, v_o])
                T.writes(relu[v_n, v_y, v_x, v_o])
                relu[v_n, v_y, v_x, v_o] = T.max(bn_add[v_n, v_y, v_x, v_o], T.float32(0.0))
