/* Annotate buffer access: a region of a block is what the user says it is.
 *
 * Requires: the block has a region of this number; the map takes as many indices as the block has iterations, and gives
 *           a begin and an end for each dimension of the buffer. What was known to be written before it is read is
 *           so by the new region too.
 * After:    the region runs from begin to end (of one element, where they are the same) in each dimension; the block's
 *           annotation explicit_read_region or explicit_write_region lists the region's number. The buffer is marked,
 *           and so is what is made of it from then on.
 * Forward:  nothing dies.
 * Unsafe: what any block touches outside of its regions of the buffer is overlooked from then on. */
#include "buffer.h"
#include "tir/index_map.h"

#include <string.h>

static bool check_annotate_buffer_access(struct tir *ir, tir_block block, uint32_t buffer_index, bool write,
                                         const struct tir_index_map *map, ms_error *err) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  struct tir_span span = write ? r->writes : r->reads;
  tir_block scope;
  if (!tir_find_scope(ir, block, &scope, err) || !tir_check_region_number(ir, block, buffer_index, write, err))
    return false;
  uint32_t rank = tir_buffer_at(ir, ir->regions.at[span.first + buffer_index].buffer)->rank;
  if (map->param_count != r->iters.count || map->result_count != 2 * rank)
    return tir_refuse(
        ir, err, MS_REGION_MAP, block,
        "the map gives %u bounds of %u indices; block `%s` has %u iterations, and the buffer %u dimensions",
        map->result_count, map->param_count, tir_block_name(ir, block), r->iters.count, rank);
  return true;
}

static struct tir_region region_of_map(struct tir *ir, tir_block block, tir_buffer buffer,
                                       const struct tir_index_map *map) {
  tir_expr iters[TIR_MOST_MAP_RANK], ranges[2 * TIR_MOST_EDITED_RANK];
  for (uint32_t i = 0; i < map->param_count; i++) iters[i] = tir_var_expr(ir, tir_iters(ir, block)[i].var);
  tir_map_indices(ir, map, iters, ranges);
  for (uint32_t i = 0; i < map->result_count; i += 2) {
    tir_expr begin = ranges[i], end = ranges[i + 1];
    ranges[i + 1] = begin == end ? tir_int(ir, tir_type_of(ir, begin), 1) : tir_sub(ir, end, begin);
  }
  return tir_new_region(ir, buffer, ranges);
}

enum { MOST_READERS = 64 };

/* Blocks of the scope that read the buffer; all that a write region concerns. */
static uint32_t find_readers(const struct tir *ir, tir_buffer buffer, tir_block scope, tir_block *out) {
  uint32_t count = 0;
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u && count < MOST_READERS; u = ir->uses.at[u].next)
    if (tir_scope_of(ir, ir->uses.at[u].block) == scope) out[count++] = ir->uses.at[u].block;
  return count;
}

/* Tries the region in the place of the block's, and puts that back. */
static bool check_cover(struct tir *ir, tir_block block, uint32_t at, bool write, struct tir_region region,
                        ms_error *err) {
  tir_block readers[MOST_READERS] = {block}, scope = tir_scope_of(ir, block), breach = TIR_NONE;
  uint32_t count = write ? find_readers(ir, region.buffer, scope, readers) : 1;
  bool covered[MOST_READERS];
  for (uint32_t i = 0; i < count; i++) covered[i] = tir_reads_are_covered(ir, readers[i], scope);
  struct tir_region old = ir->regions.at[at];
  ir->regions.at[at] = region;
  for (uint32_t i = 0; i < count && !breach; i++)
    if (covered[i] && !tir_reads_are_covered(ir, readers[i], scope)) breach = readers[i];
  ir->regions.at[at] = old;
  if (!breach) return true;
  return tir_refuse(ir, err, MS_REGION_NOT_COVERED, breach,
                    "block `%s` would read more of `%s` than the regions say is written", tir_block_name(ir, breach),
                    tir_buffer_name(ir, region.buffer));
}

static void note_region(struct tir *ir, tir_block block, const char *key, uint32_t buffer_index) {
  enum { MOST_NOTED = 64 };
  tir_expr items[MOST_NOTED], noted = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, key);
  uint32_t count = 0;
  if (noted && tir_at(ir, noted)->kind == TIR_LIST)
    for (; count < tir_at(ir, noted)->count && count < MOST_NOTED - 1; count++) {
      items[count] = ir->operands.at[tir_at(ir, noted)->operands + count];
      if (tir_is_const(ir, items[count], buffer_index)) return;
    }
  items[count++] = tir_int(ir, TIR_T_I32, buffer_index);
  tir_symbol symbol = tir_symbol_of(ir, key);
  tir_expr list = tir_list_value(ir, items, count);
  struct tir_span span = tir_stmt_at(ir, block)->annotations;
  tir_annotate_span(ir, &span, symbol, list);
  tir_stmt_at(ir, block)->annotations = span;
}

static void edit_annotate_buffer_access(struct tir *ir, tir_block block, uint32_t buffer_index, bool write,
                                        struct tir_region region) {
  struct tir_span span = tir_regions(ir, block, write);
  uint32_t first = tir_grow_regions(ir, span.count);
  memcpy(ir->regions.at + first, ir->regions.at + span.first, span.count * sizeof region);
  ir->regions.at[first + buffer_index] = region;
  (write ? tir_set_writes : tir_set_reads)(ir, block, ir->regions.at + first, span.count);
  note_region(ir, block, write ? "explicit_write_region" : "explicit_read_region", buffer_index);
  tir_buffer_at(ir, region.buffer)->user_annotated = 1;
}

bool tir_annotate_buffer_access(struct tir *ir, tir_block block, uint32_t buffer_index, bool write,
                                const struct tir_index_map *map, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_mark mark = tir_mark(ir);
  if (!check_annotate_buffer_access(ir, block, buffer_index, write, map, err)) return false;
  uint32_t at = (tir_regions(ir, block, write)).first + buffer_index;
  struct tir_region region = region_of_map(ir, block, ir->regions.at[at].buffer, map);
  if (!tir_rewind_unless(ir, &mark, check_cover(ir, block, at, write, region, err))) return false;
  edit_annotate_buffer_access(ir, block, buffer_index, write, region);
  return true;
}
