/* Dependences between iterations: Banerjee's test with direction vectors, each dimension by itself. */
#include "dependence.h"

#include "tir/arith/bounds.h"

/* ---- Digits ---- */

/* Which part of a variable an atom is: its digits of units from `low` on, below `high`, in units of `low`. */
struct part {
  tir_var var;
  int64_t low, high;
};

/* The part that v // c, v % c and their compositions are. False: the atom is none. */
static bool find_part(const struct tir *ir, tir_expr atom, struct part *out) {
  const struct tir_expr_node *n = tir_at(ir, atom);
  if (n->kind == TIR_VAR) {
    *out = (struct part){n->ref, 1, TIR_POS_INF};
    return true;
  }
  if ((n->kind != TIR_FLOORDIV && n->kind != TIR_FLOORMOD) || !tir_is_int(ir, n->b) || tir_at(ir, n->b)->imm <= 0 ||
      !find_part(ir, n->a, out))
    return false;
  int64_t by = tir_sat_mul(out->low, tir_at(ir, n->b)->imm);
  if (n->kind == TIR_FLOORDIV)
    out->low = by;
  else if (by < out->high)
    out->high = by;
  MS_CHECK(out->low >= 1 && out->high >= 1);
  return out->low < out->high && out->low != TIR_POS_INF;
}

struct cuts {
  int64_t at[TIR_MOST_DIGITS];
  uint32_t count;
  bool nested; /* each divides the next */
};

static void add_cut(struct cuts *cuts, int64_t cut, int64_t extent) {
  uint32_t i = cuts->count;
  if (cut <= 1 || cut >= extent) return;
  for (uint32_t k = 0; k < cuts->count; k++)
    if (cuts->at[k] == cut) return;
  if (cuts->count == TIR_MOST_DIGITS) {
    cuts->nested = false;
    return;
  }
  for (; i > 0 && cuts->at[i - 1] > cut; i--) cuts->at[i] = cuts->at[i - 1];
  cuts->at[i] = cut;
  cuts->count++;
}

static void cut_by(struct tir *ir, tir_expr e, tir_var v, int64_t extent, struct cuts *cuts) {
  struct tir_linear l = tir_linear_of(ir, e);
  for (uint32_t t = 0; t < l.count; t++) {
    struct part part;
    if (!find_part(ir, ir->terms.at[l.first + t].atom, &part) || part.var != v) continue;
    add_cut(cuts, part.low, extent);
    add_cut(cuts, part.high, extent);
  }
}

static int64_t extent_of(const struct tir *ir, tir_var v) {
  tir_expr extent = ir->vars.at[v].extent;
  return extent && tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : TIR_POS_INF;
}

static int64_t first_of(const struct tir *ir, tir_var v) {
  tir_expr min = ir->vars.at[v].min;
  return min && tir_is_int(ir, min) ? tir_at(ir, min)->imm : TIR_NEG_INF;
}

bool tir_find_digits(struct tir *ir, const tir_var *vars, uint32_t var_count, const struct tir_element_box *boxes,
                     uint32_t box_count, struct tir_digits *out) {
  out->count = 0;
  for (uint32_t i = 0; i < var_count; i++) {
    int64_t first = first_of(ir, vars[i]), extent = extent_of(ir, vars[i]), above = extent;
    struct cuts cuts = {.nested = first == 0};
    for (uint32_t b = 0; b < box_count; b++)
      for (uint32_t d = 0; d < (boxes[b].buffer ? tir_buffer_at(ir, boxes[b].buffer)->rank : 1); d++)
        cut_by(ir, boxes[b].ranges[2 * d], vars[i], extent, &cuts);
    for (uint32_t k = 1; k < cuts.count; k++) cuts.nested &= cuts.at[k] % cuts.at[k - 1] == 0;
    if (!cuts.nested) cuts.count = 0;
    if (out->count + cuts.count + 1 > TIR_MOST_DIGITS) return false;
    for (uint32_t k = cuts.count + 1; k-- > 0;) {
      int64_t unit = k ? cuts.at[k - 1] : 1, digit = above;
      MS_CHECK(unit >= 1 && (above == TIR_POS_INF || above >= 0));
      if (above != TIR_POS_INF) digit = above / unit + (above % unit != 0);
      out->at[out->count++] = (struct tir_digit){vars[i], unit, first, digit};
      above = unit;
    }
  }
  return true;
}

