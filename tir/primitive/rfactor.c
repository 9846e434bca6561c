/* Rfactor: a loop of a reduction becomes an axis of a buffer of partial results, which a second reduction combines.
 *
 * Requires: one block below the loop, a reduction by a known reducer, whose ties do not depend on the order of
 *           iterations, in a scope that is a stage pipeline; the loop is serial; it reduces, or has one iteration; no
 *           loop around the block is both spatial and reducing; the block is the first below its outermost loop, and
 *           all there is below the outermost that reduces; under that one, loops of more than one iteration are bound;
 *           only loops stand around the block; below the outermost loop nothing else writes, undeclared or outside of
 *           blocks, what the block reads; no range that is kept depends on a loop that is not; the block writes what it
 *           reduces, and has no buffers of its own; no guard joins the loop to others that reduce, so that all bindings
 *           stay affine; no step is taken in two iterations of the loops.
 * After:    before the outermost loop, a copy of all loops with the block NAME_rf, which reduces into BUFFER.rf along
 *           an added axis. Its iterations are: the loop, spatial; then the old ones, but that a reduction bound to the
 *           loop gives way to one iteration for each other loop in its binding. Without a reduction left it has no
 *           init. The block itself, under the loops that do not reduce and the one given, reduces BUFFER.rf over the
 *           loop; where NAME_rf has a predicate, so has the block: that of the first iteration, which initialized the
 *           partial result.
 * Forward:  the block and the loops that stay keep their ids; the other loops that reduce are dead. */
#include "loops.h"
#include "reduction_body.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/outside.h"

#include <stdlib.h>

enum { MOST_ON_STACK = 32, MOST_TERMS = 64, MOST_RANK = 16, SPATIAL = 1u << TIR_SPATIAL, REDUCES = 1u << TIR_REDUCE };

struct rfactor_plan {
  tir_block block, scope;
  struct tir_reduction reduction;
  uint32_t axis;
  tir_loop *loops, *copies, *removed; /* around the block, outermost first; those that will be dead */
  tir_var *iters;                     /* of the block of partial results, by loop; TIR_NONE: none made */
  uint32_t *joined;                   /* by loop: it gets an iteration of its own */
  uint32_t count, removed_count, at;  /* at: of the loop given */
  tir_expr predicate;                 /* of the block that combines */
};

/* ---- Check ---- */

static bool find_block(struct tir *ir, tir_loop loop, struct rfactor_plan *plan, ms_error *err) {
  uint32_t blocks = tir_child_blocks(ir, loop, &plan->block, 1);
  if (blocks != 1) return tir_refuse(ir, err, MS_NOT_ONE_CHILD_BLOCK, loop, "%u blocks are below this loop", blocks);
  if (!tir_find_scope(ir, plan->block, &plan->scope, err)) return false;
  plan->count = tir_loops_of(ir, plan->block, NULL, 0);
  return true;
}

static bool check_whole(struct tir *ir, tir_loop loop, const struct rfactor_plan *plan, ms_error *err) {
  const char *name = tir_block_name(ir, plan->block);
  if (!tir_check_stage_pipeline(ir, plan->scope, err) ||
      !tir_check_reduction_block(ir, plan->block, plan->scope, err) ||
      !tir_check_reduces_inside(ir, plan->block, plan->scope, err))
    return false;
  if (tir_stmt_at(ir, loop)->loop_kind != TIR_SERIAL)
    return tir_refuse(ir, err, MS_LOOP_NOT_SERIAL, loop, "this loop is not serial");
  if (!tir_only_loops_between(ir, plan->block, plan->scope))
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, plan->loops[0], "more than loops stands around block `%s`",
                      name);
  tir_block first;
  tir_child_blocks(ir, plan->loops[0], &first, 1);
  if (first != plan->block)
    return tir_refuse(ir, err, MS_NOT_FIRST_CHILD_BLOCK, plan->loops[0], "block `%s` is not the first below this loop",
                      name);
  return true;
}

