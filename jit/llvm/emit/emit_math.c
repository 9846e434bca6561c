/* Calls: elementary functions as polynomials on vectors of float32, or the C library's; selection; bit operations.
 *
 * exp and tanh follow the range reductions and coefficients of Cephes (Moshier, netlib); erf's polynomials are fitted
 * for the least relative error. Over all 2^32 floats, with fused multiply-add, their errors are at most 1.02 units in
 * the last place (exp), 1.34 (tanh) and 1.07 (erf): tests/tools/float_functions.c. Other functions: lower/in_single.c
 * and through_double.c. */
#include "emit.h"
#include "jit/llvm/machine.h"
#include "jit/llvm/x86.h"

#include <assert.h>
#include <string.h>

/* ---- Polynomials on float32 ---- */

struct real {
  struct emit *e;
  LLVMTypeRef type;
}; /* constants and arithmetic of one vector type, no fast-math flags */

static LLVMValueRef constant(struct real r, double value) { return LLVMConstReal(r.type, value); }
static LLVMValueRef plus(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFAdd(r.e->builder, a, b, "");
}
static LLVMValueRef minus(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFSub(r.e->builder, a, b, "");
}
static LLVMValueRef times(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFMul(r.e->builder, a, b, "");
}
static LLVMValueRef over(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFDiv(r.e->builder, a, b, "");
}
static LLVMValueRef multiply_add(struct real r, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMValueRef args[] = {a, b, c};
  return emit_intrinsic(r.e, "llvm.fmuladd", r.type, args, 3);
}
static LLVMValueRef magnitude(struct real r, LLVMValueRef x) { return emit_intrinsic(r.e, "llvm.fabs", r.type, &x, 1); }

/* Coefficients from the highest power down. */
static LLVMValueRef polynomial(struct real r, LLVMValueRef x, const double *coefficients, int count) {
  assert(count > 1);
  LLVMValueRef p = constant(r, coefficients[0]);
  for (int i = 1; i < count; i++) p = multiply_add(r, p, x, constant(r, coefficients[i]));
  return p;
}

static LLVMTypeRef int_vector(struct real r) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(r.e->context);
  return LLVMGetTypeKind(r.type) == LLVMVectorTypeKind ? LLVMVectorType(i32, LLVMGetVectorSize(r.type)) : i32;
}

static LLVMValueRef int_constant(struct real r, int32_t value) {
  LLVMValueRef one = LLVMConstInt(LLVMInt32TypeInContext(r.e->context), (unsigned long long)value, true);
  if (LLVMGetTypeKind(r.type) != LLVMVectorTypeKind) return one;
  LLVMValueRef all[1024];
  unsigned lanes = LLVMGetVectorSize(r.type);
  for (unsigned i = 0; i < lanes; i++) all[i] = one;
  return LLVMConstVector(all, lanes);
}

static LLVMValueRef power_of_two(struct real r, LLVMValueRef k) { /* k within [-126, 127] */
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef biased = LLVMBuildAdd(w, k, int_constant(r, 127), "");
  return LLVMBuildBitCast(w, LLVMBuildShl(w, biased, int_constant(r, 23), ""), r.type, "");
}

#define JIT_POLYNOMIAL(name, ...) static const double of_##name[] = {__VA_ARGS__};
#include "jit/polynomials.def"
#define POLYNOMIAL(name) of_##name, sizeof of_##name / sizeof *of_##name

enum { SCALED_LANES = 16, CURRENT_ROUNDING = 4 }; /* of vscalefps in registers of 512 bits */

/* So many elements of one or two vectors, from `first` on. */
static LLVMValueRef elements(struct real r, LLVMValueRef a, LLVMValueRef b, unsigned first, unsigned lanes) {
  LLVMValueRef order[1024];
  for (unsigned i = 0; i < lanes; i++) order[i] = LLVMConstInt(LLVMInt32TypeInContext(r.e->context), first + i, false);
  return LLVMBuildShuffleVector(r.e->builder, a, b, LLVMConstVector(order, lanes), "");
}

