/* Code in memory: what it is made of, and what it says of itself; what its entry says of a run. */
#include "jit/llvm/machine.h"

#include <stdlib.h>
#include <string.h>

/* A byte more, which is 0: it may be a text. */
void jit_code_set_object(struct jit_code *code, const void *object, size_t bytes) {
  assert(object && object != code->object);
  free(code->object);
  code->object = calloc(bytes + 1, 1);
  if (!code->object) abort();
  memcpy(code->object, object, bytes);
  code->bytes = bytes;
}

struct jit_code *jit_code_of_object(const void *object, size_t bytes, const struct jit_target *target,
                                    const struct tir_workspace *workspace, const struct jit_packing *packing,
                                    const char *name) {
  assert(object && bytes && target && name);
  struct jit_code *code = calloc(1, sizeof *code);
  if (!code) abort();
  code->target = *target;
  code->is_assembled = true;
  code->workspace = *workspace;
  if (packing) code->packing = *packing;
  snprintf(code->name, sizeof code->name, "%s", name);
  jit_code_set_object(code, object, bytes);
  return code;
}

const void *jit_code_object(const struct jit_code *code, size_t *bytes) {
  *bytes = code->bytes;
  return code->object;
}

const struct jit_pass *jit_code_passes(const struct jit_code *code, uint32_t *count) {
  *count = code->clock.count;
  return code->clock.passes;
}

const struct jit_resources *jit_code_resources(const struct jit_code *code, uint32_t *count) {
  *count = code->kernels.count;
  return code->kernels.at;
}

const struct jit_notes *jit_code_notes(const struct jit_code *code) { return &code->notes; }

size_t jit_code_workspace(const struct jit_code *code) { return code->workspace.bytes; }

bool jit_passed(int32_t status, ms_error *err) {
  if (status == JIT_STATUS_NO_TILES)
    return ms_fail(
        err, MS_NO_TILES,
        "the system refuses this process AMX's tiles (arch_prctl ARCH_REQ_XCOMP_PERM), or SME's vectors have "
        "not 512 bits");
  return !status || ms_fail(err, MS_ASSERTION, "an assertion of the function failed (status %d)", (int)status);
}
