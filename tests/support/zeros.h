/* Whether two runs have the same signs of zeros, for oracles that compare results bit by bit. */
#ifndef TEST_ZEROS_H
#define TEST_ZEROS_H

#include "tir/tir.h"

/* Whether each zero that f gives has one sign, whatever its schedule: f updates no element by itself, as a sum does,
 * and takes no maxima, minima or remainders of floats. */
bool keeps_zeros(const struct tir *ir, tir_func f);
/* Compares the signs of what is zero in two runs of f; else as tir_same_arguments. */
bool same_zeros(const struct tir *ir, tir_func f, const struct tir_arguments *expected,
                const struct tir_arguments *actual, ms_error *err);

#endif
