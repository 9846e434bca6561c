/* What candidates compute on: inputs, what the reference gives, and each process's own arguments. */
#define _GNU_SOURCE
#include "helper.h"

#include "vm/vm.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Memory ---- */

void *shared_new(size_t bytes) {
  void *at = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* ---- The workload ---- */

/* What the reference leaves where the function does not write is what it found there: the same memory, once a task.
 * Pages that nobody fills are no memory. */
static bool share_arguments(struct workload *w, ms_error *err) {
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    struct tir_arg *input = &w->inputs.args[i], *expected = &w->expected.args[i], *timed = &w->timed.args[i];
    if (!input->shape) continue;
    bool digits = jit_timed_with_digits(w->ir, w->f, &w->hello->target, i);
    input->data = shared_new(input->bytes);
    expected->data = w->written[i] ? shared_new(input->bytes) : input->data;
    timed->data = digits ? shared_new(input->bytes) : NULL;
    if (!input->data || !expected->data || (digits && !timed->data))
      return ms_fail(err, MS_TOO_LARGE, "no memory of %zu bytes for an argument can be had", input->bytes);
  }
  return true;
}

static bool read_texts(struct workload *w, const char *texts, size_t first, size_t length, ms_error *err) {
  char *second = strndup(texts + first, length - first);
  if (!second) abort();
  w->ir = tir_read(texts, first, "workload", err);
  w->intrinsics = w->ir ? vm_read_intrinsics(second, "intrinsics", err) : NULL;
  free(second);
  return w->intrinsics != NULL;
}

void workload_fill(const struct workload *w) {
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    if (!w->inputs.args[i].data) continue;
    tir_fill_argument(w->ir, w->f, 1, i, &w->inputs.args[i]);
    if (w->timed.args[i].data) tir_fill_real_argument(w->ir, w->f, 1, i, &w->timed.args[i]);
  }
}

/* What the interpreter does soon, and little data, are soonest made and compared by the host. */
static const double LARGE_STEPS = 0x1p21, LARGE_BYTES = 0x1p24;

static bool is_large(const struct workload *w) {
  double bytes = 0;
  for (uint32_t i = 0; i < w->inputs.count; i++) bytes += (double)w->inputs.args[i].bytes;
  return jit_backend_of(&w->hello->target)->checks && (bytes > LARGE_BYTES || jit_steps_of(w->ir, w->f) > LARGE_STEPS);
}

struct jit_contents workload_contents(const struct workload *w, uint32_t parameter) {
  tir_buffer b = w->ir->params.at[w->ir->funcs.at[w->f].params.first + parameter].buffer;
  assert(b);
  tir_type type = tir_type_with_lanes(tir_buffer_at(w->ir, b)->type, 1);
  size_t size = ((size_t)tir_type_bits(type) + 7) / 8;
  return (struct jit_contents){
      .type = type, .elements = w->inputs.args[parameter].bytes / size, .seed = 1, .stream = parameter};
}

bool workload_open(struct workload *w, const struct measure_hello *hello, const struct measure_task *task,
                   const char *texts, size_t length, ms_error *err) {
  *w = (struct workload){.hello = hello, .f = task->function, .reference = {.tolerance = -1}};
  if (!read_texts(w, texts, task->workload < length ? task->workload : length, length, err)) return false;
  if (w->f >= w->ir->funcs.count) return ms_fail(err, MS_NOT_MEASURABLE, "the workload has no function %u", w->f);
  if (!tir_shape_arguments(w->ir, w->f, 1, &w->inputs, err)) return false;
  w->written = calloc(w->inputs.count + 1, sizeof *w->written);
  if (!w->written) abort();
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    tir_buffer b = w->ir->params.at[w->ir->funcs.at[w->f].params.first + i].buffer;
    w->written[i] = b && jit_may_write(w->ir, w->f, b);
  }
  tir_copy_arguments(w->ir, w->f, &w->inputs, &w->expected);
  tir_copy_arguments(w->ir, w->f, &w->inputs, &w->timed);
  w->large = is_large(w);
  w->made = shared_new(sizeof *w->made);
  if (!w->made) return ms_fail(err, MS_TOO_LARGE, "no memory for a task can be had");
  if (!share_arguments(w, err)) return false;
  if (!w->large) workload_fill(w);
  return true;
}

