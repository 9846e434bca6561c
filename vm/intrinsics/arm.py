# Four dot products of four bytes each: ARM's sdot and udot, and what stands for them on a CPU without (neon). The sums
# are written out, so that they run everywhere; compilers for ARM know them by their form.
### dot_4x4_<N>.desc
#: N i8i8s32_neon = int32 | i8i8s32_sdot = int32 | u8u8u32_udot = uint32 | u8u8i32_hdot = int32
#= T int8 | int8 | uint8 | uint8
@T.prim_func(s_tir=True)
def dot_4x4_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<T>", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "<T>", offset_factor=1)
    C = T.match_buffer(c, (4,), "<N>", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4], B[0:4, 0:4])
        T.writes(C[0:4])
        for i in range(4):
            for k in range(4):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(C[vi], A[vk], B[vi, vk])
                    T.writes(C[vi])
                    C[vi] = C[vi] + T.Cast("<N>", A[vk]) * T.Cast("<N>", B[vi, vk])

### dot_4x4_<N>.impl
#: N i8i8s32_neon = int32 | i8i8s32_sdot = int32 | u8u8u32_udot = uint32 | u8u8i32_hdot = int32
#= T int8 | int8 | uint8 | uint8
@T.prim_func(s_tir=True)
def dot_4x4_impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<T>", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "<T>", offset_factor=1)
    C = T.match_buffer(c, (4,), "<N>", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4], B[0:4, 0:4])
        T.writes(C[0:4])
        for i in T.vectorized(4):
            C[i] = C[i] + (T.Cast("<N>", A[0]) * T.Cast("<N>", B[i, 0]) + T.Cast("<N>", A[1]) * T.Cast("<N>", B[i, 1]) + T.Cast("<N>", A[2]) * T.Cast("<N>", B[i, 2]) + T.Cast("<N>", A[3]) * T.Cast("<N>", B[i, 3]))
