/* Rolling buffer: what a block computes at a loop keeps only the window that one iteration needs; neighbouring windows
 * overlap, and an iteration computes what is new in its own.
 *
 * Requires: the block has a write region of this number; its scope allocates what it writes; no other block of the
 *           scope writes that, reads it earlier, or writes later what the block reads; a loop is the lowest around the
 *           block and its consumers. What the block writes in an iteration of it is a whole box, what lies outside of
 *           the buffer aside, and begins, in each dimension, at a constant or at a multiple of a loop from zero,
 *           rounded down after a division at most, and is of one size; in one dimension windows overlap.
 *           No loop moves two dimensions, the loops whose windows overlap run in order, no other loop around decides
 *           what is computed, and consumers read the window only. The scope uses the
 *           buffer in its blocks only.
 * After:    the dimension that the outermost such loop moves, the rolling one, is as long as the window: its indices
 *           are taken modulo that. The block runs where its loops start, or where an element is new. In all blocks of
 *           the scope the iteration of that number, and those bound to that loop, are opaque unless they reduce: what
 *           is found there is found in order.
 * Forward:  nothing. */
#include "buffer.h"
#include "inline.h"

#include <stdlib.h>

enum { MOST_LOOPS = 64, MOST_CONSUMERS = 64 };

struct dimension {
  struct tir_interval window;
  int64_t extent, overlap; /* of the window, and of that with the next: 0 or less, none */
  tir_var var;             /* that moves the window; TIR_NONE: none does */
};

struct rolling_buffer_plan {
  tir_block scope;
  tir_buffer buffer;
  struct tir_region region;
  tir_loop place;
  uint32_t rank, axis;
  struct dimension at[TIR_MOST_EDITED_RANK];
};

/* ---- Check: dependencies ---- */

static bool has_user(const struct tir *ir, struct tir_span regions, bool writers, tir_block block, tir_block scope,
                     bool later) {
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++)
    if (tir_users_of(ir, ir->regions.at[i].buffer, writers, block, scope, later, NULL, 0)) return true;
  return false;
}

static bool check_dependencies(const struct tir *ir, tir_block block, const struct rolling_buffer_plan *plan,
                               ms_error *err) {
  struct tir_span reads = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  if (!has_user(ir, writes, true, block, plan->scope, false) && !has_user(ir, writes, true, block, plan->scope, true) &&
      !has_user(ir, writes, false, block, plan->scope, false) && !has_user(ir, reads, true, block, plan->scope, true))
    return true;
  return tir_refuse(ir, err, MS_ROLLING_DEPENDENCY, block, "another block writes what `%s` does, or what it reads",
                    tir_block_name(ir, block));
}

static bool find_place(const struct tir *ir, tir_block block, struct rolling_buffer_plan *plan, ms_error *err) {
  tir_block consumers[MOST_CONSUMERS];
  uint32_t count = tir_consumers(ir, block, consumers, MOST_CONSUMERS);
  if (count > MOST_CONSUMERS) return tir_refuse(ir, err, MS_TOO_LARGE, block, "too many blocks read what it writes");
  plan->place = block;
  for (uint32_t i = 0; i < count; i++) plan->place = tir_lowest_common_ancestor(ir, plan->place, consumers[i]);
  if (tir_is(ir, plan->place, TIR_LOOP)) return true;
  return tir_refuse(ir, err, MS_ROLLING_PLACE, block, "no loop is around block `%s` and what reads buffer `%s`",
                    tir_block_name(ir, block), tir_buffer_name(ir, plan->buffer));
}

/* ---- Check: the window ---- */

/* What a block accesses in one iteration of the loops down to `place`, and more perhaps. */
static bool find_window(struct tir *ir, tir_block block, tir_stmt place, struct tir_region region,
                        struct tir_interval *out) {
  if (!tir_region_from(ir, block, region, place, TIR_NONE, out)) return false;
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++) {
    if (!out[d].empty && out[d].min && out[d].max) continue;
    tir_expr shape = ir->operands.at[tir_buffer_at(ir, region.buffer)->shape + d];
    out[d] = tir_interval_of(ir, tir_int(ir, tir_type_of(ir, shape), 0), shape);
  }
  return true;
}

