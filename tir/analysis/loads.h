/* What a block itself evaluates: visiting its expressions, and rewriting its loads of a buffer. Internal to tir.
 *
 * A block's own expressions are those of its init and body, down to the blocks in them: of those, their bindings,
 * domains and predicates (evaluated by the outer block), but not what is inside. Regions and match-buffers are the
 * caller's. */
#ifndef MSCHED_TIR_LOADS_H
#define MSCHED_TIR_LOADS_H

#include "tir/node/arena.h"

/* Expressions are graphs: who walks one asks whether a node was met before, lest it be walked once for each way to it.
 * tir_forget_visits starts a new walk; so does rewriting. */
void tir_forget_visits(struct tir *ir);
bool tir_visited(struct tir *ir, tir_expr e); /* since then; from now on it is */

/* Gives the loop another range, and a new variable where that differs. */
void tir_set_loop_range(struct tir *ir, tir_loop loop, tir_expr min, tir_expr extent);
/* Whether some own expression e of `block` has test(context, e): conditions, values, indices of stores, ranges of
 * loops, bindings, domains that are no constants. */
bool tir_any_own_expr(struct tir *ir, tir_block block, bool (*test)(struct tir *ir, void *context, tir_expr e),
                      void *context);

/* Loads of `buffer` become replace(context, indices, count), given their own indices with loads in them rewritten
 * first; the indices do not lie in the arena. Data pointers of `buffer` become those of `data`, unless TIR_NONE. */
struct tir_load_rule {
  tir_buffer buffer, data;
  tir_expr (*replace)(struct tir *ir, void *context, const tir_expr *indices, uint32_t count);
  void *context;
};
tir_expr tir_rewrite_loads(struct tir *ir, const struct tir_load_rule *rule, tir_expr e);
void tir_rewrite_own_loads(struct tir *ir, const struct tir_load_rule *rule, tir_block block);

/* The same in the ranges of the block's regions, where they depend on data. */
void tir_rewrite_region_loads(struct tir *ir, const struct tir_load_rule *rule, tir_block block);
bool tir_regions_load(const struct tir *ir, tir_block block, tir_buffer buffer);

/* Loads of `buffer` (TIR_NONE: of any) in e, each distinct one once, in the order met. Returns the number, stores at
 * most `most`. */
uint32_t tir_find_loads(struct tir *ir, tir_expr e, tir_buffer buffer, tir_expr *out, uint32_t most);
/* How many loads of `buffer` stand in e as a tree: one that stands in several places counts at each. */
uint32_t tir_count_loads(const struct tir *ir, tir_expr e, tir_buffer buffer);
/* The call gives a value, the same for equal operands, and does nothing else. */
bool tir_is_pure_call(const struct tir *ir, const struct tir_expr_node *n);
bool tir_has_effect(const struct tir *ir, tir_expr e); /* a call in e is not pure */
/* Something in e divides integers by what may be 0, as bounds have it. */
bool tir_may_divide_by_zero(const struct tir *ir, tir_expr e);
/* if_then_else: of two values one, the other is not evaluated. */
bool tir_is_choice(const struct tir *ir, const struct tir_expr_node *n);
/* The condition that all of `places`, which do not lie in the arena, are within the buffer; TIR_NONE: they are. */
tir_expr tir_within_bounds(struct tir *ir, tir_buffer buffer, const tir_expr *places);
/* Each index of the load is within the buffer's shape, for all values of the variables in it. */
bool tir_is_load_inside(struct tir *ir, tir_expr load);
/* Loads of `buffer` (TIR_NONE: of any) that a scope itself evaluates at a statement of it: in a loop's range, a block's
 * bindings, domains and predicate, any other's expressions. No region of a block declares them. Returns the number,
 * stores at most `most`. */
uint32_t tir_scope_loads(struct tir *ir, tir_stmt s, tir_buffer buffer, tir_expr *out, uint32_t most);
/* It does so at the block, or at a loop around it. */
bool tir_is_placed_by_loads(struct tir *ir, tir_block block);
/* e uses the buffer in another way than by loading single elements: a data pointer, a slice, a vector, a predicated
 * load. */
bool tir_uses_opaquely(struct tir *ir, tir_expr e, tir_buffer buffer);

#endif
