# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (4, 4), strides=("sa", 1), offset_factor=1)
        sb = T.int16()
        ob = T.int64()
        B = T.match_buffer(b, (4, 4), strides=(sb, 1), elem_offset=ob)
        for i in range(4):
            A[i, 0] = B[i, 0]
