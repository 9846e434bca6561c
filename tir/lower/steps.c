/* Steps of arithmetic by name: what elementary functions are made of. */
#include "steps.h"

#include <assert.h>
#include <math.h>
#include <string.h>

tir_expr step_of(struct lower_steps *s, tir_expr value) {
  assert(s->count < LOWER_MOST_STEPS);
  struct tir *ir = s->ir;
  tir_var var = tir_new_let(ir, tir_name_of(ir, "step"), value);
  s->vars[s->count] = var;
  s->values[s->count++] = value;
  return tir_var_expr(ir, var);
}

static tir_expr in_lanes(struct lower_steps *s, tir_expr one, tir_type type) {
  return tir_type_lanes(type) == 1 ? one : tir_unary(s->ir, TIR_BROADCAST, type, one);
}
tir_expr step_real(struct lower_steps *s, double value) {
  return in_lanes(s, tir_float(s->ir, tir_type_with_lanes(s->real, 1), value), s->real);
}
tir_expr step_whole(struct lower_steps *s, int64_t value) {
  return in_lanes(s, tir_int(s->ir, tir_type_with_lanes(s->whole, 1), value), s->whole);
}

tir_expr step_sum(struct lower_steps *s, tir_expr a, tir_expr b) {
  return step_of(s, tir_binary(s->ir, TIR_ADD, a, b));
}
tir_expr step_less(struct lower_steps *s, tir_expr a, tir_expr b) {
  return step_of(s, tir_binary(s->ir, TIR_SUB, a, b));
}
tir_expr step_times(struct lower_steps *s, tir_expr a, tir_expr b) {
  return step_of(s, tir_binary(s->ir, TIR_MUL, a, b));
}
tir_expr step_over(struct lower_steps *s, tir_expr a, tir_expr b) {
  return step_of(s, tir_binary(s->ir, TIR_DIV, a, b));
}

tir_expr step_times_sum(struct lower_steps *s, tir_expr x, tir_expr y, tir_expr z) {
  return step_sum(s, step_times(s, x, y), z);
}

tir_expr step_polynomial(struct lower_steps *s, tir_expr x, const double *coefficients, uint32_t count) {
  assert(count > 1);
  tir_expr p = step_real(s, coefficients[0]);
  for (uint32_t i = 1; i < count; i++) p = step_times_sum(s, p, x, step_real(s, coefficients[i]));
  return p;
}

tir_expr step_where(struct lower_steps *s, enum tir_kind kind, tir_expr a, tir_expr b, tir_expr then, tir_expr other) {
  assert(kind == TIR_LT || kind == TIR_GT || kind == TIR_EQ);
  return step_of(s, tir_select(s->ir, tir_binary(s->ir, kind, a, b), then, other));
}

tir_expr step_within(struct lower_steps *s, tir_expr x, double least, double most) {
  tir_expr top = step_real(s, most), bottom = step_real(s, least);
  x = step_where(s, TIR_GT, x, top, top, x);
  return step_where(s, TIR_LT, x, bottom, bottom, x);
}

tir_expr step_logarithm(struct lower_steps *s, tir_expr x, tir_expr computed) {
  tir_expr result = step_where(s, TIR_LT, x, step_real(s, INFINITY), computed, x);
  result = step_where(s, TIR_EQ, x, step_real(s, 0), step_real(s, -INFINITY), result);
  return step_where(s, TIR_LT, x, step_real(s, 0), step_real(s, NAN), result);
}

tir_expr step_call(struct lower_steps *s, const char *name, tir_type type, tir_expr a, tir_expr b) {
  tir_expr args[] = {a, b};
  return step_of(s, tir_call(s->ir, type, tir_symbol_of(s->ir, name), args, b ? 2 : 1));
}
tir_expr step_bits(struct lower_steps *s, tir_expr real) {
  return step_call(s, "reinterpret", s->whole, real, TIR_NONE);
}
tir_expr step_of_bits(struct lower_steps *s, tir_expr whole) {
  return step_call(s, "reinterpret", s->real, whole, TIR_NONE);
}

tir_expr step_signed(struct lower_steps *s, tir_expr size, tir_expr sign) {
  int64_t top = (int64_t)(UINT64_MAX << (tir_type_bits(s->real) - 1));
  tir_expr kept = step_call(s, "bitwise_and", s->whole, step_bits(s, sign), step_whole(s, top));
  return step_of_bits(s, step_call(s, "bitwise_or", s->whole, step_bits(s, size), kept));
}

/* ---- Of float64 ---- */

enum { FRACTION_BITS = 52, EXPONENT_BIAS = 1023 };

tir_expr step_power_of_two(struct lower_steps *s, tir_expr shifted) {
  tir_expr biased = step_sum(s, step_bits(s, shifted), step_whole(s, EXPONENT_BIAS));
  return step_of_bits(s, step_call(s, "shift_left", s->whole, biased, step_whole(s, FRACTION_BITS)));
}

tir_expr step_exponent(struct lower_steps *s, tir_expr x, tir_expr *m) {
  static const int64_t bias = 1024, root = 0x3fe6a09e667f3bcd, magic_bits = 0x4338000000000000;
  tir_expr bits = step_bits(s, x);
  tir_expr moved = step_sum(s, bits, step_whole(s, (bias << FRACTION_BITS) - root));
  tir_expr kept = step_call(s, "bitwise_and", s->whole, moved, step_whole(s, (int64_t)0x7ff << FRACTION_BITS));
  tir_expr rest = step_sum(s, step_less(s, bits, kept), step_whole(s, bias << FRACTION_BITS));
  *m = step_of_bits(s, rest);
  tir_expr biased = step_call(s, "shift_right", s->whole, moved, step_whole(s, FRACTION_BITS));
  tir_expr shifted = step_of_bits(s, step_sum(s, biased, step_whole(s, magic_bits)));
  return step_less(s, shifted, step_real(s, STEP_MAGIC + (double)bias));
}

/* ---- Functions ---- */

static tir_expr made_by(const struct lower_function *f, struct lower_steps *s, const tir_expr *numbers,
                        uint32_t count) {
  assert(count == 1 || count == 2);
  tir_expr x = step_of(s, numbers[0]);
  return count == 1 ? f->make(s, x) : f->make_of_two(s, x, step_of(s, numbers[1]));
}

tir_expr lower_by_steps(struct tir *ir, const struct lower_function list[TIR_FUNCTIONS], const char *name,
                        const tir_expr *numbers, uint32_t count) {
  tir_type type = tir_type_of(ir, numbers[0]);
  assert(tir_type_is_float(type) && tir_type_bits(type) >= 32);
  struct lower_steps s = {ir, type, TIR_TYPE(TIR_INT, tir_type_bits(type), tir_type_lanes(type)), {0}, {0}, 0};
  enum tir_function f = tir_function_named(name);
  if (f == TIR_FUNCTIONS || !(count == 1 ? list[f].make != NULL : count == 2 && list[f].make_of_two)) return TIR_NONE;
  tir_expr made = made_by(&list[f], &s, numbers, count);
  while (s.count-- > 0) made = tir_let(ir, s.vars[s.count], s.values[s.count], made);
  return made;
}
