# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((24, 36), "float32"), Sum: T.Buffer((24,), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i, k in T.grid(24, 36):
            with T.sblock("Sum"):
                v_i, v_k = T.axis.remap("SR", [i, k])
                T.reads(A[v_i, v_k])
                T.writes(Sum[v_i])
                with T.init():
                    Sum[v_i] = T.float32(0.0)
                Sum[v_i] = Sum[v_i] + A[v_i, v_k]
