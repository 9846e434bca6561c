/* Compact: an allocated buffer shrinks to the box that is touched while it lives; its indices count from the box's
 * corner. A cache of a tile thus becomes a packed tile.
 * Requires: flat allocations. Gives: smaller allocations. Keeps: everything else. A dimension whose touched range is
 * not known, or no constant extent, stays whole; so does a buffer that views or pointers reach. Where a condition
 * holds around an access, what it says of its left side holds in the access's indices too: threads that share out
 * what does not divide touch no more than there is; where that gives no constant extent, or a greater one than without,
 * as of the last of tiles that do not divide a result, it is left aside. Buffers that blocks match others on, which
 * calls have pointers to, shrink while there are blocks: what is matched is touched. Their rows are set apart as
 * StorageAlign says. */
#include "tir/analysis/analysis.h"
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

struct compaction {
  struct tir *ir;
  tir_buffer buffer;
  tir_stmt alloc;
  struct tir_touched touched[TIR_MOST_RANK], unguarded[TIR_MOST_RANK]; /* with what conditions say, and without */
};

/* Uses only what is defined outside the allocation's list. */
static bool is_outer(struct tir *ir, tir_expr e, const tir_var *inner, uint32_t count) {
  return !tir_uses_any_var(ir, e, inner, count) && !(tir_at(ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_CALL));
}

enum { MOST_LOOPS = 128 };

/* The loops that run while the buffer lives, down to s; and loops of one iteration, which some indices leave out. Gives
 * their number, which may be more than MOST_LOOPS. */
static uint32_t loops_while_alive(const struct compaction *c, tir_stmt s, tir_var *vars) {
  const struct tir *ir = c->ir;
  tir_stmt list = tir_stmt_at(ir, c->alloc)->parent;
  uint32_t count = tir_running_loops(ir, c->alloc, list, tir_buffer_at(ir, c->buffer)->scope, vars, MOST_LOOPS);
  bool alive = true;
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent) {
    alive &= p != list;
    if (!tir_is(ir, p, TIR_LOOP) || !(alive || tir_loop_extent(ir, p) == 1)) continue;
    if (count < MOST_LOOPS) vars[count] = tir_as(ir, p, TIR_LOOP)->loop.var;
    count++;
  }
  return count;
}

/* What a box touches of a dimension, from its first index to its last, over the loops. */
static struct tir_interval range_of(struct tir *ir, tir_expr first, tir_expr last, const tir_var *vars,
                                    uint32_t count) {
  struct tir_interval now = tir_relax(ir, first, vars, count);
  if (last != first) now.max = tir_relax(ir, last, vars, count).max;
  bool outer = (!now.min || is_outer(ir, now.min, vars, count)) && (!now.max || is_outer(ir, now.max, vars, count));
  return outer ? now : (struct tir_interval){TIR_NONE, TIR_NONE, false};
}

/* Statement s touches a box of the buffer, from first to last. */
static void widen(struct compaction *c, tir_stmt s, const tir_expr *first, const tir_expr *last, uint32_t rank) {
  assert(rank == tir_buffer_at(c->ir, c->buffer)->rank && rank <= TIR_MOST_RANK);
  struct tir *ir = c->ir;
  tir_var vars[MOST_LOOPS + TIR_MOST_GUARDS];
  struct tir_guards guards = tir_find_guards(ir, s);
  uint32_t count = loops_while_alive(c, s, vars);
  bool few = count <= MOST_LOOPS;
  uint32_t loops = count;
  if (few) count += tir_guard_vars(ir, &guards, vars + count);
  for (uint32_t i = 0; i < rank; i++) {
    struct tir_interval now = {TIR_NONE, TIR_NONE, false}, unguarded = now;
    if (few && tir_is_index(ir, first[i]) && tir_is_index(ir, last[i])) {
      tir_expr from = tir_over_loops(ir, s, first[i]), to = last[i] == first[i] ? from : tir_over_loops(ir, s, last[i]);
      unguarded = range_of(ir, from, to, vars, loops);
      tir_expr guarded = tir_guarded(ir, from, &guards);
      now = range_of(ir, guarded, to == from ? guarded : tir_guarded(ir, to, &guards), vars, count);
    }
    tir_touch(ir, &c->touched[i], now);
    tir_touch(ir, &c->unguarded[i], unguarded);
  }
}

