/* Minima and maxima of index expressions: one operand where the order is plain, else the two. Source: the lattice's
 * laws of absorption; which orders are plain, TVM's rewriting simplifier draws alike. */
#include "linear.h"

/* min(min(x, y), x) = min(x, y), min(max(x, y), x) = x. TIR_NONE: neither applies with `inner` the inner one. */
static tir_expr absorb(const struct tir *ir, enum tir_kind kind, tir_expr inner, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, inner);
  if ((n->kind != TIR_MIN && n->kind != TIR_MAX) || (n->a != e && n->b != e)) return TIR_NONE;
  return n->kind == kind ? inner : e;
}

/* The terms of a linear form that another has not. */
struct own_terms {
  struct tir_bounds sum; /* with the constant */
  uint32_t count;
  bool symbolic; /* one runs from or to an expression */
};

static struct own_terms own_terms_of(const struct tir *ir, struct tir_linear of, struct tir_linear other) {
  struct own_terms own = {{of.constant, of.constant}, 0, false};
  for (uint32_t i = 0; i < of.count; i++) {
    struct tir_term t = tir_terms(ir, of)[i];
    bool shared = false;
    for (uint32_t j = 0; j < other.count && !shared; j++)
      shared = tir_terms(ir, other)[j].atom == t.atom && tir_terms(ir, other)[j].coefficient == t.coefficient;
    if (shared) continue;
    own.sum = tir_add_bounds(own.sum, tir_scale_bounds(t.coefficient, tir_bounds_of(ir, t.atom)));
    own.symbolic |= tir_symbolic_domain(ir, t.atom) != NULL;
    own.count++;
  }
  return own;
}

static bool are_apart(struct tir_bounds a, struct tir_bounds b) { return a.hi <= b.lo || b.hi <= a.lo; }

/* Whether the extremes of a and b, which never pass each other, are written as the one or the other. max(3 * x, x)
 * stays, though x is not negative: the ends of a range over places that differ by multiples of a variable. These are
 * the words of TVM's simplifier too, which goes by the bounds of either, without what both share. */
static bool is_plain_order(struct tir *ir, tir_expr a, tir_expr b, struct tir_bounds difference) {
  if (difference.lo == difference.hi || are_apart(tir_bounds_of(ir, a), tir_bounds_of(ir, b))) return true;
  struct tir_linear x = tir_linear_of(ir, a), y = tir_linear_of(ir, b);
  struct own_terms of_a = own_terms_of(ir, x, y), of_b = own_terms_of(ir, y, x);
  if (of_a.symbolic || of_b.symbolic) return true;
  bool shared = of_a.count < x.count, rest = (of_a.count || x.constant) && (of_b.count || y.constant);
  return shared && rest && are_apart(of_a.sum, of_b.sum);
}

tir_expr tir_make_extreme(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  MS_CHECK(kind == TIR_MIN || kind == TIR_MAX);
  struct tir_bounds d = tir_difference_bounds(ir, a, b);
  if ((d.hi <= 0 || d.lo >= 0) && is_plain_order(ir, a, b, d)) return (d.hi <= 0) == (kind == TIR_MIN) ? a : b;
  tir_expr one = absorb(ir, kind, a, b);
  if (!one) one = absorb(ir, kind, b, a);
  if (one) return one;
  /* min(min(x, c), d) with constants: one of them is enough. */
  const struct tir_expr_node *n = tir_at(ir, a);
  if (tir_is_int(ir, b) && n->kind == kind && tir_is_int(ir, n->b)) {
    int64_t x = tir_at(ir, n->b)->imm, y = tir_at(ir, b)->imm;
    return tir_binary(ir, kind, n->a, tir_int(ir, n->type, (kind == TIR_MIN) == (x < y) ? x : y));
  }
  if (tir_is_int(ir, a)) return tir_binary(ir, kind, b, a);
  return tir_binary(ir, kind, a, b);
}
