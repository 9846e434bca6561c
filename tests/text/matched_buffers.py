# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        # with T.sblock("root"):
        for io, jo in T.grid(4, 4):
            with T.sblock("t"):
                vi, vj = T.axis.remap("SS", [io, jo])
                T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                T.writes(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                A1 = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), strides=("s", 1), offset_factor=1)
                B1 = T.match_buffer(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), elem_offset=vi)
                for i, j in T.grid(4, 4):
                    with T.sblock("u"):
                        vii, vjj = T.axis.remap("SS", [i, j])
                        T.reads(A1[vii, vjj])
                        T.writes(B1[vii, vjj])
                        B1[vii, vjj] = A1[vii, vjj] * T.float32(2.0)
