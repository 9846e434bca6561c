/* Small blocks of memory, cut from chunks. */
#include "cells.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 };

static size_t class_of(size_t size) { return (size + CELL_UNIT - 1) / CELL_UNIT; }
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void *cut(struct cells *c, size_t bytes) {
  if ((size_t)(c->end - c->at) < bytes) {
    struct cell *chunk = malloc(CHUNK);
    if (!chunk) return NULL;
    chunk->next = c->chunks;
    c->chunks = chunk;
    c->at = (uint8_t *)chunk + CELL_UNIT;
    c->end = (uint8_t *)chunk + CHUNK;
  }
  void *at = c->at;
  c->at += bytes;
  return at;
}

static void *take(struct cells *c, size_t size) {
  assert(size);
  if (size > CELL_MOST) return malloc(size);
  struct cell **kept = &c->kept[class_of(size)], *cell = *kept;
  if (!cell) return cut(c, class_of(size) * CELL_UNIT);
  *kept = cell->next;
  return cell;
}

static void give(struct cells *c, void *at, size_t size) {
  if (size > CELL_MOST) {
    free(at);
    return;
  }
  struct cell *cell = at;
  cell->next = c->kept[class_of(size)];
  c->kept[class_of(size)] = cell;
}

void *cells_resize(struct cells *c, void *at, size_t old_size, size_t size) {
  assert(!at == !old_size);
  if (!at) return size ? take(c, size) : NULL;
  if (!size) return give(c, at, old_size), NULL;
  if (old_size > CELL_MOST && size > CELL_MOST) return realloc(at, size);
  if (old_size <= CELL_MOST && class_of(old_size) == class_of(size)) return at;
  void *to = take(c, size);
  if (!to) return NULL;
  memcpy(to, at, smaller(old_size, size));
  give(c, at, old_size);
  return to;
}

void cells_clear(struct cells *c) {
  for (struct cell *next, *chunk = c->chunks; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
  memset(c, 0, sizeof *c);
}
