/* The promoting pass: a tile goes to registers only where its elements are known to differ. */
#include "unit/lowered_text.h"

/* Whether a sum into C[row, column] over `k`, and inside it over `f` of 12 values, is kept in registers; b is
 * around. */
static bool promotes(const char *row, const char *column) {
  char store[200];
  snprintf(store, sizeof store, "        C[%s, %s] = C[%s, %s] + A[k, f]", row, column, row, column);
  struct tir *ir = read_function("A: T.Buffer((3, 12), \"float32\"), C: T.Buffer((16, 64), \"float32\")",
                                 "for b in range(2):", "    for k, f in T.grid(3, 12):", store);
  char *text = text_after(ir, "promote");
  bool found = strstr(text, "register");
  free(text);
  return found;
}

static void keeps_elements_known_to_differ(void **state) {
  (void)state;
  assert_true(promotes("0", "f"));
  assert_true(promotes("1", "f * 5 + 2"));
  assert_true(promotes("f", "f"));
  assert_true(promotes("f // 3", "f % 3"));
}

static void leaves_elements_met_twice(void **state) {
  (void)state;
  assert_false(promotes("0", "f // 3"));
  assert_false(promotes("f // 6", "f % 3"));
  assert_false(promotes("0", "f % 4"));
}

/* Rows of a tile that go on from one line to the next, where they begin anywhere in it. */
static void keeps_rows_of_several_lines(void **state) {
  (void)state;
  assert_true(promotes("(b * 10 + f) // 7", "(b * 10 + f) % 7"));
  assert_true(promotes("(b * 10 + f) // 7 * 2 + 1", "(b * 10 + f) % 7 * 3"));
  assert_false(promotes("(b * 10 + f) // 7", "(b * 10 + f) % 6"));
  assert_false(promotes("(b * 10 + f) // 7 + (b * 10 + f) % 7", "0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_elements_known_to_differ),
      cmocka_unit_test(leaves_elements_met_twice),
      cmocka_unit_test(keeps_rows_of_several_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
