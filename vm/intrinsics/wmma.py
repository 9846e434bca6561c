# 16x16x16 matrix fragments of one warp, float16 with sums in float32 or float16. The index of a fragment follows from where its part
# of the buffer begins: fragments of 256 elements lie one after the other.
### wmma_fill_16x16x16_f32.desc
@T.prim_func(s_tir=True)
def wmma_fill_16x16x16_f32_desc(c: T.handle):
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.float32(0)


### wmma_fill_16x16x16_f32.impl
@T.prim_func(s_tir=True)
def wmma_fill_16x16x16_f32_impl(c: T.handle):
    sc = T.int32()
    tc = T.int32()
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        T.tvm_fill_fragment(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, T.float32(0))

### wmma_store_16x16x16_f32_shared.desc
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f32_shared_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator")
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="shared")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]


### wmma_store_16x16x16_f32_shared.impl
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f32_shared_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="shared", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_store_matrix_sync(A.data, 16, 16, 16, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0], "row_major")

### wmma_store_16x16x16_f32_global.desc
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f32_global_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator")
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="global")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]


### wmma_store_16x16x16_f32_global.impl
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f32_global_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="global", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_store_matrix_sync(A.data, 16, 16, 16, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0], "row_major")

### wmma_sync_16x16x16_f16f16f32.desc
@T.prim_func(s_tir=True)
def wmma_sync_16x16x16_f16f16f32_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a")
    B = T.match_buffer(b, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_b")
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator")
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.sblock("body"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])


### wmma_sync_16x16x16_f16f16f32.impl
@T.prim_func(s_tir=True)
def wmma_sync_16x16x16_f16f16f32_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a", strides=[sa, ta])
    B = T.match_buffer(b, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_b", strides=[sb, tb])
    C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // 16) + B.elem_offset % B.strides[0] // 16, C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16)

### wmma_fill_16x16x16_f16.desc
@T.prim_func(s_tir=True)
def wmma_fill_16x16x16_f16_desc(c: T.handle):
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.float16(0)


### wmma_fill_16x16x16_f16.impl
@T.prim_func(s_tir=True)
def wmma_fill_16x16x16_f16_impl(c: T.handle):
    sc = T.int32()
    tc = T.int32()
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        T.tvm_fill_fragment(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, T.float16(0))

### wmma_store_16x16x16_f16_shared.desc
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f16_shared_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator")
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="shared")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]


### wmma_store_16x16x16_f16_shared.impl
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f16_shared_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="shared", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_store_matrix_sync(A.data, 16, 16, 16, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0], "row_major")

### wmma_store_16x16x16_f16_global.desc
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f16_global_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator")
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="global")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]


### wmma_store_16x16x16_f16_global.impl
@T.prim_func(s_tir=True)
def wmma_store_16x16x16_f16_global_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="global", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_store_matrix_sync(A.data, 16, 16, 16, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0], "row_major")

### wmma_sync_16x16x16_f16f16f16.desc
@T.prim_func(s_tir=True)
def wmma_sync_16x16x16_f16f16f16_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a")
    B = T.match_buffer(b, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_b")
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator")
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.sblock("body"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


### wmma_sync_16x16x16_f16f16f16.impl
@T.prim_func(s_tir=True)
def wmma_sync_16x16x16_f16f16f16_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a", strides=[sa, ta])
    B = T.match_buffer(b, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_b", strides=[sb, tb])
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // 16) + B.elem_offset % B.strides[0] // 16, C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16)

### wmma_load_16x16x16_f16_a_shared.desc
@T.prim_func(s_tir=True)
def wmma_load_16x16x16_f16_a_shared_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="shared")
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]


### wmma_load_16x16x16_f16_a_shared.impl
@T.prim_func(s_tir=True)
def wmma_load_16x16x16_f16_a_shared_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="shared", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.access_ptr("r"), A.strides[0], "row_major")

### wmma_load_16x16x16_f16_b_shared.desc
@T.prim_func(s_tir=True)
def wmma_load_16x16x16_f16_b_shared_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="shared")
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_b")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("body"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]


### wmma_load_16x16x16_f16_b_shared.impl
@T.prim_func(s_tir=True)
def wmma_load_16x16x16_f16_b_shared_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="shared", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_b", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.access_ptr("r"), A.strides[0], "row_major")
