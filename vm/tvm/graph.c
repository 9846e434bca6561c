/* TVM's graphs of nodes: how nodes, fields and references are found, and put down. */
#include "graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

json_t *graph_node(const json_t *nodes, json_int_t i) {
  return i >= 0 && (size_t)i < json_array_size(nodes) ? json_array_get(nodes, (size_t)i) : NULL;
}

static const char *after_point(const char *name) {
  const char *point = name ? strrchr(name, '.') : NULL;
  return point ? point + 1 : name ? name : "";
}

const char *graph_type(const json_t *node) {
  const char *type = json_string_value(json_object_get(node, "type"));
  return after_point(type ? type : json_string_value(json_object_get(node, "type_key")));
}

json_t *graph_field(const json_t *node, const char *name) {
  json_t *fields = json_object_get(node, "data");
  if (!json_is_object(fields)) fields = json_object_get(node, "attrs");
  return json_object_get(fields, name);
}

json_int_t graph_number(const json_t *node, const char *name) {
  json_t *f = graph_field(node, name);
  return json_is_string(f) ? atoll(json_string_value(f)) : json_is_integer(f) ? json_integer_value(f) : -1;
}

json_t *graph_items(const json_t *nodes, const json_t *node, const char *name) {
  json_t *list = graph_node(nodes, graph_number(node, name));
  return list && !strcmp(graph_type(list), "Array") ? json_object_get(list, "data") : NULL;
}

const char *graph_text(const json_t *node) {
  const char *text = json_string_value(json_object_get(node, "data"));
  return text ? text : json_string_value(json_object_get(node, "repr_str"));
}

const char *graph_name(const json_t *nodes, const json_t *var) {
  json_t *f = graph_field(var, "name_hint");
  if (json_is_string(f) && !graph_node(nodes, graph_number(var, "name"))) return json_string_value(f);
  return graph_text(graph_node(nodes, graph_number(var, "name")));
}

const char *graph_value_type(const json_t *nodes, const json_t *node) {
  const char *type = json_string_value(graph_field(node, "dtype"));
  if (!type) type = json_string_value(graph_field(graph_node(nodes, graph_number(node, "ty")), "dtype"));
  return type ? type : "";
}

json_t *graph_root(const json_t *graph, const json_t *nodes) {
  json_t *start = json_object_get(graph, "root_index");
  if (!start) start = json_object_get(graph, "root");
  return graph_node(nodes, json_is_integer(start) ? json_integer_value(start) : -1);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

json_t *graph_start(void) { return json_pack("[{s:s}]", "type", "None"); }

json_int_t graph_put(json_t *nodes, const char *type, json_t *data) {
  assert(json_is_array(nodes) && data);
  json_array_append_new(nodes, json_pack("{s:s, s:o}", "type", type, "data", data));
  return (json_int_t)json_array_size(nodes) - 1;
}

json_int_t graph_put_text(json_t *nodes, const char *text, size_t length) {
  return graph_put(nodes, "ffi.String", json_stringn(text, length));
}

json_int_t graph_put_type(json_t *nodes, const char *type) {
  return graph_put(nodes, "ir.PrimType", json_pack("{s:i, s:s}", "span", GRAPH_NONE, "dtype", type));
}

json_int_t graph_put_list(json_t *nodes, json_t *items) { return graph_put(nodes, "ffi.Array", items); }

json_int_t graph_put_var(json_t *nodes, json_int_t type, const char *name, size_t length) {
  json_int_t text = graph_put_text(nodes, name, length);
  return graph_put(nodes, "ir.Var", json_pack("{s:i, s:I, s:I}", "span", GRAPH_NONE, "ty", type, "name", text));
}

json_t *graph_end(json_t *nodes, json_int_t root) {
  assert(root >= 0 && (size_t)root < json_array_size(nodes));
  return json_pack("{s:I, s:o, s:{s:s}}", "root_index", root, "nodes", nodes, "metadata", "tvm_version", "0.26.0");
}
