/* Ends: a loop ends where a condition around all that matters in it is false from then on.
 *
 *   for j in range(8):                        for j in range(i + 1):
 *     S = K[j]                                  S = K[j]
 *     if j <= i: C += S            becomes      C += S
 *
 * What else the loop has makes the contents of its own buffers, which the condition's body alone reads; loops that have
 * nothing else stay, as a condition costs little there. The condition stays where the shorter loop does not imply it.
 * Threads of a block run as many iterations as that of them that runs most: they may synchronize in the loop.
 *
 * Where blocks of greater numbers run more iterations, the axis is turned around: blocks begin in the order of their
 * numbers, and short ones fill in at the end. Source: Graham, "Bounds on multiprocessing timing anomalies", 1969.
 *
 * Requires: no blocks; kernels. Gives: nothing. Keeps: constant extents of all other loops. */
#include "tir/lower/lower.h"

#include "tir/arith/linear.h"

/* ---- What the loop has ---- */

struct body {
  tir_stmt test;   /* the condition */
  uint32_t makers; /* statements before it */
};

/* The statement in attributes that stand around it and its allocations alone. */
static tir_stmt inside_attributes(const struct tir *ir, tir_stmt s) {
  while (tir_is(ir, s, TIR_ATTR)) {
    tir_stmt inner = tir_stmt_at(ir, s)->first[TIR_BODY];
    while (inner && tir_is(ir, inner, TIR_ALLOC)) inner = tir_stmt_at(ir, inner)->next;
    if (!inner || tir_stmt_at(ir, inner)->next) break;
    s = inner;
  }
  return s;
}

static bool allocates(const struct tir *ir, tir_stmt loop, tir_buffer buffer) {
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    if (tir_is(ir, s, TIR_ALLOC) && tir_stmt_at(ir, s)->alloc.buffer == buffer) return true;
  return false;
}

/* It stores to buffers of the loop's own, and does nothing else. */
static bool is_maker(const struct tir *ir, tir_stmt loop, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    switch (n->kind) {
    case TIR_STORE:
      if (!allocates(ir, loop, n->store.buffer)) return false;
      break;
    case TIR_LOOP:
    case TIR_IF:
    case TIR_ATTR: break;
    default: return false;
    }
  }
  return true;
}

static bool read_body(const struct tir *ir, tir_stmt loop, struct body *out) {
  *out = (struct body){TIR_NONE, 0};
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (tir_is(ir, s, TIR_ALLOC)) continue;
    tir_stmt inner = inside_attributes(ir, s);
    if (!tir_stmt_at(ir, s)->next && tir_is(ir, inner, TIR_IF) && !tir_stmt_at(ir, inner)->first[TIR_ELSE])
      out->test = inner;
    else if (!is_maker(ir, loop, s))
      return false;
    else
      out->makers++;
  }
  return out->test && out->makers;
}

/* ---- Where it ends ---- */

/* The loop around `inside` whose variable this is, of threads of a block; TIR_NONE: there is none. */
static tir_stmt thread_loop_of(const struct tir *ir, tir_stmt inside, tir_expr atom) {
  if (tir_at(ir, atom)->kind != TIR_VAR) return TIR_NONE;
  for (tir_stmt s = tir_stmt_at(ir, inside)->parent; s; s = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_LOOP && n->loop.var == tir_at(ir, atom)->ref)
      return n->loop_kind == TIR_THREAD_BINDING && !tir_is_block_axis(tir_loop_axis(ir, s)) ? s : TIR_NONE;
  }
  return TIR_NONE;
}

/* A variable of threads, or of the loop itself. */
static bool is_of_threads(const struct tir *ir, const void *context, tir_var v) {
  tir_stmt loop = *(const tir_stmt *)context;
  return v == tir_stmt_at(ir, loop)->loop.var || thread_loop_of(ir, loop, tir_var_expr(ir, v));
}

/* The sum at most, of all of a block's threads, as `rest` of coefficient * v + rest <= 0 at its least; TIR_NONE: it is
 * no such sum. */
static tir_expr least_rest(struct tir *ir, tir_stmt loop, tir_expr apart, int64_t *coefficient) {
  struct tir_linear l = tir_linear_of(ir, apart);
  tir_type type = tir_type_of(ir, apart);
  tir_expr self = tir_var_expr(ir, tir_stmt_at(ir, loop)->loop.var), rest = tir_int(ir, type, l.constant);
  *coefficient = 0;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    if (t.atom == self) {
      *coefficient = t.coefficient;
      continue;
    }
    tir_expr value = t.atom;
    tir_stmt threads = thread_loop_of(ir, loop, t.atom);
    if (threads) {
      int64_t extent = tir_loop_extent(ir, threads);
      if (extent < 1) return TIR_NONE;
      value = tir_stmt_at(ir, threads)->loop.min;
      if (t.coefficient < 0) value = tir_add(ir, value, tir_int(ir, tir_type_of(ir, value), extent - 1));
    } else if (tir_any_var(ir, t.atom, is_of_threads, &loop)) {
      return TIR_NONE;
    }
    rest = tir_add(ir, rest, tir_mul(ir, value, tir_int(ir, type, t.coefficient)));
  }
  return *coefficient > 0 ? rest : TIR_NONE;
}

