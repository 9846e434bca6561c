/* Whether the two functions of a tensor intrinsic are sound and compute the same. */
#include "vm/run.h"

#include <string.h>

/* Whether a fragment is among the parameters: a product of those that were loaded by columns is described as what it
 * computes of the memory that they were loaded from. */
static bool takes_fragment(const struct tir *ir) {
  struct tir_span params = ir->funcs.at[1].params;
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer buffer = ir->params.at[params.first + i].buffer;
    enum tir_memory_scope scope = buffer ? tir_memory_scope_of(ir, buffer) : TIR_SCOPE_OTHER;
    if (scope == TIR_SCOPE_WMMA_A || scope == TIR_SCOPE_WMMA_B) return true;
  }
  return false;
}

/* Whether both compute the same, as far as the interpreter knows what they call. */
static bool compute_same(const struct tir *description, const struct tir *implementation, ms_error *err) {
  const struct tir_run_options options = {.most_steps = 1 << 22};
  ms_error why = {0};
  if (tir_equal_results(description, 1, &options, implementation, 1, &options, 1, &why)) return true;
  if (why.code == MS_RUN_UNKNOWN_CALL || why.code == MS_RUN_STEPS) return true;
  if (why.code == MS_RUN_DIFFERENT && takes_fragment(description)) return true;
  *err = why;
  return false;
}

bool vm_check_intrinsic(const char *name, struct tir *const parts[2], ms_error *err) {
  ms_error why = {.instruction = -1};
  assert(parts[0] && parts[1] && parts[0] != parts[1]);
  bool one = parts[0]->funcs.count == 2 && parts[1]->funcs.count == 2;
  if (!one)
    return ms_fail(err, MS_BAD_INTRINSIC, "`%.100s`: description and implementation are one function of buffers each",
                   name);
  if (tir_verify(parts[0], &why) && tir_verify(parts[1], &why) && compute_same(parts[0], parts[1], &why)) return true;
  return ms_fail(err, why.code, "`%.100s`: %s", name, why.message);
}
