/* The unrolling pass: what a pragma's steps allow is written out, and a branch inside a value weighs more. */
#include "script.h"

/* Stores of the function after the pass, on vectors of 256 bits. */
static uint32_t stores_in(struct tir *ir) {
  char *text = NULL;
  size_t length = 0;
  struct tir_lower_options options = {
      .vector_bits = 256, .dump_after = "unroll", .dump = open_memstream(&text, &length)};
  assert_accepted(tir_lower(ir, tir_find_func(ir, "main"), &options, err));
  fclose(options.dump);
  uint32_t count = 0;
  for (const char *at = text; (at = strstr(at, "B[")); at += 2) count++;
  free(text);
  tir_free(ir);
  return count;
}

static void write_loop(char *loop, size_t size, const char *steps) {
  snprintf(loop, size, "for i in T.serial(16, annotations={\"pragma_auto_unroll_max_step\": %s, %s}):", steps,
           "\"pragma_unroll_explicit\": 1");
}

static uint32_t stores_after(const char *value, const char *steps) {
  char loop[200], store[200];
  write_loop(loop, sizeof loop, steps);
  snprintf(store, sizeof store, "        B[vi] = %s", value);
  return stores_in(read_function("A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"float32\")", loop,
                                 "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(16, i)", store));
}

/* Of vectors of 64 numbers, eight registers each. */
static uint32_t vector_stores_after(const char *steps) {
  char loop[200];
  write_loop(loop, sizeof loop, steps);
  return stores_in(read_function("A: T.Buffer((16, 64), \"float32\"), B: T.Buffer((16, 64), \"float32\")", loop,
                                 "    for j in T.vectorized(64):", "        with T.sblock(\"B\"):",
                                 "            vi, vj = T.axis.remap(\"SS\", [i, j])",
                                 "            B[vi, vj] = A[vi, vj] + T.float32(1)"));
}

static void writes_out_what_the_steps_allow(void **state) {
  (void)state;
  assert_int_equal(stores_after("A[vi] + T.float32(1)", "16"), 16);
  assert_int_equal(stores_after("A[vi] + T.float32(1)", "15"), 1);
}

static void a_branch_weighs_more(void **state) {
  (void)state;
  assert_int_equal(stores_after("T.if_then_else(vi % 2 == 0, A[vi], T.float32(0))", "64"), 1);
  assert_int_equal(stores_after("T.if_then_else(vi % 2 == 0, A[vi], T.float32(0))", "512"), 16);
}

static void vectors_weigh_by_their_registers(void **state) {
  (void)state;
  assert_int_equal(vector_stores_after("127"), 1);
  assert_int_equal(vector_stores_after("128"), 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_out_what_the_steps_allow),
      cmocka_unit_test(a_branch_weighs_more),
      cmocka_unit_test(vectors_weigh_by_their_registers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
