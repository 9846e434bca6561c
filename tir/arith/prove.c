/* Proofs of conditions over index expressions.
 *
 * A comparison is a difference that is not negative. Bounds of its terms decide most; else the difference is looked at
 * in other forms, each at most it, or equal, up to a fixed number of steps:
 *   - a minimum, maximum or choice among its terms is each of its operands in turn;
 *   - a variable is the end of its domain that makes the difference least;
 *   - c * fd(x, c) is x - fm(x, c), and fm(x, c) is x - c * fd(x, c), which may meet other terms in x;
 *   - what is given not to be negative is taken away, times what makes a term meet and go.
 * Source: the cases are those of TVM's rewriting simplifier; the last is Fourier and Motzkin's elimination, one fact a
 * step. */
#include "linear.h"

enum { MOST_FACTS = 16, MOST_TERMS = 32, MOST_STEPS = 32, MOST_DEPTH = 5 };

/* A difference: constant + sum of terms, in no order. It stays on the stack, so that a proof leaves nothing behind but
 * the quotients and remainders that it looks at. */
struct difference {
  int64_t constant;
  uint32_t count;
  bool overflow;
  struct tir_term terms[MOST_TERMS];
};

struct prover {
  struct tir *ir;
  tir_expr facts[MOST_FACTS]; /* not negative where the condition is asked for */
  uint32_t fact_count;
  int steps; /* left */
};

static bool is_not_negative(struct prover *p, const struct difference *d, int depth);

static void add_term(struct difference *d, tir_expr atom, int64_t coefficient) {
  MS_CHECK(d->count <= MOST_TERMS);
  uint32_t i = 0;
  while (i < d->count && d->terms[i].atom != atom) i++;
  if (i == d->count) {
    if (i == MOST_TERMS) d->overflow = true;
    if (i < MOST_TERMS && coefficient) d->terms[d->count++] = (struct tir_term){coefficient, atom};
    return;
  }
  if (__builtin_add_overflow(d->terms[i].coefficient, coefficient, &coefficient)) d->overflow = true;
  d->terms[i].coefficient = coefficient;
  if (coefficient == 0) d->terms[i] = d->terms[--d->count];
}

/* d += scale * e */
static void add_scaled(struct prover *p, struct difference *d, tir_expr e, int64_t scale) {
  struct tir_linear l = tir_linear_of(p->ir, e);
  int64_t product;
  if (__builtin_mul_overflow(l.constant, scale, &product) || __builtin_add_overflow(d->constant, product, &d->constant))
    d->overflow = true;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = p->ir->terms.at[l.first + i];
    if (__builtin_mul_overflow(t.coefficient, scale, &product)) d->overflow = true;
    add_term(d, t.atom, product);
  }
}

static void scale_by(struct difference *d, int64_t scale) {
  if (scale == 1) return;
  if (__builtin_mul_overflow(d->constant, scale, &d->constant)) d->overflow = true;
  for (uint32_t i = 0; i < d->count; i++)
    if (__builtin_mul_overflow(d->terms[i].coefficient, scale, &d->terms[i].coefficient)) d->overflow = true;
}

static bool try_value(struct prover *p, const struct difference *d, struct tir_term t, tir_expr value, int depth) {
  if (tir_type_of(p->ir, value) != tir_type_of(p->ir, t.atom) || !tir_is_index(p->ir, value)) return false;
  struct difference made = *d;
  add_term(&made, t.atom, -t.coefficient);
  add_scaled(p, &made, value, t.coefficient);
  return is_not_negative(p, &made, depth - 1);
}

/* A minimum that counts negatively is at most either operand, so one is enough; else both must do. */
static bool try_cases(struct prover *p, const struct difference *d, struct tir_term t, int depth) {
  struct tir_expr_node n = *tir_at(p->ir, t.atom);
  bool choice = n.kind == TIR_SELECT;
  tir_expr a = choice ? n.b : n.a, b = choice ? n.c : n.b;
  bool one_is_enough = n.kind == (t.coefficient < 0 ? TIR_MIN : TIR_MAX);
  bool first = try_value(p, d, t, a, depth);
  if (first == one_is_enough) return first;
  return try_value(p, d, t, b, depth);
}

/* scale * d with fd(x, c) as (x - fm(x, c)) / c, scaled so that this leaves no fraction. */
static bool try_without_quotient(struct prover *p, const struct difference *d, struct tir_term t, int depth) {
  MS_CHECK(tir_at(p->ir, t.atom)->kind == TIR_FLOORDIV);
  struct tir_expr_node n = *tir_at(p->ir, t.atom);
  int64_t divisor = tir_at(p->ir, n.b)->imm, scale = divisor / tir_gcd(divisor, t.coefficient), times;
  if (__builtin_mul_overflow(t.coefficient, scale, &times) || times == INT64_MIN) return false;
  tir_expr rest = tir_make(p->ir, TIR_FLOORMOD, n.a, n.b);
  struct difference made = *d;
  scale_by(&made, scale);
  add_term(&made, t.atom, -times);
  add_scaled(p, &made, n.a, times / divisor);
  add_scaled(p, &made, rest, -(times / divisor));
  return is_not_negative(p, &made, depth - 1);
}

