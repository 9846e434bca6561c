/* Statements: loops, conditions, with-blocks; suites by indentation. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- Places ---- */

void tir_reader_append(struct tir_reader *r, tir_stmt s) { tir_append(r->ir, r->parent, r->list, s); }

bool tir_reader_enter(struct tir_reader *r, uint32_t token, tir_stmt s) {
  if (++r->stmt_depth > TIR_MOST_STMT_DEPTH)
    return tir_reader_fail(r, token, MS_TOO_LARGE, "statements are nested more than %d deep", TIR_MOST_STMT_DEPTH);
  tir_reader_append(r, s);
  r->parent = s;
  r->list = TIR_BODY;
  return true;
}

bool tir_take_path(struct tir_reader *r, char *out, size_t size) {
  assert(out && size > 1);
  const struct tir_token *t = tir_reader_token(r, r->at);
  if (t->kind != TIR_TOKEN_NAME || t->symbol != r->prefix || tir_reader_lookup(r, t->symbol).kind != TIR_UNBOUND)
    return false;
  size_t length = 0;
  uint32_t at = r->at + 1;
  while (tir_reader_is(r, at, TIR_PUNCT('.', 0)) && tir_reader_token(r, at + 1)->kind == TIR_TOKEN_NAME) {
    const struct tir_token *name = tir_reader_token(r, at + 1);
    if (length + name->length + 2 > size) return false;
    if (length) out[length++] = '.';
    memcpy(out + length, r->text + name->offset, name->length);
    length += name->length;
    at += 2;
  }
  out[length] = 0;
  if (!length || !tir_reader_is(r, at, TIR_PUNCT('(', 0))) return false;
  r->at = at;
  return true;
}

/* ---- Annotations ---- */

/* Puts an annotation into an array that ascends by the text of the keys; a key that is there gets the new value. */
static void put_sorted(const struct tir *ir, struct tir_annotation *all, uint32_t *count, struct tir_annotation a) {
  uint32_t i = 0;
  while (i < *count && strcmp(tir_text(ir, all[i].key), tir_text(ir, a.key)) < 0) i++;
  if (i == *count || all[i].key != a.key) {
    memmove(all + i + 1, all + i, (*count - i) * sizeof *all);
    ++*count;
  }
  all[i] = a;
}

bool tir_reader_annotations(struct tir_reader *r, struct tir_item map, struct tir_span *span) {
  if (map.kind == TIR_ITEM_NONE) return true;
  if (map.kind != TIR_ITEM_MAP) return tir_reader_fail(r, map.token, MS_TEXT_TYPE, "expected {\"key\": value, ...}");
  uint32_t count = span->count;
  struct tir_annotation *all = malloc((count + map.count / 2 + 1) * sizeof *all);
  if (!all) abort();
  if (count) memcpy(all, r->ir->annotations.at + span->first, count * sizeof *all);
  bool good = true;
  for (uint32_t i = 0; i < map.count && good; i += 2) {
    struct tir_item key = r->items[map.first + i];
    tir_expr value;
    good = key.kind == TIR_ITEM_STRING || tir_reader_fail(r, key.token, MS_TEXT_TYPE, "expected a string as key");
    good = good && tir_reader_as_annotation(r, r->items[map.first + i + 1], &value);
    if (good) put_sorted(r->ir, all, &count, (struct tir_annotation){tir_reader_symbol(r, key.word), value});
  }
  if (good && count) {
    uint32_t first = tir_grow_annotations(r->ir, count);
    memcpy(r->ir->annotations.at + first, all, count * sizeof *all);
    *span = (struct tir_span){first, count};
  }
  free(all);
  return good;
}

/* ---- Loops ---- */

bool tir_reader_new_loop(struct tir_reader *r, tir_symbol name, uint32_t token, tir_expr min, tir_expr extent,
                         enum tir_loop_kind kind, tir_stmt *out) {
  assert(min && extent && out);
  if (!tir_reader_check_extent(r, token, extent, "the extent of this loop") ||
      !tir_reader_match(r, token, &min, &extent))
    return false;
  tir_var v = tir_new_var(r->ir, TIR_VAR_LOOP, tir_reader_name(r, name), tir_type_of(r->ir, extent), min, extent);
  tir_reader_bind(r, name, TIR_BOUND_EXPR, tir_var_expr(r->ir, v));
  *out = tir_new_loop(r->ir, v, min, extent, kind);
  return tir_reader_note(r, token, tir_var_expr(r->ir, v));
}

