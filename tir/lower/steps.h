/* Elementary functions as steps of arithmetic, each named in the order in which it is computed: in_double.c,
 * in_single.c, through_double.c. */
#ifndef MSCHED_TIR_LOWER_STEPS_H
#define MSCHED_TIR_LOWER_STEPS_H

#include "tir/tir.h"

enum { LOWER_MOST_STEPS = 256 };

struct lower_steps {
  struct tir *ir;
  tir_type real, whole; /* a float, and the integer of as many bits and lanes */
  tir_var vars[LOWER_MOST_STEPS];
  tir_expr values[LOWER_MOST_STEPS];
  uint32_t count;
};

/* Steps of a function of one number, or of two; NULL, NULL: none. */
struct lower_function {
  tir_expr (*make)(struct lower_steps *, tir_expr x);
  tir_expr (*make_of_two)(struct lower_steps *, tir_expr x, tir_expr y);
};
/* By a row's number of operands. */
#define LOWER_STEPS_OF_1(f) f, NULL
#define LOWER_STEPS_OF_2(f) NULL, f
#define LOWER_STEPS_OF_3(f) NULL, NULL
/* The function by name, of floats of one type, as lets around its result; TIR_NONE: the list, of all functions, has no
 * steps of it, of so many. */
tir_expr lower_by_steps(struct tir *ir, const struct lower_function list[TIR_FUNCTIONS], const char *name,
                        const tir_expr *numbers, uint32_t count);

tir_expr step_of(struct lower_steps *s, tir_expr value); /* a variable that has the value */
tir_expr step_real(struct lower_steps *s, double value); /* constants, in all lanes */
tir_expr step_whole(struct lower_steps *s, int64_t value);
tir_expr step_sum(struct lower_steps *s, tir_expr a, tir_expr b);
tir_expr step_less(struct lower_steps *s, tir_expr a, tir_expr b);
tir_expr step_times(struct lower_steps *s, tir_expr a, tir_expr b);
tir_expr step_over(struct lower_steps *s, tir_expr a, tir_expr b);
/* x * y + z, which a backend may contract where its options allow that. */
tir_expr step_times_sum(struct lower_steps *s, tir_expr x, tir_expr y, tir_expr z);
/* Coefficients from the highest power down. */
tir_expr step_polynomial(struct lower_steps *s, tir_expr x, const double *coefficients, uint32_t count);
/* `then` where a is below, above or equal to b, as kind says, else `other`. */
tir_expr step_where(struct lower_steps *s, enum tir_kind kind, tir_expr a, tir_expr b, tir_expr then, tir_expr other);
/* x, or the end that it is beyond, where powers of it are infinite and 0, whatever is then done with them. NaN
 * stays. */
tir_expr step_within(struct lower_steps *s, tir_expr x, double least, double most);
/* The logarithm of x that was computed, but where x is no number with a logarithm. */
tir_expr step_logarithm(struct lower_steps *s, tir_expr x, tir_expr computed);
tir_expr step_call(struct lower_steps *s, const char *name, tir_type type, tir_expr a, tir_expr b); /* b: TIR_NONE */
tir_expr step_bits(struct lower_steps *s, tir_expr real);                                           /* as an integer */
tir_expr step_of_bits(struct lower_steps *s, tir_expr whole);                                       /* as a float */
/* The size that is a float's, with the sign that another has. */
tir_expr step_signed(struct lower_steps *s, tir_expr size, tir_expr sign);

/* ---- Of float64 ---- */

/* Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits. */
#define STEP_MAGIC 0x1.8p52
/* 2^k, of the sum of k and STEP_MAGIC. */
tir_expr step_power_of_two(struct lower_steps *s, tir_expr shifted);
/* k of a number 2^k * m with sqrt(1/2) <= m < sqrt(2); m is left in *m. */
tir_expr step_exponent(struct lower_steps *s, tir_expr x, tir_expr *m);

#endif