static void drop(const struct tir_arg *arg) {
  if (arg->data && arg->bytes) madvise(arg->data, arg->bytes, MADV_REMOVE);
}

void workload_drop_arguments(struct workload *w) {
  assert(w->ir);
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    drop(&w->inputs.args[i]);
    drop(&w->timed.args[i]);
    if (w->written[i]) drop(&w->expected.args[i]);
  }
}

/* ---- One process's arguments ---- */

static size_t bytes_of(const struct arena *a, uint32_t i) { return a->w->inputs.args[i].bytes; }

static void *allocate(size_t count, size_t size) {
  void *at = calloc(count + 1, size);
  if (!at) abort();
  return at;
}

/* Puts there what a buffer holds at first, or what it is timed with. */
static bool fill(struct arena *a, uint32_t i, void *at, bool timed, ms_error *err) {
  const struct tir_arguments *from = timed ? &a->w->timed : &a->w->inputs;
  const struct jit_checks *checks = jit_backend_of(&a->w->hello->target)->checks;
  const struct jit_contents contents = workload_contents(a->w, i);
  if (a->checker) return checks->fill(a->checker, at, &contents, timed ? JIT_FILL_REAL : JIT_FILL_WHOLE, err);
  return a->memory->write(a->device, at, from->args[i].data, bytes_of(a, i), err);
}

/* Memory in place has the inputs, which all processes share, for originals. */
static bool place(struct arena *a, uint32_t i, void **at, ms_error *err) {
  const struct jit_memory *memory = a->memory;
  void *input = a->w->inputs.args[i].data;
  if (!(*at = memory->get(a->device, bytes_of(a, i), err))) return false;
  a->originals[i] = memory->in_place ? input : a->w->written[i] ? memory->get(a->device, bytes_of(a, i), err) : *at;
  if (!a->originals[i]) return false;
  if (!memory->in_place && !fill(a, i, a->originals[i], false, err)) return false;
  if (*at != a->originals[i] && !memory->copy(a->device, *at, a->originals[i], bytes_of(a, i), err)) return false;
  return !memory->protect || a->w->written[i] || memory->protect(*at, bytes_of(a, i)) ||
         ms_fail(err, MS_TOO_LARGE, "what is only read cannot be protected from writes: memory is short");
}

/* What it is timed with: where that is other data, in memory of its own. */
static bool place_timed(struct arena *a, uint32_t i, ms_error *err) {
  a->timed[i] = a->pointers[i];
  if (a->memory->in_place || !a->w->timed.args[i].data) return true;
  void *at = a->memory->get(a->device, bytes_of(a, i), err);
  if (at) a->timed[i] = at;
  return at && fill(a, i, at, true, err);
}

static bool open_checker(struct arena *a, const struct jit_backend *backend, ms_error *err) {
  const struct made *made = a->w->made;
  if (a->memory->in_place || !made->on_device) return true;
  a->checker = backend->checks->open(a->device, made->code + made->checks_at, err);
  return a->checker != NULL;
}

bool arena_open(struct arena *a, const struct workload *w, const struct jit_backend *backend, struct jit_device *device,
                ms_error *err) {
  uint32_t count = w->inputs.count;
  assert(count == w->ir->funcs.at[w->f].params.count && count == w->expected.count);
  *a = (struct arena){.w = w,
                      .memory = backend->memory,
                      .device = device,
                      .pointers = allocate(count, sizeof *a->pointers),
                      .timed = allocate(count, sizeof *a->timed),
                      .originals = allocate(count, sizeof *a->originals),
                      .scalars = allocate(count, sizeof *a->scalars),
                      .expected = allocate(count, sizeof *a->expected),
                      .real = allocate(count, sizeof *a->real),
                      .args = {allocate(count, sizeof *a->args.args), count}};
  struct tir_arg *placed = allocate(count, sizeof *placed);
  bool ok = open_checker(a, backend, err);
  for (uint32_t i = 0; i < count; i++) {
    placed[i] = a->args.args[i] = w->inputs.args[i];
    if (!w->inputs.args[i].data) continue;
    placed[i].data = NULL;
    ok = ok && place(a, i, &placed[i].data, err);
    a->args.args[i].data = a->memory->in_place ? placed[i].data : allocate(bytes_of(a, i), 1);
  }
  jit_arguments(w->ir, w->f, placed, a->pointers, a->scalars);
  for (uint32_t i = 0; i < count; i++)
    if (w->inputs.args[i].data) a->pointers[i] = placed[i].data;
  for (uint32_t i = 0; i < count; i++) ok = ok && place_timed(a, i, err);
  free(placed);
  return ok;
}

