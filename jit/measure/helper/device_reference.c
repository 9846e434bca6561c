/* What the workload computes, on the device: the unscheduled function as simple kernels, on arguments that are made
 * there. It is not trusted unseen: elements that are drawn must be what the interpreter makes of the function itself,
 * on whole numbers and on real ones; where these take too long, all of it is held against a build for this machine's
 * processor. */
#include "helper.h"
#include "jit/measure/arrange_threads.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- Code, by several threads: each takes some tenths of a second ---- */

struct job {
  const struct workload *w;
  const struct jit_backend *backend;
  bool fast;             /* with faster arithmetic */
  struct jit_code *code; /* what came of it: of the function, … */
  void *bytes;           /* … of what fills and compares */
  size_t count;
  struct jit_device *device;
  ms_error err;
};

/* Kernels of the reference have names by which they are known. */
static bool rename_function(struct tir *ir, tir_func f) {
  ir->funcs.at[f].name = tir_symbol_format(ir, "reference_of_%s", tir_text(ir, ir->funcs.at[f].name));
  return true;
}

static struct jit_code *build(struct job *j, uint32_t attempt) {
  const struct jit_options options = {.no_fast_math = !j->fast, .in_one = true};
  const struct jit_target *target = &j->w->hello->target;
  struct tir *ir = tir_new();
  tir_copy(ir, j->w->ir);
  struct jit_code *code = NULL;
  if (rename_function(ir, j->w->f) && j->backend->checks->arrange(ir, j->w->f, target, attempt, &j->err))
    code = jit_compile(ir, j->w->f, target, &options, &j->err);
  if (code && !jit_code_assemble(code, &j->err)) {
    jit_code_free(code);
    code = NULL;
  }
  tir_free(ir);
  return code;
}

static void *build_function(void *data) {
  struct job *j = data;
  for (uint32_t attempt = 0; !j->code && attempt < JIT_ARRANGE_ATTEMPTS; attempt++) {
    ms_clear(&j->err);
    j->code = build(j, attempt);
  }
  return NULL;
}

static void *build_checks(void *data) {
  struct job *j = data;
  j->bytes = j->backend->checks->compile(&j->w->hello->target, &j->count, &j->err);
  return NULL;
}

static void *open_device(void *data) {
  struct job *j = data;
  if (j->backend->prepare) j->backend->prepare(&j->w->hello->target);
  j->backend->open(&j->w->hello->target, 0, &j->device, &j->err);
  return NULL;
}

enum { FUNCTION, FAST_FUNCTION, CHECKS, DEVICE, JOBS };

static bool do_all(const struct workload *w, struct job jobs[JOBS], ms_error *err) {
  static void *(*const bodies[JOBS])(void *) = {build_function, build_function, build_checks, open_device};
  pthread_t threads[JOBS];
  bool started[JOBS];
  for (int i = 0; i < JOBS; i++) {
    jobs[i] = (struct job){
        .w = w, .backend = jit_backend_of(&w->hello->target), .fast = i == FAST_FUNCTION, .err = {.instruction = -1}};
    started[i] = i != FUNCTION && !pthread_create(&threads[i], NULL, bodies[i], &jobs[i]);
  }
  for (int i = 0; i < JOBS; i++)
    if (!started[i]) bodies[i](&jobs[i]);
  for (int i = 0; i < JOBS; i++)
    if (started[i]) pthread_join(threads[i], NULL);
  const bool done[JOBS] = {jobs[FUNCTION].code, jobs[FAST_FUNCTION].code, jobs[CHECKS].bytes, jobs[DEVICE].device};
  for (int i = 0; i < JOBS; i++)
    if (!done[i]) return ms_fail(err, jobs[i].err.code, "%s", jobs[i].err.message);
  return true;
}

/* Gives the code to other processes. */
static bool publish(const struct job jobs[JOBS], struct made *made, ms_error *err) {
  const struct jit_code *code = jobs[FUNCTION].code;
  const void *object = jit_code_object(code, &made->code_bytes);
  made->checks_at = (made->code_bytes + 63) / 64 * 64;
  if (made->checks_at + jobs[CHECKS].count + 1 > MOST_CODE)
    return ms_fail(err, MS_TOO_LARGE, "its code is larger than %d MiB", MOST_CODE >> 20);
  memcpy(made->code, object, made->code_bytes);
  memcpy(made->code + made->checks_at, jobs[CHECKS].bytes, jobs[CHECKS].count);
  made->code[made->checks_at + jobs[CHECKS].count] = 0;
  made->workspace = code->workspace;
  snprintf(made->name, sizeof made->name, "%s", code->name);
  return true;
}

