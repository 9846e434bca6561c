/* Jam: of a loop annotated "msched.jam", those loops in it that follow one another, run as often, and touch nothing
 * that the other stores, become one loop with both bodies: what one waits for is hidden by what the other computes.
 *
 *   for r, jammed:                               for r:
 *     for j: S[r % 2, j] = exp(X[r, j] - m[r % 2])     for j:
 *     for j: Y[r - 1, j] = S[(r - 1) % 2, j] / …         S[r % 2, j] = …; Y[r - 1, j] = …
 *
 * Requires: no blocks; software pipelines in parts, whose stage buffers are the first dimension of what they hold.
 * Gives: no such annotation. Keeps: what is computed; loops that depend on one another stay apart. */
#include "tir/lower/lower.h"

#include "tir/analysis/loads.h"

enum { MOST_TOUCHED = 256 };

/* What a statement touches: of each buffer the first index, and whether that is stored to. */
struct touches {
  struct tir *ir;
  struct {
    tir_buffer buffer;
    tir_expr first;
    bool stored;
  } at[MOST_TOUCHED];
  uint32_t count;
  bool known;
};

static void touch(struct touches *t, tir_buffer buffer, uint32_t indices, bool stored) {
  tir_expr first = tir_buffer_at(t->ir, buffer)->rank ? t->ir->operands.at[indices] : TIR_NONE;
  if (t->count == MOST_TOUCHED) t->known = false;
  if (!t->known) return;
  t->at[t->count].buffer = buffer, t->at[t->count].first = first, t->at[t->count++].stored = stored;
}

static bool find_loads(void *data, tir_expr e) {
  struct touches *t = data;
  const struct tir_expr_node *n = tir_at(t->ir, e);
  if (n->kind == TIR_LOAD) touch(t, n->ref, n->operands, false);
  if (n->kind == TIR_DATA || (n->kind == TIR_CALL && !tir_is_pure_call(t->ir, n))) t->known = false;
  return true;
}

/* All that is below the loop; not known where it does more than store. */
static void find_touches(struct touches *t, tir_loop loop) {
  struct tir *ir = t->ir;
  for (tir_stmt s = loop; s; s = tir_next(ir, s, loop)) {
    tir_expr all[4];
    const struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (n.kind != TIR_LOOP && n.kind != TIR_STORE && n.kind != TIR_IF) t->known = false;
    uint32_t count = tir_stmt_exprs(ir, s, all);
    for (uint32_t k = 0; k < count; k++) tir_walk_expr(ir, all[k], find_loads, t);
    if (n.kind != TIR_STORE) continue;
    touch(t, n.store.buffer, n.store.indices, true);
    for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++)
      tir_walk_expr(ir, ir->operands.at[n.store.indices + d], find_loads, t);
  }
}

static bool are_independent(struct tir *ir, tir_loop a, tir_loop b) {
  struct touches x = {.ir = ir, .known = true}, y = {.ir = ir, .known = true};
  find_touches(&x, a);
  find_touches(&y, b);
  if (!x.known || !y.known) return false;
  for (uint32_t i = 0; i < x.count; i++)
    for (uint32_t k = 0; k < y.count; k++) {
      tir_buffer buffer = x.at[i].buffer;
      if (buffer != y.at[k].buffer || (!x.at[i].stored && !y.at[k].stored)) continue;
      tir_expr one = x.at[i].first, other = y.at[k].first;
      one = one ? lower_stage_buffer_number(ir, one, buffer) : TIR_NONE;
      other = other ? lower_stage_buffer_number(ir, other, buffer) : TIR_NONE;
      if (!one || !other || !lower_are_other_stage_buffers(ir, buffer, one, other)) return false;
    }
  return true;
}

static bool run_alike(struct tir *ir, tir_stmt a, tir_stmt b) {
  if (!b || !tir_is(ir, a, TIR_LOOP) || !tir_is(ir, b, TIR_LOOP)) return false;
  const struct tir_stmt_node *m = tir_stmt_at(ir, a), *n = tir_stmt_at(ir, b);
  return m->loop_kind == TIR_SERIAL && n->loop_kind == TIR_SERIAL && !m->annotations.count && !n->annotations.count &&
         m->loop.min == n->loop.min && m->loop.extent == n->loop.extent && tir_loop_extent(ir, a) > 1;
}

/* The second's body comes behind the first's. */
static void join(struct tir *ir, tir_loop first, tir_loop second) {
  tir_var to = tir_stmt_at(ir, first)->loop.var, from = tir_stmt_at(ir, second)->loop.var;
  tir_subst_var(ir, from, tir_cast(ir, ir->vars.at[from].type, tir_var_expr(ir, to)));
  for (tir_stmt s = tir_stmt_at(ir, second)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    tir_subst_stmt(ir, s);
    tir_detach(ir, s);
    tir_append(ir, first, TIR_BODY, s);
  }
  tir_subst_clear(ir);
  tir_kill(ir, second);
}

bool lower_jam(struct lowering *low) {
  struct tir *ir = low->ir;
  tir_symbol key = tir_symbol_of(ir, TIR_JAM);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_LOOP) || !tir_annotation(ir, tir_stmt_at(ir, s)->annotations, TIR_JAM)) continue;
    tir_annotate_span(ir, &tir_stmt_at(ir, s)->annotations, key, TIR_NONE);
    for (tir_stmt c = tir_stmt_at(ir, s)->first[TIR_BODY]; c;) {
      tir_stmt next = tir_stmt_at(ir, c)->next;
      if (next && run_alike(ir, c, next) && are_independent(ir, c, next))
        join(ir, c, next);
      else
        c = next;
    }
  }
  return true;
}
