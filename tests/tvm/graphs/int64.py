# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((T.int64(32), T.int64(48)), "float32"), W: T.Buffer((T.int64(48), T.int64(16)), "float32"), C: T.Buffer((T.int64(32), T.int64(16)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i_0 in T.parallel(T.int64(8)):
            for i_1, j, k in T.grid(T.int64(4), T.int64(16), T.int64(48)):
                with T.sblock("C"):
                    v_i = T.axis.spatial(T.int64(32), i_0 * T.int64(4) + i_1)
                    v_j, v_k = T.axis.remap("SR", [j, k])
                    T.reads(A[v_i, v_k], W[v_k, v_j])
                    T.writes(C[v_i, v_j])
                    with T.init():
                        C[v_i, v_j] = T.float32(0.0)
                    C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * W[v_k, v_j]