/* Index maps and numbers as JSON. Internal to vm. */
#ifndef MSCHED_VM_INDEX_MAP_H
#define MSCHED_VM_INDEX_MAP_H

#include "steps.h"

#include <jansson.h>

/* A trace's JSON, with the numbers that JSON has no text for (json_text.c). */
json_t *vm_json_load(const char *text, size_t length, json_error_t *why);
char *vm_json_dump(const json_t *root); /* the caller's to free() */
json_t *vm_json_real(double value);
bool vm_json_is_real(const json_t *j, double *out); /* whether it stands for a number that is not finite */

/* TVM's node graph as JSON text; the caller's to free(). */
char *vm_write_index_graph(const struct vm_steps *steps, const struct vm_value *map);

/* Parts of such a graph, in the order of its nodes: what a node refers to stands before it. The first are that of
 * nothing and the type of the indices. */
void vm_put_graph_start(json_t *nodes, const char *type);
json_int_t vm_put_graph_node(json_t *nodes, const char *type, json_t *data); /* takes data; the node's number */
json_int_t vm_put_graph_var(json_t *nodes, const char *name, size_t length);
/* The map of the nodes `params` to the nodes `results`; takes all three. */
char *vm_end_graph(json_t *nodes, json_t *params, json_t *results);

#endif
