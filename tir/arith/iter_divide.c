/* Dividing the space of a map: each index as outer * extent(inner) + inner, where the inner loops alone give `inner`
 * and the others `outer`.
 *
 * Divisions are found bottom-up over the marks of the map: a variable is on one side; a sum can be divided if its outer
 * splits come before its inner ones; the splits of a fused mark if some of them make up exactly its inner part. A mark
 * that a predicate bounds must be on one side, and takes the bound with it.
 * Source: the subspace division of TVM's arithmetic analyzer, whose verdicts these follow. */
#include "iter_map.h"

#include <string.h>

enum side { MIXED, INNER, OUTER };

struct part {
  struct iter_sum outer, inner;
  tir_expr outer_extent, inner_extent;
  enum side side;
};

enum { MOST_SPLITS = 64, MOST_MARKS = 512 };

struct divider {
  struct tir_iter_map *m;
  uint32_t inner_count;
  tir_expr *predicates; /* of the outer side, of the inner side */
  bool visited[MOST_MARKS];
};

static struct part part_inner(const struct divider *d, struct iter_sum sum, tir_expr extent) {
  tir_type type = tir_type_of(d->m->ir, sum.base);
  struct iter_sum none = iter_constant(d->m, iter_int(d->m, type, 0));
  return (struct part){none, sum, iter_int(d->m, type, 1), extent, INNER};
}

static struct part part_outer(const struct divider *d, struct iter_sum sum, tir_expr extent) {
  tir_type type = tir_type_of(d->m->ir, sum.base);
  struct iter_sum none = iter_constant(d->m, iter_int(d->m, type, 0));
  return (struct part){sum, none, extent, iter_int(d->m, type, 1), OUTER};
}

static struct iter_split whole_of(const struct tir_iter_map *m, uint32_t mark) {
  tir_expr one = iter_int(m, m->marks.at[mark].type, 1);
  return (struct iter_split){mark, one, m->marks.at[mark].extent, one};
}

static uint32_t mark_of(struct tir_iter_map *m, struct iter_sum sum, tir_expr extent) {
  tir_type type = tir_type_of(m->ir, sum.base);
  return iter_add_marks(m, (struct iter_mark){.sum = sum, .extent = extent, .type = type});
}

static struct iter_split as_split(struct tir_iter_map *m, struct iter_sum sum, tir_expr extent) {
  if (sum.count == 1 && iter_is(m, sum.base, 0)) return m->splits.at[sum.first];
  return whole_of(m, mark_of(m, sum, extent));
}

/* Splits of one side, gathered innermost first, as one iterator. */
static struct iter_sum join(struct tir_iter_map *m, const struct iter_split *splits, uint32_t count, tir_expr base,
                            tir_expr *extent) {
  tir_expr scales[MOST_SPLITS] = {TIR_NONE};
  *extent = iter_int(m, tir_type_of(m->ir, base), 1);
  for (uint32_t i = 0; i < count; i++) {
    scales[i] = *extent;
    *extent = tir_mul(m->ir, *extent, splits[i].extent);
  }
  struct iter_sum sum = {m->splits.count, count, base};
  for (uint32_t i = count; i-- > 0;) {
    struct iter_split split = splits[i];
    split.scale = scales[i];
    iter_add_splits(m, split);
  }
  return sum;
}

static bool divide_split(struct divider *d, struct iter_split split, struct part *out);

/* A part of one side that a predicate cuts to [0, extent). */
static bool bound(struct divider *d, struct iter_sum sum, tir_expr extent, enum side side, struct part *out) {
  struct tir *ir = d->m->ir;
  tir_expr value = iter_sum_expr(d->m, sum), zero = iter_int(d->m, tir_type_of(ir, value), 0);
  tir_expr *predicate = &d->predicates[side == INNER];
  *predicate = tir_and(ir, *predicate, tir_make(ir, TIR_LT, value, extent));
  if (!iter_is(d->m, sum.base, 0)) *predicate = tir_and(ir, *predicate, tir_make(ir, TIR_GE, value, zero));
  *out = side == INNER ? part_inner(d, sum, extent) : part_outer(d, sum, extent);
  return true;
}

