/* The table of accesses: what blocks do with buffers and what of that they declare; the order that undeclared uses keep
 * a block to; which loops run. */
#include "tir/analysis/analysis.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/order.h"
#include "tir/analysis/outside.h"
#include "unit/script.h"

#define ONE_D "A: T.Buffer((8,), \"float32\"), D: T.Buffer((8,), \"float32\")"
#define STAGE(name, from, to)                                                                                          \
  "for i in range(8):", "    with T.sblock(\"" name "\"):", "        v = T.axis.spatial(8, i)",                        \
      "        T.reads(" from "[v])", "        T.writes(" to "[v])", "        " to "[v] = " from "[v]"

/* A -> B -> C -> D, a loop a block. */
static struct tir *chain(void) {
  return read_function(ONE_D, "B = T.sblock_alloc_buffer((8,))", "C = T.sblock_alloc_buffer((8,))",
                       STAGE("B", "A", "B"), STAGE("C", "B", "C"), STAGE("D", "C", "D"));
}

static tir_buffer written_by(const struct tir *ir, tir_block block) {
  return ir->regions.at[tir_block_at(ir, block)->writes.first].buffer;
}

static void hide(struct tir *ir, const char *block, const char *side) {
  int64_t first = 0;
  assert_accepted(tir_unsafe_hide_buffer_access(ir, block_named(ir, block), side, &first, 1, err));
}

static void holds_what_is_declared(void **state) {
  (void)state;
  struct tir *ir = chain();
  tir_buffer b = written_by(ir, block_named(ir, "B"));
  tir_find_undeclared(ir);
  assert_int_equal(ir->undeclared, TIR_NONE_UNDECLARED);
  struct tir_access writer = tir_access_of(ir, block_named(ir, "B"), b);
  struct tir_access reader = tir_access_of(ir, block_named(ir, "C"), b);
  struct tir_access other = tir_access_of(ir, block_named(ir, "D"), b);
  assert_true(writer.writes && writer.declares_writes && !writer.reads && !writer.declares_reads);
  assert_true(reader.reads && reader.declares_reads && !reader.writes);
  assert_true(!other.reads && !other.writes);
  tir_free(ir);
}

/* A root stores to B, and N says how far a loop in it runs: uses that need no region, in the table all the same. */
static void holds_what_scopes_use_themselves(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8,), \"float32\"), N: T.Buffer((8,), \"int32\"), D: T.Buffer((8,), \"float32\")",
      "B = T.sblock_alloc_buffer((8,))", STAGE("B", "A", "B"), "for i in range(4):", "    B[i] = T.float32(0)",
      "for i in range(T.min(N[0], 8)):", "    with T.sblock(\"D\"):", "        v = T.axis.spatial(8, i)",
      "        T.reads(B[v], N[v])", "        T.writes(D[v])", "        D[v] = B[v] + T.Cast(\"float32\", N[v])");
  tir_find_undeclared(ir);
  tir_block root = block_named(ir, "root"), d = block_named(ir, "D");
  tir_buffer b = written_by(ir, block_named(ir, "B"));
  tir_buffer n = ir->regions.at[tir_block_at(ir, d)->reads.first + 1].buffer;
  struct tir_access stored = tir_access_of(ir, root, b), loaded = tir_access_of(ir, root, n);
  assert_true(stored.writes && stored.declares_writes && !stored.reads);
  assert_true(loaded.reads && loaded.declares_reads && !loaded.writes);
  struct tir_outside_use own;
  assert_true(tir_next_outside_use(ir, root, b, TIR_NONE, TIR_NONE, &own) && own.writes && !own.reads && !own.places);
  assert_false(tir_next_outside_use(ir, root, b, TIR_NONE, own.at, &own));
  assert_true(tir_next_outside_use(ir, root, n, TIR_NONE, TIR_NONE, &own) && own.reads && !own.writes && own.places);
  assert_int_equal(own.at, loop_of(ir, "D", 0));
  assert_false(tir_next_outside_use(ir, root, n, loop_of(ir, "B", 0), TIR_NONE, &own));
  assert_true(tir_next_outside_use(ir, root, n, loop_of(ir, "D", 0), TIR_NONE, &own));
  assert_false(tir_next_outside_use(ir, root, n, own.at, own.at, &own));
  assert_true(tir_check_places_steady(ir, d, own.at, NULL));
  assert_int_equal(tir_scope_loads(ir, tir_stmt_at(ir, d)->parent, n, NULL, 0), 1);
  assert_true(tir_check_declared_below(ir, b, root, NULL));
  assert_true(tir_has_undeclared_conflict(ir, d, root)); /* with the root's own store */
  tir_free(ir);
}

