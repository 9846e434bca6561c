/* Satisfying assignments: values of some variables at which a condition holds, whatever the other variables are. First
 * the ends of the domains are tried, symbolic ones too; then constants are enumerated, one variable after another,
 * where bounds do not rule out the condition already. */
#include "analysis.h"
#include "tir/arith/bounds.h"

enum { MOST_SEARCHED = 16, MOST_CORNERED = 4, MOST_CONSTANTS = 4096, MOST_PROOFS = 16 };

struct assignment_search {
  struct tir *ir;
  tir_expr condition, given;
  tir_var vars[MOST_SEARCHED]; /* that the condition uses */
  uint32_t count;
  int64_t values[MOST_SEARCHED]; /* of the first `set` of them */
  uint32_t set, constants, proofs;
};

/* ---- Ends of the domains ---- */

static tir_expr end_of(struct tir *ir, tir_var v, bool last) {
  struct tir_var_node n = ir->vars.at[v];
  return last ? tir_sub(ir, tir_add(ir, n.min, n.extent), tir_int(ir, n.type, 1)) : n.min;
}

/* Bit i of `last`: variable i stands at its last value, else at its first. An end may name another of the variables. */
static bool holds_at_corner(struct assignment_search *s, uint32_t last) {
  struct tir *ir = s->ir;
  tir_expr condition = s->condition;
  for (uint32_t round = 0; round < s->count && tir_uses_any_var(ir, condition, s->vars, s->count); round++) {
    for (uint32_t i = 0; i < s->count; i++) {
      struct tir_var_node n = ir->vars.at[s->vars[i]];
      if (n.min && n.extent) tir_subst_var(ir, s->vars[i], end_of(ir, s->vars[i], last >> i & 1));
    }
    condition = tir_subst(ir, condition);
    tir_subst_clear(ir);
  }
  return !tir_uses_any_var(ir, condition, s->vars, s->count) && tir_prove_under(ir, s->given, condition);
}

static bool holds_at_ends(struct assignment_search *s) {
  if (holds_at_corner(s, 0) || holds_at_corner(s, (1u << s->count) - 1)) return true;
  for (uint32_t last = 1; s->count <= MOST_CORNERED && last + 1 < 1u << s->count; last++)
    if (holds_at_corner(s, last)) return true;
  return false;
}

/* ---- Constants ---- */

static struct tir_bounds evaluate(const struct assignment_search *s, tir_expr e) {
  const struct tir_expr_node *n = tir_at(s->ir, e);
  struct tir_bounds known = tir_bounds_of(s->ir, e), found = known;
  if (known.lo == known.hi || !(n->flags & TIR_HAS_VAR)) return known;
  for (uint32_t i = 0; n->kind == TIR_VAR && i < s->set; i++)
    if (s->vars[i] == n->ref) return (struct tir_bounds){s->values[i], s->values[i]};
  if (n->kind >= TIR_ADD && n->kind <= TIR_OR) {
    if (!tir_type_is_int(tir_type_of(s->ir, n->a)) && tir_type_of(s->ir, n->a) != TIR_T_BOOL) return known;
    found = tir_binary_bounds((enum tir_kind)n->kind, evaluate(s, n->a), evaluate(s, n->b));
    found = tir_wrapped_bounds((enum tir_kind)n->kind, n->type, n->flags, found);
  }
  if (n->kind == TIR_NOT) {
    struct tir_bounds a = evaluate(s, n->a);
    found = (struct tir_bounds){1 - a.hi, 1 - a.lo};
  }
  if (n->kind == TIR_CAST && tir_type_is_int(tir_type_of(s->ir, n->a))) {
    struct tir_bounds a = evaluate(s, n->a), fits = tir_type_bounds(n->type);
    if (a.lo >= fits.lo && a.hi <= fits.hi) found = a;
  }
  if (found.lo < known.lo) found.lo = known.lo;
  if (found.hi > known.hi) found.hi = known.hi;
  return found.lo <= found.hi ? found : known;
}

/* What bounds leave open, proof may decide. */
static bool is_proved(struct assignment_search *s) {
  struct tir *ir = s->ir;
  if (s->proofs++ >= MOST_PROOFS) return false;
  for (uint32_t i = 0; i < s->count; i++)
    tir_subst_var(ir, s->vars[i], tir_int(ir, ir->vars.at[s->vars[i]].type, s->values[i]));
  tir_expr condition = tir_subst(ir, s->condition);
  tir_subst_clear(ir);
  return tir_prove_under(ir, s->given, condition);
}

