/* Dot products of lanes (tir/lower/vector/dots.c), by the target's instructions. */
#include "emit.h"
#include "jit/llvm/machine.h"
#include "jit/llvm/x86.h"

#include <string.h>

/* An operand of dot_lanes as LLVM's intrinsic takes it: those of one lane are repeated. */
static LLVMValueRef dot_operand(struct emit *e, tir_expr operand, int lanes, LLVMTypeRef as) {
  LLVMValueRef value = emit_expr(e, operand);
  tir_type type = tir_type_of(e->ir, operand);
  if (tir_type_bits(type) * tir_type_lanes(type) == 32 && lanes > 1) {
    LLVMValueRef whole = LLVMBuildBitCast(e->builder, value, LLVMInt32TypeInContext(e->context), "");
    value = emit_splat(e, whole, lanes);
  }
  return LLVMBuildBitCast(e->builder, value, as, "");
}

/* By the kind and the width of vectors: 128 bits, 256, 512. NULL: there is none. */
static const char *const x86_dots[TIR_DOTS][3] = {
    [TIR_DOT_BYTES] = {"llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpbusd.256", "llvm.x86.avx512.vpdpbusd.512"},
    [TIR_DOT_SIGNED] = {"llvm.x86.avx2.vpdpbssd.128", "llvm.x86.avx2.vpdpbssd.256", NULL},
    [TIR_DOT_UNSIGNED] = {"llvm.x86.avx2.vpdpbuud.128", "llvm.x86.avx2.vpdpbuud.256", NULL},
    [TIR_DOT_BFLOATS] = {"llvm.x86.avx512bf16.dpbf16ps.128", "llvm.x86.avx512bf16.dpbf16ps.256",
                         "llvm.x86.avx512bf16.dpbf16ps.512"}};
static const char *const arm_dots[TIR_DOTS] = {[TIR_DOT_BYTES] = "llvm.aarch64.neon.usdot",
                                               [TIR_DOT_SIGNED] = "llvm.aarch64.neon.sdot",
                                               [TIR_DOT_UNSIGNED] = "llvm.aarch64.neon.udot",
                                               [TIR_DOT_BFLOATS] = "llvm.aarch64.neon.bfdot"};

/* ARM's take what they multiply as such, and are named for both types. */
static LLVMValueRef emit_arm_dot(struct emit *e, const char *name, LLVMValueRef *args) {
  LLVMTypeRef types[] = {LLVMTypeOf(args[0]), LLVMTypeOf(args[1])};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID(name, strlen(name)), types, 2);
  return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, 3, "");
}

/* Every second byte of a vector, from the first or the second on, widened to 16 bits. */
static LLVMValueRef widen_bytes(struct emit *e, LLVMValueRef v, unsigned lanes, bool is_signed, bool second) {
  LLVMTypeRef i16 = LLVMInt16TypeInContext(e->context);
  LLVMValueRef pairs = LLVMBuildBitCast(e->builder, v, LLVMVectorType(i16, 2 * lanes), "");
  LLVMValueRef eight = emit_splat(e, LLVMConstInt(i16, 8, false), 2 * lanes);
  if (!second) pairs = LLVMBuildShl(e->builder, pairs, eight, "");
  return is_signed ? LLVMBuildAShr(e->builder, pairs, eight, "") : LLVMBuildLShr(e->builder, pairs, eight, "");
}

/* Whether each element is at most 127: two products by int8, added up, then fit in 16 bits. */
static bool has_seven_bits(const struct tir *ir, tir_expr operand) {
  const struct tir_expr_node *n = tir_at(ir, operand);
  if (n->kind != TIR_CALL || n->count != 2 || strcmp(tir_text(ir, n->ref), "bitwise_and")) return false;
  const struct tir_expr_node *by = tir_at(ir, tir_operands(ir, n->operands)[1]);
  if (by->kind == TIR_BROADCAST) by = tir_at(ir, by->a);
  return by->kind == TIR_INT_IMM && by->imm >= 0 && by->imm <= 127;
}

/* By the width of vectors: 128 bits, 256, 512. */
static const char *const pair_products[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                            "llvm.x86.avx512.pmaddw.d.512"};

/* Products of bytes by products of pairs of 16 bits (pmaddwd): of the even bytes and of the odd ones. Those of seven
 * bits by int8 are added up in 16 bits first (pmaddubsw), which never saturates then. */
static LLVMValueRef emit_dot_by_pairs(struct emit *e, const tir_expr *operands, LLVMValueRef *args, int width) {
  static const char *const bytes[] = {"llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.avx2.pmadd.ub.sw",
                                      "llvm.x86.avx512.pmaddubs.w.512"};
  unsigned lanes = 4u << width;
  bool is_signed[2];
  for (int i = 0; i < 2; i++) is_signed[i] = tir_type_code(tir_type_of(e->ir, operands[i + 1])) == TIR_INT;
  LLVMTypeRef i16 = LLVMInt16TypeInContext(e->context), i8 = LLVMInt8TypeInContext(e->context);
  if (!is_signed[0] && is_signed[1] && x86_has(e->target->x86, X86_SSSE3) && has_seven_bits(e->ir, operands[1])) {
    LLVMValueRef in[2];
    for (int i = 0; i < 2; i++) in[i] = LLVMBuildBitCast(e->builder, args[i + 1], LLVMVectorType(i8, 4 * lanes), "");
    LLVMValueRef sums[] = {emit_machine_intrinsic(e, bytes[width], in, 2),
                           emit_splat(e, LLVMConstInt(i16, 1, false), 2 * lanes)};
    return LLVMBuildAdd(e->builder, args[0], emit_machine_intrinsic(e, pair_products[width], sums, 2), "");
  }
  LLVMValueRef sum = args[0];
  for (int second = 0; second < 2; second++) {
    LLVMValueRef in[2];
    for (int i = 0; i < 2; i++) in[i] = widen_bytes(e, args[i + 1], lanes, is_signed[i], second);
    sum = LLVMBuildAdd(e->builder, sum, emit_machine_intrinsic(e, pair_products[width], in, 2), "");
  }
  return sum;
}

