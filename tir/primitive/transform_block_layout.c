/* Transform block layout: a block iterates over what an index map makes of its iterations.
 *
 * Requires: the map takes as many indices as the block has iterations, and is a bijection of them; the domains start at
 *           0; what a new iteration is made of is of one kind, spatial or reduction. Around the block are only loops
 *           from 0, with nothing beside it: one an iteration, in their order, bound to it, of its domain's extent. No
 *           iteration uses what another writes, but to combine it.
 * After:    new iterations from 0, each bound to a serial loop of its own; where the old ones stood, in the predicate
 *           too, stands the inverse. An iteration of extent 1 is spatial.
 * Forward:  the old loops are dead; the block stays. */
#include "buffer.h"
#include "loops.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/index_map.h"

#include <stdio.h>

enum { MOST_LOOPS = 64 };

struct transform_block_layout_plan {
  const struct tir_index_map *map;
  tir_loop outermost;
  uint32_t count;                    /* of the block's iterations */
  tir_var vars[TIR_MOST_MAP_RANK];   /* of the block */
  tir_expr loops[TIR_MOST_MAP_RANK]; /* the variable that each is bound to */
  tir_expr indices[TIR_MOST_MAP_RANK], shape[TIR_MOST_MAP_RANK];
  enum tir_iter_kind kinds[TIR_MOST_MAP_RANK];
  tir_expr outputs[TIR_MOST_MAP_RANK], values[TIR_MOST_MAP_RANK]; /* values of `vars` by the new ones, `outputs` */
};

/* ---- Check ---- */

/* The loop is that of the iteration: bound to it, over its whole domain. */
static bool check_loop(struct tir *ir, tir_block block, tir_loop loop, uint32_t i,
                       const struct transform_block_layout_plan *plan, ms_error *err) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  if (!tir_loop_starts_at_zero(ir, loop))
    return tir_refuse(ir, err, MS_LOOP_NOT_FROM_ZERO, loop, "the loop does not start at 0");
  if (plan->loops[i] != tir_var_expr(ir, n->loop.var))
    return tir_refuse(ir, err, MS_BINDING_NOT_LOOP, block, "iteration %u of block `%s` is not bound to loop %u", i,
                      tir_block_name(ir, block), i);
  if (tir_prove_equal(ir, n->loop.extent, ir->vars.at[plan->vars[i]].extent)) return true;
  return tir_refuse(ir, err, MS_BINDING_NOT_WHOLE, loop, "the loop is not over the whole domain of iteration %u", i);
}

static bool check_nest(struct tir *ir, tir_block block, struct transform_block_layout_plan *plan, ms_error *err) {
  tir_loop loops[MOST_LOOPS];
  uint32_t count = tir_loops_of(ir, block, loops, MOST_LOOPS);
  if (count > MOST_LOOPS) return tir_refuse(ir, err, MS_TOO_LARGE, block, "%u loops are around the block", count);
  if (!count) return tir_refuse(ir, err, MS_NO_LOOPS, block, "no loop is around block `%s`", tir_block_name(ir, block));
  plan->outermost = loops[0];
  for (tir_stmt s = block; s != plan->outermost; s = tir_stmt_at(ir, s)->parent) {
    tir_stmt parent = tir_stmt_at(ir, s)->parent;
    if (tir_is(ir, parent, TIR_LOOP) && tir_only_child(ir, parent) == s) continue;
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, parent, "under the loop stands more than block `%s`",
                      tir_block_name(ir, block));
  }
  if (count != plan->count)
    return tir_refuse(ir, err, MS_BINDING_NOT_LOOP, block, "block `%s` has %u iterations and %u loops",
                      tir_block_name(ir, block), plan->count, count);
  for (uint32_t i = 0; i < count; i++)
    if (!check_loop(ir, block, loops[i], i, plan, err)) return false;
  return true;
}

static bool read_iters(struct tir *ir, tir_block block, struct transform_block_layout_plan *plan, ms_error *err) {
  plan->count = tir_block_at(ir, block)->iters.count;
  if (plan->count != plan->map->param_count)
    return tir_refuse(ir, err, MS_INDEX_MAP_RANK, block, "the map takes %u indices; block `%s` has %u iterations",
                      plan->map->param_count, tir_block_name(ir, block), plan->count);
  for (uint32_t i = 0; i < plan->count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    plan->vars[i] = iter.var;
    plan->loops[i] = iter.binding;
    if (!tir_is_const(ir, ir->vars.at[iter.var].min, 0))
      return tir_refuse(ir, err, MS_DOMAIN_NOT_FROM_ZERO, block, "an iteration of block `%s` does not start at 0",
                        tir_block_name(ir, block));
  }
  return true;
}

