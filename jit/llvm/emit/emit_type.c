/* Types of values, and conversions between them. */
#include "emit.h"
#include "jit/llvm/machine.h"
#include "jit/llvm/x86.h"

static LLVMTypeRef scalar_type(struct emit *e, tir_type type) {
  unsigned bits = (unsigned)tir_type_bits(type);
  switch (tir_type_code(type)) {
  case TIR_BOOL: return LLVMInt1TypeInContext(e->context);
  case TIR_INT:
  case TIR_UINT: return LLVMIntTypeInContext(e->context, bits);
  case TIR_BFLOAT: return LLVMBFloatTypeInContext(e->context);
  case TIR_FLOAT:
    return bits == 16   ? LLVMHalfTypeInContext(e->context)
           : bits == 32 ? LLVMFloatTypeInContext(e->context)
                        : LLVMDoubleTypeInContext(e->context);
  case TIR_E4M3:
  case TIR_E5M2: return LLVMInt8TypeInContext(e->context); /* as it stands in memory */
  case TIR_HANDLE: return LLVMPointerTypeInContext(e->context, 0);
  default: return LLVMVoidTypeInContext(e->context);
  }
}

static bool is_odd(tir_type type) { return tir_type_lanes(type) & (tir_type_lanes(type) - 1); }

/* Whether bfloat16 is an integer of 16 bits, as it is but on CPUs with AVX512-BF16, and vectors of odd lengths there.
 * Elsewhere LLVM holds vectors of it, which two branches join in, as float32, and calls a routine that few systems have
 * (__truncsfbf2); it selects no instruction that chooses between two (AVX-NE-CONVERT), nor any in loops that it makes
 * vectors of (SVE). What is left of a vector it compares and loads as it was before, and where one lane is left, gives
 * up: "Do not know how to soft promote this operator's operand". What is widened by its bits LLVM leaves alone. */
static bool is_of_bits(const struct emit *e, tir_type type) {
  const struct jit_target *t = e->target;
  bool has = jit_target_is_x86(t) && x86_has(t->x86, X86_AVX512BF16) && x86_has(t->x86, X86_AVX512VL);
  return tir_type_code(type) == TIR_BFLOAT && (is_odd(type) || !has);
}

/* Whether an instruction of the target rounds float32 to bfloat16 of such lanes. Of SVE LLVM selects none: it may make
 * vectors of one number in a loop. */
static bool is_rounded_by_instruction(const struct jit_target *t, tir_type to) {
  if (is_odd(to)) return false;
  if (!jit_target_is_x86(t)) return t->dots >> TIR_DOT_BFLOATS & 1 && tir_type_lanes(to) > 1;
  return !x86_has(t->x86, X86_AVX512F) && x86_has(t->x86, X86_AVXNECONVERT);
}

LLVMTypeRef emit_type(struct emit *e, tir_type type) {
  LLVMTypeRef scalar = is_of_bits(e, type) ? LLVMInt16TypeInContext(e->context) : scalar_type(e, type);
  int lanes = tir_type_lanes(type);
  return lanes > 1 ? LLVMVectorType(scalar, (unsigned)lanes) : scalar;
}

uint64_t emit_type_bytes(tir_type type) {
  uint64_t bits = (uint64_t)tir_type_bits(type);
  return (bits + 7) / 8 * (uint64_t)tir_type_lanes(type);
}

LLVMValueRef emit_int64(struct emit *e, int64_t value) {
  return LLVMConstInt(LLVMInt64TypeInContext(e->context), (unsigned long long)value, true);
}

LLVMValueRef emit_splat(struct emit *e, LLVMValueRef scalar, int lanes) {
  assert(scalar && lanes > 0);
  if (lanes == 1) return scalar;
  if (LLVMGetTypeKind(LLVMTypeOf(scalar)) == LLVMBFloatTypeKind && (lanes & (lanes - 1)))
    scalar = LLVMBuildBitCast(e->builder, scalar, LLVMInt16TypeInContext(e->context), "");
  LLVMTypeRef vector = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)lanes);
  LLVMTypeRef mask = LLVMVectorType(LLVMInt32TypeInContext(e->context), (unsigned)lanes);
  LLVMValueRef undefined = LLVMGetPoison(vector);
  LLVMValueRef zero = LLVMConstInt(LLVMInt32TypeInContext(e->context), 0, false);
  LLVMValueRef one = LLVMBuildInsertElement(e->builder, undefined, scalar, zero, "");
  return LLVMBuildShuffleVector(e->builder, one, undefined, LLVMConstNull(mask), "splat");
}

static bool is_float(tir_type t) { return tir_type_is_float(t); }
static bool is_signed(tir_type t) { return tir_type_code(t) == TIR_INT; }

