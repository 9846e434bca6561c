/* Linear forms: integer expressions as sums of coefficient * atom. */
#include "linear.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sums ---- */

static void release(void *memory) { free(((struct tir_sum_stack *)memory)->terms); }

const struct tir_scratch_kind tir_sum_stack_kind = {sizeof(struct tir_sum_stack), release, NULL};

struct tir_sum tir_sum_open(struct tir *ir) {
  struct tir_sum_stack *s = tir_sum_stack_of(ir);
  if (!s->terms) s->terms = tir_enlarge(NULL, &s->capacity, 1, sizeof *s->terms);
  return (struct tir_sum){.base = s->count};
}

void tir_sum_add_term(struct tir *ir, struct tir_sum *sum, tir_expr atom, int64_t coefficient) {
  struct tir_sum_stack *s = tir_sum_stack_of(ir);
  assert(sum->base + sum->count == s->count && "another sum is open above this one");
  if (coefficient == 0 || sum->overflow) return;
  if (s->count == s->capacity) s->terms = tir_enlarge(s->terms, &s->capacity, s->count + 1ull, sizeof *s->terms);
  struct tir_term *terms = s->terms + sum->base;
  uint32_t i = sum->count;
  while (i > 0 && terms[i - 1].atom > atom) i--;
  if (i > 0 && terms[i - 1].atom == atom) {
    struct tir_term *t = &terms[i - 1];
    if (__builtin_add_overflow(t->coefficient, coefficient, &t->coefficient)) sum->overflow = true;
    if (t->coefficient != 0) return;
    memmove(t, t + 1, (sum->count - i) * sizeof *t);
    sum->count--;
    s->count--;
    return;
  }
  for (uint32_t k = sum->count; k > i; k--) terms[k] = terms[k - 1];
  terms[i] = (struct tir_term){coefficient, atom};
  sum->count++;
  s->count++;
}

static void add_constant(struct tir_sum *sum, int64_t value, int64_t scale) {
  int64_t product;
  if (__builtin_mul_overflow(value, scale, &product) || __builtin_add_overflow(sum->constant, product, &sum->constant))
    sum->overflow = true;
}

static __attribute__((noinline)) void add_form(struct tir *ir, struct tir_sum *sum, tir_expr e, int64_t scale) {
  struct tir_linear l = tir_linear_of(ir, e);
  add_constant(sum, l.constant, scale);
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    if (__builtin_mul_overflow(t.coefficient, scale, &t.coefficient)) sum->overflow = true;
    tir_sum_add_term(ir, sum, t.atom, t.coefficient);
  }
}

void tir_sum_add(struct tir *ir, struct tir_sum *sum, tir_expr e, int64_t scale) {
  enum tir_kind kind = (enum tir_kind)tir_at(ir, e)->kind;
  if (kind == TIR_INT_IMM)
    add_constant(sum, tir_at(ir, e)->imm, scale);
  else if (kind != TIR_ADD && kind != TIR_SUB && kind != TIR_MUL) /* it is its own linear form */
    tir_sum_add_term(ir, sum, e, scale);
  else
    add_form(ir, sum, e, scale);
}

void tir_sum_drop(struct tir *ir, struct tir_sum *sum) {
  assert(sum->base + sum->count == tir_sum_stack_of(ir)->count);
  tir_sum_stack_of(ir)->count = sum->base;
}

struct tir_bounds tir_sum_bounds(const struct tir *ir, const struct tir_sum *sum) {
  MS_CHECK(!sum->overflow || sum->count <= tir_sum_stack_of(ir)->count);
  struct tir_bounds b = {sum->constant, sum->constant};
  const struct tir_term *terms = tir_sum_terms(ir, sum);
  for (uint32_t i = 0; i < sum->count; i++) {
    b = tir_add_bounds(b, tir_scale_bounds(terms[i].coefficient, tir_bounds_of(ir, terms[i].atom)));
  }
  return b;
}

/* What term `quotient` of a sum, with so many times the remainder x % divisor, is so many times of: x, or of a sum,
 * whose remainder is taken first, x % m where m is a multiple of the divisor. TIR_NONE: it is neither. */
static tir_expr divided_by(struct tir *ir, tir_expr quotient, tir_expr x, tir_expr divisor) {
  const struct tir_expr_node *n = tir_at(ir, quotient);
  if (n->kind == TIR_FLOORDIV && n->b == divisor) {
    const struct tir_expr_node *a = tir_at(ir, n->a);
    bool remains = a->kind == TIR_FLOORMOD && a->a == x && tir_is_int(ir, a->b);
    if (remains && tir_at(ir, a->b)->imm % tir_at(ir, divisor)->imm == 0) return n->a;
  }
  return quotient == tir_make(ir, TIR_FLOORDIV, x, divisor) ? x : TIR_NONE;
}

