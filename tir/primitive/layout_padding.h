/* Filling what a layout pads: nests that write all of a buffer, in order, come to write all of it in its new layout.
 * Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_LAYOUT_PADDING_H
#define MSCHED_TIR_PRIMITIVE_LAYOUT_PADDING_H

#include "buffer.h"

/* A layout whose inverse is known. */
struct tir_padded_layout {
  tir_buffer from;
  uint32_t rank, new_rank;
  tir_expr shape[TIR_MOST_EDITED_RANK];   /* the new one */
  tir_expr outputs[TIR_MOST_EDITED_RANK]; /* variables that stand for new indices */
  tir_expr values[TIR_MOST_EDITED_RANK];  /* the old indices, over them */
  tir_expr padding;                       /* over them: no element is here */
  tir_expr pad;                           /* the value to store there */
};
/* A block that stores each element of the buffer once for each of its other iterations: its only stores are to the
 * buffer, at iterations that are bound to perfectly nested serial loops over the dimensions, in order; or what stands
 * in such loops, in the block or around it, stores at the loops themselves. */
struct tir_full_nest {
  tir_block block;
  bool by_loops;
  uint32_t first_iter; /* of those that index the buffer, in order, unless by loops */
  tir_loop loops[TIR_MOST_EDITED_RANK];
};
/* Whether the block is one. */
bool tir_find_full_nest(struct tir *ir, tir_buffer buffer, tir_block block, struct tir_full_nest *out);
/* The loops become loops over the new shape; where there is padding, the block stores the pad value to it, in `to`. */
void tir_fill_padding(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
                      tir_buffer to);

#endif
