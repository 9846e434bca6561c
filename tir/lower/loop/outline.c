/* Outline: around each parallel loop, and around each kernel, which become functions of their own in generated code,
 * stands what that function takes: attr(0, "outlined", captures(A.data, …, n, …)).
 * Requires: nothing. Gives: the statements that lowered.h describes; the interpreter hides all else from what is below.
 * Keeps: everything else. Loops within one that is outlined stay loops. */
#include "tir/lower/lower.h"

#include <stdlib.h>

/* ---- What a loop captures ---- */

enum { USED = 1, DEFINED = 2 };

struct gathering {
  const struct tir *ir;
  uint8_t *buffers, *vars; /* bits an index */
};

static bool note_expr(void *data, tir_expr e) {
  struct gathering *g = data;
  const struct tir_expr_node *n = tir_at(g->ir, e);
  if (n->kind == TIR_VAR) g->vars[n->ref] |= USED;
  if (n->kind == TIR_LET) g->vars[n->ref] |= DEFINED;
  if (n->kind == TIR_LOAD || n->kind == TIR_DATA) g->buffers[n->ref] |= USED;
  return true;
}

static void note_statement(struct gathering *g, tir_stmt s) {
  const struct tir *ir = g->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(ir, s, all);
  for (uint32_t i = 0; i < count; i++)
    if (all[i]) tir_walk_expr(ir, all[i], note_expr, g);
  switch (n->kind) {
  case TIR_LOOP: g->vars[n->loop.var] |= DEFINED; break;
  case TIR_BIND: g->vars[n->bind.var] |= DEFINED; break;
  case TIR_ALLOC:
  case TIR_DECLARE: g->buffers[n->alloc.buffer] |= DEFINED; break;
  case TIR_STORE:
    g->buffers[n->store.buffer] |= USED;
    for (uint32_t i = 0; i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
      tir_walk_expr(ir, ir->operands.at[n->store.indices + i], note_expr, g);
    break;
  default: break;
  }
}

/* Its range is evaluated outside. */
static tir_expr captures_of(struct tir *ir, tir_loop loop) {
  struct gathering g = {ir, calloc(ir->buffers.count, 1), calloc(ir->vars.count, 1)};
  tir_expr *all = malloc((ir->buffers.count + (size_t)ir->vars.count) * sizeof *all);
  if (!g.buffers || !g.vars || !all) abort();
  uint32_t count = 0;
  g.vars[tir_as(ir, loop, TIR_LOOP)->loop.var] = DEFINED;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) note_statement(&g, s);
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    if (g.buffers[b] == USED) all[count++] = tir_data(ir, b);
  for (tir_var v = 1; v < ir->vars.count; v++)
    if (g.vars[v] == USED) all[count++] = tir_var_expr(ir, v);
  tir_expr made = tir_call(ir, TIR_T_VOID, tir_symbol_of(ir, "captures"), all, count);
  free(all);
  free(g.buffers);
  free(g.vars);
  return made;
}

/* ---- The pass ---- */

static bool is_outlined(const struct tir *ir, tir_stmt s) { return lower_is_attr(ir, s, TIR_OUTLINED); }

static void outline(struct tir *ir, tir_loop loop) {
  assert(tir_is(ir, loop, TIR_LOOP) && !is_outlined(ir, tir_stmt_at(ir, loop)->parent));
  lower_wrap_in_attr(ir, loop, TIR_OUTLINED, captures_of(ir, loop));
}

bool lower_outline(struct lowering *low) {
  struct tir *ir = low->ir;
  bool gpu = low->options && low->options->device == TIR_GPU;
  enum tir_loop_kind kind = gpu ? TIR_THREAD_BINDING : TIR_PARALLEL;
  for (tir_stmt s = low->body, next; s; s = next) { /* a function that was lowered before and read again */
    next = tir_next(ir, s, low->body);
    if (is_outlined(ir, s)) tir_kill_alone(ir, s);
  }
  for (tir_stmt s = low->body, next; s; s = next) {
    bool outlines = tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == kind;
    next = outlines ? tir_after(ir, s, low->body) : tir_next(ir, s, low->body);
    if (outlines) outline(ir, s);
  }
  return true;
}

/* ---- Reading what is stated ---- */

static uint32_t count_kind(const struct tir *ir, const struct tir_expr_node *call, uint32_t from, enum tir_kind kind) {
  uint32_t i = from;
  while (i < call->count && tir_at(ir, tir_operands(ir, call->operands)[i])->kind == kind) i++;
  return i - from;
}

bool tir_captures_of(const struct tir *ir, tir_stmt s, struct tir_captures *out) {
  assert(s && out);
  tir_stmt loop = is_outlined(ir, s) ? tir_stmt_at(ir, s)->first[TIR_BODY] : TIR_NONE;
  if (!loop || !tir_is(ir, loop, TIR_LOOP)) return false;
  const struct tir_expr_node *call = tir_at(ir, tir_stmt_at(ir, s)->attr.value);
  if (call->kind != TIR_CALL) return false;
  uint32_t buffers = count_kind(ir, call, 0, TIR_DATA);
  *out = (struct tir_captures){loop, tir_operands(ir, call->operands), buffers, count_kind(ir, call, buffers, TIR_VAR)};
  return out->buffers + out->vars == call->count;
}

bool tir_is_view(const struct tir *ir, tir_buffer buffer) {
  return tir_buffer_at(ir, buffer)->data && !tir_is_placed(ir, buffer);
}

struct source {
  const struct tir *ir;
  tir_buffer found;
};

static bool find_source(void *data, tir_expr e) {
  struct source *s = data;
  const struct tir_expr_node *n = tir_at(s->ir, e);
  if (n->kind == TIR_LOAD || n->kind == TIR_DATA) s->found = n->ref;
  return !s->found;
}

tir_buffer tir_viewed_memory(const struct tir *ir, tir_buffer buffer) {
  struct source s = {ir, TIR_NONE};
  while (buffer && tir_is_view(ir, buffer)) {
    s.found = TIR_NONE;
    tir_walk_expr(ir, tir_buffer_at(ir, buffer)->data, find_source, &s);
    buffer = s.found;
  }
  return buffer;
}

bool tir_may_share_memory(const struct tir *ir, tir_buffer a, tir_buffer b) {
  tir_buffer first = tir_viewed_memory(ir, a), second = tir_viewed_memory(ir, b);
  return !first || !second || first == second;
}

bool tir_is_captured_apart(const struct tir *ir, const struct tir_captures *captures, uint32_t i) {
  assert(i < captures->buffers);
  for (uint32_t k = 0; k < captures->buffers; k++)
    if (k != i && tir_may_share_memory(ir, tir_at(ir, captures->at[i])->ref, tir_at(ir, captures->at[k])->ref))
      return false;
  return true;
}
