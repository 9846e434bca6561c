# Tensor intrinsics that random sequences tensorize with, besides those shipped: small enough to fit often.
# Implementations go other ways than the descriptions: loops in another order, unrolled or vectorized, through a buffer
# of their own; one calls a function that only the interpreter knows.
### mac_4x4x4_f32.desc
@T.prim_func(s_tir=True)
def mac_4x4x4_f32_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

### mac_4x4x4_f32.impl
@T.prim_func(s_tir=True)
def mac_4x4x4_f32_impl(a: T.handle, b: T.handle, c: T.handle):
    sa0 = T.int32()
    sb0 = T.int32()
    sc0 = T.int32()
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1, strides=[sa0, 1])
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1, strides=[sb0, 1])
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        T.evaluate(T.call_extern("int32", "mac_4x4x4_f32", C.access_ptr("rw"), sc0, A.access_ptr("r"), sa0, B.access_ptr("r"), sb0))

### tile_4x4x4_f32.desc
@T.prim_func(s_tir=True)
def tile_4x4x4_f32_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

### tile_4x4x4_f32.impl
@T.prim_func(s_tir=True)
def tile_4x4x4_f32_impl(a: T.handle, b: T.handle, c: T.handle):
    sa0 = T.int32()
    sb0 = T.int32()
    sc0 = T.int32()
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1, strides=[sa0, 1])
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1, strides=[sb0, 1])
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for k in range(4):
            for i in T.unroll(4):
                for j in range(4):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

### tile_4x4x4_f16.desc
@T.prim_func(s_tir=True)
def tile_4x4x4_f16_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float16", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "float16", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])

### tile_4x4x4_f16.impl
@T.prim_func(s_tir=True)
def tile_4x4x4_f16_impl(a: T.handle, b: T.handle, c: T.handle):
    sa0 = T.int32()
    sb0 = T.int32()
    sc0 = T.int32()
    A = T.match_buffer(a, (4, 4), "float16", offset_factor=1, strides=[sa0, 1])
    B = T.match_buffer(b, (4, 4), "float16", offset_factor=1, strides=[sb0, 1])
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for k in range(4):
            for i in T.unroll(4):
                for j in range(4):
                    C[i, j] = C[i, j] + T.Cast("float32", A[i, k]) * T.Cast("float32", B[k, j])

### tile_4x4x4_i8.desc
@T.prim_func(s_tir=True)
def tile_4x4x4_i8_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "int8", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "int8", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])

### tile_4x4x4_i8.impl
@T.prim_func(s_tir=True)
def tile_4x4x4_i8_impl(a: T.handle, b: T.handle, c: T.handle):
    sa0 = T.int32()
    sb0 = T.int32()
    sc0 = T.int32()
    A = T.match_buffer(a, (4, 4), "int8", offset_factor=1, strides=[sa0, 1])
    B = T.match_buffer(b, (4, 4), "int8", offset_factor=1, strides=[sb0, 1])
    C = T.match_buffer(c, (4, 4), "int32", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for k in range(4):
            for i in T.unroll(4):
                for j in range(4):
                    C[i, j] = C[i, j] + T.Cast("int32", A[i, k]) * T.Cast("int32", B[k, j])

### tile_4x4x4_tn.desc
@T.prim_func(s_tir=True)
def tile_4x4x4_tn_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1)
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vk, vi], B[vj, vk])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + A[vk, vi] * B[vj, vk]

### tile_4x4x4_tn.impl
@T.prim_func(s_tir=True)
def tile_4x4x4_tn_impl(a: T.handle, b: T.handle, c: T.handle):
    sa0 = T.int32()
    sb0 = T.int32()
    sc0 = T.int32()
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1, strides=[sa0, 1])
    B = T.match_buffer(b, (4, 4), "float32", offset_factor=1, strides=[sb0, 1])
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i in range(4):
            for j in T.unroll(4):
                C[i, j] = C[i, j] + (A[0, i] * B[j, 0] + A[1, i] * B[j, 1] + (A[2, i] * B[j, 2] + A[3, i] * B[j, 3]))

### dot_4_f32.desc
@T.prim_func(s_tir=True)
def dot_4_f32_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    B = T.match_buffer(b, (4, 1), "float32", offset_factor=1)
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:1], A[0:4], B[0:4, 0:1])
        T.writes(C[0:1])
        for k in range(4):
            with T.sblock("update"):
                vk = T.axis.remap("R", [k])
                T.reads(C[0], A[vk], B[vk, 0])
                T.writes(C[0])
                C[0] = C[0] + A[vk] * B[vk, 0]

### dot_4_f32.impl
@T.prim_func(s_tir=True)
def dot_4_f32_impl(a: T.handle, b: T.handle, c: T.handle):
    sb0 = T.int32()
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    B = T.match_buffer(b, (4, 1), "float32", offset_factor=1, strides=[sb0, 1])
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:1], A[0:4], B[0:4, 0:1])
        T.writes(C[0:1])
        C[0] = C[0] + (A[0] * B[0, 0] + A[1] * B[1, 0] + A[2] * B[2, 0] + A[3] * B[3, 0])

### sum_4_f32.desc
@T.prim_func(s_tir=True)
def sum_4_f32_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:1], A[0:4])
        T.writes(C[0:1])
        for k in range(4):
            with T.sblock("update"):
                vk = T.axis.remap("R", [k])
                T.reads(C[0], A[vk])
                T.writes(C[0])
                C[0] = C[0] + A[vk]

### sum_4_f32.impl
@T.prim_func(s_tir=True)
def sum_4_f32_impl(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:1], A[0:4])
        T.writes(C[0:1])
        C[0] = C[0] + (A[0] + A[1] + (A[2] + A[3]))

