# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((64, 64), "float32"), Y: T.Buffer((64, 64), "float32"), Z: T.Buffer((64, 64), "float32"), V: T.Buffer((64, 64), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        U = T.sblock_alloc_buffer((64, 64))
        for i, j, k in T.grid(64, 64, 64):
            with T.sblock("U"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                T.reads(X[v_i, v_k], Y[v_k, v_j])
                T.writes(U[v_i, v_j])
                with T.init():
                    U[v_i, v_j] = T.float32(0.0)
                U[v_i, v_j] = U[v_i, v_j] + X[v_i, v_k] * Y[v_k, v_j]
        for i, j, q in T.grid(64, 64, 64):
            with T.sblock("V"):
                v_i, v_j, v_q = T.axis.remap("SSR", [i, j, q])
                T.reads(U[v_i, v_q], Z[v_q, v_j])
                T.writes(V[v_i, v_j])
                with T.init():
                    V[v_i, v_j] = T.float32(0.0)
                V[v_i, v_j] = V[v_i, v_j] + U[v_i, v_q] * Z[v_q, v_j]
