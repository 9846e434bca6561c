/* The order of iterations: what blocks below a nest of loops need of it.
 *
 * Most blocks need none, which is found from their regions: iterations that differ in a spatial one use different
 * elements, and those that differ in reductions alone combine what they give by a commutative operation. Of the others,
 * all accesses are compared, statement by statement, in the iterations whose order changes. */
#include "iteration_order.h"

#include "dependence.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/loads.h"
#include "tir/arith/affine.h"

#include <stdlib.h>

enum { MOST_ITERS = 48, MOST_LOOPS = 48, MOST_LOADS = 32 };

/* An access of one element, or of a region where a block does more than load and store; over loops. */
struct access {
  struct tir_element_box box;
  tir_block block; /* directly below the loops, or in blocks there that declare nothing */
  bool writes;
};

struct accesses {
  struct access *at;
  uint32_t count, capacity;
  bool too_wide; /* there is one of more dimensions than a box has */
};

struct question {
  const struct tir_new_order *order;
  tir_loop bottom;
  struct accesses accesses;
  tir_var inner[MOST_LOOPS]; /* loops below */
  uint32_t inner_count;
  struct tir_digits now, then;
  bool any; /* their order is not known */
};

/* ---- What a block's iterations do to one another, by its regions ---- */

static bool is_plain_dimension(const struct tir *ir, struct tir_region r, tir_var v) {
  for (uint32_t d = 0; d < tir_buffer_at(ir, r.buffer)->rank; d++)
    if (ir->operands.at[r.ranges + 2 * d] == tir_var_expr(ir, v) &&
        tir_is_const(ir, ir->operands.at[r.ranges + 2 * d + 1], 1))
      return true;
  return false;
}

/* So is each iteration of more than one value that does not reduce: no two of them have an element in common. */
static bool are_plain_dimensions(const struct tir *ir, tir_block block, struct tir_region r) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (!iters.count) return false; /* loops tell its instances apart: see find_instances */
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    const struct tir_iter *iter = &ir->iters.at[i];
    if (iter->kind != TIR_REDUCE && !tir_is_const(ir, ir->vars.at[iter->var].extent, 1) &&
        !is_plain_dimension(ir, r, iter->var))
      return false;
  }
  return true;
}

static bool same_ranges(const struct tir *ir, struct tir_region a, struct tir_region b) {
  for (uint32_t i = 0; i < 2 * tir_buffer_at(ir, a.buffer)->rank; i++)
    if (ir->operands.at[a.ranges + i] != ir->operands.at[b.ranges + i]) return false;
  return true;
}

static struct tir_element_box box_of(const struct tir *ir, struct tir_region r) {
  struct tir_element_box box = {.buffer = r.buffer};
  for (uint32_t i = 0; i < 2 * tir_buffer_at(ir, r.buffer)->rank; i++) box.ranges[i] = ir->operands.at[r.ranges + i];
  return box;
}

/* The region is one element, another in each iteration of the first variables, whatever the others: as a map of
 * iterators, of several together. */
static bool tells_apart(struct tir *ir, struct tir_region r, const tir_var *vars, uint32_t count, uint32_t all) {
  tir_expr indices[TIR_MOST_BOX_RANK];
  uint32_t rank = tir_buffer_at(ir, r.buffer)->rank;
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = ir->operands.at[r.ranges + 2 * d];
    if (!tir_is_const(ir, ir->operands.at[r.ranges + 2 * d + 1], 1) || tir_varies_by_itself(ir, indices[d]) ||
        tir_uses_any_var(ir, indices[d], vars + count, all - count))
      return false;
  }
  return tir_detect_iter_map(ir, indices, rank, vars, count, TIR_NONE, TIR_MAP_BIJECTIVE, true, NULL);
}

static bool is_loop_var(const struct tir *ir, const void *context, tir_var v) {
  (void)context;
  return tir_var_at(ir, v)->kind == TIR_VAR_LOOP;
}

/* The iteration is bound to what stays while the loops of its scope run: a value of the block around. */
static bool stays(const struct tir *ir, struct tir_iter iter) {
  return !tir_any_var(ir, iter.binding, is_loop_var, NULL);
}

/* What tells instances of a block apart: variables, those that do not reduce first. */
struct instances {
  tir_var vars[MOST_ITERS];
  uint32_t spatial, count;
};

/* The block's iterations; an opaque one counts as spatial, since an init begins again for each. `of_scope`: without
 * those that stay while the loops of the block's scope run. False: there are too many. */
static bool find_instances(const struct tir *ir, tir_block block, bool of_scope, struct instances *out) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  out->spatial = out->count = tir_loops_in_reach(ir, block, out->vars, MOST_ITERS);
  if (out->count > MOST_ITERS || iters.count > MOST_ITERS) return false;
  for (int reduces = 0; reduces < 2; reduces++)
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
      struct tir_iter iter = ir->iters.at[i];
      if ((iter.kind == TIR_REDUCE) != reduces || (of_scope && !reduces && stays(ir, iter))) continue;
      out->vars[out->count++] = iter.var;
      out->spatial += !reduces;
    }
  return true;
}

