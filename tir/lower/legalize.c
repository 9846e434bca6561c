/* Legalize: what machines have no operation for becomes what they have.
 *   division of the least integer by -1  wraps around, as the interpreter's does: machines trap, or leave it open
 *   floor division  truncated division, of a dividend that is moved above 0 where its bounds allow it, else corrected
 *   floats of 16 bits  are computed in float32 and rounded after each operation
 *   casts to floats of 16 bits  are of float32: of wider types, of one that rounds on as they would; casts of floats of
 *                  16 bits are to float32, which is cast on
 *   counts of bits are of their operand's type; bits and the order of booleans are conditions
 *   sigmoid, and functions by a second name  are those that machines or C's library have; ldexp by an int32
 *   exp and its like of less than 64 bits  are float64's, rounded, or steps of float32, where the options say so
 *   maximum and minimum of floats  take +0 for more than -0, where the options say so
 * Requires: nothing. Gives: no floor division; no arithmetic, comparison or function of 16-bit floats, which only
 * loads, stores, casts from and to float32, choices and lets have. Keeps: results. */
#include "lower.h"
#include "tir/analysis/loads.h"

#include <assert.h>
#include <string.h>

static tir_expr call(struct tir *ir, const char *name, tir_type type, const tir_expr *args, uint32_t count) {
  return tir_call(ir, type, tir_symbol_of(ir, name), args, count);
}

/* ---- Floor division ---- */

/* a / b and a % b by truncation, in which the dividend is moved up by a multiple of the divisor until it cannot be
 * negative. False: the bounds known of it do not allow that. */
static bool divide_moved(struct tir *ir, bool remainder, int64_t least, int64_t most, tir_expr a, tir_expr b,
                         tir_expr *out) {
  tir_type type = tir_type_of(ir, a);
  int64_t divisor = tir_is_int(ir, b) ? tir_at(ir, b)->imm : 0, top = INT64_MAX >> (64 - tir_type_bits(type)), up, sum;
  if (tir_type_lanes(type) > 1 || divisor <= 0 || least == INT64_MIN) return false;
  int64_t times = -(least / divisor - (least % divisor < 0));
  if (__builtin_mul_overflow(times, divisor, &up) || __builtin_add_overflow(most, up, &sum) || sum > top) return false;
  tir_expr moved = tir_add(ir, a, tir_int(ir, type, up));
  *out = tir_binary(ir, remainder ? TIR_MOD : TIR_DIV, moved, b);
  if (!remainder) *out = tir_sub(ir, *out, tir_int(ir, type, times));
  return true;
}

/* The truncated remainder has the dividend's sign: where that is not the divisor's, floor division goes one further. */
static tir_expr divide_corrected(struct tir *ir, bool remainder, tir_expr a, tir_expr b) {
  struct lower_named dividend = lower_name(ir, a), divisor = lower_name(ir, b);
  struct lower_named rest = lower_name(ir, tir_binary(ir, TIR_MOD, dividend.use, divisor.use));
  tir_type type = tir_type_of(ir, rest.use);
  bool positive = tir_is_int(ir, b) && tir_at(ir, b)->imm > 0;
  tir_expr zero = lower_constant(ir, type, 0), signs[] = {rest.use, divisor.use};
  tir_expr sign = positive ? rest.use : call(ir, "bitwise_xor", type, signs, 2);
  tir_expr further = tir_binary(ir, TIR_LT, sign, zero), made;
  if (!positive) further = tir_binary(ir, TIR_AND, tir_binary(ir, TIR_NE, rest.use, zero), further);
  if (remainder) {
    made = tir_select(ir, further, tir_binary(ir, TIR_ADD, rest.use, divisor.use), rest.use);
  } else {
    struct lower_named quotient = lower_name(ir, tir_binary(ir, TIR_DIV, dividend.use, divisor.use));
    made = tir_select(ir, further, tir_binary(ir, TIR_SUB, quotient.use, lower_constant(ir, type, 1)), quotient.use);
    made = lower_with_named(ir, quotient, made);
  }
  return lower_with_named(ir, dividend, lower_with_named(ir, divisor, lower_with_named(ir, rest, made)));
}

