# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((11,), "float64"), b: T.Buffer((9,), "float64"), T_1: T.Buffer((9, 11), "float64")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        O = T.sblock_alloc_buffer((11, 9), "float64")
        for i, j in T.grid(11, 9):
            with T.sblock("O"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(a[v_i], b[v_j])
                T.writes(O[v_i, v_j])
                O[v_i, v_j] = a[v_i] * b[v_j]
        for j, i in T.grid(9, 11):
            with T.sblock("T"):
                v_j, v_i = T.axis.remap("SS", [j, i])
                T.reads(O[v_i, T.min(v_j, (v_j + 1) % 9):T.min(v_j, (v_j + 1) % 9) + (T.max(v_j, (v_j + 1) % 9) + 1 - T.min(v_j, (v_j + 1) % 9))])
                T.writes(T_1[v_j, v_i])
                T_1[v_j, v_i] = O[v_i, v_j] + O[v_i, (v_j + 1) % 9]