/* The stage of a cache: a block that copies a region, in loops of its own, between a buffer and its cache. */
#include "cache_stage.h"

#include "copy_stage.h"
#include "inline.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/outside.h"
#include "tir/arith/iter_map.h"
#include "tir/arith/linear.h"

#include <stdlib.h>
#include <string.h>

/* ---- Checks ---- */

bool tir_check_storage_scope(const char *storage, ms_error *err) {
  return tir_is_storage_scope(storage) ||
         ms_fail(err, MS_STORAGE_SCOPE_UNKNOWN, "there is no storage scope `%s`", storage);
}

/* Where the scope's body begins, past what declares the buffer in it. */
static bool find_first_place(struct tir *ir, tir_block block, struct tir_cache_plan *plan, ms_error *err) {
  tir_stmt where = tir_buffer_at(ir, plan->buffer)->where;
  bool inside = where && where != plan->scope && tir_is_below(ir, where, plan->scope);
  plan->first = inside ? tir_stmt_at(ir, where)->next : tir_stmt_at(ir, plan->scope)->first[TIR_BODY];
  return !inside || tir_stmt_at(ir, where)->parent == plan->scope ||
         tir_refuse(ir, err, MS_BUFFER_IS_VIEW, block, "buffer `%s` is declared in a loop or condition of its scope",
                    tir_buffer_name(ir, plan->buffer));
}

bool tir_check_cached_buffer(struct tir *ir, tir_block block, uint32_t index, bool write, const char *storage,
                             struct tir_cache_plan *plan, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  if (!tir_check_storage_scope(storage, err)) return false;
  struct tir_span span = tir_regions(ir, block, write);
  if (!tir_check_region_number(ir, block, index, write, err)) return false;
  if (!tir_find_scope(ir, block, &plan->scope, err)) return false;
  plan->buffer = ir->regions.at[span.first + index].buffer;
  plan->storage = storage;
  plan->rank = tir_buffer_at(ir, plan->buffer)->rank;
  if (plan->rank > TIR_MOST_CACHED_RANK)
    return tir_refuse(ir, err, MS_TOO_LARGE, block, "buffer `%s` has %u dimensions", tir_buffer_name(ir, plan->buffer),
                      plan->rank);
  return find_first_place(ir, block, plan, err);
}

bool tir_check_only_writer(struct tir *ir, const struct tir_cache_plan *plan, tir_block *writer, ms_error *err) {
  *writer = TIR_NONE;
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->writers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (tir_scope_of(ir, b) != plan->scope) continue;
    if (*writer)
      return tir_refuse(ir, err, MS_SEVERAL_WRITERS, b, "buffer `%s` is written by `%s` and by `%s`",
                        tir_buffer_name(ir, plan->buffer), tir_block_name(ir, b), tir_block_name(ir, *writer));
    *writer = b;
  }
  return tir_check_blocks_only(ir, plan->buffer, plan->scope, false, err);
}

bool tir_is_cache_consumer(const struct tir *ir, tir_block block, const tir_block *consumers, uint32_t count) {
  assert(tir_is(ir, block, TIR_BLOCK));
  for (tir_block b = block; b && count; b = tir_parent_block(ir, b)) /* in its init too */
    for (uint32_t i = 0; i < count; i++)
      if (consumers[i] == b) return true;
  return false;
}

bool tir_check_cache_matches(const struct tir *ir, const struct tir_cache_plan *plan, tir_block block, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
    const struct tir_match *m = &ir->matches.at[i];
    const char *scope = tir_text(ir, tir_buffer_at(ir, m->buffer)->scope);
    if (m->source.buffer != plan->buffer || !strcmp(scope, plan->storage)) continue;
    return tir_refuse(ir, err, MS_MATCHED_ELSEWHERE, block, "block `%s` matches a part in scope `%s`, not `%s`",
                      tir_block_name(ir, block), scope, plan->storage);
  }
  return true;
}

/* Whatever is copied of the buffer was written before the scope. */
static bool is_all_written(struct tir *ir, const struct tir_cache_plan *plan, tir_block writer) {
  tir_block around = tir_scope_of(ir, writer);
  if (!around || !tir_is_below(ir, plan->scope, around) || tir_compare_position(ir, plan->scope, writer) < 0)
    return false;
  struct tir_cache_plan whole = *plan;
  tir_cache_whole(ir, &whole);
  return tir_is_covered(ir, &(struct tir_use_at){plan->scope, whole.buffer, whole.ranges, TIR_NONE}, around);
}