/* The window that the block writes in one iteration, all of it: what is not written there is outside of the buffer. */
static bool find_written(struct tir *ir, tir_block block, struct rolling_buffer_plan *plan) {
  tir_var vars[MOST_LOOPS];
  tir_expr ranges[2 * TIR_MOST_EDITED_RANK];
  struct tir_interval window[TIR_MOST_EDITED_RANK];
  uint32_t count = tir_loop_vars(ir, block, plan->place, vars, MOST_LOOPS);
  if (count > MOST_LOOPS) return false;
  tir_region_over_loops(ir, block, plan->region, ranges);
  tir_expr limits = tir_limits_inside(ir, plan->buffer, ranges, tir_as(ir, block, TIR_BLOCK)->block.predicate);
  if (!tir_region_exact(ir, ranges, plan->rank, vars, count, limits, window)) return false;
  for (uint32_t d = 0; d < plan->rank; d++) {
    if (window[d].empty || !window[d].min || !window[d].max) return false;
    plan->at[d].window = window[d];
  }
  return true;
}

/* e = var * stride, without a constant. */
static bool match_multiple(struct tir *ir, tir_expr e, tir_var *var, int64_t *stride) {
  struct tir_linear l = tir_linear_of(ir, e);
  if (l.count != 1 || l.constant) return false;
  struct tir_term t = tir_terms(ir, l)[0];
  if (tir_at(ir, t.atom)->kind != TIR_VAR || t.coefficient < 1) return false;
  *var = tir_at(ir, t.atom)->ref;
  *stride = t.coefficient;
  return true;
}

/* Where a window begins: the variable that moves it, and how far at most. */
static bool match_start(struct tir *ir, tir_expr start, tir_var *var, int64_t *stride) {
  struct tir_expr_node n = *tir_at(ir, start);
  *var = TIR_NONE;
  *stride = 0;
  if (n.kind == TIR_INT_IMM) return true;
  if (n.kind != TIR_FLOORDIV) return match_multiple(ir, start, var, stride);
  if (!tir_is_int(ir, n.b) || tir_at(ir, n.b)->imm < 1 || !match_multiple(ir, n.a, var, stride)) return false;
  if (*stride == 1) return false;
  int64_t divisor = tir_at(ir, n.b)->imm;
  *stride = *stride / divisor + (*stride % divisor != 0);
  return true;
}

static bool match_dimension(struct tir *ir, struct dimension *d) {
  int64_t stride;
  if (!match_start(ir, d->window.min, &d->var, &stride)) return false;
  tir_expr extent = tir_interval_extent(ir, d->window);
  d->extent = tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : -1;
  d->overlap = d->var ? d->extent - stride : 0;
  return !d->var || d->extent >= 1;
}

static tir_loop loop_of(const struct tir *ir, tir_stmt place, tir_var var) {
  tir_stmt s = place;
  while (s && tir_is(ir, s, TIR_LOOP) && tir_as(ir, s, TIR_LOOP)->loop.var != var) s = tir_stmt_at(ir, s)->parent;
  return s && tir_is(ir, s, TIR_LOOP) ? s : TIR_NONE;
}

static bool refuse_pattern(const struct tir *ir, tir_block block, const struct rolling_buffer_plan *plan,
                           const char *why, ms_error *err) {
  return tir_refuse(ir, err, MS_ROLLING_PATTERN, block, "the window of buffer `%s` %s",
                    tir_buffer_name(ir, plan->buffer), why);
}

/* A loop around says how far the window reaches: what an iteration finds there another may not have computed. */
static bool changes_size(struct tir *ir, const struct rolling_buffer_plan *plan, const struct dimension *d) {
  tir_expr extent = tir_interval_extent(ir, d->window);
  for (tir_stmt s = plan->place; s && tir_is(ir, s, TIR_LOOP); s = tir_stmt_at(ir, s)->parent)
    if (tir_uses_var(ir, extent, tir_as(ir, s, TIR_LOOP)->loop.var)) return true;
  return false;
}

/* The rolling dimension: that of the outermost loop whose windows overlap. */
static bool find_axis(struct tir *ir, tir_block block, struct rolling_buffer_plan *plan, ms_error *err) {
  tir_loop outermost = TIR_NONE;
  for (uint32_t i = 0; i < plan->rank; i++) {
    struct dimension *d = &plan->at[i];
    if (!match_dimension(ir, d)) return refuse_pattern(ir, block, plan, "begins at no multiple of a loop", err);
    if (!d->var && changes_size(ir, plan, d))
      return refuse_pattern(ir, block, plan, "reaches further in some iterations than in others", err);
    if (!d->var) continue;
    for (uint32_t k = 0; k < i; k++)
      if (plan->at[k].var == d->var) return refuse_pattern(ir, block, plan, "is moved twice by one loop", err);
    tir_loop loop = loop_of(ir, plan->place, d->var);
    if (!loop || !tir_loop_starts_at_zero(ir, loop))
      return refuse_pattern(ir, block, plan, "is moved by a loop that does not start at zero", err);
    if (d->overlap <= 0) continue;
    enum tir_loop_kind kind = (enum tir_loop_kind)tir_stmt_at(ir, loop)->loop_kind;
    if (kind != TIR_SERIAL && kind != TIR_UNROLLED)
      return tir_refuse(ir, err, MS_ROLLING_ORDER, loop, "the iterations of this loop do not run in order");
    if (outermost && !tir_is_below(ir, outermost, loop)) continue;
    outermost = loop;
    plan->axis = i;
  }
  return outermost || refuse_pattern(ir, block, plan, "overlaps with no other", err);
}

