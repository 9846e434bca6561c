/* The tree of statements: walks go on from one to the next. */
#include "arena.h"

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
    if (!n->parent) return TIR_NONE;
    const struct tir_stmt_node *parent = tir_stmt_at(ir, n->parent);
    /* A block's init comes before its body, an if's body before its else. */
    enum tir_list second = parent->kind == TIR_BLOCK ? TIR_BODY : TIR_ELSE;
    if (n->list != second && parent->first[second]) return parent->first[second];
    s = n->parent;
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