void arena_close(struct arena *a) {
  device_forget(a);
  for (uint32_t i = 0; i < a->args.count; i++) {
    if (!a->w->inputs.args[i].data) continue;
    if (a->timed[i] && a->timed[i] != a->pointers[i]) a->memory->release(a->device, a->timed[i], bytes_of(a, i));
    a->memory->release(a->device, a->pointers[i], bytes_of(a, i));
    if (a->memory->in_place) continue;
    if (a->originals[i] != a->pointers[i]) a->memory->release(a->device, a->originals[i], bytes_of(a, i));
    free(a->args.args[i].data);
  }
  if (a->checker) jit_backend_of(&a->w->hello->target)->checks->close(a->checker);
  free(a->expected);
  free(a->real);
  free(a->args.args);
  free(a->originals);
  free(a->timed);
  free(a->pointers);
  free(a->scalars);
}

bool arena_reset(struct arena *a, ms_error *err) {
  for (uint32_t i = 0; i < a->args.count; i++)
    if (a->w->written[i] && !a->memory->copy(a->device, a->pointers[i], a->originals[i], bytes_of(a, i), err))
      return false;
  return true;
}

bool arena_check_guards(struct arena *a, ms_error *err) {
  for (uint32_t i = 0; i < a->args.count && !a->memory->in_place; i++) {
    if (!a->w->inputs.args[i].data) continue;
    if (!a->memory->check_guards(a->device, a->pointers[i], bytes_of(a, i), err)) return false;
    bool apart = a->timed[i] != a->pointers[i];
    if (apart && !a->memory->check_guards(a->device, a->timed[i], bytes_of(a, i), err)) return false;
  }
  return true;
}

bool arena_fetch(struct arena *a, ms_error *err) {
  for (uint32_t i = 0; i < a->args.count && !a->memory->in_place; i++) {
    if (!a->w->inputs.args[i].data) continue;
    if (!a->memory->check_guards(a->device, a->pointers[i], bytes_of(a, i), err)) return false;
    if (!a->checker && !a->memory->read(a->device, a->args.args[i].data, a->pointers[i], bytes_of(a, i), err))
      return false;
  }
  return true;
}

bool arena_compare(struct arena *a, double tolerance, ms_error *err) {
  if (a->checker) return device_compare(a, false, tolerance, NULL, err);
  struct tir_arguments expected = a->w->expected, actual = a->args;
  struct tir_arg *args = malloc(2 * (actual.count + 1) * sizeof *args);
  if (!args) abort();
  for (uint32_t i = 0; i < actual.count; i++) {
    args[i] = expected.args[i], args[actual.count + i] = actual.args[i];
    if (!a->w->written[i] && a->memory->protect) args[i].bytes = args[actual.count + i].bytes = 0; /* as it was */
  }
  expected.args = args, actual.args = args + actual.count;
  bool same = tir_same_arguments(a->w->ir, a->w->f, &expected, &actual, tolerance, err);
  free(args);
  return same;
}

bool arena_has_nan(const struct arena *a) {
  if (a->checker) return a->nan;
  struct tir_span params = a->w->ir->funcs.at[a->w->f].params;
  for (uint32_t i = 0; i < a->args.count; i++) {
    tir_buffer b = a->w->ir->params.at[params.first + i].buffer;
    tir_type type = b ? tir_buffer_at(a->w->ir, b)->type : TIR_T_VOID;
    if (!b || !tir_type_is_float(type)) continue;
    const uint8_t *actual = a->args.args[i].data, *expected = a->w->expected.args[i].data;
    size_t step = (size_t)tir_type_bits(type) / 8;
    for (size_t at = 0; at + step <= bytes_of(a, i); at += step)
      if (isnan(tir_fetch_element(type, actual + at)) && !isnan(tir_fetch_element(type, expected + at))) return true;
  }
  return false;
}