static bool try_without_remainder(struct prover *p, const struct difference *d, struct tir_term t, int depth) {
  MS_CHECK(tir_at(p->ir, t.atom)->kind == TIR_FLOORMOD);
  struct tir_expr_node n = *tir_at(p->ir, t.atom);
  int64_t times;
  if (__builtin_mul_overflow(t.coefficient, tir_at(p->ir, n.b)->imm, &times) || times == INT64_MIN) return false;
  tir_expr quotient = tir_make(p->ir, TIR_FLOORDIV, n.a, n.b);
  struct difference made = *d;
  add_term(&made, t.atom, -t.coefficient);
  add_scaled(p, &made, n.a, t.coefficient);
  add_scaled(p, &made, quotient, -times);
  return is_not_negative(p, &made, depth - 1);
}

/* A variable is at most the end of its domain where it counts negatively, else at least the beginning; bounds know
 * those that are numbers. */
static bool try_end_of_domain(struct prover *p, const struct difference *d, struct tir_term t, int depth) {
  const struct tir_var_node *v = tir_symbolic_domain(p->ir, t.atom);
  if (!v) return false;
  tir_expr min = v->min, extent = v->extent;
  struct difference made = *d;
  add_term(&made, t.atom, -t.coefficient);
  add_scaled(p, &made, min, t.coefficient);
  if (t.coefficient < 0) {
    add_scaled(p, &made, extent, t.coefficient);
    if (__builtin_sub_overflow(made.constant, t.coefficient, &made.constant)) made.overflow = true;
  }
  return is_not_negative(p, &made, depth - 1);
}

static bool try_term(struct prover *p, const struct difference *d, struct tir_term t, int depth) {
  const struct tir_expr_node *n = tir_at(p->ir, t.atom);
  if (n->kind == TIR_MIN || n->kind == TIR_MAX || n->kind == TIR_SELECT) return try_cases(p, d, t, depth);
  if (n->kind == TIR_VAR) return try_end_of_domain(p, d, t, depth);
  if (n->kind != TIR_FLOORDIV && n->kind != TIR_FLOORMOD) return false;
  if (!tir_is_int(p->ir, n->b) || tir_at(p->ir, n->b)->imm <= 0 || !tir_is_index(p->ir, n->a)) return false;
  return n->kind == TIR_FLOORDIV ? try_without_quotient(p, d, t, depth) : try_without_remainder(p, d, t, depth);
}

/* scale * d - times * fact, in which the terms of `atom` meet and go. */
static bool try_fact(struct prover *p, const struct difference *d, struct tir_term t, tir_expr fact, int depth) {
  struct tir_linear l = tir_linear_of(p->ir, fact);
  int64_t own = 0;
  for (uint32_t i = 0; i < l.count; i++)
    if (p->ir->terms.at[l.first + i].atom == t.atom) own = p->ir->terms.at[l.first + i].coefficient;
  if (own == 0 || (own < 0) != (t.coefficient < 0) || own == INT64_MIN || t.coefficient == INT64_MIN) return false;
  int64_t g = tir_gcd(own, t.coefficient), scale = own / g, times = t.coefficient / g;
  struct difference made = *d;
  scale_by(&made, scale < 0 ? -scale : scale);
  add_scaled(p, &made, fact, times < 0 ? times : -times);
  return is_not_negative(p, &made, depth - 1);
}

static bool is_not_negative(struct prover *p, const struct difference *d, int depth) {
  MS_CHECK(depth >= 0 && depth <= MOST_DEPTH);
  if (d->overflow) return false;
  int64_t lo = d->constant;
  for (uint32_t i = 0; i < d->count; i++)
    lo = tir_sat_add(lo, tir_scale_bounds(d->terms[i].coefficient, tir_bounds_of(p->ir, d->terms[i].atom)).lo);
  if (lo >= 0 && lo != TIR_POS_INF) return true;
  if (depth == 0 || --p->steps < 0) return false;
  for (uint32_t i = 0; i < d->count; i++)
    if (try_term(p, d, d->terms[i], depth)) return true;
  for (uint32_t f = 0; f < p->fact_count; f++)
    for (uint32_t i = 0; i < d->count; i++)
      if (try_fact(p, d, d->terms[i], p->facts[f], depth)) return true;
  return false;
}

/* a + constant <= b */
static bool is_at_most(struct prover *p, tir_expr a, tir_expr b, int64_t constant) {
  struct tir_bounds bounds = tir_difference_bounds(p->ir, a, b);
  if (bounds.hi != TIR_POS_INF && bounds.hi <= -constant) return true;
  struct difference d;
  d.constant = -constant;
  d.count = 0;
  d.overflow = false;
  add_scaled(p, &d, b, 1);
  add_scaled(p, &d, a, -1);
  p->steps = MOST_STEPS;
  return is_not_negative(p, &d, MOST_DEPTH);
}

