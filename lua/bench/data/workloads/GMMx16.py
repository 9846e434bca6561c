# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X0: T.Buffer((1, 128, 128), "float32"), Y0: T.Buffer((1, 128, 128), "float32"), Z0: T.Buffer((1, 128, 128), "float32"), X1: T.Buffer((1, 128, 128), "float32"), Y1: T.Buffer((1, 128, 128), "float32"), Z1: T.Buffer((1, 128, 128), "float32"), X2: T.Buffer((1, 128, 128), "float32"), Y2: T.Buffer((1, 128, 128), "float32"), Z2: T.Buffer((1, 128, 128), "float32"), X3: T.Buffer((1, 128, 128), "float32"), Y3: T.Buffer((1, 128, 128), "float32"), Z3: T.Buffer((1, 128, 128), "float32"), X4: T.Buffer((1, 128, 128), "float32"), Y4: T.Buffer((1, 128, 128), "float32"), Z4: T.Buffer((1, 128, 128), "float32"), X5: T.Buffer((1, 128, 128), "float32"), Y5: T.Buffer((1, 128, 128), "float32"), Z5: T.Buffer((1, 128, 128), "float32"), X6: T.Buffer((1, 128, 128), "float32"), Y6: T.Buffer((1, 128, 128), "float32"), Z6: T.Buffer((1, 128, 128), "float32"), X7: T.Buffer((1, 128, 128), "float32"), Y7: T.Buffer((1, 128, 128), "float32"), Z7: T.Buffer((1, 128, 128), "float32"), X8: T.Buffer((1, 128, 128), "float32"), Y8: T.Buffer((1, 128, 128), "float32"), Z8: T.Buffer((1, 128, 128), "float32"), X9: T.Buffer((1, 128, 128), "float32"), Y9: T.Buffer((1, 128, 128), "float32"), Z9: T.Buffer((1, 128, 128), "float32"), X10: T.Buffer((1, 128, 128), "float32"), Y10: T.Buffer((1, 128, 128), "float32"), Z10: T.Buffer((1, 128, 128), "float32"), X11: T.Buffer((1, 128, 128), "float32"), Y11: T.Buffer((1, 128, 128), "float32"), Z11: T.Buffer((1, 128, 128), "float32"), X12: T.Buffer((1, 128, 128), "float32"), Y12: T.Buffer((1, 128, 128), "float32"), Z12: T.Buffer((1, 128, 128), "float32"), X13: T.Buffer((1, 128, 128), "float32"), Y13: T.Buffer((1, 128, 128), "float32"), Z13: T.Buffer((1, 128, 128), "float32"), X14: T.Buffer((1, 128, 128), "float32"), Y14: T.Buffer((1, 128, 128), "float32"), Z14: T.Buffer((1, 128, 128), "float32"), X15: T.Buffer((1, 128, 128), "float32"), Y15: T.Buffer((1, 128, 128), "float32"), Z15: T.Buffer((1, 128, 128), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z0"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X0[v_b, v_i, v_k], Y0[v_b, v_k, v_j])
                T.writes(Z0[v_b, v_i, v_j])
                with T.init():
                    Z0[v_b, v_i, v_j] = T.float32(0.0)
                Z0[v_b, v_i, v_j] = Z0[v_b, v_i, v_j] + X0[v_b, v_i, v_k] * Y0[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z1"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X1[v_b, v_i, v_k], Y1[v_b, v_k, v_j])
                T.writes(Z1[v_b, v_i, v_j])
                with T.init():
                    Z1[v_b, v_i, v_j] = T.float32(0.0)
                Z1[v_b, v_i, v_j] = Z1[v_b, v_i, v_j] + X1[v_b, v_i, v_k] * Y1[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z2"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X2[v_b, v_i, v_k], Y2[v_b, v_k, v_j])
                T.writes(Z2[v_b, v_i, v_j])
                with T.init():
                    Z2[v_b, v_i, v_j] = T.float32(0.0)
                Z2[v_b, v_i, v_j] = Z2[v_b, v_i, v_j] + X2[v_b, v_i, v_k] * Y2[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z3"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X3[v_b, v_i, v_k], Y3[v_b, v_k, v_j])
                T.writes(Z3[v_b, v_i, v_j])
                with T.init():
                    Z3[v_b, v_i, v_j] = T.float32(0.0)
                Z3[v_b, v_i, v_j] = Z3[v_b, v_i, v_j] + X3[v_b, v_i, v_k] * Y3[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z4"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X4[v_b, v_i, v_k], Y4[v_b, v_k, v_j])
                T.writes(Z4[v_b, v_i, v_j])
                with T.init():
                    Z4[v_b, v_i, v_j] = T.float32(0.0)
                Z4[v_b, v_i, v_j] = Z4[v_b, v_i, v_j] + X4[v_b, v_i, v_k] * Y4[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z5"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X5[v_b, v_i, v_k], Y5[v_b, v_k, v_j])
                T.writes(Z5[v_b, v_i, v_j])
                with T.init():
                    Z5[v_b, v_i, v_j] = T.float32(0.0)
                Z5[v_b, v_i, v_j] = Z5[v_b, v_i, v_j] + X5[v_b, v_i, v_k] * Y5[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z6"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X6[v_b, v_i, v_k], Y6[v_b, v_k, v_j])
                T.writes(Z6[v_b, v_i, v_j])
                with T.init():
                    Z6[v_b, v_i, v_j] = T.float32(0.0)
                Z6[v_b, v_i, v_j] = Z6[v_b, v_i, v_j] + X6[v_b, v_i, v_k] * Y6[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z7"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X7[v_b, v_i, v_k], Y7[v_b, v_k, v_j])
                T.writes(Z7[v_b, v_i, v_j])
                with T.init():
                    Z7[v_b, v_i, v_j] = T.float32(0.0)
                Z7[v_b, v_i, v_j] = Z7[v_b, v_i, v_j] + X7[v_b, v_i, v_k] * Y7[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z8"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X8[v_b, v_i, v_k], Y8[v_b, v_k, v_j])
                T.writes(Z8[v_b, v_i, v_j])
                with T.init():
                    Z8[v_b, v_i, v_j] = T.float32(0.0)
                Z8[v_b, v_i, v_j] = Z8[v_b, v_i, v_j] + X8[v_b, v_i, v_k] * Y8[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z9"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X9[v_b, v_i, v_k], Y9[v_b, v_k, v_j])
                T.writes(Z9[v_b, v_i, v_j])
                with T.init():
                    Z9[v_b, v_i, v_j] = T.float32(0.0)
                Z9[v_b, v_i, v_j] = Z9[v_b, v_i, v_j] + X9[v_b, v_i, v_k] * Y9[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z10"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X10[v_b, v_i, v_k], Y10[v_b, v_k, v_j])
                T.writes(Z10[v_b, v_i, v_j])
                with T.init():
                    Z10[v_b, v_i, v_j] = T.float32(0.0)
                Z10[v_b, v_i, v_j] = Z10[v_b, v_i, v_j] + X10[v_b, v_i, v_k] * Y10[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z11"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X11[v_b, v_i, v_k], Y11[v_b, v_k, v_j])
                T.writes(Z11[v_b, v_i, v_j])
                with T.init():
                    Z11[v_b, v_i, v_j] = T.float32(0.0)
                Z11[v_b, v_i, v_j] = Z11[v_b, v_i, v_j] + X11[v_b, v_i, v_k] * Y11[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z12"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X12[v_b, v_i, v_k], Y12[v_b, v_k, v_j])
                T.writes(Z12[v_b, v_i, v_j])
                with T.init():
                    Z12[v_b, v_i, v_j] = T.float32(0.0)
                Z12[v_b, v_i, v_j] = Z12[v_b, v_i, v_j] + X12[v_b, v_i, v_k] * Y12[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z13"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X13[v_b, v_i, v_k], Y13[v_b, v_k, v_j])
                T.writes(Z13[v_b, v_i, v_j])
                with T.init():
                    Z13[v_b, v_i, v_j] = T.float32(0.0)
                Z13[v_b, v_i, v_j] = Z13[v_b, v_i, v_j] + X13[v_b, v_i, v_k] * Y13[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z14"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X14[v_b, v_i, v_k], Y14[v_b, v_k, v_j])
                T.writes(Z14[v_b, v_i, v_j])
                with T.init():
                    Z14[v_b, v_i, v_j] = T.float32(0.0)
                Z14[v_b, v_i, v_j] = Z14[v_b, v_i, v_j] + X14[v_b, v_i, v_k] * Y14[v_b, v_k, v_j]
        for b, i, j, k in T.grid(1, 128, 128, 128):
            with T.sblock("Z15"):
                v_b, v_i, v_j, v_k = T.axis.remap("SSSR", [b, i, j, k])
                T.reads(X15[v_b, v_i, v_k], Y15[v_b, v_k, v_j])
                T.writes(Z15[v_b, v_i, v_j])
                with T.init():
                    Z15[v_b, v_i, v_j] = T.float32(0.0)
                Z15[v_b, v_i, v_j] = Z15[v_b, v_i, v_j] + X15[v_b, v_i, v_k] * Y15[v_b, v_k, v_j]
