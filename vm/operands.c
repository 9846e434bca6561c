/* What an instruction that is performed takes, and what it gives. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

uint32_t vm_plan_operands(struct vm_plan *plan, uint32_t count) {
  assert(plan->operand_count <= plan->operand_capacity);
  uint64_t size = (uint64_t)plan->operand_count + count;
  if (size > plan->operand_capacity)
    plan->operands = tir_enlarge(plan->operands, &plan->operand_capacity, size, sizeof *plan->operands);
  uint32_t first = plan->operand_count;
  plan->operand_count = (uint32_t)size;
  return first;
}

void vm_fit_slots(struct vm_schedule *sch, uint32_t variables, uint32_t instructions) {
  assert(variables <= VM_MOST_VARIABLES);
  if (variables > sch->slot_capacity)
    sch->slots = tir_enlarge(sch->slots, &sch->slot_capacity, variables, sizeof *sch->slots);
  if (instructions > sch->end_capacity)
    sch->ends = tir_enlarge(sch->ends, &sch->end_capacity, instructions, sizeof *sch->ends);
  if (sch->out_capacity < VM_OUT_ROOM)
    sch->out = tir_enlarge(sch->out, &sch->out_capacity, VM_OUT_ROOM, sizeof *sch->out);
}

/* The instruction that removed a statement; -1: not known. */
static int64_t removed_by(const struct vm_schedule *sch, tir_stmt s) {
  assert(s);
  const struct tir *ir = sch->ir;
  uint32_t at = ir->forwards.count;
  while (at && !(ir->forwards.at[at - 1].from == s && ir->forwards.at[at - 1].to == TIR_NONE)) at--;
  if (!at) return -1;
  for (uint32_t i = 0; i < sch->trace.steps->count && i < sch->end_capacity; i++)
    if (sch->ends[i] >= at) return i;
  return -1;
}

bool vm_refuse_handle(struct vm_run *r, const struct vm_operand *o) {
  if (r->err && r->err->brief) return ms_fail(r->err, MS_STALE_HANDLE, "%s", "");
  char name[16];
  int64_t value = r->slots[o->value];
  vm_variable_name(r->plan->steps, (uint32_t)o->value, name);
  if (value == VM_MARK_ROOT || value == VM_MARK_INLINE)
    return ms_fail(r->err, MS_WRONG_OPERAND, "%s is no loop: what was drawn is to %s", name,
                   value == VM_MARK_ROOT ? "leave the block at the root" : "inline the block");
  int64_t by = value > 0 ? removed_by(r->schedule, (tir_stmt)value) : -1;
  if (by < 0) return ms_fail(r->err, MS_STALE_HANDLE, "%s is no longer in the module", name);
  return ms_fail(r->err, MS_STALE_HANDLE, "%s is no longer in the module: instruction %d, %s, removed it", name,
                 (int)by, vm_kind_info(r->plan->steps->instructions[by].kind)->name);
}

bool vm_get_place(struct vm_run *r, const struct vm_operand *o, tir_stmt *out) {
  int64_t value = r->slots[o->value];
  *out = (tir_stmt)value;
  if (value > 0 && (tir_is(r->ir, *out, TIR_BLOCK) || tir_is(r->ir, *out, TIR_LOOP))) return true;
  return vm_refuse_handle(r, o);
}

bool vm_get_blocks(struct vm_run *r, const struct vm_operand *list, tir_block *out) {
  assert(list->kind == VM_AT_LIST);
  for (uint32_t i = 0; i < list->count; i++)
    if (!vm_get_block(r, r->operands + list->value + i, &out[i])) return false;
  return true;
}

/* ---- What instructions give -------------------------------------------------------------------------------------- */

uint32_t *vm_out(struct vm_run *r, uint32_t count) {
  struct vm_schedule *sch = r->schedule;
  if (count > sch->out_capacity) sch->out = tir_enlarge(sch->out, &sch->out_capacity, count, sizeof *sch->out);
  return sch->out;
}

static bool take_outputs(struct vm_run *r, const struct vm_step *s, uint32_t count) {
  assert(s->first_output + count <= r->schedule->slot_capacity || count != s->outputs);
  r->made = count;
  if (!r->recording) {
    if (count == s->outputs) return true;
    r->overdone = true;
    return ms_fail(r->err, MS_ARITY, "gives %u output%s, and gave %u when it was recorded", count,
                   count == 1 ? "" : "s", s->outputs);
  }
  if ((uint64_t)s->first_output + count > VM_MOST_VARIABLES)
    return ms_fail(r->err, MS_TOO_LARGE, "a trace may give at most %d handles and numbers: this one would give more",
                   VM_MOST_VARIABLES);
  vm_fit_slots(r->schedule, s->first_output + count, 0);
  r->slots = r->schedule->slots;
  return true;
}

bool vm_give(struct vm_run *r, const struct vm_step *s, const uint32_t *statements, uint32_t count) {
  if (!take_outputs(r, s, count)) return false;
  for (uint32_t i = 0; i < count; i++) r->slots[s->first_output + i] = statements[i];
  return true;
}

bool vm_give_numbers(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count) {
  if (!take_outputs(r, s, count)) return false;
  for (uint32_t i = 0; i < count; i++) r->slots[s->first_output + i] = numbers[i];
  return true;
}

bool vm_get_decision(struct vm_run *r, const struct vm_step *s, uint32_t count, const int64_t **decided) {
  assert(s->draw != VM_NO_DRAW);
  const struct vm_trace *given = r->draws->decisions;
  *decided = r->recording ? r->decision : NULL;
  uint32_t length = r->recording ? r->decision_count : s->outputs;
  uint8_t state = r->recording ? VM_DECIDED : VM_OPEN;
  if (!r->recording && given) {
    state = given->decided[s->decision];
    if (state == VM_DECIDED) *decided = given->decisions + s->decision;
  }
  bool fits = state == VM_OPEN || (state == VM_DECIDED && (!*decided || length == count));
  if (fits) return true;
  *decided = NULL;
  return r->draws->mode == VM_REPAIR ||
         ms_fail(r->err, MS_DECISION, "the decision does not have %u number%s", count, count == 1 ? "" : "s");
}

void vm_set_decision(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count) {
  assert(s->draw != VM_NO_DRAW && (!count || numbers));
  struct vm_trace *trace = &r->schedule->trace;
  if (r->recording) vm_trace_fit_decisions(trace, s->decision + count);
  assert(r->recording || count == s->outputs);
  memcpy(trace->decisions + s->decision, numbers, count * sizeof *numbers);
  trace->decided[s->decision] = VM_DECIDED;
}
