# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, c: T.handle):
        T.func_attr({"tir.noalias": True})
        A = T.match_buffer(a, (16, 8))
        B = T.match_buffer(b, (8, 32))
        C = T.match_buffer(c, (16, 32))
        # with T.sblock("root"):
        D = T.sblock_alloc_buffer((16, 32), scope="local")
        for i, j, k in T.grid(16, 32, 8):
            with T.sblock("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(D[vi, vj])
                with T.init():
                    D[vi, vj] = T.float32(0.0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 32):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(D[vi, vj])
                T.writes(C[vi, vj])
                T.sblock_attr({"x": 1})
                x: T.let[T.float32] = D[vi, vj]
                C[vi, vj] = T.max(x, T.float32(0.0))
