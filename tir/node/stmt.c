/* The tree of statements: links, walks and edits in place. */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

/* ---- Walks ---- */

uint32_t tir_stmt_exprs(const struct tir *ir, tir_stmt s, tir_expr out[4]) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  switch (n->kind) {
  case TIR_LOOP: out[0] = n->loop.min, out[1] = n->loop.extent; return 2;
  case TIR_STORE: out[0] = n->store.value, out[1] = n->store.predicate; return 2;
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT: out[0] = n->test.condition; return 1;
  case TIR_BIND: out[0] = n->bind.value; return 1;
  case TIR_EVALUATE: out[0] = n->evaluate.value; return 1;
  case TIR_ATTR: out[0] = n->attr.node, out[1] = n->attr.value; return 2;
  case TIR_DECLARE: out[0] = tir_buffer_at(ir, n->alloc.buffer)->data; return 1;
  default: return 0;
  }
}

bool tir_is_below(const struct tir *ir, tir_stmt s, tir_stmt above) {
  for (s = tir_stmt_at(ir, s)->parent; s; s = tir_stmt_at(ir, s)->parent)
    if (s == above) return true;
  return false;
}

static uint32_t depth_of(const struct tir *ir, tir_stmt s) {
  uint32_t depth = 0;
  for (; tir_stmt_at(ir, s)->parent; s = tir_stmt_at(ir, s)->parent) depth++;
  return depth;
}

/* The positions of all statements of one list, the last that was asked about: lists are long where a function has many
 * blocks, and each of its blocks is compared with each other. */
struct order {
  uint32_t *positions; /* by statement */
  uint32_t capacity;
  tir_stmt parent; /* TIR_NONE: no list */
  uint8_t list;
  uint64_t links; /* when they were found: the positions hold while nothing is linked */
};

static void release_order(void *data) {
  struct order *o = data;
  free(o->positions);
}

/* Statements stay when expressions go, unless all of the module becomes another's. */
static void forget_order(void *data, const struct tir_mark *left) {
  struct order *o = data;
  if (!left->exprs) o->parent = TIR_NONE;
}

/* Whether a stands before b, both of one list. */
static bool is_numbered_before(const struct tir *ir, tir_stmt a, tir_stmt b) {
  static const struct tir_scratch_kind kind = {sizeof(struct order), release_order, forget_order};
  struct order *o = tir_scratch_of(ir, TIR_SCRATCH_ORDER, &kind);
  const struct tir_stmt_node *n = tir_stmt_at(ir, a);
  if (o->parent != n->parent || o->list != n->list || o->links != ir->scratch->links) {
    if (o->capacity < ir->stmts.count)
      o->positions = tir_enlarge(o->positions, &o->capacity, ir->stmts.count, sizeof *o->positions);
    uint32_t position = 0;
    for (tir_stmt s = tir_stmt_at(ir, n->parent)->first[n->list]; s; s = tir_stmt_at(ir, s)->next)
      o->positions[s] = position++;
    o->parent = n->parent, o->list = n->list, o->links = ir->scratch->links;
  }
  return o->positions[a] < o->positions[b];
}

/* Whether a stands before b, another one of its list: each is looked for some steps behind the other, then their
 * numbers say it. */
static bool is_listed_before(const struct tir *ir, tir_stmt a, tir_stmt b) {
  enum { FEW = 16 };
  tir_stmt behind_a = a, behind_b = b;
  for (int i = 0; i < FEW; i++) {
    behind_a = tir_stmt_at(ir, behind_a)->next;
    behind_b = tir_stmt_at(ir, behind_b)->next;
    if (behind_a == b || !behind_b) return true;
    if (behind_b == a || !behind_a) return false;
  }
  return is_numbered_before(ir, a, b);
}

