/* Warp-group MMA (wgmma): layouts of registers and of shared memory. Its kernels: case/lower/wgmma. */
#include "cuda/banks.h"
#include "unit/script.h"

/* ---- Registers ---- */

static void each_register_once(void **state) {
  (void)state;
  for (int n = 8; n <= TIR_WGMMA_MOST_COLUMNS; n += 8) {
    static uint8_t seen[TIR_WGMMA_ROWS][TIR_WGMMA_MOST_COLUMNS];
    memset(seen, 0, sizeof seen);
    for (int t = 0; t < TIR_GROUP; t++)
      for (int i = 0; i < n / 2; i++) {
        struct tir_mma_place p = tir_wgmma_place(t, i);
        assert_true(p.row >= 0 && p.row < TIR_WGMMA_ROWS && p.column >= 0 && p.column < n);
        assert_int_equal(seen[p.row][p.column]++, 0);
      }
  }
}

/* From the figures of the PTX ISA, "WGMMA .m64nNk16 register fragment layout for accumulator matrix D". */
static void places_are_as_published(void **state) {
  (void)state;
  static const struct {
    int thread, element, row, column;
  } known[] = {{0, 0, 0, 0},    {0, 1, 0, 1},     {1, 0, 0, 2},     {4, 0, 1, 0},     {0, 2, 8, 0},
               {0, 4, 0, 8},    {31, 3, 15, 7},   {32, 0, 16, 0},   {64, 0, 32, 0},   {96, 0, 48, 0},
               {127, 3, 63, 7}, {127, 7, 63, 15}, {5, 126, 9, 250}, {5, 127, 9, 251}, {37, 6, 25, 10}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct tir_mma_place p = tir_wgmma_place(known[i].thread, known[i].element);
    assert_int_equal(p.row, known[i].row);
    assert_int_equal(p.column, known[i].column);
  }
}

/* Of operand a of 8 bits a lane's register holds four columns side by side, sixteen further on the next but one. From
 * the figure of the PTX ISA, "WGMMA .m64nNk32 register fragment layout for matrix A". */
static void columns_meet_what_lanes_hold(void **state) {
  (void)state;
  uint32_t seen = 0;
  for (int row = 0; row < TIR_WGMMA_MOST_DEPTH; row++) {
    int column = tir_wgmma_column_of(8, row), holder = -1;
    for (int t = 0; t < 4; t++)
      for (int e = 0; e < TIR_WGMMA_MOST_DEPTH / 2; e++) {
        struct tir_mma_place p = tir_wgmma_place(t, e);
        if (!p.row && p.column == column) holder = t;
      }
    assert_int_equal(holder, row % 16 / 4);
    assert_int_equal(column / 16, row / 16);
    assert_int_equal(column / 8 % 2 * 2 + column % 2, row % 4);
    assert_int_equal(tir_wgmma_column_of(16, row), row);
    seen |= 1u << column;
  }
  assert_int_equal(seen, UINT32_MAX);
}

/* ---- The canonical layout ---- */

/* Each byte has one place, pieces of 16 bytes stay whole, and eight rows that follow one upon the other meet in no
 * bank. */
static void panels_lose_nothing(void **state) {
  (void)state;
  for (int64_t row = 32; row <= 512; row += 32)
    for (int64_t rows = 8; rows <= 64; rows *= 2) {
      int64_t panel = row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : 32, bytes[8];
      struct tir_swizzle s = {.shift = 7, .mask = (int)(panel / 16 - 1), .panel = panel, .row = row, .rows = rows};
      uint8_t *seen = calloc(1, (size_t)(row * rows));
      for (int64_t b = 0; b < row * rows; b++) {
        int64_t at = swizzled_byte(s, b);
        assert_true(at >= 0 && at < row * rows);
        assert_int_equal(at % 16, b % 16);
        assert_int_equal(seen[at]++, 0);
      }
      for (int64_t first = 0; first < rows; first += 8)
        for (int64_t piece = 0; piece < row; piece += 16) {
          for (int r = 0; r < 8; r++) bytes[r] = swizzled_byte(s, (first + r) * row + piece);
          assert_int_equal(bank_passes(bytes, 8, 16), 1);
        }
      free(seen);
    }
}

/* Rows of accumulators with a padding of eight elements, as the rule sets it: stores of a warp have no bank
 * conflict. */
static void stored_sums_meet_in_no_bank(void **state) {
  (void)state;
  enum { BYTES = 8, LEAST = TIR_WARP * BYTES / 128 };
  for (int n = 64; n <= 256; n += 64)
    for (int element = 0; element < n / 2; element += 2) {
      int64_t apart[TIR_WARP], close[TIR_WARP];
      for (int t = 0; t < TIR_WARP; t++) {
        struct tir_mma_place p = tir_wgmma_place(t, element);
        apart[t] = 4 * (p.row * (n + 8) + p.column), close[t] = 4 * (p.row * n + p.column);
      }
      assert_int_equal(bank_passes(apart, TIR_WARP, BYTES), LEAST);
      assert_true(bank_passes(close, TIR_WARP, BYTES) > LEAST);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_register_once),           cmocka_unit_test(places_are_as_published),
      cmocka_unit_test(columns_meet_what_lanes_hold), cmocka_unit_test(panels_lose_nothing),
      cmocka_unit_test(stored_sums_meet_in_no_bank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
