/* Blocks: their records, and the lists kept of them: by name, and by buffer read or written. */
#include "tir/analysis/analysis.h"

#include <string.h>

tir_block tir_new_block(struct tir *ir, tir_symbol name) {
  tir_block b = tir_new_stmt(ir, TIR_BLOCK);
  uint32_t record = tir_grow_blocks(ir, 1);
  memset(&ir->blocks.at[record], 0, sizeof(struct tir_block_record));
  ir->blocks.at[record].block = b;
  tir_as(ir, b, TIR_BLOCK)->block.record = record;
  tir_set_block_name(ir, b, name);
  return b;
}

void tir_set_block_name(struct tir *ir, tir_block b, tir_symbol name) {
  MS_CHECK(tir_is(ir, b, TIR_BLOCK));
  struct tir_block_record *record = tir_block_at(ir, b);
  if (record->name) {
    tir_block *link = &ir->symbols.at[record->name].first_block;
    while (*link != b) link = &tir_block_at(ir, *link)->next_same_name;
    *link = record->next_same_name;
  }
  record->name = name;
  record->next_same_name = TIR_NONE;
  if (name) {
    record->next_same_name = ir->symbols.at[name].first_block;
    ir->symbols.at[name].first_block = b;
  }
}

/* A copy of a block's record for `copy`, whose statement is a copy of `from`'s. */
void tir_copy_block_record(struct tir *ir, tir_block from, tir_block copy) {
  MS_CHECK(tir_is(ir, from, TIR_BLOCK) && tir_is(ir, copy, TIR_BLOCK));
  struct tir_block_record r = *tir_block_at(ir, from);
  uint32_t record = tir_grow_blocks(ir, 1);
  ir->blocks.at[record] = (struct tir_block_record){.block = copy};
  tir_as(ir, copy, TIR_BLOCK)->block.record = record;
  tir_set_block_name(ir, copy, r.name);
  tir_set_iters(ir, copy, ir->iters.at + r.iters.first, r.iters.count);
  tir_set_reads(ir, copy, ir->regions.at + r.reads.first, r.reads.count);
  tir_set_writes(ir, copy, ir->regions.at + r.writes.first, r.writes.count);
  tir_set_matches(ir, copy, ir->matches.at + r.matches.first, r.matches.count);
  uint32_t allocs = tir_add_operands(ir, ir->operands.at + r.allocs.first, r.allocs.count);
  tir_block_at(ir, copy)->allocs = (struct tir_span){allocs, r.allocs.count};
}

void tir_set_iters(struct tir *ir, tir_block b, const struct tir_iter *iters, uint32_t count) {
  MS_CHECK(!count || iters);
  MS_CHECK(tir_is(ir, b, TIR_BLOCK));
  tir_block_at(ir, b)->iters = (struct tir_span){tir_append_iters(ir, iters, count), count};
}

void tir_set_matches(struct tir *ir, tir_block b, const struct tir_match *matches, uint32_t count) {
  MS_CHECK(!count || matches);
  MS_CHECK(tir_is(ir, b, TIR_BLOCK));
  tir_block_at(ir, b)->matches = (struct tir_span){tir_append_matches(ir, matches, count), count};
}

/* ---- Readers and writers ---- */

static uint32_t *head_of(struct tir *ir, tir_buffer buffer, bool writes) {
  struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  return writes ? &n->writers : &n->readers;
}

static void unlink_use(struct tir *ir, uint32_t *link, tir_block b) {
  while (*link && ir->uses.at[*link].block != b) link = &ir->uses.at[*link].next;
  if (*link) *link = ir->uses.at[*link].next;
}

/* A block stands once in a buffer's list, however many of its regions name the buffer. */
static void add_use(struct tir *ir, tir_buffer buffer, tir_block b, bool writes) {
  for (uint32_t u = *head_of(ir, buffer, writes); u; u = ir->uses.at[u].next)
    if (ir->uses.at[u].block == b) return;
  uint32_t use = tir_grow_uses(ir, 1);
  uint32_t *head = head_of(ir, buffer, writes);
  ir->uses.at[use] = (struct tir_use){b, *head, 0};
  *head = use;
}

