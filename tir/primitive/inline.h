/* What inlining a block into its consumers or its producer shares. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_INLINE_H
#define MSCHED_TIR_PRIMITIVE_INLINE_H

#include "tir/analysis/analysis.h"

enum { TIR_MOST_INLINED_RANK = 16 };

/* The block is no root, has no init, and its scope is a stage pipeline. */
bool tir_check_inlined_scope(struct tir *ir, tir_block block, tir_block *scope, ms_error *err);
bool tir_check_not_output(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
/* The scope would not be empty without the block. */
bool tir_check_not_only_block(struct tir *ir, tir_block block, ms_error *err);
/* No block but `block` matches a part of the buffer or uses it otherwise than by stores and loads of elements. */
bool tir_check_no_opaque_access(struct tir *ir, tir_buffer buffer, tir_block block, ms_error *err);
/* No block but those that read the buffer has it in the ranges of its regions; nor after the writer, unless TIR_NONE,
 * has its scope itself, in ranges of loops, bindings or predicates. */
bool tir_check_no_range_loads(struct tir *ir, tir_buffer buffer, tir_block writer, ms_error *err);
/* The scope stores to the buffer (`reads_too`: and reads it) in its blocks only. */
bool tir_check_blocks_only(struct tir *ir, tir_buffer buffer, tir_block scope, bool reads_too, ms_error *err);
/* No block but `reader`, those around it, and `except` reads the buffer. */
bool tir_check_only_reader(const struct tir *ir, tir_buffer buffer, tir_block reader, tir_block except, ms_error *err);

/* The block, or the outermost statement in its scope that holds nothing else. */
tir_stmt tir_top_of_leaf(const struct tir *ir, tir_block block);
/* The block allocates a buffer, or matches a part of one: what it does with that cannot be done in another block. */
static inline bool tir_has_own_buffers(const struct tir *ir, tir_block block) {
  return tir_block_at(ir, block)->allocs.count || tir_block_at(ir, block)->matches.count;
}
/* Kills the block and the loops around it that it leaves empty. */
void tir_kill_leaf(struct tir *ir, tir_block block);
/* Detaches the block; those loops die. */
void tir_take_leaf(struct tir *ir, tir_block block);

#endif
