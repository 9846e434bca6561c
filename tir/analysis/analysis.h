/* What primitives ask of the IR before they change it. Internal to tir. Nothing here changes statements.
 *
 * Words are TensorIR's. A scope is a block; its children are the blocks directly in it. A complete block has only
 * spatial (data parallel) iterations, is the only writer of what it writes and reads nothing it writes; a reduction
 * block has an init, spatial and reduction iterations, is the only writer, and its reduction iterations do not index
 * its writes. Both must dominate: be the only writer in the scope. Source: TensorIR (ASPLOS 2023), section 3.3. */
#ifndef MSCHED_TIR_ANALYSIS_H
#define MSCHED_TIR_ANALYSIS_H

#include "access.h"
#include "tir/arith/bounds.h"
#include "tir/node/arena.h"

/* ---- Loops (block.c) ---- */

bool tir_loop_starts_at_zero(struct tir *ir, tir_loop l);
/* The variables of the loops around `s`, innermost first, up to its block or below `high` (TIR_NONE: all). Returns
 * their number, stores at most `most`. */
uint32_t tir_loop_vars(const struct tir *ir, tir_stmt s, tir_stmt high, tir_var *out, uint32_t most);
/* The loops that run while what `s` touches of a buffer in `memory` is looked at from `high` (running.c): those around
 * `s` below `high`, innermost first, then those at or around `high` that are bound to threads which share the memory;
 * TIR_NONE: no threads do. Returns their number, stores the variables of at most `most`. */
uint32_t tir_running_loops(const struct tir *ir, tir_stmt s, tir_stmt high, tir_symbol memory, tir_var *out,
                           uint32_t most);
/* The memory, if threads share it within a kernel as blocks are moved and cached there; TIR_NONE: it is global. */
tir_symbol tir_memory_of_threads(const struct tir *ir, tir_symbol memory);
static inline tir_symbol tir_memory_of(const struct tir *ir, tir_buffer buffer) {
  return tir_memory_of_threads(ir, tir_buffer_at(ir, buffer)->scope);
}
/* The only statement in a loop's body, or TIR_NONE. */
tir_stmt tir_only_child(const struct tir *ir, tir_stmt s);
/* Whether the statement is the block, or loops around it and nothing else. */
bool tir_is_nest_of(const struct tir *ir, tir_stmt s, tir_block block);

/* ---- Blocks in their scope (block.c) ---- */

bool tir_is_complete_block(struct tir *ir, tir_block block, tir_block scope);
/* Refuse with the condition that fails; `block` is the place. */
bool tir_check_complete_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
bool tir_check_reduction_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
bool tir_check_complete_or_reduction_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
/* Every block directly below a loop or in a scope is complete or a reduction there: TensorIR's "compact dataflow"; or
 * complete but for reading the very elements that it stores, as blocks that FuseOnlineSoftmax makes do. */
bool tir_check_subtree_compact_dataflow(struct tir *ir, tir_stmt below, ms_error *err);
/* The scope is a stage pipeline (pipeline.c): no child writes what an earlier one reads, and what a child
 * reads of what earlier ones write is covered by it: region cover, at the lowest statement around both. Found once:
 * primitives keep the property, though splits and predicates may hide it. */
bool tir_check_stage_pipeline(struct tir *ir, tir_block scope, ms_error *err);
/* Whether what `consumer` reads of earlier children of its scope is covered by what they write. Found once, like the
 * above; a block that came after its scope was looked at was made by a primitive, and is covered. */
bool tir_has_region_cover(struct tir *ir, tir_block consumer, tir_block scope);
/* The same of one buffer, where that is known: of blocks that were made of others. */
bool tir_covers_buffer(struct tir *ir, tir_block consumer, tir_block scope, tir_buffer buffer);
/* A block made of another, of which it reads what that read in the scope: it is covered there if that was. */
void tir_inherit_cover(struct tir *ir, tir_block made, tir_block from, tir_block scope);
/* Forgets whether the block is covered: it has come into another scope. */
void tir_forget_cover(struct tir *ir, tir_block block);
bool tir_reads_are_covered(struct tir *ir, tir_block consumer, tir_block scope); /* the same as it now stands */
/* A use of a buffer at a statement of the scope, in terms of the loops around it: min and extent a dimension, of which
 * only what a predicate (TIR_NONE: true) allows for. Whether it is covered as the region of a block there would be, by
 * writes all of which are declared: of a buffer that is written undeclared, nobody knows which elements are. */
