/* Assignments: stores, lets, scalars, and the declarations of buffers and variables. */
#include "reader.h"

#include <string.h>

/* ---- Declarations of buffers ---- */

static bool read_buffer_named(struct tir_reader *r, struct tir_args *args, tir_symbol target, uint32_t first,
                              bool quoted, tir_buffer *out) {
  struct tir_buffer_text how = {.first = first, .quoted_shape = quoted};
  how.name = target ? tir_reader_symbol(r, target) : tir_symbol_of(r->ir, "buffer");
  if (!tir_read_buffer(r, args, &how, out)) return false;
  if (target) tir_reader_bind(r, target, TIR_BOUND_BUFFER, *out);
  return true;
}

static bool is_no_symbol(const struct tir *ir, const void *context, tir_var v) {
  (void)context;
  return tir_var_at(ir, v)->kind != TIR_VAR_PLAIN;
}

static bool is_inner(const struct tir *ir, tir_expr e) {
  return e && ((tir_at(ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_POINTER)) || tir_any_var(ir, e, is_no_symbol, NULL));
}

/* A block's buffers hold for all of its body: they are not made of what is only known inside it. */
static bool check_lifted(struct tir_reader *r, uint32_t token, tir_buffer buffer) {
  tir_stmt place = r->block ? r->block->block : r->ir->funcs.at[r->func].body;
  if (r->parent == place && !tir_stmt_at(r->ir, place)->first[TIR_BODY]) return true;
  const struct tir_buffer_node *b = tir_buffer_at(r->ir, buffer);
  bool inner = is_inner(r->ir, b->elem_offset) || is_inner(r->ir, b->data);
  for (uint32_t i = 0; i < b->rank; i++) inner = inner || is_inner(r->ir, r->ir->operands.at[b->shape + i]);
  for (uint32_t i = 0; i < b->strides.count; i++)
    inner = inner || is_inner(r->ir, r->ir->operands.at[b->strides.first + i]);
  if (!inner) return true;
  return tir_reader_fail(r, token, MS_TEXT_NAME, "this buffer is allocated before what its shape is made of");
}

/* A buffer that a block allocates: the innermost one around, else the function's root. */
static bool read_block_alloc(struct tir_reader *r, struct tir_args *args, tir_symbol target) {
  tir_buffer b;
  if (!tir_read_args(r, args) || !read_buffer_named(r, args, target, 0, false, &b) || !check_lifted(r, args->token, b))
    return false;
  if (r->block) return tir_add_alloc(r->ir, r->block->block, b), true;
  if (r->root_alloc_count == r->root_alloc_capacity)
    r->root_allocs =
        tir_enlarge(r->root_allocs, &r->root_alloc_capacity, (uint64_t)r->root_alloc_count + 1, sizeof *r->root_allocs);
  r->root_allocs[r->root_alloc_count++] = b;
  return true;
}

static void append_buffer(struct tir_reader *r, enum tir_stmt_kind kind, tir_buffer b, struct tir_span annotations) {
  assert(kind == TIR_ALLOC || kind == TIR_DECLARE);
  tir_stmt s = tir_new_stmt(r->ir, kind);
  tir_stmt_at(r->ir, s)->alloc.buffer = b;
  tir_stmt_at(r->ir, s)->annotations = annotations;
  tir_buffer_at(r->ir, b)->where = s;
  tir_reader_append(r, s);
}

/* A flat allocation, or with data= a view: it lives for the rest of its suite. */
static bool read_flat_alloc(struct tir_reader *r, struct tir_args *args, tir_symbol target, const char *scope) {
  tir_buffer b;
  struct tir_item v;
  struct tir_span annotations = {0, 0};
  if (!tir_read_args(r, args)) return false;
  if (tir_arg_at(r, args, UINT32_MAX, "annotations", &v) && !tir_reader_annotations(r, v, &annotations)) return false;
  if (!read_buffer_named(r, args, target, 0, false, &b)) return false;
  if (scope) tir_buffer_at(r->ir, b)->scope = tir_symbol_of(r->ir, scope);
  append_buffer(r, tir_buffer_at(r->ir, b)->data ? TIR_DECLARE : TIR_ALLOC, b, annotations);
  return true;
}