static bool check_loop(struct tir *ir, struct rfactor_plan *plan, uint32_t i, bool *reducing, ms_error *err) {
  tir_loop loop = plan->loops[i];
  const char *name = tir_block_name(ir, plan->block);
  unsigned kinds = tir_loop_iter_kinds(ir, loop, plan->block);
  if ((kinds & SPATIAL) && (kinds & REDUCES))
    return tir_refuse(ir, err, MS_LOOP_SPATIAL_AND_REDUCTION, loop, "this loop is both in block `%s`", name);
  if ((kinds & SPATIAL) && i == plan->at)
    return tir_refuse(ir, err, MS_RFACTOR_LOOP_SPATIAL, loop, "this loop is spatial in block `%s`", name);
  if (!kinds && (*reducing || i == plan->at) && tir_loop_extent(ir, loop) != 1)
    return tir_refuse(ir, err, MS_LOOP_UNBOUND, loop, "no iteration of block `%s` is bound to this loop", name);
  if (!(kinds & REDUCES)) return true;
  if (!*reducing && !tir_is_nest_of(ir, loop, plan->block))
    return tir_refuse(ir, err, MS_REDUCTION_LOOP_SHARED, loop, "block `%s` is not alone below this loop", name);
  *reducing = true;
  if (i != plan->at) plan->removed[plan->removed_count++] = loop;
  return true;
}

static bool check_loops(struct tir *ir, tir_loop loop, struct rfactor_plan *plan, ms_error *err) {
  bool reducing = false;
  plan->removed_count = plan->at = 0;
  while (plan->loops[plan->at] != loop) plan->at++;
  for (uint32_t i = 0; i < plan->count; i++)
    if (!check_loop(ir, plan, i, &reducing, err)) return false;
  return true;
}

/* A partial result was initialized in the first iteration of the loops that are removed, if their predicate held
 * there. */
static bool find_predicate(struct tir *ir, struct rfactor_plan *plan, ms_error *err) {
  plan->predicate = tir_as(ir, plan->block, TIR_BLOCK)->block.predicate;
  if (plan->predicate && plan->removed_count) {
    for (uint32_t i = 0; i < plan->removed_count; i++) {
      const struct tir_stmt_node *n = tir_stmt_at(ir, plan->removed[i]);
      tir_subst_var(ir, n->loop.var, n->loop.min);
    }
    plan->predicate = tir_subst(ir, plan->predicate);
    tir_subst_clear(ir);
  }
  bool depends = plan->predicate && tir_uses_any_loop(ir, plan->predicate, plan->removed, plan->removed_count);
  for (uint32_t i = 0; i < plan->count && !depends; i++) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, plan->loops[i]);
    const tir_loop *changed = i == plan->at ? plan->loops : plan->removed; /* the loop's range becomes a shape */
    uint32_t count = i == plan->at ? plan->count : plan->removed_count;
    depends =
        tir_uses_any_loop(ir, n->loop.min, changed, count) || tir_uses_any_loop(ir, n->loop.extent, changed, count);
  }
  if (depends)
    return tir_refuse(ir, err, MS_LOOP_RANGE_DEPENDS, plan->loops[0], "a range around block `%s` depends on this nest",
                      tir_block_name(ir, plan->block));
  if (plan->predicate && tir_prove(ir, plan->predicate)) plan->predicate = TIR_NONE;
  return true;
}

/* A reduction gives way when it is bound to the loop given, or to a loop of another that gives way: two that come of
 * one fused loop go together, whatever simplification has left of the loops in either. */
static bool is_taken_apart(const struct tir *ir, const struct rfactor_plan *plan, const struct tir_iter *iter) {
  for (uint32_t i = 0; iter->kind == TIR_REDUCE && i < plan->count; i++)
    if (plan->joined[i] && tir_uses_var(ir, iter->binding, tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var)) return true;
  return false;
}

static bool join_loops_of(const struct tir *ir, const struct rfactor_plan *plan, tir_expr binding) {
  bool more = false;
  for (uint32_t i = 0; i < plan->count; i++) {
    if (plan->joined[i] || !tir_uses_var(ir, binding, tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var)) continue;
    plan->joined[i] = more = true;
  }
  return more;
}

static void join_loops(const struct tir *ir, const struct rfactor_plan *plan) {
  struct tir_span iters = tir_block_at(ir, plan->block)->iters;
  plan->joined[plan->at] = true;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < iters.count; i++) {
      const struct tir_iter *iter = &ir->iters.at[iters.first + i];
      if (is_taken_apart(ir, plan, iter)) more |= join_loops_of(ir, plan, iter->binding);
    }
  }
}

