/* Unroll: unrolled loops, and the serial loops that a pragma lets be, are written out.
 * Requires: no blocks. Gives: no loops of kind unrolled. Keeps: the order of iterations.
 * A loop too long to write out becomes serial: the compiler may still unroll it. */
#include "lower.h"

#include <string.h>

enum { MOST_COPIES = 4096 }; /* statements that one unrolled loop may become */

static uint32_t statements_below(const struct tir *ir, tir_stmt top) {
  uint32_t count = 0;
  for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top)) count++;
  return count;
}

/* A branch inside a store's value splits the code around it, which is dear to compile: it counts as so many stores. */
enum { STEPS_OF_BRANCH = 8 };

static bool is_branch(void *data, tir_expr e) {
  const struct tir *ir = *(const struct tir *const *)data;
  return tir_at(ir, e)->kind == TIR_CALL && !strcmp(tir_text(ir, tir_at(ir, e)->ref), "if_then_else");
}

static int64_t steps_of_store(const struct tir *ir, tir_stmt store) {
  return 1 +
         STEPS_OF_BRANCH * (int64_t)tir_count_in_tree(ir, tir_as(ir, store, TIR_STORE)->store.value, is_branch, &ir);
}

/* How many registers the lanes of a vectorized loop take, of 32 bits each: so many instructions does a store become. */
static int64_t registers_of(const struct lowering *low, tir_stmt loop) {
  int64_t lanes = tir_loop_extent(low->ir, loop), each = lower_vector_bits(low) / 32;
  return lanes < 0 ? lanes : (lanes + each - 1) / each;
}

/* Stores executed by one iteration of what is below, -1 when not constant. A condition that is left is a branch or a
 * mask. */
static int64_t steps_below(const struct lowering *low, tir_stmt top) {
  const struct tir *ir = low->ir;
  int64_t steps = 0;
  for (tir_stmt s = tir_stmt_at(ir, top)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    int64_t inner = 1;
    if (tir_is(ir, s, TIR_LOOP)) {
      bool vectorized = tir_stmt_at(ir, s)->loop_kind == TIR_VECTORIZED;
      int64_t extent = vectorized ? registers_of(low, s) : tir_loop_extent(ir, s);
      inner = steps_below(low, s);
      if (extent < 0 || inner < 0 || __builtin_mul_overflow(inner, extent, &inner)) return -1;
    } else if (tir_is(ir, s, TIR_IF)) {
      inner = steps_below(low, s);
      if (inner < 0 || __builtin_add_overflow(inner, STEPS_OF_BRANCH, &inner)) return -1;
    } else if (tir_is(ir, s, TIR_STORE)) {
      inner = steps_of_store(ir, s);
    }
    if (__builtin_add_overflow(steps, inner, &steps)) return -1;
  }
  return steps;
}

static void write_out(struct tir *ir, tir_stmt loop, int64_t extent) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_type type = ir->vars.at[n.loop.var].type;
  tir_stmt at = loop;
  for (int64_t i = 0; i < extent; i++) {
    tir_expr value = tir_add(ir, n.loop.min, tir_int(ir, type, i));
    for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
      tir_stmt copy = tir_clone_stmt(ir, s);
      tir_subst_var(ir, n.loop.var, value);
      tir_subst_stmt(ir, copy);
      tir_subst_clear(ir);
      tir_insert_after(ir, at, copy);
      at = copy;
    }
  }
  tir_kill(ir, loop);
}

/* A flat statement that holds for the rest of its list cannot be repeated without a scope of its own. */
static bool has_flat(const struct tir *ir, tir_stmt loop) {
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    if (tir_is(ir, s, TIR_BIND) || tir_is(ir, s, TIR_ALLOC) || tir_is(ir, s, TIR_DECLARE)) return true;
  return false;
}

static bool wants_unrolling(const struct lowering *low, tir_stmt loop, int64_t max_step) {
  const struct tir *ir = low->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  if (n->loop_kind == TIR_UNROLLED) return true;
  if (n->loop_kind != TIR_SERIAL || max_step <= 0) return false;
  int64_t extent = tir_loop_extent(ir, loop), inner = steps_below(low, loop), all;
  return extent >= 0 && inner >= 0 && !__builtin_mul_overflow(extent, inner, &all) && all <= max_step;
}

static void unroll_below(struct lowering *low, tir_stmt top, int64_t max_step) {
  struct tir *ir = low->ir;
  for (tir_stmt s = tir_stmt_at(ir, top)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    int64_t own = max_step;
    if (tir_is(ir, s, TIR_LOOP)) {
      struct tir_span notes = tir_stmt_at(ir, s)->annotations;
      tir_expr step = tir_annotation(ir, notes, "pragma_auto_unroll_max_step");
      tir_expr explicitly = tir_annotation(ir, notes, "pragma_unroll_explicit");
      if (step && tir_is_int(ir, step)) own = explicitly && tir_is_const(ir, explicitly, 0) ? 0 : tir_at(ir, step)->imm;
    }
    unroll_below(low, s, own);
    if (tir_is(ir, s, TIR_IF) && tir_stmt_at(ir, s)->first[TIR_ELSE]) {
      /* the else's loops are handled as a body of their own */
      for (tir_stmt t = tir_stmt_at(ir, s)->first[TIR_ELSE]; t; t = tir_stmt_at(ir, t)->next) unroll_below(low, t, own);
    }
    if (!tir_is(ir, s, TIR_LOOP) || !wants_unrolling(low, s, own)) continue;
    int64_t extent = tir_loop_extent(ir, s);
    bool fits = extent >= 0 && extent * (int64_t)statements_below(ir, s) <= MOST_COPIES && !has_flat(ir, s);
    if (fits)
      write_out(ir, s, extent);
    else
      tir_stmt_at(ir, s)->loop_kind = TIR_SERIAL;
  }
}

bool lower_unroll(struct lowering *low) {
  unroll_below(low, low->body, 0);
  return true;
}
