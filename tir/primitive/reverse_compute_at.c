/* Reverse compute at: a block moves under a loop, where its producers are, and consumes what they produce there.
 *
 * Requires: the scope is a stage pipeline; the block is complete or a reduction, and not all there is in the scope;
 *           the loop is in the same scope and not around the block; all producers are below the loop (those of what the
 *           block is given are before all that it stands in: given.h), which with the
 *           loops around it runs through none of their reductions; no loop around the scope reduces in the block; each
 *           iteration follows from what the producers write, or runs through its domain; it runs for all values of
 *           the iterations now, or what the scope allocates it would write at other elements for others; all that is
 *           read is written by then; a reduction takes each step once, now too; no two iterations use one element,
 *           unless one loop has them all; the index names a place after the last producer.
 * After:    serial loops ax0, ax1, … around the block, one an iteration (those of extent 1 only if they are
 *           preserved), with a predicate where what is written may reach past the block's domain. The old nest is gone
 *           as far as it held nothing else.
 * Forward:  the old loops that are gone are dead. */
#include "move_block.h"

bool tir_reverse_compute_at(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                            ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, loop, TIR_LOOP));
  return tir_move_block(ir, block, loop, false, preserve_unit_loops, index, err);
}

bool tir_can_reverse_compute_at(struct tir *ir, tir_block block, tir_loop loop) {
  return tir_can_move_block(ir, block, loop, false);
}
