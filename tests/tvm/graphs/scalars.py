# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32")):
        x: T.int32 = 3
        x = x + 1
        A[0] = x
        y: T.int32 = A[0] * 2
        A[1] = y
        s: T.float32 = T.float32(1.5)
        A[2] = T.Cast("int32", s)
        buf = T.alloc_local((4, 4), "int8")
        buf[0, 1] = T.int8(4)
        sh = T.alloc_shared((4,))
        sh[0] = T.float32(3.0)
        while x < 10:
            x = x + 1
        A[3] = A[3] + 2
        A[3] = A[3] * x