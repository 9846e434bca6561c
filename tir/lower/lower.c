/* The passes in order, and what stands between them: dumps and checks. */
#include "lower.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *what;
  bool (*run)(struct lowering *low);
} passes[] = {
    {"offer", "instructions stand only where the target has them", lower_offer},
    {"threads", "threads that reduce together become iterations", lower_threads},
    {"place", "allocations move into the smallest scope that holds their accesses", lower_place},
    {"order", "parallel loops whose iterations write the same elements run in order", lower_order},
    {"blocks", "blocks become conditions and substituted bindings", lower_blocks},
    {"compact", "buffers shrink to what their scope touches", lower_compact},
    {"loops", "unit loops and constant conditions vanish", lower_loops},
    {"partition", "loops are cut where a condition in them becomes certain", lower_partition},
    {"strips", "vectorized loops fill one register", lower_strips},
    {"promote", "tiles of a reduction are kept in registers", lower_promote},
    {"unroll", "unrolled loops are written out", lower_unroll},
    {"vectorize", "vectorized loops become vector expressions", lower_vectorize},
    {"flatten", "buffers have one dimension", lower_flatten},
    {"instruction", "instructions stand only where memory lies as they need it", lower_instruction},
    {"legalize", "floor division and floats of 16 bits become what machines have", lower_legalize},
    {"share", "what an expression uses again is bound, and computed once", lower_share},
    {"workspace", "large allocations are views of one buffer, in which each thread has a piece", lower_workspace},
    {"outline", "parallel loops state what the functions that they become take", lower_outline},
};
enum { PASS_COUNT = sizeof passes / sizeof *passes };

const char *tir_lower_pass(uint32_t i, const char **what) {
  if (i >= PASS_COUNT) return NULL;
  *what = passes[i].what;
  return passes[i].name;
}

static void dump(const struct lowering *low, const char *name) {
  const struct tir_lower_options *o = low->options;
  if (!o || !o->dump_after || !o->dump) return;
  bool all = !strcmp(o->dump_after, "all");
  if (!all && strcmp(o->dump_after, name) != 0) return;
  if (all) fprintf(o->dump, "# after %s\n", name);
  char *text = tir_print(low->ir, low->func, 0);
  if (text) fputs(text, o->dump);
  free(text);
}

bool tir_lower(struct tir *ir, tir_func f, const struct tir_lower_options *options, ms_error *err) {
  assert(tir_is_func(ir, f));
  struct lowering low = {ir, f, ir->funcs.at[f].body, options, err};
  for (int i = 0; i < PASS_COUNT; i++) {
    if (!passes[i].run(&low)) return false;
    if (options && options->passed) options->passed(options->data, passes[i].name);
    dump(&low, passes[i].name);
    if (options && options->verify && !tir_verify(ir, err)) return false;
  }
  return true;
}
