/* Operators on expressions as TVM's reader applies them: operands are cast to a common type, operators of constants are
 * folded, and so are the neutral elements (x + 0, x * 1, x // 1). What must stay unfolded is written T.Add(x, 0). */
#include "reader.h"
#include "tir/arith/bounds.h"
#include "tir/arith/linear.h"

#include <math.h>
#include <string.h>

/* ---- Constants ---- */

static bool is_real_imm(const struct tir *ir, tir_expr e) { return tir_at(ir, e)->kind == TIR_FLOAT_IMM; }

static int64_t wrap(tir_type type, int64_t value) {
  int bits = tir_type_bits(type);
  if (bits >= 64 || bits == 0) return value;
  uint64_t kept = (uint64_t)value & ((1ull << bits) - 1);
  if (tir_type_code(type) != TIR_INT) return (int64_t)kept;
  uint64_t sign = 1ull << (bits - 1);
  return (int64_t)((kept ^ sign) - sign);
}

static bool has_number(const struct tir *ir, tir_expr e) {
  tir_type t = tir_type_of(ir, e);
  return tir_type_is_int(t) || tir_type_is_float(t) || tir_type_code(t) == TIR_BOOL;
}

static bool broadcast(struct tir_reader *r, uint32_t token, int lanes, tir_expr *e) {
  *e = tir_unary(r->ir, TIR_BROADCAST, tir_type_with_lanes(tir_type_of(r->ir, *e), lanes), *e);
  return tir_reader_note(r, token, *e);
}

bool tir_reader_cast(struct tir_reader *r, uint32_t token, tir_type type, tir_expr e, tir_expr *out) {
  assert(e && e < r->ir->exprs.count && out);
  struct tir *ir = r->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->type == type) return *out = e, true;
  char from[24], to[24];
  if (!has_number(ir, e) || tir_type_code(type) == TIR_HANDLE || tir_type_code(type) == TIR_VOID ||
      tir_type_code(type) == TIR_STRING)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "%s cannot be cast to %s", tir_type_text(n->type, from),
                           tir_type_text(type, to));
  int lanes = tir_type_lanes(type);
  if (n->kind == TIR_INT_IMM || n->kind == TIR_FLOAT_IMM)
    return tir_reader_constant(r, token, type, n->kind == TIR_FLOAT_IMM ? n->real : 0,
                               n->kind == TIR_INT_IMM ? n->imm : 0, n->kind == TIR_FLOAT_IMM, out);
  if (tir_type_lanes(n->type) == 1 && lanes > 1)
    return tir_reader_cast(r, token, tir_type_with_lanes(type, 1), e, &e) && broadcast(r, token, lanes, &e) &&
           (*out = e, true);
  if (tir_type_lanes(n->type) != lanes)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "%s cannot be cast to %s", tir_type_text(n->type, from),
                           tir_type_text(type, to));
  if (n->kind == TIR_BROADCAST)
    return tir_reader_cast(r, token, tir_type_with_lanes(type, 1), n->a, &e) && broadcast(r, token, lanes, &e) &&
           (*out = e, true);
  if (n->kind == TIR_RAMP && tir_type_is_int(type)) {
    tir_expr base = n->a, stride = n->b;
    tir_type scalar = tir_type_with_lanes(type, 1);
    if (!tir_reader_cast(r, token, scalar, base, &base) || !tir_reader_cast(r, token, scalar, stride, &stride))
      return false;
    *out = tir_ramp(ir, base, stride, lanes);
    return tir_reader_note(r, token, *out);
  }
  *out = tir_unary(ir, TIR_CAST, type, e);
  return tir_reader_note(r, token, *out);
}

/* ---- Common types ---- */

