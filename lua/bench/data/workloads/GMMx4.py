# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X0: T.Buffer((1, 128, 128), "float32"), Y0: T.Buffer((1, 128, 128), "float32"), Z0: T.Buffer((1, 128, 128), "float32"), X1: T.Buffer((1, 128, 128), "float32"), Y1: T.Buffer((1, 128, 128), "float32"), Z1: T.Buffer((1, 128, 128), "float32"), X2: T.Buffer((1, 128, 128), "float32"), Y2: T.Buffer((1, 128, 128), "float32"), Z2: T.Buffer((1, 128, 128), "float32"), X3: T.Buffer((1, 128, 128), "float32"), Y3: T.Buffer((1, 128, 128), "float32"), Z3: T.Buffer((1, 128, 128), "float32")):
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