/* In two instances that differ in what does not reduce the regions may have an element in common. `of_scope`: in two
 * that the loops of the block's scope make. */
static bool find_meeting(struct tir *ir, tir_block block, struct tir_region a, struct tir_region b, bool of_scope) {
  struct instances in;
  enum tir_direction directions[TIR_MOST_DIGITS];
  struct tir_digits digits;
  bool same = same_ranges(ir, a, b);
  if (same && are_plain_dimensions(ir, block, a)) return false;
  bool plain = same;
  if (tir_buffer_at(ir, a.buffer)->rank > TIR_MOST_BOX_RANK || !find_instances(ir, block, of_scope, &in)) return true;
  for (uint32_t i = 0; i < in.spatial && plain; i++)
    plain = tir_is_const(ir, ir->vars.at[in.vars[i]].extent, 1) || is_plain_dimension(ir, a, in.vars[i]);
  if (plain) return false;
  struct tir_element_box boxes[2] = {box_of(ir, a), box_of(ir, b)};
  if (!tir_find_digits(ir, in.vars, in.count, boxes, 2, &digits)) return true;
  for (uint32_t p = 0; p < digits.count; p++) {
    bool is_spatial = false;
    for (uint32_t i = 0; i < in.spatial; i++) is_spatial |= digits.at[p].var == in.vars[i];
    if (!is_spatial) break;
    for (uint32_t i = 0; i < digits.count; i++) directions[i] = i < p ? TIR_SAME : TIR_ANYWHERE;
    for (int later = 0; later < 2; later++) {
      directions[p] = later ? TIR_LATER : TIR_EARLIER;
      if (tir_may_meet(ir, &boxes[0], &boxes[1], &digits, directions, NULL, 0))
        return !same || !tells_apart(ir, a, in.vars, in.spatial, in.count);
    }
  }
  return false;
}

static bool regions_meet(struct tir *ir, tir_block block, struct tir_region a, struct tir_region b) {
  return find_meeting(ir, block, a, b, false);
}

/* One of the loads, of a buffer that a store of the block writes, may be of what that writes in another iteration; the
 * element that is stored to, wherever it lies, its own init begins. */
static bool meets_loads(struct tir *ir, tir_block block, tir_stmt store, const tir_expr *loads, uint32_t count) {
  tir_expr at[TIR_MOST_BOX_RANK];
  tir_buffer buffer = tir_as(ir, store, TIR_STORE)->store.buffer;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, indices = tir_as(ir, store, TIR_STORE)->store.indices;
  if (rank > TIR_MOST_BOX_RANK) return true;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t of = tir_at(ir, loads[i])->operands;
    if (tir_same_operands(ir, indices, of, rank)) continue;
    for (uint32_t d = 0; d < rank; d++) at[d] = ir->operands.at[indices + d];
    struct tir_region written = tir_point_region(ir, buffer, at);
    for (uint32_t d = 0; d < rank; d++) at[d] = ir->operands.at[of + d];
    struct tir_region read = tir_point_region(ir, buffer, at);
    if (regions_meet(ir, block, written, read)) return true;
  }
  return false;
}

/* The statement loads what the store may write in another iteration. */
static bool loads_of_store(struct tir *ir, tir_block block, tir_stmt store, tir_stmt s) {
  tir_expr loads[MOST_LOADS], own[4];
  tir_buffer buffer = tir_as(ir, store, TIR_STORE)->store.buffer;
  uint32_t values = tir_stmt_exprs(ir, s, own);
  for (uint32_t i = 0; i < values; i++) {
    if (!own[i] || !(tir_at(ir, own[i])->flags & TIR_HAS_LOAD)) continue;
    uint32_t count = tir_find_loads(ir, own[i], buffer, loads, MOST_LOADS);
    if (count > MOST_LOADS || meets_loads(ir, block, store, loads, count)) return true;
  }
  return false;
}

/* Of a reduction, whose regions need not tell: its statements load what a store of it may write in another
 * iteration. */
static bool loads_other_iterations(struct tir *ir, tir_block block) {
  tir_stmt first = tir_stmt_at(ir, block)->first[TIR_BODY];
  if (!tir_stmt_at(ir, block)->first[TIR_INIT] || tir_plainly_updated(ir, block)) return false;
  for (tir_stmt store = first; store; store = tir_next_in_scope(ir, store, block)) {
    if (!tir_is(ir, store, TIR_STORE)) continue;
    for (tir_stmt s = first; s; s = tir_next_in_scope(ir, s, block))
      if (!tir_is(ir, s, TIR_BLOCK) && loads_of_store(ir, block, store, s)) return true;
  }
  return false;
}

