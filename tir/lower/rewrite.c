/* Walking and rewriting the accesses of statements: what several passes share. */
#include "lower.h"

#include "tir/analysis/loads.h"
#include "tir/node/node_map.h"

#include <stdlib.h>
#include <string.h>

struct rewriting {
  struct tir *ir;
  uint32_t flags; /* nodes with none of these below them stay as they are; 0: all are met */
  rewrite_access *rewrite;
  map_node *map; /* both NULL: choices are decided */
  void *data;
  const tir_expr *known; /* conditions that hold */
  uint32_t count;
  struct tir_node_map made; /* what became of each node */
};

static tir_expr rewrite_in(struct rewriting *r, tir_expr e);

tir_expr lower_assume(struct tir *ir, tir_expr condition, const tir_expr *known, uint32_t count) {
  struct tir_expr_node n = *tir_at(ir, condition);
  for (uint32_t i = 0; i < count; i++)
    if (known[i] == condition) return tir_int(ir, TIR_T_BOOL, 1);
  if (n.kind != TIR_AND) return condition;
  return tir_binary(ir, TIR_AND, lower_assume(ir, n.a, known, count), lower_assume(ir, n.b, known, count));
}

/* What is chosen, where the condition is certain: a condition costs more than what it guards. */
static tir_expr choose(struct rewriting *r, struct tir_expr_node n, tir_expr *operands) {
  struct tir *ir = r->ir;
  operands[0] = tir_simplify(ir, lower_assume(ir, operands[0], r->known, r->count));
  if (tir_is_int(ir, operands[0])) return operands[tir_at(ir, operands[0])->imm ? 1 : 2];
  return tir_call(ir, n.type, n.ref, operands, n.count);
}

static tir_expr with_operands(struct rewriting *r, struct tir_expr_node n) {
  struct tir *ir = r->ir;
  tir_expr on_stack[TIR_MOST_RANK], *operands = tir_room(on_stack, sizeof on_stack, n.count * sizeof *operands);
  for (uint32_t i = 0; i < n.count; i++) operands[i] = rewrite_in(r, ir->operands.at[n.operands + i]);
  tir_expr made;
  if (n.kind == TIR_CALL && !r->rewrite && !r->map && tir_is_choice(ir, &n)) {
    made = choose(r, n, operands);
  } else if (n.kind == TIR_CALL) {
    made = tir_call(ir, n.type, n.ref, operands, n.count);
  } else {
    struct access a = {.buffer = n.ref, .count = n.count};
    assert(n.count <= TIR_MOST_RANK);
    memcpy(a.indices, operands, n.count * sizeof *operands);
    if (r->rewrite) r->rewrite(ir, r->data, &a);
    assert(a.count <= TIR_MOST_RANK && tir_is_buffer(ir, a.buffer));
    tir_expr predicate = rewrite_in(r, n.a);
    made = tir_load(ir, a.buffer, a.indices, a.count, predicate);
  }
  if (operands != on_stack) free(operands);
  return made;
}

static tir_expr rewrite_node(struct rewriting *r, tir_expr e) {
  struct tir_expr_node n = *tir_at(r->ir, e);
  if (n.kind == TIR_LOAD || n.kind == TIR_CALL) return with_operands(r, n);
  if (n.kind <= TIR_DATA || n.count) return e;
  tir_expr a = rewrite_in(r, n.a), b = rewrite_in(r, n.b), c = rewrite_in(r, n.c);
  return a == n.a && b == n.b && c == n.c ? e : tir_rebuild(r->ir, n, a, b, c);
}

static bool is_met(const struct rewriting *r, tir_expr e) {
  return e && (!r->flags || (tir_at(r->ir, e)->flags & r->flags));
}

static tir_expr rewrite_in(struct rewriting *r, tir_expr e) {
  bool fresh;
  if (!is_met(r, e)) return e;
  tir_expr known = *tir_node_map_at(&r->made, e, 0, &fresh);
  if (!fresh) return known;
  tir_expr made = rewrite_node(r, e);
  if (r->map) made = r->map(r->ir, r->data, e, made);
  return *tir_node_map_at(&r->made, e, 0, &fresh) = made;
}

/* What becomes of an access is another thing in another statement; what becomes of a node is not. */
static tir_expr rewrite_whole(struct rewriting *r, tir_expr e) {
  if (!is_met(r, e) || r->map) return rewrite_in(r, e);
  tir_node_map_init(&r->made);
  tir_expr made = rewrite_in(r, e);
  tir_node_map_free(&r->made);
  return made;
}

static struct rewriting of_accesses(struct tir *ir, rewrite_access *rewrite, void *data) {
  return (struct rewriting){.ir = ir, .flags = TIR_HAS_LOAD | TIR_HAS_CALL, .rewrite = rewrite, .data = data};
}

