#include "unchanged.h"

#include <string.h>

static bool same_bytes(const void *a, const void *b, size_t size) { return size == 0 || !memcmp(a, b, size); }

const char *changed_array(const struct tir *before, const struct tir *after) {
#define KEPT(array)                                                                                                    \
  if (before->array.count > after->array.count ||                                                                      \
      !same_bytes(before->array.at, after->array.at, before->array.count * sizeof *before->array.at))                  \
    return #array;
#define SAME(array)                                                                                                    \
  if (before->array.count != after->array.count) return #array;                                                        \
  KEPT(array)
  SAME(stmts)
  SAME(blocks) /* what was found of scopes too: a replay has no refusals */
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
  return before->indirect != after->indirect       ? "indirect"
         : before->undeclared != after->undeclared ? "undeclared"
                                                   : NULL;
}
