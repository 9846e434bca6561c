/* Moved blocks and what the scope itself loads: in ranges of loops, in bindings and predicates of blocks. These are in
 * no block's regions. What a moved block's new nest loads must be there before it, in every iteration; and what others
 * load of what the block writes, after it. */
#include "buffer.h"
#include "move_domain.h"
#include "tir/analysis/loads.h"

#include <stdlib.h>

enum { MOST_LOADS = 64 };

struct loads {
  tir_expr at[MOST_LOADS];
  uint32_t count; /* past what there is room for, too */
};

static void add_loads(struct tir *ir, struct loads *l, tir_expr e) {
  uint32_t known = l->count < MOST_LOADS ? l->count : MOST_LOADS;
  if (e && (tir_at(ir, e)->flags & TIR_HAS_LOAD))
    l->count += tir_find_loads(ir, e, TIR_NONE, l->at + known, MOST_LOADS - known);
}

static void find_new_loads(struct tir *ir, const struct tir_move *move, struct loads *l) {
  for (uint32_t i = 0; i < move->iter_count; i++) {
    const struct tir_move_domain *d = &move->domains[i];
    for (uint32_t k = 0; k < (d->linear ? d->count : 0); k++) add_loads(ir, l, move->terms[d->first + k].atom);
    if (!d->linear) add_loads(ir, l, d->min), add_loads(ir, l, d->extent);
    add_loads(ir, l, d->at_least);
    add_loads(ir, l, d->below);
  }
}

/* ---- What the new nest loads ---- */

static bool is_choice(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  return tir_is_choice(ir, tir_at(ir, e));
}

static bool chooses_load(struct tir *ir, void *context, tir_expr e) {
  (void)context;
  return tir_any_node(ir, e, TIR_HAS_LOAD, is_choice, NULL);
}

/* Not all that a required block names is loaded in each of its instances. */
static bool has_conditions(struct tir *ir, const struct tir_move *move) {
  for (uint32_t i = 0; i < move->required_count; i++) {
    tir_block b = move->required[i];
    if (tir_as(ir, b, TIR_BLOCK)->block.predicate || tir_any_own_expr(ir, b, chooses_load, NULL)) return true;
    for (tir_stmt s = tir_next(ir, b, b); s; s = tir_next(ir, s, b))
      if (tir_is(ir, s, TIR_IF) || (tir_is(ir, s, TIR_BLOCK) && tir_as(ir, s, TIR_BLOCK)->block.predicate)) return true;
  }
  return false;
}

static bool check_new_loads(struct tir *ir, const struct tir_move *move, ms_error *err) {
  struct tir_transfer transfer = tir_move_transfer(move);
  struct loads l;
  l.count = 0;
  find_new_loads(ir, move, &l);
  if (!l.count) return true;
  bool conditions = has_conditions(ir, move);
  for (uint32_t i = 0; i < l.count && i < MOST_LOADS; i++) {
    MS_CHECK(tir_at(ir, l.at[i])->kind == TIR_LOAD);
    tir_buffer buffer = tir_at(ir, l.at[i])->ref;
    tir_block writer = tir_written_later(ir, &transfer, buffer);
    if (tir_has_region_of(ir, tir_block_at(ir, move->block)->writes, buffer)) writer = move->block;
    if (writer)
      return tir_refuse(ir, err, MS_MOVE_ORDER, move->loop,
                        "where block `%s` is to run here depends on what block `%s` writes later",
                        tir_block_name(ir, move->block), tir_block_name(ir, writer));
    if (conditions && (l.count > MOST_LOADS || !tir_is_load_inside(ir, l.at[i])))
      return tir_refuse(ir, err, MS_MOVE_REGION, move->loop,
                        "where block `%s` is to run here depends on `%s`, which a condition keeps from being loaded "
                        "outside of its shape",
                        tir_block_name(ir, move->block), tir_buffer_name(ir, buffer));
  }
  return true;
}

/* ---- What is loaded of what the block writes ---- */

