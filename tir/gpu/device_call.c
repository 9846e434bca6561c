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
