/* Index maps as the text of a Python lambda, and conditions, in one grammar.
 *
 *   map    = "lambda" [name {"," name}] ":" result
 *   result = "(" [item {"," item}] [","] ")" | "[" … "]" | expr       the whole
 *   item   = "(" expr {"," expr} [","] ")" | expr                      pairs are flattened
 *   expr   = "not" expr | factor {operator expr}                       as Python's operators bind; comparisons do not
 * chain factor = "-" factor | "~" factor | number | name | "(" expr ")" | ["T."] function "(" expr {"," expr} ")" |
 * "T.Cast(" quoted type "," expr ")" T.int64(x) outside of casts: the map's variables are of that type. A condition is
 * an expr without operators on bits, choices and casts; a truth is 1 or 0 there, and what is not 0 is true: "not x" is
 * x == 0. */
#include "index_map.h"
#include "formula.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

struct lexer {
  struct formula *f;
  const char *at, *end;
};

static void skip_space(struct lexer *l) {
  while (l->at < l->end && isspace((unsigned char)*l->at)) l->at++;
}

static bool take(struct lexer *l, const char *token) {
  skip_space(l);
  size_t length = strlen(token);
  if ((size_t)(l->end - l->at) < length || memcmp(l->at, token, length) != 0) return false;
  l->at += length;
  return true;
}

static bool expect(struct lexer *l, const char *token) {
  if (take(l, token)) return true;
  char what[40];
  snprintf(what, sizeof what, "stands where %s is expected", token);
  size_t left = (size_t)(l->end - l->at);
  return left ? formula_fail_at(l->f, l->at, left, what) : formula_fail(l->f, "it ends too soon");
}

static size_t name_length(const struct lexer *l) {
  const char *c = l->at;
  if (c < l->end && isdigit((unsigned char)*c)) return 0;
  while (c < l->end && (isalnum((unsigned char)*c) || *c == '_')) c++;
  return (size_t)(c - l->at);
}

static bool take_word(struct lexer *l, const char *word) {
  skip_space(l);
  size_t length = name_length(l);
  if (length != strlen(word) || memcmp(l->at, word, length) != 0) return false;
  l->at += length;
  return true;
}

static bool is_param(const struct formula *f, uint32_t i, const char *name, size_t length) {
  assert(i < f->param_count);
  const struct vm_value *p = &f->params[i];
  return p->count == length && !memcmp(f->trace->steps->text + p->first, name, length);
}

static bool find_name(struct formula *f, const char *name, size_t length, struct vm_value *out) {
  uint32_t variable;
  for (uint32_t i = 0; i < f->param_count; i++)
    if (is_param(f, i, name, length)) return *out = (struct vm_value){.kind = VM_PARAM, .ref = i}, true;
  if (formula_find_drawn(f, name, length, &variable) && f->trace->steps->types[variable] == VM_T_INT)
    return *out = vm_ref(variable), true;
  return formula_fail_at(f, name, length,
                         f->condition ? "is no number that is drawn" : "is neither a parameter nor drawn");
}

/* Only a map has operators on bits, and choices. */
static bool is_known(const struct lexer *l, const struct formula_operator *o) {
  return !l->f->condition || (o->kind != TIR_CALL && o->kind != TIR_SELECT);
}

static bool parse(struct lexer *l, int depth, int least, struct vm_value *out);

static bool parse_number(struct lexer *l, bool negative, struct vm_value *out) {
  int64_t value = 0;
  for (; l->at < l->end && isdigit((unsigned char)*l->at); l->at++) {
    int64_t digit = negative ? '0' - *l->at : *l->at - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
      return formula_fail(l->f, "a number is too large for 64 bits");
  }
  *out = vm_int(value);
  return formula_count_node(l->f);
}

static bool apply(struct lexer *l, uint32_t number, const struct vm_value *arguments, struct vm_value *out) {
  assert(formula_operator(number));
  return formula_count_node(l->f) && formula_apply(l->f, number, arguments, out);
}

static bool parse_cast(struct lexer *l, int depth, struct vm_value *out) {
  bool wide = l->f->wide;
  struct vm_value argument;
  if (!expect(l, "\"")) return false;
  const char *type = l->at;
  size_t length = name_length(l);
  l->at += length;
  if (!expect(l, "\"") || !expect(l, ",") || !parse(l, depth + 1, LEVEL_OR, &argument)) return false;
  l->f->wide = wide;
  return expect(l, ")") && formula_count_node(l->f) && formula_cast(l->f, type, length, argument, out);
}

