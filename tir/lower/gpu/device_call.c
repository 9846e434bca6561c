/* Statements that evaluate device calls, for the passes. */
#include "tir/lower/lower.h"

/* TIR_NONE: the statement evaluates nothing. */
static tir_expr evaluated(const struct tir *ir, tir_stmt s) {
  return tir_is(ir, s, TIR_EVALUATE) ? tir_as(ir, s, TIR_EVALUATE)->evaluate.value : TIR_NONE;
}

bool lower_calls(const struct tir *ir, tir_stmt s, enum tir_device_call which) {
  tir_expr value = evaluated(ir, s);
  return value && tir_is_device_call(ir, value, which);
}

bool lower_is_product(const struct tir *ir, tir_stmt s) {
  return lower_calls(ir, s, TIR_WGMMA_MMA) || lower_calls(ir, s, TIR_WGMMA_MMA_REGISTERS);
}

bool lower_is_arrival(const struct tir *ir, tir_stmt s) {
  return lower_calls(ir, s, TIR_MBARRIER_ARRIVE) || lower_calls(ir, s, TIR_MBARRIER_ARRIVE_AT);
}

bool lower_is_tma_copy(const struct tir *ir, tir_stmt s) {
  return lower_calls(ir, s, TIR_TENSOR_COPY) || lower_calls(ir, s, TIR_IM2COL_COPY) ||
         lower_calls(ir, s, TIR_MULTICAST_COPY);
}

bool lower_has_effect(const struct tir *ir, tir_stmt s, unsigned effects) {
  tir_expr value = evaluated(ir, s);
  enum tir_device_call which = value ? tir_device_call_of(ir, value) : TIR_DEVICE_CALLS;
  return which != TIR_DEVICE_CALLS && (tir_device_calls[which].effects & effects);
}

tir_stmt lower_new_call(struct tir *ir, enum tir_device_call which, const tir_expr *args, uint32_t count) {
  assert(tir_takes_operands(which, count));
  tir_stmt s = tir_new_stmt(ir, TIR_EVALUATE);
  tir_expr call = tir_call(ir, TIR_T_VOID, tir_device_symbol(ir, which), args, count);
  tir_stmt_at(ir, s)->evaluate.value = call;
  return s;
}

void lower_append_call(struct tir *ir, tir_stmt to, enum tir_device_call which, const tir_expr *args, uint32_t count) {
  tir_append(ir, to, TIR_BODY, lower_new_call(ir, which, args, count));
}

tir_stmt lower_new_barrier(struct tir *ir) {
  tir_expr args[] = {tir_string(ir, tir_scope_named(ir, TIR_SCOPE_SHARED)), tir_int(ir, TIR_T_BOOL, 0),
                     tir_int(ir, TIR_T_I32, -1)};
  return lower_new_call(ir, TIR_STORAGE_SYNC, args, 3);
}
