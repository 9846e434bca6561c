/* Expressions: Python's operators, by precedence climbing; lists, names and calls. */
#include "reader.h"

#include <string.h>

/* ---- Operators ---- */

enum level {
  LEVEL_OR = 1,
  LEVEL_AND,
  LEVEL_NOT,
  LEVEL_COMPARE,
  LEVEL_BITOR,
  LEVEL_BITXOR,
  LEVEL_BITAND,
  LEVEL_SHIFT,
  LEVEL_SUM,
  LEVEL_PRODUCT
};

struct operator{
  const char *text;
  enum level level;
  enum tir_kind kind;
  const char *call;
};

/* Those with `call` are functions of TIR. */
static const struct operator operators[] = {
    {"or", LEVEL_OR, TIR_OR, NULL},          {"and", LEVEL_AND, TIR_AND, NULL},
    {"<", LEVEL_COMPARE, TIR_LT, NULL},      {"<=", LEVEL_COMPARE, TIR_LE, NULL},
    {">", LEVEL_COMPARE, TIR_GT, NULL},      {">=", LEVEL_COMPARE, TIR_GE, NULL},
    {"==", LEVEL_COMPARE, TIR_EQ, NULL},     {"!=", LEVEL_COMPARE, TIR_NE, NULL},
    {"|", LEVEL_BITOR, 0, "bitwise_or"},     {"^", LEVEL_BITXOR, 0, "bitwise_xor"},
    {"&", LEVEL_BITAND, 0, "bitwise_and"},   {"<<", LEVEL_SHIFT, 0, "shift_left"},
    {">>", LEVEL_SHIFT, 0, "shift_right"},   {"+", LEVEL_SUM, TIR_ADD, NULL},
    {"-", LEVEL_SUM, TIR_SUB, NULL},         {"*", LEVEL_PRODUCT, TIR_MUL, NULL},
    {"/", LEVEL_PRODUCT, TIR_DIV, NULL},     {"//", LEVEL_PRODUCT, TIR_FLOORDIV, NULL},
    {"%", LEVEL_PRODUCT, TIR_FLOORMOD, NULL}};

static const struct operator* next_operator(const struct tir_reader *r) {
  const struct tir_token *t = tir_reader_token(r, r->at);
  if (t->kind != TIR_TOKEN_PUNCT && t->kind != TIR_TOKEN_NAME) return NULL;
  if (t->length > 3) return NULL;
  for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
    if (strlen(operators[i].text) == t->length && !memcmp(r->text + t->offset, operators[i].text, t->length))
      return &operators[i];
  return NULL;
}

static bool is_python_number(struct tir_item v) {
  return v.kind == TIR_ITEM_INT || v.kind == TIR_ITEM_REAL || v.kind == TIR_ITEM_TRUTH;
}
static double real_of(struct tir_item v) { return v.kind == TIR_ITEM_REAL ? v.real : (double)v.integer; }

static bool overflow(struct tir_reader *r, uint32_t token) {
  return tir_reader_fail(r, token, MS_TEXT_TYPE, "this does not fit in 64 bits");
}

/* Arithmetic on numbers that have no type yet, as Python does it. */
static bool python_reals(struct tir_reader *r, uint32_t token, const struct operator* op, double a, double b,
                         struct tir_item *out) {
  *out = (struct tir_item){.kind = TIR_ITEM_REAL, .token = out->token};
  switch (op->kind) {
  case TIR_ADD: out->real = a + b; return true;
  case TIR_SUB: out->real = a - b; return true;
  case TIR_MUL: out->real = a * b; return true;
  case TIR_DIV:
    if (b == 0) return tir_reader_fail(r, token, MS_TEXT_TYPE, "division by zero");
    out->real = a / b;
    return true;
  default: break;
  }
  out->kind = TIR_ITEM_TRUTH;
  switch (op->kind) {
  case TIR_LT: out->integer = a < b; return true;
  case TIR_LE: out->integer = a <= b; return true;
  case TIR_GT: out->integer = a > b; return true;
  case TIR_GE: out->integer = a >= b; return true;
  case TIR_EQ: out->integer = a == b; return true;
  case TIR_NE: out->integer = a != b; return true;
  default: return tir_reader_fail(r, token, MS_TEXT_TYPE, "'%s' takes integers", op->text);
  }
}

