/* Fuse and reorder: values, names, non-perfect nests, refusals. */
#include "unit/script.h"

#define AB   "A: T.Buffer((4, 6, 8), \"float32\"), B: T.Buffer((4, 6, 8), \"float32\")"
#define COPY "        T.reads(A[x, y, z])", "        T.writes(B[x, y, z])", "        B[x, y, z] = A[x, y, z]"

static struct tir *copy_of_box(void) {
  return read_function(AB, "for i, j, k in T.grid(4, 6, 8):", "    with T.sblock(\"B\"):",
                       "        x, y, z = T.axis.remap(\"SSS\", [i, j, k])", COPY);
}

static void loops_by(struct tir *ir, const char *block, const char *order, tir_loop *out) {
  for (uint32_t i = 0; order[i]; i++) out[i] = loop_of(ir, block, (uint32_t)(order[i] - '0'));
}

static bool fuse(struct tir *ir, const char *block, const char *order, bool preserve, ms_error *err) {
  tir_loop loops[8], out;
  loops_by(ir, block, order, loops);
  return tir_fuse(ir, loops, (uint32_t)strlen(order), preserve, &out, err);
}

static bool reorder(struct tir *ir, const char *block, const char *order, ms_error *err) {
  tir_loop loops[8];
  loops_by(ir, block, order, loops);
  return tir_reorder(ir, loops, (uint32_t)strlen(order), err);
}

static void fuses_three(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  assert_accepted(fuse(ir, "B", "012", true, err));
  assert_function(
      ir, AB,
      "for i_j_k_fused in range(192):", "    with T.sblock(\"B\"):", "        x = T.axis.spatial(4, i_j_k_fused // 48)",
      "        y = T.axis.spatial(6, i_j_k_fused // 8 % 6)", "        z = T.axis.spatial(8, i_j_k_fused % 8)", COPY);
}

static void fuses_one(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  assert_accepted(fuse(ir, "B", "1", true, err));
  assert_function(ir, AB, "for i, j_fused, k in T.grid(4, 6, 8):", "    with T.sblock(\"B\"):",
                  "        x, y, z = T.axis.remap(\"SSS\", [i, j_fused, k])", COPY);
}

static void fusing_undoes_a_split(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  tir_loop out[3];
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, 2), tir_int(ir, TIR_T_I32, 2)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 2), factors, 3, true, false, out, err));
  assert_accepted(fuse(ir, "B", "234", true, err));
  assert_function(ir, AB, "for i, j, k_0_k_1_k_2_fused in T.grid(4, 6, 8):", "    with T.sblock(\"B\"):",
                  "        x, y, z = T.axis.remap(\"SSS\", [i, j, k_0_k_1_k_2_fused])", COPY);
}

static void unit_loops_fuse_to_zero(void **state) {
  (void)state;
  struct tir *ir = read_function(AB, "for i, j, k in T.grid(1, 6, 8):", "    with T.sblock(\"B\"):",
                                 "        x, y, z = T.axis.remap(\"SSS\", [i, j, k])", COPY);
  assert_accepted(fuse(ir, "B", "01", true, err));
  assert_function(ir, AB,
                  "for i_j_fused, k in T.grid(6, 8):", "    with T.sblock(\"B\"):", "        x = T.axis.spatial(1, 0)",
                  "        y, z = T.axis.remap(\"SS\", [i_j_fused, k])", COPY);
}

static void fuses_symbolic_extents(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "a: T.handle, n: T.int32, m: T.int32", "A = T.match_buffer(a, (n, m))",
      "for i, j in T.grid(n, m):", "    with T.sblock(\"A\"):", "        x, y = T.axis.remap(\"SS\", [i, j])",
      "        T.reads()", "        T.writes(A[x, y])", "        A[x, y] = T.float32(0.0)");
  assert_accepted(fuse(ir, "A", "01", true, err));
  assert_function(ir, "a: T.handle, n: T.int32, m: T.int32", "A = T.match_buffer(a, (n, m))",
                  "for i_j_fused in range(n * m):", "    with T.sblock(\"A\"):",
                  "        x = T.axis.spatial(n, i_j_fused // m)", "        y = T.axis.spatial(m, i_j_fused % m)",
                  "        T.reads()", "        T.writes(A[x, y])", "        A[x, y] = T.float32(0.0)");
}

#define TWO_BLOCKS                                                                                                     \
  "for i in range(4):", "    for j, k in T.grid(6, 8):", "        with T.sblock(\"B\"):",                              \
      "            x, y, z = T.axis.remap(\"SSS\", [i, j, k])", "            T.reads(A[x, y, z])",                     \
      "            T.writes(B[x, y, z])", "            B[x, y, z] = A[x, y, z]", "    for j, k in T.grid(6, 8):",      \
      "        with T.sblock(\"C\"):", "            x, y, z = T.axis.remap(\"SSS\", [i, j, k])",                       \
      "            T.reads(B[x, y, z])", "            T.writes(C[x, y, z])", "            C[x, y, z] = B[x, y, z]"