/* The kind of the iterations in an index; opaque: it has several, or none. */
static enum tir_iter_kind kind_of(struct tir *ir, tir_block block, tir_expr index) {
  enum tir_iter_kind kind = TIR_OPAQUE;
  bool found = false;
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = 0; i < iters.count; i++) {
    struct tir_iter iter = ir->iters.at[iters.first + i];
    if (!tir_uses_var(ir, index, iter.var)) continue;
    if (found && kind != (enum tir_iter_kind)iter.kind) return TIR_OPAQUE;
    kind = (enum tir_iter_kind)iter.kind;
    found = true;
  }
  return kind;
}

static bool find_kinds(struct tir *ir, tir_block block, struct transform_block_layout_plan *plan, ms_error *err) {
  for (uint32_t i = 0; i < plan->map->result_count; i++) {
    plan->kinds[i] = tir_is_const(ir, plan->shape[i], 1) ? TIR_SPATIAL : kind_of(ir, block, plan->indices[i]);
    if (plan->kinds[i] == TIR_OPAQUE)
      return tir_refuse(ir, err, MS_ITER_KINDS_MIXED, block,
                        "index %u of the map is made of iterations of several kinds, or opaque ones", i);
  }
  return true;
}

/* The new loops run through what the map makes of the old ones. */
static bool check_order(struct tir *ir, tir_block block, const struct transform_block_layout_plan *plan,
                        ms_error *err) {
  tir_loop loops[MOST_LOOPS];
  tir_expr parts[TIR_MOST_MAP_RANK];
  tir_loops_of(ir, block, loops, MOST_LOOPS);
  tir_subst_iters(ir, block);
  for (uint32_t i = 0; i < plan->map->result_count; i++) parts[i] = tir_subst(ir, plan->indices[i]);
  tir_subst_clear(ir);
  struct tir_new_order order = {loops, NULL, plan->count, "laid out in another order", parts, plan->map->result_count};
  return tir_check_iteration_order(ir, &order, err);
}

static bool check_transform_block_layout(struct tir *ir, tir_block block, struct transform_block_layout_plan *plan,
                                         ms_error *err) {
  const struct tir_index_map *map = plan->map;
  tir_expr iters[TIR_MOST_MAP_RANK];
  if (!read_iters(ir, block, plan, err) || !check_nest(ir, block, plan, err)) return false;
  for (uint32_t i = 0; i < plan->count; i++) iters[i] = tir_var_expr(ir, plan->vars[i]);
  tir_map_as_written(ir, map, iters, plan->indices);
  bool shaped = tir_mapped_shape(ir, plan->indices, map->result_count, plan->vars, plan->count, plan->shape);
  if (shaped && !find_kinds(ir, block, plan, err)) return false;
  for (uint32_t i = 0; shaped && i < map->result_count; i++) {
    tir_type type = tir_type_of(ir, plan->indices[i]);
    tir_var v = tir_new_var(ir, TIR_VAR_ITER, tir_name_ordinal(ir, tir_symbol_of(ir, "v"), i), type,
                            tir_int(ir, type, 0), plan->shape[i]);
    plan->outputs[i] = tir_var_expr(ir, v);
  }
  if (shaped &&
      tir_invert_bijection(ir, plan->indices, map->result_count, plan->vars, plan->count, plan->outputs, plan->values))
    return check_order(ir, block, plan, err);
  return tir_refuse(ir, err, MS_INDEX_MAP_NOT_BIJECTIVE, block,
                    "the map does not take the iterations of block `%s` one to one to whole ranges",
                    tir_block_name(ir, block));
}

/* ---- Edit ---- */

/* New loops around the block, in the place of the old ones. `loops` receives their variables. */
static void replace_loops(struct tir *ir, tir_block block, const struct transform_block_layout_plan *plan,
                          tir_expr *loops) {
  tir_var vars[TIR_MOST_MAP_RANK];
  tir_detach(ir, block);
  for (uint32_t i = 0; i < plan->map->result_count; i++) {
    tir_type type = tir_type_of(ir, plan->shape[i]);
    vars[i] = tir_new_var(ir, TIR_VAR_LOOP, tir_name_ordinal(ir, tir_symbol_of(ir, "ax"), i), type,
                          tir_int(ir, type, 0), plan->shape[i]);
    loops[i] = tir_var_expr(ir, vars[i]);
  }
  tir_insert_before(ir, plan->outermost, tir_put_in_loops(ir, block, vars, plan->map->result_count));
  tir_kill(ir, plan->outermost);
}

