@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.sblock("a"):
            vi = T.axis.spatial(8, i)
            for j in range(8):
                with T.sblock("b"):
                    vi2, vj = T.axis.remap("SS", [i, j])
                    B[vi2, vj] = A[vi2, vj] + T.float32(1)
