/* Expressions as text: with the brackets that precedence asks for, and in such a form that the reader, which folds
 * constants, gives the same tree back. */
#include "printer.h"
#include "tir/arith/bounds.h"
#include "tir/text/calls.h"

#include <math.h>
#include <string.h>

enum level { LEVEL_NONE, LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_ATOM };

struct notation {
  const char *sign, *call;
  enum level level;
};

/* By kind: the operator and its level, and the name of the call that keeps the node as it is. */
static const struct notation notations[TIR_KIND_COUNT] = {[TIR_ADD] = {"+", "Add", LEVEL_SUM},
                                                          [TIR_SUB] = {"-", "Sub", LEVEL_SUM},
                                                          [TIR_MUL] = {"*", "Mul", LEVEL_PRODUCT},
                                                          [TIR_DIV] = {"/", "Div", LEVEL_PRODUCT},
                                                          [TIR_MOD] = {NULL, "Mod", LEVEL_ATOM},
                                                          [TIR_FLOORDIV] = {"//", "FloorDiv", LEVEL_PRODUCT},
                                                          [TIR_FLOORMOD] = {"%", "FloorMod", LEVEL_PRODUCT},
                                                          [TIR_MIN] = {NULL, "Min", LEVEL_ATOM},
                                                          [TIR_MAX] = {NULL, "Max", LEVEL_ATOM},
                                                          [TIR_EQ] = {"==", "EQ", LEVEL_COMPARE},
                                                          [TIR_NE] = {"!=", "NE", LEVEL_COMPARE},
                                                          [TIR_LT] = {"<", "LT", LEVEL_COMPARE},
                                                          [TIR_LE] = {"<=", "LE", LEVEL_COMPARE},
                                                          [TIR_GT] = {">", "GT", LEVEL_COMPARE},
                                                          [TIR_GE] = {">=", "GE", LEVEL_COMPARE},
                                                          [TIR_AND] = {"and", "And", LEVEL_AND},
                                                          [TIR_OR] = {"or", "Or", LEVEL_OR}};

static bool is_constant(const struct tir *ir, tir_expr e) {
  return tir_at(ir, e)->kind == TIR_INT_IMM || tir_at(ir, e)->kind == TIR_FLOAT_IMM;
}

/* Whether the reader would not give this node back from an operator between its operands: see reader_fold.c. These
 * divisions are operators of integers only. */
static bool would_fold(const struct tir *ir, const struct tir_expr_node *n) {
  if (tir_type_of(ir, n->a) != tir_type_of(ir, n->b)) return true;
  bool whole = n->kind == TIR_FLOORDIV || n->kind == TIR_FLOORMOD || n->kind == TIR_MOD;
  if (whole && !tir_type_is_int(n->type)) return true;
  if (is_constant(ir, n->a) && is_constant(ir, n->b)) return true;
  switch (n->kind) {
  case TIR_ADD: return tir_is_number(ir, n->a, 0) || tir_is_number(ir, n->b, 0);
  case TIR_SUB: return tir_is_number(ir, n->b, 0);
  case TIR_MUL:
    return tir_is_number(ir, n->a, 0) || tir_is_number(ir, n->a, 1) || tir_is_number(ir, n->b, 0) ||
           tir_is_number(ir, n->b, 1);
  case TIR_DIV:
  case TIR_MOD:
  case TIR_FLOORDIV:
  case TIR_FLOORMOD: return tir_is_number(ir, n->a, 0) || tir_is_number(ir, n->b, 0) || tir_is_number(ir, n->b, 1);
  case TIR_AND:
  case TIR_OR: return is_constant(ir, n->a) || is_constant(ir, n->b);
  case TIR_MIN:
  case TIR_MAX: return n->a == n->b;
  default: return false;
  }
}

/* ---- Literals ---- */

