/* Which values are never NaN. Maxima and minima leave NaN out, so what a reduction by them has gathered so far is none,
 * if it began with none: of it and an element x86 then takes one instruction, where three check both.
 *
 * A buffer holds no NaN where each store to it writes none, if no load of such a buffer gives one: by induction over
 * the stores that are carried out. What was never written is left out: nothing depends on it. */
#include "emit.h"

#include <math.h>
#include <stdlib.h>

bool emit_is_number(const struct emit *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  switch (n->kind) {
  case TIR_FLOAT_IMM: return !isnan(n->real);
  case TIR_MIN:
  case TIR_MAX: return emit_is_number(e, n->a) || emit_is_number(e, n->b);
  case TIR_BROADCAST: return emit_is_number(e, n->a);
  case TIR_SELECT: return emit_is_number(e, n->b) && emit_is_number(e, n->c);
  case TIR_CAST: /* floats of 8 bits have NaN in the place of infinity */
    return !tir_type_is_byte(n->type) && tir_type_is_float(tir_type_of(e->ir, n->a)) && emit_is_number(e, n->a);
  case TIR_LOAD: return e->numbers[n->ref];
  default: return false;
  }
}

/* Whether all stores to the buffer are statements of their own: nothing else shares its memory. */
static bool is_stored_by_name(const struct emit *e, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, buffer);
  return tir_type_is_float(b->type) && (!b->data || tir_is_placed(e->ir, buffer));
}

void emit_find_numbers(struct emit *e) {
  const struct tir *ir = e->ir;
  for (uint32_t s = 1; s < ir->stmts.count; s++) {
    const struct tir_stmt_node *n = &ir->stmts.at[s];
    if (n->kind == TIR_ALLOC || n->kind == TIR_DECLARE)
      e->numbers[n->alloc.buffer] = is_stored_by_name(e, n->alloc.buffer);
  }
  for (uint32_t x = 1; x < ir->exprs.count; x++)
    if (ir->exprs.at[x].kind == TIR_DATA) e->numbers[ir->exprs.at[x].ref] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t s = 1; s < ir->stmts.count; s++) {
      const struct tir_stmt_node *n = &ir->stmts.at[s];
      if (n->kind != TIR_STORE || !e->numbers[n->store.buffer] || emit_is_number(e, n->store.value)) continue;
      e->numbers[n->store.buffer] = 0;
      changed = true;
    }
  }
}
