/* Statements and blocks as nodes of TVM's graphs. */
#include "module_write.h"

#include <string.h>

static json_t *start(void) { return json_pack("{s:i}", "span", GRAPH_NONE); }

static void set(json_t *data, const char *field, json_int_t node) {
  json_object_set_new(data, field, json_integer(node));
}

static json_int_t write_evaluate(struct module_write *w, json_int_t value) {
  json_t *data = start();
  set(data, "value", value);
  return graph_put(w->nodes, "tirx.Evaluate", data);
}

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

/* Of an iteration of a block, or (v TIR_NONE) of a thread, which is another variable than the loop's. */
static json_int_t write_iter(struct module_write *w, json_int_t range, json_int_t var, int kind, const char *thread) {
  json_int_t tag = write_text(w, thread);
  return graph_put(w->nodes, "tirx.IterVar",
                   json_pack("{s:I, s:I, s:i, s:I}", "dom", range, "var", var, "iter_type", kind, "thread_tag", tag));
}

static json_int_t write_loop(struct module_write *w, tir_stmt s) {
  assert(tir_is(w->ir, s, TIR_LOOP));
  enum { THREAD_INDEX = 1 };
  const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
  json_int_t thread = GRAPH_NONE;
  json_t *data = start();
  set(data, "loop_var", write_var(w, n->loop.var));
  set(data, "min", write_expr(w, n->loop.min));
  set(data, "extent", write_expr(w, n->loop.extent));
  set(data, "kind", n->loop_kind);
  set(data, "body", write_body(w, s, TIR_BODY));
  if (n->loop_kind == TIR_THREAD_BINDING) {
    json_int_t type = write_type(w, w->ir->vars.at[n->loop.var].type);
    thread =
        write_iter(w, GRAPH_NONE, graph_put_var(w->nodes, type, "", 0), THREAD_INDEX, tir_text(w->ir, n->loop.thread));
  }
  set(data, "thread_binding", thread);
  set(data, "annotations", write_annotations(w, n->annotations));
  set(data, "step", GRAPH_NONE);
  return graph_put(w->nodes, "tirx.For", data);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

static json_int_t write_iters(struct module_write *w, struct tir_span iters) {
  static const int kinds[] = {[TIR_SPATIAL] = 0, [TIR_REDUCE] = 2, [TIR_OPAQUE] = 4};
  json_t *list = json_array();
  for (uint32_t i = 0; i < iters.count; i++) {
    const struct tir_iter *iter = &w->ir->iters.at[iters.first + i];
    assert(iter->kind < sizeof kinds / sizeof *kinds);
    const struct tir_var_node *v = &w->ir->vars.at[iter->var];
    json_int_t range = write_range(w, v->min, v->extent), var = write_var(w, iter->var);
    json_array_append_new(list, json_integer(write_iter(w, range, var, kinds[iter->kind], "")));
  }
  return graph_put_list(w->nodes, list);
}

static json_int_t write_bindings(struct module_write *w, struct tir_span iters) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < iters.count; i++)
    json_array_append_new(list, json_integer(write_expr(w, w->ir->iters.at[iters.first + i].binding)));
  return graph_put_list(w->nodes, list);
}

static json_int_t write_regions(struct module_write *w, struct tir_span regions) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < regions.count; i++)
    json_array_append_new(list, json_integer(write_region(w, w->ir->regions.at[regions.first + i])));
  return graph_put_list(w->nodes, list);
}

static json_int_t write_allocs(struct module_write *w, struct tir_span allocs) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < allocs.count; i++)
    json_array_append_new(list, json_integer(write_buffer(w, w->ir->operands.at[allocs.first + i])));
  return graph_put_list(w->nodes, list);
}

static json_int_t write_matches(struct module_write *w, struct tir_span matches) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < matches.count; i++) {
    const struct tir_match *m = &w->ir->matches.at[matches.first + i];
    json_int_t source = write_region(w, m->source), buffer = write_buffer(w, m->buffer);
    json_t *data = json_pack("{s:I, s:I}", "buffer", buffer, "source", source);
    json_array_append_new(list, json_integer(graph_put(w->nodes, "tirx.MatchBufferRegion", data)));
  }
  return graph_put_list(w->nodes, list);
}

static json_int_t write_block(struct module_write *w, tir_block s) {
  assert(tir_is(w->ir, s, TIR_BLOCK));
  const struct tir_block_record *r = tir_block_at(w->ir, s);
  const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
  json_t *block = start(), *realize = start();
  set(realize, "iter_values", write_bindings(w, r->iters));
  set(realize, "predicate", n->block.predicate ? write_expr(w, n->block.predicate) : write_int(w, TIR_T_BOOL, 1));
  set(block, "iter_vars", write_iters(w, r->iters));
  set(block, "reads", write_regions(w, r->reads));
  set(block, "writes", write_regions(w, r->writes));
  set(block, "name_hint", write_text(w, tir_text(w->ir, r->name)));
  set(block, "alloc_buffers", write_allocs(w, r->allocs));
  set(block, "match_buffers", write_matches(w, r->matches));
  set(block, "annotations", write_annotations(w, n->annotations));
  set(block, "init", n->first[TIR_INIT] ? write_body(w, s, TIR_INIT) : GRAPH_NONE);
  set(block, "body", write_body(w, s, TIR_BODY));
  set(realize, "block", graph_put(w->nodes, "tirx.SBlock", block));
  return graph_put(w->nodes, "tirx.SBlockRealize", realize);
}

