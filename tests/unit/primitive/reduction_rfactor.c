/* Rfactor: iterations, buffers and predicates of both blocks; reducers; refusals. */
#include "unit/script.h"

#define AV "A: T.Buffer((10, 36), \"float32\"), V: T.Buffer((10,), \"float32\")"
#define SUM(indent)                                                                                                    \
  indent "    T.reads(A[v_i, v_k])", indent "    T.writes(V[v_i])",                                                    \
      indent "    with T.init():", indent "        V[v_i] = T.float32(0.0)",                                           \
      indent "    V[v_i] = V[v_i] + A[v_i, v_k]"

static struct tir *row_sum(void) {
  return read_function(AV, "for i, k in T.grid(10, 36):", "    with T.sblock(\"B\"):",
                       "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
}

/* Sums over k = 9 * k_0 + k_1, with both loops around the block. */
#define SPLIT_SUM                                                                                                      \
  "for i, k_0, k_1 in T.grid(10, 4, 9):", "    with T.sblock(\"B\"):", "        v_i = T.axis.spatial(10, i)",          \
      "        v_k = T.axis.reduce(36, k_0 * 9 + k_1)", SUM("    ")

static void assert_same_results(struct tir *before, const struct tir *ir) {
  ms_error err = {0};
  if (!tir_equal_results(before, 1, NULL, ir, 1, NULL, 7, &err)) fail_msg("%s", err.message);
  tir_free(before);
}

static tir_block rfactor(struct tir *ir, const char *name, uint32_t loop, int axis) {
  tir_block made = TIR_NONE;
  struct tir *before = tir_new();
  tir_copy(before, ir);
  assert_accepted(tir_rfactor(ir, loop_of(ir, name, loop), axis, &made, err));
  assert_same_results(before, ir);
  return made;
}

static void makes_a_spatial_loop_of_the_reduction(void **state) {
  (void)state;
  struct tir *ir = row_sum();
  tir_block block = block_named(ir, "B");
  tir_loop i = loop_of(ir, "B", 0), k = loop_of(ir, "B", 1);
  tir_block made = rfactor(ir, "B", 1, 0);
  assert_int_equal(made, block_named(ir, "B_rf"));
  assert_int_equal(block, block_named(ir, "B"));
  assert_int_equal(i, loop_of(ir, "B", 0));
  assert_int_equal(k, loop_of(ir, "B", 1));
  assert_int_equal(ir->forwards.count, 0);
  assert_function(
      ir, AV, "V_rf = T.sblock_alloc_buffer((36, 10))",
      "for i, k in T.grid(10, 36):", "    with T.sblock(\"B_rf\"):", "        vk, v_i = T.axis.remap(\"SS\", [k, i])",
      "        T.reads(A[v_i, vk])", "        T.writes(V_rf[vk, v_i])", "        V_rf[vk, v_i] = A[v_i, vk]",
      "for i, k in T.grid(10, 36):", "    with T.sblock(\"B\"):", "        vk, v_i = T.axis.remap(\"RS\", [k, i])",
      "        T.reads(V_rf[vk, v_i])", "        T.writes(V[v_i])",
      "        with T.init():", "            V[v_i] = T.float32(0.0)", "        V[v_i] = V[v_i] + V_rf[vk, v_i]");
}

static void keeps_the_other_loops_reducing(void **state) {
  (void)state;
  struct tir *ir = read_function(AV, SPLIT_SUM);
  tir_loop dead = loop_of(ir, "B", 1);
  rfactor(ir, "B", 2, -1);
  assert_int_equal(ir->forwards.count, 1);
  assert_int_equal(ir->forwards.at[0].from, dead);
  assert_int_equal(ir->forwards.at[0].to, TIR_NONE);
  assert_function(
      ir, AV, "V_rf = T.sblock_alloc_buffer((10, 9))", "for i, k_0, k_1 in T.grid(10, 4, 9):",
      "    with T.sblock(\"B_rf\"):", "        vk_1, v_i, vk_0 = T.axis.remap(\"SSR\", [k_1, i, k_0])",
      "        T.reads(A[v_i, vk_0 * 9 + vk_1])", "        T.writes(V_rf[v_i, vk_1])",
      "        with T.init():", "            V_rf[v_i, vk_1] = T.float32(0.0)",
      "        V_rf[v_i, vk_1] = V_rf[v_i, vk_1] + A[v_i, vk_0 * 9 + vk_1]",
      "for i, k_1 in T.grid(10, 9):", "    with T.sblock(\"B\"):", "        vk_1, v_i = T.axis.remap(\"RS\", [k_1, i])",
      "        T.reads(V_rf[v_i, vk_1])", "        T.writes(V[v_i])",
      "        with T.init():", "            V[v_i] = T.float32(0.0)", "        V[v_i] = V[v_i] + V_rf[v_i, vk_1]");
}

#define POOL "A: T.Buffer((10, 3, 8), \"float32\"), V: T.Buffer((10,), \"float32\")"
#define POOL_ITERS(indent)                                                                                             \
  indent "v_i = T.axis.spatial(10, i_0 * 4 + i_1)", indent "v_h = T.axis.reduce(3, h_0 * 2 + h_1)"
#define GUARD "T.where(i_0 * 4 + i_1 < 10 and h_0 * 2 + h_1 < 3)"

/* The partial results are guarded as the reduction was, their combination by what is left of it. */
static void keeps_predicates_and_annotations(void **state) {
  (void)state;
  struct tir *ir = read_function(
      POOL, "for i_0 in T.parallel(3, annotations={\"a\": 1}):", "    for i_1, h_0, h_1, w in T.grid(4, 2, 2, 8):",
      "        with T.sblock(\"B\"):", POOL_ITERS("            "), "            v_w = T.axis.reduce(8, w)",
      "            " GUARD, "            T.reads(A[v_i, v_h, v_w])", "            T.writes(V[v_i])",
      "            T.sblock_attr({\"tag\": \"x\"})",
      "            with T.init():", "                V[v_i] = T.float32(0.0)",
      "            V[v_i] = V[v_i] + A[v_i, v_h, v_w]");
  rfactor(ir, "B", 4, 0);
  assert_function(
      ir, POOL, "V_rf = T.sblock_alloc_buffer((8, 10))",
      "for i_0 in T.parallel(3, annotations={\"a\": 1}):", "    for i_1, h_0, h_1, w in T.grid(4, 2, 2, 8):",
      "        with T.sblock(\"B_rf\"):", "            vw = T.axis.spatial(8, w)", POOL_ITERS("            "),
      "            " GUARD, "            T.reads(A[v_i, v_h, vw])", "            T.writes(V_rf[vw, v_i])",
      "            T.sblock_attr({\"tag\": \"x\"})",
      "            with T.init():", "                V_rf[vw, v_i] = T.float32(0.0)",
      "            V_rf[vw, v_i] = V_rf[vw, v_i] + A[v_i, v_h, vw]",
      "for i_0 in T.parallel(3, annotations={\"a\": 1}):", "    for i_1, w in T.grid(4, 8):",
      "        with T.sblock(\"B\"):", "            vw = T.axis.reduce(8, w)",
      "            v_i = T.axis.spatial(10, i_0 * 4 + i_1)", "            T.where(i_0 * 4 + i_1 < 10)",
      "            T.reads(V_rf[vw, v_i])", "            T.writes(V[v_i])",
      "            T.sblock_attr({\"tag\": \"x\"})",
      "            with T.init():", "                V[v_i] = T.float32(0.0)",
      "            V[v_i] = V[v_i] + V_rf[vw, v_i]");
}

/* Two reductions of one fused loop: neither can stay when the other is taken apart. */
static void takes_apart_what_shares_loops(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((10, 3, 8), \"float32\"), V: T.Buffer((10,), \"float32\")",
      "for i, f_0, f_1 in T.grid(10, 6, 4):", "    with T.sblock(\"B\"):", "        v_i = T.axis.spatial(10, i)",
      "        v_h = T.axis.reduce(3, f_0 // 2)", "        v_w = T.axis.reduce(8, f_0 % 2 * 4 + f_1)",
      "        T.reads(A[v_i, v_h, v_w])", "        T.writes(V[v_i])",
      "        with T.init():", "            V[v_i] = T.float32(0.0)", "        V[v_i] = V[v_i] + A[v_i, v_h, v_w]");
  rfactor(ir, "B", 2, 0);
  assert_int_equal(tir_block_at(ir, block_named(ir, "B_rf"))->iters.count, 3);
  tir_free(ir);
}

/* Loops of one iteration share their coefficient with the next: they come as they are nested. */
static void orders_iterations_as_the_loops(void **state) {
  (void)state;
  struct tir *ir = read_function(AV, "for i, k_0, k_2, k_1, k_3 in T.grid(10, 4, 1, 9, 1):",
                                 "    with T.sblock(\"B\"):", "        v_i = T.axis.spatial(10, i)",
                                 "        v_k = T.axis.reduce(36, k_3 + k_1 + k_2 * 9 + k_0 * 9)", SUM("    "));
  rfactor(ir, "B", 3, 0);
  const struct tir_iter *iters = tir_iters(ir, block_named(ir, "B_rf"));
  static const uint32_t nested[] = {3, 0, 1, 2, 4};
  for (uint32_t i = 0; i < 5; i++)
    assert_int_equal(tir_at(ir, iters[i].binding)->ref, tir_stmt_at(ir, loop_of(ir, "B_rf", nested[i]))->loop.var);
  tir_free(ir);
}

static void refuses_a_guard_that_joins(void **state) {
  (void)state;
  struct tir *even = read_function(
      AV, "for i, k_0, k_1 in T.grid(10, 16, 3):", "    with T.sblock(\"B\"):", "        v_i = T.axis.spatial(10, i)",
      "        v_k = T.axis.reduce(36, k_0 * 3 + k_1)", "        T.where(k_0 * 3 + k_1 < 36)", SUM("    "));
  tir_block none;
  assert_refused(even, MS_PARTIAL_NOT_AFFINE, tir_rfactor(even, loop_of(even, "B", 1), 0, &none, err));
  tir_free(even);
  for (uint32_t loop = 1; loop <= 2; loop++) {
    struct tir *ir = read_function(
        AV, "for i, k_0, k_1 in T.grid(10, 4, 10):", "    with T.sblock(\"B\"):", "        v_i = T.axis.spatial(10, i)",
        "        v_k = T.axis.reduce(36, k_0 * 10 + k_1)", "        T.where(k_0 * 10 + k_1 < 36)", SUM("    "));
    tir_block made;
    assert_refused(ir, MS_PARTIAL_NOT_AFFINE, tir_rfactor(ir, loop_of(ir, "B", loop), 0, &made, err));
    tir_free(ir);
  }
}

static void counts_the_axis_from_where_the_loop_starts(void **state) {
  (void)state;
  struct tir *ir = read_function(AV, "for i in range(10):", "    for k in range(4, 36):",
                                 "        with T.sblock(\"B\"):", "            v_i = T.axis.spatial(10, i)",
                                 "            v_k = T.axis.reduce((4, 36), k)", SUM("        "));
  rfactor(ir, "B", 1, 0);
  assert_function(ir, AV, "V_rf = T.sblock_alloc_buffer((32, 10))", "for i in range(10):", "    for k in range(4, 36):",
                  "        with T.sblock(\"B_rf\"):", "            vk = T.axis.spatial((4, 36), k)",
                  "            v_i = T.axis.spatial(10, i)", "            T.reads(A[v_i, vk])",
                  "            T.writes(V_rf[vk - 4, v_i])", "            V_rf[vk - 4, v_i] = A[v_i, vk]",
                  "for i in range(10):", "    for k in range(4, 36):", "        with T.sblock(\"B\"):",
                  "            vk = T.axis.reduce((4, 36), k)", "            v_i = T.axis.spatial(10, i)",
                  "            T.reads(V_rf[vk - 4, v_i])", "            T.writes(V[v_i])",
                  "            with T.init():", "                V[v_i] = T.float32(0.0)",
                  "            V[v_i] = V[v_i] + V_rf[vk - 4, v_i]");
}

/* ---- Reducers ---- */

static struct tir *reduce(const char *type, const char *init, const char *update) {
  char text[2048];
  int length = snprintf(text, sizeof text,
                        "@T.prim_func(s_tir=True)\n"
                        "def main(A: T.Buffer((10, 36), \"%s\"), V: T.Buffer((10,), \"%s\")):\n"
                        "    for i, k in T.grid(10, 36):\n"
                        "        with T.sblock(\"B\"):\n"
                        "            v_i, v_k = T.axis.remap(\"SR\", [i, k])\n"
                        "            T.reads(A[v_i, v_k])\n"
                        "            T.writes(V[v_i])\n"
                        "            with T.init():\n"
                        "                V[v_i] = %s\n"
                        "            V[v_i] = %s\n",
                        type, type, init, update);
  ms_error err = {0};
  struct tir *ir = tir_read(text, (size_t)length, "test", &err);
  if (!ir) fail_msg("%s", err.message);
  return ir;
}

static void knows_the_identities(void **state) {
  (void)state;
  static const char sum[] = "V[v_i] + A[v_i, v_k]", product[] = "V[v_i] * A[v_i, v_k]";
  static const char least[] = "T.min(V[v_i], A[v_i, v_k])", most[] = "T.max(V[v_i], A[v_i, v_k])";
  static const char *const cases[][3] = {
      {"float32", "T.float32(0.0)", sum},
      {"float32", "T.float32(1.0)", product},
      {"float32", "T.float32(340282346638528859811704183484516925440.0)", least},
      {"float32", "T.float32(-340282346638528859811704183484516925440.0)", most},
      {"float64", "T.float64(-1.7976931348623157e308)", most},
      {"float16", "T.float16(0.0)", sum},
      {"float16", "T.float16(65504.0)", least},
      {"bfloat16", "T.bfloat16(-338953138925153547590470800371487866880.0)", most},
      {"bfloat16", "T.bfloat16(-340282346638528859811704183484516925440.0)", most},
      {"int8", "T.int8(-128)", most},
      {"int8", "T.int8(0)", sum},
      {"uint8", "T.uint8(255)", least},
      {"uint8", "T.uint8(0)", most},
      {"uint32", "T.uint32(4294967295)", least},
      {"int32", "2147483647", least},
      {"int64", "T.int64(-9223372036854775808)", most},
      {"int64", "T.int64(1)", product},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tir *ir = reduce(cases[i][0], cases[i][1], cases[i][2]);
    rfactor(ir, "B", 1, 0);
    tir_free(ir);
  }
}

#define assert_not_factored(ir, code, loop, axis)                                                                      \
  do {                                                                                                                 \
    tir_block made;                                                                                                    \
    assert_refused(ir, code, tir_rfactor(ir, loop, axis, &made, err));                                                 \
    tir_free(ir);                                                                                                      \
  } while (0)

static void refuses_other_combinations(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"float32", "T.float32(1.0)", "V[v_i] + A[v_i, v_k]"},
      {"float32", "T.float32(0.0)", "A[v_i, v_k] + V[v_i]"},
      {"float32", "T.float32(0.0)", "V[v_i] - A[v_i, v_k]"},
      {"float32", "T.float32(0.0)", "T.max(V[v_i], A[v_i, v_k])"},
      {"float32", "T.float32(0.0)", "V[v_i] + A[v_i, v_k] * V[v_i]"},
      {"float32", "T.float32(\"-inf\")", "T.max(V[v_i], A[v_i, v_k])"},
      {"int16", "T.int16(-128)", "T.max(V[v_i], A[v_i, v_k])"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tir *ir = reduce(cases[i][0], cases[i][1], cases[i][2]);
    assert_not_factored(ir, MS_NO_REDUCER, loop_of(ir, "B", 1), 0);
  }
}

