/* Which loops run while a buffer is looked at from a place: those between the access and the place, and the threads
 * around it that share the buffer's memory, since what one of them writes the others see.
 * Source: TVM's compute_at and compaction relax the same loops. */
#include "analysis.h"

/* A thread axis shares the memory if threads along it see the same. */
static bool is_shared_by(const struct tir_symbol_node *memory, enum tir_axis axis) {
  if (memory->memory_scope == TIR_SCOPE_WARP) return axis == TIR_THREAD_X;
  bool other_block = tir_is_block_axis(axis) || axis == TIR_CLUSTER_X;
  return memory->memory == TIR_DEVICE_MEMORY || (memory->memory == TIR_BLOCK_MEMORY && !other_block);
}

tir_symbol tir_memory_of_threads(const struct tir *ir, tir_symbol memory) {
  return ir->symbols.at[memory].memory == TIR_DEVICE_MEMORY ? TIR_NONE : memory;
}

uint32_t tir_running_loops(const struct tir *ir, tir_stmt s, tir_stmt high, tir_symbol memory, tir_var *out,
                           uint32_t most) {
  uint32_t count = tir_loop_vars(ir, s, high, out, most);
  for (s = memory ? high : TIR_NONE; s; s = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind != TIR_LOOP || n->loop_kind != TIR_THREAD_BINDING) continue;
    if (!is_shared_by(&ir->symbols.at[memory], tir_loop_axis(ir, s))) continue;
    if (count < most) out[count] = n->loop.var;
    count++;
  }
  return count;
}
