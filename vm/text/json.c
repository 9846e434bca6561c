/* Traces in TVM's JSON layout: [[[kind, inputs, attributes, outputs]…], [[index, decision]…]].
 *
 * Among the inputs a string is the name of an earlier output, "None", or a text: TVM writes the text with quotes of its
 * own inside, others without. Names are whatever the outputs say. "_" names an output that is None. A decision that is
 * an empty list is one that does not fit. */
#include "index_map.h"
#include "vm/perform/pad_value.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LAYOUT = 1, PAD_VALUE = 2 }; /* an input and an attribute of TransformLayout */

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

struct reader {
  struct vm_trace *trace;
  struct vm_names names;
  ms_error *err;
  int instruction;
};

/* After a refusal: where it is. */
static bool placed(struct reader *r) {
  if (r->err) r->err->instruction = r->instruction;
  return false;
}

static bool fail(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct reader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ms_vfail(r->err, MS_BAD_TRACE, format, args);
  va_end(args);
  return placed(r);
}

static bool read_value(struct reader *r, json_t *j, bool input, int depth, struct vm_value *out);

static bool read_items(struct reader *r, json_t *j, bool input, int depth, struct vm_value *out) {
  size_t count = json_array_size(j), i;
  json_t *item;
  struct vm_value *items = malloc((count + 1) * sizeof *items);
  if (!items) abort();
  bool done = true;
  json_array_foreach(j, i, item) {
    done = read_value(r, item, input, depth + 1, &items[i]);
    if (!done) break;
  }
  if (done) *out = vm_list(r->trace, VM_LIST, items, (uint32_t)count);
  free(items);
  return done;
}

/* {"": "v3"}: what was drawn, where strings stand without quotes of their own. */
static bool read_drawn(struct reader *r, json_t *name, struct vm_value *out) {
  uint32_t variable;
  if (!json_is_string(name) || !vm_name_find(&r->names, json_string_value(name), json_string_length(name), &variable))
    return fail(r, "a key is empty");
  *out = vm_ref(variable);
  return true;
}

static bool read_map(struct reader *r, json_t *j, int depth, struct vm_value *out) {
  if (json_object_size(j) == 1 && json_object_get(j, "")) return read_drawn(r, json_object_get(j, ""), out);
  size_t count = json_object_size(j), i = 0;
  struct vm_value *items = malloc((2 * count + 1) * sizeof *items);
  if (!items) abort();
  bool done = true;
  for (void *at = json_object_iter(j); at && done; at = json_object_iter_next(j, at), i++) {
    const char *key = json_object_iter_key(at);
    items[2 * i] = vm_string(r->trace, key, strlen(key));
    done = read_value(r, json_object_iter_value(at), false, depth + 1, &items[2 * i + 1]);
  }
  if (done) *out = vm_list(r->trace, VM_MAP, items, (uint32_t)(2 * count));
  free(items);
  return done;
}

static struct vm_value read_text(struct reader *r, json_t *j, bool input) {
  const char *text = json_string_value(j);
  size_t length = json_string_length(j);
  uint32_t variable;
  if (!input) return vm_string(r->trace, text, length);
  if (length >= 2 && text[0] == '"' && text[length - 1] == '"') return vm_string(r->trace, text + 1, length - 2);
  if (vm_name_find(&r->names, text, length, &variable)) return vm_ref(variable);
  if (!strcmp(text, "None")) return vm_none();
  struct vm_value v = vm_string(r->trace, text, length);
  v.bare = true;
  return v;
}

static bool read_value(struct reader *r, json_t *j, bool input, int depth, struct vm_value *out) {
  if (depth > VM_MOST_DEPTH) return fail(r, "a value is nested too deep");
  switch (json_typeof(j)) {
  case JSON_NULL: return *out = vm_none(), true;
  case JSON_TRUE:
  case JSON_FALSE: return *out = vm_bool(json_is_true(j)), true;
  case JSON_INTEGER: return *out = vm_int(json_integer_value(j)), true;
  case JSON_REAL: return *out = vm_real(json_real_value(j)), true;
  case JSON_STRING:
    *out = vm_real(0);
    if (!vm_json_is_real(j, &out->real)) *out = read_text(r, j, input);
    return true;
  case JSON_ARRAY: return read_items(r, j, input, depth, out);
  case JSON_OBJECT: return read_map(r, j, depth, out);
  }
  return fail(r, "a value of no kind");
}

