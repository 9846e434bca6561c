@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for io, jo in T.grid(4, 4):
        with T.sblock("t"):
            vi, vj = T.axis.remap("SS", [io, jo])
            A1 = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), strides=("s", 1), offset_factor=1)
            B1 = T.match_buffer(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), elem_offset=vi)
            for i, j in T.grid(4, 4):
                with T.sblock("u"):
                    vii, vjj = T.axis.remap("SS", [i, j])
                    B1[vii, vjj] = A1[vii, vjj] * 2.0