static uint32_t count_loops(const struct tir *ir, const struct rfactor_plan *plan, tir_expr e, bool *joined) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    if (!tir_uses_var(ir, e, tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var)) continue;
    *joined |= plan->joined[i];
    count++;
  }
  return count;
}

/* The bindings of the partial results are independent, unless a conjunct of the predicate ties a loop that gets an
 * iteration of its own to another. */
static bool ties_joined(const struct tir *ir, const struct rfactor_plan *plan, tir_expr predicate) {
  const struct tir_expr_node *n = tir_at(ir, predicate);
  if (n->kind == TIR_AND) return ties_joined(ir, plan, n->a) || ties_joined(ir, plan, n->b);
  bool joined = false;
  return count_loops(ir, plan, predicate, &joined) > 1 && joined;
}

static bool check_affine(const struct tir *ir, const struct rfactor_plan *plan, ms_error *err) {
  tir_expr predicate = tir_as(ir, plan->block, TIR_BLOCK)->block.predicate;
  join_loops(ir, plan);
  if (!predicate || !ties_joined(ir, plan, predicate)) return true;
  return tir_refuse(ir, err, MS_PARTIAL_NOT_AFFINE, plan->loops[plan->at],
                    "a guard of block `%s` joins this loop to others", tir_block_name(ir, plan->block));
}

static bool check_buffers(struct tir *ir, int factor_axis, struct rfactor_plan *plan, ms_error *err) {
  const struct tir_block_record *r = tir_block_at(ir, plan->block);
  const struct tir_reduction *reduction = &plan->reduction;
  const char *name = tir_block_name(ir, plan->block);
  int rank = (int)tir_buffer_at(ir, reduction->buffers[0])->rank;
  if (rank >= MOST_RANK)
    return tir_refuse(ir, err, MS_TOO_LARGE, plan->block, "block `%s` writes %d dimensions", name, rank);
  if (factor_axis < -(rank + 1) || factor_axis > rank)
    return tir_refuse(ir, err, MS_FACTOR_AXIS_RANGE, plan->block, "axis %d is not from %d to %d", factor_axis,
                      -(rank + 1), rank);
  plan->axis = (uint32_t)(factor_axis < 0 ? factor_axis + rank + 1 : factor_axis);
  if (r->allocs.count || r->matches.count)
    return tir_refuse(ir, err, MS_REDUCTION_OWN_BUFFERS, plan->block, "block `%s` has buffers of its own", name);
  for (uint32_t i = 0; i < reduction->count; i++)
    if (!tir_has_region_of(ir, r->writes, reduction->buffers[i]))
      return tir_refuse_undeclared(ir, plan->block, reduction->buffers[i], err);
  for (uint32_t i = 0; i < r->writes.count; i++) {
    tir_buffer written = ir->regions.at[r->writes.first + i].buffer;
    if (written != reduction->buffers[0] && written != reduction->buffers[reduction->count - 1])
      return tir_refuse(ir, err, MS_WRITES_NOT_REDUCED, plan->block, "block `%s` writes `%s`", name,
                        tir_buffer_name(ir, written));
  }
  return true;
}

struct reads {
  const struct rfactor_plan *plan;
  ms_error *err;
};

/* Partial results read all before the outermost loop: nothing below it writes that meanwhile. */
static bool check_conflict(struct tir *ir, void *context, const struct tir_conflict *c) {
  const struct reads *r = context;
  return !c->own.reads || !c->other.writes || !tir_is_below(ir, c->other.at, r->plan->loops[0]) ||
         tir_refuse(ir, r->err, MS_SCOPE_ORDER, c->other.at,
                    "this writes `%s`, which partial results of `%s` read before", tir_buffer_name(ir, c->buffer),
                    tir_block_name(ir, r->plan->block));
}

static bool check_reads(struct tir *ir, const struct rfactor_plan *plan, ms_error *err) {
  struct reads reads = {plan, err};
  return tir_each_undeclared_conflict(ir, plan->block, plan->scope,
                                      &(struct tir_conflict_visitor){check_conflict, &reads});
}

