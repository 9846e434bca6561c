# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        # with T.sblock("root"):
        for i, k in T.grid(4, 8):
            with T.sblock("b"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(B[vi])
                t = T.sblock_alloc_buffer((1,))
                with T.init():
                    t[0] = T.float32(2.0)
                    B[vi] = t[0]
                B[vi] = B[vi] + A[vi, vk]
