/* Calls of compiled code: arguments and workspace in the kernel's memory, running, timing. */
#include "backend.h"
#include "jit/host/trap.h"
#include "jit/measure/measure.h"
#include "jit/measure/timing.h"
#include "jit/team.h"

#include <stdlib.h>
#include <string.h>

struct jit_call {
  const struct jit_kernel *kernel;
  uint32_t count;
  struct tir_arg *host; /* arguments as they were given */
  void **args;          /* as the function has them: buffers in the kernel's memory */
  void **taken;         /* as the kernel takes them: the same, or with what is packed */
  struct jit_packed packed;
  uint64_t *scalars;
  void *workspace;
  const volatile int *stop; /* NULL, or: not 0: its runs end */
};

void jit_arguments(const struct tir *ir, tir_func f, const struct tir_arg *args, void **pointers, uint64_t *scalars) {
  assert(tir_is_func(ir, f) && pointers && scalars);
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    tir_type type = p->buffer ? TIR_T_VOID : ir->vars.at[p->var].type;
    pointers[i] = args[i].data ? args[i].data : &scalars[i];
    scalars[i] = (uint64_t)args[i].scalar; /* little-endian: narrower integers are read from the low bytes */
    if (!p->buffer && tir_type_is_float(type)) tir_put_element(type, &scalars[i], args[i].real);
  }
}

bool jit_goes_on(const volatile int *stop, ms_error *err) {
  return !stop || !*stop || ms_fail(err, MS_RUN_STOPPED, "the run was stopped");
}

static const struct jit_memory *memory_of(const struct jit_call *call) { return call->kernel->backend->memory; }

/* Buffers of the host are the kernel's where it runs in place; elsewhere they have others. */
static bool place_arguments(struct jit_call *call, const struct tir *ir, tir_func f, ms_error *err) {
  const struct jit_memory *memory = memory_of(call);
  struct tir_arg *placed = calloc(call->count + 1, sizeof *placed);
  if (!placed) abort();
  bool ok = true;
  for (uint32_t i = 0; i < call->count; i++) {
    placed[i] = call->host[i];
    if (memory->in_place || !placed[i].data || !ok) continue;
    placed[i].data = memory->get(call->kernel->device, placed[i].bytes, err);
    ok = placed[i].data != NULL;
  }
  jit_arguments(ir, f, placed, call->args, call->scalars);
  free(placed);
  return ok;
}

static bool place_workspace(struct jit_call *call, ms_error *err) {
  size_t bytes = jit_kernel_workspace(call->kernel);
  const struct jit_memory *memory = memory_of(call);
  if (!bytes) return true;
  if (!memory->in_place) return (call->workspace = memory->get(call->kernel->device, bytes, err)) != NULL;
  call->workspace = jit_new_memory(bytes);
  return call->workspace || ms_fail(err, MS_TOO_LARGE, "a workspace of %zu bytes cannot be had", bytes);
}

/* To where the kernel has them, or from there, all of its buffers. */
static bool move_arguments(const struct jit_call *call, bool back, ms_error *err) {
  const struct jit_memory *memory = memory_of(call);
  struct jit_device *device = call->kernel->device;
  for (uint32_t i = 0; i < call->count && !memory->in_place; i++) {
    const struct tir_arg *host = &call->host[i];
    if (!host->data) continue;
    if (back && !memory->check_guards(device, call->args[i], host->bytes, err)) return false;
    if (!(back ? memory->read(device, host->data, call->args[i], host->bytes, err)
               : memory->write(device, call->args[i], host->data, host->bytes, err)))
      return false;
  }
  return true;
}

/* Packs constants where the kernel has them. */
static bool pack(struct jit_call *call, ms_error *err) {
  const struct jit_kernel *kernel = call->kernel;
  return (!kernel->packing.count || move_arguments(call, false, err)) &&
         jit_pack(&call->packed, kernel, call->args, true, NULL, err);
}

