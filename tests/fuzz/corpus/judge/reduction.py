@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float16"), C: T.Buffer((8,), "float32")):
    for i, k0, k1 in T.grid(8, 3, 3):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(8, k0 * 3 + k1)
            T.where(k0 * 3 + k1 < 8)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + T.exp(T.Cast("float32", A[vi, vk]))