struct loop_text {
  tir_symbol names[TIR_MOST_ITERS];
  uint32_t name_count, token;
};

static bool read_names(struct tir_reader *r, tir_symbol *names, uint32_t *count) {
  bool bracket = tir_reader_take_char(r, '(');
  *count = 0;
  do {
    const struct tir_token *t = tir_reader_token(r, r->at);
    if (t->kind != TIR_TOKEN_NAME) {
      if (*count && bracket) break;
      return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected a name");
    }
    if (*count == TIR_MOST_ITERS) return tir_reader_fail(r, r->at, MS_TOO_LARGE, "too many names");
    names[(*count)++] = t->symbol;
    r->at++;
  } while (tir_reader_take_char(r, ','));
  return !bracket || tir_reader_expect_char(r, ')', "after the names");
}

/* start, stop → minimum, extent; start may be left out. */
static bool read_range(struct tir_reader *r, struct tir_args *args, tir_expr *min, tir_expr *extent) {
  struct tir_item start, stop;
  if (!tir_arg_at(r, args, 0, "start", &start))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected the extent of the loop");
  tir_expr from, to;
  if (!tir_arg_at(r, args, 1, "stop", &stop) || stop.kind == TIR_ITEM_NONE || stop.kind == TIR_ITEM_STRING) {
    if (!tir_reader_as_expr(r, start, extent)) return false;
    if (!tir_type_is_int(tir_type_of(r->ir, *extent)))
      return tir_reader_fail(r, start.token, MS_TEXT_TYPE, "expected an integer as extent");
    *min = tir_reader_zero(r, tir_type_of(r->ir, *extent));
    return true;
  }
  if (!tir_reader_as_expr(r, start, &from) || !tir_reader_as_expr(r, stop, &to) ||
      !tir_reader_match(r, args->token, &from, &to))
    return false;
  *min = from;
  return tir_reader_extent(r, args->token, from, to, extent);
}

static bool refuse_step(struct tir_reader *r, struct tir_args *args, uint32_t position) {
  struct tir_item v;
  int64_t step = 1;
  if (!tir_arg_at(r, args, position, "step", &v) || v.kind == TIR_ITEM_NONE) return true;
  if ((v.kind == TIR_ITEM_INT && v.integer == 1) || (tir_reader_as_int(r, v, "a step", &step) && step == 1))
    return true;
  return tir_reader_fail(r, v.token, MS_TEXT_UNSUPPORTED, "loops with a step other than 1 are not supported");
}

/* unroll=True and unroll=False of T.serial are annotations. */
static bool read_unroll(struct tir_reader *r, struct tir_args *args, struct tir_span *span) {
  struct tir_item v;
  tir_expr value;
  if (!tir_arg_at(r, args, UINT32_MAX, "unroll", &v) || v.kind == TIR_ITEM_NONE) return true;
  bool off = v.kind == TIR_ITEM_TRUTH && !v.integer;
  if (off) v.integer = 1;
  if (!tir_reader_as_expr(r, v, &value)) return false;
  tir_annotate_span(r->ir, span, tir_symbol_of(r->ir, off ? "disable_unroll" : "pragma_unroll"), value);
  return true;
}

static bool read_thread(struct tir_reader *r, struct tir_args *args, tir_symbol *out) {
  struct tir_item v;
  bool second = args->count == 2 && r->items[args->first + 1].kind == TIR_ITEM_STRING;
  if (!tir_arg_at(r, args, second ? 1 : 2, "thread", &v) || v.kind != TIR_ITEM_STRING || !*tir_reader_word(r, v.word))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected thread=\"threadIdx.x\" or the like");
  *out = tir_reader_symbol(r, v.word);
  return true;
}

