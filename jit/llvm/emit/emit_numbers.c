/* Which values are never NaN, of which NaN has the bits of a bfloat16 alone, and what values are at most.
 *
 * Maxima and minima leave NaN out, so what a reduction by them has gathered so far is none, if it began with none: of
 * it and an element x86 then takes one instruction, where three check both. And arithmetic gives the NaN of an operand,
 * made quiet, or one of its own, whose lower bits are zeros. So what is computed of widened bfloat16 alone is rounded
 * to bfloat16 as a number is: the addition that rounds changes no higher bit of such NaN.
 *
 * A buffer, or a variable, has a property where each value that it gets has it, if no load of such a buffer gives one
 * that lacks it: by induction over the stores that are carried out. What was never written is left out: nothing depends
 * on it. Source: IEEE 754-2019, section 6.2.3 (propagation), and how x86 and ARM do it. */
#include "emit.h"

#include <math.h>
#include <string.h>

/* Functions that are arithmetic of their argument. */
static bool is_arithmetic(const char *name) {
  return !strcmp(name, "exp") || !strcmp(name, "sqrt") || !strcmp(name, "rsqrt");
}

/* Expressions are graphs: a node that several share is asked of again, but of so many in all. */
enum { MOST_NODES = 512 };
static unsigned facts_of(const struct emit *e, tir_expr x, int *left);

static unsigned of_cast(const struct emit *e, const struct tir_expr_node *n, int *left) {
  tir_type from = tir_type_of(e->ir, n->a);
  if (tir_type_is_byte(n->type)) return 0; /* these have NaN in the place of infinity */
  if (!tir_type_is_float(from)) return tir_type_is_float(n->type) ? EMIT_NUMBER | EMIT_SHORT_NAN : 0;
  unsigned facts = facts_of(e, n->a, left), number = facts & EMIT_NUMBER;
  if (from == n->type) return facts;
  return tir_type_code(from) == TIR_BFLOAT ? number | EMIT_SHORT_NAN : number;
}

static unsigned facts_of(const struct emit *e, tir_expr x, int *left) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (--*left < 0) return 0;
  unsigned a, b;
  switch (n->kind) {
  case TIR_FLOAT_IMM: return EMIT_SHORT_NAN | (isnan(n->real) ? 0 : EMIT_NUMBER);
  case TIR_MIN:
  case TIR_MAX:
    a = facts_of(e, n->a, left);
    b = facts_of(e, n->b, left);
    return (a & b & EMIT_SHORT_NAN) | ((a | b) & EMIT_NUMBER);
  case TIR_ADD:
  case TIR_SUB:
  case TIR_MUL:
  case TIR_DIV:
    a = facts_of(e, n->a, left);
    return tir_type_is_float(n->type) ? a & facts_of(e, n->b, left) & EMIT_SHORT_NAN : 0;
  case TIR_BROADCAST: return facts_of(e, n->a, left);
  case TIR_SELECT: a = facts_of(e, n->b, left); return a & facts_of(e, n->c, left);
  case TIR_LET: return facts_of(e, n->b, left);
  case TIR_CAST: return of_cast(e, n, left);
  case TIR_LOAD: return e->of_buffer[n->ref];
  case TIR_VAR: return e->of_var[n->ref];
  case TIR_CALL:
    if (n->count != 1 || !is_arithmetic(tir_text(e->ir, n->ref))) return 0;
    return facts_of(e, tir_operands(e->ir, n->operands)[0], left) & EMIT_SHORT_NAN;
  default: return 0;
  }
}

unsigned emit_facts(const struct emit *e, tir_expr x) {
  int left = MOST_NODES;
  return facts_of(e, x, &left);
}

/* ---- Bounds ---- */

/* Of what is not NaN. */
struct bounds {
  double least, most;
};
static const struct bounds unbounded = {-INFINITY, INFINITY};
static struct bounds bounds_of(const struct emit *e, tir_expr x, int *left);

/* The number that all lanes have; NaN: there is none. */
static double number_of(const struct tir *ir, tir_expr x) {
  const struct tir_expr_node *n = tir_at(ir, x);
  if (n->kind == TIR_BROADCAST) n = tir_at(ir, n->a);
  return n->kind == TIR_FLOAT_IMM ? n->real : NAN;
}

static struct bounds negated(struct bounds b) { return (struct bounds){-b.most, -b.least}; }

/* Of an operand that NaN leaves to the other, unless it is never NaN. */
static double joined(double a, double b, unsigned number_a, unsigned number_b, double (*one)(double, double),
                     double (*other)(double, double)) {
  if (number_a && number_b) return one(a, b);
  return number_a ? a : number_b ? b : other(a, b);
}

static struct bounds of_extreme(const struct emit *e, const struct tir_expr_node *n, int *left) {
  struct bounds a = bounds_of(e, n->a, left), b = bounds_of(e, n->b, left);
  unsigned of_a = facts_of(e, n->a, left) & EMIT_NUMBER, of_b = facts_of(e, n->b, left) & EMIT_NUMBER;
  if (n->kind == TIR_MIN)
    return (struct bounds){fmin(a.least, b.least), joined(a.most, b.most, of_a, of_b, fmin, fmax)};
  return (struct bounds){joined(a.least, b.least, of_a, of_b, fmax, fmin), fmax(a.most, b.most)};
}

