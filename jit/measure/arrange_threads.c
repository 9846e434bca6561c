/* Loops of an unscheduled function shared among the threads of a device, to be compared with.
 *
 *   for i, j, k: C[i, j] += A[i, k] * B[k, j]   becomes   for i, j in blockIdx.x, threadIdx.x: for k: sum += …; C = sum
 *
 * Every element is computed by one thread, in the order that is written, except where there are fewer elements than
 * would keep the device busy and each sums much: there the threads of a block sum one together. */
#include "arrange_threads.h"

#include <assert.h>

enum { MOST_BLOCKS = 256, MOST_LOOPS = 64, MOST_THREADS = 256, LEAST_THREADS = 64 };
enum { FEW_ELEMENTS = 1 << 14, LONG_SUM = 1 << 10 };

struct nest {
  tir_block block;
  tir_loop spatial[MOST_LOOPS], reducing[MOST_LOOPS];
  uint32_t spatial_count, reducing_count;
  double elements, terms;
};

static bool refuse(const struct tir *ir, tir_block block, const char *why, ms_error *err) {
  return ms_fail(err, MS_NOT_COMPILABLE, "block %s %s", tir_block_name(ir, block), why);
}

/* The kinds of a block's iterations that depend on a loop, as bits. */
static unsigned kinds_of(const struct tir *ir, tir_loop loop, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  unsigned kinds = 0;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if (tir_uses_var(ir, ir->iters.at[i].binding, tir_as(ir, loop, TIR_LOOP)->loop.var))
      kinds |= 1u << ir->iters.at[i].kind;
  return kinds;
}

/* Outermost first. Loops that iterations of both kinds depend on, or none that is known, stay out of it. */
static bool read_nest(const struct tir *ir, tir_block block, struct nest *nest, ms_error *err) {
  enum { SPATIAL = 1 << TIR_SPATIAL, REDUCING = 1 << TIR_REDUCE };
  tir_loop loops[MOST_LOOPS];
  uint32_t count = tir_loops_of(ir, block, loops, MOST_LOOPS);
  *nest = (struct nest){.block = block, .elements = 1, .terms = 1};
  if (count > MOST_LOOPS) return refuse(ir, block, "has too many loops around it", err);
  for (uint32_t i = 0; i < count; i++) {
    unsigned kinds = kinds_of(ir, loops[i], block);
    int64_t extent = tir_loop_extent(ir, loops[i]);
    if (extent <= 0 || tir_stmt_at(ir, loops[i])->loop_kind != TIR_SERIAL)
      return refuse(ir, block, "has a loop whose extent is not known, or that is scheduled already", err);
    if (kinds & ~(unsigned)(SPATIAL | REDUCING) || (kinds & SPATIAL && kinds & REDUCING))
      return refuse(ir, block, "has loops that are neither over elements nor over what each sums", err);
    if (kinds & REDUCING)
      nest->reducing[nest->reducing_count++] = loops[i], nest->terms *= (double)extent;
    else
      nest->spatial[nest->spatial_count++] = loops[i], nest->elements *= (double)extent;
  }
  return true;
}

/* Joins loops to one; none: one of a single iteration, around the block. */
static bool join(struct tir *ir, tir_stmt inside, const tir_loop *loops, uint32_t count, tir_loop *out, ms_error *err) {
  if (!count) return tir_add_unit_loop(ir, inside, out, err);
  *out = loops[0];
  return count == 1 || tir_fuse(ir, loops, count, true, out, err);
}

/* The most threads of a block that divide so many iterations: then none is guarded, and what a thread keeps is one
 * element, as the lowering sees it. */
static int64_t divisor_of(int64_t extent) {
  int64_t divisor = MOST_THREADS;
  while (extent % divisor) divisor--;
  return divisor;
}

/* Cuts a loop in two, the inner of at most so many iterations. */
static bool cut(struct tir *ir, tir_loop loop, int64_t most, tir_loop out[2], ms_error *err) {
  int64_t extent = tir_loop_extent(ir, loop), divisor = divisor_of(extent);
  int64_t inner = extent < most ? extent : divisor >= LEAST_THREADS ? divisor : most;
  const tir_expr factors[2] = {TIR_NONE, tir_int(ir, TIR_T_I32, inner)};
  return tir_split(ir, loop, factors, 2, true, false, out, err);
}

