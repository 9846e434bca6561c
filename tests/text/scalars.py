# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32")):
        x = T.alloc_buffer((1,), "int32", scope="local")
        x[0] = 3
        x[0] = x[0] + 1
        A[0] = x[0]
        y = T.alloc_buffer((1,), "int32", scope="local")
        y[0] = A[0] * 2
        A[1] = y[0]
        s = T.alloc_buffer((1,), scope="local")
        s[0] = T.float32(1.5)
        A[2] = T.Cast("int32", s[0])
        buf = T.alloc_buffer((4, 4), "int8", scope="local")
        buf[0, 1] = T.int8(4)
        sh = T.alloc_buffer((4,), scope="shared")
        sh[0] = T.float32(3.0)
        while x[0] < 10:
            x[0] = x[0] + 1
        A[3] = A[3] + 2
        A[3] = A[3] * x[0]