/* x, or what 0 - x is, if a comparison with a number chose it: where that is false, x is NaN or on the other side. */
static struct bounds of_chosen(const struct emit *e, tir_expr chosen, const struct tir_expr_node *test, bool holds,
                               int *left) {
  const struct tir_expr_node *n = tir_at(e->ir, chosen);
  double limit = test->kind == TIR_LT ? number_of(e->ir, test->b) : NAN;
  struct bounds x = holds ? (struct bounds){-INFINITY, limit} : (struct bounds){limit, INFINITY};
  if (isnan(limit)) return bounds_of(e, chosen, left);
  if (chosen == test->a) return x;
  bool opposite = n->kind == TIR_SUB && n->b == test->a && number_of(e->ir, n->a) == 0;
  return opposite ? negated(x) : bounds_of(e, chosen, left);
}

static struct bounds of_select(const struct emit *e, const struct tir_expr_node *n, int *left) {
  const struct tir_expr_node *test = tir_at(e->ir, n->a);
  struct bounds then = of_chosen(e, n->b, test, true, left), otherwise = of_chosen(e, n->c, test, false, left);
  return (struct bounds){fmin(then.least, otherwise.least), fmax(then.most, otherwise.most)};
}

static struct bounds bounds_of(const struct emit *e, tir_expr x, int *left) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (--*left < 0 || !tir_type_is_float(n->type)) return unbounded;
  struct bounds a;
  switch (n->kind) {
  case TIR_FLOAT_IMM: return isnan(n->real) ? unbounded : (struct bounds){n->real, n->real};
  case TIR_BROADCAST: return bounds_of(e, n->a, left);
  case TIR_MIN:
  case TIR_MAX: return of_extreme(e, n, left);
  case TIR_SELECT: return of_select(e, n, left);
  case TIR_SUB: a = negated(bounds_of(e, n->b, left)); return number_of(e->ir, n->a) == 0 ? a : unbounded;
  case TIR_CALL:
    if (n->count != 1 || strcmp(tir_text(e->ir, n->ref), "fabs") != 0) return unbounded;
    return (struct bounds){0, INFINITY};
  default: return unbounded;
  }
}

double emit_most(const struct emit *e, tir_expr real) {
  int left = MOST_NODES;
  return bounds_of(e, real, &left).most;
}

/* ---- Of buffers and variables ---- */

/* Whether all stores to the buffer are statements of their own: nothing else shares its memory. */
static bool is_stored_by_name(const struct emit *e, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, buffer);
  return tir_type_is_float(b->type) && (!b->data || tir_is_placed(e->ir, buffer));
}

/* The buffer whose memory an expression gives, which may be a view's, or TIR_NONE. */
static tir_buffer addressed(const struct tir *ir, tir_expr x) {
  const struct tir_expr_node *n = tir_at(ir, x);
  if (n->kind == TIR_DATA) return n->ref;
  if (n->kind != TIR_CALL || n->count != 1 || strcmp(tir_text(ir, n->ref), "address_of") != 0) return TIR_NONE;
  n = tir_at(ir, tir_operands(ir, n->operands)[0]);
  return n->kind == TIR_LOAD ? n->ref : TIR_NONE;
}

/* What begins with all properties, before what it gets is looked at. */
static void begin_facts(struct emit *e) {
  const struct tir *ir = e->ir;
  for (uint32_t s = 1; s < ir->stmts.count; s++) {
    const struct tir_stmt_node *n = &ir->stmts.at[s];
    if (n->kind == TIR_ALLOC || n->kind == TIR_DECLARE)
      e->of_buffer[n->alloc.buffer] = is_stored_by_name(e, n->alloc.buffer) ? EMIT_NUMBER | EMIT_SHORT_NAN : 0;
    if (n->kind == TIR_BIND) e->of_var[n->bind.var] = EMIT_NUMBER | EMIT_SHORT_NAN;
  }
  for (uint32_t x = 1; x < ir->exprs.count; x++) {
    const struct tir_expr_node *n = &ir->exprs.at[x];
    e->of_buffer[addressed(ir, x)] = 0;
    if (n->kind == TIR_LET) e->of_var[n->ref] = EMIT_NUMBER | EMIT_SHORT_NAN;
  }
}

/* Takes from a buffer or a variable what a value that it gets lacks. */
static bool take(struct emit *e, uint8_t *facts, tir_expr value) {
  uint8_t left = *facts ? (uint8_t)(*facts & emit_facts(e, value)) : 0;
  bool changed = left != *facts;
  *facts = left;
  return changed;
}

void emit_find_facts(struct emit *e) {
  const struct tir *ir = e->ir;
  begin_facts(e);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t s = 1; s < ir->stmts.count; s++) {
      const struct tir_stmt_node *n = &ir->stmts.at[s];
      if (n->kind == TIR_STORE) changed |= take(e, &e->of_buffer[n->store.buffer], n->store.value);
      if (n->kind == TIR_BIND) changed |= take(e, &e->of_var[n->bind.var], n->bind.value);
    }
    for (uint32_t x = 1; x < ir->exprs.count; x++) {
      const struct tir_expr_node *n = &ir->exprs.at[x];
      if (n->kind == TIR_LET) changed |= take(e, &e->of_var[n->ref], n->a);
    }
  }
}