#define ABC AB ", C: T.Buffer((4, 6, 8), \"float32\")"

static void refuses_to_fuse(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  tir_loop out;
  assert_refused(ir, MS_NO_LOOPS, tir_fuse(ir, NULL, 0, true, &out, err));
  assert_refused(ir, MS_LOOP_NOT_NESTED, fuse(ir, "B", "02", true, err));
  assert_refused(ir, MS_LOOP_NOT_NESTED, fuse(ir, "B", "10", true, err));
  assert_refused(ir, MS_LOOP_NOT_NESTED, fuse(ir, "B", "11", true, err));
  tir_free(ir);
  ir = read_function(ABC, TWO_BLOCKS);
  assert_refused(ir, MS_LOOP_NOT_ONLY_CHILD, fuse(ir, "C", "01", true, err));
  assert_accepted(tir_bind(ir, loop_of(ir, "C", 1), "threadIdx.x", err));
  assert_refused(ir, MS_LOOP_ANNOTATED_OR_BOUND, fuse(ir, "C", "12", true, err));
  tir_free(ir);
  ir = read_function("A: T.Buffer((65536, 65536), \"int8\")", "for i, j in T.grid(65536, 65536):",
                     "    with T.sblock(\"A\"):", "        x, y = T.axis.remap(\"SS\", [i, j])", "        T.reads()",
                     "        T.writes(A[x, y])", "        A[x, y] = T.int8(0)");
  assert_refused(ir, MS_TOO_LARGE, fuse(ir, "A", "01", true, err));
  tir_free(ir);
}

#define TRIANGLE                                                                                                       \
  "for i in range(8):", "    for j in range(i + 1):", "        with T.sblock(\"A\"):",                                 \
      "            x, y = T.axis.remap(\"SS\", [i, j])", "            T.reads()", "            T.writes(A[x, y])",     \
      "            A[x, y] = T.float32(0.0)"

static void refuses_dependent_ranges(void **state) {
  (void)state;
  struct tir *ir = read_function("A: T.Buffer((8, 8), \"float32\")", TRIANGLE);
  assert_refused(ir, MS_EXTENT_DEPENDS_ON_LOOP, fuse(ir, "A", "01", true, err));
  /* Ranges that depend on each other are no affine domain: that is what is seen first. */
  assert_refused(ir, MS_BINDING_NOT_AFFINE, reorder(ir, "A", "10", err));
  tir_free(ir);
  ir = read_function("A: T.Buffer((8,), \"float32\")", "for i in range(8):", "    for j in range(i + 1):",
                     "        with T.sblock(\"A\"):", "            T.reads()", "            T.writes(A[0])",
                     "            A[0] = T.float32(0.0)");
  assert_refused(ir, MS_REORDER_DEPENDENT_RANGE, reorder(ir, "A", "10", err));
  tir_free(ir);
}

static void reorders(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  tir_loop k = loop_of(ir, "B", 2);
  assert_accepted(reorder(ir, "B", "20", err));
  assert_int_equal(loop_of(ir, "B", 0), k);
  assert_int_equal(ir->forwards.count, 0);
  assert_function(ir, AB, "for k, j, i in T.grid(8, 6, 4):", "    with T.sblock(\"B\"):",
                  "        x, y, z = T.axis.remap(\"SSS\", [i, j, k])", COPY);
}

static void reorders_above_a_body_of_two(void **state) {
  (void)state;
  struct tir *ir = read_function(
      ABC, "for i, j in T.grid(4, 6):", "    for k in range(8):", "        with T.sblock(\"B\"):",
      "            x, y, z = T.axis.remap(\"SSS\", [i, j, k])", "            T.reads(A[x, y, z])",
      "            T.writes(B[x, y, z])", "            B[x, y, z] = A[x, y, z]", "    for k in range(8):",
      "        with T.sblock(\"C\"):", "            x, y, z = T.axis.remap(\"SSS\", [i, j, k])",
      "            T.reads(B[x, y, z])", "            T.writes(C[x, y, z])", "            C[x, y, z] = B[x, y, z]");
  assert_accepted(reorder(ir, "C", "10", err));
  assert_function(ir, ABC, "for j, i in T.grid(6, 4):", "    for k in range(8):", "        with T.sblock(\"B\"):",
                  "            x, y, z = T.axis.remap(\"SSS\", [i, j, k])", "            T.reads(A[x, y, z])",
                  "            T.writes(B[x, y, z])", "            B[x, y, z] = A[x, y, z]", "    for k in range(8):",
                  "        with T.sblock(\"C\"):", "            x, y, z = T.axis.remap(\"SSS\", [i, j, k])",
                  "            T.reads(B[x, y, z])", "            T.writes(C[x, y, z])",
                  "            C[x, y, z] = B[x, y, z]");
}

