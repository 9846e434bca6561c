/* Quasi-affine iterator maps: the public calls, and the short way for maps that splits, fusions and reorders make.
 *
 * The short way takes constant extents, no predicate, and indices that are sums of digits: a variable v, v // a, v % b
 * or v // a % b, each dividing v's extent evenly, so that a digit is (lower factor, extent, scale). An index is one
 * iterator when its digits, by rising scale, are a mixed radix number; a map is independent when the digits of each
 * variable do not overlap. What it cannot decide goes the long way (iter_map.c), which agrees with it on the rest. */
#include "affine.h"
#include "iter_map.h"
#include "linear.h"

#include <string.h>

enum { MOST_DIGITS = 64, MOST_VARS = 64 };

struct digit {
  int64_t lower, extent, scale;
  uint32_t var, next; /* among the map's variables; the variable's next digit */
};

struct short_map {
  struct tir *ir;
  const tir_var *vars;
  uint32_t var_count, digit_count;
  uint64_t mask;
  enum tir_map_check check;
  bool simplify_trivial;
  bool repeats; /* an index has several digits of one variable: what is not plainly a map may be one in another way */
  uint8_t places[64]; /* by variable mod 64: the number of the last such variable, plus 1 */
  struct digit digits[MOST_DIGITS];
  int64_t min[MOST_VARS], extent[MOST_VARS];
  uint32_t first[MOST_VARS], last[MOST_VARS]; /* digits of each variable, in order of use */
};

/* ---- The short way ---- */

static bool open_map(struct short_map *m) {
  if (m->var_count > MOST_VARS) return false;
  m->mask = 0;
  m->digit_count = 0;
  memset(m->places, 0, sizeof m->places);
  for (uint32_t i = 0; i < m->var_count; i++) {
    const struct tir_var_node *v = &m->ir->vars.at[m->vars[i]];
    if (!v->min || !v->extent || !tir_is_int(m->ir, v->min) || !tir_is_int(m->ir, v->extent)) return false;
    m->min[i] = tir_at(m->ir, v->min)->imm;
    m->extent[i] = tir_at(m->ir, v->extent)->imm;
    if (m->extent[i] <= 0) return false;
    m->mask |= 1ull << (m->vars[i] & 63);
    m->places[m->vars[i] & 63] = (uint8_t)(i + 1);
    m->first[i] = m->last[i] = UINT32_MAX;
  }
  return true;
}

static uint32_t find_var(const struct short_map *m, tir_expr e) {
  const struct tir_expr_node *n = tir_at(m->ir, e);
  if (n->kind != TIR_VAR || !(m->mask >> (n->ref & 63) & 1)) return UINT32_MAX;
  uint32_t place = m->places[n->ref & 63] - 1u;
  if (m->vars[place] == n->ref) return place;
  for (uint32_t i = 0; i < place; i++)
    if (m->vars[i] == n->ref) return i;
  return UINT32_MAX;
}

/* Takes `e` apart into variable, lower factor and extent. ITER_NO: no variable of the map is in it; ITER_UNDECIDED: it
 * is no digit, or the division leaves a rest. */
static enum iter_verdict read_digit(const struct short_map *m, tir_expr e, struct digit *d) {
  const struct tir_expr_node *n = tir_at(m->ir, e);
  int64_t divisor = 1, modulus = 0;
  tir_expr whole = e;
  if (n->kind == TIR_FLOORMOD && tir_is_int(m->ir, n->b)) {
    modulus = tir_at(m->ir, n->b)->imm;
    e = n->a;
    n = tir_at(m->ir, e);
  }
  if (n->kind == TIR_FLOORDIV && tir_is_int(m->ir, n->b)) {
    divisor = tir_at(m->ir, n->b)->imm;
    e = n->a;
    n = tir_at(m->ir, e);
  }
  d->var = find_var(m, e);
  if (d->var == UINT32_MAX)
    return n->kind != TIR_VAR && tir_uses_masked_var(m->ir, whole, m->mask, m->vars, m->var_count) ? ITER_UNDECIDED
                                                                                                   : ITER_NO;
  int64_t extent = m->extent[d->var];
  d->lower = divisor;
  d->extent = modulus ? modulus : extent;
  if (whole == e) return ITER_YES;
  if (divisor <= 0 || modulus < 0 || m->min[d->var] != 0) return ITER_UNDECIDED;
  if (extent % divisor || (modulus && extent / divisor % modulus)) return ITER_UNDECIDED;
  if (!modulus) d->extent = extent / divisor;
  return ITER_YES;
}

