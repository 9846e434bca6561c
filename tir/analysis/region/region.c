/* Regions: what expressions and accesses cover while some variables run over their domains.
 *
 * Interval arithmetic gives an upper bound, one dimension at a time; where the map is affine and a box, iterator maps
 * give the exact answer. Source: TVM's integer sets (EvalSet, EstimateRegion…) draw the same lines. */
#include "tir/analysis/analysis.h"
#include "tir/arith/iter_map.h"
#include "tir/arith/linear.h"

#include <stdlib.h>

enum { MOST_RANK = 16 };

/* ---- Intervals ---- */

static tir_expr plus(struct tir *ir, tir_expr e, int64_t value) {
  return tir_add(ir, e, tir_int(ir, tir_type_of(ir, e), value));
}

struct tir_interval tir_interval_of(struct tir *ir, tir_expr min, tir_expr extent) {
  MS_CHECK(min && extent);
  if (tir_is_const(ir, extent, 1)) return tir_point(min);
  if (tir_type_of(ir, extent) != tir_type_of(ir, min)) extent = tir_cast(ir, tir_type_of(ir, min), extent);
  return (struct tir_interval){min, plus(ir, tir_add(ir, min, extent), -1), false};
}

bool tir_is_whole_buffer(const struct tir *ir, tir_buffer buffer, const tir_expr *ranges) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  for (uint32_t i = 0; i < n->rank; i++)
    if (!tir_is_const(ir, ranges[2 * i], 0) || ranges[2 * i + 1] != ir->operands.at[n->shape + i]) return false;
  return true;
}

tir_expr tir_interval_extent(struct tir *ir, struct tir_interval i) {
  assert(!i.empty && i.min && i.max);
  return plus(ir, tir_sub(ir, i.max, i.min), 1);
}

void tir_point_ranges(struct tir *ir, const tir_expr *at, uint32_t rank, tir_expr *ranges) {
  for (uint32_t d = 0; d < rank; d++) {
    ranges[2 * d] = at[d];
    ranges[2 * d + 1] = tir_int(ir, tir_type_of(ir, at[d]), 1);
  }
}

struct tir_region tir_point_region(struct tir *ir, tir_buffer buffer, const tir_expr *at) {
  tir_expr ranges[2 * MOST_RANK] = {TIR_NONE};
  assert(tir_buffer_at(ir, buffer)->rank <= MOST_RANK);
  tir_point_ranges(ir, at, tir_buffer_at(ir, buffer)->rank, ranges);
  return tir_new_region(ir, buffer, ranges);
}

static bool has_terms_of(const struct tir *ir, struct tir_linear a, struct tir_linear b) {
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; i++) {
    struct tir_term x = tir_terms(ir, a)[i], y = tir_terms(ir, b)[i];
    if (x.atom != y.atom || x.coefficient != y.coefficient) return false;
  }
  return true;
}

/* Ends that differ in their constants alone, as those of most tiles do, need no difference built. */
static bool is_of_constant_extent(struct tir *ir, struct tir_interval i) {
  if (tir_is_index(ir, i.min) && tir_type_of(ir, i.min) == tir_type_of(ir, i.max)) {
    struct tir_linear min = tir_linear_of(ir, i.min), max = tir_linear_of(ir, i.max);
    int64_t last;
    if (has_terms_of(ir, min, max) && !__builtin_sub_overflow(max.constant, min.constant, &last) && last >= 0 &&
        last < INT32_MAX)
      return true;
  }
  return tir_is_int(ir, tir_interval_extent(ir, i));
}

void tir_touch(struct tir *ir, struct tir_touched *t, struct tir_interval now) {
  bool bounded = !now.empty && now.min && now.max;
  if (t->whole) return;
  t->at = bounded && t->any ? tir_interval_union(ir, t->at, now) : now;
  t->any = true;
  t->whole = !bounded || !is_of_constant_extent(ir, t->at);
}

int64_t tir_touched_extent(struct tir *ir, const struct tir_touched *t, tir_expr size) {
  assert(t->any);
  int64_t all = tir_is_int(ir, size) ? tir_at(ir, size)->imm : -1;
  int64_t touched = t->whole ? all : tir_at(ir, tir_interval_extent(ir, t->at))->imm;
  return all >= 0 && touched > all ? all : touched;
}

