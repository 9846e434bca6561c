/* What AMX's instructions do, and what they refuse. */
#include "unit.h"

#include <immintrin.h>
#include <string.h>

bool amx_is_possible(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); /* CPUs with both have F16C */
}

/* ---- The configuration: a palette, a first row, bytes and rows of each tile ---- */

enum { CONFIGURATION = 64, START_ROW = 1, RESERVED = 2, ROW_BYTES_AT = 16, ROWS_AT = 48, NAMES = 16 };

/* Every general protection fault of LDTILECFG. */
static const char *why_refused(const uint8_t *from) {
  if (from[0] > 1) return "#GP: no palette has this number";
  for (int i = RESERVED; from[0] && i < ROW_BYTES_AT; i++)
    if (from[i]) return "#GP: bytes 2 to 15 of the configuration must be 0";
  for (int t = 0; from[0] && t < NAMES; t++) {
    int bytes = from[ROW_BYTES_AT + 2 * t] | from[ROW_BYTES_AT + 2 * t + 1] << 8, rows = from[ROWS_AT + t];
    if (t >= AMX_TILES && (bytes || rows)) return "#GP: there are eight tiles";
    if (bytes > AMX_ROW_BYTES) return "#GP: a row has at most 64 bytes";
    if (rows > AMX_ROWS) return "#GP: a tile has at most 16 rows";
    if (!bytes != !rows) return "#GP: a tile has rows and no bytes, or bytes and no rows";
  }
  return NULL;
}

static const char *configure(struct amx_unit *unit, const uint8_t *from) {
  uint8_t copy[CONFIGURATION];
  memcpy(copy, from, sizeof copy);
  const char *why = why_refused(copy);
  if (why) return why;
  memset(unit, 0, sizeof *unit);
  if (!copy[0]) return NULL;
  unit->configured = true, unit->palette = copy[0], unit->start_row = copy[START_ROW];
  for (int t = 0; t < AMX_TILES; t++) {
    unit->row_bytes[t] = (uint16_t)(copy[ROW_BYTES_AT + 2 * t] | copy[ROW_BYTES_AT + 2 * t + 1] << 8);
    unit->rows[t] = copy[ROWS_AT + t];
  }
  return NULL;
}

static void write_configuration(const struct amx_unit *unit, uint8_t *to) {
  memset(to, 0, CONFIGURATION);
  if (!unit->configured) return;
  to[0] = unit->palette, to[START_ROW] = unit->start_row;
  memcpy(to + ROW_BYTES_AT, unit->row_bytes, sizeof unit->row_bytes);
  memcpy(to + ROWS_AT, unit->rows, sizeof unit->rows);
}

/* ---- Tiles in memory ---- */

static const char *move(struct amx_unit *unit, const struct amx_instruction *what, uint8_t *at, int64_t stride) {
  int t = what->tile, bytes = unit->row_bytes[t], rows = unit->rows[t], from = unit->start_row;
  if (!rows) return "#UD: the tile has no rows";
  if (from >= rows) return "#UD: the first row is behind the tile";
  bool loads = what->operation != AMX_TILESTORED;
  uint8_t copy[AMX_ROWS][AMX_ROW_BYTES] = {{0}}; /* a page that is not there ends it: the tile is as it was */
  for (int r = 0; loads && r < from; r++) memcpy(copy[r], unit->tile[t][r], AMX_ROW_BYTES);
  for (int r = from; r < rows; r++)
    if (loads)
      memcpy(copy[r], at + r * stride, (size_t)bytes);
    else
      memcpy(at + r * stride, unit->tile[t][r], (size_t)bytes);
  if (loads) memcpy(unit->tile[t], copy, sizeof copy);
  unit->start_row = 0;
  return NULL;
}

/* ---- Products ---- */

enum { LANES = AMX_ROW_BYTES / 4, DEEPEST = AMX_ROWS };

static const char *why_no_product(const struct amx_unit *unit, const struct amx_instruction *what) {
  int c = what->tile, a = what->left, b = what->right;
  if (c == a || a == b || c == b) return "#UD: two operands are the same tile";
  if (unit->start_row) return "#UD: the first row must be 0";
  if (!unit->rows[c] || !unit->rows[a] || !unit->rows[b]) return "#UD: a tile has no rows";
  if (unit->row_bytes[c] % 4 || unit->row_bytes[a] % 4 || unit->row_bytes[b] % 4)
    return "#UD: rows must be multiples of 4 bytes";
  if (unit->rows[c] != unit->rows[a]) return "#UD: the result has another number of rows than what is multiplied";
  if (unit->row_bytes[c] != unit->row_bytes[b])
    return "#UD: the result's rows are of another length than the right one's";
  if (unit->row_bytes[a] / 4 != unit->rows[b]) return "#UD: the left one's rows do not fit the right one's number";
  return NULL;
}

/* A row of sums of four products of bytes. */
__attribute__((target("avx2"))) static void add_bytes(uint32_t sums[LANES], const int32_t *left,
                                                      int32_t (*right)[4][LANES], int deep) {
  for (int k = 0; k < deep; k++)
    for (int i = 0; i < 4; i++)
      for (int n = 0; n < LANES; n++) sums[n] += (uint32_t)(left[4 * k + i] * right[k][i][n]);
}