/* By rising scale; where equal, what has one value first. */
static void sort_digits(struct digit *d, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    struct digit t = d[i];
    uint32_t j = i;
    for (; j > 0; j--) {
      if (d[j - 1].scale < t.scale || (d[j - 1].scale == t.scale && (d[j - 1].extent == 1 || t.extent != 1))) break;
      d[j] = d[j - 1];
    }
    d[j] = t;
  }
}

/* x % a + x // a % b * a is one digit of x. */
static bool digits_join(const struct digit *low, const struct digit *high) {
  MS_CHECK(low != high);
  int64_t lower, scale;
  return !__builtin_mul_overflow(low->lower, low->extent, &lower) && high->lower == lower &&
         !__builtin_mul_overflow(low->scale, low->extent, &scale) && high->scale == scale;
}

/* The digits of one index: a mixed radix number times the least scale? */
static enum iter_verdict check_radix(const struct short_map *m, const struct digit *d, uint32_t count,
                                     int64_t *extent) {
  int64_t expected = d[0].scale;
  for (uint32_t i = 0; i < count; i++) {
    /* Iterators that overlap may still be recognized where no bijection is asked for. */
    if (d[i].scale < expected) return m->check == TIR_MAP_BIJECTIVE ? ITER_NO : ITER_UNDECIDED;
    if (d[i].scale > expected) return ITER_NO;
    if (__builtin_mul_overflow(expected, d[i].extent, &expected)) return ITER_UNDECIDED;
  }
  *extent = expected / d[0].scale;
  return ITER_YES;
}

static void describe(struct tir *ir, tir_expr index, int64_t constant, const struct tir_term *symbols,
                     uint32_t symbol_count, int64_t scale, int64_t extent, struct tir_progression *out) {
  tir_type type = tir_type_of(ir, index);
  *out = (struct tir_progression){TIR_NONE, TIR_NONE, TIR_NONE};
  out->base = symbol_count ? tir_from_terms(ir, type, constant, symbols, symbol_count) : tir_int(ir, type, constant);
  if (!scale) return;
  out->scale = tir_int(ir, type, scale);
  out->extent = tir_int(ir, type, extent);
}

/* Several digits of one variable in one index. False: two join. */
static bool check_repeats(struct short_map *m, const struct digit *digits, uint32_t count) {
  m->repeats = true;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = 0; j < i; j++)
      if (digits[i].var == digits[j].var && digits_join(&digits[j], &digits[i])) return false;
  return true;
}

/* scale: of the digits, 0 for a constant. */
static enum iter_verdict read_index(struct short_map *m, tir_expr index, int64_t *scale, struct tir_progression *out) {
  struct tir_linear l = tir_linear_of(m->ir, index);
  struct tir_term symbols[MOST_DIGITS];
  uint32_t first = m->digit_count, symbol_count = 0;
  int64_t constant = l.constant, product;
  uint64_t seen = 0; /* variables */
  bool repeats = false;
  if (l.count > MOST_DIGITS - first) return ITER_UNDECIDED;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = m->ir->terms.at[l.first + i];
    struct digit *d = &m->digits[m->digit_count];
    enum iter_verdict digit = read_digit(m, t.atom, d);
    if (digit == ITER_NO) {
      symbols[symbol_count++] = t;
      continue;
    }
    if (t.coefficient <= 0 || digit != ITER_YES) return ITER_UNDECIDED;
    if (m->min[d->var] != 0) {
      if (__builtin_mul_overflow(t.coefficient, m->min[d->var], &product) ||
          __builtin_add_overflow(constant, product, &constant))
        return ITER_UNDECIDED;
    }
    if (m->simplify_trivial && m->extent[d->var] == 1) continue;
    d->scale = t.coefficient;
    d->next = UINT32_MAX;
    repeats |= seen >> d->var & 1;
    seen |= 1ull << d->var;
    m->digit_count++;
  }
  struct digit *digits = m->digits + first;
  uint32_t count = m->digit_count - first;
  int64_t extent = 1;
  if (count) {
    sort_digits(digits, count);
    if (repeats && !check_repeats(m, digits, count)) return ITER_UNDECIDED;
    enum iter_verdict v = check_radix(m, digits, count, &extent);
    if (v != ITER_YES) return v;
  }
  *scale = count ? digits[0].scale : 0;
  if (out) describe(m->ir, index, constant, symbols, symbol_count, *scale, extent, out);
  return ITER_YES;
}

