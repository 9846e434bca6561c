/* compute_at and reverse_compute_at: every refusal, by its code; the module is as it was after each. */
#include "unit/script.h"

static bool compute_at(struct tir *ir, const char *block, const char *of, uint32_t loop, int index, ms_error *err) {
  return tir_compute_at(ir, block_named(ir, block), loop_of(ir, of, loop), false, index, err);
}

static bool reverse_compute_at(struct tir *ir, const char *block, const char *of, uint32_t loop, int index,
                               ms_error *err) {
  return tir_reverse_compute_at(ir, block_named(ir, block), loop_of(ir, of, loop), false, index, err);
}

static bool split(struct tir *ir, const char *block, uint32_t loop, int64_t factor, ms_error *err) {
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, factor)};
  return tir_split(ir, loop_of(ir, block, loop), factors, 2, true, false, out, err);
}

/* B = 2 * A; C = B + 1; D = A[0]. */
static const char chain_parameters[] =
    "A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\"), D: T.Buffer((40,), \"float32\")";
#define CHAIN                                                                                                          \
  "B = T.sblock_alloc_buffer((40,))",                                                                                  \
      "for i in range(40):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(40, i)",                         \
      "        T.reads(A[v])", "        T.writes(B[v])", "        B[v] = A[v] * T.float32(2.0)",                       \
      "for i in range(40):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i)",                         \
      "        T.reads(B[v])", "        T.writes(C[v])", "        C[v] = B[v] + T.float32(1.0)",                       \
      "for i, j in T.grid(40, 1):", "    with T.sblock(\"D\"):", "        v = T.axis.spatial(40, i)",                  \
      "        T.reads(A[v])", "        T.writes(D[v])", "        D[v] = A[v]"

static void needs_a_scope(void **state) {
  (void)state;
  struct tir *ir = read_function(chain_parameters, CHAIN);
  tir_block root = tir_root_block(ir, 1);
  assert_refused(ir, MS_ROOT_BLOCK, tir_compute_at(ir, root, loop_of(ir, "C", 0), false, -1, err));
  tir_free(ir);
}

static void needs_a_stage_pipeline(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")", "B = T.sblock_alloc_buffer((40,))",
      "for i in range(20):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(40, i)", "        T.reads(A[v])",
      "        T.writes(B[v])", "        B[v] = A[v]",
      "for i in range(40):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i)", "        T.reads(B[v])",
      "        T.writes(C[v])", "        C[v] = B[v]");
  assert_refused(ir, MS_NOT_STAGE_PIPELINE, compute_at(ir, "B", "C", 0, -1, err));
  assert_refused(ir, MS_NOT_STAGE_PIPELINE, compute_at(ir, "B", "C", 0, -1, err)); /* the same when it is known */
  tir_free(ir);
}

static void needs_a_complete_or_reduction_block(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")", "B = T.sblock_alloc_buffer((40,))",
      "for i in range(40):", "    with T.sblock(\"B\"):", "        v = T.axis.opaque(40, i)", "        T.reads(A[v])",
      "        T.writes(B[v])", "        B[v] = A[v]",
      "for i in range(40):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i)", "        T.reads(B[v])",
      "        T.writes(C[v])", "        C[v] = B[v]");
  assert_refused(ir, MS_NOT_COMPLETE_OR_REDUCTION, compute_at(ir, "B", "C", 0, -1, err));
  tir_free(ir);
}

static void keeps_outputs_where_they_are(void **state) {
  (void)state;
  struct tir *ir = read_function(chain_parameters, CHAIN);
  assert_refused(ir, MS_MOVE_OUTPUT, compute_at(ir, "C", "D", 0, -1, err));
  tir_free(ir);
}

