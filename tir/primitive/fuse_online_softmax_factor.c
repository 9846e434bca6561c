/* What FuseOnlineSoftmax's product is made of: the exponential, what it is weighed with, and the row's normalizer. */
#include "fuse_online_softmax.h"

static bool loads_softmax(const struct tir *ir, const struct tir_fused_softmax *plan, tir_expr e) {
  return tir_uses_buffer(ir, e, plan->maximum.buffer) || tir_uses_buffer(ir, e, plan->sum.buffer);
}

static bool is_other_load(const struct tir *ir, const void *context, tir_expr e) {
  const struct tir_fused_softmax *plan = context;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind != TIR_LOAD || n.ref != plan->sum.buffer) return false;
  bool same = !n.a && n.count == plan->maximum.rank;
  for (uint32_t d = 0; d < n.count && same; d++) same = tir_operands(ir, n.operands)[d] == plan->row[d];
  return !same;
}

/* Depends on the row's sum, and on nothing but the row. */
static bool is_of_row(struct tir *ir, const struct tir_fused_softmax *plan, tir_expr e) {
  if (!tir_uses_buffer(ir, e, plan->sum.buffer) || tir_uses_buffer(ir, e, plan->maximum.buffer)) return false;
  struct tir_span iters = tir_block_at(ir, plan->product.block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    bool row = false;
    for (uint32_t d = 0; d < plan->maximum.rank; d++)
      row = row || plan->row[d] == tir_var_expr(ir, ir->iters.at[i].var);
    if (!row && tir_uses_var(ir, e, ir->iters.at[i].var)) return false;
  }
  return !tir_any_node(ir, e, TIR_HAS_LOAD, is_other_load, plan);
}

tir_expr tir_weigh(struct tir *ir, struct tir_fused_softmax *plan, tir_expr e, tir_expr weight) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (e == plan->exponential) return weight;
  if (n.kind == TIR_CAST) {
    tir_expr a = tir_type_is_float(n.type) ? tir_weigh(ir, plan, n.a, weight) : TIR_NONE;
    return a ? tir_unary(ir, TIR_CAST, n.type, a) : TIR_NONE;
  }
  if (n.kind != TIR_MUL && n.kind != TIR_DIV) return TIR_NONE;
  bool of_row[2] = {n.kind == TIR_MUL && is_of_row(ir, plan, n.a), is_of_row(ir, plan, n.b)};
  for (int side = 0; side < 2; side++) {
    if (!of_row[side]) continue;
    if (plan->normalizer) return TIR_NONE;
    plan->normalizer = side ? n.b : n.a;
    plan->multiplies = n.kind == TIR_MUL;
    return tir_weigh(ir, plan, side ? n.a : n.b, weight);
  }
  bool first = loads_softmax(ir, plan, n.a), second = loads_softmax(ir, plan, n.b);
  if (first == second || (second && n.kind == TIR_DIV)) return TIR_NONE;
  tir_expr inner = tir_weigh(ir, plan, first ? n.a : n.b, weight);
  if (!inner) return TIR_NONE;
  return tir_binary(ir, (enum tir_kind)n.kind, first ? inner : n.a, first ? n.b : inner);
}
