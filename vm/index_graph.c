/* Index maps as TVM's graphs of nodes: JSON, today's and the one before, whose fields are strings. */
#include "formula.h"
#include "index_map.h"

#include <stdlib.h>
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

struct graph {
  struct formula *f;
  json_t *nodes;
  json_int_t params[FORMULA_MOST_ITEMS]; /* node numbers of the parameters */
};

static json_t *node_at(const struct graph *g, json_int_t i) {
  return i >= 0 && (size_t)i < json_array_size(g->nodes) ? json_array_get(g->nodes, (size_t)i) : NULL;
}

static const char *after_point(const char *name) {
  const char *point = name ? strrchr(name, '.') : NULL;
  return point ? point + 1 : name ? name : "";
}

/* The type's name without what stands before its last point. */
static const char *type_of(json_t *node) {
  const char *type = json_string_value(json_object_get(node, "type"));
  return after_point(type ? type : json_string_value(json_object_get(node, "type_key")));
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

/* Of a node that is a text, or an operator. */
static const char *text_of(json_t *node) {
  const char *text = json_string_value(json_object_get(node, "data"));
  return text ? text : json_string_value(json_object_get(node, "repr_str"));
}

static const char *name_of(const struct graph *g, json_t *var) {
  json_t *f = field(var, "name_hint");
  if (json_is_string(f) && !node_at(g, number_field(var, "name"))) return json_string_value(f);
  return text_of(node_at(g, number_field(var, "name")));
}

/* "int32": what a node's value is of; "": it does not say. */
static const char *value_type(const struct graph *g, json_t *node) {
  const char *type = json_string_value(field(node, "dtype"));
  if (!type) type = json_string_value(field(node_at(g, number_field(node, "ty")), "dtype"));
  return type ? type : "";
}

static bool read_node(struct graph *g, json_int_t i, struct vm_value *out);

static bool read_int(struct graph *g, json_t *node, struct vm_value *out) {
  json_t *value = field(node, "value");
  char *end = NULL;
  if (json_is_boolean(value)) return *out = vm_int(json_is_true(value)), true;
  if (json_is_string(value)) strtoll(json_string_value(value), &end, 10);
  if (!json_is_integer(value) && (!end || *end || !*json_string_value(value)))
    return formula_fail(g->f, "the value of a node IntImm is no integer");
  *out = vm_int(number_field(node, "value"));
  return true;
}

static bool read_var(struct graph *g, json_t *node, struct vm_value *out) {
  const char *name = name_of(g, node);
  uint32_t variable;
  if (!name) return formula_fail(g->f, "a variable has no name");
  if (!formula_find_drawn(g->f, name, strlen(name), &variable) || g->f->trace->steps->types[variable] != VM_T_INT)
    return formula_fail_at(g->f, name, strlen(name), "is neither a parameter nor drawn");
  *out = vm_ref(variable);
  return true;
}

static bool read_cast(struct graph *g, json_t *node, struct vm_value *out) {
  struct vm_value argument;
  const char *type = value_type(g, node);
  return read_node(g, number_field(node, "value"), &argument) && formula_cast(g->f, type, strlen(type), argument, out);
}

/* The nodes of an operator's arguments. */
static bool find_arguments(const struct graph *g, json_t *node, const struct formula_operator *o, json_int_t *at) {
  static const char *const few[] = {"a", "b"}, *const choice[] = {"condition", "true_value", "false_value"};
  json_t *arguments = o->node ? NULL : items_of(g, node, "args");
  if (!o->node && json_array_size(arguments) != o->arguments) return false;
  for (uint32_t i = 0; i < o->arguments; i++)
    at[i] = o->node ? number_field(node, o->arguments == 3 ? choice[i] : few[i])
                    : json_integer_value(json_array_get(arguments, i));
  return true;
}

static bool read_operator(struct graph *g, json_t *node, struct vm_value *out) {
  bool call = !strcmp(type_of(node), "Call");
  const char *name = call ? after_point(text_of(node_at(g, number_field(node, "op")))) : type_of(node);
  struct vm_value arguments[3];
  json_int_t at[3];
  const struct formula_operator *o;
  for (uint32_t n = 0; (o = formula_operator(n)) != NULL; n++) {
    if (call == (o->node != NULL) || strcmp(call ? o->function : o->node, name) != 0) continue;
    if (!find_arguments(g, node, o, at)) return formula_fail_at(g->f, name, strlen(name), "has other arguments");
    for (uint32_t i = 0; i < o->arguments; i++)
      if (!read_node(g, at[i], &arguments[i])) return false;
    return formula_apply(g->f, n, arguments, out);
  }
  return formula_fail_at(g->f, name, strlen(name),
                         call ? "is no function that is known here" : "is the kind of a node that has no place in it");
}

static bool read_node(struct graph *g, json_int_t i, struct vm_value *out) {
  json_t *node = node_at(g, i);
  if (!node) return formula_fail(g->f, "a node refers to one that is not there");
  if (!formula_count_node(g->f)) return false; /* of a ring of nodes too */
  for (uint32_t p = 0; p < g->f->param_count; p++)
    if (g->params[p] == i) return *out = (struct vm_value){.kind = VM_PARAM, .ref = p}, true;
  if (!strcmp(type_of(node), "IntImm")) return read_int(g, node, out);
  if (!strcmp(type_of(node), "Var")) return read_var(g, node, out);
  if (!strcmp(type_of(node), "Cast")) return read_cast(g, node, out);
  return read_operator(g, node, out);
}

static bool read_params(struct graph *g, json_t *params) {
  json_t *item;
  size_t i;
  json_array_foreach(params, i, item) {
    json_t *var = node_at(g, json_integer_value(item));
    const char *name = var ? name_of(g, var) : NULL;
    if (!name) return formula_fail(g->f, "a parameter has no name");
    if (!formula_add_param(g->f, name, strlen(name))) return false;
    g->params[i] = json_integer_value(item);
    g->f->wide = !strcmp(value_type(g, var), "int64");
  }
  return true;
}

static bool read_map(struct graph *g, json_t *root) {
  g->nodes = json_object_get(root, "nodes");
  json_t *start = json_object_get(root, "root_index"), *item;
  if (!start) start = json_object_get(root, "root");
  json_t *map = node_at(g, json_is_integer(start) ? json_integer_value(start) : -1);
  if (!map || strcmp(type_of(map), "IndexMap") != 0) return formula_fail(g->f, "the root of its nodes is no IndexMap");
  json_t *params = items_of(g, map, "initial_indices"), *results = items_of(g, map, "final_indices");
  size_t i;
  if (!params || !results) return formula_fail(g->f, "its IndexMap has no lists of indices");
  if (!read_params(g, params)) return false;
  json_array_foreach(results, i, item) {
    struct vm_value v;
    if (!read_node(g, json_integer_value(item), &v) || !formula_add_result(g->f, v)) return false;
  }
  return true;
}

bool formula_read_graph(struct formula *f, const char *text, size_t length) {
  json_error_t why;
  json_t *root = json_loadb(text, length, 0, &why);
  if (!root)
    return ms_fail(f->err, MS_BAD_FORMULA, "an index map: %d:%d of its graph: %s", why.line, why.column, why.text);
  struct graph g = {.f = f};
  bool done = read_map(&g, root);
  json_decref(root);
  return done;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

enum { NODE_NONE = 0, NODE_TYPE = 1 };

json_int_t vm_put_graph_node(json_t *nodes, const char *type, json_t *data) {
  json_array_append_new(nodes, json_pack("{s:s, s:o}", "type", type, "data", data));
  return (json_int_t)json_array_size(nodes) - 1;
}

static json_int_t put_type(json_t *nodes, const char *type) {
  return vm_put_graph_node(nodes, "ir.PrimType", json_pack("{s:i, s:s}", "span", NODE_NONE, "dtype", type));
}

void vm_put_graph_start(json_t *nodes, const char *type) {
  json_array_append_new(nodes, json_pack("{s:s}", "type", "None"));
  put_type(nodes, type);
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

/* A map while its nodes are written. */
struct writing {
  json_t *nodes;
  const struct vm_steps *steps;
  json_int_t params[FORMULA_MOST_ITEMS];
  uint8_t width;       /* of its variables */
  json_int_t types[3]; /* the nodes of these types; 0: there is none yet */
};
enum { TYPE_BOOL, TYPE_INT32, TYPE_INT64 };

static int type_of_width(unsigned width) { return width == 64 ? TYPE_INT64 : TYPE_INT32; }

static json_int_t node_of_type(struct writing *w, int type) {
  static const char *const names[] = {"bool", "int32", "int64"};
  if (!w->types[type]) w->types[type] = put_type(w->nodes, names[type]);
  return w->types[type];
}

/* A number is of the type of what it stands beside: `otherwise`. */
static int find_type(const struct writing *w, const struct vm_value *v, int otherwise) {
  const struct vm_value *items = &w->steps->values[v->first];
  if (v->kind == VM_PARAM) return type_of_width(w->width);
  if (v->kind != VM_APPLY) return otherwise;
  if (v->op == TIR_CAST) return type_of_width(v->bare);
  const struct formula_operator *o = formula_operator_of(v);
  if (o->level <= LEVEL_COMPARED) return TYPE_BOOL;
  int type = -1;
  for (uint32_t i = o->arguments == 3; i < v->count && type < 0; i++) type = find_type(w, &items[i], -1);
  return type < 0 ? otherwise : type;
}

static json_int_t put_expr(struct writing *w, const struct vm_value *v, int type);

static json_int_t put_operator(struct writing *w, const struct vm_value *v, int type) {
  static const char *const fields[][3] = {{"a", "b"}, {"condition", "true_value", "false_value"}};
  const struct vm_value *items = &w->steps->values[v->first];
  const struct formula_operator *o = formula_operator_of(v);
  bool choice = o->arguments == 3, compared = o->level == LEVEL_COMPARED;
  int beside = compared ? type_of_width(w->width) : type;
  if (!choice && o->arguments == 2) beside = find_type(w, &items[0], find_type(w, &items[1], beside));
  json_t *data = json_pack("{s:i, s:I}", "span", NODE_NONE, "ty", node_of_type(w, type)), *list = json_array();
  char name[40];
  for (uint32_t i = 0; i < v->count; i++) {
    json_int_t at = put_expr(w, &items[i], choice && !i ? TYPE_BOOL : beside);
    if (o->node)
      json_object_set_new(data, fields[choice][i], json_integer(at));
    else
      json_array_append_new(list, json_integer(at));
  }
  if (o->node) {
    json_decref(list);
    snprintf(name, sizeof name, "tirx.%s", o->node);
    return vm_put_graph_node(w->nodes, name, data);
  }
  snprintf(name, sizeof name, "tirx.%s", o->function);
  json_object_set_new(data, "op", json_integer(vm_put_graph_node(w->nodes, "ir.Op", json_string(name))));
  json_object_set_new(data, "args", json_integer(vm_put_graph_node(w->nodes, "ffi.Array", list)));
  json_object_set_new(data, "attrs", json_integer(NODE_NONE));
  json_object_set_new(data, "ty_args", json_integer(vm_put_graph_node(w->nodes, "ffi.Array", json_array())));
  return vm_put_graph_node(w->nodes, "ir.Call", data);
}

/* type: of a number that stands alone. */
static json_int_t put_expr(struct writing *w, const struct vm_value *v, int type) {
  char name[16];
  if (v->kind == VM_PARAM) return w->params[v->ref];
  if (v->kind == VM_REF) return vm_put_graph_var(w->nodes, name, (size_t)vm_variable_name(w->steps, v->ref, name));
  type = find_type(w, v, type);
  if (v->kind == VM_APPLY && v->op != TIR_CAST) return put_operator(w, v, type);
  json_t *data = json_pack("{s:i, s:I}", "span", NODE_NONE, "ty", node_of_type(w, type));
  if (v->kind == VM_INT) {
    json_object_set_new(data, "value", json_integer((json_int_t)v->integer));
    return vm_put_graph_node(w->nodes, "ir.IntImm", data);
  }
  json_int_t argument = put_expr(w, &w->steps->values[v->first], type_of_width(w->width));
  json_object_set_new(data, "value", json_integer(argument));
  return vm_put_graph_node(w->nodes, "tirx.Cast", data);
}

char *vm_write_index_graph(const struct vm_steps *s, const struct vm_value *map) {
  json_t *params = json_array(), *results = json_array();
  struct writing w = {.nodes = json_array(), .steps = s, .width = map->bare};
  int type = type_of_width(w.width);
  vm_put_graph_start(w.nodes, map->bare == 64 ? "int64" : "int32");
  w.types[type] = NODE_TYPE;
  for (uint32_t i = 0; i < map->op; i++) {
    const struct vm_value *p = &s->values[map->first + i];
    w.params[i] = vm_put_graph_var(w.nodes, s->text + p->first, p->count);
    json_array_append_new(params, json_integer(w.params[i]));
  }
  for (uint32_t i = map->op; i < map->count; i++)
    json_array_append_new(results, json_integer(put_expr(&w, &s->values[map->first + i], type)));
  return vm_end_graph(w.nodes, params, results);
}
