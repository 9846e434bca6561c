/* A parallel loop states what the function takes that it becomes: all that it uses of what is outside, and nothing
 * else. The interpreter hides what is not stated, so that a capture too few is an error wherever lowered functions
 * run. */
#include "unit/script.h"

static const char source[] = "@T.prim_func(s_tir=True)\n"
                             "def main(A: T.Buffer((12,), \"float32\"), n: T.int32, unused: T.int32,\n"
                             "         B: T.Buffer((12,), \"float32\"), C: T.Buffer((12,), \"float32\")):\n"
                             "    once = T.alloc_buffer((12,))\n"
                             "    for i in range(12):\n"
                             "        once[i] = A[i] * T.float32(2)\n"
                             "    for i in T.parallel(12 + 0 * unused):\n"
                             "        own = T.alloc_buffer((2,))\n"
                             "        for j in T.parallel(2):\n"
                             "            own[j] = once[i]\n"
                             "        if i < n:\n"
                             "            C[i] = own[0] + own[1]\n";

static struct tir *read_text(const char *text) {
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, strlen(text), "outline.py", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  return ir;
}

static char *lowered_text(const char *text, uint32_t threads) {
  struct tir *ir = read_text(text);
  const struct tir_lower_options options = {.threads = threads, .stack_bytes = 1, .verify = true};
  assert_accepted(tir_lower(ir, tir_find_func(ir, "main"), &options, err));
  char *lowered = tir_print(ir, TIR_NONE, TIR_PRINT_FUNCTION);
  tir_free(ir);
  return lowered;
}

static bool runs(const char *text, ms_error *err) {
  struct tir *ir = read_text(text);
  tir_func f = tir_find_func(ir, "main");
  const struct tir_run_options real = {.lowered = true};
  float a[12] = {1, 2, 3}, b[12] = {0}, c[12] = {0};
  struct tir_arg args[] = {{.data = a, .bytes = sizeof a},
                           {.scalar = 2},
                           {.scalar = 5},
                           {.data = b, .bytes = sizeof b},
                           {.data = c, .bytes = sizeof c}};
  bool ok = tir_run(ir, f, args, 5, &real, err);
  if (ok) assert_true(c[0] == 4 && c[1] == 8 && c[2] == 0);
  tir_free(ir);
  return ok;
}

static void expect_count(const char *text, const char *what, int count) {
  int found = 0;
  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) found++;
  if (found != count) fail_msg("\"%s\" is found %d times in\n%s", what, found, text);
}

static void what_is_used_is_stated(void **state) {
  (void)state;
  char *stack = lowered_text(source, 0), *placed = lowered_text(source, 3), *again = lowered_text(stack, 0);
  ms_error err = {.message = ""};
  expect_count(stack, "T.attr(0, \"outlined\", T.captures(C.data, once.data, n)):", 1);
  expect_count(placed, "T.attr(0, \"outlined\", T.captures(C.data, once.data, workspace.data, n)):", 1);
  expect_count(again, "outlined", 1);
  if (!runs(stack, &err) || !runs(placed, &err) || !runs(again, &err)) fail_msg("%s", err.message);
  free(stack), free(placed), free(again);
}

/* The text without one of the captures. */
static void what_is_not_stated_is_hidden(void **state) {
  (void)state;
  static const char *const captured[] = {"C.data, ", "once.data, ", ", n)"};
  for (int i = 0; i < 3; i++) {
    char *text = lowered_text(source, 0), *at = strstr(strstr(text, "T.captures("), captured[i]);
    ms_error err = {.message = ""};
    assert_non_null(at);
    size_t length = strlen(captured[i]) - (i == 2); /* the parenthesis stays */
    memmove(at, at + length, strlen(at + length) + 1);
    assert_false(runs(text, &err));
    assert_int_equal(err.code, MS_RUN_NOT_IN_SCOPE);
    free(text);
  }
}

/* Three nests that are the same, in a function that is lowered, read and lowered again. */
static void nests_are_found_again(void **state) {
  (void)state;
  char source[2000], *at = source;
  static const char names[] = "ABCD", *const types = "T.Buffer((4, 200), \"float32\")";
  at += sprintf(at, "@T.prim_func(s_tir=True)\ndef main(A: %s, D: %s):\n", types, types);
  at += sprintf(at, "    B = T.alloc_buffer((4, 200))\n    C = T.alloc_buffer((4, 200))\n");
  for (int i = 0; i < 3; i++)
    at += sprintf(
        at, "    for k in range(4):\n        for j in T.unroll(200):\n            %c[k, j] = %c[k, j] * %c[k, 0]\n",
        names[i + 1], names[i], names[i]);
  char *once = lowered_text(source, 0), *again = lowered_text(once, 0);
  expect_count(once, "T.attr(1, \"outlined\", T.captures(", 3);
  expect_count(once, "T.captures(B.data, C.data)):", 1);
  assert_string_equal(once, again);
  free(once), free(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_used_is_stated),
                                     cmocka_unit_test(what_is_not_stated_is_hidden),
                                     cmocka_unit_test(nests_are_found_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