static bool check_rfactor(struct tir *ir, tir_loop loop, int factor_axis, struct rfactor_plan *plan, ms_error *err) {
  return check_whole(ir, loop, plan, err) && check_loops(ir, loop, plan, err) &&
         tir_find_free_reduction(ir, plan->block, &plan->reduction, err) && find_predicate(ir, plan, err) &&
         check_buffers(ir, factor_axis, plan, err) && check_affine(ir, plan, err) && check_reads(ir, plan, err) &&
         tir_check_reduces_once(ir, plan->block, plan->loops[plan->at], err) &&
         tir_check_places_steady(ir, plan->block, plan->loops[0], err);
}

/* ---- Edit ---- */

/* `count` operands from `first`, with `value` inserted before the one numbered `axis`; index of the first. */
static uint32_t insert_operand(struct tir *ir, uint32_t first, uint32_t count, uint32_t axis, uint32_t value) {
  assert(axis <= count);
  uint32_t made = tir_grow_operands(ir, count + 1);
  for (uint32_t i = 0; i <= count; i++)
    ir->operands.at[made + i] = i == axis ? value : ir->operands.at[first + i - (i > axis)];
  return made;
}

static uint32_t rank_of(const struct tir *ir, tir_buffer b) { return tir_buffer_at(ir, b)->rank; }

static void make_buffers(struct tir *ir, const struct rfactor_plan *plan, tir_buffer *out) {
  assert(plan->at < plan->count && plan->reduction.count <= TIR_MOST_REDUCED);
  tir_expr extent = tir_as(ir, plan->loops[plan->at], TIR_LOOP)->loop.extent;
  for (uint32_t i = 0; i < plan->reduction.count; i++) {
    struct tir_buffer_node old = *tir_buffer_at(ir, plan->reduction.buffers[i]);
    uint32_t shape = insert_operand(ir, old.shape, old.rank, plan->axis, extent);
    tir_symbol name = tir_symbol_suffix(ir, old.name, ".rf");
    out[i] = tir_new_buffer(ir, name, old.type, ir->operands.at + shape, old.rank + 1, old.scope);
    tir_buffer_at(ir, out[i])->alignment = old.alignment;
    tir_annotate_as(ir, out[i], plan->reduction.buffers[i]);
    tir_add_alloc(ir, plan->scope, out[i]);
  }
}

static tir_var iter_of_loop(struct tir *ir, tir_loop loop) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  return tir_new_var(ir, TIR_VAR_ITER, tir_name_prefix(ir, "v", v.name), v.type, n.loop.min, n.loop.extent);
}

/* Points of buffers, as regions. */
static void set_points(struct tir *ir, tir_block block, const tir_buffer *buffers, uint32_t count, uint32_t indices,
                       bool writes) {
  assert(count <= TIR_MOST_REDUCED);
  struct tir_region points[TIR_MOST_REDUCED];
  for (uint32_t i = 0; i < count; i++) points[i] = tir_point_region(ir, buffers[i], tir_operands(ir, indices));
  (writes ? tir_set_writes : tir_set_reads)(ir, block, points, count);
}

/* ---- The block of partial results ---- */

struct iters {
  struct tir *ir;
  struct rfactor_plan *plan;
  uint32_t first, count; /* in tir.iters; there is room */
};

static void push_iter(struct iters *s, tir_var var, enum tir_iter_kind kind, tir_expr binding) {
  s->ir->iters.at[s->first + s->count++] = (struct tir_iter){var, kind, binding};
}

static tir_expr loop_var(const struct tir *ir, tir_loop loop) {
  return tir_var_expr(ir, tir_as(ir, loop, TIR_LOOP)->loop.var);
}

/* Each loop gets one iteration, where its variable first stands in a binding that is taken apart. */
static bool push_iter_of_loop(void *data, tir_expr e) {
  struct iters *s = data;
  const struct rfactor_plan *plan = s->plan;
  struct tir_expr_node n = *tir_at(s->ir, e);
  for (uint32_t i = 0; n.kind == TIR_VAR && i < plan->count; i++) {
    if (tir_as(s->ir, plan->loops[i], TIR_LOOP)->loop.var != n.ref || plan->iters[i]) continue;
    plan->iters[i] = iter_of_loop(s->ir, plan->loops[i]);
    push_iter(s, plan->iters[i], TIR_REDUCE, loop_var(s->ir, plan->copies[i]));
  }
  return n.flags & TIR_HAS_VAR;
}