/* ---- Others ------------------------------------------------------------------------------------------------------ */

static json_int_t write_store(struct module_write *w, const struct tir_stmt_node *n) {
  json_t *data = start();
  set(data, "buffer", write_buffer(w, n->store.buffer));
  set(data, "value", write_expr(w, n->store.value));
  set(data, "indices", write_exprs(w, n->store.indices, tir_buffer_at(w->ir, n->store.buffer)->rank));
  set(data, "predicate", write_maybe(w, n->store.predicate));
  return graph_put(w->nodes, "tirx.BufferStore", data);
}

static json_int_t write_if(struct module_write *w, tir_stmt s) {
  json_t *data = start();
  set(data, "condition", write_expr(w, tir_stmt_at(w->ir, s)->test.condition));
  set(data, "then_case", write_body(w, s, TIR_BODY));
  set(data, "else_case", tir_stmt_at(w->ir, s)->first[TIR_ELSE] ? write_body(w, s, TIR_ELSE) : GRAPH_NONE);
  return graph_put(w->nodes, "tirx.IfThenElse", data);
}

static json_int_t write_while(struct module_write *w, tir_stmt s) {
  json_t *data = start();
  set(data, "condition", write_expr(w, tir_stmt_at(w->ir, s)->test.condition));
  set(data, "body", write_body(w, s, TIR_BODY));
  return graph_put(w->nodes, "tirx.While", data);
}

static json_int_t write_bind(struct module_write *w, const struct tir_stmt_node *n) {
  json_t *data = start();
  set(data, "value", write_expr(w, n->bind.value));
  set(data, "var", write_var_of(w, n->bind.var, write_type_of(w, n->bind.value)));
  return graph_put(w->nodes, "tirx.Bind", data);
}

/* A call that returns is a statement of TVM's. */
static json_int_t write_value_line(struct module_write *w, tir_expr e) {
  const struct tir_expr_node *n = tir_at(w->ir, e);
  if (n->kind != TIR_CALL || n->count != 1 || strcmp(tir_text(w->ir, n->ref), "ret") != 0)
    return write_evaluate(w, write_expr(w, e));
  json_t *data = start();
  set(data, "value", write_expr(w, w->ir->operands.at[n->operands]));
  return graph_put(w->nodes, "tirx.Return", data);
}

/* The message is a kind of error and its parts. */
static json_int_t write_assert(struct module_write *w, const struct tir_stmt_node *n) {
  const struct tir_expr_node *m = n->test.message ? tir_at(w->ir, n->test.message) : NULL;
  json_t *data = start();
  if (!m || m->kind != TIR_LIST || !m->count) write_lack(w, "such a message of an assertion");
  set(data, "condition", write_expr(w, n->test.condition));
  if (!w->lacks) {
    set(data, "error_kind", write_expr(w, w->ir->operands.at[m->operands]));
    set(data, "message_parts", write_exprs(w, m->operands + 1, m->count - 1u));
  }
  return graph_put(w->nodes, "tirx.AssertStmt", data);
}

static json_int_t write_attr(struct module_write *w, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
  json_t *data = start();
  set(data, "node", write_value(w, n->attr.node));
  set(data, "attr_key", write_text(w, tir_text(w->ir, n->attr.key)));
  set(data, "value", write_expr(w, n->attr.value));
  set(data, "body", write_body(w, s, TIR_BODY));
  return graph_put(w->nodes, "tirx.AttrStmt", data);
}

static json_int_t write_alloc(struct module_write *w, const struct tir_stmt_node *n) {
  json_t *data = start();
  bool view = n->kind == TIR_DECLARE;
  if (view) set(data, "data", write_maybe(w, tir_buffer_at(w->ir, n->alloc.buffer)->data));
  set(data, "buffer", write_buffer(w, n->alloc.buffer));
  if (!view) set(data, "annotations", write_annotations(w, n->annotations));
  return graph_put(w->nodes, view ? "tirx.DeclBuffer" : "tirx.AllocBuffer", data);
}

static json_int_t write_stmt(struct module_write *w, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
  switch (n->kind) {
  case TIR_LOOP: return write_loop(w, s);
  case TIR_BLOCK: return write_block(w, s);
  case TIR_STORE: return write_store(w, n);
  case TIR_IF: return write_if(w, s);
  case TIR_BIND: return write_bind(w, n);
  case TIR_EVALUATE: return write_value_line(w, n->evaluate.value);
  case TIR_WHILE: return write_while(w, s);
  case TIR_ASSERT: return write_assert(w, n);
  case TIR_ATTR: return write_attr(w, s);
  case TIR_ALLOC:
  case TIR_DECLARE: return write_alloc(w, n);
  default: return write_lack(w, "such a statement");
  }
}

/* ---- Entry points ------------------------------------------------------------------------------------------------ */

/* One statement is itself, several are a sequence, none is a value without effect. */
json_int_t write_body(struct module_write *w, tir_stmt parent, enum tir_list list) {
  tir_stmt first = tir_stmt_at(w->ir, parent)->first[list];
  if (!first) return write_evaluate(w, write_int(w, TIR_T_I32, 0));
  if (!tir_stmt_at(w->ir, first)->next) return write_stmt(w, first);
  json_t *all = json_array(), *data = start();
  for (tir_stmt s = first; s; s = tir_stmt_at(w->ir, s)->next)
    json_array_append_new(all, json_integer(write_stmt(w, s)));
  set(data, "seq", graph_put_list(w->nodes, all));
  return graph_put(w->nodes, "tirx.SeqStmt", data);
}
