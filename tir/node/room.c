/* Room for a module's arrays, and for what is kept beside it. */
#include "arena.h"

#include <stdlib.h>

void *tir_enlarge(void *at, uint32_t *capacity, uint64_t count, size_t size) {
  uint64_t room = *capacity ? *capacity : 64;
  while (room < count) room += room / 2 + 1;
  if (room > UINT32_MAX) room = UINT32_MAX;
  assert(count <= room && "an array of a module is past 2^32 elements");
  void *larger = realloc(at, room * size);
  if (!larger) abort();
  *capacity = (uint32_t)room;
  return larger;
}

void *tir_make_scratch(const struct tir *ir, enum tir_scratch_owner owner, const struct tir_scratch_kind *kind) {
  assert(owner < TIR_SCRATCH_OWNERS && kind->size > 0);
  struct tir_scratch_part *part = &ir->scratch->of[owner];
  assert(!part->at && (!part->kind || part->kind == kind));
  part->kind = kind;
  if (!(part->at = calloc(1, kind->size))) abort();
  return part->at;
}
