/* Index maps as traces write them, "lambda i0, i1: (i1, i0,)": where each element of a buffer goes. */
#ifndef TEST_LAYOUT_H
#define TEST_LAYOUT_H

#include "tir/tir.h"

enum { MOST_LAYOUT_RANK = 16 };

struct layout {
  uint32_t from_rank, to_rank;
  int64_t from[MOST_LAYOUT_RANK], to[MOST_LAYOUT_RANK]; /* shapes */
  uint64_t from_count, to_count;
  int64_t *indices; /* by element, row-major: to_rank indices in the new shape; owned */
  uint64_t *place;  /* by element: its element in the new shape; owned */
};

/* The map applied to a shape; the new shape is the least that holds every element. False: it is no such map. */
bool layout_make(const char *lambda, const int64_t *shape, uint32_t rank, struct layout *out);
/* Takes a larger new shape; false: it does not hold every element. */
bool layout_fit(struct layout *layout, const int64_t *shape, uint32_t rank);
/* first, then second; second's `from` is first's `to`. */
void layout_join(struct layout *first, const struct layout *second);
void layout_free(struct layout *layout);

#endif
