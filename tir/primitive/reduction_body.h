/* Blocks that reduce: that one is nothing else, and writing the statements of one that reduces by a known reducer.
 * Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_REDUCTION_BODY_H
#define MSCHED_TIR_PRIMITIVE_REDUCTION_BODY_H

#include "tir/analysis/analysis.h"

/* A block under construction: what it reduces into what. */
struct tir_reduction_body {
  tir_block block;
  const tir_buffer *buffers;
  uint32_t indices; /* of the element, in tir.operands */
  tir_expr left[TIR_MOST_REDUCED], right[TIR_MOST_REDUCED];
};

/* The block is a reduction of the scope, which reduces inside it, below loops alone, and has no buffers of its own. */
bool tir_check_bare_reduction(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
/* Removes all statements of a block, of its init too. */
void tir_empty_block(struct tir *ir, tir_block block);
/* Gives an empty block its statements: a reduction of right into left, which begins with the reducer's identity; or
 * where no iteration reduces, right alone. */
void tir_fill_reduction(struct tir *ir, const struct tir_reduction_body *body, const struct tir_reduction *r,
                        bool reduces);

#endif
