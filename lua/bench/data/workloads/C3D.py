# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 8, 28, 28, 16), "float32"), W: T.Buffer((3, 3, 3, 16, 32), "float32"), conv3d: T.Buffer((1, 8, 28, 28, 32), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad = T.sblock_alloc_buffer((1, 10, 30, 30, 16))
        for i0, i1, i2, i3, i4 in T.grid(1, 10, 30, 30, 16):
            with T.sblock("pad"):
                v_i0, v_i1, v_i2, v_i3, v_i4 = T.axis.remap("SSSSS", [i0, i1, i2, i3, i4])
                T.reads(X[v_i0, v_i1 - 1, v_i2 - 1, v_i3 - 1, v_i4])
                T.writes(pad[v_i0, v_i1, v_i2, v_i3, v_i4])
                pad[v_i0, v_i1, v_i2, v_i3, v_i4] = T.if_then_else(1 <= v_i1 and v_i1 < 9 and 1 <= v_i2 and v_i2 < 29 and 1 <= v_i3 and v_i3 < 29, X[v_i0, v_i1 - 1, v_i2 - 1, v_i3 - 1, v_i4], T.float32(0.0))
        for n, z, y, x, o, rd, rh, rw, rc in T.grid(1, 8, 28, 28, 32, 3, 3, 3, 16):
            with T.sblock("conv3d"):
                v_n, v_z, v_y, v_x, v_o, v_rd, v_rh, v_rw, v_rc = T.axis.remap("SSSSSRRRR", [n, z, y, x, o, rd, rh, rw, rc])
                T.reads(pad[v_n, v_z + v_rd, v_y + v_rh, v_x + v_rw, v_rc], W[v_rd, v_rh, v_rw, v_rc, v_o])
                T.writes(conv3d[v_n, v_z, v_y, v_x, v_o])
                with T.init():
                    conv3d[v_n, v_z, v_y, v_x, v_o] = T.float32(0.0)
                conv3d[v_n, v_z, v_y, v_x, v_o] = conv3d[v_n, v_z, v_y, v_x, v_o] + pad[v_n, v_z + v_rd, v_y + v_rh, v_x + v_rw, v_rc] * W[v_rd, v_rh, v_rw, v_rc, v_o]
