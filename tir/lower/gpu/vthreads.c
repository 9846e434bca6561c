/* Virtual threads: a loop bound to one gives each thread the work of several, statement by statement, so that what they
 * all need is loaded once and what each of them sums up stays in registers.
 *
 *   for v: { S = A; for k: C[v, k] += S[k] }    becomes    S = A; for k: for v in unrolled: C[v, k] += S[k]
 *
 * Requires: kernels; buffers that are no larger than they need be. Gives: no loop bound to a virtual thread. Keeps:
 * everything else.
 * A statement is repeated for each virtual thread where what it does differs between them: it uses the variable, or
 * loads what such a statement stores. Of what is allocated in the loop and differs, each has its own, by one dimension
 * more. That is right where virtual threads store different elements of other buffers, and what is stored once there is
 * stored before it is loaded; elsewhere the loop is unrolled as it stands. Loops in it inherit its annotations. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

struct spread {
  struct tir *ir;
  tir_stmt loop;
  tir_var var;
  uint8_t *moves;  /* by buffer: virtual threads store different values or elements */
  uint8_t *stored; /* by buffer: stored below the loop */
  uint8_t *inner;  /* by buffer: allocated there */
};

/* ---- What differs ---- */

static bool is_different(const struct tir *ir, const void *context, tir_expr e) {
  const struct spread *s = context;
  const struct tir_expr_node *n = tir_at(ir, e);
  return (n->kind == TIR_VAR && n->ref == s->var) || (n->kind == TIR_LOAD && s->moves[n->ref]);
}

static bool value_differs(const struct spread *s, tir_expr e) {
  return tir_any_node(s->ir, e, TIR_HAS_VAR | TIR_HAS_LOAD, is_different, s);
}

/* By itself, whatever is below it or around it. */
static bool differs(const struct spread *s, tir_stmt stmt) {
  const struct tir *ir = s->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, stmt);
  tir_expr all[4];
  uint32_t count = n->kind == TIR_ALLOC ? 0 : tir_stmt_exprs(ir, stmt, all);
  for (uint32_t i = 0; i < count; i++)
    if (value_differs(s, all[i])) return true;
  for (uint32_t d = 0; n->kind == TIR_STORE && d < tir_buffer_at(ir, n->store.buffer)->rank; d++)
    if (value_differs(s, ir->operands.at[n->store.indices + d])) return true;
  return false;
}

static bool differs_below(const struct spread *s, tir_stmt top) {
  for (tir_stmt t = top; t; t = tir_next(s->ir, t, top))
    if (differs(s, t)) return true;
  return false;
}

static bool is_decided_alike(const struct spread *s, tir_stmt stmt) {
  for (tir_stmt p = tir_stmt_at(s->ir, stmt)->parent; p != s->loop; p = tir_stmt_at(s->ir, p)->parent)
    if (differs(s, p)) return false;
  return true;
}

/* Groups of copies are a thread's, and begun once for all its virtual threads. */
static bool is_group(const struct tir *ir, tir_stmt t) { return lower_has_effect(ir, t, TIR_DOES_COPY_GROUP); }

/* The statements that are known here: stores, and loops and conditions around them. */
static bool find_moving(struct spread *s) {
  const struct tir *ir = s->ir;
  for (bool again = true; again;) {
    again = false;
    for (tir_stmt t = tir_next(ir, s->loop, s->loop); t; t = tir_next(ir, t, s->loop)) {
      const struct tir_stmt_node *n = tir_stmt_at(ir, t);
      if (n->kind != TIR_STORE && n->kind != TIR_LOOP && n->kind != TIR_IF && n->kind != TIR_ALLOC && !is_group(ir, t))
        return false;
      if (n->kind == TIR_ALLOC) s->inner[n->alloc.buffer] = 1;
      if (n->kind != TIR_STORE || s->moves[n->store.buffer]) continue;
      s->stored[n->store.buffer] = 1;
      if (!differs(s, t) && is_decided_alike(s, t)) continue;
      s->moves[n->store.buffer] = 1;
      again = true;
    }
  }
  return true;
}

/* ---- Whether statements may be done for all virtual threads in turn ---- */

/* Where the variable is u, all of the interval lies before or behind all of it where it is v. */
static bool is_apart_at(struct spread *s, struct tir_interval i, int64_t u, int64_t v) {
  struct tir *ir = s->ir;
  const int64_t at[] = {u, v};
  tir_expr first[2], last[2];
  if (i.empty || !i.min || !i.max) return false;
  for (int k = 0; k < 2; k++) {
    tir_subst_var(ir, s->var, tir_int(ir, ir->vars.at[s->var].type, at[k]));
    first[k] = tir_subst(ir, i.min), last[k] = tir_subst(ir, i.max);
    tir_subst_clear(ir);
  }
  return tir_prove(ir, tir_make(ir, TIR_LT, last[0], first[1])) ||
         tir_prove(ir, tir_make(ir, TIR_LT, last[1], first[0]));
}

/* Two virtual threads by two, some dimension keeps them apart. */
static bool is_apart(struct spread *s, tir_buffer buffer, int64_t extent) {
  struct tir *ir = s->ir;
  struct lower_windows w;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (!lower_find_windows(ir, s->loop, buffer, &w)) return false;
  for (int64_t v = 0; v < extent; v++)
    for (int64_t u = 0; u < v; u++) {
      bool apart = false;
      for (uint32_t d = 0; d < rank && !apart; d++)
        apart = is_apart_at(s, tir_interval_union(ir, w.read[d], w.written[d]), u, v);
      if (!apart) return false;
    }
  return true;
}

