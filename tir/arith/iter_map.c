/* From index expressions to sums of splits.
 *
 * Constraints come first, from small to large, since they shape how sums fuse. Then the indices are rewritten
 * bottom-up: sums add, products with what holds no iterator scale, quotients and remainders of one iterator split it. A
 * division that leaves a rest pads its iterator; as all divisions of an iterator must agree on the padding, a first
 * pass over the indices collects what they need and a second one applies it. */
#include "iter_map.h"
#include "linear.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sums ---- */

struct iter_sum iter_constant(const struct tir_iter_map *m, tir_expr base) {
  return (struct iter_sum){m->splits.count, 0, base};
}

struct iter_sum iter_sum_of(struct tir_iter_map *m, struct iter_split split, tir_expr base) {
  return (struct iter_sum){iter_add_splits(m, split), 1, base};
}

/* Adds `part` times `scale` to the sum that ends the array of splits. */
static void add_scaled(struct tir_iter_map *m, struct iter_sum *sum, struct iter_sum part, tir_expr scale) {
  struct tir *ir = m->ir;
  assert(sum->first + sum->count == m->splits.count);
  for (uint32_t i = 0; i < part.count; i++) {
    struct iter_split split = m->splits.at[part.first + i];
    if (scale) split.scale = tir_mul(ir, split.scale, scale);
    uint32_t j = 0;
    for (; j < sum->count; j++) {
      struct iter_split *old = &m->splits.at[sum->first + j];
      if (old->mark != split.mark || old->lower != split.lower || old->extent != split.extent) continue;
      old->scale = tir_add(ir, old->scale, split.scale);
      break;
    }
    if (j == sum->count) {
      iter_add_splits(m, split);
      sum->count++;
    }
  }
  sum->base = tir_add(ir, sum->base, scale ? tir_mul(ir, part.base, scale) : part.base);
}

/* ---- Padding ---- */

static struct iter_padding *find_padding(struct tir_iter_map *m, uint32_t mark) {
  for (uint32_t i = 0; i < m->paddings.count; i++)
    if (m->paddings.at[i].mark == mark) return &m->paddings.at[i];
  return NULL;
}

static tir_expr common_multiple(const struct tir_iter_map *m, tir_expr a, tir_expr b) {
  struct tir *ir = m->ir;
  if (tir_is_int(ir, a) && tir_is_int(ir, b)) {
    int64_t x = tir_at(ir, a)->imm, y = tir_at(ir, b)->imm, product;
    if (x > 0 && y > 0 && !__builtin_mul_overflow(x / tir_gcd(x, y), y, &product))
      return iter_int(m, tir_type_of(ir, a), product);
  }
  if (iter_divides(m, a, b)) return a;
  if (iter_divides(m, b, a)) return b;
  return tir_mul(ir, a, b);
}

static tir_expr rest_to_multiple(const struct tir_iter_map *m, tir_expr edge, tir_expr divisor) {
  tir_expr zero = iter_int(m, tir_type_of(m->ir, edge), 0);
  return iter_divides(m, edge, divisor) ? zero : tir_floormod(m->ir, tir_sub(m->ir, zero, edge), divisor);
}

/* Whether nothing lies above the split in its mark, so that the mark may be made longer. */
static bool is_top(const struct tir_iter_map *m, const struct iter_split *split) {
  MS_CHECK(split->mark < m->marks.count);
  return iter_at_least(m, tir_mul(m->ir, split->lower, split->extent), m->marks.at[split->mark].extent);
}

