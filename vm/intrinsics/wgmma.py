# Products of one warp group by wgmma, 64 rows and N columns, as many products a sum as fill 32 bytes, of matrices in
# wgmma's canonical layout in shared memory (scope `shared.dyn.panels`). The index of a fragment follows from where its
# part of the buffer begins: fragments lie one after the other. B may lie by columns, and does where elements have not
# 16 bits, or rows of 8: its part of the buffer is then the transpose. Of floats of 32 bits the last 13 are left out
# (TF32).
### wgmma_fill_64x<N>_<T>
#: N 8 | 16 | 32 | 64 | 128 | 192 | 256
#: T f32 = float32 | s32 = int32
#@ fill fill_by type=<T> m=64 n=<N> factor=64 to=wgmma.accumulator
        T.wgmma_fill(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, T.<T>(0))

### wgmma_64x<N>x16_<I><I>f32
#: N 16 | 32 | 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
#@ product product_by m=64 n=<N> k=16 a_m=64 a_n=16 a_at=vi,vk b_m=16 b_n=<N> at=vk,vj type=<I> b_type=<I> sum=float32 cast=T.Cast("float32", end=) a=shared.dyn.panels b=shared.dyn.panels c=wgmma.accumulator factor=8 c_factor=64
        T.wgmma_mma(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.access_ptr("r"), A.strides[0], B.access_ptr("r"), B.strides[0], "row_major")

### wgmma_64x<N>x16_<I><I>f32_trans
#: N 8 | 16 | 32 | 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
#@ product product_by m=64 n=<N> k=16 a_m=64 a_n=16 a_at=vi,vk b_m=<N> b_n=16 at=vj,vk type=<I> b_type=<I> sum=float32 cast=T.Cast("float32", end=) a=shared.dyn.panels b=shared.dyn.panels c=wgmma.accumulator factor=8 c_factor=64
        T.wgmma_mma(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.access_ptr("r"), A.strides[0], B.access_ptr("r"), B.strides[0], "col_major")

### wgmma_64x<N>x<T>_trans
#: N 64 | 128 | 192 | 256
#: T 8_tf32tf32f32 = float32 | 32_s8s8s32 = int32 | 32_u8u8s32 = int32 | 32_e4m3e4m3f32 = float32 | 32_e5m2e5m2f32 = float32 | 32_u8s8s32 = int32 | 32_s8u8s32 = int32
#= I float32 | int8 | uint8 | float8_e4m3fn | float8_e5m2 | uint8 | int8
#= J float32 | int8 | uint8 | float8_e4m3fn | float8_e5m2 | int8 | uint8
#= K 8 | 32 | 32 | 32 | 32 | 32 | 32
#= X | T.Cast("int32", | T.Cast("int32", | T.Cast("float32", | T.Cast("float32", | T.Cast("int32", | T.Cast("int32",
#= Z | ) | ) | ) | ) | ) | )
#@ product product_by m=64 n=<N> k=<K> a_m=64 a_n=<K> a_at=vi,vk b_m=<N> b_n=<K> at=vj,vk type=<I> b_type=<J> sum=<T> cast=<X> end=<Z> a=shared.dyn.panels b=shared.dyn.panels c=wgmma.accumulator factor=8 c_factor=64
        T.wgmma_mma(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.access_ptr("r"), A.strides[0], B.access_ptr("r"), B.strides[0], "col_major")

# The same, of A that lies by columns: its part of the buffer is the transpose.
### wgmma_64x<N>x16_<I><I>f32_columns
#: N 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
#@ product product_by m=64 n=<N> k=16 a_m=16 a_n=64 a_at=vk,vi b_m=16 b_n=<N> at=vk,vj type=<I> b_type=<I> sum=float32 cast=T.Cast("float32", end=) a=shared.dyn.panels b=shared.dyn.panels c=wgmma.accumulator factor=8 c_factor=64
        T.wgmma_mma(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.access_ptr("r"), A.strides[0], B.access_ptr("r"), B.strides[0], "col.row")

### wgmma_64x<N>x16_<I><I>f32_columns_trans
#: N 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
#@ product product_by m=64 n=<N> k=16 a_m=16 a_n=64 a_at=vk,vi b_m=<N> b_n=16 at=vj,vk type=<I> b_type=<I> sum=float32 cast=T.Cast("float32", end=) a=shared.dyn.panels b=shared.dyn.panels c=wgmma.accumulator factor=8 c_factor=64
        T.wgmma_mma(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.access_ptr("r"), A.strides[0], B.access_ptr("r"), B.strides[0], "col.col")

# The same, of A in the registers of the warp group.
### wgmma_64x<N>x16_<I><I>f32_registers
#: N 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
#@ product product_by m=64 n=<N> k=16 a_m=64 a_n=16 a_at=vi,vk b_m=16 b_n=<N> at=vk,vj type=<I> b_type=<I> sum=float32 cast=T.Cast("float32", end=) a=wgmma.matrix_a b=shared.dyn.panels c=wgmma.accumulator factor=8 c_factor=64
        T.wgmma_mma_registers(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.data, A.elem_offset // A.strides[0] // 64 * (A.strides[0] // 16) + A.elem_offset % A.strides[0] // 16, B.access_ptr("r"), B.strides[0], "row_major")

# Of floats of 8 bits: of sixteen products, B's columns stand in the order in which registers hold A's
# (tir/gpu/fragment.c).
### wgmma_64x<N>x32_<I><I>f32_registers
#: N 64 | 128 | 192 | 256
#: I e4m3 = float8_e4m3fn | e5m2 = float8_e5m2
#@ product product_by m=64 n=<N> k=32 a_m=64 a_n=32 a_at=vi,vk b_m=<N> b_n=32 at=vj,vk//16*16+vk%8//2*4+vk//8%2*2+vk%2 type=<I> b_type=<I> sum=float32 cast=T.Cast("float32", end=) a=wgmma.matrix_a b=shared.dyn.panels c=wgmma.accumulator factor=8 c_factor=64
        T.wgmma_mma_registers(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.data, A.elem_offset // A.strides[0] // 64 * (A.strides[0] // 32) + A.elem_offset % A.strides[0] // 32, B.access_ptr("r"), B.strides[0], "col_major")

### wgmma_store_64x<N>_<T>_<S>
#: N 8 | 16 | 32 | 64 | 128 | 192 | 256
#: T f32 = float32 | s32 = int32
#: S shared_dyn = shared.dyn | global
#@ copy copy_by type=<T> m=64 n=<N> factor=64 from=wgmma.accumulator to_factor=8 to=<S> block=store
        T.wgmma_store(A.data, A.elem_offset // A.strides[0] // 64 * (A.strides[0] // <N>) + A.elem_offset % A.strides[0] // <N>, <N>, C.access_ptr("w"), C.strides[0])
