/* Memory of the reference interpreter: objects, the views that threads have of them, and who touched what. */
#include "interp.h"

#include <stdlib.h>
#include <string.h>

static const char *buffer_name(const struct machine *m, tir_buffer b) { return tir_buffer_name(m->ir, b); }

void *interp_take_memory(struct machine *m, const struct thread *t, uint64_t bytes) {
  if (bytes > m->memory_limit || m->memory_used + bytes > m->memory_limit) {
    interp_fail(m, t, MS_RUN_MEMORY, "%llu more bytes pass the limit of %llu", (unsigned long long)bytes,
                (unsigned long long)m->memory_limit);
    return NULL;
  }
  void *at = calloc(bytes ? bytes : 1, 1);
  if (!at)
    interp_fail(m, t, MS_RUN_MEMORY, "%llu bytes cannot be had", (unsigned long long)bytes);
  else
    m->memory_used += bytes;
  return at;
}

/* ---- Objects ---- */

static struct object *new_object(struct machine *m, const struct thread *t) {
  struct object *o = interp_take_memory(m, t, sizeof *o);
  if (!o) return NULL;
  o->index = m->objects.count;
  o->pieces = INT64_MAX;
  INTERP_PUSH(m->objects, o);
  return o;
}

static void free_contents(struct machine *m, struct object *o) {
  assert(o);
  uint64_t bytes = o->capacity * (o->owned ? 2 : 1);
  if (o->touches) bytes += (o->capacity / o->size + 1) * sizeof *o->touches;
  if (o->owned) free(o->data);
  free(o->shadow);
  free(o->touches);
  m->memory_used -= bytes < m->memory_used ? bytes : m->memory_used;
  o->data = o->shadow = NULL;
  o->touches = NULL;
  o->capacity = 0;
}

void interp_objects_free(struct machine *m, uint32_t first) {
  for (uint32_t i = first; i < m->objects.count; i++) {
    free_contents(m, m->objects.at[i]);
    free(m->objects.at[i]);
  }
  m->objects.count = first;
}

/* A new life for memory of `bytes`: nothing of it is written. Memory of no bytes has an address too: views offset
 * it. */
static bool renew(struct machine *m, const struct thread *t, struct object *o, uint64_t bytes, uint8_t size) {
  assert(size > 0);
  if (!o->data || bytes > o->capacity) {
    free_contents(m, o);
    o->owned = true;
    o->data = interp_take_memory(m, t, bytes);
    o->shadow = o->data ? interp_take_memory(m, t, bytes) : NULL;
    if (!o->shadow) return false;
    o->capacity = bytes;
    o->generation = 0;
  }
  o->bytes = bytes;
  o->size = size;
  o->products = 0;
  o->in_flight = 0;
  if (o->touches) memset(o->touches, 0, (o->capacity / size + 1) * sizeof *o->touches);
  if (++o->generation == COMING || o->lends) {
    memset(o->shadow, 0, o->capacity);
    o->generation = 1;
  }
  return true;
}

static bool watch_object(struct machine *m, const struct thread *t, struct object *o) {
  if (o->touches || !o->size) return true;
  o->touches = interp_take_memory(m, t, (o->capacity / o->size + 1) * sizeof *o->touches);
  return o->touches != NULL;
}

static void refresh_views(const struct machine *m, struct thread *t) {
  for (uint32_t i = 0; i < m->program->slots.count; i++)
    if (t->own_views[i] && t->own_views[i]->object)
      t->own_views[i]->plain = t->own_views[i]->whole && !t->own_views[i]->object->touches;
}

bool interp_watch(struct machine *m, struct thread *t) {
  for (uint32_t i = 0; i < m->objects.count; i++)
    if (!watch_object(m, t, m->objects.at[i])) return false;
  refresh_views(m, t);
  return true;
}

