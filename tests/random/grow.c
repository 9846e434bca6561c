/* One instruction after another, and what must hold after each: a refusal leaves module and trace as they were; after
 * an accepted one the verifier holds. */
#include "random.h"
#include "support/unchanged.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const trouble_names[TROUBLES] = {
    "none",
    "crashed",
    "hung",
    "a refusal changed the schedule",
    "the verifier refuses the module",
    "not equal to the unscheduled function",
    "not equal once lowered",
    "not equal once compiled",
    "not equal as C source",
    "the trace does not give the module again",
};

bool report(struct shared *shared, enum trouble trouble, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(shared->message, sizeof shared->message, format, args);
  va_end(args);
  shared->trouble = trouble;
  return false;
}

void grow_start(struct grow *g, const struct workload *w, uint64_t seed, struct shared *shared) {
  *g = (struct grow){.workload = w, .shared = shared};
  g->schedule = vm_schedule_new(w->ir, seed);
  g->schedule->intrinsics = w->intrinsics;
  g->random = vm_stream_of(seed, 0, 0, 0);
  g->before = tir_new();
  shared->trouble = NO_TROUBLE;
  shared->json[0] = 0;
}

void grow_end(struct grow *g) {
  for (uint32_t i = 0; i < g->maps; i++) free(g->layouts[i].lambda);
  vm_schedule_free(g->schedule);
  tir_free(g->before);
}

int64_t cost_of(const struct tir *ir, tir_func f) {
  int64_t total = 0;
  tir_stmt top = ir->funcs.at[f].body;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    int64_t times = 1;
    for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent) {
      if (!tir_is(ir, p, TIR_LOOP)) continue;
      tir_expr extent = tir_stmt_at(ir, p)->loop.extent;
      if (tir_is_int(ir, extent) && __builtin_mul_overflow(times, tir_at(ir, extent)->imm, &times)) return INT64_MAX;
    }
    if (__builtin_add_overflow(total, times, &total)) return INT64_MAX;
  }
  return total;
}

/* ---- What a refusal must leave alone ---- */

static bool check_refusal(struct grow *g, uint32_t instructions, uint32_t variables, const ms_error *err) {
  struct tir *now = g->schedule->ir;
  const struct vm_steps *steps = g->schedule->trace.steps;
  const char *array = changed_array(g->before, now);
  if (array) return report(g->shared, LEFT_TRACES, "%s; the array %s has changed", err->message, array);
  if (steps->count != instructions || steps->variables != variables)
    return report(g->shared, LEFT_TRACES, "%s; the trace has changed", err->message);
  if (tir_structural_hash(g->before, TIR_NONE) != tir_structural_hash(now, TIR_NONE))
    return report(g->shared, LEFT_TRACES, "%s; the hash has changed", err->message);
  if (err->code == MS_OK || err->code >= MS_CODE_COUNT || !err->message[0])
    return report(g->shared, LEFT_TRACES, "a refusal without a reason");
  if (!once_in(g, 16)) return true;
  g->shared->tally.unchanged_texts++;
  char *old = tir_print(g->before, TIR_NONE, 0), *new = tir_print(now, TIR_NONE, 0);
  bool same = !strcmp(old, new);
  free(old);
  free(new);
  return same || report(g->shared, LEFT_TRACES, "%s; the text has changed", err->message);
}

/* ---- One instruction ---- */

/* For what crashes: the trace with the instruction that is about to be performed. */
static void log_next(struct grow *g, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
                     const struct vm_value *attrs, uint32_t attr_count) {
  struct vm_trace *trace = vm_trace_copy(&g->schedule->trace);
  ms_error err = {0};
  const struct vm_signature *signature = vm_signature_of(kind);
  uint32_t outputs = signature->outputs && signature->output.repeat != '*' ? 1 : 0;
  vm_append(trace, kind, inputs, input_count, attrs, attr_count, outputs, VM_NO_DRAW, &err);
  char *json = vm_write_json(trace);
  if (json) snprintf(g->shared->json, sizeof g->shared->json, "%s", json);
  free(json);
  vm_trace_free(trace);
}

/* Where a layout went: judging follows those of parameters. */
static void note_layout(struct grow *g, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
                        const struct vm_value *attrs, uint32_t attr_count) {
  const struct vm_steps *steps = g->schedule->trace.steps;
  if (strcmp(vm_kind_info(kind)->name, "TransformLayout") != 0 || g->maps == 4) return;
  const struct vm_instruction *last = &steps->instructions[steps->count - 1];
  char text[1024] = "";
  (void)inputs, (void)input_count;
  vm_print_value(steps, vm_inputs_of(steps, last) + 1, text, sizeof text);
  double pad = attr_count > 2 && attrs[2].kind == VM_REAL ? attrs[2].real : 0;
  g->layouts[g->maps++] = (struct case_map){strdup(text), pad};
}

/* Which branches are open. */
static void note_branch(struct grow *g, enum vm_kind kind, uint32_t instruction) {
  if ((kind == VM_If || kind == VM_For) && !g->open++)
    g->opened_at = instruction, g->opened_hash = tir_structural_hash(g->before, TIR_NONE);
  if (kind == VM_End) g->open--;
}

bool perform_decided(struct grow *g, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
                     const struct vm_value *attrs, uint32_t attr_count, const int64_t *decision,
                     uint32_t decision_count, uint32_t *first, uint32_t *count) {
  struct shared *shared = g->shared;
  struct vm_schedule *sch = g->schedule;
  uint32_t made_first, made, instructions = sch->trace.steps->count, variables = sch->trace.steps->variables;
  ms_error err = {0};
  if (shared->trouble) return false;
  if (shared->log) log_next(g, kind, inputs, input_count, attrs, attr_count);
  tir_copy(g->before, sch->ir);
  shared->tally.proposed[kind]++;
  if (!vm_call(sch, kind, inputs, input_count, attrs, attr_count, decision, decision_count, &made_first, &made, &err)) {
    shared->tally.refused[kind]++;
    check_refusal(g, instructions, variables, &err);
    return false;
  }
  shared->tally.accepted[kind]++;
  if (kind != VM_GetSBlock && kind != VM_GetLoops) g->length++;
  if (vm_kind_info(kind)->effect == VM_EFFECT_edit && !vm_verify(&sch->trace, sch->ir, &err))
    return report(shared, ILL_FORMED, "after %s: %s", vm_kind_info(kind)->name, err.message);
  note_layout(g, kind, inputs, input_count, attrs, attr_count);
  note_branch(g, kind, instructions);
  if (first) *first = made_first;
  if (count) *count = made;
  return true;
}

bool perform(struct grow *g, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
             const struct vm_value *attrs, uint32_t attr_count, uint32_t *first, uint32_t *count) {
  return perform_decided(g, kind, inputs, input_count, attrs, attr_count, NULL, 0, first, count);
}
