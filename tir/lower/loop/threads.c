/* Threads: where threads reduce together, they become iterations that follow one another, as a CPU runs them.
 * Requires: blocks. Gives: no loop bound to a thread that a reduction iteration is bound to; in such a function, none
 * at all, for the other threads of the kernel would all run what one ran.
 * Keeps: everything else. */
#include "tir/lower/lower.h"

bool lower_threads(struct lowering *low) {
  struct tir *ir = low->ir;
  bool found = false;
  for (tir_stmt s = low->body; s && !found; s = tir_next(ir, s, low->body))
    found = tir_is(ir, s, TIR_BLOCK) && lower_reduces_across_threads(ir, s);
  for (tir_stmt s = low->body; s && found; s = tir_next(ir, s, low->body)) {
    if (!tir_is_bound(ir, s)) continue;
    if (tir_loop_extent(ir, s) != 1)
      lower_note(low, s, "of threads on a CPU, where they would reduce together: it runs in order");
    tir_stmt_at(ir, s)->loop_kind = TIR_SERIAL;
    tir_as(ir, s, TIR_LOOP)->loop.thread = TIR_NONE;
  }
  return true;
}
