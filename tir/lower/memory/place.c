/* Place: each buffer that a block allocates becomes a flat allocation in the innermost list of statements that holds
 * all its accesses.
 * Requires: blocks. Gives: blocks without allocations; flat allocations (TIR_ALLOC); strides one a dimension, or none.
 * Keeps: everything else. A loop that carries a buffer's value from one iteration to the next stays inside the
 * buffer's life: the loops that a writer's reduction iterations are bound to, when the writer updates in place, those
 * that repeat what updates in place, unless each iteration begins it, those that decide whether it writes at all, and
 * those of which one iteration reads what another wrote. */
#include "tir/analysis/analysis.h"
#include "tir/arith/affine.h"
#include "tir/arith/bounds.h"
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <stdlib.h>

enum { MOST_LOOPS = 64 };

static tir_stmt common_ancestor(const struct tir *ir, tir_stmt a, tir_stmt b) {
  if (!a) return b;
  while (a != b && !tir_is_below(ir, b, a)) a = tir_stmt_at(ir, a)->parent;
  return a;
}

/* A block writes parts of the buffer that overlap with those of other iterations, and its predicate leaves out an
 * iteration, as v runs, which would write in the buffer: what is there then was written in another iteration. */
static bool leaves_out(struct tir *ir, tir_block block, tir_buffer buffer, tir_var v) {
  tir_expr ranges[2 * TIR_MOST_RANK], predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  const struct tir_region *written = tir_region_of(ir, tir_block_at(ir, block)->writes, buffer);
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  bool point = true;
  if (!written || rank > TIR_MOST_RANK) return false;
  tir_region_over_loops(ir, block, *written, ranges);
  for (uint32_t d = 0; d < rank; d++) point &= tir_is_const(ir, ranges[2 * d + 1], 1);
  if (point) return false;
  tir_expr limits = tir_limits_inside(ir, buffer, ranges, predicate);
  return limits && tir_may_follow(ir, limits, v);
}

/* Of iterations that differ in `v` alone each writes beside the others in that dimension: it steps over what one
 * writes. */
static bool steps_over(struct tir *ir, tir_expr min, tir_expr extent, tir_var v) {
  if (!tir_is_index(ir, min) || !tir_is_int(ir, extent)) return false;
  struct tir_linear l = tir_linear_of(ir, min);
  int64_t step = 0;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    if (t.atom == tir_var_expr(ir, v))
      step = llabs(t.coefficient);
    else if (tir_may_follow(ir, t.atom, v))
      return false;
  }
  return step >= tir_at(ir, extent)->imm && step > 0;
}

/* Iterations that differ in `v` alone may write one element. */
static bool writes_again(struct tir *ir, tir_block block, tir_buffer buffer, tir_var v) {
  const struct tir_region *written = tir_region_of(ir, tir_block_at(ir, block)->writes, buffer);
  tir_expr indices[TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (!written || rank > TIR_MOST_RANK || tir_is_const(ir, ir->vars.at[v].extent, 1)) return false;
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = ir->operands.at[written->ranges + 2 * d];
    if (steps_over(ir, indices[d], ir->operands.at[written->ranges + 2 * d + 1], v)) return false;
  }
  return !tir_detect_iter_map(ir, indices, rank, &v, 1, TIR_NONE, TIR_MAP_BIJECTIVE, true, NULL);
}

/* They may update one in place, or the loop reduces in a block inside, whose init runs in the first of them alone. */
static bool updates_again(struct tir *ir, tir_block block, tir_buffer buffer, tir_var v, tir_var of_loop) {
  return writes_again(ir, block, buffer, v) &&
         (tir_reads_from_before(ir, block, buffer) || tir_reduces_over(ir, block, of_loop));
}

/* No index of what the block writes names the iteration: it writes the same in all of them, where it runs. */
static bool writes_the_same(const struct tir *ir, tir_block block, tir_buffer buffer, tir_var v) {
  const struct tir_region *written = tir_region_of(ir, tir_block_at(ir, block)->writes, buffer);
  if (!written) return false;
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++)
    if (tir_uses_var(ir, ir->operands.at[written->ranges + 2 * d], v)) return false;
  return true;
}

