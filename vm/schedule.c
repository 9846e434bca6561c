/* Schedules: replaying a plan. */
#include "run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Life -------------------------------------------------------------------------------------------------------- */

struct vm_schedule *vm_schedule_new(const struct tir *workload, uint64_t seed) {
  struct vm_schedule *sch = vm_new(sizeof *sch);
  *sch = (struct vm_schedule){.ir = tir_new(), .draws = {.mode = VM_STRICT, .seed = seed}};
  vm_trace_init(&sch->trace);
  sch->step = vm_new(sizeof *sch->step);
  if (!workload) return sch;
  tir_copy(sch->ir, workload);
  tir_find_pipelines(sch->ir, 1);
  sch->forwards = sch->ir->forwards.count;
  return sch;
}

void vm_schedule_free(struct vm_schedule *sch) {
  if (!sch) return;
  tir_free(sch->ir);
  vm_trace_clear(&sch->trace);
  vm_plan_free(sch->step);
  free(sch->slots);
  free(sch->ends);
  free(sch->out);
  vm_forget_dead_ends(sch);
  vm_close_branches(sch);
  while (sch->points) vm_forget_point(sch);
  free(sch);
}

struct vm_schedule *vm_schedule_copy(const struct vm_schedule *sch) {
  assert(sch->trace.steps && !sch->branches);
  const struct vm_steps *steps = sch->trace.steps;
  struct vm_schedule *copy = vm_new(sizeof *copy);
  *copy = (struct vm_schedule){.ir = tir_new(),
                               .forwards = sch->forwards,
                               .draws = {.mode = VM_STRICT, .seed = sch->draws.seed, .candidate = sch->draws.candidate},
                               .intrinsics = sch->intrinsics,
                               .workload = sch->workload,
                               .step = vm_new(sizeof *copy->step)};
  tir_copy(copy->ir, sch->ir);
  vm_trace_take(&copy->trace, &sch->trace);
  vm_fit_slots(copy, steps->variables, steps->count);
  if (steps->variables) memcpy(copy->slots, sch->slots, steps->variables * sizeof *copy->slots);
  if (steps->count) memcpy(copy->ends, sch->ends, steps->count * sizeof *copy->ends);
  return copy;
}

/* ---- Handles ----------------------------------------------------------------------------------------------------- */

/* Blocks and loops keep their ids unless an edit says that another took their place. `variables`: how many have a
 * value. */
void vm_apply_forwards(struct vm_schedule *sch, uint32_t variables) {
  assert(variables <= sch->slot_capacity && sch->forwards <= sch->ir->forwards.count);
  const struct tir *ir = sch->ir;
  for (uint32_t f = sch->forwards; f < ir->forwards.count; f++) {
    struct tir_forward forward = ir->forwards.at[f];
    if (forward.to == TIR_NONE) continue;
    for (uint32_t v = 0; v < variables; v++)
      if (sch->slots[v] == forward.from && sch->trace.steps->types[v] != VM_T_INT) sch->slots[v] = forward.to;
  }
  sch->forwards = ir->forwards.count;
}

tir_stmt vm_statement(const struct vm_schedule *sch, uint32_t variable) {
  if (variable >= sch->trace.steps->variables || sch->trace.steps->types[variable] == VM_T_INT) return TIR_NONE;
  int64_t value = sch->slots[variable];
  if (value <= 0 || (uint64_t)value >= sch->ir->stmts.count) return TIR_NONE;
  return tir_is(sch->ir, (tir_stmt)value, TIR_DEAD) ? TIR_NONE : (tir_stmt)value;
}

/* ---- Performing -------------------------------------------------------------------------------------------------- */

/* A refusal gets the instruction's number and kind, and its hint. */
bool vm_refuse_at(ms_error *err, const struct vm_steps *steps, uint32_t i) {
  assert(i < steps->count);
  if (!err) return false;
  err->instruction = (int)i;
  if (err->brief) return false;
  char prefix[64];
  int length =
      snprintf(prefix, sizeof prefix, "instruction %u, %s: ", i, vm_kind_info(steps->instructions[i].kind)->name);
  size_t rest = strlen(err->message);
  if (rest + (size_t)length + 1 > sizeof err->message) rest = sizeof err->message - (size_t)length - 1;
  memmove(err->message + length, err->message, rest);
  memcpy(err->message, prefix, (size_t)length);
  err->message[rest + (size_t)length] = 0;
  ms_explain(err);
  return false;
}

