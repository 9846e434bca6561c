/* The unrolling pass: loops within a pragma's steps are unrolled, and a branch inside a value weighs more. */
#include "unit/lowered_text.h"

/* Stores of the function after the pass, on vectors of 256 bits. */
static uint32_t stores_in(struct tir *ir) {
  char *text = text_after(ir, "unroll");
  uint32_t count = count_of(text, "B[");
  free(text);
  return count;
}

static void write_loop(char *loop, size_t size, int extent, const char *steps) {
  snprintf(loop, size, "for i in T.serial(%d, annotations={\"pragma_auto_unroll_max_step\": %s, %s}):", extent, steps,
           "\"pragma_unroll_explicit\": 1");
}

/* Of a loop of 64 iterations. */
static uint32_t stores_after(const char *value, const char *steps) {
  char loop[200], store[200];
  write_loop(loop, sizeof loop, 64, steps);
  snprintf(store, sizeof store, "        B[vi] = %s", value);
  return stores_in(read_function("A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")", loop,
                                 "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(64, i)", store));
}

/* Of vectors of 64 numbers, eight registers each. */
static uint32_t vector_stores_after(const char *steps) {
  char loop[200];
  write_loop(loop, sizeof loop, 16, steps);
  return stores_in(read_function("A: T.Buffer((16, 64), \"float32\"), B: T.Buffer((16, 64), \"float32\")", loop,
                                 "    for j in T.vectorized(64):", "        with T.sblock(\"B\"):",
                                 "            vi, vj = T.axis.remap(\"SS\", [i, j])",
                                 "            B[vi, vj] = A[vi, vj] + T.float32(1)"));
}

static void writes_out_what_the_steps_allow(void **state) {
  (void)state;
  assert_int_equal(stores_after("A[vi // 2] + T.float32(1)", "64"), 64);
  assert_int_equal(stores_after("A[vi // 2] + T.float32(1)", "63"), 1);
}

static void a_branch_weighs_more(void **state) {
  (void)state;
  assert_int_equal(stores_after("T.if_then_else(vi % 2 == 0, A[vi // 2], T.float32(0))", "575"), 1);
  assert_int_equal(stores_after("T.if_then_else(vi % 2 == 0, A[vi // 2], T.float32(0))", "576"), 64);
}

/* Of a loop that stays, the body is repeated: sixteen stores an iteration. */
static void vectors_weigh_by_their_registers(void **state) {
  (void)state;
  assert_int_equal(vector_stores_after("127"), 16);
  assert_int_equal(vector_stores_after("128"), 128);
}

/* The compiler makes vectors of it. */
static void what_lies_side_by_side_stays_a_loop(void **state) {
  (void)state;
  assert_int_equal(stores_after("A[vi] + T.float32(1)", "512"), 1);
}

static void few_steps_need_no_pragma(void **state) {
  (void)state;
  const char *params = "A: T.Buffer((16,), \"float32\"), B: T.Buffer((32,), \"float32\")";
  assert_int_equal(stores_in(read_function(params, "for i in range(32):", "    with T.sblock(\"B\"):",
                                           "        vi = T.axis.spatial(32, i)", "        B[vi] = A[vi // 2]")),
                   32);
}

/* Two loops that together are too many: the one that runs more often is unrolled, though it comes second. */
static void most_of_the_work_is_written_out(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((300,), \"float32\"), C: T.Buffer((300,), \"float32\"), B: T.Buffer((9, 300), \"float32\")",
      "for i in T.serial(300, annotations={\"pragma_auto_unroll_max_step\": 512}):", "    with T.sblock(\"C\"):",
      "        vi = T.axis.spatial(300, i)", "        C[vi] = A[vi // 2]",
      "for o in T.serial(9, annotations={\"pragma_auto_unroll_max_step\": 512}):", "    for i in range(300):",
      "        with T.sblock(\"B\"):", "            vo, vi = T.axis.remap(\"SS\", [o, i])",
      "            B[vo, vi] = A[vi // 2]");
  assert_int_equal(stores_in(ir), 300);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_out_what_the_steps_allow),  cmocka_unit_test(a_branch_weighs_more),
      cmocka_unit_test(vectors_weigh_by_their_registers), cmocka_unit_test(what_lies_side_by_side_stays_a_loop),
      cmocka_unit_test(few_steps_need_no_pragma),         cmocka_unit_test(most_of_the_work_is_written_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
