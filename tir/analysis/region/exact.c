/* Exact regions: whether what a block declares to write is what it writes. Where it is more, order and cover cannot be
 * seen from regions. The parts of a partitioned loop are such blocks. */
#include "tir/analysis/analysis.h"
#include "tir/analysis/order/order.h"

#include <string.h>

static bool same_element(const struct tir *ir, tir_stmt a, tir_stmt b) {
  const struct tir_stmt_node *x = tir_as(ir, a, TIR_STORE), *y = tir_as(ir, b, TIR_STORE);
  return tir_same_operands(ir, x->store.indices, y->store.indices, tir_buffer_at(ir, x->store.buffer)->rank);
}

enum { MOST_LOOPS = 32 };

/* The loops around the store, in the block, leave elements out between the first and the last that it stores to. */
static bool is_strided(struct tir *ir, tir_block block, tir_stmt store) {
  tir_var vars[MOST_LOOPS];
  uint32_t count = 0;
  for (tir_stmt s = tir_stmt_at(ir, store)->parent; s != block; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || count == MOST_LOOPS) return false;
    vars[count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
  }
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++) {
    tir_expr index = ir->operands.at[n.store.indices + d];
    if (tir_density_of(ir, TIR_NONE, index, tir_int(ir, tir_type_of(ir, index), 1), vars, count) == TIR_STRIDED)
      return true;
  }
  return false;
}

/* What loops around the store, in the block, change says where it stores: their variables, or what is loaded. */
static bool moves(const struct tir *ir, tir_block block, tir_stmt store) {
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  for (tir_stmt s = n.parent; s != block; s = tir_stmt_at(ir, s)->parent)
    for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++) {
      tir_expr index = ir->operands.at[n.store.indices + d];
      bool repeats = tir_is(ir, s, TIR_LOOP) || tir_is(ir, s, TIR_WHILE);
      if (repeats && tir_at(ir, index)->flags & TIR_HAS_LOAD) return true;
      if (tir_is(ir, s, TIR_LOOP) && tir_uses_var(ir, index, tir_as(ir, s, TIR_LOOP)->loop.var)) return true;
    }
  return false;
}

/* The block stores one element of the buffer, or some with others between, and declares that it writes more; or a block
 * in it does. */
static bool writes_less(struct tir *ir, tir_block block, struct tir_region region) {
  tir_stmt first = TIR_NONE;
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (n.kind == TIR_BLOCK) {
      struct tir_span writes = tir_block_at(ir, s)->writes;
      for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
        if (ir->regions.at[i].buffer == region.buffer)
          return !tir_is_one_element(ir, ir->regions.at[i]) && writes_less(ir, s, ir->regions.at[i]);
    }
    bool stores = n.kind == TIR_STORE && n.store.buffer == region.buffer;
    if (stores && moves(ir, block, s) && !is_strided(ir, block, s)) return false; /* it may store all of it, in turn */
    if (stores && first && !same_element(ir, first, s)) return false;
    if (stores && !first) first = s;
  }
  return first != TIR_NONE;
}

static bool refuse_more(struct tir *ir, tir_block block, tir_buffer buffer, ms_error *err) {
  return tir_refuse(ir, err, MS_WRITE_NOT_EXACT, block, "block `%s` declares that it writes more of `%s` than it does",
                    tir_block_name(ir, block), tir_buffer_name(ir, buffer));
}

bool tir_check_writes_exact(struct tir *ir, tir_block block, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    struct tir_region region = ir->regions.at[i];
    if (tir_is_one_element(ir, region) || !writes_less(ir, block, region)) continue;
    return refuse_more(ir, block, region.buffer, err);
  }
  return true;
}

/* ---- Less than all of a region ---- */

/* Expressions `stride` apart, as indices are by one and minima of a region by two. */
struct places {
  uint32_t first, stride, count;
};

static bool depend_on(const struct tir *ir, struct places p, tir_var v) {
  for (uint32_t i = 0; i < p.count; i++)
    if (tir_uses_var(ir, ir->operands.at[p.first + i * p.stride], v)) return true;
  return false;
}

static int64_t extent_of(const struct tir *ir, tir_expr extent) {
  return tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : TIR_POS_INF;
}