/* The predicate speaks of the old loops: of each by the iteration that was bound to it. */
static void renew_predicate(struct tir *ir, tir_block block, const struct transform_block_layout_plan *plan,
                            const tir_expr *loops) {
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate, values[TIR_MOST_MAP_RANK];
  if (!predicate) return;
  for (uint32_t i = 0; i < plan->map->result_count; i++) tir_subst_var(ir, tir_at(ir, plan->outputs[i])->ref, loops[i]);
  for (uint32_t i = 0; i < plan->count; i++) values[i] = tir_subst(ir, plan->values[i]);
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < plan->count; i++) tir_subst_var(ir, tir_at(ir, plan->loops[i])->ref, values[i]);
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  tir_as(ir, block, TIR_BLOCK)->block.predicate = predicate;
}

struct accesses {
  tir_buffer buffer;
  struct tir_vars_in vars;
};

static tir_expr load_by_new_layout(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct accesses *a = context;
  tir_expr simple[TIR_MOST_EDITED_RANK];
  tir_simplify_access(ir, &a->vars, indices, count, simple);
  return tir_load(ir, a->buffer, simple, count, TIR_NONE);
}

static void store(struct tir *ir, void *context, tir_stmt s) {
  const struct accesses *a = context;
  tir_expr indices[TIR_MOST_EDITED_RANK];
  uint32_t rank = tir_buffer_at(ir, a->buffer)->rank;
  for (uint32_t i = 0; i < rank; i++) indices[i] = ir->operands.at[tir_as(ir, s, TIR_STORE)->store.indices + i];
  tir_simplify_access(ir, &a->vars, indices, rank, indices);
  uint32_t first = tir_add_operands(ir, indices, rank);
  tir_as(ir, s, TIR_STORE)->store.indices = first;
}

static void simplify_region(struct tir *ir, uint32_t region, const struct tir_vars_in *vars) {
  struct tir_region r = ir->regions.at[region];
  uint32_t rank = tir_buffer_at(ir, r.buffer)->rank;
  tir_expr mins[TIR_MOST_EDITED_RANK], ranges[2 * TIR_MOST_EDITED_RANK];
  for (uint32_t i = 0; i < rank; i++) mins[i] = ir->operands.at[r.ranges + 2 * i];
  tir_simplify_access(ir, vars, mins, rank, mins);
  for (uint32_t i = 0; i < rank; i++) {
    ranges[2 * i] = mins[i];
    ranges[2 * i + 1] = ir->operands.at[r.ranges + 2 * i + 1];
  }
  ir->regions.at[region].ranges = tir_add_operands(ir, ranges, 2 * rank);
}

/* Iterations of one value leave the sums that index buffers. */
static void simplify_accesses(struct tir *ir, tir_block block) {
  struct accesses a;
  struct tir_buffer_change change = {.load = load_by_new_layout, .store = store, .context = &a};
  tir_find_vars_in(ir, block, &a.vars);
  if (!a.vars.units) return;
  struct tir_span lists[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  for (int list = 0; list < 2; list++)
    for (uint32_t i = lists[list].first; i < lists[list].first + lists[list].count; i++) {
      a.buffer = change.from = change.to = ir->regions.at[i].buffer;
      if (tir_buffer_at(ir, a.buffer)->rank > TIR_MOST_EDITED_RANK) continue;
      tir_change_own_uses(ir, &change, block);
      simplify_region(ir, i, &a.vars);
    }
}

static void edit_transform_block_layout(struct tir *ir, tir_block block,
                                        const struct transform_block_layout_plan *plan) {
  tir_expr loops[TIR_MOST_MAP_RANK];
  struct tir_iter iters[TIR_MOST_MAP_RANK];
  replace_loops(ir, block, plan, loops);
  renew_predicate(ir, block, plan, loops);
  for (uint32_t i = 0; i < plan->map->result_count; i++)
    iters[i] = (struct tir_iter){tir_at(ir, plan->outputs[i])->ref, plan->kinds[i], loops[i]};
  for (uint32_t i = 0; i < plan->count; i++) tir_subst_var(ir, plan->vars[i], plan->values[i]);
  tir_subst_stmt(ir, block);
  tir_subst_clear(ir);
  tir_set_iters(ir, block, iters, plan->map->result_count);
  simplify_accesses(ir, block);
}

bool tir_transform_block_layout(struct tir *ir, tir_block block, const struct tir_index_map *map, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct transform_block_layout_plan plan = {.map = map};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_transform_block_layout(ir, block, &plan, err))) return false;
  edit_transform_block_layout(ir, block, &plan);
  return true;
}
