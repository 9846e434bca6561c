/* What calls of tensor units need: the capability of the target, and what they are given: pointers by
 * tvm_access_ptr, texts among their arguments, and places in swizzled rows. */
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

enum { MOST_PARTS = 16 }; /* of a sum that are distinguished */

static uint32_t split_sum(const struct emit_c *e, tir_expr offset, tir_expr parts[MOST_PARTS]) {
  uint32_t count = 1;
  parts[0] = offset;
  for (uint32_t i = 0; i < count; i++)
    while (tir_at(e->ir, parts[i])->kind == TIR_ADD && count < MOST_PARTS) {
      const struct tir_expr_node *n = tir_at(e->ir, parts[i]);
      parts[count++] = n->b, parts[i] = n->a;
    }
  return count;
}

void emit_cuda_place(struct emit_c *e, tir_buffer in, tir_expr offset, const char *between) {
  struct tir_swizzle s;
  tir_expr parts[MOST_PARTS];
  uint32_t count = split_sum(e, offset, parts);
  int bytes = emit_c_stored(tir_buffer_at(e->ir, in)->type, 1).bits / 8, log = __builtin_ctz((unsigned)bytes);
  int64_t round = tir_swizzle_of(e->ir, in, &s) && !s.panel ? (int64_t)(s.mask + 1) << (s.shift - log) : 0, far = 0,
          near = 0;
  assert(tir_type_lanes(tir_buffer_at(e->ir, in)->type) == 1);
  emit_cuda_shared_base(e, in);
  if (round) fprintf(e->out, " + %d * (uint32_t)(", bytes);
  for (uint32_t i = 0; i < count && round; i++) {
    const struct tir_expr_node *n = tir_at(e->ir, parts[i]);
    bool whole = n->kind == TIR_MUL && tir_is_int(e->ir, n->b) && tir_at(e->ir, n->b)->imm % round == 0;
    if (n->kind == TIR_INT_IMM && n->imm >= 0) {
      far += n->imm / round * round, near += n->imm % round;
    } else if (whole) {
      emit_c_index_in(e, parts[i], C_SUM);
      fputs(" + ", e->out);
    } else {
      continue;
    }
    parts[i--] = parts[--count];
  }
  if (round) fprintf(e->out, "%lld)", (long long)far);
  fputs(between, e->out);
  for (uint32_t i = 0; i < count; i++) {
    if (i) fputs(" + ", e->out);
    emit_c_index_in(e, parts[i], C_SUM);
  }
  if (near || !count) fprintf(e->out, "%s%lld", count ? " + " : "", (long long)near);
}
