/* The verifier on the storage: each array, link and list is broken in turn, and the break is named. */
#include "unit/script.h"

struct sample {
  struct tir *ir;
  tir_loop i;
  tir_block b, c;
};

static struct sample new_sample(void) {
  struct sample s = {
      .ir = read_function("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",
                          "B = T.sblock_alloc_buffer((8,))", "for i in T.serial(8, annotations={\"a\": 1, \"b\": 2}):",
                          "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(8, i)",
                          "        B[vi] = A[vi] + T.float32(1)", "for i in range(8):", "    with T.sblock(\"C\"):",
                          "        vi = T.axis.spatial(8, i)", "        C[vi] = B[vi] * B[7 - vi]")};
  s.b = block_named(s.ir, "B");
  s.c = block_named(s.ir, "C");
  s.i = loop_of(s.ir, "B", 0);
  return s;
}

static void accepts_a_sound_module(void **state) {
  (void)state;
  struct sample s = new_sample();
  ms_error err = {0};
  if (!tir_verify(s.ir, &err)) fail_msg("%s", err.message);
  tir_free(s.ir);
}

static void finds_broken_links(void **state) {
  (void)state;
  struct sample s = new_sample();
  tir_stmt_at(s.ir, s.b)->parent = s.c;
  expect_broken(s.ir, MS_VERIFY_LINKS, "does not link back");
  s = new_sample();
  tir_stmt_at(s.ir, s.i)->last[TIR_BODY] = s.c;
  expect_broken(s.ir, MS_VERIFY_LINKS, "wrong last child");
  s = new_sample();
  tir_stmt store = tir_stmt_at(s.ir, s.b)->first[TIR_BODY];
  tir_stmt_at(s.ir, store)->next = store;
  expect_broken(s.ir, MS_VERIFY_LINKS, "stands in two places");
  s = new_sample();
  store = tir_stmt_at(s.ir, s.b)->first[TIR_BODY];
  tir_stmt_at(s.ir, store)->kind = TIR_DEAD;
  expect_broken(s.ir, MS_VERIFY_LINKS, "is dead");
  s = new_sample();
  store = tir_stmt_at(s.ir, s.b)->first[TIR_BODY];
  tir_stmt_at(s.ir, store)->first[TIR_BODY] = s.c;
  expect_broken(s.ir, MS_VERIFY_LINKS, "a list that its kind has not");
  s = new_sample();
  tir_detach(s.ir, s.i);
  expect_broken(s.ir, MS_VERIFY_LINKS, "in no function and not dead");
}

static void finds_lists_out_of_step(void **state) {
  (void)state;
  struct sample s = new_sample();
  tir_symbol name = tir_block_at(s.ir, s.b)->name;
  s.ir->symbols.at[name].first_block = TIR_NONE;
  expect_broken(s.ir, MS_VERIFY_LISTS, "blocks are in lists by name");
  s = new_sample();
  tir_block_at(s.ir, s.b)->next_same_name = s.c;
  expect_broken(s.ir, MS_VERIFY_LISTS, "the list of blocks named B");
  s = new_sample();
  tir_block_at(s.ir, s.b)->next_same_name = s.b;
  expect_broken(s.ir, MS_VERIFY_LISTS, "in a circle");
  s = new_sample();
  tir_buffer b = s.ir->regions.at[tir_block_at(s.ir, s.b)->writes.first].buffer;
  s.ir->buffers.at[b].writers = TIR_NONE;
  expect_broken(s.ir, MS_VERIFY_LISTS, "by written buffer miss one");
  s = new_sample();
  b = s.ir->regions.at[tir_block_at(s.ir, s.b)->writes.first].buffer;
  s.ir->buffers.at[b].readers = s.ir->buffers.at[b].writers;
  expect_broken(s.ir, MS_VERIFY_LISTS, "holds a block without such a region");
  s = new_sample();
  b = s.ir->regions.at[tir_block_at(s.ir, s.b)->writes.first].buffer;
  s.ir->buffers.at[b].where = s.b;
  expect_broken(s.ir, MS_VERIFY_LISTS, "does not know that it is defined here");
}

static void finds_wrong_facts(void **state) {
  (void)state;
  struct sample s = new_sample();
  tir_expr var = tir_var_expr(s.ir, tir_stmt_at(s.ir, s.i)->loop.var);
  s.ir->exprs.at[var].hi = 3;
  expect_broken(s.ir, MS_VERIFY_EXPRESSION, "wrong facts");
  s = new_sample();
  var = tir_var_expr(s.ir, tir_stmt_at(s.ir, s.i)->loop.var);
  s.ir->exprs.at[var].vars = 0;
  expect_broken(s.ir, MS_VERIFY_EXPRESSION, "wrong facts");
  s = new_sample();
  tir_expr load = tir_stmt_at(s.ir, tir_stmt_at(s.ir, s.c)->first[TIR_BODY])->store.value;
  s.ir->exprs.at[load].flags = 0;
  expect_broken(s.ir, MS_VERIFY_EXPRESSION, "wrong facts");
  s = new_sample();
  load = tir_stmt_at(s.ir, tir_stmt_at(s.ir, s.c)->first[TIR_BODY])->store.value;
  s.ir->exprs.at[load].a = load;
  expect_broken(s.ir, MS_VERIFY_EXPRESSION, "not made of earlier ones");
}

