/* A task's candidates between submission and result, and the results of scheduled modules that were measured before. */
#ifndef MSCHED_HELPER_QUEUE_H
#define MSCHED_HELPER_QUEUE_H

#include "helper.h"

enum state { QUEUED, BUILDING, TWIN /* waits for another's result */, READY, RUNNING, DONE };

struct candidate {
  enum state state;
  uint8_t *trace, *object;
  size_t bytes, object_bytes;
  struct measure_run run;
  struct jit_result result;
  bool rebuilt, rerun; /* given to a fresh process, since the last one ended with it */
  uint32_t late;       /* how often its first run was ended as hopeless */
};

struct known { /* by hash of the scheduled module */
  uint64_t hash;
  const struct candidate *owner; /* the first that gave it; while there is no result */
  struct jit_result *result;     /* NULL: none yet */
  bool used;
};

struct queue {
  struct candidate **at; /* in order of submission */
  uint32_t first, count, capacity;
  uint32_t queued, building, ready; /* how many are in these states */
  struct known *known;
  uint32_t known_count, known_capacity;
};

void queue_add(struct queue *q, const struct measure_candidate *head, const void *trace, size_t bytes);
struct candidate *queue_next(const struct queue *q, enum state state); /* the first submitted; NULL: none */
void queue_move(struct queue *q, struct candidate *c, enum state state);
void queue_keep_object(struct candidate *c, const void *object, size_t bytes); /* copied */
bool queue_is_new(struct queue *q, const struct candidate *c); /* by result.module_hash; it is known from now on */
void queue_finish(struct queue *q, struct candidate *c);       /* its result is filled */
bool queue_take(struct queue *q, struct jit_result *out);      /* the next result in order of submission */

#endif
