# A dot product of four bytes, added to a sum: NVIDIA's dp4a. The operands lie as a GPU's threads have them.
### dp4a_<C>.desc
#: C s8s8s32 = int32 | u8s8s32 = int32 | s8u8s32 = int32 | u8u8u32 = uint32
#= A int8 | uint8 | int8 | uint8
#= B int8 | int8 | uint8 | uint8
@T.prim_func(s_tir=True)
def dp4a_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<A>", offset_factor=1, align=4, scope="shared")
    B = T.match_buffer(b, (4,), "<B>", offset_factor=1, align=4, scope="shared")
    C = T.match_buffer(c, (1,), "<C>", offset_factor=1, align=4, scope="local")
    with T.sblock("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        for i in range(4):
            with T.sblock("update"):
                vi = T.axis.reduce(4, i)
                T.reads(C[0], A[vi], B[vi])
                T.writes(C[0])
                C[0] = C[0] + T.Cast("<C>", A[vi]) * T.Cast("<C>", B[vi])

### dp4a_<C>.impl
#: C s8s8s32 = int32 | u8s8s32 = int32 | s8u8s32 = int32 | u8u8u32 = uint32
#= A int8 | uint8 | int8 | uint8
#= B int8 | int8 | uint8 | uint8
@T.prim_func(s_tir=True)
def dp4a_impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<A>", offset_factor=1, align=4, scope="shared")
    B = T.match_buffer(b, (4,), "<B>", offset_factor=1, align=4, scope="shared")
    C = T.match_buffer(c, (1,), "<C>", offset_factor=1, align=4, scope="local")
    with T.sblock("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] = C[0] + (T.Cast("<C>", A[0]) * T.Cast("<C>", B[0]) + T.Cast("<C>", A[1]) * T.Cast("<C>", B[1]) + T.Cast("<C>", A[2]) * T.Cast("<C>", B[2]) + T.Cast("<C>", A[3]) * T.Cast("<C>", B[3]))