/* What the block reads of the buffer other blocks have written before it in the same iteration of the loop. */
static bool reads_of_iteration(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop) {
  struct tir_interval read[TIR_MOST_RANK], written[TIR_MOST_RANK];
  const struct tir_region *own = tir_region_of(ir, tir_block_at(ir, block)->reads, buffer);
  if (!own) own = tir_region_of(ir, tir_block_at(ir, block)->writes, buffer);
  if (!own || tir_buffer_at(ir, buffer)->rank > TIR_MOST_RANK) return true;
  if (!tir_region_from(ir, block, *own, loop, TIR_NONE, read)) return true;
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == block || !tir_is_below(ir, b, loop) || tir_is_below(ir, b, block) || tir_is_below(ir, block, b) ||
        tir_compare_position(ir, b, block) > 0)
      continue;
    struct tir_region region = *tir_region_of(ir, tir_block_at(ir, b)->writes, buffer);
    if (tir_sure_region_from(ir, b, region, loop, TIR_NONE, predicate, written) &&
        tir_region_covers(ir, buffer, written, read))
      return true;
  }
  return false;
}

/* The same, or in an iteration of a loop inside this one, as was found before: `begun`, which is kept. */
static bool is_begun(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop, bool *begun) {
  *begun = *begun || reads_of_iteration(ir, block, buffer, loop);
  return *begun;
}

/* The block goes on in each iteration of the loop, which is in none of its bindings, with what is in the buffer, and
 * nothing in the iteration has begun it. */
static bool repeats(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop, bool *begun) {
  int kind = tir_stmt_at(ir, loop)->loop_kind;
  return (kind == TIR_SERIAL || kind == TIR_UNROLLED) && tir_loop_extent(ir, loop) != 1 &&
         tir_parent_block(ir, loop) == tir_parent_block(ir, block) && tir_reads_from_before(ir, block, buffer) &&
         !is_begun(ir, block, buffer, loop, begun);
}

/* Each iteration of the loop goes on with elements of its own, which another block wrote in an earlier one. */
static bool goes_on(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop, bool *begun) {
  bool others = false;
  for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u && !others; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    others = tir_is_below(ir, b, loop) && b != block && !tir_is_below(ir, b, block) && !tir_is_below(ir, block, b);
  }
  return others && tir_reads_from_before(ir, block, buffer) && !is_begun(ir, block, buffer, loop, begun);
}

/* Iterations of the loop, which run one after the other, write one element, of those that the predicate lets write. */
static bool shares_elements(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop) {
  tir_var v = tir_as(ir, loop, TIR_LOOP)->loop.var;
  int kind = tir_stmt_at(ir, loop)->loop_kind;
  const struct tir_region *written = tir_region_of(ir, tir_block_at(ir, block)->writes, buffer);
  tir_expr ranges[2 * TIR_MOST_RANK], indices[TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (!written || rank > TIR_MOST_RANK || (kind != TIR_SERIAL && kind != TIR_UNROLLED)) return false;
  tir_region_over_loops(ir, block, *written, ranges);
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = ranges[2 * d];
    if (steps_over(ir, indices[d], ranges[2 * d + 1], v)) return false;
  }
  return !tir_detect_iter_map(ir, indices, rank, &v, 1, TIR_NONE, TIR_MAP_BIJECTIVE, true, NULL);
}

/* Whether the block keeps in the buffer what an iteration of the loop leaves for the next: it updates in place, or some
 * iterations write nothing over what others wrote. */
static bool carries(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop, bool *begun) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  tir_var v = tir_as(ir, loop, TIR_LOOP)->loop.var;
  bool elsewhere = false, bound = false, named = false; /* elsewhere: each iteration writes its own elements */
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    struct tir_iter it = ir->iters.at[i];
    if (!tir_may_follow(ir, it.binding, v)) continue;
    if (it.kind != TIR_SPATIAL || updates_again(ir, block, buffer, it.var, v)) return true;
    if (!tir_uses_var(ir, it.binding, v)) { /* a name's value may follow the loop, or not */
      named = true;
      continue;
    }
    elsewhere = elsewhere || !writes_the_same(ir, block, buffer, it.var);
    bound = true;
  }
  if (!bound && repeats(ir, block, buffer, loop, begun)) return true;
  if ((bound || named) && goes_on(ir, block, buffer, loop, begun)) return true;
  if (!predicate || !tir_may_follow(ir, predicate, v)) return false;
  return !elsewhere || leaves_out(ir, block, buffer, v) || shares_elements(ir, block, buffer, loop);
}

/* What is around the outermost loop, of those around `block` below `limit`, whose iterations the writer joins; else the
 * block. In the loop itself the buffer would end with each iteration. */
