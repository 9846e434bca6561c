/* Unsafe hide buffer access: regions of a block are dropped from what it declares.
 *
 * Requires: the block has regions of these numbers.
 * After:    the block does not declare them; its body is as it was.
 * Forward:  nothing dies.
 * Unsafe: what is hidden orders nothing from then on; blocks that use it are moved only where their order stays. */
#include "buffer.h"

#include <string.h>

static bool is_hidden(const int64_t *indices, uint32_t count, uint32_t i) {
  for (uint32_t k = 0; k < count; k++)
    if (indices[k] == i) return true;
  return false;
}

static bool check(struct tir *ir, tir_block block, const char *side, const int64_t *indices, uint32_t count,
                  bool *write, ms_error *err) {
  *write = !strcmp(side, "write");
  if (!*write && strcmp(side, "read") != 0)
    return ms_fail(err, MS_SIDE_UNKNOWN, "`%.40s` is neither read nor write", side);
  for (uint32_t i = 0; i < count; i++)
    if (!tir_check_region_number(ir, block, indices[i], *write, err)) return false;
  return true;
}

static void edit(struct tir *ir, tir_block block, bool write, const int64_t *indices, uint32_t count) {
  struct tir_span span = tir_regions(ir, block, write);
  uint32_t first = tir_grow_regions(ir, span.count), left = 0;
  for (uint32_t i = 0; i < span.count; i++)
    if (!is_hidden(indices, count, i)) ir->regions.at[first + left++] = ir->regions.at[span.first + i];
  (write ? tir_set_writes : tir_set_reads)(ir, block, ir->regions.at + first, left);
  tir_find_undeclared(ir);
}

bool tir_unsafe_hide_buffer_access(struct tir *ir, tir_block block, const char *side, const int64_t *indices,
                                   uint32_t count, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  bool write;
  if (!check(ir, block, side, indices, count, &write, err)) return false;
  edit(ir, block, write, indices, count);
  return true;
}
