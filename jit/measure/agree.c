/* Agreement of builds: what the unscheduled function, built as it stands, makes of data, and whether another build
 * makes the same of it. */
#include "jit/backend.h"
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool jit_may_write(const struct tir *ir, tir_func f, tir_buffer buffer) {
  assert(tir_is_func(ir, f) && tir_is_buffer(ir, buffer));
  if (tir_buffer_at(ir, buffer)->writers) return true;
  tir_stmt top = ir->funcs.at[f].body;
  for (tir_stmt s = top; s != TIR_NONE; s = tir_next(ir, s, top)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_STORE && n->store.buffer == buffer) return true;
    if (n->kind == TIR_EVALUATE) return true;
  }
  return false;
}

bool jit_timed_with_digits(const struct tir *ir, tir_func f, const struct jit_target *target, uint32_t parameter) {
  assert(tir_is_func(ir, f) && parameter < ir->funcs.at[f].params.count);
  tir_buffer b = ir->params.at[ir->funcs.at[f].params.first + parameter].buffer;
  return b && !jit_backend_of(target)->memory->in_place && tir_type_is_float(tir_buffer_at(ir, b)->type) &&
         !jit_may_write(ir, f, b) && !tir_has_steps(ir);
}

bool jit_fill_for_timing(const struct tir *ir, tir_func f, const struct jit_target *target, uint64_t seed,
                         struct tir_arguments *arguments, ms_error *err) {
  struct tir_arguments real;
  if (!tir_make_real_arguments(ir, f, seed, &real, err)) return false;
  assert(real.count == arguments->count);
  for (uint32_t i = 0; i < real.count; i++)
    if (jit_timed_with_digits(ir, f, target, i)) memcpy(arguments->args[i].data, real.args[i].data, real.args[i].bytes);
  tir_arguments_free(&real);
  return true;
}

double jit_steps_of(const struct tir *ir, tir_func f) {
  tir_stmt top = ir->funcs.at[f].body;
  double all = 0;
  for (tir_stmt s = top; s != TIR_NONE; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    double count = 1;
    for (tir_stmt p = tir_stmt_at(ir, s)->parent; p != TIR_NONE; p = tir_stmt_at(ir, p)->parent)
      if (tir_is(ir, p, TIR_LOOP) && tir_is_int(ir, tir_as(ir, p, TIR_LOOP)->loop.extent))
        count *= (double)tir_at(ir, tir_as(ir, p, TIR_LOOP)->loop.extent)->imm;
    all += count;
  }
  return all;
}

/* ---- Running ---- */

static bool run_kernel(const struct jit_kernel *kernel, const struct tir *ir, tir_func f,
                       const struct tir_arguments *arguments, const volatile int *stop, double *seconds,
                       ms_error *err) {
  struct jit_call *call = jit_call_new(kernel, ir, f, arguments->args, err);
  if (call) jit_call_stop_at(call, stop);
  double start = measure_now();
  bool ok = call && jit_call_run(call, err);
  if (seconds) *seconds = measure_now() - start;
  jit_call_free(call);
  return ok;
}

static bool build_and_run(const struct tir *ir, tir_func f, const struct jit_target *target, bool fast,
                          const volatile int *stop, const struct tir_arguments *arguments, double *seconds,
                          ms_error *err) {
  const struct jit_options options = {.no_fast_math = !fast};
  struct jit_target own;
  if (!jit_target_reference(target, &own, err)) return false;
  struct jit_code *code = jit_compile(ir, f, &own, &options, err);
  struct jit_kernel *kernel = code ? jit_load(code, err) : NULL;
  bool ok = kernel && run_kernel(kernel, ir, f, arguments, stop, seconds, err);
  jit_kernel_free(kernel);
  jit_code_free(code);
  return ok;
}

/* ---- Elements ---- */