bool tir_reads_other_iterations(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, block)->writes, reads = tir_block_at(ir, block)->reads;
  if (loads_other_iterations(ir, block)) return true;
  for (uint32_t w = writes.first; w < writes.first + writes.count; w++)
    for (uint32_t i = reads.first; i < reads.first + reads.count; i++)
      if (ir->regions.at[i].buffer == ir->regions.at[w].buffer &&
          !same_ranges(ir, ir->regions.at[w], ir->regions.at[i]) &&
          regions_meet(ir, block, ir->regions.at[w], ir->regions.at[i]))
        return true;
  return false;
}

/* The element that the store writes. False: it has too many dimensions, or data says where and is trusted. */
static bool find_stored(struct tir *ir, tir_stmt store, bool trust_data, struct tir_region *out, bool *unknown) {
  tir_expr at[TIR_MOST_BOX_RANK];
  tir_buffer buffer = tir_as(ir, store, TIR_STORE)->store.buffer;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, indices = tir_as(ir, store, TIR_STORE)->store.indices;
  *unknown |= rank > TIR_MOST_BOX_RANK;
  for (uint32_t d = 0; d < rank && rank <= TIR_MOST_BOX_RANK; d++) {
    at[d] = ir->operands.at[indices + d];
    if (trust_data && tir_at(ir, at[d])->flags & TIR_HAS_LOAD) return false;
  }
  if (rank <= TIR_MOST_BOX_RANK) *out = tir_point_region(ir, buffer, at);
  return rank <= TIR_MOST_BOX_RANK;
}

/* Each iteration of more than one value that does not reduce is an index of the store. */
static bool stores_plainly(const struct tir *ir, tir_block block, tir_stmt store) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  const uint32_t *indices = tir_operands(ir, tir_as(ir, store, TIR_STORE)->store.indices);
  uint32_t rank = tir_buffer_at(ir, tir_as(ir, store, TIR_STORE)->store.buffer)->rank;
  if (!iters.count) return false;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    const struct tir_iter *iter = &ir->iters.at[i];
    if (iter->kind == TIR_REDUCE || tir_is_const(ir, ir->vars.at[iter->var].extent, 1)) continue;
    uint32_t d = 0;
    while (d < rank && indices[d] != tir_var_expr(ir, iter->var)) d++;
    if (d == rank) return false;
  }
  return true;
}

/* The element of a store of the init, one after it in the init stores to in another iteration, or the same one does. */
static bool is_begun_again(struct tir *ir, tir_block block, tir_stmt store, bool trust_data) {
  struct tir_region own, other;
  bool unknown = false;
  if (!tir_stmt_at(ir, store)->next && stores_plainly(ir, block, store)) return false;
  if (!find_stored(ir, store, trust_data, &own, &unknown)) return unknown;
  if (find_meeting(ir, block, own, own, true)) return true;
  for (tir_stmt s = tir_stmt_at(ir, store)->next; s; s = tir_stmt_at(ir, s)->next) {
    if (!tir_is(ir, s, TIR_STORE) || tir_as(ir, s, TIR_STORE)->store.buffer != own.buffer) continue;
    if (find_stored(ir, s, trust_data, &other, &unknown) && !same_ranges(ir, own, other) &&
        find_meeting(ir, block, own, other, true))
      return true;
  }
  return unknown;
}

bool tir_begins_again(struct tir *ir, tir_block block, bool trust_data) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, block)->writes;
  bool stores = true; /* else blocks and loops, of which the regions tell */
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = tir_stmt_at(ir, s)->next) {
    stores =
        stores && tir_is(ir, s, TIR_STORE) && tir_has_region_of(ir, writes, tir_as(ir, s, TIR_STORE)->store.buffer);
    if (stores && is_begun_again(ir, block, s, trust_data)) return true;
  }
  for (uint32_t w = writes.first; w < writes.first + writes.count && !stores; w++)
    if (!tir_buffer_at(ir, ir->regions.at[w].buffer)->user_annotated &&
        find_meeting(ir, block, ir->regions.at[w], ir->regions.at[w], true))
      return true;
  return false;
}

bool tir_check_begun_once(struct tir *ir, tir_block block, ms_error *err) {
  return !tir_begins_again(ir, block, false) ||
         tir_refuse(ir, err, MS_NOT_REDUCTION_BLOCK, block,
                    "several iterations of block `%s` may begin the same element", tir_block_name(ir, block));
}

static bool has_reductions(const struct tir *ir, tir_block block) {
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++)
    if (tir_iters(ir, block)[i].kind != TIR_SPATIAL) return true;
  return false;
}

bool tir_instances_meet(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, block)->writes, reads = tir_block_at(ir, block)->reads;
  for (uint32_t w = writes.first; w < writes.first + writes.count; w++) {
    struct tir_region written = ir->regions.at[w];
    for (uint32_t i = w; i < writes.first + writes.count; i++)
      if (ir->regions.at[i].buffer == written.buffer && regions_meet(ir, block, written, ir->regions.at[i]))
        return true;
    for (uint32_t i = reads.first; i < reads.first + reads.count; i++)
      if (ir->regions.at[i].buffer == written.buffer && regions_meet(ir, block, written, ir->regions.at[i]))
        return true;
  }
  return false;
}

