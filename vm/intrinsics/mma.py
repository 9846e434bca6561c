# 16x8x8 products of one warp, whose operands lie in its registers: the buffer's scope says which operand it is, and an
# index of registers follows from where its part of the buffer begins. A is loaded 32 rows at a time, B 32 columns at a
# time.
### mma_init_m16n8k8_<T>.desc
#: T f16 = float16 | f32 = float32
#@ fill type=<T> m=16 n=8 factor=1 to=m16n8k8.matrixC

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

### mma_load_m16n8k8_f16_A_shared_dyn
#@ copy copy_by type=float16 m=32 n=8 factor=1 from=shared.dyn to_factor=1 to=m16n8k8.matrixA block=load
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            T.ptx_ldmatrix("float16", False, 4, ".b16", C.data, (C.elem_offset // C.strides[0] // 32 * (C.strides[0] // 8) + C.elem_offset % C.strides[0] // 8) * 8 + C.elem_offset // C.strides[0] % 32 // 16 * 4, A.access_ptr("r"), tx * A.strides[0])

### mma_load_m16n8k8_f16_B_shared_dyn
#@ copy copy_by type=float16 m=8 n=32 factor=1 from=shared.dyn to_factor=1 to=m16n8k8.matrixB block=load
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            T.ptx_ldmatrix("float16", True, 4, ".b16", C.data, (C.elem_offset // C.strides[0] // 8 * (C.strides[0] // 32) + C.elem_offset % C.strides[0] // 32) * 8 + C.elem_offset % C.strides[0] % 32 // 8 * 2, A.access_ptr("r"), tx % 8 * A.strides[0] + tx // 8 * 8)

### mma_sync_m16n8k8_f16f16<T>
#: T f32 = float32 | f16 = float16
#= K T.Cast("float32", |
#= Z ) |
#@ product product_by m=16 n=8 k=8 a_m=16 a_n=8 a_at=vi,vk b_m=8 b_n=8 at=vk,vj type=float16 b_type=float16 sum=<T> cast=<K> end=<Z> a=m16n8k8.matrixA b=m16n8k8.matrixB c=m16n8k8.matrixC factor=1 c_factor=1
        T.ptx_mma("<T>", "m16n8k8", "row", "col", "float16", "float16", "<T>", A.data, (A.elem_offset // A.strides[0] // 32 * (A.strides[0] // 8) + A.elem_offset % A.strides[0] // 8) * 8 + A.elem_offset // A.strides[0] % 32 // 16 * 4, B.data, (B.elem_offset // B.strides[0] // 8 * (B.strides[0] // 32) + B.elem_offset % B.strides[0] // 32) * 8 + B.elem_offset % B.strides[0] % 32 // 8 * 2, C.data, (C.elem_offset // C.strides[0] // 8 // 2 * 2 * (C.strides[0] // 8) + C.elem_offset // C.strides[0] // 8 % 2 + C.elem_offset % C.strides[0] // 8 * 2) * 2, False)

### mma_store_m16n8k8_<T>_global
#: T f16 = float16 | f32 = float32
#@ copy copy type=<T> m=16 n=8 factor=1 from=m16n8k8.matrixC to_factor=1 to=shared.dyn block=m16n8k8_store
