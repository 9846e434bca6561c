/* Addresses in innermost loops over vectors: counters that step, one for all that grow by as much; what is not known in
 * front of the loop is left in it. */
#include "unit/lowered_text.h"

#include "jit/jit.h"

/* The LLVM module, before LLVM's passes, of a function for vectors of 256 bits; compiled for this machine it computes
 * what is interpreted. Scalar parameters are 0. Takes the module; free what is returned. */
static char *emitted(struct tir *ir, bool scalar) {
  struct jit_target target, native;
  struct tir_arguments expected, actual;
  char *text = NULL;
  size_t length = 0;
  struct jit_options options = {.dump_after = "emit", .dump = open_memstream(&text, &length)};
  tir_func f = tir_find_func(ir, "main");
  assert_non_null(options.dump);
  assert_accepted(jit_target_parse("llvm -mcpu=haswell", &target, err));
  struct jit_code *code = NULL;
  assert_accepted((code = jit_compile(ir, f, &target, &options, err)) != NULL);
  jit_code_free(code);
  fclose(options.dump);
  assert_accepted(jit_target_parse("native", &native, err));
  assert_accepted(tir_make_arguments(ir, f, 5, &expected, err));
  if (scalar) expected.args[3].scalar = 0;
  tir_copy_arguments(ir, f, &expected, &actual);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(jit_run(ir, f, &native, NULL, actual.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &actual, 1e-5, err));
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  tir_free(ir);
  return text;
}

static uint32_t counters_in(char *text) {
  uint32_t count = count_of(text, "step = phi") + count_of(text, "step1 = phi") + count_of(text, "step2 = phi");
  free(text);
  return count;
}

#define PARAMETERS                                                                                                     \
  "A: T.Buffer((2048,), \"float32\"), B: T.Buffer((2048,), \"float32\"), C: T.Buffer((64,), \"float32\")"
#define FUNCTION(...) read_function(PARAMETERS, __VA_ARGS__)

/* Four rows of one matrix and a row of the other, one element and one row further each iteration. */
static void one_counter_for_all_of_a_step(void **state) {
  (void)state;
  char *text = emitted(FUNCTION("for k in range(37):", "    for i in T.unroll(4):", "        for j in T.vectorized(8):",
                                "            C[i * 8 + j] = C[i * 8 + j] + A[i * 48 + k] * B[k * 24 + j + 5]"),
                       false);
  assert_int_equal(count_of(text, "mul nsw"), 0);
  assert_int_equal(count_of(text, ", 96\n"), 1); /* bytes that a row takes */
  assert_int_equal(counters_in(text), 2);
}

/* What a loop of scalars accesses is LLVM's to make vectors of; what does not step has no counter. */
static void other_loops_have_none(void **state) {
  (void)state;
  char *text = emitted(FUNCTION("for k in range(64):", "    C[k] = A[k * 2] + B[k]"), false);
  assert_int_equal(counters_in(text), 0);
  text = emitted(FUNCTION("for k in range(37):", "    for j in T.vectorized(8):",
                          "        C[j] = C[j] + A[(k * 5) % 7 + j] * B[k // 3]"),
                 false);
  assert_int_equal(counters_in(text), 0);
}

static void steps_lead_backwards(void **state) {
  (void)state;
  char *text = emitted(FUNCTION("for k in range(37):", "    for j in T.vectorized(8):",
                                "        C[j] = C[j] + A[1800 - k * 32 + j] * B[36 - k]"),
                       false);
  assert_int_equal(count_of(text, ", -128\n"), 1);
  assert_int_equal(counters_in(text), 2);
}

/* An inner loop that LLVM may write out leaves the outer one innermost, whose addresses step too. */
static void loops_around_small_ones_step(void **state) {
  (void)state;
  char *text = emitted(FUNCTION("for k in range(37):", "    for q in range(3):", "        for j in T.vectorized(8):",
                                "            C[j] = C[j] + A[k * 3 + q] * B[k * 24 + q * 8 + j]"),
                       false);
  assert_int_equal(count_of(text, "mul nsw"), 0);
  free(text);
}

/* A variable that an expression binds, here a sum that is used twice, is not known in front of the loop. */
static void bound_variables_stay_inside(void **state) {
  (void)state;
  char sum[1000] = "k", update[3000];
  for (int i = 0; i < 20; i++) snprintf(sum + strlen(sum), sizeof sum - strlen(sum), " + k * %d %% %d", 3 + i, 5 + i);
  snprintf(update, sizeof update, "        C[j] = C[j] + A[(%s) + j] * T.Cast(\"float32\", %s)", sum, sum);
  struct tir *ir = FUNCTION("for k in range(37):", "    for j in T.vectorized(8):", update);
  char *text = text_after(ir, "cse");
  assert_int_equal(count_of(text, "T.Let("), 1);
  free(text);
  ir = FUNCTION("for k in range(37):", "    for j in T.vectorized(8):", update);
  assert_int_equal(counters_in(emitted(ir, false)), 0);
}

/* A division that a condition guards is not done in front of the loop. */
static void guarded_divisions_stay_guarded(void **state) {
  (void)state;
  struct tir *ir =
      read_function(PARAMETERS ", n: T.int32", "for k in range(16):", "    if n > 0:",
                    "        for j in T.vectorized(8):", "            C[j] = C[j] + A[k * 8 + T.truncdiv(64, n) + j]");
  char *text = emitted(ir, true), *body = strstr(text, "\nbody:"), *division = strstr(text, "div i64");
  assert_true(body && division && division > body);
  assert_int_equal(counters_in(text), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_counter_for_all_of_a_step), cmocka_unit_test(other_loops_have_none),
      cmocka_unit_test(steps_lead_backwards),          cmocka_unit_test(loops_around_small_ones_step),
      cmocka_unit_test(bound_variables_stay_inside),   cmocka_unit_test(guarded_divisions_stay_guarded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
