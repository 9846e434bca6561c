/* Calls in C source: elementary functions, selection, operations on bits. */
#include "emit_c.h"

#include <string.h>

struct call {
  tir_expr x;
  const char *name;
  const tir_expr *args;
  uint32_t count;
  tir_type type;
};

static void arguments(struct emit_c *e, const struct call *call, struct c_chunk c) {
  fputc('(', e->out);
  for (uint32_t i = 0; i < call->count; i++) {
    if (i) fputs(", ", e->out);
    emit_c_value(e, call->args[i], c);
  }
  fputc(')', e->out);
}

/* ---- Elementary functions ---- */

/* How a function is written, by the table tir/functions.def, and whether of float, with fast math, by a template. */
enum way { MADE, LIBRARY, TEMPLATE, OWN };
#define SINGLE(f)   false
#define DOUBLE(f)   false
#define BACKENDS(f) true
#define CALLED      false
static const struct {
  enum way way;
  bool polynomial;
} written[TIR_FUNCTIONS] = {
#define TIR_FUNCTION(name, operands, value, free, fixed, llvm, c, ...) {c, free},
#include "tir/functions.def"
};

/* The exponent may be of any type: it becomes an integer. */
static void scaled(struct emit_c *e, const struct call *call, struct c_type t, struct c_chunk c) {
  assert(call->count == 2);
  int lanes = tir_type_lanes(tir_type_of(e->ir, call->args[1]));
  char helper[64];
  fprintf(e->out, "%s(", emit_c_helper(e, "ldexp", t, NULL, helper));
  emit_c_value(e, call->args[0], c);
  fputs(", ", e->out);
  emit_c_cast(e, call->args[1], TIR_TYPE(TIR_INT, t.bits, lanes), c);
  fputc(')', e->out);
}

static void power_of_ten(struct emit_c *e, const struct call *call, struct c_type t, struct c_chunk c) {
  char out[64], splat[64];
  fprintf(e->out, "%s(", emit_c_helper(e, "call2", t, "pow", out));
  fprintf(e->out, "%s(%s), ", emit_c_helper(e, "splat", t, NULL, splat), t.bits == 32 ? "10.0f" : "10.0");
  emit_c_value(e, call->args[0], c);
  fputc(')', e->out);
}

/* Prints the function's name and its arguments in order; false: there is none of that name. */
static bool elementary(struct emit_c *e, const struct call *call, struct c_chunk c) {
  static const char *const callers[] = {"", "call1", "call2", "call3"};
  struct c_type t = emit_c_type(e, call->type, c.width);
  enum tir_function f = tir_function_named(call->name);
  if (f == TIR_FUNCTIONS || tir_functions[f].operands != call->count || written[f].way == MADE) return false;
  if (written[f].way == OWN) {
    assert(f == TIR_FUNCTION_ldexp || f == TIR_FUNCTION_exp10);
    (f == TIR_FUNCTION_ldexp ? scaled : power_of_ten)(e, call, t, c);
    return true;
  }
  const char *name = tir_functions[f].name;
  char out[64];
  bool polynomial = written[f].polynomial && e->dialect->polynomials && e->fast_math && t.bits == 32;
  if (polynomial || written[f].way == TEMPLATE)
    fputs(emit_c_helper(e, name, t, NULL, out), e->out);
  else
    fputs(emit_c_helper(e, callers[call->count], t, name, out), e->out);
  arguments(e, call, c);
  return true;
}

/* ---- Integers ---- */

static bool bit_call(struct emit_c *e, const struct call *call, struct c_chunk c) {
  static const char *const operators[][2] = {
      {"bitwise_and", "&"}, {"bitwise_or", "|"}, {"bitwise_xor", "^"}, {"shift_right", ">>"}, {"shift_left", "<<"}};
  struct c_type t = emit_c_type(e, call->type, c.width);
  struct c_type u = {TIR_UINT, t.bits < 32 && c.width == 1 ? 32 : t.bits, c.width};
  char type[32], unsigned_type[32], helper[64];
  emit_c_type_name(e, t, type);
  for (size_t i = 0; call->count == 2 && i < sizeof operators / sizeof *operators; i++) {
    if (strcmp(operators[i][0], call->name) != 0) continue;
    bool left = !strcmp(call->name, "shift_left");
    fprintf(e->out, "(%s)(", type);
    if (left) fprintf(e->out, "(%s)", emit_c_type_name(e, u, unsigned_type));
    emit_c_value(e, call->args[0], c);
    fprintf(e->out, " %s ", operators[i][1]);
    if (left && c.width > 1) fprintf(e->out, "(%s)", unsigned_type);
    emit_c_value(e, call->args[1], c);
    fputc(')', e->out);
    return true;
  }
  if (call->count != 1) return false;
  if (!strcmp(call->name, "bitwise_not")) {
    fprintf(e->out, "(%s)~", type);
    emit_c_value(e, call->args[0], c);
    return true;
  }
  if (strcmp(call->name, "popcount") && strcmp(call->name, "clz") && strcmp(call->name, "abs")) return false;
  fputs(emit_c_helper(e, call->name, t, NULL, helper), e->out);
  arguments(e, call, c);
  return true;
}