/* x * 2^k, rounded once, of lanes that are registers, by halves. */
static LLVMValueRef scale_at_once(struct real r, LLVMValueRef x, LLVMValueRef k, unsigned lanes) {
  if (lanes > SCALED_LANES) {
    LLVMValueRef halves[2];
    for (unsigned i = 0, half = lanes / 2; i < 2; i++)
      halves[i] = scale_at_once(r, elements(r, x, x, i * half, half), elements(r, k, k, i * half, half), half);
    return elements(r, halves[0], halves[1], 0, lanes);
  }
  LLVMValueRef args[] = {x, k, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstAllOnes(LLVMInt16TypeInContext(r.e->context)),
                         LLVMConstInt(LLVMInt32TypeInContext(r.e->context), CURRENT_ROUNDING, false)};
  return emit_machine_intrinsic(r.e, "llvm.x86.avx512.mask.scalef.ps.512", args, 5);
}

/* Whether the target has vscalefps for such vectors. */
static bool scales_at_once(struct real r) {
  const struct jit_target *t = r.e->target;
  unsigned lanes = LLVMGetTypeKind(r.type) == LLVMVectorTypeKind ? LLVMGetVectorSize(r.type) : 1;
  return lanes >= SCALED_LANES && !(lanes & (lanes - 1)) && t->vector_bits >= 512 && jit_target_is_x86(t) &&
         x86_has(t->x86, X86_AVX512F);
}

/* e^x = 2^k * e^r, |r| <= ln(2)/2; 2^k at once, or in two steps, so that results overflow and vanish as they should. */
static LLVMValueRef exponential(struct real r, LLVMValueRef x) {
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef top = constant(r, 89.0), bottom = constant(r, -104.0);
  x = LLVMBuildSelect(w, LLVMBuildFCmp(w, LLVMRealOGT, x, top, ""), top, x, "");
  x = LLVMBuildSelect(w, LLVMBuildFCmp(w, LLVMRealOLT, x, bottom, ""), bottom, x, "");
  /* Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits. */
  LLVMValueRef magic = constant(r, 12582912.0);
  LLVMValueRef shifted = multiply_add(r, x, constant(r, 1.44269504088896341), magic);
  LLVMValueRef k_real = minus(r, shifted, magic);
  LLVMValueRef rest = multiply_add(r, k_real, constant(r, -0.693359375), x);
  rest = multiply_add(r, k_real, constant(r, 2.12194440e-4), rest);
  LLVMValueRef tail = multiply_add(r, polynomial(r, rest, POLYNOMIAL(exp)), times(r, rest, rest), rest);
  LLVMValueRef near_one = plus(r, tail, constant(r, 1.0));
  if (scales_at_once(r)) return scale_at_once(r, near_one, k_real, LLVMGetVectorSize(r.type));
  LLVMTypeRef ints = int_vector(r);
  LLVMValueRef k = LLVMBuildSub(w, LLVMBuildBitCast(w, shifted, ints, ""), LLVMBuildBitCast(w, magic, ints, ""), "");
  LLVMValueRef half = LLVMBuildAShr(w, k, int_constant(r, 1), "");
  LLVMValueRef scaled = times(r, near_one, power_of_two(r, half));
  return times(r, scaled, power_of_two(r, LLVMBuildSub(w, k, half, "")));
}

static LLVMValueRef copy_sign(struct real r, LLVMValueRef size, LLVMValueRef sign) {
  LLVMValueRef args[] = {size, sign};
  return emit_intrinsic(r.e, "llvm.copysign", r.type, args, 2);
}

