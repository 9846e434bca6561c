/* Expressions from graphs of nodes, as they are: nothing is folded. */
#include "module_graph.h"

#include "vm/text/index_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(tir_type t) { return tir_type_is_int(t) || tir_type_is_float(t) || tir_type_code(t) == TIR_BOOL; }

/* What a node says of its type is what its parts make. */
static bool check_type(struct module_graph *g, uint32_t node, tir_expr e) {
  tir_type said, made = tir_type_of(g->ir, e);
  char a[24], b[24];
  if (!module_type(g, node, "ty", &said)) return false;
  return said == made || module_fail(g, node, "ty", "it says %s where its parts make %s", tir_type_text(said, a),
                                     tir_type_text(made, b));
}

/* ---- Constants and variables ------------------------------------------------------------------------------------- */

static bool read_int(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_type type;
  int64_t value;
  char text[24];
  if (!module_type(g, node, "ty", &type) || !module_integer(g, node, "value", &value)) return false;
  bool truth = type == TIR_T_BOOL;
  if ((!truth && !tir_type_is_int(type)) || tir_type_lanes(type) != 1)
    return module_fail(g, node, "ty", "there are no integers of type %s", tir_type_text(type, text));
  int bits = tir_type_bits(type);
  bool is_signed = tir_type_code(type) == TIR_INT;
  bool fits = bits >= 64  ? is_signed || value >= 0
              : is_signed ? value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1)
                          : value >= 0 && value < 1ll << bits;
  if (!fits)
    return module_fail(g, node, "value", "%lld does not fit in %s", (long long)value, tir_type_text(type, text));
  *out = tir_int(g->ir, type, value);
  return true;
}

static bool read_float(struct module_graph *g, uint32_t node, tir_expr *out) {
  const json_t *value = graph_field(graph_node(g->nodes, node), "value");
  tir_type type;
  double real = json_number_value(value);
  char text[24];
  if (!module_type(g, node, "ty", &type)) return false;
  if (!tir_type_is_float(type) || tir_type_lanes(type) != 1)
    return module_fail(g, node, "ty", "there are no reals of type %s", tir_type_text(type, text));
  if (!json_is_number(value) && !vm_json_is_real(value, &real)) return module_fail(g, node, "value", "it is no number");
  double most = tir_type_bits(type) == 64            ? INFINITY
                : type == TIR_TYPE(TIR_FLOAT, 16, 1) ? 65504
                : tir_type_is_byte(type)             ? (tir_type_code(type) == TIR_E4M3 ? 448 : 57344)
                                                     : 3.4028234663852886e38;
  if (isfinite(real) && fabs(real) > most)
    return module_fail(g, node, "value", "%g is too large for %s", real, tir_type_text(type, text));
  *out = tir_float(g->ir, type, real);
  return true;
}

static bool read_string(struct module_graph *g, uint32_t node, tir_expr *out) {
  const char *text;
  if (!module_text(g, node, "value", &text)) return false;
  *out = tir_string(g->ir, tir_symbol_of(g->ir, text));
  return true;
}

/* One that is not known may be declared here. A buffer's name stands for its data. */
static bool read_var(struct module_graph *g, uint32_t node, tir_expr *out) {
  struct node_binding b = g->bindings[node];
  const char *name;
  tir_type type;
  if (b.ref) return *out = b.is_buffer ? tir_data(g->ir, b.ref) : b.ref, true;
  if (!module_text(g, node, "name", &name)) return false;
  if (!g->declares) return module_fail(g, node, NULL, "the variable `%.80s` is not known here", name);
  if (!module_type(g, node, "ty", &type)) return false;
  if (!is_number(type) && type != TIR_T_HANDLE) return module_fail(g, node, "ty", "it is no type of a variable");
  tir_var v = tir_new_var(g->ir, TIR_VAR_PLAIN, tir_name_of(g->ir, name), type, TIR_NONE, TIR_NONE);
  *out = tir_var_expr(g->ir, v);
  return module_bind(g, node, false, *out);
}

