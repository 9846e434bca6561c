/* FuseOnlineSoftmax: which tiles are masked. */
#include "fuse_online_softmax.h"
#include "tir/analysis/loads.h"

/* How an index expression changes from one value of a variable to the next; false: not always by as much. */
static bool find_step(struct tir *ir, tir_expr e, tir_var v, int64_t *step) {
  tir_expr at = tir_var_expr(ir, v);
  tir_subst_var(ir, v, tir_add(ir, at, tir_int(ir, tir_type_of(ir, at), 1)));
  tir_expr by = tir_sub(ir, tir_subst(ir, e), e);
  tir_subst_clear(ir);
  *step = tir_is_int(ir, by) ? tir_at(ir, by)->imm : 0;
  return tir_is_int(ir, by);
}

static tir_expr int_of(struct tir *ir, tir_expr like, int64_t value) {
  return tir_int(ir, tir_type_of(ir, like), value);
}

/* What of a tile's elements makes an expression the least that grows, or falls, with a variable. */
static tir_expr least_of_tile(struct tir *ir, tir_expr outer, int64_t tile, int64_t step) {
  tir_expr first = tir_mul(ir, outer, int_of(ir, outer, tile));
  return step >= 0 ? first : tir_add(ir, first, int_of(ir, outer, tile - 1));
}

/* What a producer stores, in the product's terms; TIR_NONE: some iteration of it has none, or it reduces. */
static tir_expr stored(struct tir *ir, const struct tir_softmax_producer *p) {
  struct tir_span iters = tir_block_at(ir, p->block)->iters;
  tir_stmt store = tir_only_store(ir, p->block, TIR_BODY);
  if (!store || tir_stmt_at(ir, p->block)->first[TIR_BODY] != store) return TIR_NONE;
  for (uint32_t i = 0; i < iters.count; i++)
    if (!p->at[i]) return TIR_NONE;
  for (uint32_t i = 0; i < iters.count; i++) tir_subst_var(ir, ir->iters.at[iters.first + i].var, p->at[i]);
  tir_expr value = tir_subst(ir, tir_as(ir, store, TIR_STORE)->store.value);
  tir_subst_clear(ir);
  return value;
}

/* x, or where that is an element that a producer makes, what it stores there. */
static tir_expr find_masked(struct tir *ir, const struct tir_fused_softmax *plan) {
  struct tir_expr_node n = *tir_at(ir, plan->x);
  for (uint32_t i = 0; n.kind == TIR_LOAD && !n.a && i < plan->producer_count; i++) {
    tir_expr value = plan->producers[i].buffer == n.ref ? stored(ir, &plan->producers[i]) : TIR_NONE;
    if (value) return value;
  }
  return plan->x;
}

tir_expr tir_find_softmax_mask(struct tir *ir, const struct tir_fused_softmax *plan) {
  struct tir_expr_node x = *tir_at(ir, find_masked(ir, plan));
  if (x.kind != TIR_SELECT || tir_at(ir, x.c)->kind != TIR_FLOAT_IMM) return TIR_NONE;
  struct tir_expr_node test = *tir_at(ir, x.a);
  bool falls = test.kind == TIR_GE || test.kind == TIR_GT, strict = test.kind == TIR_LT || test.kind == TIR_GT;
  if (tir_at(ir, x.c)->real > -tir_greatest_float(tir_buffer_at(ir, plan->maximum.buffer)->type)) return TIR_NONE;
  if ((!falls && test.kind != TIR_LE && test.kind != TIR_LT) || !tir_type_is_int(tir_type_of(ir, test.a)))
    return TIR_NONE;
  tir_expr column = tir_var_expr(ir, plan->product.column);
  tir_subst_var(ir, plan->product.column, int_of(ir, column, 0));
  tir_expr first = tir_subst(ir, x.a);
  tir_subst_clear(ir);
  if (!tir_prove(ir, first)) return TIR_NONE;
  tir_expr by = falls ? tir_sub(ir, test.b, test.a) : tir_sub(ir, test.a, test.b);
  return strict ? tir_add(ir, by, int_of(ir, by, 1)) : by;
}

/* The mask where it is least in a tile, by the iterations of the fused block. TIR_NONE: it is not known. */
static tir_expr least_in_tile(struct tir *ir, const struct tir_fused_softmax *plan, tir_expr mask, const tir_expr *rows,
                              tir_expr column) {
  tir_var row = tir_at(ir, plan->row[plan->tiled])->ref;
  int64_t down, across;
  if (!find_step(ir, mask, row, &down) || !find_step(ir, mask, plan->product.column, &across)) return TIR_NONE;
  for (uint32_t d = 0; d < plan->maximum.rank; d++) {
    if (tir_at(ir, plan->row[d])->kind != TIR_VAR) continue;
    bool tiled = (int)d == plan->tiled;
    tir_subst_var(ir, tir_at(ir, plan->row[d])->ref,
                  tiled ? least_of_tile(ir, rows[d], plan->row_tile, down) : rows[d]);
  }
  tir_subst_var(ir, plan->product.column, least_of_tile(ir, column, plan->column_tile, across));
  tir_expr made = tir_subst(ir, mask);
  tir_subst_clear(ir);
  return made;
}

void tir_note_softmax_mask(struct tir *ir, const struct tir_fused_softmax *plan, tir_expr mask, tir_block fused,
                           const tir_expr *rows, tir_expr column) {
  struct tir_span iters = tir_block_at(ir, fused)->iters;
  tir_expr least = least_in_tile(ir, plan, mask, rows, column), list[TIR_MOST_SOFTMAX_ITERS + 1];
  assert(iters.count <= TIR_MOST_SOFTMAX_ITERS);
  for (uint32_t i = 0; least && i < iters.count; i++) {
    int64_t step;
    if (!find_step(ir, least, ir->iters.at[iters.first + i].var, &step)) return;
    list[i] = tir_int(ir, TIR_T_I32, step);
  }
  for (uint32_t i = 0; least && i < iters.count; i++) {
    tir_var v = ir->iters.at[iters.first + i].var;
    tir_subst_var(ir, v, int_of(ir, tir_var_expr(ir, v), 0));
  }
  tir_expr rest = least ? tir_subst(ir, least) : TIR_NONE;
  tir_subst_clear(ir);
  if (!rest || !tir_is_int(ir, rest)) return;
  list[iters.count] = tir_int(ir, TIR_T_I32, tir_at(ir, rest)->imm);
  tir_annotate_symbol(ir, fused, tir_symbol_of(ir, TIR_IDLE_ABOVE_ZERO), tir_list_value(ir, list, iters.count + 1));
}