static bool enter_grid(struct tir_reader *r, struct loop_text *loop, struct tir_args *args) {
  assert(loop->name_count <= TIR_MOST_ITERS);
  if (args->count != loop->name_count)
    return tir_reader_fail(r, loop->token, MS_TEXT_SYNTAX, "%u names for %u loops", loop->name_count, args->count);
  for (uint32_t i = 0; i < args->count; i++) {
    struct tir_item v = r->items[args->first + i];
    tir_expr min = TIR_NONE, extent;
    if (v.kind == TIR_ITEM_LIST && v.count == 2) {
      if (!tir_reader_as_expr(r, r->items[v.first], &min)) return false;
      v = r->items[v.first + 1];
    }
    tir_stmt s;
    if (!tir_reader_as_expr(r, v, &extent)) return false;
    if (!min && tir_type_is_int(tir_type_of(r->ir, extent))) min = tir_reader_zero(r, tir_type_of(r->ir, extent));
    if (!tir_reader_new_loop(r, loop->names[i], v.token, min ? min : extent, extent, TIR_SERIAL, &s) ||
        !tir_reader_enter(r, v.token, s))
      return false;
  }
  return tir_args_done(r, args, TIR_MOST_ARGS);
}

static bool enter_loop(struct tir_reader *r, struct loop_text *loop, struct tir_args *args, enum tir_loop_kind kind,
                       bool range) {
  tir_expr min = TIR_NONE, extent = TIR_NONE;
  tir_stmt s;
  struct tir_item v;
  struct tir_span span = {0, 0};
  tir_symbol thread = TIR_NONE;
  if (loop->name_count != 1) return tir_reader_fail(r, loop->token, MS_TEXT_SYNTAX, "expected one name for one loop");
  if (!read_range(r, args, &min, &extent) || !refuse_step(r, args, range ? 2 : UINT32_MAX)) return false;
  if (kind == TIR_THREAD_BINDING && !read_thread(r, args, &thread)) return false;
  if (tir_arg_at(r, args, UINT32_MAX, "annotations", &v) && !tir_reader_annotations(r, v, &span)) return false;
  if (!read_unroll(r, args, &span) || !tir_args_done(r, args, 3)) return false;
  if (!tir_reader_new_loop(r, loop->names[0], args->token, min, extent, kind, &s)) return false;
  tir_as(r->ir, s, TIR_LOOP)->loop.thread = thread;
  tir_stmt_at(r->ir, s)->annotations = span;
  return tir_reader_enter(r, args->token, s);
}

static bool read_for_header(struct tir_reader *r, struct loop_text *loop) {
  static const struct {
    const char *name;
    enum tir_loop_kind kind;
  } kinds[] = {{"serial", TIR_SERIAL},
               {"parallel", TIR_PARALLEL},
               {"vectorized", TIR_VECTORIZED},
               {"unroll", TIR_UNROLLED},
               {"thread_binding", TIR_THREAD_BINDING}};
  struct tir_args args = {.token = r->at};
  char path[64];
  if (tir_reader_is_name(r, r->at, "range") && tir_reader_is(r, r->at + 1, TIR_PUNCT('(', 0))) {
    r->at++;
    args.name = "range";
    return tir_read_args(r, &args) && enter_loop(r, loop, &args, TIR_SERIAL, true);
  }
  if (!tir_take_path(r, path, sizeof path))
    return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected range, T.grid, T.serial or another kind of loop");
  args.name = path;
  if (!strcmp(path, "grid")) return tir_read_args(r, &args) && enter_grid(r, loop, &args);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (!strcmp(path, kinds[i].name))
      return tir_read_args(r, &args) && enter_loop(r, loop, &args, kinds[i].kind, false);
  return tir_reader_fail(r, args.token, MS_TEXT_SYNTAX, "T.%s is no kind of loop", path);
}

/* Reads a header that may open several statements, then its suite inside the innermost of them. */
struct place {
  tir_stmt parent;
  enum tir_list list;
  uint32_t scope, depth;
};

static struct place save_place(struct tir_reader *r) {
  return (struct place){r->parent, r->list, tir_reader_open_scope(r), r->stmt_depth};
}

static void restore_place(struct tir_reader *r, struct place p) {
  r->parent = p.parent;
  r->list = p.list;
  r->stmt_depth = p.depth;
  tir_reader_close_scope(r, p.scope);
}