/* ---- Operators --------------------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  enum tir_kind kind;
} binaries[] = {{"Add", TIR_ADD}, {"Sub", TIR_SUB}, {"Mul", TIR_MUL},
                {"Div", TIR_DIV}, {"Mod", TIR_MOD}, {"FloorDiv", TIR_FLOORDIV},
                {"Min", TIR_MIN}, {"Max", TIR_MAX}, {"FloorMod", TIR_FLOORMOD},
                {"EQ", TIR_EQ},   {"NE", TIR_NE},   {"LT", TIR_LT},
                {"LE", TIR_LE},   {"GT", TIR_GT},   {"GE", TIR_GE},
                {"And", TIR_AND}, {"Or", TIR_OR}};

static bool read_binary(struct module_graph *g, uint32_t node, enum tir_kind kind, tir_expr *out) {
  tir_expr a, b;
  if (!module_expr_of(g, node, "a", &a) || !module_expr_of(g, node, "b", &b)) return false;
  tir_type type = tir_type_of(g->ir, a);
  char x[24], y[24];
  bool same = type == tir_type_of(g->ir, b), truths = kind == TIR_AND || kind == TIR_OR;
  bool whole = kind == TIR_FLOORDIV || kind == TIR_FLOORMOD || kind == TIR_MOD;
  bool pointers = type == TIR_T_HANDLE && (kind == TIR_EQ || kind == TIR_NE);
  bool good = truths                    ? tir_type_code(type) == TIR_BOOL
              : whole                   ? tir_type_is_int(type)
              : tir_is_arithmetic(kind) ? is_number(type) && tir_type_code(type) != TIR_BOOL
                                        : is_number(type) || pointers;
  if (!same || !good)
    return module_fail(g, node, NULL, "it has no meaning between %s and %s", tir_type_text(type, x),
                       tir_type_text(tir_type_of(g->ir, b), y));
  *out = tir_binary(g->ir, kind, a, b);
  return check_type(g, node, *out);
}

static bool read_not(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_expr a;
  if (!module_expr_of(g, node, "a", &a)) return false;
  if (tir_type_code(tir_type_of(g->ir, a)) != TIR_BOOL) return module_fail(g, node, "a", "a condition is expected");
  *out = tir_unary(g->ir, TIR_NOT, tir_type_of(g->ir, a), a);
  return check_type(g, node, *out);
}

static bool read_cast(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_expr a;
  tir_type type;
  if (!module_type(g, node, "ty", &type) || !module_expr_of(g, node, "value", &a)) return false;
  tir_type from = tir_type_of(g->ir, a);
  if (!is_number(type) || !is_number(from) || tir_type_lanes(type) != tir_type_lanes(from))
    return module_fail(g, node, "ty", "the value cannot be cast to it");
  *out = tir_unary(g->ir, TIR_CAST, type, a);
  return true;
}

static bool read_select(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_expr c, a, b;
  if (!module_expr_of(g, node, "condition", &c) || !module_expr_of(g, node, "true_value", &a) ||
      !module_expr_of(g, node, "false_value", &b))
    return false;
  tir_type type = tir_type_of(g->ir, a), truth = tir_type_of(g->ir, c);
  if (tir_type_code(truth) != TIR_BOOL || type != tir_type_of(g->ir, b) || !is_number(type) ||
      (tir_type_lanes(truth) != 1 && tir_type_lanes(truth) != tir_type_lanes(type)))
    return module_fail(g, node, NULL, "its condition and values do not go together");
  *out = tir_select(g->ir, c, a, b);
  return check_type(g, node, *out);
}

static bool read_let(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_expr value, body;
  tir_var v;
  uint32_t mark = module_open(g);
  if (!module_expr_of(g, node, "value", &value)) return false;
  enum tir_var_kind kind = tir_at(g->ir, value)->flags & TIR_OF_DATA ? TIR_VAR_DATA : TIR_VAR_LET;
  if (!module_new_var(g, node, "var", kind, TIR_NONE, TIR_NONE, &v)) return false;
  if (g->ir->vars.at[v].type != tir_type_of(g->ir, value))
    return module_fail(g, node, "value", "it is not of the variable's type");
  if (!module_expr_of(g, node, "body", &body)) return false;
  module_close(g, mark);
  *out = tir_let(g->ir, v, value, body);
  return check_type(g, node, *out);
}

/* ---- Vectors ----------------------------------------------------------------------------------------------------- */

