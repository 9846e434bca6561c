/* Parts of bytes in vectors of words of 32 bits. Bytes four apart, one a lane, are words from the first of each four
 * on, shifted: elements that lie so are loaded once for four of them. A part of at most four bits becomes a float by a
 * permutation of the sixteen that there are, which asks for a lane's lowest bits alone: they need no mask, and the
 * float no conversion. */
#include "emit.h"
#include "jit/llvm/machine.h"

#include <string.h>

enum { WORD = 4, PART_BITS = 4, TABLE = 1 << PART_BITS, BYTE_BITS = 8 };

static tir_expr without_broadcast(const struct emit *e, tir_expr x) {
  return tir_at(e->ir, x)->kind == TIR_BROADCAST ? tir_at(e->ir, x)->a : x;
}

/* The operands of a call of two of this name, of which the second is a number that all lanes have; NULL: it is none. */
static const tir_expr *operands_of(const struct emit *e, tir_expr x, const char *name, int64_t *number) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->kind != TIR_CALL || n->count != 2 || strcmp(tir_text(e->ir, n->ref), name) != 0) return NULL;
  const tir_expr *operands = tir_operands(e->ir, n->operands);
  tir_expr second = without_broadcast(e, operands[1]);
  if (tir_at(e->ir, second)->kind == TIR_CAST) second = tir_at(e->ir, second)->a;
  if (!tir_is_int(e->ir, second)) return NULL;
  *number = tir_at(e->ir, second)->imm;
  return operands;
}

/* Bytes four apart that are widened to 32 bits. */
struct bytes {
  tir_expr load;
  int number; /* of each in its word */
};

/* Whether an expression is such bytes, in words that lie in their buffer as a whole. */
static bool read_bytes(const struct emit *e, tir_expr x, struct bytes *out) {
  const struct tir_expr_node *n = tir_at(e->ir, x), *load = tir_at(e->ir, n->a);
  if (n->kind != TIR_CAST || tir_type_with_lanes(n->type, 1) != TIR_T_I32) return false;
  if (load->kind != TIR_LOAD || load->a || load->count != 1) return false;
  if (tir_type_with_lanes(load->type, 1) != TIR_TYPE(TIR_UINT, BYTE_BITS, 1)) return false;
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, load->ref);
  const struct tir_expr_node *index = tir_at(e->ir, tir_operands(e->ir, load->operands)[0]);
  tir_expr size = b->rank == 1 ? e->ir->operands.at[b->shape] : TIR_NONE, rest;
  bool apart = index->kind == TIR_RAMP && tir_is_const(e->ir, index->b, WORD);
  if (!apart || !size || !tir_is_int(e->ir, size) || b->type != TIR_TYPE(TIR_UINT, BYTE_BITS, 1)) return false;
  int64_t number = emit_take_constant(e, index->a, &rest) & (WORD - 1), lanes = tir_type_lanes(load->type);
  *out = (struct bytes){n->a, (int)number};
  const struct tir_expr_node *first = tir_at(e->ir, index->a);
  return first->lo >= number && first->hi - number <= tir_at(e->ir, size)->imm - WORD * lanes;
}

/* Words whose lowest four bits are those of an expression: nothing is said of the others; NULL: it has no words. */
static LLVMValueRef words_of(struct emit *e, tir_expr x) {
  int64_t by = 0;
  struct bytes bytes;
  const tir_expr *operands = operands_of(e, x, "shift_right", &by);
  if (by < 0 || by > BYTE_BITS - PART_BITS || !read_bytes(e, operands ? operands[0] : x, &bytes)) return NULL;
  unsigned shift = (unsigned)(BYTE_BITS * bytes.number + by);
  LLVMValueRef words = emit_load_words(e, bytes.load, bytes.number);
  LLVMValueRef all = emit_splat(e, LLVMConstInt(LLVMInt32TypeInContext(e->context), shift, false), TABLE);
  return LLVMBuildLShr(e->builder, words, all, "");
}

LLVMValueRef emit_part(struct emit *e, const struct tir_expr_node *cast) {
  int64_t mask = 0;
  int lanes = tir_type_lanes(cast->type);
  if (lanes != TABLE || jit_table_lanes(e->target) < TABLE || tir_type_with_lanes(cast->type, 1) != TIR_T_F32)
    return NULL;
  if (tir_type_with_lanes(tir_type_of(e->ir, cast->a), 1) != TIR_T_I32) return NULL;
  const tir_expr *operands = operands_of(e, cast->a, "bitwise_and", &mask);
  LLVMValueRef words = operands && mask > 0 && mask < TABLE ? words_of(e, operands[0]) : NULL, floats[TABLE];
  if (!words) return NULL;
  for (int i = 0; i < TABLE; i++) floats[i] = LLVMConstReal(LLVMFloatTypeInContext(e->context), (double)(i & mask));
  return emit_permuted(e, LLVMConstVector(floats, TABLE), words);
}