static void link_digits(struct short_map *m) {
  for (uint32_t i = 0; i < m->digit_count; i++) {
    uint32_t v = m->digits[i].var;
    if (m->last[v] == UINT32_MAX)
      m->first[v] = i;
    else
      m->digits[m->last[v]].next = i;
    m->last[v] = i;
  }
}

/* The digits of one variable, from the least: each begins where the one before ends, or, where no bijection is asked
 * for, at a multiple of that. */
static bool check_digits(const struct short_map *m, uint32_t v) {
  MS_CHECK(v < m->var_count);
  int64_t expected = 1;
  bool used[MOST_DIGITS] = {false};
  uint32_t left = 0;
  for (uint32_t i = m->first[v]; i != UINT32_MAX; i = m->digits[i].next) left++;
  while (left--) {
    uint32_t found = UINT32_MAX, least = UINT32_MAX;
    bool multiples = true;
    for (uint32_t i = m->first[v]; i != UINT32_MAX; i = m->digits[i].next) {
      if (used[i]) continue;
      int64_t lower = m->digits[i].lower;
      if (lower == expected && found == UINT32_MAX) found = i;
      if (lower % expected) multiples = false;
      if (least == UINT32_MAX || m->digits[least].lower % lower == 0) least = i;
    }
    if (found == UINT32_MAX) {
      if (m->check == TIR_MAP_BIJECTIVE || !multiples) return false;
      found = least;
    }
    used[found] = true;
    expected = m->digits[found].lower * m->digits[found].extent;
  }
  return m->check == TIR_MAP_BIJECTIVE ? expected == m->extent[v] : m->extent[v] % expected == 0;
}

static bool check_vars(struct short_map *m) {
  link_digits(m);
  for (uint32_t v = 0; v < m->var_count; v++) {
    uint32_t i = m->first[v];
    if (i == UINT32_MAX) {
      if (m->check == TIR_MAP_BIJECTIVE && m->extent[v] != 1) return false;
      continue;
    }
    const struct digit *d = &m->digits[i];
    bool whole = d->next == UINT32_MAX && d->lower == 1 && d->extent == m->extent[v];
    if (!whole && !check_digits(m, v)) return false;
  }
  return true;
}

/* What is found of each index: all may be NULL. */
struct short_result {
  struct tir_progression *progressions;
  int64_t *scales;
  uint32_t *ends; /* the number of digits after it */
};

static enum iter_verdict detect_shortly(struct short_map *m, const tir_expr *indices, uint32_t count,
                                        struct short_result out) {
  if (!open_map(m)) return ITER_UNDECIDED;
  for (uint32_t i = 0; i < count; i++) {
    int64_t scale;
    enum iter_verdict v = read_index(m, indices[i], &scale, out.progressions ? &out.progressions[i] : NULL);
    if (v != ITER_YES) return m->repeats ? ITER_UNDECIDED : v;
    if (out.scales) out.scales[i] = scale;
    if (out.ends) out.ends[i] = m->digit_count;
  }
  return check_vars(m) ? ITER_YES : m->repeats ? ITER_UNDECIDED : ITER_NO;
}

static void set_map(struct short_map *m, struct tir *ir, const tir_var *vars, uint32_t var_count,
                    enum tir_map_check check, bool simplify_trivial) {
  m->ir = ir;
  m->vars = vars;
  m->var_count = var_count;
  m->check = check;
  m->simplify_trivial = simplify_trivial;
  m->repeats = false;
}

