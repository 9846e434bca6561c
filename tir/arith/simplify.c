/* Simplified integer arithmetic: expressions are brought to one form as they are made.
 *
 * Sums are linear forms. A quotient or remainder by a constant gives up what divides and what is too small to matter,
 * decided by the bounds of variables. fd and fm stand for floordiv and floormod:
 *   fd(c*x + r, c)      = x + fd(r, c)                      fm(c*x + r, c)     = fm(r, c)
 *   fd(g*x + r, g*d)    = fd(x, d)          for 0 <= r < g  fm(g*x + r, g*d)   = g*fm(x, d) + r
 *   fd(fd(x, a), b)     = fd(x, a*b)                        fm(fm(x, a), b)    = fm(x, b)      where b divides a
 *   fd(fm(x, a), b)     = fm(fd(x, b), a/b) where b divides a, x no sum
 * In the second line x is one term, and r is one too for fm: longer sums keep the form they have as iterators of a
 * split or fused loop, in which other simplifiers, TVM's among them, leave and compare them. Source: the rules are
 * those of Euclidean division; TVM's canonical simplifier uses the like. */
#include "linear.h"

#include <string.h>

/* ---- Quotients and remainders ---- */

/* Largest coefficients first, ties by age of the atom. */
static void sort_by_coefficient(struct tir_term *terms, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    struct tir_term t = terms[i];
    uint32_t j = i;
    int64_t size = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    for (; j > 0; j--) {
      int64_t other = terms[j - 1].coefficient < 0 ? -terms[j - 1].coefficient : terms[j - 1].coefficient;
      if (other > size || (other == size && terms[j - 1].atom < t.atom)) break;
      terms[j] = terms[j - 1];
    }
    terms[j] = t;
  }
}

struct split {
  int64_t gcd;
  uint32_t high;
  int64_t low_constant, high_constant;
};

/* Splits terms and constant for division by `divisor` into g * high + low, 0 <= low < g, with g the largest such
 * divisor of `divisor`. Sorts the terms: those of high come first. */
static bool find_split(const struct tir *ir, struct tir_term *terms, uint32_t count, int64_t constant, int64_t divisor,
                       bool remainder, struct split *out) {
  assert(divisor > 1);
  sort_by_coefficient(terms, count);
  /* Bounds of the tails, from the end: the smallest terms. */
  struct tir_bounds tail = {0, 0};
  uint32_t best = UINT32_MAX;
  int64_t best_gcd = 0, best_low = 0;
  for (uint32_t high = count + 1; high-- > 0;) {
    if (high < count) {
      tail = tir_add_bounds(tail, tir_scale_bounds(terms[high].coefficient, tir_bounds_of(ir, terms[high].atom)));
    }
    if (high > 1 || (remainder && count > 2)) continue; /* the form of iterators */
    int64_t g = divisor;
    for (uint32_t i = 0; i < high; i++) g = tir_gcd(g, terms[i].coefficient);
    int64_t low = tir_floor_mod(constant, g);
    if (tir_sat_add(tail.lo, low) < 0 || tir_sat_add(tail.hi, low) >= g) continue;
    if (g > best_gcd) {
      best = high;
      best_gcd = g;
      best_low = low;
    }
  }
  if (best == UINT32_MAX) return false;
  *out = (struct split){best_gcd, best, best_low, constant - best_low};
  return true;
}

/* A product, or a minimum or maximum, whose residue is known; the quotient of an extreme of two multiples is an extreme
 * of quotients. TIR_NONE: it is not known. */
static tir_expr divide_known(struct tir *ir, enum tir_kind kind, tir_type type, tir_expr x, int64_t divisor) {
  assert((kind == TIR_FLOORDIV || kind == TIR_FLOORMOD) && divisor > 0);
  int64_t modulus, remainder;
  struct tir_expr_node n = *tir_at(ir, x);
  tir_modular(ir, x, &modulus, &remainder);
  if (modulus % divisor) return TIR_NONE;
  remainder = tir_floor_mod(remainder, divisor);
  if (kind == TIR_FLOORMOD) return tir_int(ir, type, remainder);
  if (n.kind == TIR_MUL || remainder) return TIR_NONE;
  tir_expr d = tir_int(ir, type, divisor), a = tir_make(ir, TIR_FLOORDIV, n.a, d);
  return tir_make(ir, (enum tir_kind)n.kind, a, tir_make(ir, TIR_FLOORDIV, n.b, d));
}