static bool recombine_one(struct tir *ir, struct tir_sum *sum) {
  for (uint32_t i = 0; i < sum->count; i++) {
    struct tir_term rest = tir_sum_terms(ir, sum)[i];
    const struct tir_expr_node *n = tir_at(ir, rest.atom);
    int64_t wanted;
    if (n->kind != TIR_FLOORMOD || !tir_is_int(ir, n->b)) continue;
    tir_expr x = n->a, divisor = n->b;
    if (__builtin_mul_overflow(rest.coefficient, tir_at(ir, divisor)->imm, &wanted)) continue;
    bool plain = tir_at(ir, x)->kind == TIR_VAR; /* whose quotient is nothing else */
    for (uint32_t j = 0; j < sum->count; j++) {
      struct tir_term t = tir_sum_terms(ir, sum)[j];
      if (t.coefficient != wanted || (plain && tir_at(ir, t.atom)->kind != TIR_FLOORDIV)) continue;
      tir_expr of = divided_by(ir, t.atom, x, divisor);
      if (!of) continue;
      tir_sum_add_term(ir, sum, rest.atom, -rest.coefficient);
      tir_sum_add_term(ir, sum, t.atom, -wanted);
      tir_sum_add(ir, sum, of, rest.coefficient);
      return true;
    }
  }
  return false;
}

/* The sum has each term of the expression, so many times. */
static bool has_terms(struct tir *ir, const struct tir_sum *sum, tir_expr e, int64_t times) {
  struct tir_linear l = tir_linear_of(ir, e);
  const struct tir_term *terms = tir_sum_terms(ir, sum);
  uint32_t i = 0;
  for (uint32_t k = 0; k < l.count; k++) { /* both ascend by atom */
    struct tir_term t = ir->terms.at[l.first + k];
    while (i < sum->count && terms[i].atom < t.atom) i++;
    int64_t wanted;
    if (i == sum->count || terms[i].atom != t.atom) return false;
    if (__builtin_mul_overflow(t.coefficient, times, &wanted) || terms[i].coefficient != wanted) return false;
  }
  return l.count > 0;
}

/* As recombine_one, where the remainder is several terms: digits of its own, as ((x // 2) % 2) * 2 + x % 2 is x % 4. */
static bool recombine_digits(struct tir *ir, struct tir_sum *sum) {
  for (uint32_t i = 0; i < sum->count; i++) {
    struct tir_term t = tir_sum_terms(ir, sum)[i];
    struct tir_expr_node n = *tir_at(ir, t.atom);
    if (n.kind != TIR_FLOORDIV || !tir_is_int(ir, n.b)) continue;
    int64_t divisor = tir_at(ir, n.b)->imm;
    if (divisor <= 0 || t.coefficient % divisor != 0) continue;
    int64_t times = t.coefficient / divisor;
    tir_expr rest = tir_make(ir, TIR_FLOORMOD, n.a, n.b);
    if (!has_terms(ir, sum, rest, times)) continue;
    tir_sum_add_term(ir, sum, t.atom, -t.coefficient);
    tir_sum_add(ir, sum, rest, -times);
    tir_sum_add(ir, sum, n.a, times);
    return true;
  }
  return false;
}

void tir_sum_recombine(struct tir *ir, struct tir_sum *sum) {
  uint8_t flags = 0;
  for (uint32_t i = 0; i < sum->count; i++) flags |= tir_at(ir, tir_sum_terms(ir, sum)[i].atom)->flags;
  if (!(flags & TIR_HAS_DIVMOD)) return;
  while (sum->count > 1 && !sum->overflow && (recombine_one(ir, sum) || recombine_digits(ir, sum))) {}
}

/* Terms in the order they are written: positive ones first, by falling coefficient, ties by age of the atom. */
static int written_before(const struct tir_term *x, const struct tir_term *y) {
  if ((x->coefficient > 0) != (y->coefficient > 0)) return x->coefficient > 0;
  int64_t p = x->coefficient > 0 ? -x->coefficient : x->coefficient;
  int64_t q = y->coefficient > 0 ? -y->coefficient : y->coefficient;
  return p != q ? p < q : x->atom < y->atom;
}

static tir_expr with_factor(struct tir *ir, tir_type type, tir_expr atom, int64_t factor) {
  return factor == 1 ? atom : tir_binary(ir, TIR_MUL, atom, tir_int(ir, type, factor));
}

