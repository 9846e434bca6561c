/* Elementary functions of floats of at most 32 bits, in float64 arithmetic that vectors have too. Rounded to float32
 * they are what the C library's functions of float64 give, rounded, for all 2^32 floats: tests/tools/float_functions.c
 * compares them. The operations are those of IEEE 754, in this order, none of them contracted: the bits are the same as
 * a scalar, in a vector, and on any backend.
 * Source of the range reductions: Cody and Waite, "Software Manual for the Elementary Functions", 1980, chapters 5
 * and 6. */
#include "lower.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 96, FRACTION_BITS = 52, EXPONENT_BIAS = 1023 };

/* Values, named in the order in which they are computed. */
struct steps {
  struct tir *ir;
  tir_type real, whole; /* float64 and int64, of as many lanes */
  tir_var vars[MOST_STEPS];
  tir_expr values[MOST_STEPS];
  uint32_t count;
};

static tir_expr named(struct steps *s, tir_expr value) {
  assert(s->count < MOST_STEPS);
  struct tir *ir = s->ir;
  tir_var var = tir_new_var(ir, TIR_VAR_LET, tir_name_of(ir, "step"), tir_type_of(ir, value), TIR_NONE, TIR_NONE);
  s->vars[s->count] = var;
  s->values[s->count++] = value;
  return tir_var_expr(ir, var);
}

static tir_expr in_lanes(struct steps *s, tir_expr one, tir_type type) {
  return tir_type_lanes(type) == 1 ? one : tir_unary(s->ir, TIR_BROADCAST, type, one);
}
static tir_expr real(struct steps *s, double value) {
  return in_lanes(s, tir_float(s->ir, tir_type_with_lanes(s->real, 1), value), s->real);
}
static tir_expr whole(struct steps *s, int64_t value) {
  return in_lanes(s, tir_int(s->ir, tir_type_with_lanes(s->whole, 1), value), s->whole);
}
static tir_expr sum(struct steps *s, tir_expr a, tir_expr b) { return named(s, tir_binary(s->ir, TIR_ADD, a, b)); }
static tir_expr less(struct steps *s, tir_expr a, tir_expr b) { return named(s, tir_binary(s->ir, TIR_SUB, a, b)); }
static tir_expr times(struct steps *s, tir_expr a, tir_expr b) { return named(s, tir_binary(s->ir, TIR_MUL, a, b)); }
static tir_expr over(struct steps *s, tir_expr a, tir_expr b) { return named(s, tir_binary(s->ir, TIR_DIV, a, b)); }

static tir_expr call(struct steps *s, const char *name, tir_type type, tir_expr a, tir_expr b) {
  tir_expr args[] = {a, b};
  return named(s, tir_call(s->ir, type, tir_symbol_of(s->ir, name), args, b ? 2 : 1));
}

/* ---- Powers ---- */

/* 2^k * (1 + tail). */
struct power {
  tir_expr scale, tail;
};

/* Floats of 32 bits are infinite and 0 beyond these, whatever is then done with them. NaN stays. */
static tir_expr within_range(struct steps *s, tir_expr x, double least, double most) {
  tir_expr top = real(s, most), bottom = real(s, least);
  x = named(s, tir_select(s->ir, tir_binary(s->ir, TIR_GT, x, top), top, x));
  return named(s, tir_select(s->ir, tir_binary(s->ir, TIR_LT, x, bottom), bottom, x));
}

/* e^rest - 1, |rest| <= ln(2) / 2: its series. */
static tir_expr tail_of(struct steps *s, tir_expr rest) {
  static const double inverse_factorials[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                              1.0 / 40320,     1.0 / 5040,     1.0 / 720,     1.0 / 120,
                                              1.0 / 24,        1.0 / 6,        1.0 / 2};
  tir_expr p = real(s, inverse_factorials[0]);
  for (size_t i = 1; i < sizeof inverse_factorials / sizeof *inverse_factorials; i++)
    p = sum(s, times(s, p, rest), real(s, inverse_factorials[i]));
  return sum(s, rest, times(s, times(s, rest, rest), p));
}

/* Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits. */
static const double magic = 0x1.8p52;

