/* Extents of 0: where they are. */
#include "tir.h"

static bool is_zero(const struct tir *ir, tir_expr e) { return e && tir_is_int(ir, e) && tir_at(ir, e)->imm == 0; }

bool tir_has_no_elements(const struct tir *ir, tir_buffer buffer) {
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
    if (tir_has_no_elements(ir, tir_operands(ir, r->allocs.first)[i])) return true;
  for (uint32_t i = 0; i < r->matches.count; i++)
    if (tir_has_no_elements(ir, ir->matches.at[r->matches.first + i].buffer)) return true;
  return false;
}

static bool stmt_has_empty(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  switch (n->kind) {
  case TIR_LOOP: return is_zero(ir, n->loop.extent);
  case TIR_BLOCK: return block_has_empty(ir, s);
  case TIR_ALLOC:
  case TIR_DECLARE: return tir_has_no_elements(ir, n->alloc.buffer);
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
      if (b && tir_has_no_elements(ir, b) && (tir_buffer_at(ir, b)->readers || tir_buffer_at(ir, b)->writers))
        return true;
    }
  }
  return false;
}
