/* Index maps: parameters and results. Read from the text of a Python lambda and from TVM's node graph (today's and the
 * one before, whose fields are strings), written as both. Conditions over drawn numbers: text alone, in the same
 * grammar and more.
 *
 *   map     = "lambda" [name {"," name}] ":" result
 *   result  = "(" [item {"," item}] [","] ")" | "[" … "]" | sum       the whole
 *   item    = "(" sum {"," sum} [","] ")" | sum                        pairs are flattened
 *   sum     = product {("+" | "-") product}
 *   product = factor {("*" | "//" | "%") factor}
 *   factor  = "-" factor | number | name | "(" sum ")" | ["T."] function "(" sum ["," sum] ")"
 * T.int64(x) anywhere: the map's variables are of that type.
 *
 *   condition  = conjunct {"or" conjunct}                             as any sum in parentheses may be, here
 *   conjunct   = negation {"and" negation}
 *   negation   = "not" negation | sum [("<" | "<=" | ">" | ">=" | "==" | "!=" | "~=") sum]
 * A truth is 1 or 0, and what is not 0 is true: "not x" is x == 0. */
#include "index_map.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1024 }; /* of one map; what is no deeper either */

static const struct {
  enum tir_kind kind;
  const char *symbol; /* infix, or NULL */
  const char *function, *node;
} operators[] = {
    {TIR_ADD, "+", "", "Add"},
    {TIR_SUB, "-", "", "Sub"},
    {TIR_MUL, "*", "", "Mul"},
    {TIR_FLOORDIV, "//", "floordiv", "FloorDiv"},
    {TIR_FLOORMOD, "%", "floormod", "FloorMod"},
    {TIR_DIV, NULL, "truncdiv", "Div"},
    {TIR_MOD, NULL, "truncmod", "Mod"},
    {TIR_MIN, NULL, "min", "Min"},
    {TIR_MAX, NULL, "max", "Max"},
    {TIR_LE, "<=", "", "LE"}, /* a sign that begins another stands after it */
    {TIR_LT, "<", "", "LT"},
    {TIR_GE, ">=", "", "GE"},
    {TIR_GT, ">", "", "GT"},
    {TIR_EQ, "==", "", "EQ"},
    {TIR_NE, "!=", "", "NE"},
    {TIR_AND, "and", "", "And"},
    {TIR_OR, "or", "", "Or"},
};
enum { OPERATORS = sizeof operators / sizeof operators[0], COMPARISONS = 9, LOGIC = 15 };

struct builder {
  struct vm_trace *trace;
  const struct vm_names *names; /* of what was drawn; or NULL */
  struct vm_value params[VM_MOST_MAP], results[VM_MOST_MAP];
  uint32_t param_count, result_count, nodes;
  bool wide, condition;
  ms_error *err;
};

static bool fail(struct builder *b, const char *what) {
  return ms_fail(b->err, MS_BAD_FORMULA, "%s: %s", b->condition ? "a condition" : "an index map", what);
}

static bool fail_at(struct builder *b, const char *name, size_t length, const char *what) {
  int shown = length < 40 ? (int)length : 40;
  return ms_fail(b->err, MS_BAD_FORMULA, "%s: `%.*s` %s", b->condition ? "a condition" : "an index map", shown, name,
                 what);
}

static bool count_node(struct builder *b) { return ++b->nodes <= MOST_NODES || fail(b, "it is too large"); }

static struct vm_value apply(struct builder *b, enum tir_kind kind, struct vm_value left, struct vm_value right) {
  struct vm_value items[2] = {left, right};
  struct vm_value v = vm_list(b->trace, VM_APPLY, items, 2);
  v.op = (uint16_t)kind;
  return v;
}

/* Without names of the text's own, variables go by the names that we write. */
static bool find_drawn(struct builder *b, const char *name, size_t length, uint32_t *variable) {
  if (b->names) return vm_name_find(b->names, name, length, variable);
  char usual[16];
  const struct vm_steps *s = b->trace->steps;
  if (length < 2 || length >= sizeof usual) return false;
  memcpy(usual, name + 1, length - 1);
  usual[length - 1] = 0;
  unsigned long number = strtoul(usual, NULL, 10);
  if (number >= s->variables) return false;
  *variable = (uint32_t)number;
  return vm_variable_name(s, *variable, usual) == (int)length && !memcmp(usual, name, length);
}

