/* The verifier: TensorIR's well-formedness, in one walk over each function.
 *
 * Requires a sound storage (verify_storage.c). A variable and a buffer are defined once in a module, and used only
 * where they are in scope. A block with iteration variables uses no loop variable from outside of it but in its
 * bindings and predicate; one without stands for a region of its loops, and may. Regions: verify_region.c. */
#include "verify.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(code, ...) return tir_refuse(v->ir, v->err, MS_VERIFY_##code, v->place, __VA_ARGS__)

static const char *var_name(const struct tir *ir, tir_var x, char out[128]) {
  tir_name_render(ir, ir->vars.at[x].name, out, 128);
  return out;
}

static const char *buffer_name(const struct tir *ir, tir_buffer b) { return tir_text(ir, ir->buffers.at[b].name); }

/* ---- Definitions ---- */

static bool define_var(struct verifier *v, tir_var x) {
  assert(x < v->ir->vars.count);
  char name[128];
  if (v->vars[x].seen) FAIL(DEFINED_TWICE, "variable %s is defined twice", var_name(v->ir, x, name));
  v->vars[x] = (struct var_state){true, true, v->isolation, TIR_NONE};
  return true;
}

static bool define_buffer(struct verifier *v, tir_buffer b, tir_stmt where) {
  assert(b < v->ir->buffers.count);
  if (v->buffers_seen[b])
    FAIL(DEFINED_TWICE, "buffer %s is a parameter, allocated or matched twice", buffer_name(v->ir, b));
  if (v->ir->buffers.at[b].where != where)
    FAIL(LISTS, "buffer %s does not know that it is defined here", buffer_name(v->ir, b));
  v->buffers[b] = v->buffers_seen[b] = true;
  return true;
}

/* ---- Expressions ---- */

static bool check_expr(struct verifier *v, tir_expr e, bool guarded);

static bool check_var(struct verifier *v, tir_var x) {
  assert(x < v->ir->vars.count);
  char name[128];
  const struct var_state *state = &v->vars[x];
  if (!state->defined) FAIL(NOT_IN_SCOPE, "variable %s is used where it is not defined", var_name(v->ir, x, name));
  if (v->ir->vars.at[x].kind == TIR_VAR_LOOP && state->isolation < v->isolation)
    FAIL(ISOLATION, "loop variable %s is used inside block %s", var_name(v->ir, x, name),
         tir_block_name(v->ir, v->block));
  return true;
}

static bool check_in_scope(struct verifier *v, tir_buffer b) {
  assert(b < v->ir->buffers.count);
  if (!v->buffers[b])
    FAIL(NOT_IN_SCOPE, "buffer %s is neither a parameter nor allocated around its use", buffer_name(v->ir, b));
  return true;
}

static bool is_index_type(tir_type t) { return tir_type_is_int(t) || tir_type_code(t) == TIR_BOOL; }

static bool check_load(struct verifier *v, const struct tir_expr_node *n, bool guarded) {
  assert(n->kind == TIR_LOAD);
  const struct tir_buffer_node *b = &v->ir->buffers.at[n->ref];
  if (!check_in_scope(v, n->ref)) return false;
  if (n->count != b->rank)
    FAIL(RANK, "buffer %s of %u dimensions is read with %u indices", tir_text(v->ir, b->name), b->rank, n->count);
  const tir_expr *indices = tir_operands(v->ir, n->operands);
  for (uint32_t d = 0; d < n->count; d++)
    if (!is_index_type(tir_type_of(v->ir, indices[d])))
      FAIL(TYPE, "index %u of %s is no integer", d, tir_text(v->ir, b->name));
  struct touched t = {.buffer = n->ref, .ranges = indices, .guarded = guarded || n->a};
  return tir_verify_touch(v, v->block, &t);
}

static bool check_let(struct verifier *v, const struct tir_expr_node *n, bool guarded) {
  assert(n->kind == TIR_LET);
  if (!check_expr(v, n->a, guarded)) return false;
  bool was = v->vars[n->ref].defined;
  v->vars[n->ref] = (struct var_state){true, true, v->isolation, TIR_NONE};
  bool ok = check_expr(v, n->b, guarded);
  v->vars[n->ref].defined = was;
  return ok;
}