bool tir_check_input_declared(struct tir *ir, const struct tir_cache_plan *plan, bool one_region, ms_error *err) {
  tir_block scope = plan->scope;
  uint32_t times = tir_count_regions_of(ir, tir_block_at(ir, scope)->reads, plan->buffer);
  if (times == 1 || (times && !one_region)) return true;
  if (one_region && !times && tir_has_region_of(ir, tir_block_at(ir, scope)->writes, plan->buffer))
    return tir_refuse_undeclared(ir, scope, plan->buffer, err); /* what is written in it, undeclared */
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->writers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == scope || tir_is_below(ir, b, scope) || tir_is_below(ir, scope, b)) continue;
    if (times && !tir_is(ir, tir_lowest_common_ancestor(ir, b, scope), TIR_LOOP)) continue;
    if (!is_all_written(ir, plan, b)) return tir_refuse_undeclared(ir, scope, plan->buffer, err);
  }
  return true;
}

/* ---- The place ---- */

tir_block tir_first_reader(const struct tir *ir, tir_block scope, tir_block writer, const tir_block *consumers,
                           uint32_t count) {
  assert(tir_is(ir, scope, TIR_BLOCK) && tir_is(ir, writer, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, writer)->writes;
  tir_block first = TIR_NONE;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    for (uint32_t u = tir_buffer_at(ir, ir->regions.at[i].buffer)->readers; u; u = ir->uses.at[u].next) {
      tir_block b = ir->uses.at[u].block;
      if (b == writer || tir_scope_of(ir, b) != scope || tir_is_cache_consumer(ir, b, consumers, count)) continue;
      if (tir_compare_position(ir, b, writer) < 0) continue;
      if (!first || tir_compare_position(ir, b, first) < 0) first = b;
    }
  return first;
}

tir_stmt tir_first_user(struct tir *ir, const struct tir_cache_plan *plan, tir_block writer, tir_block reader) {
  assert((!writer || tir_is(ir, writer, TIR_BLOCK)) && (!reader || tir_is(ir, reader, TIR_BLOCK)));
  tir_stmt load = tir_first_load_by_scope(ir, plan->buffer, plan->scope, writer);
  return load && (!reader || tir_compare_position(ir, load, reader) < 0) ? load : reader;
}

void tir_place_cache(const struct tir *ir, struct tir_cache_plan *plan, tir_block writer, tir_stmt user) {
  assert(tir_is(ir, writer, TIR_BLOCK));
  tir_stmt s = user; /* up to the list that holds both */
  while (!tir_is_below(ir, writer, tir_stmt_at(ir, s)->parent)) s = tir_stmt_at(ir, s)->parent;
  plan->before = s;
}

static tir_stmt parent_of_place(const struct tir *ir, const struct tir_cache_plan *plan) {
  return plan->before ? tir_stmt_at(ir, plan->before)->parent : plan->scope;
}

/* The innermost loop of the scope around both; TIR_NONE: there is none. */
static tir_stmt loop_around_both(const struct tir *ir, tir_block scope, tir_stmt s, tir_block block) {
  for (s = tir_stmt_at(ir, s)->parent; s != scope; s = tir_stmt_at(ir, s)->parent)
    if ((tir_is(ir, s, TIR_LOOP) || tir_is(ir, s, TIR_WHILE)) && tir_is_below(ir, block, s)) return s;
  return TIR_NONE;
}

bool tir_check_early_loads(struct tir *ir, const struct tir_cache_plan *plan, tir_block writer, ms_error *err) {
  assert(tir_scope_of(ir, writer) == plan->scope);
  tir_stmt place = parent_of_place(ir, plan);
  struct tir_outside_use use;
  for (tir_stmt s = TIR_NONE; tir_next_outside_use(ir, plan->scope, plan->buffer, TIR_NONE, s, &use); s = use.at) {
    if (tir_compare_position(ir, use.at, writer) > 0) break; /* what says where the writer runs comes before it */
    tir_stmt loop = loop_around_both(ir, plan->scope, use.at, writer);
    if (loop && loop != place && !tir_is_below(ir, place, loop))
      return tir_refuse(ir, err, MS_CACHE_READ_EARLIER, use.at,
                        "`%s` reads buffer `%s` outside of blocks before block `%s` writes it",
                        tir_block_name(ir, plan->scope), tir_buffer_name(ir, plan->buffer), tir_block_name(ir, writer));
  }
  return true;
}

/* ---- The region ---- */

enum { MOST_RELAXED = 64, MOST_LOADS = 32 };

/* A dimension of the copy: what is used, but nothing past the buffer's ends; the whole of it where that is not known.
 */
static void set_range(struct tir *ir, struct tir_cache_plan *plan, uint32_t i, struct tir_interval used) {
  tir_expr shape = ir->operands.at[tir_buffer_at(ir, plan->buffer)->shape + i];
  tir_expr zero = tir_int(ir, tir_type_of(ir, shape), 0);
  plan->ranges[2 * i] = zero;
  plan->ranges[2 * i + 1] = shape;
  if (used.empty || !used.min || !used.max) return;
  tir_type type = tir_type_of(ir, used.min);
  if (type != tir_type_of(ir, shape)) zero = tir_int(ir, type, 0), shape = tir_cast(ir, type, shape);
  if (tir_at(ir, used.min)->hi < 0) used.min = zero;
  if (tir_at(ir, used.min)->lo < 0) used.min = tir_make(ir, TIR_MAX, used.min, zero);
  tir_expr last = tir_sub(ir, shape, tir_int(ir, type, 1));
  if (tir_at(ir, used.max)->hi > tir_at(ir, last)->lo) used.max = tir_make(ir, TIR_MIN, used.max, last);
  tir_expr extent = tir_interval_extent(ir, used);
  int64_t largest = tir_type_bounds(type).hi, most = tir_at(ir, shape)->hi;
  if (tir_at(ir, extent)->hi >= largest && most < largest) /* it might wrap around */
    extent = tir_make(ir, TIR_MIN, extent, tir_int(ir, type, most));
  plan->ranges[2 * i] = used.min;
  plan->ranges[2 * i + 1] = extent;
}

/* A sum of the variables, or of digits of them: quotients and remainders by constants. */
static bool is_sum_of(struct tir *ir, tir_expr e, const tir_var *vars, uint32_t count, bool *digits) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_INT_IMM) return true;
  if (n->flags & ~(TIR_HAS_VAR | TIR_HAS_DIVMOD)) return false;
  struct tir_linear l = tir_linear_of(ir, e);
  for (uint32_t i = 0; i < l.count; i++) {
    const struct tir_expr_node *atom = tir_at(ir, tir_terms(ir, l)[i].atom);
    while ((atom->kind == TIR_FLOORDIV || atom->kind == TIR_FLOORMOD) && tir_is_int(ir, atom->b)) {
      *digits = true;
      atom = tir_at(ir, atom->a);
    }
    bool found = false;
    for (uint32_t v = 0; v < count && !found; v++) found = atom->kind == TIR_VAR && atom->ref == vars[v];
    if (!found) return false;
  }
  return true;
}

