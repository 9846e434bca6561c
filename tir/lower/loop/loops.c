/* Empty: loops of no iterations vanish, thread-bound ones too, so that no pass looks at what never runs.
 * Requires: nothing. Gives: no loop of extent 0 that was read. Keeps: everything else.
 * Loops: loops of one iteration become their body, loops of none vanish, constant conditions are decided.
 * Requires: no blocks. Gives: no loop of constant extent below 2, but thread-bound ones; no constant condition.
 * Keeps: everything else. */
#include "tir/lower/lower.h"

bool lower_empty(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = ir->has_empty ? low->body : TIR_NONE, next; s; s = next) {
    bool empty = tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) == 0;
    next = empty ? tir_after(ir, s, low->body) : tir_next(ir, s, low->body);
    if (empty) tir_kill(ir, s);
  }
  return true;
}

static bool is_pragma(const struct tir *ir, tir_stmt loop) { return tir_stmt_at(ir, loop)->annotations.count > 0; }

/* What a unit loop is annotated with holds for the loops in it. */
static void hand_down(struct tir *ir, tir_stmt loop) {
  struct tir_span from = tir_stmt_at(ir, loop)->annotations;
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    for (uint32_t i = from.first; i < from.first + from.count; i++) {
      struct tir_annotation a = ir->annotations.at[i];
      tir_annotate_span(ir, &tir_stmt_at(ir, s)->annotations, a.key, a.value);
    }
  }
}

/* Returns the statement from which the walk goes on. */
static tir_stmt simplify_loop(struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  assert(tir_is(ir, loop, TIR_LOOP));
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_stmt after = tir_after(ir, loop, low->body);
  int64_t extent = tir_loop_extent(ir, loop);
  if (extent == 0) {
    tir_kill(ir, loop);
    return after;
  }
  if (extent != 1 || n.loop_kind == TIR_THREAD_BINDING) return tir_next(ir, loop, low->body);
  tir_subst_var(ir, n.loop.var, n.loop.min);
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  if (is_pragma(ir, loop)) hand_down(ir, loop);
  tir_stmt first = tir_stmt_at(ir, loop)->first[TIR_BODY];
  tir_kill_alone(ir, loop);
  return first ? first : after;
}

static tir_stmt simplify_if(struct lowering *low, tir_stmt test) {
  struct tir *ir = low->ir;
  assert(tir_is(ir, test, TIR_IF));
  tir_expr condition = tir_simplify(ir, tir_stmt_at(ir, test)->test.condition);
  tir_stmt_at(ir, test)->test.condition = condition;
  tir_stmt after = tir_after(ir, test, low->body);
  if (!tir_is_int(ir, condition)) return tir_next(ir, test, low->body);
  bool taken = tir_at(ir, condition)->imm;
  if (!taken) { /* the else is what is left */
    while (tir_stmt_at(ir, test)->first[TIR_BODY]) tir_kill(ir, tir_stmt_at(ir, test)->first[TIR_BODY]);
    tir_move_children(ir, test, TIR_ELSE, test, TIR_BODY);
  } else {
    while (tir_stmt_at(ir, test)->first[TIR_ELSE]) tir_kill(ir, tir_stmt_at(ir, test)->first[TIR_ELSE]);
  }
  tir_stmt first = tir_stmt_at(ir, test)->first[TIR_BODY], attr = tir_stmt_at(ir, test)->parent;
  tir_kill_alone(ir, test);
  if (lower_is_outside(ir, attr)) tir_kill_alone(ir, attr); /* it was around this test */
  return first ? first : after;
}

static tir_stmt simplify_store(struct lowering *low, tir_stmt store) {
  struct tir *ir = low->ir;
  tir_expr value = tir_as(ir, store, TIR_STORE)->store.value;
  if (tir_at(ir, value)->flags & TIR_HAS_CALL) {
    value = lower_decide_choices(ir, value);
    tir_as(ir, store, TIR_STORE)->store.value = value;
  }
  return tir_next(ir, store, low->body);
}

bool lower_loops(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s;) {
    if (tir_is(ir, s, TIR_LOOP))
      s = simplify_loop(low, s);
    else if (tir_is(ir, s, TIR_IF))
      s = simplify_if(low, s);
    else if (tir_is(ir, s, TIR_STORE))
      s = simplify_store(low, s);
    else
      s = tir_next(ir, s, low->body);
  }
  /* Loops and branches that were emptied go, innermost first. */
  for (bool again = true; again;) {
    again = false;
    for (tir_stmt s = low->body, next; s; s = next) {
      next = tir_next(ir, s, low->body);
      const struct tir_stmt_node *n = tir_stmt_at(ir, s);
      if ((n->kind != TIR_LOOP && n->kind != TIR_IF) || n->first[0] || n->first[1]) continue;
      tir_kill(ir, s);
      again = true;
    }
  }
  return true;
}
