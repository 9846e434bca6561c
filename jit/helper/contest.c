/* The contest: candidates that were measured one after another are timed again in turn, so that what disturbs the
 * machine disturbs all alike. */
#include "../machine.h"
#include "helper.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct contender {
  struct jit_kernel *kernel;
  void *workspace, **args;
};

static void call(void *data) {
  const struct contender *c = data;
  jit_kernel_entry(c->kernel)(c->args, c->workspace);
}

static bool open_contender(struct contender *c, const struct arena *arena, struct jit_code *code) {
  ms_error err = {.instruction = -1};
  c->kernel = jit_load(code, &err);
  if (!c->kernel) return false;
  size_t bytes = jit_kernel_workspace(c->kernel);
  c->args = arena->pointers;
  c->workspace = bytes ? guarded_new(bytes) : NULL;
  if (c->workspace) memset(c->workspace, 0, bytes); /* its pages are there before it is timed */
  return !bytes || c->workspace;
}

/* Reads, builds and loads each trace; false: one of them cannot be. */
static bool open_all(const struct workload *w, const struct message *m, const struct arena *arena, uint32_t count,
                     struct contender *out) {
  const uint8_t *at = m->data + sizeof(struct measure_contest), *end = m->data + m->bytes;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bytes;
    if ((size_t)(end - at) < sizeof bytes) return false;
    memcpy(&bytes, at, sizeof bytes);
    at += sizeof bytes;
    if ((uint64_t)(end - at) < bytes) return false;
    struct jit_code *code = builder_compile(w, at, bytes);
    bool ok = code && open_contender(&out[i], arena, code);
    jit_code_free(code);
    if (!ok) return false;
    at += bytes;
  }
  return true;
}

void contest_main(struct channel *channel, const struct workloads *all, struct note *note) {
  struct message message;
  struct measure_contest contest;
  struct contender loaded[JIT_MOST_CONTENDERS] = {0};
  struct jit_contender contenders[JIT_MOST_CONTENDERS];
  struct jit_timing timings[JIT_MOST_CONTENDERS];
  struct arena arena;
  note->stage = STAGE_BUILDING;
  if (channel_wait(channel, -1, &message) != 1 || message.bytes < sizeof contest) return;
  memcpy(&contest, message.data, sizeof contest);
  if (!contest.count || contest.count > JIT_MOST_CONTENDERS || contest.task >= all->count) return;
  const struct workload *w = all->at[contest.task];
  arena_open(&arena, w);
  if (!open_all(w, &message, &arena, contest.count, loaded)) return;
  runner_prepare(w->hello->target.cores);
  for (uint32_t i = 0; i < contest.count; i++) contenders[i] = (struct jit_contender){call, &loaded[i]};
  note->stage = STAGE_TIMING;
  if (!jit_time_in_turn(contenders, contest.count, contest.seconds, timings)) return;
  channel_send(channel, MEASURE_CONTESTED, timings, contest.count * sizeof *timings, NULL, 0);
  channel_drain(channel);
} /* the process ends here, and all that it holds */
