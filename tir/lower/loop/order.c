/* Order: a parallel or vectorized loop runs its iterations in order where they write the same elements of a buffer that
 * outlives it, or read what others write; a GPU's vectorized loops stay, of which each becomes single accesses. A loop
 * of a GPU's blocks cannot, and is refused; memory of the device outlives it wherever it is allocated, for blocks have
 * none of their own of that kind.
 * Requires: blocks; flat allocations. Gives: parallel and vectorized loops of which different iterations write
 * different elements, as far as their blocks' regions declare, or the stores in those that declare less than the blocks
 * in them, and, but for GPUs, in none. Keeps: everything else. */
#include "tir/analysis/access.h"
#include "tir/analysis/analysis.h"
#include "tir/arith/affine.h"
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <stdlib.h>

enum { MOST_LOOPS = 64, MOST_INDICES = 64 };

/* What a block writes in one iteration of a parallel loop. */
struct iteration {
  tir_block block;
  tir_var var; /* of the parallel loop; it and those of the loops in it: */
  tir_var vars[MOST_LOOPS];
  uint32_t count;
  struct tir_region region;
  tir_expr ranges[2 * TIR_MOST_RANK]; /* over the loops */
};

/* In one dimension, an iteration moves by no less than what it writes there is long. */
static bool is_apart_by_step(struct tir *ir, const struct iteration *r) {
  struct tir_interval written[TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, r->region.buffer)->rank;
  tir_relax_region(ir, r->ranges, rank, r->vars, r->count - 1, written);
  for (uint32_t d = 0; d < rank; d++) {
    int64_t step;
    if (written[d].empty) return true;
    if (!written[d].min || !written[d].max || !lower_find_step(ir, written[d].min, r->var, &step)) continue;
    int64_t most = tir_at(ir, tir_interval_extent(ir, written[d]))->hi;
    if (step && most <= (step < 0 ? -step : step)) return true;
  }
  return false;
}

/* The loops that the indices use; false: they are not the parallel loop and ones whose ranges do not depend on it. */
static bool find_used(struct tir *ir, const struct iteration *r, const tir_expr *indices, uint32_t count, tir_var *out,
                      uint32_t *found) {
  bool moves = false;
  *found = 0;
  for (uint32_t k = 0; k < r->count; k++) {
    struct tir_var_node v = ir->vars.at[r->vars[k]];
    bool used = false;
    for (uint32_t i = 0; i < count; i++) used |= tir_uses_var(ir, indices[i], r->vars[k]);
    if (!used) continue;
    for (uint32_t i = 0; i < r->count; i++)
      if (tir_uses_var(ir, v.min, r->vars[i]) || tir_uses_var(ir, v.extent, r->vars[i])) return false;
    out[(*found)++] = r->vars[k];
    moves |= r->vars[k] == r->var;
  }
  return moves;
}

/* Of the block that the store is in, if it is in one. */
static struct tir_span iters_of(const struct tir *ir, const struct iteration *r) {
  return r->block ? tir_block_at(ir, r->block)->iters : (struct tir_span){0, 0};
}

/* By the predicate, or by a part of it alone: others may be of indices that only that part makes come one by one. */
static bool maps_under(struct tir *ir, tir_expr predicate, const tir_expr *indices, uint32_t count, const tir_var *used,
                       uint32_t found, struct tir_progression *steps) {
  if (tir_detect_iter_map(ir, indices, count, used, found, predicate, TIR_MAP_BIJECTIVE, true, steps)) return true;
  if (!predicate || tir_at(ir, predicate)->kind != TIR_AND) return false;
  tir_expr a = tir_at(ir, predicate)->a, b = tir_at(ir, predicate)->b;
  return maps_under(ir, a, indices, count, used, found, steps) || maps_under(ir, b, indices, count, used, found, steps);
}

/* Different iterations of the loops have different values: the first indices, of what runs side by side, and the
 * iterations of the block that do not. steps: of the first indices. */
static bool is_one_to_one(struct tir *ir, const struct iteration *r, tir_expr *indices, uint32_t count,
                          struct tir_progression *steps) {
  tir_expr predicate = r->block ? tir_as(ir, r->block, TIR_BLOCK)->block.predicate : TIR_NONE;
  if (predicate) predicate = tir_over_loops(ir, tir_stmt_at(ir, r->block)->parent, predicate);
  tir_var used[MOST_LOOPS];
  uint32_t found;
  struct tir_span iters = iters_of(ir, r);
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    if (ir->iters.at[i].kind == TIR_SPATIAL) continue;
    tir_expr binding = tir_over_loops(ir, r->block, tir_var_expr(ir, ir->iters.at[i].var));
    if (tir_uses_var(ir, binding, r->var)) return false;
    indices[count++] = binding;
  }
  return find_used(ir, r, indices, count, used, &found) &&
         (maps_under(ir, TIR_NONE, indices, count, used, found, steps) ||
          (predicate && maps_under(ir, predicate, indices, count, used, found, steps)));
}