/* Of what the digit says, remainders by `high` leave nothing out, nor do they turn what is negative around. */
static bool stays_below(struct tir_digit d, int64_t high) {
  return high == TIR_POS_INF || (d.first >= 0 && tir_sat_add(d.first, tir_sat_mul(d.unit, d.extent)) <= high);
}

bool tir_order_digits(const struct tir *ir, const struct tir_digits *digits, const tir_expr *parts, uint32_t count,
                      struct tir_digits *out) {
  uint64_t taken = 0;
  static_assert(TIR_MOST_DIGITS <= 64, "a bit each");
  out->count = 0;
  for (uint32_t p = 0; p < count; p++) {
    struct part part;
    if (tir_is_int(ir, parts[p])) continue;
    if (!find_part(ir, parts[p], &part)) return false;
    for (uint32_t i = 0; i < digits->count; i++) {
      struct tir_digit d = digits->at[i];
      if (d.var != part.var || d.unit < part.low || d.unit >= part.high || taken >> i & 1) continue;
      if (!stays_below(d, part.high)) return false;
      taken |= 1ull << i;
      out->at[out->count++] = d;
    }
  }
  for (uint32_t i = 0; i < digits->count; i++) {
    if (taken >> i & 1) continue;
    if (digits->at[i].extent != 1) return false;
    out->at[out->count++] = digits->at[i];
  }
  MS_CHECK(out->count == digits->count);
  return true;
}

/* ---- The test ---- */

/* One dimension: what lies between the elements of both, a sum over digits and the rest. */
struct gap {
  int64_t first[TIR_MOST_DIGITS], second[TIR_MOST_DIGITS]; /* coefficients of each digit in the two accesses */
  struct tir_bounds rest;
  int64_t constant, step; /* step: 0, or what all that is in the rest is a multiple of; 1: of nothing */
};

static bool loads_written(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_LOAD && (tir_buffer_at(ir, n->ref)->writers || tir_buffer_at(ir, n->ref)->undeclared);
}

bool tir_varies_by_itself(const struct tir *ir, tir_expr e) {
  MS_CHECK(e && e < ir->exprs.count);
  return tir_any_node(ir, e, TIR_HAS_LOAD, loads_written, NULL) || tir_uses_let(ir, e);
}

static bool is_inner(const struct tir *ir, tir_expr atom, const struct tir_digits *digits, const tir_var *inner,
                     uint32_t count) {
  for (uint32_t i = 0; i < digits->count; i++)
    if (tir_uses_var(ir, atom, digits->at[i].var)) return true;
  return tir_uses_any_var(ir, atom, inner, count) || tir_varies_by_itself(ir, atom);
}

/* The atom is made of whole digits: adds the coefficient of each. */
static bool add_digits(const struct tir *ir, struct tir_term term, const struct tir_digits *digits, int64_t *out) {
  struct part part;
  uint32_t found = 0;
  bool whole = false;
  if (!find_part(ir, term.atom, &part)) return false;
  for (uint32_t i = 0; i < digits->count; i++) {
    if (digits->at[i].var != part.var) continue;
    whole |= digits->at[i].unit == part.low;
    found++;
  }
  if (!found || !whole) return false;
  for (uint32_t i = 0; i < digits->count; i++) {
    struct tir_digit d = digits->at[i];
    if (d.var == part.var && d.unit < part.high && d.unit >= part.low && !stays_below(d, part.high))
      return false; /* the remainder ends within the digit */
  }
  for (uint32_t i = 0; i < digits->count; i++) {
    struct tir_digit d = digits->at[i];
    if (d.var != part.var || d.unit < part.low || d.unit >= part.high) continue;
    MS_CHECK(d.unit % part.low == 0);
    out[i] = tir_sat_add(out[i], tir_sat_mul(term.coefficient, d.unit / part.low));
  }
  return true;
}

static void add_rest(struct gap *g, struct tir_bounds bounds, int64_t coefficient) {
  g->rest = tir_add_bounds(g->rest, tir_scale_bounds(coefficient, bounds));
  g->step = tir_gcd(g->step, llabs(coefficient));
}

static int64_t coefficient_in(const struct tir *ir, struct tir_linear l, tir_expr atom) {
  for (uint32_t t = l.first; t < l.first + l.count; t++)
    if (ir->terms.at[t].atom == atom) return ir->terms.at[t].coefficient;
  return 0;
}

