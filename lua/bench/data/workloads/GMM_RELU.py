# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((128, 128), "float32"), Y: T.Buffer((128, 128), "float32"), relu: T.Buffer((128, 128), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        Z = T.sblock_alloc_buffer((128, 128))
        for i, j, k in T.grid(128, 128, 128):
            with T.sblock("Z"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                T.reads(X[v_i, v_k], Y[v_k, v_j])
                T.writes(Z[v_i, v_j])
                with T.init():
                    Z[v_i, v_j] = T.float32(0.0)
                Z[v_i, v_j] = Z[v_i, v_j] + X[v_i, v_k] * Y[v_k, v_j]
        for i, j in T.grid(128, 128):
            with T.sblock("relu"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(Z[v_i, v_j])
                T.writes(relu[v_i, v_j])
                relu[v_i, v_j] = T.max(Z[v_i, v_j], T.float32(0.0))