static void one_loop_keeps_its_place(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  assert_accepted(reorder(ir, "B", "1", err));
  assert_function(ir, AB, "for i, j, k in T.grid(4, 6, 8):", "    with T.sblock(\"B\"):",
                  "        x, y, z = T.axis.remap(\"SSS\", [i, j, k])", COPY);
}

static void refuses_to_reorder(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  assert_refused(ir, MS_LOOP_REPEATED, reorder(ir, "B", "121", err));
  tir_free(ir);
  ir = read_function(ABC, TWO_BLOCKS);
  assert_refused(ir, MS_LOOPS_NOT_A_CHAIN, reorder(ir, "C", "10", err));
  tir_loop apart[] = {loop_of(ir, "B", 1), loop_of(ir, "C", 1)};
  assert_refused(ir, MS_LOOPS_NOT_A_CHAIN, tir_reorder(ir, apart, 2, err));
  tir_free(ir);
}

static void refuses_blocks_of_unknown_order(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((8, 8), \"float32\")",
                    "for i, j in T.grid(8, 8):", "    with T.sblock(\"A\"):", "        x = T.axis.spatial(8, i)",
                    "        y = T.axis.opaque(8, j)", "        T.reads()", "        T.writes(A[x, y])",
                    "        A[x, y] = T.float32(0.0)");
  assert_refused(ir, MS_BLOCK_ITER_OPAQUE, reorder(ir, "A", "10", err));
  tir_free(ir);
  ir = read_function("A: T.Buffer((8, 15), \"float32\")",
                     "for i, j in T.grid(8, 8):", "    with T.sblock(\"A\"):", "        x = T.axis.spatial(8, i)",
                     "        y = T.axis.spatial(15, i + j)", "        T.reads()", "        T.writes(A[x, y])",
                     "        A[x, y] = T.float32(0.0)");
  assert_refused(ir, MS_BINDING_NOT_AFFINE, reorder(ir, "A", "10", err));
  tir_free(ir);
}

/* Sums of rows of 5: the loop over all elements in pieces of 3, or of whole rows. */
static struct tir *fused_sum(int64_t piece) {
  struct tir *ir = read_function(
      "A: T.Buffer((6, 5), \"float32\"), S: T.Buffer((6,), \"float32\")",
      "for i, k in T.grid(6, 5):", "    with T.sblock(\"S\"):", "        x, y = T.axis.remap(\"SR\", [i, k])",
      "        T.reads(A[x, y])", "        T.writes(S[x])",
      "        with T.init():", "            S[x] = T.float32(0.0)", "        S[x] = S[x] + A[x, y]");
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, piece)};
  assert_accepted(fuse(ir, "S", "01", true, err));
  assert_accepted(tir_split(ir, loop_of(ir, "S", 0), factors, 2, true, false, out, err));
  return ir;
}

static void keeps_inits_first(void **state) {
  (void)state;
  struct tir *ir = fused_sum(3), *plain = fused_sum(3);
  assert_refused(ir, MS_REORDER_INIT, reorder(ir, "S", "10", err));
  tir_free(ir);
  ir = fused_sum(10);
  assert_accepted(reorder(ir, "S", "10", err));
  assert_accepted(tir_equal_results(plain, 1, NULL, ir, 1, NULL, 1, err));
  tir_free(plain);
  tir_free(ir);
}

static void refuses_to_lose_bindings(void **state) {
  (void)state;
  struct tir *ir = copy_of_box();
  tir_loop out[2];
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, 5)};
  assert_accepted(tir_split(ir, loop_of(ir, "B", 0), factors, 2, true, false, out, err));
  assert_refused(ir, MS_BINDING_LOST, fuse(ir, "B", "23", false, err));
  assert_accepted(fuse(ir, "B", "23", true, err));
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fuses_three),
      cmocka_unit_test(fuses_one),
      cmocka_unit_test(fusing_undoes_a_split),
      cmocka_unit_test(unit_loops_fuse_to_zero),
      cmocka_unit_test(fuses_symbolic_extents),
      cmocka_unit_test(refuses_to_fuse),
      cmocka_unit_test(refuses_dependent_ranges),
      cmocka_unit_test(reorders),
      cmocka_unit_test(reorders_above_a_body_of_two),
      cmocka_unit_test(one_loop_keeps_its_place),
      cmocka_unit_test(refuses_to_reorder),
      cmocka_unit_test(refuses_blocks_of_unknown_order),
      cmocka_unit_test(keeps_inits_first),
      cmocka_unit_test(refuses_to_lose_bindings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