static bool python_ints(struct tir_reader *r, uint32_t token, const struct operator* op, int64_t a, int64_t b,
                        struct tir_item *out) {
  *out = (struct tir_item){.kind = TIR_ITEM_INT, .token = out->token};
  if (op->call) {
    bool shift = op->level == LEVEL_SHIFT;
    if (shift && (b < 0 || b > 62)) return overflow(r, token);
    if (!strcmp(op->text, "<<"))
      return __builtin_mul_overflow(a, (int64_t)1 << b, &out->integer) ? overflow(r, token) : true;
    out->integer = shift ? a >> b : *op->text == '|' ? (a | b) : *op->text == '^' ? (a ^ b) : (a & b);
    return true;
  }
  switch (op->kind) {
  case TIR_ADD: return __builtin_add_overflow(a, b, &out->integer) ? overflow(r, token) : true;
  case TIR_SUB: return __builtin_sub_overflow(a, b, &out->integer) ? overflow(r, token) : true;
  case TIR_MUL: return __builtin_mul_overflow(a, b, &out->integer) ? overflow(r, token) : true;
  case TIR_FLOORDIV:
  case TIR_FLOORMOD: {
    if (b == 0) return tir_reader_fail(r, token, MS_TEXT_TYPE, "division by zero");
    if (b == -1)
      return op->kind == TIR_FLOORMOD ? true : __builtin_sub_overflow(0, a, &out->integer) ? overflow(r, token) : true;
    int64_t quotient = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
    out->integer = op->kind == TIR_FLOORDIV ? quotient : a - quotient * b;
    return true;
  }
  case TIR_AND: return out->integer = a ? b : a, true;
  case TIR_OR: return out->integer = a ? a : b, true;
  default: return python_reals(r, token, op, (double)a, (double)b, out);
  }
}

static bool python_binary(struct tir_reader *r, uint32_t token, const struct operator* op, struct tir_item a,
                          struct tir_item b, struct tir_item *out) {
  out->token = a.token;
  bool truths = a.kind == TIR_ITEM_TRUTH && b.kind == TIR_ITEM_TRUTH;
  if (a.kind == TIR_ITEM_REAL || b.kind == TIR_ITEM_REAL)
    return python_reals(r, token, op, real_of(a), real_of(b), out);
  bool compares = op->kind >= TIR_EQ && op->kind <= TIR_GE && !op->call;
  if (compares) { /* exact: an integer past 2^53 is no double */
    int64_t x = a.integer, y = b.integer;
    bool result = op->kind == TIR_EQ   ? x == y
                  : op->kind == TIR_NE ? x != y
                  : op->kind == TIR_LT ? x < y
                  : op->kind == TIR_LE ? x <= y
                  : op->kind == TIR_GT ? x > y
                                       : x >= y;
    *out = (struct tir_item){.kind = TIR_ITEM_TRUTH, .token = a.token, .integer = result};
    return true;
  }
  if (!python_ints(r, token, op, a.integer, b.integer, out)) return false;
  if (truths && (op->level == LEVEL_AND || op->level == LEVEL_OR)) out->kind = TIR_ITEM_TRUTH;
  return true;
}

static bool call_operator(struct tir_reader *r, uint32_t token, const char *name, tir_expr a, tir_expr b,
                          tir_expr *out) {
  if (!tir_reader_match(r, token, &a, &b)) return false;
  tir_type type = tir_type_of(r->ir, a);
  char text[24];
  if (!strncmp(name, "shift_", 6) && !tir_reader_refuse_truths(r, token, a)) return false;
  if (!tir_type_is_int(type) && tir_type_code(type) != TIR_BOOL)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected integers, found %s", tir_type_text(type, text));
  tir_expr args[2] = {a, b};
  *out = tir_call(r->ir, type, tir_symbol_of(r->ir, name), args, 2);
  return tir_reader_note(r, token, *out);
}