void interp_unwatch(struct machine *m, struct thread *t) {
  for (uint32_t i = 0; i < m->objects.count; i++) {
    struct object *o = m->objects.at[i];
    if (o->touches) m->memory_used -= (o->capacity / o->size + 1) * sizeof *o->touches;
    free(o->touches);
    o->touches = NULL;
  }
  refresh_views(m, t);
}

/* ---- Views ---- */

static struct view *new_view(struct thread *t, uint32_t slot, uint32_t rank) {
  struct view *v = t->own_views[slot];
  if (!v) {
    v = calloc(1, sizeof *v + (rank + 1) * sizeof v->dim[0]);
    if (!v) abort();
    t->own_views[slot] = v;
  }
  v->rank = rank;
  t->views[slot] = v;
  return v;
}

/* Lanes of an element are a last dimension. */
static void add_lanes(struct view *v, uint32_t rank, int lanes) {
  if (lanes == 1) return;
  for (uint32_t d = 0; d < rank; d++) v->dim[d].stride *= lanes;
  v->dim[rank].extent = lanes;
  v->dim[rank].stride = 1;
  v->rank = rank + 1;
  v->offset *= lanes;
}

/* The range of element offsets that indices within the shape reach, from the view's first; false: past 64 bits. */
static bool reach(const struct view *v, int64_t *lo, int64_t *hi) {
  *lo = *hi = 0;
  for (uint32_t d = 0; d < v->rank; d++) {
    int64_t span;
    if (v->dim[d].extent <= 0) continue;
    if (__builtin_mul_overflow(v->dim[d].extent - 1, v->dim[d].stride, &span)) return false;
    int64_t *end = span < 0 ? lo : hi;
    if (__builtin_add_overflow(*end, span, end)) return false;
  }
  return true;
}

static void place_view(struct view *v, struct object *o, int64_t base) {
  assert(o && o->data && o->shadow && v);
  int64_t lo, hi, count = (int64_t)(o->bytes / v->size);
  bool known = reach(v, &lo, &hi);
  v->object = o;
  v->base = base;
  v->whole = known && v->offset >= 0 && v->offset <= count && lo + v->offset >= 0 && hi < count - v->offset;
  /* A view of nothing within the object has no first element; its accesses are all refused. */
  int64_t first = v->offset >= 0 && v->offset <= count ? v->offset : 0;
  v->data = o->data + first * v->size;
  v->shadow = o->shadow + first * v->size;
  v->written = o->generation * 0x0101010101010101ull;
  v->plain = v->whole && !o->touches;
}

/* Fills the shape, strides and offset that a site states; false: an extent is negative or the size too large. */
static bool shape_view(struct machine *m, struct thread *t, const struct site *site, struct view *v, uint64_t *bytes) {
  const struct program *p = m->program;
  const struct tir_buffer_node *b = tir_buffer_at(m->ir, site->buffer);
  uint32_t rank = site->shape.count;
  int lanes = tir_type_lanes(b->type);
  int64_t stride = 1, lo, hi;
  for (uint32_t d = rank; d-- > 0;) {
    v->dim[d].extent = interp_get(t, p->lists.at[site->shape.first + d]).i;
    /* What a block allocates for a region that is empty may come out as less than nothing: there is none of it. */
    if (v->dim[d].extent < 0 && b->where) v->dim[d].extent = 0;
    if (v->dim[d].extent < 0)
      return interp_fail(m, t, MS_RUN_MEMORY, "buffer %s: extent %u is negative", buffer_name(m, site->buffer), d);
    v->dim[d].stride = site->strides.count ? interp_get(t, p->lists.at[site->strides.first + d]).i : stride;
    if (__builtin_mul_overflow(stride, v->dim[d].extent, &stride)) stride = INT64_MAX;
  }
  v->offset = site->offset == NO_OPERAND ? 0 : interp_get(t, site->offset).i;
  v->format = (uint8_t)interp_format(tir_type_with_lanes(b->type, 1));
  v->size = (uint8_t)interp_format_size((enum format)v->format);
  add_lanes(v, rank, lanes);
  bool empty = stride == 0;
  if (stride == INT64_MAX || !reach(v, &lo, &hi) || lo < 0 || v->offset < 0 || hi > (INT64_MAX >> 8) ||
      v->offset > (INT64_MAX >> 8))
    return interp_fail(m, t, MS_RUN_MEMORY, "buffer %s is too large or its layout leaves it",
                       buffer_name(m, site->buffer));
  *bytes = empty ? 0 : (uint64_t)(hi + v->offset + 1) * v->size;
  return true;
}

