# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def mac_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1, strides=[sb, 1])
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        T.evaluate(T.call_extern("int32", "mac_4x4x4_f32", C.access_ptr("rw"), sc, A.access_ptr("r"), sa, B.access_ptr("r"), sb))
