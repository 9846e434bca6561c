/* Candidates between submission and result. */
#include "queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t bytes) {
  void *at = calloc(1, bytes ? bytes : 1);
  if (!at) abort();
  return at;
}

void queue_add(struct queue *q, const struct measure_candidate *head, const void *trace, size_t bytes) {
  assert(q && head && (trace || !bytes) && q->first + q->count <= q->capacity);
  if (q->first + q->count == q->capacity) {
    uint32_t capacity = q->count < q->capacity / 2 ? q->capacity : 2 * q->capacity + 64;
    struct candidate **at = allocate(capacity * sizeof(struct candidate *));
    if (q->count) memcpy(at, q->at + q->first, q->count * sizeof *at);
    free(q->at);
    q->at = at, q->first = 0, q->capacity = capacity;
  }
  struct candidate *c = allocate(sizeof *c);
  c->trace = allocate(bytes);
  memcpy(c->trace, trace, bytes);
  c->bytes = bytes;
  c->result.id = head->id;
  c->result.task = head->task;
  c->state = QUEUED;
  q->queued++;
  q->at[q->first + q->count++] = c;
}

struct candidate *queue_next(const struct queue *q, enum state state) {
  for (uint32_t i = 0; i < q->count; i++)
    if (q->at[q->first + i]->state == state) return q->at[q->first + i];
  return NULL;
}

static void count_state(struct queue *q, enum state state, uint32_t by) {
  if (state == QUEUED) q->queued += by;
  if (state == BUILDING) q->building += by;
  if (state == READY) q->ready += by;
}

void queue_move(struct queue *q, struct candidate *c, enum state state) {
  assert(c->state != DONE && c->state != TWIN); /* nothing comes after these but its result */
  assert(c->state != QUEUED || q->queued);
  assert(c->state != BUILDING || q->building);
  assert(c->state != READY || q->ready);
  count_state(q, c->state, -1u);
  count_state(q, state, 1);
  c->state = state;
}

void queue_keep_object(struct candidate *c, const void *object, size_t bytes) {
  assert(!c->object && c->state == BUILDING && (object || !bytes));
  c->object = allocate(bytes);
  memcpy(c->object, object, bytes);
  c->object_bytes = bytes;
}

/* ---- Modules ---- */

static struct known *place_of(const struct queue *q, uint64_t hash) {
  assert(q->known_capacity > q->known_count && !(q->known_capacity & (q->known_capacity - 1)));
  uint32_t i = (uint32_t)(hash * 0x9E3779B97F4A7C15u >> 32) & (q->known_capacity - 1);
  while (q->known[i].used && q->known[i].hash != hash) i = (i + 1) & (q->known_capacity - 1);
  return &q->known[i];
}

static void enlarge_known(struct queue *q) {
  struct known *old = q->known;
  uint32_t count = q->known_capacity;
  q->known_capacity = count ? 2 * count : 1024;
  q->known = allocate(q->known_capacity * sizeof *q->known);
  for (uint32_t i = 0; i < count; i++)
    if (old[i].used) *place_of(q, old[i].hash) = old[i];
  free(old);
}

bool queue_is_new(struct queue *q, const struct candidate *c) {
  if (2 * q->known_count >= q->known_capacity) enlarge_known(q);
  struct known *k = place_of(q, c->result.module_hash);
  if (k->used) return k->owner == c;
  *k = (struct known){.hash = c->result.module_hash, .owner = c, .used = true};
  q->known_count++;
  return true;
}

void queue_finish(struct queue *q, struct candidate *c) {
  queue_move(q, c, DONE);
  free(c->object);
  c->object = NULL;
  if (!c->result.module_hash || !q->known_capacity) return;
  struct known *k = place_of(q, c->result.module_hash);
  if (!k->used || k->owner != c) return;
  k->owner = NULL;
  k->result = allocate(sizeof *k->result);
  *k->result = c->result;
}

/* What another candidate of the same module has got. */
static bool answer_twin(const struct queue *q, struct candidate *c) {
  const struct known *k = place_of(q, c->result.module_hash);
  assert(k->used);
  if (!k->result) return false;
  uint64_t id = c->result.id;
  c->result = *k->result;
  c->result.id = id;
  c->result.repeated = true;
  c->result.build_seconds = c->result.check_seconds = c->result.time_seconds = 0;
  return true;
}

bool queue_take(struct queue *q, struct jit_result *out) {
  if (!q->count) return false;
  assert(q->first + q->count <= q->capacity);
  struct candidate *c = q->at[q->first];
  if (c->state != DONE && (c->state != TWIN || !answer_twin(q, c))) return false;
  *out = c->result;
  free(c->trace);
  free(c->object);
  free(c);
  q->first++;
  if (--q->count == 0) q->first = 0;
  return true;
}
