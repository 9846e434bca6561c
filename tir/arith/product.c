/* Products of expressions, and divisions by what is no constant.
 *
 * A product keeps its constant outside: (c*x) * (d*y) is c*d * (x*y). Division by a product takes out the terms that
 * hold all its factors: fd(b*q + r, b) = q + fd(r, b) and fm(b*q + r, b) = fm(r, b) for any b but zero. */
#include "linear.h"

enum { MOST_TERMS = 32 };

/* The one term of an expression that is a constant times an atom. */
static bool single_term(struct tir *ir, tir_expr e, struct tir_term *out) {
  struct tir_linear l = tir_linear_of(ir, e);
  if (l.count != 1 || l.constant != 0) return false;
  *out = ir->terms.at[l.first];
  return true;
}

static tir_expr plain_product(struct tir *ir, tir_expr a, tir_expr b) {
  return a < b ? tir_binary(ir, TIR_MUL, a, b) : tir_binary(ir, TIR_MUL, b, a);
}

tir_expr tir_multiply(struct tir *ir, tir_expr a, tir_expr b) {
  MS_CHECK(tir_type_of(ir, a) == tir_type_of(ir, b));
  struct tir_term x, y;
  int64_t factor;
  if (!single_term(ir, a, &x) || !single_term(ir, b, &y) || (x.coefficient == 1 && y.coefficient == 1) ||
      __builtin_mul_overflow(x.coefficient, y.coefficient, &factor))
    return plain_product(ir, a, b);
  struct tir_term product = {factor, plain_product(ir, x.atom, y.atom)};
  return tir_from_terms(ir, tir_type_of(ir, a), 0, &product, 1);
}

/* atom / factor where the atom is a product that holds it; TIR_NONE: it does not. */
static tir_expr without_factor(struct tir *ir, tir_expr atom, tir_expr factor) {
  struct tir_expr_node n = *tir_at(ir, atom);
  if (atom == factor) return tir_int(ir, n.type, 1);
  if (n.kind != TIR_MUL || !tir_is_index(ir, atom)) return TIR_NONE;
  tir_expr a = without_factor(ir, n.a, factor);
  if (a) return tir_make(ir, TIR_MUL, a, n.b);
  tir_expr b = without_factor(ir, n.b, factor);
  return b ? tir_make(ir, TIR_MUL, n.a, b) : TIR_NONE;
}

static tir_expr without_factors(struct tir *ir, tir_expr atom, tir_expr factors) {
  struct tir_expr_node n = *tir_at(ir, factors);
  if (n.kind != TIR_MUL) return without_factor(ir, atom, factors);
  tir_expr rest = without_factors(ir, atom, n.a);
  return rest ? without_factors(ir, rest, n.b) : TIR_NONE;
}

/* 0 <= a < b */
static bool is_within(struct tir *ir, tir_expr a, tir_expr b) {
  struct tir_bounds d = tir_difference_bounds(ir, a, b);
  return tir_at(ir, a)->lo >= 0 && d.hi < 0 && d.hi != TIR_NEG_INF;
}

tir_expr tir_divide_by_product(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  MS_CHECK(kind == TIR_FLOORDIV || kind == TIR_FLOORMOD);
  tir_type type = tir_type_of(ir, a);
  bool remainder = kind == TIR_FLOORMOD;
  if (tir_is_const(ir, a, 0)) return a;
  if (is_within(ir, a, b)) return remainder ? a : tir_int(ir, type, 0);
  struct tir_term divisor, whole[MOST_TERMS], rest[MOST_TERMS];
  struct tir_linear l = tir_linear_of(ir, a);
  if (l.count > MOST_TERMS || tir_is_int(ir, b) || !single_term(ir, b, &divisor)) return TIR_NONE;
  uint32_t wholes = 0, rests = 0;
  for (uint32_t i = 0; i < l.count; i++) rest[i] = ir->terms.at[l.first + i];
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = rest[i];
    tir_expr quotient = t.coefficient % divisor.coefficient ? TIR_NONE : without_factors(ir, t.atom, divisor.atom);
    if (quotient)
      whole[wholes++] = (struct tir_term){t.coefficient / divisor.coefficient, quotient};
    else
      rest[rests++] = t;
  }
  if (!wholes) return TIR_NONE;
  tir_expr r = tir_from_terms(ir, type, l.constant, rest, rests);
  tir_expr divided = tir_is_const(ir, r, 0) ? r : tir_make(ir, kind, r, b);
  if (remainder) return divided;
  return tir_add(ir, tir_from_terms(ir, type, 0, whole, wholes), divided);
}