bool interp_make_param(struct machine *m, struct thread *t, const struct site *site) {
  const struct tir_arg *arg = &m->args[site->param];
  struct view *v = new_view(t, site->slot, site->shape.count);
  uint64_t bytes;
  if (!shape_view(m, t, site, v, &bytes)) return false;
  if (arg->bytes != bytes || (bytes && !arg->data))
    return interp_fail(m, t, MS_RUN_ARGUMENT, "argument %u: buffer %s takes %llu bytes, not %zu", site->param,
                       buffer_name(m, site->buffer), (unsigned long long)bytes, arg->bytes);
  struct object *o = new_object(m, t);
  if (!o) return false;
  m->param_objects[site->param] = o->index;
  o->shadow = interp_take_memory(m, t, bytes);
  if (!o->shadow) return false;
  o->data = arg->data ? arg->data : o->shadow; /* null: it has no bytes */
  o->bytes = o->capacity = bytes;
  o->size = v->size;
  o->generation = arg->unwritten; /* else all of it is written: its shadow is zero as it comes, and costs nothing */
  o->tolerant = arg->unwritten && m->options && m->options->note_unwritten;
  place_view(v, o, 0);
  return true;
}

/* The object that an allocation gives: the thread's own, its warp's, which the first of the warp makes, or one for its
 * block or grid, made by whoever comes first. */
static struct object **object_of(struct machine *m, struct thread *t, const struct site *site, uint32_t *life) {
  *life = 0;
  if (!m->in_kernel || site->share == SHARE_NONE) return &t->own[site->slot];
  if (site->share == SHARE_WARP) return &t->leader->own[site->slot];
  if (site->share == SHARE_WARP_GROUP) return &t->group->own[site->slot];
  if (site->share == SHARE_BLOCK)
    return *life = m->block_epoch, &m->shared[t->block * m->program->slots.count + site->slot];
  *life = m->grid_epoch;
  return &m->shared[site->slot];
}

/* In the pieces of a workspace, threads touch what is theirs; before them, iterations do. */
static void begin_workspace(struct machine *m, struct object *o, const struct site *site) {
  struct tir_workspace w = tir_workspace_of(m->ir, tir_func_of(m->ir, tir_buffer_at(m->ir, site->buffer)->where));
  m->threads = w.threads;
  o->pieces = (int64_t)((w.bytes - w.thread_bytes * w.threads) / site->grain);
}

bool interp_make_alloc(struct machine *m, struct thread *t, const struct site *site) {
  struct view *v = new_view(t, site->slot, site->shape.count);
  uint64_t bytes;
  uint32_t life;
  if (!shape_view(m, t, site, v, &bytes)) return false;
  struct object **at = object_of(m, t, site, &life);
  const struct thread *owner = site->share == SHARE_WARP ? t->leader : site->share == SHARE_WARP_GROUP ? t->group : t;
  bool joins = m->in_kernel && t != owner && *at;
  bool first = !joins && (!*at || life == 0 || (*at)->life != life);
  if (!*at && !(*at = new_object(m, t))) return false;
  if (first && !renew(m, t, *at, bytes, site->grain ? site->grain : v->size)) return false;
  if (site->grain) begin_workspace(m, *at, site);
  (*at)->life = life;
  if ((*at)->bytes != bytes)
    return interp_fail(m, t, MS_RUN_RACE, "threads allocate %s with different sizes", buffer_name(m, site->buffer));
  if (life && !watch_object(m, t, *at)) return false;
  place_view(v, *at, 0);
  return true;
}

