/* Packed traces: the steps of another trace, what is added to these, and decisions. Of a space's candidates each has
 * the steps of its sketch, those that postprocessors added, and these are a tenth of all. */
#include "steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SLOTS = 1 << 12, MOST = SLOTS / 2, PARTS = 4 };

/* What packed traces add to the same steps; nothing but `whole` changes. */
struct added {
  uint32_t references;    /* changed atomically */
  struct vm_steps *whole; /* these steps unpacked; NULL: nobody has asked. Set once, atomically */
  struct vm_steps *head;  /* what it is added to; NULL: to nothing */
  struct vm_steps all;    /* numbers of the whole; no arrays */
  uint64_t hash;
  size_t size;
  uint8_t bytes[]; /* its part of each array, one after the other */
};

struct vm_packed {
  struct added *added;
  int64_t decisions[]; /* then, a byte each, what is decided */
};

struct vm_shared {
  struct added *slots[SLOTS]; /* open addressing */
  uint32_t count;
  struct vm_text bytes; /* of the trace at hand */
};

/* ---- Arrays of steps ---- */

struct part {
  const void *at;
  size_t size;
};

/* NULL: of no steps. */
static void find_parts(const struct vm_steps *s, struct part parts[PARTS]) {
  memset(parts, 0, PARTS * sizeof *parts);
  if (!s) return;
  parts[0] = (struct part){s->values, s->value_count * sizeof *s->values};
  parts[1] = (struct part){s->instructions, s->count * sizeof *s->instructions};
  parts[2] = (struct part){s->text, s->text_size};
  parts[3] = (struct part){s->types, s->variables};
}

static bool same_bytes(const void *a, const void *b, size_t size) { return !size || !memcmp(a, b, size); }

static bool begins_with(const struct vm_steps *s, const struct vm_steps *head) {
  struct part whole[PARTS], first[PARTS];
  find_parts(s, whole), find_parts(head, first);
  for (int p = 0; p < PARTS; p++)
    if (first[p].size > whole[p].size || !same_bytes(whole[p].at, first[p].at, first[p].size)) return false;
  return true;
}

/* ---- What is added ---- */

static void release(struct added *a) {
  if (!a || __atomic_sub_fetch(&a->references, 1, __ATOMIC_ACQ_REL)) return;
  vm_steps_release(a->whole);
  vm_steps_release(a->head);
  free(a);
}

struct vm_shared *vm_shared_new(void) {
  return vm_new(sizeof(struct vm_shared));
}

static void empty(struct vm_shared *shared) {
  for (uint32_t i = 0; i < SLOTS; i++) {
    release(shared->slots[i]);
    shared->slots[i] = NULL;
  }
  shared->count = 0;
}

void vm_shared_free(struct vm_shared *shared) {
  if (!shared) return;
  empty(shared);
  free(shared->bytes.at);
  free(shared);
}

static bool is_same(const struct added *a, const struct vm_steps *head, const struct vm_steps *all,
                    const struct vm_text *bytes, uint64_t hash) {
  return a->hash == hash && a->head == head && a->size == bytes->size && a->all.decisions == all->decisions &&
         a->all.next_draw == all->next_draw && a->all.count == all->count && a->all.value_count == all->value_count &&
         a->all.text_size == all->text_size && same_bytes(a->bytes, bytes->at, bytes->size);
}

static struct added *new_added(struct vm_steps *head, const struct vm_steps *all, const struct vm_text *bytes,
                               uint64_t hash) {
  struct added *a = vm_new(sizeof *a + bytes->size);
  a->references = 1, a->hash = hash, a->size = bytes->size;
  a->head = head ? vm_steps_retain(head) : NULL;
  a->all.references = 1;
  vm_steps_copy_numbers(&a->all, all);
  if (a->size) memcpy(a->bytes, bytes->at, a->size);
  return a;
}

