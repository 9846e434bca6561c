/* Whether a reduction's init comes first: it runs in iterations whose reductions are at their domains' minima, where
 * the block's predicate holds, and the conditions around it. What it is to begin may be updated in other iterations
 * too. */
#include "analysis.h"
#include "tir/analysis/order/iteration_order.h"

/* How a value follows the loops that reduce: it stays, or grows or falls with each of them; or that is not known. */
enum trend { STAYS, GROWS, FALLS, UNKNOWN };

static enum trend opposite(enum trend t) { return t == GROWS ? FALLS : t == FALLS ? GROWS : t; }

static enum trend joined(enum trend a, enum trend b) { return a == STAYS || a == b ? b : b == STAYS ? a : UNKNOWN; }

/* The block's loops that reduce: those in bindings of its reductions. */
struct reducing {
  const struct tir *ir;
  tir_block block;
  uint64_t mask;     /* of their variables, as nodes have it */
  uint64_t own;      /* of those of the reductions that take more than one value */
  bool of_reduction; /* what is asked of is part of such a binding: all its variables are among them */
};

static struct reducing reducing_of(const struct tir *ir, tir_block block) {
  struct reducing r = {.ir = ir, .block = block};
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    const struct tir_iter *iter = &ir->iters.at[i];
    if (iter->kind != TIR_REDUCE) continue;
    r.mask |= tir_at(ir, iter->binding)->vars;
    if (!tir_is_const(ir, ir->vars.at[iter->var].extent, 1)) r.own |= 1ull << (iter->var & 63);
  }
  return r;
}

static bool reduces(const struct tir *ir, const void *context, tir_var v) {
  const struct reducing *r = context;
  for (uint32_t i = 0; i < tir_block_at(ir, r->block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, r->block)[i];
    if (iter.kind == TIR_REDUCE && tir_uses_var(ir, iter.binding, v)) return true;
  }
  return false;
}

/* One of the loops that reduce is in the expression. Masks of variables tell most apart; it is walked where they do
 * not. */
static bool follows(const struct reducing *r, tir_expr e) {
  const struct tir_expr_node *n = tir_at(r->ir, e);
  if (r->of_reduction || !(n->vars & r->mask)) return n->vars & r->mask;
  return n->kind == TIR_VAR ? reduces(r->ir, r, n->ref) : tir_any_var(r->ir, e, reduces, r);
}

static enum trend trend_of(const struct reducing *r, tir_expr e) {
  const struct tir *ir = r->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (!follows(r, e)) return n->flags & TIR_HAS_LOAD ? UNKNOWN : STAYS;
  switch (n->kind) {
  case TIR_VAR: return GROWS;
  case TIR_CAST: return trend_of(r, n->a);
  case TIR_ADD:
  case TIR_MIN:
  case TIR_MAX: return joined(trend_of(r, n->a), trend_of(r, n->b));
  case TIR_SUB: return joined(trend_of(r, n->a), opposite(trend_of(r, n->b)));
  case TIR_MUL:
    if (!tir_is_int(ir, n->b)) return UNKNOWN;
    return tir_at(ir, n->b)->imm >= 0 ? trend_of(r, n->a) : opposite(trend_of(r, n->a));
  case TIR_FLOORMOD: /* a digit of a fused loop: where the reduction starts, it is zero */
    return tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm > 0 && n->lo == 0 ? GROWS : UNKNOWN;
  case TIR_FLOORDIV: return tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm > 0 ? trend_of(r, n->a) : UNKNOWN;
  default: return UNKNOWN;
  }
}

static bool is_written(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  return tir_at(ir, e)->kind == TIR_LOAD && tir_buffer_at(ir, tir_at(ir, e)->ref)->writers;
}

/* It depends on data that blocks write: it may change from one iteration to the next. */
static bool loads_written(const struct tir *ir, tir_expr e) {
  return tir_any_node(ir, e, TIR_HAS_LOAD, is_written, NULL);
}

