/* Loops that a vectorizer must leave alone: their iterations store several times to places that come back in others.
 *
 * LLVM's analysis of loops takes stores through one pointer for one access, however many they are; where it knows no
 * step of the pointer, all of several iterations' first stores then come before all their second ones
 * (LoopAccessAnalysis.cpp, "a single destination"; releases 14 to 19 do so). Inner loops may be unrolled before. */
#include "backend.h"

#include <assert.h>

struct place {
  const struct tir *ir;
  tir_stmt loop;
  tir_var var; /* of the loop; TIR_NONE: a while, which has names and data only */
  bool unclear, follows;
};

static bool binds_inside(const struct tir *ir, tir_stmt loop, tir_var v) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop))
    if (tir_is(ir, s, TIR_BIND) && tir_as(ir, s, TIR_BIND)->bind.var == v) return true;
  return false;
}

/* A part that is no sum or product by a constant, and follows the loop, or a name, or data. */
static bool look_at_place(void *data, tir_expr x) {
  struct place *p = data;
  const struct tir_expr_node *n = tir_at(p->ir, x);
  bool plain = n->kind == TIR_ADD || n->kind == TIR_SUB || n->kind == TIR_CAST || n->kind == TIR_VAR ||
               (n->kind == TIR_MUL && (tir_is_int(p->ir, n->a) || tir_is_int(p->ir, n->b)));
  bool named = n->kind == TIR_VAR && tir_is_let(p->ir, n->ref) && binds_inside(p->ir, p->loop, n->ref);
  p->follows |= n->kind == TIR_VAR && n->ref == p->var;
  if (plain && !named) return !p->unclear;
  p->unclear |=
      named || n->flags & TIR_HAS_LOAD || (p->var && tir_uses_var(p->ir, x, p->var)) || tir_uses_let(p->ir, x);
  return false;
}

static struct place place_in(const struct tir *ir, tir_stmt store, tir_stmt loop) {
  const struct tir_stmt_node *s = tir_as(ir, store, TIR_STORE);
  struct place place = {ir, loop, tir_is(ir, loop, TIR_LOOP) ? tir_as(ir, loop, TIR_LOOP)->loop.var : TIR_NONE, 0, 0};
  for (uint32_t d = 0; d < tir_buffer_at(ir, s->store.buffer)->rank && !place.unclear; d++)
    tir_walk_expr(ir, ir->operands.at[s->store.indices + d], look_at_place, &place);
  return place;
}

static bool comes_back(const struct tir *ir, tir_stmt store, tir_stmt loop) {
  return place_in(ir, store, loop).unclear;
}

/* A loop within this one has the store go to a place more than once. */
static bool is_repeated(const struct tir *ir, tir_stmt store, tir_stmt loop) {
  for (tir_stmt p = tir_stmt_at(ir, store)->parent; p != loop; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP) && !tir_is(ir, p, TIR_WHILE)) continue;
    struct place place = place_in(ir, store, p);
    if (place.unclear || !place.follows) return true;
  }
  return false;
}

static bool has_other_store(const struct tir *ir, tir_stmt store, tir_stmt loop) {
  tir_buffer buffer = tir_as(ir, store, TIR_STORE)->store.buffer;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop))
    if (s != store && tir_is(ir, s, TIR_STORE) &&
        tir_may_share_memory(ir, buffer, tir_as(ir, s, TIR_STORE)->store.buffer))
      return true;
  return false;
}

bool jit_stores_come_back(const struct tir *ir, tir_stmt loop) {
  assert(tir_is(ir, loop, TIR_LOOP) || tir_is(ir, loop, TIR_WHILE));
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop))
    if (tir_is(ir, s, TIR_STORE) && comes_back(ir, s, loop) &&
        (is_repeated(ir, s, loop) || has_other_store(ir, s, loop)))
      return true;
  return false;
}