/* What the steps add to the head: the same as an earlier trace added, where it is the same. The caller's. */
static struct added *find_added(struct vm_shared *shared, const struct vm_steps *all, struct vm_steps *head) {
  struct part whole[PARTS], first[PARTS];
  struct vm_text *bytes = &shared->bytes;
  find_parts(all, whole), find_parts(head, first);
  bytes->size = 0;
  for (int p = 0; p < PARTS; p++)
    if (whole[p].size > first[p].size)
      vm_put(bytes, (const char *)whole[p].at + first[p].size, whole[p].size - first[p].size);
  uint64_t hash = XXH3_64bits_withSeed(bytes->at, bytes->size, all->next_draw);
  if (shared->count == MOST) empty(shared);
  uint32_t at = hash & (SLOTS - 1);
  for (; shared->slots[at]; at = (at + 1) & (SLOTS - 1)) {
    if (!is_same(shared->slots[at], head, all, bytes, hash)) continue;
    __atomic_add_fetch(&shared->slots[at]->references, 1, __ATOMIC_RELAXED);
    return shared->slots[at];
  }
  struct added *made = shared->slots[at] = new_added(head, all, bytes, hash);
  made->references = 2; /* the slot's, too */
  shared->count++;
  assert(shared->count <= MOST);
  return made;
}

/* ---- Packing ---- */

struct vm_packed *vm_pack(struct vm_shared *shared, const struct vm_trace *trace, const struct vm_trace *head) {
  const struct vm_steps *s = trace->steps;
  struct vm_packed *packed = vm_new(sizeof *packed + s->decisions * (sizeof *packed->decisions + 1));
  packed->added = find_added(shared, s, begins_with(s, head->steps) ? head->steps : NULL);
  if (!s->decisions) return packed;
  memcpy(packed->decisions, trace->decisions, s->decisions * sizeof *packed->decisions);
  memcpy(packed->decisions + s->decisions, trace->decided, s->decisions);
  return packed;
}

void vm_packed_free(struct vm_packed *packed) {
  if (!packed) return;
  release(packed->added);
  free(packed);
}

size_t vm_packed_bytes(const struct vm_packed *packed) {
  return sizeof *packed + packed->added->all.decisions * (sizeof *packed->decisions + 1);
}

/* An array of the whole, of what the head has and what is added, which *from goes over. */
static void *join(struct part first, size_t size, const uint8_t **from) {
  assert(first.size <= size);
  uint8_t *to = malloc(size + 1);
  if (!to) abort();
  if (first.size) memcpy(to, first.at, first.size);
  if (size > first.size) memcpy(to + first.size, *from, size - first.size);
  *from += size - first.size;
  return to;
}

static struct vm_steps *unpack_steps(const struct added *a) {
  struct part first[PARTS];
  const uint8_t *from = a->bytes;
  struct vm_steps *s = vm_new(sizeof *s);
  *s = a->all;
  find_parts(a->head, first);
  s->values = join(first[0], s->value_count * sizeof *s->values, &from);
  s->instructions = join(first[1], s->count * sizeof *s->instructions, &from);
  s->text = join(first[2], s->text_size, &from);
  s->types = join(first[3], s->variables, &from);
  s->value_capacity = s->value_count, s->instruction_capacity = s->count;
  s->text_capacity = s->text_size, s->variable_capacity = s->variables;
  assert(from == a->bytes + a->size);
  return s;
}

/* Of two threads that ask at once, one's are the steps. */
static struct vm_steps *steps_of(struct added *a) {
  struct vm_steps *had = __atomic_load_n(&a->whole, __ATOMIC_ACQUIRE);
  if (had) return had;
  struct vm_steps *made = unpack_steps(a);
  if (__atomic_compare_exchange_n(&a->whole, &had, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
  vm_steps_release(made);
  return had;
}

struct vm_trace *vm_unpack(const struct vm_packed *packed) {
  struct vm_trace *trace = vm_new(sizeof *trace);
  vm_trace_adopt(trace, steps_of(packed->added));
  uint32_t count = trace->steps->decisions;
  if (!count) return trace;
  memcpy(trace->decisions, packed->decisions, count * sizeof *trace->decisions);
  memcpy(trace->decided, packed->decisions + count, count);
  return trace;
}
