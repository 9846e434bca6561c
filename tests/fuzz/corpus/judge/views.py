@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    D = T.decl_buffer((16,), "int32", data=C.data, elem_offset=8)
    for i, j in T.grid(2, 2):
        with T.sblock("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            X = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), strides=("s", 1), offset_factor=4)
            B = T.sblock_alloc_buffer((4, 4))
            for x, y in T.grid(4, 4):
                B[x, y] = X[y, x]
            T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), X.data, X.elem_offset, X.strides[0] * 4, 1))
            C[vi * 4, vj * 4] = B[0, 3]
    D[0] = 1
