/* The verifier on scopes, types and regions: what TensorIR forbids is refused, what it allows is not. */
#include "unit/script.h"

static void expect_ok(struct tir *ir) {
  ms_error err = {0};
  if (!tir_verify(ir, &err)) fail_msg("%s", err.message);
  tir_free(ir);
}

#define A_C "A: T.Buffer((8, 8), \"float32\"), C: T.Buffer((8, 8), \"float32\")"
#define NEST                                                                                                           \
  "for i, j in T.grid(8, 8):", "    with T.sblock(\"C\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",           \
      "        T.reads(A[vi, vj])", "        T.writes(C[vi, vj])"

/* A nest, its parts found. */
struct nest {
  struct tir *ir;
  tir_loop i, j;
  tir_block block;
  tir_stmt store;
  tir_buffer a, c;
};

static struct nest new_nest(void) {
  struct nest n = {.ir = read_function(A_C, NEST, "        C[vi, vj] = A[vi, vj]")};
  n.block = block_named(n.ir, "C");
  n.i = loop_of(n.ir, "C", 0);
  n.j = loop_of(n.ir, "C", 1);
  n.store = tir_stmt_at(n.ir, n.block)->first[TIR_BODY];
  const struct tir_param *params = n.ir->params.at + n.ir->funcs.at[1].params.first;
  n.a = params[0].buffer;
  n.c = params[1].buffer;
  return n;
}

static tir_expr loop_var(const struct nest *n, tir_loop l) {
  return tir_var_expr(n->ir, tir_stmt_at(n->ir, l)->loop.var);
}

static void accepts_what_is_well_formed(void **state) {
  (void)state;
  expect_ok(new_nest().ir);
  /* A block without iteration variables stands in its loops and may use them; lets hold for the rest of their list. */
  expect_ok(read_function(A_C, "for i, j in T.grid(8, 8):", "    with T.sblock(\"outer\"):", "        T.reads(A[i, j])",
                          "        T.writes(C[i, j])", "        x: T.let[T.float32] = A[i, j]",
                          "        with T.sblock(\"C\"):", "            vi, vj = T.axis.remap(\"SS\", [i, j])",
                          "            T.reads()", "            T.writes(C[vi, vj])", "            C[vi, vj] = x"));
}

static void refuses_variables_out_of_scope(void **state) {
  (void)state;
  struct nest n = new_nest();
  tir_var stray = tir_new_var(n.ir, TIR_VAR_PLAIN, tir_name_of(n.ir, "stray"), TIR_T_I32, TIR_NONE, TIR_NONE);
  n.ir->operands.at[tir_stmt_at(n.ir, n.store)->store.indices] = tir_var_expr(n.ir, stray);
  expect_broken(n.ir, MS_VERIFY_NOT_IN_SCOPE, "variable stray");
  n = new_nest();
  /* The loop's own extent cannot use an iteration variable of a block inside. */
  tir_expr vi = tir_var_expr(n.ir, tir_iters(n.ir, n.block)[0].var);
  tir_var v = tir_new_var(n.ir, TIR_VAR_LOOP, tir_name_of(n.ir, "k"), TIR_T_I32, tir_int(n.ir, TIR_T_I32, 0), vi);
  tir_stmt_at(n.ir, n.j)->loop.var = v;
  tir_stmt_at(n.ir, n.j)->loop.extent = vi;
  expect_broken(n.ir, MS_VERIFY_NOT_IN_SCOPE, "variable vi");
}

static void refuses_loop_variables_inside_blocks(void **state) {
  (void)state;
  struct nest n = new_nest();
  tir_expr i = loop_var(&n, n.i);
  n.ir->operands.at[tir_stmt_at(n.ir, n.store)->store.indices] = i;
  expect_broken(n.ir, MS_VERIFY_ISOLATION, "loop variable i is used inside block C");
  n = new_nest();
  i = loop_var(&n, n.i);
  const struct tir_block_record *r = tir_block_at(n.ir, n.block);
  n.ir->operands.at[n.ir->regions.at[r->reads.first].ranges] = i;
  expect_broken(n.ir, MS_VERIFY_ISOLATION, "loop variable i");
}

