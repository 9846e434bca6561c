/* Instructions that make blocks of loops, put intrinsics in the place of blocks, and say what blocks access. */
#include "vm/run.h"

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

bool vm_do_tensorize(struct vm_run *r, const struct vm_step *s) {
  tir_stmt target;
  if (!vm_get_place(r, vm_input(r, s, 0), &target)) return false;
  if (!s->description)
    return ms_fail(r->err, MS_INTRINSIC_NOT_FOUND, "there is no tensor intrinsic `%.100s`",
                   vm_string_at(r, vm_attr(r, s, 0)));
  return tir_tensorize(r->ir, target, s->description, s->implementation, vm_attr(r, s, 1)->value, r->err) &&
         vm_give(r, s, NULL, 0);
}

typedef bool (*copying)(struct tir *ir, tir_loop loop, tir_block block, uint32_t buffer_index, const char *storage,
                        tir_block *out, ms_error *err);

static bool copy_at(struct vm_run *r, const struct vm_step *s, copying make) {
  tir_loop loop;
  tir_block block, made;
  int64_t index = vm_attr(r, s, 0)->value;
  return vm_get_loop(r, vm_input(r, s, 0), &loop) && vm_get_block(r, vm_input(r, s, 1), &block) &&
         make(r->ir, loop, block, index < 0 ? UINT32_MAX : (uint32_t)index, vm_string_at(r, vm_attr(r, s, 1)), &made,
              r->err) &&
         vm_give_one(r, s, made);
}

bool vm_do_read_at(struct vm_run *r, const struct vm_step *s) { return copy_at(r, s, tir_read_at); }
bool vm_do_write_at(struct vm_run *r, const struct vm_step *s) { return copy_at(r, s, tir_write_at); }

bool vm_do_annotate_buffer_access(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  struct tir_index_map map;
  int64_t index = vm_get_int(r, vm_input(r, s, 1)), side = vm_get_int(r, vm_input(r, s, 2));
  if (!vm_get_block(r, vm_input(r, s, 0), &block) || !vm_get_map(r, vm_input(r, s, 3), &map)) return false;
  if (side != 0 && side != 1)
    return ms_fail(r->err, MS_SIDE_UNKNOWN, "the side is %lld; 0 stands for read and 1 for write", (long long)side);
  return tir_annotate_buffer_access(r->ir, block, index < 0 || index > UINT32_MAX ? UINT32_MAX : (uint32_t)index, side,
                                    &map, r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_unsafe_hide_buffer_access(struct vm_run *r, const struct vm_step *s) {
  enum { MOST_HIDDEN = 256 };
  const struct vm_operand *list = vm_input(r, s, 2);
  int64_t indices[MOST_HIDDEN];
  tir_block block;
  if (list->count > MOST_HIDDEN) return ms_fail(r->err, MS_TOO_LARGE, "%u regions are to be hidden", list->count);
  for (uint32_t i = 0; i < list->count; i++) indices[i] = vm_get_int(r, r->operands + list->value + i);
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_unsafe_hide_buffer_access(r->ir, block, vm_string_at(r, vm_input(r, s, 1)), indices, list->count,
                                       r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_cache_index(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  uint32_t count, *made = vm_out(r, VM_OUT_ROOM);
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_cache_index(r->ir, block, vm_string_at(r, vm_attr(r, s, 0)), (int)vm_attr(r, s, 1)->value, made,
                         VM_OUT_ROOM, &count, r->err) &&
         vm_give(r, s, made, count);
}

bool vm_do_cache_inplace(struct vm_run *r, const struct vm_step *s) {
  tir_block block, made[2];
  int64_t index = vm_attr(r, s, 0)->value;
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_cache_inplace(r->ir, block, index < 0 ? UINT32_MAX : (uint32_t)index, vm_string_at(r, vm_attr(r, s, 1)),
                           made, r->err) &&
         vm_give(r, s, made, 2);
}
