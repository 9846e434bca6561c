from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, b: T.handle, c: T.handle) -> None:
        # A comment, and a docstring below.
        """Matrix multiplication, in the dialect before today's."""
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, [16, 8], dtype="float32")
        B = T.match_buffer(b, (8, 32))
        C = T.match_buffer(c, (16, 32))
        D = T.alloc_buffer((16, 32), "float32", scope="local")
        for i, j in T.grid(16, 32):
            for k in T.serial(0, 8):
                with T.block("D"):
                    vi = T.axis.S(16, i)
                    vj = T.axis.spatial(32, j)
                    vk = T.axis.R(8, k)
                    with T.init():
                        D[vi, vj] = T.float32(0)
                    D[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 32):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"x": 1})
                x: T.float32 = D[vi, vj]
                C[vi, vj] = T.max(x, 0.0)
