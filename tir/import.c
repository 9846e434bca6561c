/* Copying expressions and statements from one module into another. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

void tir_import_open(struct tir_import *import, struct tir *to, const struct tir *from) {
  MS_CHECK(to != from);
  size_t exprs = from->exprs.count, vars = from->vars.count, buffers = from->buffers.count;
  *import = (struct tir_import){.to = to, .from = from};
  import->exprs = calloc(exprs + vars + 2 * buffers, sizeof *import->exprs);
  if (!import->exprs) abort();
  import->vars = import->exprs + exprs;
  import->buffers = import->vars + vars;
  import->bases = import->buffers + buffers;
}

void tir_import_close(struct tir_import *import) { free(import->exprs); }

void tir_import_map_var(struct tir_import *import, tir_var from, tir_expr to) {
  import->vars[from] = to;
  import->exprs[tir_var_expr(import->from, from)] = to;
}

void tir_import_map_buffer(struct tir_import *import, tir_buffer from, tir_buffer to, const tir_expr *bases) {
  import->buffers[from] = to;
  if (bases) import->bases[from] = tir_add_operands(import->to, bases, tir_buffer_at(import->to, to)->rank);
}

/* ---- Names, variables, buffers ---- */

static tir_symbol import_symbol(struct tir_import *import, tir_symbol s) {
  return s ? tir_symbol_n(import->to, tir_text(import->from, s), import->from->symbols.at[s].length) : TIR_NONE;
}

static tir_type index_type(const struct tir_import *import, tir_type t) {
  return import->wide && t == TIR_T_I32 ? TIR_T_I64 : t;
}

/* A constant in the place of an index. */
static tir_expr import_index(struct tir_import *import, tir_expr e) {
  tir_expr made = tir_import_expr(import, e);
  return import->wide && made && tir_type_of(import->to, made) == TIR_T_I32 ? tir_cast(import->to, TIR_T_I64, made)
                                                                            : made;
}

static tir_var import_var(struct tir_import *import, tir_var v) {
  if (import->vars[v]) return tir_at(import->to, import->vars[v])->ref;
  char name[256];
  struct tir_var_node n = import->from->vars.at[v];
  tir_name_render(import->from, n.name, name, sizeof name);
  tir_expr min = n.min ? import_index(import, n.min) : TIR_NONE;
  tir_expr extent = n.extent ? import_index(import, n.extent) : TIR_NONE;
  tir_type type = n.kind >= TIR_VAR_LET ? n.type : index_type(import, n.type);
  tir_var made = tir_new_var(import->to, (enum tir_var_kind)n.kind, tir_name_of(import->to, name), type, min, extent);
  tir_import_map_var(import, v, tir_var_expr(import->to, made));
  return made;
}

enum { MOST_OPERANDS = 32 };

static uint32_t import_operands(struct tir_import *import, uint32_t first, uint32_t count, bool indices) {
  uint32_t on_stack[MOST_OPERANDS] = {0}, *made = on_stack;
  if (count > MOST_OPERANDS) made = malloc(count * sizeof *made);
  if (!made) abort();
  for (uint32_t i = 0; i < count; i++) {
    tir_expr e = import->from->operands.at[first + i];
    made[i] = !e ? TIR_NONE : indices ? import_index(import, e) : tir_import_expr(import, e);
  }
  uint32_t to = tir_add_operands(import->to, made, count);
  if (made != on_stack) free(made);
  return to;
}