static bool find_name(struct builder *b, const char *name, size_t length, struct vm_value *out) {
  uint32_t variable;
  for (uint32_t i = 0; i < b->param_count; i++) {
    const struct vm_value *p = &b->params[i];
    if (p->count != length || memcmp(b->trace->steps->text + p->first, name, length) != 0) continue;
    *out = (struct vm_value){.kind = VM_PARAM, .ref = i};
    return true;
  }
  if (find_drawn(b, name, length, &variable) && b->trace->steps->types[variable] == VM_T_INT)
    return *out = vm_ref(variable), true;
  return fail_at(b, name, length, b->condition ? "is no number that is drawn" : "is neither a parameter nor drawn");
}

static bool add_param(struct builder *b, const char *name, size_t length) {
  if (b->param_count == VM_MOST_MAP) return fail(b, "it has too many parameters");
  b->params[b->param_count++] = vm_string(b->trace, name, length);
  return true;
}

static bool add_result(struct builder *b, struct vm_value v) {
  if (b->result_count == VM_MOST_MAP) return fail(b, "it has too many results");
  b->results[b->result_count++] = v;
  return true;
}

static void finish(struct builder *b, struct vm_value *out) {
  struct vm_value items[2 * VM_MOST_MAP];
  memcpy(items, b->params, b->param_count * sizeof *items);
  memcpy(items + b->param_count, b->results, b->result_count * sizeof *items);
  *out = vm_list(b->trace, VM_INDEX_MAP, items, b->param_count + b->result_count);
  out->op = (uint16_t)b->param_count;
  out->bare = b->condition ? VM_CONDITION : b->wide && b->param_count && b->result_count ? 64 : 32;
}

/* ---- The text of a lambda ---------------------------------------------------------------------------------------- */

