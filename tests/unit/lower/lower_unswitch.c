/* Edges of tiles: one test in front of what runs in whole iterations, and masks where it does not hold; a tile stays in
 * registers all the same. */
#include "unit/lowered_text.h"

#define PARAMS "A: T.Buffer((10, 6), \"float32\"), C: T.Buffer((10, 20), \"float32\")"

/* Sums into tiles of 4 rows and 8 columns of C, of 10 rows and 20 columns. */
static struct tir *sums(const char *loop) {
  return read_function(PARAMS, loop,
                       "    for k in range(6):", "        for i in range(4):", "            for j in T.vectorized(8):",
                       "                if p % 3 * 8 + j < 20 and p // 3 * 4 + i < 10:",
                       "                    C[p // 3 * 4 + i, p % 3 * 8 + j] = C[p // 3 * 4 + i, p % 3 * 8 + j] + "
                       "A[p // 3 * 4 + i, k]");
}

static void whole_tiles_run_without_conditions(void **state) {
  (void)state;
  char *text = text_after(sums("for p in T.parallel(9):"), "unswitch");
  assert_int_equal(count_of(text, "if p % 3 <= 1 and p < 6:"), 1);
  assert_int_equal(count_of(text, "else:"), 1);
  assert_int_equal(count_of(text, "p % 3 * 8 + j < 20"), 1);
  assert_int_equal(count_of(text, "for k in range(6)") + count_of(text, "for k, i in T.grid(6, 4)"), 2);
  free(text);
}

/* What the tile's lanes outside hold is nobody's: no mask is on it, and none on what all lanes share. */
static void tiles_at_edges_stay_in_registers(void **state) {
  (void)state;
  char *text = text_after(sums("for p in T.parallel(9):"), "vectorize");
  assert_non_null(strstr(text, "C_register"));
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char *store = strstr(line, "C_register.vstore(");
    if (!store) continue;
    bool fills = strstr(store, "C.vload(");
    assert_int_equal(count_of(store, "predicate="), fills && strstr(store, "predicate=") ? 1 : 0);
    assert_null(strstr(store, "A.vload("));
  }
  free(text);
}

static void a_barrier_stands_under_no_test(void **state) {
  (void)state;
  char *text = text_after(sums("for p in T.thread_binding(9, thread=\"blockIdx.x\"):"), "unswitch");
  assert_int_equal(count_of(text, "p % 3 <= 1"), 0);
  free(text);
}

/* Where no iteration is whole, or all are, there is nothing to ask. */
static void edges_everywhere_get_no_test(void **state) {
  (void)state;
  struct tir *ir = read_function("C: T.Buffer((4, 20), \"float32\")", "for p in range(4):", "    for j in range(32):",
                                 "        if p + j < 20:", "            C[p, p + j] = T.float32(1)");
  char *text = text_after(ir, "unswitch");
  assert_null(strstr(text, "else:"));
  free(text);
}

/* Parts of a tile in registers would lie in memory: such a loop is cut only where a part vanishes. */
static void tiles_are_not_cut(void **state) {
  (void)state;
  char *text = text_after(sums("for p in T.parallel(9):"), "partition");
  assert_null(strstr(text, "for i in range(2, 4)"));
  free(text);
}

/* Tiles under another loop that adds to them are cut from what is left of them: registers hold each between. */
static void tiles_within_blocks_of_a_sum_are_parted(void **state) {
  (void)state;
  struct tir *ir = read_function(PARAMS, "for b in range(2):", "    for p in range(3):", "        for k in range(3):",
                                 "            for i in range(4):", "                if p * 4 + i < 10:",
                                 "                    C[p * 4 + i, 0] = C[p * 4 + i, 0] + A[p * 4 + i, b * 3 + k]");
  char *text = text_after(ir, "promote");
  assert_int_equal(count_of(text, "if "), 0);
  assert_non_null(strstr(text, "for p in range(2)"));
  assert_int_equal(count_of(text, "C_register = T.alloc_buffer"), 2);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_tiles_run_without_conditions),
      cmocka_unit_test(tiles_at_edges_stay_in_registers),
      cmocka_unit_test(a_barrier_stands_under_no_test),
      cmocka_unit_test(edges_everywhere_get_no_test),
      cmocka_unit_test(tiles_are_not_cut),
      cmocka_unit_test(tiles_within_blocks_of_a_sum_are_parted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