static LLVMValueRef hyperbolic_tangent(struct real r, LLVMValueRef x) {
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef square = times(r, x, x), size = magnitude(r, x);
  LLVMValueRef small = multiply_add(r, times(r, polynomial(r, square, POLYNOMIAL(tanh)), square), x, x);
  LLVMValueRef grown = exponential(r, plus(r, size, size));
  LLVMValueRef large = minus(r, constant(r, 1.0), over(r, constant(r, 2.0), plus(r, grown, constant(r, 1.0))));
  LLVMValueRef is_small = LLVMBuildFCmp(w, LLVMRealOLT, size, constant(r, 0.625), "");
  return copy_sign(r, LLVMBuildSelect(w, is_small, small, large, ""), x); /* of -0, too */
}

/* Below 1: x + x * near(x^2); above: 1 - e^far(|x|), far = ln(1 - erf). */
static LLVMValueRef error_function(struct real r, LLVMValueRef x) {
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef size = magnitude(r, x), top = constant(r, 4.0);
  LLVMValueRef small = multiply_add(r, polynomial(r, times(r, x, x), POLYNOMIAL(erf_near)), x, x);
  LLVMValueRef within = LLVMBuildSelect(w, LLVMBuildFCmp(w, LLVMRealOGT, size, top, ""), top, size, "");
  LLVMValueRef rest = exponential(r, polynomial(r, within, POLYNOMIAL(erf_far)));
  LLVMValueRef large = copy_sign(r, minus(r, constant(r, 1.0), rest), x);
  return LLVMBuildSelect(w, LLVMBuildFCmp(w, LLVMRealOLT, size, constant(r, 1.0), ""), small, large, "");
}

/* ---- Functions by name ---- */

/* How a function is computed, by the table tir/functions.def. An intrinsic of vectors calls the C library lane by lane
 * where the CPU has no instruction. */
enum way { MADE, INTRINSIC, LIBRARY, OWN };
#define SINGLE(f)   NULL
#define DOUBLE(f)   NULL
#define BACKENDS(f) f
#define CALLED      NULL
static const struct {
  enum way way;
  const char *intrinsic;
  LLVMValueRef (*polynomial)(struct real, LLVMValueRef); /* of float32, with fast math */
} computed[TIR_FUNCTIONS] = {
#define TIR_FUNCTION(name, operands, value, free, fixed, llvm, ...) {llvm, "llvm." #name, free},
#include "tir/functions.def"
};

enum { MOST_LIBRARY_ARGUMENTS = 2 };

/* Of arguments of any type; the result has the type of the first. */
static LLVMValueRef call_library(struct emit *e, const char *name, tir_type type, LLVMValueRef *args, unsigned count) {
  assert(count > 0 && count <= MOST_LIBRARY_ARGUMENTS);
  LLVMTypeRef real = emit_type(e, tir_type_with_lanes(type, 1)), params[MOST_LIBRARY_ARGUMENTS];
  for (unsigned k = 0; k < count; k++) {
    params[k] = LLVMTypeOf(args[k]);
    if (LLVMGetTypeKind(params[k]) == LLVMVectorTypeKind) params[k] = LLVMGetElementType(params[k]);
  }
  LLVMTypeRef signature = LLVMFunctionType(real, params, count, false);
  char symbol[32];
  snprintf(symbol, sizeof symbol, "%s%s", name, tir_type_bits(type) == 32 ? "f" : "");
  LLVMValueRef f = LLVMGetNamedFunction(e->module, symbol);
  if (!f) f = LLVMAddFunction(e->module, symbol, signature);
  int lanes = tir_type_lanes(type);
  if (lanes == 1) return LLVMBuildCall2(e->builder, signature, f, args, count, "");
  LLVMValueRef all = LLVMGetPoison(emit_type(e, type));
  for (int i = 0; i < lanes; i++) {
    LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned long long)i, false),
                 one[MOST_LIBRARY_ARGUMENTS];
    for (unsigned k = 0; k < count; k++) one[k] = LLVMBuildExtractElement(e->builder, args[k], at, "");
    LLVMValueRef value = LLVMBuildCall2(e->builder, signature, f, one, count, "");
    all = LLVMBuildInsertElement(e->builder, all, value, at, "");
  }
  return all;
}