/* Where the condition holds in an iteration, it holds in that where all loops that reduce stand at their start. */
static bool holds_from_start(const struct reducing *r, tir_expr e) {
  const struct tir *ir = r->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (!follows(r, e)) return !loads_written(ir, e);
  switch (n->kind) {
  case TIR_AND:
  case TIR_OR: return holds_from_start(r, n->a) && holds_from_start(r, n->b);
  case TIR_LT:
  case TIR_LE: return joined(trend_of(r, n->a), opposite(trend_of(r, n->b))) == GROWS;
  case TIR_GT:
  case TIR_GE: return joined(trend_of(r, n->a), opposite(trend_of(r, n->b))) == FALLS;
  default: return false;
  }
}

/* A part of the binding of a reduction grows with a loop: then all of it does not fall. Found where the first variable
 * of a sum is a term of it, as in nearly all bindings. */
static bool grows_in_part(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  while (n->kind == TIR_ADD || n->kind == TIR_SUB ||
         (n->kind == TIR_MUL && tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm >= 0))
    n = tir_at(ir, n->a);
  return n->kind == TIR_VAR;
}

/* The binding is at its domain's minimum in no iteration, or in the last; or a name that is bound around the block is
 * in it, which may follow the loops of other iterations. */
static bool starts_late(const struct reducing *loops, const struct tir_iter *iter) {
  const struct tir *ir = loops->ir;
  const struct tir_var_node *v = &ir->vars.at[iter->var];
  const struct tir_expr_node *binding = tir_at(ir, iter->binding);
  if (iter->kind != TIR_REDUCE || tir_is_const(ir, v->extent, 1)) return false;
  if (ir->has_lets && tir_uses_let(ir, iter->binding)) return true;
  if (tir_is_int(ir, v->min) && binding->lo > tir_at(ir, v->min)->imm) return true;
  if (grows_in_part(ir, iter->binding)) return false;
  struct reducing all = *loops;
  all.of_reduction = true;
  return trend_of(&all, iter->binding) == FALLS;
}

/* A loop that reduces, and that the binding is a part of, does not start at zero: its digits do not take all their
 * values with one another. */
static bool starts_within(const struct reducing *loops, tir_expr binding) {
  const struct tir *ir = loops->ir;
  for (tir_stmt s = tir_stmt_at(ir, loops->block)->parent; s && !tir_is(ir, s, TIR_BLOCK);
       s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_is_const(ir, tir_as(ir, s, TIR_LOOP)->loop.min, 0)) continue;
    tir_var v = tir_as(ir, s, TIR_LOOP)->loop.var;
    if (tir_uses_var(ir, binding, v) && reduces(ir, loops, v)) return true;
  }
  return false;
}

/* A reduction of more than one value among these has the variable in its binding. */
static bool is_reduced(const struct tir *ir, const void *context, tir_var v) {
  const struct tir_span *before = context;
  for (uint32_t i = before->first; i < before->first + before->count; i++) {
    const struct tir_iter *iter = &ir->iters.at[i];
    if (iter->kind == TIR_REDUCE && !tir_is_const(ir, ir->vars.at[iter->var].extent, 1) &&
        tir_uses_var(ir, iter->binding, v))
      return true;
  }
  return false;
}

/* The reduction's binding and that of one before it have a variable in common: masks of variables say it of some that
 * have none. */
static bool shares_variable(const struct tir *ir, tir_block block, uint32_t iter) {
  uint32_t first = tir_block_at(ir, block)->iters.first;
  const struct tir_span before = {first, iter - first};
  return tir_any_var(ir, ir->iters.at[iter].binding, is_reduced, &before);
}

/* A loop runs through a reduction and through another iteration too, of a reduction or not, and they are not digits of
 * it that take all their values with one another: for some values of the other, the reduction may not come to its
 * start. */
