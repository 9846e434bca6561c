/* Split: factors, predicates, names, refusals. */
#include "unit/script.h"

#define AB   "A: T.Buffer((100,), \"float32\"), B: T.Buffer((100,), \"float32\")"
#define COPY "        T.reads(A[v])", "        T.writes(B[v])", "        B[v] = A[v]"

static struct tir *copy_of_100(void) {
  return read_function(AB, "for i in range(100):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(100, i)",
                       COPY);
}

static tir_expr number(struct tir *ir, int64_t value) { return tir_int(ir, TIR_T_I32, value); }

static void splits_evenly(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop out[3];
  tir_expr factors[] = {number(ir, 2), TIR_NONE, number(ir, 10)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 3, true, false, out, err));
  assert_int_equal(out[0], loop_of(ir, "B", 0));
  assert_int_equal(out[2], loop_of(ir, "B", 2));
  assert_function(ir, AB, "for i_0, i_1, i_2 in T.grid(2, 5, 10):", "    with T.sblock(\"B\"):",
                  "        v = T.axis.spatial(100, i_0 * 50 + i_1 * 10 + i_2)", COPY);
}

static void guards_what_exceeds(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 16)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, false, out, err));
  tir_expr again[] = {number(ir, 3), number(ir, 3)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), again, 2, true, false, out, err));
  assert_function(ir, AB, "for i_0_0, i_0_1, i_1 in T.grid(3, 3, 16):", "    with T.sblock(\"B\"):",
                  "        v = T.axis.spatial(100, i_0_0 * 48 + i_0_1 * 16 + i_1)",
                  "        T.where(i_0_0 * 48 + i_0_1 * 16 + i_1 < 100 and i_0_0 * 3 + i_0_1 < 7)", COPY);
}

static void leaves_the_guard_out_when_told(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 16)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, true, out, err));
  assert_function(ir, AB, "for i_0, i_1 in T.grid(7, 16):", "    with T.sblock(\"B\"):",
                  "        v = T.axis.spatial(100, i_0 * 16 + i_1)", COPY);
}

static void drops_unit_iterators(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop out[3];
  tir_expr factors[] = {number(ir, 1), number(ir, 100), number(ir, 1)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 3, false, false, out, err));
  assert_function(ir, AB, "for i_0, i_1, i_2 in T.grid(1, 100, 1):", "    with T.sblock(\"B\"):",
                  "        v = T.axis.spatial(100, i_1)", COPY);
}

static void keeps_unit_iterators(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop out[2];
  tir_expr factors[] = {number(ir, 100), number(ir, 1)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, false, out, err));
  assert_function(ir, AB, "for i_0, i_1 in T.grid(100, 1):", "    with T.sblock(\"B\"):",
                  "        v = T.axis.spatial(100, i_0 + i_1)", COPY);
}

static void forwards_the_old_loop_to_none(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop old = loop_of(ir, "B", 0), out[2];
  tir_block block = block_named(ir, "B");
  uint32_t forwards = ir->forwards.count;
  tir_expr factors[] = {TIR_NONE, number(ir, 4)};
  assert_accepted(tir_split(ir, old, factors, 2, true, false, out, err));
  assert_int_equal(ir->forwards.count, forwards + 1);
  assert_int_equal(ir->forwards.at[forwards].from, old);
  assert_int_equal(ir->forwards.at[forwards].to, TIR_NONE);
  assert_int_equal(block_named(ir, "B"), block);
  tir_free(ir);
}

#define SYMBOLIC "a: T.handle, b: T.handle, n: T.int32"
#define MATCH    "A = T.match_buffer(a, (n,))", "B = T.match_buffer(b, (n,))"

static void splits_symbolic_extents(void **state) {
  (void)state;
  struct tir *ir = read_function(
      SYMBOLIC, MATCH, "for i in range(n):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(n, i)", COPY);
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 16)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, false, out, err));
  assert_function(ir, SYMBOLIC, MATCH, "for i_0, i_1 in T.grid((n + 15) // 16, 16):", "    with T.sblock(\"B\"):",
                  "        v = T.axis.spatial(n, i_0 * 16 + i_1)", "        T.where(i_0 * 16 + i_1 < n)", COPY);
}

static void needs_no_guard_where_factors_divide(void **state) {
  (void)state;
  struct tir *ir =
      read_function("a: T.handle, n: T.int32", "A = T.match_buffer(a, (n * 16,))",
                    "for i in range(n * 16):", "    with T.sblock(\"A\"):", "        v = T.axis.spatial(n * 16, i)",
                    "        T.reads()", "        T.writes(A[v])", "        A[v] = T.float32(0.0)");
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 16)};
  assert_accepted(tir_split(ir, loop_of(ir, "A", 0), factors, 2, true, false, out, err));
  assert_function(ir, "a: T.handle, n: T.int32", "A = T.match_buffer(a, (n * 16,))", "for i_0, i_1 in T.grid(n, 16):",
                  "    with T.sblock(\"A\"):", "        v = T.axis.spatial(n * 16, i_0 * 16 + i_1)",
                  "        T.reads()", "        T.writes(A[v])", "        A[v] = T.float32(0.0)");
}

