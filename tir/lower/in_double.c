/* Elementary functions of floats of at most 32 bits, in float64 arithmetic that vectors have too. Rounded to float32
 * they are what the C library's functions of float64 give, rounded, for all 2^32 floats: tests/tools/float_functions.c
 * compares them. The operations are those of IEEE 754, in this order, none of them contracted: the bits are the same as
 * a scalar, in a vector, and on any backend.
 * Source of the range reductions: Cody and Waite, "Software Manual for the Elementary Functions", 1980, chapters 5
 * and 6. */
#include "lower.h"
#include "steps.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- Powers ---- */

/* 2^k * (1 + tail). */
struct power {
  tir_expr scale, tail;
};

/* e^rest - 1, |rest| <= ln(2) / 2: its series. */
static tir_expr tail_of(struct lower_steps *s, tir_expr rest) {
  static const double inverse_factorials[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                              1.0 / 40320,     1.0 / 5040,     1.0 / 720,     1.0 / 120,
                                              1.0 / 24,        1.0 / 6,        1.0 / 2};
  tir_expr p = step_real(s, inverse_factorials[0]);
  for (size_t i = 1; i < sizeof inverse_factorials / sizeof *inverse_factorials; i++)
    p = step_sum(s, step_times(s, p, rest), step_real(s, inverse_factorials[i]));
  return step_sum(s, rest, step_times(s, step_times(s, rest, rest), p));
}

static struct power power_of_e(struct lower_steps *s, tir_expr x) {
  static const double inverse = 0x1.71547652b82fep0; /* 1 / ln(2), and ln(2) in two parts, of which k * one is exact */
  static const double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b39p-40;
  x = step_within(s, x, -160, 130);
  tir_expr shifted = step_sum(s, step_times(s, x, step_real(s, inverse)), step_real(s, STEP_MAGIC)),
           k = step_less(s, shifted, step_real(s, STEP_MAGIC));
  tir_expr rest = step_less(s, x, step_times(s, k, step_real(s, high)));
  rest = step_less(s, rest, step_times(s, k, step_real(s, low)));
  return (struct power){step_power_of_two(s, shifted), tail_of(s, rest)};
}

static struct power power_of_two(struct lower_steps *s, tir_expr x) {
  static const double ln2 = 0x1.62e42fefa39efp-1;
  x = step_within(s, x, -230, 190);
  tir_expr shifted = step_sum(s, x, step_real(s, STEP_MAGIC)), k = step_less(s, shifted, step_real(s, STEP_MAGIC));
  return (struct power){step_power_of_two(s, shifted),
                        tail_of(s, step_times(s, step_less(s, x, k), step_real(s, ln2)))};
}

static tir_expr value_of(struct lower_steps *s, struct power p) {
  return step_times(s, step_sum(s, step_real(s, 1), p.tail), p.scale);
}

/* ---- Logarithms ---- */

/* Of a number x > 0: k with x = 2^k * m, sqrt(1/2) <= m < sqrt(2), and ln(m) as a sum. */
struct logarithm {
  tir_expr k, high, low;
};

/* t / s^3 with 2 * atanh(s) = 2s + t: its series. */
static tir_expr tail_of_atanh(struct lower_steps *s, tir_expr square) {
  tir_expr p = step_real(s, 2.0 / 27);
  for (int i = 25; i >= 3; i -= 2) p = step_sum(s, step_times(s, p, square), step_real(s, 2.0 / i));
  return p;
}

/* ln(1 + f) = f - f^2/2 + r * (f^2/2 + r^2 * tail), r = f / (2 + f). Of m with 24 bits, f and f^2/2 are exact. */
static struct logarithm logarithm_of(struct lower_steps *s, tir_expr x) {
  x = step_where(s, TIR_GT, x, step_real(s, 0), x, step_real(s, 1));
  x = step_where(s, TIR_LT, x, step_real(s, INFINITY), x, step_real(s, 1));
  tir_expr m = TIR_NONE, k = step_exponent(s, x, &m), f = step_less(s, m, step_real(s, 1));
  tir_expr half = step_times(s, step_times(s, f, f), step_real(s, 0.5)),
           r = step_over(s, f, step_sum(s, f, step_real(s, 2)));
  tir_expr square = step_times(s, r, r);
  tir_expr tail = step_times(s, r, step_sum(s, half, step_times(s, square, tail_of_atanh(s, square))));
  tir_expr high = step_less(s, f, half);
  return (struct logarithm){k, high, step_sum(s, step_less(s, step_less(s, f, high), half), tail)};
}

