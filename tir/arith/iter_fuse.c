/* Fusing the splits of a sum into one iterator.
 *
 * Splits whose scales are a mixed radix system are one iterator: a*12 + b*4 + c with c in [0, 4), b in [0, 3). Where no
 * bijection is asked for, a radix may be less than its place: the values overlap, but still leave no gap. A predicate
 * that bounds a part of the sum makes that part an iterator of the bounded extent, and the rest must fit that. */
#include "iter_map.h"

enum { MOST_SPLITS = 64, NOT_FOUND = -1 };

static struct iter_split *split_at(const struct tir_iter_map *m, struct iter_sum s, uint32_t i) {
  MS_CHECK(i < s.count && s.first + i < m->splits.count);
  return &m->splits.at[s.first + i];
}

/* The same piece of the same iterator, whatever the scale. */
bool iter_same_piece(const struct iter_split *a, const struct iter_split *b) {
  return a->mark == b->mark && a->lower == b->lower && a->extent == b->extent;
}

static bool same_sum(const struct tir_iter_map *m, struct iter_sum a, struct iter_sum b) {
  if (a.count != b.count || a.base != b.base) return false;
  for (uint32_t i = 0; i < a.count; i++) {
    const struct iter_split *x = split_at(m, a, i), *y = split_at(m, b, i);
    if (!iter_same_piece(x, y) || x->scale != y->scale) return false;
  }
  return true;
}

/* Appends splits that were gathered innermost first. */
static struct iter_sum sum_reversed(struct tir_iter_map *m, const struct iter_split *splits, uint32_t count,
                                    tir_expr base) {
  struct iter_sum s = {m->splits.count, count, base};
  for (uint32_t i = count; i-- > 0;) iter_add_splits(m, splits[i]);
  return s;
}

/* ---- Looking for the next split ---- */

struct split_search {
  struct tir_iter_map *m;
  struct iter_split at[MOST_SPLITS];
  uint32_t count;
  bool used[MOST_SPLITS];
  int first_unit; /* position of the first split of extent 1 */
};

static bool open_search(struct split_search *s, struct tir_iter_map *m, struct iter_sum sum) {
  MS_CHECK(sum.first + sum.count <= m->splits.count);
  if (sum.count > MOST_SPLITS) return false;
  s->m = m;
  s->count = sum.count;
  s->first_unit = (int)sum.count;
  for (uint32_t i = sum.count; i-- > 0;) {
    s->at[i] = *split_at(m, sum, i);
    s->used[i] = false;
    if (iter_is(m, s->at[i].extent, 1)) s->first_unit = (int)i;
  }
  return true;
}

static int factors_of(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_MUL ? factors_of(ir, n->a) + factors_of(ir, n->b) : 1;
}

enum { ANY_MARK = -1 };
static bool is_open(const struct split_search *s, int i, int64_t mark) {
  return !s->used[i] && (mark == ANY_MARK || s->at[i].mark == mark);
}

/* The split of the least scale among those not used, up to position `last`: by constant, else by number of factors. */
static int find_base(const struct split_search *s, int64_t mark, int last) {
  const struct tir *ir = s->m->ir;
  int base = NOT_FOUND;
  int64_t least = 0;
  for (int i = last; i >= 0; i--) {
    if (!is_open(s, i, mark) || !tir_is_int(ir, s->at[i].scale)) continue;
    int64_t scale = tir_at(ir, s->at[i].scale)->imm;
    bool prior = base != NOT_FOUND && scale == least && iter_is(s->m, s->at[i].extent, 1) &&
                 !iter_is(s->m, s->at[base].extent, 1);
    if (base != NOT_FOUND && scale >= least && !prior) continue;
    least = scale;
    base = i;
  }
  if (base != NOT_FOUND) return base;
  int fewest = 0;
  for (int i = last; i >= 0; i--) {
    if (!is_open(s, i, mark)) continue;
    int factors = factors_of(ir, s->at[i].scale);
    if (base != NOT_FOUND && factors >= fewest) continue;
    fewest = factors;
    base = i;
  }
  return base;
}

/* A split of just this scale; one of extent 1 first, since it does not change the scale. */
static int find_scale(const struct split_search *s, tir_expr scale, int64_t mark, int last) {
  int found = NOT_FOUND;
  for (int i = last; i >= 0; i--) {
    if (!is_open(s, i, mark) || !iter_same(s->m, s->at[i].scale, scale)) continue;
    if (iter_is(s->m, s->at[i].extent, 1)) return i;
    if (found == NOT_FOUND) found = i;
    if (i <= s->first_unit) return found;
  }
  return found;
}

