# Products of one warp by mma.sync, 16x16 sums of as many products as fill 32 bytes; operands are loaded by ldmatrix. The index
# of a fragment follows from where its part of the buffer begins: fragments lie one after the other. B may lie by columns: its
# part of the buffer is then the transpose, in memory and in the fragment alike. Floats of 32 bits are rounded to TF32.
### warp_mma_fill_16x16_<T>.desc
#: T f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def mma_fill_desc(c: T.handle):
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.<T>(0)

### warp_mma_fill_16x16_<T>.impl
#: T f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def mma_fill_impl(c: T.handle):
    sc = T.int32()
    tc = T.int32()
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        T.mma_fill(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, T.<T>(0))

### warp_mma_load_<T>_a_<S>.desc
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16 | 16x16x8_tf32 = float32 | 16x16x32_s8 = int8
#= K 16 | 16 | 8 | 32
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
@T.prim_func(s_tir=True)
def mma_load_a_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, <K>), "<T>", align=64, offset_factor=8, scope="<S>")
    C = T.match_buffer(c, (16, <K>), "<T>", align=64, offset_factor=8, scope="mma.matrix_a")
    with T.sblock("root"):
        T.reads(A[0:16, 0:<K>])
        T.writes(C[0:16, 0:<K>])
        for i, j in T.grid(16, <K>):
            with T.sblock("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### warp_mma_load_<T>_a_<S>.impl
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16 | 16x16x8_tf32 = float32 | 16x16x32_s8 = int8
#= K 16 | 16 | 8 | 32
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
@T.prim_func(s_tir=True)
def mma_load_a_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, <K>), "<T>", align=64, offset_factor=8, scope="<S>", strides=[sa, ta])
    C = T.match_buffer(c, (16, <K>), "<T>", align=64, offset_factor=8, scope="mma.matrix_a", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:<K>])
        T.writes(C[0:16, 0:<K>])
        T.mma_load(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // <K>) + C.elem_offset % C.strides[0] // <K>, A.access_ptr("r"), A.strides[0], "row_major", "a")

### warp_mma_load_<T>_b_<S>.desc
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
@T.prim_func(s_tir=True)
def mma_load_b_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=8, scope="<S>")
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=8, scope="mma.matrix_b")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### warp_mma_load_<T>_b_<S>.impl
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
@T.prim_func(s_tir=True)
def mma_load_b_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=8, scope="<S>", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=8, scope="mma.matrix_b", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.mma_load(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.access_ptr("r"), A.strides[0], "row_major", "b")

### warp_mma_load_<T>_b_trans_<S>.desc
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16 | 16x16x8_tf32 = float32 | 16x16x32_s8 = int8
#= K 16 | 16 | 8 | 32
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
@T.prim_func(s_tir=True)
def mma_load_b_trans_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, <K>), "<T>", align=64, offset_factor=8, scope="<S>")
    C = T.match_buffer(c, (16, <K>), "<T>", align=64, offset_factor=8, scope="mma.matrix_b")
    with T.sblock("root"):
        T.reads(A[0:16, 0:<K>])
        T.writes(C[0:16, 0:<K>])
        for i, j in T.grid(16, <K>):
            with T.sblock("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### warp_mma_load_<T>_b_trans_<S>.impl
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16 | 16x16x8_tf32 = float32 | 16x16x32_s8 = int8
#= K 16 | 16 | 8 | 32
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
@T.prim_func(s_tir=True)
def mma_load_b_trans_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, <K>), "<T>", align=64, offset_factor=8, scope="<S>", strides=[sa, ta])
    C = T.match_buffer(c, (16, <K>), "<T>", align=64, offset_factor=8, scope="mma.matrix_b", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:<K>])
        T.writes(C[0:16, 0:<K>])
        T.mma_load(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // <K>) + C.elem_offset % C.strides[0] // <K>, A.access_ptr("r"), A.strides[0], "col_major", "b")

### warp_mma_sync_<T>.desc
#: T 16x16x16_f16f16f32 = float32 | 16x16x16_bf16bf16f32 = float32
#= I float16 | bfloat16
@T.prim_func(s_tir=True)
def mma_sync_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "<I>", align=64, offset_factor=8, scope="mma.matrix_a")
    B = T.match_buffer(b, (16, 16), "<I>", align=64, offset_factor=8, scope="mma.matrix_b")
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator")
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])

### warp_mma_sync_<T>.impl
#: T 16x16x16_f16f16f32 = float32 | 16x16x16_bf16bf16f32 = float32
#= I float16 | bfloat16
@T.prim_func(s_tir=True)
def mma_sync_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "<I>", align=64, offset_factor=8, scope="mma.matrix_a", strides=[sa, ta])
    B = T.match_buffer(b, (16, 16), "<I>", align=64, offset_factor=8, scope="mma.matrix_b", strides=[sb, tb])
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // 16) + B.elem_offset % B.strides[0] // 16, "row_major")

### warp_mma_sync_<T>_trans.desc
#: T 16x16x16_f16f16f32 = float32 | 16x16x16_bf16bf16f32 = float32 | 16x16x8_tf32tf32f32 = float32 | 16x16x32_s8s8s32 = int32
#= I float16 | bfloat16 | float32 | int8
#= K 16 | 16 | 8 | 32
#= X T.Cast("float32", | T.Cast("float32", | | T.Cast("int32",
#= Z ) | ) | | )
@T.prim_func(s_tir=True)
def mma_sync_trans_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, <K>), "<I>", align=64, offset_factor=8, scope="mma.matrix_a")
    B = T.match_buffer(b, (16, <K>), "<I>", align=64, offset_factor=8, scope="mma.matrix_b")
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator")
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:<K>], B[0:16, 0:<K>])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, <K>):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vj, vk])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + <X>A[vi, vk]<Z> * <X>B[vj, vk]<Z>

### warp_mma_sync_<T>_trans.impl
#: T 16x16x16_f16f16f32 = float32 | 16x16x16_bf16bf16f32 = float32 | 16x16x8_tf32tf32f32 = float32 | 16x16x32_s8s8s32 = int32
#= I float16 | bfloat16 | float32 | int8
#= K 16 | 16 | 8 | 32
@T.prim_func(s_tir=True)
def mma_sync_trans_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, <K>), "<I>", align=64, offset_factor=8, scope="mma.matrix_a", strides=[sa, ta])
    B = T.match_buffer(b, (16, <K>), "<I>", align=64, offset_factor=8, scope="mma.matrix_b", strides=[sb, tb])
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:<K>], B[0:16, 0:<K>])
        T.writes(C[0:16, 0:16])
        T.mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // <K>) + A.elem_offset % A.strides[0] // <K>, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // <K>) + B.elem_offset % B.strides[0] // <K>, "col_major")

### warp_mma_store_16x16_<T>_<S>.desc
#: T f32 = float32 | s32 = int32
#: S shared | shared_dyn = shared.dyn | global
@T.prim_func(s_tir=True)
def mma_store_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator")
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="<S>")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("store"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### warp_mma_store_16x16_<T>_<S>.impl
#: T f32 = float32 | s32 = int32
#: S shared | shared_dyn = shared.dyn | global
@T.prim_func(s_tir=True)
def mma_store_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=16, scope="mma.accumulator", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="<S>", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.mma_store(A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0])