/* The one of a float and a limit that is on this side of the other; the limit where the float is no number. */
static LLVMValueRef within(struct emit *e, LLVMValueRef value, LLVMRealPredicate side, double limit) {
  LLVMTypeRef type = LLVMTypeOf(value);
  bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
  LLVMValueRef one = LLVMConstReal(vector ? LLVMGetElementType(type) : type, limit);
  LLVMValueRef all = emit_splat(e, one, vector ? (int)LLVMGetVectorSize(type) : 1);
  return LLVMBuildSelect(e->builder, LLVMBuildFCmp(e->builder, side, value, all, ""), value, all, "");
}

/* The same to an integer of 8 or 16 bits, held within its range as a float and converted to 32 bits: LLVM converts
 * vectors to such short integers lane by lane. */
static LLVMValueRef float_to_short(struct emit *e, LLVMValueRef value, tir_type from, tir_type to) {
  int lanes = tir_type_lanes(to), bits = tir_type_bits(to) - is_signed(to);
  double most = (double)((1 << bits) - 1), least = is_signed(to) ? -most - 1 : 0;
  if (tir_type_bits(from) < 32) value = emit_cast(e, value, from, TIR_TYPE(TIR_FLOAT, 32, lanes));
  if (is_signed(to)) {
    LLVMValueRef number = LLVMBuildFCmp(e->builder, LLVMRealORD, value, value, "");
    value = LLVMBuildSelect(e->builder, number, value, LLVMConstNull(LLVMTypeOf(value)), "");
  }
  value = within(e, within(e, value, LLVMRealOGT, least), LLVMRealOLT, most);
  LLVMValueRef whole = LLVMBuildFPToSI(e->builder, value, emit_type(e, TIR_TYPE(TIR_INT, 32, lanes)), "");
  return LLVMBuildTrunc(e->builder, whole, emit_type(e, to), "");
}

/* A float outside the integer's range saturates, as the reference interpreter has it; what is no number is 0. */
static LLVMValueRef float_to_int(struct emit *e, LLVMValueRef value, tir_type from, tir_type to) {
  if (tir_type_bits(to) == 8 || tir_type_bits(to) == 16) return float_to_short(e, value, from, to);
  LLVMTypeRef types[] = {emit_type(e, to), LLVMTypeOf(value)};
  const char *name = is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID(name, 15), types, 2);
  return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, &value, 1, "");
}

static LLVMValueRef whole(struct emit *e, uint64_t value, int lanes) {
  return emit_splat(e, LLVMConstInt(LLVMInt32TypeInContext(e->context), value, false), lanes);
}

/* float32 to bfloat16 by the target's instruction, then to its bits. */
static LLVMValueRef round_by_instruction(struct emit *e, LLVMValueRef value, tir_type to) {
  int lanes = tir_type_lanes(to);
  LLVMTypeRef one = LLVMBFloatTypeInContext(e->context);
  LLVMTypeRef type = lanes > 1 ? LLVMVectorType(one, (unsigned)lanes) : one;
  return LLVMBuildBitCast(e->builder, LLVMBuildFPCast(e->builder, value, type, ""), emit_type(e, to), "");
}

/* float32 to bfloat16, to the nearest, by its bits; checks: what is NaN keeps its upper ones. */
static LLVMValueRef round_by_bits(struct emit *e, LLVMValueRef value, tir_type to, bool checks) {
  LLVMBuilderRef w = e->builder;
  int lanes = tir_type_lanes(to);
  LLVMValueRef bits = LLVMBuildBitCast(w, value, emit_type(e, TIR_TYPE(TIR_UINT, 32, lanes)), "");
  LLVMValueRef high = LLVMBuildLShr(w, bits, whole(e, 16, lanes), "");
  LLVMValueRef odd = LLVMBuildAnd(w, high, whole(e, 1, lanes), "");
  LLVMValueRef half = LLVMBuildAdd(w, odd, whole(e, 0x7fff, lanes), "");
  LLVMValueRef chosen = LLVMBuildLShr(w, LLVMBuildAdd(w, bits, half, ""), whole(e, 16, lanes), "");
  if (checks) {
    LLVMValueRef none = LLVMBuildFCmp(w, LLVMRealUNO, value, value, "");
    LLVMValueRef quiet = LLVMBuildOr(w, high, whole(e, 0x40, lanes), "");
    chosen = LLVMBuildSelect(w, none, quiet, chosen, "");
  }
  LLVMValueRef narrow = LLVMBuildTrunc(w, chosen, emit_type(e, TIR_TYPE(TIR_UINT, 16, lanes)), "");
  return LLVMBuildBitCast(w, narrow, emit_type(e, to), "");
}