static void refuses_what_is_defined_twice(void **state) {
  (void)state;
  struct nest n = new_nest();
  struct tir_stmt_node *j = tir_stmt_at(n.ir, n.j);
  j->loop.var = tir_stmt_at(n.ir, n.i)->loop.var;
  expect_broken(n.ir, MS_VERIFY_DEFINED_TWICE, "variable i");
  n = new_nest();
  tir_iters(n.ir, n.block)[1].var = tir_iters(n.ir, n.block)[0].var;
  expect_broken(n.ir, MS_VERIFY_DEFINED_TWICE, "variable vi");
  n = new_nest();
  tir_add_alloc(n.ir, n.block, n.a); /* the lists of allocations, which are looked at before, have it once */
  expect_broken(n.ir, MS_VERIFY_LISTS, "buffer A");
}

static void refuses_buffers_out_of_scope(void **state) {
  (void)state;
  struct nest n = new_nest();
  tir_expr shape[2] = {tir_int(n.ir, TIR_T_I32, 8), tir_int(n.ir, TIR_T_I32, 8)};
  tir_buffer b = tir_new_buffer(n.ir, tir_symbol_of(n.ir, "B"), TIR_T_F32, shape, 2, tir_symbol_of(n.ir, "global"));
  tir_stmt_at(n.ir, n.store)->store.buffer = b;
  expect_broken(n.ir, MS_VERIFY_NOT_IN_SCOPE, "buffer B");
  n = new_nest();
  b = tir_new_buffer(n.ir, tir_symbol_of(n.ir, "B"), TIR_T_F32, shape, 0, tir_symbol_of(n.ir, "global"));
  tir_expr load = tir_load(n.ir, b, NULL, 0, TIR_NONE);
  tir_stmt_at(n.ir, n.store)->store.value = load;
  expect_broken(n.ir, MS_VERIFY_NOT_IN_SCOPE, "buffer B");
}

static void refuses_domains_that_differ(void **state) {
  (void)state;
  struct nest n = new_nest();
  tir_expr four = tir_int(n.ir, TIR_T_I32, 4);
  tir_stmt_at(n.ir, n.i)->loop.extent = four;
  expect_broken(n.ir, MS_VERIFY_DOMAIN, "another domain");
  n = new_nest();
  tir_symbol thread = tir_symbol_of(n.ir, "threadIdx.x");
  tir_stmt_at(n.ir, n.i)->loop.thread = thread;
  expect_broken(n.ir, MS_VERIFY_DOMAIN, "thread binding");
}

static void refuses_ranks_and_types_that_differ(void **state) {
  (void)state;
  struct nest n = new_nest();
  tir_expr vi = tir_var_expr(n.ir, tir_iters(n.ir, n.block)[0].var), load = tir_load(n.ir, n.a, &vi, 1, TIR_NONE);
  tir_stmt_at(n.ir, n.store)->store.value = load;
  expect_broken(n.ir, MS_VERIFY_RANK, "buffer A of 2 dimensions is read with 1 indices");
  n = new_nest();
  tir_expr one = tir_int(n.ir, TIR_T_I32, 1);
  tir_stmt_at(n.ir, n.store)->store.value = one;
  expect_broken(n.ir, MS_VERIFY_TYPE, "C of float32 is stored a value of int32");
  n = new_nest();
  tir_expr mixed = tir_binary(n.ir, TIR_ADD, loop_var(&n, n.i), tir_int(n.ir, TIR_TYPE(TIR_INT, 64, 1), 0));
  tir_iters(n.ir, n.block)[0].binding = mixed;
  expect_broken(n.ir, MS_VERIFY_TYPE, "joins int32 and int64");
  n = new_nest();
  tir_iters(n.ir, n.block)[0].binding = tir_int(n.ir, TIR_TYPE(TIR_INT, 64, 1), 0);
  expect_broken(n.ir, MS_VERIFY_TYPE, "vi and its binding");
}