/* A column of the instruction as values; index maps may name what was drawn, so they are read here. */
static bool read_column(struct reader *r, json_t *j, bool input, const struct vm_param *params, unsigned count,
                        struct vm_value **out, uint32_t *size) {
  *size = (uint32_t)json_array_size(j);
  *out = malloc((*size + 1) * sizeof **out);
  if (!*out) abort();
  for (uint32_t i = 0; i < *size; i++) {
    struct vm_value *v = &(*out)[i];
    if (!read_value(r, json_array_get(j, i), input, 0, v)) return false;
    const struct vm_steps *s = r->trace->steps;
    bool map = i < count && vm_is_formula(params[i].type) && v->kind == VM_STRING &&
               !(params[i].optional && v->count == 4 && !memcmp(s->text + v->first, "None", 4));
    if (!map) continue;
    if (!vm_read_formula(r->trace, &r->names, params[i].type, s->text + v->first, v->count, v, r->err))
      return placed(r);
  }
  return true;
}

static bool name_outputs(struct reader *r, json_t *outputs, uint32_t first) {
  size_t i;
  json_t *name;
  json_array_foreach(outputs, i, name) {
    const char *text = json_string_value(name);
    if (!text) return fail(r, "an output is no name");
    if (!strcmp(text, "_")) continue;
    if (!vm_name_add(&r->names, text, json_string_length(name), first + (uint32_t)i))
      return fail(r, "output \"%.40s\" has the name of an earlier one", text);
  }
  return true;
}

/* A layout's padding as a lambda, where it is a graph. */
static void read_padding(struct reader *r, struct vm_value *attrs, uint32_t count) {
  if (count <= PAD_VALUE || attrs[PAD_VALUE].kind != VM_STRING) return;
  char *lambda = vm_pad_lambda(r->trace->steps->text + attrs[PAD_VALUE].first);
  if (lambda) attrs[PAD_VALUE] = vm_string(r->trace, lambda, strlen(lambda));
  free(lambda);
}

static bool is_map(const json_t *j) {
  const char *text = json_string_value(j);
  return text && (*text == '{' || !strncmp(text, "lambda", 6));
}

/* Older traces have a map among the attributes that stands now after the inputs; it is moved there. */
static void move_map(const struct vm_signature *sig, json_t *inputs, json_t *attrs) {
  size_t at = json_array_size(inputs), i;
  json_t *item;
  if (at >= sig->inputs || sig->at[at].type != VM_T_MAP) return;
  json_array_foreach(attrs, i, item) {
    if (!is_map(item)) continue;
    json_array_append(inputs, item);
    json_array_remove(attrs, i);
    return;
  }
}

static bool read_instruction(struct reader *r, json_t *j) {
  json_t *name = json_array_get(j, 0), *in = json_array_get(j, 1), *at = json_array_get(j, 2),
         *outs = json_array_get(j, 3);
  if (json_array_size(j) != 4 || !json_is_string(name) || !json_is_array(in) || !json_is_array(at) ||
      !json_is_array(outs))
    return fail(r, "an instruction is [kind, inputs, attributes, outputs]");
  enum vm_kind kind = vm_find_kind(json_string_value(name), json_string_length(name));
  if (kind == VM_KIND_COUNT) {
    ms_fail(r->err, MS_UNKNOWN_INSTRUCTION, "there is no instruction \"%.100s\"", json_string_value(name));
    return placed(r);
  }
  const struct vm_signature *sig = vm_signature_of(kind);
  move_map(sig, in, at);
  struct vm_value *inputs = NULL, *attrs = NULL;
  uint32_t input_count, attr_count;
  bool done = read_column(r, in, true, sig->at, sig->inputs, &inputs, &input_count) &&
              read_column(r, at, false, sig->at + sig->inputs, sig->attrs, &attrs, &attr_count);
  if (done && kind == VM_TransformLayout) read_padding(r, attrs, attr_count);
  uint32_t first = r->trace->steps->variables;
  done = done && vm_append(r->trace, kind, inputs, input_count, attrs, attr_count, (uint32_t)json_array_size(outs),
                           VM_NO_DRAW, r->err);
  free(inputs);
  free(attrs);
  return done && name_outputs(r, outs, first);
}

