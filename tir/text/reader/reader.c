/* Modules and functions: the outermost part of the text form. */
#include "reader.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parameters ---- */

static bool at_name_dot(const struct tir_reader *r, uint32_t at, const char *name) {
  const struct tir_token *t = tir_reader_token(r, at);
  return t->kind == TIR_TOKEN_NAME && t->symbol == r->prefix && tir_reader_is(r, at + 1, TIR_PUNCT('.', 0)) &&
         tir_reader_is_name(r, at + 2, name);
}

static void add_param(struct tir_reader *r, tir_buffer buffer, tir_var var) {
  assert(buffer || var);
  uint32_t i = tir_grow_params(r->ir, 1);
  r->ir->params.at[i] = (struct tir_param){buffer, var};
  struct tir_span *span = &r->ir->funcs.at[r->func].params;
  if (!span->count) span->first = i;
  span->count++;
}

/* T.Buffer(…) or, as long ago, T.Buffer[…]. */
static bool read_buffer_param(struct tir_reader *r, tir_symbol name, uint32_t token) {
  struct tir_args args = {.token = token, .name = "Buffer"};
  struct tir_buffer_text how = {.name = tir_reader_symbol(r, name), .quoted_shape = true};
  tir_buffer b;
  r->at += 3;
  if (!tir_read_args(r, &args) || !tir_read_buffer(r, &args, &how, &b)) return false;
  add_param(r, b, TIR_NONE);
  tir_reader_bind(r, name, TIR_BOUND_BUFFER, b);
  return true;
}

static bool read_param(struct tir_reader *r) {
  uint32_t token = r->at;
  const struct tir_token *t = tir_reader_token(r, token);
  if (t->kind != TIR_TOKEN_NAME) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected a parameter");
  tir_symbol name = t->symbol;
  r->at++;
  if (!tir_reader_expect_char(r, ':', "and the type of the parameter")) return false;
  bool call = tir_reader_is(r, r->at + 3, TIR_PUNCT('(', 0)) || tir_reader_is(r, r->at + 3, TIR_PUNCT('[', 0));
  if (call && at_name_dot(r, r->at, "Buffer")) return read_buffer_param(r, name, token);
  struct tir_item v;
  tir_type type;
  if (!tir_read_value(r, &v) || !tir_reader_as_type(r, v, &type)) return false;
  if (tir_type_code(type) == TIR_VOID || tir_type_code(type) == TIR_STRING)
    return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "a parameter is a buffer, a scalar or a handle");
  struct tir_binding known = tir_reader_lookup(r, name); /* declared by the shape of a buffer before it */
  tir_expr e;
  if (known.kind == TIR_BOUND_EXPR && tir_at(r->ir, known.ref)->kind == TIR_VAR &&
      tir_type_of(r->ir, known.ref) == type) {
    e = known.ref;
  } else {
    if (!tir_reader_symbol_value(r, token, tir_reader_name(r, name), type, &e)) return false;
    tir_reader_bind(r, name, TIR_BOUND_EXPR, e);
    if (tir_is_int(r->ir, e)) return true; /* its number stands in its place */
  }
  add_param(r, TIR_NONE, tir_at(r->ir, e)->ref);
  return tir_reader_note(r, token, e);
}

static bool read_params(struct tir_reader *r) {
  if (!tir_reader_expect_char(r, '(', "before the parameters")) return false;
  while (!tir_reader_is_char(r, ')')) {
    r->item_count = 0;
    if (!read_param(r)) return false;
    if (!tir_reader_take_char(r, ',')) break;
  }
  return tir_reader_expect_char(r, ')', "after the parameters");
}

/* ---- Functions ---- */

/* The line after which a function's text ends: the dedent below its first suite. */
static uint32_t end_of_func(const struct tir_reader *r) {
  uint32_t depth = 0, at = r->at;
  for (; tir_reader_token(r, at)->kind != TIR_TOKEN_END; at++) {
    uint32_t kind = tir_reader_token(r, at)->kind;
    if (kind == TIR_TOKEN_INDENT) depth++;
    if (kind == TIR_TOKEN_DEDENT && (depth == 0 || --depth == 0)) break;
  }
  return at;
}