/* How many places there are, at most, while `s`, in the block, and the loops and blocks around it run. */
static int64_t count_places(const struct tir *ir, tir_block block, tir_stmt s, struct places p) {
  int64_t count = 1;
  for (; s != block; s = tir_stmt_at(ir, s)->parent) {
    struct tir_span iters = tir_is(ir, s, TIR_BLOCK) ? tir_block_at(ir, s)->iters : (struct tir_span){0, 0};
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
      if (depend_on(ir, p, ir->iters.at[i].var))
        count = tir_sat_mul(count, extent_of(ir, ir->vars.at[ir->iters.at[i].var].extent));
    if (tir_is(ir, s, TIR_LOOP) && depend_on(ir, p, tir_as(ir, s, TIR_LOOP)->loop.var))
      count = tir_sat_mul(count, extent_of(ir, tir_as(ir, s, TIR_LOOP)->loop.extent));
  }
  return count;
}

/* Of the region, as far as it can be in the buffer. */
static int64_t volume_of(const struct tir *ir, struct tir_region region) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, region.buffer);
  int64_t volume = 1;
  for (uint32_t d = 0; d < n->rank; d++) {
    int64_t own = extent_of(ir, ir->operands.at[region.ranges + 2 * d + 1]);
    int64_t all = extent_of(ir, ir->operands.at[n->shape + d]);
    volume = tir_sat_mul(volume, own < all ? own : all);
  }
  return volume;
}

/* `s`, or what comes after the inits that it begins: what these write is written once more by what follows. */
static tir_stmt skip_inits(const struct tir *ir, tir_stmt s, tir_stmt top) {
  while (s && s != top && tir_stmt_at(ir, s)->list == TIR_INIT && tir_is(ir, tir_stmt_at(ir, s)->parent, TIR_BLOCK))
    s = tir_after(ir, s, top);
  return s;
}

/* By the stores in a block inside, or the statement itself; no number is known where there are none. */
static int64_t count_stores(const struct tir *ir, tir_block block, tir_stmt top, tir_buffer buffer) {
  struct places p = {.stride = 1, .count = tir_buffer_at(ir, buffer)->rank};
  int64_t count = 0;
  for (tir_stmt s = top; s; s = skip_inits(ir, tir_next(ir, s, top), top)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_BLOCK && tir_matches_part_of(ir, s, buffer)) return TIR_POS_INF;
    p.first = n->store.indices;
    if (n->kind == TIR_STORE && n->store.buffer == buffer) count = tir_sat_add(count, count_places(ir, block, s, p));
  }
  return count ? count : TIR_POS_INF;
}

/* The statement itself, or a block as it declares, or does if that is less. */
static int64_t count_stored(const struct tir *ir, tir_block block, tir_stmt s, tir_buffer buffer) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  int64_t count = 0;
  if (n->kind == TIR_STORE) return n->store.buffer == buffer ? count_stores(ir, block, s, buffer) : 0;
  struct tir_span writes = n->kind == TIR_BLOCK ? tir_block_at(ir, s)->writes : (struct tir_span){0, 0};
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    struct places p = {ir->regions.at[i].ranges, 2, tir_buffer_at(ir, buffer)->rank};
    if (ir->regions.at[i].buffer == buffer)
      count = tir_sat_add(count, tir_sat_mul(volume_of(ir, ir->regions.at[i]), count_places(ir, block, s, p)));
  }
  int64_t stores = count ? count_stores(ir, block, s, buffer) : 0;
  return stores < count ? stores : count;
}

static bool stores_fewer(const struct tir *ir, tir_block block, struct tir_region region) {
  int64_t volume = volume_of(ir, region), stored = 0;
  if (volume == 1 || volume == TIR_POS_INF || tir_matches_part_of(ir, block, region.buffer)) return false;
  for (tir_stmt s = skip_inits(ir, tir_next(ir, block, block), block); s && stored < volume;) {
    stored = tir_sat_add(stored, count_stored(ir, block, s, region.buffer));
    s = skip_inits(ir, tir_next_in_scope(ir, s, block), block);
  }
  return stored > 0 && stored < volume; /* none: it is written through a pointer */
}

/* ---- Under conditions ---- */

static bool stores_same(const struct tir *ir, tir_stmt a, tir_stmt b) {
  const struct tir_stmt_node *x = tir_stmt_at(ir, a), *y = tir_stmt_at(ir, b);
  return x->kind == TIR_STORE && !x->store.predicate && x->store.buffer == y->store.buffer && same_element(ir, a, b);
}

/* The list has a statement that stores the element whatever holds: a store, or a condition both of whose branches
 * do. */
