@T.prim_func(s_tir=True)
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((8,), "float32x4")):
    for i in T.vectorized(4):
        A[T.Ramp(i * 8, 1, 8)] = T.Select(T.Ramp(0, 1, 8) < T.Broadcast(4, 8), A[T.Ramp(31 - i * 8, -1, 8)], T.Broadcast(T.float32(2), 8))
        B[i] = B[7 - i]
        A[i] = T.if_then_else(i < 3 and A[i + 1] > T.float32(0), T.sqrt(A[i]), T.float32("nan"))
