/* What keeps a value of a moved iteration to its domain, as a condition. */
#include "move_block.h"
#include "tir/analysis/analysis.h"

enum { MOST_LOOPS = 32 };
struct loops_in {
  const struct tir *ir;
  uint32_t count;
  tir_var vars[MOST_LOOPS];
};

static bool collect_loop(void *data, tir_expr e) {
  struct loops_in *l = data;
  const struct tir_expr_node *n = tir_at(l->ir, e);
  if (n->kind != TIR_VAR || l->ir->vars.at[n->ref].kind != TIR_VAR_LOOP) return true;
  for (uint32_t i = 0; i < l->count; i++)
    if (l->vars[i] == n->ref) return true;
  if (l->count < MOST_LOOPS) l->vars[l->count] = n->ref;
  l->count++;
  return true;
}

/* Whether the condition on the value holds at the ends of all loops: where extents are symbols, numbers do not say. */
static bool holds_at_ends(struct tir *ir, enum tir_kind kind, tir_expr value, tir_expr limit) {
  struct loops_in loops = {.ir = ir};
  tir_walk_expr(ir, value, collect_loop, &loops);
  if (loops.count > MOST_LOOPS) return false;
  struct tir_interval i = tir_relax(ir, value, loops.vars, loops.count);
  tir_expr end = kind == TIR_LT ? i.max : i.min;
  return end && tir_prove(ir, tir_make(ir, kind, end, limit));
}

static tir_expr add_limit(struct tir *ir, tir_expr all, enum tir_kind kind, tir_expr value, tir_expr limit) {
  limit = tir_cast(ir, tir_type_of(ir, value), limit);
  if (!tir_is_int(ir, limit) && holds_at_ends(ir, kind, value, limit)) return all;
  return tir_and(ir, all, tir_make(ir, kind, value, limit));
}

tir_expr tir_move_limit(struct tir *ir, tir_expr all, const struct tir_move_domain *d, tir_expr value) {
  if (d->linear) {
    if (d->has_lower) all = add_limit(ir, all, TIR_GE, value, tir_int(ir, d->type, d->lower));
    if (d->has_upper) all = add_limit(ir, all, TIR_LT, value, tir_int(ir, d->type, d->upper + 1));
  }
  if (d->at_least) all = add_limit(ir, all, TIR_GE, value, d->at_least);
  if (d->below) all = add_limit(ir, all, TIR_LT, value, d->below);
  return all;
}
