/* Names that an exported function cannot have, and those that it can. */
#include "jit/export/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void others_names_are_taken(void **state) {
  (void)state;
  static const char *const names[] = {"expf",
                                      "exp",
                                      "expl",
                                      "read",
                                      "free",
                                      "main",
                                      "malloc",
                                      "y0",
                                      "y0f",
                                      "index",
                                      "pow",
                                      "powf32x",
                                      "environ",
                                      "printf",
                                      "double",
                                      "errno",
                                      "stdin",
                                      "strtok_r",
                                      "isalpha_l",
                                      "ftruncate64",
                                      "__libc_start_main",
                                      "_exit",
                                      "_Z3foov",
                                      "setjmp",
                                      "pthread_create",
                                      "omp_get_num_threads",
                                      "GOMP_parallel",
                                      "gomp_init",
                                      "cuLaunchKernel",
                                      "cudaMalloc",
                                      "class",
                                      "EOF",
                                      "FILE",
                                      "INT_MAX",
                                      "UINT64_C",
                                      "NAN",
                                      "M_PI",
                                      "template",
                                      "restrict",
                                      "int32_t",
                                      "blockIdx",
                                      "signgam",
                                      "qsort_r",
                                      "getauxval",
                                      "dlopen",
                                      "select",
                                      "write",
                                      "lgamma_r",
                                      "sincosf",
                                      "arc4random",
                                      "strlcpy",
                                      "memcpy",
                                      "fmaf",
                                      "roundevenf",
                                      "static_assert",
                                      "size_t"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!symbol_owner(names[i])) fail_msg("%s is free", names[i]);
}

static void other_names_are_free(void **state) {
  (void)state;
  static const char *const names[] = {
      "gemm", "dense",     "matmul_8x8x8", "conv2d", "softmax", "expf_kernel", "relu",  "f",    "k",
      "x",    "transpose", "cutlass",      "cube",   "f64",     "reader",      "maine", "exp_", "l"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (symbol_owner(names[i])) fail_msg("%s is %s", names[i], symbol_owner(names[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(others_names_are_taken), cmocka_unit_test(other_names_are_free)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