static bool shares_loop(struct tir *ir, tir_block block, const struct reducing *loops) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  uint64_t reduced = 0; /* variables, as expressions note them, in bindings of reductions */
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    if (ir->iters.at[i].kind == TIR_REDUCE) {
      uint64_t vars = tir_at(ir, ir->iters.at[i].binding)->vars;
      bool single = tir_is_const(ir, ir->vars.at[ir->iters.at[i].var].extent, 1);
      if (!single && vars & reduced && shares_variable(ir, block, i) && !tir_is_affine_binding(ir, block, TIR_NONE))
        return true;
      if (!single) reduced |= vars;
      continue;
    }
    if (ir->has_lets && tir_uses_let(ir, ir->iters.at[i].binding))
      return loops->mask != 0; /* it may follow those that reduce */
    if (follows(loops, ir->iters.at[i].binding))
      return starts_within(loops, ir->iters.at[i].binding) || !tir_is_affine_binding(ir, block, TIR_NONE);
  }
  return false;
}

/* One of the expressions uses a reduction that takes more than one value. */
static bool use_reductions(const struct reducing *r, uint32_t first, uint32_t count) {
  const struct tir *ir = r->ir;
  tir_block block = r->block;
  uint64_t used = 0;
  for (uint32_t k = first; k < first + count; k++) used |= tir_at(ir, ir->operands.at[k])->vars;
  for (uint32_t i = 0; used & r->own && i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind != TIR_REDUCE || !(used >> (iter.var & 63) & 1) || tir_is_const(ir, ir->vars.at[iter.var].extent, 1))
      continue;
    for (uint32_t k = first; k < first + count; k++)
      if (tir_uses_var(ir, ir->operands.at[k], iter.var)) return true;
  }
  return false;
}

/* What the init begins depends on reductions: stores, or of blocks and loops in it the regions tell. */
static bool begins_by_reductions(const struct reducing *r) {
  const struct tir *ir = r->ir;
  tir_block block = r->block;
  struct tir_span writes = tir_block_at(ir, block)->writes;
  bool stores = true;
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = tir_stmt_at(ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    stores = stores && n->kind == TIR_STORE && tir_has_region_of(ir, writes, n->store.buffer);
    if (stores && use_reductions(r, n->store.indices, tir_buffer_at(ir, n->store.buffer)->rank)) return true;
  }
  for (uint32_t i = writes.first; i < writes.first + writes.count && !stores; i++)
    if (!tir_buffer_at(ir, ir->regions.at[i].buffer)->user_annotated &&
        use_reductions(r, ir->regions.at[i].ranges, 2 * tir_buffer_at(ir, ir->regions.at[i].buffer)->rank))
      return true;
  return false;
}

/* A condition around the block, in its scope, may hold in an iteration, and not where all loops that reduce stand at
 * their start. */
static bool is_let_in_later(const struct reducing *loops) {
  const struct tir *ir = loops->ir;
  for (tir_stmt s = loops->block, p = tir_stmt_at(ir, s)->parent; p && !tir_is(ir, p, TIR_BLOCK);
       s = p, p = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, p, TIR_IF) && !tir_is(ir, p, TIR_WHILE)) continue;
    tir_expr condition = tir_stmt_at(ir, p)->test.condition;
    bool kept = tir_is(ir, p, TIR_IF) && tir_stmt_at(ir, s)->list == TIR_BODY;
    bool stays = !follows(loops, condition) && !loads_written(ir, condition);
    if (!stays && !(kept && holds_from_start(loops, condition))) return true;
  }
  return false;
}

bool tir_updates_unbegun(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return false;
  struct reducing loops = reducing_of(ir, block);
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if (starts_late(&loops, &ir->iters.at[i])) return true;
  return (predicate && !holds_from_start(&loops, predicate)) || is_let_in_later(&loops) ||
         begins_by_reductions(&loops) || shares_loop(ir, block, &loops) || tir_loads_unbegun(ir, block, TIR_NONE);
}