### max_4_f32.desc
@T.prim_func(s_tir=True)
def max_4_f32_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:1], A[0:4])
        T.writes(C[0:1])
        for k in range(4):
            with T.sblock("update"):
                vk = T.axis.remap("R", [k])
                T.reads(C[0], A[vk])
                T.writes(C[0])
                C[0] = T.max(C[0], A[vk])

### max_4_f32.impl
@T.prim_func(s_tir=True)
def max_4_f32_impl(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:1], A[0:4])
        T.writes(C[0:1])
        C[0] = T.max(C[0], T.max(T.max(A[0], A[1]), T.max(A[2], A[3])))

### colmax_4x4_i32.desc
@T.prim_func(s_tir=True)
def colmax_4x4_i32_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "int32", offset_factor=1)
    C = T.match_buffer(c, (4,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4, 0:4])
        T.writes(C[0:4])
        for i, k in T.grid(4, 4):
            with T.sblock("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi], A[vk, vi])
                T.writes(C[vi])
                C[vi] = T.max(C[vi], A[vk, vi])

### colmax_4x4_i32.impl
@T.prim_func(s_tir=True)
def colmax_4x4_i32_impl(a: T.handle, c: T.handle):
    sa0 = T.int32()
    A = T.match_buffer(a, (4, 4), "int32", offset_factor=1, strides=[sa0, 1])
    C = T.match_buffer(c, (4,), "int32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4, 0:4])
        T.writes(C[0:4])
        for k in range(4):
            for i in T.vectorized(4):
                C[i] = T.max(C[i], A[k, i])

### fill_4x4_<T>.desc
#: T f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def fill_4x4_desc(c: T.handle):
    C = T.match_buffer(c, (4, 4), "<T>", offset_factor=1)
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:4, 0:4])
        for i, j in T.grid(4, 4):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.<T>(0)

### fill_4x4_<T>.impl
#: T f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def fill_4x4_impl(c: T.handle):
    sc0 = T.int32()
    C = T.match_buffer(c, (4, 4), "<T>", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:4, 0:4])
        for i in range(4):
            for j in T.vectorized(4):
                C[i, j] = T.<T>(0)

### fill_4_<T>.desc
#: T f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def fill_4_desc(c: T.handle):
    C = T.match_buffer(c, (4,), "<T>", offset_factor=1)
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:4])
        for i in range(4):
            with T.sblock("init"):
                vi = T.axis.remap("S", [i])
                T.reads()
                T.writes(C[vi])
                C[vi] = T.<T>(0)

### fill_4_<T>.impl
#: T f32 = float32 | s32 = int32
@T.prim_func(s_tir=True)
def fill_4_impl(c: T.handle):
    C = T.match_buffer(c, (4,), "<T>", offset_factor=1)
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:4])
        for i in T.unroll(4):
            C[3 - i] = T.<T>(0)

### copy_4x4_<T>.desc
#: T f32 = float32 | f16 = float16 | s32 = int32 | s8 = int8 | u8 = uint8
@T.prim_func(s_tir=True)
def copy_4x4_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "<T>", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "<T>", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j in T.grid(4, 4):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj]

### copy_4x4_<T>.impl
#: T f32 = float32 | f16 = float16 | s32 = int32 | s8 = int8 | u8 = uint8
@T.prim_func(s_tir=True)
def copy_4x4_impl(a: T.handle, c: T.handle):
    sa0 = T.int32()
    sc0 = T.int32()
    A = T.match_buffer(a, (4, 4), "<T>", offset_factor=1, strides=[sa0, 1])
    C = T.match_buffer(c, (4, 4), "<T>", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads(A[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i in T.unroll(4):
            for j in T.vectorized(4):
                C[i, j] = A[i, j]

### copy_4_<T>.desc
#: T f32 = float32 | f16 = float16 | s32 = int32 | s8 = int8 | u8 = uint8
@T.prim_func(s_tir=True)
def copy_4_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<T>", offset_factor=1)
    C = T.match_buffer(c, (4,), "<T>", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.sblock("copy"):
                vi = T.axis.remap("S", [i])
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = A[vi]

### copy_4_<T>.impl
#: T f32 = float32 | f16 = float16 | s32 = int32 | s8 = int8 | u8 = uint8
@T.prim_func(s_tir=True)
def copy_4_impl(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "<T>", offset_factor=1)
    C = T.match_buffer(c, (4,), "<T>", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        held = T.sblock_alloc_buffer((4,), "<T>")
        for i in range(4):
            held[i] = A[3 - i]
        for i in range(4):
            C[i] = held[3 - i]

### relu_4_f32.desc
@T.prim_func(s_tir=True)
def relu_4_f32_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (4,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.sblock("relu"):
                vi = T.axis.remap("S", [i])
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = T.max(A[vi], T.float32(0))

### relu_4_f32.impl
@T.prim_func(s_tir=True)
def relu_4_f32_impl(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (4,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in T.vectorized(4):
            C[i] = T.Select(A[i] > T.float32(0), A[i], T.float32(0))

### increase_4x4_f32.desc
@T.prim_func(s_tir=True)
def increase_4x4_f32_desc(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j in T.grid(4, 4):
            with T.sblock("increase"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj] + T.float32(1.0)

### increase_4x4_f32.impl
@T.prim_func(s_tir=True)
def increase_4x4_f32_impl(a: T.handle, c: T.handle):
    sa0 = T.int32()
    sc0 = T.int32()
    A = T.match_buffer(a, (4, 4), "float32", offset_factor=1, strides=[sa0, 1])
    C = T.match_buffer(c, (4, 4), "float32", offset_factor=1, strides=[sc0, 1])
    with T.sblock("root"):
        T.reads(A[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for j in range(4):
            for i in range(4):
                C[i, j] = T.float32(1.0) + A[i, j]
