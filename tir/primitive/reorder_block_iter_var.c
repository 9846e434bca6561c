/* Reorder block iteration variables: a block's iterations are listed in another order.
 *
 * Requires: the order names each iteration once, by its number from 0.
 * After:    iteration i is what iteration order[i] was, with its binding. What is computed does not change.
 * Forward:  nothing. */
#include "tir/analysis/analysis.h"

#include <stdlib.h>

enum { MOST_ON_STACK = 32 };

static bool check_reorder_block_iter_var(const struct tir *ir, tir_block block, const int64_t *order, uint32_t count,
                                         ms_error *err) {
  uint32_t iters = tir_block_at(ir, block)->iters.count;
  if (count != iters)
    return tir_refuse(ir, err, MS_ITER_ORDER, block, "the order has %u numbers; block `%s` has %u iterations", count,
                      tir_block_name(ir, block), iters);
  for (uint32_t i = 0; i < count; i++) {
    bool fits = order[i] >= 0 && order[i] < count;
    for (uint32_t j = 0; j < i; j++) fits &= order[j] != order[i];
    if (!fits)
      return tir_refuse(ir, err, MS_ITER_ORDER, block, "number %lld of the order is out of range or stands twice",
                        (long long)order[i]);
  }
  return true;
}

static void edit_reorder_block_iter_var(struct tir *ir, tir_block block, const int64_t *order, uint32_t count) {
  struct tir_iter on_stack[MOST_ON_STACK], *iters = tir_room(on_stack, sizeof on_stack, count * sizeof *iters);
  for (uint32_t i = 0; i < count; i++) iters[i] = tir_iters(ir, block)[order[i]];
  for (uint32_t i = 0; i < count; i++) tir_iters(ir, block)[i] = iters[i];
  if (iters != on_stack) free(iters);
}

bool tir_reorder_block_iter_var(struct tir *ir, tir_block block, const int64_t *order, uint32_t count, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  if (!check_reorder_block_iter_var(ir, block, order, count, err)) return false;
  edit_reorder_block_iter_var(ir, block, order, count);
  return true;
}
