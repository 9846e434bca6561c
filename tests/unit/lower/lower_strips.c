/* What comes of vectorized loops before they become vectors: strips that fill a register, parts without conditions. */
#include "unit/lowered_text.h"

static char *copy_after(const char *pass, const char *type, int extent) {
  char params[120], loop[60], axis[60];
  snprintf(params, sizeof params, "A: T.Buffer((%d,), \"%s\"), B: T.Buffer((%d,), \"%s\")", extent, type, extent, type);
  snprintf(loop, sizeof loop, "for i in T.vectorized(%d):", extent);
  snprintf(axis, sizeof axis, "        vi = T.axis.spatial(%d, i)", extent);
  return text_after(read_function(params, loop, "    with T.sblock(\"B\"):", axis, "        B[vi] = A[vi]"), pass);
}

static void expect_in(char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no `%s` in\n%s", part, text);
  free(text);
}

static void strips_fill_a_register(void **state) {
  (void)state;
  expect_in(copy_after("strips", "float32", 48), "for i in T.unroll(6):\n            for i_1 in T.vectorized(8):");
  expect_in(copy_after("strips", "int8", 64), "for i in T.unroll(2):\n            for i_1 in T.vectorized(32):");
}

static void what_does_not_divide_stays(void **state) {
  (void)state;
  expect_in(copy_after("strips", "float32", 20), "for i in T.vectorized(20):");
  expect_in(copy_after("strips", "float32", 8), "for i in T.vectorized(8):");
}

/* Beside whole registers stands one loop of what is left; what is no wider than a register stays. */
static void tails_are_loops_of_their_own(void **state) {
  (void)state;
  expect_in(copy_after("tails", "float32", 12),
            "for i in T.vectorized(8):\n            B[i] = A[i]\n        for i in T.vectorized(8, 12):");
  expect_in(copy_after("tails", "float32", 49), "for i in T.unroll(6):\n            for i_1 in T.vectorized(8):");
  expect_in(copy_after("tails", "float32", 49),
            "B[i * 8 + i_1] = A[i * 8 + i_1]\n        for i in T.vectorized(48, 49):");
  expect_in(copy_after("tails", "int8", 40), "for i in T.vectorized(32):");
  expect_in(copy_after("tails", "float32", 7), "for i in T.vectorized(7):");
}

/* A tile in registers is one array, of which strips and tail touch their own columns. */
static void tails_of_a_tile_in_registers(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((4, 16), \"float32\"), B: T.Buffer((16, 12), \"float32\"), C: T.Buffer((4, 12), \"float32\")",
      "for k, i in T.grid(16, 4):", "    for j in T.vectorized(12):", "        with T.sblock(\"C\"):",
      "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
      "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
  char *text = text_after(ir, "tails");
  assert_non_null(strstr(
      text, "C_register[i, j] = C_register[i, j] + A[i, k] * B[k, j]\n                for j in T.vectorized(8, 12):"));
  assert_null(strstr(text, "T.vectorized(12)"));
  free(text);
}

/* The parts of a vectorized loop that a constant divides have no condition left. */
static void a_constant_edge_leaves_no_condition(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((16,), \"float32\"), B: T.Buffer((48,), \"float32\")",
                    "for i in T.vectorized(48):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(48, i)",
                    "        B[vi] = T.if_then_else(vi < 16, A[vi], T.float32(0))");
  char *text = text_after(ir, "partition");
  assert_null(strstr(text, "if_then_else"));
  assert_non_null(strstr(text, "T.vectorized(16)"));
  expect_in(text, "T.vectorized(16, 48)");
}

/* Conditions that hold nowhere, or everywhere, in a part go from values too. */
static void certain_choices_are_decided(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8, 8), \"float32\"), B: T.Buffer((10, 8), \"float32\")",
      "for i, j in T.grid(10, 8):", "    with T.sblock(\"B\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        B[vi, vj] = T.if_then_else(1 <= vi and vi < 9, A[vi - 1, vj], T.float32(0))");
  char *text = text_after(ir, "partition");
  assert_null(strstr(text, "if_then_else"));
  expect_in(text, "for i in range(1, 9):");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strips_fill_a_register),
      cmocka_unit_test(what_does_not_divide_stays),
      cmocka_unit_test(tails_are_loops_of_their_own),
      cmocka_unit_test(tails_of_a_tile_in_registers),
      cmocka_unit_test(a_constant_edge_leaves_no_condition),
      cmocka_unit_test(certain_choices_are_decided),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