/* The bounds of the operands stand in the nodes as they were. */
static tir_expr divide_in_bounds(struct tir *ir, const struct tir_expr_node *before, tir_expr a, tir_expr b) {
  bool remainder = before->kind == TIR_FLOORMOD || before->kind == TIR_MOD;
  bool floors = before->kind == TIR_FLOORDIV || before->kind == TIR_FLOORMOD;
  const struct tir_expr_node *dividend = tir_at(ir, before->a), *divisor = tir_at(ir, before->b);
  int64_t least = dividend->lo, most = dividend->hi;
  bool is_signed = tir_type_code(before->type) == TIR_INT;
  tir_expr made;
  if (!floors || !is_signed || (least >= 0 && divisor->lo > 0))
    return tir_binary(ir, remainder ? TIR_MOD : TIR_DIV, a, b);
  return divide_moved(ir, remainder, least, most, a, b, &made) ? made : divide_corrected(ir, remainder, a, b);
}

/* The least integer by -1 has no quotient of its type. */
static bool may_overflow(const struct tir *ir, const struct tir_expr_node *n) {
  assert(n->kind >= TIR_DIV && n->kind <= TIR_FLOORMOD);
  if (tir_type_code(n->type) != TIR_INT) return false;
  const struct tir_expr_node *dividend = tir_at(ir, n->a), *divisor = tir_at(ir, n->b);
  return divisor->lo <= -1 && divisor->hi >= -1 && dividend->lo <= tir_type_bounds(n->type).lo;
}

/* By -1 a quotient is the dividend's opposite, which wraps around, and a remainder is 0, as by 1. */
static tir_expr integer_division(struct tir *ir, const struct tir_expr_node *before, tir_expr a, tir_expr b) {
  assert(tir_type_of(ir, a) == before->type && tir_type_of(ir, b) == before->type);
  if (!may_overflow(ir, before)) return divide_in_bounds(ir, before, a, b);
  tir_type type = before->type;
  struct lower_named dividend = lower_name(ir, a), divisor = lower_name(ir, b);
  tir_expr opposite = tir_binary(ir, TIR_EQ, divisor.use, lower_constant(ir, type, -1));
  struct lower_named by = lower_name(ir, tir_select(ir, opposite, lower_constant(ir, type, 1), divisor.use));
  tir_expr made = divide_in_bounds(ir, before, dividend.use, by.use);
  if (before->kind == TIR_DIV || before->kind == TIR_FLOORDIV)
    made = tir_select(ir, opposite, tir_binary(ir, TIR_SUB, lower_constant(ir, type, 0), dividend.use), made);
  return lower_with_named(ir, dividend, lower_with_named(ir, divisor, lower_with_named(ir, by, made)));
}

static tir_expr floor_quotient(struct tir *ir, tir_expr a, tir_expr b) {
  tir_expr quotient = tir_binary(ir, TIR_DIV, a, b);
  return call(ir, "floor", tir_type_of(ir, quotient), &quotient, 1);
}

static tir_expr real_floor_division(struct tir *ir, bool remainder, tir_expr a, tir_expr b) {
  if (!remainder) return floor_quotient(ir, a, b);
  struct lower_named dividend = lower_name(ir, a), divisor = lower_name(ir, b);
  tir_expr whole = tir_binary(ir, TIR_MUL, floor_quotient(ir, dividend.use, divisor.use), divisor.use);
  tir_expr made = tir_binary(ir, TIR_SUB, dividend.use, whole);
  return lower_with_named(ir, dividend, lower_with_named(ir, divisor, made));
}

/* ---- Casts to and from floats of 16 bits ----
 *
 * Rounding to a wider type first may give a tie that there was none of. Rounding to odd does not: cut off towards zero,
 * with the last bit set where anything was lost. With two bits more than the result has, what follows rounds as if it
 * were the first. Source: Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, IEEE TC 57(4), 2008. */

static tir_expr cast_to(struct tir *ir, tir_type type, tir_expr e) {
  tir_type wide = tir_type_with_lanes(type, tir_type_lanes(tir_type_of(ir, e)));
  return tir_type_of(ir, e) == wide ? e : tir_unary(ir, TIR_CAST, wide, e);
}

static tir_expr one_where(struct tir *ir, tir_expr condition, tir_type type, double one) {
  assert(tir_type_code(tir_type_of(ir, condition)) == TIR_BOOL);
  return tir_select(ir, condition, lower_constant(ir, type, one), lower_constant(ir, type, 0));
}