static bool divide_terms(struct divider *d, struct iter_sum sum, tir_expr extent, struct part *out) {
  struct tir_iter_map *m = d->m;
  struct iter_split splits[2][MOST_SPLITS];
  uint32_t count[2] = {0, 0};
  bool has_unit_scale = false;
  tir_type type = tir_type_of(m->ir, sum.base);
  tir_expr product = iter_int(m, type, 1), extents[2], zero = iter_int(m, type, 0);
  if (sum.count > MOST_SPLITS) return false;
  for (uint32_t i = sum.count; i-- > 0;) {
    struct iter_split split = m->splits.at[sum.first + i];
    struct part p;
    has_unit_scale |= iter_is(m, split.scale, 1);
    if (!divide_split(d, split, &p) || p.side == MIXED) return false;
    bool inner = p.side == INNER;
    if (inner && count[0]) return false;
    /* Values that overlap cover a range, but are no number of which one part could be parted from the other. */
    if (!iter_is(m, split.extent, 1) && !iter_same(m, split.scale, product)) return false;
    struct iter_split made = inner ? as_split(m, p.inner, p.inner_extent) : as_split(m, p.outer, p.outer_extent);
    splits[inner][count[inner]++] = made;
    product = tir_mul(m->ir, product, made.extent);
  }
  if (!has_unit_scale) return false;
  bool bounded = !iter_same(m, product, extent);
  struct iter_sum outer = join(m, splits[0], count[0], count[1] ? zero : sum.base, &extents[0]);
  struct iter_sum inner = join(m, splits[1], count[1], count[1] ? sum.base : zero, &extents[1]);
  if (bounded && count[0] && count[1]) return false;
  if (bounded) return bound(d, count[1] ? inner : outer, extent, count[1] ? INNER : OUTER, out);
  /* What is all on one side is not marked so: as a term of a sum it divides no further. */
  *out = (struct part){outer, inner, extents[0], extents[1], MIXED};
  return true;
}

static bool divide_sum(struct divider *d, struct iter_sum sum, tir_expr extent, struct part *out) {
  struct tir_iter_map *m = d->m;
  if (sum.count > 1) return divide_terms(d, sum, extent, out);
  if (sum.count == 0) {
    *out = part_inner(d, sum, iter_int(m, tir_type_of(m->ir, sum.base), 1));
    out->side = MIXED;
    return true;
  }
  struct iter_split split = m->splits.at[sum.first];
  if (!iter_is(m, split.scale, 1) || !divide_split(d, split, out)) return false;
  struct iter_sum *base = out->side == OUTER ? &out->outer : &out->inner;
  base->base = tir_add(m->ir, base->base, sum.base);
  return true;
}

/* ---- The splits of a mark ---- */

static bool add_splits_of(const struct tir_iter_map *m, struct iter_sum sum, uint32_t mark, struct iter_split *out,
                          uint32_t *count) {
  MS_CHECK(mark < m->marks.count && *count <= MOST_SPLITS);
  for (uint32_t i = 0; i < sum.count; i++) {
    struct iter_split split = m->splits.at[sum.first + i];
    if (split.mark != mark) continue;
    if (*count == MOST_SPLITS) return false;
    out[(*count)++] = split;
  }
  return true;
}

/* All that the map uses of a mark, by rising place; false: they leave a gap. */
static bool find_splits(const struct divider *d, uint32_t mark, struct iter_split *out, uint32_t *count) {
  const struct tir_iter_map *m = d->m;
  *count = 0;
  for (uint32_t i = 0; i < m->indices.count; i++)
    if (!add_splits_of(m, m->indices.at[i], mark, out, count)) return false;
  for (uint32_t i = 0; i < MOST_MARKS && i < m->marks.count; i++)
    if (d->visited[i] && !m->marks.at[i].source && !add_splits_of(m, m->marks.at[i].sum, mark, out, count))
      return false;
  tir_expr lower = iter_int(m, m->marks.at[mark].type, 1);
  for (uint32_t i = 0; i < *count; i++) {
    uint32_t j = i;
    while (j < *count && !iter_same(m, out[j].lower, lower)) j++;
    if (j == *count) return false;
    struct iter_split found = out[j];
    out[j] = out[i];
    out[i] = found;
    lower = tir_mul(m->ir, lower, found.extent);
  }
  return true;
}

static bool is_whole(const struct tir_iter_map *m, const struct iter_split *split) {
  MS_CHECK(split->mark < m->marks.count);
  return iter_is(m, split->lower, 1) && iter_same(m, split->extent, m->marks.at[split->mark].extent);
}

/* The mark is padded below, to be divided evenly: its first values are those of no part. */
static bool is_padded_below(const struct tir_iter_map *m, const struct iter_mark *mark, const struct part *whole) {
  if (iter_is(m, mark->sum.base, 0)) return false;
  tir_expr values = tir_mul(m->ir, whole->outer_extent, whole->inner_extent);
  return !tir_prove(m->ir, tir_make(m->ir, TIR_GE, values, mark->extent));
}