static bool is_call_of(const struct verifier *v, const struct tir_expr_node *n, const char *name) {
  return n->kind == TIR_CALL && !strcmp(tir_text(v->ir, n->ref), name);
}

/* The operands of some expressions are reached only if a condition holds. */
static bool check_operands(struct verifier *v, const struct tir_expr_node *n, bool guarded) {
  bool chooses = is_call_of(v, n, "if_then_else");
  for (uint32_t i = 0; i < n->count; i++)
    if (!check_expr(v, v->ir->operands.at[n->operands + i], guarded || (chooses && i > 0))) return false;
  return true;
}

static bool check_types(struct verifier *v, const struct tir_expr_node *n) {
  if (n->kind < TIR_ADD || n->kind > TIR_OR) return true;
  tir_type a = tir_type_with_lanes(tir_type_of(v->ir, n->a), 1), b = tir_type_with_lanes(tir_type_of(v->ir, n->b), 1);
  char x[24], y[24];
  if (a != b) FAIL(TYPE, "an operator joins %s and %s", tir_type_text(a, x), tir_type_text(b, y));
  return true;
}

/* Each expression is looked at once a statement; what is guarded once and not elsewhere is looked at as first met. */
static bool check_expr(struct verifier *v, tir_expr e, bool guarded) {
  if (e == TIR_NONE || v->expr_seen_at[e] == v->stamp) return true;
  const struct tir_expr_node *n = tir_at(v->ir, e);
  if (n->kind != TIR_LET) v->expr_seen_at[e] = v->stamp;
  switch ((enum tir_kind)n->kind) {
  case TIR_INT_IMM:
  case TIR_FLOAT_IMM: return true;
  case TIR_VAR: return check_var(v, n->ref);
  case TIR_DATA: return check_in_scope(v, n->ref);
  case TIR_LET: return check_let(v, n, guarded);
  case TIR_SELECT: return check_expr(v, n->a, guarded) && check_expr(v, n->b, true) && check_expr(v, n->c, true);
  case TIR_AND:
  case TIR_OR: return check_types(v, n) && check_expr(v, n->a, guarded) && check_expr(v, n->b, true);
  case TIR_LOAD:
    if (!check_load(v, n, guarded) || !check_expr(v, n->a, guarded)) return false;
    return check_operands(v, n, guarded || n->a);
  case TIR_CALL:
    if (is_call_of(v, n, "comm_reducer")) return true; /* its variables are its own */
    return check_operands(v, n, guarded);
  default: break;
  }
  if (!check_types(v, n)) return false;
  return check_expr(v, n->a, guarded) && check_expr(v, n->b, guarded) && check_expr(v, n->c, guarded) &&
         check_operands(v, n, guarded);
}

static bool check_condition(struct verifier *v, tir_expr e) {
  if (tir_type_code(tir_type_of(v->ir, e)) != TIR_BOOL && !tir_type_is_int(tir_type_of(v->ir, e)))
    FAIL(TYPE, "a condition is no truth value");
  return check_expr(v, e, false);
}

/* ---- Buffers ---- */

/* Iterations and extents are counted in types that hold their sums and products: of 8 and 16 bits, and of uint32, what
 * a fused loop counts would wrap, and so would sizes in bytes. */
static bool counts(tir_type type) { return type == TIR_T_I32 || type == TIR_T_I64; }

/* A variable that stands alone as an extent, stride or offset, or in a multiple of it, is defined by the buffer, if
 * nothing else defines it. */
static bool check_layout_expr(struct verifier *v, tir_expr e, bool binds) {
  const struct tir_expr_node *n = tir_at(v->ir, e);
  if (binds && n->kind == TIR_VAR && !v->vars[n->ref].seen) return define_var(v, n->ref);
  if (binds && n->kind == TIR_MUL && tir_is_int(v->ir, n->b)) return check_layout_expr(v, n->a, binds);
  if (binds && n->kind == TIR_MUL && tir_is_int(v->ir, n->a)) return check_layout_expr(v, n->b, binds);
  return check_expr(v, e, false);
}

