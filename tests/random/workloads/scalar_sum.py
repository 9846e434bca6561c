# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((6, 7), "float32"), T_1: T.Buffer((), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i, j in T.grid(6, 7):
            with T.sblock("T"):
                v_i, v_j = T.axis.remap("RR", [i, j])
                T.reads(A[v_i, v_j])
                T.writes(T_1[()])
                with T.init():
                    T_1[()] = T.float32(0.0)
                T_1[()] = T_1[()] + A[v_i, v_j]