static tir_expr scale_of(struct steps *s, tir_expr shifted) {
  tir_expr bits = call(s, "reinterpret", s->whole, shifted, TIR_NONE);
  tir_expr biased = sum(s, bits, whole(s, EXPONENT_BIAS));
  return call(s, "reinterpret", s->real, call(s, "shift_left", s->whole, biased, whole(s, FRACTION_BITS)), TIR_NONE);
}

static struct power power_of_e(struct steps *s, tir_expr x) {
  static const double inverse = 0x1.71547652b82fep0; /* 1 / ln(2), and ln(2) in two parts, of which k * one is exact */
  static const double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b39p-40;
  x = within_range(s, x, -160, 130);
  tir_expr shifted = sum(s, times(s, x, real(s, inverse)), real(s, magic)), k = less(s, shifted, real(s, magic));
  tir_expr rest = less(s, x, times(s, k, real(s, high)));
  rest = less(s, rest, times(s, k, real(s, low)));
  return (struct power){scale_of(s, shifted), tail_of(s, rest)};
}

static struct power power_of_two(struct steps *s, tir_expr x) {
  static const double ln2 = 0x1.62e42fefa39efp-1;
  x = within_range(s, x, -230, 190);
  tir_expr shifted = sum(s, x, real(s, magic)), k = less(s, shifted, real(s, magic));
  return (struct power){scale_of(s, shifted), tail_of(s, times(s, less(s, x, k), real(s, ln2)))};
}

static tir_expr value_of(struct steps *s, struct power p) { return times(s, sum(s, real(s, 1), p.tail), p.scale); }

/* ---- Logarithms ---- */

/* Of a number x > 0: k with x = 2^k * m, sqrt(1/2) <= m < sqrt(2), and ln(m) as a sum. */
struct logarithm {
  tir_expr k, high, low;
};

/* t / s^3 with 2 * atanh(s) = 2s + t: its series. */
static tir_expr tail_of_atanh(struct steps *s, tir_expr square) {
  tir_expr p = real(s, 2.0 / 27);
  for (int i = 25; i >= 3; i -= 2) p = sum(s, times(s, p, square), real(s, 2.0 / i));
  return p;
}

/* The exponent, taken so that what is left is near 1, and is left in *m. */
static tir_expr exponent_of(struct steps *s, tir_expr x, tir_expr *m) {
  static const int64_t bias = 1024, root = 0x3fe6a09e667f3bcd, magic_bits = 0x4338000000000000;
  tir_expr bits = call(s, "reinterpret", s->whole, x, TIR_NONE);
  tir_expr moved = sum(s, bits, whole(s, (bias << FRACTION_BITS) - root));
  tir_expr kept = call(s, "bitwise_and", s->whole, moved, whole(s, (int64_t)0x7ff << FRACTION_BITS));
  tir_expr rest = sum(s, less(s, bits, kept), whole(s, bias << FRACTION_BITS));
  *m = call(s, "reinterpret", s->real, rest, TIR_NONE);
  tir_expr biased = call(s, "shift_right", s->whole, moved, whole(s, FRACTION_BITS));
  tir_expr shifted = call(s, "reinterpret", s->real, sum(s, biased, whole(s, magic_bits)), TIR_NONE);
  return less(s, shifted, real(s, magic + (double)bias));
}

/* ln(1 + f) = f - f^2/2 + r * (f^2/2 + r^2 * tail), r = f / (2 + f). Of m with 24 bits, f and f^2/2 are exact. */
static struct logarithm logarithm_of(struct steps *s, tir_expr x) {
  x = named(s, tir_select(s->ir, tir_binary(s->ir, TIR_GT, x, real(s, 0)), x, real(s, 1)));
  x = named(s, tir_select(s->ir, tir_binary(s->ir, TIR_LT, x, real(s, INFINITY)), x, real(s, 1)));
  tir_expr m = TIR_NONE, k = exponent_of(s, x, &m), f = less(s, m, real(s, 1));
  tir_expr half = times(s, times(s, f, f), real(s, 0.5)), r = over(s, f, sum(s, f, real(s, 2)));
  tir_expr square = times(s, r, r);
  tir_expr tail = times(s, r, sum(s, half, times(s, square, tail_of_atanh(s, square))));
  tir_expr high = less(s, f, half);
  return (struct logarithm){k, high, sum(s, less(s, less(s, f, high), half), tail)};
}

