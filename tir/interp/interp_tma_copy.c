/* TMA bulk tensor copies, and the mbarriers that wait for them: calls by name, each by one thread.
 *
 * A copy arrives as late as can be, when no thread can go on without it. Until then its elements have no value, and a
 * thread that touches them is refused; so is a thread that reads them later without having waited for the phase itself.
 * A phase ends when as many threads have arrived as the barrier counts, and all the bytes that they announced. */
#include "interp.h"

#include <string.h>

static int64_t whole(const struct tir_extern_call *call, uint32_t arg) { return tir_call_value(call, arg).integer; }

static struct object *pointed(struct machine *m, int64_t pointer, int64_t *byte) {
  uint64_t number = ((uint64_t)pointer >> 40) - 1;
  *byte = pointer & 0xFFFFFFFFFF;
  return number < m->objects.count && (uint64_t)*byte < m->objects.at[number]->bytes ? m->objects.at[number] : NULL;
}

/* The barrier's number; UINT32_MAX: there is none, or it was made without the thread knowing of it. */
static uint32_t find_barrier(struct machine *m, struct thread *t, int64_t pointer) {
  int64_t byte;
  struct object *o = pointed(m, pointer, &byte);
  for (uint32_t i = 0; o && i < m->mbarriers.count; i++) {
    const struct mbarrier *b = &m->mbarriers.at[i];
    if (b->object != o || b->element != byte / o->size) continue;
    return !o->touches || interp_touch_read(m, t, o, b->element, TIR_NONE) ? i : UINT32_MAX;
  }
  if (!m->failed) interp_fail(m, t, MS_RUN_BARRIER, "a barrier in shared memory is used that was not initialized");
  return UINT32_MAX;
}

/* The first argument's. */
static struct mbarrier *barrier_of(struct tir_extern_call *call, uint32_t arg, uint32_t *number) {
  *number = UINT32_MAX;
  if (!call->machine->in_kernel) {
    tir_call_fail(call, "it stands outside of a kernel");
    return NULL;
  }
  *number = find_barrier(call->machine, call->thread, interp_call_pointer(call, arg));
  call->failed = *number == UINT32_MAX;
  return call->failed ? NULL : &call->machine->mbarriers.at[*number];
}

static bool has_arguments(struct tir_extern_call *call, uint32_t count) {
  return tir_call_count(call) == count ||
         tir_call_fail(call, "%u arguments instead of %u", tir_call_count(call), count);
}

/* (at, count) */
bool interp_do_mbarrier_init(struct tir_extern_call *call, void *data) {
  (void)data;
  struct machine *m = call->machine;
  int64_t byte, count = has_arguments(call, 2) ? whole(call, 1) : 0;
  if (call->failed) return false;
  struct object *o = pointed(m, interp_call_pointer(call, 0), &byte);
  if (!m->in_kernel || !o || count < 1 || count > UINT16_MAX) return tir_call_fail(call, "there is no such barrier");
  for (uint32_t i = 0; i < m->mbarriers.count; i++)
    if (m->mbarriers.at[i].object == o && m->mbarriers.at[i].element == byte / o->size)
      return tir_call_fail(call, "a barrier is initialized twice");
  const struct mbarrier b = {
      .object = o, .element = byte / o->size, .count = (uint32_t)count, .pending = (uint32_t)count};
  INTERP_PUSH(m->mbarriers, b);
  interp_order_add(m);
  return tir_call_store(call, 0, 0, (struct tir_value){.type = interp_call_type(call, 0), .integer = count});
}

/* A phase that nothing is missing of ends. */
static void end_phase(struct machine *m, uint32_t number) {
  struct mbarrier *b = &m->mbarriers.at[number];
  if (b->pending || b->bytes) return;
  b->phase++;
  b->pending = b->count;
  interp_order_end(m, number);
}

/* The same place of another block's memory, of this rank in the cluster, for the pointer of an argument. False: it has
 * no such memory yet, or no more. */
