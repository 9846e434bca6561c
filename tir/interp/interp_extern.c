/* Functions registered by a caller of the reference interpreter. */
#include "interp.h"

#include <stdarg.h>
#include <string.h>

static struct call_arg argument(const struct tir_extern_call *call, uint32_t arg) {
  assert(arg < tir_call_count(call));
  const int32_t *words = call->machine->program->lists.at + call->site->args.first + arg * CALL_ARG_WORDS;
  return (struct call_arg){words[0],          words[1], (tir_type)words[2], (uint32_t)words[3], (tir_symbol)words[4],
                           (uint32_t)words[5]};
}

uint32_t tir_call_count(const struct tir_extern_call *call) { return call->site->args.count; }

static struct tir_value to_value(tir_type t, union value v) {
  return tir_type_is_float(t) ? (struct tir_value){.type = t, .real = v.f}
                              : (struct tir_value){.type = t, .integer = v.i};
}

struct tir_value tir_call_value(const struct tir_extern_call *call, uint32_t arg) {
  if (arg >= tir_call_count(call)) return (struct tir_value){0};
  struct call_arg a = argument(call, arg);
  if (a.text) return (struct tir_value){.type = TIR_T_STRING, .text = tir_text(call->machine->ir, a.text)};
  return to_value(a.type, interp_get(call->thread, a.value));
}

bool tir_call_fail(struct tir_extern_call *call, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  call->failed = true;
  return interp_fail(call->machine, call->thread, MS_RUN_UNSUPPORTED, "%s: %s", call->site->name, text);
}

void tir_call_return(struct tir_extern_call *call, struct tir_value value) { call->result = value; }

/* The memory of one element; NULL: refused. */
static uint8_t *element(struct tir_extern_call *call, uint32_t arg, int64_t index, uint32_t access, enum format *format,
                        struct object **object) {
  struct machine *m = call->machine;
  struct call_arg a = arg < tir_call_count(call) ? argument(call, arg) : (struct call_arg){.type = TIR_T_VOID};
  *format = interp_format(tir_type_with_lanes(a.type, 1));
  const char *name = call->site->name;
  uint64_t pointer = *format == FORMAT_BAD ? 0 : (uint64_t)interp_get(call->thread, a.value).i;
  uint64_t number = (pointer >> 40) - 1;
  call->failed = true;
  if (number >= m->objects.count) {
    interp_fail(m, call->thread, MS_RUN_UNSUPPORTED, "%s: argument %u is no pointer", name, arg);
    return NULL;
  }
  if (!(a.access & access)) {
    interp_fail(m, call->thread, MS_RUN_OUT_OF_BOUNDS, "%s: argument %u may not be %s", name, arg,
                access == 1 ? "read" : "written");
    return NULL;
  }
  struct object *o = m->objects.at[number];
  int64_t size = interp_format_size(*format), start = (int64_t)(pointer & 0xFFFFFFFFFF), byte;
  int64_t extent = a.extent == NO_OPERAND ? INT64_MAX : interp_get(call->thread, a.extent).i;
  bool inside = index >= 0 && index < extent && !__builtin_mul_overflow(index, size, &byte) &&
                !__builtin_add_overflow(byte, start, &byte) && (uint64_t)byte + (uint64_t)size <= o->bytes;
  if (!inside) {
    interp_fail(m, call->thread, MS_RUN_OUT_OF_BOUNDS, "%s: element %lld of argument %u is out of bounds", name,
                (long long)index, arg);
    return NULL;
  }
  call->failed = false;
  *object = o;
  return o->data + byte;
}

static bool is_watched(struct tir_extern_call *call, struct object *o, const uint8_t *at, bool write, bool same) {
  if (!o->touches) return true;
  int64_t n = (at - o->data) / o->size;
  bool ok = write ? interp_touch_write(call->machine, call->thread, o, n, same, call->site->buffer)
                  : interp_touch_read(call->machine, call->thread, o, n, call->site->buffer);
  call->failed = !ok;
  return ok;
}

bool tir_call_load(struct tir_extern_call *call, uint32_t arg, int64_t index, struct tir_value *out) {
  enum format format;
  struct object *o;
  uint8_t *at = element(call, arg, index, 1, &format, &o);
  if (!at || !is_watched(call, o, at, false, false)) return false;
  uint8_t *shadow = o->shadow + (at - o->data);
  for (int i = 0; i < interp_format_size(format); i++)
    if (shadow[i] != o->generation && !o->tolerant) {
      call->failed = true;
      return interp_fail(call->machine, call->thread, MS_RUN_UNWRITTEN,
                         "%s: element %lld of argument %u is read before it is written", call->site->name,
                         (long long)index, arg);
    } else if (shadow[i] != o->generation) {
      o->read_first = true;
    }
  *out = to_value(tir_type_with_lanes(argument(call, arg).type, 1), interp_fetch(format, at));
  return true;
}

bool tir_call_store(struct tir_extern_call *call, uint32_t arg, int64_t index, struct tir_value value) {
  enum format format;
  struct object *o;
  uint8_t before[8];
  uint8_t *at = element(call, arg, index, 2, &format, &o);
  if (!at) return false;
  size_t size = (size_t)interp_format_size(format);
  bool was_written = o->shadow[at - o->data] == o->generation;
  tir_type t = argument(call, arg).type;
  memcpy(before, at, size);
  if (tir_type_is_float(t))
    interp_put(format, at, (union value){.f = value.real});
  else
    interp_put(format, at, (union value){.i = value.integer});
  memset(o->shadow + (at - o->data), o->generation, size);
  return is_watched(call, o, at, true, was_written && !memcmp(before, at, size));
}