/* A loop around that decides what the block computes also moves the window: else an iteration finds
 * what another left. */
static bool check_moving_loops(struct tir *ir, tir_block block, const struct rolling_buffer_plan *plan, ms_error *err) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (tir_stmt s = plan->place; s && tir_is(ir, s, TIR_LOOP); s = tir_stmt_at(ir, s)->parent) {
    tir_var var = tir_as(ir, s, TIR_LOOP)->loop.var;
    bool used = false, moves = tir_loop_extent(ir, s) == 1;
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
      used |= tir_uses_var(ir, ir->iters.at[i].binding, var);
    for (uint32_t d = 0; d < plan->rank; d++) moves |= plan->at[d].var == var;
    if (used && !moves)
      return tir_refuse(ir, err, MS_ROLLING_PATTERN, s, "this loop decides what `%s` computes, and moves no window",
                        tir_block_name(ir, block));
  }
  return true;
}

static bool reads_window(struct tir *ir, tir_block reader, const struct rolling_buffer_plan *plan) {
  struct tir_span reads = tir_block_at(ir, reader)->reads;
  for (uint32_t i = 0; i < reads.count; i++) {
    struct tir_interval used[TIR_MOST_EDITED_RANK], window[TIR_MOST_EDITED_RANK];
    struct tir_region r = ir->regions.at[reads.first + i];
    if (r.buffer != plan->buffer) continue;
    if (!find_window(ir, reader, plan->place, r, used)) return false;
    for (uint32_t d = 0; d < plan->rank; d++) window[d] = plan->at[d].window;
    if (!tir_region_covers(ir, plan->buffer, window, used)) return false;
  }
  return true;
}

static bool check_readers(struct tir *ir, tir_block block, const struct rolling_buffer_plan *plan, ms_error *err) {
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == block || tir_scope_of(ir, b) != plan->scope || reads_window(ir, b, plan)) continue;
    return tir_refuse(ir, err, MS_ROLLING_COVER, b, "block `%s` reads more than one iteration of block `%s` writes",
                      tir_block_name(ir, b), tir_block_name(ir, block));
  }
  return true;
}

static bool check_rolling_buffer(struct tir *ir, tir_block block, uint32_t index, struct rolling_buffer_plan *plan,
                                 ms_error *err) {
  if (!tir_check_buffer_of(ir, block, index, true, &plan->buffer, err)) return false;
  if (!tir_find_scope(ir, block, &plan->scope, err)) return false;
  plan->region = ir->regions.at[tir_block_at(ir, block)->writes.first + index];
  plan->rank = tir_buffer_at(ir, plan->buffer)->rank;
  if (!tir_check_not_output(ir, block, plan->scope, err) ||
      !tir_check_declared_around(ir, plan->buffer, plan->scope, err) || !check_dependencies(ir, block, plan, err) ||
      !find_place(ir, block, plan, err))
    return false;
  if (!find_written(ir, block, plan))
    return refuse_pattern(ir, block, plan, "is not known to be filled in an iteration", err);
  return find_axis(ir, block, plan, err) && check_moving_loops(ir, block, plan, err) &&
         check_readers(ir, block, plan, err) && tir_check_blocks_only(ir, plan->buffer, plan->scope, true, err) &&
         tir_check_no_opaque_access(ir, plan->buffer, TIR_NONE, err) &&
         tir_check_no_range_loads(ir, plan->buffer, block, err);
}

/* ---- Edit ---- */

struct roll {
  tir_buffer to;
  uint32_t axis;
  int64_t extent;
};

static tir_expr wrap_index(struct tir *ir, const struct roll *r, tir_expr index) {
  return tir_floormod(ir, index, tir_int(ir, tir_type_of(ir, index), r->extent));
}

static tir_expr roll_load(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct roll *r = context;
  tir_expr copy[TIR_MOST_EDITED_RANK];
  for (uint32_t i = 0; i < count; i++) copy[i] = i == r->axis ? wrap_index(ir, r, indices[i]) : indices[i];
  return tir_load(ir, r->to, copy, count, TIR_NONE);
}