static bool surely_stores(const struct tir *ir, tir_stmt first, tir_stmt store) {
  for (tir_stmt s = first; s; s = tir_stmt_at(ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (stores_same(ir, s, store)) return true;
    if (n->kind == TIR_IF && surely_stores(ir, n->first[TIR_BODY], store) &&
        surely_stores(ir, n->first[TIR_ELSE], store))
      return true;
  }
  return false;
}

/* The store is under no condition, or what it stores to is stored to in any case: in a list around it, or by the
 * init. */
static bool is_sure(struct tir *ir, tir_block block, tir_stmt store) {
  if (!tir_nearest_condition(ir, store, block) && !tir_as(ir, store, TIR_STORE)->store.predicate) return true;
  for (tir_stmt s = store; s != block; s = tir_stmt_at(ir, s)->parent) {
    tir_stmt parent = tir_stmt_at(ir, s)->parent;
    if ((parent == block || !tir_nearest_condition(ir, s, block)) &&
        surely_stores(ir, tir_stmt_at(ir, parent)->first[tir_stmt_at(ir, s)->list], store))
      return true;
  }
  return !tir_updates_unbegun(ir, block) && surely_stores(ir, tir_stmt_at(ir, block)->first[TIR_INIT], store);
}

/* Where the store is, says an iteration of a reduction: an init leaves out all but the first. */
static bool follows_reduction(const struct tir *ir, tir_block block, tir_stmt store) {
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind == TIR_SPATIAL || tir_is_const(ir, ir->vars.at[iter.var].extent, 1)) continue;
    for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++)
      if (tir_uses_var(ir, ir->operands.at[n.store.indices + d], iter.var)) return true;
  }
  return false;
}

static bool is_in_init(const struct tir *ir, tir_stmt s, tir_block block) {
  while (tir_stmt_at(ir, s)->parent != block) s = tir_stmt_at(ir, s)->parent;
  return tir_stmt_at(ir, s)->list == TIR_INIT;
}

/* The store is to the buffer, or to a part of it under the name by which a block around matches that. */
static bool stores_into(const struct tir *ir, tir_stmt store, tir_buffer buffer) {
  tir_buffer stored = tir_as(ir, store, TIR_STORE)->store.buffer;
  if (stored == buffer) return true;
  for (tir_block b = tir_parent_block(ir, store); b; b = tir_parent_block(ir, b)) {
    struct tir_span matches = tir_block_at(ir, b)->matches;
    for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
      if (ir->matches.at[i].buffer == stored && ir->matches.at[i].source.buffer == buffer) return true;
  }
  return false;
}

/* A statement of the block, or of blocks in it, stores to the buffer where a condition holds, and nothing does where it
 * does not. Of what the body stores to, the init may leave out what it likes. */
static bool stores_under_condition(struct tir *ir, tir_block block, tir_buffer buffer) {
  bool begun = false, updated = false;
  if (tir_plainly_updated(ir, block) == buffer) return false;
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    bool stores = n.kind == TIR_STORE && stores_into(ir, s, buffer);
    if (stores && is_in_init(ir, s, block)) {
      begun |= !is_sure(ir, block, s) || follows_reduction(ir, block, s) || tir_updates_unbegun(ir, block);
      continue;
    }
    updated |= stores || (n.kind == TIR_BLOCK && tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer));
    if (stores && !is_sure(ir, block, s)) return true;
    if (n.kind == TIR_BLOCK && tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer) &&
        (tir_nearest_condition(ir, s, block) || stores_under_condition(ir, s, buffer)))
      return true;
  }
  return begun && !updated;
}

/* ---- As far as it can be shown ---- */

enum { MOST_RANK = 16 };

/* The box that `ranges`, seen from `inner`, surely cover of the buffer in an iteration of the block; `given` holds. */
static bool find_box(struct tir *ir, tir_block block, tir_stmt inner, tir_buffer buffer, tir_expr *ranges,
                     tir_expr given, struct tir_interval *out) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, count = 0;
  tir_expr predicate = TIR_NONE;
  tir_var vars[MOST_LOOPS];
  for (tir_stmt s = inner; s != block; s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_LOOP)) {
      if (count == MOST_LOOPS) return false;
      vars[count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
    }
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    tir_subst_iters(ir, s);
    for (uint32_t i = 0; i < 2 * rank; i++) ranges[i] = tir_subst(ir, ranges[i]);
    if (predicate) predicate = tir_subst(ir, predicate);
    tir_subst_clear(ir);
    predicate = tir_and(ir, predicate, tir_as(ir, s, TIR_BLOCK)->block.predicate);
  }
  predicate = tir_limits_inside(ir, buffer, ranges, predicate);
  return tir_region_surely(ir, ranges, rank, vars, count, predicate, given, out);
}