/* A place in the nest; expressions without loops come last. */
static uint32_t place_of(const struct tir *ir, const struct rfactor_plan *plan, tir_expr e) {
  uint32_t i = 0;
  while (i < plan->count && !tir_uses_var(ir, e, tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var)) i++;
  return i;
}

/* The loops of a binding in the order of its terms, by falling coefficient; those of loops of one iteration, which may
 * share one, as they are nested. */
static void push_iters_of(struct iters *s, tir_expr binding) {
  struct tir *ir = s->ir;
  struct tir_linear l = tir_linear_of(ir, binding);
  struct tir_term terms[MOST_TERMS];
  if (l.count > MOST_TERMS) {
    tir_walk_expr(ir, binding, push_iter_of_loop, s);
    return;
  }
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    uint32_t at = i;
    for (; at > 0; at--) {
      const struct tir_term *before = &terms[at - 1];
      if (before->coefficient > t.coefficient) break;
      if (before->coefficient == t.coefficient && place_of(ir, s->plan, before->atom) <= place_of(ir, s->plan, t.atom))
        break;
      terms[at] = *before;
    }
    terms[at] = t;
  }
  for (uint32_t i = 0; i < l.count; i++) tir_walk_expr(ir, terms[i].atom, push_iter_of_loop, s);
}

/* The iterations of the new block. The substitution takes loops to their copies. */
static void make_iters(struct tir *ir, struct rfactor_plan *plan, tir_block partial) {
  struct tir_span old = tir_block_at(ir, plan->block)->iters;
  struct iters s = {ir, plan, tir_grow_iters(ir, old.count + plan->count + 1), 0};
  plan->iters[plan->at] = iter_of_loop(ir, plan->loops[plan->at]);
  push_iter(&s, plan->iters[plan->at], TIR_SPATIAL, loop_var(ir, plan->copies[plan->at]));
  for (uint32_t i = 0; i < old.count; i++) {
    struct tir_iter iter = ir->iters.at[old.first + i];
    if (is_taken_apart(ir, plan, &iter))
      push_iters_of(&s, iter.binding);
    else
      push_iter(&s, iter.var, (enum tir_iter_kind)iter.kind, tir_subst(ir, iter.binding));
  }
  tir_block_at(ir, partial)->iters = (struct tir_span){s.first, s.count};
}

/* Loops around the scope that bindings hold are of one iteration: they stay out of the new block. */
static void replace_outer_loops(struct tir *ir, const struct rfactor_plan *plan) {
  for (tir_stmt s = tir_stmt_at(ir, plan->scope)->parent; s; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) == 1)
      tir_subst_var(ir, tir_as(ir, s, TIR_LOOP)->loop.var, tir_as(ir, s, TIR_LOOP)->loop.min);
}

/* Sets the substitution of the iterations that are taken apart by what they are of the new ones. */
static void replace_iters(struct tir *ir, const struct rfactor_plan *plan) {
  struct tir_span old = tir_block_at(ir, plan->block)->iters;
  for (uint32_t i = 0; i < plan->count; i++)
    if (plan->iters[i])
      tir_subst_var(ir, tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var, tir_var_expr(ir, plan->iters[i]));
  replace_outer_loops(ir, plan);
  /* The old bindings have served: each waits there for the loops' substitution to end. */
  for (uint32_t i = 0; i < old.count; i++) {
    struct tir_iter iter = ir->iters.at[old.first + i];
    if (!is_taken_apart(ir, plan, &iter)) continue;
    ir->iters.at[old.first + i].kind = TIR_OPAQUE;
    ir->iters.at[old.first + i].binding = tir_subst(ir, iter.binding);
  }
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < old.count; i++) {
    struct tir_iter iter = ir->iters.at[old.first + i];
    if (iter.kind == TIR_OPAQUE) tir_subst_var(ir, iter.var, iter.binding);
  }
}

static bool is_reduced(const struct rfactor_plan *plan, tir_buffer buffer) {
  for (uint32_t i = 0; i < plan->reduction.count; i++)
    if (plan->reduction.buffers[i] == buffer) return true;
  return false;
}

