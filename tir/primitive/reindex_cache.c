/* Reindex cache read, reindex cache write: a block uses a cache of a buffer in another storage scope, with its elements
 * where an index map of the block's iterations puts them.
 *
 * Requires: the block has a read (write) region of this number, a single element, at which all its uses of the buffer
 *           are; no blocks in it; the storage scope is known; the scope is a stage pipeline. The map takes the block's
 *           iterations, uses those that the region uses, and keeps their elements apart. What is read is written by one
 *           block at most, before; what is written by this block alone, which does not read it, and always within it.
 * After:    a block copies each element to the cache, or from it, in copies of the loops that its iterations are bound
 *           to and of those that their ranges depend on: before the block, at the lowest place after the writer and
 *           what writes the data that decides which, first in the scope if there is none; after the block, before
 *           the first that reads the buffer, else last in the scope. Conditions on those loops are kept. Where a read
 *           element may be outside of the buffer, the cache holds zero.
 * Forward:  nothing dies. */
#include "cache_stage.h"
#include "copy_stage.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/outside.h"
#include "tir/index_map.h"

#include <string.h>

struct reindex_cache_plan {
  struct tir_cache_plan cache;
  const struct tir_index_map *map;
  bool write;
  tir_expr old_at[TIR_MOST_EDITED_RANK]; /* the region's element */
  tir_expr written[TIR_MOST_MAP_RANK],
      new_at[TIR_MOST_MAP_RANK]; /* the map over the iterations: as written, simplified */
  tir_expr shape[TIR_MOST_MAP_RANK];
  struct tir_copy_stage stage;                          /* loops, iterations and predicate: copies */
  tir_var iters[TIR_MOST_STAGE], loops[TIR_MOST_STAGE]; /* of the block, that are copied */
};

/* ---- Check: the place ---- */

enum { MOST_LOADS = 64 };

/* Of *last and the children of the scope before the block that write what the scope loads at `s`, the last. */
static void find_writers(struct tir *ir, tir_block block, const struct reindex_cache_plan *plan, tir_stmt s,
                         tir_block *last) {
  tir_expr loads[MOST_LOADS];
  uint32_t count = tir_scope_loads(ir, s, TIR_NONE, loads, MOST_LOADS);
  for (uint32_t i = 0; i < count && i < MOST_LOADS; i++)
    for (uint32_t u = tir_buffer_at(ir, tir_at(ir, loads[i])->ref)->writers; u; u = ir->uses.at[u].next) {
      tir_block b = ir->uses.at[u].block;
      if (tir_scope_of(ir, b) != plan->cache.scope || tir_compare_position(ir, b, block) >= 0) continue;
      if (!*last || tir_compare_position(ir, b, *last) > 0) *last = b;
    }
}

/* Which elements are read may depend on data: the copy comes after what writes that too. */
static tir_block last_writer(struct tir *ir, tir_block block, const struct reindex_cache_plan *plan, tir_block writer) {
  for (tir_stmt s = block; s != plan->cache.scope; s = tir_stmt_at(ir, s)->parent)
    find_writers(ir, block, plan, s, &writer);
  return writer;
}

/* The copy is made before the loops around the block run, under its condition: they write nothing that this loads. */
static bool check_steady(struct tir *ir, tir_block block, const struct tir_cache_plan *cache, ms_error *err) {
  tir_stmt place = cache->before ? tir_stmt_at(ir, cache->before)->parent : cache->scope, top = block;
  while (top != place && tir_stmt_at(ir, top)->parent != place && tir_stmt_at(ir, top)->parent != cache->scope)
    top = tir_stmt_at(ir, top)->parent;
  return top == block || tir_check_places_steady(ir, block, top, err);
}