static bool aim_at(struct tir_extern_call *call, uint32_t arg, int64_t pointer, int64_t rank) {
  const struct machine *m = call->machine;
  uint32_t slots = m->program->slots.count, slot = 0;
  int64_t byte;
  const struct object *o = pointed(call->machine, pointer, &byte);
  struct object *const *own = m->shared + (size_t)call->thread->block * slots;
  if (!m->in_kernel) return tir_call_fail(call, "it stands outside of a kernel");
  while (slot < slots && (!o || own[slot] != o)) slot++;
  if (slot == slots) return tir_call_fail(call, "it names no memory of a block");
  if (rank < 0 || rank >= m->cluster)
    return tir_call_fail(call, "the cluster has no block %lld, but %u", (long long)rank, m->cluster);
  const struct object *other = m->shared[(size_t)rank * slots + slot];
  if (!other || other->life != m->block_epoch)
    return tir_call_fail(call, "block %lld of the cluster has not begun", (long long)rank);
  if (m->over >> rank & 1) return tir_call_fail(call, "block %lld of the cluster has ended", (long long)rank);
  interp_call_aim(call, arg, interp_pointer(other->index, byte));
  return true;
}

/* What the thread does in the block of this rank is done before that ends. */
static void note_distant(const struct tir_extern_call *call, int64_t rank) {
  struct machine *m = call->machine;
  const struct thread *t = call->thread;
  const struct distant d = {interp_number_of(t), t->time, m->epoch, (uint32_t)rank};
  if (d.block != t->block) INTERP_PUSH(m->distant, d);
}

static bool arrive_with(struct tir_extern_call *call, int64_t bytes) {
  uint32_t number;
  struct mbarrier *b = barrier_of(call, 0, &number);
  if (!b) return false;
  if (!b->pending) return tir_call_fail(call, "more threads arrive than a phase counts");
  b->pending--;
  b->bytes += bytes;
  interp_order_arrive(call->machine, call->thread, number);
  end_phase(call->machine, number);
  return true;
}

/* (at, bytes) */
bool interp_do_mbarrier_expect(struct tir_extern_call *call, void *data) {
  (void)data;
  return has_arguments(call, 2) && arrive_with(call, whole(call, 1));
}

/* (at) */
bool interp_do_mbarrier_arrive(struct tir_extern_call *call, void *data) {
  (void)data;
  return has_arguments(call, 1) && arrive_with(call, 0);
}

/* (at, block) */
bool interp_do_mbarrier_arrive_at(struct tir_extern_call *call, void *data) {
  (void)data;
  int64_t own = has_arguments(call, 2) ? interp_call_pointer(call, 0) : 0;
  if (call->failed || !aim_at(call, 0, own, whole(call, 1))) return false;
  note_distant(call, whole(call, 1));
  bool ok = arrive_with(call, 0);
  interp_call_aim(call, 0, own);
  return ok;
}

/* (at, block) */
bool interp_do_cluster_load(struct tir_extern_call *call, void *data) {
  (void)data;
  struct tir_value value;
  int64_t own = has_arguments(call, 2) ? interp_call_pointer(call, 0) : 0;
  if (call->failed || !aim_at(call, 0, own, whole(call, 1))) return false;
  note_distant(call, whole(call, 1));
  bool ok = tir_call_load(call, 0, 0, &value);
  interp_call_aim(call, 0, own);
  if (ok) tir_call_return(call, value);
  return ok;
}

/* Memory is one here. */
bool interp_do_mbarrier_fence(struct tir_extern_call *call, void *data) {
  (void)call, (void)data;
  return true;
}

struct box {
  int64_t stride, rank, extents[TIR_BOX_MOST_RANK], at[TIR_BOX_MOST_RANK], sides[TIR_BOX_MOST_RANK];
  /* in im2col mode */
  int64_t offset[TIR_PIXELS_MOST_RANK], counts[TIR_PIXELS_MOST_RANK];
  struct tir_pixels pixels;
};