/* Which of two types of the same lanes both operands take; TIR_T_VOID: none. */
static tir_type common_type(tir_type a, tir_type b) {
  assert(tir_type_lanes(a) == tir_type_lanes(b));
  enum tir_code ca = tir_type_code(a), cb = tir_type_code(b);
  bool fa = ca == TIR_FLOAT, fb = cb == TIR_FLOAT;
  if (fa && fb) return tir_type_bits(a) < tir_type_bits(b) ? b : a;
  if (fb) return b;
  if (fa) return a;
  if (cb == TIR_BFLOAT) return b;
  if (ca == TIR_BFLOAT) return a;
  if (tir_type_is_byte(a) || tir_type_is_byte(b))
    return tir_type_is_float(a) && tir_type_is_float(b) ? TIR_T_VOID : tir_type_is_float(a) ? a : b;
  if (ca == TIR_BOOL && tir_type_is_int(b)) return b;
  if (cb == TIR_BOOL && tir_type_is_int(a)) return a;
  if (!tir_type_is_int(a) || !tir_type_is_int(b)) return TIR_T_VOID;
  if (tir_type_bits(a) != tir_type_bits(b)) return tir_type_bits(a) < tir_type_bits(b) ? b : a;
  return ca == TIR_UINT ? a : b; /* of the same width: unsigned */
}

bool tir_reader_match(struct tir_reader *r, uint32_t token, tir_expr *a, tir_expr *b) {
  assert(*a && *b);
  struct tir *ir = r->ir;
  tir_type ta = tir_type_of(ir, *a), tb = tir_type_of(ir, *b);
  if (ta == tb) return true;
  char x[24], y[24];
  if (!has_number(ir, *a) || !has_number(ir, *b))
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "%s and %s do not go together", tir_type_text(ta, x),
                           tir_type_text(tb, y));
  if (tir_type_lanes(ta) == 1 && tir_type_lanes(tb) > 1 && !broadcast(r, token, tir_type_lanes(tb), a)) return false;
  if (tir_type_lanes(tb) == 1 && tir_type_lanes(ta) > 1 && !broadcast(r, token, tir_type_lanes(ta), b)) return false;
  ta = tir_type_of(ir, *a);
  tb = tir_type_of(ir, *b);
  if (ta == tb) return true;
  tir_type common = tir_type_lanes(ta) == tir_type_lanes(tb) ? common_type(ta, tb) : TIR_T_VOID;
  if (common == TIR_T_VOID)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "%s and %s do not go together", tir_type_text(ta, x),
                           tir_type_text(tb, y));
  return tir_reader_cast(r, token, common, *a, a) && tir_reader_cast(r, token, common, *b, b);
}

/* ---- Folding ---- */

/* 1: folded into *out; 0: not of constants; -1: division by zero, a result out of range. */
static int fold_ints(enum tir_kind kind, tir_type type, int64_t a, int64_t b, int64_t *out) {
  bool division = kind == TIR_DIV || kind == TIR_MOD || kind == TIR_FLOORDIV || kind == TIR_FLOORMOD;
  if (division && (b == 0 || (a == INT64_MIN && b == -1))) return -1;
  switch (kind) {
  case TIR_ADD: *out = (int64_t)((uint64_t)a + (uint64_t)b); break;
  case TIR_SUB: *out = (int64_t)((uint64_t)a - (uint64_t)b); break;
  case TIR_MUL: *out = (int64_t)((uint64_t)a * (uint64_t)b); break;
  case TIR_DIV: *out = a / b; break;
  case TIR_MOD: *out = a % b; break;
  case TIR_FLOORDIV: *out = tir_floor_div(a, b); break;
  case TIR_FLOORMOD: *out = tir_floor_mod(a, b); break;
  case TIR_MIN: *out = a < b ? a : b; return 1;
  case TIR_MAX: *out = a > b ? a : b; return 1;
  case TIR_EQ: *out = a == b; return 1;
  case TIR_NE: *out = a != b; return 1;
  case TIR_LT: *out = a < b; return 1;
  case TIR_LE: *out = a <= b; return 1;
  case TIR_GT: *out = a > b; return 1;
  case TIR_GE: *out = a >= b; return 1;
  case TIR_AND: *out = a && b; return 1;
  case TIR_OR: *out = a || b; return 1;
  default: return 0;
  }
  *out = wrap(type, *out);
  return 1;
}