/* Different iterations write at different places. */
static bool is_apart_by_place(struct tir *ir, const struct iteration *r) {
  tir_expr indices[MOST_INDICES];
  struct tir_progression steps[MOST_INDICES];
  uint32_t rank = tir_buffer_at(ir, r->region.buffer)->rank;
  for (uint32_t d = 0; d < rank; d++) indices[d] = r->ranges[2 * d];
  if (!is_one_to_one(ir, r, indices, rank, steps)) return false;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t most = tir_at(ir, r->ranges[2 * d + 1])->hi;
    if (steps[d].scale && most > 1 && tir_at(ir, steps[d].scale)->lo < most) return false;
  }
  return true;
}

/* The block's spatial iterations do, each of which writes one element of its own, or where data decides. */
static bool is_apart_by_iteration(struct tir *ir, const struct iteration *r) {
  tir_expr indices[MOST_INDICES];
  struct tir_progression steps[MOST_INDICES];
  struct tir_span iters = iters_of(ir, r);
  uint32_t count = 0;
  for (uint32_t d = 0; d < tir_buffer_at(ir, r->region.buffer)->rank; d++)
    if (tir_uses_var(ir, r->ranges[2 * d], r->var) && !tir_is_const(ir, r->ranges[2 * d + 1], 1)) return false;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if (ir->iters.at[i].kind == TIR_SPATIAL)
      indices[count++] = tir_over_loops(ir, r->block, tir_var_expr(ir, ir->iters.at[i].var));
  return is_one_to_one(ir, r, indices, count, steps);
}

/* Each iteration of the loop has its own. */
static bool is_of_iteration(const struct tir *ir, tir_buffer buffer, tir_loop loop) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (tir_stmt_at(ir, loop)->loop_kind == TIR_THREAD_BINDING) return tir_buffer_memory(ir, buffer) != TIR_DEVICE_MEMORY;
  return b->where && tir_is_below(ir, b->where, loop);
}

/* The loops around the statement, the parallel one last. False: there are too many. */
static bool find_loops(const struct tir *ir, tir_loop loop, tir_stmt s, struct iteration *r) {
  r->count = 0;
  do {
    s = tir_stmt_at(ir, s)->parent;
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    if (r->count == MOST_LOOPS) return false;
    r->vars[r->count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
  } while (s != loop);
  r->var = r->vars[r->count - 1];
  return true;
}

/* Iterations of the loop neither write the same elements of this region, nor read what others write. */
static bool is_region_apart(struct tir *ir, tir_loop loop, const struct iteration *r) {
  tir_buffer buffer = r->region.buffer;
  struct lower_windows windows;
  if (tir_buffer_at(ir, buffer)->rank + iters_of(ir, r).count > MOST_INDICES) return false;
  if (!is_apart_by_step(ir, r) && !is_apart_by_place(ir, r) && !is_apart_by_iteration(ir, r)) return false;
  return !lower_find_windows(ir, loop, buffer, &windows) || !lower_reads_other_iterations(ir, &windows, r->var);
}

/* So it is for all regions that the block writes, of buffers that outlive the iteration. */
static bool is_apart(struct tir *ir, tir_loop loop, tir_block block) {
  assert(tir_is_below(ir, block, loop));
  struct iteration r = {.block = block};
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    r.region = ir->regions.at[i];
    if (is_of_iteration(ir, r.region.buffer, loop)) continue;
    if (tir_buffer_at(ir, r.region.buffer)->rank > TIR_MOST_RANK || !find_loops(ir, loop, block, &r)) return false;
    tir_region_over_loops(ir, block, r.region, r.ranges);
    if (!is_region_apart(ir, loop, &r)) return false;
  }
  return true;
}

struct stores {
  tir_loop loop;
  bool apart;
};

static void check_store(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct stores *stores = data;
  if (!writes || !stores->apart || is_of_iteration(ir, a->buffer, stores->loop)) return;
  struct iteration r = {.block = tir_parent_block(ir, s), .region = {.buffer = a->buffer}};
  stores->apart = find_loops(ir, stores->loop, s, &r);
  for (uint32_t d = 0; d < a->count && stores->apart; d++) {
    stores->apart = tir_is_index(ir, a->indices[d]);
    r.ranges[2 * d] = tir_over_loops(ir, s, a->indices[d]);
    r.ranges[2 * d + 1] = tir_int(ir, tir_type_of(ir, r.ranges[2 * d]), 1);
  }
  stores->apart = stores->apart && is_region_apart(ir, stores->loop, &r);
}