/* The split of the largest scale below `scale`. */
static int find_smaller_scale(const struct split_search *s, tir_expr scale) {
  int found = NOT_FOUND;
  for (int i = (int)s->count - 1; i >= 0; i--) {
    if (s->used[i]) continue;
    tir_expr own = s->at[i].scale;
    tir_expr zero = iter_int(s->m, tir_type_of(s->m->ir, own), 0);
    if (!iter_at_least(s->m, scale, own) || !iter_at_least(s->m, own, zero)) continue;
    if (found != NOT_FOUND &&
        (iter_same(s->m, s->at[found].scale, own) || !iter_at_least(s->m, own, s->at[found].scale)))
      continue;
    found = i;
  }
  return found;
}

/* ---- Joining splits of one mark ---- */

static uint32_t splits_of_mark(const struct split_search *s, uint32_t mark) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->count; i++) count += s->at[i].mark == mark;
  return count;
}

/* What reaches the end of its mark has as many values as the mark leaves. */
static void cut_to_mark(const struct tir_iter_map *m, struct iter_split *split) {
  tir_expr extent = m->marks.at[split->mark].extent;
  if (split->extent != extent && iter_at_least(m, tir_mul(m->ir, split->lower, split->extent), extent))
    split->extent = iter_ceil_quotient(m, extent, split->lower);
}

/* (x // (c*s) % m) * s + x // c % s  is  x // c % (m*s): takes outer neighbours of split `at` in as long as they fit.
 */
static struct iter_split join_from(struct split_search *s, int at, int last) {
  MS_CHECK(at >= 0 && at <= last);
  struct tir *ir = s->m->ir;
  struct iter_split joined = s->at[at];
  s->used[at] = true;
  for (;;) {
    int next = find_scale(s, tir_mul(ir, joined.extent, joined.scale), joined.mark, last);
    if (next == NOT_FOUND) return joined;
    if (!iter_same(s->m, s->at[next].lower, tir_mul(ir, joined.lower, joined.extent))) return joined;
    s->used[next] = true;
    joined.extent = tir_mul(ir, s->at[next].extent, joined.extent);
    cut_to_mark(s->m, &joined);
  }
}

static bool join_neighbours(struct tir_iter_map *m, struct iter_sum *sum) {
  struct split_search s;
  struct iter_split gathered[MOST_SPLITS];
  uint32_t count = 0;
  if (sum->count <= 1 || !open_search(&s, m, *sum)) return false;
  bool repeated = false;
  for (uint32_t i = 0; i < s.count && !repeated; i++) repeated = splits_of_mark(&s, s.at[i].mark) > 1;
  if (!repeated) return false;
  for (int last = (int)s.count - 1; last >= 0;) {
    if (s.used[last]) {
      last--;
      continue;
    }
    /* cppcheck-suppress negativeIndex ; the loop's condition holds here */
    uint32_t mark = s.at[last].mark;
    int base = splits_of_mark(&s, mark) == 1 ? last : find_base(&s, mark, last);
    /* cppcheck-suppress negativeIndex */
    gathered[count++] = splits_of_mark(&s, mark) == 1 ? s.at[last] : join_from(&s, base, last);
    s.used[base] = true;
  }
  *sum = sum_reversed(m, gathered, count, sum->base);
  return true;
}

/* The alias of a piece that `split` lies in, evenly. */
static const struct iter_alias *find_alias(const struct tir_iter_map *m, const struct iter_split *split) {
  for (uint32_t i = 0; i < m->aliases.count; i++) {
    const struct iter_split *of = &m->aliases.at[i].of;
    if (of->mark != split->mark || !iter_divides(m, split->lower, of->lower)) continue;
    if (iter_same_piece(of, split)) return &m->aliases.at[i];
    tir_expr end = tir_mul(m->ir, split->lower, split->extent), of_end = tir_mul(m->ir, of->lower, of->extent);
    if (iter_divides(m, of_end, end)) return &m->aliases.at[i];
  }
  return NULL;
}

/* A split that reaches below a piece with an alias, as the part above and the part below the piece's lower end. */
static const struct iter_alias *cut_at_alias(const struct tir_iter_map *m, struct iter_split *split,
                                             struct iter_split *below) {
  struct tir *ir = m->ir;
  tir_expr end = tir_mul(ir, split->lower, split->extent);
  for (uint32_t i = 0; i < m->aliases.count; i++) {
    tir_expr lower = m->aliases.at[i].of.lower;
    if (m->aliases.at[i].of.mark != split->mark || lower == split->lower) continue;
    if (!iter_divides(m, lower, split->lower) || !iter_divides(m, end, lower)) continue;
    tir_expr times = tir_floordiv(ir, lower, split->lower);
    struct iter_split above = {split->mark, lower, tir_floordiv(ir, end, lower), tir_mul(ir, split->scale, times)};
    const struct iter_alias *alias = iter_is(m, above.extent, 1) ? NULL : find_alias(m, &above);
    if (!alias) continue;
    *below = *split;
    below->extent = times;
    *split = above;
    return alias;
  }
  return NULL;
}

