# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(Q: T.Buffer((6, 3), "float32"), K: T.Buffer((10, 3), "float32"), V: T.Buffer((10, 3), "float32"), Y: T.Buffer((6, 3), "float32")):
        S = T.sblock_alloc_buffer((6, 10), "float32")
        M = T.sblock_alloc_buffer((6,), "float32")
        L = T.sblock_alloc_buffer((6,), "float32")
        for i, j, k in T.grid(6, 10, 3):
            with T.sblock("scores"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    S[vi, vj] = T.float32(0)
                S[vi, vj] = S[vi, vj] + Q[vi, vk] * K[vj, vk]
        for i, k in T.grid(6, 10):
            with T.sblock("maximum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    M[vi] = T.float32(-340282346638528859811704183484516925440.0)
                M[vi] = T.max(M[vi], T.Select(vk <= vi, S[vi, vk] * T.float32(0.25), T.float32(-340282346638528859811704183484516925440.0)))
        for i, k in T.grid(6, 10):
            with T.sblock("total"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    L[vi] = T.float32(0)
                L[vi] = L[vi] + T.exp(T.Select(vk <= vi, S[vi, vk] * T.float32(0.25), T.float32(-340282346638528859811704183484516925440.0)) - M[vi])
        for i, d, j in T.grid(6, 3, 10):
            with T.sblock("O"):
                vi, vd, vj = T.axis.remap("SSR", [i, d, j])
                with T.init():
                    Y[vi, vd] = T.float32(0)
                Y[vi, vd] = Y[vi, vd] + T.exp(T.Select(vj <= vi, S[vi, vj] * T.float32(0.25), T.float32(-340282346638528859811704183484516925440.0)) - M[vi]) / L[vi] * V[vj, vd]