static bool apply(struct tir_reader *r, uint32_t token, const struct operator* op, struct tir_item a, struct tir_item b,
                  struct tir_item *out) {
  if (is_python_number(a) && is_python_number(b)) return python_binary(r, token, op, a, b, out);
  tir_expr x, y, e;
  if (!tir_reader_as_expr(r, a, &x) || !tir_reader_as_expr(r, b, &y)) return false;
  if (op->call) {
    if (!call_operator(r, token, op->call, x, y, &e)) return false;
  } else {
    if (*op->text == '/' && !op->text[1] && tir_type_is_int(tir_type_of(r->ir, x)) &&
        tir_type_is_int(tir_type_of(r->ir, y)))
      return tir_reader_fail(r, token, MS_TEXT_TYPE, "'/' of integers is ambiguous: write // or T.truncdiv(a, b)");
    if (!tir_reader_binary(r, token, op->kind, x, y, &e)) return false;
  }
  *out = tir_item_of_expr(e, a.token);
  return true;
}

static bool read_binary(struct tir_reader *r, enum level least, struct tir_item *out);
static bool read_unary(struct tir_reader *r, struct tir_item *out);

/* a < b <= c is a < b and b <= c. */
static bool read_comparison(struct tir_reader *r, struct tir_item left, struct tir_item *out) {
  static const struct operator both = {"and", LEVEL_AND, TIR_AND, NULL};
  bool first = true;
  const struct operator* op;
  while ((op = next_operator(r)) && op->level == LEVEL_COMPARE) {
    uint32_t token = r->at++;
    struct tir_item right, result;
    if (!read_binary(r, LEVEL_BITOR, &right) || !apply(r, token, op, left, right, &result)) return false;
    if (!first && !apply(r, token, &both, *out, result, &result)) return false;
    *out = result;
    left = right;
    first = false;
  }
  return true;
}

static bool read_not(struct tir_reader *r, struct tir_item *out) {
  uint32_t token = r->at++;
  struct tir_item v;
  if (!read_binary(r, LEVEL_NOT, &v)) return false;
  *out = v;
  out->token = token;
  if (is_python_number(v)) {
    out->kind = TIR_ITEM_TRUTH;
    out->integer = v.kind == TIR_ITEM_REAL ? v.real == 0 : v.integer == 0;
    return true;
  }
  tir_expr e;
  if (!tir_reader_as_expr(r, v, &e)) return false;
  if (tir_type_code(tir_type_of(r->ir, e)) != TIR_BOOL)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected a condition after 'not'");
  e = tir_unary(r->ir, TIR_NOT, tir_type_of(r->ir, e), e);
  *out = tir_item_of_expr(e, token);
  return tir_reader_note(r, token, e);
}

static bool read_binary_inside(struct tir_reader *r, enum level least, struct tir_item *out) {
  if (tir_reader_is_name(r, r->at, "not")) {
    if (least > LEVEL_NOT) return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected brackets around 'not'");
    if (!read_not(r, out)) return false;
  } else if (!read_unary(r, out)) {
    return false;
  }
  const struct operator* op;
  while ((op = next_operator(r)) && op->level >= least) {
    if (op->level == LEVEL_COMPARE) {
      struct tir_item left = *out;
      if (!read_comparison(r, left, out)) return false;
      continue;
    }
    uint32_t token = r->at++;
    struct tir_item right;
    if (!read_binary(r, op->level + 1, &right) || !apply(r, token, op, *out, right, out)) return false;
  }
  return true;
}

/* Operators that bind at least as tightly as `least`. */
static bool read_binary(struct tir_reader *r, enum level least, struct tir_item *out) {
  if (++r->nesting > TIR_MOST_NESTING)
    return tir_reader_fail(r, r->at, MS_TOO_LARGE, "this expression is nested too deeply");
  bool good = read_binary_inside(r, least, out);
  r->nesting--;
  return good;
}

/* ---- Unary operators ---- */