static int32_t widened(uint8_t byte, bool is_signed) { return is_signed ? (int8_t)byte : byte; }

static void multiply_bytes(struct amx_unit *unit, const struct amx_instruction *what, bool left_signed,
                           bool right_signed) {
  int c = what->tile, deep = unit->rows[what->right];
  int32_t left[4 * DEEPEST], right[DEEPEST][4][LANES];
  for (int k = 0; k < deep; k++)
    for (int i = 0; i < 4; i++)
      for (int n = 0; n < LANES; n++) right[k][i][n] = widened(unit->tile[what->right][k][4 * n + i], right_signed);
  for (int m = 0; m < unit->rows[c]; m++) {
    uint32_t sums[LANES];
    memcpy(sums, unit->tile[c][m], sizeof sums);
    for (int k = 0; k < 4 * deep; k++) left[k] = widened(unit->tile[what->left][m][k], left_signed);
    add_bytes(sums, left, right, deep);
    memcpy(unit->tile[c][m], sums, unit->row_bytes[c]);
  }
}

/* A row of sums of pairs: those of even places and of odd ones apart, each by fused products in order, the two added,
 * then the result. */
__attribute__((target("avx2,fma"), noinline)) static void add_pairs(float sums[LANES], const float *left,
                                                                    float (*right)[2][LANES], int deep) {
  float even[LANES] = {0}, odd[LANES] = {0};
  for (int k = 0; k < deep; k++)
    for (int n = 0; n < LANES; n++) {
      even[n] = __builtin_fmaf(left[2 * k], right[k][0][n], even[n]);
      odd[n] = __builtin_fmaf(left[2 * k + 1], right[k][1][n], odd[n]);
    }
  for (int n = 0; n < LANES; n++) sums[n] += even[n] + odd[n];
}

/* Subnormal numbers of float16 are normal ones of float32, whatever MXCSR says. */
__attribute__((target("f16c"))) static float float_of_half(uint16_t bits) { return _cvtsh_ss(bits); }

static float float_of(const uint8_t *at, bool bfloat) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  if (!bfloat) return float_of_half(bits);
  float value;
  memcpy(&value, &(uint32_t){(uint32_t)bits << 16}, sizeof value);
  return value;
}

/* Rounded to nearest even; subnormal results are 0, and so are subnormal operands of float32 and bfloat16; no flag is
 * raised. */
static void multiply_pairs(struct amx_unit *unit, const struct amx_instruction *what, bool bfloat) {
  enum { ALL_MASKED = 0x1f80, FLUSH = 0x8000, DENORMALS_ARE_ZERO = 0x40 };
  int c = what->tile, deep = unit->rows[what->right];
  float left[2 * DEEPEST], right[DEEPEST][2][LANES];
  unsigned kept = _mm_getcsr();
  _mm_setcsr(ALL_MASKED | FLUSH | DENORMALS_ARE_ZERO);
  for (int k = 0; k < deep; k++)
    for (int n = 0; n < 2 * LANES; n++) right[k][n % 2][n / 2] = float_of(unit->tile[what->right][k] + 2 * n, bfloat);
  for (int m = 0; m < unit->rows[c]; m++) {
    float sums[LANES];
    memcpy(sums, unit->tile[c][m], sizeof sums);
    for (int k = 0; k < 2 * deep; k++) left[k] = float_of(unit->tile[what->left][m] + 2 * k, bfloat);
    add_pairs(sums, left, right, deep);
    memcpy(unit->tile[c][m], sums, unit->row_bytes[c]);
  }
  _mm_setcsr(kept);
}

static const char *multiply(struct amx_unit *unit, const struct amx_instruction *what) {
  const char *why = why_no_product(unit, what);
  if (why) return why;
  enum amx_operation o = what->operation;
  if (o == AMX_TDPBF16PS || o == AMX_TDPFP16PS)
    multiply_pairs(unit, what, o == AMX_TDPBF16PS);
  else
    multiply_bytes(unit, what, o == AMX_TDPBSSD || o == AMX_TDPBSUD, o == AMX_TDPBSSD || o == AMX_TDPBUSD);
  /* What lies behind the last row and the last column was 0, and is. */
  return NULL;
}

const char *amx_perform(struct amx_unit *unit, const struct amx_instruction *what, uint8_t *at, int64_t stride) {
  if (what->wrong) return what->wrong;
  switch (what->operation) {
  case AMX_LDTILECFG: return configure(unit, at);
  case AMX_STTILECFG: return write_configuration(unit, at), NULL;
  case AMX_TILERELEASE: return memset(unit, 0, sizeof *unit), NULL;
  default: break;
  }
  if (!unit->configured) return "#UD: no tiles are configured";
  switch (what->operation) {
  case AMX_TILEZERO:
    if (!unit->rows[what->tile]) return "#UD: the tile has no rows";
    memset(unit->tile[what->tile], 0, sizeof unit->tile[what->tile]);
    unit->start_row = 0;
    return NULL;
  case AMX_TILELOADD:
  case AMX_TILELOADDT1:
  case AMX_TILESTORED: return move(unit, what, at, stride);
  default: return multiply(unit, what);
  }
}
