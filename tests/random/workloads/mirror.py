# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((37,), "float32"), c: T.Buffer((37,), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        b = T.sblock_alloc_buffer((37,))
        for i in range(37):
            with T.sblock("b"):
                v_i = T.axis.spatial(37, i)
                T.reads(a[v_i])
                T.writes(b[v_i])
                b[v_i] = T.sqrt(T.fabs(a[v_i]))
        for i in range(37):
            with T.sblock("c"):
                v_i = T.axis.spatial(37, i)
                T.reads(b[T.min(v_i, 36 - v_i):T.min(v_i, 36 - v_i) + (T.max(v_i, 36 - v_i) + 1 - T.min(v_i, 36 - v_i))])
                T.writes(c[v_i])
                c[v_i] = b[v_i] * b[36 - v_i]