tir_expr lower_assume_choices(struct tir *ir, tir_expr e, const tir_expr *known, uint32_t count) {
  struct rewriting r = of_accesses(ir, NULL, NULL);
  r.known = known, r.count = count;
  return rewrite_whole(&r, e);
}

tir_expr lower_decide_choices(struct tir *ir, tir_expr e) { return lower_assume_choices(ir, e, NULL, 0); }

static void rewrite_store(struct rewriting *r, tir_stmt s) {
  struct tir *ir = r->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  struct access a = {.buffer = n.store.buffer, .count = tir_buffer_at(ir, n.store.buffer)->rank};
  assert(a.count <= TIR_MOST_RANK);
  for (uint32_t i = 0; i < a.count; i++) a.indices[i] = rewrite_whole(r, ir->operands.at[n.store.indices + i]);
  if (r->rewrite) r->rewrite(ir, r->data, &a);
  uint32_t indices = tir_add_operands(ir, a.indices, a.count);
  tir_expr value = rewrite_whole(r, n.store.value), predicate = rewrite_whole(r, n.store.predicate);
  struct tir_stmt_node *to = tir_stmt_at(ir, s);
  to->store.buffer = a.buffer;
  to->store.indices = indices;
  to->store.value = value;
  to->store.predicate = predicate;
}

static void rewrite_range(struct rewriting *r, tir_loop loop) {
  struct tir_stmt_node n = *tir_stmt_at(r->ir, loop);
  tir_expr min = rewrite_whole(r, n.loop.min);
  tir_set_loop_range(r->ir, loop, min, rewrite_whole(r, n.loop.extent));
}

static void rewrite_stmt(struct rewriting *r, tir_stmt s) {
  struct tir *ir = r->ir;
  tir_expr made;
  switch (tir_stmt_at(ir, s)->kind) {
  case TIR_STORE: rewrite_store(r, s); break;
  case TIR_LOOP: rewrite_range(r, s); break;
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT:
    made = rewrite_whole(r, tir_stmt_at(ir, s)->test.condition);
    tir_stmt_at(ir, s)->test.condition = made;
    break;
  case TIR_BIND:
    made = rewrite_whole(r, tir_as(ir, s, TIR_BIND)->bind.value);
    tir_as(ir, s, TIR_BIND)->bind.value = made;
    break;
  case TIR_EVALUATE:
    made = rewrite_whole(r, tir_as(ir, s, TIR_EVALUATE)->evaluate.value);
    tir_as(ir, s, TIR_EVALUATE)->evaluate.value = made;
    break;
  case TIR_ATTR:
    made = rewrite_whole(r, tir_as(ir, s, TIR_ATTR)->attr.value);
    tir_as(ir, s, TIR_ATTR)->attr.value = made;
    break;
  case TIR_DECLARE: /* a view may begin at an element of what is rewritten */
    made = rewrite_whole(r, tir_buffer_at(ir, tir_stmt_at(ir, s)->alloc.buffer)->data);
    tir_buffer_at(ir, tir_stmt_at(ir, s)->alloc.buffer)->data = made;
    break;
  default: break;
  }
}

static void rewrite_all(struct rewriting *r, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(r->ir, s, top)) rewrite_stmt(r, s);
}

void lower_rewrite(struct tir *ir, tir_stmt top, rewrite_access *rewrite, void *data) {
  struct rewriting r = of_accesses(ir, rewrite, data);
  rewrite_all(&r, top);
}

void lower_rewrite_stmt(struct tir *ir, tir_stmt s, rewrite_access *rewrite, void *data) {
  struct rewriting r = of_accesses(ir, rewrite, data);
  rewrite_stmt(&r, s);
}

void lower_map(struct tir *ir, tir_stmt top, uint32_t flags, map_node *map, void *data) {
  assert(map && !tir_is(ir, top, TIR_DEAD));
  struct rewriting r = {.ir = ir, .flags = flags, .map = map, .data = data};
  tir_node_map_init(&r.made);
  rewrite_all(&r, top);
  tir_node_map_free(&r.made);
}

/* ---- Making ---- */

tir_expr lower_constant(struct tir *ir, tir_type type, double value) {
  tir_type scalar = tir_type_with_lanes(type, 1);
  bool real = tir_type_is_float(type);
  tir_expr one = real ? tir_float(ir, scalar, value) : tir_int(ir, scalar, (int64_t)value);
  return tir_type_lanes(type) == 1 ? one : tir_unary(ir, TIR_BROADCAST, type, one);
}

bool lower_is_constant(const struct tir *ir, tir_expr e, double *value) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_BROADCAST) n = tir_at(ir, n->a);
  if (n->kind != TIR_FLOAT_IMM) return false;
  *value = n->real;
  return true;
}

