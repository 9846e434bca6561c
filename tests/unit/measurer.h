/* For tests of the measurer: workloads, traces in Lua text, results. Include in one file a program. */
#ifndef MSCHED_TEST_MEASURER_H
#define MSCHED_TEST_MEASURER_H

#include "script.h"

#include "jit/jit.h"
#include "vm/vm.h"

#include <unistd.h>

/* Where the test is not run by ctest: the helper of the same build. */
static inline void find_helper(void) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 40);
  assert_true(n > 0);
  path[n] = 0;
  *strrchr(path, '/') = 0;
  strcat(path, "/../msched-helper");
  setenv("MSCHED_HELPER", path, 0);
}

/* A measurer whose task 0 is the workload. */
static inline struct jit_measurer *start_measurer_for(const char *text, struct tir *workload,
                                                      const struct jit_measurer_options *options) {
  struct jit_target target;
  ms_error err = {0};
  find_helper();
  if (!jit_target_parse(text, &target, &err)) fail_msg("%s", err.message);
  struct jit_measurer *m = jit_measurer_new(&target, options, &err);
  if (!m) fail_msg("%s", err.message);
  assert_int_equal(jit_measurer_add(m, workload, tir_find_func(workload, "main"), NULL), 0);
  return m;
}

static inline struct jit_measurer *start_measurer(struct tir *workload, const struct jit_measurer_options *options) {
  return start_measurer_for("native", workload, options);
}

/* The trace: JSON. */
static inline void submit_to(struct jit_measurer *m, uint32_t task, uint64_t id, const char *json) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_json(json, strlen(json), &err);
  if (!trace) fail_msg("%s", err.message);
  size_t bytes;
  void *binary = vm_write_binary(trace, &bytes);
  if (!jit_measurer_submit(m, task, id, binary, bytes, &err)) fail_msg("%s", err.message);
  free(binary);
  vm_trace_free(trace);
}

static inline void submit(struct jit_measurer *m, uint64_t id, const char *json) { submit_to(m, 0, id, json); }

/* The next result, which must come within a minute. */
static inline struct jit_result next_result(struct jit_measurer *m) {
  struct jit_result result;
  ms_error err = {0};
  int got = jit_measurer_next(m, 60, &result, &err);
  if (got != 1) fail_msg("%d: %s", got, err.message);
  return result;
}

static inline void expect(const struct jit_result *r, uint64_t id, enum jit_outcome outcome, const char *reason) {
  assert_int_equal(r->id, id);
  if (r->outcome != outcome)
    fail_msg("%s: %s, not %s", jit_outcome_text(r->outcome), r->reason, jit_outcome_text(outcome));
  if (reason && !strstr(r->reason, reason)) fail_msg("\"%s\" does not say \"%s\"", r->reason, reason);
}

#endif
