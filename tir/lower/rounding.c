/* Rounding: what is divided by a constant, rounded to an integer, cut to bounds and cast to an integer type, as values
 * that are quantized are, is cut first, and then divided by three operations that vectors do as fast as sums.
 *
 *   cast(min(max(nearbyint(x / c) + z, l), h))   becomes   cast(bits(q' + M) - bits(M) + z)
 *
 *   X = min(max(x, c (l - z)), c (h - z))   q = X (1/c)   q' = fma(fma(-c, q, X), 1/c, q)   M = 1.5 * 2^23
 *
 * With 1/c rounded to nearest q' is X / c as division rounds it. Source: Markstein, "Computation of Elementary
 * Functions on the IBM RISC System/6000 Processor", IBM Journal of Research and Development 34(1), 1990. It needs that
 * nothing overflows, and that no bits are lost at the bottom: X is bounded, and where X is so small the rounded
 * quotient is 0 whatever bits it has. Rounding keeps order, and gives l - z of c (l - z), and h - z of c (h - z), so
 * that cutting first is the same. Maximum and minimum ignore NaN in either place. The sum with M has the rounded
 * integer in its low bits; where the type holds not all between the bounds, and the cast saturates, or another rounding
 * is asked for, q' is rounded and cast as before.
 *
 * A float of the integer that was cast, through integer types that hold all between the bounds, is q' + M - M + z. A
 * value that is cut from below at k or more is not cut at k before.
 * Requires: a target that multiplies and adds with one rounding. Gives: nothing. Keeps: results, bit for bit. */
#include "lower.h"

#include "tir/node/node_map.h"

#include <math.h>
#include <string.h>

enum { MOST_BOUND = 1 << 22 };           /* of integers in float32, and of sums of two */
static const double most_scale = 0x1p60; /* a divisor is between this and its reciprocal */

struct rounding {
  struct tir_node_map floats; /* of an integer that was made of a float: that float, rounded, without a negative zero */
};

/* A value that is rounded: function(value / divisor) + offset, at least and at most so much. */
struct rounded {
  tir_expr value;
  tir_symbol function;
  double divisor, offset, least, most;
};

/* Of a node with a constant on either side: the other side. */
static tir_expr beside_constant(const struct tir *ir, const struct tir_expr_node *n, double *constant) {
  if (lower_is_constant(ir, n->b, constant)) return n->a;
  return lower_is_constant(ir, n->a, constant) ? n->b : TIR_NONE;
}

/* Takes the bounds off a value; both must be there. */
static tir_expr read_bounds(const struct tir *ir, tir_expr e, double *least, double *most) {
  *least = -INFINITY, *most = INFINITY;
  for (;;) {
    const struct tir_expr_node *n = tir_at(ir, e);
    double bound;
    tir_expr inner = n->kind == TIR_MAX || n->kind == TIR_MIN ? beside_constant(ir, n, &bound) : TIR_NONE;
    if (!inner) return e;
    if (n->kind == TIR_MAX)
      *least = fmax(*least, bound);
    else
      *most = fmin(*most, bound);
    e = inner;
  }
}

static tir_expr read_offset(const struct tir *ir, tir_expr e, double *offset) {
  const struct tir_expr_node *n = tir_at(ir, e);
  *offset = 0;
  if (n->kind == TIR_SUB && lower_is_constant(ir, n->b, offset)) return *offset = -*offset, n->a;
  tir_expr inner = n->kind == TIR_ADD ? beside_constant(ir, n, offset) : TIR_NONE;
  return inner ? inner : e;
}

static bool is_whole(double x) { return x == nearbyint(x) && fabs(x) <= MOST_BOUND; }

static bool read_rounded(const struct tir *ir, tir_expr e, struct rounded *out) {
  tir_type type = tir_type_of(ir, e);
  if (!tir_type_is_float(type) || tir_type_bits(type) != 32) return false;
  e = read_offset(ir, read_bounds(ir, e, &out->least, &out->most), &out->offset);
  const struct tir_expr_node *call = tir_at(ir, e);
  if (call->kind != TIR_CALL || call->count != 1) return false;
  const char *name = tir_text(ir, call->ref);
  if (strcmp(name, "nearbyint") != 0 && strcmp(name, "round") != 0) return false;
  const struct tir_expr_node *quotient = tir_at(ir, ir->operands.at[call->operands]);
  if (quotient->kind != TIR_DIV || !lower_is_constant(ir, quotient->b, &out->divisor)) return false;
  out->function = call->ref, out->value = quotient->a;
  bool small = is_whole(out->offset) && is_whole(out->least) && is_whole(out->most) && out->least <= out->most &&
               is_whole(out->least - out->offset) && is_whole(out->most - out->offset);
  return small && out->divisor <= most_scale && out->divisor >= 1 / most_scale;
}

/* x of a choice that gives k where x is below k, k at most so much. */
static tir_expr without_bound(const struct tir *ir, tir_expr e, double least) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_SELECT) return e;
  const struct tir_expr_node *below = tir_at(ir, n->a);
  double k;
  bool same = below->kind == TIR_LT && below->a == n->c && below->b == n->b && lower_is_constant(ir, n->b, &k);
  return same && k <= least ? n->c : e;
}

