/* Small blocks of a Lua state's memory: kept by size when they are given back, and used again. What a script makes and
 * drops in every call then stays where the processor has it already. Not shared between threads. */
#ifndef MSCHED_LUA_CELLS_H
#define MSCHED_LUA_CELLS_H

#include <stddef.h>
#include <stdint.h>

#ifdef MSCHED_CHECK
enum { CELL_MOST = 0 }; /* bytes: each block is the system's, and is looked after by AddressSanitizer */
#else
enum { CELL_MOST = 512 };
#endif
enum { CELL_UNIT = 16 };

struct cells { /* zeroed at first */
  struct cell {
    struct cell *next;
  } * kept[CELL_MOST / CELL_UNIT + 1];
  struct cell *chunks; /* from which they are cut */
  uint8_t *at, *end;   /* what is left of the last */
};
/* As realloc does, for blocks of any size: old_size 0: there is none; size 0: it is given back. */
void *cells_resize(struct cells *c, void *at, size_t old_size, size_t size);
void cells_clear(struct cells *c); /* once all large blocks are given back: frees the small ones */

#endif