static void widen_by_access(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct compaction *c = data;
  (void)ir, (void)writes;
  if (a->buffer == c->buffer) widen(c, s, a->indices, a->indices, a->count);
}

static tir_expr from_corner(struct compaction *c, uint32_t dim, tir_expr at) {
  struct tir *ir = c->ir;
  if (c->touched[dim].whole) return at;
  return tir_sub(ir, at,
                 tir_cast(ir, tir_type_of(ir, at), c->touched[dim].at.min)); /* indices may be of several types */
}

static bool move_to_corner(struct tir *ir, void *data, struct access *a) {
  struct compaction *c = data;
  (void)ir;
  if (a->buffer != c->buffer) return false;
  for (uint32_t i = 0; i < a->count; i++) a->indices[i] = from_corner(c, i, a->indices[i]);
  return true;
}

/* ---- Blocks, that match others on the buffer ---- */

static void widen_by_match(struct compaction *c, tir_block block) {
  struct tir *ir = c->ir;
  struct tir_span matches = tir_block_at(ir, block)->matches;
  uint32_t rank = tir_buffer_at(ir, c->buffer)->rank;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
    struct tir_region source = ir->matches.at[i].source;
    tir_expr first[TIR_MOST_RANK], last[TIR_MOST_RANK];
    if (source.buffer != c->buffer) continue;
    for (uint32_t d = 0; d < rank; d++) {
      tir_expr extent = ir->operands.at[source.ranges + 2 * d + 1];
      first[d] = ir->operands.at[source.ranges + 2 * d];
      last[d] = tir_add(ir, first[d], tir_sub(ir, extent, tir_int(ir, tir_type_of(ir, extent), 1)));
    }
    widen(c, block, first, last, rank);
  }
}

static void move_region(struct compaction *c, struct tir_region *region) {
  struct tir *ir = c->ir;
  tir_expr ranges[2 * TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, c->buffer)->rank;
  if (region->buffer != c->buffer) return;
  memcpy(ranges, ir->operands.at + region->ranges, 2 * rank * sizeof *ranges);
  for (uint32_t d = 0; d < rank; d++) ranges[2 * d] = from_corner(c, d, ranges[2 * d]);
  region->ranges = tir_add_operands(ir, ranges, 2 * rank);
}

static void move_block(struct compaction *c, tir_block block) {
  struct tir *ir = c->ir;
  struct tir_block_record b = *tir_block_at(ir, block);
  for (uint32_t i = 0; i < b.reads.count; i++) move_region(c, &ir->regions.at[b.reads.first + i]);
  for (uint32_t i = 0; i < b.writes.count; i++) move_region(c, &ir->regions.at[b.writes.first + i]);
  for (uint32_t i = 0; i < b.matches.count; i++) move_region(c, &ir->matches.at[b.matches.first + i].source);
}

/* By what a block says, or blocks that are gone have said. */
static void pad_rows(struct compaction *c, const struct lowering *low, tir_block block, tir_expr *shape,
                     uint32_t rank) {
  struct tir *ir = c->ir;
  int64_t extents[TIR_MOST_RANK];
  for (uint32_t d = 0; d < rank; d++) extents[d] = tir_is_int(ir, shape[d]) ? tir_at(ir, shape[d])->imm : -1;
  if (block) tir_pad_rows(ir, block, c->buffer, extents, rank);
  for (uint32_t i = 0; i < low->apart_count && !block; i++)
    if (low->apart[i].buffer == c->buffer) tir_pad_row(ir, low->apart[i].entry, extents, rank);
  for (uint32_t d = 0; d < rank; d++)
    if (extents[d] >= 0) shape[d] = tir_int(ir, tir_type_of(ir, shape[d]), extents[d]);
}

/* ---- */