static bool read_decision(struct reader *r, json_t *j) {
  json_t *index = json_array_get(j, 0), *decision = json_array_get(j, 1);
  json_int_t i = json_is_integer(index) ? json_integer_value(index) : -1;
  r->instruction = i >= 0 && i < (json_int_t)r->trace->steps->count ? (int)i : -1;
  if (json_array_size(j) != 2 || !json_is_integer(index))
    return fail(r, "a decision is [number of its instruction, value]");
  if (r->instruction < 0)
    return fail(r, "a decision is for instruction %lld, and the trace has %u, from 0",
                (long long)json_integer_value(index), r->trace->steps->count);
  if (json_is_null(decision)) return true;
  if (r->trace->steps->instructions[i].draw == VM_NO_DRAW)
    return fail(r, "a decision for an instruction that draws nothing");
  uint32_t count = json_is_array(decision) ? (uint32_t)json_array_size(decision) : 1;
  int64_t *values = malloc((count + 1) * sizeof *values);
  if (!values) abort();
  bool whole = json_is_array(decision) || json_is_integer(decision);
  for (uint32_t n = 0; n < count; n++) {
    json_t *value = json_is_array(decision) ? json_array_get(decision, n) : decision;
    whole = whole && json_is_integer(value);
    values[n] = json_integer_value(value);
  }
  /* one of the wrong length is kept as such: only a strict replay refuses it */
  if (whole) vm_decide(r->trace, (uint32_t)i, values, count ? count : VM_WRONG_COUNT);
  free(values);
  return whole || fail(r, "a decision is an integer or a list of integers");
}

static bool read_trace(struct reader *r, json_t *root) {
  json_t *instructions = json_array_get(root, 0), *decisions = json_array_get(root, 1), *item;
  if (json_is_integer(instructions) && json_is_array(decisions))
    return fail(r, "this is a tuning record, [workload, [trace, …]]: `msched db import` reads it");
  if (json_array_size(root) != 2 || !json_is_array(instructions) || !json_is_array(decisions))
    return fail(r, "a trace is [instructions, decisions]");
  size_t i;
  json_array_foreach(instructions, i, item) {
    r->instruction = (int)i;
    if (!read_instruction(r, item)) return false;
  }
  json_array_foreach(decisions, i, item) {
    if (!read_decision(r, item)) return false;
  }
  return true;
}

