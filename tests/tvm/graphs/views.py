# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 16), "float32"), n: T.int32):
        b = T.alloc_shared((3, 4), "float16")
        d = b.view(12)
        d[0] = d[1]
        e = T.decl_buffer((6,), data=b.data, scope="shared")
        e[0] = T.float32(1.0)
        f = T.decl_buffer((4,), "float16", data=b.data, elem_offset=4, scope="shared")
        f[0] = T.float16(1.0)
        g = T.decl_buffer((2, 2), "float16", data=b.data, strides=(4, 1), scope="shared")
        g[0, 0] = T.float16(1.0)
        h = A.view(256)
        h[0] = h[1]
        t = T.decl_buffer((), data=A.data)
        t[()] = t[()]
        u = T.decl_buffer((4, 4), "int8", data=A.data, elem_offset=n)
        u[0, 0] = T.int8(3)