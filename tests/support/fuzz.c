#include "fuzz.h"
#include "case.h"
#include "forms.h"

#include <stdlib.h>
#include <string.h>

_Noreturn void fuzz_stop(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  abort();
}

void fuzz_check_refusal(const ms_error *err) {
  if (err->code == MS_OK || err->code >= MS_CODE_COUNT || !err->message[0])
    fuzz_stop("a refusal without a reason", err->message);
}

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"matmul_bias_relu", "conv2d_bn_relu", "softmax", "chain", "argmax", "matmul_i8"};
enum { WORKLOADS = sizeof names / sizeof *names };

static const struct tir *workload_at(int i) {
  static struct tir *at[WORKLOADS];
  char path[1024];
  ms_error err = {0};
  if (at[i]) return at[i];
  snprintf(path, sizeof path, "%s/random/workloads/%s.py", TEST_ROOT, names[i]);
  char *text = case_read_file(path);
  at[i] = text ? tir_read(text, strlen(text), path, &err) : NULL;
  if (!at[i]) fuzz_stop(path, err.message);
  free(text);
  return at[i];
}

/* ---- Replays ----------------------------------------------------------------------------------------------------- */

static void verify(const struct vm_schedule *sch, const char *when) {
  ms_error err = {0};
  if (!vm_verify(&sch->trace, sch->ir, &err)) fuzz_stop(when, err.message);
}

static bool replay(struct vm_schedule *sch, struct tir *workload, const struct vm_trace *trace, enum vm_mode mode,
                   ms_error *err) {
  struct vm_draws draws = {.mode = mode, .decisions = trace, .seed = 1};
  struct vm_plan *plan = vm_prepare(workload, trace);
  bool done = vm_replay(sch, plan, &draws, err);
  vm_plan_free(plan);
  return done;
}

static void same_module(const struct vm_schedule *a, const struct vm_schedule *b, const char *what) {
  char why[400] = "";
  if (!tir_structural_equal(a->ir, TIR_NONE, b->ir, TIR_NONE, why, sizeof why)) fuzz_stop(what, why);
  if (tir_structural_hash(a->ir, TIR_NONE) != tir_structural_hash(b->ir, TIR_NONE)) fuzz_stop(what, "hash");
}

static bool steers(const struct vm_trace *trace) {
  for (uint32_t i = 0; i < trace->steps->count; i++) {
    enum vm_kind kind = trace->steps->instructions[i].kind;
    if (kind == VM_If || kind == VM_For || kind == VM_Assert) return true;
  }
  return false;
}

/* What stands after a refusal is what the instructions before it made. */
static void judge_refused(const struct vm_schedule *sch, struct tir *workload, const struct vm_trace *trace,
                          enum vm_mode mode, const ms_error *why) {
  ms_error err = {0};
  fuzz_check_refusal(why);
  if (why->instruction < 0 || why->instruction >= (int)trace->steps->count) fuzz_stop("no instruction", why->message);
  verify(sch, "after a refusal");
  if (steers(trace) || !why->instruction) return;
  struct vm_trace *head = vm_trace_head(trace, (uint32_t)why->instruction);
  struct vm_schedule *before = vm_schedule_new(NULL, 0);
  if (!replay(before, workload, head, mode, &err)) fuzz_stop("the instructions before are refused", err.message);
  same_module(sch, before, "a refusal changed the module");
  vm_schedule_free(before);
  vm_trace_free(head);
}

static void judge_accepted(const struct vm_schedule *sch, struct tir *workload) {
  ms_error err = {0};
  verify(sch, "after a replay");
  struct vm_schedule *again = vm_schedule_new(NULL, 0);
  if (!replay(again, workload, &sch->trace, VM_STRICT, &err)) fuzz_stop("what was recorded is refused", err.message);
  same_module(sch, again, "what was recorded gives another module");
  vm_schedule_free(again);
}

static void judge_replay(struct vm_schedule *sch, struct tir *workload, const struct vm_trace *trace,
                         enum vm_mode mode) {
  ms_error err = {.instruction = -1};
  if (replay(sch, workload, trace, mode, &err))
    judge_accepted(sch, workload);
  else
    judge_refused(sch, workload, trace, mode, &err);
}

void fuzz_judge_trace(const struct vm_trace *trace) {
  char why[2000];
  if (!forms_agree(trace, why, sizeof why)) fuzz_stop("forms", why);
  vm_trace_free(vm_trace_simplified(trace, true));
  vm_trace_free(vm_trace_simplified(trace, false));
  struct vm_schedule *sch = vm_schedule_new(NULL, 0);
  struct tir *workload = tir_new();
  for (int i = 0; i < WORKLOADS; i++) {
    tir_copy(workload, workload_at(i));
    judge_replay(sch, workload, trace, VM_STRICT);
    judge_replay(sch, workload, trace, VM_REPAIR);
  }
  tir_free(workload);
  vm_schedule_free(sch);
}

void fuzz_take_trace(struct vm_trace *trace, const ms_error *err) {
  if (trace)
    fuzz_judge_trace(trace);
  else
    fuzz_check_refusal(err);
  vm_trace_free(trace);
}