static LLVMValueRef round_to_bfloat(struct emit *e, LLVMValueRef value, tir_type to) {
  return is_rounded_by_instruction(e->target, to) ? round_by_instruction(e, value, to)
                                                  : round_by_bits(e, value, to, true);
}

LLVMValueRef emit_round_to_bfloat(struct emit *e, LLVMValueRef value, tir_type to) {
  if (!is_of_bits(e, to) || is_rounded_by_instruction(e->target, to))
    return emit_cast(e, value, TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(to)), to);
  return round_by_bits(e, value, to, false);
}

static LLVMValueRef widen_bfloat(struct emit *e, LLVMValueRef value, int lanes) {
  LLVMValueRef bits = LLVMBuildBitCast(e->builder, value, emit_type(e, TIR_TYPE(TIR_UINT, 16, lanes)), "");
  bits = LLVMBuildZExt(e->builder, bits, emit_type(e, TIR_TYPE(TIR_UINT, 32, lanes)), "");
  bits = LLVMBuildShl(e->builder, bits, whole(e, 16, lanes), "");
  return LLVMBuildBitCast(e->builder, bits, emit_type(e, TIR_TYPE(TIR_FLOAT, 32, lanes)), "");
}

/* ---- Floats of 8 bits, which are their bits: a conversion spells out what it does ---- */

/* How they lie in a float32's bits: by how many bits its fraction is longer; the exponents that both have for 1, apart,
 * in the float's place; its smallest normal number; what rounds, by an addition, at the last bit of numbers below it;
 * the bits of the largest number. */
struct byte_form {
  unsigned shift;
  uint64_t apart, normal, rounding, largest;
};
static const struct byte_form e4m3 = {20, 0x3c000000, 0x3c800000, 0x46800000, 0x7e};
static const struct byte_form e5m2 = {21, 0x38000000, 0x38800000, 0x43000000, 0x7b};
static const struct byte_form *byte_form(tir_type t) { return tir_type_code(t) == TIR_E4M3 ? &e4m3 : &e5m2; }

enum { BYTE_SIZE = 0x7f, BYTE_SIGN = 0x80, BYTE_NAN = 0x7f, BYTE_TO_SIGN = 24, BYTE_INFINITE = 0x7c };

static LLVMValueRef as_type(struct emit *e, LLVMValueRef value, enum tir_code code, int lanes) {
  return LLVMBuildBitCast(e->builder, value, emit_type(e, TIR_TYPE(code, 32, lanes)), "");
}

/* The sum or difference of two floats that are given by their bits, by its bits. */
static LLVMValueRef of_bits(struct emit *e, bool adds, LLVMValueRef a, LLVMValueRef b, int lanes) {
  LLVMValueRef x = as_type(e, a, TIR_FLOAT, lanes), y = as_type(e, b, TIR_FLOAT, lanes);
  return as_type(e, adds ? LLVMBuildFAdd(e->builder, x, y, "") : LLVMBuildFSub(e->builder, x, y, ""), TIR_UINT, lanes);
}

/* Source: OCP 8-bit Floating Point Specification, "FP8 format details". Subnormal numbers by a subtraction, which is
 * exact. */
static LLVMValueRef widen_byte(struct emit *e, LLVMValueRef value, tir_type from) {
  LLVMBuilderRef w = e->builder;
  int lanes = tir_type_lanes(from);
  const struct byte_form *f = byte_form(from);
  bool infinite = f == &e5m2;
  LLVMValueRef bits = LLVMBuildZExt(w, value, emit_type(e, TIR_TYPE(TIR_UINT, 32, lanes)), "");
  LLVMValueRef number = LLVMBuildAnd(w, bits, whole(e, BYTE_SIZE, lanes), "");
  LLVMValueRef size = LLVMBuildShl(w, number, whole(e, f->shift, lanes), ""), normal = whole(e, f->normal, lanes);
  LLVMValueRef small = of_bits(e, false, LLVMBuildAdd(w, size, normal, ""), normal, lanes);
  LLVMValueRef large = LLVMBuildAdd(w, size, whole(e, f->apart, lanes), "");
  LLVMValueRef is_small = LLVMBuildICmp(w, LLVMIntULT, size, whole(e, 1 << 23, lanes), "");
  LLVMValueRef none = LLVMBuildICmp(w, LLVMIntUGE, number, whole(e, infinite ? BYTE_INFINITE : BYTE_NAN, lanes), "");
  LLVMValueRef last = infinite ? LLVMBuildOr(w, size, whole(e, 0x7f800000, lanes), "") : whole(e, 0x7fc00000, lanes);
  LLVMValueRef chosen = LLVMBuildSelect(w, none, last, LLVMBuildSelect(w, is_small, small, large, ""), "");
  LLVMValueRef sign = LLVMBuildAnd(w, bits, whole(e, BYTE_SIGN, lanes), "");
  sign = LLVMBuildShl(w, sign, whole(e, BYTE_TO_SIGN, lanes), "");
  return as_type(e, LLVMBuildOr(w, chosen, sign, ""), TIR_FLOAT, lanes);
}

