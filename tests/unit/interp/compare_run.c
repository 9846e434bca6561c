/* Agreement by running: arguments from a seed, exact and tolerant comparison, signs of zeros, what is reported. */
#include "support/zeros.h"
#include "unit/script.h"

#include <time.h>

#define A_C "A: T.Buffer((8, 16), \"float32\"), C: T.Buffer((8,), \"float32\")"
#define SUM(...)                                                                                                       \
  read_function(                                                                                                       \
      A_C, "for i, k in T.grid(8, 16):", "    with T.sblock(\"C\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])", \
      "        with T.init():", "            C[vi] = T.float32(0)", __VA_ARGS__)

static bool equal(struct tir *x, struct tir *y, ms_error *err) {
  bool ok = tir_equal_results(x, tir_find_func(x, "main"), NULL, y, tir_find_func(y, "main"), NULL, 1, err);
  tir_free(x);
  tir_free(y);
  return ok;
}

static void expect_equal(struct tir *x, struct tir *y) {
  ms_error err = {0};
  if (!equal(x, y, &err)) fail_msg("%s", err.message);
}

static void expect_code(struct tir *x, struct tir *y, enum ms_code code, const char *said) {
  ms_error err = {0};
  assert_false(equal(x, y, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(code));
  if (!strstr(err.message, said)) fail_msg("\"%s\" does not say \"%s\"", err.message, said);
}

static struct tir *plain_sum(void) { return SUM("        C[vi] = C[vi] + A[vi, vk]"); }

static void agrees_in_any_order(void **state) {
  (void)state;
  expect_equal(plain_sum(), read_function(A_C, "for i in range(8):", "    C[i] = T.float32(0)",
                                          "    for k in range(16):", "        C[i] = C[i] + A[i, 15 - k]"));
}

static void names_the_first_difference(void **state) {
  (void)state;
  expect_code(plain_sum(), SUM("        C[vi] = C[vi] + T.Select(vi == 3, T.float32(1), A[vi, vk])"), MS_RUN_DIFFERENT,
              "C[3]: ");
}

/* Division rounds: sums in another order may differ, but by little. */
static void allows_rounding(void **state) {
  (void)state;
  expect_equal(SUM("        C[vi] = C[vi] + A[vi, vk] / T.float32(3)"),
               SUM("        C[vi] = C[vi] + A[vi, 15 - vk] / T.float32(3)"));
  expect_code(SUM("        C[vi] = C[vi] + A[vi, vk] / T.float32(3)"),
              SUM("        C[vi] = C[vi] + A[vi, vk] / T.float32(3.0001)"), MS_RUN_DIFFERENT, "is allowed");
}

#define ELEMENTS(text)                                                                                                 \
  read_function("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",                                      \
                "for i in range(8):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(8, i)",                \
                "        C[vi] = " text)

static void run_alone(const struct tir *ir, struct tir_arguments *a) {
  ms_error err = {0};
  if (!tir_make_arguments(ir, tir_find_func(ir, "main"), 1, a, &err) ||
      !tir_run(ir, tir_find_func(ir, "main"), a->args, a->count, NULL, &err))
    fail_msg("%s", err.message);
}

/* -0 equals 0, but where signs are asked for. */
static void compares_the_signs_of_zeros(void **state) {
  (void)state;
  struct tir *x = ELEMENTS("T.Select(vi == 5, T.float32(-0.0), A[vi])"),
             *y = ELEMENTS("T.Select(vi == 5, T.float32(0), A[vi])");
  struct tir_arguments a, b;
  ms_error err = {0};
  tir_func f = tir_find_func(x, "main");
  run_alone(x, &a), run_alone(y, &b);
  assert_true(tir_same_arguments(x, f, &a, &b, 0, &err));
  assert_true(same_zeros(x, f, &a, &a, &err));
  assert_false(same_zeros(x, f, &a, &b, &err));
  assert_non_null(strstr(err.message, "C[5]: -0 is expected, 0 was computed"));
  tir_arguments_free(&a), tir_arguments_free(&b);
  tir_free(x), tir_free(y);
}

static bool keeps(struct tir *ir) {
  bool keeps = keeps_zeros(ir, tir_find_func(ir, "main"));
  tir_free(ir);
  return keeps;
}

static void knows_which_zeros_have_one_sign(void **state) {
  (void)state;
  assert_true(keeps(ELEMENTS("T.exp(A[vi]) * T.float32(-1) + A[7 - vi]")));
  assert_false(keeps(ELEMENTS("T.max(A[vi], T.float32(0)) * T.float32(2)")));
  assert_false(keeps(ELEMENTS("C[vi] + A[vi]")));
  assert_false(keeps(plain_sum()));
  assert_true(keeps(ELEMENTS("T.Cast(\"float32\", T.max(vi, 3)) * A[vi]")));
}

/* Where nothing rounds, the smallest difference counts. */
static void allows_nothing_where_all_is_exact(void **state) {
  (void)state;
  expect_code(plain_sum(), SUM("        C[vi] = C[vi] + A[vi, vk] + T.float32(3.814697265625e-06)"), MS_RUN_DIFFERENT,
              "C[0]");
}

static void holds_outputs_to_be_written_first(void **state) {
  (void)state;
  expect_code(plain_sum(),
              read_function(A_C, "for i, k in T.grid(8, 16):", "    with T.sblock(\"C\"):",
                            "        vi, vk = T.axis.remap(\"SR\", [i, k])", "        C[vi] = C[vi] + A[vi, vk]"),
              MS_RUN_UNWRITTEN, "the second function: C[0] is read before it is written");
  const char *const update[] = {"for i in range(8):", "    C[i] = C[i] + T.float32(1)", NULL};
  expect_equal(read_lines(A_C, update), read_lines(A_C, update));
}

static void refuses_other_signatures(void **state) {
  (void)state;
  const char *const line[] = {"C[0] = T.float32(0)", NULL};
  const char *const matrix[] = {"C[0, 0] = T.float32(0)", NULL};
  const char *c8 = "C: T.Buffer((8,), \"float32\")";
  expect_code(read_lines(c8, line), plain_sum(), MS_RUN_SIGNATURE, "takes 1 parameters, the other 2");
  expect_code(read_lines(c8, line), read_lines("C: T.Buffer((9,), \"float32\")", line), MS_RUN_SIGNATURE,
              "another shape");
  expect_code(read_lines(c8, line), read_lines("C: T.Buffer((8, 1), \"float32\")", matrix), MS_RUN_SIGNATURE,
              "another shape");
}

static void refuses_what_memory_cannot_hold(void **state) {
  (void)state;
  const char *const line[] = {"C[0, 0] = T.float32(0)", NULL};
  const char *params = "C: T.Buffer((131072, 131072), \"float32\")";
  expect_code(read_lines(params, line), read_lines(params, line), MS_RUN_MEMORY, "C has 17179869184 elements");
  clock_t start = clock(); /* the one before it that fits is not filled first, which takes seconds */
  params = "A: T.Buffer((268435456,), \"float32\"), C: T.Buffer((131072, 131072), \"float32\")";
  expect_code(read_lines(params, line), read_lines(params, line), MS_RUN_MEMORY, "C has 17179869184 elements");
  assert_true(clock() - start < CLOCKS_PER_SEC / 2);
}

static void draws_symbolic_extents(void **state) {
  (void)state;
  const char *const lines[] = {"n = T.int32()", "for i in range(n):", "    B[i, 0] = A[i, 1] + T.float32(1)", NULL};
  const char *params = "A: T.Buffer((\"n\", 2), \"float32\"), B: T.Buffer((\"n\", 2), \"float32\")";
  expect_equal(read_lines(params, lines), read_lines(params, lines));
}

static void makes_the_same_arguments_again(void **state) {
  (void)state;
  struct tir *ir = plain_sum();
  struct tir_arguments x, y, z;
  ms_error err = {0};
  assert_true(tir_make_arguments(ir, 1, 5, &x, &err));
  assert_true(tir_make_arguments(ir, 1, 5, &y, &err));
  assert_true(tir_make_arguments(ir, 1, 6, &z, &err));
  assert_memory_equal(x.args[0].data, y.args[0].data, x.args[0].bytes);
  assert_memory_not_equal(x.args[0].data, z.args[0].data, x.args[0].bytes);
  for (int i = 0; i < 128; i++) {
    float v = ((float *)x.args[0].data)[i];
    assert_true(v == (float)(int)v && v >= -4 && v <= 4);
  }
  tir_arguments_free(&x);
  tir_arguments_free(&y);
  tir_arguments_free(&z);
  tir_free(ir);
}

/* 8 + 2 * 16 for a sum of 16 terms, in a block or in loops. */
static void measures_reductions(void **state) {
  (void)state;
  struct tir *ir = plain_sum();
  assert_true(tir_tolerance(ir, 1, 1.0) == 40);
  tir_free(ir);
  ir = read_function(A_C, "for i, k in T.grid(8, 16):", "    C[i] = C[i] + A[i, k]");
  assert_true(tir_tolerance(ir, 1, 1.0) == 40);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_in_any_order),
      cmocka_unit_test(names_the_first_difference),
      cmocka_unit_test(allows_rounding),
      cmocka_unit_test(compares_the_signs_of_zeros),
      cmocka_unit_test(knows_which_zeros_have_one_sign),
      cmocka_unit_test(allows_nothing_where_all_is_exact),
      cmocka_unit_test(holds_outputs_to_be_written_first),
      cmocka_unit_test(refuses_other_signatures),
      cmocka_unit_test(refuses_what_memory_cannot_hold),
      cmocka_unit_test(draws_symbolic_extents),
      cmocka_unit_test(makes_the_same_arguments_again),
      cmocka_unit_test(measures_reductions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
