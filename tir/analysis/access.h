/* Accesses: how blocks use buffers, and what of that their regions declare. Internal to tir.
 *
 * Primitives go by regions: buffer.readers and buffer.writers list the blocks that declare a use. A block may do more
 * than it declares: index computations that are stored, what was hidden on request, parts of a partitioned loop. Such
 * uses are kept beside them, in buffer.undeclared, and are found from the bodies: tir_find_undeclared. So are those
 * that need no region: what a scope stores itself, or loads in ranges of its loops, in bindings and predicates of its
 * blocks. Here all are one table; who asks of an order or of all users asks here. */
#ifndef MSCHED_TIR_ACCESS_H
#define MSCHED_TIR_ACCESS_H

#include "tir/tir.h"

/* How a block itself, not blocks in it, uses a buffer. A root declares all that it uses, and so does a block what it
 * allocates. `around`: a block around it, within the scope that was asked of,
 * whose regions do not declare the use; TIR_NONE: all of them do. */
struct tir_access {
  tir_block block, around;
  tir_stmt at; /* the block; or the statement of it of which alone this is said: tir_own_use_at */
  bool reads, writes, declares_reads, declares_writes;
};
struct tir_access tir_access_of(const struct tir *ir, tir_block block, tir_buffer buffer);
/* What a statement of the block, no loop and no block, does with the buffer itself. outside.h goes through them. */
struct tir_access tir_own_use_at(struct tir *ir, tir_block block, tir_stmt s, tir_buffer buffer);
/* Statements of the block that are in no block may use the buffer. */
bool tir_may_use_outside(const struct tir *ir, tir_block block, tir_buffer buffer);
/* The block matches a part of the buffer, which its body uses under another name. */
bool tir_matches_part_of(const struct tir *ir, tir_block block, tir_buffer buffer);
/* One of the variables stands in a region that the block matches. */
bool tir_matches_by_vars(const struct tir *ir, tir_block block, const tir_var *vars, uint32_t count);
/* What a user annotated of a buffer is the buffer's mark: regions of other blocks are made of annotated ones. Marks the
 * buffers of a block that was read with annotations saying so; the numbers in these may be old. */
void tir_note_annotated(struct tir *ir, tir_block block);
static inline void tir_annotate_as(struct tir *ir, tir_buffer made, tir_buffer from) { /* made of it, and its regions */
  tir_buffer_at(ir, made)->user_annotated |= tir_buffer_at(ir, from)->user_annotated;
}

/* ---- Conflicts ---- */

/* Two blocks of the scope use a buffer, one of them writes it, and one of the uses is not declared, by its block or by
 * one around it; or one is the scope, at a statement that is in no block of it. */
struct tir_conflict {
  tir_buffer buffer;
  struct tir_access own, other;
};
/* Visits those of `block` and blocks in it with other blocks of the scope. False: a visit gave false, and no more
 * follow. */
struct tir_conflict_visitor {
  bool (*visit)(struct tir *ir, void *context, const struct tir_conflict *conflict);
  void *context;
};
bool tir_each_undeclared_conflict(struct tir *ir, tir_block block, tir_block scope,
                                  const struct tir_conflict_visitor *visitor);
bool tir_has_undeclared_conflict(struct tir *ir, tir_block block, tir_block scope);
/* A block in one of both uses a buffer that a block in the other uses, one writes it, and one of the uses is not
 * declared. */
bool tir_conflict_undeclared(struct tir *ir, tir_block a, tir_block b);

/* ---- Checks ---- */

/* Of the uses of the buffer in the scope, those in blocks of it are declared by these. */
bool tir_check_declared_around(struct tir *ir, tir_buffer buffer, tir_block scope, ms_error *err);
/* All writes of the buffer are declared: in the scope by its children, elsewhere by the blocks that store. */
bool tir_writes_are_declared(struct tir *ir, tir_buffer buffer, tir_block scope);
/* Blocks at or below `top` that use the buffer themselves declare it. */
bool tir_check_declared_below(struct tir *ir, tir_buffer buffer, tir_stmt top, ms_error *err);
/* The block declares what blocks in it declare. */
bool tir_check_declares_inner(const struct tir *ir, tir_block block, ms_error *err);
/* Refuse for a use that `block` makes, or a block in it, and does not declare. */
bool tir_refuse_undeclared(const struct tir *ir, tir_block block, tir_buffer buffer, ms_error *err);

/* Two lists of operands, by where they begin, are the same. */
static inline bool tir_same_operands(const struct tir *ir, uint32_t a, uint32_t b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (ir->operands.at[a + i] != ir->operands.at[b + i]) return false;
  return true;
}

/* ---- Exact regions (exact.c) ---- */

/* What the block declares to write is no more than what it writes, as far as can be seen at once. */
bool tir_check_writes_exact(struct tir *ir, tir_block block, ms_error *err);
/* The block does not store fewer elements of the buffer than its regions hold, nor some only where a condition in it
 * holds: what it leaves out is not to be copied, or computed elsewhere, over what is there. Where `given` (TIR_NONE:
 * true) does not hold, it may leave out all. Of a block with blocks in it, whose regions span theirs, it is to be shown
 * that their stores fill them. */
bool tir_check_stores_all(struct tir *ir, tir_block block, tir_buffer buffer, tir_expr given, ms_error *err);

#endif
