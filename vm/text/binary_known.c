/* Whether binary forms decode, of very many. Of most, the bytes of the steps are those of one before them that decoded:
 * these are known by their length and hash, and only the decisions are looked at. */
#include "vm/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { SETS = 8192, WAYS = 4 };
static const size_t LONGEST = (size_t)1 << 16; /* bytes of steps that are kept */

struct known {
  uint64_t group;
  XXH128_hash_t hash; /* of the steps' bytes */
  uint32_t length, count;
  uint8_t *draws; /* a bit for each of `count` instructions: whether it draws. NULL: nothing is known here */
};

struct vm_binary_checker {
  struct known known[SETS][WAYS];
  uint8_t next[SETS]; /* the way that another takes the place of */
  bool any;           /* else none of it was touched: most stores that are checked are small */
};

struct vm_binary_checker *vm_binary_checker_new(void) {
  struct vm_binary_checker *c = calloc(1, sizeof *c);
  if (!c) abort();
  return c;
}

void vm_binary_checker_free(struct vm_binary_checker *c) {
  if (!c) return;
  for (int set = 0; c->any && set < SETS; set++)
    for (int way = 0; way < WAYS; way++)
      if (c->known[set][way].draws) free(c->known[set][way].draws);
  free(c);
}

static uint32_t set_of(uint64_t group) { return (uint32_t)(XXH3_64bits(&group, sizeof group) % SETS); }

static bool has_steps(const struct known *k, const void *bytes, size_t length) {
  return k->draws && k->length <= length && XXH128_isEqual(k->hash, XXH3_128bits(bytes, k->length));
}

static void keep(struct known *k, uint64_t group, const void *bytes, size_t length, const struct vm_steps *steps) {
  free(k->draws);
  *k = (struct known){group, XXH3_128bits(bytes, length), (uint32_t)length, steps->count,
                      calloc(steps->count / 8 + 1, 1)};
  if (!k->draws) abort();
  for (uint32_t i = 0; i < steps->count; i++)
    if (steps->instructions[i].draw != VM_NO_DRAW) k->draws[i / 8] |= (uint8_t)(1 << i % 8);
}

bool vm_check_next_binary(struct vm_binary_checker *c, uint64_t group, const void *bytes, size_t length) {
  assert(c && (bytes || !length));
  uint32_t set = set_of(group);
  for (int way = 0; way < WAYS; way++) {
    const struct known *k = &c->known[set][way];
    if (k->group == group && has_steps(k, bytes, length))
      return vm_check_binary_decisions(k->draws, k->count, (const uint8_t *)bytes + k->length, length - k->length);
  }
  size_t steps;
  struct vm_trace *trace = vm_read_binary_parts(bytes, length, &steps, NULL);
  if (!trace) return false;
  if (steps <= LONGEST) {
    keep(&c->known[set][c->next[set]++ % WAYS], group, bytes, steps, trace->steps);
    c->any = true;
  }
  vm_trace_free(trace);
  return true;
}
