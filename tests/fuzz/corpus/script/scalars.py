@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32")):
    x: T.int32 = 3
    x = x + 1
    A[0] = x
    y = A[0] * 2
    A[1] = y
    s = T.local_scalar("float32")
    s = 1.5
    A[2] = T.Cast("int32", s)
    buf = T.alloc_local((4, 4), "int8")
    buf[0, 1] = 4
    sh = T.alloc_shared((4,))
    sh[0] = 3.0
    while x < 10:
        x = x + 1
    A[3] += 2
    A[3] *= x
