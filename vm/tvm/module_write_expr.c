/* Expressions as nodes of TVM's graphs. An expression that stands in several places is one node. */
#include "module_write.h"

#include "vm/text/index_map.h"

#include <stdio.h>
#include <string.h>

json_int_t write_lack(struct module_write *w, const char *what) {
  if (!w->lacks) w->lacks = what;
  return GRAPH_NONE;
}

/* ---- Small nodes ------------------------------------------------------------------------------------------------- */

json_int_t write_text(struct module_write *w, const char *text) { return graph_put_text(w->nodes, text, strlen(text)); }

json_int_t write_empty(struct module_write *w) { return graph_put_list(w->nodes, json_array()); }

static json_int_t write_pointer(struct module_write *w, tir_type element, const char *scope) {
  json_int_t type = write_type(w, element), text = write_text(w, scope);
  return graph_put(w->nodes, "ir.PointerType",
                   json_pack("{s:i, s:I, s:I}", "span", GRAPH_NONE, "element_type", type, "storage_scope", text));
}

/* A string's type is that of nothing, as TVM has it. */
json_int_t write_type(struct module_write *w, tir_type type) {
  enum { MOST = sizeof w->types / sizeof *w->types };
  char text[24] = "";
  if (type == TIR_T_STRING) type = TIR_T_VOID;
  for (uint32_t i = 0; i < w->type_count; i++)
    if (w->types[i].type == type) return w->types[i].node;
  json_int_t node = type == TIR_T_HANDLE
                        ? write_pointer(w, TIR_T_VOID, "global")
                        : graph_put_type(w->nodes, type == TIR_T_VOID ? "" : tir_type_text(type, text));
  if (w->type_count < MOST) {
    w->types[w->type_count].type = type;
    w->types[w->type_count++].node = node;
  }
  return node;
}

json_int_t write_int(struct module_write *w, tir_type type, int64_t value) {
  return graph_put(
      w->nodes, "ir.IntImm",
      json_pack("{s:i, s:I, s:I}", "span", GRAPH_NONE, "ty", write_type(w, type), "value", (json_int_t)value));
}

json_int_t write_annotations(struct module_write *w, struct tir_span annotations) {
  json_t *pairs = json_array();
  for (uint32_t i = 0; i < annotations.count; i++) {
    const struct tir_annotation *a = &w->ir->annotations.at[annotations.first + i];
    json_array_append_new(pairs, json_integer(write_text(w, tir_text(w->ir, a->key))));
    json_array_append_new(pairs, json_integer(write_value(w, a->value)));
  }
  return graph_put(w->nodes, "ffi.Map", pairs);
}

/* ---- Variables and buffers --------------------------------------------------------------------------------------- */

json_int_t write_var_of(struct module_write *w, tir_var v, json_int_t type) {
  char name[280];
  if (w->vars[v]) return w->vars[v];
  tir_name_render(w->ir, w->ir->vars.at[v].name, name, sizeof name);
  return w->vars[v] = graph_put_var(w->nodes, type, name, strlen(name));
}

json_int_t write_var(struct module_write *w, tir_var v) {
  assert(v && v < w->ir->vars.count);
  return w->vars[v] ? w->vars[v] : write_var_of(w, v, write_type(w, w->ir->vars.at[v].type));
}

static json_int_t write_buffer_type(struct module_write *w, const struct tir_buffer_node *b) {
  tir_type index = b->rank ? tir_type_of(w->ir, w->ir->operands.at[b->shape]) : TIR_T_I64; /* as TVM has it */
  const char *scope = tir_text(w->ir, b->scope);
  if (b->axis_separators.count) write_lack(w, "separators of axes");
  json_int_t type = write_type(w, b->type), text = write_text(w, *scope ? scope : "global");
  json_int_t shape = write_exprs(w, b->shape, b->rank), strides = write_exprs(w, b->strides.first, b->strides.count);
  json_int_t offset = b->elem_offset ? write_expr(w, b->elem_offset) : write_int(w, index, 0);
  return graph_put(w->nodes, "tirx.BufferType",
                   json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:I}", "span", GRAPH_NONE, "dtype", type,
                             "storage_scope", text, "shape", shape, "strides", strides, "elem_offset", offset,
                             "data_alignment", (json_int_t)(b->alignment ? b->alignment : 64), "offset_factor",
                             (json_int_t)(b->offset_factor ? b->offset_factor : 1), "layout", GRAPH_NONE,
                             "allocated_addr", write_empty(w)));
}