static tir_buffer output_of(const struct tir *ir, tir_func f, uint32_t parameter) {
  assert(parameter < ir->funcs.at[f].params.count);
  tir_buffer b = ir->params.at[ir->funcs.at[f].params.first + parameter].buffer;
  return b && jit_may_write(ir, f, b) ? b : TIR_NONE;
}

static void count_outputs(const struct tir *ir, tir_func f, struct jit_expected *out) {
  for (uint32_t i = 0; i < out->after.count; i++) {
    tir_buffer b = output_of(ir, f, i);
    if (b)
      out->buffers++, out->elements += out->after.args[i].bytes / (size_t)tir_type_bytes(tir_buffer_at(ir, b)->type);
  }
}

/* Makes zero what the samples left as it was, in any of two runs' outputs. */
static void clear_unsampled(const struct jit_expected *e, const struct tir *ir, tir_func f, struct tir_arguments *x) {
  for (uint32_t i = 0; i < x->count; i++) {
    tir_buffer b = output_of(ir, f, i);
    size_t bytes = b ? (size_t)tir_type_bytes(tir_buffer_at(ir, b)->type) : 0;
    const char *before = e->before.args[i].data, *after = e->after.args[i].data;
    for (size_t at = 0; b && at + bytes <= x->args[i].bytes; at += bytes)
      if (!memcmp(before + at, after + at, bytes)) memset((char *)x->args[i].data + at, 0, bytes);
  }
}

/* ---- What is expected ---- */

double jit_tolerance(const struct tir *ir, tir_func f, const struct tir_arguments *after) {
  double tolerance = tir_tolerance(ir, f, tir_coarsest_epsilon(ir));
  for (uint32_t i = 0; i < after->count; i++)
    if (output_of(ir, f, i)) tolerance = fmin(tolerance, tir_whole_tolerance(ir, f, after, i));
  return tolerance;
}

const char *jit_why_not_real(const struct tir *ir, tir_func f) {
  bool any = false;
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer b = ir->params.at[params.first + i].buffer;
    any = any || (b && tir_type_is_float(tir_buffer_at(ir, b)->type));
  }
  if (!any) return "the function has no arguments of floats";
  return tir_has_steps(ir) ? "the function compares floats or makes integers of them, and rounding decides there"
                           : NULL;
}

/* Steps that a build takes in a few seconds, and those beyond which real numbers are left to samples. */
static const double MOST_STEPS = 0x1p32, MOST_REAL_STEPS = 0x1p24;
enum { SAMPLES = 16, MOST_SAMPLED_STEPS = 1 << 22 };

struct expecting {
  const struct tir *ir;
  tir_func f;
  const struct jit_target *target;
  uint64_t seed;
  const volatile int *stop;
  struct jit_expected *out;
  ms_error *err;
};

/* fast: with faster arithmetic, where it is built. */
static bool run_unscheduled(const struct expecting *x, bool fast, struct tir_arguments *arguments, double *seconds) {
  if (!jit_goes_on(x->stop, x->err)) return false;
  if (!x->out->sampled) return build_and_run(x->ir, x->f, x->target, fast, x->stop, arguments, seconds, x->err);
  const struct tir_run_options options = {.most_steps = MOST_SAMPLED_STEPS, .stop = x->stop};
  return tir_run_samples(x->ir, x->f, arguments->args, arguments->count, &options, x->seed, SAMPLES, x->err);
}

/* What a rounding of every argument, and another order of computing, changed. */
static bool find_noise(const struct expecting *x) {
  struct jit_expected *out = x->out;
  struct tir_arguments nudged;
  tir_copy_arguments(x->ir, x->f, &out->before, &nudged);
  tir_nudge_arguments(x->ir, x->f, x->seed, &nudged);
  bool ok = run_unscheduled(x, true, &nudged, NULL);
  for (uint32_t i = 0; i < nudged.count; i++) /* arguments that are only read differ by design */
    if (nudged.args[i].data && !output_of(x->ir, x->f, i))
      memcpy(nudged.args[i].data, out->after.args[i].data, nudged.args[i].bytes);
  double noise = 0;
  out->tolerance = 0;
  jit_agrees(out, x->ir, x->f, &nudged, &noise, NULL);
  out->tolerance = fmax(tir_real_tolerance(x->ir, x->f), 8 * noise);
  tir_arguments_free(&nudged);
  return ok;
}