/* An operand of two integers a lane as int16, which those of all lanes are. */
static LLVMValueRef emit_words(struct emit *e, tir_expr operand, unsigned lanes) {
  tir_type type = tir_type_of(e->ir, operand);
  unsigned own = (unsigned)tir_type_lanes(type);
  LLVMTypeRef words = LLVMVectorType(LLVMInt16TypeInContext(e->context), own);
  LLVMValueRef value = emit_expr(e, operand);
  assert(own == 2 || own == 2 * lanes);
  if (tir_type_bits(type) == 8) {
    bool is_signed = tir_type_code(type) == TIR_INT;
    value = is_signed ? LLVMBuildSExt(e->builder, value, words, "") : LLVMBuildZExt(e->builder, value, words, "");
  }
  if (own == 2 * lanes) return value;
  LLVMTypeRef one = LLVMInt32TypeInContext(e->context);
  value = emit_splat(e, LLVMBuildBitCast(e->builder, value, one, ""), (int)lanes);
  return LLVMBuildBitCast(e->builder, value, LLVMVectorType(LLVMInt16TypeInContext(e->context), 2 * lanes), "");
}

/* Products of pairs of integers that fit in 16 bits. */
static LLVMValueRef emit_pairs(struct emit *e, const tir_expr *operands, unsigned lanes, int width) {
  if (!jit_dots_by_pairs(e->target)) return emit_refusal(e, "the target has no products of pairs for T.dot_lanes");
  LLVMValueRef sum = emit_expr(e, operands[0]);
  LLVMValueRef in[] = {emit_words(e, operands[1], lanes), emit_words(e, operands[2], lanes)};
  return LLVMBuildAdd(e->builder, sum, emit_machine_intrinsic(e, pair_products[width], in, 2), "");
}

LLVMValueRef emit_dot(struct emit *e, const struct tir_expr_node *call) {
  const tir_expr *operands = tir_operands(e->ir, call->operands);
  int lanes = tir_type_lanes(call->type), width = lanes == 16 ? 2 : lanes == 8 ? 1 : 0, bits = 32 * lanes;
  int products = tir_dot_lanes_width(e->ir, call);
  if (!products || (bits != 128 && bits != 256 && bits != 512) || bits > e->target->vector_bits)
    return emit_refusal(e, "T.dot_lanes of %d lanes, or of such operands, is not known", lanes);
  enum tir_dot kind = tir_dot_of(tir_type_of(e->ir, operands[1]), tir_type_of(e->ir, operands[2]));
  if (products == 2 && kind != TIR_DOT_BFLOATS) return emit_pairs(e, operands, (unsigned)lanes, width);
  bool x86 = jit_target_is_x86(e->target), real = kind == TIR_DOT_BFLOATS;
  const char *name = x86 ? x86_dots[kind][width] : arm_dots[kind];
  bool by_pairs = !real && jit_dots_by_pairs(e->target);
  if (!(e->target->dots >> kind & 1) || (!name && !by_pairs))
    return emit_refusal(e, "the target has no dot products for T.dot_lanes of such operands");
  LLVMTypeRef bytes = LLVMVectorType(LLVMInt8TypeInContext(e->context), 4 * (unsigned)lanes);
  LLVMTypeRef pairs = LLVMVectorType(LLVMBFloatTypeInContext(e->context), 2 * (unsigned)lanes);
  LLVMTypeRef as = real ? pairs : x86 ? emit_type(e, call->type) : bytes;
  LLVMValueRef args[] = {emit_expr(e, operands[0]), dot_operand(e, operands[1], lanes, as),
                         dot_operand(e, operands[2], lanes, as)};
  if (by_pairs) return emit_dot_by_pairs(e, operands, args, width);
  return x86 ? emit_machine_intrinsic(e, name, args, 3) : emit_arm_dot(e, name, args);
}

/* Each word shifted by a byte, and the element its highest one: of the word and the element one operation. */
LLVMValueRef emit_slide(struct emit *e, const struct tir_expr_node *call) {
  if (!tir_is_slide(e->ir, call)) return emit_refusal(e, "T.slide_lanes of such operands is not known");
  const tir_expr *operands = tir_operands(e->ir, call->operands);
  int lanes = tir_type_lanes(tir_type_of(e->ir, operands[1]));
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context), words = LLVMVectorType(i32, (unsigned)lanes);
  LLVMValueRef word = LLVMBuildBitCast(e->builder, emit_expr(e, operands[0]), words, "");
  LLVMValueRef element = LLVMBuildZExt(e->builder, emit_expr(e, operands[1]), words, "");
  LLVMValueRef args[] = {element, word, emit_splat(e, LLVMConstInt(i32, 24, false), lanes)};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID("llvm.fshl", 9), &words, 1);
  LLVMValueRef made = LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, 3, "");
  return LLVMBuildBitCast(e->builder, made, emit_type(e, call->type), "");
}