static void roll_store(struct tir *ir, void *context, tir_stmt s) {
  const struct roll *r = context;
  assert(r->axis < tir_buffer_at(ir, r->to)->rank);
  uint32_t rank = tir_buffer_at(ir, r->to)->rank, old = tir_as(ir, s, TIR_STORE)->store.indices;
  uint32_t first = tir_add_operands(ir, tir_operands(ir, old), rank);
  tir_expr index = wrap_index(ir, r, ir->operands.at[old + r->axis]);
  ir->operands.at[first + r->axis] = index;
  tir_as(ir, s, TIR_STORE)->store.buffer = r->to;
  tir_as(ir, s, TIR_STORE)->store.indices = first;
}

static tir_buffer make_buffer(struct tir *ir, const struct rolling_buffer_plan *plan) {
  assert(plan->axis < plan->rank);
  tir_buffer made = tir_copy_buffer(ir, plan->buffer);
  uint32_t first = tir_add_operands(ir, tir_operands(ir, tir_buffer_at(ir, made)->shape), plan->rank);
  tir_expr extent = tir_int(ir, tir_type_of(ir, ir->operands.at[first + plan->axis]), plan->at[plan->axis].extent);
  ir->operands.at[first + plan->axis] = extent;
  tir_buffer_at(ir, made)->shape = first;
  return made;
}

/* Where a loop starts all is new; else what lies past the overlap with the window before. */
static tir_expr add_condition(struct tir *ir, tir_block block, const struct rolling_buffer_plan *plan, uint32_t axis,
                              tir_expr all) {
  assert(axis < plan->rank);
  const struct dimension *d = &plan->at[axis];
  if (!d->var || d->overlap <= 0) return all;
  tir_expr var = tir_var_expr(ir, d->var);
  tir_expr last =
      tir_add(ir, ir->operands.at[plan->region.ranges + 2 * axis], ir->operands.at[plan->region.ranges + 2 * axis + 1]);
  tir_subst_iters(ir, block);
  last = tir_subst(ir, last);
  tir_subst_clear(ir);
  tir_subst_var(ir, d->var, tir_int(ir, tir_type_of(ir, var), 0));
  last = tir_subst(ir, last);
  tir_subst_clear(ir);
  tir_expr first = tir_make(ir, TIR_LT, var, tir_int(ir, tir_type_of(ir, var), 1));
  tir_expr fresh = tir_make(ir, TIR_GE, tir_sub(ir, last, tir_int(ir, tir_type_of(ir, last), 1)),
                            tir_int(ir, tir_type_of(ir, last), d->overlap));
  return tir_and(ir, all, tir_make(ir, TIR_OR, first, fresh));
}

/* Iterations that reduce run in order anyway, and say where an init runs. */
static void make_opaque(struct tir *ir, const struct rolling_buffer_plan *plan) {
  tir_var rolling = plan->at[plan->axis].var;
  for (tir_stmt s = tir_next(ir, plan->scope, plan->scope); s; s = tir_next(ir, s, plan->scope)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    for (uint32_t i = 0; i < tir_block_at(ir, s)->iters.count; i++) {
      struct tir_iter *iter = &tir_iters(ir, s)[i];
      if (iter->kind == TIR_SPATIAL && (i == plan->axis || tir_uses_var(ir, iter->binding, rolling)))
        iter->kind = TIR_OPAQUE;
    }
  }
}

static void edit_rolling_buffer(struct tir *ir, tir_block block, const struct rolling_buffer_plan *plan) {
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  for (uint32_t i = 0; i < plan->rank; i++) predicate = add_condition(ir, block, plan, i, predicate);
  tir_as(ir, block, TIR_BLOCK)->block.predicate = predicate;
  struct roll roll = {make_buffer(ir, plan), plan->axis, plan->at[plan->axis].extent};
  struct tir_buffer_change change = {plan->buffer, roll.to, roll_load, roll_store, &roll};
  struct tir_blocks users;
  tir_find_users(ir, plan->buffer, plan->scope, &users);
  for (uint32_t i = 0; i < users.count; i++) {
    tir_change_own_uses(ir, &change, users.at[i]);
    tir_retarget_regions(ir, users.at[i], plan->buffer, roll.to);
    if (users.at[i] != plan->scope) tir_renew_regions_of(ir, users.at[i], roll.to, roll.to, false);
  }
  tir_blocks_free(&users);
  tir_change_range_loads(ir, &change);
  tir_replace_alloc(ir, plan->scope, plan->buffer, roll.to);
  make_opaque(ir, plan);
  tir_renew_pipeline(ir, plan->scope);
}

bool tir_rolling_buffer(struct tir *ir, tir_block block, uint32_t buffer_index, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct rolling_buffer_plan plan = {0};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_rolling_buffer(ir, block, buffer_index, &plan, err))) return false;
  edit_rolling_buffer(ir, block, &plan);
  return true;
}