/* Adds what one output says of the variables of its digits: output = base + a mixed radix number. */
static void invert_index(struct short_map *m, uint32_t first, uint32_t end, tir_expr base, tir_expr output,
                         tir_expr *values) {
  struct tir *ir = m->ir;
  tir_type type = tir_type_of(ir, output);
  tir_expr input = tir_sub(ir, output, base);
  for (uint32_t i = first; i < end; i++) {
    const struct digit *d = &m->digits[i];
    tir_expr value = tir_floordiv(ir, input, tir_int(ir, type, d->scale));
    if (i + 1 < end) value = tir_floormod(ir, value, tir_int(ir, type, d->extent));
    value = tir_mul(ir, value, tir_int(ir, type, d->lower));
    values[d->var] = values[d->var] ? tir_add(ir, values[d->var], value) : value;
  }
}

/* ---- The public calls ---- */

static bool is_true(const struct tir *ir, tir_expr predicate) { return !predicate || tir_is_const(ir, predicate, 1); }

static bool detect(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                   tir_expr predicate, enum tir_map_check check, bool simplify_trivial, struct tir_progression *out,
                   bool *exact) {
  *exact = true;
  if (is_true(ir, predicate)) {
    struct short_map m;
    set_map(&m, ir, vars, var_count, check, simplify_trivial);
    enum iter_verdict v = detect_shortly(&m, indices, count, (struct short_result){.progressions = out});
    if (v != ITER_UNDECIDED) return v == ITER_YES;
  }
  struct tir_iter_map *m = iter_map_detect(ir, indices, count, vars, var_count, predicate, check, simplify_trivial);
  if (!m) return false;
  *exact = m->exact;
  for (uint32_t i = 0; out && i < count; i++) {
    struct iter_sum sum = m->indices.at[i];
    out[i] = (struct tir_progression){sum.base, TIR_NONE, TIR_NONE};
    if (!sum.count) continue;
    out[i].scale = m->splits.at[sum.first].scale;
    out[i].extent = m->splits.at[sum.first].extent;
  }
  return true;
}

bool tir_detect_iter_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                         uint32_t var_count, tir_expr predicate, enum tir_map_check check, bool simplify_trivial,
                         struct tir_progression *out) {
  bool exact;
  return detect(ir, indices, count, vars, var_count, predicate, check, simplify_trivial, out, &exact);
}

enum iter_verdict iter_short_cover(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                                   uint32_t var_count, tir_expr predicate, int64_t *scales) {
  struct short_map m;
  if (!is_true(ir, predicate)) return ITER_UNDECIDED;
  set_map(&m, ir, vars, var_count, TIR_MAP_SURJECTIVE, true);
  return detect_shortly(&m, indices, count, (struct short_result){.scales = scales});
}

bool iter_covers_box(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                     tir_expr predicate, struct tir_progression *out) {
  bool exact;
  return detect(ir, indices, count, vars, var_count, predicate, TIR_MAP_SURJECTIVE, true, out, &exact) && exact;
}

enum { MOST_INDICES = 32 };

static bool is_affine_shortly(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                              uint32_t var_count, enum iter_verdict *verdict) {
  struct short_map m;
  int64_t scales[MOST_INDICES];
  set_map(&m, ir, vars, var_count, TIR_MAP_SURJECTIVE, false);
  *verdict = detect_shortly(&m, indices, count, (struct short_result){.scales = scales});
  for (uint32_t i = 0; i < count && *verdict == ITER_YES; i++)
    if (scales[i] > 1) *verdict = ITER_NO;
  return *verdict == ITER_YES;
}

/* A map in two that have no variable in common: what a predicate bears on, and the rest. One is a map, or simple, when
 * both are. */
struct parted {
  tir_expr bounded[MOST_INDICES], plain[MOST_INDICES];
  uint32_t places[MOST_INDICES]; /* of the bounded among all */
  tir_var bounded_vars[MOST_VARS], plain_vars[MOST_VARS];
  uint32_t bounded_count, plain_count, bounded_var_count, plain_var_count;
};

/* Masks may hold too much, never too little. */
static bool domains_depend(const struct tir *ir, const tir_var *vars, uint32_t var_count) {
  uint64_t mask = 0, used = 0;
  for (uint32_t i = 0; i < var_count; i++) {
    const struct tir_var_node *v = &ir->vars.at[vars[i]];
    mask |= 1ull << (vars[i] & 63);
    used |= tir_at(ir, v->min)->vars | tir_at(ir, v->extent)->vars;
  }
  return (mask & used) != 0;
}

