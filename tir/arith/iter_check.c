/* What a map of sums is good for: whether its iterators are independent, its expressions, its inverse. */
#include "iter_map.h"

#include <string.h>

enum { MOST_SPLITS = 64 };

/* ---- Independence ---- */

struct cover { /* the splits of one mark that the map uses, in order of use */
  const struct tir_iter_map *m;
  uint32_t mark, count;
  struct iter_split at[MOST_SPLITS];
  bool used[MOST_SPLITS];
};

static bool add_to_cover(struct cover *c, const struct tir_iter_map *m, struct iter_sum sum) {
  for (uint32_t i = 0; i < sum.count; i++) {
    struct iter_split split = m->splits.at[sum.first + i];
    if (split.mark != c->mark) continue;
    if (c->count == MOST_SPLITS) return false;
    c->used[c->count] = false;
    c->at[c->count++] = split;
  }
  return true;
}

static uint32_t find_lower(const struct cover *c, tir_expr lower) {
  for (uint32_t i = 0; i < c->count; i++)
    if (!c->used[i] && iter_same(c->m, c->at[i].lower, lower)) return i;
  return UINT32_MAX;
}

/* The unused split of the least lower factor, when all unused ones' are multiples of `lower`. */
static uint32_t find_multiple(const struct cover *c, tir_expr lower) {
  uint32_t found = UINT32_MAX;
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->used[i]) continue;
    if (!iter_divides(c->m, c->at[i].lower, lower)) return UINT32_MAX;
    if (found == UINT32_MAX || iter_divides(c->m, c->at[found].lower, c->at[i].lower)) found = i;
  }
  return found;
}

/* A padded mark is covered by one split whose first and last values lie in what was there before padding, or by splits
 * that repeat within that. */
static bool check_padded(const struct cover *c, tir_expr covered, bool full) {
  const struct tir_iter_map *m = c->m;
  const struct iter_mark *mark = &m->marks.at[c->mark];
  struct tir *ir = m->ir;
  if (m->check == TIR_MAP_BIJECTIVE) return false;
  if (m->check == TIR_MAP_ANY) return true;
  tir_expr before = m->marks.at[mark->padded_from - 1].extent, left = mark->sum.base, lower = c->at[0].lower;
  if (!full) return iter_divides(m, mark->extent, covered) && iter_at_least(m, before, covered);
  tir_expr one = iter_int(m, mark->type, 1);
  return c->count == 1 && iter_at_least(m, lower, tir_add(ir, left, one)) &&
         iter_at_least(m, tir_add(ir, left, before), tir_add(ir, tir_sub(ir, covered, lower), one));
}

/* The splits of a mark do not overlap, and cover it all or a part that divides it. */
static bool check_cover(struct cover *c) {
  const struct tir_iter_map *m = c->m;
  const struct iter_mark *mark = &m->marks.at[c->mark];
  tir_expr covered = iter_int(m, mark->type, 1);
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t j = find_lower(c, covered);
    if (j == UINT32_MAX && m->check != TIR_MAP_BIJECTIVE) j = find_multiple(c, covered);
    if (j == UINT32_MAX) return false;
    c->used[j] = true;
    covered = tir_mul(m->ir, c->at[j].lower, c->at[j].extent);
  }
  bool full = iter_same(m, covered, mark->extent);
  if (mark->padded_from) return check_padded(c, covered, full);
  return full || (m->check != TIR_MAP_BIJECTIVE && iter_divides(m, mark->extent, covered));
}

/* Marks that the indices are made of, directly or through fused marks. A mark comes after its parts. */
static void find_visited(const struct tir_iter_map *m, bool *visited) {
  memset(visited, 0, m->marks.count * sizeof *visited);
  for (uint32_t i = 0; i < m->indices.count; i++)
    for (uint32_t j = 0; j < m->indices.at[i].count; j++) visited[m->splits.at[m->indices.at[i].first + j].mark] = true;
  for (uint32_t k = m->marks.count; k-- > 0;) {
    const struct iter_mark *mark = &m->marks.at[k];
    if (!visited[k] || mark->source) continue;
    for (uint32_t j = 0; j < mark->sum.count; j++) visited[m->splits.at[mark->sum.first + j].mark] = true;
  }
}