struct tir_region tir_region_of_box(struct tir *ir, tir_buffer buffer, const struct tir_interval *box) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  const struct tir_buffer_node n = *tir_buffer_at(ir, buffer);
  uint32_t ranges = tir_grow_operands(ir, 2 * n.rank);
  for (uint32_t d = 0; d < n.rank; d++) {
    bool known = box && !box[d].empty && box[d].min && box[d].max;
    bool point = known && box[d].min == box[d].max; /* a difference of loads may not be simplified */
    tir_expr shape = ir->operands.at[n.shape + d];
    tir_expr min = known ? box[d].min : tir_int(ir, tir_type_of(ir, shape), 0);
    tir_expr extent = point ? tir_int(ir, tir_type_of(ir, min), 1) : known ? tir_interval_extent(ir, box[d]) : shape;
    ir->operands.at[ranges + 2 * d] = min;
    ir->operands.at[ranges + 2 * d + 1] = extent;
  }
  return (struct tir_region){buffer, ranges};
}

bool tir_is_point(struct tir *ir, struct tir_interval i) {
  if (i.empty || !i.min || !i.max) return false;
  return i.min == i.max || tir_prove_equal(ir, i.min, i.max);
}

static tir_expr least(struct tir *ir, tir_expr a, tir_expr b) {
  return a && b ? tir_make(ir, TIR_MIN, a, b) : TIR_NONE;
}
static tir_expr most(struct tir *ir, tir_expr a, tir_expr b) { return a && b ? tir_make(ir, TIR_MAX, a, b) : TIR_NONE; }

static void widen(struct tir *ir, struct tir_interval *i, tir_type type) {
  i->min = i->min ? tir_cast(ir, type, i->min) : TIR_NONE;
  i->max = i->max ? tir_cast(ir, type, i->max) : TIR_NONE;
}

/* Indices of one buffer may be of several types: what is made of two intervals is of the wider one. */
static void unify_types(struct tir *ir, struct tir_interval *a, struct tir_interval *b) {
  tir_expr x = a->min ? a->min : a->max, y = b->min ? b->min : b->max;
  if (!x || !y || tir_type_of(ir, x) == tir_type_of(ir, y)) return;
  bool left = tir_type_bits(tir_type_of(ir, x)) >= tir_type_bits(tir_type_of(ir, y));
  widen(ir, left ? b : a, tir_type_of(ir, left ? x : y));
}

struct tir_interval tir_interval_union(struct tir *ir, struct tir_interval a, struct tir_interval b) {
  if (a.empty) return b;
  if (!b.empty) unify_types(ir, &a, &b);
  if (b.empty || (a.min == b.min && a.max == b.max)) return a;
  return (struct tir_interval){least(ir, a.min, b.min), most(ir, a.max, b.max), false};
}

/* a <= b + 1: no gap between a set that ends at b and one that begins at a. */
static bool meets(struct tir *ir, tir_expr a, tir_expr b) {
  return !a || !b || tir_prove(ir, tir_make(ir, TIR_LE, a, plus(ir, b, 1)));
}

struct tir_interval tir_interval_join(struct tir *ir, struct tir_interval a, struct tir_interval b) {
  if (a.empty) return b;
  if (!b.empty) unify_types(ir, &a, &b);
  if (b.empty || !meets(ir, b.min, a.max) || !meets(ir, a.min, b.max)) return a;
  return tir_interval_union(ir, a, b);
}

struct tir_interval tir_interval_intersect(struct tir *ir, struct tir_interval a, struct tir_interval b) {
  if (a.empty || b.empty) return tir_nothing();
  unify_types(ir, &a, &b);
  tir_expr min = a.min && b.min ? tir_make(ir, TIR_MAX, a.min, b.min) : a.min ? a.min : b.min;
  tir_expr max = a.max && b.max ? tir_make(ir, TIR_MIN, a.max, b.max) : a.max ? a.max : b.max;
  if (min && max && tir_prove(ir, tir_make(ir, TIR_LT, max, min))) return tir_nothing();
  return (struct tir_interval){min, max, false};
}

static bool prove_le(struct tir *ir, tir_expr a, tir_expr b) {
  return a == b || tir_prove(ir, tir_make(ir, TIR_LE, a, b));
}

bool tir_interval_covers(struct tir *ir, struct tir_interval outer, struct tir_interval inner) {
  if (inner.empty) return true;
  if (outer.empty || (outer.min && !inner.min) || (outer.max && !inner.max)) return false;
  return (!outer.min || prove_le(ir, outer.min, inner.min)) && (!outer.max || prove_le(ir, inner.max, outer.max));
}

