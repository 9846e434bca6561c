/* Index maps as text. Internal to vm. */
#ifndef MSCHED_VM_INDEX_MAP_H
#define MSCHED_VM_INDEX_MAP_H

#include "steps.h"

#include <jansson.h>

enum { VM_MOST_MAP = 64 }; /* parameters, and results */

/* TVM's node graph as JSON text; the caller's to free(). */
char *vm_write_index_graph(const struct vm_steps *steps, const struct vm_value *map);

#endif