static bool read_for(struct tir_reader *r) {
  struct place place = save_place(r);
  struct loop_text loop = {.token = r->at++};
  bool good = read_names(r, loop.names, &loop.name_count);
  if (good) good = tir_reader_take_name(r, "in") || tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected 'in'");
  good = good && read_for_header(r, &loop) && tir_read_suite(r, r->parent, TIR_BODY);
  restore_place(r, place);
  return good;
}

/* ---- Conditions ---- */

static bool read_condition(struct tir_reader *r, tir_expr *out) {
  uint32_t token = r->at;
  if (!tir_read_expr(r, out)) return false;
  tir_type type = tir_type_of(r->ir, *out);
  char text[24];
  if (tir_type_code(type) == TIR_BOOL && tir_type_lanes(type) == 1) return true;
  return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected a condition, found %s", tir_type_text(type, text));
}

/* if, and elif as an if in the else. */
static bool read_if(struct tir_reader *r) {
  struct place place = save_place(r);
  uint32_t token = r->at++;
  tir_expr condition;
  if (!read_condition(r, &condition)) return false;
  tir_stmt s = tir_new_if(r->ir, condition);
  bool good = tir_reader_enter(r, token, s) && tir_read_suite(r, s, TIR_BODY);
  r->parent = s;
  r->list = TIR_ELSE;
  if (good && tir_reader_is_name(r, r->at, "elif"))
    good = read_if(r);
  else if (good && tir_reader_take_name(r, "else"))
    good = tir_read_suite(r, s, TIR_ELSE);
  restore_place(r, place);
  return good;
}

static bool read_while(struct tir_reader *r) {
  struct place place = save_place(r);
  uint32_t token = r->at++;
  tir_expr condition;
  if (!read_condition(r, &condition)) return false;
  tir_stmt s = tir_new_stmt(r->ir, TIR_WHILE);
  tir_stmt_at(r->ir, s)->test.condition = condition;
  bool good = tir_reader_enter(r, token, s) && tir_read_suite(r, s, TIR_BODY);
  restore_place(r, place);
  return good;
}

/* The message is a string, or its kind of error and its parts: ("RuntimeError", ["…"]), which is a list here. */
static bool read_message(struct tir_reader *r, struct tir_item v, tir_expr *out) {
  tir_expr parts[TIR_MOST_ITERS];
  uint32_t count = 0;
  struct tir_item kind = {.kind = TIR_ITEM_NONE}, list = v;
  if (v.kind == TIR_ITEM_LIST && v.count == 2 && r->items[v.first + 1].kind == TIR_ITEM_LIST) {
    kind = r->items[v.first];
    list = r->items[v.first + 1];
  }
  parts[count++] = tir_string(r->ir, kind.kind == TIR_ITEM_STRING ? tir_reader_symbol(r, kind.word)
                                                                  : tir_symbol_of(r->ir, "RuntimeError"));
  uint32_t n = list.kind == TIR_ITEM_LIST ? list.count : 1;
  if (n + 1 > TIR_MOST_ITERS) return tir_reader_fail(r, v.token, MS_TOO_LARGE, "this message has too many parts");
  for (uint32_t i = 0; i < n; i++) {
    struct tir_item part = list.kind == TIR_ITEM_LIST ? r->items[list.first + i] : list;
    if (part.kind != TIR_ITEM_STRING)
      return tir_reader_fail(r, part.token, MS_TEXT_TYPE, "expected a string as message");
    parts[count++] = tir_string(r->ir, tir_reader_symbol(r, part.word));
  }
  *out = tir_list_value(r->ir, parts, count);
  return tir_reader_note(r, v.token, *out);
}

static bool read_assert(struct tir_reader *r) {
  r->at++;
  tir_expr condition, message = TIR_NONE;
  struct tir_item v = {.kind = TIR_ITEM_STRING, .token = r->at, .word = tir_symbol_of(r->words, "")};
  if (!read_condition(r, &condition)) return false;
  if (tir_reader_take_char(r, ',') && !tir_read_value(r, &v)) return false;
  if (!read_message(r, v, &message)) return false;
  tir_stmt s = tir_new_stmt(r->ir, TIR_ASSERT);
  tir_stmt_at(r->ir, s)->test.condition = condition;
  tir_stmt_at(r->ir, s)->test.message = message;
  tir_reader_append(r, s);
  return true;
}

