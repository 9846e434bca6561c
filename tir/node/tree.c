/* The tree of statements: walks go on from one to the next. */
#include "arena.h"

tir_stmt tir_after(const struct tir *ir, tir_stmt s, tir_stmt top) {
  while (s != top) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->next) return n->next;
    tir_stmt parent = n->parent;
    if (!parent) return TIR_NONE;
    /* A block's init comes before its body, an if's body before its else. */
    bool block = tir_is(ir, parent, TIR_BLOCK);
    enum tir_list second = block ? TIR_BODY : TIR_ELSE;
    if (n->list != second && tir_stmt_at(ir, parent)->first[second]) return tir_stmt_at(ir, parent)->first[second];
    s = parent;
  }
  return TIR_NONE;
}

tir_stmt tir_next_of(const struct tir *ir, tir_stmt s, tir_stmt top) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  enum tir_list first = n->kind == TIR_BLOCK ? TIR_INIT : TIR_BODY;
  if (n->first[first]) return n->first[first];
  if (n->first[!first]) return n->first[!first];
  return tir_after(ir, s, top);
}

bool tir_contains_block(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_BLOCK)) return true;
  return false;
}
