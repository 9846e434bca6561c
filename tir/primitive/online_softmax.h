/* A maximum over rows and the sum of exponentials over the same: what primitives find of both before they change them.
 * Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_ONLINE_SOFTMAX_H
#define MSCHED_TIR_PRIMITIVE_ONLINE_SOFTMAX_H

#include "tir/analysis/analysis.h"

struct tir_maximum_and_sum {
  tir_block scope;
  struct tir_reduction maximum, sum; /* the maximum's right and indices in terms of the sum's iterations */
};

/* In one scope, a stage pipeline, the first is a maximum of floats from the least finite one, the second a sum of
 * floats from zero; both bare reductions into one region each, in global memory, over the same iterations and into the
 * same elements. What is summed is not looked at. */
bool tir_check_maximum_and_sum(struct tir *ir, tir_block maximum, tir_block sum, struct tir_maximum_and_sum *plan,
                               ms_error *err);
/* Whether e, in terms of the sum's iterations, is exp(x - maximum), each of them cast where its type is another; x as
 * the maximum is of, the maximum of the sum's element. */
bool tir_is_exp_of_distance(struct tir *ir, const struct tir_maximum_and_sum *plan, tir_expr e);

#endif
