# A register tile of a matrix product in float32: C[0:6, 0:16] += A[0:6, 0:4] * B[0:4, 0:16], rows unrolled, 16 lanes
# wide.
### microkernel_6x16_f32.desc
@T.prim_func(s_tir=True)
def microkernel_6x16_f32_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (6, 4), "float32", offset_factor=1)
    B = T.match_buffer(b, (4, 16), "float32", offset_factor=1)
    C = T.match_buffer(c, (6, 16), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:6, 0:16], A[0:6, 0:4], B[0:4, 0:16])
        T.writes(C[0:6, 0:16])
        for i, j, k in T.grid(6, 16, 4):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

### microkernel_6x16_f32.impl
@T.prim_func(s_tir=True)
def microkernel_6x16_f32_impl(a: T.handle, b: T.handle, c: T.handle):
    sa = T.int32()
    sb = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, (6, 4), "float32", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, (4, 16), "float32", offset_factor=1, strides=[sb, 1])
    C = T.match_buffer(c, (6, 16), "float32", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads(C[0:6, 0:16], A[0:6, 0:4], B[0:4, 0:16])
        T.writes(C[0:6, 0:16])
        for k in range(4):
            for i in T.unroll(6):
                for j in T.vectorized(16):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]
