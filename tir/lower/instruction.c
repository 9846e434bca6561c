/* Instructions: a statement under `T.attr(0, "instruction", T.NAME(addresses…))` computes what the machine's
 * instruction NAME does on the memory at these addresses. A generator of code emits it in the statement's place.
 *
 * The addresses are an operand's first element, then its neighbours, one a dimension, outermost first; and so on for
 * each operand. An instruction knows how far apart its neighbours lie; or it takes the distance as a stride. Behind the
 * addresses of tiles, which have 16 rows, may stand another number of rows of C and A.
 * "offer" comes first: instructions that the target lacks go, and the statement alone stands.
 * "instruction" comes last. Requires: buffers of rank 1. Gives: instructions only where the distances are those they
 * need. Both keep what is computed. */
#include "lower.h"

#include <string.h>

enum { BASE = 0, ANY = -1, WORD = -2, MOST_ADDRESSES = 12 };

/* Elements from the operand's first to each address; ANY: a stride; WORD: as many as fill 32 bits. */
static const struct {
  const char *name;
  uint32_t count;
  int8_t distance[MOST_ADDRESSES];
} known[TIR_INSTRUCTIONS] = {
    [TIR_VPDPBUSD] = {"vpdpbusd", 7, {BASE, 1, BASE, 1, BASE, 4, 1}}, /* C[16], A[4], B[16, 4] */
#define BYTE_TILES(name)                                                                                               \
  {                                                                                                                    \
    name, 10, { BASE, ANY, 1, BASE, ANY, 1, BASE, ANY, 4, 1 }                                                          \
  } /* C[16, 16], A[16, 64], B[16, 16, 4] */
    [TIR_TDPBSSD] = BYTE_TILES("tdpbssd"),
    [TIR_TDPBSUD] = BYTE_TILES("tdpbsud"),
    [TIR_TDPBUSD] = BYTE_TILES("tdpbusd"),
    [TIR_TDPBUUD] = BYTE_TILES("tdpbuud"),
#define HALF_TILES(name)                                                                                               \
  {                                                                                                                    \
    name, 10, { BASE, ANY, 1, BASE, ANY, 1, BASE, ANY, 2, 1 }                                                          \
  } /* C[16, 16], A[16, 32], B[16, 16, 2] */
    [TIR_TDPBF16PS] = HALF_TILES("tdpbf16ps"),
    [TIR_TDPFP16PS] = HALF_TILES("tdpfp16ps"),
    [TIR_TILEZERO] = {"tilezero", 3, {BASE, ANY, 1}}, /* C[16, 16] */
#define TRANSPOSITION(name)                                                                                            \
  {                                                                                                                    \
    name, 6, { BASE, ANY, 1, BASE, ANY, 1 }                                                                            \
  } /* B[n, n], A[n, n]: B[i, j] = A[j, i] */
    [TIR_TRANSPOSE_4X32] = TRANSPOSITION("transpose_4x32"),
    [TIR_TRANSPOSE_8X32] = TRANSPOSITION("transpose_8x32"),
    [TIR_TRANSPOSE_16X32] = {"transpose_16x32", 6, {BASE, ANY, WORD, BASE, ANY, WORD}}, /* or of groups of elements */
    [TIR_TRANSPOSE_4X64] = TRANSPOSITION("transpose_4x64"),
    [TIR_TRANSPOSE_8X64] = TRANSPOSITION("transpose_8x64"),
    [TIR_INTERLEAVE_4X8] = {"interleave_4x8",
                            6,
                            {BASE, 4, 1, BASE, ANY, 1}}, /* B[16, 4], A[4, 16]: B[j, p] = A[p, j] */
    [TIR_INTERLEAVE_2X8] = {"interleave_2x8", 6, {BASE, 2, 1, BASE, ANY, 1}},
    [TIR_INTERLEAVE_2X16] = {"interleave_2x16", 6, {BASE, 2, 1, BASE, ANY, 1}},
    [TIR_INTERLEAVE_4X8_BY_64] = {"interleave_4x8_by_64", 6, {BASE, 4, 1, BASE, ANY, 1}},
    [TIR_INTERLEAVE_2X16_BY_32] = {"interleave_2x16_by_32", 6, {BASE, 2, 1, BASE, ANY, 1}},
    [TIR_INTERLEAVE_2X32] = {"interleave_2x32", 6, {BASE, 2, 1, BASE, ANY, 1}},
    [TIR_INTERLEAVE_3X32] = {"interleave_3x32", 6, {BASE, 3, 1, BASE, ANY, 1}},
    [TIR_INTERLEAVE_4X32] = {"interleave_4x32", 6, {BASE, 4, 1, BASE, ANY, 1}},
};

const char *tir_instruction_name(enum tir_instruction which) {
  assert(which < TIR_INSTRUCTIONS);
  return known[which].name;
}

