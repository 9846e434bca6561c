/* Any bytes as a trace: a binary trace. */
#include "support/fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz_mutate(FUZZ_BINARY, data, size, most, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_binary(data, size, &err);
  fuzz_take_trace(trace, &err);
  return 0;
}
