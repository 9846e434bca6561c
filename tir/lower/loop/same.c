/* Whether statements do the same but for the buffers and variables that they take from outside. What is compared is
 * all that an emitter may go by: kinds, types, constants, annotations, bounds of values, and of each buffer its type,
 * scope, size and alignment, whether it is a view, and which of the others may share memory with it. Names do not
 * count.
 *
 * Variables and buffers are paired one to one, in the order in which they are met. Hashes leave open which they are, so
 * that an expression has one hash wherever it stands. Nothing depends on an address, or on the order of interning. */
#include "same.h"

#include <stdlib.h>
#include <string.h>

/* By index: what it is paired with in the comparison of number `at`. */
struct partners {
  uint32_t *of, *at;
};

struct lower_same {
  const struct tir *ir;
  uint32_t exprs, now; /* expressions that there were when it was made; number of the comparison */
  struct partners expr, var, var_back, buffer, buffer_back;
  uint64_t *hashes; /* by expression; 0: not yet known */
  struct lower_pair *pairs;
  uint32_t count, capacity;
};

static struct partners make_partners(uint32_t count) {
  struct partners p = {calloc(count, sizeof *p.of), calloc(count, sizeof *p.at)};
  if (!p.of || !p.at) abort();
  return p;
}

static void free_partners(struct partners p) {
  free(p.of);
  free(p.at);
}

struct lower_same *lower_same_new(const struct tir *ir) {
  struct lower_same *s = malloc(sizeof *s);
  if (!s) abort();
  *s = (struct lower_same){.ir = ir, .exprs = ir->exprs.count};
  s->expr = make_partners(ir->exprs.count);
  s->var = make_partners(ir->vars.count);
  s->var_back = make_partners(ir->vars.count);
  s->buffer = make_partners(ir->buffers.count);
  s->buffer_back = make_partners(ir->buffers.count);
  s->hashes = calloc(ir->exprs.count, sizeof *s->hashes);
  if (!s->hashes) abort();
  return s;
}

void lower_same_free(struct lower_same *s) {
  free_partners(s->expr);
  free_partners(s->var);
  free_partners(s->var_back);
  free_partners(s->buffer);
  free_partners(s->buffer_back);
  free(s->hashes);
  free(s->pairs);
  free(s);
}

/* ---- Hashes ---- */

static uint64_t mix(uint64_t a, uint64_t b) {
  a = (a ^ b) * 0x9e3779b97f4a7c15u;
  return a ^ a >> 29;
}

static uint64_t hash_type_of_buffer(const struct tir *ir, tir_buffer b) { return tir_buffer_at(ir, b)->type; }

static uint64_t hash_expr(struct lower_same *s, tir_expr e);

static uint64_t hash_node(struct lower_same *s, const struct tir_expr_node *n) {
  uint64_t h = mix(mix(n->kind + 1u, n->type), n->count);
  switch (n->kind) {
  case TIR_INT_IMM:
  case TIR_FLOAT_IMM: return mix(h, (uint64_t)n->imm);
  case TIR_STRING_IMM: return mix(h, n->ref);
  case TIR_NONE_IMM:
  case TIR_VAR: return h;
  case TIR_DATA: return mix(h, hash_type_of_buffer(s->ir, n->ref));
  case TIR_LOAD: h = mix(h, hash_type_of_buffer(s->ir, n->ref)); break;
  case TIR_CALL: h = mix(h, n->ref); break;
  default: break;
  }
  h = mix(mix(mix(h, hash_expr(s, n->a)), hash_expr(s, n->b)), hash_expr(s, n->c));
  for (uint32_t i = 0; i < n->count; i++) h = mix(h, hash_expr(s, s->ir->operands.at[n->operands + i]));
  return h;
}

static uint64_t hash_expr(struct lower_same *s, tir_expr e) {
  assert(e < s->exprs);
  if (e && !s->hashes[e]) s->hashes[e] = hash_node(s, tir_at(s->ir, e)) | 1;
  return s->hashes[e];
}

static uint64_t hash_statement(struct lower_same *s, tir_stmt at) {
  const struct tir_stmt_node *n = tir_stmt_at(s->ir, at);
  tir_expr all[4] = {TIR_NONE};
  uint32_t count = tir_stmt_exprs(s->ir, at, all);
  uint64_t h = mix(mix(n->kind, n->loop_kind), n->annotations.count);
  for (uint32_t i = 0; i < count; i++) h = mix(h, hash_expr(s, all[i]));
  if (n->kind == TIR_STORE)
    for (uint32_t i = 0; i < tir_buffer_at(s->ir, n->store.buffer)->rank; i++)
      h = mix(h, hash_expr(s, s->ir->operands.at[n->store.indices + i]));
  return h;
}

