/* A function as TVM's graph of nodes: a module of it alone, named main. */
#include "module_write.h"

#include "vm/text/index_map.h"

#include <stdlib.h>
#include <string.h>

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