/* The value meets all above what it is in a later iteration. */
bool tir_may_fall(struct tir *ir, tir_expr value, const tir_var *loops, uint32_t count) {
  tir_type type = tir_type_of(ir, value);
  tir_expr one = tir_int(ir, type, 1);
  struct tir_element_box now = {.ranges = {value, one}};
  struct tir_element_box above = {.ranges = {tir_add(ir, value, one), tir_int(ir, TIR_T_I64, INT64_MAX)}};
  enum tir_direction directions[TIR_MOST_DIGITS];
  struct tir_digits digits;
  if (!tir_find_digits(ir, loops, count, &now, 1, &digits)) return true;
  for (uint32_t p = 0; p < digits.count; p++) {
    for (uint32_t i = 0; i < digits.count; i++) directions[i] = i < p ? TIR_SAME : TIR_ANYWHERE;
    directions[p] = TIR_LATER;
    if (tir_may_meet(ir, &now, &above, &digits, directions, NULL, 0)) return true;
  }
  return false;
}

/* The question's loops are known to hold a compact dataflow, and the block is one of the reductions in it. */
static bool is_known_reduction(const struct tir *ir, const struct tir_new_order *order, tir_block block) {
  return order->compact && has_reductions(ir, block) &&
         tir_parent_block(ir, block) == tir_parent_block(ir, order->now[order->count - 1]);
}

/* The block's iterations may run in any order, as its regions say. */
static bool is_orderless(struct tir *ir, const struct tir_new_order *order, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  if (!is_known_reduction(ir, order, block) && (loads_other_iterations(ir, block) || tir_updates_unbegun(ir, block)))
    return false;
  for (uint32_t w = writes.first; w < writes.first + writes.count; w++)
    if (tir_buffer_at(ir, ir->regions.at[w].buffer)->undeclared) return false;
  return !tir_instances_meet(ir, block) && (!has_reductions(ir, block) || tir_is_commutative(ir, block, false));
}

/* An instance of the block, which is orderless, does the same where it runs again: it goes on with nothing that was
 * there before. */
static bool may_run_twice(struct tir *ir, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    if (tir_begun_reads_from_before(ir, block, ir->regions.at[i].buffer)) return false;
  return true;
}

/* Loops that run at once take each instance of the block, which is orderless, once, where one that runs twice would
 * meet itself. Those that begin again lowering keeps apart, or in order. */
static bool runs_once(struct tir *ir, const struct tir_new_order *order, tir_block block) {
  return order->then || order->parts || may_run_twice(ir, block) ||
         tir_block_takes_steps_once(ir, block, order->now, order->count);
}

/* The block declares nothing of what the blocks in it use: it groups parts of a loop (LoopPartition). What it uses they
 * tell, as if it were not there. */
static bool is_silent(const struct tir *ir, tir_block block) {
  return !tir_block_at(ir, block)->writes.count && !tir_block_at(ir, block)->reads.count &&
         tir_child_blocks(ir, block, NULL, 0);
}

/* ---- Accesses, statement by statement ---- */

static void add_access(struct accesses *all, struct tir_element_box box, tir_block block, bool writes) {
  MS_CHECK(box.buffer && all->count <= all->capacity);
  if (all->count == all->capacity) all->at = tir_enlarge(all->at, &all->capacity, all->count + 1ull, sizeof *all->at);
  all->at[all->count++] = (struct access){box, block, writes};
}

static void add_point(struct tir *ir, struct accesses *all, tir_stmt s, tir_buffer buffer, uint32_t indices,
                      tir_block block, bool writes) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  struct tir_element_box box = {.buffer = buffer};
  all->too_wide |= rank > TIR_MOST_BOX_RANK;
  if (rank > TIR_MOST_BOX_RANK) return;
  for (uint32_t d = 0; d < rank; d++) {
    tir_expr index = tir_over_loops(ir, s, ir->operands.at[indices + d]);
    box.ranges[2 * d] = index;
    box.ranges[2 * d + 1] = tir_int(ir, tir_type_of(ir, index), 1);
  }
  add_access(all, box, block, writes);
}

static void add_loads(struct tir *ir, struct accesses *all, tir_stmt s, tir_expr e, tir_block block) {
  tir_expr loads[MOST_LOADS];
  if (!e || !(tir_at(ir, e)->flags & TIR_HAS_LOAD)) return;
  uint32_t count = tir_find_loads(ir, e, TIR_NONE, loads, MOST_LOADS);
  all->too_wide |= count > MOST_LOADS;
  for (uint32_t i = 0; i < count && i < MOST_LOADS; i++)
    add_point(ir, all, s, tir_at(ir, loads[i])->ref, tir_at(ir, loads[i])->operands, block, false);
}

