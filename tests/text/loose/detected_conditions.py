@T.prim_func(s_tir=True)
def main(P: T.Buffer((8,), "int32"), Q: T.Buffer((8,), "int32"), A: T.Buffer((8, 8), "int32")):
    for i in range(4):
        with T.sblock("outer"):
            wi = T.axis.spatial(4, i)
            for j in range(8):
                with T.sblock("inner"):
                    vj = T.axis.spatial(8, j)
                    vk = T.axis.opaque(8, Q[j])
                    T.where(P[j] < 3)
                    A[wi, vj] = P[wi] + vk