static double seconds_of(clockid_t clock) {
  struct timespec t = {0};
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
double vm_seconds(void) { return seconds_of(CLOCK_MONOTONIC); }
double vm_thread_seconds(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

uint64_t vm_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

static inline bool changes(const struct vm_run *r, const struct vm_step *step) {
  const struct vm_plan *plan = r->plan;
  return vm_changes(plan->steps->instructions[plan->first + (uint32_t)(step - plan->at)].kind);
}

bool vm_perform_step(struct vm_run *r, const struct vm_step *step) {
  assert(step->perform && step->inputs <= r->plan->operand_count);
  uint32_t blocks = r->ir->blocks.count;
  if (!step->perform(r, step)) return false;
  if (blocks != r->ir->blocks.count || r->ir->undeclared == TIR_SOME_UNDECLARED)
    tir_find_pipelines(r->ir, blocks);
  else
    MS_CHECK(!changes(r, step) || tir_declares_all(r->ir));
  return true;
}

/* Performs one instruction under the clock. */
static bool perform_timed(struct vm_run *r, const struct vm_step *step, enum vm_kind kind) {
  struct vm_profile *profile = r->schedule->profile;
  uint64_t start = vm_ticks();
  bool done = vm_perform_step(r, step);
  profile->ticks[kind] += vm_ticks() - start;
  profile->performed[kind]++;
  return done;
}

static void start_replay(struct vm_schedule *sch, const struct vm_plan *plan, const struct vm_draws *draws) {
  assert(!draws->decisions || draws->decisions->steps == plan->steps);
  tir_copy(sch->ir, plan->workload);
  sch->forwards = sch->ir->forwards.count;
  sch->draws = *draws;
  sch->draws.decisions = NULL;
  vm_trace_adopt(&sch->trace, plan->steps);
  vm_fit_slots(sch, plan->steps->variables, plan->count);
}

bool vm_perform_steps(struct vm_run *r) {
  assert(r->next <= r->plan->count);
  struct vm_schedule *sch = r->schedule;
  const struct vm_plan *plan = r->plan;
  r->done = 0;
  for (uint32_t i = 0; i < plan->count && r->done < r->most; i = r->next, r->done++) {
    const struct vm_step *step = &plan->at[i];
    if (r->draws->stop && *r->draws->stop) return ms_fail(r->err, MS_RUN_STOPPED, "the replay was stopped");
    r->next = i + 1;
    bool done = !r->skipped || vm_check_given(r, &plan->steps->instructions[plan->first + i]);
    if (done && sch->profile)
      done = perform_timed(r, step, plan->steps->instructions[plan->first + i].kind);
    else if (done)
      done = vm_perform_step(r, step);
    sch->ends[plan->first + i] = sch->ir->forwards.count;
    if (!done) return vm_refuse_at(r->err, plan->steps, plan->first + i);
    if (sch->forwards != sch->ir->forwards.count) vm_apply_forwards(sch, step->first_output + step->outputs);
#ifdef MSCHED_CHECK
    /* the last too where it only reads: it has left the module as it was */
    bool last = i + 1 == plan->count;
    if (last || vm_changes(plan->steps->instructions[plan->first + i].kind)) vm_check_made(sch, last);
#endif
    if (r->draws->after) r->draws->after(r->draws->watcher, sch, plan->first + i);
  }
  return true;
}

/* An instruction that gave another number of outputs has been performed: all before it is performed once more. */
static void perform_before(struct vm_run *r) {
  ms_error none = {.brief = true}, *err = r->err;
  struct vm_draws to_the_end = *r->draws;
  to_the_end.stop = NULL;
  to_the_end.after = NULL;
  r->draws = &to_the_end;
  r->most = r->done;
  start_replay(r->schedule, r->plan, r->draws);
  r->err = &none, r->depth = r->all_rounds = 0, r->located = TIR_NONE;
  bool done = vm_perform_steps(r);
  assert(done && "what has been performed can be performed again");
  (void)done;
  r->err = err;
  r->draws = NULL;
}

/* A draw that finds no number may ask for another of one before it: then all starts again. */
static bool perform_all(struct vm_schedule *sch, const struct vm_plan *plan, const struct vm_draws *draws,
                        ms_error *err) {
  struct vm_run r = {.ir = sch->ir,
                     .plan = plan,
                     .draws = draws,
                     .operands = plan->operands,
                     .schedule = sch,
                     .slots = sch->slots,
                     .err = err,
                     .most = UINT32_MAX};
  for (;;) {
    r.depth = r.all_rounds = 0, r.skipped = false, r.located = TIR_NONE;
    sch->again = r.overdone = false;
    if (vm_perform_steps(&r)) return true;
    if (!sch->again) break;
    start_replay(sch, plan, draws);
  }
  if (r.overdone) perform_before(&r);
  return false;
}

bool vm_replay(struct vm_schedule *sch, const struct vm_plan *plan, const struct vm_draws *draws, ms_error *err) {
  assert(sch->ir != plan->workload);
  struct vm_profile *profile = sch->profile;
  uint64_t start = profile ? vm_ticks() : 0;
  start_replay(sch, plan, draws);
  if (profile) profile->copying += vm_ticks() - start;
  bool done = perform_all(sch, plan, draws, err);
  sch->draws.stop = NULL, sch->draws.after = NULL; /* of this replay */
  if (sch->dead_ends) vm_forget_dead_ends(sch);
  if (profile) profile->replaying += vm_ticks() - start;
  return done;
}

struct vm_schedule *vm_apply_with(struct tir *workload, const struct vm_trace *trace,
                                  const struct vm_intrinsics *intrinsics, const struct vm_draws *draws, ms_error *err) {
  struct vm_plan *plan = vm_prepare_with(workload, trace, intrinsics);
  struct vm_schedule *sch = vm_schedule_new(NULL, draws->seed);
  bool done = vm_replay(sch, plan, draws, err);
  vm_plan_free(plan);
  sch->intrinsics = intrinsics;
  if (done) return sch;
  vm_schedule_free(sch);
  return NULL;
}

struct vm_schedule *vm_apply(struct tir *workload, const struct vm_trace *trace, const struct vm_draws *draws,
                             ms_error *err) {
  return vm_apply_with(workload, trace, NULL, draws, err);
}