/* The dialect before: T.allocate(extents, type, scope) gives a pointer. */
static bool read_allocate(struct tir_reader *r, struct tir_args *args, tir_symbol target) {
  struct tir_item extents, type_value, scope_value;
  struct tir_span annotations = {0, 0};
  tir_type type = TIR_T_F32;
  tir_expr shape[TIR_MOST_RANK];
  if (!tir_read_args(r, args) || !tir_arg_at(r, args, 0, "extents", &extents) || extents.kind != TIR_ITEM_LIST ||
      extents.count > TIR_MOST_RANK)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.allocate takes a list of extents");
  if (tir_arg_at(r, args, 1, "dtype", &type_value) && !tir_reader_as_type(r, type_value, &type)) return false;
  tir_symbol scope = tir_scope_named(r->ir, TIR_SCOPE_GLOBAL);
  if (tir_arg_at(r, args, 2, "scope", &scope_value) && scope_value.kind == TIR_ITEM_STRING)
    scope = tir_reader_symbol(r, scope_value.word);
  struct tir_item v;
  if (tir_arg_at(r, args, UINT32_MAX, "annotations", &v) && !tir_reader_annotations(r, v, &annotations)) return false;
  if (!tir_args_done(r, args, 3)) return false;
  for (uint32_t i = 0; i < extents.count; i++) {
    struct tir_item item = r->items[extents.first + i];
    if (!tir_reader_as_expr(r, item, &shape[i]) || !tir_reader_check_extent(r, item.token, shape[i], "this extent"))
      return false;
  }
  tir_symbol name = target ? tir_reader_symbol(r, target) : tir_symbol_of(r->ir, "buffer");
  tir_buffer b = tir_new_buffer(r->ir, name, type, shape, extents.count, scope);
  append_buffer(r, TIR_ALLOC, b, annotations);
  tir_expr data = tir_data(r->ir, b);
  if (target) tir_reader_bind(r, target, TIR_BOUND_EXPR, data);
  return tir_reader_note(r, args->token, data);
}

/* A handle parameter's buffer, or a region of a block's. */
static bool read_match(struct tir_reader *r, struct tir_args *args, tir_symbol target) {
  struct tir_item source;
  tir_buffer b;
  if (!tir_read_args(r, args)) return false;
  if (!tir_arg_at(r, args, 0, "param", &source))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.match_buffer takes a parameter or a region");
  bool handle = source.kind == TIR_ITEM_EXPR && tir_at(r->ir, source.expr)->kind == TIR_VAR;
  if (!read_buffer_named(r, args, target, 1, handle, &b)) return false;
  if (!handle) return tir_add_match(r, args->token, source, b);
  const struct tir_func_node *f = &r->ir->funcs.at[r->func];
  for (uint32_t i = 0; i < f->params.count; i++) {
    struct tir_param *p = &r->ir->params.at[f->params.first + i];
    if (p->var != tir_at(r->ir, source.expr)->ref) continue;
    if (p->buffer) return tir_reader_fail(r, args->token, MS_TEXT_NAME, "this parameter is matched already");
    p->buffer = b;
    return true;
  }
  return tir_reader_fail(r, source.token, MS_TEXT_NAME, "this is no parameter of the function");
}

/* ---- Scalars: buffers of one element, named as values ---- */

static bool new_scalar(struct tir_reader *r, tir_symbol target, tir_type type, const char *scope, tir_buffer *out) {
  tir_expr one = tir_int(r->ir, TIR_T_I32, 1);
  *out = tir_new_buffer(r->ir, tir_reader_symbol(r, target), type, &one, 1, tir_symbol_of(r->ir, scope));
  append_buffer(r, TIR_ALLOC, *out, (struct tir_span){0, 0});
  tir_reader_bind(r, target, TIR_BOUND_SCALAR, *out);
  return tir_reader_note(r, r->at, one);
}

