/* Stores around the caches: where a result is aligned, and where it begins at any element. */
#include "unit/script.h"

#include "jit/jit.h"

enum { ROWS = 6, COLUMNS = 96, BYTES = ROWS * COLUMNS * 4 };

/* Twice the argument, and the square of the row at half the number, of rows in parallel or in order. */
static struct tir *read_rows(const char *loop) {
  char line[64];
  snprintf(line, sizeof line, "for i in %s(6):", loop);
  return read_function(
      "A: T.Buffer((6, 96), \"float32\"), B: T.Buffer((6, 96), \"float32\"), C: T.Buffer((6, 96), \"int32\")", line,
      "    for j_0 in range(6):", "        for j_1 in T.vectorized(16):", "            with T.sblock(\"B\"):",
      "                vi = T.axis.spatial(6, i)", "                vj = T.axis.spatial(96, j_0 * 16 + j_1)",
      "                T.sblock_attr({\"msched.nontemporal\": 1})", "                B[vi, vj] = A[vi, vj] + A[vi, vj]",
      "                C[vi, vj] = T.Cast(\"int32\", A[vi // 2, vj] * A[vi // 2, vj])");
}

/* Runs it on results that begin so many bytes behind a multiple of 64, each of its own, between bytes that stay. */
static void run(struct tir *ir, const char *text, int first, int second) {
  struct jit_target target;
  struct tir_arguments in;
  tir_func f = tir_find_func(ir, "main");
  assert_accepted(jit_target_parse(text, &target, err));
  assert_accepted(tir_make_arguments(ir, f, 5, &in, err));
  char *memory = aligned_alloc(64, 2 * (BYTES + 128));
  assert_non_null(memory);
  memset(memory, 0x5a, 2 * (BYTES + 128));
  float *doubled = (float *)(void *)(memory + first);
  int32_t *squares = (int32_t *)(void *)(memory + BYTES + 128 + second);
  const float *a = in.args[0].data;
  struct tir_arg args[] = {in.args[0], {doubled, BYTES}, {squares, BYTES}};
  assert_accepted(jit_run(ir, f, &target, NULL, args, err));
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    assert_true(doubled[i] == a[i] + a[i]);
    float of_half = a[i / COLUMNS / 2 * COLUMNS + i % COLUMNS];
    assert_int_equal(squares[i], (int32_t)(of_half * of_half));
  }
  for (int i = 0; i < first; i++) assert_int_equal(memory[i], 0x5a);
  for (int i = first + BYTES; i < BYTES + 128 + second; i++) assert_int_equal(memory[i], 0x5a);
  for (int i = 2 * BYTES + 128 + second; i < 2 * (BYTES + 128); i++) assert_int_equal(memory[i], 0x5a);
  free(memory);
  tir_arguments_free(&in);
}

static void alignments(void **state) {
  (void)state;
  static const char *const loops[] = {"range", "T.parallel"}, *const targets[] = {"native", "x86-64"};
  static const int offsets[][2] = {{0, 0}, {4, 0}, {0, 32}, {16, 16}, {60, 4}};
  for (int l = 0; l < 2; l++) {
    struct tir *ir = read_rows(loops[l]);
    for (int t = 0; t < 2; t++)
      for (int o = 0; o < 5; o++) run(ir, targets[t], offsets[o][0], offsets[o][1]);
    tir_free(ir);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(alignments)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
