#include "unchanged.h"

#include <string.h>

/* Facts of a scope are found when first asked for, and kept. */
static void forget_facts(struct tir *ir) {
  for (uint32_t i = 0; i < ir->blocks.count; i++) ir->blocks.at[i].facts = 0;
}

static bool same_bytes(const void *a, const void *b, size_t size) { return size == 0 || !memcmp(a, b, size); }

const char *changed_array(struct tir *before, const struct tir *after) {
  forget_facts(before);
#define KEPT(array)                                                                                                    \
  if (before->array.count > after->array.count ||                                                                      \
      !same_bytes(before->array.at, after->array.at, before->array.count * sizeof *before->array.at))                  \
    return #array;
#define SAME(array)                                                                                                    \
  if (before->array.count != after->array.count) return #array;                                                        \
  KEPT(array)
  SAME(stmts)
  SAME(buffers)
  SAME(uses)
  SAME(funcs)
  SAME(params)
  SAME(forwards)
  SAME(exprs)
  SAME(operands)
  SAME(vars)
  SAME(names)
  SAME(iters)
  SAME(regions)
  KEPT(matches)
  KEPT(annotations)
  SAME(text)
  SAME(symbols)
#undef SAME
#undef KEPT
  if (before->blocks.count != after->blocks.count) return "blocks";
  for (uint32_t i = 0; i < before->blocks.count; i++) {
    struct tir_block_record now = after->blocks.at[i];
    now.facts = 0;
    if (memcmp(&now, &before->blocks.at[i], sizeof now) != 0) return "blocks";
  }
  return NULL;
}