static tir_expr plain_division(struct tir *ir, enum tir_kind kind, tir_type type, tir_expr x, int64_t divisor) {
  assert((kind == TIR_FLOORDIV || kind == TIR_FLOORMOD) && divisor > 0);
  const struct tir_expr_node *n = tir_at(ir, x);
  if (n->kind == TIR_INT_IMM)
    return tir_int(ir, type, kind == TIR_FLOORDIV ? tir_floor_div(n->imm, divisor) : tir_floor_mod(n->imm, divisor));
  bool nested =
      (n->kind == TIR_FLOORDIV || n->kind == TIR_FLOORMOD) && tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm > 0;
  if (nested) {
    int64_t inner = tir_at(ir, n->b)->imm, product;
    tir_expr a = n->a;
    if (kind == TIR_FLOORDIV && n->kind == TIR_FLOORDIV && !__builtin_mul_overflow(inner, divisor, &product))
      return tir_make(ir, TIR_FLOORDIV, a, tir_int(ir, type, product));
    bool sum = tir_linear_of(ir, a).count > 1; /* of a sum, the remainder is taken first */
    if (n->kind == TIR_FLOORMOD && inner % divisor == 0 && (kind == TIR_FLOORMOD || !sum)) {
      if (kind == TIR_FLOORMOD) return tir_make(ir, TIR_FLOORMOD, a, tir_int(ir, type, divisor));
      tir_expr q = tir_make(ir, TIR_FLOORDIV, a, tir_int(ir, type, divisor));
      return tir_make(ir, TIR_FLOORMOD, q, tir_int(ir, type, inner / divisor));
    }
  }
  if (n->kind == TIR_MIN || n->kind == TIR_MAX || n->kind == TIR_MUL) {
    tir_expr known = divide_known(ir, kind, type, x, divisor);
    if (known) return known;
  }
  return tir_binary(ir, kind, x, tir_int(ir, type, divisor));
}

/* Parts the terms that the divisor divides, divided, from the rest. A coefficient above the divisor stays as it is,
 * though a remainder does not depend on it: it shows that quotient and remainder are of the same number. */
static void divide_terms(struct tir *ir, tir_expr a, int64_t divisor, struct tir_term *rest, uint32_t *rest_count,
                         int64_t *rest_constant, struct tir_term *whole, uint32_t *whole_count,
                         int64_t *whole_constant) {
  MS_CHECK(divisor > 0 && tir_is_index(ir, a));
  struct tir_linear l = tir_linear_of(ir, a);
  *rest_count = *whole_count = 0;
  *rest_constant = tir_floor_mod(l.constant, divisor);
  *whole_constant = tir_floor_div(l.constant, divisor);
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    if (t.coefficient % divisor == 0) {
      whole[(*whole_count)++] = (struct tir_term){t.coefficient / divisor, t.atom};
      continue;
    }
    rest[(*rest_count)++] = t;
  }
}

enum { MOST_TERMS = 64 };

/* A remainder does not depend on whole multiples: k * fm(x, c) stands for k * x where the divisor divides k * c. This
 * is done where terms meet and go. TIR_NONE: they do not. */
static tir_expr without_remainders(struct tir *ir, tir_expr a, int64_t divisor) {
  MS_CHECK(divisor > 0 && tir_linear_of(ir, a).count <= MOST_TERMS);
  struct tir_linear l = tir_linear_of(ir, a);
  struct tir_term terms[MOST_TERMS];
  bool any = false;
  for (uint32_t i = 0; i < l.count; i++) {
    terms[i] = ir->terms.at[l.first + i];
    const struct tir_expr_node *n = tir_at(ir, terms[i].atom);
    int64_t whole;
    if (n->kind != TIR_FLOORMOD || !tir_is_int(ir, n->b) || !tir_is_index(ir, n->a)) continue;
    if (__builtin_mul_overflow(terms[i].coefficient, tir_at(ir, n->b)->imm, &whole) || whole % divisor) continue;
    terms[i].atom = n->a;
    any = true;
  }
  if (!any) return TIR_NONE;
  struct tir_sum sum = tir_sum_open(ir);
  sum.constant = l.constant;
  for (uint32_t i = 0; i < l.count; i++) tir_sum_add(ir, &sum, terms[i].atom, terms[i].coefficient);
  if (!sum.overflow && sum.count < l.count) return tir_sum_close(ir, &sum, tir_type_of(ir, a));
  tir_sum_drop(ir, &sum);
  return TIR_NONE;
}

