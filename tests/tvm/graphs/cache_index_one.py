# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((20,), "float32"), B: T.Buffer((4, 16), "float32")):
        # with T.sblock("root"):
        index_var_0 = T.sblock_alloc_buffer((4, 16), "int32", strides=(1,))
        for ax0, ax1 in T.grid(4, 16):
            with T.sblock("index_0"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads()
                T.writes(index_var_0[v0, v1])
                index_var_0[v0, v1] = v0 + v1
        for i, j in T.grid(4, 16):
            with T.sblock("B"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_i + v_j])
                T.writes(B[v_i, v_j])
                B[v_i, v_j] = A[index_var_0[v_i, v_j]]