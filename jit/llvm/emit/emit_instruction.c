/* Instructions that a statement's attribute names (tir/lower/instruction.c), emitted where the target has them, and
 * dot products of lanes (tir/lower/vector/dots.c); AMX's are in emit_tiles.c. */
#include "emit.h"
#include "jit/llvm/machine.h"
#include "jit/llvm/x86.h"

#include <string.h>

LLVMValueRef emit_machine_intrinsic(struct emit *e, const char *name, LLVMValueRef *args, unsigned count) {
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID(name, strlen(name)), NULL, 0);
  return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, count, "");
}

LLVMValueRef emit_address_argument(struct emit *e, tir_expr address) {
  return emit_address(e, tir_operands(e->ir, tir_at(e->ir, address)->operands)[0]);
}

LLVMValueRef emit_stride_between(struct emit *e, LLVMValueRef first, LLVMValueRef next) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  return LLVMBuildSub(e->builder, LLVMBuildPtrToInt(e->builder, next, i64, ""),
                      LLVMBuildPtrToInt(e->builder, first, i64, ""), "");
}

/* ---- Dot products of bytes ---- */

static LLVMValueRef load_vector(struct emit *e, LLVMTypeRef element, unsigned lanes, LLVMValueRef at, unsigned align) {
  LLVMValueRef v = LLVMBuildLoad2(e->builder, lanes > 1 ? LLVMVectorType(element, lanes) : element, at, "");
  LLVMSetAlignment(v, align);
  return v;
}

/* C[0:16] += A[0:4] * B[0:16, 0:4], summed over the four. */
static void emit_vpdpbusd(struct emit *e, const tir_expr *args) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef to = emit_address_argument(e, args[0]);
  LLVMValueRef operands[] = {load_vector(e, i32, 16, to, 4),
                             emit_splat(e, load_vector(e, i32, 1, emit_address_argument(e, args[2]), 1), 16),
                             load_vector(e, i32, 16, emit_address_argument(e, args[4]), 1)};
  LLVMValueRef sum = emit_machine_intrinsic(e, "llvm.x86.avx512.vpdpbusd.512", operands, 3);
  LLVMSetAlignment(LLVMBuildStore(e->builder, sum, to), 4);
}

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

/* Products of bytes by products of pairs of 16 bits (pmaddwd): of the even bytes and of the odd ones. Those of seven
 * bits by int8 are added up in 16 bits first (pmaddubsw), which never saturates then. */
static LLVMValueRef emit_dot_by_pairs(struct emit *e, const tir_expr *operands, LLVMValueRef *args, int width) {
  static const char *const words[] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                      "llvm.x86.avx512.pmaddw.d.512"};
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
    return LLVMBuildAdd(e->builder, args[0], emit_machine_intrinsic(e, words[width], sums, 2), "");
  }
  LLVMValueRef sum = args[0];
  for (int second = 0; second < 2; second++) {
    LLVMValueRef in[2];
    for (int i = 0; i < 2; i++) in[i] = widen_bytes(e, args[i + 1], lanes, is_signed[i], second);
    sum = LLVMBuildAdd(e->builder, sum, emit_machine_intrinsic(e, words[width], in, 2), "");
  }
  return sum;
}

LLVMValueRef emit_dot(struct emit *e, const struct tir_expr_node *call) {
  const tir_expr *operands = tir_operands(e->ir, call->operands);
  int lanes = tir_type_lanes(call->type), width = lanes == 16 ? 2 : lanes == 8 ? 1 : 0, bits = 32 * lanes;
  if (!tir_dot_lanes_width(e->ir, call) || (bits != 128 && bits != 256 && bits != 512) || bits > e->target->vector_bits)
    return emit_refusal(e, "T.dot_lanes of %d lanes, or of such operands, is not known", lanes);
  enum tir_dot kind = tir_dot_of(tir_type_of(e->ir, operands[1]), tir_type_of(e->ir, operands[2]));
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

/* ---- Transpositions ---- */

enum { TRANSPOSED_SIDE = 16 };

/* Bit `distance` of a row's number and of a column's change places, of two rows that differ in it: of each two squares
 * of so many elements side by side in both rows, those off the diagonal are exchanged. */
static void exchange(struct emit *e, LLVMValueRef *upper, LLVMValueRef *lower, unsigned side, unsigned distance) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef from_upper[TRANSPOSED_SIDE], from_lower[TRANSPOSED_SIDE];
  for (unsigned lane = 0; lane < side; lane++) {
    bool right = lane & distance;
    from_upper[lane] = LLVMConstInt(i32, right ? side + lane - distance : lane, false);
    from_lower[lane] = LLVMConstInt(i32, right ? side + lane : lane + distance, false);
  }
  LLVMValueRef a = *upper, b = *lower;
  *upper = LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(from_upper, side), "");
  *lower = LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(from_lower, side), "");
}