/* After the name and its parenthesis: T.int64(4) is the number alone, T.max(a, b) an operator. */
static bool parse_call(struct lexer *l, int depth, const char *name, size_t length, struct vm_value *out) {
  struct vm_value arguments[3];
  const struct formula_operator *o;
  if (length == 5 && (!memcmp(name, "int32", 5) || !memcmp(name, "int64", 5))) {
    l->f->wide |= name[3] == '6';
    return parse(l, depth + 1, LEVEL_OR, out) && expect(l, ")");
  }
  if (length == 4 && !memcmp(name, "Cast", 4) && !l->f->condition) return parse_cast(l, depth, out);
  for (uint32_t n = 0; (o = formula_operator(n)) != NULL; n++) {
    if (!o->function || strlen(o->function) != length || memcmp(o->function, name, length) != 0 || !is_known(l, o))
      continue;
    for (uint32_t i = 0; i < o->arguments; i++)
      if ((i && !expect(l, ",")) || !parse(l, depth + 1, LEVEL_OR, &arguments[i])) return false;
    return expect(l, ")") && apply(l, n, arguments, out);
  }
  return formula_fail_at(l->f, name, length, "is no function that is known here");
}

/* The number of the operator of that name or kind. */
static uint32_t number_of(enum tir_kind kind, const char *function) {
  uint32_t n = 0;
  while (formula_operator(n)->kind != kind || (function && strcmp(formula_operator(n)->function, function) != 0)) n++;
  return n;
}

static bool parse_negative(struct lexer *l, int depth, bool bits, struct vm_value *out);

static bool parse_factor(struct lexer *l, int depth, struct vm_value *out) {
  if (depth > FORMULA_MOST_NODES) return formula_fail(l->f, "it is nested too deep");
  if (take(l, "-")) return parse_negative(l, depth, false, out);
  if (!l->f->condition && take(l, "~")) return parse_negative(l, depth, true, out);
  if (take(l, "(")) return parse(l, depth + 1, LEVEL_OR, out) && expect(l, ")");
  if (l->at < l->end && isdigit((unsigned char)*l->at)) return parse_number(l, false, out);
  bool prefixed = take(l, "T.");
  const char *name = l->at;
  size_t length = name_length(l);
  if (!length) return formula_fail(l->f, "expected an expression");
  l->at += length;
  if (take(l, "(")) return parse_call(l, depth, name, length, out);
  if (prefixed) return expect(l, "(");
  return find_name(l->f, name, length, out) && formula_count_node(l->f);
}

static bool parse_negative(struct lexer *l, int depth, bool bits, struct vm_value *out) {
  struct vm_value arguments[2] = {vm_int(0)};
  skip_space(l);
  if (!bits && l->at < l->end && isdigit((unsigned char)*l->at)) return parse_number(l, true, out);
  if (!parse_factor(l, depth + 1, &arguments[1])) return false;
  if (bits) return apply(l, number_of(TIR_CALL, "bitwise_not"), &arguments[1], out);
  return formula_count_node(l->f) && apply(l, number_of(TIR_SUB, NULL), arguments, out);
}

static bool parse_not(struct lexer *l, int depth, struct vm_value *out) {
  struct vm_value arguments[2] = {[1] = vm_int(0)};
  if (depth > FORMULA_MOST_NODES) return formula_fail(l->f, "it is nested too deep");
  if (!parse(l, depth + 1, LEVEL_NOT, arguments)) return false;
  if (!l->f->condition) return apply(l, number_of(TIR_NOT, NULL), arguments, out);
  return formula_count_node(l->f) && apply(l, number_of(TIR_EQ, NULL), arguments, out);
}

/* The infix operator that stands here, if it binds within the levels. */
static const struct formula_operator *take_operator(struct lexer *l, int least, int most, uint32_t *number) {
  const struct formula_operator *o;
  for (uint32_t n = 0; (o = formula_operator(n)) != NULL; n++) {
    if (!o->symbol || o->level < least || o->level > most || !is_known(l, o)) continue;
    if (!(isalpha((unsigned char)*o->symbol) ? take_word : take)(l, o->symbol)) continue;
    *number = n;
    return o;
  }
  return NULL;
}

