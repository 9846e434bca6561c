/* Decompose padding: a block that writes a value where it is in bounds and a constant elsewhere becomes two: one that
 * writes the constant everywhere, before a loop around the block, and the block itself, in bounds only.
 *
 * Requires: a complete block whose body is one store of if_then_else(condition, value, constant), to an element of its
 *           own in each iteration, which allocates and matches no buffer and writes one region; the loop is around it
 *           in its scope; the innermost loop holds nothing but the block; the condition and the block's predicate say
 *           something, and under them, and what blocks without iterations around say, the bindings are independent
 *           affine iterators in steps of 1. Under the loop, who else uses what the block writes are blocks that read it
 *           after the block, all of it written by then; and no name is bound by which the block runs.
 * After:    before the loop, copies of it and of the loops inside it, serial, and in them NAME_pad_const, which reads
 *           nothing. The block's iterations run from zero over what is in bounds; those bound to a loop that has only
 *           the block in it, up to the one given, make that loop as long; the others are guarded by what is left of the
 *           condition. Both blocks are without annotations.
 * Forward:  nothing dies: the block and its loops keep their ids. */
#include "loops.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/outside.h"
#include "tir/arith/affine.h"

#include <stdlib.h>

enum { MOST_LOOPS = 64, MOST_ITERS = 32 };

struct decompose_padding_plan {
  tir_block scope;
  tir_loop loops[MOST_LOOPS]; /* around the block, innermost first, to the one given */
  uint32_t count;
  uint32_t owned; /* of these, so many hold the block alone */
  tir_stmt store;
  tir_expr value, constant;
  tir_expr condition; /* in terms of loops; with the block's predicate */
  struct tir_progression bounds[MOST_ITERS];
};

/* ---- Check ---- */

static bool check_place(struct tir *ir, tir_block block, tir_loop loop, struct decompose_padding_plan *plan,
                        ms_error *err) {
  tir_stmt s = tir_stmt_at(ir, block)->parent, inner = block;
  bool alone = true;
  plan->count = plan->owned = 0;
  for (; s && !tir_is(ir, s, TIR_BLOCK); inner = s, s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP))
      return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, block, "more than loops stands around block `%s`",
                        tir_block_name(ir, block));
    if (plan->count == MOST_LOOPS) return tir_refuse(ir, err, MS_TOO_LARGE, block, "too many loops are around it");
    plan->loops[plan->count++] = s;
    alone &= tir_only_child(ir, s) == inner;
    plan->owned += alone;
    if (s == loop) break;
  }
  if (s != loop)
    return tir_refuse(ir, err, MS_LOOP_NOT_AROUND_BLOCK, loop, "block `%s` is not in this loop's scope and below it",
                      tir_block_name(ir, block));
  if (plan->owned) return true;
  return tir_refuse(ir, err, MS_LOOP_NOT_ONLY_CHILD, plan->loops[0], "this loop holds more than block `%s`",
                    tir_block_name(ir, block));
}

static bool refuse(const struct tir *ir, tir_block block, const char *why, ms_error *err) {
  return tir_refuse(ir, err, MS_PADDING_PATTERN, block, "block `%s` %s", tir_block_name(ir, block), why);
}

static bool match_body(struct tir *ir, tir_block block, struct decompose_padding_plan *plan, ms_error *err) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  plan->store = tir_only_child(ir, block);
  if (r->allocs.count || r->matches.count || tir_stmt_at(ir, block)->first[TIR_INIT])
    return refuse(ir, block, "has an init, or allocates or matches a buffer", err);
  if (r->writes.count != 1) return refuse(ir, block, "does not write one region", err);
  if (r->iters.count > MOST_ITERS) return refuse(ir, block, "has too many iterations", err);
  if (!plan->store || !tir_is(ir, plan->store, TIR_STORE) || tir_as(ir, plan->store, TIR_STORE)->store.predicate)
    return refuse(ir, block, "is no single store", err);
  const struct tir_expr_node *n = tir_at(ir, tir_as(ir, plan->store, TIR_STORE)->store.value);
  if (!tir_is_choice(ir, n)) return refuse(ir, block, "stores no if_then_else", err);
  plan->condition = ir->operands.at[n->operands];
  plan->value = ir->operands.at[n->operands + 1];
  plan->constant = ir->operands.at[n->operands + 2];
  enum tir_kind kind = (enum tir_kind)tir_at(ir, plan->constant)->kind;
  return kind == TIR_INT_IMM || kind == TIR_FLOAT_IMM || refuse(ir, block, "pads with no constant", err);
}

