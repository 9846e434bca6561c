/* Elementary functions of float32 in float32 arithmetic that vectors have too, where the order of operations is free:
 * within 1.5 units in the last place of the exact result, with fused multiply-add or without
 * (tests/tools/float_functions.c compares all 2^32 floats). NaN, infinities, subnormal numbers and the signs of zeros
 * are what the C library gives.
 * Polynomials are fitted here for the least relative error of the whole function, with coefficients of float32. Source
 * of the range reductions: Cody and Waite, "Software Manual for the Elementary Functions", 1980, chapters 5 and 6; of
 * the sums without error: Dekker, Numerische Mathematik 18, 1971. */
#include "lower.h"
#include "steps.h"

#include <assert.h>

enum { FRACTION_BITS = 23, EXPONENT_BIAS = 127 };

/* ---- Logarithms ---- */

/* Of a number x > 0: k with x = 2^k * (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), f without error, and ln(1 + f) - f. */
struct logarithm {
  tir_expr k, f, tail;
};

/* (ln(1 + f) - f + f^2/2) / f^3 */
static tir_expr cubic_of(struct lower_steps *s, tir_expr f) {
  static const double p[] = {0x1.147262p-4,  -0x1.de0114p-4, 0x1.e6bfecp-4,  -0x1.fc28dap-4, 0x1.233ba4p-3,
                             -0x1.555c44p-3, 0x1.99a476p-3,  -0x1.000006p-2, 0x1.555548p-2};
  return step_polynomial(s, f, p, sizeof p / sizeof *p);
}

static struct logarithm logarithm_of(struct lower_steps *s, tir_expr x) {
  static const int64_t root = 0x3f3504f3; /* sqrt(1/2) */
  static const double least = 0x1p-126;   /* numbers below are subnormal */
  tir_expr grown = step_where(s, TIR_LT, x, step_real(s, least), step_times(s, x, step_real(s, 0x1p23)), x);
  tir_expr shift = step_where(s, TIR_LT, x, step_real(s, least), step_real(s, -23), step_real(s, 0));
  tir_expr bits = step_bits(s, grown), moved = step_less(s, bits, step_whole(s, root));
  tir_expr kept = step_call(s, "bitwise_and", s->whole, moved, step_whole(s, -((int64_t)1 << FRACTION_BITS)));
  tir_expr f = step_less(s, step_of_bits(s, step_less(s, bits, kept)), step_real(s, 1));
  tir_expr exponent = step_call(s, "shift_right", s->whole, moved, step_whole(s, FRACTION_BITS));
  tir_expr k = step_sum(s, step_of(s, tir_unary(s->ir, TIR_CAST, s->real, exponent)), shift);
  tir_expr rest = step_times_sum(s, f, cubic_of(s, f), step_real(s, -0.5));
  return (struct logarithm){k, f, step_times(s, step_times(s, f, f), rest)};
}

/* a + b + low, |a| >= |b| or a = 0, of which a + b loses nothing; but where x is no number with a logarithm. */
static tir_expr logarithm_from(struct lower_steps *s, tir_expr x, tir_expr a, tir_expr b, tir_expr low) {
  tir_expr most = step_sum(s, a, b), left = step_less(s, b, step_less(s, most, a));
  tir_expr result = step_sum(s, most, step_sum(s, left, low));
  return step_logarithm(s, x, result);
}

/* ln(2) and log10(2) in two parts, of which k * the first is exact. */
static const double ln2 = 0x1.63p-1, ln2_low = -0x1.bd0106p-13;
static const double log10_2 = 0x1.344p-2, log10_2_low = 0x1.3509f8p-18;

static tir_expr natural_logarithm(struct lower_steps *s, tir_expr x) {
  struct logarithm l = logarithm_of(s, x);
  tir_expr low = step_times_sum(s, l.k, step_real(s, ln2_low), l.tail);
  return logarithm_from(s, x, step_times(s, l.k, step_real(s, ln2)), l.f, low);
}

/* 1 / ln(2) = 1 + a fraction: f is added without error. */
static tir_expr logarithm_to_base_two(struct lower_steps *s, tir_expr x) {
  static const double inverse = 0x1.715476p+0, fraction = 0x1.c551dap-2;
  struct logarithm l = logarithm_of(s, x);
  tir_expr low = step_times_sum(s, l.f, step_real(s, fraction), step_times(s, l.tail, step_real(s, inverse)));
  return logarithm_from(s, x, l.k, l.f, low);
}

/* 1 / ln(10) = 1/2 + a rest: f/2 is added without error. */
static tir_expr logarithm_to_base_ten(struct lower_steps *s, tir_expr x) {
  static const double inverse = 0x1.bcb7b2p-2, rest = -0x1.0d213ap-4;
  struct logarithm l = logarithm_of(s, x);
  tir_expr low = step_times_sum(s, l.f, step_real(s, rest), step_times(s, l.tail, step_real(s, inverse)));
  low = step_times_sum(s, l.k, step_real(s, log10_2_low), low);
  return logarithm_from(s, x, step_times(s, l.k, step_real(s, log10_2)), step_times(s, l.f, step_real(s, 0.5)), low);
}