struct lower_named lower_name(struct tir *ir, tir_expr value) {
  if (tir_at(ir, value)->kind <= TIR_VAR) return (struct lower_named){TIR_NONE, value, value};
  tir_var var = tir_new_let(ir, tir_name_of(ir, "part"), value);
  return (struct lower_named){var, value, tir_var_expr(ir, var)};
}

tir_expr lower_with_named(struct tir *ir, struct lower_named n, tir_expr body) {
  return n.var ? tir_let(ir, n.var, n.value, body) : body;
}

/* ---- Visiting ---- */

struct visiting {
  struct tir *ir;
  visit_access *visit;
  void *data;
  tir_stmt s;
};

static bool visit_load(void *data, tir_expr e) {
  struct visiting *v = data;
  const struct tir_expr_node *n = tir_at(v->ir, e);
  if (n->kind == TIR_LOAD) {
    struct access a = {.buffer = n->ref, .count = n->count};
    assert(n->count <= TIR_MOST_RANK);
    memcpy(a.indices, v->ir->operands.at + n->operands, n->count * sizeof *a.indices);
    v->visit(v->ir, v->data, v->s, &a, false);
  }
  return (tir_at(v->ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_CALL)) != 0;
}

/* What is loaded to say where the block runs. */
static void visit_place(struct visiting *v, tir_block block) {
  struct tir *ir = v->ir;
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    tir_walk_expr(ir, ir->iters.at[i].binding, visit_load, v);
  if (tir_as(ir, block, TIR_BLOCK)->block.predicate)
    tir_walk_expr(ir, tir_as(ir, block, TIR_BLOCK)->block.predicate, visit_load, v);
}

void lower_visit_stmt(struct tir *ir, tir_stmt s, visit_access *visit, void *data) {
  struct visiting v = {ir, visit, data, s};
  if (tir_is(ir, s, TIR_BLOCK)) visit_place(&v, s);
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(ir, s, all);
  for (uint32_t i = 0; i < count; i++) tir_walk_expr(ir, all[i], visit_load, &v);
  if (!tir_is(ir, s, TIR_STORE)) return;
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  struct access a = {.buffer = n.store.buffer, .count = tir_buffer_at(ir, n.store.buffer)->rank};
  for (uint32_t i = 0; i < a.count; i++) {
    a.indices[i] = ir->operands.at[n.store.indices + i];
    tir_walk_expr(ir, a.indices[i], visit_load, &v);
  }
  visit(ir, data, s, &a, true);
}

void lower_visit(struct tir *ir, tir_stmt top, visit_access *visit, void *data) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) lower_visit_stmt(ir, s, visit, data);
}

/* ---- Who names a buffer ---- */

struct naming {
  const struct tir *ir;
  struct lower_users *users;
  tir_stmt s;
  uint32_t capacity;
};

static void note_user(struct naming *n, tir_buffer buffer) {
  struct lower_users *u = n->users;
  uint32_t last = u->last[buffer];
  if (last && u->at[last].s == n->s) return;
  if (u->count >= n->capacity) u->at = tir_enlarge(u->at, &n->capacity, u->count + 1ull, sizeof *u->at);
  u->at[u->count] = (struct lower_user){n->s, 0};
  *(last ? &u->at[last].next : &u->first[buffer]) = u->count;
  u->last[buffer] = u->count++;
}

static bool note_named(void *data, tir_expr e) {
  struct naming *n = data;
  const struct tir_expr_node *node = tir_at(n->ir, e);
  if (node->kind == TIR_LOAD || node->kind == TIR_DATA) note_user(n, node->ref);
  return node->flags & (TIR_HAS_LOAD | TIR_HAS_CALL | TIR_HAS_POINTER);
}

static void note_block(struct naming *n) {
  const struct tir *ir = n->ir;
  const struct tir_block_record *b = tir_block_at(ir, n->s);
  for (uint32_t i = 0; i < b->iters.count; i++)
    tir_walk_expr(ir, ir->iters.at[b->iters.first + i].binding, note_named, n);
  tir_expr predicate = tir_stmt_at(ir, n->s)->block.predicate;
  if (predicate) tir_walk_expr(ir, predicate, note_named, n);
  for (uint32_t i = 0; i < b->matches.count; i++) note_user(n, ir->matches.at[b->matches.first + i].source.buffer);
  for (uint32_t i = 0; i < b->reads.count; i++) note_user(n, ir->regions.at[b->reads.first + i].buffer);
  for (uint32_t i = 0; i < b->writes.count; i++) note_user(n, ir->regions.at[b->writes.first + i].buffer);
}