tir_buffer tir_import_buffer(struct tir_import *import, tir_buffer b) {
  if (import->buffers[b]) return import->buffers[b];
  struct tir *to = import->to;
  struct tir_buffer_node n = *tir_buffer_at(import->from, b);
  uint32_t shape = import_operands(import, n.shape, n.rank, true);
  n.strides.first = import_operands(import, n.strides.first, n.strides.count, true);
  n.axis_separators.first = import_operands(import, n.axis_separators.first, n.axis_separators.count, false);
  tir_expr offset = n.elem_offset ? import_index(import, n.elem_offset) : TIR_NONE;
  tir_expr data = n.data ? tir_import_expr(import, n.data) : TIR_NONE;
  tir_symbol name = import_symbol(import, n.name), scope = import_symbol(import, n.scope);
  tir_buffer made = tir_new_buffer(to, name, n.type, NULL, 0, scope);
  struct tir_buffer_node *node = tir_buffer_at(to, made);
  node->rank = n.rank;
  node->shape = shape;
  node->strides = n.strides;
  node->axis_separators = n.axis_separators;
  node->elem_offset = offset;
  node->data = data;
  node->alignment = n.alignment;
  node->offset_factor = n.offset_factor;
  node->user_annotated = n.user_annotated;
  import->buffers[b] = made;
  return made;
}

/* ---- Expressions ---- */

static tir_expr import_load(struct tir_import *import, const struct tir_expr_node *n) {
  tir_expr indices[MOST_OPERANDS];
  tir_buffer to = tir_import_buffer(import, n->ref);
  uint32_t bases = import->bases[n->ref], rank = bases ? tir_buffer_at(import->to, to)->rank : n->count;
  assert(rank <= MOST_OPERANDS && n->count <= rank);
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t front = rank - n->count;
    tir_expr base = bases ? import->to->operands.at[bases + i] : TIR_NONE;
    tir_expr own = i < front ? TIR_NONE : import_index(import, import->from->operands.at[n->operands + i - front]);
    if (own && base && tir_type_of(import->to, own) != tir_type_of(import->to, base))
      own = tir_cast(import->to, tir_type_of(import->to, base), own);
    indices[i] = !own ? base : base ? tir_add(import->to, base, own) : own;
  }
  return tir_load(import->to, to, indices, rank, n->a ? tir_import_expr(import, n->a) : TIR_NONE);
}

/* Where indices are widened, constants beside them follow. */
static tir_expr import_binary(struct tir_import *import, const struct tir_expr_node *n) {
  tir_expr a = tir_import_expr(import, n->a), b = tir_import_expr(import, n->b);
  tir_type x = tir_type_of(import->to, a), y = tir_type_of(import->to, b);
  if (import->wide && x == TIR_T_I32 && y == TIR_T_I64) a = tir_cast(import->to, y, a);
  if (import->wide && x == TIR_T_I64 && y == TIR_T_I32) b = tir_cast(import->to, x, b);
  return tir_binary(import->to, (enum tir_kind)n->kind, a, b);
}

static tir_expr import_let(struct tir_import *import, const struct tir_expr_node *n) {
  tir_expr value = tir_import_expr(import, n->a);
  tir_var v = import_var(import, n->ref);
  return tir_let(import->to, v, value, tir_import_expr(import, n->b));
}

static tir_expr import_list(struct tir_import *import, const struct tir_expr_node *n) {
  uint32_t on_stack[MOST_OPERANDS] = {0}, *made = on_stack;
  if (n->count > MOST_OPERANDS) made = malloc(n->count * sizeof *made);
  if (!made) abort();
  for (uint32_t i = 0; i < n->count; i++) {
    tir_expr e = import->from->operands.at[n->operands + i];
    made[i] = e ? tir_import_expr(import, e) : TIR_NONE;
  }
  tir_expr e = n->kind == TIR_CALL   ? tir_call(import->to, n->type, import_symbol(import, n->ref), made, n->count)
               : n->kind == TIR_LIST ? tir_list_value(import->to, made, n->count)
                                     : tir_map_value(import->to, made, n->count);
  if (made != on_stack) free(made);
  return e;
}

