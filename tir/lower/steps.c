/* Steps of arithmetic by name: what elementary functions are made of. */
#include "steps.h"

#include <assert.h>
#include <math.h>
#include <string.h>

tir_expr step_of(struct lower_steps *s, tir_expr value) {
  assert(s->count < LOWER_MOST_STEPS);
  struct tir *ir = s->ir;
  tir_var var = tir_new_var(ir, TIR_VAR_LET, tir_name_of(ir, "step"), tir_type_of(ir, value), TIR_NONE, TIR_NONE);
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

tir_expr lower_by_steps(struct tir *ir, const struct lower_function *list, const char *name, tir_expr x) {
  tir_type type = tir_type_of(ir, x);
  assert(tir_type_is_float(type) && tir_type_bits(type) >= 32);
  struct lower_steps s = {ir, type, TIR_TYPE(TIR_INT, tir_type_bits(type), tir_type_lanes(type)), {0}, {0}, 0};
  while (list->name && strcmp(list->name, name) != 0) list++;
  if (!list->name) return TIR_NONE;
  tir_expr made = list->make(&s, step_of(&s, x));
  while (s.count-- > 0) made = tir_let(ir, s.vars[s.count], s.values[s.count], made);
  return made;
}
