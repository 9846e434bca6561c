/* Maps from nodes: open addressing, at most half full. */
#include "node_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void tir_node_map_init(struct tir_node_map *map) {
  map->count = 0;
  map->capacity = TIR_FEW_NODES;
  map->at = map->few;
  memset(map->few, 0, sizeof map->few);
}

void tir_node_map_free(struct tir_node_map *map) {
  if (map->at != map->few) free(map->at);
}

static struct tir_node_entry *place_of(const struct tir_node_map *map, tir_expr node, uint32_t second) {
  uint32_t i = (node * 0x9E3779B1u ^ second * 0x85EBCA77u) >> 7;
  for (;; i++) {
    struct tir_node_entry *e = &map->at[i & (map->capacity - 1)];
    if (!e->node || (e->node == node && e->second == second)) return e;
  }
}

static void enlarge(struct tir_node_map *map) {
  struct tir_node_map old = *map;
  const struct tir_node_entry *from = old.at == map->few ? map->few : old.at;
  struct tir_node_entry *at = calloc(2 * (size_t)old.capacity, sizeof *at);
  if (!at) abort();
  map->at = at;
  map->capacity = 2 * old.capacity;
  for (uint32_t i = 0; i < old.capacity; i++)
    if (from[i].node) *place_of(map, from[i].node, from[i].second) = from[i];
  if (from != map->few) free(old.at);
}

uint32_t *tir_node_map_at(struct tir_node_map *map, tir_expr node, uint32_t second, bool *fresh) {
  assert(node && "no node is its own key");
  struct tir_node_entry *e = place_of(map, node, second);
  *fresh = !e->node;
  if (!*fresh) return &e->value;
  if (2 * (map->count + 1) > map->capacity) {
    enlarge(map);
    e = place_of(map, node, second);
  }
  map->count++;
  *e = (struct tir_node_entry){node, second, 0};
  return &e->value;
}

uint32_t tir_node_map_get(const struct tir_node_map *map, tir_expr node, uint32_t second) {
  const struct tir_node_entry *e = place_of(map, node, second);
  return e->node ? e->value : 0;
}

void tir_node_map_set(struct tir_node_map *map, tir_expr node, uint32_t second, uint32_t value) {
  bool fresh;
  *tir_node_map_at(map, node, second, &fresh) = value;
}
