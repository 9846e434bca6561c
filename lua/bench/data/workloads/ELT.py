# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"), relu: T.Buffer((512, 512), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        add = T.sblock_alloc_buffer((512, 512))
        for i, j in T.grid(512, 512):
            with T.sblock("add"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_i, v_j], B[v_i, v_j])
                T.writes(add[v_i, v_j])
                add[v_i, v_j] = A[v_i, v_j] + B[v_i, v_j]
        for i, j in T.grid(512, 512):
            with T.sblock("relu"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(add[v_i, v_j])
                T.writes(relu[v_i, v_j])
                relu[v_i, v_j] = T.max(add[v_i, v_j], T.float32(0.0))