static void leaves_no_scope_empty(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((8, 4), \"float32\"), B: T.Buffer((8, 4), \"float32\")",
                    "for i in range(8):", "    with T.sblock(\"outer\"):", "        v_i = T.axis.spatial(8, i)",
                    "        T.reads(A[v_i, 0:4])", "        T.writes(B[v_i, 0:4])", "        for j in range(4):",
                    "            with T.sblock(\"inner\"):", "                v_j = T.axis.spatial(4, j)",
                    "                T.reads(A[v_i, v_j])", "                T.writes(B[v_i, v_j])",
                    "                B[v_i, v_j] = A[v_i, v_j]");
  assert_refused(ir, MS_MOVE_ONLY_LEAF, reverse_compute_at(ir, "inner", "outer", 0, -1, err));
  tir_free(ir);
}

static void stays_in_its_scope(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8, 4), \"float32\"), C: T.Buffer((8, 4), \"float32\")", "B = T.sblock_alloc_buffer((8, 4))",
      "for i, j in T.grid(8, 4):", "    with T.sblock(\"B\"):", "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
      "        T.reads(A[v_i, v_j])", "        T.writes(B[v_i, v_j])", "        B[v_i, v_j] = A[v_i, v_j]",
      "for i in range(8):", "    with T.sblock(\"outer\"):", "        v_i = T.axis.spatial(8, i)",
      "        T.reads(B[v_i, 0:4])", "        T.writes(C[v_i, 0:4])",
      "        for j in range(4):", "            with T.sblock(\"C\"):", "                v_j = T.axis.spatial(4, j)",
      "                T.reads(B[v_i, v_j])", "                T.writes(C[v_i, v_j])",
      "                C[v_i, v_j] = B[v_i, v_j]");
  assert_refused(ir, MS_MOVE_OTHER_SCOPE, compute_at(ir, "B", "C", 0, -1, err));
  tir_free(ir);
}

static void is_not_under_the_loop_yet(void **state) {
  (void)state;
  struct tir *ir = read_function(chain_parameters, CHAIN);
  assert_refused(ir, MS_MOVE_OWN_LOOP, compute_at(ir, "B", "B", 0, -1, err));
  assert_accepted(compute_at(ir, "B", "C", 0, -1, err));
  assert_refused(ir, MS_MOVE_OWN_LOOP, compute_at(ir, "B", "C", 0, -1, err));
  tir_free(ir);
}

static void needs_all_consumers_and_producers(void **state) {
  (void)state;
  struct tir *ir = read_function(chain_parameters, CHAIN);
  assert_refused(ir, MS_MOVE_CONSUMERS, compute_at(ir, "B", "D", 0, -1, err));
  assert_refused(ir, MS_MOVE_PRODUCERS, reverse_compute_at(ir, "C", "D", 0, -1, err));
  tir_free(ir);
}

static void keeps_consumers_after_it(void **state) {
  (void)state;
  struct tir *ir = read_function(chain_parameters, CHAIN);
  assert_refused(ir, MS_MOVE_ORDER, reverse_compute_at(ir, "B", "D", 0, -1, err));
  tir_free(ir);
}

static void counts_places(void **state) {
  (void)state;
  struct tir *ir = read_function(chain_parameters, CHAIN);
  assert_refused(ir, MS_MOVE_INDEX, compute_at(ir, "B", "C", 0, 1, err));
  assert_refused(ir, MS_MOVE_INDEX, compute_at(ir, "B", "C", 0, -3, err));
  assert_refused(ir, MS_MOVE_INDEX, reverse_compute_at(ir, "C", "B", 0, 0, err));
  assert_refused(ir, MS_MOVE_INDEX, reverse_compute_at(ir, "C", "B", 0, 2, err));
  assert_accepted(reverse_compute_at(ir, "C", "B", 0, 1, err));
  tir_free(ir);
}

static void stays_where_conditions_are(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")", "B = T.sblock_alloc_buffer((40,))",
      "for i in range(40):", "    if i < 40:", "        with T.sblock(\"B\"):", "            v = T.axis.spatial(40, i)",
      "            T.reads(A[v])", "            T.writes(B[v])", "            B[v] = A[v]",
      "for i in range(40):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i)", "        T.reads(B[v])",
      "        T.writes(C[v])", "        C[v] = B[v]");
  assert_refused(ir, MS_MOVE_CONDITIONAL, compute_at(ir, "B", "C", 0, -1, err));
  assert_refused(ir, MS_MOVE_CONDITIONAL, reverse_compute_at(ir, "C", "B", 0, -1, err));
  tir_free(ir);
}