/* Reads as the reduction reads, but for its own output; writes as it writes, with the point `index` on the added axis.
 */
static void make_regions(struct tir *ir, const struct rfactor_plan *plan, tir_block partial, const tir_buffer *buffers,
                         tir_expr index) {
  struct tir_span reads = tir_block_at(ir, plan->block)->reads, writes = tir_block_at(ir, plan->block)->writes;
  uint32_t first = tir_grow_regions(ir, reads.count + writes.count), read = 0;
  for (uint32_t i = 0; i < reads.count; i++) {
    struct tir_region r = ir->regions.at[reads.first + i];
    if (is_reduced(plan, r.buffer)) continue;
    r.ranges = tir_subst_operands(ir, r.ranges, 2 * rank_of(ir, r.buffer));
    ir->regions.at[first + read++] = r;
  }
  tir_expr one = tir_int(ir, tir_type_of(ir, index), 1);
  for (uint32_t i = 0; i < writes.count; i++) {
    struct tir_region r = ir->regions.at[writes.first + i];
    uint32_t rank = rank_of(ir, r.buffer), at = 2 * plan->axis;
    r.ranges = insert_operand(ir, tir_subst_operands(ir, r.ranges, 2 * rank), 2 * rank, at, index);
    r.ranges = insert_operand(ir, r.ranges, 2 * rank + 1, at + 1, one);
    r.buffer = buffers[r.buffer != plan->reduction.buffers[0]];
    ir->regions.at[first + read + i] = r;
  }
  tir_set_reads(ir, partial, ir->regions.at + first, read);
  tir_set_writes(ir, partial, ir->regions.at + first + read, writes.count);
}

static bool has_reduction_iter(const struct tir *ir, tir_block block) {
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++)
    if (tir_iters(ir, block)[i].kind == TIR_REDUCE) return true;
  return false;
}

/* The point of the added axis: loops need not start at zero. */
static tir_expr axis_index(struct tir *ir, const struct rfactor_plan *plan, tir_var iter) {
  return tir_sub(ir, tir_var_expr(ir, iter), tir_as(ir, plan->loops[plan->at], TIR_LOOP)->loop.min);
}

static tir_block make_partial(struct tir *ir, struct rfactor_plan *plan, const tir_buffer *buffers) {
  const struct tir_reduction *r = &plan->reduction;
  tir_block partial = tir_new_block(ir, tir_symbol_suffix(ir, tir_block_at(ir, plan->block)->name, "_rf"));
  struct tir_span annotations = tir_copy_annotations(ir, tir_stmt_at(ir, plan->block)->annotations);
  tir_stmt_at(ir, partial)->annotations = annotations;
  make_iters(ir, plan, partial);
  tir_expr predicate = tir_subst(ir, tir_as(ir, plan->block, TIR_BLOCK)->block.predicate);
  tir_as(ir, partial, TIR_BLOCK)->block.predicate = predicate;
  tir_subst_clear(ir);
  replace_iters(ir, plan);
  tir_expr index = axis_index(ir, plan, plan->iters[plan->at]);
  make_regions(ir, plan, partial, buffers, index);
  uint32_t rank = rank_of(ir, r->buffers[0]);
  struct tir_reduction_body b = {.block = partial, .buffers = buffers};
  b.indices = insert_operand(ir, r->indices, rank, plan->axis, index);
  for (uint32_t i = 0; i < r->count; i++) {
    b.left[i] = tir_load(ir, buffers[i], tir_operands(ir, b.indices), rank + 1, TIR_NONE);
    b.right[i] = tir_subst(ir, r->right[i]);
  }
  tir_subst_clear(ir);
  tir_fill_reduction(ir, &b, r, has_reduction_iter(ir, partial));
  return partial;
}

/* ---- The block that combines ---- */

