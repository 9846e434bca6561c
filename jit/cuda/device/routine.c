/* Routines of other libraries on devices: buffers there, running, timing. */
#include "jit/backend.h"

#include <stdlib.h>
#include <string.h>

struct jit_routine {
  const struct jit_backend *backend;
  struct jit_device *device;
  uint32_t count;
  struct tir_arg *host;
  void **buffers; /* on the device */
  bool borrowed;  /* they are another routine's */
  bool cold;
  jit_routine_start *start;
  void *data;
  struct jit_captured *captured;
};

/* The backend, and the device that runs the target's code. */
static const struct jit_backend *open_device(const struct jit_target *target, struct jit_device **device,
                                             ms_error *err) {
  const struct jit_backend *backend = jit_backend_of(target);
  if (!backend->run_other) {
    ms_fail(err, MS_NO_DEVICE, "code for %s runs on no device", target->kind);
    return NULL;
  }
  return jit_target_runs_here(target, err) && backend->open(target, 0, device, err) ? backend : NULL;
}

bool jit_device_call(const struct jit_target *target, jit_routine_start *start, void *data, ms_error *err) {
  assert(target && start);
  struct jit_device *device;
  const struct jit_backend *backend = open_device(target, &device, err);
  return backend && backend->run_other(device, start, data, NULL, err);
}

static bool send(const struct jit_routine *r, uint32_t i, ms_error *err) {
  return !r->host[i].data ||
         r->backend->memory->write(r->device, r->buffers[i], r->host[i].data, r->host[i].bytes, err);
}

struct jit_routine *jit_routine_new(const struct jit_target *target, const struct tir_arg *buffers, uint32_t count,
                                    jit_routine_start *start, void *data, ms_error *err) {
  assert(target && start && count > 0);
  struct jit_device *device;
  const struct jit_backend *backend = open_device(target, &device, err);
  if (!backend) return NULL;
  struct jit_routine *r = calloc(1, sizeof *r);
  if (!r) abort();
  *r = (struct jit_routine){.backend = backend,
                            .device = device,
                            .count = count,
                            .host = calloc(count, sizeof *r->host),
                            .buffers = calloc(count, sizeof *r->buffers),
                            .cold = target->gpu.cold,
                            .start = start,
                            .data = data};
  if (!r->host || !r->buffers) abort();
  memcpy(r->host, buffers, count * sizeof *buffers);
  bool ok = true;
  for (uint32_t i = 0; i < count && ok; i++) {
    r->buffers[i] = backend->memory->get(device, r->host[i].bytes, err);
    ok = r->buffers[i] && send(r, i, err);
  }
  if (ok) return r;
  jit_routine_free(r);
  return NULL;
}

struct jit_routine *jit_routine_beside(const struct jit_routine *of, jit_routine_start *start, void *data) {
  assert(of && start);
  struct jit_routine *r = calloc(1, sizeof *r);
  if (!r) abort();
  *r = (struct jit_routine){.backend = of->backend,
                            .device = of->device,
                            .count = of->count,
                            .host = calloc(of->count, sizeof *r->host),
                            .buffers = calloc(of->count, sizeof *r->buffers),
                            .borrowed = true,
                            .cold = of->cold,
                            .start = start,
                            .data = data};
  if (!r->host || !r->buffers) abort();
  memcpy(r->host, of->host, of->count * sizeof *r->host);
  memcpy(r->buffers, of->buffers, of->count * sizeof *r->buffers);
  return r;
}

void jit_routine_free(struct jit_routine *r) {
  if (!r) return;
  r->backend->free_captured(r->captured);
  for (uint32_t i = 0; i < r->count && !r->borrowed; i++)
    r->backend->memory->release(r->device, r->buffers[i], r->host[i].bytes);
  free(r->host);
  free(r->buffers);
  free(r);
}

bool jit_routine_run(const struct jit_routine *r, ms_error *err) {
  const struct jit_memory *memory = r->backend->memory;
  for (uint32_t i = 0; i < r->count; i++)
    if (!send(r, i, err)) return false;
  if (!r->backend->run_other(r->device, r->start, r->data, r->buffers, err)) return false;
  for (uint32_t i = 0; i < r->count; i++)
    if (!memory->check_guards(r->device, r->buffers[i], r->host[i].bytes, err) ||
        (r->host[i].data && !memory->read(r->device, r->host[i].data, r->buffers[i], r->host[i].bytes, err)))
      return false;
  return true;
}

bool jit_routine_again(const struct jit_routine *r, ms_error *err) {
  return r->backend->run_other(r->device, r->start, r->data, r->buffers, err);
}

double jit_routine_sample(struct jit_routine *r, uint32_t calls, ms_error *err) {
  return r->backend->sample_other(r->device, r->start, r->data, r->buffers, r->cold, &r->captured, calls, err);
}
