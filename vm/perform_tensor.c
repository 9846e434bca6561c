/* Instructions that make blocks of loops, and put intrinsics in the place of blocks. */
#include "run.h"

bool vm_do_blockize(struct vm_run *r, const struct vm_step *s) {
  const struct vm_operand *target = vm_input(r, s, 0);
  bool preserve = vm_attr(r, s, 0)->value;
  tir_block made;
  if (target->kind == VM_AT_LIST) {
    uint32_t *blocks = vm_out(r, target->count);
    return vm_get_blocks(r, target, blocks) &&
           tir_blockize_blocks(r->ir, blocks, target->count, preserve, &made, r->err) && vm_give_one(r, s, made);
  }
  tir_loop loop;
  return vm_get_loop(r, target, &loop) && tir_blockize(r->ir, loop, preserve, &made, r->err) && vm_give_one(r, s, made);
}
