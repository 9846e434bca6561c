/* Traces that hold the same share their steps: of a space's candidates most do, but for their decisions. */
#include "steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SLOTS = 1 << 12, MOST = SLOTS / 2 };

struct vm_shared {
  struct vm_steps *slots[SLOTS]; /* open addressing */
  uint64_t hashes[SLOTS];
  uint32_t count;
};

struct vm_shared *vm_shared_new(void) {
  return vm_new(sizeof(struct vm_shared));
}

static void empty(struct vm_shared *shared) {
  for (uint32_t i = 0; i < SLOTS; i++) {
    vm_steps_release(shared->slots[i]);
    shared->slots[i] = NULL;
  }
  shared->count = 0;
}

void vm_shared_free(struct vm_shared *shared) {
  if (!shared) return;
  empty(shared);
  free(shared);
}

static uint64_t hash_of(const struct vm_steps *s) {
  uint64_t hash = XXH3_64bits_withSeed(s->text, s->text_size, s->next_draw);
  hash = XXH3_64bits_withSeed(s->values, s->value_count * sizeof *s->values, hash);
  return XXH3_64bits_withSeed(s->instructions, s->count * sizeof *s->instructions, hash);
}

static bool same_bytes(const void *a, const void *b, size_t size) { return !size || !memcmp(a, b, size); }

static bool are_same(const struct vm_steps *a, const struct vm_steps *b) {
  return a->count == b->count && a->value_count == b->value_count && a->text_size == b->text_size &&
         a->variables == b->variables && a->decisions == b->decisions && a->next_draw == b->next_draw &&
         same_bytes(a->instructions, b->instructions, a->count * sizeof *a->instructions) &&
         same_bytes(a->values, b->values, a->value_count * sizeof *a->values) &&
         same_bytes(a->text, b->text, a->text_size) && same_bytes(a->types, b->types, a->variables);
}

void vm_share_steps(struct vm_shared *shared, struct vm_trace *trace) {
  struct vm_steps *own = trace->steps;
  uint64_t hash = hash_of(own);
  if (shared->count == MOST) empty(shared);
  uint32_t at = hash & (SLOTS - 1);
  for (; shared->slots[at]; at = (at + 1) & (SLOTS - 1)) {
    if (shared->slots[at] == own) return;
    if (shared->hashes[at] != hash || !are_same(shared->slots[at], own)) continue;
    trace->steps = vm_steps_retain(shared->slots[at]);
    vm_steps_release(own);
    return;
  }
  shared->slots[at] = vm_steps_retain(own);
  shared->hashes[at] = hash;
  shared->count++;
  assert(shared->count <= MOST);
}