uint64_t lower_same_hash(struct lower_same *s, struct lower_run run) {
  uint64_t h = 0;
  for (tir_stmt top = run.first;; top = tir_stmt_at(s->ir, top)->next) {
    if (!lower_allocates(s->ir, top)) {
      h = mix(h, 1);
      for (tir_stmt at = top; at; at = tir_next(s->ir, at, top)) h = mix(h, hash_statement(s, at));
    }
    if (top == run.last) return h;
  }
}

/* ---- Expressions ---- */

static bool same_expr(struct lower_same *s, tir_expr a, tir_expr b);

/* Pairs two indices, or finds them paired; *fresh: they were not. */
static bool pair(const struct lower_same *s, struct partners to, struct partners back, uint32_t a, uint32_t b,
                 bool *fresh) {
  *fresh = to.at[a] != s->now;
  if (!*fresh) {
    assert(back.at[to.of[a]] == s->now && back.of[to.of[a]] == a);
    return to.of[a] == b;
  }
  if (back.at[b] == s->now) return false;
  to.of[a] = b, to.at[a] = s->now;
  back.of[b] = a, back.at[b] = s->now;
  return true;
}

static bool same_var(struct lower_same *s, tir_var a, tir_var b) {
  const struct tir_var_node *x = &s->ir->vars.at[a], *y = &s->ir->vars.at[b];
  bool fresh;
  if (!pair(s, s->var, s->var_back, a, b, &fresh)) return false;
  return !fresh || (x->type == y->type && x->kind == y->kind && same_expr(s, x->min, y->min) &&
                    same_expr(s, x->extent, y->extent));
}

static bool same_run(struct lower_same *s, uint32_t a, uint32_t b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!same_expr(s, s->ir->operands.at[a + i], s->ir->operands.at[b + i])) return false;
  return true;
}

/* A buffer of which nothing is known but what emitters read of one that they are given. */
static bool same_facts(struct lower_same *s, tir_buffer a, tir_buffer b) {
  const struct tir *ir = s->ir;
  const struct tir_buffer_node *x = tir_buffer_at(ir, a), *y = tir_buffer_at(ir, b);
  return x->type == y->type && x->scope == y->scope && x->rank == y->rank && x->strides.count == y->strides.count &&
         x->alignment == y->alignment && x->offset_factor == y->offset_factor &&
         same_expr(s, x->elem_offset, y->elem_offset) && tir_is_view(ir, a) == tir_is_view(ir, b) &&
         tir_allocation_bytes(ir, a) == tir_allocation_bytes(ir, b);
}

static bool same_buffer(struct lower_same *s, tir_buffer a, tir_buffer b) {
  bool fresh;
  if (!pair(s, s->buffer, s->buffer_back, a, b, &fresh)) return false;
  if (!fresh) return true;
  s->pairs = tir_enlarge(s->pairs, &s->capacity, s->count + 1ull, sizeof *s->pairs);
  s->pairs[s->count++] = (struct lower_pair){a, b};
  return same_facts(s, a, b);
}

/* What is declared within the statements themselves. */
static bool same_declared(struct lower_same *s, tir_buffer a, tir_buffer b) {
  const struct tir_buffer_node *x = tir_buffer_at(s->ir, a), *y = tir_buffer_at(s->ir, b);
  bool fresh;
  return same_expr(s, x->data, y->data) && pair(s, s->buffer, s->buffer_back, a, b, &fresh) && fresh &&
         same_facts(s, a, b) && same_run(s, x->shape, y->shape, x->rank) &&
         same_run(s, x->strides.first, y->strides.first, x->strides.count);
}

static bool same_node(struct lower_same *s, const struct tir_expr_node *x, const struct tir_expr_node *y) {
  if (x->kind != y->kind || x->type != y->type || x->count != y->count || x->flags != y->flags || x->lo != y->lo ||
      x->hi != y->hi)
    return false;
  switch (x->kind) {
  case TIR_INT_IMM:
  case TIR_FLOAT_IMM: return x->imm == y->imm; /* a float's bits */
  case TIR_STRING_IMM: return x->ref == y->ref;
  case TIR_NONE_IMM: return true;
  case TIR_VAR: return same_var(s, x->ref, y->ref);
  case TIR_DATA: return same_buffer(s, x->ref, y->ref);
  case TIR_LOAD:
    if (!same_buffer(s, x->ref, y->ref)) return false;
    break;
  case TIR_CALL:
    if (x->ref != y->ref) return false;
    break;
  case TIR_LET:
    if (!same_expr(s, x->a, y->a) || !same_var(s, x->ref, y->ref)) return false;
    break;
  default: break;
  }
  return same_expr(s, x->a, y->a) && same_expr(s, x->b, y->b) && same_expr(s, x->c, y->c) &&
         same_run(s, x->operands, y->operands, x->count);
}

