/* Functions without the loops that never run. */
#include "tir/tir.h"

#include <stdlib.h>
#include <string.h>

/* Takes out what never runs, and what is left with nothing in it; returns the statement to go on with. */
static tir_stmt take_out(struct tir *ir, tir_stmt s, tir_stmt top) {
  for (;;) {
    tir_stmt parent = tir_stmt_at(ir, s)->parent, after = tir_after(ir, s, top);
    tir_kill(ir, s);
    const struct tir_stmt_node *p = tir_stmt_at(ir, parent);
    bool inner = parent != top && tir_stmt_at(ir, p->parent)->kind != TIR_FUNCTION;
    if (!inner || p->first[TIR_BODY] || p->first[TIR_INIT]) return after;
    s = parent;
  }
}

static void remove_unused(struct tir *ir, tir_block b) {
  for (uint32_t i = tir_block_at(ir, b)->allocs.count; i-- > 0;) {
    tir_buffer buffer = tir_operands(ir, tir_block_at(ir, b)->allocs.first)[i];
    const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
    if (!n->readers && !n->writers && tir_has_no_elements(ir, buffer)) tir_remove_alloc(ir, b, buffer);
  }
}

static bool has_blocks(const struct tir *ir, tir_func f) {
  tir_block root = tir_root_block(ir, f), child;
  return root && tir_child_blocks(ir, root, &child, 1) > 0;
}

struct tir *tir_without_empty(const struct tir *ir, tir_func f) {
  assert(tir_is_func(ir, f));
  struct tir *copy = tir_new(), *made = NULL;
  tir_copy(copy, ir);
  tir_stmt body = copy->funcs.at[f].body;
  for (tir_stmt s = body, next; s; s = next) {
    bool empty = tir_is(copy, s, TIR_LOOP) && tir_is_const(copy, tir_stmt_at(copy, s)->loop.extent, 0);
    next = empty ? take_out(copy, s, body) : tir_next(copy, s, body);
  }
  for (tir_stmt s = body; s; s = tir_next(copy, s, body))
    if (tir_is(copy, s, TIR_BLOCK)) remove_unused(copy, s);
  ms_error err = {.instruction = -1};
  char *text = has_blocks(copy, f) ? tir_print(copy, f, 0) : NULL;
  if (text) made = tir_read(text, strlen(text), "without its loops of extent 0", &err);
  free(text);
  tir_free(copy);
  bool good = made && !made->has_empty && tir_verify_scopes(made, &err);
  if (!good) tir_free(made);
  return good ? made : NULL;
}
