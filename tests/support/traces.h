/* For tests of traces: reading one that must be right, and comparing what is written. */
#ifndef MSCHED_TESTS_TRACES_H
#define MSCHED_TESTS_TRACES_H

#include "vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of JSON; vm_trace_free it. */
static inline struct vm_trace *read_trace(const char *text) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_trace(text, strlen(text), &err);
  if (!trace) fail_msg("%s", err.message);
  return trace;
}

static inline void expect_json(const struct vm_trace *trace, const char *expected) {
  char *text = vm_write_json(trace);
  assert_string_equal(text, expected);
  free(text);
}

#endif