/* ---- Interval arithmetic ---- */

struct relaxation {
  struct tir *ir;
  const tir_var *vars;
  uint32_t count;
  uint64_t mask;
};

static struct tir_interval relax(const struct relaxation *r, tir_expr e);

static const struct tir_interval everything;

static bool is_relaxed(const struct relaxation *r, tir_var v) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->vars[i] == v) return true;
  return false;
}

/* The masks alone do not decide: variables share their bits. */
static bool uses_relaxed(const struct relaxation *r, tir_expr e) {
  const struct tir_expr_node *n = tir_at(r->ir, e);
  if (n->kind == TIR_VAR) return is_relaxed(r, n->ref);
  return tir_uses_masked_var(r->ir, e, r->mask, r->vars, r->count);
}

static bool has_constant_domain(const struct tir *ir, tir_var v) {
  const struct tir_var_node *n = &ir->vars.at[v];
  return n->min && n->extent && tir_is_int(ir, n->min) && tir_is_int(ir, n->extent);
}

/* A variable whose domain is being relaxed is a symbol in it: domains do not define each other in circles. */
static struct tir_interval relax_var(const struct relaxation *r, tir_expr e) {
  tir_var v = tir_at(r->ir, e)->ref;
  if (!is_relaxed(r, v)) return tir_point(e);
  const struct tir_var_node *n = &r->ir->vars.at[v];
  if (!n->min || !n->extent) return everything;
  struct tir_interval domain = tir_interval_of(r->ir, n->min, n->extent);
  return (struct tir_interval){relax(r, domain.min).min, relax(r, domain.max).max, false};
}

static bool is_positive(struct tir *ir, tir_expr e) { return tir_at(ir, e)->lo > 0; }

/* `kind` with a point on the right: rising in the left operand for a positive right one. */
static struct tir_interval monotone(const struct relaxation *r, enum tir_kind kind, struct tir_interval a, tir_expr b) {
  tir_expr min = a.min ? tir_make(r->ir, kind, a.min, b) : TIR_NONE;
  tir_expr max = a.max ? tir_make(r->ir, kind, a.max, b) : TIR_NONE;
  return (struct tir_interval){min, max, false};
}

static struct tir_interval relax_product(const struct relaxation *r, struct tir_interval a, struct tir_interval b) {
  if (a.min == a.max) {
    struct tir_interval t = a;
    a = b;
    b = t;
  }
  if (b.min != b.max || !b.min) return everything;
  struct tir_interval product = monotone(r, TIR_MUL, a, b.min);
  if (tir_at(r->ir, b.min)->lo >= 0) return product;
  if (tir_at(r->ir, b.min)->hi <= 0) return (struct tir_interval){product.max, product.min, false};
  if (!product.min || !product.max) return everything;
  tir_expr zero = tir_int(r->ir, tir_type_of(r->ir, b.min), 0);
  tir_expr sign = tir_make(r->ir, TIR_GE, b.min, zero);
  return (struct tir_interval){tir_select(r->ir, sign, product.min, product.max),
                               tir_select(r->ir, sign, product.max, product.min), false};
}

static struct tir_interval relax_remainder(const struct relaxation *r, struct tir_interval a, tir_expr divisor) {
  struct tir *ir = r->ir;
  if (tir_is_int(ir, divisor) && a.min && a.max) {
    tir_expr low = tir_floordiv(ir, a.min, divisor);
    if (tir_prove_equal(ir, low, tir_floordiv(ir, a.max, divisor)))
      return (struct tir_interval){tir_floormod(ir, a.min, divisor), tir_floormod(ir, a.max, divisor), false};
  }
  return (struct tir_interval){tir_int(ir, tir_type_of(ir, divisor), 0), plus(ir, divisor, -1), false};
}

static struct tir_interval relax_division(const struct relaxation *r, enum tir_kind kind, struct tir_interval a,
                                          struct tir_interval b) {
  if (b.min != b.max || !b.min || !is_positive(r->ir, b.min)) return everything;
  if (kind == TIR_FLOORDIV || kind == TIR_DIV) return monotone(r, kind, a, b.min);
  if (kind == TIR_FLOORMOD) return relax_remainder(r, a, b.min);
  if (a.min && tir_at(r->ir, a.min)->lo >= 0) return relax_remainder(r, a, b.min);
  tir_expr top = plus(r->ir, b.min, -1), zero = tir_int(r->ir, tir_type_of(r->ir, b.min), 0);
  return (struct tir_interval){tir_sub(r->ir, zero, top), top, false};
}

