/* What a block is given by others than the block it goes to. A block annotated msched.given, a list of names of
 * buffers, reads these as if they were parameters of the function: who writes them need not be where the block goes,
 * but is done before that begins. So an epilogue goes to the product it belongs to, and what it adds comes from
 * elsewhere. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_GIVEN_H
#define MSCHED_TIR_PRIMITIVE_GIVEN_H

#include "tir/analysis/analysis.h"

/* The block's annotation names the buffer. */
bool tir_is_given(const struct tir *ir, tir_block block, tir_buffer buffer);
/* It names all that the block reads of what the producer writes. */
bool tir_is_given_all(const struct tir *ir, tir_block block, tir_block producer);
/* Whether who writes what the block is given comes before all of the scope's statement that holds `place`. */
bool tir_check_given(const struct tir *ir, tir_block block, tir_block scope, tir_stmt place, ms_error *err);

#endif