struct jit_call *jit_call_new(const struct jit_kernel *kernel, const struct tir *ir, tir_func f,
                              const struct tir_arg *args, ms_error *err) {
  assert(kernel && tir_is_func(ir, f));
  size_t count = ir->funcs.at[f].params.count + (size_t)1;
  struct jit_call *call = calloc(1, sizeof *call);
  if (!call) abort();
  *call = (struct jit_call){.kernel = kernel,
                            .count = (uint32_t)count - 1,
                            .host = calloc(count, sizeof *call->host),
                            .args = calloc(count, sizeof *call->args),
                            .scalars = calloc(count, sizeof *call->scalars)};
  if (!call->host || !call->args || !call->scalars) abort();
  memcpy(call->host, args, call->count * sizeof *args);
  trap_install();
  if (place_arguments(call, ir, f, err) && place_workspace(call, err) && pack(call, err)) {
    call->taken = jit_packed_arguments(&call->packed, call->args);
    return call;
  }
  jit_call_free(call);
  return NULL;
}

void jit_call_free(struct jit_call *call) {
  if (!call) return;
  const struct jit_memory *memory = memory_of(call);
  struct jit_device *device = call->kernel->device;
  for (uint32_t i = 0; i < call->count && !memory->in_place; i++)
    if (call->host[i].data) memory->release(device, call->args[i], call->host[i].bytes);
  if (memory->in_place)
    free(call->workspace);
  else
    memory->release(device, call->workspace, jit_kernel_workspace(call->kernel));
  jit_packed_free(&call->packed);
  free(call->host);
  free(call->args);
  free(call->scalars);
  free(call);
}

void jit_call_stop_at(struct jit_call *call, const volatile int *stop) {
  assert(call);
  call->stop = stop;
}

bool jit_call_run(const struct jit_call *call, ms_error *err) {
  return jit_goes_on(call->stop, err) && move_arguments(call, false, err) &&
         call->kernel->backend->run(call->kernel, call->taken, call->workspace, true, call->stop, err) &&
         move_arguments(call, true, err);
}

/* ---- In order, and side by side ---- */

static int32_t enter_lane(struct jit_call *const *calls, uint32_t count) {
  int32_t status = 0;
  for (uint32_t i = 0; i < count && !status; i++)
    status = calls[i]->kernel->entry(calls[i]->taken, calls[i]->workspace);
  return status;
}

/* Lanes at the same time, and the first of those that failed, with its status behind it. */
struct side_by_side {
  struct jit_call *const *calls;
  const struct jit_lane *lanes;
  uint64_t failed;
};
static const uint64_t NONE_FAILED = UINT64_MAX;

static void enter_part(void *data) {
  struct side_by_side *s = data;
  struct jit_call *const *calls = s->calls;
  uint64_t lane = (uint64_t)team_part();
  for (uint64_t i = 0; i < lane; i++) calls += s->lanes[i].count;
  int32_t status = enter_lane(calls, s->lanes[lane].count);
  if (!status) return;
  uint64_t own = lane << 32 | (uint32_t)status, known = __atomic_load_n(&s->failed, __ATOMIC_RELAXED);
  while (own < known) /* which is what others noted meanwhile */
    if (__atomic_compare_exchange_n(&s->failed, &known, own, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) break;
}

static int32_t enter_side_by_side(struct jit_call *const *calls, const struct jit_lane *lanes, uint32_t count) {
  struct side_by_side s = {calls, lanes, NONE_FAILED};
  trap_parallel(enter_part, &s, count, 0);
  return s.failed == NONE_FAILED ? 0 : (int32_t)(uint32_t)s.failed;
}

struct in_order {
  struct jit_call *const *calls;
  const struct jit_lane *lanes;
  uint32_t count;
  int32_t status;
};
static void enter_all(void *data) {
  struct in_order *o = data;
  struct jit_call *const *calls = o->calls;
  for (uint32_t i = 0, next; i < o->count && !o->status; i = next) {
    for (next = i + 1; next < o->count && o->lanes[next].beside;) next++;
    o->status =
        next == i + 1 ? enter_lane(calls, o->lanes[i].count) : enter_side_by_side(calls, &o->lanes[i], next - i);
    for (uint32_t k = i; k < next; k++) calls += o->lanes[k].count;
  }
}

/* All are code of this process, on buffers that they run on, and stop together. */
static bool run_together(struct jit_call *const *calls, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const struct jit_kernel *kernel = calls[i]->kernel;
    if (!kernel->entry || !kernel->backend->memory->in_place || calls[i]->stop != calls[0]->stop) return false;
  }
  return count > 0;
}

