/* What lanes hold of the fragments of mma.sync: each element once, where PTX says. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const int widths[] = {8, 16, 32};

static void each_element_once(void **state) {
  (void)state;
  for (int w = 0; w < 3; w++)
    for (int operand = TIR_MMA_A; operand <= TIR_MMA_C; operand++) {
      uint8_t seen[32][32] = {0};
      int depth = tir_mma_depth(widths[w]), rows = operand == TIR_MMA_B ? depth : 16;
      int columns = operand == TIR_MMA_A ? depth : 16, held = rows * columns / TIR_WARP;
      for (int lane = 0; lane < TIR_WARP; lane++)
        for (int i = 0; i < held; i++) {
          struct tir_mma_place p = tir_mma_place((enum tir_mma_operand)operand, widths[w], lane, i);
          assert_true(p.row >= 0 && p.row < rows && p.column >= 0 && p.column < columns);
          assert_int_equal(seen[p.row][p.column]++, 0);
        }
    }
}

/* From the tables of the PTX ISA, for m16n8k16 of 16 bits, m16n8k8 of TF32 and m16n8k32 of bytes: the first eight
 * columns of b and of the sums. */
static void places_are_as_published(void **state) {
  (void)state;
  static const struct {
    enum tir_mma_operand operand;
    int bits, lane, element, row, column;
  } known[] = {
      {TIR_MMA_A, 16, 5, 0, 1, 2},  {TIR_MMA_A, 16, 5, 1, 1, 3},    {TIR_MMA_A, 16, 5, 2, 9, 2},
      {TIR_MMA_A, 16, 5, 5, 1, 11}, {TIR_MMA_A, 16, 31, 7, 15, 15}, {TIR_MMA_B, 16, 5, 0, 2, 1},
      {TIR_MMA_B, 16, 5, 3, 11, 1}, {TIR_MMA_C, 16, 5, 1, 1, 3},    {TIR_MMA_C, 16, 5, 2, 9, 2},
      {TIR_MMA_A, 32, 6, 0, 1, 2},  {TIR_MMA_A, 32, 6, 1, 9, 2},    {TIR_MMA_A, 32, 6, 2, 1, 6},
      {TIR_MMA_A, 32, 6, 3, 9, 6},  {TIR_MMA_B, 32, 6, 1, 6, 1},    {TIR_MMA_A, 8, 7, 3, 1, 15},
      {TIR_MMA_A, 8, 7, 4, 9, 12},  {TIR_MMA_A, 8, 7, 8, 1, 28},    {TIR_MMA_B, 8, 7, 2, 14, 1},
      {TIR_MMA_B, 8, 7, 6, 30, 1},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct tir_mma_place p = tir_mma_place(known[i].operand, known[i].bits, known[i].lane, known[i].element);
    assert_int_equal(p.row, known[i].row);
    assert_int_equal(p.column, known[i].column);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_element_once), cmocka_unit_test(places_are_as_published)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
