@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "bool")):
    with T.attr(A.data, "k", 3):
        T.attr("str", "z", "y")
        A[0] = 1
        with T.attr(0, "k2", A[0]):
            A[1] = 2
    assert A[0] == 1, ("ValueError", ["a", "b"])
    assert A[0] == 1, "x"
    B[0] = A[0] < A[1] or (A[1] < A[2] or A[2] < A[3]) and not (A[1] == 2 and A[2] == 3)
    B[1] = (A[0] < A[1]) == (A[1] < A[2])
    A[0] = A[0] - (A[1] - A[2]) - A[3] * (A[4] + A[5]) // (A[6] % A[7]) % A[8]
    A[0] = (A[0] + A[1]) * A[2] + -(A[3] + 1)
    A[0] = T.Add(A[0], 0) * T.Mul(1, A[1]) + T.FloorDiv(A[1], 1)