static const char matmul_parameters[] = "A: T.Buffer((16, 8), \"float32\"), B: T.Buffer((8, 16), \"float32\"), "
                                        "D: T.Buffer((16, 16), \"float32\")";
#define MATMUL                                                                                                         \
  "C = T.sblock_alloc_buffer((16, 16))", "for i, j, k in T.grid(16, 16, 8):", "    with T.sblock(\"C\"):",             \
      "        v_i, v_j, v_k = T.axis.remap(\"SSR\", [i, j, k])", "        T.reads(A[v_i, v_k], B[v_k, v_j])",         \
      "        T.writes(C[v_i, v_j])", "        with T.init():", "            C[v_i, v_j] = T.float32(0.0)",           \
      "        C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]",                                                 \
      "for i, j in T.grid(16, 16):", "    with T.sblock(\"D\"):", "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",   \
      "        T.reads(C[v_i, v_j])", "        T.writes(D[v_i, v_j])", "        D[v_i, v_j] = C[v_i, v_j]"

static void waits_for_its_producers_reduction(void **state) {
  (void)state;
  struct tir *ir = read_function(matmul_parameters, MATMUL);
  assert_refused(ir, MS_MOVE_REDUCTION_LOOP, reverse_compute_at(ir, "D", "C", 2, -1, err));
  /* A reduction loop further out is one too. */
  tir_loop order[] = {loop_of(ir, "C", 2), loop_of(ir, "C", 0)};
  assert_accepted(tir_reorder(ir, order, 2, err));
  assert_refused(ir, MS_MOVE_REDUCTION_LOOP, reverse_compute_at(ir, "D", "C", 1, -1, err));
  tir_free(ir);
}

/* E = exp(A); S[i] = sum of E[i, k]. */
static const char sum_parameters[] = "A: T.Buffer((8, 32), \"float32\"), S: T.Buffer((8,), \"float32\")";
#define ROW_SUM(grid, bindings)                                                                                        \
  "E = T.sblock_alloc_buffer((8, 32))", grid, "    with T.sblock(\"E\"):", bindings, "        T.reads(A[v_i, v_k])",   \
      "        T.writes(E[v_i, v_k])", "        E[v_i, v_k] = A[v_i, v_k]",                                            \
      "for i, k in T.grid(8, 32):", "    with T.sblock(\"S\"):", "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",    \
      "        T.reads(E[v_i, v_k])", "        T.writes(S[v_i])",                                                      \
      "        with T.init():", "            S[v_i] = T.float32(0.0)", "        S[v_i] = S[v_i] + E[v_i, v_k]"
#define PLAIN_ROWS ROW_SUM("for i, k in T.grid(8, 32):", "        v_i, v_k = T.axis.remap(\"SS\", [i, k])")

static void reduces_in_one_thread(void **state) {
  (void)state;
  struct tir *ir = read_function(sum_parameters, PLAIN_ROWS);
  assert_accepted(split(ir, "E", 1, 8, err));
  assert_accepted(tir_parallel(ir, loop_of(ir, "E", 1), err));
  assert_refused(ir, MS_MOVE_REDUCTION, reverse_compute_at(ir, "S", "E", 1, -1, err));
  assert_accepted(reverse_compute_at(ir, "S", "E", 0, -1, err));
  tir_free(ir);
}