static struct iter_split through_alias(const struct tir_iter_map *m, struct iter_split split,
                                       const struct iter_alias *alias) {
  struct tir *ir = m->ir;
  tir_expr inside = tir_floordiv(ir, split.lower, alias->of.lower);
  tir_expr extent = iter_same_piece(&split, &alias->of) ? alias->to.extent : split.extent;
  split = (struct iter_split){alias->to.mark, tir_mul(ir, alias->to.lower, inside), extent, split.scale};
  cut_to_mark(m, &split);
  return split;
}

/* `cuts`: also of the upper parts of splits. */
static bool replace_aliases(struct tir_iter_map *m, struct iter_sum *sum, bool cuts) {
  struct iter_split made[MOST_SPLITS];
  uint32_t count = 0;
  bool any = false;
  if (!m->aliases.count || 2 * sum->count > MOST_SPLITS) return false;
  for (uint32_t i = sum->count; i-- > 0;) {
    struct iter_split split = *split_at(m, *sum, i), below;
    const struct iter_alias *alias = find_alias(m, &split);
    if (!alias && cuts && (alias = cut_at_alias(m, &split, &below))) made[count++] = below;
    if (alias) split = through_alias(m, split, alias);
    any |= alias != NULL;
    bool zero = alias && !iter_is(m, split.lower, 1) && iter_at_least(m, split.lower, m->marks.at[split.mark].extent);
    if (!zero) made[count++] = split;
  }
  if (any) *sum = sum_reversed(m, made, count, sum->base);
  return any;
}

bool iter_join(struct tir_iter_map *m, struct iter_sum *sum) {
  bool changed = join_neighbours(m, sum);
  while (replace_aliases(m, sum, true)) join_neighbours(m, sum), changed = true;
  return changed;
}

/* ---- Fusing ---- */

struct fusion {
  struct split_search s;
  tir_expr base_scale, expected, tail, extra_base;
  struct iter_split flat[MOST_SPLITS], grouped[MOST_SPLITS];
  uint32_t flat_count, grouped_count;
};

/* The longest constrained iterator whose innermost split is `split`; NULL: none. */
static const struct iter_sum *find_constraint(const struct tir_iter_map *m, const struct iter_split *split) {
  const struct iter_sum *found = NULL;
  for (uint32_t i = 0; i < m->constrained.count; i++) {
    const struct iter_sum *c = &m->constrained.at[i];
    if (iter_same_piece(split, split_at(m, *c, c->count - 1)) && (!found || found->count < c->count)) found = c;
  }
  return found;
}

static struct iter_fused *find_flat(const struct tir_iter_map *m, struct iter_sum flat) {
  for (uint32_t i = 0; i < m->fused.count; i++)
    if (same_sum(m, m->fused.at[i].flat, flat)) return &m->fused.at[i];
  return NULL;
}

struct iter_fused *iter_find_fused(struct tir_iter_map *m, uint32_t mark) {
  for (uint32_t i = 0; i < m->fused.count; i++)
    if (m->fused.at[i].mark == mark) return &m->fused.at[i];
  return NULL;
}

/* Takes all splits of a constrained iterator, which stands in the sum times `scale`. */
static bool take_constrained(struct fusion *f, const struct iter_sum *constraint, tir_expr scale) {
  struct split_search *s = &f->s;
  struct tir *ir = s->m->ir;
  for (uint32_t i = constraint->count; i-- > 0;) {
    const struct iter_split *wanted = split_at(s->m, *constraint, i);
    tir_expr wanted_scale = tir_mul(ir, wanted->scale, scale);
    uint32_t k = 0;
    while (k < s->count &&
           (s->used[k] || !iter_same_piece(&s->at[k], wanted) || !iter_same(s->m, wanted_scale, s->at[k].scale)))
      k++;
    if (k == s->count) return false;
    s->used[k] = true;
    f->flat[f->flat_count++] = s->at[k];
  }
  const struct iter_fused *fused = find_flat(s->m, *constraint);
  assert(fused);
  tir_expr extent = s->m->marks.at[fused->mark].extent;
  tir_expr one = iter_int(s->m, tir_type_of(ir, scale), 1);
  f->grouped[f->grouped_count++] =
      (struct iter_split){fused->mark, one, extent, tir_floordiv(ir, scale, f->base_scale)};
  f->extra_base = tir_add(ir, f->extra_base, tir_mul(ir, fused->offset, scale));
  f->expected = tir_mul(ir, extent, scale);
  return true;
}

