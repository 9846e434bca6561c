/* Annotate, unannotate: a key and a value on a loop or block.
 *
 * Requires: annotate: nothing. Unannotate: the key is there, and does not say that a region of a block is what the user
 *           stated: without it, that would be taken for what the block does.
 * After:    the loop or block bears the key; one that was there before keeps its value. Unannotate: it bears it not.
 * Forward:  nothing. */
#include "../analysis/analysis.h"

#include <string.h>

static struct tir_span *annotations_of(struct tir *ir, tir_stmt target) {
  assert(tir_is(ir, target, TIR_LOOP) || tir_is(ir, target, TIR_BLOCK));
  return &tir_stmt_at(ir, target)->annotations;
}

static bool has_key(struct tir *ir, tir_stmt target, const char *key) {
  return tir_annotation(ir, *annotations_of(ir, target), key) != TIR_NONE;
}

bool tir_annotate(struct tir *ir, tir_stmt target, const char *key, tir_expr value, ms_error *err) {
  (void)err;
  assert(value != TIR_NONE);
  if (has_key(ir, target, key)) return true;
  tir_symbol symbol = tir_symbol_of(ir, key);
  tir_annotate_span(ir, annotations_of(ir, target), symbol, value);
  return true;
}

bool tir_unannotate(struct tir *ir, tir_stmt target, const char *key, ms_error *err) {
  if (!has_key(ir, target, key))
    return tir_refuse(ir, err, MS_ANNOTATION_NOT_FOUND, target, "this %s has no annotation `%s`",
                      tir_is(ir, target, TIR_LOOP) ? "loop" : "block", key);
  if (tir_is(ir, target, TIR_BLOCK) && (!strcmp(key, "explicit_read_region") || !strcmp(key, "explicit_write_region")))
    return tir_refuse(ir, err, MS_REGION_STATED, target, "`%s` says that a region of block `%s` is stated by hand", key,
                      tir_block_name(ir, target));
  tir_annotate_span(ir, annotations_of(ir, target), tir_find_symbol(ir, key), TIR_NONE);
  return true;
}
