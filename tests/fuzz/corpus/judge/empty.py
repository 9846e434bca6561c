@T.prim_func
def main(A: T.Buffer((0,), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((0, 4))
    D = T.decl_buffer((0,), data=B.data)
    for i in range(4):
        with T.block("none"):
            T.reads(B[0:0, 0:4], A[0:0])
            T.writes(C[i])
            E = T.match_buffer(B[0:0, 0:4], (0, 4))
            F = T.match_buffer(A[0:0], (0,))
            C[i] = T.float32(1)
