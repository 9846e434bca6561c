/* The tree of statements: a statement is made, and walks go on from one to the next. */
#include "arena.h"

#include <string.h>

tir_stmt tir_new_stmt(struct tir *ir, enum tir_stmt_kind kind) {
  tir_stmt s = tir_grow_stmts(ir, 1);
  memset(tir_stmt_at(ir, s), 0, sizeof(struct tir_stmt_node));
  tir_stmt_at(ir, s)->kind = (uint8_t)kind;
  return s;
}

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