static bool read_lanes(struct module_graph *g, uint32_t node, tir_expr scalar, int *lanes) {
  tir_expr count;
  if (!module_index_of(g, node, "lanes", &count)) return false;
  int64_t value = tir_is_int(g->ir, count) ? tir_at(g->ir, count)->imm : 0;
  if (value < 2 || value > TIR_MOST_LANES) return module_fail(g, node, "lanes", "2 to %d are expected", TIR_MOST_LANES);
  *lanes = (int)value;
  tir_type type = tir_type_of(g->ir, scalar);
  return (is_number(type) && tir_type_lanes(type) == 1) ||
         module_fail(g, node, NULL, "a number of one lane is expected");
}

static bool read_ramp(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_expr base, stride;
  int lanes;
  if (!module_expr_of(g, node, "base", &base) || !module_expr_of(g, node, "stride", &stride) ||
      !read_lanes(g, node, base, &lanes))
    return false;
  if (!tir_type_is_int(tir_type_of(g->ir, base)) || tir_type_of(g->ir, base) != tir_type_of(g->ir, stride))
    return module_fail(g, node, "stride", "integers of one type are expected");
  *out = tir_ramp(g->ir, base, stride, lanes);
  return check_type(g, node, *out);
}

static bool read_broadcast(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_expr value;
  int lanes;
  if (!module_expr_of(g, node, "value", &value) || !read_lanes(g, node, value, &lanes)) return false;
  *out = tir_unary(g->ir, TIR_BROADCAST, tir_type_with_lanes(tir_type_of(g->ir, value), lanes), value);
  return check_type(g, node, *out);
}

/* ---- Elements ---------------------------------------------------------------------------------------------------- */

bool module_indices(struct module_graph *g, uint32_t node, tir_buffer buffer, tir_expr *out, int *lanes) {
  struct node_list list;
  uint32_t item, rank = tir_buffer_at(g->ir, buffer)->rank;
  int64_t all = tir_type_lanes(tir_buffer_at(g->ir, buffer)->type);
  if (!module_list(g, node, "indices", &list)) return false;
  if (list.count != rank)
    return module_fail(g, node, "indices", "the buffer has %u dimensions, %u are indexed", rank, list.count);
  assert(rank <= GRAPH_MOST_RANK); /* what `out` has room for */
  for (uint32_t i = 0; i < rank; i++) {
    if (!module_item(g, &list, i, &item) || !module_expr(g, item, &out[i])) return false;
    tir_type type = tir_type_of(g->ir, out[i]);
    all *= tir_type_lanes(type);
    if (!tir_type_is_int(type) || all > TIR_MOST_LANES)
      return module_fail(g, node, "indices", "an integer is expected, of at most %d lanes in all", TIR_MOST_LANES);
  }
  *lanes = (int)all;
  return true;
}

bool module_predicate(struct module_graph *g, uint32_t node, int lanes, tir_expr *out) {
  uint32_t at;
  *out = TIR_NONE;
  if (!module_maybe(g, node, "predicate", &at)) return false;
  if (!at) return true;
  if (!module_expr(g, at, out)) return false;
  return tir_type_of(g->ir, *out) == tir_type_with_lanes(TIR_T_BOOL, lanes) ||
         module_fail(g, node, "predicate", "a condition of each lane is expected");
}

