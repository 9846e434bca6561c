# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        with T.sblock("root"):
            T.reads(A[0:8, 0:8])
            T.writes()
            T.sblock_attr({"a": 1, "b": "x", "c": True, "d": None, "e": [], "f": {}})
            X = T.sblock_alloc_buffer((8, 8), scope="local", align=32)
            for i, j in T.grid(8, 8):
                with T.sblock("x"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(i * 8 + j < 60)
                    T.reads(A[vi, vj])
                    T.writes(X[vi, vj])
                    with T.init():
                        X[vi, vj] = T.float32(0.0)
                    X[vi, vj] = X[vi, vj] + A[vi, vj]
            for i in T.parallel(2, 8):
                with T.sblock(""):
                    vi = T.axis.reduce((2, 8), i)
                    vk = T.axis.opaque((1, 3), 2)
                    T.reads(X[vi, vk])
                    T.writes(B[vi, vk])
                    B[vi, vk] = X[vi, vk]