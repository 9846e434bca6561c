/* What primitives ask of the IR before they change it. Internal to tir. Nothing here changes statements.
 *
 * Words are TensorIR's. A scope is a block; its children are the blocks directly in it. A complete block has only
 * spatial (data parallel) iterations, is the only writer of what it writes and reads nothing it writes; a reduction
 * block has an init, spatial and reduction iterations, is the only writer, and its reduction iterations do not index
 * its writes. Both must dominate: be the only writer in the scope. Source: TensorIR (ASPLOS 2023), section 3.3. */
#ifndef MSCHED_TIR_ANALYSIS_H
#define MSCHED_TIR_ANALYSIS_H

#include "arena.h"
#include "bounds.h"

/* ---- Loops (analysis_block.c) ---- */

/* The extent, or -1 when it is no constant. */
static inline int64_t tir_loop_extent(const struct tir *ir, tir_loop l) {
  const struct tir_expr_node *n = tir_at(ir, tir_stmt_at(ir, l)->loop.extent);
  return n->kind == TIR_INT_IMM ? n->imm : -1;
}
bool tir_loop_starts_at_zero(const struct tir *ir, tir_loop l);
/* The only statement in a loop's body, or TIR_NONE. */
tir_stmt tir_only_child(const struct tir *ir, tir_stmt s);

/* ---- Blocks in their scope (analysis_block.c) ---- */

/* 0: it is one; else the number of the condition (1..5, as the function's comment lists them) that fails. */
int tir_complete_block_violation(struct tir *ir, tir_block block, tir_block scope);
int tir_reduction_block_violation(struct tir *ir, tir_block block, tir_block scope);
/* Refuse with the condition that fails; `block` is the place. */
bool tir_check_complete_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
bool tir_check_reduction_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
bool tir_check_complete_or_reduction_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
/* Every child of the scope is complete or a reduction under `below`, as TensorIR's "compact dataflow" asks. */
bool tir_check_subtree_compact_dataflow(struct tir *ir, tir_stmt below, tir_block scope, ms_error *err);
/* The scope is a stage pipeline: region cover holds for every read of every child, and producers come first. */
bool tir_check_stage_pipeline(struct tir *ir, tir_block scope, ms_error *err);
/* Children of block's scope that write what it reads (producers), or read what it writes (consumers), in order of text;
 * each once. Returns the number, stores at most `most`. */
uint32_t tir_producers(const struct tir *ir, tir_block block, tir_block *out, uint32_t most);
uint32_t tir_consumers(const struct tir *ir, tir_block block, tir_block *out, uint32_t most);
/* It writes a buffer that its scope does not allocate. */
bool tir_is_output_block(const struct tir *ir, tir_block block, tir_block scope);
/* Every binding of `block` is an affine map of the loops around it, below `high` (exclusive; TIR_NONE: all in its scope);
 * see affine.h. Cheap for the maps that splits and fusions make. */
bool tir_is_affine_binding(struct tir *ir, tir_block block, tir_stmt high);
/* Every binding is a plain loop variable. */
bool tir_is_trivial_binding(struct tir *ir, tir_block block);
/* Mask of the kinds of iterations that `loop`'s variable is bound to in `block`: 1 spatial, 2 reduction, 4 opaque. */
unsigned tir_loop_iter_kinds(struct tir *ir, tir_loop loop, tir_block block);

/* ---- Reductions (analysis_reduction.c) ---- */

enum { TIR_MOST_REDUCED = 8 }; /* buffers reduced by one block */
/* A reduction's parts: for each buffer the value it starts from (init), what the new element is (rhs), and how both
 * combine: combined[i] is an expression over the variables left[] and right[]. */
struct tir_reduction {
  uint32_t count;
  tir_buffer buffers[TIR_MOST_REDUCED];
  tir_expr init[TIR_MOST_REDUCED], value[TIR_MOST_REDUCED]; /* value: the right-hand side, as it stands in the block */
  tir_var left[TIR_MOST_REDUCED], right[TIR_MOST_REDUCED];
  tir_expr combined[TIR_MOST_REDUCED], identity[TIR_MOST_REDUCED];
  uint32_t indices[TIR_MOST_REDUCED]; /* of the stores, in tir.operands */
};
/* Recognizes sum, product, min, max, and reductions of several buffers (argmin, argmax, sums of tuples). */
bool tir_find_reduction(struct tir *ir, tir_block block, struct tir_reduction *out, ms_error *err);

/* ---- Regions (region.c) ---- */

/* One dimension of a region: [min, min + extent), both expressions. extent TIR_NONE: the whole axis, nothing known. */
struct tir_range { tir_expr min, extent; };
/* Bounds of a set of values: an expression's values while some variables run over their domains. `relaxed` lists those
 * variables; the others stay symbols. Exact where the map is affine and covers without gaps, else an upper bound. */
struct tir_range tir_relax(struct tir *ir, tir_expr e, const tir_var *relaxed, uint32_t count, tir_expr predicate);
/* The same of a region of a buffer, dimension by dimension. `strict`: refuse (false) unless the region is exact. */
bool tir_relax_region(struct tir *ir, const struct tir_region *region, const tir_var *relaxed, uint32_t count,
                      tir_expr predicate, bool strict, struct tir_range *out);
/* The smallest range known to hold both. */
struct tir_range tir_range_union(struct tir *ir, struct tir_range a, struct tir_range b);
struct tir_range tir_range_intersect(struct tir *ir, struct tir_range a, struct tir_range b);
/* Whether `inner` is inside `outer` for all values of their variables. */
bool tir_range_covers(struct tir *ir, struct tir_range outer, struct tir_range inner);
/* The regions a statement's subtree reads and writes, as TVMScript's detection gives them (detect.c). */

#endif
