/* What calls of tensor units need: the capability of the target, and what they are given: pointers by
 * tvm_access_ptr, and texts among their arguments. */
#include "emit_cuda.h"

#include <string.h>

bool emit_cuda_has(struct emit_c *e, enum tir_capability_id which) {
  assert(which < TIR_CAPABILITIES);
  const struct tir_capability *c = &tir_capabilities[which];
  if (tir_has(e->target->gpu.capabilities, which)) return true;
  emit_c_refuse(e, "%s are for %s%s, and the target is %s", c->what, c->least, tir_capability_since(which),
                e->target->cpu);
  return false;
}

bool emit_c_is_text(const struct emit_c *e, tir_expr x, const char *text) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  return n->kind == TIR_STRING_IMM && !strcmp(tir_text(e->ir, n->ref), text);
}

tir_buffer emit_c_pointed(struct emit_c *e, tir_expr pointer, tir_expr *offset) {
  struct tir_pointer p = {0};
  if (!tir_pointer_of(e->ir, tir_at(e->ir, pointer), &p) || !p.buffer)
    emit_c_refuse(e, "a matrix of a tensor unit lies where no buffer is");
  *offset = p.offset;
  return p.buffer;
}

void emit_c_pointer(struct emit_c *e, tir_expr pointer) {
  char name[32];
  tir_expr offset;
  tir_buffer buffer = emit_c_pointed(e, pointer, &offset);
  if (!buffer) return;
  if (*emit_c_swizzle(e, buffer, name))
    emit_c_refuse(e, "%s: its rows are swizzled, which this call of a tensor unit does not know",
                  tir_buffer_name(e->ir, buffer));
  emit_c_buffer(e, buffer);
  fputs(" + (", e->out);
  emit_c_index(e, offset);
  fputc(')', e->out);
}