static void takes_no_step_twice(void **state) {
  (void)state;
  /* E is computed in windows of 8 that overlap by 4. */
  struct tir *ir = read_function(
      sum_parameters, ROW_SUM("for i, k, q in T.grid(8, 7, 8):",
                              "        v_i = T.axis.spatial(8, i)\n            v_k = T.axis.spatial(32, k * 4 + q)"));
  assert_refused(ir, MS_MOVE_REDUCTION, reverse_compute_at(ir, "S", "E", 1, -1, err));
  tir_free(ir);
  /* A loop that takes no part repeats each step. */
  ir = read_function(sum_parameters,
                     ROW_SUM("for i, k, q in T.grid(8, 32, 2):", "        v_i, v_k = T.axis.remap(\"SS\", [i, k])"));
  assert_refused(ir, MS_MOVE_REDUCTION, reverse_compute_at(ir, "S", "E", 2, -1, err));
  assert_accepted(reverse_compute_at(ir, "S", "E", 1, -1, err));
  tir_free(ir);
}

static void must_know_the_iterations(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((10,), \"float32\"), C: T.Buffer((8,), \"float32\")", "B = T.sblock_alloc_buffer((10,))",
      "for i in range(10):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(10, i)", "        T.reads(A[v])",
      "        T.writes(B[v])", "        B[v] = A[v]",
      "for i, r in T.grid(8, 3):", "    with T.sblock(\"C\"):", "        v, v_r = T.axis.remap(\"SR\", [i, r])",
      "        T.reads(B[v + v_r])", "        T.writes(C[v])",
      "        with T.init():", "            C[v] = T.float32(0.0)", "        C[v] = C[v] + B[v + v_r]");
  assert_refused(ir, MS_MOVE_REGION, reverse_compute_at(ir, "C", "B", 0, -1, err));
  tir_free(ir);
}

static void reads_only_what_is_there(void **state) {
  (void)state;
  /* D reads a tile of B and all of C's rows that it may touch: C is produced one element at a time. */
  struct tir *ir =
      read_function("A: T.Buffer((16,), \"float32\"), D: T.Buffer((16,), \"float32\")",
                    "B = T.sblock_alloc_buffer((16,))", "C = T.sblock_alloc_buffer((16,))",
                    "for i in range(16):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(16, i)",
                    "        T.reads(A[v])", "        T.writes(B[v])", "        B[v] = A[v]",
                    "    with T.sblock(\"C\"):", "        v = T.axis.spatial(16, 15 - i)", "        T.reads(A[v])",
                    "        T.writes(C[v])", "        C[v] = A[v]",
                    "for i in range(16):", "    with T.sblock(\"D\"):", "        v = T.axis.spatial(16, i)",
                    "        T.reads(B[v], C[v])", "        T.writes(D[v])", "        D[v] = B[v] + C[v]");
  assert_refused(ir, MS_MOVE_COVER, reverse_compute_at(ir, "D", "B", 0, -1, err));
  tir_free(ir);
}

/* B is written, then copied to C. */
#define COPIED(loops, value, condition)                                                                                \
  read_function(                                                                                                       \
      "A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")", "B = T.sblock_alloc_buffer((40,))",          \
      "for i, j in T.grid(" loops "):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(40, " value ")",      \
      "        " condition, "        T.reads(A[v])", "        T.writes(B[v])", "        B[v] = A[v]",                  \
      "for i in range(40):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i)",                         \
      "        T.reads(B[v])", "        T.writes(C[v])", "        C[v] = B[v]")

static void leaves_no_gap(void **state) {
  (void)state;
  ms_error error = {0};
  struct tir *ir = COPIED("4, 10", "j * 4 + i", "");
  assert_refused(ir, MS_MOVE_COVER, reverse_compute_at(ir, "C", "B", 0, -1, err));
  assert_true(reverse_compute_at(ir, "C", "B", 1, -1, &error));
  tir_free(ir);
}

static void is_written_under_conditions_of_its_own(void **state) {
  (void)state;
  ms_error error = {0};
  struct tir *ir = COPIED("10, 6", "i * 4 + j", "T.where(j < 4)");
  assert_refused(ir, MS_MOVE_COVER, reverse_compute_at(ir, "C", "B", 0, -1, err));
  tir_free(ir);
  ir = COPIED("11, 4", "i * 4 + j", "T.where(i * 4 + j < 40)"); /* the limit of its domain, no more */
  assert_true(reverse_compute_at(ir, "C", "B", 0, -1, &error));
  tir_free(ir);
}

