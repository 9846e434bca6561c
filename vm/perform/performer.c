/* The functions that perform instructions, by the table's column. */
#include "vm/run.h"

static const vm_perform performers[VM_KIND_COUNT] = {
#define INST(kind, old, method, inputs, attrs, outputs, effect, safe, source, performs, doc) vm_do_##performs,
#include "vm/instructions.def"
#undef INST
};

static bool refuse_empty(struct vm_run *r, const struct vm_step *step) {
  (void)step;
  return ms_fail(r->err, MS_NOTHING_TO_SCHEDULE, "an extent of the function is 0");
}

static bool refuse_aliased(struct vm_run *r, const struct vm_step *step) {
  (void)step;
  return ms_fail(r->err, MS_BUFFERS_ALIASED, "the function uses the same memory as two buffers: one is a view");
}

vm_perform vm_performer_in(const struct tir *ir, enum vm_kind kind) {
  MS_CHECK(kind < VM_KIND_COUNT);
  enum vm_effect effect = vm_kind_info(kind)->effect;
  bool looks = effect == VM_EFFECT_look || effect == VM_EFFECT_mark;
  if ((ir->has_empty || ir->aliased) && !looks && kind != VM_SampleCategorical)
    return ir->has_empty ? refuse_empty : refuse_aliased;
  return performers[kind];
}