static void take_split(struct fusion *f, int at, tir_expr scale) {
  MS_CHECK(at >= 0);
  struct tir *ir = f->s.m->ir;
  struct iter_split split = f->s.at[at];
  f->s.used[at] = true;
  f->expected = tir_mul(ir, split.extent, scale);
  split.scale = tir_floordiv(ir, split.scale, f->base_scale);
  f->flat[f->flat_count++] = split;
  f->grouped[f->grouped_count++] = split;
}

/* Takes a split of one value whose scale does not matter. */
static bool take_loose(struct fusion *f) {
  for (uint32_t i = 0; i < f->s.count; i++) {
    const struct iter_split *split = &f->s.at[i];
    if (f->s.used[i] || !f->s.m->marks.at[split->mark].loose || !iter_is(f->s.m, split->extent, 1)) continue;
    tir_expr expected = f->expected;
    take_split(f, (int)i, split->scale);
    f->expected = expected;
    return true;
  }
  return false;
}

/* Takes the splits by rising scale, each where the ones before end. */
static bool take_all(struct fusion *f, int base) {
  struct tir_iter_map *m = f->s.m;
  while (f->flat_count < f->s.count) {
    int at = f->flat_count ? find_scale(&f->s, f->expected, ANY_MARK, (int)f->s.count - 1) : base;
    if (at == NOT_FOUND && take_loose(f)) continue;
    tir_expr scale = f->expected;
    if (at == NOT_FOUND) {
      if (m->check == TIR_MAP_BIJECTIVE || !iter_is(m, f->base_scale, 1)) return false;
      at = find_smaller_scale(&f->s, f->expected);
      if (at == NOT_FOUND) return false;
      scale = f->s.at[at].scale;
      f->tail = tir_add(m->ir, f->tail, tir_sub(m->ir, f->expected, scale));
    }
    const struct iter_sum *constraint = find_constraint(m, &f->s.at[at]);
    if (!constraint)
      take_split(f, at, scale);
    else if (!take_constrained(f, constraint, scale))
      return false;
  }
  return true;
}

static uint32_t add_fused(struct fusion *f, struct iter_sum flat, tir_type type) {
  struct tir_iter_map *m = f->s.m;
  struct iter_sum structured = sum_reversed(m, f->grouped, f->grouped_count, iter_int(m, type, 0));
  tir_expr extent = tir_add(m->ir, tir_floordiv(m->ir, f->expected, f->base_scale), f->tail);
  uint32_t mark = iter_add_marks(m, (struct iter_mark){.sum = structured, .extent = extent, .type = type});
  iter_add_fused(m, (struct iter_fused){flat, structured, mark, f->extra_base});
  return mark;
}

bool iter_fuse(struct tir_iter_map *m, struct iter_sum sum, bool early, struct iter_sum *out) {
  MS_CHECK(sum.first + sum.count <= m->splits.count);
  struct tir *ir = m->ir;
  struct fusion f;
  bool joined = iter_join(m, &sum), one = sum.count == 1;
  if (early && (sum.count == 0 || (joined && one && !find_constraint(m, split_at(m, sum, 0))))) {
    *out = sum;
    return true;
  }
  if (!open_search(&f.s, m, sum)) return false;
  int base = find_base(&f.s, ANY_MARK, (int)sum.count - 1);
  if (base == NOT_FOUND) return false;
  tir_type type = tir_type_of(ir, sum.base);
  f.base_scale = f.expected = f.s.at[base].scale;
  f.tail = f.extra_base = iter_int(m, type, 0);
  f.flat_count = f.grouped_count = 0;
  if (!take_all(&f, base)) return false;
  struct iter_sum flat = sum_reversed(m, f.flat, f.flat_count, iter_int(m, type, 0));
  const struct iter_fused *known = find_flat(m, flat);
  if (known && !iter_same(m, f.extra_base, tir_mul(ir, known->offset, f.base_scale))) return false;
  uint32_t mark = known ? known->mark : add_fused(&f, flat, type);
  struct iter_split split = {mark, iter_int(m, type, 1), m->marks.at[mark].extent, f.base_scale};
  out->base = tir_add(ir, sum.base, f.extra_base);
  out->first = iter_add_splits(m, split);
  out->count = 1;
  if (early) replace_aliases(m, out, false); /* the whole may be constrained, or a piece of what is */
  return true;
}