struct lexer {
  struct builder *b;
  const char *at, *end;
  bool condition;
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

static size_t name_length(const struct lexer *l) {
  const char *c = l->at;
  if (c < l->end && isdigit((unsigned char)*c)) return 0;
  while (c < l->end && (isalnum((unsigned char)*c) || *c == '_')) c++;
  return (size_t)(c - l->at);
}

static bool parse_sum(struct lexer *l, int depth, struct vm_value *out);
static bool parse_condition(struct lexer *l, int depth, struct vm_value *out);

static bool parse_number(struct lexer *l, bool negative, struct vm_value *out) {
  int64_t value = 0;
  for (; l->at < l->end && isdigit((unsigned char)*l->at); l->at++) {
    int64_t digit = negative ? '0' - *l->at : *l->at - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
      return fail(l->b, "a number is too large");
  }
  *out = vm_int(value);
  return count_node(l->b);
}

/* After the name: T.int64(4) is the number alone, T.max(a, b) an operator. */
static bool parse_call(struct lexer *l, int depth, const char *name, size_t length, struct vm_value *out) {
  struct vm_value left, right;
  if (!parse_sum(l, depth + 1, &left)) return false;
  if (length == 5 && (!memcmp(name, "int32", 5) || !memcmp(name, "int64", 5))) {
    *out = left;
    l->b->wide |= name[3] == '6';
    return take(l, ")") || fail(l->b, "expected )");
  }
  for (int i = 0; i < COMPARISONS; i++) {
    if (strlen(operators[i].function) != length || memcmp(operators[i].function, name, length) != 0) continue;
    if (!take(l, ",") || !parse_sum(l, depth + 1, &right) || !take(l, ")"))
      return fail(l->b, "a call takes two arguments");
    *out = apply(l->b, operators[i].kind, left, right);
    return count_node(l->b);
  }
  return fail_at(l->b, name, length, "is no function that is known here");
}

static bool parse_factor(struct lexer *l, int depth, struct vm_value *out) {
  if (depth > MOST_NODES) return fail(l->b, "it is nested too deep");
  if (take(l, "-")) {
    struct vm_value v;
    skip_space(l);
    if (l->at < l->end && isdigit((unsigned char)*l->at)) return parse_number(l, true, out);
    if (!parse_factor(l, depth + 1, &v) || !count_node(l->b) || !count_node(l->b)) return false;
    *out = apply(l->b, TIR_SUB, vm_int(0), v);
    return true;
  }
  if (take(l, "("))
    return (l->condition ? parse_condition : parse_sum)(l, depth + 1, out) &&
           (take(l, ")") || fail(l->b, "expected )"));
  if (l->at < l->end && isdigit((unsigned char)*l->at)) return parse_number(l, false, out);
  bool prefixed = take(l, "T.");
  const char *name = l->at;
  size_t length = name_length(l);
  if (!length) return fail(l->b, "expected an expression");
  l->at += length;
  if (take(l, "(")) return parse_call(l, depth, name, length, out);
  if (prefixed) return fail(l->b, "expected (");
  return find_name(l->b, name, length, out) && count_node(l->b);
}

/* Operands with operators of one level between them, from the left. `take_operator` gives TIR_BAD_EXPR where none is.
 */
static bool parse_level(struct lexer *l, int depth, bool (*parse_operand)(struct lexer *, int, struct vm_value *),
                        enum tir_kind (*take_operator)(struct lexer *), struct vm_value *out) {
  enum tir_kind kind;
  struct vm_value right;
  if (!parse_operand(l, depth, out)) return false;
  while ((kind = take_operator(l)) != TIR_BAD_EXPR) {
    if (!parse_operand(l, depth, &right) || !count_node(l->b)) return false;
    *out = apply(l->b, kind, *out, right);
  }
  return true;
}

static enum tir_kind take_factor_operator(struct lexer *l) {
  return take(l, "//") ? TIR_FLOORDIV : take(l, "*") ? TIR_MUL : take(l, "%") ? TIR_FLOORMOD : TIR_BAD_EXPR;
}
static enum tir_kind take_term_operator(struct lexer *l) {
  return take(l, "+") ? TIR_ADD : take(l, "-") ? TIR_SUB : TIR_BAD_EXPR;
}

static bool parse_product(struct lexer *l, int depth, struct vm_value *out) {
  return parse_level(l, depth, parse_factor, take_factor_operator, out);
}

static bool parse_sum(struct lexer *l, int depth, struct vm_value *out) {
  return parse_level(l, depth, parse_product, take_term_operator, out);
}

static bool take_word(struct lexer *l, const char *word) {
  skip_space(l);
  size_t length = name_length(l);
  if (length != strlen(word) || memcmp(l->at, word, length) != 0) return false;
  l->at += length;
  return true;
}

static bool parse_negation(struct lexer *l, int depth, struct vm_value *out) {
  struct vm_value right;
  if (depth > MOST_NODES) return fail(l->b, "it is nested too deep");
  if (take_word(l, "not")) {
    if (!parse_negation(l, depth + 1, &right) || !count_node(l->b)) return false;
    *out = apply(l->b, TIR_EQ, right, vm_int(0));
    return count_node(l->b);
  }
  if (!parse_sum(l, depth, out)) return false;
  for (int i = COMPARISONS; i < LOGIC; i++) {
    if (!take(l, operators[i].symbol) && !(operators[i].kind == TIR_NE && take(l, "~="))) continue;
    if (!parse_sum(l, depth, &right)) return false;
    *out = apply(l->b, operators[i].kind, *out, right);
    return count_node(l->b);
  }
  return true;
}

static enum tir_kind take_and(struct lexer *l) { return take_word(l, "and") ? TIR_AND : TIR_BAD_EXPR; }
static enum tir_kind take_or(struct lexer *l) { return take_word(l, "or") ? TIR_OR : TIR_BAD_EXPR; }

static bool parse_conjunct(struct lexer *l, int depth, struct vm_value *out) {
  return parse_level(l, depth, parse_negation, take_and, out);
}

static bool parse_condition(struct lexer *l, int depth, struct vm_value *out) {
  return parse_level(l, depth, parse_conjunct, take_or, out);
}

static bool parse_whole_condition(struct lexer *l) {
  struct vm_value v;
  l->condition = true;
  if (!parse_condition(l, 0, &v) || !add_result(l->b, v)) return false;
  skip_space(l);
  return l->at == l->end || fail(l->b, "expected its end");
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
    return parse_sum(l, 0, &v) && add_result(l->b, v);
  }
  const char *close = *l->at++ == '(' ? ")" : "]";
  while (!take(l, close)) {
    if (!parse_results(l, level + 1)) return false;
    if (!take(l, ",") && !take(l, close))
      return fail(l->b, "expected , or the end of the results");
    else if (l->at[-1] == *close)
      return true;
  }
  return true;
}