static tir_expr import_node(struct tir_import *import, const struct tir_expr_node *n) {
  struct tir *to = import->to;
  if (n->kind >= TIR_ADD && n->kind <= TIR_OR) return import_binary(import, n);
  switch (n->kind) {
  case TIR_INT_IMM: return tir_int(to, n->type, n->imm);
  case TIR_FLOAT_IMM: return tir_float(to, n->type, n->real);
  case TIR_STRING_IMM: return tir_string(to, import_symbol(import, n->ref));
  case TIR_NONE_IMM: return tir_none(to);
  case TIR_VAR: return tir_var_expr(to, import_var(import, n->ref));
  case TIR_DATA: return tir_data(to, tir_import_buffer(import, n->ref));
  case TIR_NOT:
  case TIR_CAST:
  case TIR_BROADCAST:
  case TIR_SELECT:
  case TIR_RAMP:
  case TIR_SLICE: {
    tir_expr parts[] = {n->a, n->b, n->c};
    for (int i = 0; i < 3; i++) parts[i] = parts[i] ? tir_import_expr(import, parts[i]) : TIR_NONE;
    return tir_rebuild(to, *n, parts[0], parts[1], parts[2]);
  }
  case TIR_LET: return import_let(import, n);
  case TIR_LOAD: return import_load(import, n);
  default: return import_list(import, n);
  }
}

tir_expr tir_import_expr(struct tir_import *import, tir_expr e) {
  if (!import->exprs[e]) {
    tir_expr made = import_node(import, tir_at(import->from, e));
    import->exprs[e] = made;
  }
  return import->exprs[e];
}

/* ---- Blocks ---- */

static struct tir_region tir_import_region(struct tir_import *import, struct tir_region region) {
  uint32_t rank = tir_buffer_at(import->from, region.buffer)->rank;
  tir_buffer buffer = tir_import_buffer(import, region.buffer);
  return (struct tir_region){buffer, import_operands(import, region.ranges, 2 * rank, true)};
}

struct tir_span tir_import_annotations(struct tir_import *import, struct tir_span span) {
  if (!span.count) return (struct tir_span){0};
  uint32_t first = tir_grow_annotations(import->to, span.count);
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_annotation a = import->from->annotations.at[span.first + i];
    struct tir_annotation made = {import_symbol(import, a.key), tir_import_expr(import, a.value)};
    import->to->annotations.at[first + i] = made;
  }
  return (struct tir_span){first, span.count};
}

static uint32_t import_regions(struct tir_import *import, struct tir_span span) {
  uint32_t first = tir_grow_regions(import->to, span.count);
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_region r = tir_import_region(import, import->from->regions.at[span.first + i]);
    import->to->regions.at[first + i] = r;
  }
  return first;
}

static void import_matches(struct tir_import *import, tir_block b, struct tir_span span) {
  struct tir *to = import->to;
  uint32_t first = tir_grow_matches(to, span.count);
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_match m = import->from->matches.at[span.first + i];
    struct tir_region source = tir_import_region(import, m.source);
    struct tir_match made = {tir_import_buffer(import, m.buffer), source};
    to->matches.at[first + i] = made;
    tir_buffer_at(to, made.buffer)->where = b;
  }
  tir_set_matches(to, b, to->matches.at + first, span.count);
}

static void import_iters(struct tir_import *import, tir_block b, struct tir_span span) {
  uint32_t first = tir_grow_iters(import->to, span.count);
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_iter iter = import->from->iters.at[span.first + i];
    tir_expr binding = import_index(import, iter.binding);
    struct tir_iter made = {import_var(import, iter.var), iter.kind, binding};
    import->to->iters.at[first + i] = made;
  }
  tir_set_iters(import->to, b, import->to->iters.at + first, span.count);
}

static tir_block import_block(struct tir_import *import, tir_block from) {
  struct tir *to = import->to;
  struct tir_block_record r = *tir_block_at(import->from, from);
  tir_expr predicate = tir_as(import->from, from, TIR_BLOCK)->block.predicate;
  tir_block b = tir_new_block(to, import_symbol(import, r.name));
  import_iters(import, b, r.iters);
  predicate = predicate ? tir_import_expr(import, predicate) : TIR_NONE;
  tir_as(to, b, TIR_BLOCK)->block.predicate = predicate;
  for (uint32_t i = 0; i < r.allocs.count; i++)
    tir_add_alloc(to, b, tir_import_buffer(import, import->from->operands.at[r.allocs.first + i]));
  import_matches(import, b, r.matches);
  uint32_t reads = import_regions(import, r.reads), writes = import_regions(import, r.writes);
  tir_set_reads(to, b, to->regions.at + reads, r.reads.count);
  tir_set_writes(to, b, to->regions.at + writes, r.writes.count);
  return b;
}