/* Sets the byte of each buffer of which a block in the statement, or it itself, matches a part. */
static void find_matched(const struct tir *ir, tir_stmt top, uint8_t *found) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span matches = tir_block_at(ir, s)->matches;
    for (uint32_t i = matches.first; i < matches.first + matches.count; i++) found[ir->matches.at[i].source.buffer] = 1;
  }
}

/* So it is for all stores of the statement: a block that does not declare what is in it, or one in no block; and of no
 * buffer that outlives the iteration a part is matched or a pointer used. */
static bool are_stores_apart(struct tir *ir, tir_loop loop, tir_stmt s) {
  struct stores stores = {loop, true};
  uint8_t *taken = lower_pointers(ir, s);
  find_matched(ir, s, taken);
  for (tir_buffer b = 1; b < ir->buffers.count; b++) stores.apart &= !taken[b] || is_of_iteration(ir, b, loop);
  free(taken);
  if (stores.apart) lower_visit(ir, s, check_store, &stores);
  return stores.apart;
}

/* What the statement, below the loop, writes: a block, or, where asked for, what is in none. */
static bool is_stmt_apart(struct tir *ir, tir_loop loop, tir_stmt s, bool bare) {
  if (tir_is(ir, s, TIR_BLOCK) && tir_check_declares_inner(ir, s, NULL)) return is_apart(ir, loop, s);
  bool writes = tir_is(ir, s, TIR_BLOCK) || (bare && (tir_is(ir, s, TIR_STORE) || tir_is(ir, s, TIR_EVALUATE)));
  return !writes || are_stores_apart(ir, loop, s);
}

static bool iterations_are_apart(struct tir *ir, tir_loop loop, bool bare) {
  assert(tir_is(ir, loop, TIR_LOOP));
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next_in_scope(ir, s, loop))
    if (!is_stmt_apart(ir, loop, s, bare)) return false;
  return true;
}

/* The loop has nothing but loops and blocks in it. */
static bool holds_only_blocks(const struct tir *ir, tir_loop loop) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next_in_scope(ir, s, loop))
    if (!tir_is(ir, s, TIR_BLOCK) && !tir_is(ir, s, TIR_LOOP)) return false;
  return true;
}

/* Why iterations of the loop may run at once: its blocks allow what Vectorize asks of them, or they touch elements of
 * their own. */
static bool may_be_vectors(struct tir *ir, tir_loop loop) {
  return (holds_only_blocks(ir, loop) && tir_is_data_parallel(ir, loop)) || iterations_are_apart(ir, loop, true);
}

static bool is_of_blocks(const struct tir *ir, tir_stmt s) { return tir_is_block_axis(tir_loop_axis(ir, s)); }

/* Memory of the device that is allocated again in each iteration of a TensorIR block below the loop, where it would
 * be one for all. */
static bool has_inner_memory(const struct tir *ir, tir_loop loop) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop))
    if (tir_is(ir, s, TIR_ALLOC) && tir_buffer_memory(ir, tir_stmt_at(ir, s)->alloc.buffer) == TIR_DEVICE_MEMORY &&
        tir_is_below(ir, tir_parent_block(ir, s), loop))
      return true;
  return false;
}

bool lower_order(struct lowering *low) {
  struct tir *ir = low->ir;
  bool gpu = low->options && low->options->device == TIR_GPU;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) == 1) continue;
    uint8_t kind = tir_stmt_at(ir, s)->loop_kind;
    bool parallel = kind == TIR_PARALLEL && !iterations_are_apart(ir, s, !gpu);
    if (parallel || (!gpu && kind == TIR_VECTORIZED && !may_be_vectors(ir, s))) {
      lower_note(low, s,
                 parallel ? "parallel: an iteration touches what another writes, and they run in order"
                          : "vectorized: an iteration touches what another writes, and they run in order");
      tir_stmt_at(ir, s)->loop_kind = TIR_SERIAL;
    }
    if (gpu && is_of_blocks(ir, s) && (has_inner_memory(ir, s) || !iterations_are_apart(ir, s, false)))
      return tir_refuse(ir, low->err, MS_LOWER_KERNEL, s,
                        "blocks write the same elements of the device's memory, or read what others write there");
  }
  return true;
}