static LLVMValueRef row_at(struct emit *e, LLVMValueRef at, LLVMValueRef stride, unsigned row) {
  LLVMValueRef bytes = LLVMBuildMul(e->builder, stride, emit_int64(e, row), "");
  return LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), at, &bytes, 1, "");
}

static unsigned element_bytes(struct emit *e, tir_expr address) {
  const struct tir_expr_node *call = tir_at(e->ir, address);
  return (unsigned)tir_type_bits(tir_type_of(e->ir, tir_operands(e->ir, call->operands)[0])) / 8;
}

/* B[i, j] = A[j, i]. Source: Eklundh, "A fast computer method for matrix transposing", 1972. */
static void emit_transposition(struct emit *e, const tir_expr *args, struct tir_transposition t) {
  LLVMTypeRef element = LLVMIntTypeInContext(e->context, (unsigned)t.bits);
  LLVMValueRef rows[TRANSPOSED_SIDE], to = emit_address_argument(e, args[0]), from = emit_address_argument(e, args[3]);
  LLVMValueRef to_stride = emit_stride_between(e, to, emit_address_argument(e, args[1]));
  LLVMValueRef from_stride = emit_stride_between(e, from, emit_address_argument(e, args[4]));
  unsigned side = (unsigned)t.side, align = element_bytes(e, args[0]); /* several may be moved as one */
  assert(side <= TRANSPOSED_SIDE);
  for (unsigned i = 0; i < side; i++) rows[i] = load_vector(e, element, side, row_at(e, from, from_stride, i), align);
  for (unsigned distance = side / 2; distance; distance /= 2)
    for (unsigned i = 0; i < side; i++)
      if (!(i & distance)) exchange(e, &rows[i], &rows[i + distance], side, distance);
  for (unsigned i = 0; i < side; i++)
    LLVMSetAlignment(LLVMBuildStore(e->builder, rows[i], row_at(e, to, to_stride, i)), align);
}

/* ---- Interleaving ---- */

/* B[j, p] = A[p, j], of 16 columns. */
static void emit_interleaving(struct emit *e, const tir_expr *args, unsigned rows, unsigned bits) {
  enum { COLUMNS = 16, MOST_ROWS = 4 };
  LLVMTypeRef element = LLVMIntTypeInContext(e->context, bits), i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef to = emit_address_argument(e, args[0]), from = emit_address_argument(e, args[3]), row[MOST_ROWS];
  LLVMValueRef stride = emit_stride_between(e, from, emit_address_argument(e, args[4])), order[MOST_ROWS * COLUMNS];
  assert(rows == 2 || rows == MOST_ROWS);
  for (unsigned p = 0; p < rows; p++) row[p] = load_vector(e, element, COLUMNS, row_at(e, from, stride, p), bits / 8);
  for (unsigned have = rows, lanes = COLUMNS; have > 1; have /= 2, lanes *= 2) { /* one after the other, by twos */
    for (unsigned i = 0; i < 2 * lanes; i++) order[i] = LLVMConstInt(i32, i, false);
    for (unsigned p = 0; p < have / 2; p++)
      row[p] = LLVMBuildShuffleVector(e->builder, row[2 * p], row[2 * p + 1], LLVMConstVector(order, 2 * lanes), "");
  }
  for (unsigned i = 0; i < rows * COLUMNS; i++) order[i] = LLVMConstInt(i32, i % rows * COLUMNS + i / rows, false);
  LLVMValueRef mask = LLVMConstVector(order, rows * COLUMNS);
  LLVMValueRef made = LLVMBuildShuffleVector(e->builder, row[0], LLVMGetUndef(LLVMTypeOf(row[0])), mask, "");
  LLVMSetAlignment(LLVMBuildStore(e->builder, made, to), bits / 8);
}

