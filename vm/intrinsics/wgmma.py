# Products of one warp group by wgmma, 64 rows and N columns, sixteen products a sum, of matrices in panels of shared memory
# (scope shared.dyn.panels). The index of a fragment follows from where its part of the buffer begins: fragments lie one after
# the other. B may lie by columns: its part of the buffer is then the transpose.
### wgmma_fill_64x<N>_f32.desc
#: N 64 | 128 | 192 | 256
@T.prim_func(s_tir=True)
def wgmma_fill_desc(c: T.handle):
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator")
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:64, 0:<N>])
        for i, j in T.grid(64, <N>):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.float32(0)

### wgmma_fill_64x<N>_f32.impl
#: N 64 | 128 | 192 | 256
@T.prim_func(s_tir=True)
def wgmma_fill_impl(c: T.handle):
    sc = T.int32()
    tc = T.int32()
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:64, 0:<N>])
        T.wgmma_fill(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, T.float32(0))

### wgmma_64x<N>x16_<I><I>f32.desc
#: N 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
@T.prim_func(s_tir=True)
def wgmma_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (64, 16), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels")
    B = T.match_buffer(b, (16, <N>), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels")
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator")
    with T.sblock("root"):
        T.reads(C[0:64, 0:<N>], A[0:64, 0:16], B[0:16, 0:<N>])
        T.writes(C[0:64, 0:<N>])
        for i, j, k in T.grid(64, <N>, 16):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])

### wgmma_64x<N>x16_<I><I>f32.impl
#: N 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
@T.prim_func(s_tir=True)
def wgmma_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (64, 16), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels", strides=[sa, ta])
    B = T.match_buffer(b, (16, <N>), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels", strides=[sb, tb])
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:64, 0:<N>], A[0:64, 0:16], B[0:16, 0:<N>])
        T.writes(C[0:64, 0:<N>])
        T.wgmma_mma(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.access_ptr("r"), A.strides[0], B.access_ptr("r"), B.strides[0], "row_major")

### wgmma_64x<N>x16_<I><I>f32_trans.desc
#: N 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
@T.prim_func(s_tir=True)
def wgmma_trans_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (64, 16), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels")
    B = T.match_buffer(b, (<N>, 16), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels")
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator")
    with T.sblock("root"):
        T.reads(C[0:64, 0:<N>], A[0:64, 0:16], B[0:<N>, 0:16])
        T.writes(C[0:64, 0:<N>])
        for i, j, k in T.grid(64, <N>, 16):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vj, vk])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vj, vk])

### wgmma_64x<N>x16_<I><I>f32_trans.impl
#: N 64 | 128 | 192 | 256
#: I f16 = float16 | bf16 = bfloat16
@T.prim_func(s_tir=True)
def wgmma_trans_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sb = T.int32()
    tb = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (64, 16), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels", strides=[sa, ta])
    B = T.match_buffer(b, (<N>, 16), "<I>", align=64, offset_factor=8, scope="shared.dyn.panels", strides=[sb, tb])
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(C[0:64, 0:<N>], A[0:64, 0:16], B[0:<N>, 0:16])
        T.writes(C[0:64, 0:<N>])
        T.wgmma_mma(C.data, C.elem_offset // C.strides[0] // 64 * (C.strides[0] // <N>) + C.elem_offset % C.strides[0] // <N>, <N>, A.access_ptr("r"), A.strides[0], B.access_ptr("r"), B.strides[0], "col_major")

### wgmma_store_64x<N>_f32_<S>.desc
#: N 64 | 128 | 192 | 256
#: S shared_dyn = shared.dyn | global
@T.prim_func(s_tir=True)
def wgmma_store_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator")
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=8, scope="<S>")
    with T.sblock("root"):
        T.reads(A[0:64, 0:<N>])
        T.writes(C[0:64, 0:<N>])
        for i, j in T.grid(64, <N>):
            with T.sblock("store"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### wgmma_store_64x<N>_f32_<S>.impl
#: N 64 | 128 | 192 | 256
#: S shared_dyn = shared.dyn | global
@T.prim_func(s_tir=True)
def wgmma_store_impl(a: T.handle, c: T.handle):
    sa = T.int32()
    ta = T.int32()
    sc = T.int32()
    tc = T.int32()
    A = T.match_buffer(a, (64, <N>), "float32", align=64, offset_factor=64, scope="wgmma.accumulator", strides=[sa, ta])
    C = T.match_buffer(c, (64, <N>), "float32", align=64, offset_factor=8, scope="<S>", strides=[sc, tc])
    with T.sblock("root"):
        T.reads(A[0:64, 0:<N>])
        T.writes(C[0:64, 0:<N>])
        T.wgmma_store(A.data, A.elem_offset // A.strides[0] // 64 * (A.strides[0] // <N>) + A.elem_offset % A.strides[0] // <N>, <N>, C.access_ptr("w"), C.strides[0])
