/* TVM's graphs of nodes, as JSON: {"root_index": n, "nodes": [{"type": …, "data": …}…]}. Internal to vm.
 *
 * A node refers to others by their numbers. Graphs of the version before have type_key and attrs, whose values are
 * strings. Nothing is taken for granted of what was read: what is not there is NULL, "" or -1. */
#ifndef MSCHED_VM_GRAPH_H
#define MSCHED_VM_GRAPH_H

#include <jansson.h>

json_t *graph_node(const json_t *nodes, json_int_t i); /* NULL: there is none */
const char *graph_type(const json_t *node);            /* without what stands before its last point */
json_t *graph_field(const json_t *node, const char *name);
json_int_t graph_number(const json_t *node, const char *name); /* a number, or that of a node; -1: it is none */
json_t *graph_items(const json_t *nodes, const json_t *node, const char *name); /* of a list that a field names */
const char *graph_text(const json_t *node);                                     /* of a text, or an operator */
const char *graph_name(const json_t *nodes, const json_t *var);
const char *graph_value_type(const json_t *nodes, const json_t *node); /* "int32"; "": it does not say */
json_t *graph_root(const json_t *graph, const json_t *nodes);

/* ---- Writing: what a node refers to stands before it; the first is that of nothing. */

enum { GRAPH_NONE = 0 };
json_t *graph_start(void);                                           /* the nodes: that of nothing */
json_int_t graph_put(json_t *nodes, const char *type, json_t *data); /* takes data; the node's number */
json_int_t graph_put_text(json_t *nodes, const char *text, size_t length);
json_int_t graph_put_type(json_t *nodes, const char *type);
json_int_t graph_put_list(json_t *nodes, json_t *items); /* takes the numbers of nodes */
json_int_t graph_put_var(json_t *nodes, json_int_t type, const char *name, size_t length);
json_t *graph_end(json_t *nodes, json_int_t root); /* takes nodes */

#endif
