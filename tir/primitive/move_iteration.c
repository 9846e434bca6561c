/* What a block moved to its consumers may compute in one iteration of a loop around both places.
 *
 * What is required is found without regard to the consumers' predicates: where these leave instances out, the moved
 * block gets instances that nobody asks for. They do no harm where all that they read has been written. Where the block
 * stays in the same iterations of a loop as one of its own producers, they may read what a later one writes; so in each
 * iteration it computes no more than it did at the old place: that holds all its consumers read. */
#include "move_domain.h"
#include "tir/arith/linear.h"

#include <stdlib.h>

/* The innermost loop around both the new place and a producer of the moved block; TIR_NONE: there is none. */
static tir_loop innermost_shared(const struct tir *ir, const struct tir_move *move) {
  tir_block on_stack[TIR_MOVE_MOST];
  tir_stmt innermost = move->scope;
  uint32_t count = tir_producers(ir, move->block, on_stack, TIR_MOVE_MOST);
  tir_block *producers = tir_room(on_stack, sizeof on_stack, count * sizeof *producers);
  if (producers != on_stack) tir_producers(ir, move->block, producers, count);
  for (uint32_t i = 0; i < count; i++) {
    tir_stmt around = tir_lowest_common_ancestor(ir, producers[i], move->loop);
    if (tir_is_below(ir, around, innermost)) innermost = around;
  }
  if (producers != on_stack) free(producers);
  return tir_is(ir, innermost, TIR_LOOP) ? innermost : TIR_NONE;
}

static bool is_at_most(struct tir *ir, tir_expr a, tir_expr b) {
  if (!a || !b) return false;
  tir_type x = tir_type_of(ir, a), y = tir_type_of(ir, b), type = tir_type_bits(x) > tir_type_bits(y) ? x : y;
  return tir_prove(ir, tir_make(ir, TIR_LE, tir_cast(ir, type, a), tir_cast(ir, type, b)));
}

/* The limit, or both: what a predicate left out at the old place, the end of the domain leaves out now. */
static tir_expr stricter(struct tir *ir, enum tir_kind kind, tir_expr limit, tir_expr domain) {
  bool low = kind == TIR_MAX;
  if (!domain || is_at_most(ir, low ? domain : limit, low ? limit : domain)) return limit;
  tir_type x = tir_type_of(ir, limit), y = tir_type_of(ir, domain), type = tir_type_bits(x) > tir_type_bits(y) ? x : y;
  return tir_make(ir, kind, tir_cast(ir, type, limit), tir_cast(ir, type, domain));
}

/* Keeps the values that an iteration takes at the new place among the old ones, where they are not already. */
static void keep_to(struct tir *ir, struct tir_move *move, struct tir_move_domain *d, struct tir_interval old) {
  tir_expr low = d->min, extent = d->extent, at_least = d->at_least, below = d->below;
  if (d->linear) {
    low = tir_from_terms(ir, d->type, d->lo, move->terms + d->first, d->count);
    extent = tir_int(ir, d->type, d->hi - d->lo + 1);
    at_least = d->has_lower ? tir_int(ir, d->type, d->lower) : TIR_NONE;
    below = d->has_upper ? tir_int(ir, d->type, d->upper + 1) : TIR_NONE;
  }
  struct tir_interval runs = tir_interval_of(ir, low, extent);
  tir_expr end = tir_add(ir, old.max, tir_int(ir, tir_type_of(ir, old.max), 1));
  if (!is_at_most(ir, old.min, runs.min) && !is_at_most(ir, old.min, at_least)) {
    d->has_lower = d->has_lower && !is_at_most(ir, at_least, old.min);
    d->at_least = stricter(ir, TIR_MAX, old.min, d->at_least);
  }
  if (!is_at_most(ir, runs.max, old.max) && !is_at_most(ir, below, end)) {
    d->has_upper = d->has_upper && !is_at_most(ir, end, below);
    d->below = stricter(ir, TIR_MIN, end, d->below);
  }
}

/* Conditions on whole iterations of `shared` hold at the new place too, but for the ends of domains, which it has
 * anyway.
 */
static void keep_conditions(struct tir *ir, struct tir_move *move, tir_loop shared, tir_expr predicate) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) {
    keep_conditions(ir, move, shared, n.a);
    keep_conditions(ir, move, shared, n.b);
    return;
  }
  for (tir_stmt s = tir_stmt_at(ir, move->block)->parent; s != shared; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_uses_var(ir, predicate, tir_as(ir, s, TIR_LOOP)->loop.var)) return;
  if (!tir_is_domain_end(ir, move->block, predicate)) move->limits = tir_and(ir, move->limits, predicate);
}

bool tir_move_keep_to_iteration(struct tir *ir, struct tir_move *move, ms_error *err) {
  if (tir_stmt_at(ir, move->removed)->parent == move->scope) return true; /* it shares its loops with nothing */
  tir_loop shared = innermost_shared(ir, move);
  if (!shared) return true;
  struct tir_interval on_stack[TIR_MOVE_MOST],
      *old = tir_room(on_stack, sizeof on_stack, move->iter_count * sizeof *old);
  bool known = tir_exact_iterations(ir, move->block, shared, old);
  for (uint32_t i = 0; i < move->iter_count && known; i++) keep_to(ir, move, &move->domains[i], old[i]);
  if (old != on_stack) free(old);
  tir_expr predicate = tir_as(ir, move->block, TIR_BLOCK)->block.predicate;
  if (predicate) keep_conditions(ir, move, shared, predicate);
  return known ||
         tir_refuse(ir, err, MS_MOVE_COVER, move->loop,
                    "what block `%s` computes in one iteration of the loops it shares with producers is not known",
                    tir_block_name(ir, move->block));
}
