/* For tests that read files. */
#ifndef MSCHED_TEST_FILE_H
#define MSCHED_TEST_FILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Of places, bytes or rounds that are tried one after the other, sanitizers see each third: the plain build tries all
 * of them. */
#ifdef __SANITIZE_ADDRESS__
enum { EACH = 3 };
#else
enum { EACH = 1 };
#endif

/* What the file holds, with a zero after it; *size (may be NULL): its bytes. The caller frees. */
static inline char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s cannot be opened", path);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  long length = ftell(file);
  assert_true(length > 0);
  rewind(file);
  char *bytes = calloc((size_t)length + 1, 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, (size_t)length, file), (size_t)length);
  fclose(file);
  if (size) *size = (size_t)length;
  return bytes;
}

#endif
