/* Pad values as text: "lambda i, j: (T.float32(0.0),)", or TVM's node graph of such a map. */
#include "pad_value.h"
#include "vm/text/index_map.h"
#include "vm/tvm/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct constant {
  char type[24];
  double value;
  size_t dimensions; /* of the map around it, where a graph has one */
};

/* ---- Reading ---- */

static bool read_lambda(const char *text, struct constant *out) {
  int at = -1;
  const char *colon = strchr(text, ':');
  if (!colon) return false;
  colon += 1 + strspn(colon + 1, " (");
  if (sscanf(colon, "T.%23[a-z0-9_](%n", out->type, &at) != 1 || at < 0) return false;
  char *end;
  out->value = tir_text_number(colon + at, &end);
  return end != colon + at && *end && strchr(" ,)", *end);
}

/* In the dialect before today's, numbers are strings. */
static json_int_t integer_of(const json_t *j) {
  if (json_is_string(j)) return strtoll(json_string_value(j), NULL, 10);
  return json_is_integer(j) ? json_integer_value(j) : -1;
}

static json_t *node_at(const json_t *nodes, const json_t *number) {
  json_int_t at = integer_of(number);
  return at >= 0 ? json_array_get(nodes, (size_t)at) : NULL;
}

static json_t *field(const json_t *node, const char *name) {
  json_t *fields = json_object_get(node, "data");
  return json_object_get(fields ? fields : json_object_get(node, "attrs"), name);
}

static bool read_constant(const json_t *nodes, const json_t *node, struct constant *out) {
  const json_t *value = field(node, "value");
  const char *type = json_string_value(field(node, "dtype"));
  if (!type) type = json_string_value(field(node_at(nodes, field(node, "ty")), "dtype"));
  if (!type || (!json_is_number(value) && !json_is_string(value))) return false;
  snprintf(out->type, sizeof out->type, "%s", type);
  out->value = json_is_string(value) ? tir_text_number(json_string_value(value), NULL) : json_number_value(value);
  return true;
}

static bool read_graph(const char *text, struct constant *out) {
  json_t *root = json_loads(text, 0, NULL), *nodes = json_object_get(root, "nodes");
  json_t *start = json_object_get(root, "root_index");
  json_t *node = node_at(nodes, start ? start : json_object_get(root, "root"));
  json_t *results = json_object_get(node_at(nodes, field(node, "final_indices")), "data");
  out->dimensions = json_array_size(json_object_get(node_at(nodes, field(node, "initial_indices")), "data"));
  if (field(node, "final_indices"))
    node = json_array_size(results) == 1 ? node_at(nodes, json_array_get(results, 0)) : NULL;
  bool done = read_constant(nodes, node, out);
  json_decref(root);
  return done;
}

tir_expr vm_read_pad(struct tir *ir, const char *text) {
  struct constant c = {.dimensions = 0};
  tir_type type;
  if (!(*text == '{' ? read_graph : read_lambda)(text, &c) || !tir_type_parse(c.type, &type)) return TIR_NONE;
  if (tir_type_is_float(type)) return tir_float(ir, type, c.value);
  return tir_type_is_int(type) && c.value >= INT32_MIN && c.value <= INT32_MAX ? tir_int(ir, type, (int64_t)c.value)
                                                                               : TIR_NONE;
}

/* ---- Writing ---- */

static char *put_lambda(const struct constant *c) {
  struct vm_text text = {0};
  vm_putf(&text, "lambda");
  for (size_t i = 0; i < c->dimensions; i++) vm_putf(&text, "%s i%zu", i ? "," : "", i);
  vm_putf(&text, ": (T.%s(", c->type);
  if (strstr(c->type, "float"))
    vm_put_real(&text, c->value);
  else
    vm_putf(&text, "%.0f", c->value);
  vm_putf(&text, "),)");
  return text.at;
}

char *vm_pad_lambda(const char *graph) {
  struct constant c = {.dimensions = 0};
  return *graph == '{' && read_graph(graph, &c) ? put_lambda(&c) : NULL;
}

char *vm_pad_lambda_of(const struct tir *ir, tir_expr pad, uint32_t dimensions) {
  const struct tir_expr_node *n = tir_at(ir, pad);
  struct constant c = {.dimensions = dimensions, .value = n->kind == TIR_FLOAT_IMM ? n->real : (double)n->imm};
  char type[24];
  snprintf(c.type, sizeof c.type, "%s", tir_type_text(n->type, type));
  return put_lambda(&c);
}

static bool constant_of(const struct vm_steps *s, const struct vm_value *v, struct constant *out) {
  if (v->kind == VM_STRING) return s->text[v->first] != '{' && read_lambda(s->text + v->first, out);
  if (v->kind != VM_REAL && v->kind != VM_INT) return false;
  *out = (struct constant){.value = v->kind == VM_REAL ? v->real : (double)v->integer};
  strcpy(out->type, v->kind == VM_REAL ? "float32" : "int32");
  return true;
}

char *vm_write_pad(const struct vm_steps *s, const struct vm_value *v, uint32_t dimensions) {
  struct constant c = {.dimensions = 0};
  if (!constant_of(s, v, &c) || !isfinite(c.value)) return NULL; /* a graph is JSON, which has finite numbers alone */
  bool real = strstr(c.type, "float") != NULL;
  json_t *nodes = vm_start_graph("int32"), *params = json_array();
  for (uint32_t i = 0; i < dimensions; i++) {
    char name[24];
    int length = snprintf(name, sizeof name, "i%u", i);
    json_array_append_new(params, json_integer(vm_put_graph_var(nodes, name, (size_t)length)));
  }
  json_int_t type = graph_put_type(nodes, c.type);
  json_t *number = real ? json_real(c.value) : json_integer((json_int_t)c.value);
  json_int_t constant = graph_put(nodes, real ? "ir.FloatImm" : "ir.IntImm",
                                  json_pack("{s:i, s:I, s:o}", "span", 0, "ty", type, "value", number));
  return vm_end_graph(nodes, params, json_pack("[I]", constant));
}