static bool read_load(struct module_graph *g, uint32_t node, tir_expr *out) {
  tir_buffer buffer;
  tir_expr indices[GRAPH_MOST_RANK], predicate;
  int lanes;
  if (!module_buffer(g, node, "buffer", &buffer) || !module_indices(g, node, buffer, indices, &lanes) ||
      !module_predicate(g, node, lanes, &predicate))
    return false;
  *out = tir_load(g->ir, buffer, indices, tir_buffer_at(g->ir, buffer)->rank, predicate);
  return check_type(g, node, *out);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* The name that TVMScript has for what is called. */
static bool read_callee(struct module_graph *g, uint32_t node, tir_symbol *out) {
  uint32_t op;
  const char *name;
  *out = TIR_NONE;
  if (!module_ref(g, node, "op", NULL, &op)) return false;
  if (module_is(g, op, "GlobalVar")) {
    if (!module_text(g, op, "name_hint", &name)) return false;
    *out = tir_symbol_format(g->ir, "Module.%s", name);
    return true;
  }
  name = module_is(g, op, "Op") ? graph_text(graph_node(g->nodes, op)) : NULL;
  if (!name)
    return module_fail(g, node, "op", "a call of a node %.60s is not supported", graph_type(graph_node(g->nodes, op)));
  if (!strncmp(name, "tirx.", 5))
    name += 5;
  else if (!strncmp(name, "tir.", 4))
    name += 4;
  if (!strncmp(name, "tvm_call_packed", 15) || !strncmp(name, "tvm_call_cpacked", 16)) name += 4;
  bool good = *name && strlen(name) <= 100;
  for (const char *c = name; *c; c++)
    good = good &&
           ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' || (*c >= '0' && *c <= '9') || *c == '.');
  if (!good) return module_fail(g, op, NULL, "`%.60s` is no name of a function", name);
  *out = tir_symbol_of(g->ir, name);
  return true;
}

/* buffer_data(buffer) */
static bool read_pointer(struct module_graph *g, const struct node_list *args, tir_expr *out) {
  uint32_t var;
  if (args->count != 1) return module_fail(g, args->node, NULL, "one buffer is expected");
  if (!module_item(g, args, 0, &var)) return false;
  struct node_binding b = g->bindings[var];
  if (!b.ref || !b.is_buffer) return module_fail(g, var, NULL, "this buffer is not known here");
  return *out = tir_data(g->ir, b.ref), true;
}

static bool read_args(struct module_graph *g, const struct node_list *list, tir_expr *out) {
  uint32_t item;
  for (uint32_t i = 0; i < list->count; i++)
    if (!module_item(g, list, i, &item) || !module_expr(g, item, &out[i])) return false;
  return true;
}

static bool read_call(struct module_graph *g, uint32_t node, tir_expr *out) {
  struct node_list list;
  tir_symbol op;
  tir_type type;
  if (!read_callee(g, node, &op) || !module_list(g, node, "args", &list) || !module_type(g, node, "ty", &type))
    return false;
  if (list.count > GRAPH_MOST_ARGS) return module_fail(g, node, "args", "there are too many");
  if (!strcmp(tir_text(g->ir, op), "buffer_data")) return read_pointer(g, &list, out);
  tir_expr *args = malloc((list.count + 1) * sizeof *args);
  if (!args) abort();
  bool good = read_args(g, &list, args);
  /* The number is of one version of LLVM; in TVMScript it stands by its name. */
  if (good && !strncmp(tir_text(g->ir, op), "call_llvm_", 10) && list.count && tir_is_int(g->ir, args[0]))
    good = module_fail(g, node, "args", "a function of LLVM's is called by its number; TVMScript has its name");
  for (uint32_t i = 0; good && i < list.count && tir_is_arithmetic_call(tir_text(g->ir, op)); i++)
    if (tir_type_code(tir_type_of(g->ir, args[i])) == TIR_BOOL)
      good = module_fail(g, node, "args", "conditions (bool) have no arithmetic");
  if (good) *out = tir_call(g->ir, type, op, args, list.count);
  free(args);
  return good;
}

/* ---- Entry points ------------------------------------------------------------------------------------------------ */

static bool read_one(struct module_graph *g, uint32_t node, tir_expr *out) {
  static const struct {
    const char *name;
    bool (*read)(struct module_graph *, uint32_t, tir_expr *);
  } others[] = {{"Var", read_var},          {"IntImm", read_int},      {"FloatImm", read_float},
                {"StringImm", read_string}, {"BufferLoad", read_load}, {"Cast", read_cast},
                {"Select", read_select},    {"Call", read_call},       {"Not", read_not},
                {"Let", read_let},          {"Ramp", read_ramp},       {"Broadcast", read_broadcast}};
  const char *type = graph_type(graph_node(g->nodes, node));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(others[i].name, type)) return others[i].read(g, node, out);
  for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
    if (!strcmp(binaries[i].name, type)) return read_binary(g, node, binaries[i].kind, out);
  return module_fail(g, node, NULL, "this kind of node is no expression that is supported");
}

bool module_expr(struct module_graph *g, uint32_t node, tir_expr *out) {
  if (!module_visit(g, node)) return false;
  if (++g->expr_depth > GRAPH_MOST_EXPR_DEPTH)
    return module_fail(g, node, NULL, "this expression is nested more than %d levels deep", GRAPH_MOST_EXPR_DEPTH);
  bool good = read_one(g, node, out);
  g->expr_depth--;
  return good;
}

bool module_expr_of(struct module_graph *g, uint32_t node, const char *field, tir_expr *out) {
  uint32_t at;
  return module_ref(g, node, field, NULL, &at) && module_expr(g, at, out);
}