static int expect_real(const struct expecting *x) {
  const char *why = jit_why_not_real(x->ir, x->f);
  if (why) return ms_fail(x->err, MS_NOT_COMPARABLE, "%s", why);
  struct jit_expected *out = x->out;
  out->sampled = jit_steps_of(x->ir, x->f) > MOST_REAL_STEPS;
  if (!tir_make_real_arguments(x->ir, x->f, x->seed, &out->before, x->err)) return -1;
  tir_copy_arguments(x->ir, x->f, &out->before, &out->after);
  bool done = run_unscheduled(x, false, &out->after, &out->seconds) && find_noise(x);
  if (!done) return out->sampled && (!x->stop || !*x->stop) ? 0 : -1;
  if (out->tolerance < JIT_VAGUE) return 1;
  return ms_fail(x->err, MS_NOT_COMPARABLE, "rounding alone may change results by %.2g of the largest", out->tolerance);
}

static int expect_whole(const struct expecting *x) {
  double steps = jit_steps_of(x->ir, x->f);
  if (steps > MOST_STEPS)
    return ms_fail(x->err, MS_NOT_COMPARABLE, "the unscheduled function takes %.3g steps, more than %.3g", steps,
                   MOST_STEPS);
  struct jit_expected *out = x->out;
  if (!tir_make_arguments(x->ir, x->f, x->seed, &out->before, x->err)) return -1;
  tir_copy_arguments(x->ir, x->f, &out->before, &out->after);
  if (!run_unscheduled(x, false, &out->after, &out->seconds)) return -1;
  out->tolerance = jit_tolerance(x->ir, x->f, &out->after);
  return 1;
}

int jit_expect(const struct tir *ir, tir_func f, const struct jit_target *target, enum jit_data data, uint64_t seed,
               const volatile int *stop, struct jit_expected *out, ms_error *err) {
  assert(tir_is_func(ir, f) && out);
  *out = (struct jit_expected){0};
  const struct expecting x = {ir, f, target, seed, stop, out, err};
  int got = data == JIT_REAL ? expect_real(&x) : expect_whole(&x);
  if (got > 0)
    count_outputs(ir, f, out);
  else
    jit_expected_free(out);
  return got;
}

void jit_expected_free(struct jit_expected *e) {
  tir_arguments_free(&e->before);
  tir_arguments_free(&e->after);
}

/* ---- Comparing ---- */

bool jit_agrees(const struct jit_expected *e, const struct tir *ir, tir_func f, const struct tir_arguments *actual,
                double *difference, ms_error *err) {
  struct tir_arguments x = e->after, y = *actual;
  if (e->sampled) {
    tir_copy_arguments(ir, f, &e->after, &x);
    tir_copy_arguments(ir, f, actual, &y);
    clear_unsampled(e, ir, f, &x);
    clear_unsampled(e, ir, f, &y);
  }
  if (difference) *difference = tir_difference(ir, f, &x, &y);
  bool same = tir_same_arguments(ir, f, &x, &y, e->tolerance, err);
  if (e->sampled) tir_arguments_free(&x), tir_arguments_free(&y);
  return same;
}

bool jit_kernel_agrees(const struct jit_expected *e, const struct tir *ir, tir_func f, const struct jit_kernel *kernel,
                       const volatile int *stop, double *difference, ms_error *err) {
  struct tir_arguments actual;
  tir_copy_arguments(ir, f, &e->before, &actual);
  bool same = run_kernel(kernel, ir, f, &actual, stop, NULL, err) && jit_agrees(e, ir, f, &actual, difference, err);
  tir_arguments_free(&actual);
  return same;
}
