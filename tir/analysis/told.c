/* Whether the regions of blocks tell what is in them. Primitives go by regions: where a block says less than it does,
 * or says to write more than it does, order and cover cannot be told from them. The parts of a partitioned loop are
 * such blocks. */
#include "analysis.h"
#include "loads.h"

static bool allocates(const struct tir *ir, tir_block block, tir_buffer buffer) {
  struct tir_span allocs = tir_block_at(ir, block)->allocs;
  for (uint32_t i = allocs.first; i < allocs.first + allocs.count; i++)
    if (ir->operands.at[i] == buffer) return true;
  return false;
}

/* The block around `block` and below the scope that does not tell of the access; TIR_NONE: all do. */
static tir_block find_silent(const struct tir *ir, tir_block block, tir_block scope, tir_buffer buffer, bool writes) {
  for (tir_block b = tir_parent_block(ir, block); b && b != scope; b = tir_parent_block(ir, b)) {
    const struct tir_block_record *r = tir_block_at(ir, b);
    if (allocates(ir, b, buffer)) return TIR_NONE;
    if (!tir_has_region_of(ir, writes ? r->writes : r->reads, buffer) && !tir_has_region_of(ir, r->writes, buffer))
      return b;
  }
  return TIR_NONE;
}

static const char *const by_hand[] = {"explicit_read_region", "explicit_write_region"};

void tir_note_stated(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span annotations = tir_stmt_at(ir, block)->annotations;
  struct tir_span spans[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  if (!tir_annotation(ir, annotations, by_hand[0]) && !tir_annotation(ir, annotations, by_hand[1])) return;
  for (int w = 0; w < 2; w++)
    for (uint32_t i = spans[w].first; i < spans[w].first + spans[w].count; i++)
      tir_buffer_at(ir, ir->regions.at[i].buffer)->stated = 1;
}

static bool uses_buffer(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_buffer(ir, e, *(const tir_buffer *)context);
}

bool tir_matches_part_of(const struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    if (ir->matches.at[i].source.buffer == buffer) return true;
  return false;
}

/* The block itself uses the buffer, or matches a part of it, and does not tell. */
static bool hides_buffer(struct tir *ir, tir_block block, tir_buffer buffer) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  if (tir_has_region_of(ir, r->reads, buffer) || tir_has_region_of(ir, r->writes, buffer)) return false;
  for (tir_stmt s = tir_next(ir, block, block); s;) {
    if (tir_is(ir, s, TIR_STORE) && tir_stmt_at(ir, s)->store.buffer == buffer) return true;
    s = tir_is(ir, s, TIR_BLOCK) ? tir_after(ir, s, block) : tir_next(ir, s, block);
  }
  return tir_matches_part_of(ir, block, buffer) || tir_any_own_expr(ir, block, uses_buffer, &buffer);
}

bool tir_may_be_hidden(const struct tir *ir, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  tir_stmt where = tir_buffer_at(ir, buffer)->where;
  if (where && tir_is(ir, where, TIR_BLOCK)) return tir_block_at(ir, where)->facts & TIR_HIDDEN_INSIDE;
  uint32_t lists[] = {tir_buffer_at(ir, buffer)->readers, tir_buffer_at(ir, buffer)->writers};
  for (int i = 0; i < 2; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next)
      if (tir_block_at(ir, ir->uses.at[u].block)->facts & TIR_BLOCK_HIDES) return true;
  return false;
}

uint32_t tir_untold_users(struct tir *ir, tir_buffer buffer, tir_stmt top, tir_block *out, uint32_t most) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  uint32_t count = 0;
  if (!tir_may_be_hidden(ir, buffer)) return 0;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK) || !hides_buffer(ir, s, buffer)) continue;
    if (count < most) out[count] = s;
    count++;
  }
  return count;
}

/* The blocks in `block` write the buffer (or use it), and it tells so. */
static bool tells_of_inner(const struct tir *ir, tir_block block, tir_buffer buffer, bool only_writes) {
  const struct tir_block_record *told = tir_block_at(ir, block);
  if (tir_has_region_of(ir, told->writes, buffer)) return true;
  bool reads_told = only_writes || tir_has_region_of(ir, told->reads, buffer);
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer)) return false;
    if (!reads_told && tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer)) return false;
  }
  return true;
}

