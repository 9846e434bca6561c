/* Traces: instructions that are shared, decisions that are not. */
#include "steps.h"
#include "table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

void *vm_new(size_t size) {
  void *at = calloc(1, size);
  if (!at) abort();
  return at;
}

struct vm_steps *vm_steps_retain(struct vm_steps *steps) {
  uint32_t before = __atomic_fetch_add(&steps->references, 1, __ATOMIC_RELAXED);
  assert(before > 0);
  return steps;
}

void vm_steps_release(struct vm_steps *steps) {
  if (!steps || __atomic_sub_fetch(&steps->references, 1, __ATOMIC_ACQ_REL)) return;
  free(steps->instructions);
  free(steps->values);
  free(steps->text);
  free(steps->types);
  free(steps);
}

void vm_steps_copy_numbers(struct vm_steps *to, const struct vm_steps *from) {
  to->count = from->count, to->value_count = from->value_count, to->text_size = from->text_size;
  to->variables = from->variables, to->decisions = from->decisions, to->next_draw = from->next_draw;
}

static struct vm_steps *steps_new(void) {
  struct vm_steps *steps = vm_new(sizeof *steps);
  steps->references = 1;
  return steps;
}

/* With room for half as many more: what is copied is about to be added to. */
static void *copy_array(void *to, uint32_t *capacity, const void *from, uint32_t count, size_t size) {
  if (!from) return to;
  uint64_t room = (uint64_t)count + count / 2 + 1;
  if (room > *capacity) to = tir_enlarge(to, capacity, room < UINT32_MAX ? room : UINT32_MAX, size);
  memcpy(to, from, count * size);
  return to;
}

/* Makes `to`, which nobody else holds, equal to `from`, reusing its memory. Other threads may hold `from`: its count of
 * references is not read. */
static void steps_copy(struct vm_steps *to, const struct vm_steps *from) {
  assert(to->references == 1);
  vm_steps_copy_numbers(to, from);
  to->instructions = copy_array(to->instructions, &to->instruction_capacity, from->instructions, from->count,
                                sizeof *to->instructions);
  to->values = copy_array(to->values, &to->value_capacity, from->values, from->value_count, sizeof *to->values);
  to->text = copy_array(to->text, &to->text_capacity, from->text, from->text_size, 1);
  to->types = copy_array(to->types, &to->variable_capacity, from->types, from->variables, 1);
}

/* ---- Life of a trace --------------------------------------------------------------------------------------------- */

void vm_trace_init(struct vm_trace *trace) { *trace = (struct vm_trace){.steps = steps_new()}; }

void vm_trace_clear(struct vm_trace *trace) {
  vm_steps_release(trace->steps);
  vm_steps_release(trace->spare);
  free(trace->decisions);
  free(trace->decided);
  *trace = (struct vm_trace){0};
}

void vm_trace_fit_decisions(struct vm_trace *trace, uint32_t count) {
  if (count <= trace->capacity) return;
  uint32_t capacity = trace->capacity;
  trace->decisions = tir_enlarge(trace->decisions, &capacity, count, sizeof *trace->decisions);
  uint32_t again = trace->capacity;
  trace->decided = tir_enlarge(trace->decided, &again, capacity, 1);
  memset(trace->decided + trace->capacity, VM_OPEN, capacity - trace->capacity);
  trace->capacity = capacity;
}

static bool is_only_holder(const struct vm_trace *trace) {
  return __atomic_load_n(&trace->steps->references, __ATOMIC_ACQUIRE) == 1;
}

void vm_trace_adopt(struct vm_trace *to, struct vm_steps *steps) {
  assert(steps);
  if (to->steps != steps) {
    vm_steps_retain(steps);
    if (to->steps && !to->spare && is_only_holder(to))
      to->spare = to->steps;
    else
      vm_steps_release(to->steps);
    to->steps = steps;
  }
  vm_trace_fit_decisions(to, steps->decisions);
  vm_forget_decisions(to);
}

struct vm_trace *vm_trace_new(void) {
  struct vm_trace *trace = vm_new(sizeof *trace);
  vm_trace_init(trace);
  return trace;
}

