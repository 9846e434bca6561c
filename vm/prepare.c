/* Making a trace ready for a workload: names become symbols, constants expressions, operands slots. */
#include "run.h"

#include <assert.h>
#include <stdlib.h>

static bool is_list(const struct vm_value *v) { return v->kind == VM_LIST || v->kind == VM_MAP; }

static bool has_ref(const struct vm_steps *s, const struct vm_value *v) {
  if (v->kind == VM_REF) return true;
  for (uint32_t i = 0; is_list(v) && i < v->count; i++)
    if (has_ref(s, &s->values[v->first + i])) return true;
  return false;
}

/* The expression of an annotation value that refers to nothing drawn. */
static tir_expr make_annotation(struct tir *ir, const struct vm_steps *s, const struct vm_value *v) {
  switch (v->kind) {
  case VM_BOOL: return tir_int(ir, TIR_T_BOOL, v->integer);
  case VM_INT: return tir_int(ir, v->integer == (int32_t)v->integer ? TIR_T_I32 : TIR_T_I64, v->integer);
  case VM_REAL: return tir_float(ir, TIR_T_F32, v->real);
  case VM_STRING: return tir_string(ir, tir_symbol_n(ir, s->text + v->first, v->count));
  default: break;
  }
  if (!is_list(v)) return tir_none(ir);
  tir_expr *items = v->count ? malloc(v->count * sizeof *items) : NULL;
  if (v->count && !items) abort();
  for (uint32_t i = 0; i < v->count; i++) items[i] = make_annotation(ir, s, &s->values[v->first + i]);
  tir_expr out = v->kind == VM_LIST ? tir_list_value(ir, items, v->count) : tir_map_value(ir, items, v->count);
  free(items);
  return out;
}

static struct vm_operand prepare_value(struct vm_plan *plan, const struct vm_value *v, bool annotation);

static struct vm_operand prepare_list(struct vm_plan *plan, const struct vm_value *v, bool annotation) {
  uint32_t first = vm_plan_operands(plan, v->count);
  for (uint32_t i = 0; i < v->count; i++) {
    struct vm_operand item = prepare_value(plan, &plan->steps->values[v->first + i], annotation);
    plan->operands[first + i] = item;
  }
  return (struct vm_operand){.kind = v->kind == VM_MAP ? VM_AT_DICT : VM_AT_LIST, .value = first, .count = v->count};
}

static struct vm_operand prepare_value(struct vm_plan *plan, const struct vm_value *v, bool annotation) {
  if (v->kind == VM_REF) return (struct vm_operand){.kind = VM_AT_SLOT, .value = v->ref};
  if (annotation && !has_ref(plan->steps, v))
    return (struct vm_operand){.kind = VM_AT_EXPR, .value = make_annotation(plan->workload, plan->steps, v)};
  switch (v->kind) {
  case VM_BOOL:
  case VM_INT: return (struct vm_operand){.kind = VM_AT_INT, .value = v->integer};
  case VM_REAL: return (struct vm_operand){.kind = VM_AT_REAL, .real = v->real};
  case VM_STRING:
    return (struct vm_operand){.kind = VM_AT_STRING,
                               .value = tir_symbol_n(plan->workload, plan->steps->text + v->first, v->count),
                               .count = v->first};
  case VM_LIST:
  case VM_MAP: return prepare_list(plan, v, annotation);
  case VM_INDEX_MAP: return vm_prepare_map(plan, v);
  default: return (struct vm_operand){.kind = VM_AT_NONE};
  }
}

static void prepare_instruction(struct vm_plan *plan, const struct vm_instruction *i) {
  const struct vm_signature *sig = vm_signature_of(i->kind);
  struct vm_step step = {.perform = vm_performer_in(plan->workload, i->kind),
                         .inputs = i->inputs,
                         .outputs = i->outputs,
                         .first_output = i->first_output,
                         .draw = i->draw,
                         .decision = i->decision};
  step.operands = vm_plan_operands(plan, i->inputs + i->attrs);
  for (uint32_t n = 0; n < i->inputs + i->attrs; n++) {
    uint32_t p = n < i->inputs ? (n < sig->inputs ? n : sig->inputs - 1u) : sig->inputs + (n - i->inputs);
    struct vm_operand operand = prepare_value(plan, &plan->steps->values[i->values + n], sig->at[p].type == VM_T_VALUE);
    plan->operands[step.operands + n] = operand;
  }
  if (i->kind == VM_GetSBlock)
    step.func = tir_find_func(plan->workload, plan->steps->text + plan->operands[step.operands + 1].count);
  if (i->kind == VM_Tensorize)
    vm_find_known_intrinsic(plan->intrinsics, plan->steps->text + plan->operands[step.operands + i->inputs].count,
                            &step.description, &step.implementation);
  if (plan->count == plan->capacity)
    plan->at = tir_enlarge(plan->at, &plan->capacity, (uint64_t)plan->count + 1, sizeof *plan->at);
  plan->at[plan->count++] = step;
}

void vm_plan_set(struct vm_plan *plan, uint32_t first, uint32_t last) {
  assert(first <= last && last <= plan->steps->count);
  plan->first = first;
  plan->count = plan->operand_count = plan->assert_count = 0;
  for (uint32_t i = first; i < last; i++) prepare_instruction(plan, &plan->steps->instructions[i]);
  vm_plan_match(plan);
}

struct vm_plan *vm_prepare(struct tir *workload, const struct vm_trace *trace) {
  return vm_prepare_with(workload, trace, NULL);
}

struct vm_plan *vm_prepare_with(struct tir *workload, const struct vm_trace *trace,
                                const struct vm_intrinsics *intrinsics) {
  struct vm_plan *plan = vm_new(sizeof *plan);
  *plan = (struct vm_plan){.workload = workload, .intrinsics = intrinsics, .steps = vm_steps_retain(trace->steps)};
  tir_find_pipelines(workload, 1);
  vm_plan_set(plan, 0, plan->steps->count);
  vm_plan_constrain(plan);
  return plan;
}

void vm_plan_free(struct vm_plan *plan) {
  if (!plan) return;
  vm_steps_release(plan->steps);
  free(plan->at);
  free(plan->operands);
  free(plan->asserts);
  free(plan);
}

struct vm_steps *vm_plan_steps(const struct vm_plan *plan) {
  return plan->steps;
}