/* The conjuncts that are not always true. */
static tir_expr drop_proven(struct tir *ir, tir_expr e) {
  if (!e) return TIR_NONE;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_AND) {
    tir_expr left = drop_proven(ir, n.a);
    return tir_and(ir, left, drop_proven(ir, n.b));
  }
  return tir_prove(ir, e) ? TIR_NONE : e;
}

/* Of the loops from `s` up, those of one iteration are their first value in all that is substituted next. */
static void subst_unit_loops(struct tir *ir, tir_stmt s) {
  for (; tir_is(ir, s, TIR_LOOP); s = tir_stmt_at(ir, s)->parent)
    if (tir_loop_extent(ir, s) == 1)
      tir_subst_var(ir, tir_as(ir, s, TIR_LOOP)->loop.var, tir_as(ir, s, TIR_LOOP)->loop.min);
}

/* What blocks without iterations around say of when it runs: it is so, and need not be said again. */
static tir_expr condition_around(struct tir *ir, tir_block block) {
  tir_expr condition = TIR_NONE;
  for (tir_stmt s = tir_parent_block(ir, block); s && !tir_block_at(ir, s)->iters.count; s = tir_parent_block(ir, s))
    condition = tir_and(ir, condition, tir_as(ir, s, TIR_BLOCK)->block.predicate);
  return condition;
}

static void find_condition(struct tir *ir, tir_block block, struct decompose_padding_plan *plan) {
  tir_subst_iters(ir, block);
  tir_expr condition = tir_subst(ir, plan->condition);
  tir_subst_clear(ir);
  condition = tir_and(ir, condition, tir_as(ir, block, TIR_BLOCK)->block.predicate);
  subst_unit_loops(ir, tir_stmt_at(ir, block)->parent);
  condition = tir_subst(ir, condition);
  tir_subst_clear(ir);
  plan->condition = drop_proven(ir, condition);
}

/* The variables of the loops that the bindings may use: those around, through blocks without iterations too. */
static uint32_t vars_around(const struct tir *ir, tir_block block, tir_var *out) {
  uint32_t count = 0;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s; s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_BLOCK) && tir_block_at(ir, s)->iters.count) break;
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    if (count < MOST_LOOPS) out[count] = tir_as(ir, s, TIR_LOOP)->loop.var;
    count++;
  }
  return count;
}

static bool find_bounds(struct tir *ir, tir_block block, struct decompose_padding_plan *plan, ms_error *err) {
  tir_var vars[MOST_LOOPS];
  tir_expr bindings[MOST_ITERS] = {TIR_NONE};
  uint32_t count = tir_block_at(ir, block)->iters.count, loops = vars_around(ir, block, vars);
  if (loops > MOST_LOOPS) return tir_refuse(ir, err, MS_TOO_LARGE, block, "too many loops are around it");
  for (uint32_t i = 0; i < count; i++) bindings[i] = tir_iters(ir, block)[i].binding;
  tir_expr condition = tir_and(ir, plan->condition, condition_around(ir, block));
  if (!tir_detect_iter_map(ir, bindings, count, vars, loops, condition, TIR_MAP_SURJECTIVE, true, plan->bounds))
    return refuse(ir, block, "has iterations that depend on each other where it is in bounds", err);
  for (uint32_t i = 0; i < count; i++)
    if (plan->bounds[i].scale && !tir_is_const(ir, plan->bounds[i].scale, 1))
      return refuse(ir, block, "has iterations in steps of more than 1", err);
  return true;
}