/* Of a store in the block, or in one in it. */
static bool find_stored(struct tir *ir, tir_block block, tir_stmt store, tir_expr given, struct tir_interval *out) {
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  tir_expr ranges[2 * MOST_RANK];
  tir_point_ranges(ir, tir_operands(ir, n.store.indices), tir_buffer_at(ir, n.store.buffer)->rank, ranges);
  return find_box(ir, block, n.parent, n.store.buffer, ranges, given, out);
}

/* Of a block in it that matches a part of the buffer, of which it writes all. */
static bool find_matched(struct tir *ir, tir_block block, tir_block inner, tir_buffer buffer, tir_expr given,
                         struct tir_interval *out) {
  struct tir_span matches = tir_block_at(ir, inner)->matches;
  tir_expr ranges[2 * MOST_RANK];
  uint32_t m = matches.first;
  while (m < matches.first + matches.count && ir->matches.at[m].source.buffer != buffer) m++;
  assert(m < matches.first + matches.count);
  for (uint32_t i = 0; i < 2 * tir_buffer_at(ir, buffer)->rank; i++)
    ranges[i] = ir->operands.at[ir->matches.at[m].source.ranges + i];
  return find_box(ir, block, inner, buffer, ranges, given, out);
}

/* An init of a block in it, or its own where that may begin less than the body updates. */
static bool is_begun_apart(struct tir *ir, tir_block block, tir_stmt store) {
  for (tir_stmt s = store; s != block; s = tir_stmt_at(ir, s)->parent)
    if (tir_stmt_at(ir, s)->list == TIR_INIT && tir_is(ir, tir_stmt_at(ir, s)->parent, TIR_BLOCK) &&
        (tir_stmt_at(ir, s)->parent != block || tir_updates_unbegun(ir, block)))
      return true;
  return false;
}

/* The block, in this one, matches a part of the buffer and writes it. */
static bool writes_matched(const struct tir *ir, tir_block block, tir_stmt s, tir_buffer buffer) {
  return s != block && tir_is(ir, s, TIR_BLOCK) && tir_matches_part_of(ir, s, buffer) &&
         tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer);
}

/* The stores of the block, and of blocks in it, together write all of the region; of what is written through a pointer,
 * or in a part that the block itself matches, nothing is known. */
static bool stores_surely(struct tir *ir, tir_block block, struct tir_region region, tir_expr given) {
  struct tir_interval all[MOST_RANK], one[MOST_RANK], wanted[MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  bool any = false, stored = false;
  if (rank > MOST_RANK) return false;
  for (uint32_t d = 0; d < rank; d++)
    wanted[d] = tir_interval_of(ir, ir->operands.at[region.ranges + 2 * d], ir->operands.at[region.ranges + 2 * d + 1]);
  for (tir_stmt s = block; s; s = tir_next(ir, s, block)) {
    if (s == block && tir_matches_part_of(ir, s, region.buffer)) return true;
    bool matched = writes_matched(ir, block, s, region.buffer);
    bool stores = tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == region.buffer;
    if (!matched && !stores) continue;
    stored = true;
    if (is_begun_apart(ir, block, s)) continue;
    if (stores ? !is_sure(ir, block, s) || !find_stored(ir, block, s, given, one)
               : !find_matched(ir, block, s, region.buffer, given, one))
      continue;
    if (any)
      tir_join_box(ir, all, one, rank);
    else
      memcpy(all, one, rank * sizeof *one);
    any = true;
    if (tir_region_covers(ir, region.buffer, all, wanted)) return true;
  }
  return !stored;
}

static bool holds_blocks(const struct tir *ir, tir_block block) {
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block))
    if (tir_is(ir, s, TIR_BLOCK)) return true;
  return false;
}

bool tir_check_stores_all(struct tir *ir, tir_block block, tir_buffer buffer, tir_expr given, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span writes = tir_block_at(ir, block)->writes;
  if (stores_under_condition(ir, block, buffer))
    return tir_refuse(ir, err, MS_WRITE_NOT_EXACT, block, "block `%s` writes `%s` under a condition",
                      tir_block_name(ir, block), tir_buffer_name(ir, buffer));
  bool blocks = holds_blocks(ir, block);
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    struct tir_region region = ir->regions.at[i];
    if (region.buffer != buffer) continue;
    if (stores_fewer(ir, block, region) || (blocks && !stores_surely(ir, block, region, given)))
      return refuse_more(ir, block, buffer, err);
  }
  return true;
}
