# 16x16x16 matrix fragments of one warp. The index of a fragment follows from where its part of the buffer begins: fragments
# of 256 elements lie one after the other. What a load by columns gives is the transpose of what lies in memory.
### wmma_fill_16x16x16_<T>.desc
#: T f16 = float16 | f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def wmma_fill_desc(c: T.handle):
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.accumulator")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.<T>(0)

### wmma_fill_16x16x16_<T>.impl
#: T f16 = float16 | f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def wmma_fill_impl(c: T.handle):
    sc = T.int32()
    tc = T.int32()
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:16])
        T.tvm_fill_fragment(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, T.float32(0))

### wmma_load_16x16x16_<T>_<M><L>_<S>.desc
#: T f16 = float16 | s8 = int8
#: M a | b
#: L = row_major | _trans = col_major
#: S shared | shared_dyn = shared.dyn
@T.prim_func(s_tir=True)
def wmma_load_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=16, scope="<S>")
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.matrix_<M>")
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j in T.grid(16, 16):
            with T.sblock("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### wmma_load_16x16x16_<T>_<M><L>_<S>.impl
#: T f16 = float16 | s8 = int8
#: M a | b
#: L = row_major | _trans = col_major
#: S shared | shared_dyn = shared.dyn
@T.prim_func(s_tir=True)
def wmma_load_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=16, scope="<S>", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.matrix_<M>", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.access_ptr("r"), A.strides[0], "<L>")

### wmma_store_16x16x16_<T>_<S>.desc
#: T f16 = float16 | f32 = float32 | s32 = int32
#: S shared | shared_dyn = shared.dyn | global
@T.prim_func(s_tir=True)
def wmma_store_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.accumulator")
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

### wmma_store_16x16x16_<T>_<S>.impl
#: T f16 = float16 | f32 = float32 | s32 = int32
#: S shared | shared_dyn = shared.dyn | global
@T.prim_func(s_tir=True)
def wmma_store_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sa, ta])
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="<S>", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_store_matrix_sync(A.data, 16, 16, 16, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0], "row_major")

### wmma_sync_16x16x16_<T><L>.desc
#: T f16f16f32 = float32 | f16f16f16 = float16 | s8s8s32 = int32
#= I float16 | float16 | int8
#= K T.Cast("float32", | | T.Cast("int32",
#= Z ) | | )
#: L = vk, vj | _trans = vj, vk
@T.prim_func(s_tir=True)
def wmma_sync_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "<I>", align=64, offset_factor=16, scope="wmma.matrix_a")
    B = T.match_buffer(b, (16, 16), "<I>", align=64, offset_factor=16, scope="wmma.matrix_b")
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.accumulator")
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        for i, j, k in T.grid(16, 16, 16):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[<L>])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + <K>A[vi, vk]<Z> * <K>B[<L>]<Z>

### wmma_sync_16x16x16_<T><L>.impl
#: T f16f16f32 = float32 | f16f16f16 = float16 | s8s8s32 = int32
#= I float16 | float16 | int8
#: L = vk, vj | _trans = vj, vk
@T.prim_func(s_tir=True)
def wmma_sync_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 16), "<I>", align=64, offset_factor=16, scope="wmma.matrix_a", strides=[sa, ta])
    B = T.match_buffer(b, (16, 16), "<I>", align=64, offset_factor=16, scope="wmma.matrix_b", strides=[sb, tb])
    C = T.match_buffer(c, (16, 16), "<T>", align=64, offset_factor=16, scope="wmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.tvm_mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // 16) + B.elem_offset % B.strides[0] // 16, C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16)