json_int_t write_buffer(struct module_write *w, tir_buffer buffer) {
  assert(tir_is_buffer(w->ir, buffer));
  if (w->buffers[buffer]) return w->buffers[buffer];
  const struct tir_buffer_node *b = tir_buffer_at(w->ir, buffer);
  const char *name = tir_text(w->ir, b->name);
  return w->buffers[buffer] = graph_put_var(w->nodes, write_buffer_type(w, b), name, strlen(name));
}

static json_t *start(struct module_write *w, const struct tir_expr_node *n) {
  return json_pack("{s:i, s:I}", "span", GRAPH_NONE, "ty", write_type(w, n->type));
}

static void set(json_t *data, const char *field, json_int_t node) {
  json_object_set_new(data, field, json_integer(node));
}

/* What the node of a kind is called, and the fields of its operands. */
static const struct notation {
  const char *name, *a, *b, *c;
} notations[TIR_KIND_COUNT] = {[TIR_ADD] = {"tirx.Add", "a", "b"},
                               [TIR_SUB] = {"tirx.Sub", "a", "b"},
                               [TIR_MUL] = {"tirx.Mul", "a", "b"},
                               [TIR_DIV] = {"tirx.Div", "a", "b"},
                               [TIR_MOD] = {"tirx.Mod", "a", "b"},
                               [TIR_FLOORDIV] = {"tirx.FloorDiv", "a", "b"},
                               [TIR_MIN] = {"tirx.Min", "a", "b"},
                               [TIR_FLOORMOD] = {"tirx.FloorMod", "a", "b"},
                               [TIR_MAX] = {"tirx.Max", "a", "b"},
                               [TIR_EQ] = {"tirx.EQ", "a", "b"},
                               [TIR_NE] = {"tirx.NE", "a", "b"},
                               [TIR_LT] = {"tirx.LT", "a", "b"},
                               [TIR_LE] = {"tirx.LE", "a", "b"},
                               [TIR_GT] = {"tirx.GT", "a", "b"},
                               [TIR_GE] = {"tirx.GE", "a", "b"},
                               [TIR_AND] = {"tirx.And", "a", "b"},
                               [TIR_OR] = {"tirx.Or", "a", "b"},
                               [TIR_NOT] = {"tirx.Not", "a"},
                               [TIR_CAST] = {"tirx.Cast", "value"},
                               [TIR_SELECT] = {"tirx.Select", "condition", "true_value", "false_value"},
                               [TIR_RAMP] = {"tirx.Ramp", "base", "stride"},
                               [TIR_BROADCAST] = {"tirx.Broadcast", "value"}};

static json_int_t write_operator(struct module_write *w, const struct tir_expr_node *n) {
  const struct notation *s = &notations[n->kind];
  json_t *data = start(w, n);
  set(data, s->a, write_expr(w, n->a));
  if (s->b) set(data, s->b, write_expr(w, n->b));
  if (s->c) set(data, s->c, write_expr(w, n->c));
  if (n->kind == TIR_RAMP || n->kind == TIR_BROADCAST)
    set(data, "lanes", write_int(w, TIR_T_I32, tir_type_lanes(n->type)));
  return graph_put(w->nodes, s->name, data);
}

