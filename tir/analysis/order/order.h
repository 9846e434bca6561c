/* Order: whether a block's work may be done at another place of its scope. Internal to tir.
 *
 * Of uses that regions declare, stage pipelines and the regions themselves say what must come before what. Of the
 * others, and of what the scope does outside of blocks, only that there is a conflict is known (access.h), so that both
 * must keep to the order in which they run now: on the same side, and in the same iterations of the loops around
 * both. */
#ifndef MSCHED_TIR_ORDER_H
#define MSCHED_TIR_ORDER_H

#include "tir/analysis/access.h"

/* What the block does is to be done elsewhere in the scope. */
struct tir_transfer {
  tir_block block, scope;
  /* Under this loop, before a child of it (TIR_NONE: after all), or in the scope before a child of it; or at this
   * block, in its place; TIR_NONE: at each block that reads what it writes. */
  tir_stmt to, before;
  bool keeps_iterations; /* no instance changes the iteration of a loop around both places in which it runs */
  /* All instances run at the new place while the loops around it run, up to `around`, which is around both that and one
   * that reads what they write (TIR_NONE: in each iteration of the loop). NULL: so they do in all iterations
   * together. */
  bool (*runs_all)(struct tir *ir, const void *context, tir_stmt around);
  const void *context;
};
/* Refuses with what breaks the order: the block, the buffer, and who does not declare a use. */
bool tir_check_order(struct tir *ir, const struct tir_transfer *transfer, ms_error *err);
/* Between which children of the loop the block may go; TIR_NONE: no limit on that side. */
struct tir_limits {
  tir_stmt after, before;
};
/* Finds them for a block that goes to blocks that read what it writes (to_consumers), or to those that write what it
 * reads, and that do so under the loop, all of them: `required`. Refuses where one is not, or where nothing requires
 * the block and another is on the wrong side of the loop. */
bool tir_find_limits(struct tir *ir, const struct tir_transfer *transfer, const tir_block *required, uint32_t count,
                     bool to_consumers, struct tir_limits *limits, ms_error *err);
/* The statement comes before the new place: it is another child of the loop, or not under it. */
bool tir_comes_before(const struct tir *ir, const struct tir_transfer *transfer, tir_stmt other);
/* A block that writes the buffer, and does not come before the new place. TIR_NONE: there is none. */
tir_block tir_written_later(const struct tir *ir, const struct tir_transfer *transfer, tir_buffer buffer);
/* At the new place the block runs in the same iterations of the loops that it shares with the other as now, as far as
 * it is in the same ones there. */
bool tir_shares_the_same(const struct tir *ir, const struct tir_transfer *transfer, tir_stmt other);
/* The child of the loop that `s` is in, or is; TIR_NONE: it is not below the loop. */
tir_stmt tir_child_around(const struct tir *ir, tir_stmt s, tir_loop loop);
/* A loop of more than one iteration is around both (or is one of them), below the scope. */
bool tir_shares_loop(const struct tir *ir, tir_stmt a, tir_stmt b, tir_block scope);

/* Refuses a block that uses a loop around itself, which one without iterations may, or a name that is bound around it
 * in the scope: what it would not have at another place of the scope, before where it stands (`goes_back`) or after. */
bool tir_check_free_of_place(struct tir *ir, tir_block block, tir_block scope, bool goes_back, ms_error *err);
/* Of the loop's variable something is made that has `loaded` in it, a range or a factor. Refuses where that loads and a
 * block in the loop uses the variable itself, not by its iterations: it would load what its regions do not name. */
bool tir_check_load_outside(struct tir *ir, tir_loop loop, ms_error *err);
static inline bool tir_check_loaded_outside(struct tir *ir, tir_loop loop, tir_expr loaded, ms_error *err) {
  return !(tir_at(ir, loaded)->flags & TIR_HAS_LOAD) || tir_check_load_outside(ir, loop, err); /* few load */
}

/* Nothing but loops stands between `s` and `high`, which is around it. */
bool tir_only_loops_up_to(const struct tir *ir, tir_stmt s, tir_stmt high);
/* The innermost `if` or `while` around `s`, below `high`, which is around it; TIR_NONE: there is none. */
tir_stmt tir_nearest_condition(const struct tir *ir, tir_stmt s, tir_stmt high);

#endif
