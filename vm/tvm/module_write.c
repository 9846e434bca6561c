/* A function as TVM's graph of nodes: a module of it alone, named main. */
#include "module_write.h"

#include "vm/index_map.h"

#include <stdlib.h>
#include <string.h>

json_int_t write_lack(struct module_write *w, const char *what) {
  if (!w->lacks) w->lacks = what;
  return GRAPH_NONE;
}

/* ---- Small nodes ------------------------------------------------------------------------------------------------- */

json_int_t write_text(struct module_write *w, const char *text) { return graph_put_text(w->nodes, text, strlen(text)); }

json_int_t write_empty(struct module_write *w) { return graph_put_list(w->nodes, json_array()); }

json_int_t write_pointer(struct module_write *w, tir_type element, const char *scope) {
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

/* ---- The function ------------------------------------------------------------------------------------------------ */

/* An extent as the type of a tensor has it: an integer of 64 bits. */
static json_int_t write_wide(struct module_write *w, tir_expr extent) {
  if (tir_is_int(w->ir, extent)) return write_int(w, TIR_T_I64, tir_at(w->ir, extent)->imm);
  json_int_t value = write_expr(w, extent);
  if (tir_type_of(w->ir, extent) == TIR_T_I64) return value;
  return graph_put(w->nodes, "tirx.Cast",
                   json_pack("{s:i, s:I, s:I}", "span", GRAPH_NONE, "ty", write_type(w, TIR_T_I64), "value", value));
}

static json_int_t write_tensor_type(struct module_write *w, const struct tir_buffer_node *b) {
  json_t *extents = json_array();
  for (uint32_t i = 0; i < b->rank; i++)
    json_array_append_new(extents, json_integer(write_wide(w, w->ir->operands.at[b->shape + i])));
  json_int_t values = graph_put_list(w->nodes, extents), rank = b->rank;
  json_int_t type = graph_put(w->nodes, "relax.ShapeType",
                              json_pack("{s:i, s:I, s:I}", "span", GRAPH_NONE, "values", values, "ndim", rank));
  json_int_t shape = graph_put(w->nodes, "relax.expr.ShapeExpr",
                               json_pack("{s:i, s:I, s:I}", "span", GRAPH_NONE, "ty", type, "values", values));
  return graph_put(w->nodes, "relax.TensorType",
                   json_pack("{s:i, s:I, s:I, s:i, s:I}", "span", GRAPH_NONE, "shape", shape, "dtype",
                             write_type(w, b->type), "vdevice", GRAPH_NONE, "ndim", rank));
}

static json_int_t write_result(struct module_write *w, tir_type result) {
  if (result != TIR_T_VOID) return write_type(w, result);
  return graph_put(w->nodes, "ir.TupleType", json_pack("{s:i, s:I}", "span", GRAPH_NONE, "fields", write_empty(w)));
}

static json_int_t write_func_type(struct module_write *w, const struct tir_func_node *f) {
  json_t *params = json_array();
  for (uint32_t i = 0; i < f->params.count; i++) {
    const struct tir_param *p = &w->ir->params.at[f->params.first + i];
    tir_type type = p->buffer ? TIR_T_VOID : w->ir->vars.at[p->var].type;
    json_int_t node = p->buffer              ? write_tensor_type(w, tir_buffer_at(w->ir, p->buffer))
                      : type == TIR_T_HANDLE ? graph_put(w->nodes, "relax.AnyType", json_pack("{s:i}", "span", 0))
                                             : write_type(w, type);
    json_array_append_new(params, json_integer(node));
  }
  json_int_t list = graph_put_list(w->nodes, params), result = write_result(w, f->result);
  return graph_put(w->nodes, "relax.FuncType",
                   json_pack("{s:i, s:I, s:I, s:i, s:b}", "span", GRAPH_NONE, "params", list, "ret", result,
                             "derive_func", GRAPH_NONE, "purity", 0));
}

/* Besides those that it has: its symbol, unless it is private, and that it is of loops and blocks. */
static json_int_t write_func_attributes(struct module_write *w, const struct tir_func_node *f, json_int_t name) {
  json_t *pairs = json_array();
  bool named = false;
  for (uint32_t i = 0; i < f->attrs.count; i++) {
    const struct tir_annotation *a = &w->ir->annotations.at[f->attrs.first + i];
    const char *key = tir_text(w->ir, a->key);
    if (!strcmp(key, "s_tir")) continue;
    named = named || !strcmp(key, "private") || !strcmp(key, "global_symbol");
    if (!strcmp(key, "private")) continue;
    json_array_append_new(pairs, json_integer(write_text(w, key)));
    json_array_append_new(pairs, json_integer(write_value(w, a->value)));
  }
  if (!named) {
    json_array_append_new(pairs, json_integer(write_text(w, "global_symbol")));
    json_array_append_new(pairs, json_integer(name));
  }
  json_array_append_new(pairs, json_integer(write_text(w, "s_tir")));
  json_array_append_new(pairs, json_integer(graph_put(w->nodes, "bool", json_true())));
  json_int_t map = graph_put(w->nodes, "ffi.Map", pairs);
  return graph_put(w->nodes, "ir.DictAttrs", json_pack("{s:I}", "__dict__", map));
}

static json_int_t write_func(struct module_write *w, const struct tir_func_node *f, json_int_t type, json_int_t name) {
  json_t *list = json_array();
  json_int_t attrs = write_func_attributes(w, f, name);
  for (uint32_t i = 0; i < f->params.count; i++) {
    const struct tir_param *p = &w->ir->params.at[f->params.first + i];
    json_array_append_new(list, json_integer(p->buffer ? write_buffer(w, p->buffer) : write_var(w, p->var)));
  }
  json_int_t params = graph_put_list(w->nodes, list), result = write_result(w, f->result);
  json_int_t body = write_body(w, f->body, TIR_BODY);
  return graph_put(w->nodes, "tirx.PrimFunc",
                   json_pack("{s:i, s:I, s:I, s:I, s:I, s:I}", "span", GRAPH_NONE, "ty", type, "attrs", attrs, "params",
                             params, "ret_type", result, "body", body));
}

/* ---- The module -------------------------------------------------------------------------------------------------- */

static json_int_t write_map(struct module_write *w, json_t *pairs) { return graph_put(w->nodes, "ffi.Map", pairs); }

static json_int_t write_module(struct module_write *w, const struct tir_func_node *f) {
  json_int_t type = write_func_type(w, f), name = write_text(w, "main");
  json_int_t global = graph_put(w->nodes, "ir.GlobalVar",
                                json_pack("{s:i, s:I, s:I}", "span", GRAPH_NONE, "ty", type, "name_hint", name));
  json_int_t func = write_func(w, f, type, name);
  json_int_t functions = write_map(w, json_pack("[I, I]", global, func));
  json_int_t names = write_map(w, json_pack("[I, I]", name, global));
  json_int_t sources = write_map(w, json_array());
  json_int_t source_map = graph_put(w->nodes, "ir.SourceMap", json_pack("{s:I}", "source_map", sources));
  json_int_t none = write_map(w, json_array());
  json_int_t attrs = graph_put(w->nodes, "ir.DictAttrs", json_pack("{s:I}", "__dict__", none));
  return graph_put(w->nodes, "ir.IRModule",
                   json_pack("{s:I, s:I, s:I, s:I, s:I}", "functions", functions, "global_var_map_", names,
                             "source_map", source_map, "attrs", attrs, "global_infos", write_map(w, json_array())));
}

char *vm_write_module_graph(const struct tir *ir, tir_func f, ms_error *err) {
  assert(tir_is_func(ir, f));
  struct module_write w = {.ir = ir, .nodes = graph_start()};
  w.exprs = calloc((size_t)ir->exprs.count + 1, sizeof *w.exprs);
  w.vars = calloc((size_t)ir->vars.count + 1, sizeof *w.vars);
  w.buffers = calloc((size_t)ir->buffers.count + 1, sizeof *w.buffers);
  if (!w.exprs || !w.vars || !w.buffers) abort();
  json_t *graph = graph_end(w.nodes, write_module(&w, &ir->funcs.at[f]));
  char *text = w.lacks ? NULL : vm_json_dump(graph);
  if (w.lacks) ms_fail(err, MS_BAD_GRAPH, "TVM's graphs of nodes have no %s", w.lacks);
  json_decref(graph);
  free(w.exprs);
  free(w.vars);
  free(w.buffers);
  return text;
}