static bool hides_from(struct tir *ir, tir_block a, tir_block b) {
  for (tir_stmt s = b; s; s = tir_next(ir, s, b)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span regions[] = {tir_block_at(ir, s)->reads, tir_block_at(ir, s)->writes};
    for (int w = 0; w < 2; w++)
      for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++) {
        tir_buffer buffer = ir->regions.at[i].buffer;
        if (tir_untold_users(ir, buffer, a, NULL, 0) || !tells_of_inner(ir, a, buffer, w == 0)) return true;
      }
  }
  return false;
}

bool tir_share_untold(struct tir *ir, tir_block a, tir_block b) { return hides_from(ir, a, b) || hides_from(ir, b, a); }

bool tir_check_no_untold_users(struct tir *ir, tir_buffer buffer, tir_stmt top, ms_error *err) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  tir_block untold;
  if (!tir_untold_users(ir, buffer, top, &untold, 1)) return true;
  return tir_refuse(ir, err, MS_ACCESS_NOT_TOLD, untold, "block `%s` does not tell that it uses `%s`",
                    tir_block_name(ir, untold), tir_text(ir, tir_buffer_at(ir, buffer)->name));
}

bool tir_each_silent_use(struct tir *ir, tir_buffer buffer, tir_block scope, const struct tir_silent_visitor *visitor) {
  MS_CHECK(tir_is_buffer(ir, buffer) && tir_is(ir, scope, TIR_BLOCK));
  uint32_t lists[] = {tir_buffer_at(ir, buffer)->readers, tir_buffer_at(ir, buffer)->writers};
  for (int i = 0; i < 2; i++)
    for (uint32_t u = lists[i], next; u; u = next) {
      tir_block b = ir->uses.at[u].block;
      next = ir->uses.at[u].next;
      if (tir_parent_block(ir, b) == scope || !tir_is_below(ir, b, scope)) continue;
      tir_block silent = find_silent(ir, b, scope, buffer, i);
      if (silent && !visitor->visit(ir, visitor->context, (struct tir_silent_use){buffer, b, silent, i})) return false;
    }
  return true;
}

bool tir_refuse_silent_use(struct tir *ir, struct tir_silent_use use, ms_error *err) {
  return tir_refuse(ir, err, MS_ACCESS_NOT_TOLD, use.silent, "block `%s` does not tell that `%s` in it uses `%s`",
                    tir_block_name(ir, use.silent), tir_block_name(ir, use.user),
                    tir_text(ir, tir_buffer_at(ir, use.buffer)->name));
}

static bool refuse_any(struct tir *ir, void *context, struct tir_silent_use use) {
  return tir_refuse_silent_use(ir, use, context);
}

bool tir_check_accesses_told(struct tir *ir, tir_buffer buffer, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is_buffer(ir, buffer) && tir_is(ir, scope, TIR_BLOCK));
  return tir_each_silent_use(ir, buffer, scope, &(struct tir_silent_visitor){refuse_any, err});
}

static bool is_point(const struct tir *ir, struct tir_region region) {
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++)
    if (!tir_is_const(ir, ir->operands.at[region.ranges + 2 * d + 1], 1)) return false;
  return true;
}

static bool same_indices(const struct tir *ir, tir_stmt a, tir_stmt b) {
  uint32_t x = tir_stmt_at(ir, a)->store.indices, y = tir_stmt_at(ir, b)->store.indices;
  for (uint32_t d = 0; d < tir_buffer_at(ir, tir_stmt_at(ir, a)->store.buffer)->rank; d++)
    if (ir->operands.at[x + d] != ir->operands.at[y + d]) return false;
  return true;
}

enum { MOST_LOOPS = 32 };

/* The loops around the store, in the block, leave elements out between the first and the last that it stores to. */
static bool leaves_gaps(struct tir *ir, tir_block block, tir_stmt store) {
  tir_var vars[MOST_LOOPS];
  uint32_t count = 0;
  for (tir_stmt s = tir_stmt_at(ir, store)->parent; s != block; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || count == MOST_LOOPS) return false;
    vars[count++] = tir_stmt_at(ir, s)->loop.var;
  }
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++) {
    tir_expr index = ir->operands.at[n.store.indices + d];
    if (tir_find_gaps(ir, TIR_NONE, index, tir_int(ir, tir_type_of(ir, index), 1), vars, count) == TIR_GAPS)
      return true;
  }
  return false;
}