struct vm_trace *vm_read_json(const char *text, size_t length, ms_error *err) {
  json_error_t why;
  json_t *root = vm_json_load(text, length, &why);
  if (!root) {
    ms_fail(err, MS_BAD_TRACE, "%d:%d: %s", why.line, why.column, why.text);
    return NULL;
  }
  struct reader r = {.trace = vm_trace_new(), .err = err, .instruction = -1};
  bool done = read_trace(&r, root);
  free(r.names.at);
  json_decref(root);
  if (done) return r.trace;
  vm_trace_free(r.trace);
  return NULL;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static json_t *write_value(const struct vm_steps *s, const struct vm_value *v, bool input);

static json_t *write_items(const struct vm_steps *s, const struct vm_value *v, bool input) {
  json_t *out = v->kind == VM_LIST ? json_array() : json_object();
  for (uint32_t i = 0; i < v->count; i += v->kind == VM_LIST ? 1 : 2) {
    const struct vm_value *item = &s->values[v->first + i];
    if (v->kind == VM_LIST)
      json_array_append_new(out, write_value(s, item, input));
    else
      json_object_set_new(out, s->text + item->first, write_value(s, item + 1, false));
  }
  return out;
}

static json_t *write_string(const struct vm_steps *s, const struct vm_value *v, bool quoted) {
  if (!quoted) return json_stringn(s->text + v->first, v->count);
  struct vm_text text = {0};
  vm_put(&text, "\"", 1);
  vm_put(&text, s->text + v->first, v->count);
  vm_put(&text, "\"", 1);
  json_t *out = json_stringn(text.at, text.size);
  free(text.at);
  return out;
}

static json_t *write_formula(const struct vm_steps *s, const struct vm_value *v) {
  struct vm_text text = {0};
  if (v->bare == VM_CONDITION)
    vm_put_formula(&text, s, v), vm_put(&text, "", 1);
  else
    text.at = vm_write_index_graph(s, v);
  json_t *out = json_string(text.at);
  free(text.at);
  return out;
}

static json_t *write_value(const struct vm_steps *s, const struct vm_value *v, bool input) {
  char name[16];
  switch (v->kind) {
  case VM_BOOL: return json_boolean(v->integer);
  case VM_INT: return json_integer(v->integer);
  case VM_REAL: return vm_json_real(v->real);
  case VM_STRING: return write_string(s, v, input);
  case VM_REF: vm_variable_name(s, v->ref, name); return input ? json_string(name) : json_pack("{s:s}", "", name);
  case VM_LIST:
  case VM_MAP: return write_items(s, v, input);
  case VM_INDEX_MAP: return write_formula(s, v);
  default: return input ? json_string("None") : json_null();
  }
}

/* What stands in a layout's padding is a map of as many indices as the layout has. */
static json_t *write_attribute(const struct vm_steps *s, const struct vm_instruction *i, uint32_t n) {
  const struct vm_value *v = &vm_attrs_of(s, i)[n], *map = &vm_inputs_of(s, i)[LAYOUT];
  if (i->kind != VM_TransformLayout || n != PAD_VALUE) return write_value(s, v, false);
  char *graph = vm_write_pad(s, v, map->count - map->op);
  json_t *out = graph ? json_string(graph) : write_value(s, v, false);
  free(graph);
  return out;
}

static json_t *write_instruction(const struct vm_steps *s, const struct vm_instruction *i) {
  const struct vm_signature *sig = vm_signature_of(i->kind);
  json_t *inputs = json_array(), *attrs = json_array(), *outputs = json_array();
  for (uint32_t n = 0; n < i->inputs; n++) json_array_append_new(inputs, write_value(s, &vm_inputs_of(s, i)[n], true));
  for (uint32_t n = 0; n < i->attrs; n++) {
    const struct vm_value *v = &vm_attrs_of(s, i)[n];
    bool bit = sig->at[sig->inputs + n].type == VM_T_BIT;
    json_array_append_new(attrs, bit ? json_integer(v->integer) : write_attribute(s, i, n));
  }
  for (uint32_t n = 0; n < i->outputs; n++) {
    char name[16];
    vm_variable_name(s, i->first_output + n, name);
    json_array_append_new(outputs, json_string(name));
  }
  return json_pack("[s, o, o, o]", vm_kind_info(i->kind)->name, inputs, attrs, outputs);
}

/* A draw of one number decides a number, one of several a list. */
static json_t *write_decision(const struct vm_trace *trace, const struct vm_instruction *i) {
  const struct vm_signature *sig = vm_signature_of(i->kind);
  const int64_t *values = trace->decisions + i->decision;
  if (trace->decided[i->decision] == VM_ILL_FORMED) return json_array();
  if (!sig->output.repeat) return json_integer(values[0]);
  json_t *list = json_array();
  for (uint32_t n = 0; n < i->outputs; n++) json_array_append_new(list, json_integer(values[n]));
  return list;
}

char *vm_write_json(const struct vm_trace *trace) {
  const struct vm_steps *s = trace->steps;
  json_t *instructions = json_array(), *decisions = json_array();
  for (uint32_t n = 0; n < s->count; n++) {
    const struct vm_instruction *i = &s->instructions[n];
    json_array_append_new(instructions, write_instruction(s, i));
    if (i->draw != VM_NO_DRAW && trace->decided[i->decision] != VM_OPEN)
      json_array_append_new(decisions, json_pack("[i, o]", (int)n, write_decision(trace, i)));
  }
  json_t *root = json_pack("[o, o]", instructions, decisions);
  char *text = vm_json_dump(root);
  json_decref(root);
  return text;
}