/* First pass: notes what `split` needs so that split + base divides evenly. */
static bool collect_padding(struct tir_iter_map *m, struct iter_split *split, tir_expr base, tir_expr divisor,
                            tir_expr *left) {
  MS_CHECK(m->pads && split->mark < m->marks.count);
  struct tir *ir = m->ir;
  *left = tir_floormod(ir, base, divisor);
  tir_expr edge = tir_add(ir, *left, split->extent), right = rest_to_multiple(m, edge, divisor);
  struct iter_padding *p = find_padding(m, split->mark);
  if (!p) {
    tir_expr zero = iter_int(m, tir_type_of(ir, divisor), 0), one = iter_int(m, tir_type_of(ir, divisor), 1);
    uint32_t added = iter_add_paddings(m, (struct iter_padding){split->mark, 0, one, zero});
    p = &m->paddings.at[added];
  }
  p->factor = common_multiple(m, p->factor, tir_mul(ir, divisor, split->lower));
  if (iter_is(m, *left, 0) && iter_is(m, right, 0)) return true;
  m->needs_padding = true;
  p->left = tir_make(ir, TIR_MAX, p->left, tir_mul(ir, *left, split->lower));
  split->extent = tir_add(ir, edge, right);
  return true;
}

static void make_padded(struct tir_iter_map *m, struct iter_padding *p) {
  assert(p->mark < m->marks.count && !p->padded);
  struct tir *ir = m->ir;
  struct iter_mark mark = m->marks.at[p->mark];
  tir_expr edge = tir_add(ir, mark.extent, p->left);
  tir_expr one = iter_int(m, mark.type, 1);
  struct iter_split whole = {p->mark, one, mark.extent, one};
  struct iter_mark padded = {.type = mark.type, .padded_from = p->mark + 1};
  padded.sum = iter_sum_of(m, whole, p->left);
  padded.extent = tir_add(ir, edge, rest_to_multiple(m, edge, p->factor));
  p->padded = iter_add_marks(m, padded) + 1;
}

/* Second pass: puts the padded mark in the place of the split's. What is left of the base must divide evenly, or the
 * split would be of another number. */
static bool apply_padding(struct tir_iter_map *m, struct iter_split *split, tir_expr base, tir_expr divisor,
                          tir_expr *left) {
  MS_CHECK(!m->pads && split->mark < m->marks.count);
  struct tir *ir = m->ir;
  struct iter_padding *p = find_padding(m, split->mark);
  bool plain = !p || (iter_is(m, p->left, 0) && iter_divides(m, m->marks.at[split->mark].extent, p->factor));
  *left = iter_int(m, tir_type_of(ir, divisor), 0);
  if (plain) return iter_divides(m, base, divisor) && (iter_divides(m, split->extent, divisor) || is_top(m, split));
  if (!iter_divides(m, p->factor, split->lower) || !iter_divides(m, p->factor, divisor)) return false;
  if (!iter_divides(m, p->left, split->lower) || !is_top(m, split)) return false;
  *left = tir_floordiv(ir, p->left, split->lower);
  if (!p->padded) make_padded(m, p);
  split->mark = p->padded - 1;
  split->extent = tir_floordiv(ir, m->marks.at[split->mark].extent, split->lower);
  return iter_divides(m, tir_sub(ir, base, *left), divisor);
}

/* Makes split + base divide evenly, where that takes padding; *left is what is added below. */
static bool pad(struct tir_iter_map *m, struct iter_split *split, tir_expr base, tir_expr divisor, tir_expr *left) {
  return m->pads ? collect_padding(m, split, base, divisor, left) : apply_padding(m, split, base, divisor, left);
}

/* ---- Quotients and remainders ---- */

/* (split + base) // divisor for a split of scale 1 that may leave a rest. */
static bool divide_split(struct tir_iter_map *m, struct iter_split split, tir_expr base, tir_expr divisor,
                         struct iter_sum *out) {
  MS_CHECK(iter_is(m, split.scale, 1));
  struct tir *ir = m->ir;
  tir_expr left;
  if (!pad(m, &split, base, divisor, &left)) return false;
  struct iter_split made = {split.mark, divisor, iter_ceil_quotient(m, split.extent, divisor), split.scale};
  if (iter_divides(m, split.extent, divisor)) {
    made.lower = tir_mul(ir, split.lower, divisor);
    made.extent = tir_floordiv(ir, split.extent, divisor);
  } else if (!iter_is(m, split.lower, 1) || !iter_same(m, split.extent, m->marks.at[split.mark].extent)) {
    struct iter_mark piece = {.source = iter_split_expr(m, split), .extent = split.extent};
    piece.type = tir_type_of(ir, piece.source);
    made.mark = iter_add_marks(m, piece);
    made.scale = iter_int(m, piece.type, 1);
  }
  *out = iter_sum_of(m, made, tir_floordiv(ir, tir_sub(ir, base, left), divisor));
  return true;
}

