/* Texts cut at any byte, spoiled at any byte, or nested without end: read or refused, and nothing worse. */
#include "unit/file.h"

#include "tir/tir.h"

#include <stdlib.h>
#include <string.h>

/* It is refused with its place, or what is read prints and reads as the same. */
static void check(const char *text, size_t length) {
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, length, "f.py", &err);
  if (!ir) {
    assert_memory_equal(err.message, "f.py:", 5);
    assert_non_null(strchr(err.message, '^'));
    return;
  }
  char *printed = tir_print(ir, TIR_NONE, 0), why[400];
  struct tir *again = tir_read(printed, strlen(printed), "printed.py", &err);
  if (!again) fail_msg("%s", err.message);
  if (!tir_structural_equal(ir, TIR_NONE, again, TIR_NONE, why, sizeof why)) fail_msg("%s\n%s", why, printed);
  free(printed);
  tir_free(again);
  tir_free(ir);
}

static const char *const files[] = {
    "/text/conv2d.py",           "/text/loose/old_matmul.py", "/text/loose/explicit_root.py",
    "/text/loose/attributes.py", "/text/tensorized.py",       "/text/loose/handles.py"};
enum { FILE_COUNT = sizeof files / sizeof files[0] };

static void cut_anywhere(void **state) {
  (void)state;
  for (int f = 0; f < FILE_COUNT; f++) {
    char path[1024];
    snprintf(path, sizeof path, "%s%s", TEST_ROOT, files[f]);
    char *text = read_file(path, NULL);
    size_t length = strlen(text);
    for (size_t cut = 0; cut <= length; cut++) check(text, cut);
    free(text);
  }
}

/* A byte order mark is no part of the text. */
static void marked(void **state) {
  (void)state;
  char path[1024];
  snprintf(path, sizeof path, "%s%s", TEST_ROOT, files[0]);
  char *text = read_file(path, NULL), why[400];
  size_t length = strlen(text);
  char *with = malloc(length + 4);
  assert_non_null(with);
  memcpy(with, "\xef\xbb\xbf", 3);
  memcpy(with + 3, text, length + 1);
  ms_error err = {.message = ""};
  struct tir *plain = tir_read(text, length, "f.py", &err), *read = tir_read(with, length + 3, "f.py", &err);
  if (!plain || !read) fail_msg("%s", err.message);
  assert_true(tir_structural_equal(plain, TIR_NONE, read, TIR_NONE, why, sizeof why));
  assert_null(tir_read(with, 2, "f.py", &err)); /* two bytes of one */
  tir_free(plain);
  tir_free(read);
  free(with);
  free(text);
}

/* Each byte in turn becomes another one. */
static void spoiled_anywhere(void **state) {
  (void)state;
  static const char others[] = {'(', '9', '\n', '"', 0, ' ', (char)0xff, ':'};
  for (int f = 0; f < FILE_COUNT; f++) {
    char path[1024];
    snprintf(path, sizeof path, "%s%s", TEST_ROOT, files[f]);
    char *text = read_file(path, NULL);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
      char was = text[i];
      text[i] = others[i % sizeof others];
      check(text, length);
      text[i] = was;
    }
    free(text);
  }
}

/* HEAD, `before` many times, the middle, `after` many times. */
static void check_bomb(const char *before, const char *middle, const char *after, size_t times) {
  static const char head[] = "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8,), \"int32\"), n: T.int32):\n";
  size_t room = sizeof head + (strlen(before) + strlen(after)) * times + strlen(middle) + 2;
  char *text = malloc(room), *to = text;
  assert_non_null(text);
  to += sprintf(to, "%s", head);
  for (size_t i = 0; i < times; i++) to += sprintf(to, "%s", before);
  to += sprintf(to, "%s", middle);
  for (size_t i = 0; i < times; i++) to += sprintf(to, "%s", after);
  to += sprintf(to, "\n");
  check(text, (size_t)(to - text));
  free(text);
}

static void nested_without_end(void **state) {
  (void)state;
  for (size_t times = 10; times <= 100000; times *= 10) {
    check_bomb("    A[0] = 1\n", "    A[0] = 2", "", times);
    check_bomb("    A[0] = n +", " n", "", times > 1 ? 1 : 0);
    check_bomb("", "    A[0] = n", " + n", times);
    check_bomb("", "    A[0] = n", " * (n", times);
    check_bomb("", "    A[0] = -", "-", times);
    check_bomb("", "    A[0] = not ", "not ", times);
    check_bomb("    A[0] = (", "1", ")", times > 10 ? 1 : 0);
    check_bomb("", "    A[0] = ", "(", times);
    check_bomb("", "    T.evaluate(", "[", times);
    check_bomb("", "    A[0] = ", "T.abs(", times);
    check_bomb("", "    A[", "A[", times);
    check_bomb("", "    if n > 0", " and n > 0", times);
    check_bomb("", "    for i in T.grid(1", ", 1", times);
    check_bomb("", "    A[0] = n", " if n else n", times);
    check_bomb("", "    T.func_attr({\"a\": ", "{\"a\": ", times);
    check_bomb("", "    for i in range(2):", " for j in range(2):", times);
    check_bomb("    T.attr(0, \"k\", 1)\n", "    pass", "", times);
    check_bomb("    with T.sblock(\"a\"):\n", "        pass", "", times);
    check_bomb("    x: T.let[T.int32] = n\n", "    A[0] = x", "", times);
  }
}

/* Suites one inside the other, each indented by one more blank. */
static void indented_without_end(void **state) {
  (void)state;
  for (int depth = 50; depth <= 3200; depth *= 2) {
    char *text = malloc((size_t)depth * (size_t)depth + 64 * (size_t)depth + 200), *to = text;
    to += sprintf(to, "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8,), \"int32\"), n: T.int32):\n");
    for (int i = 1; i < depth; i++) to += sprintf(to, "%*sfor i%d in range(2):\n", i, "", i);
    to += sprintf(to, "%*sA[0] = 1\n", depth, "");
    check(text, (size_t)(to - text));
    free(text);
  }
}

/* Each literal ends the text, cut at each of its bytes. */
static void cut_in_a_literal(void **state) {
  (void)state;
  static const char head[] = "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8,), \"int32\")):\n    A[0] = ";
  static const char *const literals[] = {
      "0x1F", "0b101", "0o17", "1_000", "12.5e-3", ".5E+2", "\"\\x41\\u00e9\\n\"", "T.int64(0xF)"};
  for (size_t k = 0; k < sizeof literals / sizeof *literals; k++) {
    char text[sizeof head + 64];
    size_t length = (size_t)snprintf(text, sizeof text, "%s%s", head, literals[k]);
    assert_true(length < sizeof text);
    for (size_t cut = sizeof head - 1; cut <= length; cut++) check(text, cut);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cut_anywhere),       cmocka_unit_test(marked),
                                     cmocka_unit_test(cut_in_a_literal),   cmocka_unit_test(spoiled_anywhere),
                                     cmocka_unit_test(nested_without_end), cmocka_unit_test(indented_without_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
