/* Index maps as TVM's graphs of nodes: JSON, today's and the one before, whose fields are strings. */
#include "graph.h"
#include "vm/text/formula.h"
#include "vm/text/index_map.h"

#include <stdlib.h>
#include <string.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

struct graph {
  struct formula *f;
  json_t *nodes;
  json_int_t params[FORMULA_MOST_ITEMS]; /* node numbers of the parameters */
};

static bool read_node(struct graph *g, json_int_t i, struct vm_value *out);

static bool read_int(struct graph *g, json_t *node, struct vm_value *out) {
  json_t *value = graph_field(node, "value");
  char *end = NULL;
  if (json_is_boolean(value)) return *out = vm_int(json_is_true(value)), true;
  if (json_is_string(value)) strtoll(json_string_value(value), &end, 10);
  if (!json_is_integer(value) && (!end || *end || !*json_string_value(value)))
    return formula_fail(g->f, "the value of a node IntImm is no integer");
  *out = vm_int(graph_number(node, "value"));
  return true;
}

static bool read_var(struct graph *g, json_t *node, struct vm_value *out) {
  const char *name = graph_name(g->nodes, node);
  uint32_t variable;
  if (!name) return formula_fail(g->f, "a variable has no name");
  if (!formula_find_drawn(g->f, name, strlen(name), &variable) || g->f->trace->steps->types[variable] != VM_T_INT)
    return formula_fail_at(g->f, name, strlen(name), "is neither a parameter nor drawn");
  *out = vm_ref(variable);
  return true;
}

static bool read_cast(struct graph *g, json_t *node, struct vm_value *out) {
  struct vm_value argument;
  const char *type = graph_value_type(g->nodes, node);
  return read_node(g, graph_number(node, "value"), &argument) && formula_cast(g->f, type, strlen(type), argument, out);
}

/* The nodes of an operator's arguments. */
static bool find_arguments(const struct graph *g, json_t *node, const struct formula_operator *o, json_int_t *at) {
  static const char *const few[] = {"a", "b"}, *const choice[] = {"condition", "true_value", "false_value"};
  json_t *arguments = o->node ? NULL : graph_items(g->nodes, node, "args");
  if (!o->node && json_array_size(arguments) != o->arguments) return false;
  for (uint32_t i = 0; i < o->arguments; i++)
    at[i] = o->node ? graph_number(node, o->arguments == 3 ? choice[i] : few[i])
                    : json_integer_value(json_array_get(arguments, i));
  return true;
}

static const char *function_name(const char *op) {
  const char *point = op ? strrchr(op, '.') : NULL;
  return point ? point + 1 : op ? op : "";
}

static bool read_operator(struct graph *g, json_t *node, struct vm_value *out) {
  bool call = !strcmp(graph_type(node), "Call");
  const char *name =
      call ? function_name(graph_text(graph_node(g->nodes, graph_number(node, "op")))) : graph_type(node);
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
  json_t *node = graph_node(g->nodes, i);
  if (!node) return formula_fail(g->f, "a node refers to one that is not there");
  if (!formula_count_node(g->f)) return false; /* of a ring of nodes too */
  for (uint32_t p = 0; p < g->f->param_count; p++)
    if (g->params[p] == i) return *out = (struct vm_value){.kind = VM_PARAM, .ref = p}, true;
  if (!strcmp(graph_type(node), "IntImm")) return read_int(g, node, out);
  if (!strcmp(graph_type(node), "Var")) return read_var(g, node, out);
  if (!strcmp(graph_type(node), "Cast")) return read_cast(g, node, out);
  return read_operator(g, node, out);
}

static bool read_params(struct graph *g, json_t *params) {
  json_t *item;
  size_t i;
  json_array_foreach(params, i, item) {
    json_t *var = graph_node(g->nodes, json_integer_value(item));
    const char *name = var ? graph_name(g->nodes, var) : NULL;
    if (!name) return formula_fail(g->f, "a parameter has no name");
    if (!formula_add_param(g->f, name, strlen(name))) return false;
    assert(g->f->param_count == i + 1 && i < FORMULA_MOST_ITEMS);
    g->params[i] = json_integer_value(item);
    g->f->wide = !strcmp(graph_value_type(g->nodes, var), "int64");
  }
  return true;
}

