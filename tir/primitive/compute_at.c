/* Compute at: a block moves under a loop, where its consumers need it, and computes what they need of it there.
 *
 * Requires: the scope is a stage pipeline; the block is complete or a reduction, writes no output of the scope, and is
 *           not all there is in it; no loop around the scope reduces in the block; the loop is in the same scope and
 *           not around the block; all consumers are below the loop; each iteration follows from what they read, or
 *           runs through its domain; it runs for all values of the iterations now, or would write other elements for
 *           others; no loop takes a step of a reduction again, and no two iterations use one element, unless one loop
 *           has them all; the index names a place before the first consumer.
 * After:    serial loops ax0, ax1, … around the block, one an iteration (those of extent 1 only if they are
 *           preserved), with a predicate where what is read may reach past the block's domain or its buffers. Memory
 *           that threads share is computed for all of them. The old nest is gone as far as it held nothing else.
 * Forward:  the old loops that are gone are dead. */
#include "move_block.h"

bool tir_compute_at(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                    ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, loop, TIR_LOOP));
  return tir_move_block(ir, block, loop, true, preserve_unit_loops, index, err);
}

bool tir_compute_located(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                         ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, loop, TIR_LOOP));
  return tir_move_located(ir, block, loop, preserve_unit_loops, index, err);
}

bool tir_can_compute_at(struct tir *ir, tir_block block, tir_loop loop) {
  return tir_can_move_block(ir, block, loop, true);
}
