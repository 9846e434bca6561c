@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((), "float32"), i: T.int32, i_1: T.int32):
    B[()] = T.float32(1)
    for i in range(16):
        for i in range(3):
            A[i] = B[()] + A[i_1]
        for lambda_ in range(4):
            A[lambda_] = T.float32(3)
