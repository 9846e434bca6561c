@T.prim_func(s_tir=True)
def main(a: T.handle, k: T.int32, x: T.bfloat16, B: T.Buffer(("n", 4), "int8")):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "int64", strides=(5, 1))
    m = T.alloc_buffer((1,), "int32")
    m[0] = 0
    while m[0] < n:
        y: T.let[T.int32] = T.truncdiv(m[0] * k, 3) + T.floormod(-m[0], 4)
        assert y < 1000, "too large"
        A[m[0], y % 4] = T.Cast("int64", B[m[0], T.min(T.max(y, 0), 3)]) * T.int64(3)
        B[m[0], 0] = T.Cast("int8", T.Cast("float32", x) * T.float32(100.5))
        m[0] = m[0] + 1
