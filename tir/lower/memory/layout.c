/* Reading what workspace.c lays out: where allocations lie in a lowered function (lowered.h). */
#include "tir/lower/lower.h"

#include <string.h>

uint64_t tir_allocation_bytes(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  uint64_t bytes = ((uint64_t)tir_type_bits(b->type) + 7) / 8 * (uint64_t)tir_type_lanes(b->type);
  for (uint32_t i = 0; i < b->rank; i++) {
    const struct tir_expr_node *n = tir_at(ir, tir_operands(ir, b->shape)[i]);
    uint64_t extent = n->kind == TIR_INT_IMM && n->imm > 0 ? (uint64_t)n->imm : 0;
    if (!extent || __builtin_mul_overflow(bytes, extent, &bytes)) return 0;
  }
  return bytes <= (uint64_t)1 << 40 ? bytes : 0;
}

static bool is_scoped(const struct tir *ir, tir_buffer buffer) {
  return tir_memory_scope_of(ir, buffer) == TIR_SCOPE_WORKSPACE;
}

static uint64_t noted(const struct tir *ir, tir_stmt s, const char *key) {
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, s)->annotations, key);
  return value && tir_is_int(ir, value) && tir_at(ir, value)->imm >= 0 ? (uint64_t)tir_at(ir, value)->imm : 0;
}

struct tir_workspace tir_workspace_of(const struct tir *ir, tir_func f) {
  struct tir_workspace none = {0}, found = {0};
  tir_stmt s = tir_stmt_at(ir, ir->funcs.at[f].body)->first[TIR_BODY];
  if (!s || !tir_is(ir, s, TIR_ALLOC) || !is_scoped(ir, tir_stmt_at(ir, s)->alloc.buffer)) return none;
  uint64_t threads = noted(ir, s, "threads"), pieces;
  found.buffer = tir_stmt_at(ir, s)->alloc.buffer;
  found.bytes = tir_allocation_bytes(ir, found.buffer);
  found.thread_bytes = noted(ir, s, "thread_bytes");
  found.threads = (uint32_t)threads;
  bool fits = threads && threads <= INT32_MAX && !__builtin_mul_overflow(threads, found.thread_bytes, &pieces) &&
              pieces <= found.bytes;
  const struct tir_buffer_node *b = tir_buffer_at(ir, found.buffer);
  return fits && b->rank == 1 && b->type == TIR_TYPE(TIR_UINT, 8, 1) ? found : none;
}

bool tir_is_placed(const struct tir *ir, tir_buffer buffer) {
  tir_expr data = tir_buffer_at(ir, buffer)->data;
  if (!data) return false;
  const struct tir_expr_node *n = tir_at(ir, data);
  if (n->kind != TIR_CALL || n->count != 1 || strcmp(tir_text(ir, n->ref), "address_of") != 0) return false;
  const struct tir_expr_node *first = tir_at(ir, tir_operands(ir, n->operands)[0]);
  return first->kind == TIR_LOAD && is_scoped(ir, first->ref);
}

bool tir_is_thread_number(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_CALL || n->count != 1 || n->type != TIR_T_I32) return false;
  const struct tir_expr_node *name = tir_at(ir, tir_operands(ir, n->operands)[0]);
  return !strcmp(tir_text(ir, n->ref), "call_extern") && name->kind == TIR_STRING_IMM &&
         !strcmp(tir_text(ir, name->ref), TIR_THREAD_NUMBER);
}
