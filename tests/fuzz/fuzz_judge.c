/* Any bytes as TVMScript: what is read has a sound storage, and the interpreter runs it to its end or refuses, within
 * its limits, before lowering and lowered. */
#include "tir/tir.h"

#include <stdlib.h>

enum { MOST_STEPS = 20000, MOST_MEMORY = 16 << 20 };

static void run(const struct tir *ir, tir_func f, bool lowered) {
  ms_error err = {.message = ""};
  struct tir_arguments arguments;
  struct tir_run_options options = {.most_steps = MOST_STEPS, .most_memory = MOST_MEMORY, .lowered = lowered};
  if (!tir_make_arguments(ir, f, 1, &arguments, &err)) return;
  tir_run(ir, f, arguments.args, arguments.count, &options, &err);
  tir_arguments_free(&arguments);
}

static bool is_small(const struct tir *ir, tir_func f) {
  const struct tir_func_node *n = &ir->funcs.at[f];
  for (uint32_t i = 0; i < n->params.count; i++) {
    tir_buffer b = ir->params.at[n->params.first + i].buffer;
    for (uint32_t d = 0; b && d < ir->buffers.at[b].rank; d++) {
      tir_expr extent = ir->operands.at[ir->buffers.at[b].shape + d];
      if (tir_is_int(ir, extent) && tir_at(ir, extent)->imm > 64) return false;
    }
    if (b && ir->buffers.at[b].rank > 4) return false;
  }
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ms_error err = {.message = ""};
  struct tir *ir = tir_read((const char *)data, size, "fuzz.py", &err);
  if (!ir) return 0;
  if (!tir_verify(ir, &err) && (err.code == MS_VERIFY_STORAGE || err.code == MS_VERIFY_EXPRESSION ||
                                err.code == MS_VERIFY_LINKS || err.code == MS_VERIFY_LISTS)) {
    fprintf(stderr, "%s\n", err.message);
    abort();
  }
  for (tir_func f = 1; f < ir->funcs.count; f++)
    if (is_small(ir, f)) run(ir, f, false), run(ir, f, true);
  tir_free(ir);
  return 0;
}
