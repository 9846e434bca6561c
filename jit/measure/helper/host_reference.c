/* What the workload computes, built for this machine's processor, its loops arranged where samples by the interpreter
 * confirm what comes of it. */
#include "helper.h"
#include "jit/measure/arrange.h"

#include <stdlib.h>
#include <string.h>

bool reference_left_open(enum ms_code code) {
  return code == MS_RUN_STEPS || code == MS_RUN_MEMORY || code == MS_RUN_UNKNOWN_CALL || code == MS_RUN_UNSUPPORTED ||
         code == MS_RUN_NEEDS_THREADS;
}

/* ir: the workload, or what computes the same. */
static bool build_and_run(const struct workload *w, const struct tir *ir, double *seconds, ms_error *err) {
  struct arena arena;
  struct jit_target target;
  struct jit_options options = {.no_fast_math = true, .in_one = true};
  if (!jit_target_reference(&w->hello->target, &target, err)) return false;
  struct jit_code *code = jit_compile(ir, w->f, &target, &options, err);
  struct jit_kernel *kernel = code ? jit_load(code, err) : NULL;
  if (!kernel || !arena_open(&arena, w, kernel->backend, kernel->device, err)) return false;
  size_t bytes = jit_kernel_workspace(kernel);
  void *workspace = bytes ? arena.memory->get(kernel->device, bytes, err) : NULL;
  if (bytes && !workspace) return false;
  double start = measure_now();
  bool ok = kernel->backend->run(kernel, arena.pointers, workspace, false, NULL, err);
  *seconds = measure_now() - start;
  if (!ok || !arena_fetch(&arena, err)) return false;
  for (uint32_t i = 0; i < arena.args.count; i++)
    if (w->written[i]) memcpy(w->expected.args[i].data, arena.args.args[i].data, arena.args.args[i].bytes);
  return true;
}

/* As it stands the function may take a hundred times longer than need be. Arranged it is not trusted unseen: elements
 * that are drawn must be what the interpreter makes of the function itself. */
enum { SAMPLES = 16 };

static bool is_confirmed(const struct workload *w, double tolerance, ms_error *err) {
  struct tir_arguments copy;
  const struct tir_run_options options = {.most_steps = QUICK_STEPS};
  tir_copy_arguments(w->ir, w->f, &w->inputs, &copy);
  const struct jit_expected sampled = {.before = w->inputs, .after = copy, .tolerance = tolerance, .sampled = true};
  bool ok = tir_run_samples(w->ir, w->f, copy.args, copy.count, &options, 1, SAMPLES, err) &&
            jit_agrees(&sampled, w->ir, w->f, &w->expected, NULL, err);
  tir_arguments_free(&copy);
  return ok;
}

static bool build_arranged(const struct workload *w, double *seconds) {
  ms_error err = {.instruction = -1};
  struct tir *arranged = tir_new();
  tir_copy(arranged, w->ir);
  jit_arrange(arranged, w->f);
  bool ok =
      build_and_run(w, arranged, seconds, &err) && is_confirmed(w, jit_tolerance(w->ir, w->f, &w->expected), &err);
  tir_free(arranged);
  return ok;
}

bool host_reference(const struct workload *w, double *seconds, ms_error *err) {
  return build_arranged(w, seconds) || build_and_run(w, w->ir, seconds, err);
}