static bool read_scalar(struct tir_reader *r, struct tir_args *args, tir_symbol target, const char *scope) {
  struct tir_item v;
  tir_type type = TIR_T_F32;
  tir_buffer b;
  if (!tir_read_args(r, args)) return false;
  if (!target) return tir_reader_fail(r, args->token, MS_TEXT_SYNTAX, "expected a name for this scalar");
  if (tir_arg_at(r, args, 0, "dtype", &v) && !tir_reader_as_type(r, v, &type)) return false;
  if (!scope) {
    scope = "global";
    if (tir_arg_at(r, args, 1, "scope", &v) && v.kind == TIR_ITEM_STRING) scope = tir_reader_word(r, v.word);
  }
  return tir_args_done(r, args, 2) && new_scalar(r, target, type, scope, &b);
}

static bool append_store(struct tir_reader *r, uint32_t token, tir_buffer buffer, const tir_expr *indices,
                         uint32_t count, struct tir_item value) {
  assert(tir_is_buffer(r->ir, buffer));
  tir_expr e;
  if (!tir_reader_as_expr(r, value, &e)) return false;
  tir_type type = tir_buffer_at(r->ir, buffer)->type;
  int64_t lanes = tir_type_lanes(type);
  for (uint32_t i = 0; i < count; i++)
    if (!tir_reader_count_lanes(r, token, indices[i], &lanes)) return false;
  type = tir_type_with_lanes(type, (int)lanes);
  if (tir_type_of(r->ir, e) != type && !tir_reader_cast(r, value.token, type, e, &e)) return false;
  tir_reader_append(r, tir_new_store(r->ir, buffer, indices, e));
  return true;
}

bool tir_read_vstore(struct tir_reader *r, uint32_t token, tir_buffer buffer) {
  tir_expr indices[TIR_MOST_RANK], predicate;
  struct tir_item value;
  if (!tir_read_masked(r, token, buffer, true, indices, &value, &predicate) ||
      !append_store(r, token, buffer, indices, tir_buffer_at(r->ir, buffer)->rank, value))
    return false;
  tir_stmt_at(r->ir, tir_stmt_at(r->ir, r->parent)->last[r->list])->store.predicate = predicate;
  return true;
}

static bool store_scalar(struct tir_reader *r, uint32_t token, tir_buffer buffer, struct tir_item value) {
  assert(tir_is_buffer(r->ir, buffer));
  tir_expr zero = tir_reader_zero(r, TIR_T_I32);
  return append_store(r, token, buffer, &zero, 1, value);
}

/* ---- Attributes and threads ---- */

static bool enter_attr_of(struct tir_reader *r, uint32_t token, struct tir_item node, struct tir_item key,
                          struct tir_item value) {
  tir_expr e[2];
  if (key.kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "T.attr takes a node, a key and a value");
  if (!tir_reader_as_annotation(r, node, &e[0]) || !tir_reader_as_expr(r, value, &e[1])) return false;
  tir_stmt s = tir_new_stmt(r->ir, TIR_ATTR);
  struct tir_stmt_node *n = tir_stmt_at(r->ir, s);
  n->attr.node = e[0];
  n->attr.value = e[1];
  tir_symbol symbol = tir_reader_symbol(r, key.word);
  tir_as(r->ir, s, TIR_ATTR)->attr.key = symbol;
  return tir_reader_enter(r, token, s);
}

/* T.attr(node, key, value), or T.attr({key: value}) of the node 0. */
static bool enter_attr(struct tir_reader *r, struct tir_args *args) {
  struct tir_item node, key, value;
  if (!tir_read_args(r, args)) return false;
  if (!tir_arg_at(r, args, 0, "node", &node))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.attr takes a node, a key and a value");
  if (args->count == 1 && node.kind == TIR_ITEM_MAP && node.count) {
    struct tir_item zero = {.kind = TIR_ITEM_INT, .token = node.token};
    if (!tir_args_done(r, args, 1)) return false;
    for (uint32_t i = 0; i < node.count; i += 2)
      if (!enter_attr_of(r, args->token, zero, r->items[node.first + i], r->items[node.first + i + 1])) return false;
    return true;
  }
  if (!tir_arg_at(r, args, 1, "attr_key", &key) || !tir_arg_at(r, args, 2, "value", &value))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.attr takes a node, a key and a value");
  return tir_args_done(r, args, 3) && enter_attr_of(r, args->token, node, key, value);
}

