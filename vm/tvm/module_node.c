/* Nodes and fields that must be there, and what names stand for. */
#include "module_graph.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Nodes and fields -------------------------------------------------------------------------------------------- */

bool module_fail(struct module_graph *g, uint32_t node, const char *field, const char *format, ...) {
  assert(g->err && format);
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return ms_fail(g->err, MS_BAD_GRAPH, "node %u, %.60s%s%s: %s", node, graph_type(graph_node(g->nodes, node)),
                 field ? ", field " : "", field ? field : "", what);
}

bool module_visit(struct module_graph *g, uint32_t node) {
  if (g->visits++ < GRAPH_MOST_VISITS) return true;
  return module_fail(g, node, NULL, "the graph stands for more than %d nodes", GRAPH_MOST_VISITS);
}

bool module_is(const struct module_graph *g, uint32_t node, const char *type) {
  return !strcmp(graph_type(graph_node(g->nodes, node)), type);
}

bool module_maybe(struct module_graph *g, uint32_t node, const char *field, uint32_t *out) {
  const json_t *f = graph_field(graph_node(g->nodes, node), field);
  *out = 0;
  if (!json_is_integer(f)) return module_fail(g, node, field, f ? "it refers to no node" : "it is not there");
  json_int_t at = json_integer_value(f);
  if (at < 0 || at >= node) return module_fail(g, node, field, "it refers to no node before it");
  *out = module_is(g, (uint32_t)at, "None") ? 0 : (uint32_t)at;
  return module_visit(g, node);
}

bool module_ref(struct module_graph *g, uint32_t node, const char *field, const char *type, uint32_t *out) {
  if (!module_maybe(g, node, field, out)) return false;
  if (!*out) return module_fail(g, node, field, "it is None");
  if (!type || module_is(g, *out, type)) return true;
  return module_fail(g, node, field, "a node %s is expected, found %.60s", type,
                     graph_type(graph_node(g->nodes, *out)));
}

static bool list_of(struct module_graph *g, uint32_t node, const char *field, const char *type, struct node_list *out) {
  if (!module_ref(g, node, field, type, &out->node)) return false;
  out->items = json_object_get(graph_node(g->nodes, out->node), "data");
  out->count = (uint32_t)json_array_size(out->items);
  return json_is_array(out->items) || module_fail(g, out->node, NULL, "it holds no list");
}

bool module_list(struct module_graph *g, uint32_t node, const char *field, struct node_list *out) {
  return list_of(g, node, field, "Array", out);
}

bool module_map(struct module_graph *g, uint32_t node, const char *field, struct node_list *out) {
  if (!list_of(g, node, field, "Map", out)) return false;
  return out->count % 2 == 0 || module_fail(g, out->node, NULL, "a key has no value");
}

bool module_item(struct module_graph *g, const struct node_list *list, uint32_t i, uint32_t *out) {
  const json_t *item = json_array_get(list->items, i);
  json_int_t at = json_is_integer(item) ? json_integer_value(item) : -1;
  *out = 0;
  if (at < 0 || at >= list->node) return module_fail(g, list->node, NULL, "item %u is no node before it", i);
  *out = (uint32_t)at;
  return module_visit(g, list->node);
}

bool module_integer(struct module_graph *g, uint32_t node, const char *field, int64_t *out) {
  const json_t *f = graph_field(graph_node(g->nodes, node), field);
  if (!json_is_integer(f) && !json_is_boolean(f)) return module_fail(g, node, field, "it is no integer");
  *out = json_is_boolean(f) ? json_is_true(f) : json_integer_value(f);
  return true;
}

bool module_text_at(struct module_graph *g, uint32_t node, const char **out) {
  const json_t *data = json_object_get(graph_node(g->nodes, node), "data");
  *out = json_string_value(data);
  return (*out && strlen(*out) == json_string_length(data)) || module_fail(g, node, NULL, "it holds no text");
}

bool module_text(struct module_graph *g, uint32_t node, const char *field, const char **out) {
  uint32_t at;
  return module_ref(g, node, field, "String", &at) && module_text_at(g, at, out);
}

/* ---- What variables stand for ------------------------------------------------------------------------------------ */

uint32_t module_open(const struct module_graph *g) { return g->bound_count; }

void module_close(struct module_graph *g, uint32_t mark) {
  assert(mark <= g->bound_count);
  while (g->bound_count > mark) g->bindings[g->bound[--g->bound_count]].ref = 0;
}

bool module_bind(struct module_graph *g, uint32_t node, bool is_buffer, uint32_t ref) {
  assert(ref);
  if (g->bindings[node].ref) return module_fail(g, node, NULL, "it is defined a second time where it is known");
  if (g->bound_count == g->bound_capacity)
    g->bound = tir_enlarge(g->bound, &g->bound_capacity, (uint64_t)g->bound_count + 1, sizeof *g->bound);
  g->bound[g->bound_count++] = node;
  g->bindings[node] = (struct node_binding){is_buffer, ref};
  return true;
}