/* a + b + low, |a| >= |b| or a = 0, but where x is no number with a logarithm. */
static tir_expr logarithm_from(struct steps *s, tir_expr x, tir_expr a, tir_expr b, tir_expr low) {
  struct tir *ir = s->ir;
  tir_expr most = sum(s, a, b), left = sum(s, less(s, a, most), b), result = sum(s, most, sum(s, left, low));
  result = named(s, tir_select(ir, tir_binary(ir, TIR_LT, x, real(s, INFINITY)), result, x));
  result = named(s, tir_select(ir, tir_binary(ir, TIR_EQ, x, real(s, 0)), real(s, -INFINITY), result));
  return named(s, tir_select(ir, tir_binary(ir, TIR_LT, x, real(s, 0)), real(s, NAN), result));
}

static tir_expr natural_logarithm(struct steps *s, tir_expr x) {
  static const double ln2 = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b39p-40;
  struct logarithm l = logarithm_of(s, x);
  tir_expr low = sum(s, l.low, times(s, l.k, real(s, ln2_low)));
  return logarithm_from(s, x, times(s, l.k, real(s, ln2)), l.high, low);
}

/* 1 / ln(2) in two parts, of which the first times 26 bits is exact. */
static tir_expr logarithm_to_base_two(struct steps *s, tir_expr x) {
  static const double inverse = 0x1.715476p+0, inverse_low = 0x1.4ae0bf85ep-26;
  struct logarithm l = logarithm_of(s, x);
  tir_expr bits = call(s, "reinterpret", s->whole, l.high, TIR_NONE);
  tir_expr kept = call(s, "bitwise_and", s->whole, bits, whole(s, ~(int64_t)0x7ffffff));
  tir_expr top = call(s, "reinterpret", s->real, kept, TIR_NONE);
  tir_expr rest = sum(s, less(s, l.high, top), l.low);
  tir_expr low = sum(s, times(s, top, real(s, inverse_low)), times(s, rest, real(s, inverse + inverse_low)));
  return logarithm_from(s, x, l.k, times(s, top, real(s, inverse)), low);
}

/* ---- Functions ---- */

static tir_expr exponential(struct steps *s, tir_expr x) { return value_of(s, power_of_e(s, x)); }
static tir_expr exponential_of_two(struct steps *s, tir_expr x) { return value_of(s, power_of_two(s, x)); }

static tir_expr logistic(struct steps *s, tir_expr x) {
  tir_expr grown = exponential(s, less(s, real(s, 0), x));
  return over(s, real(s, 1), sum(s, real(s, 1), grown));
}

/* -t / (t + 2) with t = e^(-2|x|) - 1, and the sign of x. */
static tir_expr hyperbolic_tangent(struct steps *s, tir_expr x) {
  tir_expr size = call(s, "fabs", s->real, x, TIR_NONE);
  struct power p = power_of_e(s, times(s, size, real(s, -2)));
  tir_expr t = sum(s, times(s, p.scale, p.tail), less(s, p.scale, real(s, 1)));
  tir_expr result = over(s, less(s, real(s, 0), t), sum(s, t, real(s, 2)));
  tir_expr sign = call(s, "bitwise_and", s->whole, call(s, "reinterpret", s->whole, x, TIR_NONE), whole(s, INT64_MIN));
  tir_expr bits = call(s, "reinterpret", s->whole, result, TIR_NONE);
  return call(s, "reinterpret", s->real, call(s, "bitwise_or", s->whole, bits, sign), TIR_NONE);
}

static const struct {
  const char *name;
  tir_expr (*make)(struct steps *, tir_expr);
} functions[] = {{"exp", exponential},         {"exp2", exponential_of_two}, {"sigmoid", logistic},
                 {"tanh", hyperbolic_tangent}, {"log", natural_logarithm},   {"log2", logarithm_to_base_two}};

tir_expr lower_in_double(struct tir *ir, const char *name, tir_expr x) {
  tir_type type = tir_type_of(ir, x);
  assert(tir_type_is_float(type) && tir_type_bits(type) == 64);
  struct steps s = {.ir = ir, .real = type, .whole = TIR_TYPE(TIR_INT, 64, tir_type_lanes(type))};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strcmp(functions[i].name, name) != 0) continue;
    tir_expr made = functions[i].make(&s, named(&s, x));
    while (s.count-- > 0) made = tir_let(ir, s.vars[s.count], s.values[s.count], made);
    return made;
  }
  return TIR_NONE;
}