static void splits_wide_loops(void **state) {
  (void)state;
  struct tir *ir = read_function(AB, "for i in range(T.int64(100)):", "    with T.sblock(\"B\"):",
                                 "        v = T.axis.spatial(T.int64(100), i)", COPY);
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 10)}; /* of 32 bits, as a trace gives them */
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, false, out, err));
  assert_function(ir, AB, "for i_0, i_1 in T.grid(T.int64(10), T.int64(10)):", "    with T.sblock(\"B\"):",
                  "        v = T.axis.spatial(T.int64(100), i_0 * T.int64(10) + i_1)", COPY);
}

static void refuses_bad_factors(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop loop = loop_of(ir, "B", 0), out[4];
  tir_expr none[] = {TIR_NONE, TIR_NONE}, zero[] = {number(ir, 0), TIR_NONE}, negative[] = {number(ir, -1), TIR_NONE};
  tir_expr small[] = {number(ir, 9), number(ir, 11)}, large[] = {number(ir, 1 << 20), number(ir, 1 << 20)};
  assert_refused(ir, MS_NO_FACTORS, tir_split(ir, loop, none, 0, true, false, out, err));
  assert_refused(ir, MS_TWO_OPEN_FACTORS, tir_split(ir, loop, none, 2, true, false, out, err));
  assert_refused(ir, MS_FACTOR_NOT_POSITIVE, tir_split(ir, loop, zero, 2, true, false, out, err));
  assert_refused(ir, MS_FACTOR_NOT_POSITIVE, tir_split(ir, loop, negative, 2, true, false, out, err));
  assert_refused(ir, MS_FACTORS_TOO_SMALL, tir_split(ir, loop, small, 2, true, false, out, err));
  assert_refused(ir, MS_TOO_LARGE, tir_split(ir, loop, large, 2, true, false, out, err));
  tir_free(ir);
}

static void refuses_to_lose_bindings(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop loop = loop_of(ir, "B", 0), out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 128)};
  assert_refused(ir, MS_BINDING_LOST, tir_split(ir, loop, factors, 2, false, false, out, err));
  assert_accepted(tir_split(ir, loop, factors, 2, false, true, out, err));
  tir_free(ir);
}

static void refuses_unproven_factors(void **state) {
  (void)state;
  struct tir *ir = read_function(
      SYMBOLIC, MATCH, "for i in range(n):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(n, i)", COPY);
  tir_loop out[2];
  tir_expr factors[] = {number(ir, 1024), number(ir, 16)};
  assert_refused(ir, MS_FACTORS_TOO_SMALL, tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, false, out, err));
  tir_free(ir);
}

static void refuses_marked_loops(void **state) {
  (void)state;
  struct tir *ir = copy_of_100();
  tir_loop loop = loop_of(ir, "B", 0), out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 4)};
  tir_annotate_symbol(ir, loop, tir_symbol_of(ir, "key"), number(ir, 1));
  assert_refused(ir, MS_LOOP_ANNOTATED_OR_BOUND, tir_split(ir, loop, factors, 2, true, false, out, err));
  assert_accepted(tir_unannotate(ir, loop, "key", err) && tir_bind(ir, loop, "threadIdx.x", err));
  assert_refused(ir, MS_LOOP_ANNOTATED_OR_BOUND, tir_split(ir, loop, factors, 2, true, false, out, err));
  tir_free(ir);
}

static void refuses_loops_not_from_zero(void **state) {
  (void)state;
  struct tir *ir = read_function(
      AB, "for i in range(1, 100):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(100, i)", COPY);
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, number(ir, 4)};
  assert_refused(ir, MS_LOOP_NOT_FROM_ZERO, tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, false, out, err));
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(splits_evenly),
      cmocka_unit_test(guards_what_exceeds),
      cmocka_unit_test(leaves_the_guard_out_when_told),
      cmocka_unit_test(drops_unit_iterators),
      cmocka_unit_test(keeps_unit_iterators),
      cmocka_unit_test(forwards_the_old_loop_to_none),
      cmocka_unit_test(splits_symbolic_extents),
      cmocka_unit_test(needs_no_guard_where_factors_divide),
      cmocka_unit_test(splits_wide_loops),
      cmocka_unit_test(refuses_bad_factors),
      cmocka_unit_test(refuses_to_lose_bindings),
      cmocka_unit_test(refuses_unproven_factors),
      cmocka_unit_test(refuses_marked_loops),
      cmocka_unit_test(refuses_loops_not_from_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