static bool check_layout(struct verifier *v, tir_buffer buffer, bool binds) {
  const struct tir_buffer_node *b = &v->ir->buffers.at[buffer];
  char text[24];
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr extent = tir_operands(v->ir, b->shape)[d];
    if (!counts(tir_type_of(v->ir, extent)))
      FAIL(TYPE, "an extent of %s is %s; extents are int32 or int64", buffer_name(v->ir, buffer),
           tir_type_text(tir_type_of(v->ir, extent), text));
    if (!check_layout_expr(v, extent, binds)) return false;
  }
  for (uint32_t d = 0; d < b->strides.count; d++)
    if (!check_layout_expr(v, tir_operands(v->ir, b->strides.first)[d], binds)) return false;
  if (b->elem_offset && !check_layout_expr(v, b->elem_offset, binds)) return false;
  return check_expr(v, b->data, false);
}

static bool check_params(struct verifier *v, const struct tir_func_node *f) {
  const struct tir_param *params = v->ir->params.at + f->params.first;
  for (uint32_t i = 0; i < f->params.count; i++)
    if (params[i].var && !define_var(v, params[i].var)) return false;
  for (uint32_t i = 0; i < f->params.count; i++)
    if (params[i].buffer && (!define_buffer(v, params[i].buffer, TIR_NONE) || !check_layout(v, params[i].buffer, true)))
      return false;
  return true;
}

static bool check_match(struct verifier *v, tir_block b, const struct tir_match *m) {
  const struct tir_buffer_node *view = &v->ir->buffers.at[m->buffer], *source = &v->ir->buffers.at[m->source.buffer];
  const tir_expr *ranges = tir_operands(v->ir, m->source.ranges);
  if (!check_in_scope(v, m->source.buffer)) return false;
  for (uint32_t i = 0; i < 2 * source->rank; i++)
    if (!check_expr(v, ranges[i], false)) return false;
  if (view->rank > source->rank)
    FAIL(RANK, "%s has more dimensions than %s, which it views", buffer_name(v->ir, m->buffer),
         buffer_name(v->ir, m->source.buffer));
  if (view->type != source->type)
    FAIL(TYPE, "%s and %s, which it views, differ in type", buffer_name(v->ir, m->buffer),
         buffer_name(v->ir, m->source.buffer));
  struct touched t = {.buffer = m->source.buffer,
                      .ranges = ranges,
                      .region = true,
                      .either = true,
                      .guarded = tir_is_guarded(v->ir, b, TIR_NONE)};
  return tir_verify_touch(v, b, &t) && define_buffer(v, m->buffer, b) && check_layout(v, m->buffer, true);
}

/* ---- Blocks ---- */

static bool is_const_int(const struct tir *ir, tir_expr e) { return e && tir_is_int(ir, e); }

static bool check_iters(struct verifier *v, tir_block b) {
  const struct tir_iter *iters = tir_iters(v->ir, b);
  char name[128], type[24];
  for (uint32_t i = 0; i < tir_block_at(v->ir, b)->iters.count; i++) {
    const struct tir_var_node *x = &v->ir->vars.at[iters[i].var];
    if (x->kind != TIR_VAR_ITER || !x->min)
      FAIL(DOMAIN, "iteration variable %s has no domain", var_name(v->ir, iters[i].var, name));
    if (tir_type_of(v->ir, iters[i].binding) != x->type)
      FAIL(TYPE, "iteration variable %s and its binding differ in type", var_name(v->ir, iters[i].var, name));
    if (!counts(x->type))
      FAIL(TYPE, "iteration variable %s is %s; iterations are int32 or int64", var_name(v->ir, iters[i].var, name),
           tir_type_text(x->type, type));
    if (tir_type_of(v->ir, x->min) != x->type || (x->extent && tir_type_of(v->ir, x->extent) != x->type))
      FAIL(TYPE, "iteration variable %s and its domain differ in type", var_name(v->ir, iters[i].var, name));
    if (is_const_int(v->ir, x->extent) && tir_at(v->ir, x->extent)->imm < 0)
      FAIL(DOMAIN, "iteration variable %s has a negative extent", var_name(v->ir, iters[i].var, name));
    if (!check_expr(v, iters[i].binding, false) || !check_expr(v, x->min, false) || !check_expr(v, x->extent, false))
      return false;
  }
  return true;
}