static tir_stmt site_of_writer(struct tir *ir, tir_block block, tir_buffer buffer, tir_stmt limit) {
  tir_stmt site = block;
  bool begun = false; /* what it goes on with was written in the same iteration of a loop that was looked at */
  for (tir_stmt p = tir_stmt_at(ir, block)->parent; p && p != limit; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && carries(ir, block, buffer, p, &begun)) site = tir_stmt_at(ir, p)->parent;
  return site;
}

struct site {
  struct tir *ir;
  tir_buffer buffer;
  tir_stmt common, scope;
  const struct lower_users *users;
};

static void add_site(struct site *site, tir_stmt s) {
  site->common = site->common ? common_ancestor(site->ir, site->common, s) : s;
}

static void add_writer(struct site *site, tir_block innermost) {
  struct tir *ir = site->ir;
  for (tir_block b = innermost; b && b != site->scope; b = tir_parent_block(ir, b))
    add_site(site, site_of_writer(ir, b, site->buffer, site->scope));
}

static void find_site(struct tir *ir, void *data, tir_stmt s, const struct access *access, bool writes) {
  struct site *site = data;
  if (access->buffer != site->buffer) return;
  add_site(site, s);
  if (writes) add_writer(site, tir_parent_block(ir, s));
}

/* Statements below the block store to the buffer. */
static bool stores_to(const struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = block; s; s = tir_next(ir, s, block))
    if (tir_is(ir, s, TIR_STORE) && tir_stmt_at(ir, s)->store.buffer == buffer) return true;
  return false;
}

/* A block that views the buffer may write it through the view: it stores there, or declares what its calls write. */
static void find_views(struct site *site, tir_block block) {
  struct tir *ir = site->ir;
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
    if (ir->matches.at[i].source.buffer != site->buffer) continue;
    add_site(site, block);
    bool declares = tir_region_of(ir, tir_block_at(ir, block)->writes, site->buffer);
    if (declares || stores_to(ir, block, ir->matches.at[i].buffer)) add_writer(site, block);
  }
}

static bool is_pointer(const struct tir *ir, const void *buffer, tir_expr e) {
  return tir_at(ir, e)->kind == TIR_DATA && tir_at(ir, e)->ref == *(const tir_buffer *)buffer;
}

/* A statement that uses the buffer's pointer, a view's declaration too, may write it. */
static void find_pointers(struct site *site, tir_stmt s) {
  struct tir *ir = site->ir;
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(ir, s, all);
  bool pointed = false;
  for (uint32_t i = 0; i < count; i++)
    pointed = pointed || tir_any_node(ir, all[i], TIR_HAS_POINTER, is_pointer, &site->buffer);
  if (!pointed) return;
  add_site(site, s);
  add_writer(site, tir_parent_block(ir, s));
}

/* Blocks that name the buffer in their regions see it, though what is in them may use another in its place. */
static void find_regions(struct site *site) {
  struct tir *ir = site->ir;
  uint32_t lists[] = {tir_buffer_at(ir, site->buffer)->readers, tir_buffer_at(ir, site->buffer)->writers};
  assert(tir_is(ir, site->scope, TIR_BLOCK));
  for (int i = 0; i < 2; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next)
      if (tir_is_below(ir, ir->uses.at[u].block, site->scope)) add_site(site, ir->uses.at[u].block);
}

/* Of the function itself: of shapes. */
static bool is_of_shapes(const struct tir *ir, const void *context, tir_var v) {
  (void)context;
  return tir_var_at(ir, v)->kind == TIR_VAR_PLAIN;
}

/* The copy of a parameter with strides has those too, but memory of its own, which is compact where strides or extents
 * are no constants. */
static void fix_strides(struct tir *ir, tir_buffer buffer) {
  struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  bool constant = true;
  for (uint32_t i = 0; i < b->strides.count; i++) {
    tir_expr stride = ir->operands.at[b->strides.first + i], extent = ir->operands.at[b->shape + i];
    constant = constant && tir_is_int(ir, stride) && tir_is_int(ir, extent);
  }
  if (!constant) b->strides = (struct tir_span){0, 0};
}

static bool is_no_shape(const struct tir *ir, const void *context, tir_var v) { return !is_of_shapes(ir, context, v); }