/* Each iteration variable is an index of the store: no two iterations write one element, though a region that says less
 * may let them. */
static bool stores_by_iteration(const struct tir *ir, tir_block block, tir_stmt store) {
  const struct tir_stmt_node *s = tir_as(ir, store, TIR_STORE);
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    tir_var v = tir_iters(ir, block)[i].var;
    bool found = tir_is_const(ir, ir->vars.at[v].extent, 1);
    for (uint32_t d = 0; d < tir_buffer_at(ir, s->store.buffer)->rank; d++)
      found = found || ir->operands.at[s->store.indices + d] == tir_var_expr(ir, v);
    if (!found) return false;
  }
  return true;
}

/* ---- Check: the constant goes before the loop ---- */

static bool refuse_order(struct tir *ir, tir_block block, tir_stmt other, ms_error *err) {
  return tir_refuse(ir, err, MS_PADDING_ORDER, other,
                    "this uses what block `%s` writes, and would come after the padding of later iterations",
                    tir_block_name(ir, block));
}

struct order {
  tir_block block;
  tir_loop loop;
  ms_error *err;
};

/* A later reader of what the scope allocates finds there what the block wrote, or nothing at all. */
static bool check_undeclared(struct tir *ir, void *context, const struct tir_conflict *c) {
  const struct order *o = context;
  bool later = !c->other.writes && tir_compare_position(ir, c->other.at, o->block) > 0;
  return !c->own.writes || !tir_is_below(ir, c->other.at, o->loop) ||
         (later && tir_allocates(ir, tir_scope_of(ir, o->block), c->buffer)) ||
         refuse_order(ir, o->block, c->other.at, o->err);
}

/* Others under the loop find of the buffer what they did: they come later, and find nothing older in it. */
static bool check_others(struct tir *ir, tir_block block, tir_loop loop, tir_block scope, ms_error *err) {
  tir_buffer buffer = ir->regions.at[tir_block_at(ir, block)->writes.first].buffer;
  struct order order = {block, loop, err};
  struct tir_outside_use use;
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == block || tir_scope_of(ir, b) != scope || !tir_is_below(ir, b, loop)) continue;
    if (tir_compare_position(ir, b, block) < 0 || !tir_has_region_cover(ir, b, scope))
      return refuse_order(ir, block, b, err);
  }
  if (tir_next_outside_use(ir, scope, buffer, loop, TIR_NONE, &use)) return refuse_order(ir, block, use.at, err);
  return tir_each_undeclared_conflict(ir, block, scope, &(struct tir_conflict_visitor){check_undeclared, &order});
}

static bool runs_by(struct tir *ir, tir_block block, tir_var v) {
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  tir_stmt store = tir_only_child(ir, block);
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++)
    if (tir_uses_var(ir, tir_iters(ir, block)[i].binding, v)) return true;
  for (uint32_t d = 0; d < tir_buffer_at(ir, tir_as(ir, store, TIR_STORE)->store.buffer)->rank; d++)
    if (tir_uses_var(ir, tir_operands(ir, tir_as(ir, store, TIR_STORE)->store.indices)[d], v)) return true;
  return predicate && tir_uses_var(ir, predicate, v);
}

/* No name is bound under the loop that says where the constant is stored. */
static bool check_names(struct tir *ir, tir_block block, tir_loop loop, ms_error *err) {
  for (tir_stmt s = block; s != loop; s = tir_stmt_at(ir, s)->parent)
    for (tir_stmt b = tir_stmt_at(ir, s)->prev; b; b = tir_stmt_at(ir, b)->prev)
      if (tir_is(ir, b, TIR_BIND) && runs_by(ir, block, tir_as(ir, b, TIR_BIND)->bind.var))
        return tir_refuse(ir, err, MS_MOVE_DOMAIN, block, "block `%s` runs by a name that is bound under the loop",
                          tir_block_name(ir, block));
  return true;
}

