/* Unscheduled functions as simple kernels: whatever the attempt, they compute what the function computes. */
#include "unit/script.h"

#include "jit/jit.h"
#include "jit/measure/arrange_threads.h"

/* Each attempt, lowered and run on the interpreter, gives what the function does; or is refused. Gives how many are
 * not. */
static int check(struct tir *ir, const char *why_not) {
  struct jit_target target;
  ms_error err = {0};
  int right = 0;
  tir_func f = tir_find_func(ir, "main");
  if (!jit_target_parse("cuda -arch=sm_90a", &target, &err)) fail_msg("%s", err.message);
  for (uint32_t attempt = 0; attempt < JIT_ARRANGE_ATTEMPTS; attempt++) {
    struct tir *arranged = tir_new();
    const struct tir_lower_options lower = jit_lower_options(&target);
    const struct tir_run_options lowered = {.lowered = true};
    tir_copy(arranged, ir);
    bool ok = jit_arrange_threads(arranged, f, &target, attempt, &err) && tir_lower(arranged, f, &lower, &err);
    if (ok && !tir_equal_results(ir, f, NULL, arranged, f, &lowered, 1, &err)) fail_msg("%u: %s", attempt, err.message);
    if (ok) right++;
    if (!ok && (!why_not || !strstr(err.message, why_not))) fail_msg("%u: %s", attempt, err.message);
    tir_free(arranged);
  }
  tir_free(ir);
  return right;
}

/* No thread keeps more than its own element. */
static void keeps_little(void **state) {
  (void)state;
  struct jit_target target;
  ms_error err = {0};
  struct tir *ir = read_function(
      "A: T.Buffer((4096, 19), \"float32\"), C: T.Buffer((4096,), \"float32\")",
      "for i, k in T.grid(4096, 19):", "    with T.sblock(\"C\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            C[vi] = T.float32(0)", "        C[vi] = C[vi] + A[vi, vk]");
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  assert_true(jit_arrange_threads(ir, tir_find_func(ir, "main"), &target, 0, &err));
  struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, &err);
  if (!code) fail_msg("%s", err.message);
  size_t bytes;
  const char *text = jit_code_object(code, &bytes);
  assert_non_null(strstr(text, "C_local[1];"));
  jit_code_free(code);
  tir_free(ir);
}

static void product(void **state) {
  (void)state;
  assert_int_equal(
      check(read_function(
                "A: T.Buffer((33, 19), \"float16\"), B: T.Buffer((19, 25), \"float16\"), C: T.Buffer((33, 25), "
                "\"float16\")",
                "for i, j, k in T.grid(33, 25, 19):", "    with T.sblock(\"C\"):",
                "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])", "        with T.init():",
                "            C[vi, vj] = T.float16(0)", "        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"),
            NULL),
      3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_little), cmocka_unit_test(product)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