static bool give_each_a_thread(struct tir *ir, tir_loop elements, tir_loop *thread, ms_error *err) {
  tir_loop parts[2];
  if (!cut(ir, elements, MOST_THREADS, parts, err)) return false;
  *thread = parts[1];
  return tir_bind(ir, parts[0], "blockIdx.x", err) && tir_bind(ir, parts[1], "threadIdx.x", err);
}

/* A thread keeps its accumulators until they are complete: the loops that write the accumulators back are bound to the
 * same threads. */
static bool keep_sums(struct tir *ir, const struct nest *nest, ms_error *err) {
  tir_block copy;
  tir_loop loops[MOST_LOOPS], elements, thread;
  if (!tir_cache_write(ir, nest->block, 0, "local", NULL, 0, &copy, err)) return false;
  uint32_t count = tir_loops_of(ir, copy, loops, MOST_LOOPS);
  return count <= MOST_LOOPS && join(ir, copy, loops, count, &elements, err) &&
         give_each_a_thread(ir, elements, &thread, err) && tir_compute_at(ir, nest->block, thread, true, -1, err);
}

static bool give_each_a_block(struct tir *ir, const struct nest *nest, tir_loop elements, ms_error *err) {
  tir_loop terms, parts[2];
  return join(ir, nest->block, nest->reducing, nest->reducing_count, &terms, err) &&
         cut(ir, terms, MOST_THREADS, parts, err) && tir_bind(ir, elements, "blockIdx.x", err) &&
         tir_bind(ir, parts[1], "threadIdx.x", err);
}

/* The attempts: all; no element is shared; and its sum goes to memory term by term. */
enum { TOGETHER, ALONE, PLAIN };

static bool arrange(struct tir *ir, const struct nest *nest, int64_t most_threads, uint32_t attempt, ms_error *err) {
  tir_loop order[2 * MOST_LOOPS], elements, thread;
  uint32_t count = 0;
  bool few = nest->elements < FEW_ELEMENTS && nest->terms >= LONG_SUM && most_threads >= MOST_THREADS;
  bool together = attempt == TOGETHER && few;
  bool whole = nest->elements <= MOST_THREADS || divisor_of((int64_t)nest->elements) >= LEAST_THREADS;
  if (!together && attempt < PLAIN && nest->reducing_count && whole && tir_block_at(ir, nest->block)->writes.count == 1)
    return keep_sums(ir, nest, err);
  for (uint32_t i = 0; i < nest->spatial_count; i++) order[count++] = nest->spatial[i];
  for (uint32_t i = 0; i < nest->reducing_count; i++) order[count++] = nest->reducing[i];
  if (nest->spatial_count && nest->reducing_count && !tir_reorder(ir, order, count, err)) return false;
  tir_stmt inside = nest->reducing_count ? nest->reducing[0] : nest->block;
  if (!join(ir, inside, nest->spatial, nest->spatial_count, &elements, err)) return false;
  return together ? give_each_a_block(ir, nest, elements, err) : give_each_a_thread(ir, elements, &thread, err);
}

bool jit_arrange_threads(struct tir *ir, tir_func f, const struct jit_target *target, uint32_t attempt, ms_error *err) {
  assert(attempt < JIT_ARRANGE_ATTEMPTS);
  tir_block blocks[MOST_BLOCKS], root = tir_root_block(ir, f);
  uint32_t count = root ? tir_child_blocks(ir, root, blocks, MOST_BLOCKS) : 0;
  if (!count || count > MOST_BLOCKS) return ms_fail(err, MS_NOT_COMPILABLE, "the function has no blocks, or too many");
  for (uint32_t i = 0; i < count; i++) {
    struct nest nest;
    if (!read_nest(ir, blocks[i], &nest, err) || !arrange(ir, &nest, target->gpu.max_threads, attempt, err))
      return false;
  }
  return true;
}
