# Sixteen dot products of four bytes each: AVX-512's vpdpbusd, of which one lane is one dot product.
### dot_16x4_vnni.desc
@T.prim_func(s_tir=True)
def dot_16x4_vnni_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
    B = T.match_buffer(b, (16, 4), "int8", offset_factor=1)
    C = T.match_buffer(c, (16,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        for i in range(16):
            for k in range(4):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(C[vi], A[vk], B[vi, vk])
                    T.writes(C[vi])
                    C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])

### dot_16x4_vnni.impl
@T.prim_func(s_tir=True)
def dot_16x4_vnni_impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
    B = T.match_buffer(b, (16, 4), "int8", offset_factor=1)
    C = T.match_buffer(c, (16,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        with T.attr(0, "instruction", T.vpdpbusd(T.address_of(C[0]), T.address_of(C[1]), T.address_of(A[0]), T.address_of(A[1]), T.address_of(B[0, 0]), T.address_of(B[1, 0]), T.address_of(B[0, 1]))):
            for i in T.vectorized(16):
                C[i] = C[i] + (T.Cast("int32", A[0]) * T.Cast("int32", B[i, 0]) + T.Cast("int32", A[1]) * T.Cast("int32", B[i, 1]) + T.Cast("int32", A[2]) * T.Cast("int32", B[i, 2]) + T.Cast("int32", A[3]) * T.Cast("int32", B[i, 3]))

# The same by products of 32 bits, for CPUs without that instruction; sums of bytes' products do not saturate.
### dot_16x4_avx512.desc
@T.prim_func(s_tir=True)
def dot_16x4_avx512_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
    B = T.match_buffer(b, (16, 4), "int8", offset_factor=1)
    C = T.match_buffer(c, (16,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        for i in range(16):
            for k in range(4):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(C[vi], A[vk], B[vi, vk])
                    T.writes(C[vi])
                    C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])

### dot_16x4_avx512.impl
@T.prim_func(s_tir=True)
def dot_16x4_avx512_impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "uint8", offset_factor=1)
    B = T.match_buffer(b, (16, 4), "int8", offset_factor=1)
    C = T.match_buffer(c, (16,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        for i in T.vectorized(16):
            C[i] = C[i] + (T.Cast("int32", A[0]) * T.Cast("int32", B[i, 0]) + T.Cast("int32", A[1]) * T.Cast("int32", B[i, 1]) + T.Cast("int32", A[2]) * T.Cast("int32", B[i, 2]) + T.Cast("int32", A[3]) * T.Cast("int32", B[i, 3]))
