# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((9, 9), "float32"), x: T.Buffer((9,), "float32"), Y: T.Buffer((9,), "float32"), T_1: T.Buffer((9, 9), "float32")):
        T.func_attr({"tirx.noalias": True})
        L = T.sblock_alloc_buffer((9, 9))
        for i, j in T.grid(9, 9):
            with T.sblock("L"):
                vi, vj = T.axis.remap("SS", [i, j])
                L[vi, vj] = T.Select(vj < vi, A[vi, vj], T.Select(vj == vi, T.float32(1.0), T.float32(0.0)))
        for i, k in T.grid(9, 9):
            with T.sblock("Y"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(k <= i)
                with T.init():
                    Y[vi] = x[vi]
                Y[vi] = Y[vi] + L[vi, vk] * x[vk]
        for i, j in T.grid(9, 9):
            with T.sblock("T_1"):
                vi, vj = T.axis.remap("SS", [i, j])
                T_1[vi, vj] = L[T.max(vi, vj), T.min(vi, vj)]
