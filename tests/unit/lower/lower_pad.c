/* Rows of large buffers that would meet in few sets of a cache get longer; what is small, or lies otherwise, stays. */
#include "unit/lowered_text.h"

/* B = A + 1 by way of a buffer of such a shape, after the pass. */
static char *through(const char *shape, const char *type, int rows, int columns, int channels) {
  char params[200], buffer[120], grid[120], axes[160], made[80], read[80];
  snprintf(params, sizeof params, "A: T.Buffer(%s, \"%s\"), C: T.Buffer(%s, \"%s\")", shape, type, shape, type);
  snprintf(buffer, sizeof buffer, "B = T.sblock_alloc_buffer(%s, \"%s\")", shape, type);
  snprintf(grid, sizeof grid, "for i, j, k in T.grid(%d, %d, %d):", rows, columns, channels);
  snprintf(axes, sizeof axes, "        vi, vj, vk = T.axis.remap(\"SSS\", [i, j, k])");
  snprintf(made, sizeof made, "        B[vi, vj, vk] = A[vi, vj, vk]");
  snprintf(read, sizeof read, "        C[vi, vj, vk] = B[%d - vi, vj, vk]", rows - 1);
  return text_after(read_function(params, buffer, grid, "    with T.sblock(\"B\"):", axes, made, grid,
                                  "    with T.sblock(\"C\"):", axes, read),
                    "pad");
}

static void expect_in(char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no `%s` in\n%s", part, text);
  free(text);
}

static void rows_of_a_kibibyte_get_a_line_more(void **state) {
  (void)state;
  expect_in(through("(6, 16, 256)", "float32", 6, 16, 256), "T.alloc_buffer((6, 17, 272)");
  expect_in(through("(6, 16, 256)", "float64", 6, 16, 256), "T.alloc_buffer((6, 17, 264)");
}

/* One more of what is inside, where that is whole lines. */
static void lines_of_rows_get_a_row_more(void **state) {
  (void)state;
  expect_in(through("(32, 16, 32)", "float32", 32, 16, 32), "T.alloc_buffer((32, 17, 32)");
}

static void others_stay(void **state) {
  (void)state;
  expect_in(through("(6, 16, 64)", "float32", 6, 16, 64), "T.alloc_buffer((6, 16, 64)");    /* small */
  expect_in(through("(8, 17, 72)", "float32", 8, 17, 72), "T.alloc_buffer((8, 17, 72)");    /* spread as they are */
  expect_in(through("(1, 1, 9216)", "float32", 1, 1, 9216), "T.alloc_buffer((1, 1, 9216)"); /* one row */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_a_kibibyte_get_a_line_more),
      cmocka_unit_test(lines_of_rows_get_a_row_more),
      cmocka_unit_test(others_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
