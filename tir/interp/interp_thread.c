/* Kernels of the reference interpreter: blocks of threads, or clusters of them, one after another, threads in turns.
 *
 * A thread runs until it ends or waits. When all wait at one barrier, or at one cross-thread reduction, they go on; so
 * do those of a warp, where it does something as one. What threads do between two barriers is at the same time: two
 * that touch one element there, one of them writing another value, are a race, whatever order the turns had. Blocks
 * have no order either, but for those of a cluster, which run side by side. */
#include "interp.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 4096 }; /* in a block */

int interp_thread_dim(const char *tag) {
  _Static_assert(THREAD_DIMS == (int)TIR_VTHREAD_X, "a dimension is an axis of blocks or threads");
  enum tir_axis axis = tir_axis_named(tag);
  return axis < TIR_VTHREAD_X ? (int)axis : -1;
}

/* ---- The life of a thread ---- */

bool interp_thread_init(struct machine *m, struct thread *t, const struct thread *from) {
  const struct program *p = m->program;
  uint32_t constants = p->constants.count, slots = p->slots.count + 1;
  memset(t, 0, sizeof *t);
  t->memory = interp_take_memory(m, from, ((uint64_t)constants + p->registers + 1) * sizeof(union value));
  t->views = interp_take_memory(m, from, slots * sizeof *t->views);
  t->own_views = interp_take_memory(m, from, slots * sizeof *t->own_views);
  t->own = interp_take_memory(m, from, slots * sizeof *t->own);
  if (!t->memory || !t->views || !t->own_views || !t->own) return false;
  t->regs = t->memory + constants;
  for (uint32_t i = 0; i < constants; i++) t->memory[constants - 1 - i] = p->constants.at[i];
  return true;
}

void interp_thread_free(struct machine *m, struct thread *t) {
  const struct program *p = m->program;
  for (uint32_t i = 0; t->own_views && i < p->slots.count; i++) free(t->own_views[i]);
  free(t->memory);
  free(t->views);
  free(t->own_views);
  free(t->own);
  free(t->coming.at);
  free(t->held.at);
  free(t->stored.at);
  free(t->ended.at);
  free(t->known.at);
  memset(t, 0, sizeof *t);
}

/* Starts a thread where the host is, of the block of this rank. */
static void start(struct machine *m, struct thread *t, const struct thread *host, uint32_t rank, uint32_t index,
                  const int64_t *block) {
  memcpy(t->regs, host->regs, m->program->registers * sizeof(union value));
  memcpy(t->views, host->views, m->program->slots.count * sizeof *t->views);
  t->pc = host->pc + 1;
  t->index = index, t->block = rank, t->first = rank * m->block_threads;
  t->leader = t - index % WARP;
  t->group = t - index % TIR_GROUP;
  t->status = THREAD_RUNNING;
  t->coming.count = t->groups = 0;
  t->held.count = t->product_groups = 0;
  t->stored.count = t->store_groups = 0;
  t->registers = 0, t->arrived = 0;
  memcpy(t->at, block, FIRST_THREAD_DIM * sizeof *block);
  t->at[TIR_BLOCK_X] += rank;
  for (int d = FIRST_THREAD_DIM; d < THREAD_DIMS; d++) {
    t->at[d] = index % m->extents[d];
    index = (uint32_t)(index / m->extents[d]);
  }
}

/* ---- Barriers ---- */

static bool is_same_group(const struct thread *a, const struct thread *b, uint32_t reduced) {
  for (int d = FIRST_THREAD_DIM; d < THREAD_DIMS; d++)
    if (!(reduced >> d & 1) && a->at[d] != b->at[d]) return false;
  return true;
}

/* Joins the values of the threads of `first`'s group in order of their numbers, and gives all the result. */
static bool reduce_group(struct machine *m, struct thread *threads, uint32_t count, uint32_t first) {
  struct thread *t = &threads[first];
  uint32_t waiting = t->pc;
  const struct instruction *in = &m->program->code.at[waiting];
  const struct site *site = &m->program->sites.at[in->a];
  uint32_t reduced = (uint32_t)in->b;
  for (uint32_t i = first + 1; i < count; i++) {
    if (!is_same_group(t, &threads[i], reduced)) continue;
    memcpy(t->regs + in->c, threads[i].regs + in->dst, site->count * sizeof(union value));
    t->pc = site->entry;
    if (interp_execute(m, t) == THREAD_FAILED) return false;
  }
  for (uint32_t i = first + 1; i < count; i++)
    if (is_same_group(t, &threads[i], reduced))
      memcpy(threads[i].regs + in->dst, t->regs + in->dst, site->count * sizeof(union value));
  t->pc = waiting;
  return true;
}