bool interp_make_declare(struct machine *m, struct thread *t, const struct site *site) {
  struct view *v = new_view(t, site->slot, site->shape.count);
  uint64_t bytes;
  if (!shape_view(m, t, site, v, &bytes)) return false;
  int64_t pointer = interp_get(t, m->program->lists.at[site->args.first]).i;
  uint32_t index = (uint32_t)((uint64_t)pointer >> 40) - 1;
  int64_t byte = pointer & 0xFFFFFFFFFF;
  if (index >= m->objects.count || byte % v->size)
    return interp_fail(m, t, MS_RUN_MATCH, "the pointer that buffer %s views is none", buffer_name(m, site->buffer));
  v->offset += byte / v->size;
  place_view(v, m->objects.at[index], byte);
  if (site->begins && (!v->whole || bytes > v->object->bytes - (uint64_t)byte))
    return interp_fail(m, t, MS_RUN_OUT_OF_BOUNDS, "buffer %s leaves the workspace", buffer_name(m, site->buffer));
  if (site->begins) memset(v->shadow, 0, bytes);
  return true;
}

bool interp_make_match(struct machine *m, struct thread *t, const struct site *site) {
  const operand *list = m->program->lists.at + site->args.first;
  const struct view *source = t->views[site->source_slot];
  const struct tir_buffer_node *b = tir_buffer_at(m->ir, site->source);
  uint32_t rank = b->rank, lead = rank - site->shape.count;
  struct view *v = new_view(t, site->slot, site->shape.count + 1);
  int64_t offset = source->offset;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t min = interp_get(t, list[d]).i, extent = interp_get(t, list[rank + d]).i;
    if (min < 0 || extent < 0 || min > source->dim[d].extent || extent > source->dim[d].extent - min)
      return interp_fail(m, t, MS_RUN_MATCH, "%s views [%lld, %lld + %lld) of dimension %u of %s, whose extent is %lld",
                         buffer_name(m, site->buffer), (long long)min, (long long)min, (long long)extent, d,
                         tir_text(m->ir, b->name), (long long)source->dim[d].extent);
    if (d < lead && extent != 1)
      return interp_fail(m, t, MS_RUN_MATCH, "%s leaves out dimension %u of %s, whose extent is not 1",
                         buffer_name(m, site->buffer), d, tir_text(m->ir, b->name));
    offset += min * source->dim[d].stride;
    if (d < lead) continue;
    v->dim[d - lead].extent = extent;
    v->dim[d - lead].stride = source->dim[d].stride;
  }
  v->rank = site->shape.count;
  v->format = source->format;
  v->size = source->size;
  v->offset = offset;
  if (source->rank > rank) { /* lanes */
    v->dim[v->rank] = source->dim[rank];
    v->rank++;
  }
  place_view(v, source->object, source->base);
  return true;
}

/* ---- Races ---- */

/* By what number it is known who touches an element. */
static uint32_t toucher(const struct thread *t, const struct object *o, int64_t element) {
  return element < o->pieces ? interp_number_of(t) : t->number;
}

/* Whether what was done in `epoch` by another thread, at that time of its own, may be at the same time as what t does
 * now. */
static bool is_concurrent(const struct machine *m, const struct thread *t, uint32_t who, uint32_t epoch,
                          uint32_t thread, uint32_t time) {
  if (epoch < m->grid_epoch) return false; /* before the kernel */
  if (epoch < m->block_epoch) return true; /* another block */
  return epoch == m->epoch && thread != who && !interp_knows(t, thread, time);
}

static bool race(struct machine *m, struct thread *t, const struct object *o, const char *what, int64_t element,
                 tir_buffer buffer) {
  assert(o->touches);
  bool thread = m->in_kernel || element >= o->pieces;
  uint32_t number = m->in_kernel ? t->index : toucher(t, o, element);
  return interp_fail(m, t, MS_RUN_RACE, "%s %u %s element %lld of the memory %s%s",
                     thread ? "thread" : "the iteration of the parallel loop at", number, what, (long long)element,
                     buffer == TIR_NONE ? "that a call was given" : "of ",
                     buffer == TIR_NONE ? "" : buffer_name(m, buffer));
}