bool jit_calls_run(struct jit_call *const *calls, const struct jit_lane *lanes, uint32_t count, ms_error *err) {
  assert((calls && lanes) || !count);
  uint32_t all = 0;
  for (uint32_t i = 0; i < count; i++) all += lanes[i].count;
  if (!run_together(calls, all)) {
    for (uint32_t i = 0; i < all; i++)
      if (!jit_call_run(calls[i], err)) return false;
    return true;
  }
  if (!jit_goes_on(calls[0]->stop, err)) return false;
  struct in_order order = {calls, lanes, count, 0};
  return trap_run(enter_all, &order, calls[0]->stop, err) && jit_passed(order.status, err);
}

/* The kernel that is timed: short calls follow each other without a pause, and a stop takes effect between them. */
struct timed {
  const struct jit_call *call;
  bool is_long;
  ms_error *err;
};
static const double LONG_CALL = 1e-3; /* seconds: above, what it takes to be stopped in the middle does not matter */

static double sample(void *data, uint32_t calls) {
  const struct timed *t = data;
  const struct jit_call *call = t->call;
  struct jit_running running = {call->kernel, call->taken, call->workspace, t->err, t->is_long ? call->stop : NULL};
  return jit_goes_on(call->stop, t->err) ? jit_sample(&running, calls) : -1;
}

double jit_call_sample(const struct jit_call *call, uint32_t calls, ms_error *err) {
  return sample(&(struct timed){call, true, err}, calls);
}

void jit_call_turn(const struct jit_call *call, bool begins, struct jit_conditions *out) {
  struct jit_running running = {.kernel = call->kernel};
  jit_running_turn(&running, begins, out);
}

static void turn(void *data, bool begins, struct jit_conditions *out) {
  jit_call_turn(((const struct timed *)data)->call, begins, out);
}

bool jit_call_time(const struct jit_call *call, double tolerance, double limit, struct jit_timing *out, ms_error *err) {
  assert(tolerance > 0 && limit > 0);
  double start = measure_now();
  if (!jit_call_run(call, err)) return false; /* warms caches and pages */
  ms_error why = {.instruction = -1};
  struct timed timed = {call, measure_now() - start > LONG_CALL, &why};
  const struct timing_subject subject = {.sample = sample, .turn = turn, .data = &timed};
  double once = sample(&timed, 1);
  timed.is_long = once > LONG_CALL;
  struct timing_plan plan = {.tolerance = tolerance,
                             .limit = limit,
                             .once = once,
                             .again = 2,
                             .clock = call->kernel->backend->apart ? &timing_apart : NULL};
  return timing_or_why(&subject, &plan, &why, out, err);
}

bool jit_run(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
             const struct tir_arg *args, ms_error *err) {
  assert(target && args);
  struct jit_code *code = jit_compile(ir, f, target, options, err);
  struct jit_kernel *kernel = code ? jit_load(code, err) : NULL;
  struct jit_call *call = kernel ? jit_call_new(kernel, ir, f, args, err) : NULL;
  bool ok = call && jit_call_run(call, err);
  jit_call_free(call);
  jit_kernel_free(kernel);
  jit_code_free(code);
  return ok;
}
