/* Any bytes as a formula: an index map of instructions that take one, and a condition over what was drawn. */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* What stands before: "C" of matmul_bias_relu and two numbers. */
static struct vm_trace *start(void) {
  static const char *const text =
      "[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"SampleCategorical\",[],[[1,2,4],[0.5,0.25,0.25]],[\"v1\"]],"
      "[\"SampleCategorical\",[],[[2,3],[0.5,0.5]],[\"v2\"]]],[]]";
  ms_error err = {0};
  struct vm_trace *trace = vm_read_json(text, strlen(text), &err);
  if (!trace) fuzz_stop("the trace before", err.message);
  return trace;
}

static void take_map(enum vm_kind kind, const uint8_t *data, size_t size) {
  struct vm_trace *trace = start();
  ms_error err = {0};
  struct vm_value map = vm_string(trace, (const char *)data, size), inputs[] = {vm_ref(0), map},
                  attrs[] = {vm_int(0), kind == VM_TransformLayout ? vm_int(0) : vm_string(trace, "global", 6)};
  bool block = kind == VM_TransformBlockLayout, draws = kind == VM_Assert;
  bool read = draws ? vm_append(trace, kind, NULL, 0, &map, 1, 0, VM_NO_DRAW, &err)
                    : vm_append(trace, kind, inputs, block ? 1 : 2, block ? &map : attrs, block ? 1 : 2,
                                kind == VM_ReindexCacheRead, VM_NO_DRAW, &err);
  if (read)
    fuzz_judge_trace(trace);
  else
    fuzz_check_refusal(&err);
  vm_trace_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (memchr(data, 0, size)) return 0; /* strings of traces have none */
  take_map(VM_Assert, data, size);
  take_map(VM_TransformLayout, data, size);
  take_map(VM_TransformBlockLayout, data, size);
  take_map(VM_ReindexCacheRead, data, size);
  return 0;
}