static bool differs(struct prover *p, tir_expr a, tir_expr b) {
  int64_t modulus, remainder;
  if (is_at_most(p, a, b, 1) || is_at_most(p, b, a, 1)) return true;
  tir_modular(p->ir, tir_sub(p->ir, a, b), &modulus, &remainder);
  return remainder != 0;
}

static bool is_index_pair(const struct tir *ir, const struct tir_expr_node *n) {
  return tir_is_index(ir, n->a) && tir_is_index(ir, n->b) && tir_type_of(ir, n->a) == tir_type_of(ir, n->b);
}

static bool holds(struct prover *p, tir_expr condition) {
  struct tir_expr_node n = *tir_at(p->ir, condition);
  if (n.lo == 1) return true;
  if (n.hi == 0) return false;
  if (n.kind == TIR_AND) return holds(p, n.a) && holds(p, n.b);
  if (n.kind == TIR_OR) return holds(p, n.a) || holds(p, n.b);
  if (n.kind < TIR_EQ || n.kind > TIR_GE || !is_index_pair(p->ir, &n)) return false;
  switch (n.kind) {
  case TIR_LT: return is_at_most(p, n.a, n.b, 1);
  case TIR_LE: return is_at_most(p, n.a, n.b, 0);
  case TIR_GT: return is_at_most(p, n.b, n.a, 1);
  case TIR_GE: return is_at_most(p, n.b, n.a, 0);
  case TIR_EQ: return is_at_most(p, n.a, n.b, 0) && is_at_most(p, n.b, n.a, 0);
  default: return differs(p, n.a, n.b);
  }
}

static void add_fact(struct prover *p, tir_expr more, tir_expr less, int64_t constant) {
  MS_CHECK(p->fact_count <= MOST_FACTS);
  struct tir *ir = p->ir;
  if (p->fact_count == MOST_FACTS) return;
  struct tir_sum sum = tir_sum_open(ir);
  sum.constant = -constant;
  tir_sum_add(ir, &sum, more, 1);
  tir_sum_add(ir, &sum, less, -1);
  if (sum.overflow)
    tir_sum_drop(ir, &sum);
  else
    p->facts[p->fact_count++] = tir_sum_close(ir, &sum, tir_type_of(ir, more));
}

static void add_facts(struct prover *p, tir_expr given) {
  struct tir_expr_node n = *tir_at(p->ir, given);
  if (n.kind == TIR_AND) {
    add_facts(p, n.a);
    add_facts(p, n.b);
  }
  if (n.kind < TIR_EQ || n.kind > TIR_GE || !is_index_pair(p->ir, &n)) return;
  if (n.kind == TIR_LT) add_fact(p, n.b, n.a, 1);
  if (n.kind == TIR_GT) add_fact(p, n.a, n.b, 1);
  if (n.kind == TIR_LE || n.kind == TIR_EQ) add_fact(p, n.b, n.a, 0);
  if (n.kind == TIR_GE || n.kind == TIR_EQ) add_fact(p, n.a, n.b, 0);
}

bool tir_prove_under(struct tir *ir, tir_expr given, tir_expr condition) {
  if (condition == TIR_NONE || tir_at(ir, condition)->lo == 1) return true;
  struct prover p;
  p.ir = ir;
  p.fact_count = 0;
  if (given) add_facts(&p, given);
  if (holds(&p, condition)) return true;
  tir_expr simple = tir_simplify(ir, condition);
  return simple != condition && holds(&p, simple);
}

bool tir_prove(struct tir *ir, tir_expr condition) { return tir_prove_under(ir, TIR_NONE, condition); }

/* Whether other forms of a sum may say more than its bounds. */
static bool has_other_forms(struct tir *ir, tir_expr e) {
  struct tir_linear l = tir_linear_of(ir, e);
  for (uint32_t i = 0; i < l.count; i++) {
    const struct tir_expr_node *n = tir_at(ir, ir->terms.at[l.first + i].atom);
    if (n->flags & TIR_HAS_DIVMOD || n->kind == TIR_MIN || n->kind == TIR_MAX || n->kind == TIR_SELECT) return true;
  }
  return false;
}

bool tir_prove_equal(struct tir *ir, tir_expr a, tir_expr b) {
  if (a == b) return true;
  if (tir_type_of(ir, a) != tir_type_of(ir, b)) return false;
  if (!tir_is_index(ir, a) || !tir_is_index(ir, b)) return tir_simplify(ir, a) == tir_simplify(ir, b);
  struct tir_bounds d = tir_difference_bounds(ir, a, b);
  if (d.lo == 0 && d.hi == 0) return true;
  if (d.lo > 0 || d.hi < 0) return false;
  if (!has_other_forms(ir, a) && !has_other_forms(ir, b)) return false;
  tir_expr x = tir_simplify(ir, a), y = tir_simplify(ir, b);
  if (x == y) return true;
  struct prover p;
  p.ir = ir;
  p.fact_count = 0;
  return is_at_most(&p, x, y, 0) && is_at_most(&p, y, x, 0);
}
