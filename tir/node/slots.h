/* Slots: how interned nodes are found by their hash. Open addressing, probed one after the other; a slot holds a node's
 * index, 0 is empty. `count`, a power of two, is at least twice the number of nodes. Nodes are only taken away in the
 * reverse order of their coming, so that no search for an older one passes a slot that was emptied.
 * Internal to tir. */
#ifndef MSCHED_TIR_SLOTS_H
#define MSCHED_TIR_SLOTS_H

#include "arena.h"

#include <string.h>

typedef uint32_t slots_hash(const struct tir *ir, uint32_t node);

/* The slot that holds the node, or with 0, the first that is empty. */
static inline uint32_t slots_where(const uint32_t *slots, uint32_t count, uint32_t hash, uint32_t node) {
  uint32_t mask = count - 1, i = hash & mask;
  while (slots[i] != node) i = (i + 1) & mask;
  return i;
}

/* Fills slots whose number was doubled with the nodes from 1 on. */
static inline void slots_fill(const struct tir *ir, uint32_t *slots, uint32_t count, uint32_t nodes, slots_hash *hash) {
  memset(slots, 0, count * sizeof *slots);
  for (uint32_t n = 1; n < nodes; n++) slots[slots_where(slots, count, hash(ir, n), 0)] = n;
}

/* Empties the slots of the nodes from `mark` on. */
static inline void slots_empty(const struct tir *ir, uint32_t *slots, uint32_t count, uint32_t nodes, uint32_t mark,
                               slots_hash *hash) {
  for (uint32_t n = nodes; n-- > mark;) slots[slots_where(slots, count, hash(ir, n), n)] = 0;
}

#endif
