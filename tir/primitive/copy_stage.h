/* A stage that copies between a buffer and another of its elements in other places, iterations chosen by the caller.
 * Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_COPY_STAGE_H
#define MSCHED_TIR_PRIMITIVE_COPY_STAGE_H

#include "buffer.h"

enum { TIR_MOST_STAGE = 64 };

struct tir_copy_stage {
  tir_symbol name;
  tir_buffer from, to;
  uint32_t loop_count, iter_count, from_rank, to_rank;
  tir_var loops[TIR_MOST_STAGE]; /* outermost first */
  struct tir_iter iters[TIR_MOST_STAGE];
  tir_expr predicate; /* over the loops; TIR_NONE: true */
  bool inside;        /* all places of `from` are in it, and are not guarded */
  tir_expr outside;   /* what is read beyond `from`; TIR_NONE: zero */
  tir_expr from_at[TIR_MOST_EDITED_RANK], to_at[TIR_MOST_EDITED_RANK]; /* over the iterations */
};
/* What is written is copied back whatever conditions the block's body may have: each place must be within the buffer,
 * and is stored to in any case. */
bool tir_check_copied_back(struct tir *ir, tir_block block, tir_buffer buffer, const tir_expr *places, ms_error *err);
/* The name, or, where a block has it, that with the least number behind it that none has: of blocks that are named by
 * buffers, so that each is found by its name. */
tir_symbol tir_free_block_name(struct tir *ir, tir_symbol name);
/* A loop and an iteration of the stage over dimension `d`, so many elements, each from its place to the same place. */
void tir_copy_dimension(struct tir *ir, struct tir_copy_stage *stage, uint32_t d, tir_expr extent);
/* The stage, detached: its outermost statement. Places of `from` that may leave it are guarded: what the block reads
 * under a condition is `outside` where the condition does not hold. */
tir_stmt tir_make_copy_stage(struct tir *ir, const struct tir_copy_stage *stage, tir_block *block);

/* Whether a loop's variable, or one that is bound in the block, is in it: it means nothing outside. */
bool tir_uses_inner_var(const struct tir *ir, tir_expr e);

/* All uses of a buffer in a block, which has no blocks in it, as loads and stores at one place. */
struct tir_single_access {
  tir_expr at[TIR_MOST_EDITED_RANK]; /* over the block's iterations */
  uint32_t rank;
};
/* Refuses a block that holds others, and uses of the buffer that are none or differ, are opaque, load, or depend on
 * what is no iteration of the block; unit_loops: unit loops in it are taken for their only value. */
bool tir_find_single_access(struct tir *ir, tir_block block, tir_buffer buffer, bool unit_loops,
                            struct tir_single_access *out, ms_error *err);
/* All uses become uses of `to` at `at`; so do the block's regions. */
void tir_replace_access(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to, const tir_expr *at,
                        uint32_t rank);

#endif