int tir_compare_position(const struct tir *ir, tir_stmt a, tir_stmt b) {
  MS_CHECK(a && b);
  if (a == b) return 0;
  uint32_t da = depth_of(ir, a), db = depth_of(ir, b);
  int deeper = da < db ? -1 : 1; /* if one is above the other */
  for (; da > db; da--) a = tir_stmt_at(ir, a)->parent;
  for (; db > da; db--) b = tir_stmt_at(ir, b)->parent;
  if (a == b) return deeper;
  while (tir_stmt_at(ir, a)->parent != tir_stmt_at(ir, b)->parent) {
    a = tir_stmt_at(ir, a)->parent;
    b = tir_stmt_at(ir, b)->parent;
  }
  const struct tir_stmt_node *na = tir_stmt_at(ir, a), *nb = tir_stmt_at(ir, b);
  if (!na->parent) return a < b ? -1 : 1; /* two functions */
  if (na->list != nb->list) return (na->list == TIR_INIT) == tir_is(ir, na->parent, TIR_BLOCK) ? -1 : 1;
  return is_listed_before(ir, a, b) ? -1 : 1;
}

tir_block tir_parent_block(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n;
  for (s = tir_stmt_at(ir, s)->parent; s; s = n->parent)
    if ((n = tir_stmt_at(ir, s))->kind == TIR_BLOCK) break;
  return s;
}

tir_func tir_func_of(const struct tir *ir, tir_stmt s) {
  while (tir_stmt_at(ir, s)->parent) s = tir_stmt_at(ir, s)->parent;
  return tir_is(ir, s, TIR_FUNCTION) ? tir_as(ir, s, TIR_FUNCTION)->function.func : TIR_NONE;
}

tir_func tir_find_func(const struct tir *ir, const char *name) {
  for (tir_func f = 1; f < ir->funcs.count; f++)
    if (!strcmp(tir_text(ir, ir->funcs.at[f].name), name)) return f;
  return !strcmp(name, "main") && ir->funcs.count == 2 ? 1 : TIR_NONE;
}

tir_block tir_root_block(const struct tir *ir, tir_func f) {
  MS_CHECK(tir_is_func(ir, f));
  tir_stmt s = tir_stmt_at(ir, ir->funcs.at[f].body)->first[TIR_BODY];
  return s && tir_is(ir, s, TIR_BLOCK) && !tir_stmt_at(ir, s)->next ? s : TIR_NONE;
}

uint32_t tir_loops_of(const struct tir *ir, tir_stmt s, tir_loop *out, uint32_t most) {
  uint32_t count = 0;
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p && !tir_is(ir, p, TIR_BLOCK); p = tir_stmt_at(ir, p)->parent)
    count += tir_is(ir, p, TIR_LOOP);
  uint32_t i = count;
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; i > 0; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && --i < most) out[i] = p;
  return count;
}

uint32_t tir_child_blocks(const struct tir *ir, tir_stmt of, tir_block *out, uint32_t most) {
  uint32_t count = 0;
  tir_stmt start = tir_is(ir, of, TIR_BLOCK) ? tir_stmt_at(ir, of)->first[TIR_BODY] : tir_next(ir, of, of);
  for (tir_stmt s = start; s; s = tir_next_in_scope(ir, s, of)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (count < most) out[count] = s;
    count++;
  }
  return count;
}

tir_expr tir_annotation(const struct tir *ir, struct tir_span where, const char *key) {
  for (uint32_t i = where.first; i < where.first + where.count; i++)
    if (!strcmp(tir_text(ir, ir->annotations.at[i].key), key)) return ir->annotations.at[i].value;
  return TIR_NONE;
}

/* ---- Making ---- */

tir_stmt tir_new_if(struct tir *ir, tir_expr condition) {
  tir_stmt test = tir_new_stmt(ir, TIR_IF);
  tir_stmt_at(ir, test)->test.condition = condition;
  return test;
}

tir_loop tir_new_loop(struct tir *ir, tir_var var, tir_expr min, tir_expr extent, enum tir_loop_kind kind) {
  MS_CHECK(var && min && extent);
  tir_stmt s = tir_new_stmt(ir, TIR_LOOP);
  struct tir_stmt_node *n = tir_stmt_at(ir, s);
  n->loop_kind = (uint8_t)kind;
  n->loop.var = var;
  n->loop.min = min;
  n->loop.extent = extent;
  return s;
}

