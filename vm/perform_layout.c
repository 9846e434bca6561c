/* Instructions that change buffers: their scope, type and layout. */
#include "run.h"

/* A region's number as the primitives take it: one below zero is out of every range. */
static uint32_t buffer_index(const struct vm_run *r, const struct vm_step *s, uint32_t attr) {
  int64_t index = vm_attr(r, s, attr)->value;
  return index < 0 ? UINT32_MAX : (uint32_t)index;
}

bool vm_do_set_scope(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_set_scope(r->ir, block, buffer_index(r, s, 0), vm_string_at(r, vm_attr(r, s, 1)), r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_storage_align(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  int numbers[4];
  for (uint32_t i = 0; i < 4; i++) numbers[i] = (int)vm_attr(r, s, i)->value;
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_storage_align(r->ir, block, numbers[0], numbers[1], numbers[2], numbers[3], r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_unsafe_set_dtype(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_unsafe_set_dtype(r->ir, block, buffer_index(r, s, 0), vm_string_at(r, vm_attr(r, s, 1)), r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_transform_block_layout(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  struct tir_index_map map;
  return vm_get_block(r, vm_input(r, s, 0), &block) && vm_get_map(r, vm_attr(r, s, 0), &map) &&
         tir_transform_block_layout(r->ir, block, &map, r->err) && vm_give(r, s, NULL, 0);
}