struct tir_use_at {
  tir_stmt at;
  tir_buffer buffer;
  const tir_expr *ranges;
  tir_expr predicate;
};
bool tir_is_covered(struct tir *ir, const struct tir_use_at *use, tir_block scope);
/* From now on what `consumer` reads is not covered, and the scope is no pipeline. */
void tir_note_uncovered(struct tir *ir, tir_block consumer, tir_block scope);
/* From now on blocks of the scope, which stays a pipeline, may read what earlier iterations of loops around both have
 * written: these loops keep their order. */
void tir_note_across(struct tir *ir, tir_block scope);
bool tir_reads_across(const struct tir *ir, tir_block scope);
/* Forgets the analysis of the scope and its children, and runs it again. */
void tir_renew_pipeline(struct tir *ir, tir_block scope);
/* Children of the scope that write the buffer (or read it), before `block` or (`later`) after it, in order of text. */
uint32_t tir_users_of(const struct tir *ir, tir_buffer buffer, bool writers, tir_block block, tir_block scope,
                      bool later, tir_block *out, uint32_t most);
/* tir_scope_of; refuses a block that is in none. */
bool tir_find_scope(const struct tir *ir, tir_block block, tir_block *scope, ms_error *err);
/* Children of block's scope that come before it and write what it reads or writes (producers), in the order of its
 * regions, reads first, and for each in order of text; or that come after it and read or write what it writes
 * (consumers), in order of text. Each once. Returns the number, stores at most `most`. */
uint32_t tir_producers(const struct tir *ir, tir_block block, tir_block *out, uint32_t most);
uint32_t tir_consumers(const struct tir *ir, tir_block block, tir_block *out, uint32_t most);
/* The block allocates the buffer. */
bool tir_allocates(const struct tir *ir, tir_block block, tir_buffer buffer);
/* It writes a buffer that its scope does not allocate. */
bool tir_is_output_block(const struct tir *ir, tir_block block, tir_block scope);
/* An iteration of the block, or of one in it, that is not spatial is bound to the variable, or to a name that may be.
 */
bool tir_reduces_over(struct tir *ir, tir_block block, tir_var v);
/* No loop around the scope reduces in the block: what the scope allocates does not last from one iteration to the
 * next. */
bool tir_check_reduces_inside(struct tir *ir, tir_block block, tir_block scope, ms_error *err);
/* Begins to substitute those of at most 64 variables that have one value, wherever the predicate (or TIR_NONE) holds,
 * by it: beside another loop of the same scale one such hides that what one index has of a fused loop is what another
 * leaves of it. Writes the others to `left`, which may be `vars`, and gives their number. (satisfiable.c) */
uint32_t tir_subst_single(struct tir *ir, const tir_var *vars, uint32_t count, tir_expr predicate, tir_var *left);
/* Every binding of `block` is an affine map of the loops around it, below `high` (exclusive; TIR_NONE: all in its
 * scope); see affine.h. Cheap for the maps that splits and fusions make. */
bool tir_is_affine_binding(struct tir *ir, tir_block block, tir_stmt high);
/* The same of all loops of its scope, those of one iteration in their place (tir_subst_single). */
bool tir_is_affine_without_single(struct tir *ir, tir_block block);
/* The block's bindings, under its predicate, are known to be affine: the next question need not find out. */
void tir_keep_affine(struct tir *ir, tir_block block);
/* The domain of iteration `i` as far as the block needs it: where its binding takes less, and the rest would leave a
 * buffer or be reduced too, only what the binding may take; and where blocks outside of its scope write the same, or
 * others in it what it reads, only what it takes in one iteration of the loops around that. */
