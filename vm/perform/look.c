/* Instructions that look: blocks by name, and what is around, below, before and after them. */
#include "vm/run.h"

/* The name is a symbol and the function known since the plan was made; anything but one match is tir's to refuse. */
bool vm_do_get_sblock(struct vm_run *r, const struct vm_step *s) {
  const struct tir *ir = r->ir;
  tir_block found = TIR_NONE, b = ir->symbols.at[vm_attr(r, s, 0)->value].first_block;
  for (; b && s->func; b = tir_block_at(ir, b)->next_same_name) {
    if (tir_func_of(ir, b) != s->func) continue;
    if (found) break;
    found = b;
  }
  if (found && !b) return vm_give_one(r, s, found);
  return tir_get_block(r->ir, vm_string_at(r, vm_attr(r, s, 0)), vm_string_at(r, vm_attr(r, s, 1)), &found, r->err) &&
         vm_give_one(r, s, found);
}

bool vm_do_get_loops(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  if (!vm_get_block(r, vm_input(r, s, 0), &block)) return false;
  uint32_t *out = vm_out(r, 0), count = tir_loops_of(r->ir, block, out, VM_OUT_ROOM);
  if (count > VM_OUT_ROOM) out = vm_out(r, count), tir_loops_of(r->ir, block, out, count);
  assert(!count || tir_is(r->ir, out[count - 1], TIR_LOOP));
  return vm_give(r, s, out, count);
}

/* The blocks that a look-up of tir finds for a statement: asked again when there are more than there is room for. */
typedef bool (*look_up)(struct tir *ir, tir_stmt of, tir_block *out, uint32_t most, uint32_t *count, ms_error *err);

static bool give_blocks(struct vm_run *r, const struct vm_step *s, tir_stmt of, look_up find) {
  uint32_t count = 0, *out = vm_out(r, 0);
  if (!find(r->ir, of, out, VM_OUT_ROOM, &count, r->err)) return false;
  uint32_t first = count;
  if (count > VM_OUT_ROOM && !find(r->ir, of, out = vm_out(r, count), count, &count, r->err)) return false;
  assert(count == first);
  (void)first;
  return vm_give(r, s, out, count);
}

bool vm_do_get_child_blocks(struct vm_run *r, const struct vm_step *s) {
  tir_stmt of;
  return vm_get_place(r, vm_input(r, s, 0), &of) && give_blocks(r, s, of, tir_get_child_blocks);
}

static bool give_blocks_of(struct vm_run *r, const struct vm_step *s, look_up find) {
  tir_block of;
  return vm_get_block(r, vm_input(r, s, 0), &of) && give_blocks(r, s, of, find);
}

bool vm_do_get_producers(struct vm_run *r, const struct vm_step *s) { return give_blocks_of(r, s, tir_get_producers); }
bool vm_do_get_consumers(struct vm_run *r, const struct vm_step *s) { return give_blocks_of(r, s, tir_get_consumers); }
bool vm_do_get_output_blocks(struct vm_run *r, const struct vm_step *s) {
  return give_blocks_of(r, s, tir_get_output_blocks);
}

bool vm_do_enter_postproc(struct vm_run *r, const struct vm_step *s) { return vm_give(r, s, NULL, 0); }