/* Floats of 32 and 64 bits are folded, rounded to their type; comparisons and extrema of all. */
static int fold_reals(enum tir_kind kind, int bits, double a, double b, double *out, bool *truth) {
  bool narrow = bits == 32;
  float fa = (float)a, fb = (float)b;
  switch (kind) {
  case TIR_MIN: return *out = b < a || a != a ? b : a, 1; /* NaN is left out */
  case TIR_MAX: return *out = a < b || a != a ? b : a, 1;
  case TIR_EQ: return *truth = a == b, 2;
  case TIR_NE: return *truth = a != b, 2;
  case TIR_LT: return *truth = a < b, 2;
  case TIR_LE: return *truth = a <= b, 2;
  case TIR_GT: return *truth = a > b, 2;
  case TIR_GE: return *truth = a >= b, 2;
  default: break;
  }
  if (bits != 32 && bits != 64) return 0;
  if (kind == TIR_DIV && b == 0) return -1;
  switch (kind) {
  case TIR_ADD: *out = narrow ? (double)(fa + fb) : a + b; return 1;
  case TIR_SUB: *out = narrow ? (double)(fa - fb) : a - b; return 1;
  case TIR_MUL: *out = narrow ? (double)(fa * fb) : a * b; return 1;
  case TIR_DIV: *out = narrow ? (double)(fa / fb) : a / b; return 1;
  default: return 0;
  }
}

/* A zero of that sign. */
static bool is_zero(const struct tir *ir, tir_expr e, bool negative) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_FLOAT_IMM && n->real == 0 && signbit(n->real) == negative;
}

/* Of floats, only what gives each value as it is: x + 0 is not -0 where x is, 0 * x and 0 / x are NaN for some. */
static tir_expr fold_neutral_real(const struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  switch (kind) {
  case TIR_ADD: return is_zero(ir, a, true) ? b : is_zero(ir, b, true) ? a : TIR_NONE;
  case TIR_SUB: return is_zero(ir, b, false) ? a : TIR_NONE;
  case TIR_MUL: return tir_is_number(ir, a, 1) ? b : tir_is_number(ir, b, 1) ? a : TIR_NONE;
  case TIR_DIV: return tir_is_number(ir, b, 1) ? a : TIR_NONE;
  case TIR_MIN:
  case TIR_MAX: return a == b ? a : TIR_NONE;
  default: return TIR_NONE;
  }
}

/* An operator with one neutral or absorbing constant; TIR_NONE: it stays. */
static tir_expr fold_neutral(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  if (tir_type_is_float(tir_type_of(ir, a))) return fold_neutral_real(ir, kind, a, b);
  switch (kind) {
  case TIR_ADD: return tir_is_number(ir, a, 0) ? b : tir_is_number(ir, b, 0) ? a : TIR_NONE;
  case TIR_SUB: return tir_is_number(ir, b, 0) ? a : TIR_NONE;
  case TIR_MUL:
    if (tir_is_number(ir, a, 1) || tir_is_number(ir, b, 0)) return b;
    return tir_is_number(ir, b, 1) || tir_is_number(ir, a, 0) ? a : TIR_NONE;
  case TIR_DIV:
  case TIR_FLOORDIV: return tir_is_number(ir, a, 0) || tir_is_number(ir, b, 1) ? a : TIR_NONE;
  case TIR_MOD:
  case TIR_FLOORMOD:
    if (tir_type_lanes(tir_type_of(ir, a)) > 1 || tir_type_bits(tir_type_of(ir, a)) < 32) return TIR_NONE;
    if (tir_is_number(ir, a, 0)) return a;
    return tir_is_number(ir, b, 1) ? tir_int(ir, tir_type_of(ir, a), 0) : TIR_NONE;
  case TIR_MIN:
  case TIR_MAX: return a == b ? a : TIR_NONE;
  case TIR_AND:
    if (tir_is_number(ir, a, 0) || tir_is_number(ir, b, 1)) return a;
    return tir_is_number(ir, a, 1) || tir_is_number(ir, b, 0) ? b : TIR_NONE;
  case TIR_OR:
    if (tir_is_number(ir, a, 1) || tir_is_number(ir, b, 0)) return a;
    return tir_is_number(ir, a, 0) || tir_is_number(ir, b, 1) ? b : TIR_NONE;
  default: return TIR_NONE;
  }
}

