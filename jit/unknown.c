#include "unknown.h"

#include <assert.h>
#include <stdio.h>

const char *jit_unknown_variable(const struct tir *ir, tir_func f, tir_var v, char out[JIT_UNKNOWN_TEXT]) {
  assert(tir_is_func(ir, f) && v < ir->vars.count);
  struct tir_symbol_use uses[64];
  uint32_t count = tir_symbolic_variables(ir, f, uses, 64);
  for (uint32_t i = 0; i < count; i++) {
    if (uses[i].var != v) continue;
    tir_symbolic_text(ir, f, out, JIT_UNKNOWN_TEXT);
    return out;
  }
  char name[100];
  tir_name_render(ir, tir_var_at(ir, v)->name, name, sizeof name);
  snprintf(out, JIT_UNKNOWN_TEXT, "variable %s is used outside its scope", name);
  return out;
}
