/* What is done with floats of 16 bits, done with float32; and what is done with them, in fewer instructions.
 *
 * A function computes with such floats as float32. The instcombine of LLVM 19.1 takes `fcmp (fpext a), (fpext b)` for
 * `fcmp a, b`, and `fptrunc (floor (fpext a))` for `floor a`, which its backend for x86 without AVX512-FP16 makes lane
 * by lane of a vector, or, of maxima and minima, by calls: several instructions for each, where conversions and one
 * instruction serve all lanes. Results are the same: whole numbers, those without their sign, and one of two, are
 * exact.
 *
 * Where the target computes with float16, instcombine narrows its arithmetic too, and drops the note that a product may
 * be fused with a sum: it is put back, where fast_math asks for it.
 *
 * Requires: optimized code: no instcombine comes behind. Keeps: float16 where the target has AVX512-FP16; arithmetic,
 * which the backend widens itself.
 * Source: LLVM 19.1.7, InstCombineCompares.cpp, visitFCmpInst; InstCombineCasts.cpp, visitFPTrunc;
 * InstCombineCalls.cpp, visitCallInst, of minnum and maxnum. */
#include "short_floats.h"

#include "machine.h"
#include "x86.h"

#include <string.h>

/* Functions that instcombine narrows. x86 has float16 without its sign: a bit of it. */
static const struct {
  const char *name;
  bool of_halves;
} narrowed[] = {{"llvm.fabs", false},     {"llvm.ceil", true},      {"llvm.floor", true}, {"llvm.maxnum", true},
                {"llvm.minnum", true},    {"llvm.nearbyint", true}, {"llvm.rint", true},  {"llvm.round", true},
                {"llvm.roundeven", true}, {"llvm.trunc", true}};
enum { NARROWED = sizeof narrowed / sizeof *narrowed };

struct widening {
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  bool has_halves; /* the target computes with float16 */
  bool fuses;      /* products of it with sums */
  unsigned ids[NARROWED];
};

static bool is_vector(LLVMTypeRef type) { return LLVMGetTypeKind(type) == LLVMVectorTypeKind; }

static LLVMTypeKind kind_of(LLVMTypeRef type) {
  return LLVMGetTypeKind(is_vector(type) ? LLVMGetElementType(type) : type);
}

/* The type with elements of float32 in the place of those of 16 bits; NULL: it is to stay. */
static LLVMTypeRef wide_type(const struct widening *w, LLVMTypeRef type) {
  LLVMTypeKind kind = kind_of(type);
  if (kind != LLVMBFloatTypeKind && (kind != LLVMHalfTypeKind || w->has_halves)) return NULL;
  LLVMTypeRef wide = LLVMFloatTypeInContext(LLVMGetModuleContext(w->module));
  return is_vector(type) ? LLVMVectorType(wide, LLVMGetVectorSize(type)) : wide;
}

static void widen_comparison(const struct widening *w, LLVMValueRef i) {
  LLVMTypeRef wide = wide_type(w, LLVMTypeOf(LLVMGetOperand(i, 0)));
  if (!wide) return;
  LLVMPositionBuilderBefore(w->builder, i);
  for (unsigned k = 0; k < 2; k++) LLVMSetOperand(i, k, LLVMBuildFPCast(w->builder, LLVMGetOperand(i, k), wide, ""));
}

/* Erases the call where it is widened. */
static void widen_call(const struct widening *w, LLVMValueRef i) {
  LLVMValueRef called = LLVMGetCalledValue(i);
  LLVMTypeRef type = LLVMTypeOf(i), wide;
  unsigned id = called && LLVMIsAFunction(called) ? LLVMGetIntrinsicID(called) : 0, k = 0;
  while (k < NARROWED && (!id || id != w->ids[k])) k++;
  if (k == NARROWED || !(wide = wide_type(w, type))) return;
  if (kind_of(type) == LLVMHalfTypeKind && !narrowed[k].of_halves) return;
  LLVMPositionBuilderBefore(w->builder, i);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(w->module, id, &wide, 1);
  unsigned count = LLVMGetNumArgOperands(i);
  LLVMValueRef x[2];
  assert(count >= 1 && count <= 2);
  for (unsigned a = 0; a < count; a++) x[a] = LLVMBuildFPCast(w->builder, LLVMGetOperand(i, a), wide, "");
  LLVMValueRef value = LLVMBuildCall2(w->builder, LLVMGlobalGetValueType(f), f, x, count, "");
  if (LLVMCanValueUseFastMathFlags(value)) LLVMSetFastMathFlags(value, LLVMGetFastMathFlags(i));
  LLVMReplaceAllUsesWith(i, LLVMBuildFPCast(w->builder, value, type, ""));
  LLVMInstructionEraseFromParent(i);
}

static void fuse_halves(LLVMValueRef i) {
  LLVMOpcode op = LLVMGetInstructionOpcode(i);
  if ((op != LLVMFAdd && op != LLVMFSub && op != LLVMFMul) || kind_of(LLVMTypeOf(i)) != LLVMHalfTypeKind) return;
  LLVMSetFastMathFlags(i, LLVMGetFastMathFlags(i) | LLVMFastMathAllowContract);
}

static void widen_in(const struct widening *w, LLVMBasicBlockRef block) {
  for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
    next = LLVMGetNextInstruction(i);
    if (LLVMGetInstructionOpcode(i) == LLVMFCmp)
      widen_comparison(w, i);
    else if (LLVMIsACallInst(i))
      widen_call(w, i);
    else if (w->fuses)
      fuse_halves(i);
  }
}

void jit_widen_short_floats(LLVMModuleRef module, const struct jit_target *target, bool fast_math) {
  assert(module && target);
  struct widening w = {.module = module,
                       .builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module)),
                       .has_halves = jit_target_is_x86(target) && x86_has(target->x86, X86_AVX512FP16)};
  w.fuses = fast_math && (w.has_halves || !jit_target_is_x86(target));
  for (unsigned k = 0; k < NARROWED; k++) w.ids[k] = LLVMLookupIntrinsicID(narrowed[k].name, strlen(narrowed[k].name));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) widen_in(&w, b);
  LLVMDisposeBuilder(w.builder);
}