static void refuses_counts_of_other_types(void **state) {
  (void)state;
  expect_ok(read_function("A: T.Buffer((T.int64(8),), \"float32\")", "for i in range(T.int64(8)):",
                          "    with T.sblock(\"A\"):", "        vi = T.axis.spatial(T.int64(8), i)",
                          "        A[vi] = T.float32(0)"));
  expect_broken(read_function("A: T.Buffer((T.int16(8),), \"float32\")", "A[0] = T.float32(0)"), MS_VERIFY_TYPE,
                "an extent of A is int16");
  expect_broken(
      read_function("A: T.Buffer((8,), \"float32\")", "for i in range(T.uint8(8)):", "    A[i] = T.float32(0)"),
      MS_VERIFY_TYPE, "loop variable i is uint8");
  struct nest n = new_nest();
  struct tir_iter *vi = tir_iters(n.ir, n.block);
  vi->binding = tir_int(n.ir, TIR_TYPE(TIR_UINT, 32, 1), 0);
  n.ir->vars.at[vi->var].type = TIR_TYPE(TIR_UINT, 32, 1);
  expect_broken(n.ir, MS_VERIFY_TYPE, "iteration variable vi is uint32");
}

/* ---- Regions ---- */

static void refuses_accesses_outside_of_regions(void **state) {
  (void)state;
  expect_broken(read_function(A_C, NEST, "        C[vi, vj] = A[vi, vj] + A[vi, 7 - vj]"), MS_VERIFY_REGION,
                "block C reads A outside of its regions in dimension 1");
  expect_broken(read_function(A_C, "for i in range(8):", "    with T.sblock(\"C\"):",
                              "        vi = T.axis.spatial(8, i)", "        T.reads()", "        T.writes(C[vi, 0:7])",
                              "        for j in range(8):", "            C[vi, j] = T.float32(0)"),
                MS_VERIFY_REGION, "block C writes C outside of its regions in dimension 1");
  expect_broken(read_function(A_C,
                              "for i in range(7):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(7, i)",
                              "        T.reads(A[vi, 0:8])", "        T.writes(C[vi, 0:8])",
                              "        for j in range(8):", "            C[vi, j] = A[vi + 1, j]"),
                MS_VERIFY_REGION, "dimension 0");
}

/* What may not be reached, or is only maybe outside, is not refused. */
static void accepts_what_is_not_certainly_outside(void **state) {
  (void)state;
  expect_ok(read_function(A_C, "for i in range(8):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(8, i)",
                          "        T.reads(A[vi, 0:7])", "        T.writes(C[vi, 0:8])", "        for j in range(8):",
                          "            C[vi, j] = T.if_then_else(j < 7, A[vi, j], T.float32(0))"));
  expect_ok(read_function(A_C, NEST, "        if vj < 7:", "            C[vi, vj] = A[vi, vj + 0]"));
  expect_ok(read_function(A_C, "for i in range(8):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(8, i)",
                          "        T.reads(A[vi, 0:4], A[vi, 4:8])", "        T.writes(C[vi, 0:8])",
                          "        for j in range(8):", "            C[vi, j] = A[vi, j]"));
  /* A buffer that no region names is hidden. */
  expect_ok(read_function(A_C, "for i in range(8):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(8, i)",
                          "        T.reads()", "        T.writes(C[vi, 0:8])", "        C[vi, 0] = A[vi, 0]"));
}

