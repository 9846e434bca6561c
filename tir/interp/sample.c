/* Running what a few outputs need: a function too large for the interpreter is judged by samples.
 *
 * On a copy, every block that others need is moved under the loops around the outputs, as far as compute_at goes; then
 * spatial loops under which nothing is written that is read elsewhere are run for one value each. What could not be
 * moved runs whole: the results are right either way. No block is moved under loops that run whole: of what neighbours
 * share, as the windows of a convolution do, each would make its own. Where all samples together take more than the
 * function as it stands, that is run instead. */
#include "interp.h"
#include "tir/analysis/analysis.h"
#include "tir/arith/bounds.h"

#include <stdlib.h>

enum { MOST_BLOCKS = 256, MOST_LOOPS = 256 };

/* No block of the scope below the loop reduces along it, or does what is not known. */
static bool is_spatial(struct tir *ir, tir_loop loop) {
  tir_block blocks[MOST_BLOCKS];
  uint32_t count = tir_child_blocks(ir, loop, blocks, MOST_BLOCKS);
  for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
    if (tir_loop_iter_kinds(ir, loop, blocks[i]) & ~1u) return false;
  return count <= MOST_BLOCKS;
}

/* Whether the loop is around an output of the scope: one that may run for one value. */
static bool is_around_output(struct tir *ir, tir_loop loop, tir_block scope) {
  tir_block blocks[MOST_BLOCKS];
  uint32_t count = tir_child_blocks(ir, loop, blocks, MOST_BLOCKS);
  for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
    if (tir_is_output_block(ir, blocks[i], scope)) return true;
  return false;
}

/* The innermost loop around `block` and an output that is spatial, with only such loops around. */
static tir_loop innermost_sampled_loop(struct tir *ir, tir_block block, tir_block scope) {
  tir_loop loops[MOST_LOOPS], found = TIR_NONE;
  uint32_t count = tir_loops_of(ir, block, loops, MOST_LOOPS);
  for (uint32_t i = 0; i < count && i < MOST_LOOPS; i++) {
    if (!is_spatial(ir, loops[i]) || !is_around_output(ir, loops[i], scope)) break;
    found = loops[i];
  }
  return found;
}

/* Consumers are gathered before what they consume, so the last block comes first. */
static void gather(struct tir *ir, tir_block scope) {
  tir_block children[MOST_BLOCKS], consumers[MOST_BLOCKS];
  uint32_t count = tir_child_blocks(ir, scope, children, MOST_BLOCKS);
  if (count > MOST_BLOCKS) return;
  for (uint32_t i = count; i-- > 0;) {
    uint32_t users = tir_consumers(ir, children[i], consumers, MOST_BLOCKS);
    if (!users || users > MOST_BLOCKS || tir_is_output_block(ir, children[i], scope)) continue;
    ms_error refusal;
    refusal.brief = true;
    tir_loop under = innermost_sampled_loop(ir, consumers[users - 1], scope);
    if (under) tir_compute_at(ir, children[i], under, false, -1, &refusal);
  }
}

/* Whether nothing outside the loop reads what is written under it. */
static bool is_alone(const struct tir *ir, tir_loop loop) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span writes = tir_block_at(ir, s)->writes;
    for (uint32_t i = 0; i < writes.count; i++) {
      tir_buffer buffer = ir->regions.at[writes.first + i].buffer;
      for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next)
        if (!tir_is_below(ir, ir->uses.at[u].block, loop) && !tir_is_below(ir, loop, ir->uses.at[u].block))
          return false;
    }
  }
  return true;
}

/* Whether any iteration of it may be run without the others. */
static bool can_fix(struct tir *ir, tir_loop loop) {
  return tir_stmt_at(ir, loop)->loop_kind != TIR_THREAD_BINDING && tir_loop_extent(ir, loop) >= 1 &&
         tir_loop_starts_at_zero(ir, loop) && is_spatial(ir, loop) && is_alone(ir, loop);
}

static uint32_t add_loop(struct tir *ir, tir_loop loop, struct tir_fixed_loop *out, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (out[i].loop == loop) return count;
  if (count == MOST_LOOPS || !can_fix(ir, loop)) return count;
  out[count].loop = loop;
  return count + 1;
}

/* The loops around output blocks that may run for one value. */
static uint32_t find_loops(struct tir *ir, tir_block scope, struct tir_fixed_loop *out) {
  tir_block children[MOST_BLOCKS];
  tir_loop loops[MOST_LOOPS];
  uint32_t count = tir_child_blocks(ir, scope, children, MOST_BLOCKS), found = 0;
  if (count > MOST_BLOCKS) return 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!tir_is_output_block(ir, children[i], scope)) continue;
    uint32_t around = tir_loops_of(ir, children[i], loops, MOST_LOOPS);
    for (uint32_t k = 0; k < around && k < MOST_LOOPS; k++) found = add_loop(ir, loops[k], out, found);
  }
  return found;
}

static bool is_fixed(tir_loop loop, const struct tir_fixed_loop *fixed, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (fixed[i].loop == loop) return true;
  return false;
}

/* Stores that a run does, inits at each, and each loop of `fixed` for one value. An extent that is no constant counts
 * as the largest that it may be. */
static double stores_of(const struct tir *ir, tir_func f, const struct tir_fixed_loop *fixed, uint32_t count) {
  tir_stmt body = ir->funcs.at[f].body;
  double all = 0;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    double times = 1;
    for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent)
      if (tir_is(ir, p, TIR_LOOP) && !is_fixed(p, fixed, count))
        times *= (double)tir_bounds_of(ir, tir_stmt_at(ir, p)->loop.extent).hi;
    all += times;
  }
  return all;
}

/* The first sample is the first iteration of every loop, the second the last; the others are drawn. */
static int64_t draw(int64_t extent, uint64_t seed, uint32_t sample, uint32_t loop) {
  if (sample < 2) return sample ? extent - 1 : 0;
  return (int64_t)(tir_drawn(seed, sample, loop) % (uint64_t)extent);
}

bool tir_run_samples(const struct tir *ir, tir_func f, const struct tir_arg *args, uint32_t count,
                     const struct tir_run_options *options, uint64_t seed, uint32_t samples, ms_error *err) {
  assert(tir_is_func(ir, f));
  struct tir *copy = tir_new();
  struct tir_fixed_loop fixed[MOST_LOOPS];
  uint32_t loops = 0;
  tir_copy(copy, ir);
  tir_block root = tir_root_block(copy, f);
  if (root) {
    gather(copy, root);
    loops = find_loops(copy, root, fixed);
  }
  if (samples * stores_of(copy, f, fixed, loops) >= stores_of(ir, f, NULL, 0)) {
    tir_free(copy);
    return tir_run(ir, f, args, count, options, err);
  }
  struct tir_run_options sampled = options ? *options : (struct tir_run_options){0};
  sampled.fixed = fixed, sampled.fixed_count = loops;
  bool ok = true;
  for (uint32_t i = 0; ok && i < samples && (loops || !i); i++) {
    for (uint32_t k = 0; k < loops; k++) fixed[k].value = draw(tir_loop_extent(copy, fixed[k].loop), seed, i, k);
    ok = tir_run(copy, f, args, count, &sampled, err);
  }
  tir_free(copy);
  return ok;
}
