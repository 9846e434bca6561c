# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(X: T.Buffer((1, 1024, 1024), "float32"), Y: T.Buffer((1, 1024, 1024), "float32"), Z: T.Buffer((1, 1024, 1024), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        Z_local = T.sblock_alloc_buffer((1, 1024, 1024), scope="local")
        X_shared = T.sblock_alloc_buffer((1, 1024, 1024), scope="shared")
        Y_shared = T.sblock_alloc_buffer((1, 1024, 1024), scope="shared")
        for b_0_i_0_j_0_fused in T.thread_binding(2, thread="blockIdx.x"):
            for b_1_i_1_j_1_fused in T.thread_binding(1, thread="vthread.x"):
                for b_2_i_2_j_2_fused in T.thread_binding(1024, thread="threadIdx.x"):
                    for b_3_init, i_3_init, j_3_init, b_4_init, i_4_init, j_4_init in T.grid(1, 1, 4, 1, 2, 64):
                        with T.sblock("Z_init"):
                            v_b = T.axis.spatial(1, b_3_init + b_4_init)
                            v_i = T.axis.spatial(1024, b_0_i_0_j_0_fused * 512 + b_2_i_2_j_2_fused // 4 * 2 + i_3_init * 2 + i_4_init)
                            v_j = T.axis.spatial(1024, b_2_i_2_j_2_fused % 4 * 256 + j_3_init * 64 + j_4_init)
                            T.reads()
                            T.writes(Z_local[v_b, v_i, v_j])
                            T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                            Z_local[v_b, v_i, v_j] = T.float32(0.0)
                    for k_0 in range(256):
                        for ax0_ax1_ax2_fused_0 in range(1):
                            for ax0_ax1_ax2_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                                for ax0_ax1_ax2_fused_2 in T.vectorized(4):
                                    with T.sblock("X_shared"):
                                        v0 = T.axis.spatial(1, 0)
                                        v1 = T.axis.spatial(1024, b_0_i_0_j_0_fused * 512 + (ax0_ax1_ax2_fused_0 * 4096 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2) // 4)
                                        v2 = T.axis.spatial(1024, k_0 * 4 + (ax0_ax1_ax2_fused_0 * 4096 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2) % 4)
                                        T.where((ax0_ax1_ax2_fused_0 * 1024 + ax0_ax1_ax2_fused_1) * 4 + ax0_ax1_ax2_fused_2 < 2048)
                                        T.reads(X[v0, v1, v2])
                                        T.writes(X_shared[v0, v1, v2])
                                        X_shared[v0, v1, v2] = X[v0, v1, v2]
                        for ax0_ax1_ax2_fused_0 in range(1):
                            for ax0_ax1_ax2_fused_1 in T.thread_binding(1024, thread="threadIdx.x"):
                                for ax0_ax1_ax2_fused_2 in T.vectorized(4):
                                    with T.sblock("Y_shared"):
                                        v0 = T.axis.spatial(1, 0)
                                        v1 = T.axis.spatial(1024, k_0 * 4 + (ax0_ax1_ax2_fused_0 * 4096 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2) // 1024)
                                        v2 = T.axis.spatial(1024, (ax0_ax1_ax2_fused_0 * 4096 + ax0_ax1_ax2_fused_1 * 4 + ax0_ax1_ax2_fused_2) % 1024)
                                        T.reads(Y[v0, v1, v2])
                                        T.writes(Y_shared[v0, v1, v2])
                                        Y_shared[v0, v1, v2] = Y[v0, v1, v2]
                        for k_1, b_3, i_3, j_3, k_2, b_4, i_4, j_4 in T.grid(2, 1, 1, 4, 2, 1, 2, 64):
                            with T.sblock("Z_update"):
                                v_b = T.axis.spatial(1, b_3 + b_4)
                                v_i = T.axis.spatial(1024, b_0_i_0_j_0_fused * 512 + b_2_i_2_j_2_fused // 4 * 2 + i_3 * 2 + i_4)
                                v_j = T.axis.spatial(1024, b_2_i_2_j_2_fused % 4 * 256 + j_3 * 64 + j_4)
                                v_k = T.axis.reduce(1024, k_0 * 4 + k_1 * 2 + k_2)
                                T.reads(Z_local[v_b, v_i, v_j], X_shared[v_b, v_i, v_k], Y_shared[v_b, v_k, v_j])
                                T.writes(Z_local[v_b, v_i, v_j])
                                T.sblock_attr({"meta_schedule.thread_extent_high_inclusive": 1024, "meta_schedule.thread_extent_low_inclusive": 32, "meta_schedule.tiling_structure": "SSSRRSRS"})
                                Z_local[v_b, v_i, v_j] = Z_local[v_b, v_i, v_j] + X_shared[v_b, v_i, v_k] * Y_shared[v_b, v_k, v_j]
                    for ax0, ax1, ax2 in T.grid(1, 2, 256):
                        with T.sblock("Z_local"):
                            v0 = T.axis.spatial(1, ax0)
                            v1 = T.axis.spatial(1024, b_0_i_0_j_0_fused * 512 + b_2_i_2_j_2_fused // 4 * 2 + ax1)
                            v2 = T.axis.spatial(1024, b_2_i_2_j_2_fused % 4 * 256 + ax2)
                            T.reads(Z_local[v0, v1, v2])
                            T.writes(Z[v0, v1, v2])
                            Z[v0, v1, v2] = Z_local[v0, v1, v2]