/* A divisor is taken apart by a split's scale: of a scale below zero the parts would round the other way. */
static bool scale_divides(const struct tir_iter_map *m, struct iter_split split, tir_expr base, tir_expr divisor) {
  return tir_at(m->ir, split.scale)->lo >= 0 && iter_divides(m, divisor, split.scale) &&
         iter_divides(m, base, split.scale);
}

static bool quotient_of(struct tir_iter_map *m, struct iter_split split, tir_expr base, tir_expr divisor,
                        struct iter_sum *out) {
  struct tir *ir = m->ir;
  if (iter_is(m, split.scale, 1)) return divide_split(m, split, base, divisor, out);
  if (iter_divides(m, split.scale, divisor) && iter_divides(m, base, divisor)) {
    split.scale = tir_floordiv(ir, split.scale, divisor);
    *out = iter_sum_of(m, split, tir_floordiv(ir, base, divisor));
    return true;
  }
  if (!scale_divides(m, split, base, divisor)) return false;
  base = tir_floordiv(ir, base, split.scale);
  divisor = tir_floordiv(ir, divisor, split.scale);
  split.scale = iter_int(m, tir_type_of(ir, divisor), 1);
  return divide_split(m, split, base, divisor, out);
}

static bool rest_of(struct tir_iter_map *m, struct iter_split split, tir_expr base, tir_expr divisor,
                    struct iter_sum *out) {
  struct tir *ir = m->ir;
  tir_expr left;
  if (!iter_is(m, split.scale, 1)) {
    if (iter_divides(m, split.scale, divisor) && iter_divides(m, base, divisor)) {
      *out = iter_constant(m, iter_int(m, tir_type_of(ir, divisor), 0));
      return true;
    }
    if (!scale_divides(m, split, base, divisor)) return false;
    base = tir_floordiv(ir, base, split.scale);
    divisor = tir_floordiv(ir, divisor, split.scale);
  }
  if (!pad(m, &split, base, divisor, &left)) return false;
  split.extent = divisor;
  *out = iter_sum_of(m, split, iter_int(m, tir_type_of(ir, divisor), 0));
  return true;
}

/* ---- Expressions ---- */

/* A whole split that can be divided as it is need not be seen as a piece of a constrained iterator. */
static bool divides_evenly(const struct tir_iter_map *m, struct iter_sum a, tir_expr divisor) {
  if (a.count != 1 || !iter_is(m, a.base, 0)) return false;
  const struct iter_split *split = &m->splits.at[a.first];
  return iter_is(m, split->scale, 1) && iter_divides(m, split->extent, divisor);
}

static bool rewrite_division(struct tir_iter_map *m, tir_expr e, struct iter_sum *out) {
  struct tir_expr_node n = *tir_at(m->ir, e);
  struct iter_sum a;
  if (!iter_rewrite(m, n.a, &a) || iter_holds_iterator(m, n.b)) return false;
  bool wants_rest = n.kind == TIR_FLOORMOD;
  if (m->aliases.count && !divides_evenly(m, a, n.b)) iter_join(m, &a);
  if (a.count == 0 || iter_is(m, n.b, 1)) {
    if (a.count && !wants_rest)
      *out = a;
    else
      *out = iter_constant(m, tir_make(m->ir, (enum tir_kind)n.kind, a.count ? n.b : a.base, n.b));
    return true;
  }
  if (a.count > 1 && !iter_fuse(m, a, true, &a)) return false;
  struct iter_split split = m->splits.at[a.first];
  return wants_rest ? rest_of(m, split, a.base, n.b, out) : quotient_of(m, split, a.base, n.b, out);
}

