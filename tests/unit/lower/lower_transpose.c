/* The pass that does transpositions square by square: what it takes, what it leaves over, what it refuses. Each
 * function computes the same afterwards. */
#include "unit/lowered_text.h"

static char *after(struct tir *ir, unsigned instructions) {
  return judged_text_after(
      ir, (struct tir_lower_options){.vector_bits = 256, .instructions = instructions, .dump_after = "transpose"});
}

enum { BY_8 = 1 << TIR_TRANSPOSE_8X32, BY_4 = 1 << TIR_TRANSPOSE_4X64 };

static uint32_t squares_in(struct tir *ir, unsigned instructions, const char *name) {
  char *text = after(ir, instructions);
  uint32_t count = count_of(text, name);
  free(text);
  return count;
}

/* A copy of `rows` x `columns` elements, its loops in this order, the inner one of this kind. */
static struct tir *copied(const char *type, int rows, int columns, bool rows_first, const char *inner,
                          const char *store) {
  char parameters[160], outer[60], second[80], block[60], bind[120];
  snprintf(parameters, sizeof parameters, "A: T.Buffer((%d, %d), \"%s\"), B: T.Buffer((%d, %d), \"%s\")", rows, columns,
           type, columns, rows, type);
  snprintf(outer, sizeof outer, "for %s in range(%d):", rows_first ? "i" : "k", rows_first ? rows : columns);
  snprintf(second, sizeof second, "    for %s in T.%s(%d):", rows_first ? "k" : "i", inner,
           rows_first ? columns : rows);
  snprintf(block, sizeof block, "        with T.sblock(\"B\"):");
  snprintf(bind, sizeof bind, "            vi, vk = T.axis.remap(\"SS\", [i, k])");
  return read_function(parameters, outer, second, block, bind, store);
}
#define ACROSS "            B[vk, vi] = A[vi, vk]"

static void squares_are_taken(void **state) {
  (void)state;
  for (int first = 0; first < 2; first++) {
    assert_int_equal(squares_in(copied("float32", 16, 24, first, "serial", ACROSS), BY_8, "transpose_8x32"), 1);
    assert_int_equal(squares_in(copied("int32", 16, 24, first, "vectorized", ACROSS), BY_8, "transpose_8x32"), 1);
    assert_int_equal(squares_in(copied("float64", 16, 12, first, "unroll", ACROSS), BY_4, "transpose_4x64"), 1);
  }
}

/* What squares leave over is copied element by element: rows below them, columns beside them. */
static void the_rest_is_copied(void **state) {
  (void)state;
  char *text = after(copied("float32", 19, 27, true, "serial", ACROSS), BY_8);
  assert_int_equal(count_of(text, "transpose_8x32"), 1);
  assert_int_equal(count_of(text, "T.grid(2, 3)"), 1);
  assert_int_equal(count_of(text, "T.grid(8, 8)"), 1);
  assert_int_equal(count_of(text, "range(24, 27)"), 1);
  assert_int_equal(count_of(text, "range(16, 19)"), 1);
  free(text);
  assert_int_equal(squares_in(copied("float32", 7, 64, true, "serial", ACROSS), BY_8, "transpose"), 0);
  assert_int_equal(squares_in(copied("float32", 64, 7, true, "serial", ACROSS), BY_8, "transpose"), 0);
}

static void a_target_has_it_for_its_elements(void **state) {
  (void)state;
  assert_int_equal(squares_in(copied("float32", 16, 16, true, "serial", ACROSS), 0, "transpose"), 0);
  assert_int_equal(squares_in(copied("float64", 16, 16, true, "serial", ACROSS), BY_8, "transpose"), 0);
  assert_int_equal(squares_in(copied("float16", 16, 16, true, "serial", ACROSS), BY_8 | BY_4, "transpose"), 0);
}

static void what_is_no_transposition_stays(void **state) {
  (void)state;
  static const char *const stores[] = {
      "            B[vk, vi] = A[vi, vk] * T.float32(2)",                        /* more than a copy */
      "            B[vk, vi] = T.if_then_else(vi < 5, A[vi, vk], T.float32(0))", /* a choice */
      "            B[vk, vi] = A[vi, (vk * 3) % 24]",                            /* no plain step */
      "            B[vk, 15 - vi] = A[vi, vk]",                                  /* backwards */
      "            B[vk, vi] = A[vk % 16, vi]",                                  /* a remainder */
  };
  for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
    assert_int_equal(squares_in(copied("float32", 16, 24, true, "serial", stores[i]), BY_8, "transpose"), 0);
}

/* In one dimension of memory, along both loops: elements are written again and again, in an order that counts. */
static void a_diagonal_stays(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((8, 40), \"float32\"), B: T.Buffer((2, 16), \"float32\")", "for i in range(8):",
                    "    for k in range(8):", "        with T.sblock(\"B\"):", "            vi = T.axis.opaque(8, i)",
                    "            vk = T.axis.opaque(8, k)", "            T.reads(A[vi, vk])",
                    "            T.writes(B[0, vi + vk])", "            B[0, vi + vk] = A[vi, vk]");
  assert_int_equal(squares_in(ir, BY_8, "transpose"), 0);
}

/* Loops around the two may move more; the two need not begin at 0. */
static void loops_around_are_kept(void **state) {
  (void)state;
  struct tir *ir = read_function("A: T.Buffer((3, 20, 30), \"float32\"), B: T.Buffer((30, 3, 20), \"float32\")",
                                 "for n, i, k in T.grid(3, 16, 24):", "    with T.sblock(\"B\"):",
                                 "        vn = T.axis.spatial(3, n)", "        vi = T.axis.spatial(20, i + 2)",
                                 "        vk = T.axis.spatial(30, k + 5)", "        B[vk, vn, vi] = A[vn, vi, vk]");
  assert_int_equal(squares_in(ir, BY_8, "transpose_8x32"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(squares_are_taken),
                                     cmocka_unit_test(the_rest_is_copied),
                                     cmocka_unit_test(a_target_has_it_for_its_elements),
                                     cmocka_unit_test(what_is_no_transposition_stays),
                                     cmocka_unit_test(a_diagonal_stays),
                                     cmocka_unit_test(loops_around_are_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
