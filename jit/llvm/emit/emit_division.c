/* Vectors of float32 over one number, with the quotients that a division gives, bit by bit.
 *
 * A CPU divides registers of 512 bits in 10 to 16 cycles, and multiplies and adds two in each. r = 1 / b is computed
 * once, and then for each vector:
 *
 *   q = a * r,  q = q + (a - b * q) * r,  q = q + (a - b * q) * r,  each difference and sum by a fused multiply-add
 *
 * The second quotient is within one unit in the last place; from such a one, with r rounded to nearest, the third is
 * a / b rounded to nearest. That holds where nothing overflows or vanishes on the way: |a| and |b| from 2^-60 to 2^60.
 * A vector with another number in it is divided.
 * Source: Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM JRD 34, 1990,
 * theorem 8; Brisebarre, Muller & Raina, IEEE TC 53, 2004. */
#include "emit.h"
#include "jit/llvm/machine.h"

#include <assert.h>
#include <math.h>

enum { LANES = 16 };
/* Bits of 2^-60, how many floats there are up to 2^60, and all but the sign. */
static const unsigned LEAST = (127 - 60) << 23, COUNT = 120 << 23, SIZE = 0x7fffffff;

/* Whether a number has a reciprocal without rounding: LLVM multiplies by it. */
static bool is_power_of_two(const struct tir_expr_node *n) {
  int exponent;
  return n->kind == TIR_FLOAT_IMM && fabs(frexp(n->real, &exponent)) == 0.5;
}

bool emit_divides_at_once(const struct emit *e, tir_type type, tir_expr divisor) {
  return type == tir_type_with_lanes(TIR_T_F32, LANES) && !is_power_of_two(tir_at(e->ir, divisor)) &&
         jit_table_lanes(e->target) >= LANES; /* registers of as many floats */
}

/* How many floats a number's size is above the least, as integers, unsigned: those outside are the largest. */
static LLVMValueRef above_least(struct emit *e, LLVMValueRef x, LLVMTypeRef ints, bool vector) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef size = LLVMConstInt(i32, SIZE, false), least = LLVMConstInt(i32, LEAST, false);
  if (vector) size = emit_splat(e, size, LANES), least = emit_splat(e, least, LANES);
  LLVMValueRef bits = LLVMBuildAnd(e->builder, LLVMBuildBitCast(e->builder, x, ints, ""), size, "");
  return LLVMBuildSub(e->builder, bits, least, "");
}

/* Whether a number of the vector is out of bounds, or the divisor. */
static LLVMValueRef is_beyond(struct emit *e, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef w = e->builder;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context), i16 = LLVMInt16TypeInContext(e->context);
  LLVMValueRef count = LLVMConstInt(i32, COUNT, false), none = LLVMConstInt(i32, 0, false);
  LLVMValueRef fits = LLVMBuildICmp(w, LLVMIntULT, above_least(e, b, i32, false), count, "");
  LLVMValueRef most = emit_splat(e, LLVMBuildSelect(w, fits, count, none, ""), LANES);
  LLVMValueRef beyond = LLVMBuildICmp(w, LLVMIntUGE, above_least(e, a, LLVMVectorType(i32, LANES), true), most, "");
  return LLVMBuildICmp(w, LLVMIntNE, LLVMBuildBitCast(w, beyond, i16, ""), LLVMConstInt(i16, 0, false), "");
}

static LLVMValueRef fused(struct emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  return emit_intrinsic(e, "llvm.fma", LLVMTypeOf(a), (LLVMValueRef[]){a, b, c}, 3);
}

static LLVMValueRef by_reciprocal(struct emit *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef r) {
  LLVMValueRef minus = LLVMBuildFNeg(e->builder, b, ""), q = LLVMBuildFMul(e->builder, a, r, "");
  for (int i = 0; i < 2; i++) q = fused(e, fused(e, minus, q, a), r, q);
  return q;
}

LLVMValueRef emit_divide_at_once(struct emit *e, LLVMValueRef a, LLVMValueRef scalar) {
  LLVMBuilderRef w = e->builder;
  LLVMValueRef one = LLVMConstReal(LLVMFloatTypeInContext(e->context), 1);
  LLVMValueRef b = emit_splat(e, scalar, LANES), r = emit_splat(e, LLVMBuildFDiv(w, one, scalar, ""), LANES);
  LLVMBasicBlockRef blocks[2], join = LLVMAppendBasicBlockInContext(e->context, e->function, "divided");
  LLVMValueRef values[2];
  assert(LLVMGetVectorSize(LLVMTypeOf(a)) == LANES);
  for (int i = 0; i < 2; i++) blocks[i] = LLVMAppendBasicBlockInContext(e->context, e->function, i ? "near" : "far");
  LLVMBuildCondBr(w, is_beyond(e, a, scalar), blocks[0], blocks[1]);
  for (int i = 0; i < 2; i++) {
    LLVMPositionBuilderAtEnd(w, blocks[i]);
    values[i] = i ? by_reciprocal(e, a, b, r) : LLVMBuildFDiv(w, a, b, "");
    LLVMBuildBr(w, join);
  }
  LLVMPositionBuilderAtEnd(w, join);
  LLVMValueRef phi = LLVMBuildPhi(w, LLVMTypeOf(a), "");
  LLVMAddIncoming(phi, values, blocks, 2);
  return phi;
}