/* False: all belongs together. */
static bool part(const struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                 tir_expr predicate, struct parted *p) {
  if (count > MOST_INDICES || var_count > MOST_VARS || domains_depend(ir, vars, var_count)) return false;
  uint64_t bounded = tir_at(ir, predicate)->vars;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < count; i++) {
      uint64_t own = tir_at(ir, indices[i])->vars;
      more |= (own & bounded) && (own & ~bounded);
      if (own & bounded) bounded |= own;
    }
  }
  p->bounded_count = p->plain_count = p->bounded_var_count = p->plain_var_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!(tir_at(ir, indices[i])->vars & bounded)) {
      p->plain[p->plain_count++] = indices[i];
      continue;
    }
    p->places[p->bounded_count] = i;
    p->bounded[p->bounded_count++] = indices[i];
  }
  for (uint32_t i = 0; i < var_count; i++) {
    if (bounded >> (vars[i] & 63) & 1)
      p->bounded_vars[p->bounded_var_count++] = vars[i];
    else
      p->plain_vars[p->plain_var_count++] = vars[i];
  }
  return p->plain_count > 0;
}

/* Iterators that advance by 1. */
static bool are_units(const struct tir_iter_map *m) {
  for (uint32_t i = 0; i < m->indices.count; i++) {
    struct iter_sum sum = m->indices.at[i];
    if (sum.count && !iter_is(m, m->splits.at[sum.first].scale, 1)) return false;
  }
  return true;
}

bool tir_is_affine_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                       tir_expr predicate) {
  enum iter_verdict verdict = ITER_UNDECIDED;
  struct parted p;
  if (var_count == 0) return true;
  if (count > MOST_INDICES) return false;
  if (!is_true(ir, predicate) && part(ir, indices, count, vars, var_count, predicate, &p)) {
    if (is_affine_shortly(ir, p.plain, p.plain_count, p.plain_vars, p.plain_var_count, &verdict))
      indices = p.bounded, count = p.bounded_count, vars = p.bounded_vars, var_count = p.bounded_var_count;
    if (verdict == ITER_NO) return false;
  }
  if (is_true(ir, predicate) && is_affine_shortly(ir, indices, count, vars, var_count, &verdict)) return true;
  if (verdict == ITER_NO) return false;
  struct tir_iter_map *m = iter_map_detect(ir, indices, count, vars, var_count, predicate, TIR_MAP_SURJECTIVE, false);
  return m && are_units(m);
}

static enum iter_verdict decide_shortly(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                                        uint32_t var_count, enum tir_map_check check, bool simplify_trivial,
                                        int64_t *scales) {
  struct short_map m;
  set_map(&m, ir, vars, var_count, check, simplify_trivial);
  return detect_shortly(&m, indices, count, (struct short_result){.scales = scales});
}

/* Index arithmetic is simplified as it is made. What is left: iterators of one value, and quotients and remainders that
 * only the map as a whole, or the predicate, makes simple. */
static bool is_simple(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                      tir_expr predicate, enum tir_map_check check, bool simplify_trivial) {
  bool divides = false;
  for (uint32_t i = 0; i < count; i++) divides |= (tir_at(ir, indices[i])->flags & TIR_HAS_DIVMOD) != 0;
  for (uint32_t i = 0; i < var_count && simplify_trivial; i++) {
    tir_expr extent = ir->vars.at[vars[i]].extent;
    if (!is_true(ir, predicate) || (extent && tir_is_const(ir, extent, 1))) return false;
  }
  if (!divides) return true;
  if (!is_true(ir, predicate)) return false;
  return decide_shortly(ir, indices, count, vars, var_count, check, simplify_trivial, NULL) != ITER_UNDECIDED;
}