static json_int_t write_let(struct module_write *w, const struct tir_expr_node *n) {
  json_t *data = start(w, n);
  set(data, "var", write_var(w, n->ref));
  set(data, "value", write_expr(w, n->a));
  set(data, "body", write_expr(w, n->b));
  return graph_put(w->nodes, "tirx.Let", data);
}

static json_int_t write_load(struct module_write *w, const struct tir_expr_node *n) {
  json_t *data = start(w, n);
  set(data, "buffer", write_buffer(w, n->ref));
  set(data, "indices", write_exprs(w, n->operands, n->count));
  set(data, "predicate", write_maybe(w, n->a));
  return graph_put(w->nodes, "tirx.BufferLoad", data);
}

static json_int_t put_call(struct module_write *w, json_t *data, const char *op, json_int_t args) {
  set(data, "op", graph_put(w->nodes, "ir.Op", json_string(op)));
  set(data, "args", args);
  set(data, "attrs", GRAPH_NONE);
  set(data, "ty_args", write_empty(w));
  return graph_put(w->nodes, "ir.Call", data);
}

static json_int_t write_type_of_data(struct module_write *w, tir_buffer buffer, tir_type element) {
  return write_pointer(w, element, tir_text(w->ir, tir_buffer_at(w->ir, buffer)->scope));
}

json_int_t write_type_of(struct module_write *w, tir_expr e) {
  const struct tir_expr_node *n = tir_at(w->ir, e), *first, *second;
  if (n->type != TIR_T_HANDLE) return write_type(w, n->type);
  if (n->kind == TIR_DATA) return write_type_of_data(w, n->ref, tir_buffer_at(w->ir, n->ref)->type);
  if (n->kind != TIR_CALL || !n->count) return write_type(w, n->type);
  const char *op = tir_text(w->ir, n->ref);
  first = tir_at(w->ir, w->ir->operands.at[n->operands]);
  second = n->count > 1 ? tir_at(w->ir, w->ir->operands.at[n->operands + 1]) : first;
  if (!strcmp(op, "address_of") && first->kind == TIR_LOAD) return write_type_of_data(w, first->ref, first->type);
  if (!strcmp(op, "tvm_access_ptr") && second->kind == TIR_DATA) return write_type_of_data(w, second->ref, first->type);
  return write_type(w, n->type);
}

static json_t *start_call(struct module_write *w, tir_expr e) {
  return json_pack("{s:i, s:I}", "span", GRAPH_NONE, "ty", write_type_of(w, e));
}

/* A buffer's pointer. */
static json_int_t write_data(struct module_write *w, tir_expr e) {
  json_t *data = start_call(w, e);
  json_int_t args = graph_put_list(w->nodes, json_pack("[I]", write_buffer(w, tir_at(w->ir, e)->ref)));
  return put_call(w, data, "tirx.buffer_data", args);
}

static json_int_t write_call(struct module_write *w, tir_expr e) {
  const struct tir_expr_node *n = tir_at(w->ir, e);
  const char *op = tir_text(w->ir, n->ref);
  char name[160];
  if (!strncmp(op, "Module.", 7)) return write_lack(w, "calls of functions that are not there");
  bool packed = !strncmp(op, "call_packed", 11) || !strncmp(op, "call_cpacked", 12);
  snprintf(name, sizeof name, "tirx.%s%.140s", packed ? "tvm_" : "", op);
  json_t *data = start_call(w, e);
  return put_call(w, data, name, write_exprs(w, n->operands, n->count));
}

static json_int_t write_float(struct module_write *w, const struct tir_expr_node *n) {
  json_t *data = start(w, n);
  json_object_set_new(data, "value", vm_json_real(n->real));
  return graph_put(w->nodes, "ir.FloatImm", data);
}

static json_int_t write_string(struct module_write *w, const struct tir_expr_node *n) {
  json_t *data = start(w, n);
  set(data, "value", write_text(w, tir_text(w->ir, n->ref)));
  return graph_put(w->nodes, "tirx.StringImm", data);
}

