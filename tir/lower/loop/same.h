/* Runs of statements that do the same but for what they take from outside. Internal to tir/lower. */
#ifndef MSCHED_TIR_LOWER_SAME_H
#define MSCHED_TIR_LOWER_SAME_H

#include "tir/lower/lower.h"

/* Statements that follow one another in a list. Allocations of that list (lower_allocates) are passed over: they may
 * stand anywhere before what uses them. */
struct lower_run {
  tir_stmt first, last;
};
/* A buffer that one run was found to use where another uses the other. */
struct lower_pair {
  tir_buffer a, b;
};
enum { LOWER_MOST_PAIRS = 64 }; /* runs that use more buffers from outside are taken for different */

/* An allocation in the stack's memory or the workspace's. */
static inline bool lower_allocates(const struct tir *ir, tir_stmt s) {
  if (!tir_is(ir, s, TIR_ALLOC) && !tir_is(ir, s, TIR_DECLARE)) return false;
  return !tir_is_view(ir, tir_stmt_at(ir, s)->alloc.buffer);
}

/* Of the module as it is, which nothing may be added to while runs are compared. The caller's to lower_same_free. */
struct lower_same *lower_same_new(const struct tir *ir);
void lower_same_free(struct lower_same *s);
uint64_t lower_same_hash(struct lower_same *s, struct lower_run run); /* of runs that are the same: the same */
bool lower_same_runs(struct lower_same *s, struct lower_run a, struct lower_run b);
/* The buffers from outside of the runs compared last, in the order in which they are first used; and allocations that
 * were passed over. Valid until the next comparison. */
const struct lower_pair *lower_same_pairs(const struct lower_same *s, uint32_t *count);

/* ---- Nests (nests.c) ---- */

bool lower_may_share(const struct lowering *low); /* the function is large enough that anything could be worth it */
/* Whether so many equal pieces of a function, of so many statements each, are to be one function. */
bool lower_is_worth_sharing(uint32_t count, uint32_t size);
/* Statements of the function's list, with allocations that nothing else uses: those of equal numbers, from 1, do the
 * same. Allocations move to where they belong. Gives how many; *out is the caller's to free(). */
struct lower_nest {
  struct lower_run run;
  uint32_t number;
};
uint32_t lower_find_nests(struct lowering *low, struct lower_same *same, struct lower_nest **out);

#endif
