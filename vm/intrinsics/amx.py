# Tiles of the shapes that AMX multiplies, B packed as its tiles are: by its instructions where they are, else by
# vectors. Bytes are summed in int32, bfloat16 and float16 in float32. Tiles of 14 rows divide lines of images that are
# multiples of seven: the number stands behind the addresses.
### amx_<M>x16x<N>.desc
#: M 16 | 14
#: N 64_i8 = 64 | 64_u8 = 64 | 64_u8i8 = 64 | 64_i8u8 = 64 | 32_bf16 = 32 | 32_f16 = 32
#= P 4 | 4 | 4 | 4 | 2 | 2
#= T int8 | uint8 | uint8 | int8 | bfloat16 | float16
#= U int8 | uint8 | int8 | uint8 | bfloat16 | float16
#= S int32 | int32 | int32 | int32 | float32 | float32
@T.prim_func(s_tir=True)
def amx_16x16_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (<M>, <N>), "<T>", offset_factor=1)
    B = T.match_buffer(b, (16, 16, <P>), "<U>", offset_factor=1)
    C = T.match_buffer(c, (<M>, 16), "<S>", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:<M>, 0:16], A[0:<M>, 0:<N>], B[0:16, 0:16, 0:<P>])
        T.writes(C[0:<M>, 0:16])
        for i, j, k_0, k_1 in T.grid(<M>, 16, 16, <P>):
            with T.sblock("update"):
                vi, vj, vk0, vk1 = T.axis.remap("SSRR", [i, j, k_0, k_1])
                T.reads(C[vi, vj], A[vi, vk0 * <P> + vk1], B[vk0, vj, vk1])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("<S>", A[vi, vk0 * <P> + vk1]) * T.Cast("<S>", B[vk0, vj, vk1])

### amx_<M>x16x<N>.impl
#: M 16 | 14
#= L T.address_of(B[0, 0, 1]) | T.address_of(B[0, 0, 1]), 14
#: N 64_i8 = 64 | 64_u8 = 64 | 64_u8i8 = 64 | 64_i8u8 = 64 | 32_bf16 = 32 | 32_f16 = 32
#= P 4 | 4 | 4 | 4 | 2 | 2
#= T int8 | uint8 | uint8 | int8 | bfloat16 | float16
#= U int8 | uint8 | int8 | uint8 | bfloat16 | float16
#= S int32 | int32 | int32 | int32 | float32 | float32
#= D tdpbssd | tdpbuud | tdpbusd | tdpbsud | tdpbf16ps | tdpfp16ps
@T.prim_func(s_tir=True)
def amx_16x16_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, (<M>, <N>), "<T>", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (16, 16, <P>), "<U>", offset_factor=1, strides=[sb, <P>, 1])
    C = T.match_buffer(c, (<M>, 16), "<S>", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads(C[0:<M>, 0:16], A[0:<M>, 0:<N>], B[0:16, 0:16, 0:<P>])
        T.writes(C[0:<M>, 0:16])
        with T.attr(0, "instruction", T.<D>(T.address_of(C[0, 0]), T.address_of(C[1, 0]), T.address_of(C[0, 1]), T.address_of(A[0, 0]), T.address_of(A[1, 0]), T.address_of(A[0, 1]), T.address_of(B[0, 0, 0]), T.address_of(B[1, 0, 0]), T.address_of(B[0, 1, 0]), <L>)):
            for i, k_0, k_1 in T.grid(<M>, 16, <P>):
                for j in T.vectorized(16):
                    C[i, j] = C[i, j] + T.Cast("<S>", A[i, k_0 * <P> + k_1]) * T.Cast("<S>", B[k_0, j, k_1])

# The same, of bfloat16, where the operand of the columns is the product's first factor.
### amx_16x16x32_bf16_<N>.desc
#: N columns_first = 32
@T.prim_func(s_tir=True)
def amx_columns_first_desc(a: T.handle, b: T.handle, c: T.handle):
    B = T.match_buffer(b, (16, 16, 2), "bfloat16", offset_factor=1)
    A = T.match_buffer(a, (16, <N>), "bfloat16", offset_factor=1)
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], B[0:16, 0:16, 0:2], A[0:16, 0:<N>])
        T.writes(C[0:16, 0:16])
        for i, j, k_0, k_1 in T.grid(16, 16, 16, 2):
            with T.sblock("update"):
                vi, vj, vk0, vk1 = T.axis.remap("SSRR", [i, j, k_0, k_1])
                T.reads(C[vi, vj], B[vk0, vj, vk1], A[vi, vk0 * 2 + vk1])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("float32", B[vk0, vj, vk1]) * T.Cast("float32", A[vi, vk0 * 2 + vk1])

### amx_16x16x32_bf16_<N>.impl
#: N columns_first = 32
@T.prim_func(s_tir=True)
def amx_columns_first_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    B = T.match_buffer(b, (16, 16, 2), "bfloat16", offset_factor=1, strides=[sb, 2, 1])
    A = T.match_buffer(a, (16, <N>), "bfloat16", offset_factor=1, strides=[sa, 1])
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], B[0:16, 0:16, 0:2], A[0:16, 0:<N>])
        T.writes(C[0:16, 0:16])
        with T.attr(0, "instruction", T.tdpbf16ps(T.address_of(C[0, 0]), T.address_of(C[1, 0]), T.address_of(C[0, 1]), T.address_of(A[0, 0]), T.address_of(A[1, 0]), T.address_of(A[0, 1]), T.address_of(B[0, 0, 0]), T.address_of(B[1, 0, 0]), T.address_of(B[0, 1, 0]), T.address_of(B[0, 0, 1]))):
            for i, k_0, k_1 in T.grid(16, 16, 2):
                for j in T.vectorized(16):
                    C[i, j] = C[i, j] + T.Cast("float32", B[k_0, j, k_1]) * T.Cast("float32", A[i, k_0 * 2 + k_1])

# A tile of zeros, to which products are added.
### amx_zero_<N>.desc
#: N i32 = int32 | f32 = float32 | 14_i32 = int32 | 14_f32 = float32
#= Z 0 | T.float32(0) | 0 | T.float32(0)
#= M 16 | 16 | 14 | 14
@T.prim_func(s_tir=True)
def amx_zero_desc(c: T.handle):
    C = T.match_buffer(c, (<M>, 16), "<N>", offset_factor=1)
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:<M>, 0:16])
        for i, j in T.grid(<M>, 16):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = <Z>

### amx_zero_<N>.impl
#: N i32 = int32 | f32 = float32 | 14_i32 = int32 | 14_f32 = float32
#= Z 0 | T.float32(0) | 0 | T.float32(0)
#= M 16 | 16 | 14 | 14
#= L T.address_of(C[0, 1]) | T.address_of(C[0, 1]) | T.address_of(C[0, 1]), 14 | T.address_of(C[0, 1]), 14
@T.prim_func(s_tir=True)
def amx_zero_impl(c: T.handle):
    sc = T.int32()
    C = T.match_buffer(c, (<M>, 16), "<N>", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:<M>, 0:16])
        with T.attr(0, "instruction", T.tilezero(T.address_of(C[0, 0]), T.address_of(C[1, 0]), <L>)):
            for i in range(<M>):
                for j in T.vectorized(16):
                    C[i, j] = <Z>
