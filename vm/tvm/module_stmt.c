/* Statements and blocks from graphs of nodes. */
#include "module_graph.h"

#include <stdlib.h>
#include <string.h>

/* The body that a field names, in a scope of its own; nothing where it is None and may be. */
static bool read_body(struct module_graph *g, uint32_t node, const char *field, bool needed, tir_stmt parent,
                      enum tir_list list) {
  uint32_t body, mark = module_open(g);
  bool there = needed ? module_ref(g, node, field, NULL, &body) : module_maybe(g, node, field, &body);
  if (!there || (body && !module_stmt(g, body, parent, list))) return false;
  module_close(g, mark);
  return true;
}

/* Sequences are no statements here: what they hold follows in the list. */
static bool read_sequence(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  struct node_list all;
  uint32_t item;
  if (!module_list(g, node, "seq", &all)) return false;
  if (!all.count) return module_fail(g, node, "seq", "it is empty");
  for (uint32_t i = 0; i < all.count; i++)
    if (!module_item(g, &all, i, &item) || !module_stmt(g, item, parent, list)) return false;
  return true;
}

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

static bool read_step(struct module_graph *g, uint32_t node) {
  uint32_t at;
  tir_expr step;
  if (!module_maybe(g, node, "step", &at)) return false;
  if (!at) return true;
  if (!module_index_of(g, node, "step", &step)) return false;
  return tir_is_const(g->ir, step, 1) || module_fail(g, node, "step", "steps other than 1 are not supported");
}

static bool read_thread(struct module_graph *g, uint32_t node, tir_symbol *out) {
  uint32_t iter;
  const char *tag;
  if (!module_ref(g, node, "thread_binding", "IterVar", &iter) || !module_text(g, iter, "thread_tag", &tag))
    return false;
  if (!*tag) return module_fail(g, iter, "thread_tag", "it names no thread");
  *out = tir_symbol_of(g->ir, tag);
  return true;
}

