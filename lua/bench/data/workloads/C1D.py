# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 256, 64), "float32"), W: T.Buffer((3, 64, 128), "float32"), conv1d: T.Buffer((1, 128, 128), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        pad = T.sblock_alloc_buffer((1, 258, 64))
        for i0, i1, i2 in T.grid(1, 258, 64):
            with T.sblock("pad"):
                v_i0, v_i1, v_i2 = T.axis.remap("SSS", [i0, i1, i2])
                T.reads(X[v_i0, v_i1 - 1, v_i2])
                T.writes(pad[v_i0, v_i1, v_i2])
                pad[v_i0, v_i1, v_i2] = T.if_then_else(1 <= v_i1 and v_i1 < 257, X[v_i0, v_i1 - 1, v_i2], T.float32(0.0))
        for n, i, o, rl, rc in T.grid(1, 128, 128, 3, 64):
            with T.sblock("conv1d"):
                v_n, v_i, v_o, v_rl, v_rc = T.axis.remap("SSSRR", [n, i, o, rl, rc])
                T.reads(pad[v_n, v_i * 2 + v_rl, v_rc], W[v_rl, v_rc, v_o])
                T.writes(conv1d[v_n, v_i, v_o])
                with T.init():
                    conv1d[v_n, v_i, v_o] = T.float32(0.0)
                conv1d[v_n, v_i, v_o] = conv1d[v_n, v_i, v_o] + pad[v_n, v_i * 2 + v_rl, v_rc] * W[v_rl, v_rc, v_o]