/* ---- Loaded ---- */

struct referring {
  const struct workload *w;
  const struct jit_backend *backend;
  struct arena arena;
  struct kernel {
    struct jit_kernel *kernel;
    void *workspace;
  } exact, fast;
};

static bool load_reference(const struct referring *r, const struct jit_code *code, struct kernel *out, ms_error *err) {
  size_t bytes = jit_code_workspace(code);
  out->kernel = jit_load_on(code, r->arena.device, false, err);
  if (!out->kernel) return false;
  return !bytes || (out->workspace = r->arena.memory->get(r->arena.device, bytes, err)) != NULL;
}

static void unload(const struct referring *r, struct kernel *k) {
  if (!k->kernel) return;
  r->arena.memory->release(r->arena.device, k->workspace, jit_kernel_workspace(k->kernel));
  jit_kernel_free(k->kernel);
  *k = (struct kernel){0};
}

/* Whose clock says what a run takes: the device's is that by which candidates are timed, which a host's delays, and its
 * speed where it stands in for a device, do not touch. */
enum whose_clock { BY_HOST, BY_DEVICE };

/* Runs it while nobody times on the device; *seconds (may be NULL): of the run. */
static bool run_alone(struct referring *r, const struct kernel *k, bool real, enum whose_clock clock, double *seconds,
                      ms_error *err) {
  struct jit_conditions conditions;
  void **args = real ? r->arena.timed : r->arena.pointers;
  if (!device_reset(&r->arena, real, err)) return false;
  if (r->backend->turn) r->backend->turn(r->arena.device, true, &conditions);
  double start = measure_now(), took = 0;
  bool ok = clock == BY_DEVICE ? (took = r->backend->sample(k->kernel, args, k->workspace, 1, NULL, err)) >= 0
                               : r->backend->run(k->kernel, args, k->workspace, false, NULL, err);
  if (seconds) *seconds = clock == BY_DEVICE ? took : measure_now() - start;
  if (r->backend->turn) r->backend->turn(r->arena.device, false, &conditions);
  return ok;
}

static double tolerance_of(const struct referring *r) {
  const struct workload *w = r->w;
  double tolerance = tir_tolerance(w->ir, w->f, tir_coarsest_epsilon(w->ir));
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    const struct expected *e = &r->arena.expected[i];
    if (e->at && tir_type_is_float(workload_contents(w, i).type) && e->whole && e->largest > 0)
      tolerance = fmin(tolerance, 0.49 / e->largest);
  }
  return tolerance;
}

/* ---- Samples ---- */

/* The host's copy of what a run finds, as it lies there: *after with room for what it leaves of buffers that it
 * writes. */
static bool fetch(const struct referring *r, bool real, struct tir_arguments *before, struct tir_arguments *after,
                  ms_error *err) {
  const struct workload *w = r->w;
  const struct arena *a = &r->arena;
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    size_t bytes = w->inputs.args[i].bytes;
    before->args[i] = after->args[i] = w->inputs.args[i];
    if (!w->inputs.args[i].data) continue;
    const void *from = real ? a->timed[i] : a->pointers[i];
    before->args[i].data = after->args[i].data = malloc(bytes + 1);
    if (w->written[i]) after->args[i].data = malloc(bytes + 1);
    if (!before->args[i].data || !after->args[i].data) return ms_fail(err, MS_TOO_LARGE, "no memory for samples");
    if (!a->memory->read(a->device, before->args[i].data, from, bytes, err)) return false;
    if (w->written[i]) memcpy(after->args[i].data, before->args[i].data, bytes);
  }
  return true;
}

static void forget(const struct workload *w, struct tir_arguments *before, struct tir_arguments *after) {
  for (uint32_t i = 0; i < before->count; i++) {
    if (!w->inputs.args[i].data) continue;
    free(before->args[i].data);
    if (w->written[i]) free(after->args[i].data);
  }
}