static void finds_what_is_not(void **state) {
  (void)state;
  struct tir *ir = chain();
  tir_block root = block_named(ir, "root"), c = block_named(ir, "C");
  tir_buffer b = written_by(ir, block_named(ir, "B"));
  hide(ir, "C", "read");
  assert_int_equal(ir->undeclared, TIR_SOME_UNDECLARED);
  struct tir_access reader = tir_access_of(ir, c, b);
  assert_true(reader.reads && !reader.declares_reads && !reader.writes);
  assert_refused(ir, MS_ACCESS_UNDECLARED, tir_check_declared_below(ir, b, root, err));
  assert_true(tir_has_undeclared_conflict(ir, c, root));
  assert_true(tir_has_undeclared_conflict(ir, block_named(ir, "B"), root));
  assert_false(tir_has_undeclared_conflict(ir, block_named(ir, "D"), root));
  assert_true(tir_conflict_undeclared(ir, block_named(ir, "B"), c));
  assert_false(tir_conflict_undeclared(ir, c, block_named(ir, "D")));
  tir_free(ir);
}

static void lists_are_found_again(void **state) {
  (void)state;
  struct tir *ir = chain();
  hide(ir, "C", "read");
  uint32_t uses = ir->uses.count;
  tir_find_undeclared(ir);
  assert_int_equal(ir->uses.count, uses);
  tir_kill(ir, loop_of(ir, "C", 0));
  for (tir_buffer b = 1; b < ir->buffers.count; b++) assert_int_equal(tir_buffer_at(ir, b)->undeclared, TIR_NONE);
  tir_find_undeclared(ir);
  assert_int_equal(ir->undeclared, TIR_NONE_UNDECLARED);
  tir_free(ir);
}

static void a_reduction_need_not_declare_its_result(void **state) {
  (void)state;
  struct tir *ir =
      read_function(ONE_D, "for i in range(8):", "    with T.sblock(\"D\"):", "        v = T.axis.reduce(8, i)",
                    "        T.reads(A[v])", "        T.writes(D[0])",
                    "        with T.init():", "            D[0] = T.float32(0)", "        D[0] = D[0] + A[v]");
  tir_find_undeclared(ir);
  assert_int_equal(ir->undeclared, TIR_NONE_UNDECLARED);
  tir_free(ir);
}

/* A block that an undeclared use ties to another stays on its side of it, and in no loop of both. */
static void keeps_to_its_side(void **state) {
  (void)state;
  struct tir *ir = chain();
  hide(ir, "C", "read");
  tir_block b = block_named(ir, "B"), c = block_named(ir, "C"), root = block_named(ir, "root");
  struct tir_transfer to_end = {.block = b, .scope = root, .to = block_named(ir, "D")};
  assert_refused(ir, MS_ACCESS_UNDECLARED, tir_check_order(ir, &to_end, err));
  struct tir_transfer under = {.block = b, .scope = root, .to = loop_of(ir, "C", 0), .keeps_iterations = true};
  struct tir_limits limits;
  assert_accepted(tir_find_limits(ir, &under, NULL, 0, true, &limits, err));
  assert_int_equal(limits.before, c);
  under.before = limits.before;
  assert_true(!tir_comes_before(ir, &under, c) && !tir_comes_before(ir, &under, block_named(ir, "D")));
  assert_refused(ir, MS_ACCESS_UNDECLARED, tir_check_order(ir, &under, err));
  struct tir_transfer to_readers = {.block = b, .scope = root};
  assert_accepted(tir_check_order(ir, &to_readers, err));
  struct tir_transfer to_start = {.block = c, .scope = root, .to = b};
  assert_refused(ir, MS_ACCESS_UNDECLARED, tir_check_order(ir, &to_start, err));
  tir_free(ir);
}

static void loops_run_that_share_the_memory(void **state) {
  (void)state;
  struct tir *ir =
      read_function(ONE_D, "for x in T.thread_binding(2, thread=\"blockIdx.x\"):",
                    "    for t in T.thread_binding(2, thread=\"threadIdx.x\"):", "        for i in range(2):",
                    "            with T.sblock(\"D\"):", "                v = T.axis.spatial(8, x * 4 + t * 2 + i)",
                    "                T.reads(A[v])", "                T.writes(D[v])", "                D[v] = A[v]");
  tir_block d = block_named(ir, "D");
  tir_loop t = loop_of(ir, "D", 1), i = loop_of(ir, "D", 2);
  tir_var vars[4];
  assert_int_equal(tir_running_loops(ir, d, t, TIR_NONE, vars, 4), 1);
  assert_int_equal(vars[0], tir_stmt_at(ir, i)->loop.var);
  assert_int_equal(tir_running_loops(ir, d, t, tir_symbol_of(ir, "shared"), vars, 4), 2);
  assert_int_equal(vars[1], tir_stmt_at(ir, t)->loop.var);
  assert_int_equal(tir_running_loops(ir, d, t, tir_symbol_of(ir, "local"), vars, 4), 1);
  assert_int_equal(tir_running_loops(ir, d, i, tir_symbol_of(ir, "warp"), vars, 4), 1);
  assert_int_equal(tir_running_loops(ir, d, t, tir_symbol_of(ir, "global"), vars, 1), 3);
  assert_int_equal(tir_memory_of_threads(ir, tir_symbol_of(ir, "global")), TIR_NONE);
  tir_free(ir);
}

static bool is_other(const struct tir *ir, const void *context, tir_var v) {
  (void)ir;
  return v != *(const tir_var *)context;
}