/* T.int64() or T.int64 at a token gives the type of the name at another. */
static void note_type(struct tir_reader *r, uint32_t name, uint32_t value) {
  const struct tir_token *t = tir_reader_token(r, name), *prefix = tir_reader_token(r, value);
  const struct tir_token *type_name = tir_reader_token(r, value + 2);
  tir_type type;
  if (prefix->kind != TIR_TOKEN_NAME || prefix->symbol != r->prefix || type_name->kind != TIR_TOKEN_NAME) return;
  if (tir_reader_lookup(r, t->symbol).kind == TIR_UNBOUND &&
      tir_type_parse(tir_reader_word(r, type_name->symbol), &type) && tir_type_is_int(type))
    tir_reader_bind(r, t->symbol, TIR_BOUND_TYPE, type);
}

/* Names whose type the function gives further down, n = T.int64() or n, m = T.int64(), T.int32() or n: T.int64, for
 * shapes that use them before. */
static void note_types(struct tir_reader *r, uint32_t end) {
  enum { VALUE = 6 }; /* tokens of T.int64() and the comma behind it */
  for (uint32_t at = r->at; at + 4 < end; at++) {
    uint32_t names = 1;
    if (tir_reader_token(r, at)->kind != TIR_TOKEN_NAME) continue;
    if (tir_reader_is(r, at + 1, TIR_PUNCT(':', 0))) note_type(r, at, at + 2);
    while (tir_reader_is(r, at + 2 * names - 1, TIR_PUNCT(',', 0)) &&
           tir_reader_token(r, at + 2 * names)->kind == TIR_TOKEN_NAME)
      names++;
    uint32_t values = at + 2 * names;
    for (uint32_t i = 0; i < names && tir_reader_is(r, values - 1, TIR_PUNCT('=', 0)); i++) {
      uint32_t value = values + VALUE * i;
      if (!tir_reader_is(r, value + 3, TIR_PUNCT('(', 0)) || !tir_reader_is(r, value + 4, TIR_PUNCT(')', 0))) break;
      note_type(r, at + 2 * i, value);
    }
    at = values - 2;
  }
}

/* Which dialect: by the blocks, else by how TIR was imported. */
static bool is_old_dialect(const struct tir_reader *r, uint32_t end, bool s_tir) {
  if (s_tir) return false;
  for (uint32_t at = r->at; at < end; at++) {
    if (at_name_dot(r, at, "sblock") || at_name_dot(r, at, "sblock_alloc_buffer")) return false;
    if (at_name_dot(r, at, "block")) return true;
  }
  return r->old_import;
}

static bool read_result(struct tir_reader *r) {
  if (!tir_reader_is(r, r->at, TIR_PUNCT('-', '>'))) return true;
  r->at++;
  struct tir_item v;
  tir_type type;
  if (!tir_read_value(r, &v)) return false;
  if (v.kind == TIR_ITEM_NONE) return true;
  if (!tir_reader_as_type(r, v, &type)) return false;
  r->ir->funcs.at[r->func].result = type;
  return true;
}

static bool read_func_parts(struct tir_reader *r) {
  if (!read_params(r) || !read_result(r)) return false;
  r->item_count = 0;
  return tir_read_suite(r, r->ir->funcs.at[r->func].body, TIR_BODY) && tir_complete_func(r);
}

struct decorator {
  bool module, private, s_tir;
};

/* def name(…): at `def`. */
static bool read_func(struct tir_reader *r, const struct decorator *d) {
  const struct tir_token *t = tir_reader_token(r, ++r->at);
  if (t->kind != TIR_TOKEN_NAME) return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected the name of the function");
  const char *name = tir_reader_word(r, t->symbol);
  tir_symbol symbol = tir_symbol_of(r->ir, name);
  for (tir_func f = 1; f < r->ir->funcs.count; f++)
    if (r->ir->funcs.at[f].name == symbol)
      return tir_reader_fail(r, r->at, MS_TEXT_NAME, "there is a function \"%.80s\" already", name);
  r->at++;
  uint32_t end = end_of_func(r), scope = tir_reader_open_scope(r);
  r->old_dialect = is_old_dialect(r, end, d->s_tir);
  r->func = tir_new_func(r->ir, symbol);
  r->block = NULL;
  r->root_alloc_count = r->detection_count = r->stmt_depth = 0;
  note_types(r, end);
  bool good = read_func_parts(r);
  if (good && d->private)
    tir_annotate_span(r->ir, &r->ir->funcs.at[r->func].attrs, tir_symbol_of(r->ir, "private"),
                      tir_int(r->ir, TIR_T_BOOL, 1));
  /* A public function's symbol is its name unless said otherwise. */
  struct tir_span *attrs = &r->ir->funcs.at[r->func].attrs;
  tir_expr given = tir_annotation(r->ir, *attrs, "global_symbol");
  if (given && tir_at(r->ir, given)->kind == TIR_STRING_IMM && tir_at(r->ir, given)->ref == symbol)
    tir_annotate_span(r->ir, attrs, tir_symbol_of(r->ir, "global_symbol"), TIR_NONE);
  tir_reader_close_scope(r, scope);
  return good;
}