static void add_terms(struct tir *ir, struct tir_sum *sum, const struct tir_term *terms, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) tir_sum_add_term(ir, sum, terms[i].atom, terms[i].coefficient);
}

/* The quotient of all the terms, where it is one number; INT64_MIN: it is not. */
static int64_t sole_quotient(const struct tir *ir, const struct tir_term *terms, uint32_t count, int64_t constant,
                             int64_t divisor) {
  MS_CHECK(divisor > 0);
  struct tir_bounds b = {constant, constant};
  for (uint32_t i = 0; i < count; i++)
    b = tir_add_bounds(b, tir_scale_bounds(terms[i].coefficient, tir_bounds_of(ir, terms[i].atom)));
  if (tir_is_inf(b.lo) || tir_is_inf(b.hi)) return INT64_MIN;
  int64_t q = tir_floor_div(b.lo, divisor);
  return q == tir_floor_div(b.hi, divisor) ? q : INT64_MIN;
}

/* Adds the quotient, or the remainder, of terms that the divisor does not divide; puts them in another order. */
static void add_divided(struct tir *ir, struct tir_sum *sum, enum tir_kind kind, tir_type type, struct tir_term *rest,
                        uint32_t rests, int64_t constant, int64_t divisor) {
  bool remainder = kind == TIR_FLOORMOD;
  int64_t sole = sole_quotient(ir, rest, rests, constant, divisor);
  struct split s;
  if (sole != INT64_MIN) {
    if (remainder) add_terms(ir, sum, rest, rests);
    sum->constant = remainder ? constant - sole * divisor : sole;
  } else if (find_split(ir, rest, rests, constant, divisor, remainder, &s)) {
    struct tir_sum high = tir_sum_open(ir);
    high.constant = s.high_constant / s.gcd;
    for (uint32_t i = 0; i < s.high; i++) tir_sum_add_term(ir, &high, rest[i].atom, rest[i].coefficient / s.gcd);
    tir_expr inner = plain_division(ir, kind, type, tir_sum_close(ir, &high, type), divisor / s.gcd);
    tir_sum_add(ir, sum, inner, remainder ? s.gcd : 1);
    if (remainder) add_terms(ir, sum, rest + s.high, rests - s.high);
    if (remainder) sum->constant += s.low_constant;
  } else {
    struct tir_sum all = tir_sum_open(ir);
    all.constant = constant;
    add_terms(ir, &all, rest, rests);
    tir_sum_add(ir, sum, plain_division(ir, kind, type, tir_sum_close(ir, &all, type), divisor), 1);
  }
}

/* As below, of a variable alone, by more than 1: it leaves its first round of values, or is divided as it is. TIR_NONE:
 * it stays in another round. */
static tir_expr divide_var(struct tir *ir, enum tir_kind kind, tir_expr a, int64_t divisor) {
  MS_CHECK(tir_at(ir, a)->kind == TIR_VAR && divisor > 1);
  tir_type type = tir_type_of(ir, a);
  int64_t q = sole_quotient(ir, &(struct tir_term){1, a}, 1, 0, divisor);
  if (q == INT64_MIN) return tir_binary(ir, kind, a, tir_int(ir, type, divisor));
  if (q != 0) return TIR_NONE;
  return kind == TIR_FLOORMOD ? a : tir_int(ir, type, 0);
}

static tir_expr divide(struct tir *ir, enum tir_kind kind, tir_expr a, int64_t divisor) {
  MS_CHECK(divisor > 0);
  tir_type type = tir_type_of(ir, a);
  tir_expr of_var = tir_at(ir, a)->kind == TIR_VAR && divisor > 1 ? divide_var(ir, kind, a, divisor) : TIR_NONE;
  if (of_var) return of_var;
  if (tir_linear_of(ir, a).count > MOST_TERMS) return tir_binary(ir, kind, a, tir_int(ir, type, divisor));
  struct tir_term rest[MOST_TERMS], whole[MOST_TERMS];
  uint32_t rests, wholes;
  int64_t rest_constant, whole_constant;
  bool remainder = kind == TIR_FLOORMOD;
  if (remainder && (tir_at(ir, a)->flags & TIR_HAS_DIVMOD)) {
    tir_expr plain = without_remainders(ir, a, divisor);
    if (plain) return tir_make(ir, TIR_FLOORMOD, plain, tir_int(ir, type, divisor));
  }
  divide_terms(ir, a, divisor, rest, &rests, &rest_constant, whole, &wholes, &whole_constant);
  struct tir_sum sum = tir_sum_open(ir);
  add_divided(ir, &sum, kind, type, rest, rests, rest_constant, divisor);
  if (!remainder) {
    add_terms(ir, &sum, whole, wholes);
    if (__builtin_add_overflow(sum.constant, whole_constant, &sum.constant)) sum.overflow = true;
  }
  tir_sum_recombine(ir, &sum);
  if (sum.overflow) {
    tir_sum_drop(ir, &sum);
    return tir_binary(ir, kind, a, tir_int(ir, type, divisor));
  }
  return tir_sum_close(ir, &sum, type);
}