static bool find_place(struct tir *ir, tir_block block, struct reindex_cache_plan *plan, ms_error *err) {
  struct tir_cache_plan *cache = &plan->cache;
  tir_block writer, reader = block;
  if (!tir_check_declared_around(ir, cache->buffer, cache->scope, err) ||
      (plan->write && !tir_check_declared_below(ir, cache->buffer, cache->scope, err)) ||
      !tir_check_only_writer(ir, cache, &writer, err) || (writer && !tir_check_writes_exact(ir, writer, err)))
    return false;
  if (plan->write) {
    if (tir_reads_from_before(ir, block, cache->buffer))
      return tir_refuse(ir, err, MS_CACHE_IN_PLACE, block, "block `%s` reads what it writes",
                        tir_block_name(ir, block));
    if (!tir_check_begun_once(ir, block, err)) return false;
    if (!tir_users_of(ir, cache->buffer, false, block, cache->scope, true, &reader, 1)) reader = TIR_NONE;
  }
  cache->before = plan->write ? TIR_NONE : cache->first;
  if (!plan->write && (!writer || tir_compare_position(ir, writer, block) < 0))
    writer = last_writer(ir, block, plan, writer);
  if (reader && writer && tir_compare_position(ir, reader, writer) <= 0)
    return tir_refuse(ir, err, MS_NO_CONSUMER_AFTER_WRITER, reader, "block `%s` does not come after the writer `%s`",
                      tir_block_name(ir, reader), tir_block_name(ir, writer));
  tir_stmt user = plan->write ? tir_first_user(ir, cache, block, reader) : reader;
  if (writer && user) tir_place_cache(ir, cache, writer, user);
  return plan->write ? tir_check_early_loads(ir, cache, block, err) : check_steady(ir, block, cache, err);
}

/* ---- Check: the elements ---- */

static bool read_region(struct tir *ir, tir_block block, uint32_t index, struct reindex_cache_plan *plan,
                        ms_error *err) {
  struct tir_span span = tir_regions(ir, block, plan->write);
  uint32_t ranges = ir->regions.at[span.first + index].ranges;
  for (uint32_t d = 0; d < plan->cache.rank; d++) {
    plan->old_at[d] = ir->operands.at[ranges + 2 * d];
    if (tir_is_const(ir, ir->operands.at[ranges + 2 * d + 1], 1)) continue;
    return tir_refuse(ir, err, MS_REGION_NOT_POINT, block, "block `%s` uses more than one element of `%s`",
                      tir_block_name(ir, block), tir_buffer_name(ir, plan->cache.buffer));
  }
  return true;
}

/* What the block does with the buffer it does there. */
static bool check_access(struct tir *ir, tir_block block, const struct reindex_cache_plan *plan, ms_error *err) {
  struct tir_single_access access;
  if (!tir_find_single_access(ir, block, plan->cache.buffer, true, &access, err)) return false;
  for (uint32_t d = 0; d < access.rank; d++)
    if (!tir_prove_equal(ir, access.at[d], plan->old_at[d]))
      return tir_refuse(ir, err, MS_NOT_ONE_ACCESS, block, "block `%s` uses another element of `%s` than it declares",
                        tir_block_name(ir, block), tir_buffer_name(ir, plan->cache.buffer));
  return true;
}

static bool use_var(const struct tir *ir, const tir_expr *exprs, uint32_t count, tir_var v) {
  for (uint32_t i = 0; i < count; i++)
    if (tir_uses_var(ir, exprs[i], v)) return true;
  return false;
}

static bool map_elements(struct tir *ir, tir_block block, struct reindex_cache_plan *plan, ms_error *err) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  const struct tir_index_map *map = plan->map;
  tir_var vars[TIR_MOST_MAP_RANK];
  tir_expr args[TIR_MOST_MAP_RANK];
  if (iters.count != map->param_count)
    return tir_refuse(ir, err, MS_INDEX_MAP_RANK, block, "the map takes %u indices; block `%s` has %u iterations",
                      map->param_count, tir_block_name(ir, block), iters.count);
  for (uint32_t i = 0; i < iters.count; i++) {
    vars[i] = ir->iters.at[iters.first + i].var;
    args[i] = tir_var_expr(ir, vars[i]);
  }
  tir_map_as_written(ir, map, args, plan->written);
  tir_map_indices(ir, map, args, plan->new_at);
  for (uint32_t i = 0; i < iters.count; i++) {
    bool in_old = use_var(ir, plan->old_at, plan->cache.rank, vars[i]);
    if (in_old != use_var(ir, plan->written, map->result_count, vars[i]))
      return tir_refuse(ir, err, MS_REINDEX_ITERS, block, "iteration %u of block `%s` is only in %s indices", i,
                        tir_block_name(ir, block), in_old ? "the buffer's" : "the cache's");
    if (in_old) plan->iters[plan->stage.iter_count++] = vars[i];
  }
  if (!tir_mapped_shape(ir, plan->written, map->result_count, vars, iters.count, plan->shape))
    return tir_refuse(ir, err, MS_INDEX_MAP_SHAPE, block, "the indices that the map gives have no shape");
  for (uint32_t i = 0; i < map->result_count; i++)
    if (tir_uses_inner_var(ir, plan->shape[i]))
      return tir_refuse(ir, err, MS_REINDEX_SHAPE, block, "extent %u of the copy depends on a loop around block `%s`",
                        i, tir_block_name(ir, block));
  return true;
}