static bool is_kind(const struct tir *ir, const void *kind, tir_expr e) {
  return tir_at(ir, e)->kind == *(const enum tir_kind *)kind;
}

/* A parent comes before what is below it, and of two nodes side by side the left; flags leave nodes out. */
static void the_first_node_is_found(void **state) {
  (void)state;
  struct tir *ir = chain();
  const enum tir_kind load = TIR_LOAD, var = TIR_VAR, cast = TIR_CAST;
  tir_expr one = tir_as(ir, tir_only_store(ir, block_named(ir, "C"), TIR_BODY), TIR_STORE)->store.value,
           other = tir_as(ir, tir_only_store(ir, block_named(ir, "D"), TIR_BODY), TIR_STORE)->store.value,
           both = tir_binary(ir, TIR_SUB, tir_float(ir, TIR_T_F32, 1), tir_binary(ir, TIR_ADD, other, one));
  assert_true(one != other && tir_at(ir, one)->kind == TIR_LOAD && tir_at(ir, other)->kind == TIR_LOAD);
  assert_int_equal(tir_find_node(ir, both, 0, is_kind, &load), other);
  assert_int_equal(tir_find_node(ir, both, TIR_HAS_LOAD, is_kind, &load), other);
  assert_int_equal(tir_find_node(ir, one, 0, is_kind, &load), one);
  assert_int_equal(tir_find_node(ir, both, TIR_HAS_VAR, is_kind, &var),
                   tir_operands(ir, tir_at(ir, other)->operands)[0]);
  assert_int_equal(tir_find_node(ir, both, TIR_HAS_DIVMOD, is_kind, &var), TIR_NONE);
  assert_true(!tir_any_node(ir, both, 0, is_kind, &cast) && !tir_any_node(ir, TIR_NONE, 0, is_kind, &load));
  tir_free(ir);
}

/* An expression of 60 nodes that stands 2^60 times written out: each search meets a node a few times at most. */
static void searches_of_shared_nodes_end(void **state) {
  (void)state;
  struct tir *ir = chain();
  tir_block block = block_named(ir, "C");
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  tir_expr load = tir_as(ir, store, TIR_STORE)->store.value, deep = load, loads[2];
  tir_buffer b = tir_at(ir, load)->ref;
  tir_var v = tir_iters(ir, block)[0].var, elsewhere = tir_iters(ir, block_named(ir, "D"))[0].var;
  for (int i = 0; i < 60; i++) deep = tir_binary(ir, TIR_ADD, deep, deep);
  assert_int_equal(tir_find_loads(ir, deep, TIR_NONE, loads, 2), 1);
  assert_int_equal(loads[0], load);
  assert_int_equal(tir_find_loads(ir, deep, written_by(ir, block), loads, 2), 0);
  assert_true(tir_uses_buffer(ir, deep, b) && !tir_uses_buffer(ir, deep, written_by(ir, block)));
  assert_true(tir_uses_var(ir, deep, v) && !tir_uses_var(ir, deep, elsewhere));
  assert_true(!tir_any_var(ir, deep, is_other, &v) && tir_any_var(ir, deep, is_other, &elsewhere));
  const enum tir_kind cast = TIR_CAST, multiply = TIR_MUL;
  tir_expr last = tir_unary(ir, TIR_CAST, TIR_T_F32, tir_int(ir, TIR_T_I32, 1));
  deep = tir_binary(ir, TIR_ADD, deep, last);
  assert_int_equal(tir_find_node(ir, deep, 0, is_kind, &cast), last);
  assert_false(tir_any_node(ir, deep, 0, is_kind, &multiply));
  tir_free(ir);
}

/* A pointer uses its buffer, wherever it stands in an expression; an index of the same variables does not. */
static void a_pointer_uses_its_buffer(void **state) {
  (void)state;
  struct tir *ir = chain();
  tir_block block = block_named(ir, "C");
  tir_buffer b = written_by(ir, block_named(ir, "B")), c = written_by(ir, block);
  tir_expr index = tir_var_expr(ir, tir_iters(ir, block)[0].var), operands[] = {index, tir_data(ir, b)};
  tir_expr list = tir_list_value(ir, operands, 2);
  assert_true(tir_uses_buffer(ir, list, b) && tir_uses_buffer(ir, operands[1], b));
  assert_false(tir_uses_buffer(ir, list, c) || tir_uses_buffer(ir, index, b) || tir_uses_buffer(ir, TIR_NONE, b));
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(holds_what_is_declared),
      cmocka_unit_test(holds_what_scopes_use_themselves),
      cmocka_unit_test(finds_what_is_not),
      cmocka_unit_test(lists_are_found_again),
      cmocka_unit_test(a_reduction_need_not_declare_its_result),
      cmocka_unit_test(keeps_to_its_side),
      cmocka_unit_test(loops_run_that_share_the_memory),
      cmocka_unit_test(the_first_node_is_found),
      cmocka_unit_test(searches_of_shared_nodes_end),
      cmocka_unit_test(a_pointer_uses_its_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
