/* Index maps as operands of a plan: the trace's map becomes one of expressions over variables of the workload.
 *
 * Operands of a map: the number of its results (-1: too many indices), where its results stand in the steps' values
 * (-1: they are made), its parameters, and its results if they are made. Where a drawn number is in them they are made
 * when the map is used. */
#include "vm/run.h"
#include "vm/text/formula.h"

enum { MOST = sizeof(((struct tir_index_map *)0)->params) / sizeof(tir_expr), RESULTS = 0, VALUES, PARAMS };

struct building {
  struct tir *ir;
  const struct vm_steps *steps;
  const tir_expr *params;
  const int64_t *slots; /* NULL: nothing has been drawn yet */
  tir_type type;
};

static tir_expr make_number(const struct building *b, int64_t value, tir_type type) {
  if (value <= VM_UNSET || (type == TIR_T_I32 && value != (int32_t)value)) return TIR_NONE;
  return tir_int(b->ir, type, type == TIR_T_BOOL ? value != 0 : value);
}

static tir_expr make(const struct building *b, const struct vm_value *v, tir_type type);

static tir_expr widen(struct tir *ir, tir_expr e, tir_type type) {
  return tir_type_of(ir, e) == type ? e : tir_unary(ir, TIR_CAST, type, e);
}

/* Both of one type: a number takes the other's, and of two the wider one is taken. */
static bool make_pair(const struct building *b, const struct vm_value *items, tir_type type, tir_expr *out) {
  int first = items[0].kind == VM_INT || items[0].kind == VM_REF, second = !first;
  out[first] = make(b, &items[first], type);
  if (!out[first]) return false;
  type = tir_type_of(b->ir, out[first]);
  out[second] = make(b, &items[second], type);
  if (!out[second]) return false;
  if (tir_type_bits(tir_type_of(b->ir, out[second])) > tir_type_bits(type)) type = tir_type_of(b->ir, out[second]);
  for (int i = 0; i < 2; i++) out[i] = widen(b->ir, out[i], type);
  assert(tir_type_of(b->ir, out[0]) == tir_type_of(b->ir, out[1]));
  return true;
}

static tir_expr make_call(const struct building *b, const struct vm_value *v, tir_type type) {
  const struct formula_operator *o = formula_operator_of(v);
  const struct vm_value *items = b->steps->values + v->first;
  tir_expr args[3] = {TIR_NONE};
  uint32_t choice = o->arguments == 3;
  if (choice) args[0] = make(b, &items[0], TIR_T_BOOL);
  if (choice && !args[0]) return TIR_NONE;
  if (o->arguments == 1)
    args[0] = make(b, &items[0], type);
  else if (!make_pair(b, items + choice, type, args + choice))
    return TIR_NONE;
  if (!args[0]) return TIR_NONE;
  if (o->kind == TIR_SELECT) return tir_select(b->ir, args[0], args[1], args[2]);
  return tir_call(b->ir, tir_type_of(b->ir, args[choice]), tir_symbol_of(b->ir, o->function), args, o->arguments);
}

static tir_expr make_operator(const struct building *b, const struct vm_value *v, tir_type type) {
  assert(v->kind == VM_APPLY);
  const struct vm_value *items = b->steps->values + v->first;
  tir_expr args[2];
  switch (v->op) {
  case TIR_CAST:
    args[0] = make(b, items, b->type);
    return args[0] ? widen(b->ir, args[0], v->bare == 64 ? TIR_T_I64 : TIR_T_I32) : TIR_NONE;
  case TIR_NOT:
    args[0] = make(b, items, TIR_T_BOOL);
    return args[0] ? tir_unary(b->ir, TIR_NOT, TIR_T_BOOL, args[0]) : TIR_NONE;
  case TIR_SELECT:
  case TIR_CALL: return make_call(b, v, type);
  default: break;
  }
  if (formula_operator_of(v)->level == LEVEL_COMPARED) type = b->type;
  return make_pair(b, items, type, args) ? tir_binary(b->ir, (enum tir_kind)v->op, args[0], args[1]) : TIR_NONE;
}

/* type: of a number that stands alone. TIR_NONE: a number does not fit, or has no value yet. Depth is bounded where
 * maps are read. */
static tir_expr make(const struct building *b, const struct vm_value *v, tir_type type) {
  switch (v->kind) {
  case VM_INT: return make_number(b, v->integer, type);
  case VM_PARAM: return b->params[v->ref];
  case VM_REF: return b->slots ? make_number(b, b->slots[v->ref], type) : TIR_NONE;
  case VM_APPLY: return make_operator(b, v, type);
  default: return TIR_NONE;
  }
}

/* An index: of the type of the map's variables, whatever is cast in it. */
static tir_expr make_result(const struct building *b, const struct vm_value *v) {
  tir_expr e = make(b, v, b->type);
  return e ? widen(b->ir, e, b->type) : TIR_NONE;
}

static struct vm_operand number(int64_t value) { return (struct vm_operand){.kind = VM_AT_INT, .value = value}; }
static struct vm_operand expression(tir_expr e) { return (struct vm_operand){.kind = VM_AT_EXPR, .value = e}; }

struct vm_operand vm_prepare_map(struct vm_plan *plan, const struct vm_value *v) {
  assert(v->kind == VM_INDEX_MAP || v->kind == VM_NONE);
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
    tir_expr e = make_result(&b, &plan->steps->values[v->first + params + i]);
    plan->operands[first + PARAMS + params + i] = expression(e);
    made = made && e;
  }
  plan->operands[first + RESULTS] = number(large ? -1 : (int64_t)results);
  plan->operands[first + VALUES] = number(made ? -1 : (int64_t)v->first + params);
  return (struct vm_operand){.kind = VM_AT_MAP, .value = first, .count = params};
}

bool vm_get_map(struct vm_run *r, const struct vm_operand *o, struct tir_index_map *out) {
  assert(o->kind == VM_AT_MAP || o->kind == VM_AT_NONE);
  const struct vm_operand *at = r->operands + o->value;
  int64_t results = at[RESULTS].value, values = at[VALUES].value;
  if (results < 0) return ms_fail(r->err, MS_INDEX_MAP_SIZE, "the index map has more than %d indices", MOST);
  assert(results <= MOST && o->count <= MOST);
  out->param_count = o->count;
  out->result_count = (uint32_t)results;
  for (uint32_t i = 0; i < out->param_count; i++) out->params[i] = (tir_expr)at[PARAMS + i].value;
  struct building b = {r->ir, r->plan->steps, out->params, r->slots, TIR_T_I32};
  if (o->count) b.type = tir_type_of(r->ir, out->params[0]);
  for (uint32_t i = 0; i < out->result_count; i++) {
    bool made = values < 0;
    out->results[i] =
        made ? (tir_expr)at[PARAMS + o->count + i].value : make_result(&b, &r->plan->steps->values[values + i]);
    if (!out->results[i])
      return ms_fail(r->err, MS_INVALID_ARGUMENT, "a number in the index map is too large, or was left open");
  }
  return true;
}