void tir_needed_domain(struct tir *ir, tir_block block, uint32_t i, tir_expr *min, tir_expr *extent);
/* Variables of the loops that a block without iterations may use itself (verify/verify.c, `isolation`): those around it
 * up to a block that has some, outermost first. A block with iterations may use none. Gives the number, stores at most
 * `most`. (scope.c) */
uint32_t tir_loops_in_reach(const struct tir *ir, tir_block block, tir_var *out, uint32_t most);
/* Mask of the kinds of iterations that `loop`'s variable is bound to in `block`: 1 spatial, 2 reduction, 4 opaque.
 * (scope.c) */
unsigned tir_loop_iter_kinds(struct tir *ir, tir_loop loop, tir_block block);
/* Of the terms of a binding, one does not step over all that those of lesser steps reach together: a value may come in
 * several iterations. Too many terms count as that. */
bool tir_steps_overlap(const struct tir *ir, struct tir_linear binding);

/* A loop of those stands in the expression. */
bool tir_uses_any_loop(const struct tir *ir, tir_expr e, const tir_loop *loops, uint32_t count);
/* The bindings, under the predicate, are known to differ in any two iterations of the loops: no step is taken twice. At
 * most TIR_MOST_STEPPED bindings, and loops; the bindings do not lie in the arena. */
enum { TIR_MOST_STEPPED = 64 };
bool tir_takes_steps_once(struct tir *ir, const tir_expr *bindings, uint32_t count, const tir_loop *loops,
                          uint32_t loop_count, tir_expr predicate);
/* The same of a block's bindings and some of the loops around it, or, where these do not show it, all of them: what is
 * one-to-one in all is so in a part. A fused loop that was split is taken apart by quotient and remainder, which differ
 * in the whole of it only. False of more bindings or loops than TIR_MOST_STEPPED. */
bool tir_block_takes_steps_once(struct tir *ir, tir_block block, const tir_loop *loops, uint32_t count);
/* The same of the loops that its reduction iterations are bound to: where they take the first step again, the reduction
 * starts over, and what was reduced until then is lost. */
bool tir_block_reduces_once(struct tir *ir, tir_block block);
bool tir_check_reduces_once(struct tir *ir, tir_block block, tir_loop at, ms_error *err); /* the error names the loop */
/* No two instances are the same: the values are a one-to-one map of those of the variables that they use, which come to
 * stand first in `vars`. */
bool tir_is_one_to_one(struct tir *ir, const tir_expr *values, uint32_t count, tir_var *vars, uint32_t var_count,
                       tir_expr predicate);

/* The block runs for each value of its iterations (tir_needed_domain) with each of the others; or would, but for its
 * predicate. */
bool tir_runs_for_all(struct tir *ir, tir_block block);

/* The iteration of the block that is this variable, or -1. */
static inline int tir_iter_of(const struct tir *ir, tir_block block, tir_var v) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = 0; i < iters.count; i++)
    if (ir->iters.at[iters.first + i].var == v) return (int)i;
  return -1;
}
/* What it is bound to; TIR_NONE: it is none of the block's. */
static inline tir_expr tir_binding_of(const struct tir *ir, tir_block block, tir_var v) {
  int iter = tir_iter_of(ir, block, v);
  return iter < 0 ? TIR_NONE : tir_iters(ir, block)[iter].binding;
}

/* ---- Reductions (reduction.c) ---- */

/* The commutative reducers that are known. An arg reducer keeps an index (first buffer) and its value (second); the
 * first and last kinds say which index wins among equal values, the plain ones keep what was there. The last keeps the
 * maximum of floats (first buffer) and the sum of exp(x - maximum) (second), of which (x, 1) is one element's share.
 * Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, section 3.1. */