/* Independent digits of the relaxed loops, all of them in turn. */
static bool covers(struct tir *ir, const tir_expr *bindings, uint32_t rank, const tir_var *vars, uint32_t count) {
  int64_t scales[TIR_MOST_CACHED_RANK];
  if (iter_short_cover(ir, bindings, rank, vars, count, TIR_NONE, scales) != ITER_YES) return false;
  for (uint32_t i = 0; i < rank; i++)
    if (scales[i] > 1) return false;
  return true;
}

static bool joins_dimensions(struct tir *ir, uint32_t rank, tir_var v, const struct tir_region *region) {
  uint32_t uses = 0, terms = 0;
  tir_expr extent = ir->vars.at[v].extent;
  if (extent && tir_is_const(ir, extent, 1)) return false;
  for (uint32_t d = 0; d < rank; d++) {
    tir_expr min = ir->operands.at[region->ranges + 2 * d];
    if (!tir_uses_var(ir, min, v) || !tir_is_index(ir, min)) continue;
    struct tir_linear l = tir_linear_of(ir, min);
    uses++;
    for (uint32_t t = 0; t < l.count; t++) terms += tir_terms(ir, l)[t].atom == tir_var_expr(ir, v);
  }
  return uses > 1 && terms;
}

/* The same iteration, which takes several values, is a term of two dimensions: the elements lie on a diagonal of what
 * these span. A block without iterations uses the loops around itself. */
static bool is_diagonal(struct tir *ir, uint32_t rank, tir_block block, const struct tir_region *region,
                        const tir_var *loops, uint32_t loop_count) {
  uint32_t count = tir_block_at(ir, block)->iters.count;
  for (uint32_t i = 0; i < count; i++)
    if (joins_dimensions(ir, rank, tir_iters(ir, block)[i].var, region)) return true;
  for (uint32_t i = 0; i < loop_count && !count; i++)
    if (joins_dimensions(ir, rank, loops[i], region)) return true;
  return false;
}

static bool have_iterations(const struct tir *ir, const tir_var *vars, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!ir->vars.at[vars[i]].extent || tir_at(ir, ir->vars.at[vars[i]].extent)->lo < 1) return false;
  return true;
}

/* An iteration bound to a sum of the relaxed loops, or of digits of them, takes all values between the sum's ends: what
 * tir_region_upper_bound finds too, for the regions that nearly all blocks have. */