/* The load at `s`, under the loop, is of what the consumers under it require. */
static bool is_required(struct tir *ir, const struct tir_move *move, tir_stmt s, tir_expr load) {
  struct tir_expr_node n = *tir_at(ir, load);
  MS_CHECK(n.kind == TIR_LOAD && tir_is_below(ir, s, move->loop));
  tir_var vars[TIR_MOST_RELAXED];
  uint32_t count = tir_loop_vars(ir, s, move->loop, vars, TIR_MOST_RELAXED);
  if (!move->to_consumers || count > TIR_MOST_RELAXED) return false;
  struct tir_interval *required = malloc((n.count + 1) * sizeof *required);
  if (!required) abort();
  bool inside = tir_move_find_required(ir, move, n.ref, required);
  for (uint32_t i = 0; i < n.count && inside; i++)
    inside = tir_interval_covers(ir, required[i], tir_relax(ir, ir->operands.at[n.operands + i], vars, count));
  free(required);
  return inside;
}

static bool is_served(struct tir *ir, struct tir_move *move, tir_stmt s, tir_expr load) {
  struct tir_transfer transfer = tir_move_transfer(move);
  if (tir_comes_before(ir, &transfer, s)) return false;
  if (tir_is_below(ir, s, move->loop)) return tir_move_runs_all(ir, move) || is_required(ir, move, s, load);
  return tir_move_runs_through(ir, move, tir_lowest_common_ancestor(ir, s, move->loop));
}

static bool check_loads_at(struct tir *ir, struct tir_move *move, tir_stmt s, ms_error *err) {
  tir_expr loads[MOST_LOADS];
  uint32_t count = tir_scope_loads(ir, s, TIR_NONE, loads, MOST_LOADS);
  for (uint32_t i = 0; i < count && i < MOST_LOADS; i++) {
    tir_buffer buffer = tir_at(ir, loads[i])->ref;
    if (!tir_has_region_of(ir, tir_block_at(ir, move->block)->writes, buffer)) continue;
    if (count <= MOST_LOADS && is_served(ir, move, s, loads[i])) continue;
    return tir_refuse(ir, err, MS_MOVE_CONSUMERS, s,
                      "where other blocks run depends on `%s`, which block `%s` would not have written by then",
                      tir_buffer_name(ir, buffer), tir_block_name(ir, move->block));
  }
  return true;
}

static bool check_other_loads(struct tir *ir, struct tir_move *move, ms_error *err) {
  for (tir_stmt s = tir_next(ir, move->scope, move->scope); s;) {
    bool passed = s == move->removed;
    if (!passed && !check_loads_at(ir, move, s, err)) return false;
    s = passed ? tir_after(ir, s, move->scope) : tir_next_in_scope(ir, s, move->scope);
  }
  return true;
}

bool tir_move_check_loads(struct tir *ir, struct tir_move *move, ms_error *err) {
  return !ir->indirect || (check_new_loads(ir, move, err) && check_other_loads(ir, move, err));
}

static bool region_loads(const struct tir *ir, struct tir_region region) {
  for (uint32_t i = 0; i < 2 * tir_buffer_at(ir, region.buffer)->rank; i++)
    if (tir_at(ir, ir->operands.at[region.ranges + i])->flags & TIR_HAS_LOAD) return true;
  return false;
}

bool tir_move_may_load(struct tir *ir, const struct tir_move *move) {
  if (!ir->indirect) return false;
  for (uint32_t i = 0; i < move->required_count; i++) {
    struct tir_span span = tir_required_regions(ir, move, move->required[i]);
    for (uint32_t k = span.first; k < span.first + span.count; k++)
      if (region_loads(ir, ir->regions.at[k])) return true;
  }
  for (tir_stmt s = tir_next(ir, move->scope, move->scope); s; s = tir_next_in_scope(ir, s, move->scope))
    if (tir_scope_loads(ir, s, TIR_NONE, NULL, 0)) return true;
  return false;
}