static bool read_for(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_expr min, extent;
  int64_t kind;
  tir_var v;
  tir_symbol thread = TIR_NONE;
  struct tir_span annotations;
  uint32_t mark = module_open(g);
  if (!module_index_of(g, node, "min", &min) || !module_index_of(g, node, "extent", &extent) ||
      !module_check_extent(g, node, "extent", extent) || !read_step(g, node) ||
      !module_integer(g, node, "kind", &kind) || !module_annotations(g, node, "annotations", &annotations))
    return false;
  if (kind < TIR_SERIAL || kind > TIR_THREAD_BINDING)
    return module_fail(g, node, "kind", "there is no such kind of loop");
  if ((kind == TIR_THREAD_BINDING && !read_thread(g, node, &thread)) ||
      !module_new_var(g, node, "loop_var", TIR_VAR_LOOP, min, extent, &v))
    return false;
  tir_loop loop = tir_new_loop(g->ir, v, min, extent, (enum tir_loop_kind)kind);
  tir_as(g->ir, loop, TIR_LOOP)->loop.thread = thread;
  tir_stmt_at(g->ir, loop)->annotations = annotations;
  tir_append(g->ir, parent, list, loop);
  if (!read_body(g, node, "body", true, loop, TIR_BODY)) return false;
  module_close(g, mark);
  return true;
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

static bool read_iter(struct module_graph *g, uint32_t node, tir_expr binding, struct tir_iter *out) {
  static const int kinds[] = {TIR_SPATIAL, -1, TIR_REDUCE, -1, TIR_OPAQUE};
  uint32_t range;
  tir_expr min, extent;
  int64_t kind;
  if (!module_is(g, node, "IterVar")) return module_fail(g, node, NULL, "an IterVar is expected");
  if (!module_ref(g, node, "dom", "Range", &range) || !module_index_of(g, range, "min", &min) ||
      !module_index_of(g, range, "extent", &extent) || !module_check_extent(g, range, "extent", extent) ||
      !module_integer(g, node, "iter_type", &kind))
    return false;
  if (kind < 0 || kind > 4 || kinds[kind] < 0)
    return module_fail(g, node, "iter_type", "it is neither spatial, a reduction nor opaque");
  *out = (struct tir_iter){.kind = (uint32_t)kinds[kind], .binding = binding};
  return module_new_var(g, node, "var", TIR_VAR_ITER, min, extent, &out->var);
}

static bool read_iters(struct module_graph *g, uint32_t realize, uint32_t block, tir_block out) {
  struct node_list vars, values;
  struct tir_iter iters[GRAPH_MOST_ITERS];
  uint32_t node, value;
  tir_expr bindings[GRAPH_MOST_ITERS];
  if (!module_list(g, block, "iter_vars", &vars) || !module_list(g, realize, "iter_values", &values)) return false;
  if (vars.count != values.count || vars.count > GRAPH_MOST_ITERS)
    return module_fail(g, realize, "iter_values", "there are %u, for %u variables (at most %d)", values.count,
                       vars.count, GRAPH_MOST_ITERS);
  for (uint32_t i = 0; i < vars.count; i++) { /* which know none of the block's variables */
    if (!module_item(g, &values, i, &value) || !module_expr(g, value, &bindings[i])) return false;
    tir_type type = tir_type_of(g->ir, bindings[i]);
    if (!tir_type_is_int(type) || tir_type_lanes(type) != 1)
      return module_fail(g, realize, "iter_values", "an integer is expected");
  }
  for (uint32_t i = 0; i < vars.count; i++)
    if (!module_item(g, &vars, i, &node) || !read_iter(g, node, bindings[i], &iters[i])) return false;
  tir_set_iters(g->ir, out, iters, vars.count);
  return true;
}

static bool read_regions(struct module_graph *g, uint32_t block, const char *field, tir_block out) {
  struct node_list list;
  uint32_t node;
  assert(*field == 'r' || *field == 'w');
  if (!module_list(g, block, field, &list)) return false;
  if (list.count > GRAPH_MOST_ARGS) return module_fail(g, block, field, "there are too many");
  struct tir_region *regions = malloc((list.count + 1) * sizeof *regions);
  if (!regions) abort();
  bool good = true;
  for (uint32_t i = 0; good && i < list.count; i++)
    good = module_item(g, &list, i, &node) && module_region(g, node, &regions[i]);
  if (good && *field == 'r') tir_set_reads(g->ir, out, regions, list.count);
  if (good && *field == 'w') tir_set_writes(g->ir, out, regions, list.count);
  free(regions);
  return good;
}

static bool read_buffers(struct module_graph *g, uint32_t block, tir_block out) {
  struct node_list allocs, matches;
  struct tir_match all[GRAPH_MOST_ITERS];
  uint32_t node, var, source;
  tir_buffer buffer;
  if (!module_list(g, block, "alloc_buffers", &allocs) || !module_list(g, block, "match_buffers", &matches))
    return false;
  for (uint32_t i = 0; i < allocs.count; i++) {
    if (!module_item(g, &allocs, i, &node) || !module_new_buffer(g, node, false, &buffer)) return false;
    tir_add_alloc(g->ir, out, buffer);
  }
  if (matches.count > GRAPH_MOST_ITERS) return module_fail(g, block, "match_buffers", "there are too many");
  for (uint32_t i = 0; i < matches.count; i++) {
    if (!module_item(g, &matches, i, &node)) return false;
    if (!module_ref(g, node, "source", "BufferRegion", &source) || !module_region(g, source, &all[i].source) ||
        !module_ref(g, node, "buffer", "Var", &var) || !module_new_buffer(g, var, true, &all[i].buffer))
      return false;
    tir_buffer_at(g->ir, all[i].buffer)->where = out;
  }
  tir_set_matches(g->ir, out, all, matches.count);
  return true;
}

static bool read_block(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  uint32_t block, mark = module_open(g);
  const char *name;
  tir_expr predicate;
  struct tir_span annotations;
  if (!module_ref(g, node, "block", "SBlock", &block) || !module_text(g, block, "name_hint", &name) ||
      !module_truth_of(g, node, "predicate", &predicate))
    return false;
  tir_block out = tir_new_block(g->ir, tir_symbol_of(g->ir, name));
  tir_append(g->ir, parent, list, out);
  tir_as(g->ir, out, TIR_BLOCK)->block.predicate = tir_is_const(g->ir, predicate, 1) ? TIR_NONE : predicate;
  if (!read_iters(g, node, block, out) || !read_regions(g, block, "reads", out) ||
      !read_regions(g, block, "writes", out) || !module_annotations(g, block, "annotations", &annotations) ||
      !read_buffers(g, block, out))
    return false;
  tir_stmt_at(g->ir, out)->annotations = annotations;
  if (!read_body(g, block, "init", false, out, TIR_INIT) || !read_body(g, block, "body", true, out, TIR_BODY))
    return false;
  module_close(g, mark);
  return true;
}

/* ---- Stores and values ------------------------------------------------------------------------------------------- */

static bool read_store(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_buffer buffer;
  tir_expr indices[GRAPH_MOST_RANK], value, predicate;
  int lanes;
  if (!module_buffer(g, node, "buffer", &buffer) || !module_indices(g, node, buffer, indices, &lanes) ||
      !module_expr_of(g, node, "value", &value) || !module_predicate(g, node, lanes, &predicate))
    return false;
  if (tir_type_of(g->ir, value) != tir_type_with_lanes(tir_buffer_at(g->ir, buffer)->type, lanes))
    return module_fail(g, node, "value", "it is not of the type of what is stored to");
  tir_stmt s = tir_new_store(g->ir, buffer, indices, value);
  tir_as(g->ir, s, TIR_STORE)->store.predicate = predicate;
  tir_append(g->ir, parent, list, s);
  return true;
}

static tir_stmt append_new(struct module_graph *g, enum tir_stmt_kind kind, tir_stmt parent, enum tir_list list) {
  assert(kind != TIR_DEAD && parent);
  tir_stmt s = tir_new_stmt(g->ir, kind);
  tir_append(g->ir, parent, list, s);
  return s;
}

static bool read_evaluate(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_expr value;
  if (!module_expr_of(g, node, "value", &value)) return false;
  tir_stmt s = append_new(g, TIR_EVALUATE, parent, list);
  tir_as(g->ir, s, TIR_EVALUATE)->evaluate.value = value;
  return true;
}

static bool read_return(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_expr value;
  if (!module_expr_of(g, node, "value", &value)) return false;
  value = tir_call(g->ir, tir_type_of(g->ir, value), tir_symbol_of(g->ir, "ret"), &value, 1);
  tir_stmt s = append_new(g, TIR_EVALUATE, parent, list);
  tir_as(g->ir, s, TIR_EVALUATE)->evaluate.value = value;
  return true;
}

static bool read_bind(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_expr value;
  tir_var v;
  if (!module_expr_of(g, node, "value", &value)) return false;
  enum tir_var_kind kind = tir_at(g->ir, value)->flags & TIR_OF_DATA ? TIR_VAR_DATA : TIR_VAR_LET;
  if (!module_new_var(g, node, "var", kind, TIR_NONE, TIR_NONE, &v)) return false;
  if (g->ir->vars.at[v].type != tir_type_of(g->ir, value))
    return module_fail(g, node, "value", "it is not of the variable's type");
  tir_stmt s = append_new(g, TIR_BIND, parent, list);
  tir_as(g->ir, s, TIR_BIND)->bind.var = v;
  tir_as(g->ir, s, TIR_BIND)->bind.value = value;
  return true;
}

/* ---- Conditions -------------------------------------------------------------------------------------------------- */

static bool read_if(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_expr condition;
  if (!module_truth_of(g, node, "condition", &condition)) return false;
  tir_stmt s = append_new(g, TIR_IF, parent, list);
  tir_stmt_at(g->ir, s)->test.condition = condition;
  return read_body(g, node, "then_case", true, s, TIR_BODY) && read_body(g, node, "else_case", false, s, TIR_ELSE);
}

static bool read_while(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_expr condition;
  if (!module_truth_of(g, node, "condition", &condition)) return false;
  tir_stmt s = append_new(g, TIR_WHILE, parent, list);
  tir_stmt_at(g->ir, s)->test.condition = condition;
  return read_body(g, node, "body", true, s, TIR_BODY);
}

/* The kind of the error, and the parts of its message. */
static bool read_assert(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  tir_expr condition, parts[GRAPH_MOST_ITERS];
  struct node_list all;
  uint32_t item;
  if (!module_truth_of(g, node, "condition", &condition) || !module_expr_of(g, node, "error_kind", &parts[0]) ||
      !module_list(g, node, "message_parts", &all))
    return false;
  if (all.count >= GRAPH_MOST_ITERS) return module_fail(g, node, "message_parts", "there are too many");
  for (uint32_t i = 0; i < all.count; i++)
    if (!module_item(g, &all, i, &item) || !module_expr(g, item, &parts[i + 1])) return false;
  for (uint32_t i = 0; i <= all.count; i++)
    if (tir_at(g->ir, parts[i])->kind != TIR_STRING_IMM) return module_fail(g, node, "message_parts", "one is no text");
  tir_expr message = tir_list_value(g->ir, parts, all.count + 1);
  tir_stmt s = append_new(g, TIR_ASSERT, parent, list);
  tir_stmt_at(g->ir, s)->test.condition = condition;
  tir_stmt_at(g->ir, s)->test.message = message;
  return true;
}

/* ---- Attributes and flat buffers --------------------------------------------------------------------------------- */

/* The extent of a thread is a loop over it. */
static bool read_launch(struct module_graph *g, uint32_t node, uint32_t iter, tir_stmt parent, enum tir_list list) {
  tir_expr extent;
  tir_var v;
  const char *tag;
  uint32_t mark = module_open(g);
  if (!module_index_of(g, node, "value", &extent) || !module_check_extent(g, node, "value", extent) ||
      !module_text(g, iter, "thread_tag", &tag))
    return false;
  tir_expr zero = tir_int(g->ir, tir_type_of(g->ir, extent), 0);
  if (!*tag) return module_fail(g, iter, "thread_tag", "it names no thread");
  if (!module_new_var(g, iter, "var", TIR_VAR_LOOP, zero, extent, &v)) return false;
  tir_loop loop = tir_new_loop(g->ir, v, zero, extent, TIR_THREAD_BINDING);
  tir_symbol thread = tir_symbol_of(g->ir, tag);
  tir_as(g->ir, loop, TIR_LOOP)->loop.thread = thread;
  tir_append(g->ir, parent, list, loop);
  if (!read_body(g, node, "body", true, loop, TIR_BODY)) return false;
  module_close(g, mark);
  return true;
}

static bool read_attr(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  const char *key;
  uint32_t what;
  tir_expr of, value;
  if (!module_text(g, node, "attr_key", &key) || !module_maybe(g, node, "node", &what)) return false;
  if (what && module_is(g, what, "IterVar")) {
    if (!strcmp(key, "thread_extent")) return read_launch(g, node, what, parent, list);
    return module_fail(g, node, "attr_key", "`%.60s` of a thread is not supported", key);
  }
  if (what ? !module_value(g, what, &of) : !(of = tir_none(g->ir))) return false;
  if (!module_expr_of(g, node, "value", &value)) return false;
  tir_stmt s = append_new(g, TIR_ATTR, parent, list);
  tir_symbol symbol = tir_symbol_of(g->ir, key);
  tir_as(g->ir, s, TIR_ATTR)->attr.node = of;
  tir_as(g->ir, s, TIR_ATTR)->attr.value = value;
  tir_as(g->ir, s, TIR_ATTR)->attr.key = symbol;
  return read_body(g, node, "body", true, s, TIR_BODY);
}

static bool read_alloc(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  uint32_t var;
  tir_buffer buffer;
  struct tir_span annotations;
  if (!module_ref(g, node, "buffer", "Var", &var) || !module_annotations(g, node, "annotations", &annotations) ||
      !module_new_buffer(g, var, false, &buffer))
    return false;
  tir_stmt s = append_new(g, TIR_ALLOC, parent, list);
  tir_stmt_at(g->ir, s)->alloc.buffer = buffer;
  tir_stmt_at(g->ir, s)->annotations = annotations;
  tir_buffer_at(g->ir, buffer)->where = s;
  return true;
}

static bool read_declare(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  uint32_t var;
  tir_buffer buffer;
  tir_expr data;
  if (!module_expr_of(g, node, "data", &data) || !module_ref(g, node, "buffer", "Var", &var) ||
      !module_new_buffer(g, var, false, &buffer))
    return false;
  if (tir_type_of(g->ir, data) != TIR_T_HANDLE) return module_fail(g, node, "data", "a pointer is expected");
  tir_stmt s = append_new(g, TIR_DECLARE, parent, list);
  tir_stmt_at(g->ir, s)->alloc.buffer = buffer;
  tir_buffer_at(g->ir, buffer)->data = data;
  tir_buffer_at(g->ir, buffer)->where = s;
  return true;
}

/* ---- Entry points ------------------------------------------------------------------------------------------------ */

bool module_stmt(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list) {
  static const struct {
    const char *name;
    bool (*read)(struct module_graph *, uint32_t, tir_stmt, enum tir_list);
  } kinds[] = {{"SeqStmt", read_sequence},  {"For", read_for},       {"SBlockRealize", read_block},
               {"BufferStore", read_store}, {"Bind", read_bind},     {"IfThenElse", read_if},
               {"Evaluate", read_evaluate}, {"While", read_while},   {"AssertStmt", read_assert},
               {"AttrStmt", read_attr},     {"Return", read_return}, {"AllocBuffer", read_alloc},
               {"DeclBuffer", read_declare}};
  const char *type = graph_type(graph_node(g->nodes, node));
  if (!module_visit(g, node)) return false;
  if (++g->stmt_depth > GRAPH_MOST_STMT_DEPTH)
    return module_fail(g, node, NULL, "statements are nested more than %d deep", GRAPH_MOST_STMT_DEPTH);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i].name, type) != 0) continue;
    bool good = kinds[i].read(g, node, parent, list);
    g->stmt_depth--;
    return good;
  }
  return module_fail(g, node, NULL, "this kind of node is no statement that is supported");
}
