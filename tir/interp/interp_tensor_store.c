/* TMA bulk tensor stores: calls by name, each by one thread. What a store reads nobody may write until that thread has
 * waited, and no block may end before. */
#include "interp.h"

static int64_t whole(const struct tir_extern_call *call, uint32_t arg) { return tir_call_value(call, arg).integer; }

struct box {
  int64_t stride, extents[TIR_BOX_MOST_RANK], at[TIR_BOX_MOST_RANK], sides[TIR_BOX_MOST_RANK];
  uint32_t rank;
};

static bool read_box(struct tir_extern_call *call, struct box *b) {
  uint32_t count = tir_call_count(call);
  int64_t rank = count > TIR_STORE_LISTS ? whole(call, TIR_STORE_RANK) : 0;
  if (rank < 2 || rank > TIR_BOX_MOST_RANK || count != TIR_STORE_LISTS + 3 * (uint32_t)rank)
    return tir_call_fail(call, "no such rank");
  b->rank = (uint32_t)rank, b->stride = whole(call, TIR_STORE_STRIDE);
  for (uint32_t d = 0; d < b->rank; d++) {
    b->extents[d] = whole(call, TIR_STORE_LISTS + d);
    b->at[d] = whole(call, TIR_STORE_LISTS + b->rank + d);
    b->sides[d] = whole(call, TIR_STORE_LISTS + 2 * b->rank + d);
    if (b->sides[d] < 1 || b->sides[d] > TIR_BOX_MOST_SIDE) return tir_call_fail(call, "no such box");
  }
  return true;
}

/* The element of the tensor that is number `i` of the box; -1: it is outside. */
static int64_t element_of(const struct box *b, int64_t i) {
  int64_t element = 0, scale = 1;
  for (uint32_t d = b->rank; d-- > 0; i /= b->sides[d]) {
    int64_t at = b->at[d] + i % b->sides[d];
    if (at < 0 || at >= b->extents[d]) return -1;
    element += at * scale, scale *= b->extents[d];
  }
  return element;
}

static void hold(struct tir_extern_call *call, int64_t index) {
  struct held h;
  if (interp_call_mark(call, TIR_STORE_FROM, index, call->thread->store_groups, &h))
    INTERP_PUSH(call->thread->stored, h);
}

/* (from, stride, to, rank, extents..., coordinates..., box...) */
bool interp_do_tensor_store(struct tir_extern_call *call, void *data) {
  struct box b = {0};
  int64_t count = 1;
  (void)data;
  if (!read_box(call, &b)) return false;
  for (uint32_t d = 0; d < b.rank; d++) count *= b.sides[d];
  for (int64_t i = 0; i < count; i++) {
    struct tir_value v;
    int64_t columns = b.sides[b.rank - 1], from = i / columns * b.stride + i % columns, to = element_of(&b, i);
    if (!tir_call_load(call, TIR_STORE_FROM, from, &v)) return false;
    hold(call, from);
    if (to >= 0 && !tir_call_store(call, TIR_STORE_TO, to, v)) return false;
  }
  return true;
}

bool interp_do_store_commit(struct tir_extern_call *call, void *data) {
  (void)data;
  call->thread->store_groups++;
  return true;
}

/* (left, pointers...): stores that are in no group yet stay. */
bool interp_do_store_wait(struct tir_extern_call *call, void *data) {
  struct thread *t = call->thread;
  uint32_t kept = 0;
  int64_t left = tir_call_count(call) ? whole(call, 0) : -1;
  (void)data;
  if (left < 0) return tir_call_fail(call, "it leaves %lld groups", (long long)left);
  for (uint32_t i = 0; i < t->stored.count; i++) {
    struct held h = t->stored.at[i];
    if ((int64_t)h.group + left >= (int64_t)t->store_groups) {
      t->stored.at[kept++] = h;
      continue;
    }
    assert(h.object->touches[h.element].held > 0);
    h.object->touches[h.element].held--;
    if (!interp_touch_read(call->machine, t, h.object, h.element, h.buffer)) return false;
  }
  t->stored.count = kept;
  return true;
}

bool interp_end_stores(struct machine *m, const struct thread *threads, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (threads[i].stored.count)
      return interp_fail(m, &threads[i], MS_RUN_RACE, "the block ends before bulk stores have read %u elements",
                         threads[i].stored.count);
  return true;
}