enum tir_reducer {
  TIR_REDUCE_SUM,
  TIR_REDUCE_PRODUCT,
  TIR_REDUCE_MIN,
  TIR_REDUCE_MAX,
  TIR_REDUCE_SUM_PAIR,
  TIR_REDUCE_ARGMAX,
  TIR_REDUCE_ARGMAX_FIRST,
  TIR_REDUCE_ARGMAX_LAST,
  TIR_REDUCE_ARGMIN,
  TIR_REDUCE_ARGMIN_FIRST,
  TIR_REDUCE_ARGMIN_LAST,
  TIR_REDUCE_MAX_AND_EXPS,
  TIR_REDUCER_COUNT
};
enum { TIR_MOST_REDUCED = 2 }; /* buffers reduced by one block */

/* A reduction's parts, buffer by buffer in the order of its reducer: buffer[indices] starts as identity, and each
 * iteration combines it (left: its load) with right. */
struct tir_reduction {
  enum tir_reducer reducer;
  uint32_t count;
  uint32_t indices; /* of every load and store of the buffers, in tir.operands: as many as the buffers' rank */
  tir_buffer buffers[TIR_MOST_REDUCED];
  tir_expr identity[TIR_MOST_REDUCED], left[TIR_MOST_REDUCED], right[TIR_MOST_REDUCED];
};
/* The only statement of the block's body, or init, if it is a store without a predicate; else TIR_NONE. */
static inline tir_stmt tir_only_store(const struct tir *ir, tir_block block, enum tir_list list) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  tir_stmt s = tir_stmt_at(ir, block)->first[list];
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  return s && n->kind == TIR_STORE && !n->store.predicate && !n->next ? s : TIR_NONE;
}
/* Recognizes what a block with an init computes. Refuses when its statements are no stores of one element, or when no
 * known reducer makes them. May intern expressions. */
bool tir_find_reduction(struct tir *ir, tir_block block, struct tir_reduction *out, ms_error *err);
/* The same, and its iterations may be reduced apart, and what they give combined: refuses where ties depend on their
 * order. */
bool tir_find_free_reduction(struct tir *ir, tir_block block, struct tir_reduction *out, ms_error *err);
/* The block combines several buffers, whatever they begin with, by a known reducer whose ties do not depend on the
 * order of iterations. */
bool tir_is_known_update(struct tir *ir, tir_block block);
/* Recognizes a sum, whatever it begins with: one store, of the element plus a value that does not depend on it. */
bool tir_find_sum(struct tir *ir, tir_block block, struct tir_reduction *out);
/* The block's regions read elements of the buffer that are there before it: not all that they read of it, its own init
 * writes first. Modules of older TVM name in reads what a reduction goes on with; to others that is a pure write. */
bool tir_reads_from_before(struct tir *ir, tir_block block, tir_buffer buffer);
/* The same of a block that is known to begin all that it updates: not tir_updates_unbegun. */
bool tir_begun_reads_from_before(struct tir *ir, tir_block block, tir_buffer buffer);
/* The block has an init, and may update what that has not begun: a reduction indexes what is written, is at its
 * minimum in no iteration or in the last, the predicate may hold in others than the first (init_first.c), or the init
 * does not store, in any case, an element that a statement of the body updates. */
bool tir_updates_unbegun(struct tir *ir, tir_block block);
/* The block has an init, and a statement of its body loads an element of the buffer (TIR_NONE: of one that it writes,
 * to which it stores) that neither its init nor a statement before has stored in any case (init_cover.c). */
bool tir_loads_unbegun(struct tir *ir, tir_block block, tir_buffer buffer);
/* All of the block's init is one store, all of its body another, of the same element, and each load of that buffer is
 * of that element: the buffer. Else TIR_NONE. */
tir_buffer tir_plainly_updated(const struct tir *ir, tir_block block);
/* A statement of the block's init, or a block in that, loads an element of the buffer. */
bool tir_init_loads(struct tir *ir, tir_block block, tir_buffer buffer);
/* The expression is what the reducer's buffer of that number begins with. */
bool tir_is_identity(const struct tir *ir, tir_expr e, enum tir_reducer reducer, uint32_t buffer);
/* The values of reducer(left, right), one a buffer. */
void tir_combine(struct tir *ir, enum tir_reducer reducer, const tir_expr *left, const tir_expr *right, tir_expr *out);
/* Only loops stand between s and `top`, which is above it, and no let, allocation or declaration beside them holds at
 * s: what s does can be done elsewhere under copies of those loops. */
