/* Which loops run while a buffer is looked at from a place: those between the access and the place, and the threads
 * around it that share the buffer's memory, since what one of them writes the others see.
 * Source: TVM's compute_at and compaction relax the same loops. */
#include "analysis.h"

#include <string.h>

/* Ranks of memory and of threads: a thread axis of at least the memory's rank shares it. */
static int rank_of_memory(const char *memory) {
  if (!*memory || !strncmp(memory, "global", 6)) return 0;
  return !strncmp(memory, "shared", 6) ? 1 : 2;
}

static bool is_shared_by(const char *memory, const char *thread) {
  if (!strncmp(memory, "warp", 4)) return !strcmp(thread, "threadIdx.x");
  return rank_of_memory(memory) <= (strncmp(thread, "blockIdx", 8) ? 1 : 0);
}

tir_symbol tir_memory_of_threads(const struct tir *ir, tir_symbol memory) {
  return rank_of_memory(tir_text(ir, memory)) ? memory : TIR_NONE;
}

uint32_t tir_running_loops(const struct tir *ir, tir_stmt s, tir_stmt high, tir_symbol memory, tir_var *out,
                           uint32_t most) {
  uint32_t count = tir_loop_vars(ir, s, high, out, most);
  for (s = memory ? high : TIR_NONE; s; s = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind != TIR_LOOP || n->loop_kind != TIR_THREAD_BINDING) continue;
    if (!is_shared_by(tir_text(ir, memory), tir_text(ir, n->loop.thread))) continue;
    if (count < most) out[count] = n->loop.var;
    count++;
  }
  return count;
}