/* more: operands behind the lists. */
static bool read_box(struct tir_extern_call *call, bool im2col, uint32_t more, struct box *out) {
  uint32_t count = tir_call_count(call);
  out->rank = count > TIR_BOX_LISTS ? whole(call, TIR_BOX_RANK) : 0;
  if (out->rank < (im2col ? 3 : 2) || out->rank > TIR_BOX_MOST_RANK) return tir_call_fail(call, "no such rank");
  uint32_t rank = (uint32_t)out->rank;
  if (!has_arguments(call, im2col ? tir_im2col_operands(rank) : TIR_BOX_LISTS + 3 * rank + more)) return false;
  out->stride = whole(call, TIR_BOX_STRIDE);
  for (uint32_t d = 0; d < out->rank; d++) {
    out->extents[d] = whole(call, TIR_BOX_LISTS + d);
    out->at[d] = whole(call, TIR_BOX_LISTS + (uint32_t)out->rank + d);
    out->sides[d] = whole(call, TIR_BOX_LISTS + 2 * (uint32_t)out->rank + d);
    if (out->sides[d] < 1 || out->sides[d] > (im2col && !d ? TIR_PIXELS_MOST : TIR_BOX_MOST_SIDE))
      return tir_call_fail(call, "no such box");
  }
  return true;
}

/* The lists of im2col mode. */
static bool read_pixels(struct tir_extern_call *call, struct box *b) {
  uint32_t count = (uint32_t)b->rank - 2, first = TIR_BOX_LISTS + 3 * (uint32_t)b->rank;
  int64_t most = 0;
  for (uint32_t d = 0; d < count; d++) {
    b->offset[d] = whole(call, first + d), b->pixels.lower[d] = whole(call, first + count + d);
    b->pixels.upper[d] = whole(call, first + 2 * count + d), b->pixels.step[d] = whole(call, first + 3 * count + d);
    if (b->sides[d + 1] != 1) return tir_call_fail(call, "no such box");
    if (b->offset[d] < 0) return tir_call_fail(call, "an offset is below 0");
    if (b->offset[d] > most) most = b->offset[d];
  }
  if (!tir_fits_im2col((uint32_t)b->rank, &b->pixels, most)) return tir_call_fail(call, "no such pixels");
  for (uint32_t d = 0; d < count; d++) {
    int64_t lower = b->pixels.lower[d], end = b->extents[d + 1] - 1 + b->pixels.upper[d], at = b->at[d + 1];
    if (at < lower || at > end || (at - lower) % b->pixels.step[d])
      return tir_call_fail(call, "it begins at no place of a pixel");
    b->counts[d] = (end - lower) / b->pixels.step[d] + 1;
  }
  return true;
}

/* Element `channel` of the pixel `number` after the first; -1: it is outside. */
static int64_t element_of_pixel(const struct box *b, int64_t number, int64_t channel) {
  int64_t c = b->at[b->rank - 1] + channel, scale = b->extents[b->rank - 1], element = c;
  bool inside = c >= 0 && c < scale;
  for (int64_t d = b->rank - 2; d > 0; d--) {
    const int64_t step = b->pixels.step[d - 1], lower = b->pixels.lower[d - 1];
    number += (b->at[d] - lower) / step;
    int64_t at = lower + number % b->counts[d - 1] * step + b->offset[d - 1];
    number /= b->counts[d - 1];
    inside &= at >= 0 && at < b->extents[d];
    element += at * scale, scale *= b->extents[d];
  }
  int64_t image = b->at[0] + number;
  return inside && image >= 0 && image < b->extents[0] ? element + image * scale : -1;
}

