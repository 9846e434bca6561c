# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 16, 16, 4, 4, 8), "float32"), W: T.Buffer((3, 3, 4, 4, 8, 8), "float32"), capsule: T.Buffer((1, 8, 8, 4, 4, 8), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad = T.sblock_alloc_buffer((1, 18, 18, 4, 4, 8))
        for i0, i1, i2, i3, i4, i5 in T.grid(1, 18, 18, 4, 4, 8):
            with T.sblock("pad"):
                v_i0, v_i1, v_i2, v_i3, v_i4, v_i5 = T.axis.remap("SSSSSS", [i0, i1, i2, i3, i4, i5])
                T.reads(X[v_i0, v_i1 - 1, v_i2 - 1, v_i3, v_i4, v_i5])
                T.writes(pad[v_i0, v_i1, v_i2, v_i3, v_i4, v_i5])
                pad[v_i0, v_i1, v_i2, v_i3, v_i4, v_i5] = T.if_then_else(1 <= v_i1 and v_i1 < 17 and 1 <= v_i2 and v_i2 < 17, X[v_i0, v_i1 - 1, v_i2 - 1, v_i3, v_i4, v_i5], T.float32(0.0))
        for n, y, x, i, j, o, rh, rw, cap_k, rc in T.grid(1, 8, 8, 4, 4, 8, 3, 3, 4, 8):
            with T.sblock("capsule"):
                v_n, v_y, v_x, v_i, v_j, v_o, v_rh, v_rw, v_cap_k, v_rc = T.axis.remap("SSSSSSRRRR", [n, y, x, i, j, o, rh, rw, cap_k, rc])
                T.reads(pad[v_n, v_y * 2 + v_rh, v_x * 2 + v_rw, v_i, v_cap_k, v_rc], W[v_rh, v_rw, v_cap_k, v_j, v_rc, v_o])
                T.writes(capsule[v_n, v_y, v_x, v_i, v_j, v_o])
                with T.init():
                    capsule[v_n, v_y, v_x, v_i, v_j, v_o] = T.float32(0.0)
                capsule[v_n, v_y, v_x, v_i, v_j, v_o] = capsule[v_n, v_y, v_x, v_i, v_j, v_o] + pad[v_n, v_y * 2 + v_rh, v_x * 2 + v_rw, v_i, v_cap_k, v_rc] * W[v_rh, v_rw, v_cap_k, v_j, v_rc, v_o]
