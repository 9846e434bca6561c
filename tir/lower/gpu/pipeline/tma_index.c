/* Coordinates of copies: indices of what is loaded, taken apart into what the copy's own threads and loops decide,
 * which the instruction does by itself, and the rest, at which it begins. */
#include "tir/arith/linear.h"
#include "tma_copy.h"

static bool is_other(const struct tir *ir, const void *context, tir_var var) {
  const struct tma_statement *c = context;
  (void)ir;
  for (uint32_t i = 0; i < c->var_count; i++)
    if (c->vars[i].var == var) return false;
  return true;
}

int64_t tma_greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* A quotient or remainder by m of outer + inner: of multiples of a number, and of what does not reach the next. */
static bool split_division(struct tma_statement *c, enum tir_kind kind, tir_expr m, tir_expr *outer, tir_expr *inner) {
  struct tir *ir = c->ir;
  tir_type type = tir_type_of(ir, *outer);
  int64_t by = tir_at(ir, m)->imm, modulus, rest;
  tir_modular(ir, *outer, &modulus, &rest);
  tir_expr moved = tir_int(ir, type, rest), zero = tir_int(ir, type, 0);
  *outer = tir_simplify(ir, tir_sub(ir, *outer, moved)), *inner = tir_simplify(ir, tir_add(ir, *inner, moved));
  struct tir_bounds b = tir_difference_bounds(ir, *inner, zero);
  bool whole = kind == TIR_FLOORDIV;
  if (b.lo >= 0 && b.hi < tma_greatest_divisor(by, modulus)) {
    *outer = tir_simplify(ir, whole ? tir_floordiv(ir, *outer, m) : tir_floormod(ir, *outer, m));
    if (whole) *inner = zero;
    return true;
  }
  if (modulus % by) return false;
  *outer = whole ? tir_simplify(ir, tir_floordiv(ir, *outer, m)) : zero;
  *inner = tir_simplify(ir, whole ? tir_floordiv(ir, *inner, m) : tir_floormod(ir, *inner, m));
  return true;
}

bool tma_split(struct tma_statement *c, tir_expr e, tir_expr *outer, tir_expr *inner) {
  struct tir *ir = c->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  tir_expr others[2];
  if (!tir_is_index(ir, e)) return false;
  if (!tma_uses_own(c, e)) return *outer = e, *inner = tir_int(ir, n.type, 0), true;
  if (!tir_any_var(ir, e, is_other, c)) return *outer = tir_int(ir, n.type, 0), *inner = e, true;
  if (n.kind == TIR_CAST) {
    if (!tma_split(c, n.a, outer, inner)) return false;
    return *outer = tir_cast(ir, n.type, *outer), *inner = tir_cast(ir, n.type, *inner), true;
  }
  if (n.kind == TIR_ADD || n.kind == TIR_SUB) {
    if (!tma_split(c, n.a, outer, inner) || !tma_split(c, n.b, &others[0], &others[1])) return false;
    bool adds = n.kind == TIR_ADD;
    *outer = adds ? tir_add(ir, *outer, others[0]) : tir_sub(ir, *outer, others[0]);
    *inner = adds ? tir_add(ir, *inner, others[1]) : tir_sub(ir, *inner, others[1]);
    return true;
  }
  if (!tir_is_int(ir, n.b) || tir_at(ir, n.b)->imm < 1) return false;
  if (n.kind == TIR_MUL) {
    if (!tma_split(c, n.a, outer, inner)) return false;
    return *outer = tir_mul(ir, *outer, n.b), *inner = tir_mul(ir, *inner, n.b), true;
  }
  if (n.kind != TIR_FLOORDIV && n.kind != TIR_FLOORMOD) return false;
  return tma_split(c, n.a, outer, inner) && split_division(c, (enum tir_kind)n.kind, n.b, outer, inner);
}

/* What is left of an index of what it loads without that of what it stores, which moves it by one; TIR_NONE: threads
 * or loops of the copy decide it. */
tir_expr tma_coordinate(struct tma_statement *c, tir_expr from, tir_expr to) {
  struct tir *ir = c->ir;
  tir_expr outer, inner;
  if (!to) to = tir_int(ir, tir_type_of(ir, from), 0);
  if (tir_type_of(ir, to) != tir_type_of(ir, from)) to = tir_cast(ir, tir_type_of(ir, from), to);
  tir_expr at = tir_simplify(ir, tir_sub(ir, from, to));
  if (!tma_uses_own(c, at)) return at;
  if (!tma_split(c, from, &outer, &inner)) return TIR_NONE;
  at = tir_simplify(ir, tir_sub(ir, inner, to));
  return tma_uses_own(c, at) ? TIR_NONE : tir_simplify(ir, tir_add(ir, outer, at));
}

static bool is_positive(const struct tir *ir, tir_expr e) { return tir_is_int(ir, e) && tir_at(ir, e)->imm > 0; }

tir_expr tma_as_quotient(struct tir *ir, tir_expr e, int64_t *by) {
  enum { MOST_TERMS = 8 };
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_FLOORDIV && is_positive(ir, n.b)) return *by = tir_at(ir, n.b)->imm, n.a;
  if (!tir_is_index(ir, e)) return TIR_NONE;
  struct tir_linear sum = tir_linear_of(ir, e);
  struct tir_term terms[MOST_TERMS];
  uint32_t at = sum.count;
  if (sum.count < 2 || sum.count > MOST_TERMS) return TIR_NONE;
  for (uint32_t i = 0; i < sum.count; i++) {
    terms[i] = tir_terms(ir, sum)[i];
    const struct tir_expr_node *atom = tir_at(ir, terms[i].atom);
    if (atom->kind != TIR_FLOORDIV || terms[i].coefficient != 1 || !is_positive(ir, atom->b)) continue;
    if (at < sum.count) return TIR_NONE;
    at = i;
  }
  if (at == sum.count) return TIR_NONE;
  struct tir_expr_node quotient = *tir_at(ir, terms[at].atom);
  tir_type type = tir_type_of(ir, e);
  terms[at] = terms[sum.count - 1];
  tir_expr rest = tir_from_terms(ir, type, sum.constant, terms, sum.count - 1);
  *by = tir_at(ir, quotient.b)->imm;
  return tir_simplify(ir, tir_add(ir, tir_mul(ir, rest, quotient.b), quotient.a));
}
