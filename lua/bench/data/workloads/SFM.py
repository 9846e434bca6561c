# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((256, 256), "float32"), norm: T.Buffer((256, 256), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        maxelem = T.sblock_alloc_buffer((256,))
        expo = T.sblock_alloc_buffer((256, 256))
        expsum = T.sblock_alloc_buffer((256,))
        for i, k in T.grid(256, 256):
            with T.sblock("maxelem"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(A[v_i, v_k])
                T.writes(maxelem[v_i])
                with T.init():
                    maxelem[v_i] = T.float32(-340282346638528859811704183484516925440.0)
                maxelem[v_i] = T.max(maxelem[v_i], A[v_i, v_k])
        for i, j in T.grid(256, 256):
            with T.sblock("expo"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_i, v_j], maxelem[v_i])
                T.writes(expo[v_i, v_j])
                expo[v_i, v_j] = T.exp(A[v_i, v_j] - maxelem[v_i])
        for i, q in T.grid(256, 256):
            with T.sblock("expsum"):
                v_i, v_q = T.axis.remap("SR", [i, q])
                T.reads(expo[v_i, v_q])
                T.writes(expsum[v_i])
                with T.init():
                    expsum[v_i] = T.float32(0.0)
                expsum[v_i] = expsum[v_i] + expo[v_i, v_q]
        for i, j in T.grid(256, 256):
            with T.sblock("norm"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(expo[v_i, v_j], expsum[v_i])
                T.writes(norm[v_i, v_j])
                norm[v_i, v_j] = expo[v_i, v_j] / expsum[v_i]