bool module_truth_of(struct module_graph *g, uint32_t node, const char *field, tir_expr *out) {
  if (!module_expr_of(g, node, field, out)) return false;
  return tir_type_of(g->ir, *out) == TIR_T_BOOL || module_fail(g, node, field, "a condition is expected");
}

bool module_index_of(struct module_graph *g, uint32_t node, const char *field, tir_expr *out) {
  if (!module_expr_of(g, node, field, out)) return false;
  tir_type type = tir_type_of(g->ir, *out);
  return (tir_type_is_int(type) && tir_type_lanes(type) == 1) || module_fail(g, node, field, "an integer is expected");
}

/* ---- Values of annotations --------------------------------------------------------------------------------------- */

static bool read_items(struct module_graph *g, uint32_t node, bool map, tir_expr *out) {
  const json_t *items = json_object_get(graph_node(g->nodes, node), "data");
  struct node_list list = {node, (uint32_t)json_array_size(items), items};
  if (!json_is_array(items) || list.count > GRAPH_MOST_ARGS || (map && list.count % 2))
    return module_fail(g, node, NULL, "it holds no list of at most %d", GRAPH_MOST_ARGS);
  tir_expr *values = malloc((list.count + 1) * sizeof *values);
  if (!values) abort();
  uint32_t item;
  bool good = true;
  for (uint32_t i = 0; good && i < list.count; i++) {
    good = module_item(g, &list, i, &item) && module_value(g, item, &values[i]);
    if (good && map && i % 2 == 0 && tir_at(g->ir, values[i])->kind != TIR_STRING_IMM)
      good = module_fail(g, node, NULL, "a key is no text");
  }
  if (good) *out = map ? tir_map_value(g->ir, values, list.count) : tir_list_value(g->ir, values, list.count);
  free(values);
  return good;
}

/* Numbers that TVM keeps without a type. */
static bool read_plain(struct module_graph *g, uint32_t node, tir_expr *out) {
  const json_t *data = json_object_get(graph_node(g->nodes, node), "data");
  if (json_is_boolean(data)) {
    *out = tir_int(g->ir, TIR_T_BOOL, json_is_true(data));
  } else if (json_is_integer(data)) {
    json_int_t value = json_integer_value(data);
    *out = tir_int(g->ir, value == (int32_t)value ? TIR_T_I32 : TIR_T_I64, value);
  } else if (json_is_real(data)) {
    *out = tir_float(g->ir, TIR_T_F32, json_real_value(data));
  } else if (json_is_string(data) && strlen(json_string_value(data)) == json_string_length(data)) {
    *out = tir_string(g->ir, tir_symbol_of(g->ir, json_string_value(data)));
  } else {
    return module_fail(g, node, NULL, "it holds no value");
  }
  return true;
}

static bool read_value(struct module_graph *g, uint32_t node, tir_expr *out) {
  static const char *const plain[] = {"String", "int", "float", "bool"};
  if (module_is(g, node, "None")) return *out = tir_none(g->ir), true;
  if (module_is(g, node, "Array") || module_is(g, node, "Map"))
    return read_items(g, node, module_is(g, node, "Map"), out);
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (module_is(g, node, plain[i])) return read_plain(g, node, out);
  return module_expr(g, node, out);
}

bool module_value(struct module_graph *g, uint32_t node, tir_expr *out) {
  if (!module_visit(g, node)) return false;
  if (++g->expr_depth > GRAPH_MOST_EXPR_DEPTH)
    return module_fail(g, node, NULL, "this value is nested more than %d levels deep", GRAPH_MOST_EXPR_DEPTH);
  bool good = read_value(g, node, out);
  g->expr_depth--;
  return good;
}

bool module_annotations(struct module_graph *g, uint32_t node, const char *field, struct tir_span *out) {
  struct node_list map;
  *out = (struct tir_span){0, 0};
  if (!module_map(g, node, field, &map)) return false;
  for (uint32_t i = 0; i < map.count; i += 2) {
    uint32_t key, value;
    const char *text;
    tir_expr e;
    if (!module_item(g, &map, i, &key) || !module_item(g, &map, i + 1, &value)) return false;
    if (!module_is(g, key, "String")) return module_fail(g, map.node, NULL, "key %u is no text", i / 2);
    if (!module_text_at(g, key, &text) || !module_value(g, value, &e)) return false;
    tir_annotate_span(g->ir, out, tir_symbol_of(g->ir, text), e);
  }
  return true;
}