bool tir_only_loops_between(const struct tir *ir, tir_stmt s, tir_stmt top);

/* ---- Regions (region.c) ---- */

/* The first of a block's regions that is of the buffer; NULL: there is none. */
static inline const struct tir_region *tir_region_of(const struct tir *ir, struct tir_span regions, tir_buffer buffer) {
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++)
    if (ir->regions.at[i].buffer == buffer) return &ir->regions.at[i];
  return NULL;
}
static inline bool tir_is_one_element(const struct tir *ir, struct tir_region region) {
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++)
    if (!tir_is_const(ir, ir->operands.at[region.ranges + 2 * d + 1], 1)) return false;
  return true;
}
static inline bool tir_has_region_of(const struct tir *ir, struct tir_span regions, tir_buffer buffer) {
  return tir_region_of(ir, regions, buffer) != NULL;
}
/* Some buffer has a region in both. */
static inline bool tir_share_buffer(const struct tir *ir, struct tir_span a, struct tir_span b) {
  for (uint32_t i = a.first; i < a.first + a.count; i++)
    if (tir_has_region_of(ir, b, ir->regions.at[i].buffer)) return true;
  return false;
}
static inline uint32_t tir_count_regions_of(const struct tir *ir, struct tir_span regions, tir_buffer buffer) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < regions.count; i++) count += ir->regions.at[regions.first + i].buffer == buffer;
  return count;
}

/* Consecutive integers from min to max, both included and simplified. TIR_NONE: no bound known on that side. */
struct tir_interval {
  tir_expr min, max;
  bool empty; /* then min and max mean nothing */
};
static inline struct tir_interval tir_point(tir_expr e) { return (struct tir_interval){e, e, false}; }
static inline struct tir_interval tir_nothing(void) { return (struct tir_interval){TIR_NONE, TIR_NONE, true}; }
struct tir_interval tir_interval_of(struct tir *ir, tir_expr min, tir_expr extent); /* [min, min + extent) */
/* The ranges, a min and an extent a dimension, are written as all of the buffer. */
bool tir_is_whole_buffer(const struct tir *ir, tir_buffer buffer, const tir_expr *ranges);
tir_expr tir_interval_extent(struct tir *ir, struct tir_interval i); /* max + 1 - min; both are bounded */
bool tir_is_point(struct tir *ir, struct tir_interval i);            /* one value, provably */
/* The least interval that holds both. */
struct tir_interval tir_interval_union(struct tir *ir, struct tir_interval a, struct tir_interval b);
/* Values that one of both surely holds, as one interval: the union where they overlap or touch, else the first. */
struct tir_interval tir_interval_join(struct tir *ir, struct tir_interval a, struct tir_interval b);
/* Empty only where that is proven. */
struct tir_interval tir_interval_intersect(struct tir *ir, struct tir_interval a, struct tir_interval b);
/* Whether `inner` is inside `outer` for all values of their variables. */
bool tir_interval_covers(struct tir *ir, struct tir_interval outer, struct tir_interval inner);
/* Of one element: its ranges, and its region, of 16 dimensions at most. */
void tir_point_ranges(struct tir *ir, const tir_expr *at, uint32_t rank, tir_expr *ranges);
struct tir_region tir_point_region(struct tir *ir, tir_buffer buffer, const tir_expr *at);
/* What is touched of a dimension of a buffer while it lives: what tir_touch added; all of it where an end is not known,
 * or no constant says how much lies between. */
struct tir_touched {
  bool any, whole;
  struct tir_interval at;
};
void tir_touch(struct tir *ir, struct tir_touched *touched, struct tir_interval now);
/* How many elements, of a dimension of that size, it needs room for: past its ends it is touched under a condition. -1:
 * that is not known. */