/* The region as the block declares it. */
static void add_region(struct tir *ir, struct accesses *all, tir_block declares, struct tir_region region,
                       tir_block block, bool writes) {
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  struct tir_element_box box = {.buffer = region.buffer};
  all->too_wide |= rank > TIR_MOST_BOX_RANK;
  if (rank > TIR_MOST_BOX_RANK) return;
  for (uint32_t i = 0; i < 2 * rank; i++)
    box.ranges[i] = tir_over_loops(ir, declares, ir->operands.at[region.ranges + i]);
  add_access(all, box, block, writes);
}

static bool is_opaque_use(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_opaquely(ir, e, *(const tir_buffer *)context);
}

/* A use of the buffer that is no load or store of an element: by its data pointer, in a vector, under another name. */
static bool uses_opaquely(struct tir *ir, tir_block block, tir_buffer buffer) {
  return tir_matches_part_of(ir, block, buffer) || tir_any_own_expr(ir, block, is_opaque_use, &buffer);
}

/* Joins what the store reaches, from the region's minimum on. False: it is not known. */
static bool join_store(struct tir *ir, tir_stmt store, struct tir_region region, struct tir_bounds *reach) {
  uint32_t indices = tir_as(ir, store, TIR_STORE)->store.indices;
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++) {
    tir_expr index = ir->operands.at[indices + d], min = ir->operands.at[region.ranges + 2 * d];
    if (tir_type_of(ir, index) != tir_type_of(ir, min)) return false;
    struct tir_bounds b = tir_bounds_of(ir, tir_sub(ir, index, min));
    if (b.lo < reach[d].lo) reach[d].lo = b.lo;
    if (b.hi > reach[d].hi) reach[d].hi = b.hi;
  }
  return true;
}

/* The box around what an instance of the block stores of the region's buffer: the region, where more is not known. */
static struct tir_region reach_of(struct tir *ir, tir_block block, struct tir_region region) {
  struct tir_bounds reach[TIR_MOST_BOX_RANK];
  tir_expr ranges[2 * TIR_MOST_BOX_RANK];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  if (rank > TIR_MOST_BOX_RANK || uses_opaquely(ir, block, region.buffer)) return region;
  for (uint32_t d = 0; d < rank; d++) reach[d] = (struct tir_bounds){TIR_POS_INF, TIR_NEG_INF};
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    if (tir_is(ir, s, TIR_BLOCK) && uses_opaquely(ir, s, region.buffer)) return region;
    if (tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == region.buffer &&
        !join_store(ir, s, region, reach))
      return region;
  }
  for (uint32_t d = 0; d < rank; d++) {
    tir_expr min = ir->operands.at[region.ranges + 2 * d];
    int64_t last = tir_sat_add(tir_bounds_of(ir, ir->operands.at[region.ranges + 2 * d + 1]).hi, -1);
    struct tir_bounds b = {reach[d].lo > 0 ? reach[d].lo : 0, reach[d].hi < last ? reach[d].hi : last};
    if (b.lo > b.hi || b.hi == TIR_POS_INF) return region;
    ranges[2 * d] = tir_add(ir, min, tir_int(ir, tir_type_of(ir, min), b.lo));
    ranges[2 * d + 1] = tir_int(ir, tir_type_of(ir, min), b.hi - b.lo + 1);
  }
  return tir_new_region(ir, region.buffer, ranges);
}

bool tir_reaches_meet(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t w = writes.first; w < writes.first + writes.count; w++) {
    struct tir_region reach = reach_of(ir, block, ir->regions.at[w]);
    bool first = tir_region_of(ir, writes, reach.buffer) == &ir->regions.at[w];
    if (!first || regions_meet(ir, block, reach, reach)) return true;
  }
  return false;
}

static void add_declared(struct tir *ir, struct accesses *all, tir_block declares, tir_block block) {
  for (int writes = 0; writes < 2; writes++) {
    struct tir_span regions = tir_regions(ir, declares, writes);
    for (uint32_t i = regions.first; i < regions.first + regions.count; i++)
      if (uses_opaquely(ir, declares, ir->regions.at[i].buffer))
        add_region(ir, all, declares, ir->regions.at[i], block, writes);
  }
}

/* The outermost block below the loops that s is in, or is, of those that declare what they use; TIR_NONE: it is in
 * none. */
static tir_block block_around(const struct tir *ir, tir_stmt s, tir_loop bottom) {
  tir_block block = TIR_NONE;
  for (; s != bottom; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_BLOCK) && !is_silent(ir, s)) block = s;
  return block;
}

/* What the scope loads to say where the block runs. */
static void add_placing(struct tir *ir, struct question *q, tir_block b) {
  tir_stmt around = tir_stmt_at(ir, b)->parent;
  tir_block block = around == q->bottom ? TIR_NONE : block_around(ir, around, q->bottom);
  for (uint32_t i = 0; i < tir_block_at(ir, b)->iters.count; i++)
    add_loads(ir, &q->accesses, around, tir_iters(ir, b)[i].binding, block);
  add_loads(ir, &q->accesses, around, tir_as(ir, b, TIR_BLOCK)->block.predicate, block);
}

