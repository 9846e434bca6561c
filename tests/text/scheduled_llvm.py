# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((64, 64), "float32"), Y: T.Buffer((64, 64), "float32"), Z: T.Buffer((64, 64), "float32"), V: T.Buffer((64, 64), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        U = T.sblock_alloc_buffer((64, 64))
        V_global = T.sblock_alloc_buffer((64, 64))
        U_global = T.sblock_alloc_buffer((64, 64))
        for i_0_j_0_i_1_j_1_fused in T.parallel(64, annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for i_2_init, j_2_init, i_3_init in T.grid(8, 1, 2):
                for j_3_fused_init in T.vectorized(4):
                    with T.sblock("U_init"):
                        v_i = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused // 16 * 16 + i_2_init * 2 + i_3_init)
                        v_j = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused % 16 * 4 + j_2_init * 4 + j_3_fused_init)
                        T.reads()
                        T.writes(U_global[v_i, v_j])
                        T.sblock_attr({"meta_schedule.tiling_structure": "SSRSRS"})
                        U_global[v_i, v_j] = T.float32(0.0)
            for k_0, i_2, j_2, k_1, i_3 in T.grid(32, 8, 1, 2, 2):
                for j_3_fused in T.vectorized(4):
                    with T.sblock("U_update"):
                        v_i = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused // 16 * 16 + i_2 * 2 + i_3)
                        v_j = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused % 16 * 4 + j_2 * 4 + j_3_fused)
                        v_k = T.axis.reduce(64, k_0 * 2 + k_1)
                        T.reads(U_global[v_i, v_j], X[v_i, v_k], Y[v_k, v_j])
                        T.writes(U_global[v_i, v_j])
                        T.sblock_attr({"meta_schedule.tiling_structure": "SSRSRS"})
                        U_global[v_i, v_j] = U_global[v_i, v_j] + X[v_i, v_k] * Y[v_k, v_j]
            for ax0 in range(16):
                for ax1_fused in T.vectorized(4):
                    with T.sblock("U_global"):
                        v0 = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused // 16 * 16 + ax0)
                        v1 = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused % 16 * 4 + ax1_fused)
                        T.reads(U_global[v0, v1])
                        T.writes(U[v0, v1])
                        U[v0, v1] = U_global[v0, v1]
        for i_0_j_0_i_1_j_1_fused in T.parallel(4, annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for i_2_init, j_2_init, i_3_init, j_3_init in T.grid(16, 16, 4, 1):
                with T.sblock("V_init"):
                    v_i = T.axis.spatial(64, i_2_init * 4 + i_3_init)
                    v_j = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused * 16 + j_2_init + j_3_init)
                    T.reads()
                    T.writes(V_global[v_i, v_j])
                    T.sblock_attr({"meta_schedule.tiling_structure": "SSRSRS"})
                    V_global[v_i, v_j] = T.float32(0.0)
            for q_0, i_2, j_2, q_1, i_3, j_3 in T.grid(8, 16, 16, 8, 4, 1):
                with T.sblock("V_update"):
                    v_i = T.axis.spatial(64, i_2 * 4 + i_3)
                    v_j = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused * 16 + j_2 + j_3)
                    v_q = T.axis.reduce(64, q_0 * 8 + q_1)
                    T.reads(V_global[v_i, v_j], U[v_i, v_q], Z[v_q, v_j])
                    T.writes(V_global[v_i, v_j])
                    T.sblock_attr({"meta_schedule.tiling_structure": "SSRSRS"})
                    V_global[v_i, v_j] = V_global[v_i, v_j] + U[v_i, v_q] * Z[v_q, v_j]
            for ax0 in range(64):
                for ax1_fused in T.vectorized(16):
                    with T.sblock("V_global"):
                        v0 = T.axis.spatial(64, ax0)
                        v1 = T.axis.spatial(64, i_0_j_0_i_1_j_1_fused * 16 + ax1_fused)
                        T.reads(V_global[v0, v1])
                        T.writes(V[v0, v1])
                        V[v0, v1] = V_global[v0, v1]
