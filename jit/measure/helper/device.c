/* Arguments, results and their comparison where kernels run, apart from the host: only what was found comes back. */
#include "helper.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const struct jit_backend *backend_of(const struct arena *a) { return jit_backend_of(&a->w->hello->target); }
static const struct jit_checks *checks_of(const struct arena *a) { return backend_of(a)->checks; }
static size_t bytes_of(const struct arena *a, uint32_t i) { return a->w->inputs.args[i].bytes; }

/* ---- Running ---- */

/* Where memory is short: buffers that the function may write, and those that hold the other kind of numbers. */
static bool refill(struct arena *a, bool real, ms_error *err) {
  for (uint32_t i = 0; i < a->args.count; i++) {
    if (!a->w->inputs.args[i].data || !(a->w->written[i] || a->holds_real != real)) continue;
    const struct jit_contents contents = workload_contents(a->w, i);
    enum jit_filling how = real && (a->w->written[i] || a->w->timed.args[i].data) ? JIT_FILL_REAL : JIT_FILL_WHOLE;
    if (!checks_of(a)->fill(a->checker, a->pointers[i], &contents, how, err)) return false;
  }
  a->holds_real = real;
  return true;
}

static bool reset_to_real(struct arena *a, ms_error *err) {
  for (uint32_t i = 0; i < a->args.count; i++) {
    if (!a->w->written[i]) continue;
    const struct jit_contents contents = workload_contents(a->w, i);
    if (!checks_of(a)->fill(a->checker, a->pointers[i], &contents, JIT_FILL_REAL, err)) return false;
  }
  return true;
}

bool arena_reset(struct arena *a, ms_error *err) {
  if (a->lean) return refill(a, false, err);
  for (uint32_t i = 0; i < a->args.count; i++)
    if (a->w->written[i] && !a->memory->copy(a->device, a->pointers[i], a->originals[i], bytes_of(a, i), err))
      return false;
  return true;
}

bool device_reset(struct arena *a, bool real, ms_error *err) {
  if (a->lean) return refill(a, real, err);
  return real ? reset_to_real(a, err) : arena_reset(a, err);
}

bool device_run(struct arena *a, const struct jit_kernel *kernel, void *workspace, bool real, ms_error *err) {
  assert(a->checker);
  return device_reset(a, real, err) &&
         kernel->backend->run(kernel, real ? a->timed : a->pointers, workspace, false, NULL, err);
}

/* ---- What is expected ---- */

static bool keep_buffer(struct arena *a, uint32_t i, bool real, ms_error *err) {
  const struct jit_contents contents = workload_contents(a->w, i);
  struct expected *e = real ? &a->real[i] : &a->expected[i], *other = real ? &a->expected[i] : &a->real[i];
  struct jit_difference found;
  if (a->lean && !e->at) e->at = other->at, other->at = NULL;
  if (!e->at) e->at = a->memory->get(a->device, bytes_of(a, i), err);
  if (!e->at || !a->memory->copy(a->device, e->at, a->pointers[i], bytes_of(a, i), err) ||
      !checks_of(a)->compare(a->checker, e->at, e->at, &contents, 0, &found, err))
    return false;
  e->largest = found.largest, e->whole = !found.fractions;
  return true;
}

bool device_keep(struct arena *a, bool real, ms_error *err) {
  for (uint32_t i = 0; i < a->args.count; i++)
    if (a->w->written[i] && !keep_buffer(a, i, real, err)) return false;
  return true;
}

static bool is_expected(const struct arena *a, bool real) {
  for (uint32_t i = 0; i < a->args.count; i++)
    if (a->w->written[i]) return (real ? a->real[i] : a->expected[i]).at != NULL;
  return false;
}

