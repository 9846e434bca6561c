/* The statements of a block that reduces: an init of identities, and an update that binds what the reducer makes of
 * both sides, where there are several, before it stores. tir_find_reduction (analysis/reduction.c) recognizes them. */
#include "reduction_body.h"

bool tir_check_bare_reduction(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  assert(tir_is(ir, scope, TIR_BLOCK));
  if (!tir_check_reduction_block(ir, block, scope, err) || !tir_check_reduces_inside(ir, block, scope, err))
    return false;
  if (!tir_only_loops_between(ir, block, scope))
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, block, "more than loops stands around block `%s`",
                      tir_block_name(ir, block));
  const struct tir_block_record *r = tir_block_at(ir, block);
  return (!r->allocs.count && !r->matches.count) ||
         tir_refuse(ir, err, MS_REDUCTION_OWN_BUFFERS, block, "block `%s` has buffers of its own",
                    tir_block_name(ir, block));
}

void tir_empty_block(struct tir *ir, tir_block block) {
  assert(tir_is(ir, block, TIR_BLOCK));
  for (int list = 0; list < 2; list++)
    for (tir_stmt s; (s = tir_stmt_at(ir, block)->first[list]) != TIR_NONE;) tir_kill(ir, s);
}

static void store_all(struct tir *ir, const struct tir_reduction_body *b, uint32_t count, const tir_expr *values,
                      enum tir_list list) {
  for (uint32_t i = 0; i < count; i++)
    tir_append(ir, b->block, list, tir_new_store(ir, b->buffers[i], tir_operands(ir, b->indices), values[i]));
}

static void bind_all(struct tir *ir, const struct tir_reduction_body *b, uint32_t count, tir_expr *values) {
  for (uint32_t i = 0; i < count; i++) {
    tir_name name = tir_name_of(ir, tir_buffer_name(ir, b->buffers[i]));
    tir_var v = tir_new_let(ir, tir_name_prefix(ir, "v_", name), values[i]);
    tir_stmt let = tir_new_stmt(ir, TIR_BIND);
    tir_as(ir, let, TIR_BIND)->bind.var = v;
    tir_as(ir, let, TIR_BIND)->bind.value = values[i];
    tir_append(ir, b->block, TIR_BODY, let);
    values[i] = tir_var_expr(ir, v);
  }
}

void tir_fill_reduction(struct tir *ir, const struct tir_reduction_body *b, const struct tir_reduction *r,
                        bool reduces) {
  if (!reduces) {
    store_all(ir, b, r->count, b->right, TIR_BODY);
    return;
  }
  tir_expr values[TIR_MOST_REDUCED];
  tir_combine(ir, r->reducer, b->left, b->right, values);
  store_all(ir, b, r->count, r->identity, TIR_INIT);
  if (r->count > 1) bind_all(ir, b, r->count, values);
  store_all(ir, b, r->count, values, TIR_BODY);
}
