/* The final re-measurement: candidates that were measured one after another are timed again in slices that alternate,
 * so that a disturbance of the machine hits all finalists alike. */
#include "helper.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool open_finalist(struct jit_running *c, struct jit_packed *packed, const struct arena *arena,
                          struct jit_code *code) {
  ms_error err = {.instruction = -1};
  assert(code && !c->kernel);
  const struct jit_kernel *kernel = c->kernel = jit_load_on(code, arena->device, false, &err);
  if (!kernel) return false;
  size_t bytes = jit_kernel_workspace(kernel);
  if (!jit_pack(packed, kernel, arena->timed, false, NULL, &err)) return false;
  c->args = jit_packed_arguments(packed, arena->timed);
  c->workspace = bytes ? arena->memory->get(arena->device, bytes, &err) : NULL;
  if (!bytes) return true; /* else its pages are there before it is timed */
  return c->workspace && arena->memory->fill(arena->device, c->workspace, 0, bytes, &err);
}

/* Reads, builds and loads each trace; false: one of them cannot be. */
static bool open_all(const struct workload *w, const struct message *m, const struct arena *arena, uint32_t count,
                     struct jit_running *out, struct jit_packed *packed) {
  const uint8_t *at = m->data + sizeof(struct measure_finalists), *end = m->data + m->bytes;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bytes;
    if ((size_t)(end - at) < sizeof bytes) return false;
    memcpy(&bytes, at, sizeof bytes);
    at += sizeof bytes;
    if ((uint64_t)(end - at) < bytes) return false;
    struct jit_code *code = builder_compile(w, at, bytes);
    bool ok = code && open_finalist(&out[i], &packed[i], arena, code);
    jit_code_free(code);
    if (!ok) return false;
    at += bytes;
  }
  return true;
}

enum { WAIT_FOR_REFERENCE = 5000 }; /* microseconds, again and again */

void remeasure_main(struct channel *channel, const struct workloads *all, struct note *note) {
  struct message message;
  struct measure_finalists remeasure;
  struct jit_running loaded[JIT_MOST_FINALISTS] = {0};
  struct jit_packed packed[JIT_MOST_FINALISTS];
  struct jit_finalist finalists[JIT_MOST_FINALISTS];
  struct jit_timing timings[JIT_MOST_FINALISTS];
  struct arena arena;
  note->stage = STAGE_BUILDING;
  child_say_waiting(channel);
  if (channel_wait(channel, -1, &message) != 1 || message.bytes < sizeof remeasure) return;
  memcpy(&remeasure, message.data, sizeof remeasure);
  if (!remeasure.count || remeasure.count > JIT_MOST_FINALISTS || remeasure.task >= all->count) return;
  const struct workload *w = all->at[remeasure.task];
  const struct jit_backend *backend = jit_backend_of(&w->hello->target);
  struct jit_device *device;
  while (w->large && !w->made->settled) usleep(WAIT_FOR_REFERENCE); /* which knows where arguments come from */
  ms_error err = {.instruction = -1};
  if (!backend->open(&w->hello->target, 0, &device, &err) || !arena_open(&arena, w, backend, device, &err)) return;
  if (arena.lean && !device_reset(&arena, true, &err)) return;
  if (!open_all(w, &message, &arena, remeasure.count, loaded, packed)) return;
  if (backend->prepare) backend->prepare(&w->hello->target);
  for (uint32_t i = 0; i < remeasure.count; i++)
    finalists[i] = (struct jit_finalist){.sample = jit_sample, .turn = jit_running_turn, .data = &loaded[i]};
  note->stage = STAGE_TIMING;
  if (!jit_find_fastest(finalists, remeasure.count, remeasure.seconds, timings)) return;
  channel_send(channel, MEASURE_REMEASURED, timings, remeasure.count * sizeof *timings, NULL, 0);
  channel_drain(channel);
} /* the process ends here, and all that it holds */
