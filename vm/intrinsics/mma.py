# 16x8x8 products of one warp, whose operands lie in its registers: the buffer's scope says which operand it is, and an index
# of registers follows from where its part of the buffer begins. A is loaded 32 rows at a time, B 32 columns at a time.
### mma_init_m16n8k8_<T>.desc
#: T f16 = float16 | f32 = float32
@T.prim_func(s_tir=True)
def mma_init_desc(c: T.handle):
    C = T.match_buffer(c, (16, 8), "<T>", align=64, offset_factor=1, scope="m16n8k8.matrixC")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:8])
        for i, j in T.grid(16, 8):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.<T>(0)

### mma_init_m16n8k8_<T>.impl
#: T f16 = float16 | f32 = float32
@T.prim_func(s_tir=True)
def mma_init_impl(c: T.handle):
    C = T.match_buffer(c, (16, 8), "<T>", align=64, offset_factor=1, scope="m16n8k8.matrixC")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:16, 0:8])
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            for b in range(2):
                for v in T.vectorized(2):
                    C[b * 8 + tx // 4, tx % 4 * 2 + v] = T.<T>(0)

### mma_load_m16n8k8_f16_A_shared_dyn.desc
@T.prim_func(s_tir=True)
def mma_load_A_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (32, 8), "float16", align=64, offset_factor=1, scope="shared.dyn")
    C = T.match_buffer(c, (32, 8), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixA")
    with T.sblock("root"):
        T.reads(A[0:32, 0:8])
        T.writes(C[0:32, 0:8])
        for i, j in T.grid(32, 8):
            with T.sblock("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### mma_load_m16n8k8_f16_A_shared_dyn.impl
@T.prim_func(s_tir=True)
def mma_load_A_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (32, 8), "float16", align=64, offset_factor=1, scope="shared.dyn", strides=[sa, ta])
    C = T.match_buffer(c, (32, 8), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixA", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:32, 0:8])
        T.writes(C[0:32, 0:8])
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            T.ptx_ldmatrix("float16", False, 4, ".b16", C.data, (C.elem_offset // C.strides[0] // 32 * (C.strides[0] // 8) + C.elem_offset % C.strides[0] // 8) * 8 + C.elem_offset // C.strides[0] % 32 // 16 * 4, A.access_ptr("r"), tx * A.strides[0])

### mma_load_m16n8k8_f16_B_shared_dyn.desc
@T.prim_func(s_tir=True)
def mma_load_B_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (8, 32), "float16", align=64, offset_factor=1, scope="shared.dyn")
    C = T.match_buffer(c, (8, 32), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixB")
    with T.sblock("root"):
        T.reads(A[0:8, 0:32])
        T.writes(C[0:8, 0:32])
        for i, j in T.grid(8, 32):
            with T.sblock("load"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### mma_load_m16n8k8_f16_B_shared_dyn.impl
@T.prim_func(s_tir=True)
def mma_load_B_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (8, 32), "float16", align=64, offset_factor=1, scope="shared.dyn", strides=[sa, ta])
    C = T.match_buffer(c, (8, 32), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixB", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:8, 0:32])
        T.writes(C[0:8, 0:32])
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            T.ptx_ldmatrix("float16", True, 4, ".b16", C.data, (C.elem_offset // C.strides[0] // 8 * (C.strides[0] // 32) + C.elem_offset % C.strides[0] // 32) * 8 + C.elem_offset % C.strides[0] % 32 // 8 * 2, A.access_ptr("r"), tx % 8 * A.strides[0] + tx // 8 * 8)

### mma_sync_m16n8k8_f16f16<T>.desc
#: T f32 = float32 | f16 = float16
#= K T.Cast("float32", |
#= Z ) |
@T.prim_func(s_tir=True)
def mma_sync_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 8), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixA")
    B = T.match_buffer(b, (8, 8), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixB")
    C = T.match_buffer(c, (16, 8), "<T>", align=64, offset_factor=1, scope="m16n8k8.matrixC")
    with T.sblock("root"):
        T.reads(C[0:16, 0:8], A[0:16, 0:8], B[0:8, 0:8])
        T.writes(C[0:16, 0:8])
        for i, j, k in T.grid(16, 8, 8):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + <K>A[vi, vk]<Z> * <K>B[vk, vj]<Z>

### mma_sync_m16n8k8_f16f16<T>.impl
#: T f32 = float32 | f16 = float16
@T.prim_func(s_tir=True)
def mma_sync_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (16, 8), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixA", strides=[sa, ta])
    B = T.match_buffer(b, (8, 8), "float16", align=64, offset_factor=1, scope="m16n8k8.matrixB", strides=[sb, tb])
    C = T.match_buffer(c, (16, 8), "<T>", align=64, offset_factor=1, scope="m16n8k8.matrixC", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:16, 0:8], A[0:16, 0:8], B[0:8, 0:8])
        T.writes(C[0:16, 0:8])
        T.ptx_mma("<T>", "m16n8k8", "row", "col", "float16", "float16", "<T>", A.data, (A.elem_offset // A.strides[0] // 32 * (A.strides[0] // 8) + A.elem_offset % A.strides[0] // 8) * 8 + A.elem_offset // A.strides[0] % 32 // 16 * 4, B.data, (B.elem_offset // B.strides[0] // 8 * (B.strides[0] // 32) + B.elem_offset % B.strides[0] // 32) * 8 + B.elem_offset % B.strides[0] % 32 // 8 * 2, C.data, (C.elem_offset // C.strides[0] // 8 // 2 * 2 * (C.strides[0] // 8) + C.elem_offset // C.strides[0] // 8 % 2 + C.elem_offset % C.strides[0] // 8 * 2) * 2, False)

### mma_store_m16n8k8_<T>_global.desc
#: T f16 = float16 | f32 = float32
@T.prim_func(s_tir=True)
def mma_store_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 8), "<T>", align=64, offset_factor=1, scope="m16n8k8.matrixC")
    C = T.match_buffer(c, (16, 8), "<T>", align=64, offset_factor=1, scope="shared.dyn")
    with T.sblock("root"):
        T.reads(A[0:16, 0:8])
        T.writes(C[0:16, 0:8])
        for i, j in T.grid(16, 8):
            with T.sblock("m16n8k8_store"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### mma_store_m16n8k8_<T>_global.impl
#: T f16 = float16 | f32 = float32
@T.prim_func(s_tir=True)
def mma_store_impl(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 8), "<T>", align=64, offset_factor=1, scope="m16n8k8.matrixC")
    C = T.match_buffer(c, (16, 8), "<T>", align=64, offset_factor=1, scope="shared.dyn")
    with T.sblock("root"):
        T.reads(A[0:16, 0:8])
        T.writes(C[0:16, 0:8])
        for i, j in T.grid(16, 8):
            with T.sblock("m16n8k8_store"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]