static bool define_iters(struct verifier *v, tir_block b) {
  const struct tir_iter *iters = tir_iters(v->ir, b);
  for (uint32_t i = 0; i < tir_block_at(v->ir, b)->iters.count; i++) {
    if (!define_var(v, iters[i].var)) return false;
    v->vars[iters[i].var].iter_of = b;
  }
  return true;
}

static bool check_regions(struct verifier *v, struct tir_span regions) {
  for (uint32_t i = 0; i < regions.count; i++) {
    const struct tir_region *r = &v->ir->regions.at[regions.first + i];
    if (!check_in_scope(v, r->buffer)) return false;
    for (uint32_t d = 0; d < 2 * v->ir->buffers.at[r->buffer].rank; d++)
      if (!check_expr(v, tir_operands(v->ir, r->ranges)[d], true)) return false;
  }
  return true;
}

/* What a block says it touches is within what the block around it says. */
static bool check_regions_within(struct verifier *v, tir_block b, struct tir_span regions, bool writes) {
  assert(tir_is(v->ir, b, TIR_BLOCK));
  tir_block outer = tir_parent_block(v->ir, b);
  bool guarded = tir_is_guarded(v->ir, b, TIR_NONE);
  for (uint32_t i = 0; i < regions.count; i++) {
    const struct tir_region *r = &v->ir->regions.at[regions.first + i];
    struct touched t = {r->buffer, tir_operands(v->ir, r->ranges), true, writes, false, guarded, b};
    if (!tir_verify_touch(v, outer, &t)) return false;
  }
  return true;
}

static bool enter_block(struct verifier *v, tir_block b) {
  const struct tir_block_record *r = tir_block_at(v->ir, b);
  if (tir_as(v->ir, b, TIR_BLOCK)->block.predicate && !check_condition(v, tir_as(v->ir, b, TIR_BLOCK)->block.predicate))
    return false;
  if (!check_iters(v, b)) return false;
  v->isolation += r->iters.count > 0;
  v->block = b;
  v->stamp++; /* checked again inside, where outer loop variables are not in scope */
  if (!define_iters(v, b)) return false;
  for (uint32_t i = 0; i < r->allocs.count; i++) {
    tir_buffer buffer = v->ir->operands.at[r->allocs.first + i];
    if (!check_layout(v, buffer, false) || !define_buffer(v, buffer, b)) return false;
  }
  if (!check_regions(v, r->reads) || !check_regions(v, r->writes)) return false;
  if (!check_regions_within(v, b, r->reads, false) || !check_regions_within(v, b, r->writes, true)) return false;
  for (uint32_t i = 0; i < r->matches.count; i++)
    if (!check_match(v, b, &v->ir->matches.at[r->matches.first + i])) return false;
  return true;
}

static void leave_block(struct verifier *v, tir_block b) {
  assert(v->block == b); /* blocks inside were left before */
  const struct tir_block_record *r = tir_block_at(v->ir, b);
  const struct tir_iter *iters = tir_iters(v->ir, b);
  for (uint32_t i = 0; i < r->iters.count; i++) v->vars[iters[i].var].defined = false;
  for (uint32_t i = 0; i < r->allocs.count; i++) v->buffers[v->ir->operands.at[r->allocs.first + i]] = false;
  for (uint32_t i = 0; i < r->matches.count; i++) v->buffers[v->ir->matches.at[r->matches.first + i].buffer] = false;
  v->isolation -= r->iters.count > 0;
  v->block = tir_parent_block(v->ir, b);
}

/* ---- Other statements ---- */