/* The elements of the lower or upper halves of two vectors, in turn. */
static LLVMValueRef zip_halves(struct emit *e, LLVMValueRef a, LLVMValueRef b, unsigned lanes, bool upper) {
  enum { MOST_LANES = 64 };
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef order[MOST_LANES];
  assert(lanes <= MOST_LANES);
  for (unsigned i = 0; i < lanes; i++)
    order[i] = LLVMConstInt(i32, i % 2 * lanes + (upper ? lanes / 2 : 0) + i / 2, false);
  return LLVMBuildShuffleVector(e->builder, a, b, LLVMConstVector(order, lanes), "");
}

/* B[j, p] = A[p, j], of as many columns as fill 512 bits: neighbours by twos, then these by twos. */
static void emit_wide_interleaving(struct emit *e, const tir_expr *args, unsigned rows, unsigned bits) {
  enum { VECTOR_BITS = 512, MOST_ROWS = 4 };
  LLVMValueRef to = emit_address_argument(e, args[0]), from = emit_address_argument(e, args[3]), row[MOST_ROWS];
  LLVMValueRef stride = emit_stride_between(e, from, emit_address_argument(e, args[4])), made[MOST_ROWS];
  assert(rows == 2 || rows == MOST_ROWS);
  for (unsigned p = 0; p < rows; p++)
    row[p] = load_vector(e, LLVMIntTypeInContext(e->context, bits), VECTOR_BITS / bits, row_at(e, from, stride, p),
                         bits / 8);
  for (unsigned size = bits, apart = 1; apart < rows; size *= 2, apart *= 2) {
    LLVMTypeRef group = LLVMVectorType(LLVMIntTypeInContext(e->context, size), VECTOR_BITS / size);
    for (unsigned p = 0; p < rows; p++) row[p] = LLVMBuildBitCast(e->builder, row[p], group, "");
    for (unsigned p = 0; p < rows; p++) { /* pairs of rows become two vectors, those of the lower columns first */
      unsigned of = p / 2, first = of / apart * 2 * apart + of % apart;
      made[p] = zip_halves(e, row[first], row[first + apart], VECTOR_BITS / size, p % 2);
    }
    for (unsigned p = 0; p < rows; p++) row[p] = made[p];
  }
  for (unsigned p = 0; p < rows; p++)
    LLVMSetAlignment(LLVMBuildStore(e->builder, row[p], row_at(e, to, emit_int64(e, VECTOR_BITS / 8), p)), bits / 8);
}

/* B[j, p] = A[p, j], of 16 columns of a vector each: each vector of the result takes the lanes of one row after the
 * other. */
static void emit_interleaving_of_vectors(struct emit *e, const tir_expr *args, unsigned rows) {
  enum { COLUMNS = 16, MOST_ROWS = 4, BITS = 32 };
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef to = emit_address_argument(e, args[0]), from = emit_address_argument(e, args[3]), row[MOST_ROWS];
  LLVMValueRef stride = emit_stride_between(e, from, emit_address_argument(e, args[4])), order[COLUMNS];
  LLVMValueRef bytes = emit_int64(e, COLUMNS * BITS / 8);
  assert(rows >= 2 && rows <= MOST_ROWS);
  for (unsigned p = 0; p < rows; p++) row[p] = load_vector(e, i32, COLUMNS, row_at(e, from, stride, p), BITS / 8);
  for (unsigned v = 0; v < rows; v++) {
    LLVMValueRef made = row[0];
    for (unsigned p = 1; p < rows; p++) {
      for (unsigned lane = 0; lane < COLUMNS; lane++) {
        unsigned at = v * COLUMNS + lane, first = p == 1 ? at / rows : lane; /* rows before this one are in place */
        order[lane] = LLVMConstInt(i32, at % rows == p ? COLUMNS + at / rows : first, false);
      }
      made = LLVMBuildShuffleVector(e->builder, made, row[p], LLVMConstVector(order, COLUMNS), "");
    }
    LLVMSetAlignment(LLVMBuildStore(e->builder, made, row_at(e, to, bytes, v)), BITS / 8);
  }
}

