/* What the reader passes around: errors with their place, names in scope, values. */
#include "reader.h"
#include "tir/arith/bounds.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors ---- */

/* Copies the line around `place`, at most some 100 bytes of it, and a caret below. */
static void quote_line(const struct tir_reader *r, size_t begin, size_t end, size_t place, char *out, size_t size) {
  assert(begin <= place && place <= end && size > 3);
  enum { WINDOW = 100 };
  size_t from = place - begin > WINDOW / 2 ? place - WINDOW / 2 : begin;
  size_t to = end - from > WINDOW ? from + WINDOW : end;
  size_t n = 0;
  for (size_t i = from; i < to && n + 1 < size; i++) out[n++] = r->source[i] ? r->source[i] : ' ';
  if (n + 1 < size) out[n++] = '\n';
  for (size_t i = from; i < place && n + 2 < size; i++) {
    if ((r->source[i] & 0xc0) == 0x80) continue; /* inside a character of several bytes */
    out[n++] = r->source[i] == '\t' ? '\t' : ' ';
  }
  if (n + 1 < size) out[n++] = '^';
  out[n] = 0;
}

static bool fail(struct tir_reader *r, size_t offset, enum ms_code code, const char *what) {
  assert(code != MS_OK && what);
  if (r->failed) return false;
  r->failed = true;
  if (offset > r->source_length) offset = r->source_length;
  size_t begin = offset, end = offset, line = 1, column = 1;
  while (begin > 0 && r->source[begin - 1] != '\n') begin--;
  while (end < r->source_length && r->source[end] != '\n') end++;
  if (end > begin && r->source[end - 1] == '\r') end--;
  for (size_t i = 0; i < begin; i++) line += r->source[i] == '\n';
  for (size_t i = begin; i < offset; i++) column += (r->source[i] & 0xc0) != 0x80;
  char quoted[512];
  quote_line(r, begin, end, offset < end ? offset : end, quoted, sizeof quoted);
  ms_fail(r->err, code, "%s:%zu:%zu: %s\n%s", r->file, line, column, what, quoted);
  return false;
}

static bool vfail(struct tir_reader *r, size_t offset, enum ms_code code, const char *format, va_list args) {
  char what[700];
  vsnprintf(what, sizeof what, format, args);
  return fail(r, offset, code, what);
}

bool tir_reader_fail_at(struct tir_reader *r, size_t offset, enum ms_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfail(r, offset, code, format, args);
  va_end(args);
  return false;
}

bool tir_reader_fail(struct tir_reader *r, uint32_t token, enum ms_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfail(r, r->quoted != UINT32_MAX ? r->quoted : tir_reader_token(r, token)->offset, code, format, args);
  va_end(args);
  return false;
}

/* ---- Tokens ---- */

bool tir_reader_is_name(const struct tir_reader *r, uint32_t at, const char *name) {
  const struct tir_token *t = tir_reader_token(r, at);
  return t->kind == TIR_TOKEN_NAME && !strcmp(tir_reader_word(r, t->symbol), name);
}

bool tir_reader_take_char(struct tir_reader *r, char c) {
  if (!tir_reader_is_char(r, c)) return false;
  r->at++;
  return true;
}

bool tir_reader_take_name(struct tir_reader *r, const char *name) {
  if (!tir_reader_is_name(r, r->at, name)) return false;
  r->at++;
  return true;
}

bool tir_reader_expect_char(struct tir_reader *r, char c, const char *where) {
  if (tir_reader_take_char(r, c)) return true;
  return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected '%c' %s", c, where);
}

/* ---- Names ---- */

tir_symbol tir_reader_symbol(struct tir_reader *r, tir_symbol word) {
  return tir_symbol_n(r->ir, tir_text(r->words, word), r->words->symbols.at[word].length);
}

tir_name tir_reader_name(struct tir_reader *r, tir_symbol word) { return tir_name_of(r->ir, tir_reader_word(r, word)); }

uint32_t tir_reader_open_scope(const struct tir_reader *r) { return r->shadowed_count; }

void tir_reader_close_scope(struct tir_reader *r, uint32_t mark) {
  assert(mark <= r->shadowed_count); /* scopes end in the order in which they began, innermost first */
  while (r->shadowed_count > mark) {
    struct tir_shadowed *s = &r->shadowed[--r->shadowed_count];
    r->bindings[s->word] = s->binding;
  }
}

void tir_reader_bind(struct tir_reader *r, tir_symbol word, enum tir_binding_kind kind, uint32_t ref) {
  assert(word < r->words->symbols.count && kind <= TIR_BOUND_TYPE);
  if (word >= r->binding_capacity) {
    uint32_t old = r->binding_capacity;
    r->bindings = tir_enlarge(r->bindings, &r->binding_capacity, (uint64_t)word + 1, sizeof *r->bindings);
    memset(r->bindings + old, 0, (r->binding_capacity - old) * sizeof *r->bindings);
  }
  if (r->shadowed_count == r->shadowed_capacity)
    r->shadowed = tir_enlarge(r->shadowed, &r->shadowed_capacity, (uint64_t)r->shadowed_count + 1, sizeof *r->shadowed);
  r->shadowed[r->shadowed_count++] = (struct tir_shadowed){word, r->bindings[word]};
  r->bindings[word] = (struct tir_binding){kind, ref};
}

