/* Tests that go through a table of unit/data/, a case a line. Include in one file a program, which gives run_case. */
#ifndef MSCHED_TEST_TABLE_H
#define MSCHED_TEST_TABLE_H

#include "prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* What is wrong with a case, whose line it may change; NULL: nothing. The expressions are made in an ir that it frees.
 */
static const char *run_case(char *line, bool simplifies);

/* Fields are parted by semicolons. */
static inline void split_fields(char *line, const char **fields, int count) {
  for (int i = 0; i < count; i++) {
    fields[i] = line;
    line += strcspn(line, ";\n");
    if (*line) *line++ = 0;
  }
}

static const char *table_path;

/* Each with expressions as they are read, and simplified. */
static void agrees_with_table(void **state) {
  (void)state;
  char line[4096], copy[sizeof line];
  FILE *f = fopen(table_path, "r");
  assert_non_null(f);
  unsigned failed = 0, lines = 0;
  while (fgets(line, sizeof line, f)) {
    if (*line == '#') continue;
    lines++;
    for (int simplifies = 0; simplifies < 2; simplifies++) {
      const char *why = run_case(strcpy(copy, line), simplifies);
      if (!why) continue;
      fprintf(stderr, "%s (%s): %s", why, simplifies ? "simplified" : "raw", line);
      failed++;
    }
  }
  fclose(f);
  assert_int_equal(failed, 0);
  assert_true(lines > 100);
}

/* MSCHED_TABLE may name another table. */
static int run_table(const char *path) {
  const char *other = getenv("MSCHED_TABLE");
  table_path = other ? other : path;
  const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