tir_stmt tir_new_store(struct tir *ir, tir_buffer buffer, const tir_expr *indices, tir_expr value) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  uint32_t first = tir_add_operands(ir, indices, tir_buffer_at(ir, buffer)->rank);
  tir_stmt s = tir_new_stmt(ir, TIR_STORE);
  struct tir_stmt_node *n = tir_stmt_at(ir, s);
  n->store.buffer = buffer;
  n->store.indices = first;
  n->store.value = value;
  return s;
}

tir_func tir_new_func(struct tir *ir, tir_symbol name) {
  tir_func f = tir_grow_funcs(ir, 1);
  tir_stmt body = tir_new_stmt(ir, TIR_FUNCTION);
  tir_as(ir, body, TIR_FUNCTION)->function.func = f;
  ir->funcs.at[f] = (struct tir_func_node){.name = name, .body = body};
  return f;
}

tir_buffer tir_new_buffer(struct tir *ir, tir_symbol name, tir_type type, const tir_expr *shape, uint32_t rank,
                          tir_symbol scope) {
  uint32_t first = tir_add_operands(ir, shape, rank);
  tir_buffer b = tir_grow_buffers(ir, 1);
  ir->buffers.at[b] =
      (struct tir_buffer_node){.name = name, .scope = scope, .type = type, .rank = rank, .shape = first};
  return b;
}

/* ---- Links ---- */

static void link_between(struct tir *ir, tir_stmt parent, enum tir_list list, tir_stmt prev, tir_stmt s,
                         tir_stmt next) {
  struct tir_stmt_node *n = tir_stmt_at(ir, s);
  assert(!n->parent && "a statement stands in one place only");
  ir->scratch->links++;
  n->parent = parent;
  n->list = (uint8_t)list;
  n->prev = prev;
  n->next = next;
  if (prev)
    tir_stmt_at(ir, prev)->next = s;
  else
    tir_stmt_at(ir, parent)->first[list] = s;
  if (next)
    tir_stmt_at(ir, next)->prev = s;
  else
    tir_stmt_at(ir, parent)->last[list] = s;
}

void tir_append(struct tir *ir, tir_stmt parent, enum tir_list list, tir_stmt s) {
  assert(parent && s && parent != s);
  link_between(ir, parent, list, tir_stmt_at(ir, parent)->last[list], s, TIR_NONE);
}

void tir_insert_before(struct tir *ir, tir_stmt at, tir_stmt s) {
  MS_CHECK(tir_stmt_at(ir, at)->parent && !tir_stmt_at(ir, s)->parent);
  const struct tir_stmt_node *n = tir_stmt_at(ir, at);
  link_between(ir, n->parent, (enum tir_list)n->list, n->prev, s, at);
}

void tir_insert_after(struct tir *ir, tir_stmt at, tir_stmt s) {
  MS_CHECK(tir_stmt_at(ir, at)->parent && !tir_stmt_at(ir, s)->parent);
  const struct tir_stmt_node *n = tir_stmt_at(ir, at);
  link_between(ir, n->parent, (enum tir_list)n->list, at, s, n->next);
}

void tir_detach(struct tir *ir, tir_stmt s) {
  assert(s && s < ir->stmts.count);
  struct tir_stmt_node *n = tir_stmt_at(ir, s);
  if (!n->parent) return;
  ir->scratch->links++;
  if (n->prev)
    tir_stmt_at(ir, n->prev)->next = n->next;
  else
    tir_stmt_at(ir, n->parent)->first[n->list] = n->next;
  if (n->next)
    tir_stmt_at(ir, n->next)->prev = n->prev;
  else
    tir_stmt_at(ir, n->parent)->last[n->list] = n->prev;
  n->parent = n->prev = n->next = TIR_NONE;
  n->list = TIR_BODY;
}

void tir_replace(struct tir *ir, tir_stmt old, tir_stmt with) {
  assert(old != with && tir_stmt_at(ir, old)->parent);
  tir_insert_before(ir, old, with);
  tir_detach(ir, old);
}

void tir_wrap(struct tir *ir, tir_stmt s, tir_stmt outer) {
  assert(s != outer);
  tir_replace(ir, s, outer);
  tir_append(ir, outer, TIR_BODY, s);
}