struct tir_binding tir_reader_lookup(const struct tir_reader *r, tir_symbol word) {
  return word < r->binding_capacity ? r->bindings[word] : (struct tir_binding){TIR_UNBOUND, 0};
}

/* ---- Values ---- */

uint32_t tir_reader_push_item(struct tir_reader *r, struct tir_item value) {
  if (r->item_count == r->item_capacity)
    r->items = tir_enlarge(r->items, &r->item_capacity, (uint64_t)r->item_count + 1, sizeof *r->items);
  r->items[r->item_count] = value;
  return r->item_count++;
}

void tir_values_begin(struct tir_values *values) {
  values->at = values->small;
  values->count = 0;
  values->capacity = sizeof values->small / sizeof *values->small;
}

void tir_values_add(struct tir_values *values, struct tir_item value) {
  assert(values->at && values->count <= values->capacity);
  if (values->count == values->capacity) {
    bool moved = values->at != values->small;
    values->capacity *= 2;
    values->at = realloc(moved ? values->at : NULL, values->capacity * sizeof *values->at);
    if (!values->at) abort();
    if (!moved) memcpy(values->at, values->small, sizeof values->small);
  }
  values->at[values->count++] = value;
}

bool tir_values_end(struct tir_values *values, struct tir_reader *r, bool good, char close, uint32_t *first) {
  assert(values->at && first);
  if (good)
    good = tir_reader_take_char(r, close) || tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected ',' or '%c'", close);
  *first = r->item_count;
  for (uint32_t i = 0; good && i < values->count; i++) tir_reader_push_item(r, values->at[i]);
  if (values->at != values->small) free(values->at);
  return good;
}

struct tir_item tir_item_of_expr(tir_expr e, uint32_t token) {
  return (struct tir_item){.kind = TIR_ITEM_EXPR, .token = token, .expr = e};
}

static void raise_depth(const struct tir_reader *r, tir_expr below, uint16_t *depth) {
  if (below && below < r->depth_capacity && r->depths[below] >= *depth) *depth = (uint16_t)(r->depths[below] + 1);
}

bool tir_reader_count_lanes(struct tir_reader *r, uint32_t token, tir_expr index, int64_t *lanes) {
  assert(index && lanes);
  *lanes *= tir_type_lanes(tir_type_of(r->ir, index));
  return *lanes <= TIR_MOST_LANES ||
         tir_reader_fail(r, token, MS_TOO_LARGE, "a vector has at most %d elements", TIR_MOST_LANES);
}

bool tir_reader_note(struct tir_reader *r, uint32_t token, tir_expr e) {
  assert(e && e < r->ir->exprs.count);
  if (e >= r->depth_capacity) {
    uint32_t old = r->depth_capacity;
    r->depths = tir_enlarge(r->depths, &r->depth_capacity, (uint64_t)e + 1, sizeof *r->depths);
    memset(r->depths + old, 0, (r->depth_capacity - old) * sizeof *r->depths);
  }
  const struct tir_expr_node *n = tir_at(r->ir, e);
  uint16_t depth = 1;
  if (n->kind != TIR_INT_IMM && n->kind != TIR_FLOAT_IMM) {
    raise_depth(r, n->a, &depth);
    raise_depth(r, n->b, &depth);
    raise_depth(r, n->c, &depth);
    for (uint32_t i = 0; i < n->count; i++) raise_depth(r, r->ir->operands.at[n->operands + i], &depth);
  }
  r->depths[e] = depth;
  if (depth <= TIR_MOST_EXPR_DEPTH) return true;
  return tir_reader_fail(r, token, MS_TOO_LARGE, "this expression is nested more than %d levels deep",
                         TIR_MOST_EXPR_DEPTH);
}

static const char *const value_names[] = {
    [TIR_ITEM_NONE] = "None",       [TIR_ITEM_EXPR] = "an expression",  [TIR_ITEM_INT] = "a number",
    [TIR_ITEM_REAL] = "a number",   [TIR_ITEM_TRUTH] = "a truth value", [TIR_ITEM_STRING] = "a string",
    [TIR_ITEM_BUFFER] = "a buffer", [TIR_ITEM_REGION] = "a region",     [TIR_ITEM_SLICE] = "a slice",
    [TIR_ITEM_LIST] = "a list",     [TIR_ITEM_MAP] = "a dictionary",    [TIR_ITEM_TYPE] = "a type"};