/* `out` may be `indices`. True: they are affine, trivial variables and all. */
static bool simplify_together(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                              uint32_t var_count, tir_expr predicate, enum tir_map_check check, bool simplify_trivial,
                              tir_expr *out) {
  struct tir_iter_map *m = NULL;
  bool affine = false;
  if (!is_simple(ir, indices, count, vars, var_count, predicate, check, simplify_trivial)) {
    m = iter_map_detect(ir, indices, count, vars, var_count, predicate, check, simplify_trivial);
    affine = m && check == TIR_MAP_SURJECTIVE && !simplify_trivial && are_units(m);
    /* A map that is none under the predicate may be one without; it is equal all the same. */
    if (!m && !is_true(ir, predicate) && check != TIR_MAP_BIJECTIVE)
      m = iter_map_detect(ir, indices, count, vars, var_count, TIR_NONE, check, simplify_trivial);
  }
  for (uint32_t i = 0; i < count; i++) out[i] = m ? iter_sum_expr(m, m->indices.at[i]) : indices[i];
  return affine;
}

bool tir_simplify_iter_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                           uint32_t var_count, tir_expr predicate, enum tir_map_check check, bool simplify_trivial,
                           tir_expr *out) {
  struct parted p;
  int64_t scales[MOST_INDICES];
  enum iter_verdict plain = ITER_UNDECIDED;
  if (!is_true(ir, predicate) && check == TIR_MAP_SURJECTIVE && !simplify_trivial &&
      part(ir, indices, count, vars, var_count, predicate, &p))
    plain = decide_shortly(ir, p.plain, p.plain_count, p.plain_vars, p.plain_var_count, check, false, scales);
  if (plain == ITER_UNDECIDED)
    return simplify_together(ir, indices, count, vars, var_count, predicate, check, simplify_trivial, out);
  if (out != indices) memcpy(out, indices, count * sizeof *out);
  if (plain == ITER_NO) return false;
  bool affine = simplify_together(ir, p.bounded, p.bounded_count, p.bounded_vars, p.bounded_var_count, predicate, check,
                                  false, p.bounded);
  for (uint32_t i = 0; i < p.bounded_count; i++) out[p.places[i]] = p.bounded[i];
  for (uint32_t i = 0; i < p.plain_count; i++) affine &= scales[i] <= 1;
  return affine;
}

/* Inverts a map that the short way recognized. False: it is none, or one of scaled iterators. */
static enum iter_verdict invert_shortly(struct short_map *m, const tir_expr *indices, uint32_t count,
                                        const tir_expr *outputs, uint32_t points, tir_expr *values) {
  struct tir *ir = m->ir;
  struct tir_progression progressions[MOST_INDICES];
  int64_t scales[MOST_INDICES];
  uint32_t end[MOST_INDICES];
  if (count > MOST_INDICES) return ITER_UNDECIDED;
  enum iter_verdict verdict = detect_shortly(m, indices, count, (struct short_result){progressions, scales, end});
  if (verdict != ITER_YES) return verdict;
  for (uint32_t i = 0; i < count; i++)
    if (scales[i] > 1) return ITER_NO;
  for (uint32_t p = 0; p < points; p++) {
    tir_expr *value = values + p * m->var_count;
    memset(value, 0, m->var_count * sizeof *value);
    for (uint32_t i = 0; i < count; i++)
      invert_index(m, i ? end[i - 1] : 0, end[i], progressions[i].base, outputs[p * count + i], value);
    for (uint32_t v = 0; v < m->var_count; v++)
      if (value[v] && m->min[v]) value[v] = tir_add(ir, value[v], tir_int(ir, tir_type_of(ir, value[v]), m->min[v]));
  }
  return ITER_YES;
}

bool tir_inverse_affine_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                            uint32_t var_count, tir_expr predicate, const tir_expr *outputs, uint32_t points,
                            tir_expr *values) {
  MS_CHECK(!points || outputs);
  if (is_true(ir, predicate)) {
    struct short_map m;
    set_map(&m, ir, vars, var_count, TIR_MAP_BIJECTIVE, false);
    enum iter_verdict verdict = invert_shortly(&m, indices, count, outputs, points, values);
    if (verdict != ITER_UNDECIDED) return verdict == ITER_YES;
  }
  struct tir_iter_map *m = iter_map_detect(ir, indices, count, vars, var_count, predicate, TIR_MAP_BIJECTIVE, false);
  for (uint32_t p = 0; m && p < points; p++)
    if (!iter_invert(m, outputs + p * count, values + p * var_count)) return false;
  return m != NULL;
}
