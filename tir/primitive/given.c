/* What a block is given by others than the block it goes to. */
#include "given.h"

#include <string.h>

static const char key[] = "msched.given";

bool tir_is_given(const struct tir *ir, tir_block block, tir_buffer buffer) {
  tir_expr names = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, key);
  if (!names || tir_at(ir, names)->kind != TIR_LIST) return false;
  const struct tir_expr_node *n = tir_at(ir, names);
  for (uint32_t i = 0; i < n->count; i++) {
    const struct tir_expr_node *name = tir_at(ir, tir_operands(ir, n->operands)[i]);
    if (name->kind == TIR_STRING_IMM && !strcmp(tir_text(ir, name->ref), tir_buffer_name(ir, buffer))) return true;
  }
  return false;
}

bool tir_is_given_all(const struct tir *ir, tir_block block, tir_block producer) {
  struct tir_span writes = tir_regions(ir, producer, true), reads = tir_regions(ir, block, false);
  bool any = false;
  for (uint32_t i = 0; i < writes.count; i++) {
    tir_buffer b = ir->regions.at[writes.first + i].buffer;
    if (!tir_has_region_of(ir, reads, b)) continue;
    if (!tir_is_given(ir, block, b)) return false;
    any = true;
  }
  return any;
}

bool tir_check_given(const struct tir *ir, tir_block block, tir_block scope, tir_stmt place, ms_error *err) {
  struct tir_span reads = tir_regions(ir, block, false);
  tir_stmt top = place;
  MS_CHECK(place != scope && tir_is_below(ir, place, scope));
  while (tir_stmt_at(ir, top)->parent != scope) top = tir_stmt_at(ir, top)->parent;
  for (uint32_t i = 0; i < reads.count; i++) {
    tir_buffer b = ir->regions.at[reads.first + i].buffer;
    if (!tir_is_given(ir, block, b)) continue;
    for (uint32_t u = tir_buffer_at(ir, b)->writers; u; u = ir->uses.at[u].next) {
      tir_block writer = ir->uses.at[u].block;
      if (!tir_is_below(ir, writer, scope)) continue;
      if (tir_compare_position(ir, writer, top) < 0 && !tir_is_below(ir, top, writer)) continue;
      return tir_refuse(ir, err, MS_MOVE_ORDER, place,
                        "block `%s` is given `%s`, which `%s` does not write before this begins",
                        tir_block_name(ir, block), tir_buffer_name(ir, b), tir_block_name(ir, writer));
    }
  }
  return true;
}