void tir_print_string(struct tir_text *t, const char *text, size_t length) {
  assert(text || !length);
  tir_put_n(t, "\"", 1);
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      tir_putf(t, "\\%c", c);
    else if (c == '\n')
      tir_put_n(t, "\\n", 2);
    else if (c == '\t')
      tir_put_n(t, "\\t", 2);
    else if (c < 32 || c == 127)
      tir_putf(t, "\\x%02x", c);
    else
      tir_put_n(t, text + i, 1);
  }
  tir_put_n(t, "\"", 1);
}

void tir_print_type(struct tir_text *t, tir_type type) {
  char text[24];
  tir_putf(t, "\"%s\"", tir_type_text(type, text));
}

static void put_real(struct tir_text *t, double value) {
  char text[320]; /* DBL_MAX has 309 digits */
  if (isnan(value))
    tir_put(t, "\"nan\"");
  else if (isinf(value))
    tir_put(t, value < 0 ? "\"-inf\"" : "\"inf\"");
  else
    tir_put_n(t, text, (size_t)tir_number_text(text, sizeof text, value == nearbyint(value) ? "%.1f" : "%.17g", value));
}

static void put_constant(struct tir_printer *p, const struct tir_expr_node *n) {
  assert(n->kind == TIR_INT_IMM || n->kind == TIR_FLOAT_IMM);
  char type[24];
  if (n->kind == TIR_INT_IMM && n->type == TIR_T_I32) {
    tir_putf(&p->line, "%lld", (long long)n->imm);
    return;
  }
  tir_putf(&p->line, "T.%s(", tir_type_text(n->type, type));
  if (n->kind == TIR_FLOAT_IMM)
    put_real(&p->line, n->real);
  else if (tir_type_code(n->type) == TIR_BOOL)
    tir_put(&p->line, n->imm ? "True" : "False");
  else
    tir_putf(&p->line, "%lld", (long long)n->imm);
  tir_put_n(&p->line, ")", 1);
}

static void put_symbol(struct tir_printer *p, tir_symbol s) {
  assert(s < p->ir->symbols.count);
  tir_print_string(&p->line, tir_text(p->ir, s), p->ir->symbols.at[s].length);
}

/* ---- Lists ---- */

static void put_items(struct tir_printer *p, const struct tir_expr_node *n, bool annotation) {
  assert(n->kind == TIR_LIST || n->kind == TIR_MAP || n->kind == TIR_CALL);
  bool map = n->kind == TIR_MAP;
  tir_put_n(&p->line, map ? "{" : "[", 1);
  for (uint32_t i = 0; i < n->count; i++) {
    tir_expr item = p->ir->operands.at[n->operands + i];
    if (i) tir_put_n(&p->line, map && i % 2 ? ": " : ", ", 2);
    if (annotation)
      tir_print_annotation(p, item);
    else
      tir_print_value(p, item);
  }
  tir_put_n(&p->line, map ? "}" : "]", 1);
}

void tir_print_annotation(struct tir_printer *p, tir_expr e) {
  const struct tir_expr_node *n = tir_at(p->ir, e);
  if (n->kind == TIR_LIST || n->kind == TIR_MAP)
    put_items(p, n, true);
  else if (n->kind == TIR_INT_IMM && n->type == TIR_T_BOOL)
    tir_put(&p->line, n->imm ? "True" : "False");
  else if (n->kind == TIR_FLOAT_IMM && n->type == TIR_T_F32 && isfinite(n->real))
    put_real(&p->line, n->real);
  else
    tir_print_value(p, e);
}

void tir_print_dict(struct tir_printer *p, struct tir_span annotations) {
  tir_put_n(&p->line, "{", 1);
  for (uint32_t i = 0; i < annotations.count; i++) {
    const struct tir_annotation *a = &p->ir->annotations.at[annotations.first + i];
    if (i) tir_put_n(&p->line, ", ", 2);
    put_symbol(p, a->key);
    tir_put_n(&p->line, ": ", 2);
    tir_print_annotation(p, a->value);
  }
  tir_put_n(&p->line, "}", 1);
}

/* ---- Operators ---- */

static void print_at(struct tir_printer *p, tir_expr e, enum level least);

