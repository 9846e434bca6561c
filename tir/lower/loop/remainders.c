/* Remainders: an innermost loop that copies, and whose iterations stand in quotients and remainders by numbers with a
 * common divisor, is split by that: the inner loop goes from one element to the next.
 *
 *   for k in 1000: B[k // 64, k % 64] = A[k]     becomes     for k in 15: for kk in 64: B[k, kk] = A[64 k + kk]
 *                                                            for kk in 40: B[15, kk] = A[960 + kk]
 * Requires: no blocks; loops cut where conditions become certain (partition.c). Keeps: the order of iterations. */
#include "tir/lower/lower.h"

#include "tir/arith/linear.h"

enum { LEAST = 8 }; /* iterations of an inner loop that pay for it */

struct division {
  struct tir *ir;
  tir_var var;
  int64_t first, common; /* the loop's first iteration; what divides all quotients and remainders, 0: there are none */
};

static int64_t common_of(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a < 0 ? -a : a;
}

/* Takes a quotient or a remainder of the loop's variable in: what is added to that must be a multiple, too. */
static void add(struct division *d, const struct tir_expr_node *n) {
  struct tir *ir = d->ir;
  assert(tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm > 0);
  tir_expr dividend = n->a;
  int64_t common = common_of(d->common, tir_at(ir, n->b)->imm);
  struct tir_linear l = tir_linear_of(ir, dividend);
  common = common_of(common, l.constant + d->first);
  for (uint32_t t = 0; t < l.count; t++) {
    struct tir_term term = tir_terms(ir, l)[t];
    if (term.atom == tir_var_expr(ir, d->var))
      common = term.coefficient == 1 ? common : 1;
    else
      common = tir_uses_var(ir, term.atom, d->var) ? 1 : common_of(common, term.coefficient);
  }
  d->common = common;
}

static bool look(void *data, tir_expr e) {
  struct division *d = data;
  const struct tir_expr_node n = *tir_at(d->ir, e);
  if ((n.kind != TIR_FLOORDIV && n.kind != TIR_FLOORMOD) || !tir_uses_var(d->ir, n.a, d->var)) return true;
  if (tir_is_int(d->ir, n.b) && tir_at(d->ir, n.b)->imm > 0)
    add(d, &n);
  else
    d->common = 1;
  return true;
}

/* The store of what a copy reads, or of a constant, that is all there is in the loop; TIR_NONE: there is another. */
static tir_stmt copy_in(const struct tir *ir, tir_loop loop) {
  tir_stmt s = tir_only_child(ir, loop);
  if (!s || !tir_is(ir, s, TIR_STORE) || tir_stmt_at(ir, s)->store.predicate) return TIR_NONE;
  const struct tir_expr_node *value = tir_at(ir, tir_stmt_at(ir, s)->store.value);
  bool plain = value->kind == TIR_LOAD || value->kind == TIR_INT_IMM || value->kind == TIR_FLOAT_IMM;
  return plain && tir_type_lanes(value->type) == 1 ? s : TIR_NONE;
}

/* What the copy's loop is to be split by; 0: it stays. */
static int64_t divisor_of(struct tir *ir, tir_loop loop) {
  const struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_stmt s = copy_in(ir, loop);
  bool kind = n.loop_kind == TIR_SERIAL || n.loop_kind == TIR_VECTORIZED;
  if (!s || !kind || tir_loop_extent(ir, loop) <= 0 || !tir_is_int(ir, n.loop.min)) return 0;
  struct division d = {ir, n.loop.var, tir_at(ir, n.loop.min)->imm, 0};
  uint32_t rank = tir_buffer_at(ir, tir_stmt_at(ir, s)->store.buffer)->rank;
  for (uint32_t i = 0; i < rank; i++)
    tir_walk_expr(ir, ir->operands.at[tir_stmt_at(ir, s)->store.indices + i], look, &d);
  tir_walk_expr(ir, tir_stmt_at(ir, s)->store.value, look, &d);
  return d.common >= LEAST && tir_loop_extent(ir, loop) > d.common ? d.common : 0;
}

static void split(struct tir *ir, tir_loop loop, int64_t by) {
  int64_t first = tir_at(ir, tir_as(ir, loop, TIR_LOOP)->loop.min)->imm, extent = tir_loop_extent(ir, loop);
  assert(by > 1 && by <= extent && "a part of no iterations is left out by who asks");
  int64_t rest = extent % by;
  tir_loop whole = loop;
  if (rest) {
    whole = lower_part_of(ir, loop, first, extent - rest);
    tir_insert_after(ir, loop, lower_part_of(ir, loop, first + extent - rest, rest));
    tir_insert_after(ir, loop, whole);
    tir_kill(ir, loop);
  }
  enum tir_loop_kind kind = tir_stmt_at(ir, whole)->loop_kind;
  lower_split_loop(ir, whole, by, kind);
  tir_stmt_at(ir, whole)->loop_kind = TIR_SERIAL;
}

bool lower_remainders(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    int64_t by = tir_is(ir, s, TIR_LOOP) ? divisor_of(ir, s) : 0;
    if (!by) continue;
    next = tir_after(ir, s, low->body);
    split(ir, s, by);
  }
  return true;
}
