/* Arithmetic of float16: where a CPU has it, products are fused with sums, unless the exact order is asked for. Maxima
 * of rows, of float16 too: by vectors, without a check of what holds no NaN so far. */
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

/* The largest of each column, of an element that is never NaN and of all rows, or of a row and of all rows. */
static struct tir *read_maxima(const char *type, const char *first) {
  char parameters[200], held[100], init[100];
  snprintf(parameters, sizeof parameters, "A: T.Buffer((64, 16), \"%s\"), C: T.Buffer((16,), \"%s\")", type, type);
  snprintf(held, sizeof held, "m = T.sblock_alloc_buffer((16,), \"%s\")", type);
  snprintf(init, sizeof init, "        m[v] = %s", first);
  return read_function(parameters, held, "for i in T.vectorized(16):", "    with T.sblock(\"init\"):",
                       "        v = T.axis.spatial(16, i)", init,
                       "for k in range(64):", "    for i in T.vectorized(16):", "        with T.sblock(\"m\"):",
                       "            vk = T.axis.reduce(64, k)", "            v = T.axis.spatial(16, i)",
                       "            m[v] = T.max(m[v], A[vk, v])",
                       "for i in T.vectorized(16):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(16, i)",
                       "        C[v] = m[v]");
}

static void maxima_check_what_may_be_nan(void **state) {
  (void)state;
  static const struct {
    const char *type, *first;
    bool checked; /* for NaN */
  } cases[] = {{"float32", "T.float32(-1.0)", false},
               {"float32", "A[0, v]", true},
               {"float16", "T.float16(-1.0)", false},
               {"float16", "A[0, v]", true}};
  struct jit_target target;
  assert_accepted(jit_target_parse("llvm -mcpu=x86-64-v3 -num-cores=1", &target, err));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct tir *ir = read_maxima(cases[c].type, cases[c].first);
    char *text = exported(ir, &target, NULL, ".s", NULL);
    bool checked = strstr(text, "unord") != NULL, called = strstr(text, "fmaxf") != NULL;
    if (called || checked != cases[c].checked) fail_msg("%s of %s:\n%s", cases[c].type, cases[c].first, text);
    free(text);
    tir_free(ir);
  }
}

/* Of bfloat16 alone NaN has no lower bits, which the addition that rounds could carry to the higher ones; of float32,
 * too, it may have. */
static void results_check_what_has_lower_bits(void **state) {
  (void)state;
  static const struct {
    const char *type, *value;
    bool checked;
  } cases[] = {{"bfloat16", "T.Cast(\"bfloat16\", T.Cast(\"float32\", A[v]) * T.Cast(\"float32\", B[v]))", false},
               {"float32", "T.Cast(\"bfloat16\", T.Cast(\"float32\", A[v]) * B[v])", true},
               {"float16", "T.Cast(\"bfloat16\", T.Cast(\"float32\", A[v]) * T.Cast(\"float32\", B[v]))", true}};
  struct jit_target target;
  assert_accepted(jit_target_parse("llvm -mcpu=x86-64-v3 -num-cores=1", &target, err));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char parameters[200], store[200];
    snprintf(parameters, sizeof parameters,
             "A: T.Buffer((16,), \"bfloat16\"), B: T.Buffer((16,), \"%s\"), C: T.Buffer((16,), \"bfloat16\")",
             cases[c].type);
    snprintf(store, sizeof store, "        C[v] = %s", cases[c].value);
    struct tir *ir = read_function(parameters, "for i in T.vectorized(16):", "    with T.sblock(\"C\"):",
                                   "        v = T.axis.spatial(16, i)", store);
    char *text = exported(ir, &target, NULL, ".s", NULL);
    if ((strstr(text, "unord") != NULL) != cases[c].checked) fail_msg("%s:\n%s", cases[c].value, text);
    free(text);
    tir_free(ir);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_fused_with_sums),
                                     cmocka_unit_test(maxima_check_what_may_be_nan),
                                     cmocka_unit_test(results_check_what_has_lower_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