static struct tir_interval relax_binary(const struct relaxation *r, tir_expr e) {
  struct tir_expr_node n = *tir_at(r->ir, e);
  struct tir_interval a = relax(r, n.a), b = relax(r, n.b);
  if (a.min == n.a && a.max == n.a && b.min == n.b && b.max == n.b) return tir_point(e);
  enum tir_kind kind = (enum tir_kind)n.kind;
  switch (kind) {
  case TIR_ADD:
  case TIR_MIN:
  case TIR_MAX:
    return (struct tir_interval){a.min && b.min ? tir_make(r->ir, kind, a.min, b.min) : TIR_NONE,
                                 a.max && b.max ? tir_make(r->ir, kind, a.max, b.max) : TIR_NONE, false};
  case TIR_SUB:
    return (struct tir_interval){a.min && b.max ? tir_sub(r->ir, a.min, b.max) : TIR_NONE,
                                 a.max && b.min ? tir_sub(r->ir, a.max, b.min) : TIR_NONE, false};
  case TIR_MUL: return relax_product(r, a, b);
  case TIR_DIV:
  case TIR_MOD:
  case TIR_FLOORDIV:
  case TIR_FLOORMOD: return relax_division(r, kind, a, b);
  default: return (struct tir_interval){tir_int(r->ir, n.type, 0), tir_int(r->ir, n.type, 1), false}; /* a truth */
  }
}

/* A cast to a type that may not hold the value wraps around. */
static struct tir_interval relax_cast(const struct relaxation *r, tir_expr e) {
  struct tir_expr_node n = *tir_at(r->ir, e);
  struct tir_interval a = relax(r, n.a);
  struct tir_bounds fits = tir_type_bounds(n.type), value = tir_bounds_of(r->ir, n.a);
  if (!tir_type_is_int(n.type) || value.lo < fits.lo || value.hi > fits.hi) return everything;
  return (struct tir_interval){a.min ? tir_cast(r->ir, n.type, a.min) : TIR_NONE,
                               a.max ? tir_cast(r->ir, n.type, a.max) : TIR_NONE, false};
}

static struct tir_interval relax_atom(const struct relaxation *r, tir_expr e) {
  struct tir_expr_node n = *tir_at(r->ir, e);
  if (n.kind == TIR_VAR) return relax_var(r, e);
  if (n.kind >= TIR_ADD && n.kind <= TIR_OR) return relax_binary(r, e);
  if (n.kind == TIR_CAST) return relax_cast(r, e);
  if (n.kind == TIR_SELECT) return tir_interval_union(r->ir, relax(r, n.b), relax(r, n.c));
  return tir_uses_masked_var(r->ir, e, r->mask, r->vars, r->count) ? everything : tir_point(e);
}

enum { MOST_TERMS = 32 };

/* One end of a sum whose atoms lie in `atoms`. */
static tir_expr end_of_sum(struct tir *ir, tir_type type, struct tir_linear l, const struct tir_term *terms,
                           const struct tir_interval *atoms, bool max) {
  struct tir_sum sum = tir_sum_open(ir);
  sum.constant = l.constant;
  for (uint32_t i = 0; i < l.count; i++) {
    tir_expr end = (terms[i].coefficient > 0) == max ? atoms[i].max : atoms[i].min;
    if (!end) sum.overflow = true;
    if (end) tir_sum_add(ir, &sum, end, terms[i].coefficient);
  }
  tir_sum_recombine(ir, &sum);
  if (!sum.overflow) return tir_sum_close(ir, &sum, type);
  tir_sum_drop(ir, &sum);
  return TIR_NONE;
}

static tir_expr sum_of(struct tir *ir, tir_type type, int64_t constant, const struct tir_term *terms, uint32_t count) {
  struct tir_sum sum = tir_sum_open(ir);
  sum.constant = constant;
  for (uint32_t i = 0; i < count; i++) tir_sum_add_term(ir, &sum, terms[i].atom, terms[i].coefficient);
  return tir_sum_close(ir, &sum, type);
}

/* The ends of a sum whose relaxed terms are variables of constant domains: nothing but numbers moves. `more` is added
 * to the upper end. */
