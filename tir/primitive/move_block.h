/* Moving a block under a loop: what compute_at, reverse_compute_at and the sampling of locations share. Internal to
 * primitive/.
 *
 * The block goes to where what it provides is required: what it writes, by its consumers (compute_at); what it reads,
 * by its producers (reverse_compute_at). Below the loop, the blocks that require it fix a region of each such buffer;
 * from the region follows where each iteration of the moved block runs: its domain. */
#ifndef MSCHED_TIR_PRIMITIVE_MOVE_BLOCK_H
#define MSCHED_TIR_PRIMITIVE_MOVE_BLOCK_H

#include "tir/analysis/analysis.h"
#include "tir/analysis/order/order.h"

/* Where one iteration of the moved block runs: `extent` values from `min` on, and under a predicate where that reaches
 * past what there is. A linear domain holds numbers in place of expressions: a sum of terms, plus lo up to hi. */
struct tir_move_domain {
  bool linear, has_lower, has_upper;
  tir_type type;
  uint32_t first, count;        /* linear: the terms, in the move's */
  int64_t lo, hi, lower, upper; /* linear; the predicate is lower <= value <= upper, on the sides it has */
  tir_expr min, extent;         /* not linear */
  tir_expr at_least, below;     /* more predicate; TIR_NONE: none on that side */
};

enum { TIR_MOVE_MOST = 16, TIR_MOVE_TERMS = 96 };

struct tir_move {
  tir_block block, scope;
  bool to_consumers; /* compute_at */
  tir_block *required;
  uint32_t required_count, iter_count;
  bool orderless;   /* its iterations are known to need no order */
  tir_stmt removed; /* the block, or the outermost loop that holds nothing else */
  tir_expr kept;    /* what the block's predicate says beyond its iterations' domains, over their variables */
  /* of the loop last checked */
  tir_loop loop;
  tir_stmt before; /* the new nest goes before it; TIR_NONE: last */
  tir_expr
      limits; /* in which iterations of the loops around it runs at all; TIR_NONE: none that the domains do not say */
  struct tir_move_domain *domains;
  struct tir_term terms[TIR_MOVE_TERMS];
  uint32_t term_count;
  /* where the arrays above are while they are small */
  tir_block required_on_stack[TIR_MOVE_MOST];
  struct tir_move_domain domains_on_stack[TIR_MOVE_MOST];
};

/* What does not depend on the loop: the scope, the block's kind, what requires it, what is removed with it. After false
 * too, the move is to be freed by tir_move_free. */
bool tir_move_check_block(struct tir *ir, struct tir_move *move, tir_block block, bool to_consumers, ms_error *err);
/* The rest; may be asked of several loops in turn. */
bool tir_move_check_loop(struct tir *ir, struct tir_move *move, tir_loop loop, int index, ms_error *err);
/* For compute_at: whether tir_move_check_loop would accept, at index -1, every loop that is around all consumers and
 * not around the block. False: it is to be asked. */
bool tir_move_fits_anywhere(struct tir *ir, const struct tir_move *move);
void tir_move_free(struct tir_move *move);
/* All of it: checks, and moves the block under the loop, to its consumers or its producers. */
bool tir_move_block(struct tir *ir, tir_block block, tir_loop loop, bool to_consumers, bool preserve_unit_loops,
                    int index, ms_error *err);
/* The same to its consumers, of a block that tir_move_check_block accepted in the module as it is now. */
bool tir_move_located(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                      ms_error *err);
/* Whether the same, at index -1, would be accepted; the module is left as it was. */
bool tir_can_move_block(struct tir *ir, tir_block block, tir_loop loop, bool to_consumers);

/* Adds to the conjunction what keeps a value of the domain to what there is. */
tir_expr tir_move_limit(struct tir *ir, tir_expr all, const struct tir_move_domain *domain, tir_expr value);

/* No two values of the block's iterations write the same element: instances that do not run now would write others. */
bool tir_writes_apart(struct tir *ir, tir_block block);

/* Whether these indices, of its iterations, are others for all different values of them. */
bool tir_indices_apart(struct tir *ir, tir_block block, const tir_expr *at, uint32_t rank);
/* Finds the domain of each iteration (move_domain.c). */
bool tir_move_find_domains(struct tir *ir, struct tir_move *move, ms_error *err);
/* Finds what is kept of the block's predicate (move_predicate.c). */
bool tir_move_keep_predicate(struct tir *ir, struct tir_move *move, ms_error *err);
/* A conjunct of the block's predicate that says that a binding is below the end of its iteration's domain. */
bool tir_is_domain_end(struct tir *ir, tir_block block, tir_expr conjunct);
/* For reverse_compute_at: what the block will read has been written there (move_written.c). */
bool tir_move_check_written(struct tir *ir, struct tir_move *move, ms_error *err);
/* For compute_at: keeps the domains to what the block may compute at its new place (move_iteration.c). */
bool tir_move_keep_to_iteration(struct tir *ir, struct tir_move *move, ms_error *err);
/* Where its work goes, as far as the place is known. */
static inline struct tir_transfer tir_move_transfer(const struct tir_move *move) {
  return (struct tir_transfer){
      .block = move->block, .scope = move->scope, .to = move->loop, .before = move->before, .keeps_iterations = true};
}
/* What ranges of loops, bindings and predicates load, of the new nest and of others, has been written by then, and is
 * inside of the buffer (move_loads.c). */
bool tir_move_check_loads(struct tir *ir, struct tir_move *move, ms_error *err);
/* There may be such loads. */
bool tir_move_may_load(struct tir *ir, const struct tir_move *move);
/* So do all of them, in one iteration of the loop. */
bool tir_move_runs_all(struct tir *ir, const struct tir_move *move);
/* So do all of them, while the loops around the new place run, below `high`; false: or it is not known. */
bool tir_move_runs_through(struct tir *ir, const struct tir_move *move, tir_stmt high);
/* Whether the moved block takes each step of its reductions once (move_reduction.c). */
bool tir_move_check_reduction(struct tir *ir, struct tir_move *move, ms_error *err);

#endif