/* The thread has waited for the copy of a box that wrote the element last. */
static bool has_arrived(const struct thread *t, const struct touch *touch) {
  return touch->box && touch->box <= t->ended.count && t->ended.at[touch->box - 1] > touch->phase;
}

bool interp_touch_read(struct machine *m, struct thread *t, struct object *o, int64_t element, tir_buffer buffer) {
  struct touch *touch = &o->touches[element];
  uint32_t who = toucher(t, o, element);
  if (!touch->box && touch->write_epoch && touch->writer != MANY_THREADS &&
      is_concurrent(m, t, who, touch->write_epoch, touch->writer, touch->write_time))
    return race(m, t, o, "reads what another writes without a barrier between:", element, buffer);
  if (touch->box && !has_arrived(t, touch))
    return race(m, t, o, "reads what a copy brings that it did not wait for:", element, buffer);
  interp_order_read(m, t, touch, who);
  return true;
}

bool interp_touch_write(struct machine *m, struct thread *t, struct object *o, int64_t element, bool same,
                        tir_buffer buffer) {
  struct touch *touch = &o->touches[element];
  uint32_t who = toucher(t, o, element);
  bool written = touch->write_epoch && !has_arrived(t, touch) &&
                 is_concurrent(m, t, who, touch->write_epoch, touch->writer, touch->write_time);
  bool read = touch->read_epoch && (is_concurrent(m, t, who, touch->read_epoch, touch->reader, touch->read_time) ||
                                    interp_is_read_besides(m, t, touch));
  if (touch->held && !same)
    return race(m, t, o, "writes what a product or a bulk store that is not waited for reads:", element, buffer);
  /* Threads may all write one value. */
  if (written && !same) return race(m, t, o, "writes what another writes:", element, buffer);
  if (read && !same) return race(m, t, o, "writes what another reads without a barrier between:", element, buffer);
  touch->box = 0;
  touch->writer = written ? MANY_THREADS : who;
  touch->write_epoch = m->epoch, touch->write_time = t->time;
  return true;
}

/* ---- Asynchronous copies ---- */

/* The element was stored; until the copy arrives nobody may read it. */
void interp_begin_copy(struct thread *t, const struct view *v, int64_t element, tir_buffer buffer) {
  struct coming c = {.object = v->object, .group = t->groups, .buffer = buffer, .size = v->size};
  assert(v->size <= sizeof c.value);
  c.byte = (v->offset + element) * v->size;
  c.element = c.byte / v->object->size;
  c.written = (uint8_t)v->written;
  memcpy(&c.value, v->data + element * v->size, v->size);
  memset(v->shadow + element * v->size, COMING, v->size);
  INTERP_PUSH(t->coming, c);
}

/* What another wrote there meanwhile it writes over. */
static bool arrive(struct machine *m, struct thread *t, const struct coming *c) {
  uint8_t *data = c->object->data + c->byte, *shadow = c->object->shadow + c->byte;
  bool same = !memcmp(data, &c->value, c->size), alone = *shadow == COMING;
  if (!alone && !same)
    return race(m, t, c->object, "writes, by a copy that it did not wait for,", c->element, c->buffer);
  memcpy(data, &c->value, c->size);
  memset(shadow, c->written, c->size);
  return !c->object->touches || interp_touch_write(m, t, c->object, c->element, !alone, c->buffer);
}

bool interp_wait_copies(struct machine *m, struct thread *t, int64_t left) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < t->coming.count; i++) {
    struct coming c = t->coming.at[i];
    if ((int64_t)c.group + left < (int64_t)t->groups) {
      if (!arrive(m, t, &c)) return false;
    } else {
      t->coming.at[kept++] = c;
    }
  }
  t->coming.count = kept;
  return true;
}
