# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        for i in T.thread_binding(8, thread="blockIdx.x"):
            x: T.let[T.int32] = i * 2
            y: T.let[T.int32] = x + 1
            for j in T.vectorized(8, annotations={"p": 1}):
                if x < 4 and y > 2:
                    A[i, j] = B[i, j]
                else:
                    if x < 8:
                        A[i, j] = T.float32(0.0)
                    else:
                        A[i, j] = T.float32(1.0)
            p: T.let[T.handle("float32", "global")] = A.data
            T.call_extern("void", "f", p)