static tir_expr make_division(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  MS_CHECK(tir_type_of(ir, a) == tir_type_of(ir, b));
  tir_type type = tir_type_of(ir, a);
  bool trunc = kind == TIR_DIV || kind == TIR_MOD, remainder = kind == TIR_MOD || kind == TIR_FLOORMOD;
  const struct tir_expr_node *na = tir_at(ir, a), *nb = tir_at(ir, b);
  if (trunc && !(na->lo >= 0 && nb->lo > 0)) {
    if (tir_is_int(ir, a) && tir_is_int(ir, b) && nb->imm != 0 && (nb->imm != -1 || na->imm > tir_type_bounds(type).lo))
      return tir_int(ir, type, remainder ? na->imm % nb->imm : na->imm / nb->imm);
    return tir_binary(ir, kind, a, b);
  }
  kind = remainder ? TIR_FLOORMOD : TIR_FLOORDIV;
  if (tir_is_int(ir, b) && nb->imm > 0) {
    if (nb->imm == 1) return remainder ? tir_int(ir, type, 0) : a;
    return divide(ir, kind, a, nb->imm);
  }
  if (!tir_is_int(ir, b)) {
    tir_expr divided = tir_divide_by_product(ir, kind, a, b);
    if (divided) return divided;
  }
  na = tir_at(ir, a), nb = tir_at(ir, b);
  if (tir_is_int(ir, a) && tir_is_int(ir, b) && nb->imm < 0 && (nb->imm != -1 || na->imm > tir_type_bounds(type).lo))
    return tir_int(ir, type, remainder ? tir_floor_mod(na->imm, nb->imm) : tir_floor_div(na->imm, nb->imm));
  return tir_binary(ir, trunc ? (remainder ? TIR_MOD : TIR_DIV) : kind, a, b);
}

/* ---- Sums, products, minima ---- */

static tir_expr make_sum(struct tir *ir, tir_expr a, tir_expr b, int64_t sign) {
  MS_CHECK(sign == 1 || sign == -1);
  tir_type type = tir_type_of(ir, a);
  struct tir_sum sum = tir_sum_open(ir);
  tir_sum_add(ir, &sum, a, 1);
  tir_sum_add(ir, &sum, b, sign);
  tir_sum_recombine(ir, &sum);
  if (!sum.overflow) return tir_sum_close(ir, &sum, type);
  tir_sum_drop(ir, &sum);
  return tir_binary(ir, sign > 0 ? TIR_ADD : TIR_SUB, a, b);
}

static tir_expr make_product(struct tir *ir, tir_expr a, tir_expr b) {
  if (tir_is_int(ir, a)) {
    tir_expr c = a;
    a = b;
    b = c;
  }
  if (!tir_is_int(ir, b)) return tir_multiply(ir, a, b);
  struct tir_sum sum = tir_sum_open(ir);
  tir_sum_add(ir, &sum, a, tir_at(ir, b)->imm);
  tir_sum_recombine(ir, &sum);
  if (!sum.overflow) return tir_sum_close(ir, &sum, tir_type_of(ir, a));
  tir_sum_drop(ir, &sum);
  return tir_binary(ir, TIR_MUL, a, b);
}

const struct tir_var_node *tir_symbolic_domain(const struct tir *ir, tir_expr atom) {
  const struct tir_expr_node *n = tir_at(ir, atom);
  if (n->kind != TIR_VAR) return NULL;
  const struct tir_var_node *v = &ir->vars.at[n->ref];
  return v->min && v->extent && !(tir_is_int(ir, v->min) && tir_is_int(ir, v->extent)) ? v : NULL;
}

static bool has_symbolic_domain(const struct tir *ir, const struct tir_sum *sum) {
  for (uint32_t i = 0; i < sum->count; i++)
    if (tir_symbolic_domain(ir, tir_sum_terms(ir, sum)[i].atom)) return true;
  return false;
}