bool tir_is_tile_product(enum tir_instruction which) {
  return which == TIR_TDPBSSD || which == TIR_TDPBSUD || which == TIR_TDPBUSD || which == TIR_TDPBUUD ||
         which == TIR_TDPBF16PS || which == TIR_TDPFP16PS;
}

struct tir_transposition tir_transposition_of(enum tir_instruction which) {
  static const struct tir_transposition sides[TIR_INSTRUCTIONS] = {[TIR_TRANSPOSE_4X32] = {4, 32},
                                                                   [TIR_TRANSPOSE_8X32] = {8, 32},
                                                                   [TIR_TRANSPOSE_16X32] = {16, 32},
                                                                   [TIR_TRANSPOSE_4X64] = {4, 64},
                                                                   [TIR_TRANSPOSE_8X64] = {8, 64}};
  return which < TIR_INSTRUCTIONS ? sides[which] : (struct tir_transposition){0, 0};
}

/* The element whose address an argument is, or NULL. */
static const struct tir_expr_node *element_of(const struct tir *ir, tir_expr address) {
  const struct tir_expr_node *n = tir_at(ir, address);
  if (n->kind != TIR_CALL || n->count != 1 || strcmp(tir_text(ir, n->ref), "address_of") != 0) return NULL;
  n = tir_at(ir, tir_operands(ir, n->operands)[0]);
  return n->kind == TIR_LOAD && n->count == 1 && !n->a && tir_type_lanes(n->type) == 1 ? n : NULL;
}

static bool lies(struct tir *ir, const tir_expr *args, const int8_t *distance, uint32_t count) {
  struct tir_expr_node base = {0};
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_expr_node *n = element_of(ir, args[i]);
    if (!n) return false;
    if (distance[i] == BASE) {
      base = *n;
      continue;
    }
    if (n->ref != base.ref) return false;
    tir_expr from = ir->operands.at[base.operands], to = ir->operands.at[n->operands];
    int64_t by = distance[i] == WORD ? 32 / tir_type_bits(base.type) : distance[i];
    if (distance[i] != ANY && !tir_is_const(ir, tir_sub(ir, to, from), by)) return false;
  }
  return true;
}

/* Whether a call has an instruction's addresses, and of tiles may have how many rows they have. */
static bool has_arguments(const struct tir *ir, const struct tir_expr_node *call, enum tir_instruction which) {
  if (known[which].count == call->count) return true;
  if (known[which].count + 1 != call->count || !(tir_is_tile_product(which) || which == TIR_TILEZERO)) return false;
  tir_expr rows = tir_operands(ir, call->operands)[call->count - 1];
  return tir_is_int(ir, rows) && tir_at(ir, rows)->imm > 0 && tir_at(ir, rows)->imm <= TIR_TILE_ROWS;
}

enum tir_instruction tir_instruction_of(const struct tir *ir, tir_stmt s) {
  if (!lower_is_attr(ir, s, TIR_INSTRUCTION)) return TIR_INSTRUCTIONS;
  const struct tir_expr_node *call = tir_at(ir, tir_stmt_at(ir, s)->attr.value);
  for (int i = 0; call->kind == TIR_CALL && i < TIR_INSTRUCTIONS; i++)
    if (!strcmp(known[i].name, tir_text(ir, call->ref)) && has_arguments(ir, call, (enum tir_instruction)i))
      return (enum tir_instruction)i;
  return TIR_INSTRUCTIONS;
}

int tir_tile_rows(const struct tir *ir, tir_stmt s) {
  enum tir_instruction which = tir_instruction_of(ir, s);
  if (!tir_is_tile_product(which) && which != TIR_TILEZERO) return 0;
  const struct tir_expr_node *call = tir_at(ir, tir_stmt_at(ir, s)->attr.value);
  if (call->count == known[which].count) return TIR_TILE_ROWS;
  return (int)tir_at(ir, tir_operands(ir, call->operands)[call->count - 1])->imm;
}

static bool is_offered(const struct lowering *low, enum tir_instruction which) {
  return which != TIR_INSTRUCTIONS && low->options && (low->options->instructions & 1u << which);
}

static bool fits(struct tir *ir, tir_stmt s, enum tir_instruction which) {
  tir_expr args[MOST_ADDRESSES];
  struct tir_expr_node call = *tir_at(ir, tir_as(ir, s, TIR_ATTR)->attr.value);
  assert(known[which].count <= MOST_ADDRESSES);
  memcpy(args, tir_operands(ir, call.operands), known[which].count * sizeof *args);
  return lies(ir, args, known[which].distance, known[which].count);
}

static bool keep_instructions(struct lowering *low, bool flat) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!lower_is_attr(ir, s, TIR_INSTRUCTION)) continue;
    enum tir_instruction which = tir_instruction_of(ir, s);
    if (!is_offered(low, which) || (flat && !fits(ir, s, which))) tir_kill_alone(ir, s);
  }
  return true;
}

bool lower_offer(struct lowering *low) { return keep_instructions(low, false); }
bool lower_instruction(struct lowering *low) { return keep_instructions(low, true); }
