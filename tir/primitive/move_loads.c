/* Moved blocks and what the scope itself loads: in ranges of loops, in bindings and predicates of blocks. These are in
 * no block's regions. What a moved block's new nest loads must be there before it, in every iteration; and what others
 * load of what the block writes, after it. */
#include "../analysis/loads.h"
#include "buffer.h"
#include "move_domain.h"

#include <stdlib.h>

enum { MOST_LOADS = 64 };

/* Each once. */
struct loads {
  const struct tir *ir;
  tir_expr at[MOST_LOADS];
  uint32_t count;
  bool full;
};

static bool add_load(void *data, tir_expr e) {
  struct loads *l = data;
  const struct tir_expr_node *n = tir_at(l->ir, e);
  if (n->kind != TIR_LOAD) return n->flags & TIR_HAS_LOAD;
  for (uint32_t i = 0; i < l->count; i++)
    if (l->at[i] == e) return true;
  l->full |= l->count == MOST_LOADS;
  if (!l->full) l->at[l->count++] = e;
  return true;
}

static void add_loads(const struct tir *ir, struct loads *l, tir_expr e) {
  if (e && (tir_at(ir, e)->flags & TIR_HAS_LOAD)) tir_walk_expr(ir, e, add_load, l);
}

static void find_new_loads(const struct tir *ir, const struct tir_move *move, struct loads *l) {
  for (uint32_t i = 0; i < move->iter_count; i++) {
    const struct tir_move_domain *d = &move->domains[i];
    for (uint32_t k = 0; k < (d->linear ? d->count : 0); k++) add_loads(ir, l, move->terms[d->first + k].atom);
    if (!d->linear) add_loads(ir, l, d->min), add_loads(ir, l, d->extent);
    add_loads(ir, l, d->at_least);
    add_loads(ir, l, d->below);
  }
}

/* ---- What the new nest loads ---- */

static bool find_choice(void *data, tir_expr e) {
  struct loads *l = data;
  const struct tir_expr_node *n = tir_at(l->ir, e);
  l->full |= tir_is_choice(l->ir, n) && (n->flags & TIR_HAS_LOAD);
  return n->flags & TIR_HAS_LOAD;
}

static bool chooses_load(struct tir *ir, void *context, tir_expr e) {
  struct loads l = {.ir = ir};
  (void)context;
  tir_walk_expr(ir, e, find_choice, &l);
  return l.full;
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

static bool check_written_before(struct tir *ir, const struct tir_move *move, tir_buffer buffer, ms_error *err) {
  struct tir_transfer transfer = tir_move_transfer(move);
  for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u; u = ir->uses.at[u].next) {
    tir_block writer = ir->uses.at[u].block;
    bool outside = !tir_is_below(ir, writer, move->scope);
    if (!outside && tir_scope_of(ir, writer) != move->scope) continue; /* a block around it declares it */
    if (outside ? tir_compare_position(ir, writer, move->scope) <= 0 : tir_comes_before(ir, &transfer, writer))
      continue;
    return tir_refuse(ir, err, MS_MOVE_ORDER, move->loop,
                      "where block `%s` is to run here depends on what block `%s` writes later",
                      tir_block_name(ir, move->block), tir_block_name(ir, writer));
  }
  return true;
}

static bool check_new_loads(struct tir *ir, const struct tir_move *move, ms_error *err) {
  struct loads l = {.ir = ir};
  find_new_loads(ir, move, &l);
  if (!l.count) return true;
  bool conditions = has_conditions(ir, move);
  for (uint32_t i = 0; i < l.count; i++) {
    tir_buffer buffer = tir_at(ir, l.at[i])->ref;
    if (!check_written_before(ir, move, buffer, err)) return false;
    if (conditions && (l.full || !tir_is_load_inside(ir, l.at[i])))
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

static bool check_loads_at(struct tir *ir, struct tir_move *move, tir_stmt s, const struct loads *l, ms_error *err) {
  for (uint32_t i = 0; i < l->count; i++) {
    tir_buffer buffer = tir_at(ir, l->at[i])->ref;
    if (!tir_has_region_of(ir, tir_block_at(ir, move->block)->writes, buffer)) continue;
    if (!l->full && is_served(ir, move, s, l->at[i])) continue;
    return tir_refuse(ir, err, MS_MOVE_CONSUMERS, s,
                      "where other blocks run depends on `%s`, which block `%s` would not have written by then",
                      tir_buffer_name(ir, buffer), tir_block_name(ir, move->block));
  }
  return true;
}

/* What the scope evaluates at a loop or block. */
static void add_loads_at(const struct tir *ir, tir_stmt s, struct loads *l) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  if (n->kind == TIR_LOOP) add_loads(ir, l, n->loop.min), add_loads(ir, l, n->loop.extent);
  if (n->kind != TIR_BLOCK) return;
  for (uint32_t i = 0; i < tir_block_at(ir, s)->iters.count; i++) add_loads(ir, l, tir_iters(ir, s)[i].binding);
  add_loads(ir, l, n->block.predicate);
}

static bool check_other_loads(struct tir *ir, struct tir_move *move, ms_error *err) {
  for (tir_stmt s = tir_next(ir, move->scope, move->scope); s;) {
    bool passed = s == move->removed || tir_is(ir, s, TIR_BLOCK);
    struct loads l;
    l.ir = ir, l.count = 0, l.full = false;
    if (s != move->removed) add_loads_at(ir, s, &l);
    if (l.count && !check_loads_at(ir, move, s, &l, err)) return false;
    s = passed ? tir_after(ir, s, move->scope) : tir_next(ir, s, move->scope);
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

bool tir_move_may_load(const struct tir *ir, const struct tir_move *move) {
  if (!ir->indirect) return false;
  for (uint32_t i = 0; i < move->required_count; i++) {
    struct tir_span span = tir_required_regions(ir, move, move->required[i]);
    for (uint32_t k = span.first; k < span.first + span.count; k++)
      if (region_loads(ir, ir->regions.at[k])) return true;
  }
  struct loads l;
  l.ir = ir, l.count = 0, l.full = false;
  for (tir_stmt s = tir_next(ir, move->scope, move->scope); s && !l.count;) {
    add_loads_at(ir, s, &l);
    s = tir_is(ir, s, TIR_BLOCK) ? tir_after(ir, s, move->scope) : tir_next(ir, s, move->scope);
  }
  return l.count;
}
