/* Indices in C source: scalar integers, as wide as the function needs. */
#include "emit_c.h"
#include "jit/unknown.h"

const char *emit_c_operator(enum tir_kind kind) {
  switch (kind) {
  case TIR_ADD: return "+";
  case TIR_SUB: return "-";
  case TIR_MUL: return "*";
  case TIR_DIV: return "/";
  case TIR_MOD: return "%";
  case TIR_EQ: return "==";
  case TIR_NE: return "!=";
  case TIR_LT: return "<";
  case TIR_LE: return "<=";
  case TIR_GT: return ">";
  default: return ">=";
  }
}

void emit_c_integer(struct emit_c *e, int64_t value, bool wide) {
  if (value == INT64_MIN)
    fprintf(e->out, "INT64_MIN");
  else if (wide || value != (int32_t)value || value == INT32_MIN)
    fprintf(e->out, value < 0 ? "(-INT64_C(%lld))" : "INT64_C(%lld)", value < 0 ? -(long long)value : (long long)value);
  else
    fprintf(e->out, value < 0 ? "(%lld)" : "%lld", (long long)value);
}

void emit_c_variable(struct emit_c *e, tir_var v) {
  assert(v && v < e->ir->vars.count);
  char text[JIT_UNKNOWN_TEXT];
  if (e->vars[v])
    fputs(e->vars[v], e->out);
  else
    emit_c_refuse(e, "%s", jit_unknown_variable(e->ir, e->func, v, text));
}

const char *emit_c_index_type(const struct emit_c *e) { return e->index_bits == 64 ? "int64_t" : "int32_t"; }

bool emit_c_is_index(tir_type t) {
  return tir_type_code(t) == TIR_INT && tir_type_bits(t) >= 32 && tir_type_lanes(t) == 1;
}

void emit_c_number(struct emit_c *e, tir_expr x, enum c_place place) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  bool wraps = (n->flags & TIR_OF_DATA) && n->kind >= TIR_ADD && n->kind <= TIR_MUL;
  if (wraps && emit_c_is_index(n->type)) {
    fprintf(e->out, "(%s)", emit_c_index_type(e));
    emit_c_value(e, x, C_SCALAR);
  } else {
    emit_c_index_in(e, x, place);
  }
}

/* wide: the operation would else be of two literals, of int. */
static void index_binary(struct emit_c *e, const struct tir_expr_node *n, enum c_place place) {
  enum c_place own = n->kind == TIR_MUL ? C_PRODUCT : C_SUM;
  bool both = tir_is_int(e->ir, n->a) && tir_is_int(e->ir, n->b);
  if (place > own) fputc('(', e->out);
  if (both)
    emit_c_integer(e, tir_at(e->ir, n->a)->imm, e->index_bits == 64);
  else
    emit_c_index_in(e, n->a, own);
  fprintf(e->out, " %s ", emit_c_operator((enum tir_kind)n->kind));
  emit_c_index_in(e, n->b, own + 1);
  if (place > own) fputc(')', e->out);
}

/* Of values that are not negative, an unsigned division does: what divides a power of two is then a shift. */
static void index_division(struct emit_c *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_DIV || n->kind == TIR_MOD);
  bool positive = tir_at(e->ir, n->a)->lo >= 0 && tir_at(e->ir, n->b)->lo > 0;
  bool quotient = n->kind == TIR_DIV;
  if (positive) {
    fprintf(e->out, "(%s)((u%s)", emit_c_index_type(e), emit_c_index_type(e));
    emit_c_number(e, n->a, C_UNIT);
    fprintf(e->out, quotient ? " / (u%s)" : " %% (u%s)", emit_c_index_type(e));
    emit_c_number(e, n->b, C_UNIT);
  } else {
    fputc('(', e->out);
    emit_c_number(e, n->a, C_PRODUCT);
    fputs(quotient ? " / " : " % ", e->out);
    emit_c_number(e, n->b, C_UNIT);
  }
  fputc(')', e->out);
}

static void index_extreme(struct emit_c *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_MIN || n->kind == TIR_MAX);
  char helper[64];
  struct c_type t = {TIR_INT, e->index_bits, 1};
  fprintf(e->out, "%s(", emit_c_helper(e, n->kind == TIR_MIN ? "min" : "max", t, NULL, helper));
  emit_c_number(e, n->a, C_LOW);
  fputs(", ", e->out);
  emit_c_number(e, n->b, C_LOW);
  fputc(')', e->out);
}

void emit_c_index_in(struct emit_c *e, tir_expr x, enum c_place place) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (emit_c_is_index(n->type)) {
    switch (n->kind) {
    case TIR_INT_IMM: emit_c_integer(e, n->imm, false); return;
    case TIR_VAR: emit_c_variable(e, n->ref); return;
    case TIR_ADD:
    case TIR_SUB:
    case TIR_MUL: index_binary(e, n, place); return;
    case TIR_DIV:
    case TIR_MOD: index_division(e, n); return;
    case TIR_MIN:
    case TIR_MAX: index_extreme(e, n); return;
    default: break;
    }
  }
  fprintf(e->out, "(%s)", emit_c_index_type(e));
  emit_c_value(e, x, C_SCALAR);
}

void emit_c_index(struct emit_c *e, tir_expr x) { emit_c_index_in(e, x, C_LOW); }
