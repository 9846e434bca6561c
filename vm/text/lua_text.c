/* Traces as Lua: a chunk that returns a function of (ms, sch, v), v being a table of handles. Valid Lua, which a script
 * may run; here it is read by a parser of that subset and never run, since a stored trace is data.
 *
 *   chunk  = "return" "function" "(" name "," name "," name ")" {call} "end"
 *   call   = [v {"," v} "="] "sch" ":" name "(" [value {"," value}] ")" [";"]
 *   v      = "v" "." name
 *   value  = "nil" | "ms" "." ("rest" | "none" | "map") | "true" | "false" | number | string | v | table
 *   number = ["-"] (digits | decimal | "math.huge") | "(0/0)"
 *   table  = "{" [item {("," | ";") item} [","]] "}";  item = value | (name | "[" string "]") "=" value
 * Arguments stand in the order of the method; a list stands for a repeated one. A draw's last argument may be a table
 * of its id and decision: {draw = 3, decision = {4, 2}}. */
#include "vm/steps.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tokens ------------------------------------------------------------------------------------------------------ */

struct reader {
  struct vm_trace *trace;
  struct vm_names names;
  const char *text, *at, *end;
  struct vm_span decision;  /* of the last table's `decision` */
  struct vm_spans *decided; /* NULL: nobody asks */
  ms_error *err;
};

static bool fail(struct reader *r, const char *what) {
  int line = 1;
  const char *start = r->text;
  for (const char *c = r->text; c < r->at; c++)
    if (*c == '\n') line++, start = c + 1;
  ms_fail(r->err, MS_BAD_TRACE, "%d:%d: %s", line, (int)(r->at - start) + 1, what);
  if (r->err) r->err->instruction = (int)r->trace->steps->count;
  return false;
}

static void skip_space(struct reader *r) {
  while (r->at < r->end) {
    if (isspace((unsigned char)*r->at)) {
      r->at++;
    } else if (r->end - r->at >= 2 && r->at[0] == '-' && r->at[1] == '-') {
      while (r->at < r->end && *r->at != '\n') r->at++;
    } else {
      return;
    }
  }
}

static size_t word_length(struct reader *r) {
  skip_space(r);
  const char *c = r->at;
  if (c < r->end && isdigit((unsigned char)*c)) return 0;
  while (c < r->end && (isalnum((unsigned char)*c) || *c == '_')) c++;
  return (size_t)(c - r->at);
}

static bool take_word(struct reader *r, const char *word) {
  skip_space(r);
  if (r->at >= r->end || *r->at != *word) return false;
  size_t length = word_length(r);
  if (length != strlen(word) || memcmp(r->at, word, length) != 0) return false;
  r->at += length;
  return true;
}

