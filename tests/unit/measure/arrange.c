/* An unscheduled function, arranged to run fast: its results keep their bits, on real numbers too. */
#include "jit/measure/arrange.h"

#include "unit/script.h"

static struct tir *product(void) {
  return read_function("A: T.Buffer((1, 40, 24), \"float32\"), B: T.Buffer((24, 56), \"float32\"), "
                       "C: T.Buffer((1, 40, 56), \"float32\")",
                       "for b, i, j, k in T.grid(1, 40, 56, 24):", "    with T.sblock(\"C\"):",
                       "        vb, vi, vj, vk = T.axis.remap(\"SSSR\", [b, i, j, k])",
                       "        with T.init():", "            C[vb, vi, vj] = T.float32(0)",
                       "        C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * B[vk, vj]");
}

static void run(const struct tir *ir, struct tir_arguments *args) {
  struct jit_target target;
  ms_error err = {.message = ""};
  const struct jit_options exact = {.no_fast_math = true};
  assert_true(jit_target_parse("native", &target, &err));
  if (!jit_run(ir, tir_find_func(ir, "main"), &target, &exact, args->args, &err)) fail_msg("%s", err.message);
}

static void results_keep_their_bits(void **state) {
  (void)state;
  struct tir *ir = product(), *arranged = product();
  tir_func f = tir_find_func(ir, "main");
  struct tir_arguments before, plain, fast;
  ms_error err = {.message = ""};
  jit_arrange(arranged, f);
  if (!tir_verify(arranged, &err)) fail_msg("%s", err.message);
  assert_true(tir_make_real_arguments(ir, f, 1, &before, &err));
  tir_copy_arguments(ir, f, &before, &plain);
  tir_copy_arguments(ir, f, &before, &fast);
  run(ir, &plain);
  run(arranged, &fast);
  assert_memory_equal(plain.args[2].data, fast.args[2].data, plain.args[2].bytes);
  assert_memory_not_equal(before.args[2].data, fast.args[2].data, before.args[2].bytes);
  tir_arguments_free(&before), tir_arguments_free(&plain), tir_arguments_free(&fast);
  tir_free(arranged), tir_free(ir);
}

/* What lies side by side comes last, threads share the first loop that has something to share. */
static void loops_are_put_in_order(void **state) {
  (void)state;
  struct tir *ir = product();
  jit_arrange(ir, tir_find_func(ir, "main"));
  char *text = tir_print(ir, TIR_NONE, TIR_PRINT_FUNCTION);
  const char *shared = strstr(text, "for i in T.parallel(40):"), *last = strstr(text, "for k, j in T.grid(24, 56):");
  if (!shared || !last || last < shared) fail_msg("%s", text);
  free(text);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(results_keep_their_bits),
                                     cmocka_unit_test(loops_are_put_in_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