/* The regions of a block lie within those of the block around it. */
static void refuses_inner_regions_outside_of_outer_ones(void **state) {
  (void)state;
#define INNER(extent, value)                                                                                           \
  "for i in range(2):", "    with T.sblock(\"outer\"):", "        vo = T.axis.spatial(2, i)",                          \
      "        T.reads(A[vo * 4:vo * 4 + " extent ", 0:8])", "        T.writes(C[vo * 4:vo * 4 + 4, 0:8])",            \
      "        for k, j in T.grid(4, 8):", "            with T.sblock(\"inner\"):",                                    \
      "                vk, vj = T.axis.remap(\"SS\", [k, j])", "                T.reads(A[vo * 4 + vk, vj])",          \
      "                T.writes(C[vo * 4 + vk, vj])", "                C[vo * 4 + vk, vj] = " value
#define OUTER(extent) INNER(extent, "A[vo * 4 + vk, vj]")
  expect_ok(read_function(A_C, OUTER("4")));
  expect_broken(read_function(A_C, OUTER("3")), MS_VERIFY_REGION, "block outer reads A");
}

/* What conditions in the inner block leave of its regions is not looked into, where they decide all that it reads. */
static void accepts_inner_regions_under_conditions(void **state) {
  (void)state;
  expect_ok(read_function(A_C, INNER("3", "T.if_then_else(vk < 3, A[vo * 4 + vk, vj], T.float32(0))")));
  expect_ok(read_function(A_C, INNER("3", "T.Select(vk < 3, A[vo * 4 + vk, vj] * T.float32(2), T.float32(0))")));
  expect_ok(read_function(A_C, INNER("3", "T.float32(0)"),
                          "                if vk < 3:", "                    C[vo * 4 + vk, vj] = A[vo * 4 + vk, vj]"));
  expect_broken(read_function(A_C, INNER("3", "T.if_then_else(A[vo * 4 + vk, vj] < T.float32(3), T.float32(1), "
                                              "A[vo * 4 + vk, vj])")),
                MS_VERIFY_REGION, "block outer reads A");
  expect_broken(read_function(A_C, INNER("3", "A[vo * 4 + vk, vj]"), "                if vk < 3:",
                              "                    C[vo * 4 + vk, vj] = A[vo * 4 + vk, vj]"),
                MS_VERIFY_REGION, "block outer reads A");
  expect_broken(read_function(A_C, INNER("3", "T.float32(0)")), MS_VERIFY_REGION, "block outer reads A");
  expect_broken(read_function(A_C, INNER("-1", "T.if_then_else(vk < 3, A[vo * 4 + vk, vj], T.float32(0))")),
                MS_VERIFY_REGION, "block outer reads A");
}

/* A text's regions are taken as they are; its scopes are not. */
static void scopes_alone_trust_regions(void **state) {
  (void)state;
  ms_error err = {0};
  struct tir *ir = read_function(A_C, OUTER("3"));
  assert_true(tir_verify_scopes(ir, &err));
  tir_free(ir);
  struct nest n = new_nest();
  tir_stmt_at(n.ir, n.store)->store.value = tir_cast(n.ir, TIR_T_F32, loop_var(&n, n.i));
  assert_false(tir_verify_scopes(n.ir, &err));
  assert_int_equal(err.code, MS_VERIFY_ISOLATION);
  tir_free(n.ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_what_is_well_formed),
      cmocka_unit_test(refuses_variables_out_of_scope),
      cmocka_unit_test(refuses_loop_variables_inside_blocks),
      cmocka_unit_test(refuses_what_is_defined_twice),
      cmocka_unit_test(refuses_buffers_out_of_scope),
      cmocka_unit_test(refuses_domains_that_differ),
      cmocka_unit_test(refuses_ranks_and_types_that_differ),
      cmocka_unit_test(refuses_counts_of_other_types),
      cmocka_unit_test(refuses_accesses_outside_of_regions),
      cmocka_unit_test(accepts_what_is_not_certainly_outside),
      cmocka_unit_test(refuses_inner_regions_outside_of_outer_ones),
      cmocka_unit_test(accepts_inner_regions_under_conditions),
      cmocka_unit_test(scopes_alone_trust_regions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