static bool check_operands(struct tir_reader *r, uint32_t token, enum tir_kind kind, tir_expr a, tir_expr b) {
  tir_type ta = tir_type_of(r->ir, a), tb = tir_type_of(r->ir, b);
  char x[24], y[24];
  if ((kind == TIR_AND || kind == TIR_OR) && (tir_type_code(ta) != TIR_BOOL || tir_type_code(tb) != TIR_BOOL))
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected conditions on both sides, found %s and %s",
                           tir_type_text(ta, x), tir_type_text(tb, y));
  bool truths = tir_type_code(ta) == TIR_BOOL && tir_type_code(tb) == TIR_BOOL;
  if (truths && tir_is_arithmetic(kind)) return tir_reader_refuse_truths(r, token, a);
  if ((kind == TIR_FLOORDIV || kind == TIR_FLOORMOD || kind == TIR_MOD) &&
      (!tir_type_is_int(ta) || !tir_type_is_int(tb)))
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected integers on both sides, found %s and %s",
                           tir_type_text(ta, x), tir_type_text(tb, y));
  return true;
}

bool tir_reader_refuse_truths(struct tir_reader *r, uint32_t token, tir_expr e) {
  if (tir_type_code(tir_type_of(r->ir, e)) != TIR_BOOL) return true;
  return tir_reader_fail(
      r, token, MS_TEXT_TYPE,
      "expected numbers, found conditions (bool), which have no arithmetic: join them by and, or, not, "
      "choose by T.Select(condition, a, b), or count them by T.Cast(\"int32\", condition)");
}

bool tir_reader_binary(struct tir_reader *r, uint32_t token, enum tir_kind kind, tir_expr a, tir_expr b,
                       tir_expr *out) {
  struct tir *ir = r->ir;
  if (!check_operands(r, token, kind, a, b) || !tir_reader_match(r, token, &a, &b)) return false;
  if (tir_is_arithmetic(kind) && !tir_reader_refuse_truths(r, token, a)) return false;
  if (!has_number(ir, a))
    return kind == TIR_EQ || kind == TIR_NE ? (*out = tir_binary(ir, kind, a, b), tir_reader_note(r, token, *out))
                                            : tir_reader_fail(r, token, MS_TEXT_TYPE, "expected numbers on both sides");
  const struct tir_expr_node *na = tir_at(ir, a), *nb = tir_at(ir, b);
  tir_type type = na->type;
  int folded = 0;
  int64_t integer = 0;
  double real = 0;
  bool truth = false;
  if (na->kind == TIR_INT_IMM && nb->kind == TIR_INT_IMM)
    folded = fold_ints(kind, type, na->imm, nb->imm, &integer);
  else if (is_real_imm(ir, a) && is_real_imm(ir, b))
    folded = fold_reals(kind, tir_type_bits(type), na->real, nb->real, &real, &truth);
  bool division = kind == TIR_DIV || kind == TIR_MOD || kind == TIR_FLOORDIV || kind == TIR_FLOORMOD;
  if (folded < 0 || (division && tir_is_number(ir, b, 0)))
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "division by zero");
  if (folded == 2) integer = truth;
  bool compares = kind >= TIR_EQ && kind <= TIR_OR;
  if (folded && (compares || na->kind == TIR_INT_IMM))
    *out = tir_int(ir, compares ? TIR_T_BOOL : type, integer);
  else if (folded)
    *out = tir_float(ir, type, real);
  else if (!(*out = fold_neutral(ir, kind, a, b)))
    *out = tir_binary(ir, kind, a, b);
  return tir_reader_note(r, token, *out);
}

bool tir_reader_extent(struct tir_reader *r, uint32_t token, tir_expr begin, tir_expr end, tir_expr *out) {
  struct tir *ir = r->ir;
  const struct tir_expr_node *n = tir_at(ir, end);
  if (n->kind == TIR_ADD && n->a == begin)
    *out = n->b; /* begin + extent, as the printer writes it */
  else if (tir_is_const(ir, begin, 0))
    *out = end;
  else if (tir_is_index(ir, begin) && tir_is_index(ir, end))
    *out = tir_sub(ir, end, begin);
  else
    return tir_reader_binary(r, token, TIR_SUB, end, begin, out);
  return tir_reader_note(r, token, *out);
}
