/* Sequences: kernels of a device in order, on buffers that stay there. */
#include "backend.h"
#include "jit/measure/timing.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the host's that overlap no others, and where they are on the device. */
struct region {
  uintptr_t from, to;
  char *at;
};

/* A step as it is started; no kernel: a copy. */
struct started {
  const struct jit_kernel *kernel;
  void **args; /* addresses there, and of scalars */
  uint64_t *scalars;
  size_t bytes; /* of a copy */
};

struct jit_sequence {
  const struct jit_backend *backend;
  struct jit_device *device;
  struct region *regions; /* by address */
  uint32_t region_count, step_count;
  struct started *steps;
  void *workspace; /* of all kernels, which run one after another */
  size_t workspace_bytes;
  struct jit_captured *captured;
  ms_error why; /* of the last that could not be started */
};

/* ---- Buffers ---- */

static uint32_t arguments_of(const struct jit_step *step) {
  return step->kernel ? step->ir->funcs.at[step->func].params.count : 2;
}

static int by_address(const void *a, const void *b) {
  const struct region *x = a, *y = b;
  return x->from < y->from ? -1 : x->from > y->from;
}

/* The buffers of all steps as regions, in order, those joined that overlap. */
static void find_regions(struct jit_sequence *s, const struct jit_step *steps, uint32_t count) {
  size_t most = 1;
  for (uint32_t i = 0; i < count; i++) most += arguments_of(&steps[i]);
  s->regions = calloc(most, sizeof *s->regions);
  if (!s->regions) abort();
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t a = 0; a < arguments_of(&steps[i]); a++) {
      const struct tir_arg *arg = &steps[i].args[a];
      if (!arg->data || !arg->bytes) continue;
      s->regions[found++] = (struct region){.from = (uintptr_t)arg->data, .to = (uintptr_t)arg->data + arg->bytes};
    }
  qsort(s->regions, found, sizeof *s->regions, by_address);
  for (uint32_t i = 0; i < found; i++) {
    struct region *last = s->region_count ? &s->regions[s->region_count - 1] : NULL;
    if (last && s->regions[i].from < last->to) {
      if (last->to < s->regions[i].to) last->to = s->regions[i].to;
    } else
      s->regions[s->region_count++] = s->regions[i];
  }
}

/* A buffer there is aligned as the host's is. */
static bool place_regions(struct jit_sequence *s, ms_error *err) {
  for (uint32_t i = 0; i < s->region_count; i++) {
    struct region *r = &s->regions[i];
    if (r->from % TIR_BASE_ALIGNMENT)
      return ms_fail(err, MS_NOT_LAUNCHED, "a buffer of the host is not aligned to %d bytes", TIR_BASE_ALIGNMENT);
    r->at = s->backend->memory->get(s->device, r->to - r->from, err);
    if (!r->at) return false;
  }
  return true;
}

