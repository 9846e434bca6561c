# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 24), "float32"), y: T.Buffer((8, 24), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        m = T.sblock_alloc_buffer((8,))
        e = T.sblock_alloc_buffer((8, 24))
        s = T.sblock_alloc_buffer((8,))
        for i, k in T.grid(8, 24):
            with T.sblock("m"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(A[v_i, v_k])
                T.writes(m[v_i])
                with T.init():
                    m[v_i] = T.float32(-340282346638528859811704183484516925440.0)
                m[v_i] = T.max(m[v_i], A[v_i, v_k])
        for i, j in T.grid(8, 24):
            with T.sblock("e"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_i, v_j], m[v_i])
                T.writes(e[v_i, v_j])
                e[v_i, v_j] = T.exp(A[v_i, v_j] - m[v_i])
        for i, q in T.grid(8, 24):
            with T.sblock("s"):
                v_i, v_q = T.axis.remap("SR", [i, q])
                T.reads(e[v_i, v_q])
                T.writes(s[v_i])
                with T.init():
                    s[v_i] = T.float32(0.0)
                s[v_i] = s[v_i] + e[v_i, v_q]
        for i, j in T.grid(8, 24):
            with T.sblock("y"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(e[v_i, v_j], s[v_i])
                T.writes(y[v_i, v_j])
                y[v_i, v_j] = e[v_i, v_j] / s[v_i]
