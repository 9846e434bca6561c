# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((30, 14), "int32"), Sum: T.Buffer((14,), "int32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i, k in T.grid(14, 30):
            with T.sblock("Sum"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(A[v_k, v_i])
                T.writes(Sum[v_i])
                with T.init():
                    Sum[v_i] = -2147483648
                Sum[v_i] = T.max(Sum[v_i], A[v_k, v_i])