/* The first region that ends behind an address of the host's. */
static uint32_t first_behind(const struct jit_sequence *s, uintptr_t at) {
  uint32_t low = 0, high = s->region_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (s->regions[middle].to <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Where bytes of a step's are there: they lie in one region. */
static void *place_of(const struct jit_sequence *s, const void *host) {
  const struct region *r = &s->regions[first_behind(s, (uintptr_t)host)];
  assert((uintptr_t)host >= r->from && (uintptr_t)host < r->to);
  return r->at + ((uintptr_t)host - r->from);
}

/* ---- Steps ---- */

static void place_step(const struct jit_sequence *s, const struct jit_step *step, struct started *out) {
  uint32_t count = arguments_of(step);
  struct tir_arg *placed = calloc(count + (size_t)1, sizeof *placed);
  *out = (struct started){.kernel = step->kernel,
                          .args = calloc(count + (size_t)1, sizeof *out->args),
                          .scalars = calloc(count + (size_t)1, sizeof *out->scalars)};
  if (!placed || !out->args || !out->scalars) abort();
  static char nothing; /* a buffer of no bytes is somewhere */
  for (uint32_t i = 0; i < count; i++) {
    placed[i] = step->args[i];
    if (!placed[i].data) continue;
    placed[i].data = placed[i].bytes ? place_of(s, placed[i].data) : &nothing;
  }
  if (step->kernel)
    jit_arguments(step->ir, step->func, placed, out->args, out->scalars);
  else {
    assert(step->args[0].bytes == step->args[1].bytes);
    out->args[0] = placed[0].data, out->args[1] = placed[1].data, out->bytes = step->args[0].bytes;
  }
  free(placed);
}

static bool place_workspace(struct jit_sequence *s, ms_error *err) {
  for (uint32_t i = 0; i < s->step_count; i++) {
    size_t bytes = s->steps[i].kernel ? jit_kernel_workspace(s->steps[i].kernel) : 0;
    if (bytes > s->workspace_bytes) s->workspace_bytes = bytes;
  }
  if (s->workspace_bytes) s->workspace = s->backend->memory->get(s->device, s->workspace_bytes, err);
  return !s->workspace_bytes || s->workspace;
}

/* The device of the kernels, which is one. */
static const struct jit_kernel *kernel_of(const struct jit_step *steps, uint32_t count, ms_error *err) {
  const struct jit_kernel *first = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const struct jit_kernel *kernel = steps[i].kernel;
    if (kernel && !kernel->backend->start)
      return ms_fail(err, MS_NO_DEVICE, "kernels of the host run where their buffers are, and are called one by one"),
             NULL;
    if (kernel && first && kernel->device != first->device)
      return ms_fail(err, MS_NO_DEVICE, "kernels of one sequence run on one device"), NULL;
    if (kernel && kernel->packing.count)
      return ms_fail(err, MS_NOT_LAUNCHED,
                     "a kernel of a sequence packs constants ahead: function:packing() gives what "
                     "packs them, and what is left, which a sequence takes"),
             NULL;
    if (!first) first = kernel;
  }
  if (!first) ms_fail(err, MS_NOT_LAUNCHED, "a sequence has no kernel");
  return first;
}

struct jit_sequence *jit_sequence_new(const struct jit_step *steps, uint32_t count, ms_error *err) {
  assert(steps || !count);
  const struct jit_kernel *kernel = kernel_of(steps, count, err);
  if (!kernel) return NULL;
  struct jit_sequence *s = calloc(1, sizeof *s);
  if (!s || !(s->steps = calloc(count, sizeof *s->steps))) abort();
  s->backend = kernel->backend, s->device = kernel->device;
  find_regions(s, steps, count);
  if (place_regions(s, err)) {
    for (; s->step_count < count; s->step_count++) place_step(s, &steps[s->step_count], &s->steps[s->step_count]);
    if (place_workspace(s, err)) return s;
  }
  jit_sequence_free(s);
  return NULL;
}

void jit_sequence_free(struct jit_sequence *s) {
  if (!s) return;
  const struct jit_memory *memory = s->backend->memory;
  s->backend->free_captured(s->captured);
  for (uint32_t i = 0; i < s->region_count; i++)
    memory->release(s->device, s->regions[i].at, s->regions[i].to - s->regions[i].from);
  memory->release(s->device, s->workspace, s->workspace_bytes);
  for (uint32_t i = 0; i < s->step_count; i++) free(s->steps[i].args), free(s->steps[i].scalars);
  free(s->steps);
  free(s->regions);
  free(s);
}

uint64_t jit_sequence_bytes(const struct jit_sequence *s) {
  uint64_t bytes = s->workspace_bytes;
  for (uint32_t i = 0; i < s->region_count; i++) bytes += s->regions[i].to - s->regions[i].from;
  return bytes;
}

/* Copies what of the host's bytes steps have. */
static bool move(const struct jit_sequence *s, char *host, size_t bytes, bool back, ms_error *err) {
  const struct jit_memory *memory = s->backend->memory;
  uintptr_t from = (uintptr_t)host, to = from + bytes;
  for (uint32_t i = first_behind(s, from); i < s->region_count && s->regions[i].from < to; i++) {
    const struct region *r = &s->regions[i];
    uintptr_t first = r->from > from ? r->from : from, last = r->to < to ? r->to : to;
    char *here = host + (first - from), *there = r->at + (first - r->from);
    if (!(back ? memory->read(s->device, here, there, last - first, err)
               : memory->write(s->device, there, here, last - first, err)))
      return false;
  }
  return true;
}

bool jit_sequence_send(const struct jit_sequence *s, const void *buffer, size_t bytes, ms_error *err) {
  return move(s, (char *)(uintptr_t)buffer, bytes, false, err);
}

bool jit_sequence_fetch(const struct jit_sequence *s, void *buffer, size_t bytes, ms_error *err) {
  return move(s, buffer, bytes, true, err);
}

/* ---- Running ---- */

/* A jit_routine_start. */
static bool start_steps(void *data, void *const *buffers, void *stream) {
  struct jit_sequence *s = data;
  (void)buffers;
  for (uint32_t i = 0; i < s->step_count; i++) {
    const struct started *step = &s->steps[i];
    if (!(step->kernel ? s->backend->start(step->kernel, step->args, s->workspace, stream, &s->why)
                       : s->backend->start_copy(s->device, step->args[1], step->args[0], step->bytes, stream, &s->why)))
      return false;
  }
  return true;
}

bool jit_sequence_run(struct jit_sequence *s, ms_error *err) {
  const struct jit_memory *memory = s->backend->memory;
  s->why = (ms_error){.instruction = -1};
  if (!s->backend->run_other(s->device, start_steps, s, NULL, err))
    return *s->why.message ? ms_fail(err, s->why.code, "%s", s->why.message) : false;
  for (uint32_t i = 0; i < s->region_count; i++)
    if (!memory->check_guards(s->device, s->regions[i].at, s->regions[i].to - s->regions[i].from, err)) return false;
  return true;
}

struct timed {
  struct jit_sequence *sequence;
  ms_error *err;
};

static double sample(void *data, uint32_t calls) {
  const struct timed *t = data;
  struct jit_sequence *s = t->sequence;
  return s->backend->sample_other(s->device, start_steps, s, NULL, false, &s->captured, calls, t->err);
}

static void turn(void *data, bool begins, struct jit_conditions *out) {
  const struct jit_sequence *s = ((const struct timed *)data)->sequence;
  s->backend->turn(s->device, begins, out);
}

bool jit_sequence_time(struct jit_sequence *s, double tolerance, double limit, struct jit_timing *out, ms_error *err) {
  assert(tolerance > 0 && limit > 0);
  if (!jit_sequence_run(s, err)) return false; /* warms caches */
  ms_error why = {.instruction = -1};
  struct timed timed = {s, &why};
  const struct timing_subject subject = {.sample = sample, .turn = turn, .data = &timed};
  const struct timing_plan plan = {
      .tolerance = tolerance, .limit = limit, .once = sample(&timed, 1), .again = 2, .clock = &timing_apart};
  return timing_or_why(&subject, &plan, &why, out, err);
}