struct lower_users lower_find_users(const struct tir *ir, tir_stmt top) {
  struct lower_users users = {calloc(ir->buffers.count, sizeof *users.first),
                              calloc(ir->buffers.count, sizeof *users.last), NULL, 1};
  struct naming n = {.ir = ir, .users = &users};
  if (!users.first || !users.last) abort();
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, s, all);
    n.s = s;
    for (uint32_t i = 0; i < count; i++)
      if (all[i]) tir_walk_expr(ir, all[i], note_named, &n);
    if (tir_is(ir, s, TIR_BLOCK)) note_block(&n);
    if (!tir_is(ir, s, TIR_STORE)) continue;
    tir_buffer buffer = tir_stmt_at(ir, s)->store.buffer;
    note_user(&n, buffer);
    for (uint32_t i = 0; i < tir_buffer_at(ir, buffer)->rank; i++)
      tir_walk_expr(ir, ir->operands.at[tir_stmt_at(ir, s)->store.indices + i], note_named, &n);
  }
  return users;
}

void lower_free_users(struct lower_users *users) {
  free(users->first);
  free(users->last);
  free(users->at);
}

static bool views_buffer(const struct tir *ir, tir_stmt s, tir_buffer buffer) {
  if (!tir_is(ir, s, TIR_BLOCK)) return false;
  struct tir_span matches = tir_block_at(ir, s)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    if (ir->matches.at[i].source.buffer == buffer) return true;
  return false;
}

static bool places_by_buffer(const struct tir *ir, tir_stmt s, tir_buffer buffer) {
  if (!tir_is(ir, s, TIR_BLOCK)) return false;
  tir_expr predicate = tir_as(ir, s, TIR_BLOCK)->block.predicate;
  struct tir_span iters = tir_block_at(ir, s)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if (tir_uses_buffer(ir, ir->iters.at[i].binding, buffer)) return true;
  return predicate && tir_uses_buffer(ir, predicate, buffer);
}

bool lower_uses_buffer(const struct tir *ir, tir_stmt top, tir_buffer buffer) {
  assert(tir_is_buffer(ir, buffer));
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    tir_expr all[4] = {TIR_NONE};
    uint32_t count = tir_stmt_exprs(ir, s, all);
    if (views_buffer(ir, s, buffer) || places_by_buffer(ir, s, buffer)) return true;
    for (uint32_t i = 0; i < count; i++)
      if (all[i] && tir_uses_buffer(ir, all[i], buffer)) return true;
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind != TIR_STORE) continue;
    if (n->store.buffer == buffer) return true;
    for (uint32_t i = 0; i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
      if (tir_uses_buffer(ir, ir->operands.at[n->store.indices + i], buffer)) return true;
  }
  return false;
}

/* ---- Pointers ---- */

struct pointing {
  const struct tir *ir;
  uint8_t *taken;
  bool named; /* addresses of elements go by accesses: an instruction's */
};

static bool note_pointer(void *data, tir_expr e) {
  struct pointing *p = data;
  const struct tir_expr_node *n = tir_at(p->ir, e);
  if (n->kind == TIR_DATA) p->taken[n->ref] = 1;
  if (n->kind == TIR_CALL && n->count == 1 && !p->named && !strcmp(tir_text(p->ir, n->ref), "address_of")) {
    const struct tir_expr_node *element = tir_at(p->ir, tir_operands(p->ir, n->operands)[0]);
    if (element->kind == TIR_LOAD) p->taken[element->ref] = 1;
  }
  return true;
}

uint8_t *lower_pointers(const struct tir *ir, tir_stmt top) {
  struct pointing p = {ir, calloc(ir->buffers.count, 1), false};
  if (!p.taken) abort();
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, s, all);
    p.named = lower_is_attr(ir, s, TIR_INSTRUCTION);
    for (uint32_t i = 0; i < count; i++) tir_walk_expr(ir, all[i], note_pointer, &p);
    if (n->kind == TIR_DECLARE && tir_buffer_at(ir, n->alloc.buffer)->data) p.taken[n->alloc.buffer] = 1;
  }
  return p.taken;
}

/* ---- Attributes ---- */

bool lower_is_attr(const struct tir *ir, tir_stmt s, const char *key) {
  return tir_is(ir, s, TIR_ATTR) && !strcmp(tir_text(ir, tir_stmt_at(ir, s)->attr.key), key);
}

tir_stmt lower_new_attr(struct tir *ir, const char *key, tir_expr value) {
  assert(key && *key);
  tir_stmt attr = tir_new_stmt(ir, TIR_ATTR);
  tir_symbol symbol = tir_symbol_of(ir, key);
  tir_expr none = tir_int(ir, TIR_T_I32, 0);
  struct tir_stmt_node *n = tir_stmt_at(ir, attr);
  n->attr.key = symbol, n->attr.node = none, n->attr.value = value ? value : none;
  return attr;
}

void lower_wrap_in_attr(struct tir *ir, tir_stmt s, const char *key, tir_expr value) {
  tir_wrap(ir, s, lower_new_attr(ir, key, value));
}
