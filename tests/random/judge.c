/* What came of a sequence: it computes what the unscheduled function does, by the interpreter, lowered, and compiled,
 * by LLVM and as C source; and its trace, written and read, gives it again. */
#include "random.h"

#include "jit/jit.h"
#include "support/zeros.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COST = 20000000, SIZES = 3 };

/* Whether a trace gives a module of this hash. */
static bool gives(struct grow *g, const struct vm_trace *trace, uint64_t hash, const char *form) {
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace, .seed = 1};
  struct tir *workload = tir_new();
  ms_error err = {0};
  tir_copy(workload, g->workload->ir);
  struct vm_schedule *again = vm_apply_with(workload, trace, g->workload->intrinsics, &draws, &err);
  bool same = again && tir_structural_hash(again->ir, TIR_NONE) == hash;
  if (!again)
    report(g->shared, NOT_REPLAYED, "%s: %s", form, err.message);
  else if (!same)
    report(g->shared, NOT_REPLAYED, "%s: another module", form);
  vm_schedule_free(again);
  tir_free(workload);
  g->shared->tally.replayed++;
  return same;
}

enum { FORMS = 4 };

static bool replays(struct grow *g, uint32_t form) {
  static const char *const forms[FORMS] = {"JSON", "Lua text", "binary", "simplified"};
  const struct vm_trace *trace = &g->schedule->trace;
  struct vm_trace *read = NULL;
  void *written = NULL;
  size_t length = 0;
  ms_error err = {0};
  if (form == 3)
    read = vm_trace_simplified(trace, true);
  else if (form == 2)
    written = vm_write_binary(trace, &length);
  else
    written = form ? vm_write_lua(trace) : vm_write_json(trace);
  if (form < 2 && written) length = strlen(written);
  if (form < 3 && written) read = vm_read_trace(written, length, &err);
  free(written);
  if (!read) return report(g->shared, NOT_REPLAYED, "%s: %s", forms[form], err.message);
  bool same = gives(g, read, tir_structural_hash(g->schedule->ir, TIR_NONE), forms[form]);
  vm_trace_free(read);
  return same;
}

/* What stands before a For that is open still. */
static bool head_replays(struct grow *g) {
  struct vm_trace *head = vm_trace_head(&g->schedule->trace, g->opened_at);
  bool same = gives(g, head, g->opened_hash, "before what is open");
  vm_trace_free(head);
  return same;
}

/* ---- Compiled ---- */

uint32_t sizes_of(const struct workload *w) {
  struct tir_span params = w->ir->funcs.at[w->func].params;
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer b = w->ir->params.at[params.first + i].buffer;
    for (uint32_t d = 0; b && d < tir_buffer_at(w->ir, b)->rank; d++)
      if (!tir_is_int(w->ir, tir_operands(w->ir, tir_buffer_at(w->ir, b)->shape)[d])) return SIZES;
  }
  return 1;
}

/* Runs the workload on the interpreter and the scheduled function compiled, on the same arguments. */
static bool built_equals(struct grow *g, uint64_t seed, ms_error *err) {
  const struct workload *w = g->workload;
  const struct tir *ir = g->schedule->ir;
  struct tir_arguments expected, actual;
  struct tir_run_report ran;
  struct tir_run_options options = {.report = &ran};
  struct jit_target target;
  struct jit_options build = {.verify = true};
  if (!jit_target_parse("llvm -num-cores=2", &target, err)) return false;
  if (!tir_make_arguments(w->ir, w->func, seed, &expected, err)) return false;
  tir_copy_arguments(w->ir, w->func, &expected, &actual);
  bool ok = tir_run(w->ir, w->func, expected.args, expected.count, &options, err) &&
            jit_run(ir, tir_find_func(ir, "main"), &target, &build, actual.args, err) &&
            tir_same_arguments(w->ir, w->func, &expected, &actual, tir_tolerance(w->ir, w->func, ran.epsilon), err) &&
            (!keeps_zeros(w->ir, w->func) || same_zeros(w->ir, w->func, &expected, &actual, err));
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  return ok;
}

/* Lowered, loops marked parallel have no order, and a race between them is refused. */
static bool lowered_equals(struct grow *g, uint64_t seed, ms_error *err) {
  struct tir_lower_options options = case_lowering(g->schedule->ir);
  struct tir *lowered = tir_new();
  tir_copy(lowered, g->schedule->ir);
  options.verify = true;
  bool ok = tir_lower(lowered, tir_find_func(lowered, "main"), &options, err) && tir_verify(lowered, err) &&
            case_equal(g->workload->ir, g->schedule->ir, g->layouts, g->maps, lowered, false, seed, err);
  tir_free(lowered);
  return ok;
}

/* Whatever a module computes that was changed without regard to that, running and lowering it end. */
static bool judge_unsafe(struct grow *g, uint64_t seed, enum built build) {
  ms_error err = {0};
  for (uint32_t form = 0; form < FORMS && !g->open; form++)
    if (!replays(g, form)) return false;
  g->shared->tally.unsafe++;
  if (cost_of(g->schedule->ir, tir_find_func(g->schedule->ir, "main")) > MOST_COST) return true;
  case_equal(g->workload->ir, g->schedule->ir, g->layouts, g->maps, NULL, false, seed, &err);
  if (build != INTERPRETED) lowered_equals(g, seed, &err);
  return true;
}

static bool judge_emitted(struct grow *g, uint64_t seed) {
  ms_error err = {0};
  bool refused;
  if (emitted_equals(g, seed, &refused, &err)) return g->shared->tally.emitted++, true;
  return refused ? (g->shared->tally.unemitted++, true) : report(g->shared, UNEQUAL_EMITTED, "%s", err.message);
}

bool judge(struct grow *g, uint64_t seed, enum built build) {
  struct shared *shared = g->shared;
  ms_error err = {0};
  if (shared->log) { /* what is judged now is the trace as it is */
    char *json = vm_write_json(&g->schedule->trace);
    if (json) snprintf(shared->json, sizeof shared->json, "%s", json);
    free(json);
  }
  if (g->open && !head_replays(g)) return false;
  shared->tally.unfinished += g->open != 0;
  if (!vm_trace_is_safe(&g->schedule->trace)) return judge_unsafe(g, seed, build);
  if (!g->open && !replays(g, (uint32_t)(seed / 7 % FORMS))) return false;
  if (cost_of(g->schedule->ir, tir_find_func(g->schedule->ir, "main")) > MOST_COST)
    return shared->tally.too_large++, true;
  for (uint32_t i = 0; i < sizes_of(g->workload); i++)
    if (!case_equal(g->workload->ir, g->schedule->ir, g->layouts, g->maps, NULL, false, seed + i, &err))
      return err.code == MS_RUN_STEPS ? (shared->tally.too_large++, true) : report(shared, UNEQUAL, "%s", err.message);
  shared->tally.judged++;
  if (build == INTERPRETED) return true;
  if (!lowered_equals(g, seed, &err)) return report(shared, UNEQUAL_LOWERED, "%s", err.message);
  shared->tally.lowered++;
  if (build == LOWERED) return true;
  for (uint32_t i = 0; i < sizes_of(g->workload); i++)
    if (!built_equals(g, seed + i, &err)) {
      bool needs_size = err.code == MS_NOT_COMPILABLE && sizes_of(g->workload) > 1; /* of a buffer that was made */
      return needs_size ? (shared->tally.unbuilt++, true) : report(shared, UNEQUAL_BUILT, "%s", err.message);
    }
  shared->tally.built++;
  return !shared->emit_every || seed / 7 % shared->emit_every || judge_emitted(g, seed);
}