/* Goes on with the next variable that has no value yet. */
static bool holds_at_constants(struct assignment_search *s) {
  struct tir_bounds truth = evaluate(s, s->condition);
  if (truth.lo == 1 || truth.hi == 0) return truth.lo == 1;
  if (s->set == s->count) return is_proved(s);
  const struct tir_var_node *v = &s->ir->vars.at[s->vars[s->set]];
  int64_t first = tir_at(s->ir, v->min)->imm, extent = tir_at(s->ir, v->extent)->imm;
  bool found = false;
  s->set++;
  for (int64_t i = 0; i < extent && !found && s->constants++ < MOST_CONSTANTS; i++) {
    s->values[s->set - 1] = first + i;
    found = holds_at_constants(s);
  }
  s->set--;
  return found;
}

static bool have_constant_domains(const struct assignment_search *s) {
  for (uint32_t i = 0; i < s->count; i++) {
    const struct tir_var_node *v = &s->ir->vars.at[s->vars[i]];
    if (!v->min || !v->extent || !tir_is_int(s->ir, v->min) || !tir_is_int(s->ir, v->extent)) return false;
  }
  return true;
}

/* ---- Loops that may have no iteration ---- */

struct sizes {
  struct tir *ir;
  tir_expr *given;
};

/* A parameter of the function, of which extents are made, is 1 at least. */
static bool add_size(const struct tir *ir, const void *context, tir_var v) {
  const struct sizes *sizes = context;
  const struct tir_var_node *n = &ir->vars.at[v];
  if (n->kind != TIR_VAR_PLAIN || !tir_type_is_int(n->type)) return false;
  tir_expr one = tir_int(sizes->ir, n->type, 1);
  *sizes->given = tir_and(sizes->ir, *sizes->given, tir_make(sizes->ir, TIR_GE, tir_var_expr(sizes->ir, v), one));
  return false;
}

/* The condition, and that the loops of these variables have an iteration, as far as that is not plain. */
static tir_expr with_iterations(struct assignment_search *s, tir_expr condition, const tir_var *vars, uint32_t count) {
  struct tir *ir = s->ir;
  struct sizes sizes = {ir, &s->given};
  for (uint32_t i = 0; i < count; i++) {
    tir_expr extent = ir->vars.at[vars[i]].extent;
    if (!extent || tir_is_int(ir, extent) || tir_at(ir, extent)->lo >= 1) continue;
    tir_any_var(ir, extent, add_size, &sizes);
    condition = tir_and(ir, condition, tir_make(ir, TIR_GE, extent, tir_int(ir, tir_type_of(ir, extent), 1)));
  }
  return condition;
}

bool tir_is_satisfiable(struct tir *ir, tir_expr condition, tir_expr given, const tir_var *vars, uint32_t count) {
  MS_CHECK(vars || !count);
  struct assignment_search s = {.ir = ir, .given = given};
  s.condition = with_iterations(&s, condition, vars, count);
  if (!s.condition) return true;
  for (uint32_t i = 0; i < count; i++) {
    if (!tir_uses_var(ir, s.condition, vars[i])) continue;
    if (s.count == MOST_SEARCHED) return false;
    s.vars[s.count++] = vars[i];
  }
  return holds_at_ends(&s) || (have_constant_domains(&s) && holds_at_constants(&s));
}

/* ---- Variables of one value ---- */

/* The variable has one value wherever the predicate holds: that never does with a greater one. */
static bool has_one_value(struct tir *ir, tir_var var, tir_expr predicate) {
  struct tir_var_node v = ir->vars.at[var];
  if (!v.extent || !v.min || !tir_is_int(ir, v.min) || !tir_is_int(ir, v.extent)) return false;
  if (tir_is_const(ir, v.extent, 1)) return true;
  if (!predicate || !tir_uses_var(ir, predicate, var) || tir_at(ir, v.extent)->imm < 1) return false;
  tir_expr next = tir_add(ir, v.min, tir_int(ir, v.type, 1));
  tir_subst_var(ir, var, tir_make(ir, TIR_MAX, tir_var_expr(ir, var), next));
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  return tir_prove(ir, tir_not(ir, predicate));
}

uint32_t tir_subst_single(struct tir *ir, const tir_var *vars, uint32_t count, tir_expr predicate, tir_var *left) {
  uint32_t others = 0;
  uint64_t single = 0;
  assert(count <= 64);
  for (uint32_t i = 0; i < count; i++) single |= (uint64_t)has_one_value(ir, vars[i], predicate) << i;
  for (uint32_t i = 0; i < count; i++) {
    if (single >> i & 1)
      tir_subst_var(ir, vars[i], ir->vars.at[vars[i]].min);
    else
      left[others++] = vars[i];
  }
  return others;
}