/* Each of `these` is one of `those`. */
static bool are_among(struct tir *ir, const tir_expr *these, uint32_t count, const tir_expr *those, uint32_t others) {
  for (uint32_t i = 0; i < count; i++) {
    bool found = false;
    for (uint32_t j = 0; j < others && !found; j++)
      found = tir_type_of(ir, these[i]) == tir_type_of(ir, those[j]) && tir_prove_equal(ir, these[i], those[j]);
    if (!found) return false;
  }
  return true;
}

/* The map is injective: from its results follow the iterations, or it gives the buffer's own indices. */
static bool check_map(struct tir *ir, tir_block block, const struct reindex_cache_plan *plan, ms_error *err) {
  uint32_t count = plan->map->result_count, rank = plan->cache.rank;
  tir_expr outputs[TIR_MOST_MAP_RANK], values[TIR_MOST_STAGE], padding;
  tir_name name = tir_name_of(ir, "axis");
  for (uint32_t i = 0; i < count; i++) {
    tir_type type = tir_type_of(ir, plan->shape[i]);
    tir_var v = tir_new_var(ir, TIR_VAR_PLAIN, name, type, tir_int(ir, type, 0), plan->shape[i]);
    outputs[i] = tir_var_expr(ir, v);
  }
  if (tir_invert_padding(ir, plan->written, count, plan->iters, plan->stage.iter_count, outputs, values, &padding) ||
      (are_among(ir, plan->old_at, rank, plan->new_at, count) &&
       are_among(ir, plan->new_at, count, plan->old_at, rank)))
    return true;
  return tir_refuse(ir, err, MS_INDEX_MAP_NOT_INVERTED, block, "the map is not injective on the elements of `%s`",
                    tir_buffer_name(ir, plan->cache.buffer));
}

/* ---- Check: the loops ---- */

static tir_var copy_var(struct tir *ir, tir_var v, tir_expr min, tir_expr extent) {
  struct tir_var_node n = ir->vars.at[v];
  return tir_new_var(ir, (enum tir_var_kind)n.kind, n.name, n.type, min, extent);
}

/* Which of the loops, innermost first, are copied: those that the bindings use, and those that the ranges of such use.
 */
static void choose_loops(const struct tir *ir, const tir_expr *bindings, uint32_t iters, const tir_var *around,
                         uint32_t count, bool *chosen) {
  for (uint32_t i = 0; i < count; i++) {
    chosen[i] = use_var(ir, bindings, iters, around[i]);
    for (uint32_t inner = 0; inner < i && !chosen[i]; inner++) {
      const struct tir_var_node *v = &ir->vars.at[around[inner]];
      chosen[i] = chosen[inner] && (tir_uses_var(ir, v->min, around[i]) || tir_uses_var(ir, v->extent, around[i]));
    }
  }
}

/* Copies the loops under the place that the copied iterations are bound to; substitution of them stands after it. */
static bool copy_loops(struct tir *ir, tir_block block, struct reindex_cache_plan *plan, ms_error *err) {
  struct tir_copy_stage *s = &plan->stage;
  tir_var around[TIR_MOST_STAGE];
  tir_expr bindings[TIR_MOST_STAGE];
  bool chosen[TIR_MOST_STAGE];
  tir_stmt high = plan->cache.before ? tir_stmt_at(ir, plan->cache.before)->parent : plan->cache.scope;
  uint32_t count = tir_loop_vars(ir, block, high, around, TIR_MOST_STAGE);
  if (count > TIR_MOST_STAGE) return tir_refuse(ir, err, MS_TOO_LARGE, block, "%u loops are around the block", count);
  for (uint32_t i = 0; i < s->iter_count; i++) bindings[i] = tir_binding_of(ir, block, plan->iters[i]);
  choose_loops(ir, bindings, s->iter_count, around, count, chosen);
  for (uint32_t i = count; i-- > 0;) {
    if (!chosen[i]) continue;
    struct tir_var_node v = ir->vars.at[around[i]];
    plan->loops[s->loop_count] = around[i];
    s->loops[s->loop_count] = copy_var(ir, around[i], tir_subst(ir, v.min), tir_subst(ir, v.extent));
    tir_subst_var(ir, around[i], tir_var_expr(ir, s->loops[s->loop_count]));
    s->loop_count++;
  }
  for (uint32_t i = 0; i < s->iter_count; i++)
    s->iters[i] = (struct tir_iter){TIR_NONE, TIR_SPATIAL, tir_subst(ir, bindings[i])};
  return true;
}