/* float64 as float32, rounded to odd: the nearest, less a last place where it is beyond. */
static tir_expr odd_float32(struct tir *ir, tir_expr value) {
  tir_type bits = TIR_TYPE(TIR_INT, 32, tir_type_lanes(tir_type_of(ir, value)));
  struct lower_named x = lower_name(ir, value), nearest = lower_name(ir, cast_to(ir, TIR_T_F32, x.use));
  struct lower_named wide = lower_name(ir, cast_to(ir, TIR_TYPE(TIR_FLOAT, 64, 1), nearest.use));
  tir_type type = tir_type_of(ir, wide.use);
  tir_expr sizes[] = {call(ir, "fabs", type, &wide.use, 1), call(ir, "fabs", type, &x.use, 1)};
  tir_expr beyond = one_where(ir, tir_binary(ir, TIR_GT, sizes[0], sizes[1]), bits, 1);
  tir_expr parts[] = {tir_binary(ir, TIR_SUB, call(ir, "reinterpret", bits, &nearest.use, 1), beyond),
                      one_where(ir, tir_binary(ir, TIR_NE, wide.use, x.use), bits, 1)};
  tir_expr both = call(ir, "bitwise_or", bits, parts, 2);
  tir_expr made = call(ir, "reinterpret", tir_type_of(ir, nearest.use), &both, 1);
  return lower_with_named(ir, x, lower_with_named(ir, nearest, lower_with_named(ir, wide, made)));
}

/* An integer of 32 or 64 bits whose float32 or float64 rounds on as it would itself: where it has more bits than that
 * holds, the low ones are one bit above the last that is held. */
static tir_expr odd_integer(struct tir *ir, tir_expr value, bool is_signed) {
  tir_type type = tir_type_of(ir, value);
  bool wide = tir_type_bits(type) == 64;
  double held = wide ? 0x1p53 : 0x1p24;
  int64_t unit = wide ? 1 << 12 : 1 << 9;
  struct lower_named x = lower_name(ir, value);
  tir_expr operands[] = {x.use, lower_constant(ir, type, (double)(unit - 1))};
  struct lower_named low = lower_name(ir, call(ir, "bitwise_and", type, operands, 2));
  tir_expr lost = tir_binary(ir, TIR_NE, low.use, lower_constant(ir, type, 0));
  tir_expr high = tir_binary(ir, TIR_SUB, x.use, low.use);
  tir_expr odd = tir_binary(ir, TIR_ADD, high, one_where(ir, lost, type, (double)(unit / 2)));
  tir_expr made = tir_select(ir, tir_binary(ir, TIR_GT, x.use, lower_constant(ir, type, held)), odd, x.use);
  if (is_signed) made = tir_select(ir, tir_binary(ir, TIR_LT, x.use, lower_constant(ir, type, -held)), odd, made);
  return lower_with_named(ir, x, lower_with_named(ir, low, made));
}

/* least and most: the bounds of an integer. */
static tir_expr float32_of(struct tir *ir, tir_expr value, int64_t least, int64_t most) {
  enum { EXACT = 1 << 24 };
  tir_type type = tir_type_of(ir, value);
  int bits = tir_type_bits(type);
  if (tir_type_is_float(type)) return bits == 64 ? odd_float32(ir, value) : cast_to(ir, TIR_T_F32, value);
  if (bits < 32 || (least >= -EXACT && most <= EXACT)) return cast_to(ir, TIR_T_F32, value);
  tir_expr odd = odd_integer(ir, value, tir_type_code(type) == TIR_INT);
  return bits == 32 ? cast_to(ir, TIR_T_F32, odd) : odd_float32(ir, cast_to(ir, TIR_TYPE(TIR_FLOAT, 64, 1), odd));
}

static tir_expr cast(struct tir *ir, const struct tir_expr_node *before, tir_expr made) {
  struct tir_expr_node n = *tir_at(ir, made);
  tir_type from = tir_type_of(ir, n.a);
  int64_t least = tir_at(ir, before->a)->lo, most = tir_at(ir, before->a)->hi;
  bool number = tir_type_is_float(from) || tir_type_is_int(from) || tir_type_code(from) == TIR_BOOL;
  if (!number || n.type == from || (!tir_type_is_short(from) && !tir_type_is_short(n.type))) return made;
  return tir_unary(ir, TIR_CAST, n.type, float32_of(ir, n.a, least, most));
}

/* ---- Arithmetic ---- */

