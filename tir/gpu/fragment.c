/* Fragments: what a warp's threads hold of matrices in their registers, for a GPU's tensor units. */
#include "tir/tir.h"

#include <assert.h>
#include <math.h>
#include <string.h>

bool tir_is_fragment(const struct tir *ir, tir_buffer buffer) {
  assert(tir_is_buffer(ir, buffer));
  enum tir_memory_scope scope = tir_memory_scope_of(ir, buffer);
  return scope >= TIR_SCOPE_WMMA_A && scope <= TIR_SCOPE_WGMMA_ROWS;
}

bool tir_is_mma8_fragment(const struct tir *ir, tir_buffer buffer) {
  enum tir_memory_scope scope = tir_memory_scope_of(ir, buffer);
  return scope >= TIR_SCOPE_MMA8_A && scope <= TIR_SCOPE_MMA8_C;
}

bool tir_is_group_fragment(const struct tir *ir, tir_buffer buffer) {
  enum tir_memory_scope scope = tir_memory_scope_of(ir, buffer);
  return scope >= TIR_SCOPE_WGMMA && scope <= TIR_SCOPE_WGMMA_ROWS;
}

bool tir_is_wgmma_width(int64_t n) {
  return n >= TIR_WGMMA_UNIT && n <= TIR_WGMMA_MOST_COLUMNS && n % TIR_WGMMA_UNIT == 0;
}

/* Source: PTX ISA, "wgmma.mma_async": shapes and types. */
bool tir_wgmma_multiplies(tir_type input, tir_type sum, int64_t n) {
  enum { LEAST = 8, ODD = 24, UNIT = 16 };
  if (input == TIR_TYPE(TIR_INT, 8, 1) || input == TIR_TYPE(TIR_UINT, 8, 1))
    return sum == TIR_T_I32 && tir_is_wgmma_width(n) && (n == LEAST || n == ODD || n % UNIT == 0);
  return sum == TIR_T_F32 && tir_is_wgmma_width(n) && (input == TIR_T_F32 || tir_type_is_short(input));
}

bool tir_wgmma_pairs(tir_type a, tir_type b) {
  bool bytes = tir_type_bits(a) == 8 && tir_type_bits(b) == 8 && !tir_type_is_float(a) && !tir_type_is_float(b);
  return a == b || bytes;
}

bool tir_wgmma_takes_rows(tir_type input) { return tir_type_bits(input) == 16; }

bool tir_wgmma_takes_registers(tir_type input) { return tir_type_is_short(input); }

/* A register of a has four bytes of a row side by side, and the four lanes of a row four such; what these have of
 * accumulators, two neighbours of eight columns and two of the next eight, fills it. Source: PTX ISA, "Register
 * Fragments for wgmma.mma_async.m64nNk32". */
int tir_wgmma_column_of(int bits, int row) {
  enum { PAIR = 2, HELD = 4, GROUPS = 8, SIDE = 16 };
  assert((bits == 8 || bits == 16) && row >= 0);
  if (bits == 16) return row;
  int within = row % SIDE, lane = within / HELD, half = within / PAIR % 2;
  return row - within + half * GROUPS + lane * PAIR + within % PAIR;
}

double tir_wgmma_operand(tir_type input, double x) {
  enum { LEFT_OUT = 13 };
  float single = (float)x;
  uint32_t bits;
  if (input != TIR_T_F32) return x;
  memcpy(&bits, &single, sizeof bits);
  bool none = isnan(single);
  bits = bits >> LEFT_OUT << LEFT_OUT;
  memcpy(&single, &bits, sizeof bits);
  return none ? NAN : single;
}

/* Of b alone, where a lies by rows, or of both. */
bool tir_wgmma_layout_of(const char *text, struct tir_wgmma_layout *out) {
  static const char *const texts[2][2] = {{"row_major", "col_major"}, {"col.row", "col.col"}}; /* by a, by b */
  for (int i = 0; i < 4; i++)
    if (text && !strcmp(text, texts[i / 2][i % 2]))
      return *out = (struct tir_wgmma_layout){.a_by_columns = i / 2, .b_by_columns = i % 2}, true;
  return false;
}

/* Each warp has 16 rows, a lane what it has of the accumulators of mma, eight columns after the other. */
struct tir_mma_place tir_wgmma_place(int thread, int element) {
  assert(thread >= 0 && thread < TIR_GROUP && element >= 0 && element < TIR_WGMMA_MOST_COLUMNS / 2);
  enum { LANES = 4, GROUPS = 8, PAIR = 2, HELD = 4, WARP_ROWS = 16 };
  int lane = thread % TIR_WARP, part = element % HELD;
  return (struct tir_mma_place){thread / TIR_WARP * WARP_ROWS + lane / LANES + part / PAIR * GROUPS,
                                element / HELD * GROUPS + lane % LANES * PAIR + part % PAIR};
}

bool tir_mma_operand_of(const struct tir *ir, tir_buffer buffer, enum tir_mma_operand *out) {
  enum tir_memory_scope scope = tir_memory_scope_of(ir, buffer);
  if (scope < TIR_SCOPE_MMA_A || scope > TIR_SCOPE_MMA_C) return false;
  *out = (enum tir_mma_operand)(scope - TIR_SCOPE_MMA_A);
  return true;
}

int tir_mma_depth(int bits) {
  assert(bits == 8 || bits == 16 || bits == 32);
  return 8 * TIR_MMA_BYTES / bits;
}

/* Eight groups of four lanes: a group holds a row of A or of C, or a column of B; its lanes what follows one upon the
 * other in it, a register each. */
struct tir_mma_place tir_mma_place(enum tir_mma_operand operand, int bits, int lane, int element) {
  assert(lane >= 0 && lane < TIR_WARP && element >= 0);
  enum { LANES = 4, GROUPS = 8, PAIR = 2 };
  int group = lane / LANES, within = lane % LANES;
  if (operand == TIR_MMA_C) {
    assert(element < TIR_MMA_SIDE * TIR_MMA_SIDE / TIR_WARP);
    return (struct tir_mma_place){group + element / PAIR % 2 * GROUPS,
                                  within * PAIR + element % PAIR + element / PAIR / 2 * GROUPS};
  }
  int held = 32 / bits, part = element % held, number = element / held; /* of a register */
  assert(number < 4);
  int k = within * held + part, half = tir_mma_depth(bits) / 2;
  if (operand == TIR_MMA_A) return (struct tir_mma_place){group + number % 2 * GROUPS, k + number / 2 * half};
  return (struct tir_mma_place){k + number % 2 * half, group + number / 2 * GROUPS};
}
