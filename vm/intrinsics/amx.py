# Tiles of the shapes that AMX multiplies, B packed as its tiles are: by its instructions where they are, else by vectors.
### amx_16x16x64_i8.desc
@T.prim_func(s_tir=True)
def amx_16x16x64_i8_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 64), "int8", offset_factor=1)
    B = T.match_buffer(b, (16, 16, 4), "int8", offset_factor=1)
    C = T.match_buffer(c, (16, 16), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:64], B[0:16, 0:16, 0:4])
        T.writes(C[0:16, 0:16])
        for i, j, k_0, k_1 in T.grid(16, 16, 16, 4):
            with T.sblock("update"):
                vi, vj, vk0, vk1 = T.axis.remap("SSRR", [i, j, k_0, k_1])
                T.reads(C[vi, vj], A[vi, vk0 * 4 + vk1], B[vk0, vj, vk1])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk0 * 4 + vk1]) * T.Cast("int32", B[vk0, vj, vk1])

### amx_16x16x64_i8.impl
@T.prim_func(s_tir=True)
def amx_16x16x64_i8_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, (16, 64), "int8", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (16, 16, 4), "int8", offset_factor=1, strides=[sb, 4, 1])
    C = T.match_buffer(c, (16, 16), "int32", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:64], B[0:16, 0:16, 0:4])
        T.writes(C[0:16, 0:16])
        with T.attr(0, "instruction", T.tdpbssd(T.address_of(C[0, 0]), T.address_of(C[1, 0]), T.address_of(C[0, 1]), T.address_of(A[0, 0]), T.address_of(A[1, 0]), T.address_of(A[0, 1]), T.address_of(B[0, 0, 0]), T.address_of(B[1, 0, 0]), T.address_of(B[0, 1, 0]), T.address_of(B[0, 0, 1]))):
            for i, k_0, k_1 in T.grid(16, 16, 4):
                for j in T.vectorized(16):
                    C[i, j] = C[i, j] + T.Cast("int32", A[i, k_0 * 4 + k_1]) * T.Cast("int32", B[k_0, j, k_1])

# Likewise in bfloat16, summed in float32.
### amx_16x16x32_bf16.desc
@T.prim_func(s_tir=True)
def amx_16x16x32_bf16_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 32), "bfloat16", offset_factor=1)
    B = T.match_buffer(b, (16, 16, 2), "bfloat16", offset_factor=1)
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:32], B[0:16, 0:16, 0:2])
        T.writes(C[0:16, 0:16])
        for i, j, k_0, k_1 in T.grid(16, 16, 16, 2):
            with T.sblock("update"):
                vi, vj, vk0, vk1 = T.axis.remap("SSRR", [i, j, k_0, k_1])
                T.reads(C[vi, vj], A[vi, vk0 * 2 + vk1], B[vk0, vj, vk1])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk0 * 2 + vk1]) * T.Cast("float32", B[vk0, vj, vk1])

### amx_16x16x32_bf16.impl
@T.prim_func(s_tir=True)
def amx_16x16x32_bf16_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, (16, 32), "bfloat16", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (16, 16, 2), "bfloat16", offset_factor=1, strides=[sb, 2, 1])
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:32], B[0:16, 0:16, 0:2])
        T.writes(C[0:16, 0:16])
        with T.attr(0, "instruction", T.tdpbf16ps(T.address_of(C[0, 0]), T.address_of(C[1, 0]), T.address_of(C[0, 1]), T.address_of(A[0, 0]), T.address_of(A[1, 0]), T.address_of(A[0, 1]), T.address_of(B[0, 0, 0]), T.address_of(B[1, 0, 0]), T.address_of(B[0, 1, 0]), T.address_of(B[0, 0, 1]))):
            for i, k_0, k_1 in T.grid(16, 16, 2):
                for j in T.vectorized(16):
                    C[i, j] = C[i, j] + T.Cast("float32", A[i, k_0 * 2 + k_1]) * T.Cast("float32", B[k_0, j, k_1])