/* What operators of the level `least` and above join, from the left. */
static bool parse(struct lexer *l, int depth, int least, struct vm_value *out) {
  struct vm_value arguments[2];
  const struct formula_operator *o;
  uint32_t number;
  int most = LEVEL_ITSELF;
  if (!(least <= LEVEL_NOT && take_word(l, "not") ? parse_not : parse_factor)(l, depth, out)) return false;
  while ((o = take_operator(l, least, most, &number)) != NULL) {
    arguments[0] = *out;
    if (!parse(l, depth + 1, o->level + 1, &arguments[1]) || !apply(l, number, arguments, out)) return false;
    if (o->level <= LEVEL_COMPARED) most = o->level == LEVEL_COMPARED ? LEVEL_NOT : o->level;
  }
  return true;
}

static bool expect_end(struct lexer *l) {
  skip_space(l);
  return l->at == l->end || formula_fail_at(l->f, l->at, (size_t)(l->end - l->at), "follows where its end is expected");
}

/* A parenthesis opens a tuple unless an operator follows where it closes. */
static bool opens_tuple(const struct lexer *l) {
  int depth = 0;
  const char *c = l->at;
  for (; c < l->end; c++) {
    depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
    if (!depth) break;
  }
  if (c < l->end) c++;
  while (c < l->end && isspace((unsigned char)*c)) c++;
  return c == l->end || *c == ',' || *c == ')' || *c == ']';
}

static bool parse_results(struct lexer *l, int level) {
  skip_space(l);
  bool tuple = level < 2 && l->at < l->end && (*l->at == '(' || *l->at == '[') && opens_tuple(l);
  if (!tuple) {
    struct vm_value v;
    return parse(l, 0, LEVEL_OR, &v) && formula_add_result(l->f, v);
  }
  const char *close = *l->at++ == '(' ? ")" : "]";
  while (!take(l, close)) {
    if (!parse_results(l, level + 1)) return false;
    if (take(l, close)) return true;
    if (!take(l, ",")) return formula_fail(l->f, "expected , or the end of the results");
  }
  return true;
}

static bool parse_lambda(struct lexer *l) {
  if (!take(l, "lambda")) return formula_fail(l->f, "it is neither a lambda nor TVM's graph of nodes");
  while (!take(l, ":")) {
    skip_space(l);
    size_t length = name_length(l);
    if (!length) return formula_fail(l->f, "expected a name");
    for (uint32_t i = 0; i < l->f->param_count; i++)
      if (is_param(l->f, i, l->at, length)) return formula_fail_at(l->f, l->at, length, "is a parameter twice");
    if (!formula_add_param(l->f, l->at, length)) return false;
    l->at += length;
    if (!take(l, ",") && l->at < l->end && *l->at != ':') return formula_fail(l->f, "expected , or :");
  }
  return parse_results(l, 0) && expect_end(l);
}

static bool parse_condition(struct lexer *l) {
  struct vm_value v;
  return parse(l, 0, LEVEL_OR, &v) && formula_add_result(l->f, v) && expect_end(l);
}