/* Adds the term with its variable at the end of its domain where the term is largest, or least. */
static void add_at_end(struct tir *ir, struct tir_sum *sum, struct tir_term t, bool largest) {
  const struct tir_var_node *v = tir_symbolic_domain(ir, t.atom);
  if (!v) {
    tir_sum_add_term(ir, sum, t.atom, t.coefficient);
    return;
  }
  tir_expr min = v->min, extent = v->extent;
  tir_sum_add(ir, sum, min, t.coefficient);
  if ((t.coefficient > 0) != largest) return;
  tir_sum_add(ir, sum, extent, t.coefficient);
  if (__builtin_sub_overflow(sum->constant, t.coefficient, &sum->constant)) sum->overflow = true;
}

/* The bound of a sum at one end, where its variables run to expressions: i - n is at most -1 for i in [0, n). Domains
 * may refer to variables in turn. The sum stays as it is. */
static int64_t bound_at_end(struct tir *ir, const struct tir_sum *sum, bool largest) {
  assert(sum->count <= MOST_TERMS);
  enum { MOST_ROUNDS = 4 };
  struct tir_term terms[MOST_TERMS];
  uint32_t count = sum->count;
  int64_t constant = sum->constant, none = largest ? TIR_POS_INF : TIR_NEG_INF;
  if (count) memcpy(terms, tir_sum_terms(ir, sum), count * sizeof *terms);
  for (int round = 0;; round++) {
    struct tir_sum ends = tir_sum_open(ir);
    ends.constant = constant;
    for (uint32_t i = 0; i < count; i++) add_at_end(ir, &ends, terms[i], largest);
    tir_sum_recombine(ir, &ends);
    bool more = !ends.overflow && round < MOST_ROUNDS && ends.count <= MOST_TERMS && has_symbolic_domain(ir, &ends);
    struct tir_bounds b = ends.overflow ? (struct tir_bounds){none, none} : tir_sum_bounds(ir, &ends);
    if (more) {
      constant = ends.constant;
      count = ends.count;
      if (count) memcpy(terms, tir_sum_terms(ir, &ends), count * sizeof *terms);
    }
    tir_sum_drop(ir, &ends);
    if (!more) return largest ? b.hi : b.lo;
  }
}

static void tighten_by_domains(struct tir *ir, const struct tir_sum *sum, struct tir_bounds *d) {
  if (sum->count > MOST_TERMS || !has_symbolic_domain(ir, sum)) return;
  int64_t lo = bound_at_end(ir, sum, false), hi = bound_at_end(ir, sum, true);
  if (lo > d->lo) d->lo = lo;
  if (hi < d->hi) d->hi = hi;
}

struct tir_bounds tir_difference_bounds(struct tir *ir, tir_expr a, tir_expr b) {
  MS_CHECK(tir_type_of(ir, a) == tir_type_of(ir, b));
  struct tir_sum sum = tir_sum_open(ir);
  tir_sum_add(ir, &sum, a, 1);
  tir_sum_add(ir, &sum, b, -1);
  tir_sum_recombine(ir, &sum);
  struct tir_bounds d = sum.overflow ? (struct tir_bounds){TIR_NEG_INF, TIR_POS_INF} : tir_sum_bounds(ir, &sum);
  if (!sum.overflow && d.lo <= 0 && d.hi >= 0) tighten_by_domains(ir, &sum, &d);
  tir_sum_drop(ir, &sum);
  struct tir_bounds plain = tir_binary_bounds(TIR_SUB, tir_bounds_of(ir, a), tir_bounds_of(ir, b));
  if (plain.lo > d.lo) d.lo = plain.lo;
  if (plain.hi < d.hi) d.hi = plain.hi;
  return d;
}

/* ---- Conditions ---- */

static tir_expr truth(struct tir *ir, bool value) { return tir_int(ir, TIR_T_BOOL, value); }

/* l < r or l <= r, where one side is a constant and the other a quotient by a constant: x // c < k is x < k * c, and
 * k <= x // c is k * c <= x. */