/* Whether it needs no more room than the other, as far as is known, of a dimension of that size. */
static bool needs_no_more(struct tir *ir, const struct tir_touched *t, const struct tir_touched *other, tir_expr size) {
  if (t->whole || other->whole) return !t->whole;
  return tir_touched_extent(ir, t, size) <= tir_touched_extent(ir, other, size);
}

static void compact_one(struct lowering *low, tir_stmt alloc, const struct lower_users *users) {
  struct tir *ir = low->ir;
  struct compaction c = {ir, tir_stmt_at(ir, alloc)->alloc.buffer, alloc, {{0}}, {{0}}};
  assert(tir_is(ir, alloc, TIR_ALLOC) && tir_buffer_at(ir, c.buffer)->where == alloc);
  uint32_t rank = tir_buffer_at(ir, c.buffer)->rank;
  if (rank > TIR_MOST_RANK || tir_buffer_at(ir, c.buffer)->data || tir_buffer_at(ir, c.buffer)->strides.count) return;
  uint32_t own = users->first[c.buffer];
  for (uint32_t u = own; u; u = users->at[u].next) lower_visit_stmt(ir, users->at[u].s, widen_by_access, &c);
  for (uint32_t u = own; u; u = users->at[u].next)
    if (tir_is(ir, users->at[u].s, TIR_BLOCK)) widen_by_match(&c, users->at[u].s);
  tir_expr shape[TIR_MOST_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    shape[i] = ir->operands.at[tir_buffer_at(ir, c.buffer)->shape + i];
    if (!c.touched[i].any) return;
    if (!needs_no_more(ir, &c.touched[i], &c.unguarded[i], shape[i])) c.touched[i] = c.unguarded[i];
    int64_t extent = tir_touched_extent(ir, &c.touched[i], shape[i]);
    c.touched[i].whole |= tir_is_const(ir, shape[i], extent);
    assert(c.touched[i].whole || extent >= 0);
    if (!c.touched[i].whole) shape[i] = tir_int(ir, tir_type_of(ir, shape[i]), extent);
  }
  for (uint32_t u = own; u; u = users->at[u].next) lower_rewrite_stmt(ir, users->at[u].s, move_to_corner, &c);
  for (uint32_t u = own; u; u = users->at[u].next) {
    if (!tir_is(ir, users->at[u].s, TIR_BLOCK)) continue;
    move_block(&c, users->at[u].s);
    pad_rows(&c, low, users->at[u].s, shape, rank);
  }
  pad_rows(&c, low, TIR_NONE, shape, rank);
  lower_spread_rows(ir, c.buffer, shape, rank);
  uint32_t first = tir_add_operands(ir, shape, rank);
  tir_buffer_at(ir, c.buffer)->shape = first;
}

/* A byte a buffer: 1 where a block matches another on it that calls have a pointer to. free() it. */
static uint8_t *find_matched(const struct tir *ir, tir_stmt top, const uint8_t *pointers) {
  uint8_t *matched = calloc(ir->buffers.count, 1);
  if (!matched) abort();
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span matches = tir_block_at(ir, s)->matches;
    for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
      if (pointers[ir->matches.at[i].buffer]) matched[ir->matches.at[i].source.buffer] = 1;
  }
  return matched;
}

void lower_compact_matched(struct lowering *low) {
  struct tir *ir = low->ir;
  uint8_t *pointers = lower_pointers(ir, low->body), *matched = find_matched(ir, low->body, pointers);
  struct lower_users users = lower_find_users(ir, low->body);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_buffer buffer = tir_stmt_at(ir, s)->alloc.buffer;
    if (matched[buffer] && !pointers[buffer]) compact_one(low, s, &users);
  }
  lower_free_users(&users);
  free(matched);
  free(pointers);
}

bool lower_compact(struct lowering *low) {
  uint8_t *pointers = lower_pointers(low->ir, low->body);
  struct lower_users users = lower_find_users(low->ir, low->body);
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body)) {
    assert(!tir_is(low->ir, s, TIR_BLOCK));
    if (tir_is(low->ir, s, TIR_ALLOC) && !pointers[tir_stmt_at(low->ir, s)->alloc.buffer]) compact_one(low, s, &users);
  }
  lower_free_users(&users);
  free(pointers);
  return true;
}