/* The largest value of an extent in the block, in terms of shapes; TIR_NONE: it is not known. */
static tir_expr largest_by_shapes(struct tir *ir, tir_block block, tir_expr extent) {
  tir_var loops[MOST_LOOPS];
  uint32_t count = 0;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s && count < MOST_LOOPS; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP)) loops[count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
  tir_stmt inside = tir_stmt_at(ir, block)->first[TIR_BODY];
  if (!inside || count == MOST_LOOPS) return TIR_NONE;
  struct tir_interval all;
  tir_expr ranges[] = {tir_over_loops(ir, inside, extent), tir_int(ir, tir_type_of(ir, extent), 1)};
  tir_relax_region(ir, ranges, 1, loops, count, &all);
  bool known = !all.empty && all.max && !(tir_at(ir, all.max)->flags & TIR_HAS_LOAD);
  return known && !tir_any_var(ir, all.max, is_no_shape, NULL) ? all.max : TIR_NONE;
}

/* What is allocated has a size that does not change while the function runs: extents that vary with loops are taken at
 * their largest. */
static void fix_shape(struct tir *ir, tir_block block, tir_buffer buffer) {
  fix_strides(ir, buffer);
  struct tir_buffer_node b = *tir_buffer_at(ir, buffer);
  uint32_t first = 0;
  for (uint32_t d = 0; d < b.rank; d++) {
    tir_expr extent = ir->operands.at[b.shape + d];
    int64_t most = tir_at(ir, extent)->hi;
    if (b.strides.count || tir_is_int(ir, extent) || most == INT64_MAX || tir_any_var(ir, extent, is_of_shapes, NULL))
      continue;
    if (!first) first = tir_add_operands(ir, ir->operands.at + b.shape, b.rank);
    tir_type type = tir_type_of(ir, extent);
    tir_expr largest = most < tir_type_bounds(type).hi ? TIR_NONE : largest_by_shapes(ir, block, extent);
    if (!largest) largest = tir_int(ir, type, most > 0 ? most : 1);
    ir->operands.at[first + d] = largest;
  }
  if (first) tir_buffer_at(ir, buffer)->shape = first;
}

/* The place that outlives the loops in one of whose iterations the buffer is written, and in another read. */
static tir_stmt outlive_loops(struct tir *ir, tir_block scope, tir_buffer buffer, tir_stmt at) {
  struct lower_windows w;
  tir_stmt place = at;
  if (at == scope || !lower_find_windows_before(ir, at, buffer, &w)) return at;
  bool reads_first = tir_buffer_at(ir, buffer)->rank && w.written[0].empty && !w.read[0].empty;
  for (tir_stmt p = at; p != scope; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    int kind = tir_stmt_at(ir, p)->loop_kind;
    if ((kind == TIR_SERIAL || kind == TIR_UNROLLED || kind == TIR_PARALLEL) &&
        (reads_first || lower_reads_other_iterations(ir, &w, tir_as(ir, p, TIR_LOOP)->loop.var)))
      place = tir_stmt_at(ir, p)->parent;
  }
  return place;
}

/* An allocation inside a block's init or an if's branch would end with it: stay at statements of a body, and never
 * between a block and its contents. */
static tir_stmt list_around(const struct tir *ir, tir_block scope, tir_stmt at) {
  while (at != scope && (!tir_is(ir, at, TIR_LOOP) || tir_stmt_at(ir, at)->loop_kind == TIR_VECTORIZED))
    at = tir_stmt_at(ir, at)->parent;
  return at;
}

/* The first of the list's statements that names the buffer, or has one below it that does. */
static tir_stmt first_in_list(const struct site *site, tir_stmt at, enum tir_list list) {
  const struct tir *ir = site->ir;
  for (uint32_t u = site->users->first[site->buffer]; u; u = site->users->at[u].next) {
    tir_stmt s = site->users->at[u].s;
    while (s && tir_stmt_at(ir, s)->parent != at) s = tir_stmt_at(ir, s)->parent;
    if (s && tir_stmt_at(ir, s)->list == list) return s;
  }
  return TIR_NONE;
}

/* The statement that the allocation comes before: the first of the body that uses the buffer; the block itself, if its
 * init does. */
static tir_stmt first_use(const struct site *site, tir_stmt at) {
  const struct tir *ir = site->ir;
  if (!tir_is(ir, at, TIR_BLOCK) || !first_in_list(site, at, TIR_INIT)) return first_in_list(site, at, TIR_BODY);
  while (tir_is(ir, tir_stmt_at(ir, at)->parent, TIR_LOOP) &&
         tir_stmt_at(ir, tir_stmt_at(ir, at)->parent)->loop_kind == TIR_VECTORIZED)
    at = tir_stmt_at(ir, at)->parent;
  return at;
}