static bool reduce(struct machine *m, struct thread *threads, uint32_t count) {
  uint32_t reduced = (uint32_t)m->program->code.at[threads[0].pc].b;
  for (uint32_t i = 0; i < count; i++) {
    bool first = true;
    for (int d = FIRST_THREAD_DIM; d < THREAD_DIMS; d++)
      first = first && (!(reduced >> d & 1) || threads[i].at[d] == 0);
    if (first && !reduce_group(m, threads, count, i)) return false;
  }
  return true;
}

/* Gives each thread of a warp what its partner brings. */
static bool exchange(struct machine *m, struct thread *warp, uint32_t count) {
  const struct instruction *in = &m->program->code.at[warp->pc];
  union value brought[WARP];
  assert(count <= WARP);
  for (uint32_t i = 0; i < count; i++) brought[i] = interp_get(&warp[i], in->a);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t partner = i ^ (uint64_t)interp_get(&warp[i], in->b).i;
    if (partner >= count)
      return interp_fail(m, &warp[i], MS_RUN_BARRIER, "thread %u takes a value of one that its warp does not have",
                         warp[i].index);
    warp[i].regs[in->dst] = brought[partner];
  }
  return true;
}

/* How many threads synchronize where this one waits: its warp, or its warp group. */
static uint32_t threads_to_meet(const struct machine *m, const struct thread *t) {
  const struct instruction *in = &m->program->code.at[t->pc];
  return t->status == THREAD_AT_WARP && in->op == OP_WARP ? (uint32_t)in->a : WARP;
}

/* Lets a warp or warp group go on whose threads all wait at one place of its own. That orders nothing but what they do
 * as one: memory that others see is raced for as before. *any: one goes on. */
static bool meet_warps(struct machine *m, struct thread *threads, uint32_t count, bool *any) {
  *any = false;
  for (uint32_t first = 0; first < count; first += WARP) {
    uint32_t size = threads_to_meet(m, &threads[first]), end = first + size < count ? first + size : count;
    bool together = first % size == 0;
    for (uint32_t i = first; i < end; i++)
      together = together && threads[i].status == THREAD_AT_WARP && threads[i].pc == threads[first].pc;
    if (!together) continue;
    bool shuffles = m->program->code.at[threads[first].pc].op == OP_SHUFFLE;
    if (shuffles && !exchange(m, &threads[first], end - first)) return false;
    for (uint32_t i = first; i < end; i++) {
      threads[i].pc++;
      threads[i].status = THREAD_RUNNING;
    }
    *any = true;
  }
  return true;
}

/* Lets the threads go on that wait at one barrier with a number, in one place, where they are, with those who arrived
 * there, as many as it says. Who arrives orders nothing. *any: some do. */
static bool meet_named(struct machine *m, struct thread *threads, uint32_t count, bool *any) {
  for (int64_t number = 0; number < TIR_NAMED_BARRIERS && !*any; number++) {
    const struct thread *first = NULL;
    int64_t come = 0, expected = 0;
    for (uint32_t i = 0; i < count; i++) {
      if (!interp_is_at_named(m, &threads[i], number)) continue;
      int64_t said = interp_get(&threads[i], m->program->code.at[threads[i].pc].b).i;
      if (!first) first = &threads[i], expected = said;
      if (said != expected || said < 1 || said % WARP || threads[i].pc != first->pc)
        return interp_fail(m, &threads[i], MS_RUN_BARRIER,
                           "thread %u waits here, for %lld; thread %u waits elsewhere, or for others", threads[i].index,
                           (long long)said, first->index);
      come++;
    }
    for (uint32_t i = 0; i < count && come; i++) {
      if (!(threads[i].arrived >> number & 1)) continue;
      if (threads[i].arrived_for != expected)
        return interp_fail(m, first, MS_RUN_BARRIER, "thread %u waits here, for %lld; thread %u arrived for %lld",
                           first->index, (long long)expected, i, (long long)threads[i].arrived_for);
      come++;
    }
    if (!come || come != expected) continue;
    interp_order_meet(m, threads, count, number);
    for (uint32_t i = 0; i < count; i++) {
      threads[i].arrived &= ~(1u << number);
      if (interp_is_at_named(m, &threads[i], number)) threads[i].pc++, threads[i].status = THREAD_RUNNING;
    }
    *any = true;
  }
  return true;
}