static void put_call(struct tir_printer *p, const char *name, tir_expr a, tir_expr b, tir_expr c) {
  tir_putf(&p->line, "T.%s(", name);
  tir_print_value(p, a);
  if (b) tir_put_n(&p->line, ", ", 2), tir_print_value(p, b);
  if (c) tir_put_n(&p->line, ", ", 2), tir_print_value(p, c);
  tir_put_n(&p->line, ")", 1);
}

static void print_binary(struct tir_printer *p, const struct tir_expr_node *n, enum level least) {
  assert(n->kind >= TIR_ADD && n->kind <= TIR_OR);
  const struct notation *s = &notations[n->kind];
  bool folds = would_fold(p->ir, n);
  if (n->kind == TIR_MIN || n->kind == TIR_MAX || n->kind == TIR_MOD) {
    const char *name = n->kind == TIR_MIN ? "min" : n->kind == TIR_MAX ? "max" : "truncmod";
    return put_call(p, folds ? s->call : name, n->a, n->b, TIR_NONE);
  }
  /* Operators of vectors of conditions, and / of integers, mean something else. */
  bool vector = tir_type_lanes(n->type) > 1 && (n->kind == TIR_AND || n->kind == TIR_OR);
  bool truncates = n->kind == TIR_DIV && !tir_type_is_float(n->type);
  if (folds || vector || truncates) return put_call(p, s->call, n->a, n->b, TIR_NONE);
  bool bracket = s->level < least;
  if (bracket) tir_put_n(&p->line, "(", 1);
  /* Comparisons do not chain: both operands stand in brackets when they are comparisons themselves. */
  print_at(p, n->a, s->level == LEVEL_COMPARE ? LEVEL_SUM : s->level);
  tir_putf(&p->line, " %s ", s->sign);
  print_at(p, n->b, s->level + 1);
  if (bracket) tir_put_n(&p->line, ")", 1);
}

static void print_not(struct tir_printer *p, tir_expr a, enum level least) {
  bool bracket = LEVEL_NOT < least;
  tir_put(&p->line, bracket ? "(not " : "not ");
  print_at(p, a, LEVEL_NOT);
  if (bracket) tir_put_n(&p->line, ")", 1);
}

void tir_print_sum(struct tir_printer *p, tir_expr a, tir_expr b) {
  const struct tir *ir = p->ir;
  const struct tir_expr_node *x = tir_at(ir, a), *y = tir_at(ir, b);
  int64_t sum;
  if (x->kind == TIR_INT_IMM && y->kind == TIR_INT_IMM) {
    struct tir_expr_node n = *x;
    struct tir_bounds fits = tir_type_bounds(n.type);
    if (__builtin_add_overflow(x->imm, y->imm, &sum) || sum < fits.lo || sum > fits.hi)
      return put_call(p, "Add", a, b, TIR_NONE);
    n.imm = sum;
    return put_constant(p, &n);
  }
  if (tir_is_number(ir, a, 0)) return tir_print_value(p, b);
  if (tir_is_number(ir, b, 0)) return tir_print_value(p, a);
  print_at(p, a, LEVEL_SUM);
  tir_put_n(&p->line, " + ", 3);
  print_at(p, b, LEVEL_PRODUCT);
}

/* ---- Elements and regions ---- */

/* start:stop or start:stop:step */
static void print_ramp_slice(struct tir_printer *p, const struct tir_expr_node *n) {
  const struct tir_expr_node *base = tir_at(p->ir, n->a), *stride = tir_at(p->ir, n->b);
  int64_t length = (int64_t)tir_type_lanes(n->type) * stride->imm;
  tir_print_value(p, n->a);
  tir_put_n(&p->line, ":", 1);
  struct tir_expr_node end = *stride;
  end.imm = base->kind == TIR_INT_IMM ? base->imm + length : length;
  if (base->kind != TIR_INT_IMM) {
    print_at(p, n->a, LEVEL_SUM);
    tir_put_n(&p->line, " + ", 3);
  }
  put_constant(p, &end);
  if (stride->imm == 1) return;
  tir_put_n(&p->line, ":", 1);
  put_constant(p, stride);
}

