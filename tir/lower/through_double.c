/* Elementary functions of float32 in float64 arithmetic that vectors have too, where the order of operations is free:
 * rounded to float32, within 0.51 units in the last place of the exact result, with fused multiply-add or without
 * (tests/tools/float_functions.c compares all 2^32 floats, and pairs). NaN, infinities, subnormal numbers and the signs
 * of zeros are as C17 has them, annex F.10.
 * Polynomials have the least relative error that their degree allows, by Remez's exchange in 200 bits, of at most
 * 2^-33; their coefficients are then rounded to float64. No reduction loses bits, however large the argument. Source of
 * the reduction to a quadrant: Payne and Hanek, "Radian Reduction for Trigonometric Functions", SIGNUM Newsletter 18,
 * 1983; with the bits of 2/pi chosen by comparisons in place of a table, since vectors have these everywhere. */
#include "lower.h"
#include "steps.h"

#include <assert.h>
#include <math.h>

#define POLYNOMIAL(s, x, ...)                                                                                          \
  step_polynomial(s, x, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static const double ln2 = 0x1.62e42fefa39efp-1, pi = 0x1.921fb54442d18p+1;

static tir_expr magnitude(struct lower_steps *s, tir_expr x) { return step_call(s, "fabs", s->real, x, TIR_NONE); }
static tir_expr root_of(struct lower_steps *s, tir_expr x) { return step_call(s, "sqrt", s->real, x, TIR_NONE); }
static tir_expr negative(struct lower_steps *s, tir_expr x) { return step_less(s, step_real(s, 0), x); }
static tir_expr times_real(struct lower_steps *s, tir_expr x, double y) { return step_times(s, x, step_real(s, y)); }

/* ---- Angles ---- */

/* Of an angle: the whole number of right angles next to it, in the low two bits, and the sine and cosine of what is
 * left, at most 0.516 of one. */
struct quadrant {
  tir_expr whole, sine, cosine;
};

enum { PIECES = 3, REACHES = 4 };

/* 2/pi, less multiples of 4 / 2^base, in pieces: a float32 times any of the first two is exact. Of a float32 below
 * 2^(base + 50) that is a multiple of 2^base, what is left out is a multiple of four right angles. */
static const double two_over_pi[REACHES][PIECES] = {
    {0x1.45f306c000000p-1, 0x1.c9c882c000000p-29, -0x1.ac07b1505c159p-57},    /* base 0 */
    {-0x1.1b1bbec000000p-28, 0x1.29fc274000000p-56, 0x1.7d1f534ddc0dbp-84},   /* 27 */
    {0x1.4a7f09e000000p-54, -0x1.4170564000000p-83, -0x1.911f924eb5336p-111}, /* 54 */
    {-0x1.505c15a000000p-81, 0x1.377036c000000p-110, 0x1.8a5664f10e410p-138}, /* 81 */
};
static const double reach_of[REACHES] = {0, 0x1p50, 0x1p77, 0x1p104}; /* where each begins */

static struct quadrant quadrant_of(struct lower_steps *s, tir_expr x) {
  tir_expr size = magnitude(s, x), piece[PIECES];
  for (int i = 0; i < PIECES; i++) {
    piece[i] = step_real(s, two_over_pi[REACHES - 1][i]);
    for (int j = REACHES - 1; j > 0; j--)
      piece[i] = step_where(s, TIR_LT, size, step_real(s, reach_of[j]), step_real(s, two_over_pi[j - 1][i]), piece[i]);
  }
  tir_expr magic = step_real(s, STEP_MAGIC), high = step_times(s, x, piece[0]), first = step_sum(s, high, magic);
  tir_expr rest = step_times_sum(s, x, piece[1], step_less(s, high, step_less(s, first, magic)));
  tir_expr second = step_sum(s, rest, magic);
  tir_expr f = step_times_sum(s, x, piece[2], step_less(s, rest, step_less(s, second, magic))),
           square = step_times(s, f, f);
  tir_expr sine = POLYNOMIAL(s, square, 0x1.4b705281c035cp-13, -0x1.32c95a386079bp-8, 0x1.466bb7ee49403p-4,
                             -0x1.4abbce52a3a85p-1, 0x1.921fb54437dd7p+0);
  tir_expr cosine = POLYNOMIAL(s, square, 0x1.d90c4052ae53ap-11, -0x1.55c2c7e52b01fp-6, 0x1.03c1d5ca18ebdp-2,
                               -0x1.3bd3cc605e26cp+0, 0x1.ffffffff529ddp-1);
  tir_expr whole = step_sum(s, step_bits(s, first), step_bits(s, second));
  return (struct quadrant){whole, step_times(s, f, sine), cosine};
}

/* One of the two where the bit is 0, the other where it is 1. */
static tir_expr by_bit(struct lower_steps *s, tir_expr whole, int64_t bit, tir_expr zero, tir_expr one) {
  tir_expr kept = step_call(s, "bitwise_and", s->whole, whole, step_whole(s, bit));
  return step_where(s, TIR_EQ, kept, step_whole(s, 0), zero, one);
}

static tir_expr sine(struct lower_steps *s, tir_expr x) {
  struct quadrant q = quadrant_of(s, x);
  tir_expr size = by_bit(s, q.whole, 1, q.sine, q.cosine);
  tir_expr made = by_bit(s, q.whole, 2, size, negative(s, size));
  return step_where(s, TIR_EQ, x, step_real(s, 0), x, made); /* -0 stays */
}

static tir_expr cosine(struct lower_steps *s, tir_expr x) {
  struct quadrant q = quadrant_of(s, x);
  tir_expr size = by_bit(s, q.whole, 1, q.cosine, q.sine);
  return by_bit(s, step_sum(s, q.whole, step_whole(s, 1)), 2, size, negative(s, size));
}

static tir_expr tangent(struct lower_steps *s, tir_expr x) {
  struct quadrant q = quadrant_of(s, x);
  tir_expr above = by_bit(s, q.whole, 1, q.sine, negative(s, q.cosine));
  tir_expr made = step_over(s, above, by_bit(s, q.whole, 1, q.cosine, q.sine));
  return step_where(s, TIR_EQ, x, step_real(s, 0), x, made); /* -0 stays */
}

/* The angle whose tangent is t, 0 <= t <= 1. */
static tir_expr angle_of_tangent(struct lower_steps *s, tir_expr t) {
  tir_expr p = POLYNOMIAL(s, step_times(s, t, t), -0x1.6708086da5159p-11, 0x1.3de9b7001e31bp-8, -0x1.07f9a3ebe6df6p-6,
                          0x1.183f0116a6397p-5, -0x1.bca7c481c78f5p-5, 0x1.28c8edc5ea186p-4, -0x1.6fd4a7edf28f9p-4,
                          0x1.c661122839ed3p-4, -0x1.24893288ef846p-3, 0x1.999923904216ep-3, -0x1.555554269f9c2p-2,
                          0x1.ffffffff7eca4p-1);
  return step_times(s, t, p);
}

static tir_expr arc_tangent(struct lower_steps *s, tir_expr x) {
  tir_expr size = magnitude(s, x), one = step_real(s, 1);
  tir_expr angle = angle_of_tangent(s, step_where(s, TIR_GT, size, one, step_over(s, one, size), size));
  tir_expr other = step_less(s, step_real(s, pi / 2), angle);
  return step_signed(s, step_where(s, TIR_GT, size, one, other, angle), x);
}

static tir_expr arc_tangent_of_two(struct lower_steps *s, tir_expr y, tir_expr x) {
  tir_expr up = magnitude(s, y), along = magnitude(s, x), zero = step_real(s, 0);
  tir_expr least = step_where(s, TIR_GT, up, along, along, up), most = step_where(s, TIR_GT, up, along, up, along);
  tir_expr t = step_where(s, TIR_EQ, least, most, step_real(s, 1), step_over(s, least, most)); /* infinities, too */
  tir_expr angle = angle_of_tangent(s, step_where(s, TIR_EQ, most, zero, least, t));
  angle = step_where(s, TIR_GT, up, along, step_less(s, step_real(s, pi / 2), angle), angle);
  tir_expr behind = step_signed(s, step_real(s, 1), x); /* -1 where x is -0, too */
  angle = step_where(s, TIR_LT, behind, zero, step_less(s, step_real(s, pi), angle), angle);
  return step_signed(s, angle, y);
}

/* Of |x| <= 1/2: its arc sine. Of |x| > 1/2: the half of its arc cosine, which is the arc sine of sqrt((1 - |x|) /
 * 2). */
static tir_expr arc_sine_or_half(struct lower_steps *s, tir_expr size) {
  tir_expr half = times_real(s, step_less(s, step_real(s, 1), size), 0.5), middle = step_real(s, 0.5);
  tir_expr square = step_where(s, TIR_GT, size, middle, half, step_times(s, size, size));
  tir_expr t = step_where(s, TIR_GT, size, middle, root_of(s, half), size);
  tir_expr p =
      POLYNOMIAL(s, square, 0x1.1e52c7ed5b769p-5, 0x1.d96b53dd56f94p-8, 0x1.94dfc186cc6cep-6, 0x1.ed07de44ba541p-6,
                 0x1.6ddf13cf0f644p-5, 0x1.33328d4db9933p-4, 0x1.55555658bfa2ep-3, 0x1.ffffffffdece0p-1);
  return step_times(s, t, p);
}

static tir_expr arc_sine(struct lower_steps *s, tir_expr x) {
  tir_expr size = magnitude(s, x), angle = arc_sine_or_half(s, size);
  tir_expr other = step_times_sum(s, angle, step_real(s, -2), step_real(s, pi / 2));
  return step_signed(s, step_where(s, TIR_GT, size, step_real(s, 0.5), other, angle), x);
}

static tir_expr arc_cosine(struct lower_steps *s, tir_expr x) {
  tir_expr size = magnitude(s, x), angle = arc_sine_or_half(s, size), twice = step_sum(s, angle, angle);
  tir_expr far = step_where(s, TIR_LT, x, step_real(s, 0), step_less(s, step_real(s, pi), twice), twice);
  tir_expr near = step_less(s, step_real(s, pi / 2), step_signed(s, angle, x));
  return step_where(s, TIR_GT, size, step_real(s, 0.5), far, near);
}

/* ---- Powers and logarithms ---- */

/* e^x = 2^k * (1 + tail), |x| cut to 130. */
struct power {
  tir_expr scale, tail;
};

static struct power power_of_e(struct lower_steps *s, tir_expr x) {
  static const double inverse = 0x1.71547652b82fep+0, high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b39p-40;
  x = step_within(s, x, -130, 130);
  tir_expr shifted = step_times_sum(s, x, step_real(s, inverse), step_real(s, STEP_MAGIC));
  tir_expr k = step_less(s, shifted, step_real(s, STEP_MAGIC));
  tir_expr r = step_less(s, step_less(s, x, times_real(s, k, high)), times_real(s, k, low));
  tir_expr p =
      POLYNOMIAL(s, r, 0x1.a019ee4f3ef7ap-16, 0x1.a17d64431a074p-13, 0x1.6c175b265f92ap-10, 0x1.1110a68b18a48p-7,
                 0x1.555554f2f6c6bp-5, 0x1.5555557e240abp-3, 0x1.000000001a88dp-1, 0x1.fffffffff6419p-1);
  return (struct power){step_power_of_two(s, shifted), step_times(s, r, p)};
}

/* With t = e^|x| - 1: (t + t / (t + 1)) / 2. */
static tir_expr hyperbolic_sine(struct lower_steps *s, tir_expr x) {
  struct power p = power_of_e(s, magnitude(s, x));
  tir_expr t = step_times_sum(s, p.scale, p.tail, step_less(s, p.scale, step_real(s, 1)));
  tir_expr both = step_sum(s, t, step_over(s, t, step_sum(s, t, step_real(s, 1))));
  return step_signed(s, times_real(s, both, 0.5), x);
}

static tir_expr hyperbolic_cosine(struct lower_steps *s, tir_expr x) {
  struct power p = power_of_e(s, magnitude(s, x));
  tir_expr grown = step_times_sum(s, p.scale, p.tail, p.scale);
  return times_real(s, step_sum(s, grown, step_over(s, step_real(s, 1), grown)), 0.5);
}

/* ln(1 + y) = ln(u) + c / u for -1 < y, u the float64 next to 1 + y and c what that lost. */
static tir_expr logarithm_of_one_more(struct lower_steps *s, tir_expr y) {
  tir_expr u = step_sum(s, y, step_real(s, 1)), lost = step_less(s, y, step_less(s, u, step_real(s, 1)));
  tir_expr m = TIR_NONE, k = step_exponent(s, u, &m), f = step_less(s, m, step_real(s, 1));
  tir_expr t = step_over(s, f, step_sum(s, f, step_real(s, 2)));
  tir_expr p = POLYNOMIAL(s, step_times(s, t, t), 0x1.e3b04d418a03dp-3, 0x1.2432bbe12a40ep-2, 0x1.999a9ca197e25p-2,
                          0x1.555554dac5f76p-1, 0x1.0000000004a23p+1);
  tir_expr made = step_sum(s, step_times_sum(s, k, step_real(s, ln2), step_times(s, t, p)), step_over(s, lost, u));
  return step_where(s, TIR_LT, y, step_real(s, INFINITY), made, y); /* NaN, too */
}

/* ln(a + sqrt(a^2 + 1)) = ln(1 + a + a^2 / (1 + sqrt(a^2 + 1))) */
static tir_expr inverse_hyperbolic_sine(struct lower_steps *s, tir_expr x) {
  tir_expr size = magnitude(s, x), square = step_times(s, size, size), one = step_real(s, 1);
  tir_expr more = step_over(s, square, step_sum(s, one, root_of(s, step_sum(s, square, one))));
  tir_expr made = logarithm_of_one_more(s, step_sum(s, size, more));
  return step_where(s, TIR_LT, size, step_real(s, INFINITY), step_signed(s, made, x), x);
}

/* With t = x - 1: ln(1 + t + sqrt(t (t + 2))). */
static tir_expr inverse_hyperbolic_cosine(struct lower_steps *s, tir_expr x) {
  tir_expr t = step_less(s, x, step_real(s, 1));
  tir_expr root = root_of(s, step_times(s, t, step_sum(s, t, step_real(s, 2))));
  tir_expr made = logarithm_of_one_more(s, step_sum(s, t, root));
  return step_where(s, TIR_LT, t, step_real(s, 0), step_real(s, NAN), made);
}

/* ln((1 + a) / (1 - a)) / 2 */
static tir_expr inverse_hyperbolic_tangent(struct lower_steps *s, tir_expr x) {
  tir_expr size = magnitude(s, x), left = step_less(s, step_real(s, 1), size);
  tir_expr made = times_real(s, logarithm_of_one_more(s, step_over(s, step_sum(s, size, size), left)), 0.5);
  made = step_where(s, TIR_GT, size, step_real(s, 1), step_real(s, NAN), made);
  return step_signed(s, made, x);
}

/* ---- Roots and powers ---- */

/* The bits of a^(-1/3) are some constant less a third of a's, within 4 %; two steps of Halley's method for 1 / y^3 = a
 * take the cube of that error. Then a times the square. */
static tir_expr cube_root(struct lower_steps *s, tir_expr x) {
  static const int64_t magic_bits = 0x4338000000000000, left_out = 20;
  static const double start = 0x553ee978.0p+12; /* 4/3 of 1.0's bits without the low 20, less what makes errors even */
  tir_expr size = magnitude(s, x);
  tir_expr bits = step_call(s, "shift_right", s->whole, step_bits(s, size), step_whole(s, left_out));
  tir_expr number =
      step_less(s, step_of_bits(s, step_sum(s, bits, step_whole(s, magic_bits))), step_real(s, STEP_MAGIC));
  tir_expr third = step_times_sum(s, number, step_real(s, -1.0 / 3), step_real(s, STEP_MAGIC + start));
  tir_expr y = step_of_bits(s, step_call(s, "shift_left", s->whole, step_bits(s, third), step_whole(s, left_out)));
  for (int i = 0; i < 2; i++) {
    tir_expr cube = step_times(s, step_times(s, y, y), step_times(s, y, size));
    tir_expr e = step_less(s, step_real(s, 1), cube);
    tir_expr grown = step_times(s, e, step_times_sum(s, e, step_real(s, 2.0 / 9), step_real(s, 1.0 / 3)));
    y = step_times_sum(s, y, grown, y);
  }
  tir_expr made = step_signed(s, step_times(s, size, step_times(s, y, y)), x);
  made = step_where(s, TIR_LT, size, step_real(s, INFINITY), made, x);
  return step_where(s, TIR_EQ, x, step_real(s, 0), x, made);
}

static tir_expr length(struct lower_steps *s, tir_expr x, tir_expr y) {
  tir_expr endless = step_real(s, INFINITY);
  tir_expr made = root_of(s, step_times_sum(s, x, x, step_times(s, y, y)));
  made = step_where(s, TIR_EQ, magnitude(s, x), endless, endless, made); /* with NaN, too */
  return step_where(s, TIR_EQ, magnitude(s, y), endless, endless, made);
}

/* log2 of a float32 >= 0, or NaN. */
static tir_expr logarithm_to_base_two(struct lower_steps *s, tir_expr x) {
  tir_expr m = TIR_NONE, k = step_exponent(s, x, &m), f = step_less(s, m, step_real(s, 1));
  tir_expr t = step_over(s, f, step_sum(s, f, step_real(s, 2)));
  tir_expr p = POLYNOMIAL(s, step_times(s, t, t), 0x1.21b0ea97e634ap-2, 0x1.47955635813fbp-2, 0x1.a61a2ec9b1b2bp-2,
                          0x1.2776c2933ecdcp-1, 0x1.ec709dc53c66bp-1, 0x1.71547652b8251p+1);
  return step_logarithm(s, x, step_times_sum(s, t, p, k));
}

/* 2^p, |p| cut where a float32 is 0 or infinite anyway. */
static tir_expr power_of_two(struct lower_steps *s, tir_expr p) {
  p = step_within(s, p, -151, 129);
  tir_expr shifted = step_sum(s, p, step_real(s, STEP_MAGIC));
  tir_expr r = step_less(s, p, step_less(s, shifted, step_real(s, STEP_MAGIC)));
  tir_expr near =
      POLYNOMIAL(s, r, 0x1.fe1734e9de6efp-17, 0x1.446a446553de0p-13, 0x1.5d8a712b80072p-10, 0x1.3b29dc1395c04p-7,
                 0x1.c6b08aae2b886p-5, 0x1.ebfbe0a4f3d13p-3, 0x1.62e42ff116de4p-1, 0x1.ffffffffab9d3p-1);
  return step_times(s, near, step_power_of_two(s, shifted));
}

/* |x|^y = 2^(y log2 |x|), 1 where |x| is 1 or y is 0, whatever the other is; its sign is that of x where y is odd; NaN
 * where x < 0 is finite and y is no integer. Of y beyond 2^25, all are even. */
static tir_expr power(struct lower_steps *s, tir_expr x, tir_expr y) {
  static const int64_t sign_bit = 63;
  tir_expr zero = step_real(s, 0), endless = step_real(s, INFINITY), size = magnitude(s, x);
  tir_expr logarithm = logarithm_to_base_two(s, size);
  tir_expr made = power_of_two(s, step_where(s, TIR_EQ, logarithm, zero, zero, step_times(s, y, logarithm)));
  tir_expr cut = step_within(s, y, -0x1p25, 0x1p25), shifted = step_sum(s, cut, step_real(s, STEP_MAGIC));
  tir_expr nearest = step_less(s, shifted, step_real(s, STEP_MAGIC));
  tir_expr odd = step_call(s, "shift_left", s->whole, step_bits(s, shifted), step_whole(s, sign_bit));
  tir_expr sign = step_call(s, "bitwise_and", s->whole, step_bits(s, x), odd);
  tir_expr whole = step_of_bits(s, step_call(s, "bitwise_or", s->whole, step_bits(s, made), sign));
  tir_expr other = step_where(s, TIR_LT, size, endless, step_real(s, NAN), made); /* of a y that is no integer */
  other = step_where(s, TIR_LT, x, zero, other, made);
  made = step_where(s, TIR_EQ, nearest, cut, whole, other);
  return step_where(s, TIR_EQ, y, zero, step_real(s, 1), made);
}

#define SINGLE(f)   NULL
#define DOUBLE(f)   f
#define BACKENDS(f) NULL
#define CALLED      NULL
static const struct lower_function functions[TIR_FUNCTIONS] = {
#define TIR_FUNCTION(name, operands, value, free, ...) {LOWER_STEPS_OF_##operands(free)},
#include "tir/functions.def"
};

tir_expr lower_through_double(struct tir *ir, const char *name, const tir_expr *numbers, uint32_t count) {
  tir_type type = tir_type_of(ir, numbers[0]), wide = TIR_TYPE(TIR_FLOAT, 64, tir_type_lanes(type));
  assert(tir_type_bits(type) == 32);
  if (count < 1 || count > 2) return TIR_NONE;
  tir_expr widened[2];
  for (uint32_t i = 0; i < count; i++) widened[i] = tir_unary(ir, TIR_CAST, wide, numbers[i]);
  tir_expr made = lower_by_steps(ir, functions, name, widened, count);
  return made ? tir_unary(ir, TIR_CAST, type, made) : TIR_NONE;
}
