/* Whether a moved reduction takes each of its steps once, in an order that begins with the init; and in the order that
 * it has, where its result depends on that.
 *
 * Under the new place a reduction that runs whole starts over each time: nothing can go wrong. One that runs a part of
 * its domain there goes on where another iteration of the loops above left it; then no step may be taken in two
 * iterations, no loop that takes no part may repeat the iterations of one that does, and the iterations must not run at
 * the same time. */
#include "loops.h"
#include "move_block.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/order/iteration_order.h"

#include <stdlib.h>

/* The iteration runs through its domain at the new place. */
static bool tir_move_runs_whole(struct tir *ir, const struct tir_move *move, uint32_t i) {
  assert(i < move->iter_count);
  const struct tir_move_domain *d = &move->domains[i];
  tir_expr min, extent;
  tir_needed_domain(ir, move->block, i, &min, &extent);
  if (!d->linear) return tir_prove_equal(ir, d->min, min) && tir_prove_equal(ir, d->extent, extent);
  return d->count == 0 && tir_is_const(ir, min, d->lo) && tir_is_const(ir, extent, d->hi - d->lo + 1);
}

bool tir_move_runs_all(struct tir *ir, const struct tir_move *move) {
  for (uint32_t i = 0; i < move->iter_count; i++)
    if (!tir_move_runs_whole(ir, move, i)) return false;
  return true;
}

/* What an iteration will be bound to, with a stand-in for its new loop: that is stored at *loop. The predicate grows by
 * what the domain asks. */
static tir_expr value_of(struct tir *ir, const struct tir_move *move, uint32_t i, tir_var *loop, tir_expr *predicate) {
  const struct tir_move_domain *d = &move->domains[i];
  tir_expr min = d->linear ? tir_from_terms(ir, d->type, d->lo, move->terms + d->first, d->count) : d->min;
  tir_expr extent = d->linear ? tir_int(ir, d->type, d->hi - d->lo + 1) : d->extent;
  tir_type type = tir_type_of(ir, min);
  tir_expr zero = tir_int(ir, type, 0);
  *loop = tir_new_var(ir, TIR_VAR_LOOP, TIR_NONE, type, zero, tir_cast(ir, type, extent));
  tir_expr value = tir_add(ir, min, tir_var_expr(ir, *loop));
  *predicate = tir_move_limit(ir, *predicate, d, value);
  return value;
}

static bool runs_at_once(const struct tir *ir, tir_loop l) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, l);
  if (n->loop_kind == TIR_PARALLEL || n->loop_kind == TIR_VECTORIZED) return true;
  return n->loop_kind == TIR_THREAD_BINDING && tir_text(ir, n->loop.thread)[0] != 't';
}

/* Loops at or above the place, outermost first: an iteration of a loop is a step of a partial reduction, or a part of
 * what is spatial, or a repetition, which may only stand outside all steps. */
static bool check_steps(const struct tir *ir, const struct tir_move *move, tir_stmt s, const tir_expr *values,
                        bool *steps_outside) {
  *steps_outside = false;
  if (s == move->scope) return true;
  if (!check_steps(ir, move, tir_stmt_at(ir, s)->parent, values, steps_outside)) return false;
  if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) == 1) return true;
  bool used = false, steps = false;
  for (uint32_t i = 0; i < move->iter_count; i++) {
    if (!tir_uses_var(ir, values[i], tir_as(ir, s, TIR_LOOP)->loop.var)) continue;
    used = true;
    steps |= tir_iters(ir, move->block)[i].kind != TIR_SPATIAL;
  }
  if ((steps && runs_at_once(ir, s)) || (!used && *steps_outside)) return false;
  *steps_outside |= steps;
  return true;
}

enum { MOST_LOOPS = 64, MOST_ITERS = 16 };

/* What a digit is a digit of. */
static tir_expr divided_by_constants(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  while ((n->kind == TIR_FLOORDIV || n->kind == TIR_FLOORMOD) && tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm > 0)
    e = n->a, n = tir_at(ir, e);
  return e;
}

static bool shares_loops(const struct tir *ir, const struct tir_move *move, tir_expr a, tir_expr b) {
  for (tir_stmt s = move->loop; s != move->scope; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    tir_var v = tir_as(ir, s, TIR_LOOP)->loop.var;
    if (tir_uses_var(ir, a, v) && tir_uses_var(ir, b, v)) return true;
  }
  return false;
}

/* Loops at or above the place make a step of a reduction, `part` of its value, and what is spatial: for some value of
 * that, a later step may be taken first, unless what both are digits of never falls while the loops run. */
static bool starts_elsewhere(struct tir *ir, const struct tir_move *move, const tir_expr *values, tir_expr part) {
  tir_expr together[MOST_ITERS + 1] = {divided_by_constants(ir, part)};
  tir_var loops[MOST_LOOPS];
  uint32_t parts = 1, count = MOST_LOOPS;
  for (uint32_t i = 0; i < move->iter_count; i++) {
    if (tir_iters(ir, move->block)[i].kind != TIR_SPATIAL || !shares_loops(ir, move, together[0], values[i])) continue;
    if (parts > MOST_ITERS) return true;
    together[parts++] = values[i];
  }
  if (parts == 1) return false;
  for (tir_stmt s = move->loop; s != move->scope; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) == 1) continue;
    bool used = false;
    for (uint32_t i = 0; i < parts && !used; i++)
      used = tir_uses_var(ir, together[i], tir_as(ir, s, TIR_LOOP)->loop.var);
    if (used && !count) return true;
    if (used) loops[--count] = tir_as(ir, s, TIR_LOOP)->loop.var;
  }
  return tir_may_fall(ir, together[0], loops + count, MOST_LOOPS - count);
}