/* Loops under the place that are not copied. */
static uint32_t other_loops(const struct tir *ir, tir_block block, const struct reindex_cache_plan *plan,
                            tir_var *out) {
  tir_stmt high = plan->cache.before ? tir_stmt_at(ir, plan->cache.before)->parent : plan->cache.scope;
  uint32_t count = 0;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s != high; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    bool copied = false;
    for (uint32_t i = 0; i < plan->stage.loop_count; i++)
      copied = copied || plan->loops[i] == tir_as(ir, s, TIR_LOOP)->loop.var;
    if (!copied) out[count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
  }
  return count;
}

struct others {
  const tir_var *vars;
  uint32_t count;
};

/* Of a loop or iteration that is none of the others. */
static bool is_foreign(const struct tir *ir, const void *context, tir_var v) {
  const struct others *others = context;
  return tir_var_at(ir, v)->kind != TIR_VAR_PLAIN &&
         !tir_uses_any_var(ir, tir_var_expr(ir, v), others->vars, others->count);
}

/* Conditions of the block hold for the copy, but for those on loops that are not copied, which go to *dropped. One on
 * both cannot be split. */
static bool copy_conditions(struct tir *ir, tir_expr e, struct reindex_cache_plan *plan, const tir_var *others,
                            uint32_t count, tir_expr *dropped) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_AND)
    return copy_conditions(ir, n.a, plan, others, count, dropped) &&
           copy_conditions(ir, n.b, plan, others, count, dropped);
  if (!tir_uses_any_var(ir, e, others, count)) {
    plan->stage.predicate = tir_and(ir, plan->stage.predicate, tir_subst(ir, e));
    return true;
  }
  *dropped = tir_and(ir, *dropped, e);
  return !tir_any_var(ir, e, is_foreign, &(struct others){others, count});
}

static bool check_loops(struct tir *ir, tir_block block, struct reindex_cache_plan *plan, ms_error *err) {
  tir_stmt high = plan->cache.before ? tir_stmt_at(ir, plan->cache.before)->parent : plan->cache.scope;
  if (!tir_only_loops_between(ir, block, high))
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, block, "more than loops is around block `%s`",
                      tir_block_name(ir, block));
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  bool copied = copy_loops(ir, block, plan, err);
  tir_var others[TIR_MOST_STAGE];
  uint32_t count = copied ? other_loops(ir, block, plan, others) : 0;
  tir_expr dropped = TIR_NONE;
  bool expressed = !copied || !predicate || copy_conditions(ir, predicate, plan, others, count, &dropped);
  tir_subst_clear(ir);
  if (expressed && !tir_is_satisfiable(ir, dropped, TIR_NONE, others, count))
    return tir_refuse(ir, err, MS_REINDEX_PREDICATE, block,
                      "no iteration of the loops that are not copied is found in which the conditions of block `%s` on "
                      "them hold together",
                      tir_block_name(ir, block));
  if (expressed) return copied;
  return tir_refuse(ir, err, MS_REINDEX_PREDICATE, block, "the predicate of block `%s` binds loops to others",
                    tir_block_name(ir, block));
}