/* The end of the values of v for which a comparison may hold; TIR_NONE: it is not known. */
static tir_expr end_of(struct tir *ir, tir_stmt loop, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind < TIR_LT || n.kind > TIR_GE || !tir_is_index(ir, n.a) || !tir_is_index(ir, n.b)) return TIR_NONE;
  if (tir_type_of(ir, n.a) != tir_type_of(ir, n.b)) return TIR_NONE;
  bool swap = n.kind == TIR_GT || n.kind == TIR_GE, strict = n.kind == TIR_LT || n.kind == TIR_GT;
  tir_expr apart = tir_sub(ir, swap ? n.b : n.a, swap ? n.a : n.b);
  if (strict) apart = tir_add(ir, apart, tir_int(ir, tir_type_of(ir, apart), 1));
  int64_t size;
  tir_expr rest = least_rest(ir, loop, apart, &size);
  if (!rest) return TIR_NONE;
  assert(size > 0);
  tir_type type = tir_type_of(ir, rest);
  tir_expr last = tir_floordiv(ir, tir_sub(ir, tir_int(ir, type, 0), rest), tir_int(ir, type, size));
  return tir_add(ir, last, tir_int(ir, type, 1));
}

/* The least end that some conjunct gives. */
static tir_expr find_end(struct tir *ir, tir_stmt loop, tir_expr condition) {
  struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind != TIR_AND) return end_of(ir, loop, condition);
  tir_expr a = find_end(ir, loop, n.a), b = find_end(ir, loop, n.b);
  return a && b && tir_type_of(ir, a) == tir_type_of(ir, b) ? tir_make(ir, TIR_MIN, a, b) : a ? a : b;
}

/* ---- The loop ---- */

/* What is left of the condition where the loop has ended. */
static tir_expr what_is_left(struct tir *ir, tir_expr condition) {
  struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind == TIR_AND) return tir_and(ir, what_is_left(ir, n.a), what_is_left(ir, n.b));
  return tir_prove(ir, condition) ? TIR_NONE : condition;
}

/* A number where a variable has this value; TIR_NONE: it is in terms of others, too. */
static tir_expr value_at(struct tir *ir, tir_expr e, tir_var v, int64_t value) {
  tir_subst_var(ir, v, tir_int(ir, tir_type_of(ir, tir_var_expr(ir, v)), value));
  tir_expr made = tir_subst(ir, e);
  tir_subst_clear(ir);
  made = tir_simplify(ir, made);
  return tir_is_int(ir, made) ? made : TIR_NONE;
}

/* Turns the axis of blocks around. */
static void turn_around(struct tir *ir, tir_stmt axis) {
  assert(tir_is_block_axis(tir_loop_axis(ir, axis)) && tir_loop_extent(ir, axis) > 1);
  struct tir_stmt_node n = *tir_stmt_at(ir, axis);
  tir_expr v = tir_var_expr(ir, n.loop.var);
  tir_subst_var(ir, n.loop.var, tir_sub(ir, tir_int(ir, tir_type_of(ir, v), tir_loop_extent(ir, axis) - 1), v));
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
}

/* Blocks that run most iterations of the loop begin first. */
static void run_longest_first(struct tir *ir, tir_stmt loop) {
  for (tir_stmt s = tir_stmt_at(ir, loop)->parent; s; s = tir_stmt_at(ir, s)->parent) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (n.kind != TIR_LOOP || n.loop_kind != TIR_THREAD_BINDING || !tir_is_block_axis(tir_loop_axis(ir, s))) continue;
    int64_t blocks = tir_loop_extent(ir, s);
    if (blocks < 2 || !tir_is_const(ir, n.loop.min, 0)) continue;
    tir_expr extent = tir_stmt_at(ir, loop)->loop.extent;
    tir_expr first = value_at(ir, extent, n.loop.var, 0), last = value_at(ir, extent, n.loop.var, blocks - 1);
    if (first && last && tir_at(ir, last)->imm > tir_at(ir, first)->imm) turn_around(ir, s);
  }
}

static void end_loop(struct tir *ir, tir_stmt loop) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct body body;
  if (n.loop_kind != TIR_SERIAL || tir_loop_extent(ir, loop) < 2 || !tir_is_const(ir, n.loop.min, 0)) return;
  if (!read_body(ir, loop, &body)) return;
  tir_expr end = find_end(ir, loop, tir_stmt_at(ir, body.test)->test.condition);
  if (!end || tir_type_of(ir, end) != tir_type_of(ir, n.loop.extent)) return;
  tir_expr zero = tir_int(ir, tir_type_of(ir, end), 0);
  tir_expr extent = tir_simplify(ir, tir_make(ir, TIR_MAX, tir_make(ir, TIR_MIN, end, n.loop.extent), zero));
  if (tir_is_int(ir, extent)) return; /* a matter for partition.c */
  lower_set_domain(ir, loop, n.loop.min, extent);
  tir_expr left = what_is_left(ir, tir_stmt_at(ir, body.test)->test.condition);
  if (left)
    tir_as(ir, body.test, TIR_IF)->test.condition = left;
  else
    tir_kill_alone(ir, body.test);
  run_longest_first(ir, loop);
}

bool lower_ends(struct lowering *low) {
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(low->ir, s, low->body);
    if (tir_is(low->ir, s, TIR_LOOP)) end_loop(low->ir, s);
  }
  return true;
}