static bool read_map(struct graph *g, json_t *root) {
  g->nodes = json_object_get(root, "nodes");
  json_t *map = graph_root(root, g->nodes), *item;
  if (!map || strcmp(graph_type(map), "IndexMap") != 0)
    return formula_fail(g->f, "the root of its nodes is no IndexMap");
  json_t *params = graph_items(g->nodes, map, "initial_indices"),
         *results = graph_items(g->nodes, map, "final_indices");
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

enum { TYPE_OF_INDICES = 1 }; /* the node after that of nothing */

json_t *vm_start_graph(const char *type) {
  json_t *nodes = graph_start();
  graph_put_type(nodes, type);
  return nodes;
}

json_int_t vm_put_graph_var(json_t *nodes, const char *name, size_t length) {
  return graph_put_var(nodes, TYPE_OF_INDICES, name, length);
}

char *vm_end_graph(json_t *nodes, json_t *params, json_t *results) {
  json_int_t initial = graph_put_list(nodes, params), final = graph_put_list(nodes, results);
  json_int_t root = graph_put(nodes, "tirx.IndexMap",
                              json_pack("{s:I, s:I, s:i}", "initial_indices", initial, "final_indices", final,
                                        "inverse_index_map", GRAPH_NONE));
  json_t *graph = graph_end(nodes, root);
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
  if (!w->types[type]) w->types[type] = graph_put_type(w->nodes, names[type]);
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
  assert(v->count == o->arguments && v->count <= 3);
  bool choice = o->arguments == 3, compared = o->level == LEVEL_COMPARED;
  int beside = compared ? type_of_width(w->width) : type;
  if (!choice && o->arguments == 2) beside = find_type(w, &items[0], find_type(w, &items[1], beside));
  json_t *data = json_pack("{s:i, s:I}", "span", GRAPH_NONE, "ty", node_of_type(w, type)), *list = json_array();
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
    return graph_put(w->nodes, name, data);
  }
  snprintf(name, sizeof name, "tirx.%s", o->function);
  json_object_set_new(data, "op", json_integer(graph_put(w->nodes, "ir.Op", json_string(name))));
  json_object_set_new(data, "args", json_integer(graph_put_list(w->nodes, list)));
  json_object_set_new(data, "attrs", json_integer(GRAPH_NONE));
  json_object_set_new(data, "ty_args", json_integer(graph_put_list(w->nodes, json_array())));
  return graph_put(w->nodes, "ir.Call", data);
}

/* type: of a number that stands alone. */
static json_int_t put_expr(struct writing *w, const struct vm_value *v, int type) {
  char name[16];
  assert(v->kind != VM_PARAM || v->ref < FORMULA_MOST_ITEMS);
  if (v->kind == VM_PARAM) return w->params[v->ref];
  if (v->kind == VM_REF) return vm_put_graph_var(w->nodes, name, (size_t)vm_variable_name(w->steps, v->ref, name));
  type = find_type(w, v, type);
  if (v->kind == VM_APPLY && v->op != TIR_CAST) return put_operator(w, v, type);
  json_t *data = json_pack("{s:i, s:I}", "span", GRAPH_NONE, "ty", node_of_type(w, type));
  if (v->kind == VM_INT) {
    json_object_set_new(data, "value", json_integer((json_int_t)v->integer));
    return graph_put(w->nodes, "ir.IntImm", data);
  }
  json_int_t argument = put_expr(w, &w->steps->values[v->first], type_of_width(w->width));
  json_object_set_new(data, "value", json_integer(argument));
  return graph_put(w->nodes, "tirx.Cast", data);
}

char *vm_write_index_graph(const struct vm_steps *s, const struct vm_value *map) {
  json_t *params = json_array(), *results = json_array();
  struct writing w = {.nodes = vm_start_graph(map->bare == 64 ? "int64" : "int32"), .steps = s, .width = map->bare};
  int type = type_of_width(w.width);
  assert(map->op <= map->count && map->op <= FORMULA_MOST_ITEMS);
  w.types[type] = TYPE_OF_INDICES;
  for (uint32_t i = 0; i < map->op; i++) {
    const struct vm_value *p = &s->values[map->first + i];
    w.params[i] = vm_put_graph_var(w.nodes, s->text + p->first, p->count);
    json_array_append_new(params, json_integer(w.params[i]));
  }
  for (uint32_t i = map->op; i < map->count; i++)
    json_array_append_new(results, json_integer(put_expr(&w, &s->values[map->first + i], type)));
  return vm_end_graph(w.nodes, params, results);
}