static tir_expr write_sum(struct tir *ir, tir_type type, int64_t constant, struct tir_term *terms, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) { /* a handful of terms: insertion */
    struct tir_term t = terms[i];
    uint32_t j = i;
    for (; j > 0 && written_before(&t, &terms[j - 1]); j--) terms[j] = terms[j - 1];
    terms[j] = t;
  }
  tir_expr e = TIR_NONE;
  if (count == 0 || (terms[0].coefficient < 0 && constant > 0)) {
    e = tir_int(ir, type, constant);
    constant = 0;
  }
  for (uint32_t i = 0; i < count; i++) {
    int64_t k = terms[i].coefficient;
    if (!e)
      e = with_factor(ir, type, terms[i].atom, k);
    else if (k > 0)
      e = tir_binary(ir, TIR_ADD, e, with_factor(ir, type, terms[i].atom, k));
    else if (k == INT64_MIN)
      e = tir_binary(ir, TIR_ADD, e, with_factor(ir, type, terms[i].atom, k));
    else
      e = tir_binary(ir, TIR_SUB, e, with_factor(ir, type, terms[i].atom, -k));
  }
  if (constant > 0 || constant == INT64_MIN)
    e = tir_binary(ir, TIR_ADD, e, tir_int(ir, type, constant));
  else if (constant < 0)
    e = tir_binary(ir, TIR_SUB, e, tir_int(ir, type, -constant));
  return e;
}

static struct tir_linear keep_terms(struct tir *ir, int64_t constant, const struct tir_term *terms, uint32_t count) {
  struct tir_linear l = {constant, tir_grow_terms(ir, count), count};
  if (count) memcpy(ir->terms.at + l.first, terms, count * sizeof *terms);
  return l;
}

tir_expr tir_sum_close(struct tir *ir, struct tir_sum *sum, tir_type type) {
  assert(!sum->overflow && sum->base + sum->count == tir_sum_stack_of(ir)->count);
  const struct tir_term *terms = tir_sum_terms(ir, sum);
  if (sum->count == 1 && sum->constant == 0 && terms[0].coefficient == 1) {
    tir_expr e = terms[0].atom;
    tir_sum_drop(ir, sum);
    return e;
  }
  if (sum->count == 0) {
    tir_sum_drop(ir, sum);
    return tir_int(ir, type, sum->constant);
  }
  struct tir_linear l = keep_terms(ir, sum->constant, terms, sum->count);
  tir_expr e = write_sum(ir, type, sum->constant, tir_sum_terms(ir, sum), sum->count);
  tir_sum_drop(ir, sum);
  if (ir->linears.at[e].first == UINT32_MAX)
    ir->linears.at[e] = l;
  else
    ir->terms.count = l.first; /* known already */
  return e;
}

/* ---- The linear form of an expression ---- */

static __attribute__((noinline)) struct tir_linear make_linear(struct tir *ir, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind != TIR_INT_IMM && n.kind != TIR_ADD && n.kind != TIR_SUB && n.kind != TIR_MUL) /* it is its own */
    return ir->linears.at[e] = keep_terms(ir, 0, &(struct tir_term){1, e}, 1);
  struct tir_sum sum = tir_sum_open(ir);
  if (n.kind == TIR_INT_IMM) {
    sum.constant = n.imm;
  } else if (!tir_is_index(ir, e)) {
    tir_sum_add_term(ir, &sum, e, 1);
  } else if (n.kind == TIR_ADD || n.kind == TIR_SUB) {
    tir_linear_of(ir, n.a), tir_linear_of(ir, n.b);
    tir_sum_add(ir, &sum, n.a, 1);
    tir_sum_add(ir, &sum, n.b, n.kind == TIR_ADD ? 1 : -1);
  } else if (n.kind == TIR_MUL && (tir_is_int(ir, n.a) || tir_is_int(ir, n.b))) {
    bool left = tir_is_int(ir, n.a);
    tir_linear_of(ir, left ? n.b : n.a);
    tir_sum_add(ir, &sum, left ? n.b : n.a, tir_at(ir, left ? n.a : n.b)->imm);
  } else {
    tir_sum_add_term(ir, &sum, e, 1);
  }
  if (sum.overflow) {
    tir_sum_drop(ir, &sum);
    sum = tir_sum_open(ir);
    tir_sum_add_term(ir, &sum, e, 1);
  }
  struct tir_linear l = keep_terms(ir, sum.constant, tir_sum_terms(ir, &sum), sum.count);
  tir_sum_drop(ir, &sum);
  ir->linears.at[e] = l;
  return l;
}

struct tir_linear tir_linear_of(struct tir *ir, tir_expr e) {
  return ir->linears.at[e].first != UINT32_MAX ? ir->linears.at[e] : make_linear(ir, e);
}

tir_expr tir_from_terms(struct tir *ir, tir_type type, int64_t constant, const struct tir_term *terms, uint32_t count) {
  struct tir_sum sum = tir_sum_open(ir);
  sum.constant = constant;
  for (uint32_t i = 0; i < count; i++) tir_sum_add(ir, &sum, terms[i].atom, terms[i].coefficient);
  tir_sum_recombine(ir, &sum);
  assert(!sum.overflow && "the coefficients of an index leave 64 bits");
  return tir_sum_close(ir, &sum, type);
}