/* T.launch_thread(tag, extent): a loop bound to that thread. */
static bool enter_thread(struct tir_reader *r, struct tir_args *args, tir_symbol target) {
  const struct tir_token *first = tir_reader_token(r, r->at + 1);
  struct tir_binding bound = {TIR_UNBOUND, 0};
  tir_symbol tag = TIR_NONE;
  if (first->kind == TIR_TOKEN_NAME) bound = tir_reader_lookup(r, first->symbol);
  if (bound.kind == TIR_BOUND_THREAD) { /* a name from T.env_thread; the loop takes it */
    target = first->symbol;
    tag = bound.ref;
    tir_reader_bind(r, target, TIR_BOUND_EXPR, tir_reader_zero(r, TIR_T_I32)); /* a value for the argument list */
  }
  struct tir_item thread, extent_value;
  tir_expr extent;
  tir_stmt s;
  if (!tir_read_args(r, args)) return false;
  if (!tir_arg_at(r, args, 0, "thread", &thread) || !tir_arg_at(r, args, 1, "extent", &extent_value) ||
      (!tag && thread.kind != TIR_ITEM_STRING))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.launch_thread takes a thread and an extent");
  if (!tir_args_done(r, args, 2) || !tir_reader_as_expr(r, extent_value, &extent)) return false;
  if (!tag) tag = thread.word;
  if (!target) target = tir_symbol_of(r->words, "thread");
  if (!tir_type_is_int(tir_type_of(r->ir, extent)))
    return tir_reader_fail(r, extent_value.token, MS_TEXT_TYPE, "expected an integer as extent");
  tir_expr zero = tir_reader_zero(r, tir_type_of(r->ir, extent));
  if (!tir_reader_new_loop(r, target, args->token, zero, extent, TIR_THREAD_BINDING, &s)) return false;
  tir_symbol symbol = tir_reader_symbol(r, tag);
  tir_as(r->ir, s, TIR_LOOP)->loop.thread = symbol;
  return tir_reader_enter(r, args->token, s);
}

static bool read_env_thread(struct tir_reader *r, struct tir_args *args, tir_symbol target) {
  struct tir_item tag;
  if (!tir_read_args(r, args)) return false;
  if (!target || !tir_arg_at(r, args, 0, "thread_tag", &tag) || tag.kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected name = T.env_thread(\"threadIdx.x\")");
  tir_reader_bind(r, target, TIR_BOUND_THREAD, tag.word);
  return tir_args_done(r, args, 1);
}

/* ---- Lets ---- */

static bool append_bind(struct tir_reader *r, uint32_t token, tir_symbol target, tir_type type, tir_expr value) {
  if (tir_type_of(r->ir, value) != type && !tir_reader_cast(r, token, type, value, &value)) return false;
  tir_var v = tir_new_let(r->ir, tir_reader_name(r, target), value);
  tir_stmt s = tir_new_stmt(r->ir, TIR_BIND);
  tir_as(r->ir, s, TIR_BIND)->bind.var = v;
  tir_as(r->ir, s, TIR_BIND)->bind.value = value;
  tir_reader_append(r, s);
  tir_reader_bind(r, target, TIR_BOUND_EXPR, tir_var_expr(r->ir, v));
  return tir_reader_note(r, token, tir_var_expr(r->ir, v));
}

/* The dialect before: x = T.LetStmt(value), with T.let(x, value). */
static bool read_let(struct tir_reader *r, struct tir_args *args, tir_symbol target) {
  const struct tir_token *name = tir_reader_token(r, r->at + 1);
  bool named = !target && name->kind == TIR_TOKEN_NAME && tir_reader_is(r, r->at + 2, TIR_PUNCT(',', 0));
  struct tir_item v;
  tir_expr value;
  if (named) {
    target = name->symbol;
    if (tir_reader_lookup(r, target).kind == TIR_UNBOUND)
      tir_reader_bind(r, target, TIR_BOUND_EXPR, tir_reader_zero(r, TIR_T_I32)); /* a value for the argument list */
  }
  if (!tir_read_args(r, args)) return false;
  if (!target || !tir_arg_at(r, args, named ? 1 : 0, "value", &v))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected a name and a value");
  if (!tir_args_done(r, args, 2) || !tir_reader_as_expr(r, v, &value)) return false;
  return append_bind(r, args->token, target, tir_type_of(r->ir, value), value);
}

/* x = T.int32(): a variable; one that a shape of a parameter has declared is only named again. */
static bool declare_var(struct tir_reader *r, uint32_t token, tir_symbol target, tir_type type) {
  struct tir_binding b = tir_reader_lookup(r, target);
  char text[24];
  if (b.kind == TIR_BOUND_EXPR && tir_at(r->ir, b.ref)->kind == TIR_VAR &&
      r->ir->vars.at[tir_at(r->ir, b.ref)->ref].kind == TIR_VAR_PLAIN && !r->block && !r->stmt_depth) {
    if (tir_type_of(r->ir, b.ref) == type) return true;
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "this variable is %s above",
                           tir_type_text(tir_type_of(r->ir, b.ref), text));
  }
  tir_expr e;
  if (!tir_reader_symbol_value(r, token, tir_reader_name(r, target), type, &e)) return false;
  tir_reader_bind(r, target, TIR_BOUND_EXPR, e);
  return true;
}

