/* Extents of 0: where they are, and functions without the loops that never run. */
#include "tir.h"

#include <stdlib.h>
#include <string.h>

static bool is_zero(const struct tir *ir, tir_expr e) { return e && tir_is_int(ir, e) && tir_at(ir, e)->imm == 0; }

static bool has_no_elements(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  for (uint32_t d = 0; d < b->rank; d++)
    if (is_zero(ir, tir_operands(ir, b->shape)[d])) return true;
  return false;
}

static bool block_has_empty(const struct tir *ir, tir_block b) {
  const struct tir_block_record *r = tir_block_at(ir, b);
  for (uint32_t i = 0; i < r->iters.count; i++)
    if (is_zero(ir, ir->vars.at[ir->iters.at[r->iters.first + i].var].extent)) return true;
  for (uint32_t i = 0; i < r->allocs.count; i++)
    if (has_no_elements(ir, tir_operands(ir, r->allocs.first)[i])) return true;
  for (uint32_t i = 0; i < r->matches.count; i++)
    if (has_no_elements(ir, ir->matches.at[r->matches.first + i].buffer)) return true;
  return false;
}

static bool stmt_has_empty(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  switch (n->kind) {
  case TIR_LOOP: return is_zero(ir, n->loop.extent);
  case TIR_BLOCK: return block_has_empty(ir, s);
  case TIR_ALLOC:
  case TIR_DECLARE: return has_no_elements(ir, n->alloc.buffer);
  default: return false;
  }
}

/* A parameter without elements that no block uses is nothing that an instruction could edit. */
bool tir_find_empty(const struct tir *ir) {
  for (tir_func f = 1; f < ir->funcs.count; f++) {
    tir_stmt body = ir->funcs.at[f].body;
    struct tir_span params = ir->funcs.at[f].params;
    for (tir_stmt s = body; s; s = tir_next(ir, s, body))
      if (stmt_has_empty(ir, s)) return true;
    for (uint32_t i = 0; i < params.count; i++) {
      tir_buffer b = ir->params.at[params.first + i].buffer;
      if (b && has_no_elements(ir, b) && (tir_buffer_at(ir, b)->readers || tir_buffer_at(ir, b)->writers)) return true;
    }
  }
  return false;
}

/* Takes out what never runs, and what is left with nothing in it; returns the statement to go on with. */
static tir_stmt take_out(struct tir *ir, tir_stmt s, tir_stmt top) {
  for (;;) {
    tir_stmt parent = tir_stmt_at(ir, s)->parent, after = tir_after(ir, s, top);
    tir_kill(ir, s);
    const struct tir_stmt_node *p = tir_stmt_at(ir, parent);
    bool inner = parent != top && tir_stmt_at(ir, p->parent)->kind != TIR_FUNCTION;
    if (!inner || p->first[TIR_BODY] || p->first[TIR_INIT]) return after;
    s = parent;
  }
}

static void remove_unused(struct tir *ir, tir_block b) {
  for (uint32_t i = tir_block_at(ir, b)->allocs.count; i-- > 0;) {
    tir_buffer buffer = tir_operands(ir, tir_block_at(ir, b)->allocs.first)[i];
    const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
    if (!n->readers && !n->writers && has_no_elements(ir, buffer)) tir_remove_alloc(ir, b, buffer);
  }
}

static bool has_blocks(const struct tir *ir, tir_func f) {
  tir_block root = tir_root_block(ir, f), child;
  return root && tir_child_blocks(ir, root, &child, 1) > 0;
}

struct tir *tir_without_empty(const struct tir *ir, tir_func f) {
  assert(tir_is_func(ir, f));
  struct tir *copy = tir_new(), *made = NULL;
  tir_copy(copy, ir);
  tir_stmt body = copy->funcs.at[f].body;
  for (tir_stmt s = body, next; s; s = next) {
    bool empty = tir_is(copy, s, TIR_LOOP) && is_zero(copy, tir_stmt_at(copy, s)->loop.extent);
    next = empty ? take_out(copy, s, body) : tir_next(copy, s, body);
  }
  for (tir_stmt s = body; s; s = tir_next(copy, s, body))
    if (tir_is(copy, s, TIR_BLOCK)) remove_unused(copy, s);
  ms_error err = {.instruction = -1};
  char *text = has_blocks(copy, f) ? tir_print(copy, f, 0) : NULL;
  if (text) made = tir_read(text, strlen(text), "without its loops of extent 0", &err);
  free(text);
  tir_free(copy);
  bool good = made && !made->has_empty && tir_verify_scopes(made, &err);
  if (!good) tir_free(made);
  return good ? made : NULL;
}
