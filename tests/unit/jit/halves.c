/* Arithmetic of float16: where a CPU has it, products are fused with sums, unless the exact order is asked for. */
#include "unit/exported.h"
#include "unit/script.h"

static struct tir *read_product(void) {
  return read_function(
      "A: T.Buffer((64,), \"float16\"), B: T.Buffer((64, 32), \"float16\"), C: T.Buffer((32,), \"float16\")",
      "for k in range(64):", "    for j in T.vectorized(32):", "        with T.sblock(\"C\"):",
      "            vk = T.axis.reduce(64, k)", "            vj = T.axis.spatial(32, j)",
      "            C[vj] = C[vj] + A[vk] * B[vk, vj]");
}

static void products_are_fused_with_sums(void **state) {
  (void)state;
  static const struct {
    const char *target, *fused, *apart;
  } cpus[] = {{"llvm -mcpu=sapphirerapids -num-cores=1", "vfmadd", "vmulph"},
              {"llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1 -num-cores=1", "fmla\tv", "fmul\tv"}};
  const struct jit_options exact = {.no_fast_math = true};
  struct tir *ir = read_product();
  for (int i = 0; i < 2; i++) {
    struct jit_target target;
    assert_accepted(jit_target_parse(cpus[i].target, &target, err));
    char *fast = exported(ir, &target, NULL, ".s", NULL), *slow = exported(ir, &target, &exact, ".s", NULL);
    assert_non_null(strstr(fast, cpus[i].fused));
    assert_null(strstr(fast, cpus[i].apart));
    assert_null(strstr(slow, cpus[i].fused));
    assert_non_null(strstr(slow, cpus[i].apart));
    free(fast);
    free(slow);
  }
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_fused_with_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