static tir_expr fused(struct tir *ir, tir_type type, tir_expr x, tir_expr y, tir_expr z) {
  return tir_call(ir, type, tir_symbol_of(ir, "fma"), (tir_expr[]){x, y, z}, 3);
}

/* The quotient, within the bounds but for what rounding makes of it. */
static tir_expr make_quotient(struct tir *ir, const struct rounded *r) {
  tir_type type = tir_type_of(ir, r->value);
  float divisor = (float)r->divisor, least = (float)((r->least - r->offset) * r->divisor),
        most = (float)((r->most - r->offset) * r->divisor);
  tir_expr x = without_bound(ir, r->value, least), inverse = lower_constant(ir, type, 1.0f / divisor);
  x = tir_binary(ir, TIR_MAX, x, lower_constant(ir, type, least));
  x = tir_binary(ir, TIR_MIN, x, lower_constant(ir, type, most));
  struct lower_named cut = lower_name(ir, x), near = lower_name(ir, tir_binary(ir, TIR_MUL, cut.use, inverse));
  tir_expr rest = fused(ir, type, lower_constant(ir, type, -divisor), near.use, cut.use);
  tir_expr q = fused(ir, type, rest, inverse, near.use);
  return lower_with_named(ir, cut, lower_with_named(ir, near, q));
}

/* Whether an integer type holds all between the bounds. */
static bool holds(tir_type type, double least, double most) {
  bool is_signed = tir_type_code(type) == TIR_INT;
  if (!tir_type_is_int(type)) return false;
  double size = ldexp(1, (int)tir_type_bits(type) - is_signed);
  return least >= (is_signed ? -size : 0) && most < size;
}

/* By the sum with M: of what is rounded to nearest, to a type that holds all there may be. */
static tir_expr make_whole(struct tir *ir, struct rounding *rounding, tir_type type, const struct rounded *r) {
  static const double magic = 0x1.8p23;
  enum { MAGIC_BITS = 0x4b400000 };
  tir_expr q = make_quotient(ir, r);
  tir_type real = tir_type_of(ir, q), whole = TIR_TYPE(TIR_INT, 32, tir_type_lanes(real));
  tir_expr m = lower_constant(ir, real, magic);
  tir_expr sum = tir_binary(ir, TIR_ADD, q, m), bits = tir_call(ir, whole, tir_symbol_of(ir, "reinterpret"), &sum, 1);
  tir_expr made = tir_binary(ir, TIR_ADD, bits, lower_constant(ir, whole, r->offset - MAGIC_BITS));
  made = tir_type_bits(type) == 32 && tir_type_code(type) == TIR_INT ? made : tir_unary(ir, TIR_CAST, type, made);
  tir_expr moved = tir_binary(ir, TIR_SUB, sum, m);
  if (r->offset != 0) moved = tir_binary(ir, TIR_ADD, moved, lower_constant(ir, real, r->offset));
  tir_node_map_set(&rounding->floats, made, 0, moved);
  return made;
}

static tir_expr make_cast(struct tir *ir, struct rounding *rounding, tir_type type, const struct rounded *r) {
  if (!strcmp(tir_text(ir, r->function), "nearbyint") && holds(tir_type_with_lanes(type, 1), r->least, r->most))
    return make_whole(ir, rounding, type, r);
  tir_expr q = make_quotient(ir, r);
  tir_type real = tir_type_of(ir, q);
  tir_expr value = tir_call(ir, real, r->function, &q, 1);
  if (r->offset != 0) value = tir_binary(ir, TIR_ADD, value, lower_constant(ir, real, r->offset));
  return tir_unary(ir, TIR_CAST, type, value);
}

/* The float that was cast to an integer, then to other integers that hold as much; TIR_NONE: it was none. */
static tir_expr cast_back(const struct tir *ir, const struct rounding *rounding, tir_expr e) {
  for (tir_type type = tir_type_of(ir, e); tir_type_is_int(type); type = tir_type_of(ir, e)) {
    tir_expr known = tir_node_map_get(&rounding->floats, e, 0);
    if (known) return known;
    const struct tir_expr_node *n = tir_at(ir, e);
    if (n->kind != TIR_CAST) return TIR_NONE;
    tir_type from = tir_type_of(ir, n->a);
    bool widens = tir_type_is_int(from) && tir_type_bits(type) > tir_type_bits(from) &&
                  (tir_type_code(type) == TIR_INT || tir_type_code(from) != TIR_INT);
    if (!widens) return TIR_NONE;
    e = n->a;
  }
  return TIR_NONE;
}

static tir_expr round_fast(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  (void)before;
  struct rounding *rounding = data;
  struct tir_expr_node n = *tir_at(ir, made);
  struct rounded r;
  if (n.kind != TIR_CAST) return made;
  if (tir_type_is_int(n.type)) return read_rounded(ir, n.a, &r) ? make_cast(ir, rounding, n.type, &r) : made;
  if (!tir_type_is_float(n.type) || tir_type_bits(n.type) != 32) return made;
  tir_expr whole = cast_back(ir, rounding, n.a);
  return whole ? whole : made;
}

bool lower_rounding(struct lowering *low) {
  if (!low->options || !low->options->fused) return true;
  struct rounding rounding;
  tir_node_map_init(&rounding.floats);
  lower_map(low->ir, low->body, TIR_HAS_CALL, round_fast, &rounding);
  tir_node_map_free(&rounding.floats);
  return true;
}