static void print_index(struct tir_printer *p, tir_expr e) {
  const struct tir_expr_node *n = tir_at(p->ir, e);
  bool constant = n->kind == TIR_RAMP && tir_at(p->ir, n->b)->kind == TIR_INT_IMM && tir_at(p->ir, n->b)->imm > 0 &&
                  tir_at(p->ir, n->b)->imm < 1 << 20;
  if (constant) return print_ramp_slice(p, n);
  tir_print_value(p, e);
}

void tir_print_element(struct tir_printer *p, tir_buffer buffer, uint32_t first, uint32_t count) {
  tir_put(&p->line, tir_printed_buffer(p, buffer));
  tir_put_n(&p->line, "[", 1);
  if (!count) tir_put_n(&p->line, "()", 2);
  for (uint32_t i = 0; i < count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    print_index(p, p->ir->operands.at[first + i]);
  }
  tir_put_n(&p->line, "]", 1);
}

void tir_print_region(struct tir_printer *p, struct tir_region region) {
  assert(tir_is_buffer(p->ir, region.buffer));
  uint32_t rank = tir_buffer_at(p->ir, region.buffer)->rank;
  tir_put(&p->line, tir_printed_buffer(p, region.buffer));
  tir_put_n(&p->line, "[", 1);
  if (!rank) tir_put_n(&p->line, "()", 2);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr min = p->ir->operands.at[region.ranges + 2 * i], extent = p->ir->operands.at[region.ranges + 2 * i + 1];
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_print_value(p, min);
    if (tir_is_const(p->ir, extent, 1)) continue;
    tir_put_n(&p->line, ":", 1);
    tir_print_sum(p, min, extent);
  }
  tir_put_n(&p->line, "]", 1);
}

/* A load under a predicate: buffer.vload([indices], predicate=…). */
static void print_masked_load(struct tir_printer *p, const struct tir_expr_node *n) {
  assert(n->kind == TIR_LOAD && n->a);
  tir_putf(&p->line, "%.300s.vload([", tir_printed_buffer(p, n->ref));
  for (uint32_t i = 0; i < n->count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_print_value(p, p->ir->operands.at[n->operands + i]);
  }
  tir_put(&p->line, "], predicate=");
  tir_print_value(p, n->a);
  tir_put_n(&p->line, ")", 1);
}

static void print_slice(struct tir_printer *p, const struct tir_expr_node *n) {
  assert(n->kind == TIR_SLICE);
  tir_print_value(p, n->a);
  tir_put_n(&p->line, ":", 1);
  tir_print_value(p, n->b);
  if (!n->c) return;
  tir_put_n(&p->line, ":", 1);
  tir_print_value(p, n->c);
}

/* ---- Calls ---- */

static void print_call(struct tir_printer *p, tir_expr e) {
  const struct tir_expr_node *n = tir_at(p->ir, e);
  const char *op = tir_text(p->ir, n->ref);
  bool function = !strncmp(op, "Module.", 7);
  enum tir_dtype_place place = function ? TIR_DTYPE_ABSENT : tir_call_dtype_place(p->ir, e);
  tir_put(&p->line, function ? "" : "T.");
  tir_put(&p->line, op);
  tir_put_n(&p->line, "(", 1);
  if (place == TIR_DTYPE_FIRST) tir_print_type(&p->line, n->type);
  for (uint32_t i = 0; i < n->count; i++) {
    if (i || place == TIR_DTYPE_FIRST) tir_put_n(&p->line, ", ", 2);
    tir_print_value(p, p->ir->operands.at[n->operands + i]);
  }
  if (place == TIR_DTYPE_LAST) {
    if (n->count) tir_put_n(&p->line, ", ", 2);
    tir_print_type(&p->line, n->type);
  }
  if (place == TIR_DTYPE_KEYWORD) {
    tir_put(&p->line, n->count ? ", dtype=" : "dtype=");
    tir_print_type(&p->line, n->type);
  }
  tir_put_n(&p->line, ")", 1);
}