static tir_expr order(struct tir *ir, enum tir_kind kind, tir_expr l, tir_expr r) {
  bool upper = tir_is_int(ir, r);
  const struct tir_expr_node *q = tir_at(ir, upper ? l : r), *k = tir_at(ir, upper ? r : l);
  int64_t limit;
  if (q->kind != TIR_FLOORDIV || k->kind != TIR_INT_IMM || !tir_is_int(ir, q->b) || tir_at(ir, q->b)->imm <= 0)
    return tir_binary(ir, kind, l, r);
  bool next = (kind == TIR_LE) == upper;
  if (__builtin_mul_overflow(k->imm + next, tir_at(ir, q->b)->imm, &limit) || limit < tir_type_bounds(q->type).lo ||
      limit > tir_type_bounds(q->type).hi)
    return tir_binary(ir, kind, l, r);
  tir_expr x = q->a, end = tir_int(ir, q->type, limit);
  return upper ? tir_make(ir, TIR_LT, x, end) : tir_make(ir, TIR_LE, end, x);
}

/* Writes p < 0, p <= 0, p == 0 or p != 0 with what is positive left and the constant right, divided by what all
 * coefficients share. The sum is closed. */
static tir_expr write_comparison(struct tir *ir, enum tir_kind kind, struct tir_sum *sum, tir_type type) {
  struct tir_term terms[MOST_TERMS];
  uint32_t count = sum->count;
  int64_t g = 0, constant = sum->constant;
  for (uint32_t i = 0; i < count; i++) {
    terms[i] = tir_sum_terms(ir, sum)[i];
    g = tir_gcd(g, terms[i].coefficient);
  }
  tir_sum_drop(ir, sum);
  /* g*x + c < 0  is  x < ceil(-c / g);  g*x + c <= 0  is  x <= floor(-c / g). */
  int64_t right = kind == TIR_LT ? -tir_floor_div(constant, g) : tir_floor_div(-constant, g);
  if ((kind == TIR_EQ || kind == TIR_NE) && constant % g != 0) return truth(ir, kind == TIR_NE);
  struct tir_sum left = tir_sum_open(ir);
  for (uint32_t i = 0; i < count; i++)
    if (terms[i].coefficient > 0) tir_sum_add_term(ir, &left, terms[i].atom, terms[i].coefficient / g);
  bool only_negative = left.count == 0;
  tir_expr l = TIR_NONE, r;
  if (!only_negative) l = tir_sum_close(ir, &left, type);
  struct tir_sum other = tir_sum_open(ir);
  for (uint32_t i = 0; i < count; i++)
    if (terms[i].coefficient < 0) tir_sum_add_term(ir, &other, terms[i].atom, -terms[i].coefficient / g);
  if (only_negative) { /* 0 - y < c  is  -c < y */
    l = tir_int(ir, type, -right);
    r = tir_sum_close(ir, &other, type);
    if (kind == TIR_EQ || kind == TIR_NE) return tir_binary(ir, kind, r, l);
  } else {
    other.constant = right;
    r = tir_sum_close(ir, &other, type);
  }
  return kind == TIR_LT || kind == TIR_LE ? order(ir, kind, l, r) : tir_binary(ir, kind, l, r);
}

static tir_expr make_comparison(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  MS_CHECK(kind >= TIR_EQ && kind <= TIR_GE);
  if (kind == TIR_GT || kind == TIR_GE) {
    tir_expr t = a;
    a = b;
    b = t;
    kind = kind == TIR_GT ? TIR_LT : TIR_LE;
  }
  struct tir_bounds d = tir_difference_bounds(ir, a, b);
  struct tir_bounds zero = {0, 0}, verdict = tir_binary_bounds(kind, d, zero);
  if (verdict.lo == verdict.hi) return truth(ir, verdict.lo);
  tir_type type = tir_type_of(ir, a);
  struct tir_sum sum = tir_sum_open(ir);
  tir_sum_add(ir, &sum, a, 1);
  tir_sum_add(ir, &sum, b, -1);
  tir_sum_recombine(ir, &sum);
  if (sum.overflow || sum.count == 0 || sum.count > MOST_TERMS || sum.constant == INT64_MIN) {
    tir_sum_drop(ir, &sum);
    return tir_binary(ir, kind, a, b);
  }
  return write_comparison(ir, kind, &sum, type);
}

static tir_expr make_logic(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  MS_CHECK(kind == TIR_AND || kind == TIR_OR);
  int64_t neutral = kind == TIR_AND;
  if (tir_is_const(ir, a, neutral) || a == b) return b;
  if (tir_is_const(ir, b, neutral)) return a;
  if (tir_is_const(ir, a, !neutral)) return a;
  if (tir_is_const(ir, b, !neutral) && !(tir_at(ir, a)->flags & TIR_HAS_CALL)) return b;
  return tir_binary(ir, kind, a, b);
}

