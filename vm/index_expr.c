/* Index maps as operands of a plan: the trace's map becomes one of expressions over variables of the workload.
 *
 * Operands of a map: the number of its results (-1: too many indices), where its results stand in the steps' values
 * (-1: they are made), its parameters, and its results if they are made. Where a drawn number is in them they are made
 * when the map is used. */
#include "run.h"

enum { MOST = sizeof(((struct tir_index_map *)0)->params) / sizeof(tir_expr), RESULTS = 0, VALUES, PARAMS };

struct building {
  struct tir *ir;
  const struct vm_steps *steps;
  const tir_expr *params;
  const int64_t *slots; /* NULL: nothing has been drawn yet */
  tir_type type;
};

static tir_expr make_number(const struct building *b, int64_t value) {
  if (value <= VM_UNSET || (b->type == TIR_T_I32 && value != (int32_t)value)) return TIR_NONE;
  return tir_int(b->ir, b->type, value);
}

/* TIR_NONE: a number does not fit, or has no value yet. Depth is bounded where maps are read. */
static tir_expr make(const struct building *b, const struct vm_value *v) {
  const struct vm_value *items = b->steps->values + v->first;
  switch (v->kind) {
  case VM_INT: return make_number(b, v->integer);
  case VM_PARAM: return b->params[v->ref];
  case VM_REF: return b->slots ? make_number(b, b->slots[v->ref]) : TIR_NONE;
  default: break;
  }
  if (v->kind != VM_APPLY || v->count != 2) return TIR_NONE;
  tir_expr left = make(b, &items[0]), right = left ? make(b, &items[1]) : TIR_NONE;
  return right ? tir_binary(b->ir, (enum tir_kind)v->op, left, right) : TIR_NONE;
}

static struct vm_operand number(int64_t value) { return (struct vm_operand){.kind = VM_AT_INT, .value = value}; }
static struct vm_operand expression(tir_expr e) { return (struct vm_operand){.kind = VM_AT_EXPR, .value = e}; }

struct vm_operand vm_prepare_map(struct vm_plan *plan, const struct vm_value *v) {
  struct tir *ir = plan->workload;
  uint32_t params = v->op, results = v->count - params, first = vm_plan_operands(plan, PARAMS + v->count);
  bool large = params > MOST || results > MOST, made = !large;
  tir_expr variables[MOST];
  struct building b = {ir, plan->steps, variables, NULL, v->bare == 64 ? TIR_T_I64 : TIR_T_I32};
  for (uint32_t i = 0; i < params && !large; i++) {
    tir_var var = tir_new_var(ir, TIR_VAR_PLAIN, tir_name_of(ir, "i"), b.type, TIR_NONE, TIR_NONE);
    variables[i] = tir_var_expr(ir, var);
    plan->operands[first + PARAMS + i] = expression(variables[i]);
  }
  for (uint32_t i = 0; i < results && !large; i++) {
    tir_expr e = make(&b, &plan->steps->values[v->first + params + i]);
    plan->operands[first + PARAMS + params + i] = expression(e);
    made = made && e;
  }
  plan->operands[first + RESULTS] = number(large ? -1 : (int64_t)results);
  plan->operands[first + VALUES] = number(made ? -1 : (int64_t)v->first + params);
  return (struct vm_operand){.kind = VM_AT_MAP, .value = first, .count = params};
}

bool vm_get_map(struct vm_run *r, const struct vm_operand *o, struct tir_index_map *out) {
  const struct vm_operand *at = r->operands + o->value;
  int64_t results = at[RESULTS].value, values = at[VALUES].value;
  if (results < 0) return ms_fail(r->err, MS_INDEX_MAP_SIZE, "the index map has more than %d indices", MOST);
  out->param_count = o->count;
  out->result_count = (uint32_t)results;
  for (uint32_t i = 0; i < out->param_count; i++) out->params[i] = (tir_expr)at[PARAMS + i].value;
  struct building b = {r->ir, r->plan->steps, out->params, r->slots, TIR_T_I32};
  if (o->count) b.type = tir_type_of(r->ir, out->params[0]);
  for (uint32_t i = 0; i < out->result_count; i++) {
    bool made = values < 0;
    out->results[i] = made ? (tir_expr)at[PARAMS + o->count + i].value : make(&b, &r->plan->steps->values[values + i]);
    if (!out->results[i])
      return ms_fail(r->err, MS_INVALID_ARGUMENT, "a number in the index map is too large, or was left open");
  }
  return true;
}
