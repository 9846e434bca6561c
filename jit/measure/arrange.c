/* Loops of an unscheduled function in an order in which it runs fast, to be compared with.
 *
 *   for i, j, k: C[i, j] += A[i, k] * B[k, j]     becomes     for i in parallel: for k: for j: …
 *
 * Every element is still computed by the same operations in the same order: loops of reductions keep their order among
 * themselves, and what is moved across them, and shared among threads, are loops over elements. So results keep their
 * bits, of real numbers too, as long as the compiler keeps to the operations that are written (no_fast_math). */
#include "arrange.h"

enum { MOST_LOOPS = 32 };

struct nest {
  tir_block block;
  tir_loop loops[MOST_LOOPS]; /* outermost first */
  tir_var iters[MOST_LOOPS];  /* the block's iteration that is bound to each */
  bool reduces[MOST_LOOPS];
  uint32_t count, reductions;
};

/* Reads the loops around a block, each of which is bound to one of its iterations, and to no other; false: they are
 * not.
 */
static bool read_nest(const struct tir *ir, tir_block block, struct nest *nest) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  *nest = (struct nest){.block = block};
  nest->count = tir_loops_of(ir, block, nest->loops, MOST_LOOPS);
  if (nest->count > MOST_LOOPS || nest->count != iters.count) return false;
  for (uint32_t l = 0; l < nest->count; l++) {
    tir_expr self = tir_var_expr(ir, tir_as(ir, nest->loops[l], TIR_LOOP)->loop.var);
    uint32_t i = iters.first;
    while (i < iters.first + iters.count && ir->iters.at[i].binding != self) i++;
    if (i == iters.first + iters.count || ir->iters.at[i].kind == TIR_OPAQUE) return false;
    nest->iters[l] = ir->iters.at[i].var;
    nest->reduces[l] = ir->iters.at[i].kind == TIR_REDUCE;
    nest->reductions += nest->reduces[l];
  }
  return true;
}

/* Whether a load's elements lie apart from one iteration to the next: its last index alone may depend on it. */
static bool strides(const struct tir *ir, const void *along, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  for (uint32_t d = 0; n->kind == TIR_LOAD && d + 1 < n->count; d++)
    if (tir_uses_var(ir, tir_operands(ir, n->operands)[d], *(const tir_var *)along)) return true;
  return false;
}

/* Whether the innermost of many iterations had better be those of the loop. */
static bool lies_side_by_side(struct tir *ir, const struct nest *nest, uint32_t loop) {
  for (tir_stmt at = tir_next(ir, nest->block, nest->block); at; at = tir_next(ir, at, nest->block))
    if (tir_is(ir, at, TIR_STORE) &&
        tir_any_node(ir, tir_as(ir, at, TIR_STORE)->store.value, TIR_HAS_LOAD, strides, &nest->iters[loop]))
      return false;
  return true;
}

/* What cannot be moved, as primitives see it, stays. */
static void arrange(struct tir *ir, const struct nest *nest) {
  tir_loop order[MOST_LOOPS];
  uint32_t count = 0, last = nest->count;
  ms_error refusal = {.brief = true};
  for (uint32_t l = 0; l < nest->count; l++)
    if (!nest->reduces[l]) last = l;
  for (uint32_t l = 0; l < nest->count; l++)
    if (!nest->reduces[l] && l != last) order[count++] = nest->loops[l];
  if (!count) return; /* no loop is left for threads */
  uint32_t spatial = count;
  for (uint32_t l = 0; l < nest->count; l++)
    if (nest->reduces[l]) order[count++] = nest->loops[l];
  order[count++] = nest->loops[last];
  if (nest->reductions && lies_side_by_side(ir, nest, last)) tir_reorder(ir, order, count, &refusal);
  uint32_t outer = 0; /* a loop of one iteration has nothing to share */
  while (outer + 1 < spatial && tir_is_const(ir, tir_as(ir, order[outer], TIR_LOOP)->loop.extent, 1)) outer++;
  tir_parallel(ir, order[outer], &refusal);
}

void jit_arrange(struct tir *ir, tir_func f) {
  assert(tir_is_func(ir, f));
  tir_stmt top = ir->funcs.at[f].body;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    struct nest nest;
    if (tir_is(ir, s, TIR_BLOCK) && read_nest(ir, s, &nest)) arrange(ir, &nest);
  }
}
