# 16x16x16 matrix fragments of one warp. The index of a fragment follows from where its part of the buffer begins:
# fragments of 256 elements lie one after the other. What a load by columns gives is the transpose of what lies in
# memory.
### wmma_fill_16x16x16_<T>
#: T f16 = float16 | f32 = float32 | s32 = int32
#@ fill fill_by type=<T> m=16 n=16 factor=16 to=wmma.accumulator
        T.tvm_fill_fragment(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, T.float32(0))

### wmma_load_16x16x16_<T>_<M><L>_<S>
#: T f16 = float16 | s8 = int8
#: M a | b
#: L = row_major | _trans = col_major
#: S shared | shared_dyn = shared.dyn
#@ copy copy_by type=<T> m=16 n=16 factor=16 from=<S> to_factor=16 to=wmma.matrix_<M> block=load
        T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.access_ptr("r"), A.strides[0], "<L>")

### wmma_store_16x16x16_<T>_<S>
#: T f16 = float16 | f32 = float32 | s32 = int32
#: S shared | shared_dyn = shared.dyn | global
#@ copy copy_by type=<T> m=16 n=16 factor=16 from=wmma.accumulator to_factor=16 to=<S> block=store
        T.tvm_store_matrix_sync(A.data, 16, 16, 16, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, C.access_ptr("w"), C.strides[0], "row_major")

### wmma_sync_16x16x16_<T><L>
#: T f16f16f32 = float32 | f16f16f16 = float16 | s8s8s32 = int32
#= I float16 | float16 | int8
#= K T.Cast("float32", | | T.Cast("int32",
#= Z ) | | )
#: L = vk,vj | _trans = vj,vk
#@ product product_by m=16 n=16 k=16 a_m=16 a_n=16 a_at=vi,vk b_m=16 b_n=16 at=<L> type=<I> b_type=<I> sum=<T> cast=<K> end=<Z> a=wmma.matrix_a b=wmma.matrix_b c=wmma.accumulator factor=16 c_factor=16
        T.tvm_mma_sync(C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, A.data, A.elem_offset // A.strides[0] // 16 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, B.data, B.elem_offset // B.strides[0] // 16 * (B.strides[0] // 16) + B.elem_offset % B.strides[0] // 16, C.data, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16)