static bool relax_plainly(struct tir *ir, struct tir_cache_plan *plan, tir_block block, const struct tir_region *region,
                          const tir_var *vars, uint32_t count) {
  const struct tir_iter *iters = tir_iters(ir, block);
  uint32_t iter_count = tir_block_at(ir, block)->iters.count;
  tir_expr bindings[TIR_MOST_CACHED_RANK];
  bool digits = false;
  for (uint32_t i = 0; i < plan->rank; i++) {
    const struct tir_expr_node *min = tir_at(ir, ir->operands.at[region->ranges + 2 * i]);
    tir_expr extent = ir->operands.at[region->ranges + 2 * i + 1], binding = TIR_NONE;
    for (uint32_t v = 0; v < iter_count && !binding; v++)
      if (min->kind == TIR_VAR && iters[v].var == min->ref) binding = iters[v].binding;
    if (!binding || !tir_is_const(ir, extent, 1) || !is_sum_of(ir, binding, vars, count, &digits)) return false;
    bindings[i] = binding;
    tir_expr shape = ir->operands.at[tir_buffer_at(ir, plan->buffer)->shape + i];
    struct tir_bounds b = tir_bounds_of(ir, binding);
    if (!tir_is_const(ir, shape, b.hi + 1) || b.lo != 0 || tir_type_of(ir, binding) != tir_type_of(ir, shape))
      return false;
  }
  if (digits && !covers(ir, bindings, plan->rank, vars, count)) return false;
  tir_cache_whole(ir, plan);
  return true;
}

/* The variable says where the region lies in the dimension, or how far it reaches. */
static bool moves_in(const struct tir *ir, const tir_expr *ranges, uint32_t d, tir_var v) {
  return tir_uses_var(ir, ranges[2 * d], v) || tir_uses_var(ir, ranges[2 * d + 1], v);
}

/* A condition ties a dimension of the region to another, or to loops that are in none: it bounds it in some of their
 * iterations only, and the box that the region spans need not be full. */
static bool ties_dimensions(struct tir *ir, tir_expr predicate, const tir_expr *ranges, uint32_t rank,
                            const tir_var *vars, uint32_t count) {
  uint32_t dimensions = 0;
  bool outside = false;
  if (!predicate) return false;
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND)
    return ties_dimensions(ir, n.a, ranges, rank, vars, count) || ties_dimensions(ir, n.b, ranges, rank, vars, count);
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_var_node *v = &ir->vars.at[vars[i]];
    if (!tir_uses_var(ir, predicate, vars[i]) || (v->extent && tir_is_const(ir, v->extent, 1))) continue;
    uint32_t of = 0;
    for (uint32_t d = 0; d < rank; d++) of |= (uint32_t)moves_in(ir, ranges, d, vars[i]) << d;
    outside |= !of;
    dimensions |= of;
  }
  if (dimensions & (dimensions - 1)) return true;
  return dimensions && outside && !tir_holds_at_end(ir, predicate, ranges, rank, vars, count, false) &&
         !tir_holds_at_end(ir, predicate, ranges, rank, vars, count, true);
}

/* The condition uses one of the relaxed variables that the region depends on. */
static bool limits_region(struct tir *ir, tir_expr condition, const tir_expr *ranges, uint32_t rank,
                          const tir_var *vars, uint32_t count) {
  for (uint32_t i = 0; i < count && condition; i++)
    for (uint32_t d = 0; d < rank && tir_uses_var(ir, condition, vars[i]); d++)
      if (moves_in(ir, ranges, d, vars[i])) return true;
  return false;
}

/* The box that the region spans need not be full: the predicate leaves out iterations, which are not just those that
 * would be outside of the buffer. Where it is full, `used` becomes that box. */
static bool is_bounded(struct tir *ir, const struct tir_cache_plan *plan, tir_expr predicate, const tir_expr *ranges,
                       const tir_var *vars, uint32_t count, struct tir_interval *used) {
  tir_expr limits = tir_limits_inside(ir, plan->buffer, ranges, predicate);
  if (!ties_dimensions(ir, predicate, ranges, plan->rank, vars, count) &&
      !limits_region(ir, limits, ranges, plan->rank, vars, count))
    return false;
  return !tir_region_is_box(ir, ranges, plan->rank, vars, count, predicate, used);
}

/* Whatever lies in the box `used` is accessed in some iteration of the loops that are in no dimension: their conditions
 * hold together there. */
static bool is_accessed(struct tir *ir, const struct tir_cache_plan *plan, tir_expr predicate, const tir_expr *ranges,
                        const tir_var *vars, uint32_t count, const struct tir_interval *used) {
  tir_expr inside = TIR_NONE;
  for (uint32_t d = 0; d < plan->rank; d++) {
    tir_expr min = ranges[2 * d], last = tir_interval_of(ir, min, ranges[2 * d + 1]).max;
    if (used[d].empty || !used[d].min || !used[d].max || !last || !tir_is_index(ir, min)) continue;
    inside = tir_and(ir, inside, tir_make(ir, TIR_GE, min, used[d].min));
    inside = tir_and(ir, inside, tir_make(ir, TIR_LE, last, used[d].max));
  }
  return tir_holds_somewhere(ir, predicate, inside, ranges, plan->rank, vars, count);
}