void vm_trace_take(struct vm_trace *to, const struct vm_trace *from) {
  vm_trace_adopt(to, from->steps);
  if (!from->steps->decisions) return;
  memcpy(to->decisions, from->decisions, from->steps->decisions * sizeof *to->decisions);
  memcpy(to->decided, from->decided, from->steps->decisions);
}

struct vm_trace *vm_trace_copy(const struct vm_trace *trace) {
  struct vm_trace *copy = vm_new(sizeof *copy);
  vm_trace_take(copy, trace);
  return copy;
}

void vm_trace_free(struct vm_trace *trace) {
  if (!trace) return;
  vm_trace_clear(trace);
  free(trace);
}

void vm_trace_own(struct vm_trace *trace) {
  if (is_only_holder(trace)) return;
  struct vm_steps *copy = trace->spare ? trace->spare : steps_new();
  steps_copy(copy, trace->steps);
  vm_steps_release(trace->steps);
  trace->steps = copy;
  trace->spare = NULL;
}

struct vm_trace_mark vm_trace_mark(const struct vm_trace *trace) {
  const struct vm_steps *s = trace->steps;
  return (struct vm_trace_mark){s->count, s->value_count, s->text_size, s->variables, s->decisions, s->next_draw};
}

void vm_trace_rewind(struct vm_trace *trace, const struct vm_trace_mark *mark) {
  assert(trace->steps->references == 1 && mark->count <= trace->steps->count);
  struct vm_steps *s = trace->steps;
  assert(s->references == 1);
  if (s->decisions > mark->decisions) memset(trace->decided + mark->decisions, VM_OPEN, s->decisions - mark->decisions);
  s->count = mark->count;
  s->value_count = mark->value_count;
  s->text_size = mark->text_size;
  s->variables = mark->variables;
  s->decisions = mark->decisions;
  s->next_draw = mark->next_draw;
}

/* ---- Decisions --------------------------------------------------------------------------------------------------- */

bool vm_decide(struct vm_trace *trace, uint32_t instruction, const int64_t *values, uint32_t count) {
  assert(instruction < trace->steps->count);
  const struct vm_instruction *i = &trace->steps->instructions[instruction];
  if (i->draw == VM_NO_DRAW) return false;
  if (!count) return trace->decided[i->decision] = VM_OPEN, true;
  if (count != i->outputs) return trace->decided[i->decision] = VM_ILL_FORMED, false;
  memcpy(trace->decisions + i->decision, values, count * sizeof *values);
  trace->decided[i->decision] = VM_DECIDED;
  return true;
}

void vm_forget_decisions(struct vm_trace *trace) {
  if (trace->steps->decisions) memset(trace->decided, VM_OPEN, trace->steps->decisions);
}

static bool splits_without_predicates(const struct vm_steps *s, const struct vm_instruction *i) {
  assert(i->values + i->inputs + i->attrs <= s->value_count);
  return i->kind == VM_Split && s->values[i->values + i->inputs + 1].integer;
}

/* Whether a result of a map is this operator on a parameter and a number, the divisor, which is given. */
static bool divides(const struct vm_steps *s, const struct vm_value *result, enum tir_kind op, uint32_t param,
                    int64_t *divisor) {
  if (result->kind != VM_APPLY || result->op != op || result->count != 2) return false;
  const struct vm_value *x = &s->values[result->first], *by = x + 1;
  *divisor = by->kind == VM_INT ? by->integer : 0;
  return x->kind == VM_PARAM && x->ref == param && *divisor > 0;
}

/* The map has a parameter as a result, or its quotient and its remainder by one number. */
static bool keeps(const struct vm_steps *s, const struct vm_value *map, uint32_t param) {
  const struct vm_value *results = &s->values[map->first + map->op];
  int64_t divisor, other;
  for (uint32_t i = 0; i < map->count - map->op; i++) {
    if (results[i].kind == VM_PARAM && results[i].ref == param) return true;
    if (!divides(s, &results[i], TIR_FLOORDIV, param, &divisor)) continue;
    for (uint32_t k = 0; k < map->count - map->op; k++)
      if (divides(s, &results[k], TIR_FLOORMOD, param, &other) && other == divisor) return true;
  }
  return false;
}

