/* Programs that are asked line by line: lines there and back, however long; how they end, in words; what cannot be
 * started. */
#include "jit/jit.h"
#include "unit/measurer.h"

#include <stdlib.h>

static struct jit_worker *start(const char *program, const char *option, const char *script) {
  ms_error err = {.instruction = -1};
  char *words[] = {(char *)program, (char *)option, (char *)script, NULL};
  struct jit_worker *w = jit_worker_new(words, &err);
  if (!w) fail_msg("%s", err.message);
  return w;
}

static void answers_line_by_line(void **state) {
  struct jit_worker *w = start("/bin/cat", NULL, NULL);
  (void)state;
  for (size_t length = 0; length < 200000; length = 3 * length + 1) {
    size_t got;
    char *text = malloc(length + 1);
    assert_non_null(text);
    for (size_t i = 0; i < length; i++) text[i] = (char)('a' + i % 26);
    assert_true(jit_worker_say(w, text, length));
    const char *line = jit_worker_line(w, NULL, &got);
    assert_non_null(line);
    assert_int_equal(got, length);
    if (length) assert_memory_equal(line, text, length);
    free(text);
  }
  jit_worker_free(w);
}

/* Lines that come at once are given one by one, and what has no end is none. */
static void gives_lines_one_by_one(void **state) {
  struct jit_worker *w = start("/bin/sh", "-c", "printf 'one\\n\\nthree\\nrest'");
  size_t got;
  (void)state;
  assert_memory_equal(jit_worker_line(w, NULL, &got), "one", 3);
  assert_non_null(jit_worker_line(w, NULL, &got));
  assert_int_equal(got, 0);
  assert_memory_equal(jit_worker_line(w, NULL, &got), "three", 5);
  assert_null(jit_worker_line(w, NULL, &got));
  assert_null(jit_worker_line(w, NULL, &got));
  jit_worker_free(w);
}

static void expect_end(const char *script, const char *expected) {
  struct jit_worker *w = start("/bin/sh", "-c", script);
  char why[200];
  size_t got;
  assert_null(jit_worker_line(w, NULL, &got));
  jit_worker_end(w, why, sizeof why);
  assert_string_equal(why, expected);
  assert_false(jit_worker_say(w, "more", 4));
  assert_null(jit_worker_line(w, NULL, &got));
  jit_worker_free(w);
}

static void says_how_it_ended(void **state) {
  (void)state;
  expect_end("exit 3", "its process ended with status 3");
  expect_end("kill -9 $$", "its process ended by signal 9 (Killed)");
  /* It closes what it is asked by, and goes on: it is ended. */
  expect_end("exec <&- >&-; exec sleep 100", "its process ended by signal 9 (Killed)");
}

/* What does not read, nor end, is ended with who asks it. */
static void is_ended_with_who_asks(void **state) {
  (void)state;
  jit_worker_free(start("/bin/sh", "-c", "exec sleep 100"));
  jit_worker_free(NULL);
}

static void says_what_cannot_be_started(void **state) {
  ms_error err = {.instruction = -1};
  char *words[] = {(char *)"/nonexistent/program", NULL};
  (void)state;
  assert_null(jit_worker_new(words, &err));
  assert_int_equal(err.code, MS_NO_HELPER);
  assert_non_null(strstr(err.message, "/nonexistent/program cannot be started"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_line_by_line),        cmocka_unit_test(gives_lines_one_by_one),
      cmocka_unit_test(says_how_it_ended),           cmocka_unit_test(is_ended_with_who_asks),
      cmocka_unit_test(says_what_cannot_be_started),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