static bool any_lets(const struct tir *ir, const tir_expr *ranges, uint32_t rank) {
  for (uint32_t i = 0; i < 2 * rank; i++)
    if (tir_uses_let(ir, ranges[i])) return true;
  return false;
}

static bool any_have(const struct tir *ir, const tir_expr *ranges, uint32_t rank, unsigned flags) {
  for (uint32_t i = 0; i < 2 * rank; i++)
    if (tir_at(ir, ranges[i])->flags & flags) return true;
  return false;
}

/* Bounds in which relaxed loops are left, as of other loops' ranges: they mean nothing outside of these. */
static bool follows(struct tir *ir, struct tir_interval used, const tir_var *vars, uint32_t count) {
  return (used.min && tir_uses_any_var(ir, used.min, vars, count)) ||
         (used.max && tir_uses_any_var(ir, used.max, vars, count));
}

void tir_relax_cached_region(struct tir *ir, struct tir_cache_plan *plan, tir_block block,
                             const struct tir_region *region, tir_expr nested) {
  assert(tir_is(ir, block, TIR_BLOCK));
  tir_expr ranges[2 * TIR_MOST_CACHED_RANK];
  struct tir_interval used[TIR_MOST_CACHED_RANK];
  tir_var vars[MOST_RELAXED];
  tir_symbol memory = tir_memory_of(ir, plan->buffer);
  uint32_t count = tir_running_loops(ir, block, parent_of_place(ir, plan), memory, vars, MOST_RELAXED);
  plan->strided = plan->bounded = plan->left_out = plan->named = false;
  if (count > MOST_RELAXED) {
    tir_cache_whole(ir, plan);
    return;
  }
  bool diagonal = plan->rank > 1 && is_diagonal(ir, plan->rank, block, region, vars, count);
  if (!nested && !diagonal && !tir_as(ir, block, TIR_BLOCK)->block.predicate && have_iterations(ir, vars, count) &&
      relax_plainly(ir, plan, block, region, vars, count))
    return;
  plan->strided = diagonal || tir_is_strided(ir, block, *region, vars, count);
  memcpy(ranges, ir->operands.at + region->ranges, 2 * plan->rank * sizeof *ranges);
  tir_subst_iters(ir, block);
  for (uint32_t i = 0; i < 2 * plan->rank; i++) ranges[i] = tir_subst(ir, ranges[i]);
  nested = tir_subst(ir, nested);
  tir_subst_clear(ir);
  tir_expr predicate = tir_and(ir, tir_as(ir, block, TIR_BLOCK)->block.predicate, nested);
  if (any_lets(ir, ranges, plan->rank) ||
      (predicate &&
       tir_uses_let(ir, predicate))) { /* the name is not bound where the copy stands, and may have any value */
    tir_cache_whole(ir, plan);
    plan->strided = plan->named = true;
    plan->predicate = TIR_NONE;
    return;
  }
  plan->predicate = tir_invariant_conditions(ir, predicate, vars, count);
  tir_region_upper_bound(ir, ranges, plan->rank, vars, count, predicate, used);
  if (any_have(ir, ranges, plan->rank, TIR_HAS_LOAD | TIR_HAS_CALL)) /* bounds do not say where these put it */
    plan->strided |= !tir_region_is_box(ir, ranges, plan->rank, vars, count, predicate, used);
  plan->bounded = is_bounded(ir, plan, predicate, ranges, vars, count, used);
  bool never = predicate && tir_at(ir, predicate)->hi == 0;
  plan->left_out = never || !is_accessed(ir, plan, predicate, ranges, vars, count, used);
  for (uint32_t i = 0; i < plan->rank; i++) {
    if (follows(ir, used[i], vars, count)) used[i] = tir_nothing(), plan->strided = true;
    set_range(ir, plan, i, used[i]);
  }
}

void tir_cache_region(struct tir *ir, struct tir_cache_plan *plan, const struct tir_region *region) {
  assert(region->buffer == plan->buffer);
  uint32_t ranges = region->ranges;
  for (uint32_t i = 0; i < plan->rank; i++) {
    tir_expr min = ir->operands.at[ranges + 2 * i], extent = ir->operands.at[ranges + 2 * i + 1];
    set_range(ir, plan, i, tir_interval_of(ir, min, extent));
  }
}