/* A layout that is assumed to be injective, and not plainly so. */
static bool assumes_injective(const struct vm_steps *s, const struct vm_instruction *i) {
  if (i->kind != VM_TransformLayout || !vm_attrs_of(s, i)[3].integer) return false;
  const struct vm_value *map = &vm_inputs_of(s, i)[1];
  if (map->kind != VM_INDEX_MAP) return true;
  for (uint32_t p = 0; p < map->op; p++)
    if (!keeps(s, map, p)) return true;
  return false;
}

static bool is_made_unsafe(const struct vm_steps *s, const struct vm_instruction *i) {
  return splits_without_predicates(s, i) || assumes_injective(s, i);
}

bool vm_trace_is_safe(const struct vm_trace *trace) {
  for (uint32_t i = 0; i < trace->steps->count; i++) {
    const struct vm_instruction *at = &trace->steps->instructions[i];
    if (!vm_kind_info(at->kind)->safe || is_made_unsafe(trace->steps, at)) return false;
  }
  return true;
}

static bool keeps_regions(const struct vm_trace *trace) {
  for (uint32_t i = 0; i < trace->steps->count; i++)
    if (splits_without_predicates(trace->steps, &trace->steps->instructions[i])) return false;
  return true;
}

bool vm_verify(const struct vm_trace *trace, const struct tir *made, ms_error *err) {
  return keeps_regions(trace) ? tir_verify(made, err) : tir_verify_scopes(made, err);
}