/* The spatial iterations stay with the new block: this one gets others, which the substitution then knows. */
static tir_var renew_iters(struct tir *ir, const struct rfactor_plan *plan) {
  struct tir_span old = tir_block_at(ir, plan->block)->iters;
  struct iters s = {ir, NULL, tir_grow_iters(ir, old.count + 1), 0};
  tir_var along = iter_of_loop(ir, plan->loops[plan->at]);
  push_iter(&s, along, TIR_REDUCE, loop_var(ir, plan->loops[plan->at]));
  for (uint32_t i = 0; i < old.count; i++) {
    struct tir_iter iter = ir->iters.at[old.first + i];
    if (iter.kind != TIR_SPATIAL) continue;
    struct tir_var_node v = ir->vars.at[iter.var];
    tir_var made = tir_new_var(ir, TIR_VAR_ITER, v.name, v.type, v.min, v.extent);
    tir_subst_var(ir, iter.var, tir_var_expr(ir, made));
    push_iter(&s, made, TIR_SPATIAL, iter.binding);
  }
  tir_block_at(ir, plan->block)->iters = (struct tir_span){s.first, s.count};
  return along;
}

static void combine_partials(struct tir *ir, const struct rfactor_plan *plan, const tir_buffer *buffers) {
  const struct tir_reduction *r = &plan->reduction;
  uint32_t rank = rank_of(ir, r->buffers[0]);
  tir_var along = renew_iters(ir, plan);
  struct tir_reduction_body b = {.block = plan->block, .buffers = r->buffers};
  b.indices = tir_subst_operands(ir, r->indices, rank);
  tir_subst_clear(ir);
  uint32_t partial = insert_operand(ir, b.indices, rank, plan->axis, axis_index(ir, plan, along));
  for (uint32_t i = 0; i < r->count; i++) {
    b.left[i] = tir_load(ir, r->buffers[i], tir_operands(ir, b.indices), rank, TIR_NONE);
    b.right[i] = tir_load(ir, buffers[i], tir_operands(ir, partial), rank + 1, TIR_NONE);
  }
  tir_empty_block(ir, plan->block);
  tir_fill_reduction(ir, &b, r, true);
  set_points(ir, plan->block, buffers, r->count, partial, false);
  set_points(ir, plan->block, r->buffers, r->count, b.indices, true);
  tir_as(ir, plan->block, TIR_BLOCK)->block.predicate = plan->predicate;
}

static tir_block edit_rfactor(struct tir *ir, struct rfactor_plan *plan) {
  tir_buffer buffers[TIR_MOST_REDUCED];
  make_buffers(ir, plan, buffers);
  tir_copy_nest(ir, plan->loops, plan->count, "", plan->copies);
  tir_block partial = make_partial(ir, plan, buffers);
  tir_append(ir, plan->copies[plan->count - 1], TIR_BODY, partial);
  tir_insert_before(ir, plan->loops[0], plan->copies[0]);
  tir_inherit_cover(ir, partial, plan->block, plan->scope);
  combine_partials(ir, plan, buffers);
  for (uint32_t i = 0; i < plan->removed_count; i++) tir_kill_alone(ir, plan->removed[i]);
  if (ir->indirect) tir_find_undeclared(ir); /* the block that combines declares the partial results alone */
  return partial;
}

/* out NULL: only asks. */
static bool perform(struct tir *ir, tir_loop loop, int factor_axis, tir_block *out, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  struct rfactor_plan plan = {0};
  if (!find_block(ir, loop, &plan, err)) return false;
  uint32_t on_stack[5 * MOST_ON_STACK] = {0}, *room = on_stack;
  if (plan.count > MOST_ON_STACK) room = calloc(plan.count, 5 * sizeof *room);
  if (!room) abort();
  plan.loops = room;
  plan.copies = room + plan.count;
  plan.removed = room + 2 * plan.count;
  plan.iters = room + 3 * plan.count;
  plan.joined = room + 4 * plan.count;
  tir_loops_of(ir, plan.block, plan.loops, plan.count);
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_rfactor(ir, loop, factor_axis, &plan, err);
  if (accepted && out)
    *out = edit_rfactor(ir, &plan);
  else
    tir_rewind(ir, &mark);
  if (room != on_stack) free(room);
  return accepted;
}

bool tir_rfactor(struct tir *ir, tir_loop loop, int factor_axis, tir_block *out, ms_error *err) {
  assert(out);
  return perform(ir, loop, factor_axis, out, err);
}

bool tir_can_rfactor(struct tir *ir, tir_loop loop, int factor_axis) {
  return perform(ir, loop, factor_axis, NULL, NULL);
}