static bool check_reindex_cache(struct tir *ir, tir_block block, uint32_t index, const char *scope,
                                struct reindex_cache_plan *plan, ms_error *err) {
  return tir_check_cached_buffer(ir, block, index, plan->write, scope, &plan->cache, err) &&
         tir_check_stage_pipeline(ir, plan->cache.scope, err) && find_place(ir, block, plan, err) &&
         tir_check_declared_around(ir, plan->cache.buffer, plan->cache.scope, err) &&
         tir_check_writes_exact(ir, block, err) &&
         (!plan->write || tir_check_reduces_inside(ir, block, plan->cache.scope, err)) &&
         read_region(ir, block, index, plan, err) && map_elements(ir, block, plan, err) &&
         check_access(ir, block, plan, err) &&
         (!plan->write || tir_check_copied_back(ir, block, plan->cache.buffer, plan->old_at, err)) &&
         check_map(ir, block, plan, err) && check_loops(ir, block, plan, err);
}

/* ---- Edit ---- */

static tir_buffer make_cache(struct tir *ir, const struct reindex_cache_plan *plan) {
  tir_buffer cache = tir_copy_buffer(ir, plan->cache.buffer);
  tir_symbol name = tir_free_block_name(
      ir, tir_symbol_format(ir, "%s_%s", tir_buffer_name(ir, plan->cache.buffer), plan->cache.storage));
  tir_symbol scope = tir_symbol_of(ir, plan->cache.storage);
  uint32_t shape = tir_add_operands(ir, plan->shape, plan->map->result_count);
  struct tir_buffer_node *n = tir_buffer_at(ir, cache);
  if (n->strides.count == n->rank) n->strides.count = 0; /* they were of the old shape */
  n->name = name;
  n->scope = scope;
  n->shape = shape;
  n->rank = plan->map->result_count;
  n->data = n->elem_offset = TIR_NONE;
  tir_add_alloc(ir, plan->cache.scope, cache);
  return cache;
}

static tir_block make_stage(struct tir *ir, struct reindex_cache_plan *plan, tir_buffer cache) {
  struct tir_copy_stage *s = &plan->stage;
  tir_expr old_at[TIR_MOST_EDITED_RANK], new_at[TIR_MOST_EDITED_RANK];
  uint32_t rank = plan->cache.rank, count = plan->map->result_count;
  for (uint32_t i = 0; i < s->iter_count; i++) {
    struct tir_var_node v = ir->vars.at[plan->iters[i]];
    s->iters[i].var = copy_var(ir, plan->iters[i], v.min, v.extent);
  }
  for (uint32_t i = 0; i < s->iter_count; i++) tir_subst_var(ir, plan->iters[i], tir_var_expr(ir, s->iters[i].var));
  for (uint32_t i = 0; i < rank; i++) old_at[i] = tir_subst(ir, plan->old_at[i]);
  for (uint32_t i = 0; i < count; i++) new_at[i] = tir_subst(ir, plan->new_at[i]);
  tir_subst_clear(ir);
  s->name = tir_buffer_at(ir, cache)->name;
  s->from = plan->write ? cache : plan->cache.buffer;
  s->to = plan->write ? plan->cache.buffer : cache;
  s->from_rank = plan->write ? count : rank;
  s->to_rank = plan->write ? rank : count;
  memcpy(s->from_at, plan->write ? new_at : old_at, s->from_rank * sizeof *old_at);
  memcpy(s->to_at, plan->write ? old_at : new_at, s->to_rank * sizeof *old_at);
  tir_block block;
  tir_stmt nest = tir_make_copy_stage(ir, s, &block);
  if (plan->cache.before)
    tir_insert_before(ir, plan->cache.before, nest);
  else
    tir_append(ir, plan->cache.scope, TIR_BODY, nest);
  return block;
}

static bool perform(struct tir *ir, tir_block block, uint32_t index, bool write, const char *scope,
                    const struct tir_index_map *map, tir_block *out, ms_error *err) {
  struct reindex_cache_plan plan = {.map = map, .write = write};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_reindex_cache(ir, block, index, scope, &plan, err))) return false;
  tir_buffer cache = make_cache(ir, &plan);
  tir_replace_access(ir, block, plan.cache.buffer, cache, plan.new_at, map->result_count);
  *out = make_stage(ir, &plan, cache);
  return true;
}

bool tir_reindex_cache_read(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                            const struct tir_index_map *map, tir_block *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  return perform(ir, block, buffer_index, false, scope, map, out, err);
}

bool tir_reindex_cache_write(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                             const struct tir_index_map *map, tir_block *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  return perform(ir, block, buffer_index, true, scope, map, out, err);
}
