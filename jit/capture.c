/* What the statements below a loop use, and which buffers share memory. */
#include "capture.h"

#include <stdlib.h>

struct gathering {
  const struct tir *ir;
  struct jit_uses uses;
};

static bool note_expr(void *data, tir_expr x) {
  struct gathering *g = data;
  const struct tir_expr_node *n = tir_at(g->ir, x);
  if (n->kind == TIR_VAR) g->uses.vars[n->ref] = 1;
  if (n->kind == TIR_LOAD || n->kind == TIR_DATA) g->uses.buffers[n->ref] = 1;
  return true;
}

static void note_statement(struct gathering *g, tir_stmt s) {
  const struct tir *ir = g->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_expr all[3] = {TIR_NONE};
  switch (n->kind) {
  case TIR_LOOP: all[0] = n->loop.min, all[1] = n->loop.extent; break;
  case TIR_STORE:
    g->uses.buffers[n->store.buffer] = 1;
    all[0] = tir_operands(ir, n->store.indices)[0], all[1] = n->store.value, all[2] = n->store.predicate;
    break;
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT: all[0] = n->test.condition; break;
  case TIR_BIND: all[0] = n->bind.value; break;
  case TIR_EVALUATE: all[0] = n->evaluate.value; break;
  case TIR_ATTR: all[0] = n->attr.value; break;
  case TIR_DECLARE: all[0] = tir_buffer_at(ir, n->alloc.buffer)->data; break;
  default: break;
  }
  for (int i = 0; i < 3; i++) tir_walk_expr(ir, all[i], note_expr, g);
}

struct jit_uses jit_uses_below(const struct tir *ir, tir_stmt top) {
  assert(top && top < ir->stmts.count);
  struct gathering g = {ir, {calloc(ir->buffers.count, 1), calloc(ir->vars.count, 1)}};
  if (!g.uses.buffers || !g.uses.vars) abort();
  for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top)) note_statement(&g, s);
  return g.uses;
}

void jit_uses_free(struct jit_uses *uses) {
  free(uses->buffers);
  free(uses->vars);
}

struct source {
  const struct tir *ir;
  tir_buffer found;
};

static bool find_source(void *data, tir_expr x) {
  struct source *s = data;
  const struct tir_expr_node *n = tir_at(s->ir, x);
  if (n->kind == TIR_LOAD || n->kind == TIR_DATA) s->found = n->ref;
  return !s->found;
}

bool jit_is_view(const struct tir *ir, tir_buffer buffer) {
  return tir_buffer_at(ir, buffer)->data && !tir_is_placed(ir, buffer);
}

/* The buffer whose memory a view's is, at last; TIR_NONE: not known. */
static tir_buffer memory_of(const struct tir *ir, tir_buffer buffer) {
  assert(!buffer || tir_is_buffer(ir, buffer));
  struct source s = {ir, TIR_NONE};
  while (buffer && jit_is_view(ir, buffer)) {
    s.found = TIR_NONE;
    tir_walk_expr(ir, tir_buffer_at(ir, buffer)->data, find_source, &s);
    buffer = s.found;
  }
  return buffer;
}

bool jit_is_apart(const struct tir *ir, const tir_buffer *buffers, uint32_t count, tir_buffer buffer) {
  assert(tir_is_buffer(ir, buffer));
  tir_buffer memory = memory_of(ir, buffer);
  for (uint32_t i = 0; i < count; i++) {
    if (buffers[i] == buffer) continue;
    tir_buffer other = memory_of(ir, buffers[i]);
    if (!memory || !other || other == memory) return false;
  }
  return true;
}
