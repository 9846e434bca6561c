/* Parallel, vectorize, bind, unroll: how a loop's iterations are run.
 *
 * Requires: unroll: nothing. The others: every block below is complete or a reduction in the subtree (compact
 *           dataflow), the loop stands in the bindings of spatial iterations only, and no iteration of it uses what
 *           another writes. A loop bound to threadIdx, or to the blocks of a cluster, may stand in reductions too: then
 *           the threads reduce together, no other block in the loop uses what they reduce, and no step is taken in two
 *           iterations. Bind: a thread axis that exists, and has as many threads or blocks on every device.
 * After:    the loop has the new kind, and no other.
 * Forward:  nothing. */
#include "tir/analysis/analysis.h"
#include "tir/analysis/order/iteration_order.h"

static bool check_block(struct tir *ir, tir_loop loop, tir_block block, bool across_threads, const char *what,
                        bool *reduces, ms_error *err) {
  unsigned kinds = tir_loop_iter_kinds(ir, loop, block), allowed = across_threads ? 1 | 2 : 1;
  *reduces |= (kinds & 2) != 0;
  if (!(kinds & ~allowed)) return true;
  return tir_refuse(ir, err, MS_LOOP_NOT_DATA_PARALLEL, block, "the loop cannot be %s: block `%s` uses it in %s", what,
                    tir_block_name(ir, block), kinds & 4 ? "an opaque iteration" : "a reduction");
}

/* The init of the block is more than stores. */
static bool has_wide_init(const struct tir *ir, tir_block block) {
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = tir_stmt_at(ir, s)->next)
    if (!tir_is(ir, s, TIR_STORE)) return true;
  return false;
}

/* Blocks in the init of another run with it: they are not asked. *reduces: the loop may stand in a reduction. */
static bool check_for_kind(struct tir *ir, tir_loop loop, bool across_threads, const char *what, bool *reduces,
                           ms_error *err) {
  *reduces = false;
  if (!tir_check_subtree_compact_dataflow(ir, loop, err)) return false;
  for (tir_stmt s = tir_next(ir, loop, loop); s;) {
    tir_stmt next;
    if (tir_is(ir, s, TIR_BLOCK)) {
      if (!check_block(ir, loop, s, across_threads, what, reduces, err)) return false;
      *reduces |= has_wide_init(ir, s);
      next = tir_stmt_at(ir, s)->first[TIR_BODY];
      s = next ? next : tir_after(ir, s, loop);
    } else {
      s = tir_next(ir, s, loop);
    }
  }
  struct tir_new_order order = {.now = &loop, .count = 1, .what = what, .compact = true};
  return tir_check_iteration_order(ir, &order, err);
}

/* Each thread begins a part of what they reduce together: one iteration takes the reduction's first step. */
static bool check_steps(struct tir *ir, tir_loop loop, ms_error *err) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_BLOCK) || !(tir_loop_iter_kinds(ir, loop, s) & 2) || !tir_stmt_at(ir, s)->first[TIR_INIT])
      continue;
    if (!tir_check_reduces_once(ir, s, loop, err)) return false;
  }
  return true;
}

/* What threads reduce together is there once all are done: no other block in the loop may use it. */
static bool check_results_unused(struct tir *ir, tir_loop loop, ms_error *err) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_BLOCK) || !(tir_loop_iter_kinds(ir, loop, s) & 2)) continue;
    for (tir_stmt t = tir_next(ir, loop, loop); t; t = tir_next(ir, t, loop)) {
      if (!tir_is(ir, t, TIR_BLOCK) || t == s || tir_is_below(ir, t, s) || tir_is_below(ir, s, t)) continue;
      struct tir_span result = tir_block_at(ir, s)->writes;
      if (tir_share_buffer(ir, tir_block_at(ir, t)->reads, result) ||
          tir_share_buffer(ir, tir_block_at(ir, t)->writes, result))
        return tir_refuse(ir, err, MS_LOOP_NOT_DATA_PARALLEL, t,
                          "the loop cannot be bound: block `%s` uses what block `%s` reduces over it",
                          tir_block_name(ir, t), tir_block_name(ir, s));
    }
  }
  return true;
}

static void edit_for_kind(struct tir *ir, tir_loop loop, enum tir_loop_kind kind, tir_symbol thread) {
  tir_stmt_at(ir, loop)->loop_kind = (uint8_t)kind;
  tir_as(ir, loop, TIR_LOOP)->loop.thread = thread;
}

bool tir_parallel(struct tir *ir, tir_loop loop, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  bool reduces;
  if (!check_for_kind(ir, loop, false, "parallel", &reduces, err)) return false;
  edit_for_kind(ir, loop, TIR_PARALLEL, TIR_NONE);
  return true;
}

bool tir_vectorize(struct tir *ir, tir_loop loop, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  bool reduces;
  if (!check_for_kind(ir, loop, false, "vectorized", &reduces, err)) return false;
  edit_for_kind(ir, loop, TIR_VECTORIZED, TIR_NONE);
  return true;
}

bool tir_is_data_parallel(struct tir *ir, tir_loop loop) {
  bool reduces;
  return check_for_kind(ir, loop, false, "", &reduces, NULL);
}

bool tir_bind(struct tir *ir, tir_loop loop, const char *thread, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  enum tir_axis axis = tir_axis_named(thread);
  if (axis == TIR_AXIS_COUNT)
    return tir_refuse(ir, err, MS_THREAD_UNKNOWN, loop, "there is no thread axis `%s`", thread);
  if (tir_loop_extent(ir, loop) > tir_axis_limit(axis))
    return tir_refuse(ir, err, MS_AXIS_LIMIT, loop, "the loop has %lld iterations, and %s at most %lld",
                      (long long)tir_loop_extent(ir, loop), thread, (long long)tir_axis_limit(axis));
  bool reduces, across_threads = tir_is_joining_axis(axis);
  if (!check_for_kind(ir, loop, across_threads, "bound", &reduces, err)) return false;
  if (reduces && (!check_steps(ir, loop, err) || !check_results_unused(ir, loop, err))) return false;
  tir_symbol symbol = tir_symbol_of(ir, thread);
  edit_for_kind(ir, loop, TIR_THREAD_BINDING, symbol);
  return true;
}

bool tir_unroll(struct tir *ir, tir_loop loop, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  (void)err;
  edit_for_kind(ir, loop, TIR_UNROLLED, TIR_NONE);
  return true;
}
