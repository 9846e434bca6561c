/* What code generators of both kinds ask of a lowered function. Internal to jit. */
#ifndef MSCHED_JIT_CAPTURE_H
#define MSCHED_JIT_CAPTURE_H

#include "jit.h"

/* What the statements below a loop use: one byte an index, 1 where it is used. Owned by the caller: jit_uses_free. */
struct jit_uses {
  uint8_t *buffers, *vars;
};
struct jit_uses jit_uses_below(const struct tir *ir, tir_stmt top);
void jit_uses_free(struct jit_uses *uses);

/* Whether a buffer is a view of what another buffer names. Allocations in the workspace are none: each has its own. */
bool jit_is_view(const struct tir *ir, tir_buffer buffer);
/* Whether no other of these buffers may share memory with one of them: views do with what they view. */
bool jit_is_apart(const struct tir *ir, const tir_buffer *buffers, uint32_t count, tir_buffer buffer);

#endif
