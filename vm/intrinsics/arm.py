# Four dot products of four bytes each: ARM's sdot and udot, and what stands for them on a CPU without (neon). The sums
# are unrolled, so that they run everywhere; compilers for ARM know them by their form.
### dot_4x4_<N>
#: N i8i8s32_neon = int32 | i8i8s32_sdot = int32 | u8u8u32_udot = uint32 | u8u8i32_hdot = int32
#= T int8 | int8 | uint8 | uint8
#@ dot dot_by n=4 a=<T> b=<T> sum=<N>
        for i in T.vectorized(4):
            C[i] = C[i] + (T.Cast("<N>", A[0]) * T.Cast("<N>", B[i, 0]) + T.Cast("<N>", A[1]) * T.Cast("<N>", B[i, 1]) + T.Cast("<N>", A[2]) * T.Cast("<N>", B[i, 2]) + T.Cast("<N>", A[3]) * T.Cast("<N>", B[i, 3]))