/* The bits of one type as another of its size. */
static bool reinterpret(struct emit_c *e, const struct call *call, struct c_chunk c) {
  tir_type from = tir_type_of(e->ir, call->args[call->count - 1]);
  struct c_type a = emit_c_type(e, from, c.width), b = emit_c_type(e, call->type, c.width);
  bool plain = tir_type_bits(from) == tir_type_bits(call->type) && tir_type_bits(from) == a.bits && a.bits == b.bits;
  char type[32], helper[64];
  if (!plain) return false;
  emit_c_type_name(e, b, type);
  if (c.width > 1 || (a.code != TIR_FLOAT && b.code != TIR_FLOAT)) {
    fprintf(e->out, "(%s)", type);
    emit_c_value(e, call->args[call->count - 1], c);
    return true;
  }
  if (a.code == TIR_FLOAT)
    fprintf(e->out, "(%s)%s(", type, emit_c_helper(e, "bits", a, NULL, helper));
  else
    fprintf(e->out, "%s((uint%d_t)", emit_c_helper(e, "of_bits", b, NULL, helper), b.bits);
  emit_c_value(e, call->args[call->count - 1], c);
  fputc(')', e->out);
  return true;
}

/* ---- */

/* Only the branch that is taken is computed: it may guard an access. */
static void if_then_else(struct emit_c *e, const struct call *call, struct c_chunk c) {
  if (tir_type_lanes(tir_type_of(e->ir, call->args[0])) > 1 && c.width > 1) {
    struct c_type t = emit_c_type(e, call->type, c.width);
    char helper[64];
    fprintf(e->out, "%s(", emit_c_helper(e, "select", t, NULL, helper));
    emit_c_mask(e, call->args[0], c, t.bits);
  } else {
    fputc('(', e->out);
    emit_c_value(e, call->args[0], tir_type_lanes(tir_type_of(e->ir, call->args[0])) > 1 ? c : C_SCALAR);
  }
  bool chosen = tir_type_lanes(tir_type_of(e->ir, call->args[0])) == 1 || c.width == 1;
  fputs(chosen ? " ? " : ", ", e->out);
  emit_c_value(e, call->args[1], c);
  fputs(chosen ? " : " : ", ", e->out);
  emit_c_value(e, call->args[2], c);
  fputc(')', e->out);
}

void emit_c_call(struct emit_c *e, tir_expr x, struct c_chunk c) {
  assert(tir_at(e->ir, x)->kind == TIR_CALL);
  const struct tir_expr_node *n = tir_at(e->ir, x);
  struct call call = {x, tir_text(e->ir, n->ref), tir_operands(e->ir, n->operands), n->count, n->type};
  bool known = false;
  if (!strcmp(call.name, "if_then_else") && n->count == 3) {
    if_then_else(e, &call, c);
    return;
  }
  if (!strcmp(call.name, "likely") && n->count == 1) {
    emit_c_value(e, call.args[0], c);
    return;
  }
  if (tir_is_thread_number(e->ir, x)) {
    fputs(e->parallel ? "(int32_t)ms_thread" : "0", e->out);
    return;
  }
  if (!strcmp(call.name, TIR_IS_ALIGNED) && n->count == 2) {
    fputs("(((uintptr_t)(const void *)(", e->out);
    emit_c_value(e, call.args[0], C_SCALAR);
    fprintf(e->out, ") & %lld) == 0)", (long long)tir_at(e->ir, call.args[1])->imm - 1);
    return;
  }
  if (!strcmp(call.name, "address_of") && n->count == 1 && tir_at(e->ir, call.args[0])->kind == TIR_LOAD) {
    emit_c_address(e, call.args[0]);
    return;
  }
  if (e->dialect->call(e, x)) return;
  if (n->count == 0) {
    emit_c_refuse(e, "T.%s of no arguments is not known", call.name);
    return;
  }
  tir_type from = tir_type_of(e->ir, call.args[0]);
  if (!strcmp(call.name, "isnan") && tir_type_is_float(from)) {
    char helper[64];
    fputs(emit_c_helper(e, "isnan", emit_c_type(e, from, c.width), NULL, helper), e->out);
    arguments(e, &call, c);
    return;
  }
  if (!strcmp(call.name, "reinterpret"))
    known = reinterpret(e, &call, c);
  else if (tir_type_is_float(n->type))
    known = elementary(e, &call, c);
  else if (tir_type_is_int(n->type))
    known = bit_call(e, &call, c);
  if (!known) emit_c_refuse(e, "T.%s has no form in C", call.name);
}