/* A split of a mark that is a sum: it lies in the sum's inner part, or above it. */
static bool divide_piece(struct divider *d, struct iter_split split, struct part *out) {
  MS_CHECK(split.mark < d->m->marks.count && !d->m->marks.at[split.mark].source);
  struct tir_iter_map *m = d->m;
  struct iter_split splits[MOST_SPLITS];
  uint32_t count;
  struct part whole;
  if (!divide_sum(d, m->marks.at[split.mark].sum, m->marks.at[split.mark].extent, &whole)) return false;
  if (is_padded_below(m, &m->marks.at[split.mark], &whole)) return false;
  if (is_whole(m, &split)) {
    *out = whole;
    return true;
  }
  if (!find_splits(d, split.mark, splits, &count)) return false;
  bool above = whole.side == OUTER, found = false;
  tir_expr lower = iter_int(m, m->marks.at[split.mark].type, 1), first_outer = above ? lower : TIR_NONE;
  for (uint32_t i = 0; i < count; i++) {
    if (above && !first_outer) first_outer = splits[i].lower;
    if (iter_same_piece(&splits[i], &split)) {
      struct iter_split made = split;
      made.scale = iter_int(m, m->marks.at[split.mark].type, 1);
      made.mark = above ? mark_of(m, whole.outer, whole.outer_extent) : mark_of(m, whole.inner, whole.inner_extent);
      if (above) made.lower = tir_floordiv(m->ir, split.lower, first_outer);
      struct iter_sum sum = iter_sum_of(m, made, iter_int(m, m->marks.at[split.mark].type, 0));
      *out = above ? part_outer(d, sum, split.extent) : part_inner(d, sum, split.extent);
      found = true;
    }
    lower = tir_mul(m->ir, lower, splits[i].extent);
    if (iter_same(m, lower, whole.inner_extent)) above = true;
  }
  return found && above;
}

static bool divide_split(struct divider *d, struct iter_split split, struct part *out) {
  struct tir_iter_map *m = d->m;
  const struct iter_mark *mark = &m->marks.at[split.mark];
  if (!mark->source) return divide_piece(d, split, out);
  if (!mark->var || tir_at(m->ir, mark->source)->kind != TIR_VAR) return false;
  bool inner = mark->var <= d->inner_count;
  split.scale = iter_int(m, mark->type, 1);
  struct iter_sum sum = iter_sum_of(m, split, iter_int(m, mark->type, 0));
  *out = inner ? part_inner(d, sum, split.extent) : part_outer(d, sum, split.extent);
  return true;
}

/* ---- Predicates ---- */

static bool uses_side(const struct divider *d, tir_expr e, bool inner) {
  const struct tir_iter_map *m = d->m;
  for (uint32_t i = inner ? 0 : d->inner_count; i < (inner ? d->inner_count : m->var_count); i++)
    if (tir_uses_var(m->ir, e, m->vars[i])) return true;
  return false;
}

/* A bound on one variable narrows its domain and nothing else bounds it; others must follow from what is kept. */
static bool keep_predicate(struct divider *d, tir_expr e) {
  struct tir *ir = d->m->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_AND) return keep_predicate(d, n.a) && keep_predicate(d, n.b);
  bool inner = uses_side(d, e, true);
  if (inner && uses_side(d, e, false)) return tir_prove_under(ir, tir_and(ir, d->predicates[0], d->predicates[1]), e);
  tir_expr *predicate = &d->predicates[inner];
  if (!tir_prove_under(ir, *predicate, e)) *predicate = tir_and(ir, *predicate, e);
  return true;
}

/* ---- The public call ---- */

static void find_visited(struct divider *d) {
  MS_CHECK(d->m->marks.count <= MOST_MARKS);
  const struct tir_iter_map *m = d->m;
  memset(d->visited, 0, sizeof d->visited);
  for (uint32_t i = 0; i < m->indices.count; i++)
    for (uint32_t j = 0; j < m->indices.at[i].count; j++)
      d->visited[m->splits.at[m->indices.at[i].first + j].mark] = true;
  for (uint32_t k = m->marks.count; k-- > 0;) {
    const struct iter_mark *mark = &m->marks.at[k];
    if (!d->visited[k] || mark->source) continue;
    for (uint32_t j = 0; j < mark->sum.count; j++) d->visited[m->splits.at[mark->sum.first + j].mark] = true;
  }
}

bool tir_divide_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                    uint32_t inner_count, tir_expr predicate, bool simplify_trivial, struct tir_division *out,
                    tir_expr predicates[2]) {
  assert(inner_count <= var_count);
  predicates[0] = predicates[1] = TIR_NONE;
  struct tir_iter_map *m =
      iter_map_detect(ir, indices, count, vars, var_count, predicate, TIR_MAP_SURJECTIVE, simplify_trivial);
  if (!m || m->marks.count > MOST_MARKS) return false;
  iter_map_forget(m); /* dividing adds to it */
  struct divider d = {m, inner_count, predicates, {false}};
  find_visited(&d);
  for (uint32_t i = 0; i < count; i++) {
    struct part p;
    struct iter_sum sum = m->indices.at[i];
    /* A value that does not start at zero has no place on either side. */
    if (!iter_is(m, sum.base, 0) || !divide_sum(&d, sum, iter_int(m, tir_type_of(ir, sum.base), 0), &p)) return false;
    out[i] =
        (struct tir_division){iter_sum_expr(m, p.outer), p.outer_extent, iter_sum_expr(m, p.inner), p.inner_extent};
  }
  return !predicate || keep_predicate(&d, predicate);
}