static json_int_t write_new(struct module_write *w, tir_expr e) {
  const struct tir_expr_node *n = tir_at(w->ir, e);
  switch (n->kind) {
  case TIR_INT_IMM: return write_int(w, n->type, n->imm);
  case TIR_FLOAT_IMM: return write_float(w, n);
  case TIR_STRING_IMM: return write_string(w, n);
  case TIR_VAR: return write_var(w, n->ref);
  case TIR_DATA: return write_data(w, e);
  case TIR_LET: return write_let(w, n);
  case TIR_LOAD: return write_load(w, n);
  case TIR_CALL: return write_call(w, e);
  case TIR_SLICE: return write_lack(w, "regions as arguments of calls");
  default: break;
  }
  return notations[n->kind].name ? write_operator(w, n) : write_lack(w, "such values in expressions");
}

json_int_t write_expr(struct module_write *w, tir_expr e) {
  assert(e && e < w->ir->exprs.count);
  if (!w->exprs[e]) w->exprs[e] = write_new(w, e);
  return w->exprs[e];
}

json_int_t write_maybe(struct module_write *w, tir_expr e) { return e ? write_expr(w, e) : GRAPH_NONE; }

json_int_t write_exprs(struct module_write *w, uint32_t first, uint32_t count) {
  assert(first + (uint64_t)count <= w->ir->operands.count);
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++)
    json_array_append_new(list, json_integer(write_expr(w, w->ir->operands.at[first + i])));
  return graph_put_list(w->nodes, list);
}

/* ---- Values of annotations: TVM keeps numbers without a type
 * --------------------------------------------------------- */

static json_int_t write_items(struct module_write *w, const struct tir_expr_node *n) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < n->count; i++)
    json_array_append_new(list, json_integer(write_value(w, w->ir->operands.at[n->operands + i])));
  return graph_put(w->nodes, n->kind == TIR_MAP ? "ffi.Map" : "ffi.Array", list);
}

json_int_t write_value(struct module_write *w, tir_expr e) {
  const struct tir_expr_node *n = tir_at(w->ir, e);
  switch (n->kind) {
  case TIR_NONE_IMM: return GRAPH_NONE;
  case TIR_STRING_IMM: return write_text(w, tir_text(w->ir, n->ref));
  case TIR_LIST:
  case TIR_MAP: return write_items(w, n);
  case TIR_INT_IMM:
    if (n->type == TIR_T_BOOL) return graph_put(w->nodes, "bool", json_boolean(n->imm));
    if (n->type == TIR_T_I32) return graph_put(w->nodes, "int", json_integer((json_int_t)n->imm));
    break;
  case TIR_FLOAT_IMM:
    if (n->type == TIR_T_F32) return graph_put(w->nodes, "float", vm_json_real(n->real));
    break;
  default: break;
  }
  return write_expr(w, e);
}

/* ---- Regions ----------------------------------------------------------------------------------------------------- */

json_int_t write_range(struct module_write *w, tir_expr min, tir_expr extent) {
  json_int_t from = write_expr(w, min), size = write_expr(w, extent);
  return graph_put(w->nodes, "ir.Range", json_pack("{s:I, s:I, s:i}", "min", from, "extent", size, "span", GRAPH_NONE));
}

json_int_t write_region(struct module_write *w, struct tir_region region) {
  assert(tir_is_buffer(w->ir, region.buffer));
  const uint32_t *ranges = w->ir->operands.at + region.ranges;
  json_t *list = json_array();
  json_int_t buffer = write_buffer(w, region.buffer);
  for (uint32_t i = 0; i < tir_buffer_at(w->ir, region.buffer)->rank; i++)
    json_array_append_new(list, json_integer(write_range(w, ranges[2 * i], ranges[2 * i + 1])));
  json_int_t all = graph_put_list(w->nodes, list);
  return graph_put(w->nodes, "tirx.BufferRegion", json_pack("{s:I, s:I}", "buffer", buffer, "region", all));
}