bool formula_read_text(struct formula *f, const char *text, size_t length) {
  struct lexer l = {.f = f, .at = text, .end = text + length};
  return f->condition ? parse_condition(&l) : parse_lambda(&l);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* Operators on bits are written as functions, as TVM does. */
static bool is_infix(const struct formula_operator *o) { return o->symbol && o->kind != TIR_CALL; }

static int level_of(const struct vm_value *v) {
  if (v->kind == VM_INT && v->integer < 0) return LEVEL_SUM;
  if (v->kind != VM_APPLY || v->op == TIR_CAST) return LEVEL_ITSELF;
  const struct formula_operator *o = formula_operator_of(v);
  return is_infix(o) || o->kind == TIR_NOT ? o->level : LEVEL_ITSELF;
}

struct printing {
  struct vm_text *text;
  const struct vm_steps *steps;
  const struct vm_value *map;
  bool numbered; /* parameters go by i0, i1, …: their own names cannot stand in a text */
};

static bool is_word(const char *text, size_t length, const char *word) {
  return length == strlen(word) && !memcmp(text, word, length);
}

static bool is_plain_name(const char *text, size_t length) {
  static const char *const taken[] = {"lambda", "T", "not", "and", "or"};
  if (!length || isdigit((unsigned char)*text)) return false;
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (is_word(text, length, taken[i])) return false;
  for (size_t i = 0; i < length; i++)
    if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
  return true;
}

struct clash {
  const struct vm_steps *steps;
  const struct vm_value *map;
  bool found; /* a parameter has the name of what was drawn and is used */
};

static void find_clash(void *data, uint32_t variable) {
  struct clash *c = data;
  char name[16];
  size_t length = (size_t)vm_variable_name(c->steps, variable, name);
  for (uint32_t i = 0; i < c->map->op; i++) {
    const struct vm_value *param = &c->steps->values[c->map->first + i];
    c->found = c->found || (param->count == length && !memcmp(c->steps->text + param->first, name, length));
  }
}

/* Whether the names of the parameters are not distinct. */
static bool needs_numbers(const struct vm_steps *s, const struct vm_value *map) {
  const struct vm_value *params = &s->values[map->first];
  struct clash c = {s, map, false};
  for (uint32_t i = 0; i < map->op; i++) {
    const char *name = s->text + params[i].first;
    if (!is_plain_name(name, params[i].count)) return true;
    for (uint32_t j = 0; j < i; j++)
      if (params[j].count == params[i].count && !memcmp(s->text + params[j].first, name, params[i].count)) return true;
  }
  vm_visit_variables(s, map, find_clash, &c);
  return c.found;
}

static void put_param(const struct printing *p, uint32_t i) {
  assert(i < p->map->op);
  const struct vm_value *name = &p->steps->values[p->map->first + i];
  if (p->numbered)
    vm_putf(p->text, "i%u", i);
  else
    vm_put(p->text, p->steps->text + name->first, name->count);
}

static void put_expr(const struct printing *p, const struct vm_value *v, int least);

static void put_call(const struct printing *p, const char *function, const struct vm_value *v) {
  vm_putf(p->text, "T.%s(", function);
  for (uint32_t i = 0; i < v->count; i++) {
    if (i) vm_put(p->text, ", ", 2);
    put_expr(p, &p->steps->values[v->first + i], LEVEL_OR);
  }
  vm_put(p->text, ")", 1);
}

static void put_operator(const struct printing *p, const struct vm_value *v) {
  const struct vm_value *items = &p->steps->values[v->first];
  if (v->op == TIR_CAST) {
    vm_putf(p->text, "T.Cast(\"int%u\", ", v->bare);
    put_expr(p, items, LEVEL_OR);
    vm_put(p->text, ")", 1);
    return;
  }
  const struct formula_operator *o = formula_operator_of(v);
  if (o->kind == TIR_NOT) {
    vm_put(p->text, "not ", 4);
    put_expr(p, items, LEVEL_NOT);
  } else if (is_infix(o)) {
    put_expr(p, &items[0], o->level == LEVEL_COMPARED ? LEVEL_COMPARED + 1 : o->level);
    vm_putf(p->text, " %s ", o->symbol);
    put_expr(p, &items[1], o->level + 1);
  } else {
    put_call(p, o->function, v);
  }
}

static void put_expr(const struct printing *p, const struct vm_value *v, int least) {
  char name[16];
  bool parens = level_of(v) < least;
  if (parens) vm_put(p->text, "(", 1);
  if (v->kind == VM_PARAM)
    put_param(p, v->ref);
  else if (v->kind == VM_INT)
    vm_putf(p->text, "%lld", (long long)v->integer);
  else if (v->kind == VM_REF)
    vm_put(p->text, name, (size_t)vm_variable_name(p->steps, v->ref, name));
  else
    put_operator(p, v);
  if (parens) vm_put(p->text, ")", 1);
}

void vm_put_formula(struct vm_text *text, const struct vm_steps *s, const struct vm_value *map) {
  assert(map->kind == VM_INDEX_MAP);
  struct printing p = {text, s, map, map->bare != VM_CONDITION && needs_numbers(s, map)};
  if (map->bare == VM_CONDITION) {
    put_expr(&p, &s->values[map->first], LEVEL_OR);
    return;
  }
  vm_put(text, "lambda", 6);
  for (uint32_t i = 0; i < map->op; i++) {
    vm_put(text, i ? ", " : " ", i ? 2 : 1);
    put_param(&p, i);
  }
  vm_put(text, ": (", 3);
  for (uint32_t i = map->op; i < map->count; i++) {
    bool typed = map->bare == 64 && i == map->op;
    if (typed) vm_put(text, "T.int64(", 8);
    put_expr(&p, &s->values[map->first + i], LEVEL_OR);
    if (typed) vm_put(text, ")", 1);
    vm_put(text, ", ", i + 1 < map->count ? 2 : i == map->op ? 1 : 0);
  }
  vm_put(text, ")", 1);
}
