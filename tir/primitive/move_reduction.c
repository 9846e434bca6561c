/* Whether a moved reduction takes each of its steps once, in an order that begins with the init.
 *
 * Under the new place a reduction that runs whole begins anew each time: nothing can go wrong. One that runs a part of
 * its domain there goes on where another round of the loops above left it; then no step may be taken in two rounds, no
 * loop that takes no part may repeat the rounds of one that does, and the rounds must not run at the same time. */
#include "move_block.h"

#include <stdlib.h>

struct pieces { /* an iteration's value is a sum of these, plus [0, extent) */
  struct tir_term *terms;
  uint32_t count;
  int64_t extent;
};

static bool find_pieces(struct tir *ir, struct tir_move *move, const struct tir_move_domain *d, struct pieces *out) {
  if (d->linear) {
    *out = (struct pieces){move->terms + d->first, d->count, d->hi - d->lo + 1};
    return true;
  }
  if (!tir_is_int(ir, d->extent)) return false;
  struct tir_linear l = tir_linear_of(ir, d->min);
  *out = (struct pieces){ir->terms.at + l.first, l.count, tir_at(ir, d->extent)->imm};
  return true;
}

static bool is_whole(struct tir *ir, const struct tir_move *move, uint32_t i) {
  const struct tir_move_domain *d = &move->domains[i];
  struct tir_var_node v = ir->vars.at[tir_iters(ir, move->block)[i].var];
  if (!d->linear) return tir_prove_equal(ir, d->min, v.min) && tir_prove_equal(ir, d->extent, v.extent);
  return d->count == 0 && tir_is_const(ir, v.min, d->lo) && tir_is_const(ir, v.extent, d->hi - d->lo + 1);
}

/* Distinct rounds give distinct values: each coefficient passes over all that the smaller ones reach. */
static bool is_one_to_one(const struct tir *ir, const struct pieces *p) {
  int64_t reach = p->extent, last = 0;
  for (uint32_t done = 0; done < p->count; done++) {
    const struct tir_term *next = NULL;
    for (uint32_t i = 0; i < p->count; i++) {
      const struct tir_term *t = &p->terms[i];
      if (t->coefficient > last && (!next || t->coefficient < next->coefficient)) next = t;
    }
    if (!next || tir_at(ir, next->atom)->kind != TIR_VAR || next->coefficient < reach) return false;
    struct tir_bounds b = tir_bounds_of(ir, next->atom);
    if (tir_is_inf(b.lo) || tir_is_inf(b.hi)) return false;
    last = next->coefficient;
    int64_t more;
    if (__builtin_mul_overflow(last, b.hi - b.lo, &more) || __builtin_add_overflow(reach, more, &reach)) return false;
  }
  return true;
}

static bool takes_part(const struct tir *ir, const struct pieces *p, tir_var v) {
  for (uint32_t i = 0; i < p->count; i++)
    if (tir_uses_var(ir, p->terms[i].atom, v)) return true;
  return false;
}

static bool runs_at_once(const struct tir *ir, tir_loop l) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, l);
  if (n->loop_kind == TIR_PARALLEL || n->loop_kind == TIR_VECTORIZED) return true;
  return n->loop_kind == TIR_THREAD_BINDING && tir_text(ir, n->loop.thread)[0] != 't';
}

/* A loop at or above the place: a round of it is a step of a partial reduction, of another iteration, or a repetition,
 * which may only stand outside all steps. */
static bool check_loop(struct tir *ir, struct tir_move *move, tir_loop l, bool steps_outside, bool *steps) {
  tir_var v = tir_stmt_at(ir, l)->loop.var;
  bool used = false;
  *steps = false;
  for (uint32_t i = 0; i < move->iter_count; i++) {
    struct pieces p;
    if (!find_pieces(ir, move, &move->domains[i], &p)) return false;
    if (!takes_part(ir, &p, v)) continue;
    used = true;
    *steps |= tir_iters(ir, move->block)[i].kind == TIR_REDUCE;
  }
  if (*steps && runs_at_once(ir, l)) return false;
  return used || !steps_outside || tir_loop_extent(ir, l) == 1;
}

static bool check_loops(struct tir *ir, struct tir_move *move, tir_stmt l, bool *steps_outside) {
  if (l == move->scope) {
    *steps_outside = false;
    return true;
  }
  bool steps = false;
  if (!check_loops(ir, move, tir_stmt_at(ir, l)->parent, steps_outside)) return false;
  if (tir_is(ir, l, TIR_LOOP) && !check_loop(ir, move, l, *steps_outside, &steps)) return false;
  *steps_outside |= steps;
  return true;
}

bool tir_move_check_reduction(struct tir *ir, struct tir_move *move, ms_error *err) {
  bool partial = false, sound = true, steps_outside;
  for (uint32_t i = 0; i < move->iter_count && !partial; i++)
    partial = tir_iters(ir, move->block)[i].kind != TIR_SPATIAL && !is_whole(ir, move, i);
  if (!partial) return true;
  for (uint32_t i = 0; i < move->iter_count && sound; i++) {
    struct pieces p;
    sound = find_pieces(ir, move, &move->domains[i], &p) && is_one_to_one(ir, &p);
  }
  if (sound && check_loops(ir, move, move->loop, &steps_outside)) return true;
  return tir_refuse(ir, err, MS_MOVE_REDUCTION, move->loop,
                    "under this loop block `%s` would not take each step of its reduction once, in turn",
                    tir_block_name(ir, move->block));
}