/* ldexp: its second argument, an integer or a float that is one, goes to the C library as an int. */
static LLVMValueRef scaled(struct emit *e, tir_type type, LLVMValueRef *args, tir_type exponent) {
  int lanes = tir_type_lanes(type);
  args[1] = emit_cast(e, args[1], tir_type_with_lanes(exponent, lanes), TIR_TYPE(TIR_INT, 32, lanes));
  return call_library(e, "ldexp", type, args, 2);
}

/* NULL: no elementary function of so many arguments has this name. Values are float32 or float64; `last` is the type of
 * the last argument. */
static LLVMValueRef elementary(struct emit *e, const char *name, tir_type type, LLVMValueRef *args, unsigned count,
                               tir_type last) {
  struct real r = {e, emit_type(e, type)};
  enum tir_function f = tir_function_named(name);
  if (f == TIR_FUNCTIONS || tir_functions[f].operands != count) return NULL;
  if (computed[f].polynomial && e->fast_math && tir_type_bits(type) == 32) return computed[f].polynomial(r, args[0]);
  switch (computed[f].way) {
  case MADE: return NULL;
  case INTRINSIC: return emit_intrinsic(e, computed[f].intrinsic, r.type, args, count);
  case LIBRARY: return call_library(e, tir_functions[f].name, type, args, count);
  case OWN: break;
  }
  if (f == TIR_FUNCTION_ldexp) return scaled(e, type, args, last);
  assert(f == TIR_FUNCTION_rsqrt);
  return over(r, constant(r, 1.0), emit_intrinsic(e, "llvm.sqrt", r.type, args, 1));
}

/* ---- Integers and bits ---- */

static LLVMValueRef bit_call(struct emit *e, const char *name, tir_type type, LLVMValueRef *args, unsigned count) {
  LLVMBuilderRef w = e->builder;
  bool is_signed = tir_type_code(type) == TIR_INT;
  LLVMValueRef no = LLVMConstNull(LLVMInt1TypeInContext(e->context));
  if (count == 2) {
    if (!strcmp(name, "bitwise_and")) return LLVMBuildAnd(w, args[0], args[1], "");
    if (!strcmp(name, "bitwise_or")) return LLVMBuildOr(w, args[0], args[1], "");
    if (!strcmp(name, "bitwise_xor")) return LLVMBuildXor(w, args[0], args[1], "");
    if (!strcmp(name, "shift_left")) return LLVMBuildShl(w, args[0], args[1], "");
    if (!strcmp(name, "shift_right"))
      return is_signed ? LLVMBuildAShr(w, args[0], args[1], "") : LLVMBuildLShr(w, args[0], args[1], "");
  }
  if (count != 1) return NULL;
  LLVMValueRef with_flag[] = {args[0], no};
  if (!strcmp(name, "bitwise_not")) return LLVMBuildNot(w, args[0], "");
  if (!strcmp(name, "popcount")) return emit_intrinsic(e, "llvm.ctpop", LLVMTypeOf(args[0]), args, 1);
  if (!strcmp(name, "clz")) return emit_intrinsic(e, "llvm.ctlz", LLVMTypeOf(args[0]), with_flag, 2);
  if (!strcmp(name, "abs") && is_signed) return emit_intrinsic(e, "llvm.abs", LLVMTypeOf(args[0]), with_flag, 2);
  return NULL;
}

/* ---- Calls ---- */

/* Only the branch that is taken is computed: it may guard an access. */
static LLVMValueRef if_then_else(struct emit *e, const struct tir_expr_node *n) {
  const uint32_t *args = tir_operands(e->ir, n->operands);
  if (tir_type_lanes(tir_type_of(e->ir, args[0])) > 1) {
    int lanes = tir_type_lanes(n->type);
    LLVMValueRef c = emit_expr(e, args[0]), a = emit_expr(e, args[1]), b = emit_expr(e, args[2]);
    if (tir_type_lanes(tir_type_of(e->ir, args[1])) < lanes) a = emit_splat(e, a, lanes);
    if (tir_type_lanes(tir_type_of(e->ir, args[2])) < lanes) b = emit_splat(e, b, lanes);
    return LLVMBuildSelect(e->builder, c, a, b, "");
  }
  return emit_choice(e, n->type, args[0], args[1], args[2]);
}

