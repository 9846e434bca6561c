# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 20), "float32"), arg_v0: T.Buffer((8,), "int32"), arg_v1: T.Buffer((8,), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        Idx = T.sblock_alloc_buffer((8, 20), "int32")
        for i, j in T.grid(8, 20):
            with T.sblock("Idx"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(Idx[v_i, v_j])
                Idx[v_i, v_j] = v_j
        for i, k in T.grid(8, 20):
            with T.sblock("arg"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(A[v_i, v_k], Idx[v_i, v_k])
                T.writes(arg_v0[v_i], arg_v1[v_i])
                with T.init():
                    arg_v0[v_i] = -1
                    arg_v1[v_i] = T.float32(-340282346638528859811704183484516925440.0)
                v_arg_v0: T.let[T.int32] = T.Select(arg_v1[v_i] > A[v_i, v_k] or arg_v1[v_i] == A[v_i, v_k] and arg_v0[v_i] < Idx[v_i, v_k], arg_v0[v_i], Idx[v_i, v_k])
                v_arg_v1: T.let[T.float32] = T.Select(arg_v1[v_i] >= A[v_i, v_k], arg_v1[v_i], A[v_i, v_k])
                arg_v0[v_i] = v_arg_v0
                arg_v1[v_i] = v_arg_v1