static void collect(struct tir *ir, struct question *q) {
  for (tir_stmt s = tir_next(ir, q->bottom, q->bottom); s; s = tir_next(ir, s, q->bottom)) {
    tir_expr own[4];
    tir_block block = block_around(ir, s, q->bottom);
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    uint32_t count = tir_stmt_exprs(ir, s, own);
    for (uint32_t i = 0; i < count; i++) add_loads(ir, &q->accesses, s, own[i], block);
    if (n.kind == TIR_BLOCK) add_placing(ir, q, s);
    if (n.kind == TIR_BLOCK) add_declared(ir, &q->accesses, s, block);
    if (n.kind == TIR_LOOP) {
      if (q->inner_count < MOST_LOOPS) q->inner[q->inner_count] = n.loop.var;
      q->inner_count++;
    }
    if (n.kind != TIR_STORE) continue;
    for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++)
      add_loads(ir, &q->accesses, s, ir->operands.at[n.store.indices + d], block);
    add_point(ir, &q->accesses, s, n.store.buffer, n.store.indices, block, true);
  }
}

/* ---- Which iterations change their order ---- */

static uint32_t place_in(const struct tir_digits *digits, struct tir_digit digit) {
  uint32_t i = 0;
  while (i < digits->count && (digits->at[i].var != digit.var || digits->at[i].unit != digit.unit)) i++;
  MS_CHECK(i < digits->count);
  return i;
}

static bool meet_either_way(struct tir *ir, const struct question *q, const struct tir_element_box *a,
                            const struct tir_element_box *b, enum tir_direction *directions) {
  if (tir_may_meet(ir, a, b, &q->now, directions, q->inner, q->inner_count)) return true;
  for (uint32_t i = 0; i < q->now.count; i++)
    if (directions[i] > TIR_SAME) directions[i] = directions[i] == TIR_LATER ? TIR_EARLIER : TIR_LATER;
  return tir_may_meet(ir, a, b, &q->now, directions, q->inner, q->inner_count);
}

/* The first digit in which two iterations differ is p now and r then: where one is later by p and earlier by r, they
 * change places. */
static bool meet_where_swapped(struct tir *ir, const struct question *q, const struct tir_element_box *a,
                               const struct tir_element_box *b, uint32_t p, uint32_t r) {
  MS_CHECK(p < r && r < q->now.count && q->then.count == q->now.count);
  enum tir_direction directions[TIR_MOST_DIGITS];
  uint32_t place = place_in(&q->then, q->now.at[r]);
  for (uint32_t i = 0; i < q->now.count; i++)
    directions[i] = i < p || place_in(&q->then, q->now.at[i]) < place ? TIR_SAME : TIR_ANYWHERE;
  directions[p] = TIR_LATER;
  directions[r] = TIR_EARLIER;
  return meet_either_way(ir, q, a, b, directions);
}

static bool meet_in_new_order(struct tir *ir, const struct question *q, const struct tir_element_box *a,
                              const struct tir_element_box *b) {
  for (uint32_t p = 0; p < q->now.count; p++) {
    if (q->any) {
      enum tir_direction directions[TIR_MOST_DIGITS];
      for (uint32_t i = 0; i < q->now.count; i++) directions[i] = i < p ? TIR_SAME : TIR_ANYWHERE;
      directions[p] = TIR_LATER;
      if (meet_either_way(ir, q, a, b, directions)) return true;
      continue;
    }
    for (uint32_t r = p + 1; r < q->now.count; r++)
      if (place_in(&q->then, q->now.at[r]) < place_in(&q->then, q->now.at[p]) && meet_where_swapped(ir, q, a, b, p, r))
        return true;
  }
  return false;
}

/* ---- Pairs ---- */

static bool same_box(const struct tir *ir, const struct tir_element_box *a, const struct tir_element_box *b) {
  for (uint32_t i = 0; i < 2 * tir_buffer_at(ir, a->buffer)->rank; i++)
    if (a->ranges[i] != b->ranges[i]) return false;
  return true;
}

/* What the block uses, a child of the scope declares: the scope's pipeline speaks of it. */
static bool is_told_by(const struct tir *ir, tir_block block, tir_block scope) {
  for (; block && tir_scope_of(ir, block) != scope; block = tir_scope_of(ir, block)) continue;
  return block && !is_silent(ir, block);
}

/* A block that declares nothing, but has iterations, is around the block below the loops: these tell instances apart
 * too. */
static bool runs_by_others(const struct tir *ir, const struct question *q, tir_block block) {
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s != q->bottom; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_BLOCK) && tir_block_at(ir, s)->iters.count) return true;
  return false;
}

/* In each iteration what a block reads of the scope's others is written before: there they meet, and nowhere else.
 * Loops that run at once lowering keeps in order where that is not so. */
static bool meets_in_iteration(struct tir *ir, const struct tir_new_order *order, tir_block scope) {
  bool at_once = !order->then && !order->parts;
  return tir_check_stage_pipeline(ir, scope, NULL) && (at_once || !tir_reads_across(ir, scope));
}

