/* Unsafe hide buffer access: regions of a block are dropped from what it declares.
 *
 * Requires: the block has regions of these numbers.
 * After:    the block does not declare them; its body is as it was. A buffer of which the block declares another region
 *           still is marked, and so is what is made of it from then on.
 * Forward:  nothing dies.
 * Unsafe: what is hidden orders nothing from then on; blocks that use it are moved only where their order stays. What
 *         any block touches outside of its regions of a marked buffer is overlooked. */
#include "buffer.h"

#include <string.h>

static bool is_hidden(const int64_t *indices, uint32_t count, uint32_t i) {
  for (uint32_t k = 0; k < count; k++)
    if (indices[k] == i) return true;
  return false;
}

static bool check_hide_buffer_access(struct tir *ir, tir_block block, const char *side, const int64_t *indices,
                                     uint32_t count, bool *write, ms_error *err) {
  *write = !strcmp(side, "write");
  if (!*write && strcmp(side, "read") != 0)
    return ms_fail(err, MS_SIDE_UNKNOWN, "`%.40s` is neither read nor write", side);
  for (uint32_t i = 0; i < count; i++)
    if (!tir_check_region_number(ir, block, indices[i], *write, err)) return false;
  return true;
}

/* What is left of the block's regions names less of the buffers of these than its body uses. */
static void mark_named(struct tir *ir, tir_block block, struct tir_span hidden) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  for (uint32_t i = hidden.first; i < hidden.first + hidden.count; i++) {
    tir_buffer buffer = ir->regions.at[i].buffer;
    if (tir_has_region_of(ir, r->reads, buffer) || tir_has_region_of(ir, r->writes, buffer))
      tir_buffer_at(ir, buffer)->user_annotated = 1;
  }
}

static void edit_hide_buffer_access(struct tir *ir, tir_block block, bool write, const int64_t *indices,
                                    uint32_t count) {
  struct tir_span span = tir_regions(ir, block, write);
  uint32_t first = tir_grow_regions(ir, span.count), left = 0, end = span.count;
  for (uint32_t i = 0; i < span.count; i++)
    ir->regions.at[first + (is_hidden(indices, count, i) ? --end : left++)] = ir->regions.at[span.first + i];
  (write ? tir_set_writes : tir_set_reads)(ir, block, ir->regions.at + first, left);
  mark_named(ir, block, (struct tir_span){first + left, span.count - left});
  tir_find_undeclared(ir);
}

bool tir_unsafe_hide_buffer_access(struct tir *ir, tir_block block, const char *side, const int64_t *indices,
                                   uint32_t count, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  bool write;
  if (!check_hide_buffer_access(ir, block, side, indices, count, &write, err)) return false;
  edit_hide_buffer_access(ir, block, write, indices, count);
  return true;
}