static bool rewrite_product(struct tir_iter_map *m, tir_expr e, struct iter_sum *out) {
  struct tir_expr_node n = *tir_at(m->ir, e);
  bool left = iter_holds_iterator(m, n.a);
  if (left && iter_holds_iterator(m, n.b)) return false;
  struct iter_sum factor;
  if (!iter_rewrite(m, left ? n.a : n.b, &factor)) return false;
  *out = iter_constant(m, iter_int(m, n.type, 0));
  add_scaled(m, out, factor, left ? n.b : n.a);
  return true;
}

static bool rewrite_atom(struct tir_iter_map *m, tir_expr e, struct iter_sum *out) {
  MS_CHECK(m->values.count == m->var_count);
  const struct tir_expr_node *n = tir_at(m->ir, e);
  if (n->kind == TIR_VAR) {
    for (uint32_t i = 0; i < m->var_count; i++)
      if (m->vars[i] == n->ref) {
        *out = m->values.at[i];
        return true;
      }
  }
  if (!iter_holds_iterator(m, e)) {
    *out = iter_constant(m, e);
    return true;
  }
  if (!tir_is_index(m->ir, e)) return false;
  if (n->kind == TIR_FLOORDIV || n->kind == TIR_FLOORMOD) return rewrite_division(m, e, out);
  return n->kind == TIR_MUL && rewrite_product(m, e, out);
}

enum { MOST_TERMS = 64 };

/* Terms in the order they are written: by falling coefficient, ties by age. */
static void sort_terms(struct tir_term *terms, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    struct tir_term t = terms[i];
    uint32_t j = i;
    for (; j > 0 && t.coefficient > terms[j - 1].coefficient; j--) terms[j] = terms[j - 1];
    terms[j] = t;
  }
}

/* Sums of parts that rewrote themselves: parts may grow the array of splits, so they are gathered before they are
 * added. */
static bool rewrite_sum(struct tir_iter_map *m, struct tir_linear l, tir_type type, struct iter_sum *out) {
  MS_CHECK(l.first != UINT32_MAX);
  struct tir_term terms[MOST_TERMS];
  struct iter_sum parts[MOST_TERMS];
  if (l.count > MOST_TERMS) return false;
  for (uint32_t i = 0; i < l.count; i++) terms[i] = m->ir->terms.at[l.first + i];
  sort_terms(terms, l.count);
  for (uint32_t i = 0; i < l.count; i++)
    if (!rewrite_atom(m, terms[i].atom, &parts[i])) return false;
  *out = iter_constant(m, iter_int(m, type, l.constant));
  for (uint32_t i = 0; i < l.count; i++)
    add_scaled(m, out, parts[i], terms[i].coefficient == 1 ? TIR_NONE : iter_int(m, type, terms[i].coefficient));
  return true;
}

bool iter_rewrite(struct tir_iter_map *m, tir_expr e, struct iter_sum *out) {
  if (!iter_holds_iterator(m, e)) {
    *out = iter_constant(m, e);
    return true;
  }
  struct tir_linear l = tir_linear_of(m->ir, e);
  if (l.count == 1 && l.constant == 0 && m->ir->terms.at[l.first].coefficient == 1)
    return rewrite_atom(m, m->ir->terms.at[l.first].atom, out);
  return rewrite_sum(m, l, tir_type_of(m->ir, e), out);
}

/* ---- The map ---- */

static bool domains_are_independent(const struct tir_iter_map *m) {
  for (uint32_t i = 0; i < m->var_count; i++) {
    const struct tir_var_node *v = &m->ir->vars.at[m->vars[i]];
    if (!v->min || !v->extent || iter_holds_iterator(m, v->min) || iter_holds_iterator(m, v->extent)) return false;
  }
  return true;
}