static void print_let(struct tir_printer *p, const struct tir_expr_node *n) {
  assert(n->kind == TIR_LET);
  tir_put(&p->line, "T.Let(");
  tir_var_name(p, n->ref); /* declared before its first use */
  tir_print_value(p, n->b);
  tir_put(&p->line, ", where={");
  tir_put(&p->line, tir_var_name(p, n->ref));
  tir_put_n(&p->line, ": ", 2);
  tir_print_value(p, n->a);
  tir_put_n(&p->line, "})", 2);
}

/* ---- All kinds ---- */

static void print_other(struct tir_printer *p, tir_expr e) {
  const struct tir_expr_node *n = tir_at(p->ir, e);
  char type[24];
  switch (n->kind) {
  case TIR_STRING_IMM: put_symbol(p, n->ref); break;
  case TIR_NONE_IMM: tir_put(&p->line, "None"); break;
  case TIR_VAR: tir_put(&p->line, tir_var_name(p, n->ref)); break;
  case TIR_DATA: tir_put(&p->line, tir_printed_buffer(p, n->ref)), tir_put(&p->line, ".data"); break;
  case TIR_CAST:
    tir_putf(&p->line, "T.Cast(\"%s\", ", tir_type_text(n->type, type));
    tir_print_value(p, n->a);
    tir_put_n(&p->line, ")", 1);
    break;
  case TIR_SELECT: put_call(p, "Select", n->a, n->b, n->c); break;
  case TIR_LET: print_let(p, n); break;
  case TIR_RAMP:
    tir_put(&p->line, "T.Ramp(");
    tir_print_value(p, n->a);
    tir_put_n(&p->line, ", ", 2);
    tir_print_value(p, n->b);
    tir_putf(&p->line, ", %d)", tir_type_lanes(n->type));
    break;
  case TIR_BROADCAST:
    tir_put(&p->line, "T.Broadcast(");
    tir_print_value(p, n->a);
    tir_putf(&p->line, ", %d)", tir_type_lanes(n->type));
    break;
  case TIR_LOAD:
    if (n->a)
      print_masked_load(p, n);
    else
      tir_print_element(p, n->ref, n->operands, n->count);
    break;
  case TIR_CALL: print_call(p, e); break;
  case TIR_SLICE: print_slice(p, n); break;
  case TIR_LIST:
  case TIR_MAP: put_items(p, n, false); break;
  default: tir_put(&p->line, "None"); break;
  }
}

static bool is_node(void *data, tir_expr e) {
  (void)data, (void)e;
  return true;
}

/* Expressions are graphs, text is a tree: what would be without end, written out, is only said to be there. */
static bool is_too_large(struct tir_printer *p, tir_expr e) {
  uint32_t nodes = tir_at(p->ir, e)->kind <= TIR_DATA ? 1 : tir_count_in_tree(p->ir, e, is_node, NULL);
  if (nodes <= TIR_MOST_PRINTED) return false;
  tir_putf(&p->line, "<an expression of more than %d nodes>", TIR_MOST_PRINTED);
  return true;
}

static void print_at(struct tir_printer *p, tir_expr e, enum level least) {
  if (!p->nested && is_too_large(p, e)) return;
  p->nested++;
  const struct tir_expr_node *n = tir_at(p->ir, e);
  if (n->kind == TIR_INT_IMM || n->kind == TIR_FLOAT_IMM)
    put_constant(p, n);
  else if (n->kind >= TIR_ADD && n->kind <= TIR_OR)
    print_binary(p, n, least);
  else if (n->kind == TIR_NOT)
    print_not(p, n->a, least);
  else
    print_other(p, e);
  p->nested--;
}

void tir_print_value(struct tir_printer *p, tir_expr e) { print_at(p, e, LEVEL_NONE); }
