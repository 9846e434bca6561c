# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 32), "float32"), bias: T.Buffer((32,), "float32"), relu: T.Buffer((16, 32), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        C = T.sblock_alloc_buffer((16, 32))
        bias_local = T.sblock_alloc_buffer((32,), scope="local")
        for ax0 in range(32):
            with T.sblock("bias_local"):
                v0 = T.axis.spatial(32, ax0)
                T.reads(bias[v0])
                T.writes(bias_local[v0])
                bias_local[v0] = bias[v0]
        for i_0, j_0 in T.grid(4, 8):
            with T.sblock("C_init_o"):
                v_i_o, v_j_o = T.axis.remap("SS", [i_0, j_0])
                T.reads()
                T.writes(C[v_i_o * 4:v_i_o * 4 + 4, v_j_o * 4:v_j_o * 4 + 4])
                T.sblock_attr({"buffer_dim_align": [[0, 0, 32, 4]]})
                for i_1_init, j_1_init in T.grid(4, 4):
                    with T.sblock("C_init"):
                        v_i_i, v_j_i = T.axis.remap("SS", [i_1_init, j_1_init])
                        T.reads()
                        T.writes(C[v_i_o * 4 + v_i_i, v_j_o * 4 + v_j_i])
                        C[v_i_o * 4 + v_i_i, v_j_o * 4 + v_j_i] = T.float32(0.0)
            for k_0 in T.serial(2, annotations={"factor": 0.5}):
                with T.sblock("C_update_o"):
                    v_i_o, v_j_o, v_k_o = T.axis.remap("SSR", [i_0, j_0, k_0])
                    T.reads(C[v_i_o * 4:v_i_o * 4 + 4, v_j_o * 4:v_j_o * 4 + 4], A[v_i_o * 4:v_i_o * 4 + 4, v_k_o * 4:v_k_o * 4 + 4], B[v_k_o * 4:v_k_o * 4 + 4, v_j_o * 4:v_j_o * 4 + 4])
                    T.writes(C[v_i_o * 4:v_i_o * 4 + 4, v_j_o * 4:v_j_o * 4 + 4])
                    A_1 = T.match_buffer(A[v_i_o * 4:v_i_o * 4 + 4, v_k_o * 4:v_k_o * 4 + 4], (4, 4), strides=("sa", 1), offset_factor=1)
                    B_1 = T.match_buffer(B[v_k_o * 4:v_k_o * 4 + 4, v_j_o * 4:v_j_o * 4 + 4], (4, 4), strides=("sb", 1), offset_factor=1)
                    C_1 = T.match_buffer(C[v_i_o * 4:v_i_o * 4 + 4, v_j_o * 4:v_j_o * 4 + 4], (4, 4), strides=("sc", 1), offset_factor=1)
                    T.call_extern("int32", "mac_4x4x4_f32", T.tvm_access_ptr(T.type_annotation("float32"), C_1.data, C_1.elem_offset, C_1.strides[0] * 4, 3), C_1.strides[0], T.tvm_access_ptr(T.type_annotation("float32"), A_1.data, A_1.elem_offset, A_1.strides[0] * 4, 1), A_1.strides[0], T.tvm_access_ptr(T.type_annotation("float32"), B_1.data, B_1.elem_offset, B_1.strides[0] * 4, 1), B_1.strides[0])
        for i0, i1 in T.grid(16, 32):
            with T.sblock("relu"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(C[v_i0, v_i1], bias_local[v_i1])
                T.writes(relu[v_i0, v_i1])
                relu[v_i0, v_i1] = T.max(C[v_i0, v_i1] + bias_local[v_i1], T.float32(0.0))
