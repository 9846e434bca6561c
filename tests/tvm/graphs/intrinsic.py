# from tvm.script import ir as I
# from tvm.script import tirx as T
# from tvm.tirx.layout import Axis

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def mac_impl(A: T.Buffer((4, 4), "float32", strides=("sa", 1), offset_factor=1), B: T.Buffer((4, 4), "float32", strides=("sb", 1), offset_factor=1), C: T.Buffer((4, 4), "float32", strides=("sc", 1), offset_factor=1)):
        with T.sblock("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            T.call_extern("int32", "mac_4x4x4_f32", T.tvm_access_ptr(T.type_annotation("float32"), C.data, C.elem_offset, C.strides[0] * 4, 3), C.strides[0], T.tvm_access_ptr(T.type_annotation("float32"), A.data, A.elem_offset, A.strides[0] * 4, 1), A.strides[0], T.tvm_access_ptr(T.type_annotation("float32"), B.data, B.elem_offset, B.strides[0] * 4, 1), B.strides[0])