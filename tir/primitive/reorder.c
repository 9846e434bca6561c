/* Reorder: loops of one nest take the given order; those between them that are not named keep their places.
 *
 * Requires: no loop is named twice; they lie in one nest whose loops, from the outermost named to the innermost, are
 *           each the whole body of the one around; the blocks inside have spatial and reduction iterations only, bound
 * to affine iterators; no loop's range depends on one that would be inside it. After:    the same loops in the new
 * order. Forward:  nothing: loops keep their identity. */
#include "../analysis.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ON_STACK = 64 };

struct plan {
  tir_loop *chain; /* the nest, outermost first: as it is, then as it shall be */
  tir_loop *order;
  uint32_t depth;
};

static bool is_named(const tir_loop *loops, uint32_t count, tir_loop l) {
  for (uint32_t i = 0; i < count; i++)
    if (loops[i] == l) return true;
  return false;
}

static bool check_named_once(const struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  for (uint32_t i = 1; i < count; i++)
    if (is_named(loops, i, loops[i]))
      return tir_refuse(ir, err, MS_LOOP_REPEATED, loops[i], "this loop is named twice");
  return true;
}

/* The innermost of the loops if they are nested in one another. */
static tir_loop find_innermost(const struct tir *ir, const tir_loop *loops, uint32_t count) {
  tir_loop innermost = loops[0];
  for (uint32_t i = 1; i < count; i++)
    if (tir_is_below(ir, loops[i], innermost)) innermost = loops[i];
  return innermost;
}

/* Walks from the innermost loop up to the outermost named one, and writes the nest. */
static bool check_chain(struct tir *ir, const tir_loop *loops, uint32_t count, struct plan *plan, uint32_t room,
                        ms_error *err) {
  tir_loop at = find_innermost(ir, loops, count);
  uint32_t depth = 0, named = 0;
  for (;;) {
    assert(depth < room);
    plan->chain[room - ++depth] = at;
    if (is_named(loops, count, at) && ++named == count) break;
    tir_stmt parent = tir_stmt_at(ir, at)->parent;
    if (!tir_is(ir, parent, TIR_LOOP))
      return tir_refuse(ir, err, MS_LOOPS_NOT_A_CHAIN, at, "not all of the loops are around this one, directly nested");
    if (tir_only_child(ir, parent) != at)
      return tir_refuse(ir, err, MS_LOOPS_NOT_A_CHAIN, parent, "this loop's body is more than the next loop");
    at = parent;
  }
  memmove(plan->chain, plan->chain + room - depth, depth * sizeof *plan->chain);
  plan->depth = depth;
  return true;
}

static bool check_blocks(struct tir *ir, const struct plan *plan, ms_error *err) {
  tir_loop bottom = plan->chain[plan->depth - 1];
  tir_stmt high = tir_stmt_at(ir, plan->chain[0])->parent;
  for (tir_stmt s = tir_next(ir, bottom, bottom); s;) {
    if (!tir_is(ir, s, TIR_BLOCK)) {
      s = tir_next(ir, s, bottom);
      continue;
    }
    uint32_t count = tir_block_at(ir, s)->iters.count;
    for (uint32_t i = 0; i < count; i++)
      if (tir_iters(ir, s)[i].kind == TIR_OPAQUE)
        return tir_refuse(ir, err, MS_BLOCK_ITER_OPAQUE, s, "this block has an opaque iteration");
    if (count && !tir_is_affine_binding(ir, s, TIR_NONE) && !tir_is_affine_binding(ir, s, high))
      return tir_refuse(ir, err, MS_BINDING_NOT_AFFINE, s, "this block's bindings are not affine");
    s = tir_after(ir, s, bottom);
  }
  return true;
}

static bool check_ranges(struct tir *ir, const struct plan *plan, ms_error *err) {
  for (uint32_t i = 0; i < plan->depth; i++) {
    tir_expr min = tir_stmt_at(ir, plan->order[i])->loop.min, extent = tir_stmt_at(ir, plan->order[i])->loop.extent;
    if (!((tir_at(ir, min)->flags | tir_at(ir, extent)->flags) & TIR_HAS_VAR)) continue;
    for (uint32_t j = i + 1; j < plan->depth; j++) {
      tir_var inner = tir_stmt_at(ir, plan->order[j])->loop.var;
      if (tir_uses_var(ir, min, inner) || tir_uses_var(ir, extent, inner))
        return tir_refuse(ir, err, MS_REORDER_DEPENDENT_RANGE, plan->order[i],
                          "this loop's range depends on a loop that would be inside it");
    }
  }
  return true;
}

static bool check(struct tir *ir, const tir_loop *loops, uint32_t count, struct plan *plan, uint32_t room,
                  ms_error *err) {
  if (!check_named_once(ir, loops, count, err) || !check_chain(ir, loops, count, plan, room, err) ||
      !check_blocks(ir, plan, err))
    return false;
  uint32_t next = 0;
  for (uint32_t i = 0; i < plan->depth; i++)
    plan->order[i] = is_named(loops, count, plan->chain[i]) ? loops[next++] : plan->chain[i];
  return check_ranges(ir, plan, err);
}

static void edit(struct tir *ir, const struct plan *plan) {
  uint32_t depth = plan->depth;
  tir_stmt place = tir_new_stmt(ir, TIR_EVALUATE), body = tir_new_stmt(ir, TIR_EVALUATE);
  tir_replace(ir, plan->chain[0], place);
  tir_move_children(ir, plan->chain[depth - 1], TIR_BODY, body, TIR_BODY);
  for (uint32_t i = 1; i < depth; i++) tir_detach(ir, plan->chain[i]);
  for (uint32_t i = 1; i < depth; i++) tir_append(ir, plan->order[i - 1], TIR_BODY, plan->order[i]);
  tir_move_children(ir, body, TIR_BODY, plan->order[depth - 1], TIR_BODY);
  tir_replace(ir, place, plan->order[0]);
  tir_kill(ir, place);
  tir_kill(ir, body);
}

bool tir_reorder(struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  if (count < 2) return true;
  uint32_t room = 1;
  for (tir_stmt s = find_innermost(ir, loops, count); (s = tir_stmt_at(ir, s)->parent) != TIR_NONE;)
    room += tir_is(ir, s, TIR_LOOP);
  tir_loop on_stack[2 * MOST_ON_STACK];
  tir_loop *loops_of_plan = room > MOST_ON_STACK ? malloc(2 * room * sizeof *loops_of_plan) : on_stack;
  if (!loops_of_plan) abort();
  struct plan plan = {loops_of_plan, loops_of_plan + room, 0};
  bool accepted = check(ir, loops, count, &plan, room, err);
  if (accepted) edit(ir, &plan);
  if (loops_of_plan != on_stack) free(loops_of_plan);
  return accepted;
}
