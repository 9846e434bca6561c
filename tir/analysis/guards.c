/* What conditions around a statement say of indices in it: threads that share out what does not divide touch no more
 * than there is. They say it of what they compare, and of each loop that this is a sum of.
 * Requires: an arena that may grow: a variable stands for what a condition guards. */
#include "analysis.h"
#include "tir/arith/linear.h"

/* In its place stands a variable from `least` on, below `end`. */
static void guard(struct tir *ir, struct tir_guards *guards, tir_expr left, int64_t least, int64_t end) {
  tir_type type = tir_type_of(ir, left);
  if (guards->count == TIR_MOST_GUARDS) return;
  tir_expr from = tir_int(ir, type, least), extent = tir_int(ir, type, end - least);
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "guarded"), type, from, extent);
  guards->left[guards->count] = left, guards->var[guards->count] = tir_var_expr(ir, var);
  guards->count++;
}

/* Loops of what is below `end`: each by itself, where the others are at their least. */
static void guard_loops(struct tir *ir, struct tir_guards *guards, tir_expr left, int64_t end) {
  enum { MOST_TERMS = 16 };
  struct tir_linear sum = tir_linear_of(ir, left);
  struct tir_term terms[MOST_TERMS];
  int64_t least = tir_at(ir, left)->lo;
  for (uint32_t i = 0; i < sum.count && i < MOST_TERMS; i++) terms[i] = tir_terms(ir, sum)[i];
  for (uint32_t i = 0; i < sum.count && i < MOST_TERMS; i++) {
    struct tir_expr_node n = *tir_at(ir, terms[i].atom);
    if (n.kind != TIR_VAR || terms[i].coefficient < 1 || n.lo < 0) continue;
    int64_t most = n.lo + (end - 1 - least) / terms[i].coefficient;
    if (most < n.hi) guard(ir, guards, terms[i].atom, n.lo, most + 1);
  }
}

static void add_guard(struct tir *ir, struct tir_guards *guards, tir_stmt s, tir_expr condition) {
  struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind == TIR_AND) {
    add_guard(ir, guards, s, n.a);
    add_guard(ir, guards, s, n.b);
    return;
  }
  if (n.kind != TIR_LT || !tir_is_index(ir, n.a)) return;
  tir_expr left = tir_over_loops(ir, s, n.a), right = tir_over_loops(ir, s, n.b);
  int64_t least = tir_at(ir, left)->lo, end = tir_is_int(ir, right) ? tir_at(ir, right)->imm : INT64_MIN;
  if (least < 0 || least >= end || tir_at(ir, left)->hi < end) return;
  guard(ir, guards, left, least, end);
  guard_loops(ir, guards, left, end);
}

struct tir_guards tir_find_guards(struct tir *ir, tir_stmt s) {
  struct tir_guards guards = {0};
  for (tir_stmt at = s, p; at; at = p) {
    p = tir_stmt_at(ir, at)->parent;
    if (tir_is(ir, at, TIR_BLOCK) && tir_as(ir, at, TIR_BLOCK)->block.predicate)
      add_guard(ir, &guards, p, tir_as(ir, at, TIR_BLOCK)->block.predicate);
    if (p && tir_is(ir, p, TIR_IF) && tir_stmt_at(ir, at)->list == TIR_BODY)
      add_guard(ir, &guards, p, tir_as(ir, p, TIR_IF)->test.condition);
  }
  return guards;
}

uint32_t tir_guard_vars(const struct tir *ir, const struct tir_guards *guards, tir_var *out) {
  for (uint32_t i = 0; i < guards->count; i++) out[i] = tir_at(ir, guards->var[i])->ref;
  return guards->count;
}

static bool is_in_other(const struct tir *ir, const void *context, tir_var v) {
  return tir_uses_var(ir, *(const tir_expr *)context, v);
}

/* The index whose terms that depend on what is limited are its quotient by some number, with the variable's in their
 * place; TIR_NONE: they are not. */
static tir_expr as_quotient(struct tir *ir, tir_expr e, tir_expr left, tir_expr var) {
  enum { MOST_TERMS = 8 };
  struct tir_linear sum = tir_linear_of(ir, e), limited = tir_linear_of(ir, left);
  tir_type type = tir_type_of(ir, e);
  struct tir_term within[MOST_TERMS], rest[MOST_TERMS];
  uint32_t inner = 0, outer = 0;
  int64_t by = 0;
  if (sum.count > MOST_TERMS || type != tir_type_of(ir, left)) return TIR_NONE;
  for (uint32_t i = 0; i < sum.count; i++) {
    struct tir_term t = tir_terms(ir, sum)[i];
    for (uint32_t k = 0; k < limited.count; k++)
      if (tir_terms(ir, limited)[k].atom == t.atom) by = tir_terms(ir, limited)[k].coefficient / t.coefficient;
    if (tir_any_var(ir, t.atom, is_in_other, &left))
      within[inner++] = t;
    else
      rest[outer++] = t;
  }
  if (by < 2) return TIR_NONE;
  int64_t constant = sum.constant;
  tir_expr number = tir_int(ir, type, by), part = tir_from_terms(ir, type, 0, within, inner);
  if (!tir_is_const(ir, tir_simplify(ir, tir_sub(ir, tir_floordiv(ir, left, number), part)), 0)) return TIR_NONE;
  return tir_add(ir, tir_floordiv(ir, var, number), tir_from_terms(ir, type, constant, rest, outer));
}

/* The index with the variable in the place of what is limited, where that stands whole: as a term, or divided. */
static tir_expr guarded(struct tir *ir, tir_expr e, tir_expr left, tir_expr var) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (e == left) return var;
  if (!tir_any_var(ir, e, is_in_other, &left)) return e;
  if (tir_is_index(ir, e) && tir_type_of(ir, e) == tir_type_of(ir, left)) {
    tir_expr rest = tir_sub(ir, e, left);
    if (!tir_any_var(ir, rest, is_in_other, &left)) return tir_add(ir, var, rest);
  }
  if (n.kind < TIR_ADD || n.kind > TIR_MAX) return e;
  tir_expr quotient = tir_is_index(ir, e) && n.kind == TIR_ADD ? as_quotient(ir, e, left, var) : TIR_NONE;
  if (quotient) return quotient;
  return tir_make(ir, (enum tir_kind)n.kind, guarded(ir, n.a, left, var), guarded(ir, n.b, left, var));
}

tir_expr tir_guarded(struct tir *ir, tir_expr e, const struct tir_guards *guards) {
  for (uint32_t i = 0; i < guards->count; i++) e = guarded(ir, e, guards->left[i], guards->var[i]);
  return e;
}
