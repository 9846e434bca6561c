/* Formulas: the operators, and what is made of them. A formula is read from the text of a Python lambda, or from TVM's
 * node graph (today's and the one before, whose fields are strings), and written as both; a condition over drawn
 * numbers is text alone. In a map truths and numbers are kept apart, as TVM does; in a condition a truth is 1 or 0. */
#include "formula.h"

#include <stdlib.h>
#include <string.h>

static const struct formula_operator operators[] = {
    {TIR_FLOORDIV, 2, LEVEL_PRODUCT, "//", "floordiv", "FloorDiv"},
    {TIR_MUL, 2, LEVEL_PRODUCT, "*", NULL, "Mul"},
    {TIR_FLOORMOD, 2, LEVEL_PRODUCT, "%", "floormod", "FloorMod"},
    {TIR_ADD, 2, LEVEL_SUM, "+", NULL, "Add"},
    {TIR_SUB, 2, LEVEL_SUM, "-", NULL, "Sub"},
    {TIR_CALL, 2, LEVEL_SHIFT, "<<", "shift_left", NULL},
    {TIR_CALL, 2, LEVEL_SHIFT, ">>", "shift_right", NULL},
    {TIR_CALL, 2, LEVEL_BIT_AND, "&", "bitwise_and", NULL},
    {TIR_CALL, 2, LEVEL_BIT_XOR, "^", "bitwise_xor", NULL},
    {TIR_CALL, 2, LEVEL_BIT_OR, "|", "bitwise_or", NULL},
    {TIR_LE, 2, LEVEL_COMPARED, "<=", NULL, "LE"},
    {TIR_LT, 2, LEVEL_COMPARED, "<", NULL, "LT"},
    {TIR_GE, 2, LEVEL_COMPARED, ">=", NULL, "GE"},
    {TIR_GT, 2, LEVEL_COMPARED, ">", NULL, "GT"},
    {TIR_EQ, 2, LEVEL_COMPARED, "==", NULL, "EQ"},
    {TIR_NE, 2, LEVEL_COMPARED, "!=", NULL, "NE"},
    {TIR_NE, 2, LEVEL_COMPARED, "~=", NULL, "NE"},
    {TIR_AND, 2, LEVEL_AND, "and", NULL, "And"},
    {TIR_OR, 2, LEVEL_OR, "or", NULL, "Or"},
    {TIR_NOT, 1, LEVEL_NOT, NULL, NULL, "Not"},
    {TIR_DIV, 2, LEVEL_ITSELF, NULL, "truncdiv", "Div"},
    {TIR_DIV, 2, LEVEL_ITSELF, NULL, "Div", "Div"},
    {TIR_MOD, 2, LEVEL_ITSELF, NULL, "truncmod", "Mod"},
    {TIR_MIN, 2, LEVEL_ITSELF, NULL, "min", "Min"},
    {TIR_MAX, 2, LEVEL_ITSELF, NULL, "max", "Max"},
    {TIR_CALL, 1, LEVEL_ITSELF, NULL, "bitwise_not", NULL},
    {TIR_CALL, 3, LEVEL_ITSELF, NULL, "if_then_else", NULL},
    {TIR_SELECT, 3, LEVEL_ITSELF, NULL, "Select", "Select"},
};
enum { OPERATORS = sizeof operators / sizeof operators[0] };

const struct formula_operator *formula_operator(uint32_t number) {
  return number < OPERATORS ? &operators[number] : NULL;
}

