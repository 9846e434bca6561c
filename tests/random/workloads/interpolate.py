# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((2, 3, 4), "float32"), Y: T.Buffer((2, 5, 7), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        y0 = T.sblock_alloc_buffer((5,), "int32")
        frac = T.sblock_alloc_buffer((5,))
        vert = T.sblock_alloc_buffer((2, 5, 4))
        for i in range(5):
            with T.sblock("y0"):
                v_i = T.axis.spatial(5, i)
                T.reads()
                T.writes(y0[v_i])
                y0[v_i] = v_i * 2 // 5
        for i in range(5):
            with T.sblock("frac"):
                v_i = T.axis.spatial(5, i)
                T.reads()
                T.writes(frac[v_i])
                frac[v_i] = T.Cast("float32", v_i * 2 % 5) * T.float32(0.20000000000000001)
        for c, y, x in T.grid(2, 5, 4):
            with T.sblock("vert"):
                v_c, v_y, v_x = T.axis.remap("SSS", [c, y, x])
                T.reads(X[v_c, T.min(y0[v_y], 2):T.min(y0[v_y], 2) + (T.min(y0[v_y] + 1, 2) + 1 - T.min(y0[v_y], 2)), v_x], y0[v_y], frac[v_y])
                T.writes(vert[v_c, v_y, v_x])
                vert[v_c, v_y, v_x] = X[v_c, T.min(y0[v_y], 2), v_x] * (T.float32(1.0) - frac[v_y]) + X[v_c, T.min(y0[v_y] + 1, 2), v_x] * frac[v_y]
        for c, y, x in T.grid(2, 5, 7):
            with T.sblock("Y"):
                v_c, v_y, v_x = T.axis.remap("SSS", [c, y, x])
                T.reads(vert[v_c, v_y, T.min(v_x // 2, T.min((v_x + 1) // 2, 3)):T.min(v_x // 2, T.min((v_x + 1) // 2, 3)) + (T.max(v_x // 2, T.min((v_x + 1) // 2, 3)) + 1 - T.min(v_x // 2, T.min((v_x + 1) // 2, 3)))])
                T.writes(Y[v_c, v_y, v_x])
                Y[v_c, v_y, v_x] = (vert[v_c, v_y, v_x // 2] + vert[v_c, v_y, T.min((v_x + 1) // 2, 3)]) * T.float32(0.5)