static tir_expr divide(struct tir *ir, const struct tir_expr_node *before, tir_expr a, tir_expr b) {
  if (tir_type_is_float(before->type)) return real_floor_division(ir, before->kind == TIR_FLOORMOD, a, b);
  return integer_division(ir, before, a, b);
}

static tir_expr to_float32(struct tir *ir, tir_expr e) {
  tir_type type = tir_type_of(ir, e);
  return tir_type_is_short(type) ? tir_unary(ir, TIR_CAST, TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(type)), e) : e;
}

static bool orders_booleans(const struct tir *ir, const struct tir_expr_node *n) {
  return n->kind >= TIR_LT && n->kind <= TIR_GE && tir_type_code(tir_type_of(ir, n->a)) == TIR_BOOL;
}

static bool is_extreme(const struct tir_expr_node *n) {
  return (n->kind == TIR_MAX || n->kind == TIR_MIN) && tir_type_is_float(n->type);
}

/* A constant that is not 0: what equals it has the same bits. */
static bool is_other_than_zero(const struct tir *ir, tir_expr e) {
  double value;
  return lower_is_constant(ir, e, &value) && value != 0;
}

/* The greater or the lesser, whichever stands first: of what is equal, the bits that both have, or that one has. So +0
 * is more than -0, as IEEE 754-2019 has it. */
static tir_expr extreme_by_sign(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  if (is_other_than_zero(ir, a) || is_other_than_zero(ir, b)) return tir_binary(ir, kind, a, b);
  struct lower_named x = lower_name(ir, a), y = lower_name(ir, b);
  tir_type type = tir_type_of(ir, x.use), bits = TIR_TYPE(TIR_INT, tir_type_bits(type), tir_type_lanes(type));
  tir_expr parts[] = {call(ir, "reinterpret", bits, &x.use, 1), call(ir, "reinterpret", bits, &y.use, 1)};
  tir_expr both = call(ir, kind == TIR_MAX ? "bitwise_and" : "bitwise_or", bits, parts, 2);
  tir_expr equal = tir_binary(ir, TIR_EQ, x.use, y.use);
  tir_expr made = tir_select(ir, equal, call(ir, "reinterpret", type, &both, 1), tir_binary(ir, kind, x.use, y.use));
  return lower_with_named(ir, x, lower_with_named(ir, y, made));
}

/* False is less than true, whichever bits of a mask say so. */
static tir_expr order_of_booleans(struct tir *ir, const struct tir_expr_node *n) {
  assert(orders_booleans(ir, n));
  bool less = n->kind == TIR_LT || n->kind == TIR_LE, joins = n->kind == TIR_LT || n->kind == TIR_GT;
  tir_expr a = less ? tir_not(ir, n->a) : n->a, b = less ? n->b : tir_not(ir, n->b);
  return tir_binary(ir, joins ? TIR_AND : TIR_OR, a, b);
}

static tir_expr binary(struct tir *ir, const struct tir_expr_node *before, tir_expr made, bool by_sign) {
  struct tir_expr_node n = *tir_at(ir, made);
  bool rounds = tir_type_is_short(tir_type_of(ir, n.a)), floors = n.kind == TIR_FLOORDIV || n.kind == TIR_FLOORMOD;
  bool truncates = (n.kind == TIR_DIV || n.kind == TIR_MOD) && tir_type_is_int(n.type);
  if (truncates) return may_overflow(ir, before) ? integer_division(ir, before, n.a, n.b) : made;
  by_sign = by_sign && is_extreme(&n);
  if (orders_booleans(ir, &n)) return order_of_booleans(ir, &n);
  if (!rounds && !floors && !by_sign) return made;
  tir_expr a = to_float32(ir, n.a), b = to_float32(ir, n.b);
  if (by_sign)
    made = extreme_by_sign(ir, (enum tir_kind)n.kind, a, b);
  else
    made = floors ? divide(ir, before, a, b) : tir_binary(ir, (enum tir_kind)n.kind, a, b);
  return tir_type_is_short(n.type) ? tir_unary(ir, TIR_CAST, n.type, made) : made;
}

/* ---- Functions ---- */

/* 1 / (1 + e^-x); where that is e^x but for less than half of its last place, e^x, which is not 0 before the result
 * is. */