/* Compares what the interpreter wrote of a piece of a buffer with the same piece of the device's. */
static bool compare_piece(const struct referring *r, uint32_t i, const struct expected *e, size_t at, size_t bytes,
                          const struct tir_arguments *before, const struct tir_arguments *after, double tolerance,
                          uint64_t *compared, ms_error *err) {
  enum { PIECE = 4096 };
  uint8_t there[PIECE];
  const struct workload *w = r->w;
  const uint8_t *x = before->args[i].data, *y = after->args[i].data;
  const struct jit_contents contents = workload_contents(w, i);
  size_t size = w->inputs.args[i].bytes / contents.elements;
  tir_buffer b = w->ir->params.at[w->ir->funcs.at[w->f].params.first + i].buffer;
  double slack = tir_type_is_float(contents.type) ? tolerance * e->largest : 0;
  assert(bytes <= sizeof there);
  if (!r->arena.memory->read(r->arena.device, there, (const char *)e->at + at, bytes, err)) return false;
  for (size_t k = 0; k < bytes; k += size) {
    if (!memcmp(x + at + k, y + at + k, size)) continue;
    ++*compared;
    if (tir_same_element(contents.type, y + at + k, there + k, slack)) continue;
    return tir_refuse_element(w->ir, b, w->inputs.args[i].shape, (at + k) / size, y + at + k, there + k, slack, err);
  }
  return true;
}

static bool compare_samples(const struct referring *r, bool real, const struct tir_arguments *before,
                            const struct tir_arguments *after, double tolerance, ms_error *err) {
  enum { PIECE = 4096 };
  uint64_t compared = 0;
  for (uint32_t i = 0; i < before->count; i++) {
    if (!r->w->written[i]) continue;
    const uint8_t *x = before->args[i].data, *y = after->args[i].data;
    const struct expected *e = real ? &r->arena.real[i] : &r->arena.expected[i];
    for (size_t at = 0, all = before->args[i].bytes; at < all; at += PIECE) {
      size_t bytes = all - at < PIECE ? all - at : PIECE;
      if (memcmp(x + at, y + at, bytes) && !compare_piece(r, i, e, at, bytes, before, after, tolerance, &compared, err))
        return false;
    }
  }
  return compared > 0 || ms_fail(err, MS_RUN_DIFFERENT, "the interpreter's samples change nothing");
}

enum { SAMPLES = 16, MOST_STEPS = 1 << 20 /* of one */ };

/* 1: elements that are drawn are the interpreter's; 0: it gives no verdict; -1: they are not. */
static int confirm_samples(struct referring *r, bool real, double tolerance, ms_error *err) {
  const struct workload *w = r->w;
  const struct tir_run_options options = {.most_steps = MOST_STEPS};
  uint32_t count = w->inputs.count;
  struct tir_arguments before = {calloc(count + 1, sizeof *before.args), count};
  struct tir_arguments after = {calloc(count + 1, sizeof *after.args), count};
  if (!before.args || !after.args) abort();
  int got = -1;
  if (device_reset(&r->arena, real, err) && fetch(r, real, &before, &after, err)) {
    bool ran = tir_run_samples(w->ir, w->f, after.args, count, &options, 1, SAMPLES, err);
    if (ran)
      got = compare_samples(r, real, &before, &after, tolerance, err) ? 1 : -1;
    else if (reference_left_open(err->code))
      got = 0;
  }
  forget(w, &before, &after);
  free(before.args);
  free(after.args);
  return got;
}

/* All of it, by a build for this machine's processor. */
static bool confirm_whole(struct referring *r, double tolerance, ms_error *err) {
  const struct workload *w = r->w;
  struct arena *a = &r->arena;
  double seconds;
  workload_fill(w);
  if (!host_reference(w, &seconds, err)) return false;
  for (uint32_t i = 0; i < w->inputs.count; i++) { /* as if a candidate had left it */
    if (!w->written[i]) continue;
    if (!a->memory->write(a->device, a->pointers[i], w->expected.args[i].data, w->inputs.args[i].bytes, err))
      return false;
  }
  return device_compare(a, false, tolerance, NULL, err);
}

static bool confirm(struct referring *r, double tolerance, ms_error *err) {
  int sampled = confirm_samples(r, false, tolerance, err);
  if (sampled) return sampled > 0;
  ms_clear(err);
  return confirm_whole(r, tolerance, err);
}

/* ---- Real numbers ---- */

static const double ANYTHING = 1e300; /* a tolerance */

/* Whether an argument that is only read has real numbers, there or in memory of its own. */
static bool has_real(const struct arena *a, uint32_t i) {
  return a->lean ? a->w->timed.args[i].data != NULL : a->timed[i] != a->pointers[i];
}

