/* Chains of stages that each read the last twice, inlined: as a tree they would have 2^60 nodes. Each is
 * interpreted, lowered, compiled and exported as C, and computes the same. No verdict is a time: a walk that met a
 * shared value once for each way to it would not end. */
#include "unit/exported.h"
#include "unit/script.h"

enum { STAGES = 60, EXTENT = 64, ROOM = 40000 };

/* Stage k computes `value`, in which X and Y stand for the last stage and Y's place. */
static struct tir *chain(const char *value, int stages) {
  char *text = malloc(ROOM), *to = text;
  assert_non_null(text);
  to += sprintf(
      to, "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n");
  for (int k = 1; k < stages; k++) to += sprintf(to, "    X%d = T.sblock_alloc_buffer((64,))\n", k);
  for (int k = 1; k <= stages; k++) {
    char target[16] = "B", source[16] = "A";
    if (k < stages) snprintf(target, sizeof target, "X%d", k);
    if (k > 1) snprintf(source, sizeof source, "X%d", k - 1);
    to += sprintf(
        to, "    for i in range(64):\n        with T.sblock(\"s%d\"):\n            v = T.axis.spatial(64, i)\n", k);
    to += sprintf(to, "            %s[v] = ", target);
    for (const char *c = value; *c; c++) to += *c == 'X' ? sprintf(to, "%s", source) : sprintf(to, "%c", *c);
    to += sprintf(to, "\n");
  }
  assert_true(to - text < ROOM);
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, (size_t)(to - text), "chain.py", &err);
  if (!ir) fail_msg("%s", err.message);
  free(text);
  return ir;
}

static void inline_all(struct tir *ir, int stages) {
  ms_error err = {.message = ""};
  for (int k = 1; k < stages; k++) {
    char name[16];
    snprintf(name, sizeof name, "s%d", k);
    if (!tir_compute_inline(ir, block_named(ir, name), &err)) fail_msg("%s", err.message);
  }
  if (!tir_verify(ir, &err)) fail_msg("%s", err.message);
}

static void vectorize(struct tir *ir, int stages) {
  char name[16];
  ms_error err = {.message = ""};
  snprintf(name, sizeof name, "s%d", stages);
  tir_loop loop = loop_of(ir, name, 0), parts[2];
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, 16)};
  if (!tir_split(ir, loop, factors, 2, true, false, parts, &err) || !tir_vectorize(ir, parts[1], &err))
    fail_msg("%s", err.message);
}

static void expect_equal(const struct tir *ir, const struct tir_arguments *expected, const struct tir_arguments *got,
                         const char *what) {
  ms_error err = {.message = ""};
  if (!tir_same_arguments(ir, tir_find_func(ir, "main"), expected, got, 1e-5, &err))
    fail_msg("%s: %s", what, err.message);
}

static void check(const char *value, int stages, bool vectors) {
  struct tir *ir = chain(value, stages), *lowered = tir_new();
  tir_func f = tir_find_func(ir, "main");
  ms_error err = {.message = ""};
  struct tir_arguments before, expected, got;
  struct jit_target target;
  const struct tir_lower_options options = {.verify = true};
  const struct tir_run_options run_lowered = {.lowered = true};
  assert_true(jit_target_parse("x86-64-v3", &target, &err));
  assert_true(tir_make_arguments(ir, f, 1, &before, &err));
  tir_copy_arguments(ir, f, &before, &expected);
  if (!tir_run(ir, f, expected.args, expected.count, NULL, &err)) fail_msg("%s", err.message);
  inline_all(ir, stages);
  if (vectors) vectorize(ir, stages);
  tir_copy_arguments(ir, f, &before, &got);
  if (!tir_run(ir, f, got.args, got.count, NULL, &err)) fail_msg("%s", err.message);
  expect_equal(ir, &expected, &got, "inlined");
  tir_arguments_free(&got);
  tir_copy(lowered, ir);
  if (!tir_lower(lowered, f, &options, &err)) fail_msg("%s", err.message);
  tir_copy_arguments(ir, f, &before, &got);
  if (!tir_run(lowered, f, got.args, got.count, &run_lowered, &err)) fail_msg("%s", err.message);
  expect_equal(ir, &expected, &got, "lowered");
  tir_arguments_free(&got);
  tir_copy_arguments(ir, f, &before, &got);
  if (!jit_run(ir, f, &target, NULL, got.args, &err)) fail_msg("%s", err.message);
  expect_equal(ir, &expected, &got, "compiled");
  tir_arguments_free(&got);
  tir_copy_arguments(ir, f, &before, &got);
  run_exported_source(ir, &target, NULL, "-mavx2 -mfma", &got);
  expect_equal(ir, &expected, &got, "exported C");
  tir_arguments_free(&got), tir_arguments_free(&expected), tir_arguments_free(&before);
  tir_free(lowered), tir_free(ir);
}

