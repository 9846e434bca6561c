# The product of gemm.lua, 1024 x 1024 x 1024, as TVMScript.
#   msched tune lua/examples/gemm.py
from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def gemm(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.sblock("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[v_i, v_j] = T.float32(0.0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
