/* Bounds of integer expressions, computed once when an expression is interned; ranges of types. */
#include "bounds.h"

#include <float.h>

struct tir_bounds tir_type_bounds(tir_type type) {
  int bits = tir_type_bits(type);
  switch (tir_type_code(type)) {
  case TIR_BOOL: return (struct tir_bounds){0, 1};
  case TIR_INT:
    if (bits < 64) return (struct tir_bounds){-((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1};
    break;
  case TIR_UINT:
    if (bits < 63) return (struct tir_bounds){0, ((int64_t)1 << bits) - 1};
    return (struct tir_bounds){0, TIR_POS_INF};
  default: break;
  }
  return (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF};
}

double tir_greatest_float(tir_type type) {
  MS_CHECK(tir_type_is_float(type));
  if (tir_type_code(type) == TIR_BFLOAT) return 0x1.FEp127;
  if (tir_type_is_byte(type)) return tir_type_code(type) == TIR_E4M3 ? 448.0 : 57344.0;
  switch (tir_type_bits(type)) {
  case 16: return 65504.0;
  case 32: return (double)FLT_MAX;
  default: return DBL_MAX;
  }
}

double tir_greatest_written(tir_type type) {
  return tir_type_code(type) == TIR_BFLOAT ? (double)FLT_MAX : tir_greatest_float(type);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static struct tir_bounds product(struct tir_bounds a, struct tir_bounds b) {
  if (b.lo == b.hi && !tir_is_inf(b.lo)) return tir_scale_bounds(b.lo, a);
  if (a.lo == a.hi && !tir_is_inf(a.lo)) return tir_scale_bounds(a.lo, b);
  int64_t p = tir_sat_mul(a.lo, b.lo), q = tir_sat_mul(a.lo, b.hi), r = tir_sat_mul(a.hi, b.lo),
          s = tir_sat_mul(a.hi, b.hi);
  return (struct tir_bounds){least(least(p, q), least(r, s)), most(most(p, q), most(r, s))};
}

static int64_t bound_div(int64_t a, int64_t b, bool floor) {
  if (tir_is_inf(b)) return tir_is_inf(a) ? a : floor && (a < 0) != (b < 0) && a != 0 ? -1 : 0;
  if (tir_is_inf(a)) return b > 0 ? a : tir_sat_neg(a);
  return floor ? tir_floor_div(a, b) : a / b;
}

/* Division by a range that holds zero says nothing; else its corners. */
static struct tir_bounds quotient(struct tir_bounds a, struct tir_bounds b, bool floor) {
  if (b.lo > b.hi) return (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF}; /* no value at all: contradictory facts */
  if (b.lo <= 0 && b.hi >= 0) {
    if (b.lo < 0) return (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF};
    if (b.hi == 0) return (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF};
    b.lo = 1; /* dividing by zero is no value at all */
  }
  int64_t p = bound_div(a.lo, b.lo, floor), r = bound_div(a.hi, b.lo, floor);
  if (b.lo == b.hi) return (struct tir_bounds){least(p, r), most(p, r)};
  int64_t q = bound_div(a.lo, b.hi, floor), s = bound_div(a.hi, b.hi, floor);
  return (struct tir_bounds){least(least(p, q), least(r, s)), most(most(p, q), most(r, s))};
}

static struct tir_bounds floor_remainder(struct tir_bounds a, struct tir_bounds b) {
  if (b.lo > b.hi) return (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF};
  if (b.lo < 0 || b.hi == 0) return (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF};
  if (b.lo == 0) b.lo = 1;
  if (b.lo == b.hi && !tir_is_inf(a.lo) && !tir_is_inf(a.hi) && tir_floor_div(a.lo, b.lo) == tir_floor_div(a.hi, b.lo))
    return (struct tir_bounds){tir_floor_mod(a.lo, b.lo), tir_floor_mod(a.hi, b.lo)};
  int64_t top = tir_sat_add(b.hi, -1);
  if (a.lo >= 0) {
    if (a.hi < b.lo) return a;
    top = least(top, a.hi);
  }
  return (struct tir_bounds){0, top};
}

static struct tir_bounds trunc_remainder(struct tir_bounds a, struct tir_bounds b) {
  if (a.lo >= 0 && b.lo > 0) return floor_remainder(a, b);
  int64_t largest = most(tir_sat_neg(b.lo), b.hi);
  int64_t top = tir_sat_add(largest, -1);
  return (struct tir_bounds){a.lo >= 0 ? 0 : tir_sat_neg(top), a.hi <= 0 ? 0 : top};
}

static struct tir_bounds truth(bool always, bool never) {
  return always ? (struct tir_bounds){1, 1} : never ? (struct tir_bounds){0, 0} : (struct tir_bounds){0, 1};
}

struct tir_bounds tir_binary_bounds(enum tir_kind kind, struct tir_bounds a, struct tir_bounds b) {
  MS_CHECK(kind >= TIR_ADD && kind <= TIR_OR);
  switch (kind) {
  case TIR_ADD: return tir_add_bounds(a, b);
  case TIR_SUB: return (struct tir_bounds){tir_sat_add(a.lo, tir_sat_neg(b.hi)), tir_sat_add(a.hi, tir_sat_neg(b.lo))};
  case TIR_MUL: return product(a, b);
  case TIR_DIV: return quotient(a, b, false);
  case TIR_FLOORDIV: return quotient(a, b, true);
  case TIR_MOD: return trunc_remainder(a, b);
  case TIR_FLOORMOD: return floor_remainder(a, b);
  case TIR_MIN: return (struct tir_bounds){least(a.lo, b.lo), least(a.hi, b.hi)};
  case TIR_MAX: return (struct tir_bounds){most(a.lo, b.lo), most(a.hi, b.hi)};
  case TIR_EQ:
    return truth(a.lo == a.hi && b.lo == b.hi && a.lo == b.lo && !tir_is_inf(a.lo), a.hi < b.lo || b.hi < a.lo);
  case TIR_NE:
    return truth(a.hi < b.lo || b.hi < a.lo, a.lo == a.hi && b.lo == b.hi && a.lo == b.lo && !tir_is_inf(a.lo));
  case TIR_LT: return truth(a.hi < b.lo, a.lo >= b.hi && !tir_is_inf(a.lo));
  case TIR_LE: return truth(a.hi <= b.lo && !tir_is_inf(a.hi), a.lo > b.hi);
  case TIR_GT: return truth(a.lo > b.hi, a.hi <= b.lo && !tir_is_inf(a.hi));
  case TIR_GE: return truth(a.lo >= b.hi && !tir_is_inf(a.lo), a.hi < b.lo);
  case TIR_AND: return truth(a.lo == 1 && b.lo == 1, a.hi == 0 || b.hi == 0);
  case TIR_OR: return truth(a.lo == 1 || b.lo == 1, a.hi == 0 && b.hi == 0);
  default: return (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF};
  }
}

struct tir_bounds tir_wrap_bounds(enum tir_kind kind, tir_type type, struct tir_bounds b) {
  assert(kind >= TIR_ADD && kind < TIR_MIN);
  struct tir_bounds fits = tir_type_bounds(type);
  bool leaves = b.lo < fits.lo || b.hi > fits.hi || b.lo > b.hi;
  if (tir_type_bits(type) == 64 && kind <= TIR_MUL) leaves = leaves || tir_is_inf(b.lo) || tir_is_inf(b.hi);
  return leaves ? fits : b;
}