enum { MOST_MARKS = 512 };

static bool reaches_visited(const struct tir_iter_map *m, uint32_t mark, const bool *visited) {
  if (visited[mark]) return true;
  if (m->marks.at[mark].source) return false;
  struct iter_sum sum = m->marks.at[mark].sum;
  for (uint32_t i = 0; i < sum.count; i++)
    if (reaches_visited(m, m->splits.at[sum.first + i].mark, visited)) return true;
  return false;
}

/* A constrained iterator that is not used, though what it is made of is, leaves holes. */
static bool has_holes(const struct tir_iter_map *m, const bool *visited) {
  for (uint32_t i = 0; i < m->aliases.count; i++) {
    uint32_t mark = m->aliases.at[i].to.mark;
    if (!visited[mark] && reaches_visited(m, mark, visited)) return true;
  }
  for (uint32_t i = 0; i < m->fused.count; i++) {
    uint32_t mark = m->fused.at[i].mark;
    if (m->fused.at[i].constrained && !visited[mark] && reaches_visited(m, mark, visited)) return true;
  }
  return false;
}

static bool is_made_of(const struct tir_iter_map *m, struct iter_sum sum, uint32_t mark) {
  for (uint32_t i = 0; i < sum.count; i++) {
    uint32_t part = m->splits.at[sum.first + i].mark;
    if (part == mark || (!m->marks.at[part].source && is_made_of(m, m->marks.at[part].sum, mark))) return true;
  }
  return false;
}

/* A bound that names iterators of one value is of what is used with them: in the same index. */
static bool check_units(const struct tir_iter_map *m, const bool *visited) {
  for (uint32_t i = 0; i < m->units.count; i++) {
    uint32_t unit = m->units.at[i].unit, constrained = m->units.at[i].constrained;
    if (!visited[constrained]) continue;
    if (!visited[unit]) return false;
    if (!iter_is(m, m->marks.at[unit].extent, 1)) continue; /* its other pieces are free */
    for (uint32_t k = 0; k < m->indices.count; k++)
      if (is_made_of(m, m->indices.at[k], unit) && !is_made_of(m, m->indices.at[k], constrained)) return false;
  }
  return true;
}

bool iter_check_mapping(struct tir_iter_map *m) {
  bool visited[MOST_MARKS];
  if (m->marks.count > MOST_MARKS) return false;
  find_visited(m, visited);
  if (!check_units(m, visited)) return false;
  for (uint32_t k = 0; k < m->marks.count; k++) {
    const struct iter_mark *mark = &m->marks.at[k];
    if (!visited[k]) {
      if (mark->var && m->check == TIR_MAP_BIJECTIVE && !iter_is(m, mark->extent, 1)) return false;
      continue;
    }
    struct cover c;
    c.m = m;
    c.mark = k;
    c.count = 0;
    for (uint32_t i = 0; i < m->indices.count; i++)
      if (!add_to_cover(&c, m, m->indices.at[i])) return false;
    for (uint32_t i = 0; i < m->marks.count; i++)
      if (visited[i] && !m->marks.at[i].source && !add_to_cover(&c, m, m->marks.at[i].sum)) return false;
    if (!check_cover(&c)) return false;
  }
  m->exact = !m->ignores && !has_holes(m, visited);
  return true;
}

/* ---- Expressions ---- */

/* Several splits of one mark are often written. */
static tir_expr written_mark(const struct tir_iter_map *m, uint32_t mark) {
  struct iter_mark *made = &m->marks.at[mark];
  if (!made->written) made->written = iter_sum_expr(m, made->sum);
  return made->written;
}

