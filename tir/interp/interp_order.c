/* What happens before what in a cluster of blocks, between two barriers of all its threads: barriers in shared memory
 * say it, and, where there are several blocks, each block's.
 *
 * A thread has a time, which grows where it arrives, and knows of each other thread up to which time all that it did is
 * done: what the barriers whose phases it waited for have gathered of those that arrived. Of an element it is known who
 * wrote it last, and who read it since, at which of their times; of readers, those that no later one knows of. In
 * blocks without such barriers, many readers are one. Source: Lamport, "Time, clocks", CACM 1978; Flanagan, Freund,
 * "FastTrack", PLDI 2009. */
#include "interp.h"

#include <stdlib.h>
#include <string.h>

void interp_order_begin(struct machine *m, struct thread *threads, uint32_t count) {
  m->cluster_threads = count;
  m->clocks.count = m->readers.count = 0;
  for (uint32_t i = 0; i < count; i++) threads[i].time = 1, threads[i].known.count = 0;
}

bool interp_is_at_named(const struct machine *m, const struct thread *t, int64_t number) {
  return t->status == THREAD_AT_NAMED && interp_get(t, m->program->code.at[t->pc].a).i == number;
}

/* What who arrived knew in the phase that has not ended, or in those that have. */
static uint32_t *clock_of(const struct machine *m, uint32_t barrier, bool ended) {
  uint64_t first = (2 * (uint64_t)barrier + ended) * m->cluster_threads;
  assert(first + m->cluster_threads <= m->clocks.count);
  return m->clocks.at + first;
}

void interp_order_add(struct machine *m) {
  for (uint32_t i = 0; i < 2 * m->cluster_threads; i++) INTERP_PUSH(m->clocks, 0);
}

static void join(uint32_t *to, const uint32_t *from, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (from[i] > to[i]) to[i] = from[i];
}

void interp_order_arrive(struct machine *m, struct thread *t, uint32_t barrier) {
  uint32_t *gathered = clock_of(m, barrier, false);
  join(gathered, t->known.at, t->known.count);
  gathered[interp_number_of(t)] = t->time++;
}

void interp_order_end(struct machine *m, uint32_t barrier) {
  memcpy(clock_of(m, barrier, true), clock_of(m, barrier, false), m->cluster_threads * sizeof *m->clocks.at);
}

void interp_order_wait(struct machine *m, struct thread *t, uint32_t barrier) {
  while (t->known.count < m->cluster_threads) INTERP_PUSH(t->known, 0);
  join(t->known.at, clock_of(m, barrier, true), m->cluster_threads);
}

void interp_order_meet(struct machine *m, struct thread *threads, uint32_t count, int64_t number) {
  uint32_t *all = calloc(m->cluster_threads, sizeof *all);
  if (!all) abort();
  for (uint32_t i = 0; i < count; i++) {
    struct thread *t = &threads[i];
    if (number >= 0 && !interp_is_at_named(m, t, number)) continue;
    join(all, t->known.at, t->known.count);
    all[interp_number_of(t)] = t->time++;
  }
  for (uint32_t i = 0; i < count; i++) {
    struct thread *t = &threads[i];
    if (number >= 0 && !interp_is_at_named(m, t, number)) continue;
    while (t->known.count < m->cluster_threads) INTERP_PUSH(t->known, 0);
    join(t->known.at, all, m->cluster_threads);
  }
  free(all);
}

bool interp_knows(const struct thread *t, uint32_t who, uint32_t time) {
  return who < t->known.count && t->known.at[who] >= time;
}

static void keep_reader(struct machine *m, struct touch *touch) {
  for (uint32_t i = touch->others; i; i = m->readers.at[i - 1].next) {
    struct reader *r = &m->readers.at[i - 1];
    if (r->who != touch->reader) continue;
    r->time = touch->read_time;
    return;
  }
  const struct reader r = {touch->reader, touch->read_time, touch->others};
  INTERP_PUSH(m->readers, r);
  touch->others = m->readers.count;
}

void interp_order_read(struct machine *m, const struct thread *t, struct touch *touch, uint32_t who) {
  bool again = touch->read_epoch == m->epoch;
  if (!again) touch->others = 0;
  bool alone = !again || touch->reader == who || interp_knows(t, touch->reader, touch->read_time);
  bool ordered = m->in_kernel && (m->mbarriers.count || m->cluster > 1);
  if (!alone && ordered && touch->reader != MANY_THREADS) keep_reader(m, touch);
  touch->reader = alone || ordered ? who : MANY_THREADS;
  touch->read_epoch = m->epoch, touch->read_time = t->time;
}

bool interp_is_read_besides(const struct machine *m, const struct thread *t, const struct touch *touch) {
  if (touch->read_epoch != m->epoch) return false;
  for (uint32_t i = touch->others; i; i = m->readers.at[i - 1].next) {
    const struct reader *r = &m->readers.at[i - 1];
    if (r->who != interp_number_of(t) && !interp_knows(t, r->who, r->time)) return true;
  }
  return false;
}