/* What a rounding of every argument, and faster arithmetic, changed; below 0: it cannot be run. */
static double noise_of(struct referring *r, ms_error *err) {
  struct arena *a = &r->arena;
  double noise = -1;
  for (uint32_t i = 0; i < r->w->inputs.count; i++) {
    if (!has_real(a, i)) continue;
    const struct jit_contents contents = workload_contents(r->w, i);
    if (!r->backend->checks->fill(a->checker, a->timed[i], &contents, JIT_FILL_NUDGED, err)) return -1;
  }
  if (!run_alone(r, &r->fast, true, BY_HOST, NULL, err)) return -1;
  for (uint32_t i = 0; i < r->w->inputs.count; i++) { /* arguments that are only read differ by design */
    if (!has_real(a, i)) continue;
    const struct jit_contents contents = workload_contents(r->w, i);
    if (!r->backend->checks->fill(a->checker, a->timed[i], &contents, JIT_FILL_REAL, err)) return -1;
  }
  return device_compare(a, true, ANYTHING, &noise, err) || err->code == MS_RUN_DIFFERENT ? noise : -1;
}

/* The tolerance there; below 0: they say nothing. false: the reference cannot be run on them, or is not confirmed. */
static bool refer_real(struct referring *r, double *tolerance, ms_error *err) {
  const struct workload *w = r->w;
  *tolerance = -1;
  if (jit_why_not_real(w->ir, w->f)) return true;
  if (!run_alone(r, &r->exact, true, BY_HOST, NULL, err) || !device_keep(&r->arena, true, err)) return false;
  double noise = noise_of(r, err), allowed = fmax(tir_real_tolerance(w->ir, w->f), 8 * noise);
  if (noise < 0) return false;
  if (!(allowed < JIT_VAGUE)) return true;
  ms_clear(err);
  if (confirm_samples(r, true, allowed, err) < 0) return false;
  ms_clear(err);
  *tolerance = allowed;
  return true;
}

/* ---- All of it ---- */

static bool refer(struct referring *r, struct measure_reference *out, ms_error *err) {
  struct made *made = r->w->made;
  static const double LONG_RUN =
      0.5; /* seconds: what a launch takes of them does not matter, and once more would cost */
  if (!run_alone(r, &r->exact, false, BY_HOST, &out->seconds, err)) return false; /* loads code as it goes */
  bool is_short = out->seconds < LONG_RUN;
  if (is_short && !run_alone(r, &r->exact, false, BY_DEVICE, &out->seconds, err)) return false;
  if (!run_alone(r, &r->exact, false, BY_HOST, NULL, err)) return false;
  if (!device_keep(&r->arena, false, err)) return false;
  double tolerance = tolerance_of(r);
  if (!confirm(r, tolerance, err) || !refer_real(r, &made->real_tolerance, err)) return false;
  out->tolerance = tolerance;
  return true;
}

/* In memory that may be short. */
static bool attempt(const struct workload *w, const struct job jobs[JOBS], bool lean, struct measure_reference *out,
                    ms_error *err) {
  struct referring r = {.w = w, .backend = jit_backend_of(&w->hello->target)};
  w->made->lean = lean;
  bool ok = arena_open(&r.arena, w, r.backend, jobs[DEVICE].device, err) &&
            load_reference(&r, jobs[FUNCTION].code, &r.exact, err) &&
            load_reference(&r, jobs[FAST_FUNCTION].code, &r.fast, err) && refer(&r, out, err);
  unload(&r, &r.exact);
  unload(&r, &r.fast);
  arena_close(&r.arena);
  return ok;
}

bool device_reference(const struct workload *w, struct measure_reference *out, ms_error *err) {
  struct job jobs[JOBS];
  bool ok = do_all(w, jobs, err) && publish(jobs, w->made, err);
  w->made->on_device = ok; /* the arena's, too */
  if (ok) {
    ok = attempt(w, jobs, false, out, err);
    if (!ok && err->code == MS_DEVICE_MEMORY) {
      ms_clear(err);
      ok = attempt(w, jobs, true, out, err);
      if (ok)
        snprintf(w->made->note, sizeof w->made->note,
                 "the device has little memory for it: arguments are made again before each run");
    }
  }
  w->made->on_device = ok;
  for (int i = 0; i < JOBS; i++) {
    jit_code_free(jobs[i].code);
    free(jobs[i].bytes);
  }
  return ok;
}
