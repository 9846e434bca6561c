/* Properties of the functions that TVMScript calls by name. */
#include "calls.h"

#include <string.h>

/* What a call gives: the type of its first or second argument, a fixed one, or one given as first or last argument. */
static const struct {
  const char *name;
  enum tir_call_rule rule;
} rules[] = {
#define TIR_DEVICE_CALL(id, name, operands, type, ...) {#name, TIR_CALL_##type},
#include "tir/gpu/calls.def"
    {"call_extern", TIR_CALL_FIRST},
    {"call_pure_extern", TIR_CALL_FIRST},
    {"call_llvm_intrin", TIR_CALL_FIRST},
    {"call_llvm_pure_intrin", TIR_CALL_FIRST},
    {"reinterpret", TIR_CALL_FIRST},
    {"type_annotation", TIR_CALL_FIRST},
    {"vectorlow", TIR_CALL_FIRST},
    {"vectorhigh", TIR_CALL_FIRST},
    {"vectorcombine", TIR_CALL_FIRST},
    {"get_active_lane_mask", TIR_CALL_FIRST},
    {"tvm_struct_get", TIR_CALL_LAST},
    {"tvm_access_ptr", TIR_CALL_POINTER},
    {"address_of", TIR_CALL_POINTER},
    {"tvm_stack_alloca", TIR_CALL_POINTER},
    {"tvm_stack_make_shape", TIR_CALL_POINTER},
    {"tvm_stack_make_array", TIR_CALL_POINTER},
    {"handle_add_byte_offset", TIR_CALL_POINTER},
    {"ptr_byte_offset", TIR_CALL_POINTER},
    {"lookup_param", TIR_CALL_POINTER},
    {"anylist_getitem", TIR_CALL_POINTER},
    {"TVMBackendAllocWorkspace", TIR_CALL_POINTER},
    {"TVMBackendFreeWorkspace", TIR_CALL_INT32},
    {"call_packed", TIR_CALL_INT32},
    {"call_cpacked", TIR_CALL_INT32},
    {"call_packed_lowered", TIR_CALL_INT32},
    {"call_cpacked_lowered", TIR_CALL_INT32},
    {"tvm_call_packed", TIR_CALL_INT32},
    {"tvm_call_cpacked", TIR_CALL_INT32},
    {"tvm_struct_set", TIR_CALL_INT32},
    {"clz", TIR_CALL_INT32},
    {"q_multiply_shift", TIR_CALL_INT32},
    {"q_multiply_shift_per_axis", TIR_CALL_INT32},
    {"vscale", TIR_CALL_INT32},
    {"undef", TIR_CALL_INT32},
    {"tvm_warp_activemask", TIR_CALL_UINT32},
    {"isnullptr", TIR_CALL_TRUTH},
    {"isnan", TIR_CALL_TRUTH},
    {"is_aligned", TIR_CALL_TRUTH},
    {"if_then_else", TIR_CALL_SECOND},
    {"assume", TIR_CALL_TRUTH},
    {"ignore_loop_partition", TIR_CALL_TRUTH},
    {"filter", TIR_CALL_TRUTH},
    {"tvm_warp_shuffle", TIR_CALL_SECOND},
    {"tvm_warp_shuffle_up", TIR_CALL_SECOND},
    {"tvm_warp_shuffle_down", TIR_CALL_SECOND},
    {"break_loop", TIR_CALL_NOTHING},
    {"continue_loop", TIR_CALL_NOTHING},
    {"thread_return", TIR_CALL_NOTHING},
    {"tvm_bmma_sync", TIR_CALL_NOTHING},
    {"tvm_tuple", TIR_CALL_NOTHING},
    {"tvm_throw_last_error", TIR_CALL_NOTHING},
    {"start_profile_intrinsic", TIR_CALL_NOTHING},
    {"end_profile_intrinsic", TIR_CALL_NOTHING}};

enum tir_call_rule tir_call_rule_of(const char *name) {
  assert(name);
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (!strcmp(rules[i].name, name)) return rules[i].rule;
  return TIR_CALL_SAME;
}

/* The type that a call has if the text does not give one. */
tir_type tir_call_type(const struct tir *ir, enum tir_call_rule rule, const tir_expr *args, uint32_t count) {
  tir_type type = TIR_T_VOID;
  switch (rule) {
  case TIR_CALL_INT32: return TIR_T_I32;
  case TIR_CALL_UINT32: return TIR_TYPE(TIR_UINT, 32, 1);
  case TIR_CALL_TRUTH: return TIR_T_BOOL;
  case TIR_CALL_POINTER: return TIR_T_HANDLE;
  case TIR_CALL_SAME:
    if (count > 0) type = tir_type_of(ir, args[0]);
    break;
  case TIR_CALL_SECOND:
    if (count > 1) type = tir_type_of(ir, args[1]);
    break;
  default: return TIR_T_VOID;
  }
  return tir_type_is_int(type) || tir_type_is_float(type) || tir_type_code(type) == TIR_BOOL ? type : TIR_T_VOID;
}

/* An argument that could be taken for the type of the result. */
static bool names_type(const struct tir *ir, const struct tir_expr_node *call) {
  if (!call->count) return false;
  const struct tir_expr_node *first = tir_at(ir, ir->operands.at[call->operands]);
  tir_type type;
  return first->kind == TIR_STRING_IMM && tir_type_parse(tir_text(ir, first->ref), &type);
}

enum tir_dtype_place tir_call_dtype_place(const struct tir *ir, tir_expr call) {
  assert(tir_at(ir, call)->kind == TIR_CALL);
  const struct tir_expr_node *n = tir_at(ir, call);
  enum tir_call_rule rule = tir_call_rule_of(tir_text(ir, n->ref));
  if (rule == TIR_CALL_FIRST) return TIR_DTYPE_FIRST;
  if (rule == TIR_CALL_LAST) return TIR_DTYPE_LAST;
  bool implied = tir_call_type(ir, rule, tir_operands(ir, n->operands), n->count) == n->type;
  if (rule == TIR_CALL_SAME) return implied && !names_type(ir, n) ? TIR_DTYPE_ABSENT : TIR_DTYPE_FIRST;
  return implied ? TIR_DTYPE_ABSENT : TIR_DTYPE_KEYWORD;
}

bool tir_is_arithmetic_call(const char *op) {
  static const char *const names[] = {"bitwise_not", "shift_left", "shift_right", "pow", "abs", "fabs"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i], op)) return true;
  return false;
}