static bool read_assert_call(struct tir_reader *r, struct tir_args *args) {
  struct tir_item condition, message;
  tir_expr e, parts[2];
  if (!tir_read_args(r, args)) return false;
  if (!tir_arg_at(r, args, 0, "condition", &condition) || !tir_arg_at(r, args, 1, "message", &message))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.Assert takes a condition and a message");
  if (!tir_args_done(r, args, 2) || !tir_reader_as_expr(r, condition, &e)) return false;
  if (tir_type_code(tir_type_of(r->ir, e)) != TIR_BOOL || message.kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.Assert takes a condition and a message");
  parts[0] = tir_string(r->ir, tir_symbol_of(r->ir, "RuntimeError"));
  parts[1] = tir_string(r->ir, tir_reader_symbol(r, message.word));
  tir_stmt s = tir_new_stmt(r->ir, TIR_ASSERT);
  tir_expr list = tir_list_value(r->ir, parts, 2);
  tir_stmt_at(r->ir, s)->test.condition = e;
  tir_stmt_at(r->ir, s)->test.message = list;
  tir_reader_append(r, s);
  return tir_reader_note(r, args->token, list);
}

bool tir_read_declaration(struct tir_reader *r, tir_symbol target, const char *name, uint32_t token, bool *known) {
  struct tir_args args = {.token = token, .name = name};
  *known = true;
  if (!strcmp(name, "match_buffer")) return read_match(r, &args, target);
  if (!strcmp(name, "sblock_alloc_buffer")) return read_block_alloc(r, &args, target);
  if (!strcmp(name, "alloc_buffer") && r->old_dialect) return read_block_alloc(r, &args, target);
  if (!strcmp(name, "alloc_buffer") || !strcmp(name, "decl_buffer") || !strcmp(name, "Buffer"))
    return read_flat_alloc(r, &args, target, NULL);
  if (!strcmp(name, "alloc_shared")) return read_flat_alloc(r, &args, target, "shared");
  if (!strcmp(name, "alloc_local")) return read_flat_alloc(r, &args, target, "local");
  if (!strcmp(name, "allocate")) return read_allocate(r, &args, target);
  if (!strcmp(name, "local_scalar")) return read_scalar(r, &args, target, "local");
  if (!strcmp(name, "shared_scalar")) return read_scalar(r, &args, target, "shared");
  if (!strcmp(name, "alloc_scalar")) return read_scalar(r, &args, target, NULL);
  if (!strcmp(name, "attr")) return enter_attr(r, &args);
  if (!strcmp(name, "launch_thread")) return enter_thread(r, &args, target);
  if (!strcmp(name, "env_thread")) return read_env_thread(r, &args, target);
  if (!strcmp(name, "LetStmt") || !strcmp(name, "let") || !strcmp(name, "Bind") || !strcmp(name, "bind"))
    return read_let(r, &args, target);
  if (!strcmp(name, "Assert")) return read_assert_call(r, &args);
  *known = false;
  return true;
}

/* ---- Assignments ---- */

/* target = buffer.view(extents…): the same memory under another shape. */
static bool read_view(struct tir_reader *r, tir_symbol target, tir_buffer of) {
  assert(tir_is_buffer(r->ir, of));
  struct tir_args args = {.token = r->at, .name = "view"};
  tir_expr shape[TIR_MOST_RANK];
  r->at += 3;
  if (!tir_read_args(r, &args) || !tir_args_done(r, &args, TIR_MOST_RANK)) return false;
  for (uint32_t i = 0; i < args.count; i++) {
    struct tir_item item = r->items[args.first + i];
    if (!tir_reader_as_expr(r, item, &shape[i]) || !tir_reader_check_extent(r, item.token, shape[i], "this extent"))
      return false;
  }
  struct tir_buffer_node old = *tir_buffer_at(r->ir, of);
  tir_buffer b = tir_new_buffer(r->ir, tir_reader_symbol(r, target), old.type, shape, args.count, old.scope);
  tir_expr data = tir_data(r->ir, of);
  tir_buffer_at(r->ir, b)->data = data;
  tir_buffer_at(r->ir, b)->elem_offset = old.elem_offset;
  append_buffer(r, TIR_DECLARE, b, (struct tir_span){0, 0});
  tir_reader_bind(r, target, TIR_BOUND_BUFFER, b);
  return tir_reader_note(r, args.token, data);
}

/* T.name(…) after `targets =`: declarations. *known is false when it is an ordinary expression; r->at is then unmoved.
 */
static bool read_right_declaration(struct tir_reader *r, const tir_symbol *targets, uint32_t count, bool *known) {
  char path[64];
  uint32_t token = r->at;
  *known = false;
  const struct tir_token *first = tir_reader_token(r, token);
  struct tir_binding b = {TIR_UNBOUND, 0};
  if (first->kind == TIR_TOKEN_NAME) b = tir_reader_lookup(r, first->symbol);
  if (count == 1 && b.kind == TIR_BOUND_BUFFER && tir_reader_is_name(r, token + 2, "view"))
    return *known = true, read_view(r, targets[0], b.ref);
  if (!tir_take_path(r, path, sizeof path)) return true;
  if (!strncmp(path, "axis.", 5)) return *known = true, tir_read_axis(r, targets, count, path + 5, token);
  tir_type type;
  bool empty = tir_reader_is(r, r->at + 1, TIR_PUNCT(')', 0));
  if (count == 1 && (empty || !strcmp(path, "handle")) &&
      (tir_type_parse(path, &type) || (!strcmp(path, "boolean") && (type = TIR_T_BOOL)))) {
    struct tir_args args = {.token = token, .name = path};
    *known = true;
    return tir_read_args(r, &args) && declare_var(r, token, targets[0], type);
  }
  if (count == 1 && !tir_read_declaration(r, targets[0], path, token, known)) return false;
  if (!*known) r->at = token;
  return true;
}

/* value assigned to a plain name */
static bool assign_name(struct tir_reader *r, uint32_t token, tir_symbol name, struct tir_item value) {
  struct tir_binding b = tir_reader_lookup(r, name);
  if (b.kind == TIR_BOUND_SCALAR) return store_scalar(r, token, b.ref, value);
  if (value.kind == TIR_ITEM_BUFFER) return tir_reader_bind(r, name, TIR_BOUND_BUFFER, value.buffer), true;
  tir_expr e;
  if (!tir_reader_as_expr(r, value, &e)) return false;
  tir_type type = tir_type_of(r->ir, e);
  if (r->old_dialect || tir_type_code(type) == TIR_HANDLE) return append_bind(r, token, name, type, e);
  if (tir_type_code(type) == TIR_STRING || tir_type_code(type) == TIR_VOID)
    return tir_reader_fail(r, value.token, MS_TEXT_TYPE, "this cannot be given a name");
  tir_buffer scalar;
  return new_scalar(r, name, type, "local", &scalar) &&
         store_scalar(r, token, scalar, tir_item_of_expr(e, value.token));
}

/* The rest of `targets = `. */
static bool read_right(struct tir_reader *r, uint32_t token, const tir_symbol *targets, uint32_t count) {
  bool known;
  if (!read_right_declaration(r, targets, count, &known)) return false;
  if (known) return true;
  struct tir_item value;
  if (!tir_read_values(r, &value)) return false;
  if (count == 1) return assign_name(r, token, targets[0], value);
  if (value.kind != TIR_ITEM_LIST || value.count != count)
    return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected %u values", count);
  for (uint32_t i = 0; i < count; i++)
    if (!assign_name(r, token, targets[i], r->items[value.first + i])) return false;
  return true;
}

/* a, b = T.int32(), T.int32(): each name has its own declaration. */
static bool read_pairwise(struct tir_reader *r, uint32_t token, const tir_symbol *targets, uint32_t count) {
  assert(count > 1);
  for (uint32_t i = 0; i < count; i++) {
    if (!read_right(r, token, &targets[i], 1)) return false;
    if (i + 1 < count && !tir_reader_expect_char(r, ',', "and another declaration")) return false;
  }
  return true;
}

/* Whether declarations of variables follow, with commas between them. */
static bool is_pairwise(const struct tir_reader *r) {
  uint32_t at = r->at;
  return tir_reader_is(r, at + 1, TIR_PUNCT('.', 0)) && tir_reader_is(r, at + 3, TIR_PUNCT('(', 0)) &&
         tir_reader_is(r, at + 4, TIR_PUNCT(')', 0)) && tir_reader_is(r, at + 5, TIR_PUNCT(',', 0));
}

/* The type after `name:`; *let if it is T.let or T.let[type]. */
static bool read_annotation_type(struct tir_reader *r, bool *let, tir_type *type) {
  *let = false;
  *type = TIR_T_VOID;
  const struct tir_token *t = tir_reader_token(r, r->at);
  if (t->kind == TIR_TOKEN_NAME && t->symbol == r->prefix && tir_reader_is(r, r->at + 1, TIR_PUNCT('.', 0)) &&
      tir_reader_is_name(r, r->at + 2, "let")) {
    *let = true;
    r->at += 3;
    if (!tir_reader_take_char(r, '[')) return true;
    struct tir_item v;
    if (!tir_read_value(r, &v) || !tir_reader_as_type(r, v, type)) return false;
    return tir_reader_expect_char(r, ']', "after the type");
  }
  struct tir_item v;
  return tir_read_value(r, &v) && tir_reader_as_type(r, v, type);
}

static bool read_annotated(struct tir_reader *r, uint32_t token, tir_symbol name) {
  bool let;
  tir_type type;
  struct tir_item value = {.kind = TIR_ITEM_NONE};
  tir_expr e;
  tir_buffer scalar;
  if (!read_annotation_type(r, &let, &type)) return false;
  bool given = tir_reader_take_char(r, '=');
  if (given && !tir_read_value(r, &value)) return false;
  if (let || r->old_dialect) {
    if (!given) return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected '=' and a value");
    if (!tir_reader_as_expr(r, value, &e)) return false;
    return append_bind(r, token, name, type == TIR_T_VOID ? tir_type_of(r->ir, e) : type, e);
  }
  if (tir_type_code(type) == TIR_HANDLE || type == TIR_T_VOID)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "a pointer is named with T.let[T.handle]");
  return new_scalar(r, name, type, "local", &scalar) && (!given || store_scalar(r, token, scalar, value));
}