static void emit_interleave_2x32(struct emit *e, const tir_expr *args) { emit_interleaving_of_vectors(e, args, 2); }
static void emit_interleave_3x32(struct emit *e, const tir_expr *args) { emit_interleaving_of_vectors(e, args, 3); }
static void emit_interleave_4x32(struct emit *e, const tir_expr *args) { emit_interleaving_of_vectors(e, args, 4); }
static void emit_interleave_4x8(struct emit *e, const tir_expr *args) { emit_interleaving(e, args, 4, 8); }
static void emit_interleave_2x16(struct emit *e, const tir_expr *args) { emit_interleaving(e, args, 2, 16); }
static void emit_interleave_4x8_by_64(struct emit *e, const tir_expr *args) { emit_wide_interleaving(e, args, 4, 8); }
static void emit_interleave_2x16_by_32(struct emit *e, const tir_expr *args) { emit_wide_interleaving(e, args, 2, 16); }

/* ---- All of them ---- */

/* Those of which a row fills a register. */
static unsigned transpositions(const struct jit_target *t) {
  unsigned all = 0;
  for (int i = 0; i < TIR_INSTRUCTIONS; i++) {
    struct tir_transposition of = tir_transposition_of((enum tir_instruction)i);
    if (of.side && of.side * of.bits == t->vector_bits) all |= 1u << i;
  }
  return all;
}

unsigned jit_instructions(const struct jit_target *t) {
  unsigned wide = t->vector_bits >= 512;
  bool bytes = t->dots & TIR_DOTS_OF_BYTES && !jit_dots_by_pairs(t), bfloats = t->dots >> TIR_DOT_BFLOATS & 1;
  unsigned words = 1u << TIR_INTERLEAVE_2X32 | 1u << TIR_INTERLEAVE_3X32 | 1u << TIR_INTERLEAVE_4X32;
  return transpositions(t) | (t->vector_bits >= 256 ? words : 0) |
         (bytes ? 1u << TIR_INTERLEAVE_4X8 | wide << TIR_INTERLEAVE_4X8_BY_64 : 0) |
         (bfloats ? 1u << TIR_INTERLEAVE_2X16 | wide << TIR_INTERLEAVE_2X16_BY_32 : 0) |
         (t->avx512_vnni && t->vector_bits >= 512 ? 1u << TIR_VPDPBUSD : 0) |
         (t->amx_int8 ? 1u << TIR_TDPBSSD | 1u << TIR_TDPBSUD | 1u << TIR_TDPBUSD | 1u << TIR_TDPBUUD : 0) |
         (t->amx_bf16 ? 1u << TIR_TDPBF16PS : 0) | (t->amx_int8 || t->amx_bf16 ? 1u << TIR_TILEZERO : 0);
}

bool emit_instruction(struct emit *e, tir_stmt attr) {
  static void (*const emitters[])(struct emit * e,
                                  const tir_expr *args) = {[TIR_VPDPBUSD] = emit_vpdpbusd,
                                                           [TIR_INTERLEAVE_4X8] = emit_interleave_4x8,
                                                           [TIR_INTERLEAVE_2X16] = emit_interleave_2x16,
                                                           [TIR_INTERLEAVE_4X8_BY_64] = emit_interleave_4x8_by_64,
                                                           [TIR_INTERLEAVE_2X16_BY_32] = emit_interleave_2x16_by_32,
                                                           [TIR_INTERLEAVE_2X32] = emit_interleave_2x32,
                                                           [TIR_INTERLEAVE_3X32] = emit_interleave_3x32,
                                                           [TIR_INTERLEAVE_4X32] = emit_interleave_4x32};
  enum tir_instruction which = tir_instruction_of(e->ir, attr);
  if (which == TIR_INSTRUCTIONS) return false;
  const tir_expr *args = tir_operands(e->ir, tir_at(e->ir, tir_as(e->ir, attr, TIR_ATTR)->attr.value)->operands);
  struct tir_transposition t = tir_transposition_of(which);
  if (tir_is_tile_product(which))
    emit_tile_product(e, args, which, tir_tile_rows(e->ir, attr));
  else if (which == TIR_TILEZERO)
    emit_tile_of_zeros(e, args, tir_tile_rows(e->ir, attr));
  else if (t.side)
    emit_transposition(e, args, t);
  else
    emitters[which](e, args);
  return true;
}