/* Of constants; divisions that round towards zero, and those by what is below zero, stay as they are written. */
static bool fold(enum tir_kind kind, int64_t x, int64_t y, int64_t *out) {
  if (kind == TIR_DIV || kind == TIR_MOD) return false;
  if ((kind == TIR_FLOORDIV || kind == TIR_FLOORMOD) && y <= 0) return false;
  return tir_compute(kind, x, y, out);
}

/* Of index expressions that are not both constants. */
static __attribute__((noinline)) tir_expr make_index(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  switch (kind) {
  case TIR_ADD: return make_sum(ir, a, b, 1);
  case TIR_SUB: return make_sum(ir, a, b, -1);
  case TIR_MUL: return make_product(ir, a, b);
  case TIR_DIV:
  case TIR_MOD:
  case TIR_FLOORDIV:
  case TIR_FLOORMOD: return make_division(ir, kind, a, b);
  case TIR_MIN:
  case TIR_MAX: return tir_make_extreme(ir, kind, a, b);
  default: return make_comparison(ir, kind, a, b);
  }
}

static __attribute__((noinline)) tir_expr make_other(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  if (kind == TIR_AND || kind == TIR_OR) return make_logic(ir, kind, a, b);
  if (!tir_is_index(ir, a) || !tir_is_index(ir, b) || tir_type_of(ir, a) != tir_type_of(ir, b))
    return tir_binary(ir, kind, a, b);
  int64_t folded;
  if (tir_is_int(ir, a) && tir_is_int(ir, b) && fold(kind, tir_at(ir, a)->imm, tir_at(ir, b)->imm, &folded))
    return kind >= TIR_EQ ? truth(ir, folded) : tir_int(ir, tir_type_of(ir, a), folded);
  return make_index(ir, kind, a, b);
}

/* Amounts are mostly constants, and mostly 0 and 1: these come first, and call nothing before they return. */
tir_expr tir_make(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  MS_CHECK(kind >= TIR_ADD && kind <= TIR_OR && a && b);
  const struct tir_expr_node *x = tir_at(ir, a), *y = tir_at(ir, b);
  int64_t folded;
  if (y->kind != TIR_INT_IMM || x->type != y->type || !tir_is_index(ir, a)) return make_other(ir, kind, a, b);
  if (y->imm == 0 && (kind == TIR_ADD || kind == TIR_SUB)) return a;
  if (y->imm == 1 && (kind == TIR_MUL || kind == TIR_FLOORDIV)) return a;
  if (x->kind != TIR_INT_IMM) return make_other(ir, kind, a, b);
  switch (kind) {
  case TIR_ADD:
    if (!__builtin_add_overflow(x->imm, y->imm, &folded)) return tir_int(ir, x->type, folded);
    break;
  case TIR_SUB:
    if (!__builtin_sub_overflow(x->imm, y->imm, &folded)) return tir_int(ir, x->type, folded);
    break;
  case TIR_MUL:
    if (!__builtin_mul_overflow(x->imm, y->imm, &folded)) return tir_int(ir, x->type, folded);
    break;
  case TIR_FLOORDIV:
    if (y->imm > 0) return tir_int(ir, x->type, tir_floor_div(x->imm, y->imm));
    break;
  case TIR_FLOORMOD:
    if (y->imm > 0) return tir_int(ir, x->type, tir_floor_mod(x->imm, y->imm));
    break;
  default: break;
  }
  return make_other(ir, kind, a, b);
}

tir_expr tir_not(struct tir *ir, tir_expr a) {
  MS_CHECK(a);
  const struct tir_expr_node *n = tir_at(ir, a);
  if (n->kind == TIR_INT_IMM) return truth(ir, !n->imm);
  if (n->kind == TIR_NOT) return n->a;
  if (n->kind >= TIR_EQ && n->kind <= TIR_GE && tir_is_index(ir, n->a)) {
    static const enum tir_kind opposite[] = {TIR_NE, TIR_EQ, TIR_GE, TIR_GT, TIR_LE, TIR_LT};
    return tir_make(ir, opposite[n->kind - TIR_EQ], n->a, n->b);
  }
  return tir_unary(ir, TIR_NOT, n->type, a);
}

