@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        S = T.alloc_buffer((16,), scope="shared")
        for tx in T.thread_binding(16, thread="threadIdx.x"):
            L = T.alloc_buffer((2,), scope="local")
            L[0] = A[bx * 16 + tx]
            S[tx] = L[0]
            T.tvm_storage_sync("shared")
            if tx < 8:
                C[bx * 16 + tx] = S[15 - tx]
            T.tvm_thread_allreduce(T.uint32(1), S[tx], True, L[1], tx)