static tir_expr sigmoid(struct tir *ir, tir_type type, tir_expr value) {
  double least = tir_type_bits(type) == 64 ? -40 : -20;
  struct lower_named x = lower_name(ir, value);
  tir_expr one = lower_constant(ir, type, 1), below = tir_binary(ir, TIR_LT, x.use, lower_constant(ir, type, least));
  tir_expr taken = tir_select(ir, below, x.use, tir_binary(ir, TIR_SUB, lower_constant(ir, type, 0), x.use));
  struct lower_named power = lower_name(ir, call(ir, "exp", type, &taken, 1));
  tir_expr whole = tir_binary(ir, TIR_DIV, one, tir_binary(ir, TIR_ADD, one, power.use));
  return lower_with_named(ir, x, lower_with_named(ir, power, tir_select(ir, below, power.use, whole)));
}

static const char *first_name(const char *name) {
  enum tir_function f = tir_function_named(name);
  return f < TIR_FUNCTIONS ? tir_functions[f].name : name;
}

static tir_expr function(struct tir *ir, const char *name, tir_type type, const tir_expr *args, uint32_t count) {
  if (count == 1 && !strcmp(name, "sigmoid")) return sigmoid(ir, type, args[0]);
  return call(ir, first_name(name), type, args, count);
}

/* The exponent of ldexp as an int32: a float's whole part, and of integers that have more what gives the same: 0,
 * infinity or the number itself. */
static tir_expr exponent(struct tir *ir, tir_expr e) {
  enum { BEYOND = 5000 };
  tir_type type = tir_type_of(ir, e);
  bool is_signed = tir_type_code(type) == TIR_INT, is_wide = tir_type_bits(type) > (is_signed ? 32 : 31);
  if (tir_type_is_int(type) && is_wide) {
    e = tir_binary(ir, TIR_MIN, e, lower_constant(ir, type, BEYOND));
    if (is_signed) e = tir_binary(ir, TIR_MAX, e, lower_constant(ir, type, -BEYOND));
  }
  return tir_cast(ir, TIR_TYPE(TIR_INT, 32, tir_type_lanes(type)), e);
}

/* Of float32; TIR_NONE: it has no steps. */
static tir_expr by_steps(struct tir *ir, const char *name, const tir_expr *args, uint32_t count) {
  tir_expr made = count == 1 ? lower_in_single(ir, name, args[0]) : TIR_NONE;
  return made || count == 0 ? made : lower_through_double(ir, name, args, count);
}

static bool is_rounded(const char *name) {
  enum tir_function f = tir_function_named(name);
  return f < TIR_FUNCTIONS && tir_functions[f].rounds;
}

/* Of less than 64 bits, by steps of float64: where results are those of the interpreter; and on a CPU without fast
 * math, what errs by more than a unit in the last place elsewhere: made of others it adds their roundings, of the C
 * library it is slower, too. */
static bool widens(const struct tir_lower_options *options, const char *name) {
  if (options->in_double) return is_rounded(name);
  bool errs = !strcmp(name, "sigmoid") || !strcmp(name, "tanh");
  return errs && options->device == TIR_CPU && !options->free_order;
}

/* These take and give any value as it is, or are an instruction of the machine. */
static bool moves_values(const struct tir *ir, const struct tir_expr_node *n) {
  const char *name = tir_text(ir, n->ref);
  return !tir_is_pure_call(ir, n) || tir_is_choice(ir, n) || !strcmp(name, "likely") || !strcmp(name, "reinterpret") ||
         !strcmp(name, TIR_DOT_LANES) || !strcmp(name, TIR_SLIDE_LANES);
}

enum { MOST_ARGUMENTS = 4 };

static tir_expr in_double(struct tir *ir, const char *name, tir_type type, tir_expr *args, uint32_t count) {
  tir_type wide = TIR_TYPE(TIR_FLOAT, 64, tir_type_lanes(type));
  for (uint32_t i = 0; i < count; i++) args[i] = tir_unary(ir, TIR_CAST, wide, args[i]);
  tir_expr result = count == 1 ? lower_in_double(ir, name, args[0]) : TIR_NONE;
  if (!result) result = function(ir, name, wide, args, count);
  return tir_unary(ir, TIR_CAST, type, tir_type_is_short(type) ? odd_float32(ir, result) : result);
}