/* The block stores one element of the buffer, or some with gaps between, and says that it writes more; or a block in it
 * does. */
static bool writes_less(struct tir *ir, tir_block block, struct tir_region region) {
  tir_stmt first = TIR_NONE;
  bool loops = false;
  for (tir_stmt s = tir_next(ir, block, block); s;) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (n.kind == TIR_BLOCK) {
      struct tir_span writes = tir_block_at(ir, s)->writes;
      for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
        if (ir->regions.at[i].buffer == region.buffer)
          return !is_point(ir, ir->regions.at[i]) && writes_less(ir, s, ir->regions.at[i]);
    }
    loops |= n.kind == TIR_LOOP || n.kind == TIR_WHILE;
    bool stores = n.kind == TIR_STORE && n.store.buffer == region.buffer;
    if (stores && loops && !leaves_gaps(ir, block, s)) return false; /* it may store all of it, in turn */
    if (stores && first && !same_indices(ir, first, s)) return false;
    if (stores && !first) first = s;
    s = n.kind == TIR_BLOCK ? tir_after(ir, s, block) : tir_next(ir, s, block);
  }
  return first != TIR_NONE;
}

static bool refuse_more(struct tir *ir, tir_block block, tir_buffer buffer, ms_error *err) {
  return tir_refuse(ir, err, MS_WRITE_NOT_EXACT, block, "block `%s` says that it writes more of `%s` than it does",
                    tir_block_name(ir, block), tir_text(ir, tir_buffer_at(ir, buffer)->name));
}

bool tir_check_writes_told(struct tir *ir, tir_block block, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    struct tir_region region = ir->regions.at[i];
    if (is_point(ir, region) || !writes_less(ir, block, region)) continue;
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
    if (tir_is(ir, s, TIR_LOOP) && depend_on(ir, p, tir_stmt_at(ir, s)->loop.var))
      count = tir_sat_mul(count, extent_of(ir, tir_stmt_at(ir, s)->loop.extent));
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

/* The statement itself, or a block as it tells, or does if that is less. */
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
    s = skip_inits(ir, tir_is(ir, s, TIR_BLOCK) ? tir_after(ir, s, block) : tir_next(ir, s, block), block);
  }
  return stored > 0 && stored < volume; /* none: it is written through a pointer */
}

bool tir_check_stores_all(struct tir *ir, tir_block block, tir_buffer buffer, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    if (ir->regions.at[i].buffer == buffer && stores_fewer(ir, block, ir->regions.at[i]))
      return refuse_more(ir, block, buffer, err);
  return true;
}

/* The buffer is allocated between the two blocks. */
static bool is_inside(const struct tir *ir, tir_block b, tir_block block, tir_buffer buffer) {
  for (b = tir_parent_block(ir, b);; b = tir_parent_block(ir, b)) {
    if (allocates(ir, b, buffer)) return true;
    if (b == block) return false;
  }
}

bool tir_check_regions_told(const struct tir *ir, tir_block block, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  const struct tir_block_record *told = tir_block_at(ir, block);
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span regions[] = {tir_block_at(ir, s)->reads, tir_block_at(ir, s)->writes};
    for (int w = 0; w < 2; w++)
      for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++) {
        tir_buffer buffer = ir->regions.at[i].buffer;
        if (tir_has_region_of(ir, told->writes, buffer) || (!w && tir_has_region_of(ir, told->reads, buffer)) ||
            is_inside(ir, s, block, buffer))
          continue;
        return tir_refuse(ir, err, MS_ACCESS_NOT_TOLD, block, "block `%s` does not tell that `%s` in it uses `%s`",
                          tir_block_name(ir, block), tir_block_name(ir, s),
                          tir_text(ir, tir_buffer_at(ir, buffer)->name));
      }
  }
  return true;
}

bool tir_check_reduces_inside(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  for (tir_stmt s = tir_stmt_at(ir, scope)->parent; s; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && !(tir_loop_extent(ir, s) == 1 && tir_is_int(ir, tir_stmt_at(ir, s)->loop.min)) &&
        (tir_loop_iter_kinds(ir, s, block) & ~(1u << TIR_SPATIAL)))
      return tir_refuse(ir, err, MS_REDUCTION_OUTSIDE, s, "this loop, around the scope of block `%s`, reduces in it",
                        tir_block_name(ir, block));
  return true;
}