static bool enter_loop(struct verifier *v, tir_loop l) {
  const struct tir_stmt_node *n = tir_stmt_at(v->ir, l);
  const struct tir_var_node *x = &v->ir->vars.at[n->loop.var];
  char name[128], type[24];
  if (!check_expr(v, n->loop.min, false) || !check_expr(v, n->loop.extent, false)) return false;
  if (x->kind != TIR_VAR_LOOP || x->min != n->loop.min || x->extent != n->loop.extent)
    FAIL(DOMAIN, "loop variable %s has another domain than its loop", var_name(v->ir, n->loop.var, name));
  if (tir_type_of(v->ir, n->loop.min) != x->type || tir_type_of(v->ir, n->loop.extent) != x->type)
    FAIL(TYPE, "loop variable %s and its range differ in type", var_name(v->ir, n->loop.var, name));
  if (!counts(x->type))
    FAIL(TYPE, "loop variable %s is %s; loops count in int32 or int64", var_name(v->ir, n->loop.var, name),
         tir_type_text(x->type, type));
  if ((n->loop_kind == TIR_THREAD_BINDING) != (n->loop.thread != TIR_NONE))
    FAIL(DOMAIN, "loop %s: a thread goes with a thread binding", var_name(v->ir, n->loop.var, name));
  return define_var(v, n->loop.var);
}

static bool check_store(struct verifier *v, tir_stmt s) {
  assert(tir_is(v->ir, s, TIR_STORE));
  const struct tir_stmt_node *n = tir_stmt_at(v->ir, s);
  const struct tir_buffer_node *b = &v->ir->buffers.at[n->store.buffer];
  const tir_expr *indices = tir_operands(v->ir, n->store.indices);
  bool guarded = tir_is_guarded(v->ir, s, TIR_NONE);
  char x[24], y[24];
  if (!check_in_scope(v, n->store.buffer)) return false;
  for (uint32_t d = 0; d < b->rank; d++) {
    if (!check_expr(v, indices[d], guarded)) return false;
    if (!is_index_type(tir_type_of(v->ir, indices[d])))
      FAIL(TYPE, "index %u of %s is no integer", d, tir_text(v->ir, b->name));
  }
  tir_type value = tir_type_of(v->ir, n->store.value);
  if (tir_type_with_lanes(value, 1) != tir_type_with_lanes(b->type, 1))
    FAIL(TYPE, "%s of %s is stored a value of %s", tir_text(v->ir, b->name), tir_type_text(b->type, x),
         tir_type_text(value, y));
  if (!check_expr(v, n->store.value, guarded) || !check_expr(v, n->store.predicate, guarded)) return false;
  struct touched t = {
      .buffer = n->store.buffer, .ranges = indices, .writes = true, .guarded = guarded || n->store.predicate};
  return tir_verify_touch(v, v->block, &t);
}

/* The variable that an attribute defines for its body: a thread's; TIR_NONE: none. */
static tir_var thread_var(const struct tir *ir, const struct tir_stmt_node *n) {
  const char *key = tir_text(ir, n->attr.key);
  if (strcmp(key, "thread_extent") && strcmp(key, "virtual_thread")) return TIR_NONE;
  return n->attr.node && tir_at(ir, n->attr.node)->kind == TIR_VAR ? tir_at(ir, n->attr.node)->ref : TIR_NONE;
}

static bool check_attr(struct verifier *v, const struct tir_stmt_node *n) {
  tir_var x = thread_var(v->ir, n);
  /* Several launches may share a thread's variable. */
  if (x) v->vars[x] = (struct var_state){true, true, v->isolation, TIR_NONE};
  return check_expr(v, n->attr.node, true) && check_expr(v, n->attr.value, true);
}

/* A view of data may be declared of what something else allocates. */
static bool check_declared(struct verifier *v, tir_stmt s) {
  tir_buffer b = tir_stmt_at(v->ir, s)->alloc.buffer;
  return check_layout(v, b, tir_is(v->ir, s, TIR_DECLARE)) && define_buffer(v, b, s);
}

static bool enter(struct verifier *v, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(v->ir, s);
  v->place = s;
  v->stamp++;
  switch ((enum tir_stmt_kind)n->kind) {
  case TIR_LOOP: return enter_loop(v, s);
  case TIR_BLOCK: return enter_block(v, s);
  case TIR_STORE: return check_store(v, s);
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT: return check_condition(v, n->test.condition);
  case TIR_BIND: return check_expr(v, n->bind.value, tir_is_guarded(v->ir, s, TIR_NONE)) && define_var(v, n->bind.var);
  case TIR_EVALUATE: return check_expr(v, n->evaluate.value, tir_is_guarded(v->ir, s, TIR_NONE));
  case TIR_ATTR: return check_attr(v, n);
  case TIR_ALLOC:
  case TIR_DECLARE: return check_declared(v, s);
  default: return true;
  }
}

