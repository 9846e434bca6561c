/* The loops a block may be computed at, as sampling collects them. */
#include "unit/script.h"

enum { MOST = 16 };

/* The locations are the loops around `of` with these numbers, and the module is as it was. */
static void expect(struct tir *ir, const char *block, const char *of, const uint32_t *numbers, uint32_t count) {
  tir_loop out[MOST];
  char *before = tir_print(ir, TIR_NONE, 0);
  uint32_t found = tir_compute_locations(ir, block_named(ir, block), out, MOST);
  assert_int_equal(found, count);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(out[i], loop_of(ir, of, numbers[i]));
  char *after = tir_print(ir, TIR_NONE, 0);
  assert_string_equal(after, before);
  free(after);
  free(before);
}

#define expect_loops(ir, block, of, ...)                                                                               \
  expect(ir, block, of, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define expect_none(ir, block) expect(ir, block, NULL, NULL, 0)

static bool split(struct tir *ir, const char *block, uint32_t loop, int64_t factor, ms_error *err) {
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, factor)};
  return tir_split(ir, loop_of(ir, block, loop), factors, 2, true, false, out, err);
}

static struct tir *padded_convolution(void) {
  return read_function(
      "X: T.Buffer((1, 16, 8), \"float32\"), W: T.Buffer((3, 8, 4), \"float32\"), Y: T.Buffer((1, 16, 4), \"float32\")",
      "pad = T.sblock_alloc_buffer((1, 18, 8))", "for n, w, c in T.grid(1, 18, 8):", "    with T.sblock(\"pad\"):",
      "        v_n, v_w, v_c = T.axis.remap(\"SSS\", [n, w, c])", "        T.reads(X[v_n, v_w - 1, v_c])",
      "        T.writes(pad[v_n, v_w, v_c])",
      "        pad[v_n, v_w, v_c] = T.if_then_else(1 <= v_w and v_w < 17, X[v_n, v_w - 1, v_c], T.float32(0.0))",
      "for n, w, o, r, c in T.grid(1, 16, 4, 3, 8):", "    with T.sblock(\"Y\"):",
      "        v_n, v_w, v_o, v_r, v_c = T.axis.remap(\"SSSRR\", [n, w, o, r, c])",
      "        T.reads(pad[v_n, v_w + v_r, v_c], W[v_r, v_c, v_o])", "        T.writes(Y[v_n, v_w, v_o])",
      "        with T.init():", "            Y[v_n, v_w, v_o] = T.float32(0.0)",
      "        Y[v_n, v_w, v_o] = Y[v_n, v_w, v_o] + pad[v_n, v_w + v_r, v_c] * W[v_r, v_c, v_o]");
}

/* Unit loops are passed over; trailing reductions are not offered. */
static void offers_data_parallel_loops(void **state) {
  (void)state;
  struct tir *ir = padded_convolution();
  expect_loops(ir, "pad", "Y", 1, 2);
  tir_free(ir);
}

/* A reduction is offered where a data-parallel loop is inside it; no data-parallel loop after a reduction is. */
static void offers_reductions_between(void **state) {
  (void)state;
  struct tir *ir = padded_convolution();
  assert_accepted(split(ir, "Y", 1, 4, err));
  tir_loop order[] = {loop_of(ir, "Y", 1), loop_of(ir, "Y", 4), loop_of(ir, "Y", 2), loop_of(ir, "Y", 3)};
  assert_accepted(tir_reorder(ir, order, 4, err)); /* n, w_0, r, w_1, o, c */
  expect_loops(ir, "pad", "Y", 1, 2);
  tir_free(ir);
}

static void has_none_without_consumers(void **state) {
  (void)state;
  struct tir *ir = padded_convolution();
  expect_none(ir, "Y");
  tir_free(ir);
}

/* Around all consumers, and not around the block itself. */
static void stays_around_all_consumers(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8, 4), \"float32\"), C: T.Buffer((8, 4), \"float32\"), D: T.Buffer((8, 4), \"float32\")",
      "B = T.sblock_alloc_buffer((8, 4))",
      "for i, j in T.grid(8, 4):", "    with T.sblock(\"B\"):", "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
      "        T.reads(A[v_i, v_j])", "        T.writes(B[v_i, v_j])", "        B[v_i, v_j] = A[v_i, v_j]",
      "for i in range(8):", "    for j in range(4):", "        with T.sblock(\"C\"):",
      "            v_i, v_j = T.axis.remap(\"SS\", [i, j])", "            T.reads(B[v_i, v_j])",
      "            T.writes(C[v_i, v_j])", "            C[v_i, v_j] = B[v_i, v_j]",
      "    for j in range(4):", "        with T.sblock(\"D\"):", "            v_i, v_j = T.axis.remap(\"SS\", [i, j])",
      "            T.reads(B[v_i, v_j])", "            T.writes(D[v_i, v_j])", "            D[v_i, v_j] = B[v_i, v_j]");
  expect_loops(ir, "B", "C", 0);
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 0), false, -1, err));
  expect_none(ir, "B");
  tir_free(ir);
}

/* Where the region does not follow from the loops, each place is tried: rows of four elements at once. */
static void tries_what_is_not_plain(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((32,), \"float32\"), C: T.Buffer((32,), \"float32\")", "B = T.sblock_alloc_buffer((32,))",
      "for i in range(8):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(8, i)",
      "        T.reads(A[v * 4:v * 4 + 4])", "        T.writes(B[v * 4:v * 4 + 4])",
      "        for q in range(4):", "            B[v * 4 + q] = A[v * 4 + q]",
      "for i, j in T.grid(4, 8):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(32, i * 8 + j)",
      "        T.reads(B[v])", "        T.writes(C[v])", "        C[v] = B[v]");
  expect_loops(ir, "B", "C", 0, 1);
  tir_free(ir);
}

/* Both in the module as read, by one function or the other: equal modules, equal refusals. */
static void expect_alike(uint32_t loop) {
  ms_error errs[2] = {{0}, {0}};
  char *texts[2];
  for (int known = 0; known < 2; known++) {
    struct tir *ir = padded_convolution();
    tir_block block = block_named(ir, "pad");
    assert_true(tir_compute_locations(ir, block, NULL, 0) > 0);
    bool (*move)(struct tir *, tir_block, tir_loop, bool, int, ms_error *) =
        known ? tir_compute_located : tir_compute_at;
    assert_int_equal(
        move(ir, block, loop ? loop_of(ir, "Y", loop - 1) : loop_of(ir, "pad", 0), false, -1, &errs[known]), loop > 0);
    texts[known] = tir_print(ir, TIR_NONE, 0);
    tir_free(ir);
  }
  assert_int_equal(errs[0].code, errs[1].code);
  assert_string_equal(texts[0], texts[1]);
  free(texts[0]);
  free(texts[1]);
}

/* A block for which locations were found moves as any: to each of them, not under its own loop. */
static void moves_what_is_located(void **state) {
  (void)state;
  for (uint32_t loop = 0; loop <= 3; loop++) expect_alike(loop);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(offers_data_parallel_loops), cmocka_unit_test(offers_reductions_between),
      cmocka_unit_test(has_none_without_consumers), cmocka_unit_test(stays_around_all_consumers),
      cmocka_unit_test(tries_what_is_not_plain),    cmocka_unit_test(moves_what_is_located),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