/* Accesses of one block are orderless where all combine one element by a commutative operation, one iteration after
 * another; of two blocks, where the second reads what the first has written in the same iteration. */
static bool needs_no_order(struct tir *ir, const struct question *q, const struct access *a, const struct access *b) {
  bool at_once = !q->order->then && !q->order->parts;
  if (a->block != b->block) {
    tir_block scope = a->block ? tir_scope_of(ir, a->block) : TIR_NONE;
    return !(a->writes && b->writes) && b->block && scope && is_told_by(ir, b->block, scope) &&
           meets_in_iteration(ir, q->order, scope);
  }
  return a->block && !runs_by_others(ir, q, a->block) &&
         ((is_orderless(ir, q->order, a->block) && runs_once(ir, q->order, a->block)) ||
          (!at_once && same_box(ir, &a->box, &b->box) && tir_is_commutative(ir, a->block, true) &&
           !tir_updates_unbegun(ir, a->block) && !tir_begins_again(ir, a->block, false)));
}

/* Both are one element, another in each iteration of the nest: as a map of iterators, of several loops together. */
static bool meet_in_one_iteration(struct tir *ir, const struct question *q, const struct access *a,
                                  const struct access *b) {
  tir_var vars[MOST_LOOPS];
  tir_expr indices[TIR_MOST_BOX_RANK];
  uint32_t rank = tir_buffer_at(ir, a->box.buffer)->rank;
  if (!same_box(ir, &a->box, &b->box)) return false;
  for (uint32_t d = 0; d < rank; d++) {
    indices[d] = a->box.ranges[2 * d];
    if (!tir_is_const(ir, a->box.ranges[2 * d + 1], 1) || tir_varies_by_itself(ir, indices[d]) ||
        tir_uses_any_var(ir, indices[d], q->inner, q->inner_count))
      return false;
  }
  for (uint32_t i = 0; i < q->order->count; i++) vars[i] = tir_as(ir, q->order->now[i], TIR_LOOP)->loop.var;
  tir_expr predicate = a->block ? tir_as(ir, a->block, TIR_BLOCK)->block.predicate : TIR_NONE;
  return tir_detect_iter_map(ir, indices, rank, vars, q->order->count, predicate, TIR_MAP_BIJECTIVE, true, NULL);
}

static bool refuse_pair(struct tir *ir, const struct question *q, const struct access *a, const struct access *b,
                        ms_error *err) {
  const struct access *reads = a->writes ? b : a, *writes = a->writes ? a : b;
  tir_block block = reads->block ? reads->block : writes->block;
  const char *buffer = tir_buffer_name(ir, a->box.buffer);
  if (!block || !writes->block)
    return tir_refuse(ir, err, MS_ITERATIONS_IN_ORDER, q->bottom,
                      "the loops cannot be %s: what is written of `%s` below them needs their order", q->order->what,
                      buffer);
  return tir_refuse(ir, err, MS_ITERATIONS_IN_ORDER, block,
                    "the loops cannot be %s: an iteration of block `%s` %s of `%s` what another of block `%s` writes",
                    q->order->what, tir_block_name(ir, block), reads->writes ? "writes" : "reads", buffer,
                    tir_block_name(ir, writes->block));
}

/* The digits of the loops as they are, taken apart by accesses and by what the new loops run through, and as they shall
 * be.
 */
static bool find_orders(struct tir *ir, struct question *q) {
  const struct tir_new_order *order = q->order;
  tir_var vars[MOST_LOOPS];
  uint32_t count = q->accesses.count + order->part_count;
  struct tir_element_box *boxes = calloc(count + 1, sizeof *boxes);
  if (!boxes) abort();
  for (uint32_t i = 0; i < q->accesses.count; i++) boxes[i] = q->accesses.at[i].box;
  for (uint32_t i = 0; i < order->part_count; i++) boxes[q->accesses.count + i].ranges[0] = order->parts[i];
  for (uint32_t i = 0; i < order->count; i++) vars[i] = tir_as(ir, order->now[i], TIR_LOOP)->loop.var;
  bool found = tir_find_digits(ir, vars, order->count, boxes, count, &q->now);
  q->any = !order->then && !(order->parts && tir_order_digits(ir, &q->now, order->parts, order->part_count, &q->then));
  for (uint32_t i = 0; i < order->count && order->then; i++) vars[i] = tir_as(ir, order->then[i], TIR_LOOP)->loop.var;
  if (order->then) found = tir_find_digits(ir, vars, order->count, boxes, count, &q->then);
  free(boxes);
  return found;
}

static bool refuse_unknown(struct tir *ir, const struct question *q, ms_error *err) {
  return tir_refuse(ir, err, MS_ITERATIONS_IN_ORDER, q->bottom,
                    "the loops cannot be %s: too much is accessed below them to know that their order is free",
                    q->order->what);
}

