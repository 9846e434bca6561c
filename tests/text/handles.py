# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, n: T.int32):
        T.func_attr({"global_symbol": "other", "k": [1, {"x": 2.5}], "tirx.noalias": True})
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float16", strides=("s0", "s1"), align=128)
        B = T.match_buffer(b, (T.Cast("int64", n), m), scope="shared")
        # with T.sblock("root"):
        for i, j in T.grid(n, m):
            with T.sblock("x"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = T.Cast("float32", A[vi, vj]) * T.float32(2.0)
