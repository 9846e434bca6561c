#define _GNU_SOURCE
/* Shared memory by banks: how many passes they make, and rows that are spread so that columns of pieces are loaded in
 * as few as there can be. */
#include "cuda/banks.h"
#include "support/case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = 32, PIECE = 16 };

static int passes_of(int64_t step, int width) {
  int64_t bytes[LANES];
  for (int l = 0; l < LANES; l++) bytes[l] = l * step;
  return bank_passes(bytes, LANES, width);
}

static void banks_are_counted(void **state) {
  (void)state;
  assert_int_equal(passes_of(4, 4), 1);
  assert_int_equal(passes_of(0, 4), 1); /* one word for all */
  assert_int_equal(passes_of(2, 2), 1); /* two of a word */
  assert_int_equal(passes_of(8, 4), 2);
  assert_int_equal(passes_of(128, 4), 32);
  assert_int_equal(passes_of(132, 4), 1);
  assert_int_equal(passes_of(8, 8), 2);
  assert_int_equal(passes_of(16, 16), 4);
  assert_int_equal(passes_of(128, 16), 32);
  assert_int_equal(passes_of(144, 16), 4);
}

/* A shared buffer of ten rows, of so many halves, as it is lowered: its scope, or the distance of its rows. */
static tir_buffer lower_rows(int halves, struct tir **out, int64_t *distance) {
  char *text = NULL;
  ms_error err = {0};
  if (asprintf(&text,
               "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((10, %d), \"float16\"), C: T.Buffer((10, %d), "
               "\"float16\")):\n"
               "    with T.sblock(\"root\"):\n"
               "        S = T.sblock_alloc_buffer((10, %d), \"float16\", scope=\"shared%s\")\n"
               "        for b in T.thread_binding(1, thread=\"blockIdx.x\"):\n"
               "            for i in T.thread_binding(10, thread=\"threadIdx.x\"):\n"
               "                for j in range(%d):\n"
               "                    with T.sblock(\"S\"):\n"
               "                        vi, vj = T.axis.remap(\"SS\", [i, j])\n"
               "                        S[vi, vj] = A[vi, vj]\n"
               "            for i in T.thread_binding(10, thread=\"threadIdx.x\"):\n"
               "                for j in range(%d):\n"
               "                    with T.sblock(\"C\"):\n"
               "                        vi, vj = T.axis.remap(\"SS\", [i, j])\n"
               "                        C[vi, vj] = S[9 - vi, vj]\n",
               halves, halves, halves, TIR_SWIZZLE, halves, halves) < 0)
    abort();
  struct tir *ir = tir_read(text, strlen(text), "rows", &err), *before = tir_new();
  if (!ir) fail_msg("%s\n%s", err.message, text);
  tir_copy(before, ir);
  const struct tir_lower_options options = {.device = TIR_GPU, .verify = true};
  const struct tir_run_options lowered = {.lowered = true};
  if (!tir_lower(ir, 1, &options, &err)) fail_msg("%s", err.message);
  if (!tir_equal_results(before, 1, NULL, ir, 1, &lowered, 3, &err)) fail_msg("%d: %s", halves, err.message);
  tir_free(before);
  free(text);
  *out = ir, *distance = 0;
  tir_buffer found = TIR_NONE;
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    if (!strcmp(tir_buffer_name(ir, b), "S") && tir_buffer_at(ir, b)->where) found = b;
  assert_true(found);
  *distance = ((int64_t)tir_allocation_bytes(ir, found) / 2 - halves) / 9; /* ten rows, the last without what follows */
  return found;
}

/* Eight rows that follow one upon the other, a piece of each. */
static int passes_of_rows(const struct tir_swizzle *s, int64_t row, int first, int piece) {
  int64_t bytes[8];
  for (int r = 0; r < 8; r++) {
    bytes[r] = (first + r) * row + piece * PIECE;
    if (s) bytes[r] = swizzled_byte(*s, bytes[r]);
  }
  return bank_passes(bytes, 8, PIECE);
}

static void rows_are_spread(void **state) {
  (void)state;
  static const struct {
    int halves;
    bool swizzled;
    int distance, passes; /* of rows, in elements; passes where nothing is done */
  } known[] = {{8, false, 8, 1},    {16, true, 16, 2},   {24, false, 24, 1}, {32, true, 32, 4},
               {48, false, 56, 2},  {64, true, 64, 8},   {80, false, 88, 2}, {96, false, 104, 4},
               {128, true, 128, 8}, {512, true, 512, 8}, {20, false, 20, 0}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct tir *ir;
    int64_t distance, row;
    struct tir_swizzle s;
    tir_buffer buffer = lower_rows(known[i].halves, &ir, &distance);
    bool swizzled = tir_swizzle_of(ir, buffer, &s);
    assert_int_equal(swizzled, known[i].swizzled);
    assert_int_equal(distance, known[i].distance);
    row = 2 * known[i].distance;
    for (int first = 0; first < 16 && known[i].passes; first++)
      for (int piece = 0; piece < known[i].halves * 2 / PIECE; piece++) {
        if (first % 8 == 0) assert_int_equal(passes_of_rows(NULL, 2 * known[i].halves, first, piece), known[i].passes);
        if (first % 8 == 0 || !swizzled) assert_int_equal(passes_of_rows(swizzled ? &s : NULL, row, first, piece), 1);
      }
    tir_free(ir);
  }
}

/* Each byte has one place, in its row's group; bytes of a piece stay side by side. */
static void nothing_is_lost(void **state) {
  (void)state;
  struct tir *ir;
  int64_t distance;
  for (int halves = 16; halves <= 256; halves *= 2) {
    struct tir_swizzle s;
    tir_buffer buffer = lower_rows(halves, &ir, &distance);
    assert_true(tir_swizzle_of(ir, buffer, &s));
    uint8_t *seen = calloc(1, (size_t)(10 * 2 * halves));
    for (int64_t b = 0; b < 20 * halves; b++) {
      int64_t at = swizzled_byte(s, b);
      assert_true(at >= 0 && at < 20 * halves);
      assert_int_equal(at / (2 * halves), b / (2 * halves));
      assert_int_equal(at % PIECE, b % PIECE);
      assert_int_equal(seen[at]++, 0);
    }
    free(seen);
    tir_free(ir);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(banks_are_counted), cmocka_unit_test(rows_are_spread),
                                     cmocka_unit_test(nothing_is_lost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
