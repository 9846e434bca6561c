/* The order of iterations: whether blocks compute the same when the loops around them run in another one. Internal to
 * tir.
 *
 * This is the one question of all primitives that change the order in which a block's iterations run, whatever its
 * name: Reorder, Parallel, Vectorize, Bind, TransformBlockLayout. (Merge keeps the order within each nest, and asks
 * about pairs of nests, whose loops are not around each other's blocks: primitive/merge.c.) It goes by what iterations
 * write and read of one another, of one block and of several. Of a reduction they may run in any order, if what
 * combines two values gives the same whatever their order; rounding is not looked at. */
#ifndef MSCHED_TIR_ITERATION_ORDER_H
#define MSCHED_TIR_ITERATION_ORDER_H

#include "tir/node/arena.h"

/* A nest of loops, outermost first, and the order that they shall have: as loops, or as `parts` of their variables that
 * new loops run through. Both NULL: their iterations may run in any order, or at once. `what`: the change, as a message
 * names it: "reordered", "parallel". `compact`: tir_check_subtree_compact_dataflow has accepted the last of `now`, and
 * what it asks is not asked again. */
struct tir_new_order {
  const tir_loop *now, *then;
  uint32_t count;
  const char *what;
  const tir_expr *parts;
  uint32_t part_count;
  bool compact;
};
/* Refuses with the block, the buffer and the other block that needs the order. */
bool tir_check_iteration_order(struct tir *ir, const struct tir_new_order *order, ms_error *err);

/* What iterations of the block that differ in reductions alone (or in others too: `any`) do to one element does not
 * depend on their order (commutative.c): each store overwrites it with what is the same in all of them, or combines it
 * by one operation that is commutative and associative. What it does by other means than stores of its own is taken for
 * that. */
bool tir_is_commutative(struct tir *ir, tir_block block, bool any);
/* The block, a reduction, reads other elements than those that it stores to, which iterations of it write that differ
 * in spatial ones. */
bool tir_reads_other_iterations(struct tir *ir, tir_block block);
/* The block has an init, and iterations of it that differ in spatial ones may begin the same element. `trust_data`: not
 * so where data decide which elements these are. */
bool tir_begins_again(struct tir *ir, tir_block block, bool trust_data);
/* Refuses where they may, whatever data say. */
bool tir_check_begun_once(struct tir *ir, tir_block block, ms_error *err);
/* In two iterations that differ in a spatial one, the block may write an element that it writes or reads in both, as
 * its regions say. */
bool tir_instances_meet(struct tir *ir, tir_block block);
/* The same of what it writes, by the box around all that its stores reach of a buffer; of a buffer that it declares by
 * several regions, so it may. */
bool tir_reaches_meet(struct tir *ir, tir_block block);
/* While the loops of these variables run, outermost first, the value may be less in one iteration than in another
 * before it. */
bool tir_may_fall(struct tir *ir, tir_expr value, const tir_var *loops, uint32_t count);

#endif