tir_expr tir_cast(struct tir *ir, tir_type type, tir_expr a) {
  MS_CHECK(a);
  const struct tir_expr_node *n = tir_at(ir, a);
  if (n->type == type) return a;
  struct tir_bounds fits = tir_type_bounds(type);
  if (n->kind == TIR_INT_IMM && tir_type_code(type) == TIR_INT && n->imm >= fits.lo && n->imm <= fits.hi)
    return tir_int(ir, type, n->imm);
  return tir_unary(ir, TIR_CAST, type, a);
}

static bool has_conjunct(const struct tir *ir, tir_expr all, tir_expr one) {
  if (all == one) return true;
  const struct tir_expr_node *n = tir_at(ir, all);
  return n->kind == TIR_AND && (has_conjunct(ir, n->a, one) || has_conjunct(ir, n->b, one));
}

tir_expr tir_and(struct tir *ir, tir_expr a, tir_expr b) {
  if (!a || tir_is_const(ir, a, 1)) return b && tir_is_const(ir, b, 1) ? TIR_NONE : b;
  if (!b || tir_is_const(ir, b, 1)) return a;
  const struct tir_expr_node *n = tir_at(ir, b);
  if (n->kind == TIR_AND) {
    tir_expr right = n->b;
    return tir_and(ir, tir_and(ir, a, n->a), right);
  }
  return has_conjunct(ir, a, b) ? a : make_logic(ir, TIR_AND, a, b);
}

/* ---- Residues ---- */

static void join_residues(int64_t *m, int64_t *r, int64_t m2, int64_t r2) { /* of either of two values */
  *m = tir_gcd(tir_gcd(*m, m2), *r - r2);
  *r = *m ? tir_floor_mod(*r, *m) : *r;
}

static void residue_of_atom(struct tir *ir, tir_expr e, int64_t *m, int64_t *r) {
  struct tir_expr_node n = *tir_at(ir, e);
  int64_t m2, r2;
  *m = 1;
  *r = 0;
  switch (n.kind) {
  case TIR_INT_IMM: *m = 0, *r = n.imm; return;
  case TIR_MIN:
  case TIR_MAX:
  case TIR_SELECT:
    tir_modular(ir, n.kind == TIR_SELECT ? n.b : n.a, m, r);
    tir_modular(ir, n.kind == TIR_SELECT ? n.c : n.b, &m2, &r2);
    join_residues(m, r, m2, r2);
    return;
  case TIR_MUL:
    tir_modular(ir, n.a, m, r);
    tir_modular(ir, n.b, &m2, &r2);
    if (*r == 0 && r2 == 0 && !__builtin_mul_overflow(*m, m2, m)) return;
    *m = *r == 0 ? *m : r2 == 0 ? m2 : 1;
    *r = 0;
    return;
  case TIR_FLOORDIV:
    if (!tir_is_int(ir, n.b) || tir_at(ir, n.b)->imm <= 0) return;
    tir_modular(ir, n.a, m, r);
    m2 = tir_at(ir, n.b)->imm;
    if (*m % m2 == 0)
      *r = tir_floor_div(*r, m2), *m = *m / m2;
    else
      *m = 1, *r = 0;
    return;
  case TIR_FLOORMOD:
    if (!tir_is_int(ir, n.b) || tir_at(ir, n.b)->imm <= 0) return;
    tir_modular(ir, n.a, m, r);
    *m = tir_gcd(*m, tir_at(ir, n.b)->imm);
    *r = tir_floor_mod(*r, *m);
    return;
  default: return;
  }
}

void tir_modular(struct tir *ir, tir_expr e, int64_t *modulus, int64_t *remainder) {
  MS_CHECK(modulus && remainder);
  struct tir_linear l = tir_linear_of(ir, e);
  int64_t m = 0, r = l.constant;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    int64_t am = 1, ar = 0, product;
    if (t.atom != e || l.count > 1 || t.coefficient != 1 || l.constant != 0)
      tir_modular(ir, t.atom, &am, &ar);
    else
      residue_of_atom(ir, e, &am, &ar);
    if (__builtin_mul_overflow(ar, t.coefficient, &product) || __builtin_add_overflow(r, product, &r) ||
        __builtin_mul_overflow(am, t.coefficient, &product)) {
      *modulus = 1;
      *remainder = 0;
      return;
    }
    m = tir_gcd(m, product);
  }
  *modulus = m;
  *remainder = m ? tir_floor_mod(r, m) : r;
}

bool tir_is_multiple(struct tir *ir, tir_expr e, int64_t of) {
  int64_t modulus, remainder;
  assert(of > 0);
  tir_modular(ir, e, &modulus, &remainder);
  return modulus % of == 0 && remainder % of == 0;
}
