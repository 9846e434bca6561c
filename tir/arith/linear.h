/* Sums under construction. Internal to tir.
 *
 * Terms are summed on a stack in the module's working memory, so that sums nest: open, add, close. While a sum is open
 * others may be opened above it, and must be closed before it is added to again. */
#ifndef MSCHED_TIR_LINEAR_H
#define MSCHED_TIR_LINEAR_H

#include "bounds.h"
#include "tir/node/arena.h"

struct tir_sum {
  int64_t constant;
  uint32_t base, count; /* in the stack; ascending by atom, coefficients not 0 */
  bool overflow;        /* a coefficient left the range of 64 bits: the sum is void */
};

/* Index arithmetic (and only it) is simplified: signed integers of 32 or 64 bits, one lane, no loads or calls. */
static inline bool tir_is_index(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return tir_type_code(n->type) == TIR_INT && tir_type_bits(n->type) >= 32 && tir_type_lanes(n->type) == 1 &&
         !(n->flags & TIR_OF_DATA);
}

struct tir_sum_stack {
  struct tir_term *terms;
  uint32_t count, capacity;
};
extern const struct tir_scratch_kind tir_sum_stack_kind;
static inline struct tir_sum_stack *tir_sum_stack_of(const struct tir *ir) {
  return tir_scratch_of(ir, TIR_SCRATCH_SUMS, &tir_sum_stack_kind);
}
struct tir_sum tir_sum_open(struct tir *ir);
void tir_sum_add_term(struct tir *ir, struct tir_sum *sum, tir_expr atom, int64_t coefficient);
void tir_sum_add(struct tir *ir, struct tir_sum *sum, tir_expr e, int64_t scale);
/* Joins quotient and remainder: (x // c) * c * k + (x % c) * k = x * k. */
void tir_sum_recombine(struct tir *ir, struct tir_sum *sum);
struct tir_bounds tir_sum_bounds(const struct tir *ir, const struct tir_sum *sum);
/* Valid until something is added to a sum. */
static inline struct tir_term *tir_sum_terms(const struct tir *ir, const struct tir_sum *sum) {
  return tir_sum_stack_of(ir)->terms + sum->base; /* there is room since the sum was opened */
}
/* Bounds of a - b: index expressions of one type. */
struct tir_bounds tir_difference_bounds(struct tir *ir, tir_expr a, tir_expr b);
/* The minimum or maximum of index expressions of one type. */
tir_expr tir_make_extreme(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b);
/* The variable that an atom is, where it runs from or to an expression; else NULL. */
const struct tir_var_node *tir_symbolic_domain(const struct tir *ir, tir_expr atom);
/* a * b where neither is a constant, and a // b or a % b (floor) where b is none: TIR_NONE where that is not simpler.
 */
tir_expr tir_multiply(struct tir *ir, tir_expr a, tir_expr b);
tir_expr tir_divide_by_product(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b);
/* The expression of the sum, which is closed. Not to be called when the sum overflowed. */
tir_expr tir_sum_close(struct tir *ir, struct tir_sum *sum, tir_type type);
void tir_sum_drop(struct tir *ir, struct tir_sum *sum);

#endif
