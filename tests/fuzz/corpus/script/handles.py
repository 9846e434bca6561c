@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle, n: T.int32):
    T.func_attr({"global_symbol": "other", "k": [1, {"x": 2.5}], "tirx.noalias": True})
    m = T.int64()
    A = T.match_buffer(a, (n, m), "float16", strides=("s0", "s1"), elem_offset=0, align=128, offset_factor=1)
    B = T.match_buffer(b, (T.Cast("int64", n), m), scope="shared")
    for i in range(n):
        for j in T.serial(m):
            with T.sblock("x"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial(m, j)
                B[vi, vj] = A[vi, vj] * 2.0
