/* Annotate, unannotate: a key and a value on a loop or block.
 *
 * Requires: annotate: nothing. Unannotate: the key is there.
 * After:    the loop or block bears the key; one that was there before keeps its value. Unannotate: it bears it not.
 * Forward:  nothing. */
#include "tir/analysis/analysis.h"

#include <string.h>

static struct tir_span *annotations_of(struct tir *ir, tir_stmt target) {
  assert(tir_is(ir, target, TIR_LOOP) || tir_is(ir, target, TIR_BLOCK));
  return &tir_stmt_at(ir, target)->annotations;
}

static bool has_key(struct tir *ir, tir_stmt target, const char *key) {
  return tir_annotation(ir, *annotations_of(ir, target), key) != TIR_NONE;
}

void tir_annotate_symbol(struct tir *ir, tir_stmt target, tir_symbol key, tir_expr value) {
  struct tir_span *span = annotations_of(ir, target);
  assert(value != TIR_NONE);
  for (uint32_t i = span->first; i < span->first + span->count; i++)
    if (ir->annotations.at[i].key == key) return;
  tir_annotate_span(ir, span, key, value);
}

bool tir_unannotate(struct tir *ir, tir_stmt target, const char *key, ms_error *err) {
  if (!has_key(ir, target, key))
    return tir_refuse(ir, err, MS_ANNOTATION_NOT_FOUND, target, "this %s has no annotation `%s`",
                      tir_is(ir, target, TIR_LOOP) ? "loop" : "block", key);
  tir_annotate_span(ir, annotations_of(ir, target), tir_find_symbol(ir, key), TIR_NONE);
  return true;
}