static bool negate(struct tir_reader *r, uint32_t token, struct tir_item v, struct tir_item *out) {
  *out = v;
  out->token = token;
  if (v.kind == TIR_ITEM_REAL) return out->real = -v.real, true;
  if (is_python_number(v)) {
    out->kind = TIR_ITEM_INT;
    out->integer = (int64_t)(0 - (uint64_t)v.integer); /* 2^63 was kept as the least integer */
    return true;
  }
  tir_expr e, minus_one;
  if (!tir_reader_as_expr(r, v, &e)) return false;
  tir_type type = tir_type_with_lanes(tir_type_of(r->ir, e), 1);
  if (!tir_reader_constant(r, token, type, -1, -1, tir_type_is_float(type), &minus_one) ||
      !tir_reader_binary(r, token, TIR_MUL, e, minus_one, &e))
    return false;
  *out = tir_item_of_expr(e, token);
  return true;
}

static bool read_primary(struct tir_reader *r, struct tir_item *out);

static bool is_least_integer(const struct tir_reader *r, uint32_t at) {
  const struct tir_token *t = tir_reader_token(r, at);
  return t->kind == TIR_TOKEN_INT && t->integer == INT64_MIN;
}

static bool read_unary(struct tir_reader *r, struct tir_item *out) {
  uint32_t token = r->at;
  if (!tir_reader_is_char(r, '-') && !tir_reader_is_char(r, '+') && !tir_reader_is_char(r, '~')) {
    if (is_least_integer(r, token)) return overflow(r, token);
    return read_primary(r, out);
  }
  char sign = r->text[tir_reader_token(r, token)->offset];
  r->at++;
  if (++r->nesting > TIR_MOST_NESTING)
    return tir_reader_fail(r, token, MS_TOO_LARGE, "this expression is nested too deeply");
  struct tir_item v;
  bool good = sign == '-' && is_least_integer(r, r->at) ? read_primary(r, &v) : read_unary(r, &v);
  r->nesting--;
  if (!good) return false;
  if (sign == '-') return negate(r, token, v, out);
  *out = v;
  if (sign == '+') return true;
  if (v.kind == TIR_ITEM_INT) return out->integer = ~v.integer, true;
  tir_expr e;
  if (!tir_reader_as_expr(r, v, &e)) return false;
  if (!tir_reader_refuse_truths(r, token, e)) return false;
  if (!tir_type_is_int(tir_type_of(r->ir, e)))
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected an integer after '~'");
  e = tir_call(r->ir, tir_type_of(r->ir, e), tir_symbol_of(r->ir, "bitwise_not"), &e, 1);
  *out = tir_item_of_expr(e, token);
  return tir_reader_note(r, token, e);
}

/* ---- Lists, tuples, dictionaries ---- */

/* The values up to `close`; pairs: keys and values in turn. */
static bool read_items(struct tir_reader *r, char close, bool pairs, struct tir_item *out, bool *comma) {
  struct tir_values values;
  struct tir_item value;
  tir_values_begin(&values);
  bool good = true;
  *comma = false;
  while (good && !tir_reader_is_char(r, close)) {
    if (values.count + 2 > TIR_MOST_ARGS) {
      good = tir_reader_fail(r, r->at, MS_TOO_LARGE, "there are more than %d elements", TIR_MOST_ARGS);
      break;
    }
    if ((good = tir_read_value(r, &value))) tir_values_add(&values, value);
    if (good && pairs && (good = tir_reader_expect_char(r, ':', "after the key") && tir_read_value(r, &value)))
      tir_values_add(&values, value);
    if (!good || !tir_reader_is_char(r, ',')) break;
    *comma = true;
    r->at++;
  }
  out->count = values.count;
  return tir_values_end(&values, r, good, close, &out->first);
}

static bool read_bracketed(struct tir_reader *r, struct tir_item *out) {
  uint32_t token = r->at;
  char open = r->text[tir_reader_token(r, token)->offset];
  bool comma;
  r->at++;
  struct tir_item list = {.kind = open == '{' ? TIR_ITEM_MAP : TIR_ITEM_LIST, .token = token};
  char close = open == '(' ? ')' : open == '[' ? ']' : '}';
  if (!read_items(r, close, open == '{', &list, &comma)) return false;
  *out = list;
  if (open == '(' && list.count == 1 && !comma) *out = r->items[list.first];
  return true;
}

/* ---- Names and atoms ---- */