/* The element of the tensor that is number `i` of the box; -1: it is outside. */
static int64_t element_of(const struct box *b, int64_t i) {
  int64_t element = 0, scale = 1;
  for (int64_t d = b->rank - 1; d >= 0; d--) {
    int64_t at = b->at[d] + i % b->sides[d];
    i /= b->sides[d];
    if (at < 0 || at >= b->extents[d]) return -1;
    element += at * scale, scale *= b->extents[d];
  }
  return element;
}

/* What was stored is to arrive later. */
static void delay(struct tir_extern_call *call, int64_t index, uint32_t number) {
  struct machine *m = call->machine;
  tir_type type = interp_call_type(call, TIR_BOX_TO);
  int64_t byte, size = interp_format_size(interp_format(type));
  struct object *o = pointed(m, interp_call_pointer(call, TIR_BOX_TO), &byte);
  byte += index * size;
  struct boxed b = {.barrier = number};
  b.element = (struct coming){.object = o, .byte = byte, .element = byte / o->size, .buffer = call->site->buffer};
  b.element.size = (uint8_t)size, b.element.written = o->generation;
  memcpy(&b.element.value, o->data + byte, (size_t)size);
  memset(o->shadow + byte, COMING, (size_t)size);
  INTERP_PUSH(m->boxed, b);
  if (!o->touches) return;
  o->touches[b.element.element].box = number + 1;
  o->touches[b.element.element].phase = m->mbarriers.at[number].phase;
}

static bool is_coming(struct tir_extern_call *call, int64_t index) {
  int64_t byte, size = interp_format_size(interp_format(interp_call_type(call, TIR_BOX_TO)));
  const struct object *o = pointed(call->machine, interp_call_pointer(call, TIR_BOX_TO), &byte);
  byte += index * size;
  return o && byte >= 0 && (uint64_t)byte < o->bytes && o->shadow[byte] == COMING;
}

static bool copy_box(struct tir_extern_call *call, bool im2col, uint32_t more) {
  struct box b = {0};
  uint32_t number;
  int64_t count = 1;
  if (!read_box(call, im2col, more, &b) || (im2col && !read_pixels(call, &b))) return false;
  if (!barrier_of(call, TIR_BOX_BARRIER, &number)) return false;
  tir_type type = interp_call_type(call, TIR_BOX_FROM);
  for (int64_t d = 0; d < b.rank; d++) count *= b.sides[d];
  for (int64_t i = 0; i < count; i++) {
    struct tir_value v = {.type = type};
    int64_t columns = b.sides[b.rank - 1], to = i / columns * b.stride + i % columns;
    int64_t from = im2col ? element_of_pixel(&b, i / columns, i % columns) : element_of(&b, i);
    if (is_coming(call, to)) return tir_call_fail(call, "it writes what another copy has not brought yet");
    if (from >= 0 && !tir_call_load(call, TIR_BOX_FROM, from, &v)) return false;
    if (!tir_call_store(call, TIR_BOX_TO, to, v)) return false;
    delay(call, to, number);
  }
  return true;
}

/* (to, stride, barrier, from, rank, extents..., coordinates..., box...) */
bool interp_do_tensor_copy(struct tir_extern_call *call, void *data) {
  (void)data;
  return copy_box(call, false, 0);
}

/* (the same, offsets..., lower..., upper..., steps...) */
bool interp_do_im2col_copy(struct tir_extern_call *call, void *data) {
  (void)data;
  return copy_box(call, true, 0);
}

/* (the same as the first, blocks): bits of ranks, of which a block may be one that the copy begins in. */
bool interp_do_multicast_copy(struct tir_extern_call *call, void *data) {
  (void)data;
  int64_t to = interp_call_pointer(call, TIR_BOX_TO), barrier = interp_call_pointer(call, TIR_BOX_BARRIER);
  int64_t blocks = whole(call, tir_call_count(call) - 1);
  if (blocks < 1 || blocks >> TIR_CLUSTER_MOST) return tir_call_fail(call, "it comes to no block");
  for (int64_t rank = 0; blocks >> rank && !call->failed; rank++)
    call->failed = (blocks >> rank & 1) && !(aim_at(call, TIR_BOX_TO, to, rank) &&
                                             aim_at(call, TIR_BOX_BARRIER, barrier, rank) && copy_box(call, false, 1));
  interp_call_aim(call, TIR_BOX_TO, to);
  interp_call_aim(call, TIR_BOX_BARRIER, barrier);
  return !call->failed;
}

