/* Legalized functions: no floor division is left, nor arithmetic of 16-bit floats, and each computes the same, exactly,
 * interpreted and compiled. Dividends of either sign, known to have bounds or not, and divisors of either sign. */
#include "unit/script.h"

#include "jit/jit.h"

enum { EXTENT = 40 };

static const char *const short_types[] = {"float16", "bfloat16"};

static char *lowered_text(struct tir *ir) {
  const struct tir_lower_options options = {.verify = true};
  assert_accepted(tir_lower(ir, tir_find_func(ir, "main"), &options, err));
  char *text = tir_print(ir, TIR_NONE, TIR_PRINT_FUNCTION);
  assert_non_null(text);
  return text;
}

/* Dividends from -20 on; divisors of either sign, none of them 0. */
static void fill_integers(const struct tir *ir, tir_func f, const struct tir_arguments *to) {
  for (uint32_t i = 0; i < to->count; i++) {
    tir_buffer buffer = ir->params.at[ir->funcs.at[f].params.first + i].buffer;
    int32_t *at = to->args[i].data;
    for (int k = 0; tir_type_is_int(tir_buffer_at(ir, buffer)->type) && k < EXTENT; k++)
      at[k] = i == 0 ? k - EXTENT / 2 : k % 9 < 4 ? -1 - k % 9 : k % 9 + 1;
  }
}

static void expect_same(const struct tir *ir, const struct tir *lowered) {
  tir_func f = tir_find_func(ir, "main");
  const struct tir_run_options real = {.lowered = true};
  struct tir_arguments before, expected, interpreted, compiled;
  struct jit_target target;
  assert_accepted(tir_make_real_arguments(ir, f, 5, &before, err));
  fill_integers(ir, f, &before);
  tir_copy_arguments(ir, f, &before, &expected);
  tir_copy_arguments(ir, f, &before, &interpreted);
  tir_copy_arguments(ir, f, &before, &compiled);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(tir_run(lowered, f, interpreted.args, interpreted.count, &real, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &interpreted, 0, err));
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(jit_run(ir, f, &target, NULL, compiled.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &compiled, 0, err));
  tir_arguments_free(&before), tir_arguments_free(&expected);
  tir_arguments_free(&interpreted), tir_arguments_free(&compiled);
}

/* C[i] = value, of A and B of a type; `absent` is not in the legal text, `present` is. */
static void check(const char *type, const char *loop, const char *value, const char *present, const char *absent) {
  char params[200], store[200];
  snprintf(params, sizeof params, "A: T.Buffer((40,), \"%s\"), B: T.Buffer((40,), \"%s\"), C: T.Buffer((40,), \"%s\")",
           type, type, type);
  snprintf(store, sizeof store, "            C[v] = %s", value);
  struct tir *ir =
      read_function(params, loop, "        with T.sblock(\"C\"):", "            v = T.axis.spatial(40, i)", store);
  struct tir *lowered = tir_new();
  tir_copy(lowered, ir);
  char *text = lowered_text(lowered);
  if (strstr(text, absent)) fail_msg("\"%s\" in\n%s", absent, text);
  if (!strstr(text, present)) fail_msg("no \"%s\" in\n%s", present, text);
  expect_same(ir, lowered);
  free(text);
  tir_free(lowered), tir_free(ir);
}

#define SERIAL "for i in range(40):"
#define VECTOR "for i in T.vectorized(40):"

static void floor_divisions(void **state) {
  (void)state;
  static const char *const loops[] = {SERIAL, VECTOR};
  for (int l = 0; l < 2; l++) {
    check("int32", loops[l], "A[v] // 7", "T.Div(", "//");
    check("int32", loops[l], "A[v] % 7", "T.truncmod", "%");
    check("int32", loops[l], "A[v] // B[v]", "T.bitwise_xor", "//");
    check("int32", loops[l], "A[v] % B[v]", "T.bitwise_xor", "%");
  }
}

/* Of indices bounds are known: the dividend is moved, and nothing is selected. */
static void dividends_that_are_moved(void **state) {
  (void)state;
  check("int32", SERIAL, "(v - 13) // 7 + A[v]", "T.Div(", "Select");
  check("int32", SERIAL, "(v - 14) % 7 + A[v]", "T.truncmod", "Select");
  check("int32", SERIAL, "A[(v - 21) % 40]", "T.truncmod", "Select");
}

static void short_floats(void **state) {
  (void)state;
  for (int t = 0; t < 2; t++) {
    char rounded[64];
    snprintf(rounded, sizeof rounded, "T.Cast(\"%s", short_types[t]);
    check(short_types[t], SERIAL, "A[v] * B[v] + A[v]", rounded, " = A[i] * B[i]");
    check(short_types[t], VECTOR, "T.max(A[v], B[v]) - A[v]", rounded, " = T.max(A[");
    check(short_types[t], SERIAL, "T.if_then_else(A[v] < B[v], A[v], B[v] / A[v])", rounded, "A[i] < B[i]");
    check(short_types[t], SERIAL, "T.sqrt(T.abs(A[v]))", "T.fabs(T.Cast(\"float32\", A[i]))", "T.abs");
  }
}

static void functions_by_a_second_name(void **state) {
  (void)state;
  check("float32", SERIAL, "T.round(A[v] * T.float32(9)) + T.abs(B[v])", "T.nearbyint", "T.round");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(floor_divisions), cmocka_unit_test(dividends_that_are_moved),
                                     cmocka_unit_test(short_floats), cmocka_unit_test(functions_by_a_second_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