/* To the nearest, ties to even; what is larger than all is the largest. */
static LLVMValueRef round_to_byte(struct emit *e, LLVMValueRef value, tir_type to) {
  LLVMBuilderRef w = e->builder;
  int lanes = tir_type_lanes(to);
  const struct byte_form *f = byte_form(to);
  LLVMValueRef bits = as_type(e, value, TIR_UINT, lanes), shift = whole(e, f->shift, lanes);
  LLVMValueRef size = LLVMBuildAnd(w, bits, whole(e, 0x7fffffff, lanes), "");
  LLVMValueRef rounding = whole(e, f->rounding, lanes), largest = whole(e, f->largest, lanes);
  LLVMValueRef small = LLVMBuildSub(w, of_bits(e, true, size, rounding, lanes), rounding, "");
  LLVMValueRef odd = LLVMBuildAnd(w, LLVMBuildLShr(w, size, shift, ""), whole(e, 1, lanes), "");
  LLVMValueRef half = LLVMBuildAdd(w, odd, whole(e, (1u << (f->shift - 1)) - 1, lanes), "");
  LLVMValueRef moved = LLVMBuildSub(w, size, whole(e, f->apart, lanes), "");
  LLVMValueRef normal = LLVMBuildLShr(w, LLVMBuildAdd(w, moved, half, ""), shift, "");
  LLVMValueRef is_small = LLVMBuildICmp(w, LLVMIntULT, size, whole(e, f->normal, lanes), "");
  LLVMValueRef number = LLVMBuildSelect(w, is_small, small, normal, "");
  number = LLVMBuildSelect(w, LLVMBuildICmp(w, LLVMIntUGT, number, largest, ""), largest, number, "");
  LLVMValueRef sign = LLVMBuildLShr(w, bits, whole(e, BYTE_TO_SIGN, lanes), "");
  sign = LLVMBuildAnd(w, sign, whole(e, BYTE_SIGN, lanes), "");
  LLVMValueRef none = LLVMBuildICmp(w, LLVMIntUGT, size, whole(e, 0x7f800000, lanes), "");
  LLVMValueRef chosen = LLVMBuildSelect(w, none, whole(e, BYTE_NAN, lanes), LLVMBuildOr(w, number, sign, ""), "");
  return LLVMBuildTrunc(w, chosen, emit_type(e, to), "");
}

LLVMValueRef emit_cast(struct emit *e, LLVMValueRef value, tir_type from, tir_type to) {
  assert(value);
  if (from == to) return value;
  LLVMTypeRef type = emit_type(e, to);
  bool truth = tir_type_code(to) == TIR_BOOL;
  if (tir_type_is_byte(from))
    return emit_cast(e, widen_byte(e, value, from), TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(from)), to);
  if (tir_type_is_byte(to))
    return round_to_byte(e, emit_cast(e, value, from, TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(to))), to);
  if (is_of_bits(e, from)) {
    value = widen_bfloat(e, value, tir_type_lanes(from));
    from = TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(from));
    if (from == to) return value;
  }
  if (is_of_bits(e, to)) {
    tir_type wide = TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(to));
    return round_to_bfloat(e, emit_cast(e, value, from, wide), to);
  }
  if (truth && is_float(from))
    return LLVMBuildFCmp(e->builder, LLVMRealUNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
  if (truth) return LLVMBuildICmp(e->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
  if (is_float(from) && is_float(to)) {
    /* Between the two 16-bit formats there is no direct way. */
    if (tir_type_bits(from) == tir_type_bits(to)) {
      tir_type wide = TIR_TYPE(TIR_FLOAT, 32, tir_type_lanes(to));
      return emit_cast(e, emit_cast(e, value, from, wide), wide, to);
    }
    return LLVMBuildFPCast(e->builder, value, type, "");
  }
  if (is_float(to))
    return is_signed(from) ? LLVMBuildSIToFP(e->builder, value, type, "")
                           : LLVMBuildUIToFP(e->builder, value, type, "");
  if (is_float(from)) return float_to_int(e, value, from, to);
  if (tir_type_code(from) == TIR_HANDLE) return LLVMBuildPtrToInt(e->builder, value, type, "");
  if (tir_type_code(to) == TIR_HANDLE) return LLVMBuildIntToPtr(e->builder, value, type, "");
  return LLVMBuildIntCast2(e->builder, value, type, is_signed(from), "");
}
