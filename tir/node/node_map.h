/* What a walk over expressions remembers of nodes that several share: expressions are graphs, and who walks them as
 * trees walks a shared node once for each way to it, of which a chain of n nodes has 2^n. Internal to tir.
 *
 * A map from an expression and a second number to a number. Small ones need no memory but the struct, which nothing
 * has to clear: most walks meet four nodes. */
#ifndef MSCHED_TIR_NODE_MAP_H
#define MSCHED_TIR_NODE_MAP_H

#include "tir/tir.h"

enum { TIR_FEW_NODES = 16 };
struct tir_node_entry {
  tir_expr node; /* TIR_NONE: free */
  uint32_t second, value;
};
struct tir_node_map {
  uint32_t count, capacity;                 /* a power of two */
  struct tir_node_entry *at;                /* a hash table; NULL: all entries are in `few` */
  struct tir_node_entry few[TIR_FEW_NODES]; /* in the order in which they came */
};
void tir_node_map_init(struct tir_node_map *map);
void tir_node_map_free(struct tir_node_map *map);
/* The value of (node, second), 0 where it is new: then *fresh. Valid until the next call. */
uint32_t *tir_node_map_at(struct tir_node_map *map, tir_expr node, uint32_t second, bool *fresh);
/* The same, 0 where it is not there. */
uint32_t tir_node_map_get(const struct tir_node_map *map, tir_expr node, uint32_t second);
void tir_node_map_set(struct tir_node_map *map, tir_expr node, uint32_t second, uint32_t value);

#endif
