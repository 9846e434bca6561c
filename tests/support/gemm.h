/* A matrix product, as TVMScript: one block, C, in three loops. */
#ifndef MSCHED_TESTS_GEMM_H
#define MSCHED_TESTS_GEMM_H

static const char GEMM[] = "@T.prim_func(s_tir=True)\n"
                           "def main(A: T.Buffer((64, 32), \"float32\"), B: T.Buffer((32, 16), \"float32\"), C: "
                           "T.Buffer((64, 16), \"float32\")):\n"
                           "    for i, j, k in T.grid(64, 16, 32):\n"
                           "        with T.sblock(\"C\"):\n"
                           "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n"
                           "            T.reads(A[vi, vk], B[vk, vj])\n"
                           "            T.writes(C[vi, vj])\n"
                           "            with T.init():\n"
                           "                C[vi, vj] = T.float32(0.0)\n"
                           "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n";

#endif
