/* Predicates: bounds of iterators.
 *
 * A bound of one variable narrows its domain. A bound of a mixed radix number, 0 <= a*16 + b < n, makes that number an
 * iterator of extent n, of which a and b are now pieces: whatever they are used in, that they depend on each other is
 * known. Other bounds are matched as they stand: the sum that they bound is one iterator where it appears whole.
 * Small bounds come first, since larger ones are made of them. */
#include "iter_map.h"
#include "linear.h"

enum { MOST_TERMS = 64, MOST_PIECES = 32 };

/* ---- Predicates ---- */

static uint32_t size_of(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind < TIR_ADD || n->kind > TIR_OR) return 1;
  return 1 + size_of(ir, n->a) + size_of(ir, n->b);
}

static void narrow(struct tir_iter_map *m, struct iter_domains d, tir_expr iter, tir_expr lower, tir_expr upper) {
  struct tir *ir = m->ir;
  for (uint32_t i = 0; i < m->var_count; i++) {
    if (m->vars[i] != tir_at(ir, iter)->ref) continue;
    if (lower) d.min[i] = tir_make(ir, TIR_MAX, d.min[i], lower);
    if (upper) d.end[i] = tir_make(ir, TIR_MIN, d.end[i], upper);
  }
}

/* Reads a comparison as lower <= iter < upper, with all that holds an iterator on one side. */
static bool read_comparison(struct tir_iter_map *m, tir_expr e, struct iter_domains d) {
  struct tir *ir = m->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind < TIR_LT || n.kind > TIR_GE || !tir_is_index(ir, n.a) || !tir_is_index(ir, n.b)) return false;
  bool a = iter_holds_iterator(m, n.a), b = iter_holds_iterator(m, n.b);
  if (!a && !b) return true;
  bool greater = n.kind == TIR_GT || n.kind == TIR_GE, strict = n.kind == TIR_LT || n.kind == TIR_GT;
  tir_expr iter = a ? n.a : n.b, bound = a ? n.b : n.a;
  if (!a) greater = !greater;
  tir_type type = tir_type_of(ir, iter);
  if (a && b) {
    struct tir_linear l = tir_linear_of(ir, tir_sub(ir, n.a, n.b));
    struct tir_term with[MOST_TERMS], without[MOST_TERMS];
    uint32_t withs = 0, withouts = 0;
    if (l.count > MOST_TERMS) return false;
    for (uint32_t i = 0; i < l.count; i++) {
      struct tir_term t = ir->terms.at[l.first + i];
      if (iter_holds_iterator(m, t.atom))
        with[withs++] = t;
      else
        without[withouts++] = (struct tir_term){-t.coefficient, t.atom};
    }
    iter = tir_from_terms(ir, type, 0, with, withs);
    bound = tir_from_terms(ir, type, -l.constant, without, withouts);
  }
  /* iter < bound, iter <= bound, iter > bound, iter >= bound */
  tir_expr edge = strict == greater ? tir_add(ir, bound, iter_int(m, type, 1)) : bound;
  tir_expr lower = greater ? edge : TIR_NONE, upper = greater ? TIR_NONE : edge;
  if (tir_at(ir, iter)->kind == TIR_VAR)
    narrow(m, d, iter, lower, upper);
  else
    iter_add_constraints(m, (struct iter_constraint){iter, lower, upper, size_of(ir, iter)});
  return true;
}

/* Conjuncts from the last on; the smaller constraints first in the end. */
bool iter_read_predicate(struct tir_iter_map *m, tir_expr e, struct iter_domains d) {
  const struct tir_expr_node *n = tir_at(m->ir, e);
  tir_expr a = n->a;
  if (n->kind == TIR_AND) return iter_read_predicate(m, n->b, d) && iter_read_predicate(m, a, d);
  return read_comparison(m, e, d);
}

static void sort_constraints(struct tir_iter_map *m) {
  struct iter_constraint *c = m->constraints.at;
  for (uint32_t i = 1; i < m->constraints.count; i++) {
    struct iter_constraint t = c[i];
    uint32_t j = i;
    for (; j > 0 && t.size < c[j - 1].size; j--) c[j] = c[j - 1];
    c[j] = t;
  }
}

/* ---- Bounds of mixed radix numbers ---- */

struct number { /* pieces, innermost first */
  struct iter_split at[MOST_PIECES];
  uint32_t count;
  tir_expr extent;
};