bool vm_verify_new(const struct vm_trace *trace, struct tir *made, ms_error *err) {
  return tir_verify_new(made, keeps_regions(trace), err);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

struct vm_value vm_string(struct vm_trace *trace, const char *text, size_t length) {
  vm_trace_own(trace);
  struct vm_steps *s = trace->steps;
  uint64_t size = (uint64_t)s->text_size + length + 1;
  if (size > s->text_capacity) s->text = tir_enlarge(s->text, &s->text_capacity, size, 1);
  uint32_t first = s->text_size;
  if (length) memcpy(s->text + first, text, length);
  s->text[first + length] = 0;
  s->text_size = (uint32_t)size;
  return (struct vm_value){.kind = VM_STRING, .count = (uint32_t)length, .first = first};
}

static uint32_t add_values(struct vm_steps *s, const struct vm_value *items, uint32_t count) {
  assert(s->references == 1 && (!count || items));
  uint64_t size = (uint64_t)s->value_count + count;
  if (size > s->value_capacity) s->values = tir_enlarge(s->values, &s->value_capacity, size, sizeof *s->values);
  uint32_t first = s->value_count;
  if (count) memcpy(s->values + first, items, count * sizeof *items);
  s->value_count = (uint32_t)size;
  return first;
}

struct vm_value vm_list(struct vm_trace *trace, enum vm_value_kind kind, const struct vm_value *items, uint32_t count) {
  assert(kind == VM_LIST || kind == VM_MAP || kind == VM_INDEX_MAP || kind == VM_APPLY);
  vm_trace_own(trace);
  return (struct vm_value){.kind = (uint8_t)kind, .count = count, .first = add_values(trace->steps, items, count)};
}

/* ---- Appending --------------------------------------------------------------------------------------------------- */

struct value_check {
  struct vm_trace *trace;
  enum vm_kind kind;
  const struct vm_param *param;
  bool attribute;
  ms_error *err;
};

static bool refuse_value(const struct value_check *c, const struct vm_value *v) {
  char expected[80], got[80];
  vm_param_text(c->param, expected, sizeof expected);
  vm_print_value(c->trace->steps, v, got, sizeof got);
  ms_fail(c->err, MS_WRONG_OPERAND, "%s: %.*s is %s%s; expected %s", vm_kind_info(c->kind)->name, c->param->name_length,
          c->param->name, got, v->kind == VM_STRING && v->bare ? ", which names nothing given before" : "", expected);
  return false;
}

static bool type_fits(uint8_t have, uint8_t want) {
  switch (want) {
  case VM_T_LOOP:
  case VM_T_NEST:
  case VM_T_LOCATION: return have == VM_T_LOOP || have == VM_T_LOCATION;
  case VM_T_PLACE: return have == VM_T_BLOCK || have == VM_T_LOOP || have == VM_T_LOCATION;
  case VM_T_REAL: return false;
  default: return have == want;
  }
}

static bool is_variable_name(const char *text, size_t length) {
  if (length < 2 || !strchr("blv", text[0])) return false;
  return strspn(text + 1, "0123456789") >= length - 1;
}

static bool is_text(const struct vm_steps *s, const struct vm_value *v) {
  return vm_is_text(s->text + v->first, v->count);
}

/* Keys are texts, each there once and none of them empty. */
static bool check_keys(const struct vm_steps *s, const struct vm_value *map) {
  assert(map->kind == VM_MAP && map->count % 2 == 0);
  struct vm_names keys = {0};
  bool fits = true;
  for (uint32_t i = 0; i < map->count && fits; i += 2) {
    const struct vm_value *key = &s->values[map->first + i];
    fits = key->kind == VM_STRING && key->count && is_text(s, key) &&
           vm_name_add(&keys, s->text + key->first, key->count, i);
  }
  free(keys.at);
  return fits;
}

/* A value of an annotation: integers drawn may stand anywhere in it. */
static bool check_annotation(const struct value_check *c, const struct vm_value *v, int depth) {
  const struct vm_steps *s = c->trace->steps;
  switch (v->kind) {
  case VM_BOOL:
  case VM_INT:
  case VM_REAL: return true;
  case VM_STRING: return is_text(s, v) && !(v->bare && is_variable_name(s->text + v->first, v->count));
  case VM_REF: return !c->attribute && v->ref < s->variables && s->types[v->ref] == VM_T_INT;
  case VM_LIST:
  case VM_MAP:
    if (depth >= VM_MOST_DEPTH || (v->kind == VM_MAP && !check_keys(s, v))) return false;
    for (uint32_t i = 0; i < v->count; i++)
      if (!check_annotation(c, &s->values[v->first + i], depth + 1)) return false;
    return true;
  default: return false;
  }
}

/* One value against the type, converted where the forms allow: 0 and 1 for booleans, an integer for a number, a text
 * for an index map. */
static bool check_one(const struct value_check *c, struct vm_value *v) {
  const struct vm_steps *s = c->trace->steps;
  uint8_t want = c->param->type;
  if (v->kind == VM_REF) {
    if (v->ref >= s->variables || c->attribute) return refuse_value(c, v); /* attributes are known before */
    if (want == VM_T_VALUE ? s->types[v->ref] == VM_T_INT : type_fits(s->types[v->ref], want)) return true;
    return refuse_value(c, v);
  }
  switch (want) {
  case VM_T_INT:
    if (v->kind == VM_BOOL) *v = vm_int(v->integer);
    return v->kind == VM_INT || refuse_value(c, v);
  case VM_T_REAL:
    if (v->kind == VM_INT) *v = vm_real((double)v->integer);
    return v->kind == VM_REAL || refuse_value(c, v);
  case VM_T_BOOL:
  case VM_T_BIT:
    if (v->kind == VM_INT && (v->integer == 0 || v->integer == 1)) *v = vm_bool(v->integer);
    return v->kind == VM_BOOL || refuse_value(c, v);
  case VM_T_STRING: return (v->kind == VM_STRING && is_text(s, v)) || refuse_value(c, v);
  case VM_T_VALUE: return check_annotation(c, v, 0) || refuse_value(c, v);
  case VM_T_MAP:
  case VM_T_CONDITION:
    if (v->kind == VM_STRING) return vm_read_formula(c->trace, NULL, want, s->text + v->first, v->count, v, c->err);
    return (v->kind == VM_INDEX_MAP && (v->bare == VM_CONDITION) == (want == VM_T_CONDITION)) || refuse_value(c, v);
  default: return refuse_value(c, v); /* only a variable stands for a statement */
  }
}

static bool is_none(const struct vm_steps *s, const struct vm_value *v) {
  return v->kind == VM_NONE || (v->kind == VM_STRING && v->count == 4 && !memcmp(s->text + v->first, "None", 4));
}

static bool is_list_of_blocks(const struct vm_steps *s, const struct vm_value *v) {
  if (v->kind != VM_LIST) return false;
  for (uint32_t i = 0; i < v->count; i++) {
    const struct vm_value *item = &s->values[v->first + i];
    if (item->kind != VM_REF || item->ref >= s->variables || s->types[item->ref] != VM_T_BLOCK) return false;
  }
  return true;
}

static bool check_value(const struct value_check *c, struct vm_value *v) {
  if (c->param->optional && is_none(c->trace->steps, v)) return *v = vm_none(), true;
  if (c->param->type == VM_T_INT && !c->param->list && c->attribute && v->kind == VM_INT &&
      v->integer != (int32_t)v->integer)
    return ms_fail(c->err, MS_WRONG_OPERAND, "%s: %.*s is %lld, which does not fit 32 bits",
                   vm_kind_info(c->kind)->name, c->param->name_length, c->param->name, (long long)v->integer);
  if (c->param->type == VM_T_NEST && is_list_of_blocks(c->trace->steps, v)) return true;
  if (!c->param->list) return check_one(c, v);
  if (v->kind != VM_LIST) return refuse_value(c, v);
  for (uint32_t i = 0; i < v->count; i++) {
    struct vm_value item = c->trace->steps->values[v->first + i];
    if (!check_one(c, &item)) return false;
    c->trace->steps->values[v->first + i] = item;
  }
  return true;
}

struct vm_value vm_default_value(struct vm_trace *trace, const struct vm_param *param) {
  const char *text = param->standard;
  if (param->list) return vm_list(trace, VM_LIST, NULL, 0);
  switch (param->type) {
  case VM_T_BOOL:
  case VM_T_BIT: return vm_bool(*text == 't' || *text == '1');
  case VM_T_INT: return vm_int(atoi(text));
  case VM_T_STRING: return vm_string(trace, text, param->standard_length);
  default: return vm_none();
  }
}

/* Takes the values of one column, inputs or attributes, into `to`; returns false when they do not fit. */
static bool take_values(struct value_check *c, const struct vm_param *params, unsigned param_count,
                        const struct vm_value *given, uint32_t count, uint32_t to, const char *what) {
  uint32_t at = 0;
  c->attribute = *what == 'a';
  for (unsigned p = 0; p < param_count; p++) {
    c->param = &params[p];
    uint32_t take = params[p].repeat ? count - at : at < count;
    if (!take && !params[p].standard && params[p].repeat != '*')
      return ms_fail(c->err, MS_WRONG_OPERAND, "%s: %s %.*s is missing", vm_kind_info(c->kind)->name, what,
                     params[p].name_length, params[p].name);
    if (!take && params[p].standard) {
      struct vm_value v = vm_default_value(c->trace, &params[p]); /* may move the values */
      c->trace->steps->values[to++] = v;
    }
    for (uint32_t i = 0; i < take; i++) {
      struct vm_value v = given[at++];
      if (!check_value(c, &v)) return false;
      c->trace->steps->values[to++] = v;
    }
  }
  if (at == count) return true;
  return ms_fail(c->err, MS_WRONG_OPERAND, "%s takes %u %s%s, and %u are given", vm_kind_info(c->kind)->name,
                 param_count, what, param_count == 1 ? "" : "s", count);
}

/* How many values a column comes to, defaults filled in. */
static uint32_t column_size(const struct vm_param *params, unsigned param_count, uint32_t given) {
  if (param_count && params[param_count - 1].repeat) return given > param_count - 1 ? given : param_count - 1;
  return param_count;
}

bool vm_append_inputs(struct vm_trace *trace, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
                      const struct vm_value *attrs, uint32_t attr_count, uint32_t draw, ms_error *err) {
  assert(kind < VM_KIND_COUNT);
  vm_trace_own(trace);
  struct vm_steps *s = trace->steps;
  struct vm_trace_mark mark = vm_trace_mark(trace);
  const struct vm_signature *sig = vm_signature_of(kind);
  struct vm_instruction i = {.kind = (uint16_t)kind, .attrs = sig->attrs, .draw = VM_NO_DRAW};
  i.inputs = column_size(sig->at, sig->inputs, input_count);
  i.values = add_values(s, NULL, 0);
  uint64_t size = (uint64_t)i.values + i.inputs + i.attrs;
  if (size >= s->value_capacity) /* there is an array, even of no values */
    s->values = tir_enlarge(s->values, &s->value_capacity, size + 1, sizeof *s->values);
  for (uint64_t v = i.values; v < size; v++) s->values[v] = vm_none();
  s->value_count = (uint32_t)size;
  struct value_check c = {trace, kind, NULL, false, err};
  if (!take_values(&c, sig->at, sig->inputs, inputs, input_count, i.values, "input") ||
      !take_values(&c, sig->at + sig->inputs, sig->attrs, attrs, attr_count, i.values + i.inputs, "attribute")) {
    vm_trace_rewind(trace, &mark);
    if (err) err->instruction = (int)s->count;
    return false;
  }
  if (vm_kind_info(kind)->effect == VM_EFFECT_draw) i.draw = draw == VM_NO_DRAW ? s->next_draw : draw;
  if (i.draw != VM_NO_DRAW && i.draw >= VM_MOST_DRAWS) {
    vm_trace_rewind(trace, &mark);
    ms_fail(err, MS_WRONG_OPERAND, "%s: a draw id is too large", vm_kind_info(kind)->name);
    if (err) err->instruction = (int)s->count;
    return false;
  }
  if (i.draw != VM_NO_DRAW && i.draw >= s->next_draw) s->next_draw = i.draw + 1;
  if (s->count == s->instruction_capacity)
    s->instructions = tir_enlarge(s->instructions, &s->instruction_capacity, (uint64_t)s->count + 1, sizeof i);
  s->instructions[s->count++] = i;
  return true;
}

bool vm_append_outputs(struct vm_trace *trace, uint32_t outputs, ms_error *err) {
  assert(trace->steps->count && trace->steps->references == 1);
  struct vm_steps *s = trace->steps;
  struct vm_instruction *i = &s->instructions[s->count - 1];
  const struct vm_signature *sig = vm_signature_of(i->kind);
  bool fits =
      !sig->outputs ? outputs == 0 : sig->output.repeat == '*' || (sig->output.repeat ? outputs > 0 : outputs == 1);
  if (!fits || outputs > VM_MOST_OUTPUTS || s->variables + outputs > VM_MOST_VARIABLES) {
    ms_fail(err, MS_WRONG_OPERAND, "%s cannot have %u output%s", vm_kind_info(i->kind)->name, outputs,
            outputs == 1 ? "" : "s");
    if (err) err->instruction = (int)s->count - 1;
    return false;
  }
  uint64_t variables = (uint64_t)s->variables + outputs;
  if (variables > s->variable_capacity) s->types = tir_enlarge(s->types, &s->variable_capacity, variables, 1);
  if (outputs) memset(s->types + s->variables, sig->output.type, outputs);
  i->outputs = outputs;
  i->first_output = s->variables;
  s->variables = (uint32_t)variables;
  if (i->draw == VM_NO_DRAW) return true;
  i->decision = s->decisions;
  vm_trace_fit_decisions(trace, s->decisions + outputs);
  s->decisions += outputs;
  return true;
}

bool vm_append(struct vm_trace *trace, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
               const struct vm_value *attrs, uint32_t attr_count, uint32_t outputs, uint32_t draw, ms_error *err) {
  struct vm_trace_mark mark = vm_trace_mark(trace);
  if (!vm_append_inputs(trace, kind, inputs, input_count, attrs, attr_count, draw, err)) return false;
  if (!vm_append_outputs(trace, outputs, err)) {
    vm_trace_rewind(trace, &mark);
    return false;
  }
  const struct vm_instruction *i = &trace->steps->instructions[trace->steps->count - 1];
  if (i->draw != VM_NO_DRAW) trace->decided[i->decision] = VM_OPEN;
  return true;
}

/* ---- What depends on what ---------------------------------------------------------------------------------------- */

void vm_visit_variables(const struct vm_steps *s, const struct vm_value *v, void (*visit)(void *, uint32_t),
                        void *data) {
  if (v->kind == VM_REF) visit(data, v->ref);
  if (v->kind != VM_LIST && v->kind != VM_MAP && v->kind != VM_INDEX_MAP && v->kind != VM_APPLY) return;
  for (uint32_t i = 0; i < v->count; i++) vm_visit_variables(s, &s->values[v->first + i], visit, data);
}

/* Variables are numbered in the order of instructions: the last that begins at it or before gives it. */
uint32_t vm_giver_of(const struct vm_steps *s, uint32_t variable) {
  assert(variable < s->variables);
  uint32_t low = 0, high = s->count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (s->instructions[middle].first_output <= variable)
      low = middle;
    else
      high = middle;
  }
  return low;
}

