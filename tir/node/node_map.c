/* Maps from nodes: the first entries in a row, which is searched; more of them by open addressing, at most half
 * full. */
#include "node_map.h"

#include <assert.h>
#include <stdlib.h>

void tir_node_map_init(struct tir_node_map *map) {
  map->count = map->capacity = 0;
  map->at = NULL;
}

void tir_node_map_free(struct tir_node_map *map) { free(map->at); }

/* The entry of (node, second) in the table, or a free one where it belongs. */
static struct tir_node_entry *place_of(const struct tir_node_map *map, tir_expr node, uint32_t second) {
  uint32_t i = (node * 0x9E3779B1u ^ second * 0x85EBCA77u) >> 7;
  for (;; i++) {
    struct tir_node_entry *e = &map->at[i & (map->capacity - 1)];
    if (!e->node || (e->node == node && e->second == second)) return e;
  }
}

static void enlarge(struct tir_node_map *map) {
  struct tir_node_entry *old = map->at;
  const struct tir_node_entry *from = old ? old : map->few;
  uint32_t count = old ? map->capacity : map->count;
  map->capacity = old ? 2 * map->capacity : 4 * TIR_FEW_NODES;
  map->at = calloc(map->capacity, sizeof *map->at);
  if (!map->at) abort();
  for (uint32_t i = 0; i < count; i++)
    if (from[i].node) *place_of(map, from[i].node, from[i].second) = from[i];
  free(old);
}

/* The entry, NULL: there is none. */
static struct tir_node_entry *find(struct tir_node_map *map, tir_expr node, uint32_t second) {
  if (map->at) {
    struct tir_node_entry *e = place_of(map, node, second);
    return e->node ? e : NULL;
  }
  for (uint32_t i = 0; i < map->count; i++)
    if (map->few[i].node == node && map->few[i].second == second) return &map->few[i];
  return NULL;
}

uint32_t *tir_node_map_at(struct tir_node_map *map, tir_expr node, uint32_t second, bool *fresh) {
  assert(node && "no node is its own key");
  struct tir_node_entry *e = find(map, node, second);
  *fresh = !e;
  if (e) return &e->value;
  bool full = map->at ? 2 * (map->count + 1) > map->capacity : map->count == TIR_FEW_NODES;
  if (full) enlarge(map);
  e = map->at ? place_of(map, node, second) : &map->few[map->count];
  map->count++;
  *e = (struct tir_node_entry){node, second, 0};
  return &e->value;
}

uint32_t tir_node_map_get(const struct tir_node_map *map, tir_expr node, uint32_t second) {
  const struct tir_node_entry *e = find((struct tir_node_map *)map, node, second);
  return e ? e->value : 0;
}

void tir_node_map_set(struct tir_node_map *map, tir_expr node, uint32_t second, uint32_t value) {
  bool fresh;
  *tir_node_map_at(map, node, second, &fresh) = value;
}