/* Threads that wait for phases of barriers in shared memory look again, and where none can go on, what copies bring
 * arrives. *any: one goes on. */
static bool end_phases(struct machine *m, struct thread *threads, uint32_t count, bool *any) {
  struct thread *waits = NULL;
  bool delivered = false;
  *any = false;
  for (uint32_t i = 0; i < count; i++) {
    bool ended = false;
    if (threads[i].status != THREAD_AT_PHASE) continue;
    const struct instruction *in = &m->program->code.at[threads[i].pc];
    if (!interp_is_phase_over(m, &threads[i], interp_get(&threads[i], in->a).i, interp_get(&threads[i], in->b).i,
                              &ended))
      return false;
    if (ended)
      threads[i].status = THREAD_RUNNING, *any = true;
    else
      waits = &threads[i];
  }
  if (*any || !waits) return true;
  if (!interp_deliver_boxes(m, waits, &delivered)) return false;
  *any = delivered;
  return delivered || interp_fail_phase(m, waits);
}

/* All threads of the block wait at one place where a block synchronizes. */
static bool are_together(const struct thread *threads, uint32_t count) {
  bool together = threads[0].status == THREAD_AT_BARRIER || threads[0].status == THREAD_AT_REDUCE;
  for (uint32_t i = 1; i < count && together; i++)
    together = threads[i].status == threads[0].status && threads[i].pc == threads[0].pc;
  return together;
}

/* Each thread of the block has ended or waits. Lets them go on together, or refuses; *any: they do. What the threads of
 * a block alone do at a barrier is ordered for them alone. */
static bool meet(struct machine *m, struct thread *threads, uint32_t count, bool *any) {
  bool over = true;
  for (uint32_t i = 0; i < count; i++) over = over && threads[i].status == THREAD_DONE;
  for (uint32_t i = 0; i < count && over; i++)
    if (threads[i].arrived)
      return interp_fail(m, &threads[i], MS_RUN_BARRIER, "thread %u arrived at a barrier where nobody waits",
                         threads[i].index);
  if (over) m->over |= 1u << threads[0].block;
  if (over) return true;
  for (uint32_t i = 0; i < count; i++)
    if (threads[i].status != threads[0].status || threads[i].pc != threads[0].pc ||
        threads[i].status == THREAD_AT_NAMED) {
      const struct thread *waits = threads[0].status == THREAD_DONE ? &threads[i] : &threads[0];
      return interp_fail(
          m, waits, MS_RUN_BARRIER, "thread %u waits here; thread %u %s", waits->index, waits == &threads[0] ? i : 0,
          threads[i].status == THREAD_DONE || threads[0].status == THREAD_DONE ? "has ended" : "waits elsewhere");
    }
  if (threads[0].status == THREAD_AT_CLUSTER) return true;
  if (threads[0].status == THREAD_AT_REDUCE && !reduce(m, threads, count)) return false;
  if (threads[0].status == THREAD_AT_BARRIER && m->cluster > 1) interp_order_meet(m, threads, count, -1);
  if (threads[0].status == THREAD_AT_BARRIER && m->cluster == 1) m->epoch++;
  for (uint32_t i = 0; i < count; i++) {
    threads[i].pc++;
    threads[i].status = THREAD_RUNNING;
  }
  return *any = true;
}

/* Lets a cluster's threads go on that all wait at one barrier of it. *any: they do. */
static void meet_cluster(struct machine *m, struct thread *threads, uint32_t count, bool *any) {
  bool together = true;
  for (uint32_t i = 0; i < count && together; i++)
    together = threads[i].status == THREAD_AT_CLUSTER && threads[i].pc == threads[0].pc;
  if (!together) return;
  m->epoch++;
  for (uint32_t i = 0; i < count; i++) threads[i].pc++, threads[i].status = THREAD_RUNNING;
  *any = true;
}

/* ---- A kernel ---- */

