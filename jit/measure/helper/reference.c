/* What the workload computes, unscheduled: on the interpreter where that is quick, else built, its loops arranged where
 * samples by the interpreter confirm what comes of it. */
#include "helper.h"
#include "jit/measure/arrange.h"

#include <stdlib.h>
#include <string.h>

/* Loop iterations and stores that the interpreter does in a quarter of a second or so. */
enum { QUICK_STEPS = 1 << 21 };

bool reference_left_open(enum ms_code code) {
  return code == MS_RUN_STEPS || code == MS_RUN_MEMORY || code == MS_RUN_UNKNOWN_CALL || code == MS_RUN_UNSUPPORTED ||
         code == MS_RUN_NEEDS_THREADS;
}

static bool interpret(const struct workload *w, double *epsilon, ms_error *err) {
  struct tir_arguments copy;
  struct tir_run_report report = {0};
  const struct tir_run_options options = {.most_steps = QUICK_STEPS, .report = &report};
  tir_copy_arguments(w->ir, w->f, &w->inputs, &copy);
  bool ok = tir_run(w->ir, w->f, copy.args, copy.count, &options, err);
  for (uint32_t i = 0; i < copy.count && ok; i++)
    if (w->written[i]) memcpy(w->expected.args[i].data, copy.args[i].data, copy.args[i].bytes);
  tir_arguments_free(&copy);
  *epsilon = report.epsilon;
  return ok;
}

/* ir: the workload, or what computes the same. */
static bool build_and_run(const struct workload *w, const struct tir *ir, double *seconds, ms_error *err) {
  struct arena arena;
  struct jit_target target;
  struct jit_options options = {.no_fast_math = true};
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

/* By the host: on the interpreter, or built. */
static void refer_on_host(const struct workload *w, struct measure_reference *answer, ms_error *err) {
  double exact;
  if (w->large) workload_fill(w);
  if (!w->large && interpret(w, &exact, err))
    answer->tolerance = exact == 0 ? 0 : jit_tolerance(w->ir, w->f, &w->expected);
  else if ((w->large || reference_left_open(err->code)) && host_reference(w, &answer->seconds, err))
    answer->tolerance = jit_tolerance(w->ir, w->f, &w->expected);
  /* What the host takes says nothing of what a device with a clock of its own may take. */
  if (jit_backend_of(&w->hello->target)->apart) answer->seconds = 0;
}

/* What is large, by the device; where that cannot be, by the host, and it is said why. */
static void refer(const struct workload *w, struct measure_reference *answer, ms_error *err) {
  if (w->large && device_reference(w, answer, err)) return;
  if (w->large)
    snprintf(w->made->note, sizeof w->made->note, "results are compared on the host, not on the device: %.300s",
             err->message);
  *answer = (struct measure_reference){.tolerance = -1};
  ms_clear(err);
  refer_on_host(w, answer, err);
}

void reference_main(struct channel *channel, const struct workloads *all, struct note *note) {
  struct message message;
  uint32_t task;
  if (channel_wait(channel, -1, &message) != 1 || message.bytes != sizeof task) return;
  memcpy(&task, message.data, sizeof task);
  if (task >= all->count) return;
  const struct workload *w = all->at[task];
  ms_error err = {.instruction = -1};
  struct measure_reference answer = {.tolerance = -1};
  note->stage = STAGE_FIRST_RUN;
  refer(w, &answer, &err);
  if (answer.tolerance < 0 && err.code == MS_NO_PROCESS) child_give_up(note, err.message);
  if (answer.tolerance >= 0) *err.message = 0;
  channel_send(channel, MEASURE_REFERENCE, &answer, sizeof answer, err.message, strlen(err.message));
  channel_drain(channel);
}