void tir_move_children(struct tir *ir, tir_stmt from, enum tir_list list, tir_stmt to, enum tir_list to_list) {
  assert(from != to || list != to_list);
  for (tir_stmt s; (s = tir_stmt_at(ir, from)->first[list]) != TIR_NONE;) {
    tir_detach(ir, s);
    tir_append(ir, to, to_list, s);
  }
}

/* ---- Death ---- */

static void forward(struct tir *ir, tir_stmt from, tir_stmt to) {
  assert(from && from != to);
  uint32_t i = tir_grow_forwards(ir, 1);
  ir->forwards.at[i] = (struct tir_forward){from, to};
}

/* What a dead node held becomes indices that are out of range: the accessors' checks catch whoever reads them. */
static void poison(struct tir *ir, tir_stmt s) {
#ifdef MSCHED_CHECK
  memset(tir_stmt_at(ir, s), 0xdb, sizeof(struct tir_stmt_node));
#endif
  tir_stmt_at(ir, s)->kind = TIR_DEAD;
}

/* Itself, then what is below. */
static void bury(struct tir *ir, tir_stmt s) {
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  if (n.kind == TIR_LOOP || n.kind == TIR_BLOCK) forward(ir, s, TIR_NONE);
  if (n.kind == TIR_BLOCK) {
    tir_set_reads(ir, s, NULL, 0);
    tir_set_writes(ir, s, NULL, 0);
    tir_forget_undeclared(ir, s);
    tir_set_block_name(ir, s, TIR_NONE);
    tir_block_at(ir, s)->block = TIR_NONE;
  }
  poison(ir, s);
  for (int list = 0; list < 2; list++)
    for (tir_stmt child = n.first[list], next; child; child = next) {
      next = tir_stmt_at(ir, child)->next;
      bury(ir, child);
    }
}

void tir_kill(struct tir *ir, tir_stmt s) {
  assert(!tir_is(ir, s, TIR_DEAD));
  tir_detach(ir, s);
  bury(ir, s);
}

void tir_kill_alone(struct tir *ir, tir_stmt s) {
  MS_CHECK(tir_stmt_at(ir, s)->parent);
  tir_stmt at = s;
  for (tir_stmt child; (child = tir_stmt_at(ir, s)->first[TIR_BODY]) != TIR_NONE; at = child) {
    tir_detach(ir, child);
    tir_insert_after(ir, at, child);
  }
  tir_kill(ir, s);
}

/* ---- Copies ---- */

static tir_stmt copy_tree(struct tir *ir, tir_stmt s) {
  tir_stmt copy = tir_new_stmt(ir, TIR_DEAD);
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  n.parent = n.prev = n.next = TIR_NONE;
  n.first[0] = n.first[1] = n.last[0] = n.last[1] = TIR_NONE;
  n.list = TIR_BODY;
  n.annotations = tir_copy_annotations(ir, n.annotations);
  *tir_stmt_at(ir, copy) = n;
  if (n.kind == TIR_BLOCK) tir_copy_block_record(ir, s, copy);
  for (int list = 0; list < 2; list++)
    for (tir_stmt child = tir_stmt_at(ir, s)->first[list]; child; child = tir_stmt_at(ir, child)->next)
      tir_append(ir, copy, (enum tir_list)list, copy_tree(ir, child));
  return copy;
}

/* The copy's own variable: its domain is what the old one's has become. */
static tir_var renew_var(struct tir *ir, tir_var v) {
  struct tir_var_node old = ir->vars.at[v];
  tir_expr min = old.min ? tir_subst(ir, old.min) : TIR_NONE, extent = old.min ? tir_subst(ir, old.extent) : TIR_NONE;
  tir_var made = tir_new_var(ir, (enum tir_var_kind)old.kind, old.name, old.type, min, extent);
  tir_subst_var(ir, v, tir_var_expr(ir, made));
  return made;
}

/* A buffer like `old`, defined at `where`, that the copy uses in its place. */
static tir_buffer renew_buffer(struct tir *ir, tir_buffer old, tir_stmt where) {
  tir_buffer made = tir_grow_buffers(ir, 1);
  ir->buffers.at[made] = ir->buffers.at[old];
  ir->buffers.at[made].readers = ir->buffers.at[made].writers = ir->buffers.at[made].undeclared = TIR_NONE;
  ir->buffers.at[made].where = where;
  tir_subst_buffer(ir, old, made);
  return made;
}