bool tir_reader_as_expr(struct tir_reader *r, struct tir_item v, tir_expr *out) {
  struct tir *ir = r->ir;
  switch (v.kind) {
  case TIR_ITEM_EXPR: *out = v.expr; return true;
  case TIR_ITEM_INT: {
    bool narrow = v.integer >= INT32_MIN && v.integer <= INT32_MAX;
    *out = tir_int(ir, narrow ? TIR_T_I32 : TIR_T_I64, v.integer);
    break;
  }
  case TIR_ITEM_REAL: return tir_reader_constant(r, v.token, TIR_T_F32, v.real, 0, true, out);
  case TIR_ITEM_TRUTH: *out = tir_int(ir, TIR_T_BOOL, v.integer); break;
  case TIR_ITEM_STRING: *out = tir_string(ir, tir_reader_symbol(r, v.word)); break;
  case TIR_ITEM_NONE: *out = tir_none(ir); break;
  case TIR_ITEM_BUFFER: *out = tir_data(ir, v.buffer); break;
  case TIR_ITEM_REGION: return tir_reader_load(r, v, out);
  default: return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected an expression, found %s", value_names[v.kind]);
  }
  return tir_reader_note(r, v.token, *out);
}

bool tir_reader_as_annotation(struct tir_reader *r, struct tir_item v, tir_expr *out) {
  assert(v.kind != TIR_ITEM_MAP || v.count % 2 == 0); /* keys and values in turn */
  if (v.kind != TIR_ITEM_LIST && v.kind != TIR_ITEM_MAP) return tir_reader_as_expr(r, v, out);
  if (++r->nesting > TIR_MOST_NESTING)
    return tir_reader_fail(r, v.token, MS_TOO_LARGE, "this value is nested too deeply");
  tir_expr small[16], *items = v.count <= 16 ? small : malloc(v.count * sizeof *items);
  if (!items) abort();
  bool good = true;
  for (uint32_t i = 0; i < v.count && good; i++) {
    struct tir_item item = r->items[v.first + i];
    if (v.kind == TIR_ITEM_MAP && i % 2 == 0 && item.kind != TIR_ITEM_STRING)
      good = tir_reader_fail(r, item.token, MS_TEXT_TYPE, "expected a string as key, found %s", value_names[item.kind]);
    else
      good = tir_reader_as_annotation(r, item, &items[i]);
  }
  if (good) {
    *out = v.kind == TIR_ITEM_LIST ? tir_list_value(r->ir, items, v.count) : tir_map_value(r->ir, items, v.count);
    good = tir_reader_note(r, v.token, *out);
  }
  if (items != small) free(items);
  r->nesting--;
  return good;
}

bool tir_reader_as_int(struct tir_reader *r, struct tir_item v, const char *what, int64_t *out) {
  if (v.kind == TIR_ITEM_INT || v.kind == TIR_ITEM_TRUTH) return *out = v.integer, true;
  if (v.kind == TIR_ITEM_EXPR && tir_is_int(r->ir, v.expr)) return *out = tir_at(r->ir, v.expr)->imm, true;
  return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected an integer constant as %s", what);
}

bool tir_reader_as_type(struct tir_reader *r, struct tir_item v, tir_type *out) {
  if (v.kind == TIR_ITEM_TYPE) return *out = v.type, true;
  if (v.kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a data type, found %s", value_names[v.kind]);
  if (tir_type_parse(tir_reader_word(r, v.word), out)) return true;
  return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "\"%.60s\" is no data type; expected one like \"float32\"",
                         tir_reader_word(r, v.word));
}

/* ---- Constants ---- */

bool tir_reader_constant(struct tir_reader *r, uint32_t token, tir_type type, double real, int64_t integer,
                         bool is_real, tir_expr *out) {
  char text[24];
  tir_type scalar = tir_type_with_lanes(type, 1);
  tir_expr e;
  if (tir_type_is_float(type)) {
    double value = is_real ? real : (double)integer;
    if (isfinite(value) && fabs(value) > tir_greatest_written(type))
      return tir_reader_fail(r, token, MS_TEXT_TYPE, "%g is too large for %s", value, tir_type_text(scalar, text));
    e = tir_float(r->ir, scalar, value);
  } else if (tir_type_is_int(type) || tir_type_code(type) == TIR_BOOL) {
    if (is_real && !(fabs(real) < 9.2e18))
      return tir_reader_fail(r, token, MS_TEXT_TYPE, "%g is no %s", real, tir_type_text(scalar, text));
    int64_t value = is_real ? (int64_t)real : integer;
    if (tir_type_code(type) == TIR_BOOL) value = value != 0;
    struct tir_bounds range = tir_type_bounds(scalar);
    if (value < range.lo || value > range.hi)
      return tir_reader_fail(r, token, MS_TEXT_TYPE, "%lld does not fit in %s", (long long)value,
                             tir_type_text(scalar, text));
    e = tir_int(r->ir, scalar, value);
  } else {
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "there are no constants of type %s", tir_type_text(type, text));
  }
  if (!tir_reader_note(r, token, e)) return false;
  if (tir_type_lanes(type) > 1) e = tir_unary(r->ir, TIR_BROADCAST, type, e);
  *out = e;
  return tir_reader_note(r, token, e);
}

tir_expr tir_reader_zero(struct tir_reader *r, tir_type type) {
  tir_expr zero = tir_int(r->ir, type, 0);
  tir_reader_note(r, r->at, zero);
  return zero;
}