tir_expr iter_split_expr(const struct tir_iter_map *m, struct iter_split split) {
  struct tir *ir = m->ir;
  const struct iter_mark mark = m->marks.at[split.mark];
  tir_expr source = mark.source ? mark.source : written_mark(m, split.mark);
  if (iter_is(m, split.lower, 1) && iter_same(m, split.extent, mark.extent)) return tir_mul(ir, source, split.scale);
  tir_expr end = tir_mul(ir, split.lower, split.extent);
  bool top = iter_same(m, mark.extent, end);
  if (top && iter_is(m, split.extent, 1) && !iter_is(m, mark.extent, 1)) return iter_int(m, mark.type, 0);
  if (!top) source = tir_floormod(ir, source, end);
  return tir_mul(ir, tir_floordiv(ir, source, split.lower), split.scale);
}

tir_expr iter_sum_expr(const struct tir_iter_map *m, struct iter_sum sum) {
  tir_expr e = sum.base;
  for (uint32_t i = 0; i < sum.count; i++) e = tir_add(m->ir, e, iter_split_expr(m, m->splits.at[sum.first + i]));
  return e;
}

/* ---- Inverse ---- */

static bool is_mixed_radix(const struct tir_iter_map *m, struct iter_sum sum) {
  tir_expr expected = m->splits.at[sum.first + sum.count - 1].scale;
  for (uint32_t i = sum.count; i-- > 0;) {
    const struct iter_split *split = &m->splits.at[sum.first + i];
    if (m->marks.at[split->mark].loose) continue;
    if (!iter_same(m, split->scale, expected)) return false;
    expected = tir_mul(m->ir, expected, split->extent);
  }
  return true;
}

static void add_value(const struct tir_iter_map *m, const struct iter_split *split, tir_expr value, tir_expr *marks) {
  value = tir_mul(m->ir, value, split->lower);
  tir_expr *to = &marks[split->mark];
  *to = *to ? tir_add(m->ir, *to, value) : value;
}

/* Hands the value of a sum down to the marks of its splits. */
static bool invert_sum(const struct tir_iter_map *m, struct iter_sum sum, tir_expr value, tir_expr *marks) {
  struct tir *ir = m->ir;
  tir_expr input = tir_sub(ir, value, sum.base);
  if (sum.count == 1) {
    const struct iter_split *split = &m->splits.at[sum.first];
    bool unit = iter_is(m, split->scale, 1) || iter_is(m, split->scale, -1);
    if (unit) add_value(m, split, tir_mul(ir, input, split->scale), marks);
    return unit;
  }
  if (sum.count && !is_mixed_radix(m, sum)) return false;
  for (uint32_t i = 0; i < sum.count; i++) {
    const struct iter_split *split = &m->splits.at[sum.first + i];
    tir_expr part = tir_floordiv(ir, input, split->scale);
    if (i > 0) part = tir_floormod(ir, part, split->extent);
    if (iter_is(m, split->extent, 1)) part = iter_int(m, tir_type_of(ir, input), 0);
    add_value(m, split, part, marks);
  }
  return true;
}

bool iter_invert(const struct tir_iter_map *m, const tir_expr *outputs, tir_expr *values) {
  tir_expr marks[MOST_MARKS];
  memset(values, 0, m->var_count * sizeof *values);
  memset(marks, 0, m->marks.count * sizeof *marks);
  for (uint32_t i = 0; i < m->indices.count; i++)
    if (!invert_sum(m, m->indices.at[i], outputs[i], marks)) return false;
  for (uint32_t k = m->marks.count; k-- > 0;) { /* what uses a mark comes before it */
    const struct iter_mark *mark = &m->marks.at[k];
    if (!marks[k]) continue;
    if (mark->var) {
      tir_expr var = tir_var_expr(m->ir, m->vars[mark->var - 1]);
      values[mark->var - 1] = tir_add(m->ir, marks[k], tir_sub(m->ir, var, mark->source));
    } else if (mark->source || !invert_sum(m, mark->sum, marks[k], marks)) {
      return false;
    }
  }
  return true;
}