/* The variable that a view binds as a stride or offset is the copy's own too. */
static tir_expr renew_bound(struct tir *ir, tir_expr e) {
  if (!e || tir_at(ir, e)->kind != TIR_VAR) return e;
  return tir_var_expr(ir, renew_var(ir, tir_at(ir, e)->ref));
}

static void renew_view(struct tir *ir, tir_buffer view) {
  struct tir_span old = tir_buffer_at(ir, view)->strides;
  uint32_t first = tir_add_operands(ir, tir_operands(ir, old.first), old.count);
  for (uint32_t i = 0; i < old.count; i++) {
    tir_expr stride = renew_bound(ir, ir->operands.at[first + i]);
    ir->operands.at[first + i] = stride;
  }
  tir_expr offset = renew_bound(ir, tir_buffer_at(ir, view)->elem_offset);
  tir_buffer_at(ir, view)->strides.first = first;
  tir_buffer_at(ir, view)->elem_offset = offset;
}

static void renew_buffers(struct tir *ir, tir_block b) {
  struct tir_span allocs = tir_block_at(ir, b)->allocs, matches = tir_block_at(ir, b)->matches;
  for (uint32_t i = allocs.first; i < allocs.first + allocs.count; i++) {
    tir_buffer made = renew_buffer(ir, ir->operands.at[i], b);
    ir->operands.at[i] = made;
  }
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
    tir_buffer made = renew_buffer(ir, ir->matches.at[i].buffer, b);
    ir->matches.at[i].buffer = made;
    renew_view(ir, made);
  }
}

static void renew_loop(struct tir *ir, tir_loop l) {
  tir_var old = tir_as(ir, l, TIR_LOOP)->loop.var, made = renew_var(ir, old);
  struct tir_stmt_node *n = tir_stmt_at(ir, l);
  n->loop.var = made;
  n->loop.min = ir->vars.at[made].min;
  n->loop.extent = ir->vars.at[made].extent;
}

static void renew_iters(struct tir *ir, tir_block b) {
  struct tir_span iters = tir_block_at(ir, b)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    tir_var v = renew_var(ir, ir->iters.at[i].var);
    ir->iters.at[i].var = v;
  }
}

static void renew_flat_buffer(struct tir *ir, tir_stmt s) {
  tir_buffer made = renew_buffer(ir, tir_stmt_at(ir, s)->alloc.buffer, s);
  tir_stmt_at(ir, s)->alloc.buffer = made;
  tir_expr data = tir_buffer_at(ir, made)->data;
  if (data) data = tir_subst(ir, data); /* of what the copy allocates */
  tir_buffer_at(ir, made)->data = data;
}

/* In order of text: what a statement defines is renewed, and the statement substituted, before what is after it. */
tir_stmt tir_clone_stmt(struct tir *ir, tir_stmt top) {
  MS_CHECK(!tir_is(ir, top, TIR_DEAD));
  tir_stmt copy = copy_tree(ir, top);
  for (tir_stmt s = copy; s; s = tir_next(ir, s, copy)) {
    enum tir_stmt_kind kind = (enum tir_stmt_kind)tir_stmt_at(ir, s)->kind;
    if (kind == TIR_LOOP) {
      tir_var old = tir_as(ir, s, TIR_LOOP)->loop.var;
      renew_loop(ir, s);
      tir_subst_one(ir, s);
      tir_subst_var(ir, old, tir_var_expr(ir, tir_as(ir, s, TIR_LOOP)->loop.var));
      continue;
    }
    if (kind == TIR_BLOCK) {
      renew_iters(ir, s);
      renew_buffers(ir, s);
    } else if (kind == TIR_ALLOC || kind == TIR_DECLARE) {
      renew_flat_buffer(ir, s);
    }
    tir_subst_one(ir, s);
    if (kind == TIR_BIND) {
      tir_var v = renew_var(ir, tir_as(ir, s, TIR_BIND)->bind.var);
      tir_as(ir, s, TIR_BIND)->bind.var = v;
    }
  }
  tir_subst_clear(ir);
  return copy;
}