/* ln(1 + x) = ln(u) + c / u, u the float next to 1 + x and c what that lost. */
static tir_expr logarithm_of_one_more(struct lower_steps *s, tir_expr x) {
  tir_expr u = step_sum(s, x, step_real(s, 1)), lost = step_less(s, x, step_less(s, u, step_real(s, 1)));
  struct logarithm l = logarithm_of(s, u);
  tir_expr low = step_sum(s, step_times_sum(s, l.k, step_real(s, ln2_low), l.tail), step_over(s, lost, u));
  tir_expr made = logarithm_from(s, u, step_times(s, l.k, step_real(s, ln2)), l.f, low);
  return step_where(s, TIR_EQ, x, step_real(s, 0), x, made); /* -0 stays */
}

/* ---- Powers ---- */

/* Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits. */
static const double magic = 0x1.8p23;
enum { MAGIC_BITS = 0x4b400000 };

/* 2^k for -126 <= k <= 127. */
static tir_expr power_of_two(struct lower_steps *s, tir_expr k) {
  tir_expr biased = step_sum(s, k, step_whole(s, EXPONENT_BIAS));
  return step_of_bits(s, step_call(s, "shift_left", s->whole, biased, step_whole(s, FRACTION_BITS)));
}

/* near * 2^k in two steps, so that results overflow and vanish as they should. */
static tir_expr scaled(struct lower_steps *s, tir_expr near, tir_expr shifted) {
  tir_expr k = step_less(s, step_bits(s, shifted), step_whole(s, MAGIC_BITS));
  tir_expr half = step_call(s, "shift_right", s->whole, k, step_whole(s, 1));
  return step_times(s, step_times(s, near, power_of_two(s, half)), power_of_two(s, step_less(s, k, half)));
}

/* (2^r - 1) / r for |r| <= 1/2 */
static tir_expr exponential_of_two(struct lower_steps *s, tir_expr x) {
  static const double p[] = {0x1.416b52p-13, 0x1.5f082ep-10, 0x1.3b2de0p-7,
                             0x1.c6af7cp-5,  0x1.ebfbdcp-3,  0x1.62e430p-1};
  x = step_within(s, x, -151, 129);
  tir_expr shifted = step_sum(s, x, step_real(s, magic)),
           r = step_less(s, x, step_less(s, shifted, step_real(s, magic)));
  tir_expr near = step_times_sum(s, r, step_polynomial(s, r, p, sizeof p / sizeof *p), step_real(s, 1));
  return scaled(s, near, shifted);
}

/* (10^r - 1) / r for |r| <= log10(2) / 2 */
static tir_expr exponential_of_ten(struct lower_steps *s, tir_expr x) {
  static const double p[] = {0x1.a63a9ep-3, 0x1.156a46p-1, 0x1.2bda00p+0, 0x1.046f9cp+1, 0x1.53524ap+1, 0x1.26bb1cp+1};
  static const double inverse = 0x1.a934f0p+1;
  x = step_within(s, x, -46, 39);
  tir_expr shifted = step_times_sum(s, x, step_real(s, inverse), step_real(s, magic));
  tir_expr k = step_less(s, shifted, step_real(s, magic));
  tir_expr r = step_less(s, x, step_times(s, k, step_real(s, log10_2)));
  r = step_less(s, r, step_times(s, k, step_real(s, log10_2_low)));
  tir_expr near = step_times_sum(s, r, step_polynomial(s, r, p, sizeof p / sizeof *p), step_real(s, 1));
  return scaled(s, near, shifted);
}

/* e^x - 1 = 2 * (2^(k-1) * (e^r - 1) + (2^(k-1) - 1/2)), the polynomial (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2 */
static tir_expr exponential_less_one(struct lower_steps *s, tir_expr x) {
  static const double p[] = {0x1.9e77e2p-13, 0x1.6d3a5ep-10, 0x1.1112d6p-7, 0x1.5554f8p-5, 0x1.555554p-3, 0x1p-1};
  static const double inverse = 0x1.715476p+0;
  tir_expr near = step_within(s, x, -25, 89);
  tir_expr shifted = step_times_sum(s, near, step_real(s, inverse), step_real(s, magic));
  tir_expr k = step_less(s, shifted, step_real(s, magic));
  tir_expr r = step_less(s, near, step_times(s, k, step_real(s, ln2)));
  r = step_less(s, r, step_times(s, k, step_real(s, ln2_low)));
  tir_expr power = step_times_sum(s, step_polynomial(s, r, p, sizeof p / sizeof *p), step_times(s, r, r), r);
  tir_expr scale = power_of_two(s, step_less(s, step_bits(s, shifted), step_whole(s, MAGIC_BITS + 1)));
  tir_expr half = step_times_sum(s, scale, power, step_less(s, scale, step_real(s, 0.5)));
  return step_where(s, TIR_EQ, x, step_real(s, 0), x, step_sum(s, half, half)); /* -0 stays */
}

#define SINGLE(f)   f
#define DOUBLE(f)   NULL
#define BACKENDS(f) NULL
#define CALLED      NULL
static const struct lower_function functions[TIR_FUNCTIONS] = {
#define TIR_FUNCTION(name, operands, value, free, ...) {LOWER_STEPS_OF_##operands(free)},
#include "tir/functions.def"
};

tir_expr lower_in_single(struct tir *ir, const char *name, tir_expr x) {
  assert(tir_type_bits(tir_type_of(ir, x)) == 32);
  return lower_by_steps(ir, functions, name, &x, 1);
}