/* buffer[indices] on the left. */
static bool read_target_region(struct tir_reader *r, struct tir_item *region, tir_expr *indices, uint32_t *count) {
  uint32_t token = r->at;
  struct tir_item v;
  tir_expr load;
  if (!tir_read_value(r, &v)) return false;
  if (v.kind == TIR_ITEM_REGION && !tir_reader_load(r, v, &load)) return false;
  if (v.kind == TIR_ITEM_EXPR)
    load = v.expr;
  else if (v.kind != TIR_ITEM_REGION)
    return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected an element of a buffer");
  const struct tir_expr_node *n = tir_at(r->ir, load);
  if (n->kind != TIR_LOAD) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "only a name or an element is assigned to");
  *region = tir_item_of_expr(load, token);
  *count = n->count;
  for (uint32_t i = 0; i < n->count; i++) indices[i] = tir_operands(r->ir, n->operands)[i];
  return true;
}

/* The operator of +=, -=, *=, //= or %=; TIR_BAD_EXPR: a plain '='. */
static bool read_assign_operator(struct tir_reader *r, enum tir_kind *kind) {
  static const struct {
    char first;
    enum tir_kind kind;
  } kinds[] = {{'+', TIR_ADD}, {'-', TIR_SUB}, {'*', TIR_MUL}, {'%', TIR_FLOORMOD}, {'/', TIR_DIV}};
  *kind = TIR_BAD_EXPR;
  if (tir_reader_take_char(r, '=')) return true;
  if (tir_reader_is(r, r->at, TIR_PUNCT_FLOOR_ASSIGN)) {
    r->at++;
    *kind = TIR_FLOORDIV;
    return true;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (tir_reader_is(r, r->at, TIR_PUNCT(kinds[i].first, '='))) {
      r->at++;
      *kind = kinds[i].kind;
      return true;
    }
  return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected '='");
}

static bool read_store(struct tir_reader *r) {
  struct tir_item target, value;
  tir_expr indices[TIR_MOST_RANK], e;
  uint32_t count = 0, token = r->at;
  enum tir_kind kind;
  if (!read_target_region(r, &target, indices, &count) || !read_assign_operator(r, &kind) || !tir_read_value(r, &value))
    return false;
  tir_buffer buffer = tir_at(r->ir, target.expr)->ref;
  if (value.kind == TIR_ITEM_REGION) { /* a slice on the right is a vector, not a region */
    if (!tir_reader_load(r, value, &e)) return false;
    value = tir_item_of_expr(e, value.token);
  }
  if (kind != TIR_BAD_EXPR) {
    if (!tir_reader_as_expr(r, value, &e) || !tir_reader_binary(r, token, kind, target.expr, e, &e)) return false;
    value = tir_item_of_expr(e, token);
  }
  return append_store(r, token, buffer, indices, count, value);
}

static bool read_name_update(struct tir_reader *r, uint32_t token, tir_symbol name) {
  enum tir_kind kind;
  struct tir_item old, value;
  tir_expr a, b;
  if (!tir_read_value(r, &old) || !read_assign_operator(r, &kind) || !tir_read_value(r, &value)) return false;
  if (kind == TIR_BAD_EXPR)
    return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "only a name or an element is assigned to");
  if (!tir_reader_as_expr(r, old, &a) || !tir_reader_as_expr(r, value, &b) ||
      !tir_reader_binary(r, token, kind, a, b, &a))
    return false;
  return assign_name(r, token, name, tir_item_of_expr(a, token));
}