static bool relax_plainly(const struct relaxation *r, tir_expr e, struct tir_linear l, int64_t more,
                          struct tir_interval *out) {
  struct tir *ir = r->ir;
  struct tir_term kept[MOST_TERMS];
  uint32_t count = 0;
  bool rising = false; /* some term has a positive coefficient, and is written first */
  int64_t low = l.constant, high = l.constant;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    const struct tir_expr_node *n = tir_at(ir, t.atom);
    if (!uses_relaxed(r, t.atom)) {
      kept[count++] = t;
      rising |= t.coefficient > 0;
      continue;
    }
    if (n->kind != TIR_VAR || !has_constant_domain(ir, n->ref)) return false;
    int64_t at_low = t.coefficient > 0 ? n->lo : n->hi, at_high = t.coefficient > 0 ? n->hi : n->lo, p, q;
    if (__builtin_mul_overflow(at_low, t.coefficient, &p) || __builtin_mul_overflow(at_high, t.coefficient, &q) ||
        __builtin_add_overflow(low, p, &low) || __builtin_add_overflow(high, q, &high))
      return false;
  }
  if (__builtin_add_overflow(high, more, &high)) return false;
  tir_type type = tir_type_of(ir, e);
  out->min = sum_of(ir, type, low, kept, count);
  /* A sum ends with its constant. */
  if (low == 0 && high > 0 && rising)
    out->max = tir_binary(ir, TIR_ADD, out->min, tir_int(ir, type, high));
  else
    out->max = low == high ? out->min : sum_of(ir, type, high, kept, count);
  out->empty = false;
  return true;
}

static struct tir_interval relax(const struct relaxation *r, tir_expr e) {
  struct tir *ir = r->ir;
  if (!uses_relaxed(r, e)) return tir_point(e);
  struct tir_linear l = tir_linear_of(ir, e);
  struct tir_interval plain;
  if (l.count > MOST_TERMS) return relax_atom(r, e);
  if (tir_is_index(ir, e) && relax_plainly(r, e, l, 0, &plain)) return plain;
  if (l.count == 1 && tir_terms(ir, l)[0].atom == e) return relax_atom(r, e);
  struct tir_term terms[MOST_TERMS];
  struct tir_interval atoms[MOST_TERMS];
  for (uint32_t i = 0; i < l.count; i++) terms[i] = tir_terms(ir, l)[i];
  for (uint32_t i = 0; i < l.count; i++)
    atoms[i] = uses_relaxed(r, terms[i].atom) ? relax_atom(r, terms[i].atom) : tir_point(terms[i].atom);
  tir_type type = tir_type_of(ir, e);
  tir_expr min = end_of_sum(ir, type, l, terms, atoms, false);
  return (struct tir_interval){min, end_of_sum(ir, type, l, terms, atoms, true), false};
}

static struct relaxation relaxation_of(struct tir *ir, const tir_var *relaxed, uint32_t count) {
  struct relaxation r = {ir, relaxed, count, 0};
  for (uint32_t i = 0; i < count; i++) r.mask |= 1ull << (relaxed[i] & 63);
  return r;
}

struct tir_interval tir_relax(struct tir *ir, tir_expr e, const tir_var *relaxed, uint32_t count) {
  struct relaxation r = relaxation_of(ir, relaxed, count);
  return relax(&r, e);
}

static struct tir_interval relax_range(const struct relaxation *r, tir_expr min, tir_expr extent) {
  if (tir_is_int(r->ir, extent)) {
    struct tir_interval points;
    int64_t more = tir_at(r->ir, extent)->imm - 1;
    struct tir_linear l = tir_linear_of(r->ir, min);
    if (l.count <= MOST_TERMS && tir_is_index(r->ir, min) && relax_plainly(r, min, l, more, &points)) return points;
    points = relax(r, min);
    if (more && points.max) points.max = plus(r->ir, points.max, more);
    return points;
  }
  struct tir_interval i = tir_interval_of(r->ir, min, extent);
  if (i.min == i.max) return relax(r, i.min);
  return (struct tir_interval){relax(r, i.min).min, relax(r, i.max).max, false};
}

void tir_relax_region(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                      struct tir_interval *out) {
  struct relaxation r = relaxation_of(ir, relaxed, count);
  for (uint32_t i = 0; i < rank; i++) out[i] = relax_range(&r, ranges[2 * i], ranges[2 * i + 1]);
}