static bool check_decompose_padding(struct tir *ir, tir_block block, tir_loop loop, struct decompose_padding_plan *plan,
                                    ms_error *err) {
  if (!tir_find_scope(ir, block, &plan->scope, err)) return false;
  if (!tir_check_complete_block(ir, block, plan->scope, err) || !check_place(ir, block, loop, plan, err) ||
      !match_body(ir, block, plan, err))
    return false;
  /* The last of them decides now, whichever of both it writes. */
  if (!stores_by_iteration(ir, block, plan->store) && tir_instances_meet(ir, block))
    return refuse(ir, block, "may write an element in several iterations", err);
  if (!check_others(ir, block, loop, plan->scope, err) || !check_names(ir, block, loop, err)) return false;
  find_condition(ir, block, plan);
  if (!plan->condition) return refuse(ir, block, "is always in bounds", err);
  return tir_check_places_steady(ir, block, loop, err) && find_bounds(ir, block, plan, err);
}

/* ---- Edit: the constant ---- */

static void make_serial(struct tir *ir, const tir_loop *nest, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    struct tir_stmt_node *n = tir_stmt_at(ir, nest[i]);
    n->loop_kind = TIR_SERIAL;
    n->loop.thread = TIR_NONE;
    n->annotations.count = 0;
  }
}

static tir_block make_constant(struct tir *ir, tir_block block, const struct decompose_padding_plan *plan) {
  tir_loop nest[MOST_LOOPS];
  tir_block made = tir_clone_stmt(ir, block);
  tir_set_block_name(ir, made, tir_symbol_suffix(ir, tir_block_at(ir, block)->name, "_pad_const"));
  tir_set_reads(ir, made, NULL, 0);
  tir_stmt_at(ir, made)->annotations = (struct tir_span){0, 0};
  tir_stmt_at(ir, tir_only_child(ir, made))->store.value = plan->constant;
  for (uint32_t i = 0; i < plan->count; i++) nest[i] = plan->loops[plan->count - 1 - i];
  tir_copy_nest(ir, nest, plan->count, "", nest);
  make_serial(ir, nest, plan->count);
  tir_append(ir, nest[plan->count - 1], TIR_BODY, made);
  subst_unit_loops(ir, tir_stmt_at(ir, plan->loops[plan->count - 1])->parent);
  tir_subst_loops(ir, made);
  tir_subst_clear(ir);
  tir_insert_before(ir, plan->loops[plan->count - 1], nest[0]);
  return made;
}

/* ---- Edit: what is in bounds ---- */

static tir_loop find_owned(const struct tir *ir, const struct decompose_padding_plan *plan, tir_expr binding) {
  for (uint32_t i = 0; i < plan->owned; i++)
    if (tir_var_expr(ir, tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var) == binding) return plan->loops[i];
  return TIR_NONE;
}

/* The loop runs from zero over what is in bounds: with a new variable. The old one, in conditions, is `min` more. */
static tir_expr shorten(struct tir *ir, tir_loop loop, tir_expr min, tir_expr extent) {
  struct tir_var_node old = ir->vars.at[tir_as(ir, loop, TIR_LOOP)->loop.var];
  tir_expr zero = tir_int(ir, old.type, 0);
  extent = tir_cast(ir, old.type, extent);
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, old.name, old.type, zero, extent);
  tir_subst_var(ir, tir_as(ir, loop, TIR_LOOP)->loop.var, tir_add(ir, tir_var_expr(ir, var), min));
  struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  n->loop.var = var;
  n->loop.min = zero;
  n->loop.extent = extent;
  return tir_var_expr(ir, var);
}

/* The loops to be shortened, one an iteration or TIR_NONE; the other bindings are without unit loops. */
static void find_shortened(struct tir *ir, tir_block block, const struct decompose_padding_plan *plan, tir_loop *out) {
  subst_unit_loops(ir, tir_stmt_at(ir, block)->parent);
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    tir_expr binding = tir_iters(ir, block)[i].binding;
    out[i] = find_owned(ir, plan, binding);
    if (out[i]) continue;
    binding = tir_subst(ir, binding);
    tir_iters(ir, block)[i].binding = binding;
  }
  tir_subst_clear(ir);
}