/* Orders the splits of a sum as the digits of a number. Those of extent 1 are left out. */
static bool read_number(struct tir_iter_map *m, struct iter_sum sum, struct number *n) {
  bool used[MOST_PIECES] = {false};
  if (sum.count > MOST_PIECES || sum.count == 0) return false;
  n->count = 0;
  n->extent = iter_int(m, tir_type_of(m->ir, sum.base), 1);
  uint32_t units = 0;
  for (uint32_t i = 0; i < sum.count; i++)
    if (iter_is(m, m->splits.at[sum.first + i].extent, 1)) used[i] = true, units++;
  while (n->count + units < sum.count) {
    uint32_t i = 0;
    while (i < sum.count && (used[i] || !iter_same(m, m->splits.at[sum.first + i].scale, n->extent))) i++;
    if (i == sum.count) return false;
    used[i] = true;
    n->at[n->count] = m->splits.at[sum.first + i];
    n->extent = tir_mul(m->ir, n->extent, n->at[n->count++].extent);
  }
  return n->count > 0;
}

/* Makes a number an iterator of `extent`, and its pieces pieces of that. */
static void make_iterator(struct tir_iter_map *m, struct iter_sum sum, const struct number *n, tir_expr extent) {
  tir_type type = tir_type_of(m->ir, sum.base);
  struct iter_sum source = {m->splits.count, n->count, iter_int(m, type, 0)};
  for (uint32_t i = n->count; i-- > 0;) iter_add_splits(m, n->at[i]);
  uint32_t mark = iter_add_marks(m, (struct iter_mark){.sum = source, .extent = extent, .type = type});
  for (uint32_t i = 0; i < sum.count; i++) {
    const struct iter_split *split = &m->splits.at[sum.first + i];
    if (!iter_is(m, split->extent, 1)) continue;
    m->marks.at[split->mark].loose = true;
    iter_add_units(m, (struct iter_unit){mark, split->mark});
  }
  for (uint32_t i = 0; i < n->count; i++) {
    struct iter_split to = {mark, n->at[i].scale, n->at[i].extent, iter_int(m, type, 1)};
    if (i + 1 == n->count || iter_at_least(m, tir_mul(m->ir, to.lower, to.extent), extent))
      to.extent = iter_ceil_quotient(m, extent, to.lower);
    iter_add_aliases(m, (struct iter_alias){n->at[i], to});
  }
}

/* ---- Groups ---- */

static bool is_whole(const struct tir_iter_map *m, const struct iter_split *split) {
  return iter_is(m, split->lower, 1) && split->extent == m->marks.at[split->mark].extent;
}

static bool is_divided(const struct tir_iter_map *m, uint32_t mark) {
  for (uint32_t i = 0; i < m->splits.count; i++)
    if (m->splits.at[i].mark == mark && !is_whole(m, &m->splits.at[i])) return true;
  return false;
}

static bool has_alias(const struct tir_iter_map *m, uint32_t mark) {
  for (uint32_t i = 0; i < m->aliases.count; i++)
    if (m->aliases.at[i].of.mark == mark) return true;
  return false;
}

/* A group that is divided, and whose members are not yet pieces of another. */
static bool read_group(struct tir_iter_map *m, uint32_t mark, struct number *n) {
  const struct iter_mark *group = &m->marks.at[mark];
  if (group->source || group->padded_from || !is_divided(m, mark) || !read_number(m, group->sum, n)) return false;
  if (n->count < 2 || !iter_same(m, n->extent, group->extent)) return false;
  for (uint32_t i = 0; i < n->count; i++)
    if (has_alias(m, n->at[i].mark)) return false;
  return true;
}

/* Quotients and remainders of one group may have come apart: (a*40 + b) // 360 is a // 9, while (a*40 + b) % 30 is of
 * the group still. As pieces of the group they are seen to be parts of one number. The largest groups come first. */
bool iter_regroup(struct tir_iter_map *m) {
  uint32_t marks = m->marks.count;
  bool any = false;
  for (;;) {
    struct number best, n;
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < marks; i++) {
      if (!read_group(m, i, &n)) continue;
      if (found != UINT32_MAX && tir_at(m->ir, n.extent)->hi <= tir_at(m->ir, best.extent)->hi) continue;
      best = n;
      found = i;
    }
    if (found == UINT32_MAX) return any;
    make_iterator(m, m->marks.at[found].sum, &best, best.extent);
    any = true;
  }
}

/* ---- Other bounds ---- */

static const struct iter_split *split_at(const struct tir_iter_map *m, struct iter_sum s, uint32_t i) {
  return &m->splits.at[s.first + i];
}

