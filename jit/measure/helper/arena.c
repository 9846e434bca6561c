/* Each process's own arguments, in the memory of the kernels that it runs. */
#include "helper.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

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
  bool is_apart = a->w->written[i] && !a->lean;
  a->originals[i] = memory->in_place ? input : is_apart ? memory->get(a->device, bytes_of(a, i), err) : *at;
  if (!a->originals[i]) return false;
  if (!memory->in_place && !fill(a, i, a->originals[i], false, err)) return false;
  if (*at != a->originals[i] && !memory->copy(a->device, *at, a->originals[i], bytes_of(a, i), err)) return false;
  return !memory->protect || a->w->written[i] || memory->protect(*at, bytes_of(a, i)) ||
         ms_fail(err, MS_TOO_LARGE, "what is only read cannot be protected from writes: memory is short");
}

/* What it is timed with: where that is other data, in memory of its own. */
static bool place_timed(struct arena *a, uint32_t i, ms_error *err) {
  a->timed[i] = a->pointers[i];
  if (a->memory->in_place || a->lean || !a->w->timed.args[i].data) return true;
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
                      .lean = w->made->on_device && w->made->lean,
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