int64_t tir_touched_extent(struct tir *ir, const struct tir_touched *touched, tir_expr size);
/* Makes rows of a buffer of these extents, -1 where one is not known, as long as the block that writes it is annotated
 * (StorageAlign), where TIR_MOST_APART elements more are enough for that. (kernel.c) */
void tir_pad_row(const struct tir *ir, tir_expr entry, int64_t *extents, uint32_t rank); /* by one entry of it */
void tir_pad_rows(const struct tir *ir, tir_block block, tir_buffer buffer, int64_t *extents, uint32_t rank);
/* A region that holds the box; all of a dimension where it is not known, and of all of them for NULL. */
struct tir_region tir_region_of_box(struct tir *ir, tir_buffer buffer, const struct tir_interval *box);

/* What an expression or region covers while the variables `relaxed` run over their domains and the others stay
 * symbols. A region is given by `ranges`: min and extent of each of `rank` dimensions in turn (which must not lie in
 * the arena's arrays, as these move); so are the answers, `rank` of them.
 * tir_relax and tir_relax_region: by interval arithmetic, each dimension alone; an upper bound. (TVM: EvalSet.)
 * tir_region_exact: the very box that is covered, under a predicate (TIR_NONE: true). False: it is no box, or not known
 * to be one; out is then undefined. (TVM: EstimateRegionStrictBound, EstimateRegionLowerBound.)
 * tir_region_is_box: a box is covered; seen also where variables have one value wherever the predicate holds, as those
 * have that fused loops' parts past the end belong to, of which TVM does not know. It is given where out is not NULL.
 * tir_region_upper_bound: the box where it is exact, else an upper bound. (TVM: EstimateRegionUpperBound.) */
struct tir_interval tir_relax(struct tir *ir, tir_expr e, const tir_var *relaxed, uint32_t count);
void tir_relax_region(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                      struct tir_interval *out);
bool tir_region_exact(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                      tir_expr predicate, struct tir_interval *out);
bool tir_region_is_box(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                       tir_expr predicate, struct tir_interval *out);
void tir_region_upper_bound(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed,
                            uint32_t count, tir_expr predicate, struct tir_interval *out);
/* tir_region_exact, and the predicate does not leave out all of it, whatever the loops around do while `given`
 * (TIR_NONE: true) holds (sure.c). */
bool tir_region_surely(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                       tir_expr predicate, tir_expr given, struct tir_interval *out);
/* The conjuncts of a predicate that none of the variables is in, those of one value apart; TIR_NONE: there are none. */
tir_expr tir_invariant_conditions(struct tir *ir, tir_expr predicate, const tir_var *vars, uint32_t count);
/* Wherever `given` (TIR_NONE: true) holds, and the conjuncts without them, the predicate (TIR_NONE: true) holds for
 * some values of those relaxed variables that the region's place, `ranges`, does not depend on: so these leave out
 * nothing of the region. */
bool tir_holds_somewhere(struct tir *ir, tir_expr predicate, tir_expr given, const tir_expr *ranges, uint32_t rank,
                         const tir_var *vars, uint32_t count);
/* For some values of the variables, of which the loops have such, the condition (TIR_NONE: true) holds, whatever the
 * others are while `given` (TIR_NONE: true) holds (satisfiable.c). False: none was found. */
bool tir_is_satisfiable(struct tir *ir, tir_expr condition, tir_expr given, const tir_var *vars, uint32_t count);
/* The condition holds where the loops that are in no dimension stand at their first, or last, iteration. */
bool tir_holds_at_end(struct tir *ir, tir_expr predicate, const tir_expr *ranges, uint32_t rank, const tir_var *vars,
                      uint32_t count, bool last);
/* Each conjunct of the predicate is one of `given`, or follows from it; either may be TIR_NONE, which is true. */
bool tir_implies(struct tir *ir, tir_expr given, tir_expr predicate);
/* Adds a box to another where both together are one: they differ in one dimension, or one holds the other. Else the
 * box stays as it is: what both span, neither need hold. */
