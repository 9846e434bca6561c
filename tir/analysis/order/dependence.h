/* Dependences between iterations: whether two accesses may meet in one element while the loops around them stand in a
 * given direction to one another. Internal to tir.
 *
 * Banerjee's test with direction vectors, over the digits of loops that quotients and remainders take apart. It errs on
 * one side: accesses that may not be told apart may meet. Source: Allen and Kennedy, "Optimizing Compilers for Modern
 * Architectures", chapter 3. */
#ifndef MSCHED_TIR_DEPENDENCE_H
#define MSCHED_TIR_DEPENDENCE_H

#include "tir/node/arena.h"

enum { TIR_MOST_DIGITS = 48, TIR_MOST_BOX_RANK = 8 };

/* A box of elements: minimum and extent of each dimension in turn. Of no buffer: one expression. */
struct tir_element_box {
  tir_buffer buffer;
  tir_expr ranges[2 * TIR_MOST_BOX_RANK];
};

/* A variable's value is the sum of its digits, each times its unit, which run from `first` on. */
struct tir_digit {
  tir_var var;
  int64_t unit, first, extent; /* first TIR_NEG_INF, extent TIR_POS_INF: not known */
};
struct tir_digits {
  struct tir_digit at[TIR_MOST_DIGITS];
  uint32_t count;
};
/* The digits of the variables, in their order, the upper ones of each first, as far as `boxes` splits them. False:
 * there are too many. */
bool tir_find_digits(struct tir *ir, const tir_var *vars, uint32_t var_count, const struct tir_element_box *boxes,
                     uint32_t box_count, struct tir_digits *out);
/* The same digits in the order in which loops over `parts`, outermost first, run through them. False: one is no
 * variable, quotient or remainder that is made of whole digits, or a digit of more than one value is missing. */
bool tir_order_digits(const struct tir *ir, const struct tir_digits *digits, const tir_expr *parts, uint32_t count,
                      struct tir_digits *out);

/* Where the second access's iteration lies, by a digit: anywhere, in the same value, in a later or an earlier one. */
enum tir_direction { TIR_ANYWHERE, TIR_SAME, TIR_LATER, TIR_EARLIER };
/* The value may be another in the next iteration though it uses no loop's variable: it has a variable that a statement
 * binds, or loads from a buffer that is written. */
bool tir_varies_by_itself(const struct tir *ir, tir_expr e);
/* Some element of `a` in one iteration is one of `b` in another, that lies so to the first (a direction a digit). Other
 * variables are `inner`, or vary by themselves, so that each access has values of its own, or are the same for both. */
bool tir_may_meet(struct tir *ir, const struct tir_element_box *a, const struct tir_element_box *b,
                  const struct tir_digits *digits, const enum tir_direction *directions, const tir_var *inner,
                  uint32_t inner_count);

#endif
