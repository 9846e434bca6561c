@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "int32")):
    A[0] = T.call_packed("f", A.data, 3, "x")
    A[0] = T.tvm_struct_get(A.data, 0, 1, "int32")
    T.call_extern("void", "f", T.address_of(A[3]), T.tvm_access_ptr(T.type_annotation("int32"), A.data, 0, 16, 1))
    T.evaluate(T.tvm_thread_invariant(A[0] < 3))
    T.tvm_thread_allreduce(T.uint32(1), T.float32(0), T.bool(True), A.data, 0)
    A[0] = T.call_llvm_pure_intrin("int32", "llvm.ctpop.i32", A[0])