void tir_join_box(struct tir *ir, struct tir_interval *box, const struct tir_interval *other, uint32_t rank);
/* What a block's region covers, seen from `high`, which is around it, while the loops between and the threads around
 * that share `memory` run (tir_running_loops): an upper bound, and the very box under the block's predicate. False:
 * there are more loops or dimensions than there is room for, or it is no box; out is then undefined. */
bool tir_region_from(struct tir *ir, tir_block block, struct tir_region region, tir_stmt high, tir_symbol memory,
                     struct tir_interval *out);
bool tir_exact_region_from(struct tir *ir, tir_block block, struct tir_region region, tir_stmt high, tir_symbol memory,
                           struct tir_interval *out);
/* The same, and no condition leaves all of it out while `given` (TIR_NONE: true) holds, but where it would be outside
 * of the buffer (sure.c). */
bool tir_sure_region_from(struct tir *ir, tir_block block, struct tir_region region, tir_stmt high, tir_symbol memory,
                          tir_expr given, struct tir_interval *out);
/* The values that the block's iterations take together, under its predicate, while the loops around it below `high`
 * (TIR_NONE: all in its scope) run: an interval each. False: they are no box, or not known to be one. */
bool tir_exact_iterations(struct tir *ir, tir_block block, tir_stmt high, struct tir_interval *out);
/* Whether what is `produced` of a buffer holds what is `consumed`, both cut to the buffer's shape; rank intervals each.
 * An empty dimension of `produced` covers nothing. */
bool tir_region_covers(struct tir *ir, tir_buffer buffer, const struct tir_interval *produced,
                       const struct tir_interval *consumed);
/* Whether what a block accesses while the loops `vars` run, its other loops standing still, is dense, or strided:
 * elements are left out between the first and the last (strided.c). */
enum tir_density { TIR_DENSE, TIR_STRIDED, TIR_DENSITY_UNKNOWN };
/* Of min + [0, extent), over the block's iterations: certainly the one or the other. */
enum tir_density tir_density_of(struct tir *ir, tir_block block, tir_expr min, tir_expr extent, const tir_var *vars,
                                uint32_t count);
/* The region covers a box, under the block's predicate, and is known to. */
bool tir_covers_box(struct tir *ir, tir_block block, struct tir_region region, const tir_var *vars, uint32_t count);
/* Some dimension is certainly strided, or it is not known of one and the region is not known to cover a box. */
bool tir_is_strided(struct tir *ir, tir_block block, struct tir_region region, const tir_var *vars, uint32_t count);
/* From now on, until tir_subst_clear, the block's iterations stand for what they are bound to. */
void tir_subst_iters(struct tir *ir, tir_block block);
/* The ranges of a block's region, in terms of the loops around the block. */
void tir_region_over_loops(struct tir *ir, tir_block block, struct tir_region region, tir_expr *ranges);
/* An expression of statement s over the loops around it: bindings stand in the place of the iterations of all blocks
 * around it. */
tir_expr tir_over_loops(struct tir *ir, tir_stmt s, tir_expr e);

/* What the conditions around a statement, predicates of blocks among them, say (guards.c): expressions over loops that
 * are less than a constant, and the variables with that domain that stand for them. */
enum { TIR_MOST_GUARDS = 8 };
struct tir_guards {
  tir_expr left[TIR_MOST_GUARDS], var[TIR_MOST_GUARDS];
  uint32_t count;
};
struct tir_guards tir_find_guards(struct tir *ir, tir_stmt s);
/* Stores their variables, TIR_MOST_GUARDS at most; returns their number. */
uint32_t tir_guard_vars(const struct tir *ir, const struct tir_guards *guards, tir_var *out);
/* An expression over loops as the guards let it be. */
tir_expr tir_guarded(struct tir *ir, tir_expr e, const struct tir_guards *guards);
/* What is left of a predicate without the conjuncts that only keep an access from being outside of the buffer: all of
 * the ranges (min and extent a dimension, in the terms of the predicate) are where those are false. */
tir_expr tir_limits_inside(struct tir *ir, tir_buffer buffer, const tir_expr *ranges, tir_expr predicate);

#endif