/* A call keeps its operator's number. */
const struct formula_operator *formula_operator_of(const struct vm_value *v) {
  assert(v->kind == VM_APPLY);
  if (v->op == TIR_CALL) return &operators[v->bare];
  for (int i = 0; i < OPERATORS; i++)
    if (operators[i].kind == v->op) return &operators[i];
  return &operators[0];
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

bool formula_fail(struct formula *f, const char *what) {
  assert(f && what);
  return ms_fail(f->err, MS_BAD_FORMULA, "%s: %s", f->condition ? "a condition" : "an index map", what);
}

bool formula_fail_at(struct formula *f, const char *name, size_t length, const char *what) {
  int shown = length < 40 ? (int)length : 40;
  return ms_fail(f->err, MS_BAD_FORMULA, "%s: `%.*s` %s", f->condition ? "a condition" : "an index map", shown, name,
                 what);
}

bool formula_count_node(struct formula *f) {
  return ++f->nodes <= FORMULA_MOST_NODES || formula_fail(f, "it is too large");
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

bool formula_find_drawn(const struct formula *f, const char *name, size_t length, uint32_t *variable) {
  if (f->names) return vm_name_find(f->names, name, length, variable);
  char usual[16];
  const struct vm_steps *s = f->trace->steps;
  if (length < 2 || length >= sizeof usual) return false;
  memcpy(usual, name + 1, length - 1);
  usual[length - 1] = 0;
  unsigned long number = strtoul(usual, NULL, 10);
  if (number >= s->variables) return false;
  *variable = (uint32_t)number;
  return vm_variable_name(s, *variable, usual) == (int)length && !memcmp(usual, name, length);
}

bool formula_add_param(struct formula *f, const char *name, size_t length) {
  assert(f->param_count <= FORMULA_MOST_ITEMS);
  if (f->param_count == FORMULA_MOST_ITEMS) return formula_fail(f, "it has too many parameters");
  f->params[f->param_count++] = vm_string(f->trace, name, length);
  return true;
}

/* ---- What is made ------------------------------------------------------------------------------------------------ */

static bool is_truth(const struct vm_value *v) {
  if (v->kind != VM_APPLY || v->op == TIR_CAST) return false;
  const struct formula_operator *o = formula_operator_of(v);
  return o->level >= LEVEL_OR && o->level <= LEVEL_COMPARED;
}

static bool wants_truth(const struct formula_operator *o, uint32_t argument) {
  return o->level < LEVEL_COMPARED || (o->arguments == 3 && !argument);
}

bool formula_add_result(struct formula *f, struct vm_value v) {
  assert(f->result_count <= FORMULA_MOST_ITEMS);
  if (f->result_count == FORMULA_MOST_ITEMS) return formula_fail(f, "it has too many results");
  if (!f->condition && is_truth(&v)) return formula_fail(f, "a result is a truth, and no index");
  f->results[f->result_count++] = v;
  return true;
}

bool formula_apply(struct formula *f, uint32_t number, const struct vm_value *arguments, struct vm_value *out) {
  assert(number < OPERATORS);
  const struct formula_operator *o = &operators[number];
  for (uint32_t i = 0; i < o->arguments && !f->condition; i++) {
    bool truth = wants_truth(o, i);
    if (truth != is_truth(&arguments[i]) && !(truth && arguments[i].kind == VM_INT))
      return formula_fail(f, truth ? "a number stands where a truth should" : "a truth stands where a number should");
  }
  *out = vm_list(f->trace, VM_APPLY, arguments, o->arguments);
  out->op = (uint16_t)o->kind;
  if (o->kind == TIR_CALL) out->bare = (uint8_t)number;
  return true;
}

bool formula_cast(struct formula *f, const char *type, size_t length, struct vm_value argument, struct vm_value *out) {
  if (length != 5 || (memcmp(type, "int32", 5) != 0 && memcmp(type, "int64", 5) != 0))
    return formula_fail_at(f, type, length, "is no type of indices: they are of int32 or int64");
  if (is_truth(&argument)) return formula_fail(f, "a truth stands where a number should");
  *out = vm_list(f->trace, VM_APPLY, &argument, 1);
  out->op = TIR_CAST;
  out->bare = type[3] == '6' ? 64 : 32;
  return true;
}

static void finish(struct formula *f, struct vm_value *out) {
  struct vm_value items[2 * FORMULA_MOST_ITEMS];
  memcpy(items, f->params, f->param_count * sizeof *items);
  memcpy(items + f->param_count, f->results, f->result_count * sizeof *items);
  *out = vm_list(f->trace, VM_INDEX_MAP, items, f->param_count + f->result_count);
  out->op = (uint16_t)f->param_count;
  out->bare = f->condition ? VM_CONDITION : f->wide && f->param_count && f->result_count ? 64 : 32;
}

bool vm_read_formula(struct vm_trace *trace, const struct vm_names *names, enum vm_type type, const char *text,
                     size_t length, struct vm_value *out, ms_error *err) {
  assert(vm_is_formula((uint8_t)type));
  struct formula *f = calloc(1, sizeof *f);
  char *copy = malloc(length + 1); /* the text may stand in the trace, which grows */
  if (!f || !copy) abort();
  memcpy(copy, text, length);
  *f = (struct formula){.trace = trace, .names = names, .condition = type == VM_T_CONDITION, .err = err};
  bool graph = !f->condition && length && *copy == '{';
  bool done = graph ? formula_read_graph(f, copy, length) : formula_read_text(f, copy, length);
  if (done) finish(f, out);
  free(copy);
  free(f);
  return done;
}
