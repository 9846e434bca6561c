/* What the primitives that remake loops share. */
#include "loops.h"

bool tir_check_plain_loop(struct tir *ir, tir_loop loop, ms_error *err) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  if (n->annotations.count) return tir_refuse(ir, err, MS_LOOP_ANNOTATED_OR_BOUND, loop, "this loop is annotated");
  if (n->loop_kind == TIR_THREAD_BINDING)
    return tir_refuse(ir, err, MS_LOOP_ANNOTATED_OR_BOUND, loop, "this loop is bound to %s",
                      tir_text(ir, n->loop.thread));
  if (!tir_loop_starts_at_zero(ir, loop))
    return tir_refuse(ir, err, MS_LOOP_NOT_FROM_ZERO, loop, "this loop does not start at zero");
  return true;
}

static bool drop_if_unit(struct tir *ir, tir_stmt s) {
  if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) != 1) return false;
  tir_subst_var(ir, tir_stmt_at(ir, s)->loop.var, tir_stmt_at(ir, s)->loop.min);
  return true;
}

/* A block without iterations binds nothing: those inside it see the loops themselves. */
static void rebind(struct tir *ir, tir_loop loop) {
  for (tir_stmt s = tir_next(ir, loop, loop); s;) {
    uint32_t count = tir_is(ir, s, TIR_BLOCK) ? tir_block_at(ir, s)->iters.count : 0;
    for (uint32_t i = 0; i < count; i++) {
      tir_expr binding = tir_subst(ir, tir_iters(ir, s)[i].binding);
      tir_iters(ir, s)[i].binding = binding;
    }
    s = count ? tir_after(ir, s, loop) : tir_next(ir, s, loop);
  }
}

void tir_drop_unit_iters(struct tir *ir, tir_loop loop) {
  bool any = drop_if_unit(ir, loop);
  for (tir_stmt s = tir_stmt_at(ir, loop)->parent; s && !tir_is(ir, s, TIR_BLOCK); s = tir_stmt_at(ir, s)->parent)
    any |= drop_if_unit(ir, s);
  for (tir_stmt s = tir_next(ir, loop, loop); s;) {
    any |= drop_if_unit(ir, s);
    bool closed = tir_is(ir, s, TIR_BLOCK) && tir_block_at(ir, s)->iters.count;
    s = closed ? tir_after(ir, s, loop) : tir_next(ir, s, loop);
  }
  if (any) rebind(ir, loop);
  tir_subst_clear(ir);
}
