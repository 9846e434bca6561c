/* Stages: the statements of a loop that is annotated as a software pipeline get names that last until it is rotated.
 *
 *   for k, annotated:                      for k, annotated:
 *     for ax: with block S: …                T.attr(0, LOWER_STAGE, 0): for ax: with block S: …
 *     for i:  with block C: …                T.attr(0, LOWER_STAGE, 0): for i:  with block C: …
 *
 * Requires: blocks, and allocations where they belong (place.c). Gives: an attribute around each statement of the body of
 * such a loop, which says what the block in it, if it is one alone, is annotated with. Keeps: everything else; pipeline.c
 * takes the attributes away. */
#include "tir/lower/lower.h"

#include <string.h>

static bool asks(const struct tir *ir, tir_block block, const char *key) {
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, key);
  return value && tir_is_int(ir, value);
}

/* What the only block of the statement asks for. */
static int64_t wishes_of(const struct tir *ir, tir_stmt top) {
  tir_block only = TIR_NONE;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (only) return 0;
    only = s;
  }
  if (!only) return 0;
  return (asks(ir, only, "tir.manifest_shared_memory_local_stage") ? LOWER_STAGE_BY_REGISTERS : 0) |
         (asks(ir, only, "double_buffer_scope") ? LOWER_STAGE_DOUBLES : 0);
}

bool lower_is_stage(const struct tir *ir, tir_stmt s) {
  return tir_is(ir, s, TIR_ATTR) && !strcmp(tir_text(ir, tir_as(ir, s, TIR_ATTR)->attr.key), LOWER_STAGE);
}

tir_stmt lower_new_stage(struct tir *ir, int64_t wishes) {
  tir_stmt attr = tir_new_stmt(ir, TIR_ATTR);
  tir_symbol key = tir_symbol_of(ir, LOWER_STAGE);
  tir_expr none = tir_int(ir, TIR_T_I32, 0), value = tir_int(ir, TIR_T_I32, wishes);
  struct tir_stmt_node *n = tir_as(ir, attr, TIR_ATTR);
  n->attr.key = key, n->attr.node = none, n->attr.value = value;
  return attr;
}

bool lower_stages(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_LOOP) || !tir_annotation(ir, tir_stmt_at(ir, s)->annotations, LOWER_PIPELINE_STAGE))
      continue;
    int kind = tir_stmt_at(ir, s)->loop_kind;
    if (kind != TIR_SERIAL && kind != TIR_UNROLLED)
      return tir_refuse(ir, low->err, MS_LOWER_PIPELINE, s, "its iterations have no order");
    for (tir_stmt c = tir_stmt_at(ir, s)->first[TIR_BODY], next; c; c = next) {
      next = tir_stmt_at(ir, c)->next;
      int what = tir_stmt_at(ir, c)->kind;
      if (what != TIR_ALLOC && what != TIR_DECLARE && what != TIR_BIND)
        tir_wrap(ir, c, lower_new_stage(ir, wishes_of(ir, c)));
    }
  }
  return true;
}