/* Nobody runs. Lets threads go on: of a warp, of a block, of the cluster; or refuses. */
static bool go_on(struct machine *m, struct thread *threads, uint32_t count) {
  bool any = false, more;
  uint32_t all = count * m->cluster;
  for (uint32_t i = 0; i < all; i += count) {
    if (!meet_warps(m, &threads[i], count, &more)) return false;
    any |= more;
  }
  for (uint32_t i = 0; i < all && !any; i += count)
    if (!meet_named(m, &threads[i], count, &any)) return false;
  /* A block that waits by itself does not wait for what others of its cluster wait for. */
  for (uint32_t i = 0; i < all && !any && m->cluster > 1; i += count)
    if (are_together(&threads[i], count) && !meet(m, &threads[i], count, &any)) return false;
  if (!any) meet_cluster(m, threads, all, &any);
  if (!any && !end_phases(m, threads, all, &any)) return false;
  if (any) return true;
  for (uint32_t i = 0; i < all; i += count)
    if (!meet(m, &threads[i], count, &any)) return false;
  for (uint32_t i = 0; i < all && !any; i += count)
    if (threads[i].status == THREAD_AT_CLUSTER)
      return interp_fail(m, &threads[i], MS_RUN_BARRIER,
                         "thread %u waits for a cluster whose threads do not all come here", threads[i].index);
  return true;
}

/* The blocks from this one on, as many as a cluster has. */
static bool run_cluster(struct machine *m, struct thread *threads, uint32_t count, const struct thread *host,
                        const int64_t *block) {
  uint32_t all = count * m->cluster;
  m->block_epoch = ++m->epoch;
  m->block_threads = count, m->over = 0;
  interp_begin_boxes(m, threads, all);
  for (uint32_t i = 0; i < all; i++) start(m, &threads[i], host, i / count, i % count, block);
  while (m->over + 1 != 1u << m->cluster) {
    for (uint32_t i = 0; i < all; i++)
      if (threads[i].status == THREAD_RUNNING && interp_execute(m, &threads[i]) == THREAD_FAILED) return false;
    if (!go_on(m, threads, count)) return false;
  }
  for (uint32_t i = 0; i < all; i += count)
    if (!interp_check_registers(m, &threads[i], count)) return false;
  return interp_end_stores(m, threads, all) && interp_end_boxes(m, threads, all);
}

static bool run_grid(struct machine *m, struct thread *threads, uint32_t count, const struct thread *host) {
  const int64_t *extents = m->extents;
  for (int64_t z = 0; z < extents[2]; z++)
    for (int64_t y = 0; y < extents[1]; y++)
      for (int64_t x = 0; x < extents[0]; x += m->cluster)
        if (!run_cluster(m, threads, count, host, (int64_t[]){x, y, z})) return false;
  return true;
}

/* Drops what the kernel allocated: objects from `first` on. */
static void end_memory(struct machine *m, struct thread *host, uint32_t first) {
  memset(m->shared, 0, m->program->slots.count * (size_t)m->cluster * sizeof *m->shared);
  interp_objects_free(m, first);
  interp_unwatch(m, host);
}

bool interp_run_kernel(struct machine *m, struct thread *host, const struct site *site) {
  uint64_t count = 1;
  for (int d = 0; d < THREAD_DIMS; d++) {
    m->extents[d] = interp_get(host, m->program->lists.at[site->args.first + (uint32_t)d]).i;
    if (m->extents[d] <= 0) return true;
    if (d >= FIRST_THREAD_DIM) count *= m->extents[d] > MOST_THREADS ? MOST_THREADS + 1 : (uint64_t)m->extents[d];
  }
  if (count > MOST_THREADS)
    return interp_fail(m, host, MS_RUN_NEEDS_THREADS, "a block has more than %d threads", MOST_THREADS);
  m->cluster = site->count;
  assert(m->cluster && m->cluster <= TIR_CLUSTER_MOST && m->extents[0] % m->cluster == 0);
  uint64_t all = count * m->cluster;
  struct thread *threads = calloc(all, sizeof *threads);
  if (!threads) abort();
  uint64_t used = m->memory_used;
  uint32_t objects = m->objects.count;
  bool ok = interp_watch(m, host);
  for (uint64_t i = 0; ok && i < all; i++) ok = interp_thread_init(m, &threads[i], host);
  m->in_kernel = true;
  m->grid_epoch = m->epoch + 1;
  ok = ok && run_grid(m, threads, (uint32_t)count, host);
  m->in_kernel = false;
  for (uint64_t i = 0; i < all; i++) interp_thread_free(m, &threads[i]);
  free(threads);
  end_memory(m, host, objects);
  m->memory_used = used;
  return ok;
}