/* Constrained iterators hold or miss each other. */
static bool check_constraints(const struct tir_iter_map *m) {
  for (uint32_t i = 0; i < m->constrained.count; i++)
    for (uint32_t j = i + 1; j < m->constrained.count; j++) {
      struct iter_sum a = m->constrained.at[i], b = m->constrained.at[j];
      uint32_t shared = 0;
      for (uint32_t x = 0; x < a.count; x++) {
        bool found = false;
        for (uint32_t y = 0; y < b.count && !found; y++)
          found = iter_same_piece(split_at(m, a, x), split_at(m, b, y)) &&
                  split_at(m, a, x)->scale == split_at(m, b, y)->scale;
        shared += found;
      }
      if (shared != 0 && shared != a.count) return false;
    }
  return true;
}

/* Makes a sum that is bounded one iterator, of the extent that the bounds leave. */
static bool bound_sum(struct tir_iter_map *m, struct iter_sum sum, struct iter_constraint c) {
  struct tir *ir = m->ir;
  struct iter_sum fused;
  if (!iter_fuse(m, sum, false, &fused) || !iter_is(m, m->splits.at[fused.first].scale, 1)) return false;
  struct iter_fused *f = iter_find_fused(m, m->splits.at[fused.first].mark);
  assert(f);
  struct iter_mark mark = m->marks.at[f->mark];
  tir_expr min = f->offset, end = tir_add(ir, f->offset, mark.extent);
  if (c.lower) min = tir_make(ir, TIR_MAX, c.lower, min);
  if (c.upper) end = iter_at_least(m, end, c.upper) ? c.upper : tir_make(ir, TIR_MIN, c.upper, end);
  f->structured.base = tir_sub(ir, f->structured.base, tir_sub(ir, min, f->offset));
  mark.sum = f->structured;
  mark.extent = tir_sub(ir, end, min);
  f->offset = min;
  f->mark = iter_add_marks(m, mark);
  f->constrained = true;
  iter_add_constrained(m, f->flat);
  return true;
}

static bool is_used(const struct tir_iter_map *m, uint32_t mark) {
  uint32_t var = m->marks.at[mark].var;
  for (uint32_t i = 0; i < m->given_count && var; i++)
    if (tir_uses_var(m->ir, m->given[i], m->vars[var - 1])) return true;
  return false;
}

/* A bound is looked for at its innermost iterator, and of those of scale 1 one of extent 1 is innermost: where no index
 * uses that, the bound is never met with. */
static bool is_never_met(const struct tir_iter_map *m, struct iter_sum sum) {
  for (uint32_t i = 0; i < sum.count; i++) {
    const struct iter_split *split = split_at(m, sum, i);
    if (iter_is(m, split->extent, 1) && iter_is(m, split->scale, 1) && !is_used(m, split->mark)) return true;
  }
  return false;
}

static bool apply_constraint(struct tir_iter_map *m, struct iter_constraint c) {
  struct tir *ir = m->ir;
  struct iter_sum sum;
  struct number n;
  if (!iter_rewrite(m, c.iter, &sum)) return false;
  iter_join(m, &sum);
  tir_expr zero = iter_int(m, tir_type_of(ir, c.iter), 0);
  if (c.lower) c.lower = tir_sub(ir, c.lower, sum.base);
  if (c.upper) c.upper = tir_sub(ir, c.upper, sum.base);
  sum.base = zero;
  bool from_zero = !c.lower || iter_at_least(m, zero, c.lower);
  if (!from_zero || !read_number(m, sum, &n)) return bound_sum(m, sum, c);
  if (!c.upper || iter_at_least(m, c.upper, n.extent)) return true; /* says nothing new */
  bool within = iter_at_least(m, n.extent, c.upper);
  tir_expr extent = within ? c.upper : tir_make(ir, TIR_MIN, c.upper, n.extent);
  if (tir_at(ir, extent)->hi <= 0) return bound_sum(m, sum, c);
  /* Where the outermost piece has one value left, only the whole number is known to be one. */
  if (n.count > 1 && iter_at_least(m, n.at[n.count - 1].scale, extent)) return bound_sum(m, sum, c);
  if (is_never_met(m, sum)) {
    m->ignores = true;
    return true;
  }
  make_iterator(m, sum, &n, extent);
  return true;
}

bool iter_constrain(struct tir_iter_map *m) {
  sort_constraints(m);
  for (uint32_t i = 0; i < m->constraints.count; i++)
    if (!apply_constraint(m, m->constraints.at[i])) return false;
  return check_constraints(m);
}
