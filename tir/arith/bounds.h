/* Arithmetic on bounds: INT64_MIN and INT64_MAX stand for minus and plus infinity and absorb. Internal to tir. */
#ifndef MSCHED_TIR_BOUNDS_H
#define MSCHED_TIR_BOUNDS_H

#include "tir/tir.h"

#define TIR_NEG_INF INT64_MIN
#define TIR_POS_INF INT64_MAX

struct tir_bounds {
  int64_t lo, hi;
};

static inline bool tir_is_inf(int64_t x) { return x == TIR_NEG_INF || x == TIR_POS_INF; }

static inline int64_t tir_sat_add(int64_t a, int64_t b) {
  if (tir_is_inf(a)) return a;
  if (tir_is_inf(b)) return b;
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? TIR_POS_INF : TIR_NEG_INF;
}

static inline int64_t tir_sat_neg(int64_t a) {
  return a == TIR_NEG_INF ? TIR_POS_INF : a == TIR_POS_INF ? TIR_NEG_INF : -a;
}

static inline int64_t tir_sat_mul(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  if (!tir_is_inf(a) && !tir_is_inf(b) && !__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? TIR_POS_INF : TIR_NEG_INF;
}

static inline int64_t tir_floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a % b < 0) != (b < 0));
}
static inline int64_t tir_floor_mod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r + (r != 0 && (r < 0) != (b < 0) ? b : 0);
}
static inline int64_t tir_gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    uint64_t r = x % y;
    x = y;
    y = r;
  }
  return x > INT64_MAX ? 1 : (int64_t)x;
}

/* k times what is within bounds. */
static inline struct tir_bounds tir_scale_bounds(int64_t k, struct tir_bounds b) {
  int64_t p = tir_sat_mul(k, b.lo), q = tir_sat_mul(k, b.hi);
  return k < 0 ? (struct tir_bounds){q, p} : (struct tir_bounds){p, q};
}
static inline struct tir_bounds tir_add_bounds(struct tir_bounds a, struct tir_bounds b) {
  return (struct tir_bounds){tir_sat_add(a.lo, b.lo), tir_sat_add(a.hi, b.hi)};
}

/* The range of values of a type; (-inf, inf) for 64 bits and for what is no integer. */
struct tir_bounds tir_type_bounds(tir_type type);
/* The greatest finite value of a type of floats. */
double tir_greatest_float(tir_type type);
/* The same as TVM's max_value has it: for bfloat16 it is float32's, which rounds to infinity. So reductions over
 * bfloat16 are written, and infinity is as good an identity; what must be finite takes the former. */
double tir_greatest_written(tir_type type);
/* Bounds of `kind` applied to operands within bounds, as whole numbers have it. */
struct tir_bounds tir_binary_bounds(enum tir_kind kind, struct tir_bounds a, struct tir_bounds b);
/* Whether what is of this type, with these flags, may wrap around. */
static inline bool tir_may_wrap(tir_type type, uint8_t flags) {
  bool index = type == TIR_T_I32 || (tir_type_code(type) == TIR_INT && tir_type_bits(type) >= 32);
  return flags & TIR_OF_DATA || !index;
}
/* Bounds of what wraps around where it leaves its type; kind: of the node, at most TIR_FLOORMOD. */
struct tir_bounds tir_wrap_bounds(enum tir_kind kind, tir_type type, struct tir_bounds b);
/* Those of a node of this type and these flags: what leaves the type of an index has no meaning, data and what is in
 * other types wrap around. Minima, maxima and comparisons leave no type, however far an operand's bounds reach. */
static inline struct tir_bounds tir_wrapped_bounds(enum tir_kind kind, tir_type type, uint8_t flags,
                                                   struct tir_bounds b) {
  return kind < TIR_MIN && tir_may_wrap(type, flags) ? tir_wrap_bounds(kind, type, b) : b;
}

static inline struct tir_bounds tir_bounds_of(const struct tir *ir, tir_expr e) {
  return (struct tir_bounds){ir->exprs.at[e].lo, ir->exprs.at[e].hi};
}

#endif
