@T.prim_func
def main(A: T.Buffer[(64,), "float32"], n: T.int32):
    # the dialect before, after lowering
    T.func_attr({"tir.noalias": True})
    bx = T.env_thread("blockIdx.x")
    tx = T.env_thread("threadIdx.x")
    T.launch_thread(bx, 4)
    T.launch_thread(tx, 16)
    B = T.allocate([16], "float32", "local")
    C = T.Buffer((16,), data=B, scope="local")
    with T.let(x, n + 1):
        C[tx] = A[bx * 16 + tx] + T.Cast("float32", x)
    T.tvm_storage_sync("shared")
    if 0 <= tx < n and True:
        A[bx * 16 + tx] = C[tx]
    else:
        pass
