# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer(("n", "m"), "float16", strides=("s0", "s1"), align=128), B: T.Buffer((T.Cast("int64", n), m), "float32", scope="shared"), n: T.int32):
        m = T.int64()
        T.func_attr({"global_symbol": "other", "k": [1, {"x": 2.5}], "tirx.noalias": True})
        # with T.sblock("root"):
        for i, j in T.grid(n, m):
            with T.sblock("x"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = T.Cast("float32", A[vi, vj]) * T.float32(2.0)