bool device_expect(struct arena *a, bool real, ms_error *err) {
  const struct made *made = a->w->made;
  if (is_expected(a, real)) return true;
  size_t bytes = made->workspace.bytes;
  struct jit_code *code =
      jit_code_of_object(made->code, made->code_bytes, &a->w->hello->target, &made->workspace, NULL, made->name);
  struct jit_kernel *kernel = jit_load_on(code, a->device, false, err);
  void *workspace = kernel && bytes ? a->memory->get(a->device, bytes, err) : NULL;
  bool ok = kernel && (workspace || !bytes) && device_run(a, kernel, workspace, real, err) && device_keep(a, real, err);
  a->memory->release(a->device, workspace, bytes);
  jit_kernel_free(kernel);
  jit_code_free(code);
  if (!ok) device_forget(a); /* some of it may be there */
  return ok;
}

void device_forget(struct arena *a) {
  for (uint32_t i = 0; i < a->args.count; i++) {
    a->memory->release(a->device, a->expected[i].at, bytes_of(a, i));
    a->memory->release(a->device, a->real[i].at, bytes_of(a, i));
    a->expected[i].at = a->real[i].at = NULL;
  }
}

/* ---- Comparing ---- */

/* Says how the first element differs; how many do, and which is off the most. */
static bool refuse(struct arena *a, uint32_t i, const void *expected, const void *actual,
                   const struct jit_difference *d, double slack, ms_error *err) {
  const struct workload *w = a->w;
  const struct jit_contents contents = workload_contents(w, i);
  size_t size = bytes_of(a, i) / contents.elements;
  uint64_t x = 0, y = 0;
  tir_buffer b = w->ir->params.at[w->ir->funcs.at[w->f].params.first + i].buffer;
  if (!a->memory->read(a->device, &y, (const char *)actual + d->first * size, size, err)) return false;
  if (expected && !a->memory->read(a->device, &x, (const char *)expected + d->first * size, size, err)) return false;
  if (!expected)
    return ms_fail(err, MS_RUN_DIFFERENT, "%s, which is only read, was written: %llu of its %llu elements",
                   tir_buffer_name(w->ir, b), (unsigned long long)d->elements, (unsigned long long)contents.elements);
  tir_refuse_element(w->ir, b, w->inputs.args[i].shape, d->first, &x, &y, slack, err);
  size_t length = err ? strlen(err->message) : 0;
  if (err && isfinite(d->off) && d->elements > 1)
    snprintf(err->message + length, sizeof err->message - length,
             "; %llu of %llu elements differ, by %.3g at most, element %llu", (unsigned long long)d->elements,
             (unsigned long long)contents.elements, d->off, (unsigned long long)d->most);
  else if (err && d->elements > 1)
    snprintf(err->message + length, sizeof err->message - length, "; %llu of %llu elements differ",
             (unsigned long long)d->elements, (unsigned long long)contents.elements);
  return false;
}

/* Of what is only read, that it is as it was made. */
static bool compare_buffer(struct arena *a, uint32_t i, bool real, double tolerance, double *off, ms_error *err) {
  const struct expected *e = real ? &a->real[i] : &a->expected[i];
  struct jit_contents contents = workload_contents(a->w, i);
  void *actual = real ? a->timed[i] : a->pointers[i];
  bool floats = tir_type_is_float(contents.type);
  double slack = floats && a->w->written[i] && tolerance > 0 ? tolerance * e->largest : 0;
  struct jit_difference found;
  contents.real = a->lean ? real && a->w->timed.args[i].data : actual != a->pointers[i];
  assert(!a->w->written[i] || e->at);
  assert(!a->lean || a->holds_real == real);
  if (!checks_of(a)->compare(a->checker, a->w->written[i] ? e->at : NULL, actual, &contents, slack, &found, err))
    return false;
  if (off && found.off > 0) *off = fmax(*off, found.off / e->largest);
  a->nan = found.nans > 0;
  return !found.elements || refuse(a, i, e->at, actual, &found, slack, err);
}

bool device_compare(struct arena *a, bool real, double tolerance, double *off, ms_error *err) {
  assert(a->checker);
  if (off) *off = 0;
  for (uint32_t i = 0; i < a->args.count; i++)
    if (a->w->inputs.args[i].data && !compare_buffer(a, i, real, tolerance, off, err)) return false;
  return true;
}