void tir_subst_iters(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    tir_subst_var(ir, ir->iters.at[i].var, ir->iters.at[i].binding);
}

void tir_region_over_loops(struct tir *ir, tir_block block, struct tir_region region, tir_expr *ranges) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  tir_subst_iters(ir, block);
  for (uint32_t i = 0; i < 2 * tir_buffer_at(ir, region.buffer)->rank; i++)
    ranges[i] = tir_subst(ir, ir->operands.at[region.ranges + i]);
  tir_subst_clear(ir);
}

tir_expr tir_over_loops(struct tir *ir, tir_stmt s, tir_expr e) {
  assert(e && e < ir->exprs.count);
  for (tir_block b = tir_is(ir, s, TIR_BLOCK) ? s : tir_parent_block(ir, s); b; b = tir_parent_block(ir, b)) {
    struct tir_span iters = tir_block_at(ir, b)->iters;
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
      tir_subst_var(ir, ir->iters.at[i].var, ir->iters.at[i].binding);
    e = tir_subst(ir, e);
    tir_subst_clear(ir);
  }
  return e;
}

/* ---- Exact regions ---- */

/* What min + [0, extent) covers while min runs through a progression. False: it is strided, or may be. */
static bool cover_progression(struct tir *ir, struct tir_progression p, tir_expr extent, struct tir_interval *out) {
  if (tir_is_const(ir, extent, 0)) {
    *out = tir_nothing();
    return true;
  }
  if (!p.scale) {
    *out = tir_interval_of(ir, p.base, extent);
    return true;
  }
  if (tir_is_const(ir, p.extent, 0)) {
    *out = tir_nothing();
    return true;
  }
  if (tir_type_of(ir, extent) != tir_type_of(ir, p.scale)) extent = tir_cast(ir, tir_type_of(ir, p.scale), extent);
  tir_expr reach = tir_mul(ir, plus(ir, p.extent, -1), p.scale);
  bool falls = tir_at(ir, p.scale)->hi < 0;
  tir_expr step = falls ? tir_sub(ir, tir_int(ir, tir_type_of(ir, p.scale), 0), p.scale) : p.scale;
  if (step != extent && !tir_prove(ir, tir_make(ir, TIR_GE, extent, step))) return false;
  if (falls)
    *out = tir_interval_of(ir, tir_add(ir, p.base, reach), tir_sub(ir, extent, reach));
  else
    *out = tir_interval_of(ir, p.base, tir_add(ir, extent, reach));
  return true;
}

bool tir_region_exact(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                      tir_expr predicate, struct tir_interval *out) {
  tir_expr mins[MOST_RANK];
  struct tir_progression progressions[MOST_RANK];
  int64_t scales[MOST_RANK];
  if (rank == 0) return true;
  if (rank > MOST_RANK) return false;
  for (uint32_t i = 0; i < rank; i++) {
    if (!tir_is_int(ir, ranges[2 * i + 1])) return false;
    mins[i] = ranges[2 * i];
  }
  switch (iter_short_cover(ir, mins, rank, relaxed, count, predicate, scales)) {
  case ITER_NO: return false;
  case ITER_YES: /* the box is what lies between the ends, unless steps are longer than what each step covers */
    for (uint32_t i = 0; i < rank; i++)
      if (tir_at(ir, ranges[2 * i + 1])->imm < scales[i]) return false;
    tir_relax_region(ir, ranges, rank, relaxed, count, out);
    return true;
  default: break;
  }
  if (!iter_covers_box(ir, mins, rank, relaxed, count, predicate, progressions)) return false;
  for (uint32_t i = 0; i < rank; i++)
    if (!cover_progression(ir, progressions[i], ranges[2 * i + 1], &out[i])) return false;
  return true;
}

bool tir_region_is_box(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                       tir_expr predicate, struct tir_interval *out) {
  enum { MOST_LOOPS = 32 };
  tir_expr there[2 * MOST_RANK];
  tir_var others[MOST_LOOPS];
  struct tir_interval box[MOST_RANK];
  if (rank > MOST_RANK || count > MOST_LOOPS) return false;
  bool found = tir_region_exact(ir, ranges, rank, relaxed, count, predicate, box);
  if (!found) {
    uint32_t left = tir_subst_single(ir, relaxed, count, predicate, others);
    for (uint32_t i = 0; i < 2 * rank; i++) there[i] = tir_subst(ir, ranges[i]);
    if (predicate) predicate = tir_subst(ir, predicate);
    tir_subst_clear(ir);
    found = left < count && tir_region_exact(ir, there, rank, others, left, predicate, box);
  }
  for (uint32_t i = 0; i < rank && found && out; i++) out[i] = box[i];
  return found;
}