struct givers {
  const struct vm_steps *steps;
  uint8_t *uses;
};

static void note_giver(void *data, uint32_t variable) {
  struct givers *g = data;
  g->uses[vm_giver_of(g->steps, variable)] = 1;
}

void vm_uses(const struct vm_trace *trace, uint32_t instruction, uint8_t *uses) {
  assert(instruction < trace->steps->count);
  const struct vm_steps *s = trace->steps;
  const struct vm_instruction *i = &s->instructions[instruction];
  struct givers g = {s, uses};
  memset(uses, 0, s->count);
  for (uint32_t v = 0; v < i->inputs + i->attrs; v++) vm_visit_variables(s, &s->values[i->values + v], note_giver, &g);
}

/* ---- Names of variables ------------------------------------------------------------------------------------------ */

int vm_variable_name(const struct vm_steps *steps, uint32_t variable, char out[16]) {
  assert(variable < steps->variables);
  uint8_t type = steps->types[variable];
  return snprintf(out, 16, "%c%u", type == VM_T_BLOCK ? 'b' : type == VM_T_INT ? 'v' : 'l', variable);
}

static uint32_t name_slot(const struct vm_names *names, const char *text, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
  uint32_t slot = hash & (names->capacity - 1);
  while (names->at[slot].text && (names->at[slot].length != length || memcmp(names->at[slot].text, text, length) != 0))
    slot = (slot + 1) & (names->capacity - 1);
  return slot;
}

static void names_grow(struct vm_names *names) {
  struct vm_names old = *names;
  uint32_t capacity = 0;
  uint32_t want = old.capacity ? old.capacity * 2 : 64;
  names->at = tir_enlarge(NULL, &capacity, want, sizeof *names->at);
  names->capacity = want;
  memset(names->at, 0, want * sizeof *names->at);
  for (uint32_t i = 0; i < old.capacity; i++)
    if (old.at[i].text) names->at[name_slot(names, old.at[i].text, old.at[i].length)] = old.at[i];
  free(old.at);
}

bool vm_name_add(struct vm_names *names, const char *text, size_t length, uint32_t variable) {
  assert(text);
  if (names->count * 2 >= names->capacity) names_grow(names);
  uint32_t slot = name_slot(names, text, length);
  if (names->at[slot].text) return false;
  names->at[slot].text = text;
  names->at[slot].length = (uint32_t)length;
  names->at[slot].variable = variable;
  names->count++;
  return true;
}

bool vm_name_find(const struct vm_names *names, const char *text, size_t length, uint32_t *variable) {
  if (!names->count) return false;
  uint32_t slot = name_slot(names, text, length);
  if (!names->at[slot].text) return false;
  *variable = names->at[slot].variable;
  return true;
}
