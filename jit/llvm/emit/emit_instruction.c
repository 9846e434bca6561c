/* Instructions that a statement's attribute names (tir/lower/instruction.c), emitted where the target has them;
 * AMX's are in emit_tiles.c, the same of Arm CPUs in emit_sme.c. */
#include "emit.h"
#include "jit/llvm/machine.h"

#include <string.h>

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
static void emit_interleave_2x8(struct emit *e, const tir_expr *args) { emit_interleaving(e, args, 2, 8); }
static void emit_interleave_2x16(struct emit *e, const tir_expr *args) { emit_interleaving(e, args, 2, 16); }
static void emit_interleave_4x8_by_64(struct emit *e, const tir_expr *args) { emit_wide_interleaving(e, args, 4, 8); }
static void emit_interleave_2x16_by_32(struct emit *e, const tir_expr *args) { emit_wide_interleaving(e, args, 2, 16); }

/* ---- All of them ---- */

bool emit_instruction(struct emit *e, tir_stmt attr) {
  static void (*const emitters[])(struct emit * e,
                                  const tir_expr *args) = {[TIR_VPDPBUSD] = emit_vpdpbusd,
                                                           [TIR_INTERLEAVE_4X8] = emit_interleave_4x8,
                                                           [TIR_INTERLEAVE_2X8] = emit_interleave_2x8,
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
  bool arm = !jit_target_is_x86(e->target);
  if (arm && tir_is_tile_product(which))
    emit_sme_product(e, attr, args, which, tir_tile_rows(e->ir, attr));
  else if (arm && which == TIR_TILEZERO)
    emit_sme_zeros(e, attr, args);
  else if (tir_is_tile_product(which))
    emit_tile_product(e, args, which, tir_tile_rows(e->ir, attr));
  else if (which == TIR_TILEZERO)
    emit_tile_of_zeros(e, args, tir_tile_rows(e->ir, attr));
  else if (t.side)
    emit_transposition(e, args, t);
  else
    emitters[which](e, args);
  return true;
}
