# Products of one warp by mma.sync, 16x16 sums of as many products as fill 32 bytes; operands are loaded by ldmatrix.
# The index of a fragment follows from where its part of the buffer begins: fragments lie one after the other. B may lie
# by columns: its part of the buffer is then the transpose, in memory and in the fragment alike. Floats of 32 bits are
# rounded to TF32.
### warp_mma_fill_16x16_<T>
#: T f32 = float32 | s32 = int32
#@ fill fill_by type=<T> m=16 n=16 factor=16 to=mma.accumulator
        T.mma_fill(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, T.<T>(0))

### warp_mma_load_<T>_a_<S>
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16 | 16x16x8_tf32 = float32 | 16x16x32_s8 = int8 | 16x16x32_e4m3 = float8_e4m3fn | 16x16x32_e5m2 = float8_e5m2
#= K 16 | 16 | 8 | 32 | 32 | 32
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
#@ copy copy_by type=<T> m=16 n=<K> factor=8 from=<S> to_factor=8 to=mma.matrix_a block=load
        T.mma_load(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // <K>) + C.elem_offset % C.strides[0] // <K>, A.access_ptr("r"), A.strides[0], "row_major", "a")

### warp_mma_load_<T>_b_<S>
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
#@ copy copy_by type=<T> m=16 n=16 factor=8 from=<S> to_factor=8 to=mma.matrix_b block=load
        T.mma_load(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.access_ptr("r"), A.strides[0], "row_major", "b")

### warp_mma_load_<T>_b_trans_<S>
#: T 16x16x16_f16 = float16 | 16x16x16_bf16 = bfloat16 | 16x16x8_tf32 = float32 | 16x16x32_s8 = int8 | 16x16x32_e4m3 = float8_e4m3fn | 16x16x32_e5m2 = float8_e5m2
#= K 16 | 16 | 8 | 32 | 32 | 32
#: S shared | shared_dyn = shared.dyn | swizzled = shared.dyn.swizzle
#@ copy copy_by type=<T> m=16 n=<K> factor=8 from=<S> to_factor=8 to=mma.matrix_b block=load
        T.mma_load(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // <K>) + C.elem_offset % C.strides[0] // <K>, A.access_ptr("r"), A.strides[0], "col_major", "b")

### warp_mma_sync_<T>
#: T 16x16x16_f16f16f32 = float32 | 16x16x16_bf16bf16f32 = float32
#= I float16 | bfloat16
#@ product product_by m=16 n=16 k=16 a_m=16 a_n=16 a_at=vi,vk b_m=16 b_n=16 at=vk,vj type=<I> b_type=<I> sum=<T> cast=T.Cast("float32", end=) a=mma.matrix_a b=mma.matrix_b c=mma.accumulator factor=8 c_factor=16
        T.mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // 16) + B.elem_offset % B.strides[0] // 16, "row_major")

### warp_mma_sync_<T>_trans
#: T 16x16x16_f16f16f32 = float32 | 16x16x16_bf16bf16f32 = float32 | 16x16x8_tf32tf32f32 = float32 | 16x16x32_s8s8s32 = int32 | 16x16x32_e4m3e4m3f32 = float32 | 16x16x32_e5m2e5m2f32 = float32
#= I float16 | bfloat16 | float32 | int8 | float8_e4m3fn | float8_e5m2
#= K 16 | 16 | 8 | 32 | 32 | 32
#= X T.Cast("float32", | T.Cast("float32", | | T.Cast("int32", | T.Cast("float32", | T.Cast("float32",
#= Z ) | ) | | ) | ) | )
#@ product product_by m=16 n=16 k=<K> a_m=16 a_n=<K> a_at=vi,vk b_m=16 b_n=<K> at=vj,vk type=<I> b_type=<I> sum=<T> cast=<X> end=<Z> a=mma.matrix_a b=mma.matrix_b c=mma.accumulator factor=8 c_factor=16
        T.mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // <K>) + A.elem_offset % A.strides[0] // <K>, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // <K>) + B.elem_offset % B.strides[0] // <K>, "col_major")

### warp_mma_store_16x16_<T>_<S>
#: T f32 = float32 | s32 = int32
#: S shared | shared_dyn = shared.dyn | global
#@ copy copy_by type=<T> m=16 n=16 factor=16 from=mma.accumulator to_factor=16 to=<S> block=store
        T.mma_store(A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0])