void tir_region_upper_bound(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed,
                            uint32_t count, tir_expr predicate, struct tir_interval *out) {
  if (tir_region_exact(ir, ranges, rank, relaxed, count, predicate, out)) return;
  struct relaxation r = relaxation_of(ir, relaxed, count);
  for (uint32_t i = 0; i < rank; i++) {
    struct tir_progression p;
    tir_expr min = ranges[2 * i], extent = ranges[2 * i + 1];
    bool affine = iter_covers_box(ir, &min, 1, relaxed, count, predicate, &p);
    tir_expr widest = relax(&r, extent).max;
    if (affine && widest && cover_progression(ir, p, widest, &out[i])) continue;
    out[i] = relax_range(&r, min, extent);
  }
}

/* ---- Seen from a place ---- */

enum { MOST_RUNNING = 64 };

struct running {
  tir_expr ranges[2 * MOST_RANK];
  tir_var vars[MOST_RUNNING];
  uint32_t count, rank;
};

static bool open_running(struct tir *ir, tir_block block, struct tir_region region, tir_stmt high, tir_symbol memory,
                         struct running *r) {
  r->rank = tir_buffer_at(ir, region.buffer)->rank;
  r->count = tir_running_loops(ir, block, high, memory, r->vars, MOST_RUNNING);
  if (r->count > MOST_RUNNING || r->rank > MOST_RANK) return false;
  tir_region_over_loops(ir, block, region, r->ranges);
  return true;
}

bool tir_region_from(struct tir *ir, tir_block block, struct tir_region region, tir_stmt high, tir_symbol memory,
                     struct tir_interval *out) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, region.buffer));
  struct running r;
  if (!open_running(ir, block, region, high, memory, &r)) return false;
  tir_relax_region(ir, r.ranges, r.rank, r.vars, r.count, out);
  return true;
}

bool tir_exact_region_from(struct tir *ir, tir_block block, struct tir_region region, tir_stmt high, tir_symbol memory,
                           struct tir_interval *out) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, region.buffer));
  struct running r;
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  return open_running(ir, block, region, high, memory, &r) &&
         tir_region_exact(ir, r.ranges, r.rank, r.vars, r.count, predicate, out);
}

bool tir_exact_iterations(struct tir *ir, tir_block block, tir_stmt high, struct tir_interval *out) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  uint32_t count = tir_block_at(ir, block)->iters.count, loops = tir_loop_vars(ir, block, high, NULL, 0);
  tir_expr *ranges = malloc((2 * (size_t)count + loops + 1) * sizeof *ranges);
  if (!ranges) abort();
  for (uint32_t i = 0; i < count; i++) {
    ranges[2 * i] = tir_iters(ir, block)[i].binding;
    ranges[2 * i + 1] = tir_int(ir, tir_type_of(ir, ranges[2 * i]), 1);
  }
  tir_var *vars = ranges + 2 * count;
  tir_loop_vars(ir, block, high, vars, loops);
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  bool exact = tir_region_exact(ir, ranges, count, vars, loops, predicate, out) &&
               tir_holds_somewhere(ir, predicate, TIR_NONE, ranges, count, vars, loops);
  for (uint32_t i = 0; i < count && exact; i++)
    exact = !out[i].empty && out[i].min && out[i].max && !tir_uses_let(ir, ranges[2 * i]);
  free(ranges);
  return exact;
}

bool tir_region_covers(struct tir *ir, tir_buffer buffer, const struct tir_interval *produced,
                       const struct tir_interval *consumed) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  for (uint32_t i = 0; i < rank; i++) {
    if (produced[i].empty) return false;
    if (tir_interval_covers(ir, produced[i], consumed[i])) continue;
    tir_expr shape = ir->operands.at[tir_buffer_at(ir, buffer)->shape + i];
    struct tir_interval all = tir_interval_of(ir, tir_int(ir, tir_type_of(ir, shape), 0), shape);
    struct tir_interval given = tir_interval_intersect(ir, produced[i], all);
    if (!tir_interval_covers(ir, given, tir_interval_intersect(ir, consumed[i], all))) return false;
  }
  return true;
}