/* Leaves in the substitution what the old iterations and loops have become. */
static void rebind(struct tir *ir, tir_block block, const struct decompose_padding_plan *plan) {
  uint32_t count = tir_block_at(ir, block)->iters.count;
  tir_loop shortened[MOST_ITERS];
  tir_var vars[MOST_ITERS];
  find_shortened(ir, block, plan, shortened);
  for (uint32_t i = 0; i < count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    struct tir_var_node old = ir->vars.at[iter.var];
    tir_expr min = tir_cast(ir, old.type, plan->bounds[i].base);
    tir_expr extent = plan->bounds[i].scale ? plan->bounds[i].extent : tir_int(ir, old.type, 1);
    vars[i] =
        tir_new_var(ir, TIR_VAR_ITER, old.name, old.type, tir_int(ir, old.type, 0), tir_cast(ir, old.type, extent));
    tir_subst_var(ir, iter.var, tir_add(ir, tir_var_expr(ir, vars[i]), min));
    tir_expr binding = shortened[i] ? shorten(ir, shortened[i], min, extent) : tir_sub(ir, iter.binding, min);
    tir_iters(ir, block)[i].binding = binding;
  }
  for (uint32_t i = 0; i < count; i++) tir_iters(ir, block)[i].var = vars[i];
}

static void subst_ranges(struct tir *ir, struct tir_span regions) {
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++) {
    struct tir_region r = ir->regions.at[i];
    uint32_t ranges = tir_subst_operands(ir, r.ranges, 2 * tir_buffer_at(ir, r.buffer)->rank);
    ir->regions.at[i].ranges = ranges;
  }
}

static void keep_in_bounds(struct tir *ir, tir_block block, const struct decompose_padding_plan *plan) {
  rebind(ir, block, plan);
  subst_ranges(ir, tir_block_at(ir, block)->reads);
  subst_ranges(ir, tir_block_at(ir, block)->writes);
  struct tir_stmt_node store = *tir_stmt_at(ir, plan->store);
  uint32_t indices = tir_subst_operands(ir, store.store.indices, tir_buffer_at(ir, store.store.buffer)->rank);
  tir_expr value = tir_subst_value(ir, plan->value), condition = tir_subst(ir, plan->condition);
  tir_subst_clear(ir);
  tir_as(ir, plan->store, TIR_STORE)->store.indices = indices;
  tir_as(ir, plan->store, TIR_STORE)->store.value = value;
  condition = drop_proven(ir, condition);
  tir_as(ir, block, TIR_BLOCK)->block.predicate = condition;
  tir_stmt_at(ir, block)->annotations = (struct tir_span){0, 0};
}

/* Where the constant is written outside of what is around the block and its consumer, the consumer is not covered by
 * what is inside. */
static void note_cover(struct tir *ir, tir_block block, tir_block constant, tir_block scope) {
  tir_block consumers[MOST_LOOPS];
  uint32_t count = tir_consumers(ir, block, consumers, MOST_LOOPS);
  for (uint32_t i = 0; i < count && i < MOST_LOOPS; i++)
    if (!tir_is_below(ir, constant, tir_lowest_common_ancestor(ir, block, consumers[i])))
      tir_note_uncovered(ir, consumers[i], scope);
}

static tir_block edit_decompose_padding(struct tir *ir, tir_block block, const struct decompose_padding_plan *plan) {
  tir_block constant = make_constant(ir, block, plan);
  keep_in_bounds(ir, block, plan);
  note_cover(ir, block, constant, plan->scope);
  return constant;
}

bool tir_decompose_padding(struct tir *ir, tir_block block, tir_loop loop, tir_block *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, loop, TIR_LOOP));
  struct decompose_padding_plan plan;
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_decompose_padding(ir, block, loop, &plan, err))) return false;
  *out = edit_decompose_padding(ir, block, &plan);
  return true;
}