/* Each iteration has a buffer of its own of that name. */
static bool is_private(const struct tir *ir, const struct question *q, tir_buffer buffer) {
  tir_stmt where = tir_buffer_at(ir, buffer)->where;
  return where && tir_is_below(ir, where, q->bottom);
}

static bool check_pairs(struct tir *ir, struct question *q, ms_error *err) {
  collect(ir, q);
  if (q->accesses.too_wide || q->inner_count > MOST_LOOPS || q->order->count > MOST_LOOPS || !find_orders(ir, q))
    return refuse_unknown(ir, q, err);
  for (uint32_t i = 0; i < q->accesses.count; i++)
    for (uint32_t k = i; k < q->accesses.count; k++) {
      const struct access *a = &q->accesses.at[i], *b = &q->accesses.at[k];
      if (a->box.buffer != b->box.buffer || (!a->writes && !b->writes) || is_private(ir, q, a->box.buffer) ||
          needs_no_order(ir, q, a, b))
        continue;
      if (meet_in_new_order(ir, q, &a->box, &b->box) && !meet_in_one_iteration(ir, q, a, b))
        return refuse_pair(ir, q, a, b, err);
    }
  return true;
}

/* ---- The question ---- */

static bool has_many_uses(const struct tir *ir, uint32_t uses) {
  enum { MANY = 64 };
  uint32_t count = 0;
  for (uint32_t u = uses; u && count <= MANY; u = ir->uses.at[u].next) count++;
  return count > MANY;
}

/* A block below the loops, other than this one and those in it, has a region of the buffer. */
static bool has_user_beside(const struct tir *ir, tir_block block, tir_buffer buffer, tir_loop bottom) {
  for (tir_stmt s = tir_next(ir, bottom, bottom); s; s = tir_next(ir, s, bottom)) {
    if (s == block || !tir_is(ir, s, TIR_BLOCK) || tir_is_below(ir, s, block)) continue;
    const struct tir_block_record *b = tir_block_at(ir, s);
    if (tir_region_of(ir, b->writes, buffer) || tir_region_of(ir, b->reads, buffer)) return true;
  }
  return false;
}

/* Another block below the loops uses what the block writes, in a way that may need the order. */
static bool is_used_beside(struct tir *ir, const struct question *q, tir_block block) {
  tir_loop bottom = q->bottom;
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    const struct tir_buffer_node *buffer = tir_buffer_at(ir, ir->regions.at[i].buffer);
    const uint32_t lists[] = {buffer->writers, buffer->readers};
    /* Of a buffer that thousands of blocks use, few are below a loop. */
    if ((has_many_uses(ir, lists[0]) || has_many_uses(ir, lists[1])) &&
        !has_user_beside(ir, block, ir->regions.at[i].buffer, bottom))
      continue;
    for (int l = 0; l < 2; l++)
      for (uint32_t u = lists[l]; u; u = ir->uses.at[u].next) {
        tir_block other = ir->uses.at[u].block;
        if (other == block || !tir_is_below(ir, other, bottom) || tir_is_below(ir, other, block)) continue;
        tir_block scope = l ? tir_scope_of(ir, block) : TIR_NONE;
        if (!scope || !meets_in_iteration(ir, q->order, scope) || !is_told_by(ir, other, scope)) return true;
      }
  }
  return false;
}

/* What stands beside blocks, in none of them, uses buffers. */
static bool is_use_of_scope(const struct tir *ir, tir_stmt s) {
  return !tir_is(ir, s, TIR_BLOCK) && !tir_is(ir, s, TIR_LOOP);
}

static bool is_free(struct tir *ir, const struct question *q, tir_stmt s) {
  if (!tir_is(ir, s, TIR_BLOCK)) return !is_use_of_scope(ir, s);
  return is_silent(ir, s) || (!runs_by_others(ir, q, s) && is_orderless(ir, q->order, s) &&
                              runs_once(ir, q->order, s) && !is_used_beside(ir, q, s));
}

static tir_stmt next_that_tells(const struct tir *ir, tir_stmt s, tir_loop bottom) {
  bool looks_in = tir_is(ir, s, TIR_BLOCK) && is_silent(ir, s);
  return looks_in ? tir_next(ir, s, bottom) : tir_next_in_scope(ir, s, bottom);
}

bool tir_check_iteration_order(struct tir *ir, const struct tir_new_order *order, ms_error *err) {
  MS_CHECK(order->count && tir_is(ir, order->now[order->count - 1], TIR_LOOP));
  struct question q; /* large, and mostly of pairs, which few questions come to: they start it */
  q.order = order;
  q.bottom = order->now[order->count - 1];
  bool free_of_order = true;
  for (tir_stmt s = tir_next(ir, q.bottom, q.bottom); s && free_of_order; s = next_that_tells(ir, s, q.bottom))
    free_of_order = is_free(ir, &q, s);
  if (free_of_order) return true;
  q.accesses = (struct accesses){0};
  q.inner_count = 0;
  bool accepted = check_pairs(ir, &q, err);
  free(q.accesses.at);
  return accepted;
}