static const char plain[] = "X[v] * T.float32(0.5) + X[v] * T.float32(0.25)";

static void sixty_stages(void **state) {
  (void)state;
  check(plain, STAGES, false);
}

static void sixty_stages_of_vectors(void **state) {
  (void)state;
  check(plain, STAGES, true);
}

/* What a condition guards stays guarded: A[v - 1] is out of bounds where v is 0. */
static void guarded_stages(void **state) {
  (void)state;
  check("T.if_then_else(1 <= v, A[v - 1] * X[v] + X[v] * A[v - 1] * X[v], X[v] * T.float32(0.5))", 5, false);
  check("T.if_then_else(1 <= v, A[v - 1] * T.float32(0.01) + X[v] * T.float32(0.5) + X[v] * T.float32(0.25), "
        "T.float32(1))",
        40, false);
}

/* Both operands of a division are written once. */
static void remainders(void **state) {
  (void)state;
  check("T.FloorMod(X[v] + T.float32(3), X[v] * T.float32(0.25) + T.float32(20))", 12, false);
  check("T.FloorMod(X[v] + T.float32(3), X[v] * T.float32(0.25) + T.float32(20))", 12, true);
}

/* A rounded value is computed once too: the function does nothing else. */
static void rounded(void **state) {
  (void)state;
  check("T.round(X[v] * T.float32(0.5)) + X[v] * T.float32(0.25)", STAGES, false);
}

/* The text of what would be too large says so, and is refused by the reader. */
static void text(void **state) {
  (void)state;
  struct tir *ir = chain(plain, STAGES);
  ms_error err = {.message = ""};
  inline_all(ir, STAGES);
  char *printed = tir_print(ir, TIR_NONE, 0);
  assert_non_null(strstr(printed, "<an expression of more than"));
  assert_null(tir_read(printed, strlen(printed), "printed.py", &err));
  free(printed);
  tir_free(ir);
}

/* What both branches of a choice use again and again has no place to be bound, and is refused, not walked for ever. */
static void too_large(void **state) {
  (void)state;
  struct tir *ir = chain("T.if_then_else(v % 3 == 1, A[v - 1] + X[v] * X[v], X[v])", STAGES);
  ms_error err = {.message = ""};
  inline_all(ir, STAGES);
  assert_false(tir_lower(ir, tir_find_func(ir, "main"), NULL, &err));
  assert_int_equal(err.code, MS_TOO_LARGE);
  tir_free(ir);
}

/* Of choices in vectors each branch has a mask of its own, 2^40 of them: the loop is left serial. */
static void choices_of_vectors(void **state) {
  (void)state;
  struct tir *ir = chain("T.Select(X[v] < A[v], X[v] + T.float32(1), X[v] * T.float32(0.5))", 40);
  ms_error err = {.message = ""};
  inline_all(ir, 40);
  vectorize(ir, 40);
  assert_true(tir_lower(ir, tir_find_func(ir, "main"), NULL, &err));
  tir_free(ir);
  check("T.Select(X[v] < A[v], X[v] + T.float32(1), X[v] * T.float32(0.5))", 10, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sixty_stages),   cmocka_unit_test(sixty_stages_of_vectors),

                                     cmocka_unit_test(guarded_stages), cmocka_unit_test(remainders),
                                     cmocka_unit_test(rounded),        cmocka_unit_test(text),
                                     cmocka_unit_test(too_large),      cmocka_unit_test(choices_of_vectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