/* A boolean is one bit. TIR_NONE: another call. */
static tir_expr bits_of_booleans(struct tir *ir, const char *name, const tir_expr *args, uint32_t count) {
  if (count == 1 && !strcmp(name, "popcount")) return args[0];
  if (count == 1 && !strcmp(name, "clz")) return tir_not(ir, args[0]);
  if (count == 2 && !strcmp(name, "bitwise_and")) return tir_binary(ir, TIR_AND, args[0], args[1]);
  if (count == 2 && !strcmp(name, "bitwise_or")) return tir_binary(ir, TIR_OR, args[0], args[1]);
  return count == 2 && !strcmp(name, "bitwise_xor") ? tir_binary(ir, TIR_NE, args[0], args[1]) : TIR_NONE;
}

/* Counts of an integer's bits may be of another type than it is, and machines have them of its own. TIR_NONE: another
 * call. */
static tir_expr counted_bits(struct tir *ir, const char *name, const tir_expr *args, uint32_t count) {
  bool counts = count == 1 && (!strcmp(name, "popcount") || !strcmp(name, "clz"));
  return counts ? call(ir, name, tir_type_of(ir, args[0]), args, 1) : TIR_NONE;
}

static tir_expr of_bits(struct tir *ir, const struct tir_expr_node *n, const char *name, const tir_expr *args) {
  int lanes = tir_type_lanes(n->type);
  bool alike = n->count > 0, truth = alike && tir_type_code(tir_type_of(ir, args[0])) == TIR_BOOL;
  for (uint32_t i = 0; i < n->count; i++) alike = alike && tir_type_lanes(tir_type_of(ir, args[i])) == lanes;
  tir_expr made = alike ? (truth ? bits_of_booleans : counted_bits)(ir, name, args, n->count) : TIR_NONE;
  return made ? tir_cast(ir, n->type, made) : call(ir, name, n->type, args, n->count);
}

static tir_expr named_call(struct tir *ir, tir_expr made, const struct tir_lower_options *options) {
  struct tir_expr_node n = *tir_at(ir, made);
  tir_expr args[MOST_ARGUMENTS];
  if (n.count > MOST_ARGUMENTS || moves_values(ir, &n)) return made;
  for (uint32_t i = 0; i < n.count; i++) args[i] = to_float32(ir, ir->operands.at[n.operands + i]);
  const char *name = tir_text(ir, n.ref);
  if (!tir_type_is_float(n.type)) return of_bits(ir, &n, name, args);
  if (n.count == 2 && !strcmp(name, "ldexp")) args[1] = exponent(ir, args[1]);
  tir_type type = tir_type_is_short(n.type) ? TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(n.type)) : n.type;
  bool is_narrow = tir_type_bits(type) < 64;
  if (options && is_narrow && widens(options, name)) return in_double(ir, name, n.type, args, n.count);
  made = options && options->in_single && is_narrow ? by_steps(ir, name, args, n.count) : TIR_NONE;
  if (!made) made = function(ir, name, type, args, n.count);
  return tir_type_is_short(n.type) ? tir_unary(ir, TIR_CAST, n.type, made) : made;
}

/* ---- */

static tir_expr legal(struct tir *ir, void *data, tir_expr e, tir_expr made) {
  const struct lowering *low = data;
  bool as_interpreted = low->options && low->options->in_double;
  struct tir_expr_node before = *tir_at(ir, e), n = *tir_at(ir, made);
  if (n.kind >= TIR_ADD && n.kind <= TIR_GE) return binary(ir, &before, made, as_interpreted);
  if (n.kind == TIR_CAST) return cast(ir, &before, made);
  return n.kind == TIR_CALL ? named_call(ir, made, low->options) : made;
}

/* Floats of 16 bits, booleans that are ordered, or, where the options take zeros by their sign, maxima: any expression
 * may be one. */
static bool takes_all(const struct lowering *low) {
  const struct tir *ir = low->ir;
  bool as_interpreted = low->options && low->options->in_double;
  for (tir_expr e = 1; e < ir->exprs.count; e++)
    if (tir_type_is_short(tir_at(ir, e)->type) || orders_booleans(ir, tir_at(ir, e)) ||
        (as_interpreted && is_extreme(tir_at(ir, e))))
      return true;
  return false;
}

bool lower_legalize(struct lowering *low) {
  uint32_t flags = takes_all(low) ? 0 : TIR_HAS_DIVMOD | TIR_HAS_CALL;
  lower_map(low->ir, low->body, flags, legal, low);
  return true;
}