bool interp_is_phase_over(struct machine *m, struct thread *t, int64_t pointer, int64_t parity, bool *ended) {
  uint32_t number = find_barrier(m, t, pointer);
  if (number == UINT32_MAX) return false;
  const struct mbarrier *b = &m->mbarriers.at[number];
  *ended = (b->phase & 1) != (parity & 1);
  while (t->ended.count <= number) INTERP_PUSH(t->ended, 0);
  if (!*ended) return true;
  t->ended.at[number] = b->phase;
  interp_order_wait(m, t, number);
  return true;
}

void interp_begin_boxes(struct machine *m, struct thread *threads, uint32_t count) {
  m->mbarriers.count = m->boxed.count = m->distant.count = 0;
  interp_order_begin(m, threads, count);
  for (uint32_t i = 0; i < count; i++) threads[i].ended.count = 0;
}

/* A thread of the block that it was at has known of the arrival, or the cluster has met since. */
static bool is_in_time(const struct machine *m, const struct thread *threads, const struct distant *d) {
  bool known = d->epoch < m->epoch;
  const struct thread *block = &threads[d->block * m->block_threads];
  for (uint32_t i = 0; i < m->block_threads && !known; i++) known = interp_knows(&block[i], d->who, d->time);
  return known;
}

bool interp_end_boxes(struct machine *m, const struct thread *threads, uint32_t count) {
  for (uint32_t i = 0; i < m->distant.count; i++) {
    const struct distant *d = &m->distant.at[i];
    assert(d->who < count);
    if (!is_in_time(m, threads, d))
      return interp_fail(m, &threads[d->who], MS_RUN_RACE,
                         "block %u of the cluster may end before a thread is done there", d->block);
  }
  if (!m->boxed.count) return true;
  return interp_fail(m, threads, MS_RUN_RACE, "the block ends before %u elements that copies bring have arrived",
                     m->boxed.count);
}

bool interp_deliver_boxes(struct machine *m, struct thread *t, bool *any) {
  *any = m->boxed.count > 0;
  for (uint32_t i = 0; i < m->boxed.count; i++) {
    const struct coming *c = &m->boxed.at[i].element;
    struct mbarrier *b = &m->mbarriers.at[m->boxed.at[i].barrier];
    uint8_t *data = c->object->data + c->byte, *shadow = c->object->shadow + c->byte;
    if (*shadow != COMING)
      return interp_fail(m, t, MS_RUN_RACE, "element %lld is written while a copy of a box brings it",
                         (long long)c->element);
    memcpy(data, &c->value, c->size);
    memset(shadow, c->written, c->size);
    b->bytes -= c->size;
  }
  m->boxed.count = 0;
  for (uint32_t i = 0; i < m->mbarriers.count; i++)
    if (*any) end_phase(m, i);
  return true;
}

bool interp_fail_phase(struct machine *m, const struct thread *t) {
  for (uint32_t i = 0; i < m->mbarriers.count; i++) {
    const struct mbarrier *b = &m->mbarriers.at[i];
    if (b->pending < b->count || b->bytes)
      return interp_fail(m, t, MS_RUN_BARRIER,
                         "thread %u waits for a phase that does not end: %u arrivals and %lld bytes are missing",
                         t->index, b->pending, (long long)b->bytes);
  }
  return interp_fail(m, t, MS_RUN_BARRIER, "thread %u waits for a phase that nothing begins", t->index);
}