static void reads_what_is_written_whole(void **state) {
  (void)state;
  /* Nobody reads E: it could go anywhere, but not into the loop that writes B step by step. */
  struct tir *ir =
      read_function("A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")",
                    "B = T.sblock_alloc_buffer((40,))", "E = T.sblock_alloc_buffer((40,))",
                    "for i in range(40):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(40, i)",
                    "        T.reads(A[v])", "        T.writes(B[v])", "        B[v] = A[v]",
                    "    for j in range(2):", "        with T.sblock(\"C\"):", "            v = T.axis.spatial(40, i)",
                    "            T.reads(B[v])", "            T.writes(C[v])", "            C[v] = B[v]",
                    "for i in range(40):", "    with T.sblock(\"E\"):", "        v = T.axis.spatial(40, i)",
                    "        T.reads(B[v])", "        T.writes(E[v])", "        E[v] = B[v]");
  assert_refused(ir, MS_MOVE_COVER, compute_at(ir, "E", "C", 0, -1, err));
  assert_refused(ir, MS_MOVE_COVER, compute_at(ir, "E", "C", 1, -1, err));
  tir_free(ir);
}

static void leaves_no_instance_out(void **state) {
  (void)state;
  /* The padding has instances that read nothing: no producer asks for them. */
  struct tir *ir = read_function(
      "A: T.Buffer((8,), \"float32\"), P: T.Buffer((10,), \"float32\")", "B = T.sblock_alloc_buffer((8,))",
      "for i in range(8):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(8, i)", "        T.reads(A[v])",
      "        T.writes(B[v])", "        B[v] = A[v]",
      "for i in range(10):", "    with T.sblock(\"P\"):", "        v = T.axis.spatial(10, i)",
      "        T.reads(B[v - 1])", "        T.writes(P[v])",
      "        P[v] = T.if_then_else(1 <= v and v < 9, B[v - 1], T.float32(0.0))");
  assert_refused(ir, MS_MOVE_LEFT_OUT, reverse_compute_at(ir, "P", "B", 0, -1, err));
  tir_free(ir);
}

static void keeps_predicates_it_can_express(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")", "B = T.sblock_alloc_buffer((40,))",
      "for i in range(40):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(40, i)", "        T.reads(A[v])",
      "        T.writes(B[v])", "        B[v] = A[v]",
      "for i, j in T.grid(10, 4):", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i * 4 + j)",
      "        T.where(j < 2)", "        T.reads(B[v])", "        T.writes(C[v])", "        C[v] = B[v]");
  assert_refused(ir, MS_MOVE_PREDICATE, reverse_compute_at(ir, "C", "B", 0, -1, err));
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(needs_a_scope),
      cmocka_unit_test(needs_a_stage_pipeline),
      cmocka_unit_test(needs_a_complete_or_reduction_block),
      cmocka_unit_test(keeps_outputs_where_they_are),
      cmocka_unit_test(leaves_no_scope_empty),
      cmocka_unit_test(stays_in_its_scope),
      cmocka_unit_test(is_not_under_the_loop_yet),
      cmocka_unit_test(needs_all_consumers_and_producers),
      cmocka_unit_test(keeps_consumers_after_it),
      cmocka_unit_test(counts_places),
      cmocka_unit_test(stays_where_conditions_are),
      cmocka_unit_test(waits_for_its_producers_reduction),
      cmocka_unit_test(reduces_in_one_thread),
      cmocka_unit_test(takes_no_step_twice),
      cmocka_unit_test(must_know_the_iterations),
      cmocka_unit_test(reads_only_what_is_there),
      cmocka_unit_test(leaves_no_gap),
      cmocka_unit_test(is_written_under_conditions_of_its_own),
      cmocka_unit_test(reads_what_is_written_whole),
      cmocka_unit_test(leaves_no_instance_out),
      cmocka_unit_test(keeps_predicates_it_can_express),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
