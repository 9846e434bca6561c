/* Index maps and numbers as JSON. Internal to vm. */
#ifndef MSCHED_VM_INDEX_MAP_H
#define MSCHED_VM_INDEX_MAP_H

#include "vm/steps.h"

#include <jansson.h>

/* A trace's JSON, with the numbers that JSON has no text for (json_text.c). */
json_t *vm_json_load(const char *text, size_t length, json_error_t *why);
char *vm_json_dump(const json_t *root); /* the caller's to free() */
json_t *vm_json_real(double value);
bool vm_json_is_real(const json_t *j, double *out); /* whether it stands for a number that is not finite */

/* TVM's node graph as JSON text; the caller's to free(). */
char *vm_write_index_graph(const struct vm_steps *steps, const struct vm_value *map);

/* Such a graph while it is written (graph.h): the nodes so far, that of nothing and that of the type of the indices; a
 * variable of this type. */
json_t *vm_start_graph(const char *type);
json_int_t vm_put_graph_var(json_t *nodes, const char *name, size_t length);
/* The map of the nodes `params` to the nodes `results`; takes all three. */
char *vm_end_graph(json_t *nodes, json_t *params, json_t *results);

#endif