void tir_cache_whole(struct tir *ir, struct tir_cache_plan *plan) {
  assert(plan->rank <= TIR_MOST_CACHED_RANK);
  uint32_t shape = tir_buffer_at(ir, plan->buffer)->shape;
  tir_expr zero = TIR_NONE;
  for (uint32_t i = 0; i < plan->rank; i++) {
    tir_expr extent = ir->operands.at[shape + i];
    if (!zero || tir_type_of(ir, zero) != tir_type_of(ir, extent)) zero = tir_int(ir, tir_type_of(ir, extent), 0);
    plan->ranges[2 * i] = zero;
    plan->ranges[2 * i + 1] = extent;
  }
}

/* Where the cache is allocated, or the copy runs, a load that says which region it holds may give something else than
 * where the writer runs; and no load says how much is allocated. */
static bool depends_on_data(struct tir *ir, const struct tir_cache_plan *plan) {
  for (uint32_t i = 0; i < 2 * plan->rank; i++) {
    tir_expr loads[MOST_LOADS];
    uint32_t count = tir_find_loads(ir, plan->ranges[i], TIR_NONE, loads, MOST_LOADS);
    if (count > MOST_LOADS || (count && i % 2)) return true;
    for (uint32_t k = 0; k < count; k++) {
      const struct tir_buffer_node *n = tir_buffer_at(ir, tir_at(ir, loads[k])->ref);
      if (n->writers || n->undeclared) return true;
    }
  }
  return false;
}

bool tir_check_copy_condition(struct tir *ir, const struct tir_cache_plan *plan, tir_block writer, ms_error *err) {
  return !plan->predicate || !tir_uses_buffer(ir, plan->predicate, plan->buffer) ||
         tir_refuse(
             ir, err, MS_CACHE_STRIDED, writer,
             "the condition of block `%s` loads `%s`, which the copy under that condition would change meanwhile",
             tir_block_name(ir, writer), tir_buffer_name(ir, plan->buffer));
}

bool tir_settle_cached_region(struct tir *ir, struct tir_cache_plan *plan, tir_block writer, ms_error *err) {
  assert(!writer || tir_is(ir, writer, TIR_BLOCK));
  if (any_have(ir, plan->ranges, plan->rank, TIR_HAS_LOAD) && depends_on_data(ir, plan))
    return tir_refuse(ir, err, MS_CACHE_STRIDED, writer ? writer : plan->scope,
                      "which elements of `%s` are used here depends on data", tir_buffer_name(ir, plan->buffer));
  if (writer && (plan->strided || plan->bounded))
    return tir_refuse(ir, err, MS_CACHE_STRIDED, writer, "block `%s` writes `%s` strided here, not densely",
                      tir_block_name(ir, writer), tir_buffer_name(ir, plan->buffer));
  if (writer && !tir_check_copy_condition(ir, plan, writer, err)) return false;
  if (writer && plan->left_out)
    return tir_refuse(ir, err, MS_CACHE_STRIDED, writer,
                      "what is copied may not be written: no iteration of block `%s` is found in which its conditions "
                      "hold together",
                      tir_block_name(ir, writer));
  if (tir_block_at(ir, plan->scope)->iters.count) return true;
  for (tir_stmt s = tir_stmt_at(ir, plan->scope)->parent; s && plan->compact; s = tir_stmt_at(ir, s)->parent)
    for (uint32_t i = 0; i < 2 * plan->rank && tir_is(ir, s, TIR_LOOP) && plan->compact; i++)
      plan->compact = !tir_uses_var(ir, plan->ranges[i], tir_as(ir, s, TIR_LOOP)->loop.var);
  return true;
}

bool tir_check_cache_holds(struct tir *ir, const struct tir_cache_plan *plan, tir_block reader, ms_error *err) {
  assert(tir_is(ir, reader, TIR_BLOCK));
  const struct tir_buffer_node *n = tir_buffer_at(ir, plan->buffer);
  bool whole = true;
  for (uint32_t i = 0; i < plan->rank; i++)
    whole = whole && tir_is_const(ir, plan->ranges[2 * i], 0) &&
            tir_prove_equal(ir, plan->ranges[2 * i + 1], ir->operands.at[n->shape + i]);
  return whole || !plan->compact || tir_reads_are_covered(ir, reader, plan->scope) ||
         tir_refuse(ir, err, MS_READS_NOT_COVERED, reader, "block `%s` reads more than is written before it",
                    tir_block_name(ir, reader));
}

/* Loops inside `block` define variables that mean nothing outside. */
static bool is_free_of_inner_vars(const struct tir *ir, tir_block block, tir_stmt inner, tir_expr e) {
  for (tir_stmt s = tir_stmt_at(ir, inner)->parent; s != block; s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_LOOP) && tir_uses_var(ir, e, tir_as(ir, s, TIR_LOOP)->loop.var)) return false;
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span iters = tir_block_at(ir, s)->iters;
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
      if (tir_uses_var(ir, e, ir->iters.at[i].var)) return false;
  }
  return true;
}