/* ---- Decorators, classes, imports ---- */

/* @T.prim_func, @T.prim_func(private=True), @I.ir_module, under whatever path. */
static bool read_decorator(struct tir_reader *r, struct decorator *d) {
  uint32_t token = r->at++, last = token;
  do {
    last = r->at;
    if (tir_reader_token(r, r->at++)->kind != TIR_TOKEN_NAME)
      return tir_reader_fail(r, last, MS_TEXT_SYNTAX, "expected the name of a decorator");
  } while (tir_reader_take_char(r, '.'));
  d->module = tir_reader_is_name(r, last, "ir_module");
  if (!d->module && !tir_reader_is_name(r, last, "prim_func"))
    return tir_reader_fail(r, last, MS_TEXT_UNSUPPORTED, "expected T.prim_func or I.ir_module");
  if (tir_reader_is_char(r, '(')) {
    struct tir_args args = {.token = token, .name = "this decorator"};
    struct tir_item v;
    if (!tir_read_args(r, &args)) return false;
    if (tir_arg_at(r, &args, UINT32_MAX, "private", &v)) d->private = v.kind == TIR_ITEM_TRUTH && v.integer;
    if (tir_arg_at(r, &args, UINT32_MAX, "s_tir", &v)) d->s_tir = v.kind == TIR_ITEM_TRUTH && v.integer;
    tir_arg_at(r, &args, UINT32_MAX, "check_well_formed", &v);
    if (!tir_args_done(r, &args, 0)) return false;
  }
  if (tir_reader_token(r, r->at)->kind != TIR_TOKEN_NEWLINE)
    return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected the end of the line");
  r->at++;
  return true;
}

/* from tvm.script import tir as T: the name of TIR's module. */
static bool read_import(struct tir_reader *r) {
  for (; tir_reader_token(r, r->at)->kind != TIR_TOKEN_NEWLINE; r->at++) {
    if (tir_reader_token(r, r->at)->kind == TIR_TOKEN_END) return true;
    bool tir = tir_reader_is_name(r, r->at, "tir") || tir_reader_is_name(r, r->at, "tirx");
    if (tir && tir_reader_is_name(r, r->at + 1, "as") && tir_reader_token(r, r->at + 2)->kind == TIR_TOKEN_NAME)
      r->prefix = tir_reader_token(r, r->at + 2)->symbol;
  }
  r->at++;
  return true;
}

/* The functions that a class declares are known in all of them. */
static void note_functions(struct tir_reader *r) {
  uint32_t depth = 0;
  for (uint32_t at = r->at;; at++) {
    uint32_t kind = tir_reader_token(r, at)->kind;
    if (kind == TIR_TOKEN_END) return;
    if (kind == TIR_TOKEN_INDENT) depth++;
    if (kind == TIR_TOKEN_DEDENT && (depth == 0 || --depth == 0)) return;
    if (depth == 1 && tir_reader_is_name(r, at, "def") && tir_reader_token(r, at + 1)->kind == TIR_TOKEN_NAME)
      tir_reader_bind(r, tir_reader_token(r, at + 1)->symbol, TIR_BOUND_FUNC, 0);
  }
}

static bool read_decorated(struct tir_reader *r, uint32_t *count);

static bool read_class(struct tir_reader *r, uint32_t *count) {
  if (tir_reader_token(r, ++r->at)->kind != TIR_TOKEN_NAME)
    return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected the name of the module");
  r->at++;
  uint32_t scope = tir_reader_open_scope(r);
  note_functions(r);
  if (!tir_reader_expect_char(r, ':', "after the name of the module")) return false;
  if (tir_reader_token(r, r->at)->kind != TIR_TOKEN_NEWLINE || tir_reader_token(r, r->at + 1)->kind != TIR_TOKEN_INDENT)
    return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected indented functions");
  r->at += 2;
  while (tir_reader_token(r, r->at)->kind != TIR_TOKEN_DEDENT) {
    r->item_count = 0;
    if (tir_reader_take_name(r, "pass")) {
      if (tir_reader_token(r, r->at)->kind == TIR_TOKEN_NEWLINE) r->at++;
    } else if (!read_decorated(r, count)) {
      return false;
    }
  }
  r->at++;
  tir_reader_close_scope(r, scope);
  return true;
}