static bool take(struct reader *r, char c) {
  skip_space(r);
  if (r->at >= r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static bool expect(struct reader *r, char c) {
  char what[] = "expected  ";
  what[9] = c;
  return take(r, c) || fail(r, what);
}

static bool expect_word(struct reader *r, const char *word) {
  if (take_word(r, word)) return true;
  char what[40];
  snprintf(what, sizeof what, "expected %s", word);
  return fail(r, what);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static const char DECISION[] = "decision";

/* A value, or in a table's item a key too; `options` of a draw are kept apart. */
struct items {
  struct vm_value *at;
  uint32_t count, capacity;
};

static void add_item(struct items *items, struct vm_value v) {
  if (items->count == items->capacity)
    items->at = tir_enlarge(items->at, &items->capacity, (uint64_t)items->count + 1, sizeof v);
  items->at[items->count++] = v;
}

static int hex_digit(char c) {
  return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* After the backslash. -1: no such escape. */
static int read_escape(struct reader *r) {
  static const char from[] = "abfnrtv\\\"'\n", to[] = "\a\b\f\n\r\t\v\\\"'\n";
  if (r->at >= r->end) return -1;
  char c = *r->at++;
  const char *simple = c ? strchr(from, c) : NULL;
  if (simple) return to[simple - from];
  if (c == 'x' && r->end - r->at >= 2) {
    int high = hex_digit(r->at[0]), low = hex_digit(r->at[1]);
    r->at += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
  }
  if (!isdigit((unsigned char)c)) return -1;
  int value = c - '0';
  for (int i = 0; i < 2 && r->at < r->end && isdigit((unsigned char)*r->at); i++) value = value * 10 + (*r->at++ - '0');
  return value > 255 ? -1 : value;
}

static bool read_string(struct reader *r, struct vm_value *out) {
  char quote = *r->at++;
  struct vm_text text = {0};
  bool done = false;
  vm_put(&text, "", 0);
  while (r->at < r->end && *r->at != '\n') {
    const char *run = r->at;
    while (r->at < r->end && *r->at != '\n' && *r->at != quote && *r->at != '\\') r->at++;
    vm_put(&text, run, (size_t)(r->at - run));
    if (r->at >= r->end || *r->at == '\n') break;
    if (*r->at++ == quote) {
      done = true;
      break;
    }
    int byte = read_escape(r);
    if (byte < 0) break;
    char b = (char)byte;
    vm_put(&text, &b, 1);
  }
  if (done && !vm_is_text(text.at, text.size))
    done = fail(r, "a string is no UTF-8 text");
  else if (!done)
    fail(r, "a string that does not end, or an unknown escape in it");
  if (done) *out = vm_string(r->trace, text.at, text.size);
  free(text.at);
  return done;
}

static bool read_number(struct reader *r, struct vm_value *out) {
  char digits[64];
  bool negative = take(r, '-');
  if (take_word(r, "math")) {
    if (!expect(r, '.') || !expect_word(r, "huge")) return false;
    *out = vm_real(negative ? -INFINITY : INFINITY);
    return true;
  }
  size_t length = 0;
  bool real = false;
  while (r->at < r->end && length + 2 < sizeof digits) {
    char c = *r->at;
    bool sign = (c == '-' || c == '+') && length && strchr("eE", digits[length - 1]);
    if (!isdigit((unsigned char)c) && c != '.' && c != 'e' && c != 'E' && !sign) break;
    real = real || !isdigit((unsigned char)c);
    if (!length && negative) digits[length++] = '-';
    digits[length++] = c;
    r->at++;
  }
  digits[length] = 0;
  char *end = digits;
  if (real) {
    *out = vm_real(tir_text_number(digits, &end));
    return (length && !*end) || fail(r, "a number that is none");
  }
  int64_t value = 0;
  for (const char *c = digits + (negative && length); *c; c++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        (negative ? __builtin_sub_overflow(value, *c - '0', &value) : __builtin_add_overflow(value, *c - '0', &value)))
      return fail(r, "an integer of more than 64 bits");
  *out = vm_int(value);
  return length || fail(r, "expected a value");
}

static bool read_variable(struct reader *r, struct vm_value *out) {
  if (!expect(r, '.')) return false;
  size_t length = word_length(r);
  uint32_t variable;
  if (!length || !vm_name_find(&r->names, r->at, length, &variable))
    return fail(r, "a handle that nothing has given yet");
  r->at += length;
  *out = vm_ref(variable);
  return true;
}

static bool read_value(struct reader *r, int depth, struct vm_value *out);

static bool is_key(const struct vm_steps *s, const struct vm_value *key, const char *name) {
  return !strcmp(s->text + key->first, name);
}

/* [name "="], ["[" string "]" "="]: a key, or nothing when a value stands here. */
static bool read_key(struct reader *r, struct vm_value *key, bool *found) {
  *found = false;
  if (take(r, '[')) {
    skip_space(r);
    if (r->at >= r->end || (*r->at != '"' && *r->at != '\'')) return fail(r, "expected a string");
    *found = true;
    return read_string(r, key) && expect(r, ']') && expect(r, '=');
  }
  const char *start = r->at;
  size_t length = word_length(r);
  const char *name = r->at;
  r->at += length;
  if (!length || !take(r, '=')) {
    r->at = start;
    return true;
  }
  *found = true;
  *key = vm_string(r->trace, name, length);
  return true;
}

static bool read_items(struct reader *r, int depth, struct items *items, bool *keyed) {
  bool plain = false;
  *keyed = false;
  while (!take(r, '}')) {
    struct vm_value key, value;
    bool found;
    if (!read_key(r, &key, &found)) return false;
    if (found) add_item(items, key);
    *keyed = *keyed || found;
    plain = plain || !found;
    if (*keyed && plain) return fail(r, "a table with keys and without");
    skip_space(r);
    const char *from = r->at;
    if (!read_value(r, depth + 1, &value)) return false;
    if (found && !depth && is_key(r->trace->steps, &key, DECISION))
      r->decision = (struct vm_span){(size_t)(from - r->text), (size_t)(r->at - r->text), 0};
    add_item(items, value);
    if (take(r, ',') || take(r, ';')) continue;
    return expect(r, '}');
  }
  return true;
}

static bool read_table(struct reader *r, int depth, struct vm_value *out) {
  struct items items = {0};
  bool keyed, done = read_items(r, depth, &items, &keyed);
  if (done) *out = vm_list(r->trace, keyed ? VM_MAP : VM_LIST, items.at, items.count);
  free(items.at);
  return done;
}

static bool read_value(struct reader *r, int depth, struct vm_value *out) {
  if (depth > VM_MOST_DEPTH) return fail(r, "a value is nested too deep");
  skip_space(r);
  if (r->at < r->end && (*r->at == '"' || *r->at == '\'')) return read_string(r, out);
  if (take(r, '{')) return read_table(r, depth, out);
  if (take_word(r, "v")) return read_variable(r, out);
  if (take_word(r, "nil")) return *out = vm_none(), true;
  if (take_word(r, "true")) return *out = vm_bool(true), true;
  if (take_word(r, "false")) return *out = vm_bool(false), true;
  if (take_word(r, "ms")) {
    *out = vm_none();
    if (!expect(r, '.')) return false;
    if (take_word(r, "map")) return *out = vm_list(r->trace, VM_MAP, NULL, 0), true;
    return take_word(r, "rest") || expect_word(r, "none");
  }
  if (take(r, '(')) {
    *out = vm_real(NAN);
    return expect(r, '0') && expect(r, '/') && expect(r, '0') && expect(r, ')');
  }
  return read_number(r, out);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

struct call {
  enum vm_kind kind;
  const char *targets[VM_MOST_OUTPUTS];
  uint32_t lengths[VM_MOST_OUTPUTS];
  uint32_t target_count;
  struct items args;
  uint32_t draw;
  int64_t *decision;
  uint32_t decision_count;
};

static bool read_targets(struct reader *r, struct call *c) {
  c->target_count = 0;
  if (!take_word(r, "v")) return true;
  do {
    if (c->target_count && !expect_word(r, "v")) return false;
    if (!expect(r, '.')) return false;
    size_t length = word_length(r);
    if (!length || c->target_count == VM_MOST_OUTPUTS) return fail(r, "expected a name");
    c->targets[c->target_count] = r->at;
    c->lengths[c->target_count++] = (uint32_t)length;
    r->at += length;
  } while (take(r, ','));
  return expect(r, '=');
}

/* Takes the decision out of its value; a list of numbers, or one. */
static bool take_decision(struct reader *r, struct call *c, const struct vm_value *v) {
  const struct vm_steps *s = r->trace->steps;
  c->decision_count = v->kind == VM_LIST ? v->count : 1;
  c->decision = malloc((c->decision_count + 1) * sizeof *c->decision);
  if (!c->decision) abort();
  for (uint32_t i = 0; i < c->decision_count; i++) {
    const struct vm_value *item = v->kind == VM_LIST ? &s->values[v->first + i] : v;
    if (item->kind != VM_INT) return fail(r, "a decision is an integer or a list of integers");
    c->decision[i] = item->integer;
  }
  return true;
}

static bool take_options(struct reader *r, struct call *c) {
  const struct vm_steps *s = r->trace->steps;
  if (vm_kind_info(c->kind)->effect != VM_EFFECT_draw || !c->args.count) return true;
  struct vm_value options = c->args.at[c->args.count - 1];
  if (options.kind != VM_MAP) return true;
  c->args.count--;
  for (uint32_t i = 0; i < options.count; i += 2) {
    const struct vm_value *key = &s->values[options.first + i], *value = key + 1;
    if (is_key(s, key, "draw") && value->kind == VM_INT && value->integer >= 0 && value->integer < VM_NO_DRAW)
      c->draw = (uint32_t)value->integer;
    else if (!is_key(s, key, DECISION))
      return fail(r, "a draw's options are draw and decision");
    else if (c->decision || !take_decision(r, c, value))
      return c->decision && fail(r, "two decisions");
  }
  return true;
}

/* Sorts arguments, which stand in the method's order, into inputs and attributes. */
static bool sort_arguments(struct reader *r, const struct call *c, const struct vm_signature *sig, struct items *inputs,
                           struct items *attrs) {
  uint32_t params = (uint32_t)sig->inputs + sig->attrs;
  if (c->args.count > params) return fail(r, "too many arguments");
  for (uint32_t p = 0; p < params; p++) {
    struct items *to = p < sig->inputs ? inputs : attrs;
    uint32_t place = 0;
    while (sig->order[place] != p) place++;
    if (place >= c->args.count) continue;
    struct vm_value v = c->args.at[place];
    if (sig->at[p].repeat) {
      if (v.kind != VM_LIST) return fail(r, "expected a list in braces");
      for (uint32_t i = 0; i < v.count; i++) add_item(to, r->trace->steps->values[v.first + i]);
      continue;
    }
    if (v.kind == VM_NONE && sig->at[p].standard && !sig->at[p].optional) v = vm_default_value(r->trace, &sig->at[p]);
    if (vm_is_formula(sig->at[p].type) && v.kind == VM_STRING &&
        !vm_read_formula(r->trace, &r->names, sig->at[p].type, r->trace->steps->text + v.first, v.count, &v, r->err))
      return false;
    add_item(to, v);
  }
  return true;
}

/* The options, whose decision was taken, are the last table of their call. */
static void note_decision(struct reader *r, uint32_t instruction) {
  struct vm_spans *d = r->decided;
  if (!d) return;
  if (d->count == d->capacity) d->at = tir_enlarge(d->at, &d->capacity, (uint64_t)d->count + 1, sizeof *d->at);
  r->decision.instruction = instruction;
  d->at[d->count++] = r->decision;
}

static bool append_call(struct reader *r, struct call *c) {
  const struct vm_signature *sig = vm_signature_of(c->kind);
  struct items inputs = {0}, attrs = {0};
  uint32_t first = r->trace->steps->variables;
  bool done =
      take_options(r, c) && sort_arguments(r, c, sig, &inputs, &attrs) &&
      vm_append(r->trace, c->kind, inputs.at, inputs.count, attrs.at, attrs.count, c->target_count, c->draw, r->err);
  free(inputs.at);
  free(attrs.at);
  for (uint32_t i = 0; done && i < c->target_count; i++)
    if (!vm_name_add(&r->names, c->targets[i], c->lengths[i], first + i)) done = fail(r, "a handle is given twice");
  if (done && c->decision) {
    uint32_t last = r->trace->steps->count - 1;
    vm_decide(r->trace, last, c->decision, c->decision_count ? c->decision_count : VM_WRONG_COUNT);
    note_decision(r, last);
  }
  return done;
}

static bool read_call(struct reader *r, struct call *c) {
  if (!read_targets(r, c) || !expect_word(r, "sch") || !expect(r, ':')) return false;
  size_t length = word_length(r);
  c->kind = vm_find_kind(r->at, length);
  if (c->kind == VM_KIND_COUNT) {
    ms_fail(r->err, MS_UNKNOWN_INSTRUCTION, "there is no method `%.*s`", (int)(length < 100 ? length : 100), r->at);
    if (r->err) r->err->instruction = (int)r->trace->steps->count;
    return false;
  }
  r->at += length;
  if (!expect(r, '(')) return false;
  while (!take(r, ')')) {
    struct vm_value v;
    if (!read_value(r, 0, &v)) return false;
    add_item(&c->args, v);
    if (take(r, ',')) continue;
    if (!expect(r, ')')) return false;
    break;
  }
  take(r, ';');
  return append_call(r, c);
}

static bool read_chunk(struct reader *r, struct call *c) {
  if (!expect_word(r, "return") || !expect_word(r, "function") || !expect(r, '(') || !expect_word(r, "ms") ||
      !expect(r, ',') || !expect_word(r, "sch") || !expect(r, ',') || !expect_word(r, "v") || !expect(r, ')'))
    return false;
  while (!take_word(r, "end")) {
    c->args.count = 0;
    c->draw = VM_NO_DRAW;
    bool done = read_call(r, c);
    free(c->decision);
    c->decision = NULL;
    if (!done) return false;
  }
  skip_space(r);
  return r->at == r->end || fail(r, "expected the end of the text");
}

struct vm_trace *vm_read_lua(const char *text, size_t length, ms_error *err) {
  return vm_read_lua_spans(text, length, NULL, err);
}

struct vm_trace *vm_read_lua_spans(const char *text, size_t length, struct vm_spans *decided, ms_error *err) {
  struct call *call = calloc(1, sizeof *call);
  if (!call) abort();
  struct reader r = {
      .trace = vm_trace_new(), .text = text, .at = text, .end = text + length, .decided = decided, .err = err};
  bool done = read_chunk(&r, call);
  free(call->args.at);
  free(call);
  free(r.names.at);
  if (done) return r.trace;
  vm_trace_free(r.trace);
  return NULL;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put_variable(struct vm_text *text, const struct vm_steps *s, uint32_t variable) {
  char name[16];
  vm_put(text, "v.", 2);
  vm_put(text, name, (size_t)vm_variable_name(s, variable, name));
}

static void put_value(struct vm_text *text, const struct vm_steps *s, const struct vm_value *v, const char *none);

static void put_items(struct vm_text *text, const struct vm_steps *s, const struct vm_value *items, uint32_t count,
                      bool keyed) {
  if (keyed && !count) { /* {} is a list */
    vm_put(text, "ms.map", 6);
    return;
  }
  vm_put(text, "{", 1);
  for (uint32_t i = 0; i < count; i++) {
    if (i && !(keyed && i % 2)) vm_put(text, ", ", 2);
    if (keyed && i % 2 == 0) {
      vm_put(text, "[", 1);
      put_value(text, s, &items[i], "");
      vm_put(text, "] = ", 4);
    } else {
      put_value(text, s, &items[i], "ms.rest"); /* nil would end the list */
    }
  }
  vm_put(text, "}", 1);
}

static void put_value(struct vm_text *text, const struct vm_steps *s, const struct vm_value *v, const char *none) {
  switch (v->kind) {
  case VM_BOOL: vm_putf(text, v->integer ? "true" : "false"); break;
  case VM_INT: vm_put_whole(text, v->integer); break;
  case VM_REAL:
    if (isfinite(v->real))
      vm_put_real(text, v->real);
    else
      vm_putf(text, isnan(v->real) ? "(0/0)" : v->real > 0 ? "math.huge" : "-math.huge");
    break;
  case VM_STRING: vm_put_string(text, s->text + v->first, v->count); break;
  case VM_REF: put_variable(text, s, v->ref); break;
  case VM_LIST:
  case VM_MAP: put_items(text, s, s->values + v->first, v->count, v->kind == VM_MAP); break;
  case VM_INDEX_MAP: {
    struct vm_text map = {0};
    vm_put_formula(&map, s, v);
    vm_put_string(text, map.at, map.size);
    free(map.at);
    break;
  }
  default: vm_put(text, none, strlen(none));
  }
}

/* Where the decision of a draw stands is noted; the decision itself is none of the steps'. */
static void put_options(struct vm_text *text, const struct vm_instruction *i, uint32_t number, struct vm_spans *draws) {
  vm_put(text, ", {draw = ", 10);
  vm_put_whole(text, i->draw);
  if (draws->count == draws->capacity)
    draws->at = tir_enlarge(draws->at, &draws->capacity, (uint64_t)draws->count + 1, sizeof *draws->at);
  draws->at[draws->count++] = (struct vm_span){text->size, text->size, number};
  vm_put(text, "}", 1);
}

static void put_call(struct vm_text *text, const struct vm_steps *s, uint32_t number, struct vm_spans *draws) {
  const struct vm_instruction *i = &s->instructions[number];
  const struct vm_signature *sig = vm_signature_of(i->kind);
  for (uint32_t n = 0; n < i->outputs; n++) {
    if (n) vm_put(text, ", ", 2);
    put_variable(text, s, i->first_output + n);
  }
  vm_putf(text, "%ssch:%.*s(", i->outputs ? " = " : "", sig->method_length, vm_kind_info(i->kind)->method);
  for (uint32_t a = 0; a < (uint32_t)sig->inputs + sig->attrs; a++) {
    uint32_t p = sig->order[a];
    if (a) vm_put(text, ", ", 2);
    if (sig->at[p].repeat)
      put_items(text, s, vm_inputs_of(s, i) + p, i->inputs - p, false);
    else
      put_value(text, s, p < sig->inputs ? vm_inputs_of(s, i) + p : vm_attrs_of(s, i) + (p - sig->inputs), "nil");
  }
  if (i->draw != VM_NO_DRAW) put_options(text, i, number, draws);
  vm_put(text, ")", 1);
}

void vm_put_lua_steps(struct vm_text *text, const struct vm_steps *steps, struct vm_spans *draws) {
  assert(!text->size && !draws->count);
  vm_putf(text, "return function(ms, sch, v)\n");
  for (uint32_t n = 0; n < steps->count; n++) {
    vm_put(text, "  ", 2);
    put_call(text, steps, n, draws);
    vm_put(text, "\n", 1);
  }
  vm_putf(text, "end\n");
}

static void put_decision(struct vm_text *text, const struct vm_trace *trace, uint32_t number) {
  const struct vm_instruction *i = &trace->steps->instructions[number];
  uint8_t decided = trace->decided[i->decision];
  bool list = vm_signature_of(i->kind)->output.repeat;
  if (decided == VM_ILL_FORMED) vm_putf(text, ", decision = {}");
  if (decided != VM_DECIDED) return;
  vm_putf(text, list ? ", decision = {" : ", decision = ");
  for (uint32_t n = 0; n < i->outputs; n++) {
    if (n) vm_put(text, ", ", 2);
    vm_put_whole(text, trace->decisions[i->decision + n]);
  }
  if (list) vm_put(text, "}", 1);
}

char *vm_put_lua_decisions(const struct vm_text *steps, const struct vm_spans *draws, const struct vm_trace *trace) {
  struct vm_text text = {0};
  size_t done = 0;
  for (uint32_t i = 0; i < draws->count; i++) {
    vm_put(&text, steps->at + done, draws->at[i].from - done);
    put_decision(&text, trace, draws->at[i].instruction);
    done = draws->at[i].from;
  }
  vm_put(&text, steps->at + done, steps->size - done);
  return text.at;
}

char *vm_write_lua(const struct vm_trace *trace) {
  struct vm_text steps = {0};
  struct vm_spans draws = {0};
  vm_put_lua_steps(&steps, trace->steps, &draws);
  char *text = vm_put_lua_decisions(&steps, &draws, trace);
  free(steps.at);
  free(draws.at);
  return text;
}