tir_expr tir_nested_predicate(struct tir *ir, tir_block block, tir_buffer buffer, bool write) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  tir_expr any = TIR_NONE;
  uint32_t uses = write ? tir_buffer_at(ir, buffer)->writers : tir_buffer_at(ir, buffer)->readers;
  for (uint32_t u = uses; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (!tir_is_below(ir, b, block)) continue;
    tir_expr predicate = tir_as(ir, b, TIR_BLOCK)->block.predicate;
    if (!predicate || !is_free_of_inner_vars(ir, block, b, predicate)) return TIR_NONE;
    any = any ? tir_make(ir, TIR_OR, any, predicate) : predicate;
  }
  return any;
}

/* ---- Making ---- */

static tir_symbol name_of_cache(struct tir *ir, tir_symbol buffer, const char *storage) {
  char name[256];
  size_t first = ir->symbols.at[buffer].length, second = strlen(storage);
  if (first + second + 1 > sizeof name) return tir_symbol_format(ir, "%s_%s", tir_text(ir, buffer), storage);
  memcpy(name, tir_text(ir, buffer), first);
  name[first] = '_';
  memcpy(name + first + 1, storage, second);
  return tir_symbol_n(ir, name, first + 1 + second);
}

/* The scope matches a part of another buffer as it: variables in its strides have their values after what the scope
 * allocates. */
static bool is_matched_by(const struct tir *ir, tir_block scope, tir_buffer buffer) {
  return tir_buffer_at(ir, buffer)->where == scope && !tir_allocates(ir, scope, buffer);
}

tir_buffer tir_make_cache(struct tir *ir, const struct tir_cache_plan *plan) {
  assert(tir_is(ir, plan->scope, TIR_BLOCK));
  struct tir_buffer_node made = *tir_buffer_at(ir, plan->buffer);
  tir_expr shape[TIR_MOST_CACHED_RANK];
  for (uint32_t i = 0; i < plan->rank; i++)
    shape[i] = plan->compact ? plan->ranges[2 * i + 1] : ir->operands.at[made.shape + i];
  tir_symbol name = tir_free_block_name(ir, name_of_cache(ir, made.name, plan->storage)); /* its block has it too */
  tir_symbol storage = tir_symbol_of(ir, plan->storage);
  tir_buffer cache = tir_new_buffer(ir, name, made.type, shape, plan->rank, storage);
  struct tir_buffer_node *n = tir_buffer_at(ir, cache);
  if (!is_matched_by(ir, plan->scope, plan->buffer)) n->strides = made.strides;
  n->alignment = made.alignment;
  n->offset_factor = made.offset_factor;
  n->user_annotated = made.user_annotated;
  n->axis_separators = made.axis_separators;
  tir_add_alloc(ir, plan->scope, cache);
  return cache;
}

static tir_var new_var(struct tir *ir, enum tir_var_kind kind, tir_symbol stem, uint32_t i, tir_expr zero,
                       tir_expr extent) {
  return tir_new_var(ir, kind, tir_name_ordinal(ir, stem, i), tir_type_of(ir, extent), zero, extent);
}

static tir_expr plus(struct tir *ir, tir_expr min, tir_expr e) {
  return tir_is_const(ir, min, 0) ? e : tir_add(ir, min, e);
}

/* The copy's loops and iterations, and what they touch: in the buffer, in the cache. */
static void make_iterations(struct tir *ir, const struct tir_cache_plan *plan, struct tir_copy_stage *stage,
                            tir_expr *in_buffer, tir_expr *in_cache) {
  tir_expr zero = TIR_NONE;
  tir_symbol loop_stem = tir_symbol_of(ir, "ax"), iter_stem = tir_symbol_of(ir, "v");
  for (uint32_t i = 0; i < plan->rank; i++) {
    tir_expr min = plan->ranges[2 * i], extent = plan->ranges[2 * i + 1];
    tir_type type = tir_type_of(ir, extent);
    if (!zero || tir_type_of(ir, zero) != type) zero = tir_int(ir, type, 0);
    stage->loops[i] = new_var(ir, TIR_VAR_LOOP, loop_stem, i, zero, extent);
    tir_expr loop = tir_var_expr(ir, stage->loops[i]);
    if (tir_type_of(ir, min) != type) min = tir_cast(ir, type, min);
    tir_expr domain = plan->compact ? extent : ir->operands.at[tir_buffer_at(ir, plan->buffer)->shape + i];
    tir_type own = tir_type_of(ir, domain);
    tir_var v = new_var(ir, TIR_VAR_ITER, iter_stem, i, own == type ? zero : tir_int(ir, own, 0), domain);
    tir_expr binding = plan->compact ? loop : plus(ir, min, loop);
    stage->iters[i] = (struct tir_iter){v, TIR_SPATIAL, own == type ? binding : tir_cast(ir, own, binding)};
    in_cache[i] = tir_var_expr(ir, v);
    in_buffer[i] = plan->compact ? plus(ir, min, in_cache[i]) : in_cache[i];
  }
}

