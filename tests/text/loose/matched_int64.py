@T.prim_func(s_tir=True)
def main(A: T.Buffer((12,), "int64")):
    for i in range(T.int64(6)):
        with T.sblock("A"):
            vi = T.axis.spatial(T.int64(6), i)
            M = T.match_buffer(A[vi:vi + T.int64(2)], (T.int64(2),), "int64", strides=("s",), offset_factor=1)
            for j in range(2):
                M[j] = vi