/* Terms of one access, and, for atoms that have the same value in both, what is left of them. */
static void add_terms(struct tir *ir, struct tir_linear own, struct tir_linear other, int sign,
                      const struct tir_digits *digits, const tir_var *inner, uint32_t inner_count, struct gap *g) {
  for (uint32_t t = 0; t < own.count; t++) {
    struct tir_term term = ir->terms.at[own.first + t];
    if (add_digits(ir, term, digits, sign > 0 ? g->first : g->second)) continue;
    if (is_inner(ir, term.atom, digits, inner, inner_count)) {
      add_rest(g, tir_bounds_of(ir, term.atom), sign * term.coefficient);
      continue;
    }
    int64_t there = coefficient_in(ir, other, term.atom);
    if (sign < 0 && there) continue; /* when the first's were added */
    if (term.coefficient != there) add_rest(g, tir_bounds_of(ir, term.atom), sign * (term.coefficient - there));
  }
}

/* What a digit may add to the gap. False: it cannot lie so. */
static bool add_digit(struct gap *g, uint32_t i, struct tir_digit digit, enum tir_direction direction) {
  int64_t a = g->first[i], b = g->second[i], last = tir_sat_add(digit.extent, -1);
  if (last == 0 && (direction == TIR_LATER || direction == TIR_EARLIER)) return false;
  bool known = digit.first != TIR_NEG_INF && last != TIR_POS_INF;
  struct tir_bounds range = {digit.first, known ? tir_sat_add(digit.first, last) : TIR_POS_INF};
  if (direction == TIR_SAME) {
    if (a != b) add_rest(g, range, a - b);
  } else if (a != b) {
    add_rest(g, range, a);
    add_rest(g, range, -b);
  } else if (a) { /* a * (x - y): the second's value, y, is x and what lies between */
    struct tir_bounds between = {direction == TIR_EARLIER ? 1 : tir_sat_neg(last), direction == TIR_LATER ? -1 : last};
    add_rest(g, between, a);
  }
  return true;
}

static bool dimension_may_meet(struct tir *ir, const tir_expr *a, const tir_expr *b, const struct tir_digits *digits,
                               const enum tir_direction *directions, const tir_var *inner, uint32_t inner_count) {
  struct gap g = {.rest = {0, 0}};
  struct tir_linear la = tir_linear_of(ir, a[0]), lb = tir_linear_of(ir, b[0]);
  add_terms(ir, la, lb, 1, digits, inner, inner_count, &g);
  add_terms(ir, lb, la, -1, digits, inner, inner_count, &g);
  for (uint32_t i = 0; i < digits->count; i++)
    if (!add_digit(&g, i, digits->at[i], directions[i])) return false;
  int64_t constant = 0;
  if (__builtin_sub_overflow(la.constant, lb.constant, &constant)) return true;
  struct tir_bounds size_a = tir_bounds_of(ir, a[1]), size_b = tir_bounds_of(ir, b[1]);
  bool points = size_a.hi <= 1 && size_b.hi <= 1;
  if (points && g.step ? constant % g.step != 0 : points && constant != 0) return false;
  g.rest = tir_add_bounds(g.rest, (struct tir_bounds){constant, constant});
  int64_t before = tir_sat_add(size_b.hi, -1), after = tir_sat_add(size_a.hi, -1);
  return tir_sat_add(g.rest.hi, after) >= 0 && tir_sat_add(g.rest.lo, tir_sat_neg(before)) <= 0;
}

bool tir_may_meet(struct tir *ir, const struct tir_element_box *a, const struct tir_element_box *b,
                  const struct tir_digits *digits, const enum tir_direction *directions, const tir_var *inner,
                  uint32_t inner_count) {
  assert(a->buffer == b->buffer);
  uint32_t rank = a->buffer ? tir_buffer_at(ir, a->buffer)->rank : 1;
  assert(rank <= TIR_MOST_BOX_RANK);
  for (uint32_t i = 0; i < digits->count && rank == 0; i++)
    if (digits->at[i].extent == 1 && (directions[i] == TIR_LATER || directions[i] == TIR_EARLIER)) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (!dimension_may_meet(ir, a->ranges + 2 * d, b->ranges + 2 * d, digits, directions, inner, inner_count))
      return false;
  return true;
}