/* ---- Two buffers ---- */

#define IV      "A: T.Buffer((8, 20), \"float32\"), I: T.Buffer((8,), \"int32\"), V: T.Buffer((8,), \"float32\")"
#define LOWEST  "T.float32(-340282346638528859811704183484516925440.0)"
#define HIGHEST "T.float32(340282346638528859811704183484516925440.0)"

static struct tir *arg_reduce(const char *highest, const char *index_wins, const char *value_wins) {
  char init[200], index[300], value[300];
  snprintf(init, sizeof init, "            V[v_i] = %s", highest);
  snprintf(index, sizeof index, "        v_I: T.let[T.int32] = T.Select(%s, I[v_i], v_k)", index_wins);
  snprintf(value, sizeof value, "        v_V: T.let[T.float32] = T.Select(%s, V[v_i], A[v_i, v_k])", value_wins);
  return read_function(IV, "for i, k in T.grid(8, 20):", "    with T.sblock(\"B\"):",
                       "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", "        T.reads(A[v_i, v_k])",
                       "        T.writes(I[v_i], V[v_i])", "        with T.init():", "            I[v_i] = -1", init,
                       index, value, "        V[v_i] = v_V", "        I[v_i] = v_I");
}

static void factors_arg_reductions(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {LOWEST, "V[v_i] > A[v_i, v_k] or V[v_i] == A[v_i, v_k] and I[v_i] < v_k", "V[v_i] > A[v_i, v_k]"},
      {LOWEST, "V[v_i] > A[v_i, v_k] or V[v_i] == A[v_i, v_k] and I[v_i] > v_k", "V[v_i] > A[v_i, v_k]"},
      {HIGHEST, "V[v_i] < A[v_i, v_k] or V[v_i] == A[v_i, v_k] and I[v_i] < v_k", "V[v_i] < A[v_i, v_k]"},
      {HIGHEST, "V[v_i] < A[v_i, v_k] or V[v_i] == A[v_i, v_k] and I[v_i] > v_k", "V[v_i] < A[v_i, v_k]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tir *ir = arg_reduce(cases[i][0], cases[i][1], cases[i][2]);
    rfactor(ir, "B", 1, 1);
    tir_free(ir);
  }
}

