/* Stages: the statements of a loop that is annotated as a software pipeline get names that last until it is rotated.
 *
 *   for k, annotated:                      for k, annotated:
 *     for ax: with block S: …                T.attr(0, LOWER_STAGE, 0): for ax: with block S: …
 *     for i:  with block C: …                T.attr(0, LOWER_STAGE, 0): for i:  with block C: …
 *
 * Requires: blocks, and allocations where they belong (place.c). Gives: an attribute around each statement of the
 * body of such a loop, which says what the block in it, if it is one alone, is annotated with. Keeps: everything
 * else; pipeline.c takes the attributes away. */
#include "tir/lower/lower.h"

bool lower_is_stage(const struct tir *ir, tir_stmt s) { return lower_is_attr(ir, s, LOWER_STAGE); }

tir_stmt lower_new_stage(struct tir *ir, int64_t requests) {
  assert(requests >= 0 && requests <= (TIR_STATEMENT_BY_REGISTERS | TIR_STATEMENT_DOUBLES));
  return lower_new_attr(ir, LOWER_STAGE, tir_int(ir, TIR_T_I32, requests));
}

bool lower_stages(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is_pipeline(ir, s)) continue;
    int kind = tir_stmt_at(ir, s)->loop_kind;
    if (kind != TIR_SERIAL && kind != TIR_UNROLLED)
      return tir_refuse(ir, low->err, MS_LOWER_PIPELINE, s, "its iterations have no order");
    for (tir_stmt c = tir_stmt_at(ir, s)->first[TIR_BODY], next; c; c = next) {
      next = tir_stmt_at(ir, c)->next;
      int what = tir_stmt_at(ir, c)->kind;
      if (what != TIR_ALLOC && what != TIR_DECLARE && what != TIR_BIND)
        tir_wrap(ir, c, lower_new_stage(ir, tir_statement_requests(ir, c)));
    }
  }
  return true;
}