static bool same_expr(struct lower_same *s, tir_expr a, tir_expr b) {
  if (!a || !b) return a == b;
  if (s->expr.at[a] == s->now && s->expr.of[a] == b) return true;
  if (hash_expr(s, a) != hash_expr(s, b) || !same_node(s, tir_at(s->ir, a), tir_at(s->ir, b))) return false;
  s->expr.of[a] = b, s->expr.at[a] = s->now;
  return true;
}

/* ---- Statements ---- */

static bool same_annotations(struct lower_same *s, struct tir_span a, struct tir_span b) {
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; i++) {
    const struct tir_annotation *x = &s->ir->annotations.at[a.first + i], *y = &s->ir->annotations.at[b.first + i];
    if (x->key != y->key || !same_expr(s, x->value, y->value)) return false;
  }
  return true;
}

static bool same_store(struct lower_same *s, const struct tir_stmt_node *x, const struct tir_stmt_node *y) {
  return same_buffer(s, x->store.buffer, y->store.buffer) && /* of one rank then */
         same_run(s, x->store.indices, y->store.indices, tir_buffer_at(s->ir, x->store.buffer)->rank) &&
         same_expr(s, x->store.value, y->store.value) && same_expr(s, x->store.predicate, y->store.predicate);
}

/* Without what is below them. */
static bool same_statement(struct lower_same *s, const struct tir_stmt_node *x, const struct tir_stmt_node *y) {
  if (x->kind != y->kind || x->loop_kind != y->loop_kind || !same_annotations(s, x->annotations, y->annotations))
    return false;
  switch (x->kind) {
  case TIR_LOOP:
    return same_expr(s, x->loop.min, y->loop.min) && same_expr(s, x->loop.extent, y->loop.extent) &&
           same_var(s, x->loop.var, y->loop.var);
  case TIR_STORE: return same_store(s, x, y);
  case TIR_BIND: return same_expr(s, x->bind.value, y->bind.value) && same_var(s, x->bind.var, y->bind.var);
  case TIR_EVALUATE: return same_expr(s, x->evaluate.value, y->evaluate.value);
  case TIR_IF:
  case TIR_WHILE: return same_expr(s, x->test.condition, y->test.condition);
  case TIR_ASSERT:
    return same_expr(s, x->test.condition, y->test.condition) && same_expr(s, x->test.message, y->test.message);
  case TIR_ATTR:
    return x->attr.key == y->attr.key && same_expr(s, x->attr.node, y->attr.node) &&
           same_expr(s, x->attr.value, y->attr.value);
  case TIR_ALLOC:
  case TIR_DECLARE: return same_declared(s, x->alloc.buffer, y->alloc.buffer);
  default: return false; /* a block */
  }
}

static bool same_tree(struct lower_same *s, tir_stmt a, tir_stmt b);

static bool same_list(struct lower_same *s, tir_stmt a, tir_stmt b) {
  for (; a && b; a = tir_stmt_at(s->ir, a)->next, b = tir_stmt_at(s->ir, b)->next)
    if (!same_tree(s, a, b)) return false;
  return a == b;
}

static bool same_tree(struct lower_same *s, tir_stmt a, tir_stmt b) {
  const struct tir_stmt_node *x = tir_stmt_at(s->ir, a), *y = tir_stmt_at(s->ir, b);
  return same_statement(s, x, y) && same_list(s, x->first[TIR_BODY], y->first[TIR_BODY]) &&
         same_list(s, x->first[TIR_ELSE], y->first[TIR_ELSE]);
}

/* Of what is met, the same pairs may share memory. */
static bool share_alike(const struct lower_same *s) {
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (tir_may_share_memory(s->ir, s->pairs[i].a, s->pairs[k].a) !=
          tir_may_share_memory(s->ir, s->pairs[i].b, s->pairs[k].b))
        return false;
  return true;
}

/* The next statement of a run that is no allocation of its list's, from this one on; TIR_NONE: there is none. */
static tir_stmt next_in(const struct tir *ir, tir_stmt at, tir_stmt last) {
  for (; lower_allocates(ir, at); at = tir_stmt_at(ir, at)->next)
    if (at == last) return TIR_NONE;
  return at;
}

static tir_stmt after(const struct tir *ir, tir_stmt at, tir_stmt last) {
  return at == last ? TIR_NONE : next_in(ir, tir_stmt_at(ir, at)->next, last);
}

bool lower_same_runs(struct lower_same *s, struct lower_run a, struct lower_run b) {
  s->now++;
  s->count = 0;
  tir_stmt x = next_in(s->ir, a.first, a.last), y = next_in(s->ir, b.first, b.last);
  for (; x && y; x = after(s->ir, x, a.last), y = after(s->ir, y, b.last))
    if (!same_tree(s, x, y)) return false;
  return x == y && s->count <= LOWER_MOST_PAIRS && share_alike(s);
}

const struct lower_pair *lower_same_pairs(const struct lower_same *s, uint32_t *count) {
  *count = s->count;
  return s->pairs;
}