/* A step of a reduction comes earlier in a later iteration of a loop at or above the place: the init, which is of the
 * first step, would come after others. */
static bool goes_back(struct tir *ir, const struct tir_move *move, const tir_expr *values) {
  for (uint32_t i = 0; i < move->iter_count; i++) {
    if (tir_iters(ir, move->block)[i].kind == TIR_SPATIAL) continue;
    struct tir_linear l = tir_linear_of(ir, values[i]);
    for (uint32_t t = 0; t < l.count; t++) {
      struct tir_term term = tir_terms(ir, l)[t];
      if (!(tir_at(ir, term.atom)->flags & TIR_HAS_VAR)) continue;
      if (term.coefficient < 0 || starts_elsewhere(ir, move, values, term.atom)) return true;
    }
  }
  return false;
}

static bool takes_steps_once(struct tir *ir, const struct tir_move *move) {
  uint32_t outside = 1 + tir_loop_vars(ir, move->loop, TIR_NONE, NULL, 0), count = move->iter_count;
  tir_var *vars = malloc((outside + 2 * (size_t)count) * sizeof *vars);
  if (!vars) abort();
  tir_expr *values = vars + outside + count, predicate = TIR_NONE;
  vars[0] = tir_as(ir, move->loop, TIR_LOOP)->loop.var;
  tir_loop_vars(ir, move->loop, TIR_NONE, vars + 1, outside - 1);
  for (uint32_t i = 0; i < count; i++) values[i] = value_of(ir, move, i, &vars[outside + i], &predicate);
  bool steps_outside;
  bool once = check_steps(ir, move, move->loop, values, &steps_outside) && !goes_back(ir, move, values) &&
              tir_is_one_to_one(ir, values, count, vars, outside + count, predicate);
  free(vars);
  return once;
}

bool tir_move_runs_through(struct tir *ir, const struct tir_move *move, tir_stmt high) {
  tir_var vars[MOST_LOOPS + MOST_ITERS];
  tir_expr ranges[2 * MOST_ITERS], predicate = TIR_NONE;
  struct tir_interval runs[MOST_ITERS];
  uint32_t count = move->iter_count, loops = 1 + tir_loop_vars(ir, move->loop, high, vars + 1, MOST_LOOPS - 1);
  if (count > MOST_ITERS || loops > MOST_LOOPS) return false;
  vars[0] = tir_as(ir, move->loop, TIR_LOOP)->loop.var;
  for (uint32_t i = 0; i < count; i++) {
    ranges[2 * i] = value_of(ir, move, i, &vars[loops + i], &predicate);
    ranges[2 * i + 1] = tir_int(ir, tir_type_of(ir, ranges[2 * i]), 1);
  }
  predicate = tir_and(ir, predicate, tir_and(ir, move->kept, move->limits));
  if (!tir_region_exact(ir, ranges, count, vars, loops + count, predicate, runs)) return false;
  for (uint32_t i = 0; i < count; i++) {
    tir_expr min, extent;
    tir_needed_domain(ir, move->block, i, &min, &extent);
    if (!tir_interval_covers(ir, runs[i], tir_interval_of(ir, min, extent))) return false;
  }
  return true;
}

/* The new nest runs through iterations in their order, whatever loops they have now: of a reduction that depends on the
 * order of its steps, only through one that a loop makes as it is. */
static bool keeps_steps(struct tir *ir, const struct tir_move *move) {
  uint32_t steps = 0;
  bool plain = true;
  for (uint32_t i = 0; i < move->iter_count; i++) {
    struct tir_iter iter = tir_iters(ir, move->block)[i];
    if (iter.kind == TIR_SPATIAL || tir_is_const(ir, ir->vars.at[iter.var].extent, 1)) continue;
    steps++;
    plain = plain && tir_at(ir, iter.binding)->kind == TIR_VAR && tir_move_runs_whole(ir, move, i);
  }
  return !steps || (steps == 1 && plain) || tir_is_commutative(ir, move->block, false);
}

bool tir_move_check_reduction(struct tir *ir, struct tir_move *move, ms_error *err) {
  bool partial = false;
  if (!keeps_steps(ir, move))
    return tir_refuse(ir, err, MS_MOVE_REDUCTION, move->loop,
                      "what block `%s` reduces depends on the order of its steps, which would be another",
                      tir_block_name(ir, move->block));
  for (uint32_t i = 0; i < move->iter_count && !partial; i++)
    partial = tir_iters(ir, move->block)[i].kind != TIR_SPATIAL && !tir_move_runs_whole(ir, move, i);
  if (!partial || takes_steps_once(ir, move)) return true;
  return tir_refuse(ir, err, MS_MOVE_REDUCTION, move->loop,
                    "under this loop block `%s` would not take each step of its reduction once, in turn",
                    tir_block_name(ir, move->block));
}
