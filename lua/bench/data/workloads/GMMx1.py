# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X0: T.Buffer((1, 128, 128), "float32"), Y0: T.Buffer((1, 128, 128), "float32"), Z0: T.Buffer((1, 128, 128), "float32")):
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