/* Which of equal elements came first is another question in parts of them. */
static void refuses_arg_reductions_that_keep_the_first(void **state) {
  (void)state;
  static const char *const cases[][2] = {{LOWEST, "V[v_i] >= A[v_i, v_k]"}, {HIGHEST, "V[v_i] <= A[v_i, v_k]"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tir *ir = arg_reduce(cases[i][0], cases[i][1], cases[i][1]);
    assert_not_factored(ir, MS_REDUCTION_TIES, loop_of(ir, "B", 1), 0);
  }
}

static void binds_the_values_of_two_buffers(void **state) {
  (void)state;
  struct tir *ir =
      arg_reduce(LOWEST, "V[v_i] > A[v_i, v_k] or V[v_i] == A[v_i, v_k] and I[v_i] < v_k", "V[v_i] > A[v_i, v_k]");
  rfactor(ir, "B", 1, 0);
  assert_function(
      ir, IV, "I_rf = T.sblock_alloc_buffer((20, 8), \"int32\")", "V_rf = T.sblock_alloc_buffer((20, 8))",
      "for i, k in T.grid(8, 20):", "    with T.sblock(\"B_rf\"):", "        vk, v_i = T.axis.remap(\"SS\", [k, i])",
      "        T.reads(A[v_i, vk])", "        T.writes(I_rf[vk, v_i], V_rf[vk, v_i])", "        I_rf[vk, v_i] = vk",
      "        V_rf[vk, v_i] = A[v_i, vk]",
      "for i, k in T.grid(8, 20):", "    with T.sblock(\"B\"):", "        vk, v_i = T.axis.remap(\"RS\", [k, i])",
      "        T.reads(I_rf[vk, v_i], V_rf[vk, v_i])", "        T.writes(I[v_i], V[v_i])",
      "        with T.init():", "            I[v_i] = -1", "            V[v_i] = " LOWEST,
      "        v_I: T.let[T.int32] = T.Select(V[v_i] > V_rf[vk, v_i] or V[v_i] == V_rf[vk, v_i] and "
      "I[v_i] < I_rf[vk, v_i], I[v_i], I_rf[vk, v_i])",
      "        v_V: T.let[T.float32] = T.Select(V[v_i] > V_rf[vk, v_i], V[v_i], V_rf[vk, v_i])", "        I[v_i] = v_I",
      "        V[v_i] = v_V");
}

#define SQ "A: T.Buffer((8, 20), \"float32\"), S: T.Buffer((8,), \"float32\"), Q: T.Buffer((8,), \"float32\")"
#define SQ_HEAD                                                                                                        \
  "for i, k in T.grid(8, 20):", "    with T.sblock(\"B\"):", "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",        \
      "        T.reads(A[v_i, v_k])", "        T.writes(S[v_i], Q[v_i])", "        with T.init():"
#define SQ_INIT "            Q[v_i] = T.float32(0.0)", "            S[v_i] = T.float32(0.0)"
#define SQ_LETS                                                                                                        \
  "        s: T.let[T.float32] = S[v_i] + A[v_i, v_k]",                                                                \
      "        q: T.let[T.float32] = Q[v_i] + A[v_i, v_k] * A[v_i, v_k]"

static void factors_pairs_of_sums(void **state) {
  (void)state;
  struct tir *ir = read_function(SQ, SQ_HEAD, SQ_INIT, SQ_LETS, "        S[v_i] = s", "        Q[v_i] = q");
  rfactor(ir, "B", 1, 0);
  tir_free(ir);
}

static void refuses_other_bodies(void **state) {
  (void)state;
  struct tir *ir = read_function(SQ, SQ_HEAD, SQ_INIT, "        S[v_i] = S[v_i] + A[v_i, v_k]",
                                 "        Q[v_i] = Q[v_i] + A[v_i, v_k]");
  assert_not_factored(ir, MS_REDUCTION_BODY_FORM, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, SQ_INIT, SQ_LETS, "        S[v_i] = s", "        Q[v_i] = q", "        Q[v_i] = q");
  assert_not_factored(ir, MS_REDUCTION_BODY_FORM, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, SQ_INIT, SQ_LETS, "        S[v_i] = s", "        Q[v_i] = s");
  assert_not_factored(ir, MS_REDUCTION_VALUES_STORED, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, SQ_INIT, SQ_LETS, "        S[v_i] = s", "        Q[v_i] = T.float32(1.0)");
  assert_not_factored(ir, MS_REDUCTION_VALUES_STORED, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, SQ_INIT, SQ_LETS, "        S[v_i] = s", "        S[v_i] = q");
  assert_not_factored(ir, MS_REDUCTION_BUFFER_TWICE, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, "            S[v_i] = T.float32(0.0)", "            S[v_i] = T.float32(0.0)", SQ_LETS,
                     "        S[v_i] = s", "        Q[v_i] = q");
  assert_not_factored(ir, MS_NOT_REDUCTION_BLOCK, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, "            S[v_i] = T.float32(0.0)", "        Q[v_i] = A[v_i, v_k]");
  assert_not_factored(ir, MS_REDUCTION_BUFFERS_DIFFER, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, "            for j in range(1):", "                S[v_i] = T.float32(0.0)",
                     "        S[v_i] = S[v_i] + A[v_i, v_k]");
  assert_not_factored(ir, MS_REDUCTION_INIT_FORM, loop_of(ir, "B", 1), 0);
  ir = read_function(SQ, SQ_HEAD, "            S[7 - v_i] = T.float32(0.0)", "        S[v_i] = S[v_i] + A[v_i, v_k]");
  assert_not_factored(ir, MS_NOT_REDUCTION_BLOCK, loop_of(ir, "B", 1), 0);
}

static void refuses_buffers_of_two_shapes(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((8, 20), \"float32\"), S: T.Buffer((8,), \"float32\"), Q: T.Buffer((9,), \"float32\")",
                    SQ_HEAD, SQ_INIT, SQ_LETS, "        S[v_i] = s", "        Q[v_i] = q");
  assert_not_factored(ir, MS_REDUCTION_SHAPES_DIFFER, loop_of(ir, "B", 1), 0);
}

/* A value that is bound twice over is no function of the iteration alone. */
static void refuses_values_that_depend_on_lets(void **state) {
  (void)state;
  struct tir *ir =
      read_function(SQ, SQ_HEAD, SQ_INIT, "        s: T.let[T.float32] = S[v_i] + A[v_i, v_k]",
                    "        q: T.let[T.float32] = Q[v_i] + s", "        S[v_i] = s", "        Q[v_i] = q");
  assert_not_factored(ir, MS_NO_REDUCER, loop_of(ir, "B", 1), 0);
}

/* ---- Refusals of the loops around ---- */

static void refuses_the_axis(void **state) {
  (void)state;
  struct tir *ir = row_sum();
  assert_not_factored(ir, MS_FACTOR_AXIS_RANGE, loop_of(ir, "B", 1), 2);
  ir = row_sum();
  assert_not_factored(ir, MS_FACTOR_AXIS_RANGE, loop_of(ir, "B", 1), -3);
  ir = row_sum();
  rfactor(ir, "B", 1, -2);
  tir_free(ir);
}

static void refuses_spatial_and_other_loops(void **state) {
  (void)state;
  struct tir *ir = row_sum();
  assert_not_factored(ir, MS_RFACTOR_LOOP_SPATIAL, loop_of(ir, "B", 0), 0);
  ir = read_function(AV, "for i in range(10):", "    for k in T.unroll(36):", "        with T.sblock(\"B\"):",
                     "            v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("        "));
  assert_not_factored(ir, MS_LOOP_NOT_SERIAL, loop_of(ir, "B", 1), 0);
  ir = read_function(AV,
                     "for f in range(360):", "    with T.sblock(\"B\"):", "        v_i = T.axis.spatial(10, f // 36)",
                     "        v_k = T.axis.reduce(36, f % 36)", SUM("    "));
  assert_not_factored(ir, MS_LOOP_SPATIAL_AND_REDUCTION, loop_of(ir, "B", 0), 0);
  ir = read_function(AV, "for i, k, r in T.grid(10, 36, 2):", "    with T.sblock(\"B\"):",
                     "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
  assert_not_factored(ir, MS_LOOP_UNBOUND, loop_of(ir, "B", 1), 0);
  ir = read_function(AV, "for r, i, k in T.grid(2, 10, 36):", "    with T.sblock(\"B\"):",
                     "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
  assert_not_factored(ir, MS_LOOP_UNBOUND, loop_of(ir, "B", 0), 0);
}

static void factors_a_loop_of_one_iteration(void **state) {
  (void)state;
  struct tir *ir = read_function(AV, "for r, i, k in T.grid(1, 10, 36):", "    with T.sblock(\"B\"):",
                                 "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "));
  rfactor(ir, "B", 0, 0);
  tir_free(ir);
}

#define AVW AV ", W: T.Buffer((10,), \"float32\")"
#define DOUBLE(indent, name)                                                                                           \
  indent "with T.sblock(\"" name "\"):", indent "    v_i = T.axis.spatial(10, i)", indent "    T.reads(A[v_i, 0])",    \
      indent "    T.writes(W[v_i])", indent "    W[v_i] = A[v_i, 0]"

static void refuses_other_blocks_beside(void **state) {
  (void)state;
  struct tir *ir = read_function(AVW, "for i in range(10):", DOUBLE("    ", "D"), "    for k in range(36):",
                                 "        with T.sblock(\"B\"):", "            v_i, v_k = T.axis.remap(\"SR\", [i, k])",
                                 SUM("        "));
  assert_not_factored(ir, MS_NOT_FIRST_CHILD_BLOCK, loop_of(ir, "B", 1), 0);
  ir = read_function(AVW, "for i, k in T.grid(10, 36):", "    with T.sblock(\"B\"):",
                     "        v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("    "), DOUBLE("    ", "D"));
  assert_not_factored(ir, MS_NOT_ONE_CHILD_BLOCK, loop_of(ir, "B", 1), 0);
  ir = read_function(AVW, "for i, k_0 in T.grid(10, 4):", "    for k_1 in range(9):", "        with T.sblock(\"B\"):",
                     "            v_i = T.axis.spatial(10, i)", "            v_k = T.axis.reduce(36, k_0 * 9 + k_1)",
                     SUM("        "), DOUBLE("    ", "D"));
  assert_not_factored(ir, MS_REDUCTION_LOOP_SHARED, loop_of(ir, "B", 2), 0);
}

static void keeps_blocks_that_follow(void **state) {
  (void)state;
  struct tir *ir =
      read_function(AVW, "for i in range(10):", "    for k in range(36):", "        with T.sblock(\"B\"):",
                    "            v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("        "), DOUBLE("    ", "D"));
  rfactor(ir, "B", 1, 0);
  assert_int_equal(tir_stmt_at(ir, block_named(ir, "D"))->parent, loop_of(ir, "B", 0));
  tir_free(ir);
}

static void refuses_what_stands_around_or_inside(void **state) {
  (void)state;
  struct tir *ir = read_function(
      AV, "for i in range(10):", "    if i < 7:", "        for k in range(36):", "            with T.sblock(\"B\"):",
      "                v_i, v_k = T.axis.remap(\"SR\", [i, k])", SUM("            "));
  assert_not_factored(ir, MS_NOT_ONLY_LOOPS_BETWEEN, loop_of(ir, "B", 1), 0);
  ir = read_function(
      AV, "for i, k in T.grid(10, 36):", "    with T.sblock(\"B\"):", "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",
      "        T.reads(A[v_i, v_k])", "        T.writes(V[v_i])", "        W = T.sblock_alloc_buffer((1,))",
      "        with T.init():", "            V[v_i] = T.float32(0.0)", "        V[v_i] = V[v_i] + A[v_i, v_k]");
  assert_not_factored(ir, MS_REDUCTION_OWN_BUFFERS, loop_of(ir, "B", 1), 0);
  ir = read_function(
      AVW,
      "for i, k in T.grid(10, 36):", "    with T.sblock(\"B\"):", "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",
      "        T.reads(A[v_i, v_k])", "        T.writes(V[v_i], W[v_i])",
      "        with T.init():", "            V[v_i] = T.float32(0.0)", "        V[v_i] = V[v_i] + A[v_i, v_k]");
  assert_not_factored(ir, MS_WRITES_NOT_REDUCED, loop_of(ir, "B", 1), 0);
}

static void refuses_what_is_no_reduction(void **state) {
  (void)state;
  struct tir *ir = row_sum();
  rfactor(ir, "B", 1, 0);
  assert_not_factored(ir, MS_NOT_REDUCTION_BLOCK, loop_of(ir, "B_rf", 1), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_a_spatial_loop_of_the_reduction),
      cmocka_unit_test(keeps_the_other_loops_reducing),
      cmocka_unit_test(keeps_predicates_and_annotations),
      cmocka_unit_test(takes_apart_what_shares_loops),
      cmocka_unit_test(orders_iterations_as_the_loops),
      cmocka_unit_test(refuses_a_guard_that_joins),
      cmocka_unit_test(counts_the_axis_from_where_the_loop_starts),
      cmocka_unit_test(knows_the_identities),
      cmocka_unit_test(refuses_other_combinations),
      cmocka_unit_test(factors_arg_reductions),
      cmocka_unit_test(refuses_arg_reductions_that_keep_the_first),
      cmocka_unit_test(binds_the_values_of_two_buffers),
      cmocka_unit_test(factors_pairs_of_sums),
      cmocka_unit_test(refuses_other_bodies),
      cmocka_unit_test(refuses_buffers_of_two_shapes),
      cmocka_unit_test(refuses_values_that_depend_on_lets),
      cmocka_unit_test(refuses_the_axis),
      cmocka_unit_test(refuses_spatial_and_other_loops),
      cmocka_unit_test(factors_a_loop_of_one_iteration),
      cmocka_unit_test(refuses_other_blocks_beside),
      cmocka_unit_test(keeps_blocks_that_follow),
      cmocka_unit_test(refuses_what_stands_around_or_inside),
      cmocka_unit_test(refuses_what_is_no_reduction),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