bool tir_read_assignment(struct tir_reader *r) {
  tir_symbol targets[TIR_MOST_ITERS];
  uint32_t count = 0, token = r->at;
  const struct tir_token *first = tir_reader_token(r, token);
  const struct tir_token *after = tir_reader_token(r, token + 1);
  bool name = first->kind == TIR_TOKEN_NAME;
  if (name && tir_reader_is(r, token + 1, TIR_PUNCT(':', 0))) {
    r->at += 2;
    return read_annotated(r, token, first->symbol);
  }
  bool list = tir_reader_is_char(r, '(') || (name && tir_reader_is(r, token + 1, TIR_PUNCT(',', 0)));
  bool plain = name && tir_reader_is(r, token + 1, TIR_PUNCT('=', 0));
  if (!list && !plain) {
    bool update = name && after->kind == TIR_TOKEN_PUNCT && !tir_reader_is(r, token + 1, TIR_PUNCT('[', 0)) &&
                  !tir_reader_is(r, token + 1, TIR_PUNCT('.', 0));
    return update ? read_name_update(r, token, first->symbol) : read_store(r);
  }
  bool bracket = tir_reader_take_char(r, '(');
  do {
    const struct tir_token *t = tir_reader_token(r, r->at);
    if (t->kind != TIR_TOKEN_NAME) return tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected a name to assign to");
    if (count == TIR_MOST_ITERS) return tir_reader_fail(r, r->at, MS_TOO_LARGE, "too many names");
    targets[count++] = t->symbol;
    r->at++;
  } while (tir_reader_take_char(r, ','));
  if (bracket && !tir_reader_expect_char(r, ')', "after the names")) return false;
  if (!tir_reader_expect_char(r, '=', "after the names")) return false;
  return count > 1 && is_pairwise(r) ? read_pairwise(r, token, targets, count) : read_right(r, token, targets, count);
}