/* a + b + low, |a| >= |b| or a = 0, but where x is no number with a logarithm. */
static tir_expr logarithm_from(struct lower_steps *s, tir_expr x, tir_expr a, tir_expr b, tir_expr low) {
  tir_expr most = step_sum(s, a, b), left = step_sum(s, step_less(s, a, most), b),
           result = step_sum(s, most, step_sum(s, left, low));
  return step_logarithm(s, x, result);
}

static tir_expr natural_logarithm(struct lower_steps *s, tir_expr x) {
  static const double ln2 = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b39p-40;
  struct logarithm l = logarithm_of(s, x);
  tir_expr low = step_sum(s, l.low, step_times(s, l.k, step_real(s, ln2_low)));
  return logarithm_from(s, x, step_times(s, l.k, step_real(s, ln2)), l.high, low);
}

/* 1 / ln(2) in two parts, of which the first times 26 bits is exact. */
static tir_expr logarithm_to_base_two(struct lower_steps *s, tir_expr x) {
  static const double inverse = 0x1.715476p+0, inverse_low = 0x1.4ae0bf85ep-26;
  struct logarithm l = logarithm_of(s, x);
  tir_expr bits = step_bits(s, l.high);
  tir_expr kept = step_call(s, "bitwise_and", s->whole, bits, step_whole(s, ~(int64_t)0x7ffffff));
  tir_expr top = step_of_bits(s, kept);
  tir_expr rest = step_sum(s, step_less(s, l.high, top), l.low);
  tir_expr low = step_sum(s, step_times(s, top, step_real(s, inverse_low)),
                          step_times(s, rest, step_real(s, inverse + inverse_low)));
  return logarithm_from(s, x, l.k, step_times(s, top, step_real(s, inverse)), low);
}

/* ---- Functions ---- */

static tir_expr exponential(struct lower_steps *s, tir_expr x) { return value_of(s, power_of_e(s, x)); }
static tir_expr exponential_of_two(struct lower_steps *s, tir_expr x) { return value_of(s, power_of_two(s, x)); }

static tir_expr logistic(struct lower_steps *s, tir_expr x) {
  tir_expr grown = exponential(s, step_less(s, step_real(s, 0), x));
  return step_over(s, step_real(s, 1), step_sum(s, step_real(s, 1), grown));
}

/* -t / (t + 2) with t = e^(-2|x|) - 1, and the sign of x. */
static tir_expr hyperbolic_tangent(struct lower_steps *s, tir_expr x) {
  tir_expr size = step_call(s, "fabs", s->real, x, TIR_NONE);
  struct power p = power_of_e(s, step_times(s, size, step_real(s, -2)));
  tir_expr t = step_sum(s, step_times(s, p.scale, p.tail), step_less(s, p.scale, step_real(s, 1)));
  tir_expr result = step_over(s, step_less(s, step_real(s, 0), t), step_sum(s, t, step_real(s, 2)));
  return step_signed(s, result, x);
}

#define STEPS(f) f
#define ROUNDED  NULL
#define EXACT    NULL
static const struct lower_function functions[TIR_FUNCTIONS] = {
#define TIR_FUNCTION(name, operands, value, free, fixed, ...) {LOWER_STEPS_OF_##operands(fixed)},
#include "tir/functions.def"
};

tir_expr lower_in_double(struct tir *ir, const char *name, tir_expr x) {
  assert(tir_type_bits(tir_type_of(ir, x)) == 64);
  return lower_by_steps(ir, functions, name, &x, 1);
}