struct object *interp_call_object(const struct tir_extern_call *call, uint32_t arg) {
  uint64_t number = ((uint64_t)interp_get(call->thread, argument(call, arg).value).i >> 40) - 1;
  return number < call->machine->objects.count ? call->machine->objects.at[number] : NULL;
}

int64_t interp_call_pointer(const struct tir_extern_call *call, uint32_t arg) {
  return interp_get(call->thread, argument(call, arg).value).i;
}

void interp_call_aim(const struct tir_extern_call *call, uint32_t arg, int64_t pointer) {
  call->thread->regs[argument(call, arg).value].i = pointer;
}

int64_t interp_call_stride(const struct tir_extern_call *call, uint32_t arg) {
  uint32_t slot = argument(call, arg).slot;
  const struct view *view = slot ? call->thread->views[slot - 1] : NULL;
  return view && view->rank >= 2 ? view->dim[view->rank - 2].stride : 0;
}

tir_type interp_call_type(const struct tir_extern_call *call, uint32_t arg) {
  return tir_type_with_lanes(argument(call, arg).type, 1);
}

bool interp_call_leads(const struct tir_extern_call *call) {
  return !call->machine->in_kernel || call->thread->leader == call->thread;
}

int interp_call_lane(const struct tir_extern_call *call) {
  return call->machine->in_kernel ? (int)(call->thread - call->thread->group) : -1;
}

void interp_call_bring(const struct tir_extern_call *call, uint8_t is, uint8_t becomes) {
  if (!call->machine->in_kernel) return;
  for (uint32_t i = 0; i < call->machine->program->slots.count; i++) {
    struct object *o = call->thread->group->own[i];
    if (o && o->products == is) o->products = becomes;
  }
}

uint32_t interp_call_groups(const struct tir_extern_call *call) {
  assert(call->machine->in_kernel);
  return call->thread->group->product_groups;
}

void interp_call_commit(const struct tir_extern_call *call) {
  assert(call->machine->in_kernel);
  call->thread->group->product_groups++;
}

/* The element was loaded, so that it is there. */
bool interp_call_mark(const struct tir_extern_call *call, uint32_t arg, int64_t index, uint32_t group,
                      struct held *out) {
  struct object *o = interp_call_object(call, arg);
  struct call_arg a = argument(call, arg);
  int64_t size = interp_format_size(interp_format(tir_type_with_lanes(a.type, 1)));
  int64_t byte = (interp_get(call->thread, a.value).i & 0xFFFFFFFFFF) + index * size;
  if (!call->machine->in_kernel || !o->touches) return false;
  assert(byte >= 0 && (uint64_t)byte < o->bytes);
  *out = (struct held){o, byte / o->size, group, call->site->buffer};
  o->touches[out->element].held++;
  return true;
}

void interp_call_hold(const struct tir_extern_call *call, uint32_t arg, int64_t index) {
  struct thread *group = call->thread->group;
  struct held h;
  if (interp_call_mark(call, arg, index, call->machine->in_kernel ? group->product_groups : 0, &h))
    INTERP_PUSH(group->held, h);
}

/* A warp waits as one: its lanes know what the first, which stands for it, has done, and may say so in other blocks. */
static void know_first(const struct machine *m, struct thread *warp) {
  uint32_t number = interp_number_of(warp);
  for (uint32_t i = 1; i < m->cluster && m->cluster > 1; i++) {
    struct thread *t = warp + i;
    while (t->known.count < m->cluster_threads) INTERP_PUSH(t->known, 0);
    t->known.at[number] = warp->time;
  }
  if (m->cluster > 1) warp->time++;
}

/* Each warp has read it, who waits for its own. */
bool interp_call_release(struct tir_extern_call *call, int64_t left) {
  struct thread *group = call->thread->group;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < group->held.count && !call->failed; i++) {
    struct held h = group->held.at[i];
    if ((int64_t)h.group + left >= (int64_t)group->product_groups) {
      group->held.at[kept++] = h;
      continue;
    }
    assert(h.object->touches[h.element].held > 0);
    h.object->touches[h.element].held--;
    for (uint32_t i = 0; i < TIR_GROUP && !call->failed; i += WARP)
      call->failed = !interp_touch_read(call->machine, group + i, h.object, h.element, h.buffer);
  }
  group->held.count = kept;
  for (uint32_t i = 0; i < TIR_GROUP; i += WARP) know_first(call->machine, group + i);
  return !call->failed;
}

bool interp_call_whole_groups(const struct tir_extern_call *call) {
  int64_t threads = 1;
  for (int d = FIRST_THREAD_DIM; d < THREAD_DIMS; d++) threads *= call->machine->extents[d];
  return !call->machine->in_kernel || threads % TIR_GROUP == 0;
}

bool interp_call_extern(struct machine *m, struct thread *t, const struct site *site, union value *result) {
  struct tir_extern_call call = {.machine = m, .thread = t, .site = site};
  bool ok = site->handler->run(&call, site->handler->data);
  if (!ok && !call.failed) return interp_fail(m, t, MS_RUN_UNSUPPORTED, "%s failed", site->name);
  if (!ok || call.failed) return false;
  if (tir_type_is_float(site->result))
    result->f = interp_round_to(site->result, call.result.real);
  else
    result->i = interp_wrap(site->result, call.result.integer);
  return true;
}