static void place(struct lowering *low, tir_block scope, tir_buffer buffer, const struct lower_users *users) {
  struct tir *ir = low->ir;
  struct site site = {ir, buffer, TIR_NONE, scope, users};
  for (uint32_t u = users->first[buffer]; u; u = users->at[u].next) {
    tir_stmt s = users->at[u].s;
    assert(s == scope || tir_is_below(ir, s, scope));
    lower_visit_stmt(ir, s, find_site, &site);
    if (tir_is(ir, s, TIR_BLOCK)) find_views(&site, s);
    find_pointers(&site, s);
  }
  find_regions(&site);
  if (!site.common) return; /* never used */
  tir_stmt at = list_around(ir, scope, site.common);
  at = list_around(ir, scope, outlive_loops(ir, scope, buffer, at));
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  assert(at == scope || tir_is_below(ir, at, scope));
  tir_stmt_at(ir, alloc)->alloc.buffer = buffer;
  tir_buffer_at(ir, buffer)->where = alloc;
  fix_shape(ir, scope, buffer);
  tir_stmt first = first_use(&site, at);
  assert(first && "a use is below the place found for it");
  tir_insert_before(ir, first, alloc);
}

/* The regions of the buffer name a whole dimension. */
static void widen_dimension(struct tir *ir, struct tir_span regions, tir_buffer buffer, uint32_t d) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  tir_expr extent = ir->operands.at[tir_buffer_at(ir, buffer)->shape + d];
  tir_expr zero = tir_int(ir, tir_type_of(ir, extent), 0);
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++) {
    if (ir->regions.at[i].buffer != buffer) continue;
    uint32_t first = tir_add_operands(ir, ir->operands.at + ir->regions.at[i].ranges, 2 * rank);
    ir->operands.at[first + 2 * d] = zero;
    ir->operands.at[first + 2 * d + 1] = extent;
    ir->regions.at[i].ranges = first;
  }
}

/* Where a block reads at a place that data decides, it declares the whole dimension: what it would load there need not
 * be there any more. So do the blocks around it. */
static void widen_regions(struct tir *ir, tir_block block) {
  struct tir_span regions[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  for (int w = 0; w < 2; w++)
    for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++) {
      tir_buffer buffer = ir->regions.at[i].buffer;
      for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) {
        const uint32_t *range = ir->operands.at + ir->regions.at[i].ranges + 2 * d;
        if (!((tir_at(ir, range[0])->flags | tir_at(ir, range[1])->flags) & TIR_HAS_LOAD)) continue;
        widen_dimension(ir, (struct tir_span){i, 1}, buffer, d);
        for (tir_block b = tir_parent_block(ir, block); b; b = tir_parent_block(ir, b)) {
          widen_dimension(ir, tir_block_at(ir, b)->reads, buffer, d);
          widen_dimension(ir, tir_block_at(ir, b)->writes, buffer, d);
        }
      }
    }
}

/* Strides that are not one a dimension are no address (the text form of index caches has such): memory is compact. But
 * a variable among them would have no value. */
static bool drop_void_strides(const struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    struct tir_buffer_node *n = tir_buffer_at(ir, b);
    if (n->strides.count == n->rank) continue;
    for (uint32_t i = n->strides.first; i < n->strides.first + n->strides.count; i++)
      if (!tir_is_int(ir, ir->operands.at[i]))
        return tir_refuse(ir, low->err, MS_LOWER_UNKNOWN_STRIDE, TIR_NONE, "%s has %u dimensions, but strides for %u",
                          tir_text(ir, n->name), n->rank, n->strides.count);
    n->strides = (struct tir_span){0, 0};
  }
  return true;
}

bool lower_place(struct lowering *low) {
  struct tir *ir = low->ir;
  if (!drop_void_strides(low)) return false;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_BLOCK)) widen_regions(ir, s);
  struct lower_users users = lower_find_users(ir, low->body);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span allocs = tir_block_at(ir, s)->allocs;
    for (uint32_t i = 0; i < allocs.count; i++) place(low, s, ir->operands.at[allocs.first + i], &users);
    tir_block_at(ir, s)->allocs = (struct tir_span){0, 0};
  }
  lower_free_users(&users);
  return true;
}