/* The first statement that touches the buffer stores, and loads nothing of it. */
static bool is_stored_first(const struct spread *s, tir_buffer buffer) {
  const struct tir *ir = s->ir;
  for (tir_stmt t = tir_next(ir, s->loop, s->loop); t; t = tir_next(ir, t, s->loop)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, t);
    tir_expr all[4];
    uint32_t count = n->kind == TIR_ALLOC ? 0 : tir_stmt_exprs(ir, t, all);
    for (uint32_t i = 0; i < count; i++)
      if (tir_uses_buffer(ir, all[i], buffer)) return false;
    if (n->kind == TIR_STORE && n->store.buffer == buffer) return true;
  }
  return true;
}

static bool may_spread(struct spread *s) {
  const struct tir *ir = s->ir;
  int64_t extent = tir_loop_extent(ir, s->loop);
  if (extent < 0 || extent > TIR_MOST_VIRTUAL || !find_moving(s)) return false;
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    const struct tir_buffer_node *n = tir_buffer_at(ir, b);
    if (s->inner[b] && (n->strides.count || n->rank == TIR_MOST_RANK)) return false;
    if (!s->stored[b] || s->inner[b]) continue;
    if (s->moves[b] ? !is_apart(s, b, extent) : !is_stored_first(s, b)) return false;
  }
  return true;
}

/* ---- Spreading ---- */

static bool add_index(struct tir *ir, void *data, struct access *a) {
  const struct spread *s = data;
  if (!s->inner[a->buffer] || !s->moves[a->buffer]) return false;
  memmove(a->indices + 1, a->indices, a->count++ * sizeof *a->indices);
  a->indices[0] = tir_sub(ir, tir_var_expr(ir, s->var), tir_as(ir, s->loop, TIR_LOOP)->loop.min);
  return true;
}

/* Gives each virtual thread memory of its own. */
static void multiply_memory(struct spread *s) {
  struct tir *ir = s->ir;
  lower_rewrite(ir, s->loop, add_index, s);
  for (tir_stmt t = tir_next(ir, s->loop, s->loop); t; t = tir_next(ir, t, s->loop)) {
    if (!tir_is(ir, t, TIR_ALLOC) || !s->moves[tir_stmt_at(ir, t)->alloc.buffer]) continue;
    tir_buffer buffer = tir_stmt_at(ir, t)->alloc.buffer;
    tir_expr shape[TIR_MOST_RANK] = {tir_as(ir, s->loop, TIR_LOOP)->loop.extent};
    assert(s->inner[buffer] && tir_buffer_at(ir, buffer)->rank < TIR_MOST_RANK);
    uint32_t rank = tir_buffer_at(ir, buffer)->rank;
    memcpy(shape + 1, tir_operands(ir, tir_buffer_at(ir, buffer)->shape), rank * sizeof *shape);
    uint32_t first = tir_add_operands(ir, shape, rank + 1);
    tir_buffer_at(ir, buffer)->shape = first;
    tir_buffer_at(ir, buffer)->rank = rank + 1;
  }
}

static void repeat(struct spread *s, tir_stmt stmt) {
  struct tir *ir = s->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, s->loop);
  struct tir_var_node v = ir->vars.at[s->var];
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, v.min, v.extent);
  tir_stmt loop = tir_new_loop(ir, var, n.loop.min, n.loop.extent, TIR_UNROLLED);
  assert(tir_is_below(ir, stmt, s->loop) && !tir_is(ir, stmt, TIR_ALLOC));
  tir_wrap(ir, stmt, loop);
  tir_subst_var(ir, s->var, tir_var_expr(ir, var));
  tir_subst_stmt(ir, stmt);
  tir_subst_clear(ir);
}

/* A loop of vectors stays whole. */
static bool is_entered(const struct spread *s, tir_stmt stmt) {
  const struct tir_stmt_node *n = tir_stmt_at(s->ir, stmt);
  bool entered = n->kind == TIR_IF || (n->kind == TIR_LOOP && n->loop_kind != TIR_VECTORIZED);
  return entered && !differs(s, stmt);
}

static void spread_list(struct spread *s, tir_stmt parent, enum tir_list list) {
  for (tir_stmt t = tir_stmt_at(s->ir, parent)->first[list], next; t; t = next) {
    next = tir_stmt_at(s->ir, t)->next;
    if (is_entered(s, t)) {
      spread_list(s, t, TIR_BODY);
      spread_list(s, t, TIR_ELSE);
    } else if (!tir_is(s->ir, t, TIR_ALLOC) && differs_below(s, t)) {
      repeat(s, t);
    }
  }
}

static bool is_virtual(const struct tir *ir, tir_stmt s) { return tir_is_virtual_axis(tir_loop_axis(ir, s)); }

bool lower_vthreads(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt t = low->body, next; t; t = next) {
    next = tir_next(ir, t, low->body);
    if (!is_virtual(ir, t)) continue;
    assert(tir_stmt_at(ir, t)->loop_kind == TIR_THREAD_BINDING);
    struct spread s = {.ir = ir, .loop = t, .var = tir_as(ir, t, TIR_LOOP)->loop.var};
    s.moves = calloc(3, ir->buffers.count);
    if (!s.moves) abort();
    s.stored = s.moves + ir->buffers.count, s.inner = s.stored + ir->buffers.count;
    tir_stmt_at(ir, t)->loop_kind = TIR_UNROLLED;
    tir_as(ir, t, TIR_LOOP)->loop.thread = TIR_NONE;
    if (may_spread(&s)) {
      multiply_memory(&s);
      spread_list(&s, t, TIR_BODY);
      lower_hand_down(ir, t);
      next = tir_next(ir, t, low->body);
      tir_kill_alone(ir, t);
    }
    free(s.moves);
  }
  return true;
}