/* T.name or T.name.name; the path without its prefix. */
static bool read_prefixed(struct tir_reader *r, struct tir_item *out) {
  uint32_t token = r->at++;
  char path[128];
  size_t length = 0;
  while (tir_reader_is_char(r, '.')) {
    const struct tir_token *t = tir_reader_token(r, r->at + 1);
    if (t->kind != TIR_TOKEN_NAME) return tir_reader_fail(r, r->at + 1, MS_TEXT_SYNTAX, "expected a name after '.'");
    if (length + t->length + 2 > sizeof path)
      return tir_reader_fail(r, r->at + 1, MS_TEXT_NAME, "this name is too long");
    if (length) path[length++] = '.';
    memcpy(path + length, r->text + t->offset, t->length);
    length += t->length;
    r->at += 2;
  }
  path[length] = 0;
  if (!length) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected '.' and a name");
  if (tir_reader_is_char(r, '(')) return tir_read_call(r, path, token, out);
  tir_type type;
  if (tir_type_parse(path, &type) || (!strcmp(path, "boolean") && (type = TIR_T_BOOL))) {
    *out = (struct tir_item){.kind = TIR_ITEM_TYPE, .token = token, .type = type};
    return true;
  }
  return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected a call: '(' after this name");
}

/* A function of the module by its name: name(…) or Module.name(…). */
static bool read_function_call(struct tir_reader *r, uint32_t token, tir_symbol word, struct tir_item *out) {
  struct tir_args args = {.name = "this function"};
  if (!tir_reader_is_char(r, '(')) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected a call of this function");
  if (!tir_read_args(r, &args) || !tir_args_done(r, &args, TIR_MOST_ARGS)) return false;
  tir_expr operands[TIR_MOST_ARGS];
  for (uint32_t i = 0; i < args.count; i++)
    if (!tir_reader_as_argument(r, r->items[args.first + i], &operands[i])) return false;
  tir_symbol op = tir_symbol_format(r->ir, "Module.%s", tir_reader_word(r, word));
  tir_expr e = tir_call(r->ir, TIR_T_VOID, op, operands, args.count);
  *out = tir_item_of_expr(e, token);
  return tir_reader_note(r, token, e);
}

static bool read_name(struct tir_reader *r, struct tir_item *out) {
  uint32_t token = r->at;
  tir_symbol word = tir_reader_token(r, token)->symbol;
  *out = (struct tir_item){.token = token};
  struct tir_binding b = tir_reader_lookup(r, word);
  if (b.kind == TIR_UNBOUND && word == r->prefix) return read_prefixed(r, out);
  r->at++;
  switch (b.kind) {
  case TIR_BOUND_EXPR: *out = tir_item_of_expr(b.ref, token); return true;
  case TIR_BOUND_BUFFER:
    out->kind = TIR_ITEM_BUFFER;
    out->buffer = b.ref;
    return true;
  case TIR_BOUND_SCALAR: {
    tir_expr zero = tir_int(r->ir, TIR_T_I32, 0), load;
    if (!tir_reader_note(r, token, zero)) return false;
    load = tir_load(r->ir, b.ref, &zero, 1, TIR_NONE);
    *out = tir_item_of_expr(load, token);
    return tir_reader_note(r, token, load);
  }
  case TIR_BOUND_FUNC: return read_function_call(r, token, word, out);
  case TIR_BOUND_THREAD: return tir_reader_fail(r, token, MS_TEXT_NAME, "this thread is not launched yet");
  default: break;
  }
  const char *name = tir_reader_word(r, word);
  if (!strcmp(name, "True") || !strcmp(name, "False")) {
    out->kind = TIR_ITEM_TRUTH;
    out->integer = *name == 'T';
    return true;
  }
  if (!strcmp(name, "None")) return out->kind = TIR_ITEM_NONE, true;
  bool module = !strcmp(name, "Module") || !strcmp(name, "cls");
  if (module && tir_reader_is_char(r, '.') && tir_reader_token(r, r->at + 1)->kind == TIR_TOKEN_NAME) {
    word = tir_reader_token(r, r->at + 1)->symbol;
    r->at += 2;
    return read_function_call(r, token, word, out);
  }
  return tir_reader_fail(r, token, MS_TEXT_NAME, "\"%.80s\" is not defined here", name);
}

