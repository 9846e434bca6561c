# Sixteen dot products of four bytes each: AVX-512's vpdpbusd, of which one lane is one dot product.
### dot_16x4_vnni
#@ dot dot_by n=16 a=uint8 b=int8 sum=int32
        with T.attr(0, "instruction", T.vpdpbusd(T.address_of(C[0]), T.address_of(C[1]), T.address_of(A[0]), T.address_of(A[1]), T.address_of(B[0, 0]), T.address_of(B[1, 0]), T.address_of(B[0, 1]))):
            for i in T.vectorized(16):
                C[i] = C[i] + (T.Cast("int32", A[0]) * T.Cast("int32", B[i, 0]) + T.Cast("int32", A[1]) * T.Cast("int32", B[i, 1]) + T.Cast("int32", A[2]) * T.Cast("int32", B[i, 2]) + T.Cast("int32", A[3]) * T.Cast("int32", B[i, 3]))

# The same by products of 32 bits, for CPUs without that instruction; sums of bytes' products do not saturate.
### dot_16x4_avx512
#@ dot dot_by n=16 a=uint8 b=int8 sum=int32
        for i in T.vectorized(16):
            C[i] = C[i] + (T.Cast("int32", A[0]) * T.Cast("int32", B[i, 0]) + T.Cast("int32", A[1]) * T.Cast("int32", B[i, 1]) + T.Cast("int32", A[2]) * T.Cast("int32", B[i, 2]) + T.Cast("int32", A[3]) * T.Cast("int32", B[i, 3]))
