/* Any bytes as a trace: JSON. */
#include "support/fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz_mutate(FUZZ_JSON, data, size, most, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_json((const char *)data, size, &err);
  fuzz_take_trace(trace, &err);
  return 0;
}