/* Facts of what was verified before are not looked at again; a rewinding forgets that they were. */
static void verifies_what_is_new(void **state) {
  (void)state;
  struct sample s = new_sample();
  ms_error err = {0};
  assert_true(tir_verify_new(s.ir, true, &err));
  uint32_t verified = s.ir->verified.exprs;
  assert_int_equal(verified, s.ir->exprs.count);
  tir_expr var = tir_var_expr(s.ir, tir_stmt_at(s.ir, s.i)->loop.var);
  struct tir_mark mark = tir_mark(s.ir);
  tir_expr made = tir_binary(s.ir, TIR_MUL, var, tir_int(s.ir, TIR_T_I32, 77));
  assert_true(made >= verified && tir_verify_new(s.ir, true, &err));
  assert_true(s.ir->verified.exprs > verified);
  tir_rewind(s.ir, &mark);
  assert_int_equal(s.ir->verified.exprs, verified);
  made = tir_binary(s.ir, TIR_MUL, var, tir_int(s.ir, TIR_T_I32, 77));
  s.ir->exprs.at[made].vars ^= 1;
  assert_false(tir_verify_new(s.ir, true, &err));
  assert_non_null(strstr(err.message, "wrong facts"));
  s.ir->exprs.at[made].vars ^= 1;
  s.ir->exprs.at[var].hash ^= 1;
  assert_true(tir_verify_new(s.ir, true, &err));
  expect_broken(s.ir, MS_VERIFY_EXPRESSION, "wrong facts");
}

/* A linear form may be made long after its expression was verified. */
static void verifies_new_linear_forms(void **state) {
  (void)state;
  struct sample s = new_sample();
  ms_error err = {0};
  tir_expr var = tir_var_expr(s.ir, tir_stmt_at(s.ir, s.i)->loop.var);
  tir_expr sum = tir_binary(s.ir, TIR_ADD, tir_binary(s.ir, TIR_MUL, var, tir_int(s.ir, TIR_T_I32, 11)), var);
  assert_int_equal(s.ir->linears.at[sum].first, UINT32_MAX);
  assert_true(tir_verify_new(s.ir, true, &err));
  struct tir_mark mark = tir_mark(s.ir);
  tir_linear_of(s.ir, sum);
  s.ir->linears.at[sum].constant++;
  assert_false(tir_verify_new(s.ir, true, &err));
  assert_non_null(strstr(err.message, "linear form exclude"));
  s.ir->linears.at[sum].constant--;
  assert_true(tir_verify_new(s.ir, true, &err));
  assert_int_equal(s.ir->verified.terms, s.ir->terms.count);
  s.ir->linears.at[sum].constant++;
  assert_true(tir_verify_new(s.ir, true, &err));
  tir_rewind(s.ir, &mark);
  tir_linear_of(s.ir, sum);
  s.ir->linears.at[sum].constant--;
  assert_false(tir_verify_new(s.ir, true, &err));
  expect_broken(s.ir, MS_VERIFY_EXPRESSION, "linear form exclude");
}

/* A linear form that does not equal its expression is found by trying values. */
static void finds_wrong_linear_forms(void **state) {
  (void)state;
  struct sample s = new_sample();
  tir_expr var = tir_var_expr(s.ir, tir_stmt_at(s.ir, s.i)->loop.var);
  tir_expr sum = tir_add(s.ir, tir_mul(s.ir, var, tir_int(s.ir, TIR_T_I32, 3)), tir_int(s.ir, TIR_T_I32, 5));
  tir_linear_of(s.ir, sum);
  ms_error err = {0};
  assert_true(tir_verify(s.ir, &err));
  s.ir->linears.at[sum].constant++;
  expect_broken(s.ir, MS_VERIFY_EXPRESSION, "linear form exclude");
}

static void finds_what_is_out_of_range(void **state) {
  (void)state;
  struct sample s = new_sample();
  tir_block_at(s.ir, s.b)->iters.first = s.ir->iters.count;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "leaves the arrays");
  s = new_sample();
  tir_block_at(s.ir, s.b)->block = s.c;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "has no record");
  s = new_sample();
  tir_stmt_at(s.ir, s.i)->loop.extent = s.ir->exprs.count;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "refers to what is not there");
  s = new_sample();
  s.ir->buffers.at[1].shape = s.ir->operands.count;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "buffer 1");
  s = new_sample();
  s.ir->symbols.at[1].offset = s.ir->text.count;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "symbol 1");
  s = new_sample();
  s.ir->vars.at[1].min = s.ir->vars.at[1].expr;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "variable 1");
  s = new_sample();
  s.ir->funcs.at[1].body = s.b;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "function 1");
}

static void finds_unsorted_annotations(void **state) {
  (void)state;
  struct sample s = new_sample();
  struct tir_span span = tir_stmt_at(s.ir, s.i)->annotations;
  assert_int_equal(span.count, 2);
  struct tir_annotation first = s.ir->annotations.at[span.first];
  s.ir->annotations.at[span.first] = s.ir->annotations.at[span.first + 1];
  s.ir->annotations.at[span.first + 1] = first;
  expect_broken(s.ir, MS_VERIFY_STORAGE, "not sorted by key");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_a_sound_module),     cmocka_unit_test(finds_broken_links),
      cmocka_unit_test(finds_lists_out_of_step),    cmocka_unit_test(finds_wrong_facts),
      cmocka_unit_test(finds_wrong_linear_forms),   cmocka_unit_test(finds_what_is_out_of_range),
      cmocka_unit_test(finds_unsorted_annotations), cmocka_unit_test(verifies_what_is_new),
      cmocka_unit_test(verifies_new_linear_forms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