static bool read_atom(struct tir_reader *r, struct tir_item *out) {
  const struct tir_token *t = tir_reader_token(r, r->at);
  *out = (struct tir_item){.token = r->at};
  switch (t->kind) {
  case TIR_TOKEN_INT:
    out->kind = TIR_ITEM_INT;
    out->integer = t->integer;
    r->at++;
    return true;
  case TIR_TOKEN_REAL:
    out->kind = TIR_ITEM_REAL;
    out->real = t->real;
    r->at++;
    return true;
  case TIR_TOKEN_STRING:
    out->kind = TIR_ITEM_STRING;
    out->word = t->symbol;
    r->at++;
    return true;
  case TIR_TOKEN_NAME: return read_name(r, out);
  default: break;
  }
  if (tir_reader_is_char(r, '(') || tir_reader_is_char(r, '[') || tir_reader_is_char(r, '{'))
    return read_bracketed(r, out);
  return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected an expression");
}

static bool read_primary(struct tir_reader *r, struct tir_item *out) {
  if (!read_atom(r, out)) return false;
  for (;;) {
    if (tir_reader_is_char(r, '[')) {
      if (out->kind == TIR_ITEM_BUFFER ? !tir_read_subscript(r, *out, out)
          : out->kind == TIR_ITEM_LIST ? !tir_subscript_list(r, *out, out)
                                       : !tir_reader_fail(r, r->at, MS_TEXT_TYPE, "only buffers are indexed"))
        return false;
    } else if (tir_reader_is_char(r, '.')) {
      r->at++;
      if (out->kind == TIR_ITEM_BUFFER ? !tir_read_buffer_attribute(r, *out, out) : !tir_read_attribute(r, *out, out))
        return false;
    } else {
      break;
    }
  }
  if (tir_reader_is(r, r->at, TIR_PUNCT('*', '*')))
    return tir_reader_fail(r, r->at, MS_TEXT_UNSUPPORTED, "'**' is not part of TVMScript: write T.pow(a, b)");
  return true;
}

/* ---- Entry points ---- */

bool tir_read_value(struct tir_reader *r, struct tir_item *out) {
  if (tir_reader_is_name(r, r->at, "lambda"))
    return tir_reader_fail(r, r->at, MS_TEXT_UNSUPPORTED, "functions of indices cannot stand here");
  if (++r->nesting > TIR_MOST_NESTING)
    return tir_reader_fail(r, r->at, MS_TOO_LARGE, "this expression is nested too deeply");
  bool good = read_binary(r, LEVEL_OR, out);
  r->nesting--;
  if (good && tir_reader_is_name(r, r->at, "if"))
    return tir_reader_fail(r, r->at, MS_TEXT_UNSUPPORTED,
                           "'a if c else b' is not part of TVMScript: write T.if_then_else");
  return good;
}

bool tir_read_values(struct tir_reader *r, struct tir_item *out) {
  uint32_t token = r->at;
  if (!tir_read_value(r, out)) return false;
  if (!tir_reader_is_char(r, ',')) return true;
  struct tir_item values[TIR_MOST_ITERS];
  uint32_t count = 0;
  values[count++] = *out;
  while (tir_reader_take_char(r, ',')) {
    uint32_t kind = tir_reader_token(r, r->at)->kind;
    if (kind == TIR_TOKEN_NEWLINE || tir_reader_is_char(r, ':')) break;
    if (count == TIR_MOST_ITERS) return tir_reader_fail(r, r->at, MS_TOO_LARGE, "there are too many values");
    if (!tir_read_value(r, &values[count++])) return false;
  }
  *out = (struct tir_item){.kind = TIR_ITEM_LIST, .token = token, .first = r->item_count, .count = count};
  for (uint32_t i = 0; i < count; i++) tir_reader_push_item(r, values[i]);
  return true;
}

bool tir_read_expr(struct tir_reader *r, tir_expr *out) {
  struct tir_item v;
  return tir_read_value(r, &v) && tir_reader_as_expr(r, v, out);
}
