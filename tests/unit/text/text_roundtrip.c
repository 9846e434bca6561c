/* Texts: each file of text/ prints as itself; each of text/loose/, written in another way or in the dialect before, is
 * read as the file of its name in text/. */
#include "unit/file.h"

#include "tir/tir.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static struct tir *read_module(const char *path) {
  char *text = read_file(path, NULL);
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, strlen(text), path, &err);
  if (!ir) fail_msg("%s", err.message);
  free(text);
  return ir;
}

static void each_file(const char *folder, void (*check)(const char *name)) {
  int count = 0;
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));) {
    size_t length = strlen(e->d_name);
    if (length < 3 || strcmp(e->d_name + length - 3, ".py")) continue;
    check(e->d_name);
    count++;
  }
  closedir(d);
  assert_true(count > 10);
}

static void check_itself(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, TEST_ROOT "/text/%s", name);
  struct tir *ir = read_module(path);
  char *text = read_file(path, NULL), *printed = tir_print(ir, TIR_NONE, 0);
  assert_string_equal(printed, text);
  ms_error err = {.message = ""};
  struct tir *again = tir_read(printed, strlen(printed), name, &err);
  assert_non_null(again);
  char why[400];
  if (!tir_structural_equal(ir, TIR_NONE, again, TIR_NONE, why, sizeof why)) fail_msg("%s: %s", name, why);
  assert_true(tir_structural_hash(ir, TIR_NONE) == tir_structural_hash(again, TIR_NONE));
  free(printed);
  free(text);
  tir_free(again);
  tir_free(ir);
}

static void check_loose(const char *name) {
  char path[1024], why[400];
  snprintf(path, sizeof path, TEST_ROOT "/text/loose/%s", name);
  struct tir *loose = read_module(path);
  snprintf(path, sizeof path, TEST_ROOT "/text/%s", name);
  struct tir *ir = read_module(path);
  char *a = tir_print(loose, TIR_NONE, 0), *b = tir_print(ir, TIR_NONE, 0);
  assert_string_equal(a, b);
  if (!tir_structural_equal(loose, TIR_NONE, ir, TIR_NONE, why, sizeof why)) fail_msg("%s: %s", name, why);
  free(a);
  free(b);
  tir_free(loose);
  tir_free(ir);
}

static void prints_as_itself(void **state) {
  (void)state;
  each_file(TEST_ROOT "/text", check_itself);
}

static void reads_other_writings(void **state) {
  (void)state;
  each_file(TEST_ROOT "/text/loose", check_loose);
}

/* Colours add escapes and take nothing away. */
static void colours(void **state) {
  (void)state;
  struct tir *ir = read_module(TEST_ROOT "/text/scheduled_cuda.py");
  char *plain = tir_print(ir, TIR_NONE, 0), *coloured = tir_print(ir, TIR_NONE, TIR_PRINT_COLOUR);
  assert_true(strlen(coloured) > strlen(plain));
  char *to = coloured;
  for (const char *from = coloured; *from; from++) {
    if (*from == '\x1b')
      from = strchr(from, 'm');
    else
      *to++ = *from;
  }
  *to = 0;
  assert_string_equal(coloured, plain);
  free(plain);
  free(coloured);
  tir_free(ir);
}

/* A part of a function: names of what is around it stand as they are. */
static void prints_parts(void **state) {
  (void)state;
  struct tir *ir = read_module(TEST_ROOT "/text/explicit_root.py");
  tir_block x = ir->symbols.at[tir_find_symbol(ir, "x")].first_block;
  char *text = tir_print_stmt(ir, x, 0);
  assert_string_equal(text, "with T.sblock(\"x\"):\n"
                            "    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                            "    T.where(i * 8 + j < 60)\n"
                            "    T.reads(A[vi, vj])\n"
                            "    T.writes(X[vi, vj])\n"
                            "    with T.init():\n"
                            "        X[vi, vj] = T.float32(0.0)\n"
                            "    X[vi, vj] = X[vi, vj] + A[vi, vj]\n");
  free(text);
  text = tir_print_expr(ir, tir_stmt_at(ir, x)->block.predicate);
  assert_string_equal(text, "i * 8 + j < 60");
  free(text);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(prints_as_itself), cmocka_unit_test(reads_other_writings),
                                     cmocka_unit_test(colours), cmocka_unit_test(prints_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
