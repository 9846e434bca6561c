@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32")):
    n = T.int32()
    A[0] = T.Let(n + 1, where={n: A[1]})