static void make_values(struct tir_iter_map *m, struct iter_domains d, bool simplify_trivial) {
  struct tir *ir = m->ir;
  for (uint32_t i = 0; i < m->var_count; i++) {
    tir_expr e = tir_var_expr(ir, m->vars[i]), extent = tir_sub(ir, d.end[i], d.min[i]);
    tir_type type = tir_type_of(ir, e);
    if (simplify_trivial && iter_is(m, extent, 1)) {
      iter_add_values(m, iter_constant(m, d.min[i]));
      continue;
    }
    struct iter_mark mark = {.source = e, .extent = extent, .type = type, .var = i + 1};
    if (!iter_is(m, d.min[i], 0)) mark.source = tir_sub(ir, e, d.min[i]);
    tir_expr one = iter_int(m, type, 1);
    struct iter_split whole = {iter_add_marks(m, mark), one, extent, one};
    iter_add_values(m, iter_sum_of(m, whole, d.min[i]));
  }
}

static bool rewrite_indices(struct tir_iter_map *m, const tir_expr *indices, uint32_t count) {
  m->indices.count = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct iter_sum sum;
    if (!iter_rewrite(m, indices[i], &sum)) return false;
    if (sum.count && !iter_fuse(m, sum, true, &sum)) return false;
    iter_add_indices(m, sum);
  }
  return true;
}

static bool rewrite_with_padding(struct tir_iter_map *m, const tir_expr *indices, uint32_t count) {
  m->paddings.count = 0;
  m->needs_padding = false;
  m->pads = m->check != TIR_MAP_BIJECTIVE;
  if (m->pads && !rewrite_indices(m, indices, count)) return false;
  bool again = !m->pads || m->needs_padding;
  m->pads = false;
  return !again || rewrite_indices(m, indices, count);
}

void iter_map_forget(struct tir_iter_map *m) {
  m->stands = false;
  m->refuted.count = 0;
}

static void release(void *memory) {
  struct tir_iter_map *m = memory;
#define ITER_ARRAY_FREE(type, name) free(m->name.at);
  ITER_ARRAYS(ITER_ARRAY_FREE)
#undef ITER_ARRAY_FREE
}
static void forget(void *memory, const struct tir_mark *unused) {
  (void)unused;
  iter_map_forget(memory);
}

static struct tir_iter_map *map_of(const struct tir *ir) {
  static const struct tir_scratch_kind kind = {sizeof(struct tir_iter_map), release, forget};
  return tir_scratch_of(ir, TIR_SCRATCH_MAPS, &kind);
}

static struct tir_iter_map *open_map(struct tir *ir, const tir_var *vars, uint32_t var_count,
                                     enum tir_map_check check) {
  struct tir_iter_map *m = map_of(ir);
  m->ir = ir;
  m->vars = vars;
  m->var_count = var_count;
  m->check = check;
  m->pads = m->needs_padding = m->ignores = false;
  m->type = var_count ? ir->vars.at[vars[0]].type : TIR_T_I32;
  m->zero = tir_int(ir, m->type, 0);
  m->one = tir_int(ir, m->type, 1);
  m->mask = 0;
  for (uint32_t i = 0; i < var_count; i++) m->mask |= 1ull << (vars[i] & 63);
  uint32_t refuted = m->refuted.count;
#define ITER_ARRAY_CLEAR(type, name) m->name.count = 0;
  ITER_ARRAYS(ITER_ARRAY_CLEAR)
#undef ITER_ARRAY_CLEAR
  m->refuted.count = refuted;
  return m;
}

enum { MOST_VARS = 64 };

/* A map is asked for again when several instructions in a row look at the same bindings. */
static bool was_asked(const struct tir_iter_map *m, const tir_expr *indices, uint32_t count, const tir_var *vars,
                      uint32_t var_count, tir_expr predicate, enum tir_map_check check, bool simplify_trivial) {
  return m->stands && m->given_count == count && m->var_count == var_count && m->asked_predicate == predicate &&
         m->check == check && m->asked_trivial == simplify_trivial &&
         (!count || !memcmp(m->asked.at, indices, count * sizeof *indices)) &&
         (!var_count || !memcmp(m->asked.at + count, vars, var_count * sizeof *vars));
}

