/* Modules from TVM's graphs of nodes, as it keeps the functions of its tuning records. */
#include "module_graph.h"

#include "vm/text/index_map.h"

#include <stdlib.h>
#include <string.h>

/* ---- Functions --------------------------------------------------------------------------------------------------- */

static void add_param(struct module_graph *g, tir_buffer buffer, tir_var var) {
  assert(buffer || var);
  uint32_t i = g->ir->params.count;
  g->ir->params.at = tir_enlarge(g->ir->params.at, &g->ir->params.capacity, (uint64_t)i + 1, sizeof *g->ir->params.at);
  g->ir->params.at[g->ir->params.count++] = (struct tir_param){buffer, var};
  struct tir_span *span = &g->ir->funcs.at[g->func].params;
  if (!span->count) span->first = i;
  span->count++;
}

static bool read_param(struct module_graph *g, uint32_t var) {
  uint32_t type;
  tir_expr e;
  tir_buffer buffer;
  if (!module_is(g, var, "Var")) return module_fail(g, var, NULL, "a parameter is a variable");
  if (!module_ref(g, var, "ty", NULL, &type)) return false;
  if (module_is(g, type, "BufferType")) {
    if (!module_new_buffer(g, var, true, &buffer)) return false;
    add_param(g, buffer, TIR_NONE);
    return true;
  }
  /* One that the shape of a buffer before it has declared is that one. */
  if (!module_expr(g, var, &e)) return false;
  tir_type of = tir_type_of(g->ir, e);
  if (tir_at(g->ir, e)->kind != TIR_VAR || of == TIR_T_VOID || of == TIR_T_STRING)
    return module_fail(g, var, "ty", "a parameter is a buffer, a scalar or a pointer");
  struct tir_span span = g->ir->funcs.at[g->func].params;
  for (uint32_t i = 0; i < span.count; i++)
    if (g->ir->params.at[span.first + i].var == tir_at(g->ir, e)->ref)
      return module_fail(g, var, NULL, "it is a parameter twice");
  add_param(g, TIR_NONE, tir_at(g->ir, e)->ref);
  return true;
}

static bool read_params(struct module_graph *g, uint32_t func) {
  struct node_list params;
  uint32_t var;
  if (!module_list(g, func, "params", &params)) return false;
  g->declares = true;
  bool good = params.count <= GRAPH_MOST_ARGS || module_fail(g, func, "params", "there are too many parameters");
  for (uint32_t i = 0; good && i < params.count; i++) good = module_item(g, &params, i, &var) && read_param(g, var);
  g->declares = false;
  return good;
}

/* What the name and the decorator say is no attribute; without a symbol it is private. */
static bool read_attributes(struct module_graph *g, uint32_t func, tir_symbol name) {
  uint32_t attrs;
  struct tir_span span;
  if (!module_ref(g, func, "attrs", "DictAttrs", &attrs) || !module_annotations(g, attrs, "__dict__", &span))
    return false;
  tir_expr symbol = tir_annotation(g->ir, span, "global_symbol");
  tir_expr private = symbol ? TIR_NONE : tir_int(g->ir, TIR_T_BOOL, 1);
  tir_annotate_span(g->ir, &span, tir_symbol_of(g->ir, "private"), private);
  if (symbol && tir_at(g->ir, symbol)->kind == TIR_STRING_IMM && tir_at(g->ir, symbol)->ref == name)
    tir_annotate_span(g->ir, &span, tir_symbol_of(g->ir, "global_symbol"), TIR_NONE);
  tir_annotate_span(g->ir, &span, tir_symbol_of(g->ir, "s_tir"), TIR_NONE);
  g->ir->funcs.at[g->func].attrs = span;
  return true;
}

static bool read_func(struct module_graph *g, uint32_t func, const char *name) {
  uint32_t body;
  tir_type result;
  tir_symbol symbol = tir_symbol_of(g->ir, name);
  for (tir_func f = 1; f < g->ir->funcs.count; f++)
    if (g->ir->funcs.at[f].name == symbol) return module_fail(g, func, NULL, "there is a function %.80s already", name);
  g->func = tir_new_func(g->ir, symbol);
  uint32_t mark = module_open(g);
  bool good = read_params(g, func) && read_attributes(g, func, symbol) && module_type(g, func, "ret_type", &result) &&
              module_ref(g, func, "body", NULL, &body) && module_stmt(g, body, g->ir->funcs.at[g->func].body, TIR_BODY);
  module_close(g, mark);
  if (good) g->ir->funcs.at[g->func].result = result;
  return good;
}

static bool read_functions(struct module_graph *g, uint32_t root) {
  struct node_list map;
  uint32_t key, func;
  const char *name;
  if (!module_is(g, root, "IRModule")) return module_fail(g, root, NULL, "the root is no IRModule");
  if (!module_map(g, root, "functions", &map)) return false;
  if (!map.count) return module_fail(g, root, "functions", "there are none");
  for (uint32_t i = 0; i < map.count; i += 2) {
    if (!module_item(g, &map, i, &key) || !module_item(g, &map, i + 1, &func)) return false;
    if (!module_is(g, key, "GlobalVar")) return module_fail(g, key, NULL, "a function is named by a GlobalVar");
    if (!module_is(g, func, "PrimFunc")) return module_fail(g, func, NULL, "only functions of loops are supported");
    if (!module_text(g, key, "name_hint", &name) || !read_func(g, func, name)) return false;
  }
  return true;
}

/* ---- Entry points ------------------------------------------------------------------------------------------------ */

/* What was built, as TVMScript, which every reader of the functions will see. */
static struct tir *read_again(const struct tir *ir, ms_error *err) {
  ms_error why = {.instruction = -1};
  char *text = tir_print(ir, TIR_NONE, 0);
  if (!text) abort();
  struct tir *again = tir_read(text, strlen(text), "TVMScript of the graph", &why);
  free(text);
  if (again && tir_verify_scopes(again, &why)) return again;
  tir_free(again);
  ms_fail(err, why.code, "%s", why.message);
  return NULL;
}

static struct tir *read_graph(const json_t *graph, ms_error *err) {
  const json_t *nodes = json_object_get(graph, "nodes"), *start = json_object_get(graph, "root_index");
  json_int_t root = json_is_integer(start) ? json_integer_value(start) : -1;
  if (!json_is_array(nodes) || root < 0 || root >= (json_int_t)json_array_size(nodes)) {
    bool old = json_object_get(graph, "root") != NULL;
    ms_fail(err, MS_BAD_GRAPH, old ? "the graph is of an older TVM" : "it is no graph: nodes and a root_index");
    return NULL;
  }
  struct module_graph g = {.ir = tir_new(), .nodes = nodes, .err = err};
  g.bindings = calloc(json_array_size(nodes) + 1, sizeof *g.bindings);
  if (!g.bindings) abort();
  struct tir *made = read_functions(&g, (uint32_t)root) ? read_again(g.ir, err) : NULL;
  free(g.bindings);
  free(g.bound);
  tir_free(g.ir);
  return made;
}

struct tir *vm_read_module_graph(const char *text, size_t length, ms_error *err) {
  json_error_t why;
  json_t *graph = vm_json_load(text, length, &why);
  struct tir *made = NULL;
  if (graph)
    made = read_graph(graph, err);
  else
    ms_fail(err, MS_BAD_GRAPH, "%d:%d of the graph: %s", why.line, why.column, why.text);
  json_decref(graph);
  return made;
}
