/* What the workload computes, unscheduled: by the device where it is large, else on the interpreter where that is
 * quick, or built. */
#include "helper.h"

#include <string.h>

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