/* ---- Statements ---- */

static tir_stmt import_loop(struct tir_import *import, const struct tir_stmt_node *n) {
  tir_var v = import_var(import, n->loop.var);
  const struct tir_var_node *var = &import->to->vars.at[v];
  tir_expr min = var->min, extent = var->extent;
  tir_symbol thread = import_symbol(import, n->loop.thread);
  tir_loop made = tir_new_loop(import->to, v, min, extent, (enum tir_loop_kind)n->loop_kind);
  tir_as(import->to, made, TIR_LOOP)->loop.thread = thread;
  return made;
}

static tir_stmt import_store(struct tir_import *import, const struct tir_stmt_node *n) {
  struct tir *to = import->to;
  uint32_t rank = tir_buffer_at(import->from, n->store.buffer)->rank;
  tir_buffer buffer = tir_import_buffer(import, n->store.buffer);
  uint32_t indices = import_operands(import, n->store.indices, rank, true);
  tir_expr value = tir_import_expr(import, n->store.value);
  tir_expr predicate = n->store.predicate ? tir_import_expr(import, n->store.predicate) : TIR_NONE;
  tir_stmt made = tir_new_stmt(to, TIR_STORE);
  struct tir_stmt_node *node = tir_stmt_at(to, made);
  node->store.buffer = buffer;
  node->store.indices = indices;
  node->store.value = value;
  node->store.predicate = predicate;
  return made;
}

static tir_stmt import_plain(struct tir_import *import, const struct tir_stmt_node *n) {
  struct tir *to = import->to;
  struct tir_stmt_node made = {0};
  switch (n->kind) {
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT:
    made.test.condition = tir_import_expr(import, n->test.condition);
    if (n->test.message) made.test.message = tir_import_expr(import, n->test.message);
    break;
  case TIR_BIND:
    made.bind.value = tir_import_expr(import, n->bind.value);
    made.bind.var = import_var(import, n->bind.var);
    break;
  case TIR_EVALUATE: made.evaluate.value = tir_import_expr(import, n->evaluate.value); break;
  case TIR_ATTR:
    made.attr.node = n->attr.node ? tir_import_expr(import, n->attr.node) : TIR_NONE;
    made.attr.value = tir_import_expr(import, n->attr.value);
    made.attr.key = import_symbol(import, n->attr.key);
    break;
  default: made.alloc.buffer = tir_import_buffer(import, n->alloc.buffer); break;
  }
  tir_stmt s = tir_new_stmt(to, (enum tir_stmt_kind)n->kind);
  struct tir_stmt_node *node = tir_stmt_at(to, s);
  switch (n->kind) {
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT: node->test = made.test; break;
  case TIR_BIND: node->bind = made.bind; break;
  case TIR_EVALUATE: node->evaluate = made.evaluate; break;
  case TIR_ATTR: node->attr = made.attr; break;
  default: node->alloc = made.alloc; tir_buffer_at(to, made.alloc.buffer)->where = s;
  }
  return s;
}

tir_stmt tir_import_stmt(struct tir_import *import, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(import->from, s);
  tir_stmt made = n->kind == TIR_LOOP    ? import_loop(import, n)
                  : n->kind == TIR_BLOCK ? import_block(import, s)
                  : n->kind == TIR_STORE ? import_store(import, n)
                                         : import_plain(import, n);
  struct tir_span annotations = tir_import_annotations(import, n->annotations);
  tir_stmt_at(import->to, made)->annotations = annotations;
  static const enum tir_list lists[] = {TIR_INIT, TIR_BODY}; /* in order of text */
  for (int l = 0; l < 2; l++)
    for (tir_stmt child = n->first[lists[l]]; child; child = tir_stmt_at(import->from, child)->next)
      tir_append(import->to, made, lists[l], tir_import_stmt(import, child));
  return made;
}
