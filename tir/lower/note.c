/* Notes: what a pass was asked for, or would do, and leaves, so that who lowers can tell. */
#include "lower.h"

#include <stdio.h>

void lower_note(const struct lowering *low, tir_stmt loop, const char *not_what) {
  assert(tir_is(low->ir, loop, TIR_LOOP) && not_what);
  char name[100], note[300];
  if (!low->options || !low->options->noted) return;
  tir_name_render(low->ir, low->ir->vars.at[tir_stmt_at(low->ir, loop)->loop.var].name, name, sizeof name);
  snprintf(note, sizeof note, "loop %s is not %s", name, not_what);
  low->options->noted(low->options->data, note);
}
