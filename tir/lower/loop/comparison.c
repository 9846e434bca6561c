/* A comparison as a linear sum that is at most zero, which several passes read. */
#include "tir/lower/lower.h"

#include "tir/arith/linear.h"

bool lower_open_condition(struct tir *ir, tir_expr condition, struct tir_sum *out) {
  struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind < TIR_LT || n.kind > TIR_GE || !tir_is_index(ir, n.a) || !tir_is_index(ir, n.b)) return false;
  bool swap = n.kind == TIR_GT || n.kind == TIR_GE, strict = n.kind == TIR_LT || n.kind == TIR_GT;
  *out = tir_sum_open(ir);
  tir_sum_add(ir, out, n.a, swap ? -1 : 1);
  tir_sum_add(ir, out, n.b, swap ? 1 : -1);
  out->constant += strict;
  if (!out->overflow) return true;
  tir_sum_drop(ir, out);
  return false;
}
