# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), I: T.Buffer((64,), "int32"), n_: T.Buffer((1,), "int32")):
        # with T.sblock("root"):
        for i0 in range(8):
            with T.sblock("blocked"):
                v = T.axis.spatial(8, i0)
                T.reads(A[T.min(v * 8, v):T.min(v * 8, v) + (v * 8 - T.min(v * 8, v) + 8), 0:64])
                T.writes(B[v * 8:v * 8 + 8, 0:64])
                for i, j in T.grid(8, 64):
                    B[v * 8 + i, j] = A[v * 8 + i, 63 - j] + A[v, j // 4 * 2 + j % 2]
        for i0 in range(8):
            with T.sblock("reduced"):
                v = T.axis.spatial(8, i0)
                T.reads(A[v:v + 16, 0:19])
                T.writes(B[v, 0:49])
                with T.init():
                    for j in range(4):
                        B[v, j * 16] = T.float32(0.0)
                for j, k in T.grid(4, 16):
                    B[v, j * 16] = B[v, j * 16] + A[v + k, j + k]
        for i0 in range(8):
            with T.sblock("gathered"):
                v = T.axis.spatial(8, i0)
                T.reads(A[0:64, v:v + (T.max(v, 3) - v + 1)], I[T.min(v * 4, v):T.min(v * 4, v) + (T.max(v * 4 + 3, v) - T.min(v * 4, v) + 1)])
                T.writes(B[v, I[v]])
                for j in range(4):
                    B[v, I[v]] = A[I[v * 4 + j], T.max(v, j)]
        for i0 in range(8):
            with T.sblock("guarded"):
                v = T.axis.spatial(8, i0)
                T.reads(A[0:16, -2:14])
                T.writes(B[v, 0:33])
                for j in range(16):
                    if 2 <= j and j < 10 and v < 4:
                        B[v, j] = A[v, j - 2] * T.if_then_else(j > 4, A[j, 0], A[0, j])
                    else:
                        if j == 12:
                            B[v, 20 + j] = T.float32(0.0)
        for i0 in range(8):
            with T.sblock("outer"):
                v = T.axis.spatial(8, i0)
                T.reads(A[v, v * 8:v * 8 + 8])
                T.writes(B[v, 0:64])
                X = T.sblock_alloc_buffer((8,))
                for j in range(8):
                    with T.sblock("inner_a"):
                        u = T.axis.spatial(8, j)
                        T.reads(A[v, v * 8 + u])
                        T.writes(X[u])
                        X[u] = A[v, v * 8 + u]
                for j in range(8):
                    with T.sblock("inner_b"):
                        u, w = T.axis.remap("SS", [j, j])
                        T.reads(X[7 - u])
                        T.writes(B[v, u * 8 + w])
                        B[v, u * 8 + w] = X[7 - u]
        for i0 in range(8):
            with T.sblock("vector"):
                v = T.axis.spatial(8, i0)
                T.reads(A[T.min(v, v * 8 + 2):T.min(v, v * 8 + 2) + (T.max(v, v * 8 + 2) - T.min(v, v * 8 + 2) + 1), T.min(T.min(v * 8 + 2, 4), v):T.min(T.min(v * 8 + 2, 4), v) + (v * 8 - T.min(T.min(v * 8 + 2, 4), v) + 17)])
                T.writes(B[T.min(v, 2):T.min(v, 2) + (T.max(v, 5) - T.min(v, 2) + 1), v * 8:v * 8 + 8])
                x: T.let[T.int32] = v * 8
                y: T.let[T.int32] = x + 2
                B[v, x:x + 8] = A[v, y:y + 16:2]
                for j in range(2, 6):
                    B[j, y] = A[v, j * 2] + A[y, v]