/* Of the thread that runs a parallel loop's iterations. */
static LLVMValueRef thread_number(struct emit *e) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  return e->thread ? LLVMBuildTrunc(e->builder, e->thread, i32, "") : LLVMConstNull(i32);
}

/* is_aligned(pointer, bytes) */
static LLVMValueRef is_aligned(struct emit *e, const tir_expr *args) {
  assert(tir_is_int(e->ir, args[1]) && tir_at(e->ir, args[1])->imm > 0);
  LLVMValueRef mask = emit_int64(e, tir_at(e->ir, args[1])->imm - 1), at = emit_expr(e, args[0]);
  if (e->failed) return at;
  at = LLVMBuildPtrToInt(e->builder, at, LLVMInt64TypeInContext(e->context), "");
  return LLVMBuildICmp(e->builder, LLVMIntEQ, LLVMBuildAnd(e->builder, at, mask, ""), emit_int64(e, 0), "");
}

enum { MOST_ARGUMENTS = 8 };

LLVMValueRef emit_call(struct emit *e, tir_expr call) {
  assert(tir_at(e->ir, call)->kind == TIR_CALL);
  struct tir_expr_node n = *tir_at(e->ir, call);
  const char *name = tir_text(e->ir, n.ref);
  const uint32_t *operands = tir_operands(e->ir, n.operands);
  if (!strcmp(name, "if_then_else") && n.count == 3) return if_then_else(e, &n);
  if (!strcmp(name, "likely") && n.count == 1) return emit_expr(e, operands[0]);
  if (tir_is_thread_number(e->ir, call)) return thread_number(e);
  if (!strcmp(name, TIR_DOT_LANES) && n.count == 3) return emit_dot(e, &n);
  if (!strcmp(name, TIR_IS_ALIGNED) && n.count == 2) return is_aligned(e, operands);
  if (!strcmp(name, "address_of") && n.count == 1 && tir_at(e->ir, operands[0])->kind == TIR_LOAD)
    return emit_address(e, operands[0]);
  if (n.count == 0 || n.count > MOST_ARGUMENTS)
    return emit_refusal(e, "T.%s of %u arguments is not known", name, n.count);
  tir_type from = tir_type_of(e->ir, operands[0]);
  LLVMValueRef args[MOST_ARGUMENTS], value = NULL;
  int lanes = tir_type_lanes(n.type);
  for (uint32_t i = 0; i < n.count; i++) {
    tir_type t = tir_type_of(e->ir, operands[i]);
    args[i] = emit_expr(e, operands[i]);
    if (tir_type_lanes(t) < lanes) args[i] = emit_splat(e, args[i], lanes);
  }
  from = tir_type_with_lanes(from, lanes);
  if (!strcmp(name, "isnan") && tir_type_is_float(from)) {
    if (tir_type_is_short(from)) args[0] = emit_cast(e, args[0], from, TIR_TYPE(TIR_FLOAT, 32, lanes));
    return LLVMBuildFCmp(e->builder, LLVMRealUNO, args[0], args[0], "");
  }
  if (!strcmp(name, "reinterpret") && tir_type_bits(from) != tir_type_bits(n.type))
    return emit_refusal(e, "T.reinterpret joins types of different size");
  if (!strcmp(name, "reinterpret")) return LLVMBuildBitCast(e->builder, args[0], emit_type(e, n.type), "");
  if (tir_type_is_float(n.type))
    value = elementary(e, name, n.type, args, n.count, tir_type_of(e->ir, operands[n.count - 1]));
  else if (tir_type_is_int(n.type) || tir_type_code(n.type) == TIR_BOOL)
    value = bit_call(e, name, n.type, args, n.count);
  return value ? value : emit_refusal(e, "T.%s has no machine code on this target", name);
}
