/* Variables that run while a block is moved: those of the loops between a required block and its new place. */
#include "move_domain.h"
#include "tir/analysis/analysis.h"

#include <stdlib.h>

void tir_open_relaxed(const struct tir *ir, const struct tir_move *move, tir_block required, tir_buffer buffer,
                      struct tir_relaxed *r) {
  assert(tir_is(ir, required, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  tir_symbol memory = move->to_consumers ? tir_memory_of(ir, buffer) : TIR_NONE;
  r->count = tir_running_loops(ir, required, move->loop, memory, r->on_stack, TIR_MOST_RELAXED);
  r->vars = tir_room(r->on_stack, sizeof r->on_stack, r->count * sizeof *r->vars);
  if (r->vars != r->on_stack) tir_running_loops(ir, required, move->loop, memory, r->vars, r->count);
  r->mask = 0;
  for (uint32_t i = 0; i < r->count; i++) r->mask |= 1ull << (r->vars[i] & 63);
}

void tir_close_relaxed(struct tir_relaxed *r) {
  if (r->vars != r->on_stack) free(r->vars);
}
