/* Kernels run with perturbed thread timing: right ones stay right, those that depend on timing are refused. */
#include "unit/script.h"

#include "jit/jit.h"

/* Whether the function's result stays the same; err says why not. */
static bool holds_on(const char *machine, struct tir *ir, uint64_t stack_bytes, uint32_t runs, ms_error *err) {
  struct jit_target target;
  struct tir_arguments args;
  struct jit_options options = {.stack_bytes = stack_bytes};
  struct jit_code *code = NULL;
  tir_func f = tir_find_func(ir, "main");
  assert_accepted(jit_target_parse(machine, &target, err));
  assert_accepted((code = jit_compile(ir, f, &target, &options, err)) != NULL);
  assert_accepted(tir_make_arguments(ir, f, 3, &args, err));
  bool same = jit_check_timing(code, ir, f, &args, runs, 3, NULL, err);
  tir_arguments_free(&args);
  jit_code_free(code);
  tir_free(ir);
  return same;
}

static bool holds(struct tir *ir, uint64_t stack_bytes, uint32_t runs, ms_error *err) {
  return holds_on("native", ir, stack_bytes, runs, err);
}

static void expect_steady(struct tir *ir, uint32_t runs) {
  ms_error err = {0};
  if (!holds(ir, 1, runs, &err)) fail_msg("%s", err.message);
}

#define A_O "A: T.Buffer((12, 2), \"float32\"), O: T.Buffer((12, 2, 70), \"float32\")"

/* Allocations of several sizes in a thread's piece; more threads than the code was made for. */
static void a_piece_a_thread_is_enough(void **state) {
  (void)state;
  expect_steady(read_function(A_O, "S = T.alloc_buffer((12,))", "for i in range(12):", "    S[i] = A[i, 0]",
                              "for i in T.parallel(12):", "    for r in range(2):", "        P = T.alloc_buffer((70,))",
                              "        for j in range(70):", "            P[j] = A[i, r] + T.Cast(\"float32\", j)",
                              "        for j in range(70):", "            O[i, r, j] = P[69 - j] + S[11 - i]",
                              "    for r in range(2):", "        Q = T.alloc_buffer((40,))",
                              "        for j in range(40):", "            Q[j] = O[i, r, j] * T.float32(3)",
                              "        for j in range(40):", "            O[i, r, j] = Q[39 - j]"),
                30);
}

/* A loop within a loop: more of them than get threads of their own. */
static void many_loops_follow_one_another(void **state) {
  (void)state;
  expect_steady(
      read_function("A: T.Buffer((300, 16), \"float32\"), O: T.Buffer((300, 16), \"float32\")",
                    "for k in range(300):", "    for i in T.parallel(16):", "        P = T.alloc_buffer((16,))",
                    "        P[i] = A[k, i]", "        O[k, i] = P[i] + T.float32(1)"),
      6);
}

static void one_thread_has_one_timing(void **state) {
  (void)state;
  expect_steady(read_function("O: T.Buffer((4,), \"int32\")", "for i in range(4):", "    O[i] = i"), 0);
}

/* What distinguishes threads: alone, the number is 0 everywhere. With as many threads as cores each claims what it
 * runs, and the first may claim all, which would hide it: on any number of cores most runs have fixed shares. */
static void results_that_depend_on_threads_are_refused(void **state) {
  (void)state;
  for (int cores = 1; cores <= 16; cores++) {
    ms_error err = {0};
    unsigned differing = 0;
    char machine[32];
    snprintf(machine, sizeof machine, "native -num-cores=%d", cores);
    assert_false(holds_on(machine,
                          read_function("O: T.Buffer((64,), \"int32\")", "for i in T.parallel(64):",
                                        "    O[i] = T.call_extern(\"int32\", \"omp_get_thread_num\")"),
                          0, 9, &err));
    assert_string_equal(ms_code_name(err.code), ms_code_name(MS_THREAD_TIMING));
    assert_int_equal(sscanf(err.message, "the result depends on thread timing: %u of 9 runs differ; O[", &differing),
                     1);
    assert_true(differing >= 8);
  }
}

static void a_failed_assertion_is_told(void **state) {
  (void)state;
  ms_error err = {0};
  assert_false(holds(read_function("O: T.Buffer((4,), \"int32\")",
                                   "for i in T.parallel(4):", "    assert i < 3, \"too many\"", "    O[i] = i"),
                     0, 0, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_ASSERTION));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_piece_a_thread_is_enough), cmocka_unit_test(many_loops_follow_one_another),
      cmocka_unit_test(one_thread_has_one_timing),  cmocka_unit_test(results_that_depend_on_threads_are_refused),
      cmocka_unit_test(a_failed_assertion_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