/* A decorated function or class. */
static bool read_decorated(struct tir_reader *r, uint32_t *count) {
  struct decorator d = {false, false, false};
  uint32_t token = r->at;
  if (!tir_reader_is_char(r, '@')) return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected @T.prim_func");
  while (tir_reader_is_char(r, '@'))
    if (!read_decorator(r, &d)) return false;
  if (tir_reader_is_name(r, r->at, "class")) {
    if (!d.module) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "a class is decorated with I.ir_module");
    return read_class(r, count);
  }
  if (d.module || !tir_reader_is_name(r, r->at, "def"))
    return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, d.module ? "expected a class" : "expected a function");
  ++*count;
  return read_func(r, &d);
}

static bool read_text(struct tir_reader *r) {
  uint32_t count = 0;
  while (tir_reader_token(r, r->at)->kind != TIR_TOKEN_END) {
    r->item_count = 0;
    if (tir_reader_is_name(r, r->at, "from") || tir_reader_is_name(r, r->at, "import")) {
      if (!read_import(r)) return false;
    } else if (tir_reader_token(r, r->at)->kind == TIR_TOKEN_STRING &&
               tir_reader_token(r, r->at + 1)->kind == TIR_TOKEN_NEWLINE) {
      r->at += 2; /* a docstring */
    } else if (!read_decorated(r, &count)) {
      return false;
    }
  }
  if (!count) return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "there is no function in this text");
  return true;
}

/* ---- Entry points ---- */

static void free_reader(struct tir_reader *r) {
  tir_free(r->words);
  free(r->tokens.at);
  free(r->bindings);
  free(r->shadowed);
  free(r->lets);
  free(r->items);
  free(r->depths);
  free(r->root_allocs);
  free(r->detections);
}

/* Domains of variables that nothing binds; NULL: none are known. */
struct given {
  const struct tir_dim *dims;
  uint32_t count;
};

static bool read_copy(struct tir *ir, const char *text, size_t length, const char *file, const struct given *given,
                      ms_error *err) {
  struct tir_reader r = {.ir = ir,
                         .text = text,
                         .source = text,
                         .source_length = length,
                         .file = file ? file : "<text>",
                         .err = err,
                         .quoted = UINT32_MAX};
  size_t place;
  const char *why;
  if (given) r.dims = given->dims, r.dim_count = given->count;
  r.words = tir_new();
  /* Also in a comment, where it is printed. */
  r.old_import = strstr(text, "script import tir as") && !strstr(text, "script import tirx as");
  r.prefix = tir_symbol_of(r.words, "T");
  bool good = tir_lex(r.words, text, length, &r.tokens, &place, &why)
                  ? read_text(&r)
                  : tir_reader_fail_at(&r, place, MS_TEXT_SYNTAX, "%s", why);
  assert(good == !r.failed);
  free_reader(&r);
  return good;
}

/* Reads a copy of the text that ends with a zero byte. */
static bool read_into(struct tir *ir, const char *text, size_t length, const char *file, const struct given *given,
                      ms_error *err) {
  char *copy = malloc(length + 1);
  if (!copy) abort();
  if (length) memcpy(copy, text, length);
  copy[length] = 0;
  bool good = read_copy(ir, copy, length, file, given, err);
  if (good && ir->has_empty) ir->has_empty = tir_find_empty(ir);
  if (good) ir->aliased = tir_find_aliased(ir);
  free(copy);
  return good;
}

static struct tir *read_new(const char *text, size_t length, const char *file, const struct given *given,
                            ms_error *err) {
  assert(text || !length);
  struct tir *ir = tir_new();
  fenv_t host;
  fegetenv(&host);
  fesetenv(FE_DFL_ENV); /* numbers are folded, and rounded to their types */
  bool ok = read_into(ir, text, length, file, given, err);
  fesetenv(&host);
  if (ok) return ir;
  tir_free(ir);
  return NULL;
}

struct tir *tir_read(const char *text, size_t length, const char *file, ms_error *err) {
  return read_new(text, length, file, NULL, err);
}

struct tir *tir_read_with(const char *text, size_t length, const char *file, const struct tir_dim *dims, uint32_t count,
                          ms_error *err) {
  return read_new(text, length, file, &(struct given){dims, count}, err);
}