/* What a flat statement defines ends with its list. */
static void end_list(struct verifier *v, tir_stmt last) {
  for (tir_stmt s = last; s; s = tir_stmt_at(v->ir, s)->prev) {
    const struct tir_stmt_node *n = tir_stmt_at(v->ir, s);
    if (n->kind == TIR_BIND) v->vars[n->bind.var].defined = false;
    if (n->kind == TIR_ALLOC || n->kind == TIR_DECLARE) v->buffers[n->alloc.buffer] = false;
  }
}

static void leave(struct verifier *v, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(v->ir, s);
  if (n->kind == TIR_LOOP) v->vars[n->loop.var].defined = false;
  if (n->kind == TIR_ATTR) v->vars[thread_var(v->ir, n)].defined = false;
  if (n->kind == TIR_BLOCK) leave_block(v, s);
}

/* ---- The walk ---- */

/* The list of a parent that comes after `list`, in order of text. */
static tir_stmt next_list(const struct tir *ir, tir_stmt parent, int list) {
  bool block = tir_is(ir, parent, TIR_BLOCK);
  int second = block ? TIR_BODY : TIR_ELSE;
  return list != second ? tir_stmt_at(ir, parent)->first[second] : TIR_NONE;
}

static tir_stmt first_child(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  int first = n->kind == TIR_BLOCK ? TIR_INIT : TIR_BODY;
  return n->first[first] ? n->first[first] : n->first[!first];
}

static bool walk(struct verifier *v, tir_stmt top) {
  assert(top && v->block == TIR_NONE && !v->isolation);
  tir_stmt s = top;
  for (;;) {
    if (!enter(v, s)) return false;
    tir_stmt next = first_child(v->ir, s);
    while (!next) { /* s is done: on to what follows, closing what ends */
      leave(v, s);
      if (s == top) return true;
      const struct tir_stmt_node *n = tir_stmt_at(v->ir, s);
      next = n->next;
      if (next) break;
      end_list(v, s);
      next = next_list(v->ir, n->parent, n->list);
      s = n->parent;
    }
    s = next;
  }
}

static bool verify_func(struct verifier *v, tir_func f) {
  const struct tir_func_node *n = &v->ir->funcs.at[f];
  const struct tir_param *params = v->ir->params.at + n->params.first;
  v->place = n->body;
  v->block = TIR_NONE;
  v->isolation = 0;
  if (!check_params(v, n) || !walk(v, n->body)) return false;
  for (uint32_t i = 0; i < n->params.count; i++) v->buffers[params[i].buffer] = false;
  return true;
}

static bool verify(const struct tir *ir, struct tir_verified since, bool regions, ms_error *err) {
  if (!tir_verify_storage(ir, since, err)) return false;
  struct verifier v = {.ir = ir, .err = err, .trusts_regions = !regions};
  v.vars = calloc(ir->vars.count + 1, sizeof *v.vars);
  v.buffers = calloc(ir->buffers.count + 1, sizeof *v.buffers);
  v.buffers_seen = calloc(ir->buffers.count + 1, sizeof *v.buffers_seen);
  v.expr_seen_at = calloc(ir->exprs.count + 1, sizeof *v.expr_seen_at);
  if (!v.vars || !v.buffers || !v.buffers_seen || !v.expr_seen_at) abort();
  bool ok = true;
  for (tir_func f = 1; f < ir->funcs.count && ok; f++) ok = verify_func(&v, f) && tir_verify_workspace(ir, f, err);
  free(v.vars);
  free(v.buffers);
  free(v.buffers_seen);
  free(v.expr_seen_at);
  return ok;
}

static const struct tir_verified nothing = {1, 0};

bool tir_verify(const struct tir *ir, ms_error *err) { return verify(ir, nothing, true, err); }

bool tir_verify_scopes(const struct tir *ir, ms_error *err) { return verify(ir, nothing, false, err); }

bool tir_verify_new(struct tir *ir, bool regions, ms_error *err) {
  bool ok = verify(ir, ir->verified.exprs ? ir->verified : nothing, regions, err);
  if (ok) ir->verified = (struct tir_verified){ir->exprs.count, ir->terms.count};
  return ok;
}
