/* Decompose reduction: what becomes of the init, predicates, loops and regions; refusals. */
#include "unit/script.h"

#define AV "A: T.Buffer((10, 36), \"float32\"), V: T.Buffer((10,), \"float32\")"
#define SUM(indent)                                                                                                    \
  indent "    T.reads(A[v_i, v_k])", indent "    T.writes(V[v_i])",                                                    \
      indent "    with T.init():", indent "        V[v_i] = T.float32(0.0)",                                           \
      indent "    V[v_i] = V[v_i] + A[v_i, v_k]"
#define UPDATE(indent)                                                                                                 \
  indent "    T.reads(V[v_i], A[v_i, v_k])", indent "    T.writes(V[v_i])", indent "    V[v_i] = V[v_i] + A[v_i, v_k]"
#define INIT(indent) indent "    T.reads()", indent "    T.writes(V[v_i])", indent "    V[v_i] = T.float32(0.0)"

static struct tir *row_sum(void) {
  return read_function(AV, "for i, k in T.grid(10, 36):", "    with T.sblock(\"B\"):",
                       "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
}

static struct tir *copy_of(const struct tir *ir) {
  struct tir *copy = tir_new();
  tir_copy(copy, ir);
  return copy;
}

/* Frees `before`. */
static void assert_same_results(struct tir *before, const struct tir *ir) {
  ms_error err = {0};
  if (!tir_equal_results(before, 1, NULL, ir, 1, NULL, 7, &err)) fail_msg("%s", err.message);
  tir_free(before);
}

static tir_block decompose(struct tir *ir, const char *name, uint32_t loop) {
  tir_block init = TIR_NONE;
  struct tir *before = copy_of(ir);
  assert_accepted(tir_decompose_reduction(ir, block_named(ir, name), loop_of(ir, name, loop), &init, err));
  assert_same_results(before, ir);
  return init;
}

static void inits_inside(void **state) {
  (void)state;
  struct tir *ir = row_sum();
  tir_block block = block_named(ir, "B");
  tir_block init = decompose(ir, "B", 1);
  assert_int_equal(init, block_named(ir, "B_init"));
  assert_int_equal(block, block_named(ir, "B_update"));
  assert_int_equal(ir->forwards.count, 0);
  assert_function(ir, AV,
                  "for i in range(10):", "    with T.sblock(\"B_init\"):", "        v_i = T.axis.spatial(10, i)",
                  INIT("    "), "    for k in range(36):", "        with T.sblock(\"B_update\"):",
                  "            v_i, v_k = T.axis.remap(\"SR\", [i, k])", UPDATE("        "));
}

static void copies_spatial_loops_with_kind_and_annotations(void **state) {
  (void)state;
  struct tir *ir = read_function(
      AV, "for i_0 in T.serial(3, annotations={\"a\": 1}):", "    for k_0 in range(4):",
      "        for i_1 in T.vectorized(4):", "            for k_1 in T.unroll(10):",
      "                with T.sblock(\"B\"):", "                    v_i = T.axis.spatial(10, i_0 * 4 + i_1)",
      "                    v_k = T.axis.reduce(36, k_0 * 10 + k_1)",
      "                    T.where(i_0 * 4 + i_1 < 10 and k_0 * 10 + k_1 < 36)",
      "                    T.sblock_attr({\"tag\": \"x\"})", SUM("                "));
  decompose(ir, "B", 0);
  assert_function(
      ir, AV, "for i_0_init in T.serial(3, annotations={\"a\": 1}):", "    for i_1_init in T.vectorized(4):",
      "        with T.sblock(\"B_init\"):", "            v_i = T.axis.spatial(10, i_0_init * 4 + i_1_init)",
      "            T.where(i_0_init * 4 + i_1_init < 10)", "            T.sblock_attr({\"tag\": \"x\"})",
      INIT("        "), "for i_0 in T.serial(3, annotations={\"a\": 1}):", "    for k_0 in range(4):",
      "        for i_1 in T.vectorized(4):", "            for k_1 in T.unroll(10):",
      "                with T.sblock(\"B_update\"):", "                    v_i = T.axis.spatial(10, i_0 * 4 + i_1)",
      "                    v_k = T.axis.reduce(36, k_0 * 10 + k_1)",
      "                    T.where(i_0 * 4 + i_1 < 10 and k_0 * 10 + k_1 < 36)",
      "                    T.sblock_attr({\"tag\": \"x\"})", UPDATE("                "));
}

static void keeps_the_loops_above(void **state) {
  (void)state;
  struct tir *ir =
      read_function(AV, "for i_0, k, i_1 in T.grid(3, 36, 4):", "    with T.sblock(\"B\"):",
                    "        v_i = T.axis.spatial(10, i_0 * 4 + i_1)", "        v_k = T.axis.reduce(36, k)",
                    "        T.where(i_0 * 4 + i_1 < 10)", SUM("    "));
  decompose(ir, "B", 1);
  assert_function(ir, AV, "for i_0 in range(3):", "    for i_1_init in range(4):", "        with T.sblock(\"B_init\"):",
                  "            v_i = T.axis.spatial(10, i_0 * 4 + i_1_init)",
                  "            T.where(i_0 * 4 + i_1_init < 10)", INIT("        "), "    for k, i_1 in T.grid(36, 4):",
                  "        with T.sblock(\"B_update\"):", "            v_i = T.axis.spatial(10, i_0 * 4 + i_1)",
                  "            v_k = T.axis.reduce(36, k)", "            T.where(i_0 * 4 + i_1 < 10)",
                  UPDATE("        "));
}

/* Fused loops are split again: the init needs of a guard what keeps its own bindings in their domains. */
static struct tir *fused_sum(const char *loops, const char *spatial, const char *reduction, const char *guard) {
  return read_function("A: T.Buffer((7, 24), \"float32\"), V: T.Buffer((7,), \"float32\")", loops,
                       "    with T.sblock(\"B\"):", spatial, reduction, guard, SUM("    "));
}

/* What guards the reduction says where it begins, too: the init runs there. */
static void begins_where_reductions_do(void **state) {
  (void)state;
  struct tir *ir =
      fused_sum("for f_0, f_1 in T.grid(28, 24):", "        v_i = T.axis.spatial(7, f_0 // 4)",
                "        v_k = T.axis.reduce(24, f_0 % 4 * 24 + f_1)", "        T.where(f_0 % 4 * 24 + f_1 < 24)");
  tir_block init = decompose(ir, "B", 0);
  tir_expr f_0 = tir_var_expr(ir, tir_stmt_at(ir, loop_of(ir, "B_init", 0))->loop.var);
  tir_expr begins = tir_floormod(ir, f_0, tir_int(ir, TIR_T_I32, 4));
  assert_int_equal(tir_stmt_at(ir, init)->block.predicate, tir_binary(ir, TIR_LT, begins, tir_int(ir, TIR_T_I32, 1)));
  tir_free(ir);
}

static void keeps_guards_of_the_spatial_domain(void **state) {
  (void)state;
  struct tir *ir =
      fused_sum("for f_0, f_1 in T.grid(23, 8):", "        v_i = T.axis.spatial(7, f_0 // 3)",
                "        v_k = T.axis.reduce(24, f_0 % 3 * 8 + f_1)", "        T.where(f_0 * 8 + f_1 < 168)");
  tir_block init = decompose(ir, "B", 0);
  tir_expr f_0 = tir_var_expr(ir, tir_stmt_at(ir, loop_of(ir, "B_init", 0))->loop.var);
  tir_expr expected = tir_binary(ir, TIR_LT, f_0, tir_int(ir, TIR_T_I32, 21));
  assert_int_equal(tir_stmt_at(ir, init)->block.predicate, expected);
  tir_free(ir);
}

#define PAIR "A: T.Buffer((8, 20), \"float32\"), S: T.Buffer((), \"float32\"), Q: T.Buffer((), \"float32\")"

static void needs_no_spatial_loop(void **state) {
  (void)state;
  struct tir *ir = read_function(
      PAIR,
      "for i, k in T.grid(8, 20):", "    with T.sblock(\"B\"):", "        v_i, v_k = T.axis.remap(\"RR\", [i, k])",
      "        T.reads(A[v_i, v_k])", "        T.writes(S[()], Q[()])",
      "        with T.init():", "            S[()] = T.float32(0.0)", "            Q[()] = T.float32(0.0)",
      "        S[()] = S[()] + A[v_i, v_k]", "        Q[()] = Q[()] + A[v_i, v_k] * A[v_i, v_k]");
  decompose(ir, "B", 0);
  assert_function(ir, PAIR, "with T.sblock(\"B_init\"):", "    T.reads()", "    T.writes(S[()], Q[()])",
                  "    S[()] = T.float32(0.0)", "    Q[()] = T.float32(0.0)", "for i, k in T.grid(8, 20):",
                  "    with T.sblock(\"B_update\"):", "        v_i, v_k = T.axis.remap(\"RR\", [i, k])",
                  "        T.reads(S[()], Q[()], A[v_i, v_k])", "        T.writes(S[()], Q[()])",
                  "        S[()] = S[()] + A[v_i, v_k]", "        Q[()] = Q[()] + A[v_i, v_k] * A[v_i, v_k]");
}

/* ---- Refusals ---- */

#define assert_not_decomposed(ir, code, block, loop)                                                                   \
  do {                                                                                                                 \
    tir_block init;                                                                                                    \
    assert_refused(ir, code, tir_decompose_reduction(ir, block, loop, &init, err));                                    \
    tir_free(ir);                                                                                                      \
  } while (0)

static void refuses_what_is_no_reduction(void **state) {
  (void)state;
  struct tir *ir = row_sum();
  decompose(ir, "B", 1);
  assert_not_decomposed(ir, MS_NOT_REDUCTION_BLOCK, block_named(ir, "B_update"), loop_of(ir, "B_update", 1));
  ir = row_sum();
  assert_not_decomposed(ir, MS_LOOP_NOT_AROUND_BLOCK, tir_root_block(ir, 1), loop_of(ir, "B", 0));
}

static void refuses_a_loop_elsewhere(void **state) {
  (void)state;
  struct tir *ir =
      read_function(AV, "for j in range(2):", "    T.evaluate(0)", "for i, k in T.grid(10, 36):",
                    "    with T.sblock(\"B\"):", "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
  tir_loop other = tir_stmt_at(ir, loop_of(ir, "B", 0))->prev;
  assert_not_decomposed(ir, MS_LOOP_NOT_AROUND_BLOCK, block_named(ir, "B"), other);
}

static void refuses_a_loop_inside_the_reduction(void **state) {
  (void)state;
  struct tir *ir = read_function(AV, "for k, i in T.grid(36, 10):", "    with T.sblock(\"B\"):",
                                 "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
  assert_not_decomposed(ir, MS_REDUCTION_LOOP_ABOVE, block_named(ir, "B"), loop_of(ir, "B", 1));
}

static void refuses_a_condition_between(void **state) {
  (void)state;
  struct tir *ir = read_function(AV, "for i, k in T.grid(10, 36):", "    if i < 7:", "        with T.sblock(\"B\"):",
                                 "            v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("        "));
  assert_not_decomposed(ir, MS_NOT_ONLY_LOOPS_BETWEEN, block_named(ir, "B"), loop_of(ir, "B", 0));
}

static void refuses_rounds_that_start_anew(void **state) {
  (void)state;
  struct tir *ir = read_function(AV, "for i, r, k in T.grid(10, 2, 36):", "    with T.sblock(\"B\"):",
                                 "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
  struct tir *inside = copy_of(ir);
  decompose(inside, "B", 2);
  tir_free(inside);
  assert_not_decomposed(ir, MS_LOOP_UNBOUND, block_named(ir, "B"), loop_of(ir, "B", 1));
}

static void refuses_ranges_of_loops_left_behind(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((10, 36), \"float32\"), V: T.Buffer((46,), \"float32\")", "for k in range(36):",
      "    for i in range(k, k + 10):", "        with T.sblock(\"B\"):", "            v_i = T.axis.spatial(46, i)",
      "            v_k = T.axis.reduce(36, k)", "            T.reads(A[v_i - v_k, v_k])",
      "            T.writes(V[v_i])", "            with T.init():", "                V[v_i] = T.float32(0.0)",
      "            V[v_i] = V[v_i] + A[v_i - v_k, v_k]");
  tir_block init;
  ms_error err = {0};
  assert_false(tir_decompose_reduction(ir, block_named(ir, "B"), loop_of(ir, "B", 0), &init, &err));
  assert_true(err.code == MS_LOOP_RANGE_DEPENDS || err.code == MS_NOT_REDUCTION_BLOCK);
  tir_free(ir);
}

static void refuses_an_init_of_own_buffers(void **state) {
  (void)state;
  struct tir *ir = read_function(
      AV, "for i, k in T.grid(10, 36):", "    with T.sblock(\"B\"):", "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",
      "        T.reads(A[v_i, v_k])", "        T.writes(V[v_i])",
      "        W = T.match_buffer(V[v_i], (), offset_factor=1)",
      "        with T.init():", "            W[()] = T.float32(0.0)", "        W[()] = W[()] + A[v_i, v_k]");
  assert_not_decomposed(ir, MS_INIT_USES_OWN_BUFFER, block_named(ir, "B"), loop_of(ir, "B", 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inits_inside),
      cmocka_unit_test(copies_spatial_loops_with_kind_and_annotations),
      cmocka_unit_test(keeps_the_loops_above),
      cmocka_unit_test(begins_where_reductions_do),
      cmocka_unit_test(keeps_guards_of_the_spatial_domain),
      cmocka_unit_test(needs_no_spatial_loop),
      cmocka_unit_test(refuses_what_is_no_reduction),
      cmocka_unit_test(refuses_a_loop_elsewhere),
      cmocka_unit_test(refuses_a_loop_inside_the_reduction),
      cmocka_unit_test(refuses_a_condition_between),
      cmocka_unit_test(refuses_rounds_that_start_anew),
      cmocka_unit_test(refuses_ranges_of_loops_left_behind),
      cmocka_unit_test(refuses_an_init_of_own_buffers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
