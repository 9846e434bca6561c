/* Making a block of what stands below a loop: what Blockize and Tensorize share. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_BLOCKIZE_H
#define MSCHED_TIR_PRIMITIVE_BLOCKIZE_H

#include "tir/analysis/analysis.h"
#include "tir/arith/affine.h"

enum { TIR_MOST_BLOCKIZED = 64 }; /* loops around a block, and iterations of it */

/* How a block is divided into one for its outer loops and one for its inner loops. Found by a check. */
struct tir_blockize_plan {
  tir_block block;
  uint32_t inner_count, iter_count;   /* of the loops around the block, and of its iterations */
  tir_loop loops[TIR_MOST_BLOCKIZED]; /* innermost first: the inner ones, then the others */
  struct tir_division parts[TIR_MOST_BLOCKIZED];
  tir_expr predicates[2]; /* of the outer block, of the inner */
  bool preserve_unit_iters;
  bool around_first; /* set before the check: iterations of the block around divide, where they can, as loops do */
};

/* Makes the loop and what is below it a block; accepts what tir_blockize does. */
bool tir_check_blockize(struct tir *ir, tir_loop loop, bool preserve_unit_iters, struct tir_blockize_plan *plan,
                        ms_error *err);
tir_block tir_edit_blockize(struct tir *ir, struct tir_blockize_plan *plan);

#endif
