# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((7, 11), "float32"), I: T.Buffer((7,), "int64"), C: T.Buffer((7, 11), "float32")):
        T.func_attr({"tirx.noalias": True})
        B = T.sblock_alloc_buffer((T.int64(7), T.int64(11)))
        for i, j in T.grid(7, T.int64(11)):
            with T.sblock("B"):
                vi = T.axis.spatial(7, i)
                vj = T.axis.spatial(T.int64(11), j)
                B[vi, vj] = A[vi, vj] + T.Cast("float32", vj)
        for i, j in T.grid(T.int64(7), T.int64(11)):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, T.max(T.min(I[vi], T.int64(10)), T.int64(0))] * B[vi, vj]