/* ---- with ---- */

static bool read_with(struct tir_reader *r) {
  struct place place = save_place(r);
  uint32_t token = ++r->at;
  char path[64];
  if (!tir_take_path(r, path, sizeof path))
    return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected T.sblock, T.init, T.attr or the like");
  if (!strcmp(path, "sblock") || !strcmp(path, "block")) return tir_read_block(r, token);
  if (!strcmp(path, "init")) {
    struct tir_args args = {.token = token, .name = path};
    return tir_read_args(r, &args) && tir_args_done(r, &args, 0) && tir_read_init(r, token);
  }
  /* What a with-statement declares is named after its arguments: look ahead for it. */
  uint32_t at = r->at, depth = 0;
  do {
    if (tir_reader_is(r, at, TIR_PUNCT('(', 0))) depth++;
    if (tir_reader_is(r, at, TIR_PUNCT(')', 0))) depth--;
    at++;
  } while (depth && at < r->tokens.count);
  bool named = tir_reader_is_name(r, at, "as") && tir_reader_token(r, at + 1)->kind == TIR_TOKEN_NAME;
  tir_symbol target = named ? tir_reader_token(r, at + 1)->symbol : TIR_NONE;
  bool known, good = tir_read_declaration(r, target, path, token, &known);
  if (good && !known) good = tir_reader_fail(r, token, MS_TEXT_UNSUPPORTED, "T.%s opens no block", path);
  if (good && named) r->at += 2;
  good = good && tir_read_suite(r, r->parent, r->list);
  restore_place(r, place);
  return good;
}

/* ---- Lines ---- */

static bool append_evaluate(struct tir_reader *r, tir_expr value) {
  tir_stmt s = tir_new_stmt(r->ir, TIR_EVALUATE);
  tir_as(r->ir, s, TIR_EVALUATE)->evaluate.value = value;
  tir_reader_append(r, s);
  return true;
}

static bool append_call(struct tir_reader *r, uint32_t token, const char *op, const tir_expr *args, uint32_t count) {
  tir_type type = count ? tir_type_of(r->ir, args[0]) : TIR_T_VOID;
  tir_expr e = tir_call(r->ir, type, tir_symbol_of(r->ir, op), args, count);
  return tir_reader_note(r, token, e) && append_evaluate(r, e);
}

static bool read_return(struct tir_reader *r) {
  uint32_t token = r->at++;
  tir_expr value;
  return tir_read_expr(r, &value) && append_call(r, token, "ret", &value, 1);
}

/* An expression by itself: a call for its effect; T.evaluate(x). */
static bool read_expression_line(struct tir_reader *r) {
  char path[64];
  uint32_t token = r->at;
  bool known = false;
  if (tir_take_path(r, path, sizeof path)) {
    struct tir_args args = {.token = token, .name = path};
    struct tir_item v;
    tir_expr value;
    if (!tir_read_block_line(r, path, token, &known)) return false;
    if (!known && !tir_read_declaration(r, TIR_NONE, path, token, &known)) return false;
    if (known) return true;
    if (!strcmp(path, "evaluate")) {
      if (!tir_read_args(r, &args)) return false;
      if (!tir_arg_at(r, &args, 0, "value", &v))
        return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected an expression");
      return tir_args_done(r, &args, 1) && tir_reader_as_expr(r, v, &value) && append_evaluate(r, value);
    }
    r->at = token;
  }
  if (tir_reader_token(r, token)->kind == TIR_TOKEN_STRING &&
      tir_reader_token(r, token + 1)->kind == TIR_TOKEN_NEWLINE) {
    r->at++; /* a docstring */
    return true;
  }
  const struct tir_token *first = tir_reader_token(r, token);
  if (first->kind == TIR_TOKEN_NAME && tir_reader_lookup(r, first->symbol).kind == TIR_BOUND_BUFFER &&
      tir_reader_is_name(r, token + 2, "vstore")) {
    r->at += 3;
    return tir_read_vstore(r, token, tir_reader_lookup(r, first->symbol).ref);
  }
  tir_expr value;
  return tir_read_expr(r, &value) && append_evaluate(r, value);
}

