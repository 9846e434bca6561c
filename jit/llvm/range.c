/* The smaller or larger of two floats by AVX-512's range instructions, which leave NaN out as llvm.minnum and
 * llvm.maxnum do: one instruction, where LLVM compares, looks for NaN, and chooses.
 *
 * Requires: optimized code: LLVM vectorizes its own functions, and not these. Keeps: calls with a constant, which LLVM
 * knows to be no NaN, and types that fill no register. */
#include "range.h"

#include "x86.h"

#include <stdio.h>
#include <string.h>

enum { MOST_LANES = 1024 };

struct range {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  unsigned least, most, minnum, maxnum; /* widths of registers in bits; LLVM's numbers of its functions */
};

static LLVMValueRef lane(const struct range *r, unsigned i) {
  return LLVMConstInt(LLVMInt32TypeInContext(r->context), i, false);
}

/* `count` lanes from `first` on; past the last of the vector's, the first ones again. */
static LLVMValueRef part_of(const struct range *r, LLVMValueRef v, unsigned lanes, unsigned first, unsigned count) {
  LLVMValueRef order[MOST_LANES];
  if (lanes == count) return v;
  for (unsigned i = 0; i < count; i++) order[i] = lane(r, first + i < lanes ? first + i : first);
  return LLVMBuildShuffleVector(r->builder, v, LLVMGetUndef(LLVMTypeOf(v)), LLVMConstVector(order, count), "");
}

/* The vector with `part` in the place of its lanes from `first` on. */
static LLVMValueRef with_part(const struct range *r, LLVMValueRef v, unsigned lanes, unsigned first, LLVMValueRef part,
                              unsigned count) {
  LLVMValueRef order[MOST_LANES], wide = part_of(r, part, count, 0, lanes);
  for (unsigned i = 0; i < lanes; i++) order[i] = lane(r, i >= first && i < first + count ? lanes + i - first : i);
  return LLVMBuildShuffleVector(r->builder, v, wide, LLVMConstVector(order, lanes), "");
}

static LLVMValueRef call_range(const struct range *r, bool max, LLVMValueRef a, LLVMValueRef b, unsigned bits,
                               unsigned count) {
  char name[64];
  snprintf(name, sizeof name, "llvm.x86.avx512.mask.range.p%c.%u", bits == 32 ? 's' : 'd', bits * count);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(r->module, LLVMLookupIntrinsicID(name, strlen(name)), NULL, 0);
  LLVMTypeRef mask = LLVMIntTypeInContext(r->context, count > 8 ? 16 : 8);
  LLVMValueRef args[] = {a,
                         b,
                         lane(r, max ? 5 : 4), /* with the sign that it has */
                         LLVMGetUndef(LLVMTypeOf(a)),
                         LLVMConstAllOnes(mask),
                         lane(r, 4)}; /* rounding as it is */
  return LLVMBuildCall2(r->builder, LLVMGlobalGetValueType(f), f, args, bits * count == 512 ? 6 : 5, "");
}

/* What gives the same as the call; NULL: nothing does. */
static LLVMValueRef by_range(const struct range *r, LLVMValueRef call, bool max) {
  LLVMValueRef a = LLVMGetOperand(call, 0), b = LLVMGetOperand(call, 1);
  LLVMTypeRef type = LLVMTypeOf(call);
  bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
  LLVMTypeRef scalar = vector ? LLVMGetElementType(type) : type;
  unsigned lanes = vector ? LLVMGetVectorSize(type) : 1;
  unsigned bits = LLVMGetTypeKind(scalar) == LLVMFloatTypeKind    ? 32
                  : LLVMGetTypeKind(scalar) == LLVMDoubleTypeKind ? 64
                                                                  : 0;
  if (!bits || LLVMIsConstant(a) || LLVMIsConstant(b) || lanes > MOST_LANES) return NULL;
  unsigned count = r->least / bits;
  while (count * bits < r->most && count < lanes) count *= 2;
  if (!vector) {
    LLVMValueRef none = LLVMGetUndef(LLVMVectorType(scalar, count));
    LLVMValueRef x = LLVMBuildInsertElement(r->builder, none, a, lane(r, 0), "");
    LLVMValueRef y = LLVMBuildInsertElement(r->builder, none, b, lane(r, 0), "");
    return LLVMBuildExtractElement(r->builder, call_range(r, max, x, y, bits, count), lane(r, 0), "");
  }
  if (lanes <= count)
    return part_of(r, call_range(r, max, part_of(r, a, lanes, 0, count), part_of(r, b, lanes, 0, count), bits, count),
                   count, 0, lanes);
  if (lanes % count) return NULL;
  LLVMValueRef value = LLVMGetUndef(type);
  for (unsigned first = 0; first < lanes; first += count) {
    LLVMValueRef x = part_of(r, a, lanes, first, count), y = part_of(r, b, lanes, first, count);
    value = with_part(r, value, lanes, first, call_range(r, max, x, y, bits, count), count);
  }
  return value;
}

static void replace_in(const struct range *r, LLVMBasicBlockRef block) {
  for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
    next = LLVMGetNextInstruction(i);
    LLVMValueRef called = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
    unsigned id = called && LLVMIsAFunction(called) ? LLVMGetIntrinsicID(called) : 0;
    if (!id || (id != r->minnum && id != r->maxnum)) continue;
    LLVMPositionBuilderBefore(r->builder, i);
    LLVMValueRef value = by_range(r, i, id == r->maxnum);
    if (!value) continue;
    LLVMReplaceAllUsesWith(i, value);
    LLVMInstructionEraseFromParent(i);
  }
}

void jit_use_range(LLVMModuleRef module, const struct jit_target *target) {
  assert(module && target);
  if (!x86_has(target->x86, X86_AVX512DQ) || !x86_has(target->x86, X86_AVX512VL)) return;
  LLVMContextRef context = LLVMGetModuleContext(module);
  struct range r = {context,
                    module,
                    LLVMCreateBuilderInContext(context),
                    128,
                    target->vector_bits < 512 ? 256 : 512,
                    LLVMLookupIntrinsicID("llvm.minnum", 11),
                    LLVMLookupIntrinsicID("llvm.maxnum", 11)};
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) replace_in(&r, b);
  LLVMDisposeBuilder(r.builder);
}