void tir_forget_undeclared(struct tir *ir, tir_block b) {
  if (ir->undeclared != TIR_SOME_UNDECLARED) return;
  for (tir_buffer buffer = 1; buffer < ir->buffers.count; buffer++)
    unlink_use(ir, &tir_buffer_at(ir, buffer)->undeclared, b);
}

static struct tir_span set_regions(struct tir *ir, tir_block b, struct tir_span old, const struct tir_region *regions,
                                   uint32_t count, bool writes) {
  for (uint32_t i = 0; i < old.count; i++) unlink_use(ir, head_of(ir, ir->regions.at[old.first + i].buffer, writes), b);
  uint32_t first = tir_append_regions(ir, regions, count);
  for (uint32_t i = 0; i < count; i++) add_use(ir, ir->regions.at[first + i].buffer, b, writes);
  return (struct tir_span){first, count};
}

void tir_set_reads(struct tir *ir, tir_block b, const struct tir_region *regions, uint32_t count) {
  MS_CHECK(tir_is(ir, b, TIR_BLOCK));
  struct tir_span span = set_regions(ir, b, tir_block_at(ir, b)->reads, regions, count, false);
  tir_block_at(ir, b)->reads = span;
}

void tir_set_writes(struct tir *ir, tir_block b, const struct tir_region *regions, uint32_t count) {
  MS_CHECK(tir_is(ir, b, TIR_BLOCK));
  struct tir_span span = set_regions(ir, b, tir_block_at(ir, b)->writes, regions, count, true);
  tir_block_at(ir, b)->writes = span;
}

struct tir_region tir_new_region(struct tir *ir, tir_buffer buffer, const tir_expr *ranges) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  return (struct tir_region){buffer, tir_add_operands(ir, ranges, 2 * tir_buffer_at(ir, buffer)->rank)};
}

/* ---- Allocations and annotations ---- */

void tir_add_alloc(struct tir *ir, tir_block b, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, b, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span old = tir_block_at(ir, b)->allocs;
  uint32_t first = tir_grow_operands(ir, old.count + 1);
  if (old.count) memcpy(ir->operands.at + first, ir->operands.at + old.first, old.count * sizeof(uint32_t));
  ir->operands.at[first + old.count] = buffer;
  tir_block_at(ir, b)->allocs = (struct tir_span){first, old.count + 1};
  tir_buffer_at(ir, buffer)->where = b;
}

void tir_remove_alloc(struct tir *ir, tir_block b, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, b, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span old = tir_block_at(ir, b)->allocs;
  uint32_t first = tir_grow_operands(ir, old.count), count = 0;
  for (uint32_t i = 0; i < old.count; i++)
    if (ir->operands.at[old.first + i] != buffer) ir->operands.at[first + count++] = ir->operands.at[old.first + i];
  tir_block_at(ir, b)->allocs = (struct tir_span){first, count};
}

void tir_annotate_span(struct tir *ir, struct tir_span *span, tir_symbol key, tir_expr value) {
  MS_CHECK(key && key < ir->symbols.count);
  struct tir_span old = *span;
  uint32_t first = tir_grow_annotations(ir, old.count + 1), count = 0;
  const char *text = tir_text(ir, key);
  bool placed = value == TIR_NONE;
  for (uint32_t i = 0; i < old.count; i++) {
    struct tir_annotation a = ir->annotations.at[old.first + i];
    if (a.key == key) continue;
    if (!placed && strcmp(text, tir_text(ir, a.key)) < 0) {
      ir->annotations.at[first + count++] = (struct tir_annotation){key, value};
      placed = true;
    }
    ir->annotations.at[first + count++] = a;
  }
  if (!placed) ir->annotations.at[first + count++] = (struct tir_annotation){key, value};
  *span = (struct tir_span){first, count};
}

struct tir_span tir_copy_annotations(struct tir *ir, struct tir_span from) {
  if (!from.count) return (struct tir_span){0};
  uint32_t first = tir_grow_annotations(ir, from.count);
  memcpy(ir->annotations.at + first, ir->annotations.at + from.first, from.count * sizeof(struct tir_annotation));
  return (struct tir_span){first, from.count};
}
