# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((64,), "float32"), n: T.int32):
        T.func_attr({"tir.noalias": True})
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                B = T.alloc_buffer((16,), scope="local")
                C = T.decl_buffer((16,), data=B.data, scope="local")
                x: T.let[T.int32] = n + 1
                C[tx] = A[bx * 16 + tx] + T.Cast("float32", x)
                T.tvm_storage_sync("shared", T.bool(False), -1)
                if 0 <= tx and tx < n:
                    A[bx * 16 + tx] = C[tx]