static void put_in_place(struct tir *ir, const struct tir_cache_plan *plan, tir_stmt s) {
  if (plan->before)
    tir_insert_before(ir, plan->before, s);
  else
    tir_append(ir, plan->scope, TIR_BODY, s);
}

tir_block tir_make_cache_stage(struct tir *ir, const struct tir_cache_plan *plan, tir_buffer cache, bool back) {
  assert(tir_is_buffer(ir, cache));
  struct tir_copy_stage stage;
  tir_block block;
  stage.name = tir_buffer_at(ir, cache)->name;
  stage.from = back ? cache : plan->buffer, stage.to = back ? plan->buffer : cache;
  stage.loop_count = stage.iter_count = stage.from_rank = stage.to_rank = plan->rank;
  stage.predicate = plan->predicate;
  stage.inside = true; /* the region is cut to the buffer */
  make_iterations(ir, plan, &stage, back ? stage.to_at : stage.from_at, back ? stage.from_at : stage.to_at);
  put_in_place(ir, plan, tir_make_copy_stage(ir, &stage, &block));
  return block;
}

/* ---- Redirecting ---- */

struct redirection {
  const struct tir_cache_plan *plan;
  tir_buffer cache;
};

static tir_expr in_cache(struct tir *ir, const struct tir_cache_plan *plan, uint32_t i, tir_expr index) {
  tir_expr min = plan->ranges[2 * i];
  if (!plan->compact || tir_is_const(ir, min, 0)) return index;
  if (tir_at(ir, index)->kind == TIR_SLICE) {
    struct tir_expr_node n = *tir_at(ir, index);
    tir_expr start = in_cache(ir, plan, i, n.a);
    return tir_slice(ir, start, in_cache(ir, plan, i, n.b), n.c);
  }
  tir_type type = tir_type_of(ir, index);
  if (tir_type_of(ir, min) != type) min = tir_cast(ir, tir_type_with_lanes(type, 1), min);
  if (tir_type_lanes(type) > 1) min = tir_unary(ir, TIR_BROADCAST, type, min);
  return tir_sub(ir, index, min);
}

static tir_expr load_of_cache(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct redirection *r = context;
  tir_expr moved[TIR_MOST_CACHED_RANK];
  assert(count == r->plan->rank);
  for (uint32_t i = 0; i < count; i++) moved[i] = in_cache(ir, r->plan, i, indices[i]);
  return tir_load(ir, r->cache, moved, count, TIR_NONE);
}

static void redirect_stores(struct tir *ir, const struct redirection *r, tir_block block) {
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    if (tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == r->plan->buffer) {
      tir_expr moved[TIR_MOST_CACHED_RANK];
      uint32_t indices = tir_as(ir, s, TIR_STORE)->store.indices;
      for (uint32_t i = 0; i < r->plan->rank; i++) moved[i] = in_cache(ir, r->plan, i, ir->operands.at[indices + i]);
      uint32_t first = tir_add_operands(ir, moved, r->plan->rank);
      tir_as(ir, s, TIR_STORE)->store.buffer = r->cache;
      tir_as(ir, s, TIR_STORE)->store.indices = first;
    }
  }
}

static struct tir_region region_of_cache(struct tir *ir, const void *context, struct tir_region region) {
  const struct redirection *r = context;
  if (!r->plan->compact) return (struct tir_region){r->cache, region.ranges};
  tir_expr ranges[2 * TIR_MOST_CACHED_RANK];
  for (uint32_t i = 0; i < r->plan->rank; i++) {
    ranges[2 * i] = in_cache(ir, r->plan, i, ir->operands.at[region.ranges + 2 * i]);
    ranges[2 * i + 1] = ir->operands.at[region.ranges + 2 * i + 1];
  }
  return tir_new_region(ir, r->cache, ranges);
}

void tir_redirect_to_cache(struct tir *ir, const struct tir_cache_plan *plan, tir_buffer cache, tir_block block) {
  assert(tir_is_buffer(ir, cache) && tir_is(ir, block, TIR_BLOCK));
  struct redirection r = {plan, cache};
  tir_change_regions(ir, block, plan->buffer, region_of_cache, &r);
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
    struct tir_region source = ir->matches.at[i].source;
    if (source.buffer == plan->buffer) source = region_of_cache(ir, &r, source);
    ir->matches.at[i].source = source;
  }
  redirect_stores(ir, &r, block);
  struct tir_load_rule rule = {plan->buffer, cache, load_of_cache, &r};
  tir_rewrite_own_loads(ir, &rule, block);
  if (plan->places_too) tir_rewrite_region_loads(ir, &rule, block);
}
