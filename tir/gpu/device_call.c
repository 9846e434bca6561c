/* Device calls: what the table calls.def says of each. */
#include "tir/tir.h"

#include <string.h>

enum { TIR_HAS_ANY = -1 };

const struct tir_device_call_row tir_device_calls[TIR_DEVICE_CALLS] = {
#define TIR_DEVICE_CALL(id, name, operands, type, by, run, text, needs, effects, counts, spelling, doc)                \
  [TIR_##id] = {#name, operands, spelling, doc, TIR_BY_##by, TIR_DOES_##effects, TIR_HAS_##needs, counts},
#include "calls.def"
};

enum tir_device_call tir_device_call_named(const char *name) {
  enum tir_device_call which = 0;
  while (which < TIR_DEVICE_CALLS && strcmp(tir_device_calls[which].name, name) != 0) which++;
  return which;
}

enum tir_device_call tir_device_call_of(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_CALL ? tir_device_call_named(tir_text(ir, n->ref)) : TIR_DEVICE_CALLS;
}

bool tir_is_device_call(const struct tir *ir, tir_expr e, enum tir_device_call which) {
  assert(which < TIR_DEVICE_CALLS);
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_CALL && !strcmp(tir_text(ir, n->ref), tir_device_calls[which].name);
}

bool tir_takes_operands(enum tir_device_call which, uint32_t count) {
  assert(which < TIR_DEVICE_CALLS);
  const char *operands = tir_device_calls[which].operands;
  uint32_t words = *operands != 0;
  for (const char *at = operands; *at; at++) words += *at == ' ';
  return strstr(operands, "...") ? count + 1 >= words : count == words;
}

/* The place of the operand whose word has this mark, number `i` of such; UINT32_MAX: there is none. */
static uint32_t marked(const char *operands, char mark, uint32_t i) {
  uint32_t place = 0;
  for (const char *at = operands; *at; at++) {
    place += *at == ' ';
    if (*at == mark && i-- == 0) return place;
  }
  return UINT32_MAX;
}

bool tir_fragment_operand(enum tir_device_call which, uint32_t i, uint32_t *fragment, uint32_t *number) {
  assert(which < TIR_DEVICE_CALLS);
  *fragment = marked(tir_device_calls[which].operands, '@', i);
  *number = marked(tir_device_calls[which].operands, '#', i);
  return *fragment != UINT32_MAX;
}

tir_symbol tir_device_symbol(struct tir *ir, enum tir_device_call which) {
  assert(which < TIR_DEVICE_CALLS);
  return tir_symbol_of(ir, tir_device_calls[which].name);
}

/* ---- Pointers ---- */

#define POINTER "tvm_access_ptr"
enum { POINTER_TYPE, POINTER_DATA, POINTER_OFFSET, POINTER_EXTENT, POINTER_MASK, POINTER_OPERANDS };

bool tir_pointer_of(const struct tir *ir, const struct tir_expr_node *n, struct tir_pointer *out) {
  if (n->kind != TIR_CALL || n->count != POINTER_OPERANDS || strcmp(tir_text(ir, n->ref), POINTER) != 0) return false;
  const tir_expr *at = tir_operands(ir, n->operands);
  const struct tir_expr_node *data = tir_at(ir, at[POINTER_DATA]), *mask = tir_at(ir, at[POINTER_MASK]);
  bool known = mask->kind == TIR_INT_IMM;
  *out = (struct tir_pointer){.buffer = data->kind == TIR_DATA ? data->ref : TIR_NONE,
                              .type = at[POINTER_TYPE],
                              .data = at[POINTER_DATA],
                              .offset = at[POINTER_OFFSET],
                              .extent = at[POINTER_EXTENT],
                              .uses = known ? (int)(mask->imm & (TIR_POINTER_READS | TIR_POINTER_WRITES)) : -1};
  return true;
}

tir_buffer tir_pointed(const struct tir *ir, tir_expr e) {
  struct tir_pointer p;
  return tir_pointer_of(ir, tir_at(ir, e), &p) ? p.buffer : TIR_NONE;
}

tir_expr tir_new_pointer(struct tir *ir, tir_buffer buffer, tir_expr offset, tir_expr extent, int uses) {
  tir_type type = tir_buffer_at(ir, buffer)->type;
  tir_expr at[POINTER_OPERANDS] = {tir_call(ir, type, tir_symbol_of(ir, "type_annotation"), NULL, 0),
                                   tir_data(ir, buffer), offset, extent, tir_int(ir, TIR_T_I32, uses)};
  return tir_call(ir, TIR_T_HANDLE, tir_symbol_of(ir, POINTER), at, POINTER_OPERANDS);
}

tir_expr tir_pointer_from(struct tir *ir, tir_expr pointer, tir_expr offset) {
  struct tir_expr_node n = *tir_at(ir, pointer);
  tir_expr at[POINTER_OPERANDS];
  assert(n.kind == TIR_CALL && n.count == POINTER_OPERANDS);
  memcpy(at, tir_operands(ir, n.operands), sizeof at);
  at[POINTER_OFFSET] = offset;
  return tir_call(ir, n.type, n.ref, at, POINTER_OPERANDS);
}