static bool starts_assignment(const struct tir_reader *r) {
  const struct tir_token *t = tir_reader_token(r, r->at);
  if (t->kind != TIR_TOKEN_NAME && !tir_reader_is_char(r, '(')) return false;
  uint32_t depth = 0;
  for (uint32_t at = r->at;; at++) {
    t = tir_reader_token(r, at);
    if (t->kind == TIR_TOKEN_NEWLINE || t->kind == TIR_TOKEN_END) return false;
    if (t->kind != TIR_TOKEN_PUNCT) continue;
    if (!depth && t->punct == TIR_PUNCT_FLOOR_ASSIGN) return true;
    char first = (char)(t->punct & 255), second = (char)(t->punct >> 8);
    if (first == '(' || first == '[' || first == '{')
      depth++;
    else if (first == ')' || first == ']' || first == '}')
      depth--;
    else if (!depth && (first == ';' && !second))
      return false;
    else if (!depth &&
             ((first == '=' && !second) || (second == '=' && strchr("+-*/%", first)) || (first == ':' && !second)))
      return true;
  }
}

static bool read_line(struct tir_reader *r) {
  static const char *const unsupported[] = {"def", "class",  "import", "from",  "try",   "global",
                                            "del", "lambda", "yield",  "async", "raise", "nonlocal"};
  uint32_t token = r->at;
  if (tir_reader_take_name(r, "pass")) return true;
  if (tir_reader_is_name(r, token, "assert")) return read_assert(r);
  if (tir_reader_is_name(r, token, "return")) return read_return(r);
  if (tir_reader_take_name(r, "break")) return append_call(r, token, "break_loop", NULL, 0);
  if (tir_reader_take_name(r, "continue")) return append_call(r, token, "continue_loop", NULL, 0);
  for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++)
    if (tir_reader_is_name(r, token, unsupported[i]))
      return tir_reader_fail(r, token, MS_TEXT_UNSUPPORTED, "'%s' cannot stand in a function", unsupported[i]);
  return starts_assignment(r) ? tir_read_assignment(r) : read_expression_line(r);
}

static bool end_line(struct tir_reader *r) {
  r->item_count = 0;
  uint32_t kind = tir_reader_token(r, r->at)->kind;
  if (kind == TIR_TOKEN_NEWLINE) return r->at++, true;
  if (kind == TIR_TOKEN_END || tir_reader_take_char(r, ';')) return true;
  return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected the end of the line");
}

static bool read_stmt(struct tir_reader *r) {
  r->item_count = 0;
  if (tir_reader_is_name(r, r->at, "for")) return read_for(r);
  if (tir_reader_is_name(r, r->at, "with")) return read_with(r);
  if (tir_reader_is_name(r, r->at, "if")) return read_if(r);
  if (tir_reader_is_name(r, r->at, "while")) return read_while(r);
  return read_line(r) && end_line(r);
}

/* Statements on the line of the colon: simple ones only. */
static bool read_inline_suite(struct tir_reader *r) {
  do {
    r->item_count = 0;
    if (!read_line(r)) return false;
  } while (tir_reader_take_char(r, ';') && tir_reader_token(r, r->at)->kind != TIR_TOKEN_NEWLINE);
  return end_line(r);
}

bool tir_read_suite(struct tir_reader *r, tir_stmt parent, enum tir_list list) {
  assert(tir_stmt_at(r->ir, parent)->kind != TIR_DEAD);
  if (!tir_reader_expect_char(r, ':', "before the suite")) return false;
  struct place place = save_place(r);
  r->parent = parent;
  r->list = list;
  bool good = true;
  if (tir_reader_token(r, r->at)->kind != TIR_TOKEN_NEWLINE) {
    good = read_inline_suite(r);
  } else {
    r->at++;
    if (tir_reader_token(r, r->at)->kind != TIR_TOKEN_INDENT)
      good = tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected an indented suite");
    r->at++;
    while (good && tir_reader_token(r, r->at)->kind != TIR_TOKEN_DEDENT) {
      if (tir_reader_token(r, r->at)->kind == TIR_TOKEN_INDENT)
        good = tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "this line is indented more than the ones above");
      else
        good = read_stmt(r);
    }
    if (good) r->at++;
  }
  restore_place(r, place);
  return good;
}
