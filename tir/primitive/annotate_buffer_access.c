/* Annotate buffer access: a region of a block is what the user says it is.
 *
 * Requires: the block has a region of this number; the map takes as many indices as the block has iterations, and gives
 *           a begin and an end for each dimension of the buffer.
 * After:    the region runs from begin to end (of one element, where they are the same) in each dimension; the block's
 *           annotation explicit_read_region or explicit_write_region lists the region's number.
 * Forward:  nothing dies.
 * Unsafe: what the block touches outside of the region is overlooked from then on. */
#include "cache_stage.h"

#include <string.h>

static bool check(struct tir *ir, tir_block block, uint32_t buffer_index, bool write, const struct tir_index_map *map,
                  ms_error *err) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  struct tir_span span = write ? r->writes : r->reads;
  if (!tir_scope_of(ir, block))
    return tir_refuse(ir, err, MS_ROOT_BLOCK, block, "block `%s` is in no scope", tir_block_name(ir, block));
  if (buffer_index >= span.count)
    return tir_refuse(ir, err, MS_BUFFER_INDEX_OUT_OF_RANGE, block, "block `%s` has %u %s regions: there is no %u",
                      tir_block_name(ir, block), span.count, write ? "write" : "read", buffer_index);
  uint32_t rank = tir_buffer_at(ir, ir->regions.at[span.first + buffer_index].buffer)->rank;
  if (map->param_count != r->iters.count || map->result_count != 2 * rank)
    return tir_refuse(
        ir, err, MS_REGION_MAP, block,
        "the map gives %u bounds of %u indices; block `%s` has %u iterations, and the buffer %u dimensions",
        map->result_count, map->param_count, tir_block_name(ir, block), r->iters.count, rank);
  return true;
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

static void edit(struct tir *ir, tir_block block, uint32_t buffer_index, bool write, const struct tir_index_map *map) {
  tir_expr ranges[16];
  for (uint32_t i = 0; i < map->param_count; i++)
    tir_subst_var(ir, tir_at(ir, map->params[i])->ref, tir_var_expr(ir, tir_iters(ir, block)[i].var));
  for (uint32_t i = 0; i < map->result_count; i += 2) {
    tir_expr begin = tir_subst(ir, map->results[i]), end = tir_subst(ir, map->results[i + 1]);
    ranges[i] = begin;
    ranges[i + 1] = begin == end ? tir_int(ir, tir_type_of(ir, begin), 1) : tir_sub(ir, end, begin);
  }
  tir_subst_clear(ir);
  struct tir_span span = write ? tir_block_at(ir, block)->writes : tir_block_at(ir, block)->reads;
  tir_buffer buffer = ir->regions.at[span.first + buffer_index].buffer;
  struct tir_region region = tir_new_region(ir, buffer, ranges);
  uint32_t first = tir_grow_regions(ir, span.count);
  memcpy(ir->regions.at + first, ir->regions.at + span.first, span.count * sizeof region);
  ir->regions.at[first + buffer_index] = region;
  if (write)
    tir_set_writes(ir, block, ir->regions.at + first, span.count);
  else
    tir_set_reads(ir, block, ir->regions.at + first, span.count);
  note_region(ir, block, write ? "explicit_write_region" : "explicit_read_region", buffer_index);
}

bool tir_annotate_buffer_access(struct tir *ir, tir_block block, uint32_t buffer_index, bool write,
                                const struct tir_index_map *map, ms_error *err) {
  if (!check(ir, block, buffer_index, write, map, err)) return false;
  edit(ir, block, buffer_index, write, map);
  return true;
}
