/* The function that tests and tools put into stores: one block of eight elements. */
#ifndef MSCHED_TESTS_STORED_FUNCTION_H
#define MSCHED_TESTS_STORED_FUNCTION_H

static const char FUNCTION[] = "@T.prim_func(s_tir=True)\n"
                               "def f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n"
                               "    for i in range(8):\n"
                               "        with T.sblock(\"B\"):\n"
                               "            v = T.axis.spatial(8, i)\n"
                               "            B[v] = A[v] + T.float32(1.0)\n";

#endif