static bool parse_lambda(struct lexer *l) {
  if (!take(l, "lambda")) return fail(l->b, "expected lambda");
  while (!take(l, ":")) {
    skip_space(l);
    size_t length = name_length(l);
    if (!length || !add_param(l->b, l->at, length)) return length || fail(l->b, "expected a name");
    l->at += length;
    if (!take(l, ",") && l->at < l->end && *l->at != ':') return fail(l->b, "expected , or :");
  }
  if (!parse_results(l, 0)) return false;
  skip_space(l);
  return l->at == l->end || fail(l->b, "expected its end");
}

/* ---- TVM's node graph -------------------------------------------------------------------------------------------- */

struct graph {
  struct builder *b;
  json_t *nodes;
  json_int_t params[VM_MOST_MAP]; /* node numbers of the parameters */
};

static json_t *node_at(const struct graph *g, json_int_t i) {
  return i >= 0 && (size_t)i < json_array_size(g->nodes) ? json_array_get(g->nodes, (size_t)i) : NULL;
}

/* The type's name without what stands before its last point. */
static const char *type_of(json_t *node) {
  const char *type = json_string_value(json_object_get(node, "type"));
  if (!type) type = json_string_value(json_object_get(node, "type_key"));
  if (!type) return "";
  const char *point = strrchr(type, '.');
  return point ? point + 1 : type;
}

static json_t *field(json_t *node, const char *name) {
  json_t *fields = json_object_get(node, "data");
  if (!json_is_object(fields)) fields = json_object_get(node, "attrs");
  return json_object_get(fields, name);
}

static json_int_t number_field(json_t *node, const char *name) {
  json_t *f = field(node, name);
  return json_is_string(f) ? atoll(json_string_value(f)) : json_is_integer(f) ? json_integer_value(f) : -1;
}

static json_t *items_of(const struct graph *g, json_t *node, const char *name) {
  json_t *list = node_at(g, number_field(node, name));
  return list && !strcmp(type_of(list), "Array") ? json_object_get(list, "data") : NULL;
}

static const char *name_of(const struct graph *g, json_t *var) {
  json_t *f = field(var, "name_hint");
  if (json_is_string(f) && !node_at(g, number_field(var, "name"))) return json_string_value(f);
  json_t *text = node_at(g, number_field(var, "name"));
  const char *name = json_string_value(json_object_get(text, "data"));
  return name ? name : json_string_value(json_object_get(text, "repr_str"));
}

static bool is_wide(const struct graph *g, json_t *node) {
  const char *type = json_string_value(field(node, "dtype"));
  if (!type) type = json_string_value(field(node_at(g, number_field(node, "ty")), "dtype"));
  return type && !strcmp(type, "int64");
}

static bool read_node(struct graph *g, json_int_t i, struct vm_value *out);

static bool read_binary(struct graph *g, json_t *node, struct vm_value *out) {
  const char *type = type_of(node);
  for (int i = 0; i < COMPARISONS; i++) {
    if (strcmp(operators[i].node, type) != 0) continue;
    struct vm_value left, right;
    if (!read_node(g, number_field(node, "a"), &left) || !read_node(g, number_field(node, "b"), &right)) return false;
    *out = apply(g->b, operators[i].kind, left, right);
    return true;
  }
  return fail(g->b, "a node of a kind that has no place in it");
}

static bool read_node(struct graph *g, json_int_t i, struct vm_value *out) {
  json_t *node = node_at(g, i);
  if (!node || !count_node(g->b)) return fail(g->b, "its nodes are not a tree");
  for (uint32_t p = 0; p < g->b->param_count; p++)
    if (g->params[p] == i) return *out = (struct vm_value){.kind = VM_PARAM, .ref = p}, true;
  if (!strcmp(type_of(node), "IntImm"))
    return field(node, "value") ? (*out = vm_int(number_field(node, "value")), true)
                                : fail(g->b, "a number is missing");
  if (!strcmp(type_of(node), "Var")) {
    const char *name = name_of(g, node);
    uint32_t variable;
    if (!name || !find_drawn(g->b, name, strlen(name), &variable))
      return fail(g->b, "a variable is neither a parameter nor drawn");
    return *out = vm_ref(variable), true;
  }
  return read_binary(g, node, out);
}

