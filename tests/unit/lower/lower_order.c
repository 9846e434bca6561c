/* The pass that gives parallel loops an order where their iterations write the same elements. */
#include "unit/lowered_text.h"

/* Parallel loops that are left after the pass. */
static uint32_t parallel_loops(struct tir *ir) {
  char *text = text_after(ir, "order");
  uint32_t count = count_of(text, "T.parallel(");
  free(text);
  return count;
}

static void iterations_of_their_own_are_parallel(void **state) {
  (void)state;
  assert_int_equal(
      parallel_loops(read_function("A: T.Buffer((18,), \"float32\"), B: T.Buffer((18,), \"float32\")",
                                   "for i in T.parallel(4):", "    for j in T.parallel(5):",
                                   "        with T.sblock(\"B\"):", "            v = T.axis.spatial(18, i * 5 + j)",
                                   "            T.where(i * 5 + j < 18)", "            B[v] = A[v]")),
      2);
}

static void parts_of_a_loop_are_put_together(void **state) {
  (void)state;
  assert_int_equal(
      parallel_loops(read_function(
          "A: T.Buffer((18, 10), \"float32\"), B: T.Buffer((5, 4, 10), \"float32\")", "for f in T.parallel(54):",
          "    for j in range(4):", "        with T.sblock(\"B\"):", "            vi = T.axis.spatial(18, f // 3)",
          "            vj = T.axis.spatial(10, f % 3 * 4 + j)", "            T.where(f % 3 * 4 + j < 10)",
          "            B[vi // 4, vi % 4, vj] = A[vi, vj]")),
      1);
}

/* A parallel loop over tiles of 4 elements that begin at multiples of `step`. */
static struct tir *tiles(const char *step) {
  char at[80], store[80];
  snprintf(at, sizeof at, "        T.writes(B[vi * %s:vi * %s + 4])", step, step);
  snprintf(store, sizeof store, "            B[vi * %s + j] = A[vi * %s + j]", step, step);
  return read_function("A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"float32\")",
                       "for i in T.parallel(4):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(4, i)",
                       "        T.reads(A[0:16])", at, "        for j in range(4):", store);
}

static void tiles_may_overlap(void **state) {
  (void)state;
  assert_int_equal(parallel_loops(tiles("4")), 1);
  assert_int_equal(parallel_loops(tiles("3")), 0);
}

static void keep(void *kept, const char *note) { strcat(strcat((char *)kept, note), "\n"); }

/* Who asked for a loop that runs in order is told so; nothing is said of one that is parallel. */
static void a_loop_that_is_not_parallel_is_told(void **state) {
  (void)state;
  for (int overlaps = 0; overlaps < 2; overlaps++) {
    char notes[1000] = "";
    struct tir_lower_options options = {.noted = keep, .data = notes};
    struct tir *ir = tiles(overlaps ? "3" : "4");
    assert_accepted(tir_lower(ir, tir_find_func(ir, "main"), &options, err));
    assert_string_equal(notes, overlaps ? "loop i is not parallel: an iteration touches what another writes, and they "
                                          "run in order\n"
                                        : "");
    tir_free(ir);
  }
}

/* What iterations write into a buffer of their own, or one after the loop reads. */
static struct tir *repeated(const char *buffer, const char *reader) {
  return read_function("A: T.Buffer((4,), \"float32\"), C: T.Buffer((16, 4), \"float32\")", buffer,
                       "for i in T.parallel(16):", "    for j in range(4):", "        with T.sblock(\"B\"):",
                       "            vj = T.axis.spatial(4, j)", "            B[vj] = A[vj]", reader,
                       "    for j in range(4):", "        with T.sblock(\"C\"):",
                       "            vi, vj = T.axis.remap(\"SS\", [i, j])", "            C[vi, vj] = B[vj]");
}

static void iterations_repeat_what_is_theirs(void **state) {
  (void)state;
  const char *local = "B = T.sblock_alloc_buffer((4,))";
  assert_int_equal(parallel_loops(repeated(local, "    # in the loop")), 1);
  assert_int_equal(parallel_loops(repeated(local, "for i in range(16):")), 0);
}

static void data_tells_where_to_write(void **state) {
  (void)state;
  assert_int_equal(parallel_loops(read_function(
                       "I: T.Buffer((16,), \"int32\"), B: T.Buffer((16,), \"float32\")",
                       "for i in T.parallel(16):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(16, i)",
                       "        T.reads(I[vi])", "        T.writes(B[0:16])", "        B[I[vi]] = T.float32(1)")),
                   1);
}

/* The two parts of a partitioned loop, in blocks that declare nothing, store to four elements from `at` on. */
static struct tir *partitioned(const char *at) {
  char first[80], second[80];
  snprintf(first, sizeof first, "                    v = T.axis.spatial(16, %s + j)", at);
  snprintf(second, sizeof second, "            v = T.axis.spatial(16, %s + 3)", at);
  return read_function("A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"float32\")",
                       "for i in T.parallel(4):", "    with T.sblock(\"B_common\"):", "        T.reads()",
                       "        T.writes()", "        with T.sblock(\"B_partition\"):", "            T.reads()",
                       "            T.writes()",
                       "            for j in range(3):", "                with T.sblock(\"B0\"):", first,
                       "                    T.writes(B[0:16])", "                    B[v] = A[v]",
                       "        with T.sblock(\"B1\"):", second, "            B[v] = A[v]");
}

static void parts_that_declare_nothing_are_found(void **state) {
  (void)state;
  assert_int_equal(parallel_loops(partitioned("i * 4")), 1);
  assert_int_equal(parallel_loops(partitioned("i * 2")), 0);
  assert_int_equal(parallel_loops(partitioned("0")), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(iterations_of_their_own_are_parallel),
      cmocka_unit_test(parts_of_a_loop_are_put_together),
      cmocka_unit_test(tiles_may_overlap),
      cmocka_unit_test(a_loop_that_is_not_parallel_is_told),
      cmocka_unit_test(iterations_repeat_what_is_theirs),
      cmocka_unit_test(data_tells_where_to_write),
      cmocka_unit_test(parts_that_declare_nothing_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