static void note_asked(struct tir_iter_map *m, const tir_expr *indices, uint32_t count, const tir_var *vars,
                       uint32_t var_count, tir_expr predicate, bool simplify_trivial) {
  for (uint32_t i = 0; i < count; i++) iter_add_asked(m, indices[i]);
  for (uint32_t i = 0; i < var_count; i++) iter_add_asked(m, vars[i]);
  m->given_count = count;
  m->asked_predicate = predicate;
  m->asked_trivial = simplify_trivial;
  m->stands = true;
}

/* What is no map is asked for again by the instruction after the one whose simplification left it as it is. */
enum { REFUTED_INDICES = 4 };

static bool was_refuted(const struct tir_iter_map *m, const tir_expr *indices, uint32_t count, const tir_var *vars,
                        uint32_t var_count, tir_expr predicate, enum tir_map_check check, bool simplify_trivial) {
  if (!count || !var_count || m->refuted.count != REFUTED_INDICES + count + var_count) return false;
  const uint32_t *asked = m->refuted.at;
  return asked[0] == count && asked[1] == predicate && asked[2] == (uint32_t)check &&
         asked[3] == (uint32_t)simplify_trivial && !memcmp(asked + REFUTED_INDICES, indices, count * sizeof *indices) &&
         !memcmp(asked + REFUTED_INDICES + count, vars, var_count * sizeof *vars);
}

static void note_refuted(struct tir_iter_map *m) {
  m->refuted.count = 0;
  iter_add_refuted(m, m->given_count);
  iter_add_refuted(m, m->asked_predicate);
  iter_add_refuted(m, (uint32_t)m->check);
  iter_add_refuted(m, (uint32_t)m->asked_trivial);
  for (uint32_t i = 0; i < m->asked.count; i++) iter_add_refuted(m, m->asked.at[i]);
}

static bool find_map(struct tir_iter_map *m, const tir_expr *indices, uint32_t count, tir_expr predicate,
                     bool simplify_trivial) {
  struct tir *ir = m->ir;
  const tir_var *vars = m->vars;
  uint32_t var_count = m->var_count;
  tir_expr min[MOST_VARS], end[MOST_VARS];
  if (!domains_are_independent(m)) return false;
  for (uint32_t i = 0; i < var_count; i++) {
    tir_type type = ir->vars.at[vars[i]].type;
    min[i] = tir_cast(ir, type, ir->vars.at[vars[i]].min);
    end[i] = tir_add(ir, min[i], tir_cast(ir, type, ir->vars.at[vars[i]].extent));
  }
  m->given = indices;
  struct iter_domains d = {min, end};
  if (predicate && !tir_is_const(ir, predicate, 1) && !iter_read_predicate(m, predicate, d)) return false;
  make_values(m, d, simplify_trivial);
  if (!iter_constrain(m) || !rewrite_with_padding(m, indices, count)) return false;
  if (iter_check_mapping(m)) return true;
  return iter_regroup(m) && rewrite_with_padding(m, indices, count) && iter_check_mapping(m);
}

struct tir_iter_map *iter_map_detect(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                                     uint32_t var_count, tir_expr predicate, enum tir_map_check check,
                                     bool simplify_trivial) {
  MS_CHECK((!count || indices) && (!var_count || vars));
  struct tir_iter_map *m = map_of(ir);
  if (var_count > MOST_VARS) return NULL;
  if (was_asked(m, indices, count, vars, var_count, predicate, check, simplify_trivial)) {
    m->given = indices;
    m->vars = vars;
    return m->found ? m : NULL;
  }
  if (was_refuted(m, indices, count, vars, var_count, predicate, check, simplify_trivial)) return NULL;
  m = open_map(ir, vars, var_count, check);
  note_asked(m, indices, count, vars, var_count, predicate, simplify_trivial);
  m->found = find_map(m, indices, count, predicate, simplify_trivial);
  if (!m->found) note_refuted(m);
  return m->found ? m : NULL;
}