static bool read_graph(struct graph *g, json_t *root) {
  g->nodes = json_object_get(root, "nodes");
  json_t *start = json_object_get(root, "root_index");
  if (!start) start = json_object_get(root, "root");
  json_t *map = node_at(g, json_is_integer(start) ? json_integer_value(start) : -1);
  if (!map || strcmp(type_of(map), "IndexMap") != 0) return fail(g->b, "its root is no IndexMap");
  json_t *params = items_of(g, map, "initial_indices"), *results = items_of(g, map, "final_indices"), *item;
  size_t i;
  json_array_foreach(params, i, item) {
    json_t *var = node_at(g, json_integer_value(item));
    const char *name = var ? name_of(g, var) : NULL;
    if (!name) return fail(g->b, "a parameter has no name");
    if (!add_param(g->b, name, strlen(name))) return false;
    g->params[i] = json_integer_value(item);
    g->b->wide = is_wide(g, var);
  }
  json_array_foreach(results, i, item) {
    struct vm_value v;
    if (!read_node(g, json_integer_value(item), &v) || !add_result(g->b, v)) return false;
  }
  return true;
}

bool vm_read_formula(struct vm_trace *trace, const struct vm_names *names, enum vm_type type, const char *text,
                     size_t length, struct vm_value *out, ms_error *err) {
  struct builder *b = calloc(1, sizeof *b);
  char *copy = malloc(length + 1); /* the text may stand in the trace, which grows */
  if (!b || !copy) abort();
  memcpy(copy, text, length);
  *b = (struct builder){.trace = trace, .names = names, .condition = type == VM_T_CONDITION, .err = err};
  struct lexer l = {.b = b, .at = copy, .end = copy + length};
  bool done = false;
  if (b->condition) {
    done = parse_whole_condition(&l);
  } else if (length && *copy == '{') {
    json_t *root = json_loadb(copy, length, 0, NULL);
    struct graph g = {.b = b};
    done = root ? read_graph(&g, root) : fail(b, "it is no JSON");
    json_decref(root);
  } else {
    done = parse_lambda(&l);
  }
  if (done) finish(b, out);
  free(copy);
  free(b);
  return done;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static int operator_of(const struct vm_value *v) {
  for (int i = 0; i < OPERATORS; i++)
    if (operators[i].kind == v->op) return i;
  return 0;
}

enum { BY_ITSELF = 6, COMPARED = 3 }; /* of what binds as a whole; of comparisons, which do not chain */

static int precedence(const struct vm_value *v) {
  if (v->kind == VM_INT && v->integer < 0) return 4;
  if (v->kind != VM_APPLY || !operators[operator_of(v)].symbol) return BY_ITSELF;
  switch (v->op) {
  case TIR_OR: return 1;
  case TIR_AND: return 2;
  case TIR_ADD:
  case TIR_SUB: return 4;
  case TIR_MUL:
  case TIR_FLOORDIV:
  case TIR_FLOORMOD: return 5;
  default: return COMPARED;
  }
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
  if (!length || isdigit((unsigned char)*text) || is_word(text, length, "lambda") || is_word(text, length, "T"))
    return false;
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

/* Whether a text cannot tell the parameters by their names. */
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
  const struct vm_value *name = &p->steps->values[p->map->first + i];
  if (p->numbered)
    vm_putf(p->text, "i%u", i);
  else
    vm_put(p->text, p->steps->text + name->first, name->count);
}

static void put_expr(const struct printing *p, const struct vm_value *v, int least);

static void put_operator(const struct printing *p, const struct vm_value *v) {
  int op = operator_of(v), binds = precedence(v);
  const struct vm_value *items = &p->steps->values[v->first];
  bool call = binds == BY_ITSELF;
  if (call) vm_putf(p->text, "T.%s(", operators[op].function);
  put_expr(p, &items[0], call ? COMPARED + 1 : binds == COMPARED ? binds + 1 : binds);
  if (call)
    vm_put(p->text, ", ", 2);
  else
    vm_putf(p->text, " %s ", operators[op].symbol);
  put_expr(p, &items[1], call ? COMPARED + 1 : binds + 1);
  if (call) vm_put(p->text, ")", 1);
}

static void put_expr(const struct printing *p, const struct vm_value *v, int least) {
  char name[16];
  bool parens = precedence(v) < least;
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
  struct printing p = {text, s, map, map->bare != VM_CONDITION && needs_numbers(s, map)};
  if (map->bare == VM_CONDITION) {
    put_expr(&p, &s->values[map->first], 0);
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
    put_expr(&p, &s->values[map->first + i], typed ? COMPARED + 1 : 0);
    if (typed) vm_put(text, ")", 1);
    vm_put(text, ", ", i + 1 < map->count ? 2 : i == map->op ? 1 : 0);
  }
  vm_put(text, ")", 1);
}

enum { NODE_NONE = 0, NODE_TYPE = 1 };

json_int_t vm_put_graph_node(json_t *nodes, const char *type, json_t *data) {
  json_array_append_new(nodes, json_pack("{s:s, s:o}", "type", type, "data", data));
  return (json_int_t)json_array_size(nodes) - 1;
}

void vm_put_graph_start(json_t *nodes, const char *type) {
  json_array_append_new(nodes, json_pack("{s:s}", "type", "None"));
  vm_put_graph_node(nodes, "ir.PrimType", json_pack("{s:i, s:s}", "span", NODE_NONE, "dtype", type));
}

json_int_t vm_put_graph_var(json_t *nodes, const char *name, size_t length) {
  json_int_t text = vm_put_graph_node(nodes, "ffi.String", json_stringn(name, length));
  return vm_put_graph_node(nodes, "ir.Var",
                           json_pack("{s:i, s:i, s:I}", "span", NODE_NONE, "ty", NODE_TYPE, "name", text));
}

char *vm_end_graph(json_t *nodes, json_t *params, json_t *results) {
  json_int_t initial = vm_put_graph_node(nodes, "ffi.Array", params);
  json_int_t final = vm_put_graph_node(nodes, "ffi.Array", results);
  json_int_t root = vm_put_graph_node(
      nodes, "tirx.IndexMap",
      json_pack("{s:I, s:I, s:i}", "initial_indices", initial, "final_indices", final, "inverse_index_map", NODE_NONE));
  json_t *graph =
      json_pack("{s:I, s:o, s:{s:s}}", "root_index", root, "nodes", nodes, "metadata", "tvm_version", "0.26.0");
  char *text = json_dumps(graph, JSON_COMPACT);
  json_decref(graph);
  return text;
}

static json_int_t put_expr_node(json_t *nodes, const struct vm_steps *s, const struct vm_value *v,
                                const json_int_t *params) {
  char name[40];
  if (v->kind == VM_PARAM) return params[v->ref];
  if (v->kind == VM_REF) return vm_put_graph_var(nodes, name, (size_t)vm_variable_name(s, v->ref, name));
  if (v->kind == VM_INT)
    return vm_put_graph_node(
        nodes, "ir.IntImm",
        json_pack("{s:i, s:i, s:I}", "span", NODE_NONE, "ty", NODE_TYPE, "value", (json_int_t)v->integer));
  json_int_t a = put_expr_node(nodes, s, &s->values[v->first], params);
  json_int_t b = put_expr_node(nodes, s, &s->values[v->first + 1], params);
  snprintf(name, sizeof name, "tirx.%s", operators[operator_of(v)].node);
  return vm_put_graph_node(nodes, name,
                           json_pack("{s:i, s:i, s:I, s:I}", "span", NODE_NONE, "ty", NODE_TYPE, "a", a, "b", b));
}

char *vm_write_index_graph(const struct vm_steps *s, const struct vm_value *map) {
  json_t *nodes = json_array(), *params = json_array(), *results = json_array();
  json_int_t numbers[VM_MOST_MAP];
  vm_put_graph_start(nodes, map->bare == 64 ? "int64" : "int32");
  for (uint32_t i = 0; i < map->op; i++) {
    const struct vm_value *p = &s->values[map->first + i];
    numbers[i] = vm_put_graph_var(nodes, s->text + p->first, p->count);
    json_array_append_new(params, json_integer(numbers[i]));
  }
  for (uint32_t i = map->op; i < map->count; i++)
    json_array_append_new(results, json_integer(put_expr_node(nodes, s, &s->values[map->first + i], numbers)));
  return vm_end_graph(nodes, params, results);
}
