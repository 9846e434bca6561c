/* What a reduction reads of its own output. Modules of older TVM list it among the reads, today's leave it out; where
 * the init writes it all first, both are the same block. What the init may not have begun is read from before. */
#include "analysis.h"
#include "loads.h"

enum { MOST_LOOPS = 32, MOST_RANK = 16 };

/* Statements of the init in turn, not those in its blocks; NULL: none is left. */
static tir_stmt next_of_init(const struct tir *ir, tir_block block, tir_stmt s) {
  s = tir_next_in_scope(ir, s, block);
  tir_stmt top = s;
  while (top && tir_stmt_at(ir, top)->parent != block) top = tir_stmt_at(ir, top)->parent;
  return top && tir_stmt_at(ir, top)->list == TIR_INIT ? s : TIR_NONE;
}

/* The init is made of loops, stores and blocks, and loads nothing of the buffer. */
static bool only_writes(struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = next_of_init(ir, block, s)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    switch (n->kind) {
    case TIR_LOOP: break;
    case TIR_STORE:
      if (tir_uses_buffer(ir, n->store.value, buffer)) return false;
      break;
    case TIR_BLOCK:
      if (tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer)) return false;
      break;
    default: return false;
    }
  }
  return true;
}

/* The box that the statement, a store or a block, surely writes while the loops around it in the init run. */
static bool find_written(struct tir *ir, tir_block block, tir_stmt s, tir_buffer buffer, struct tir_interval *out) {
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  tir_expr ranges[2 * MOST_RANK];
  tir_var vars[MOST_LOOPS];
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, count = tir_loop_vars(ir, s, block, vars, MOST_LOOPS);
  if (n.kind == TIR_BLOCK) {
    const struct tir_region *region = tir_region_of(ir, tir_block_at(ir, s)->writes, buffer);
    return region && tir_exact_region_from(ir, s, *region, block, TIR_NONE, out);
  }
  if (n.kind != TIR_STORE || n.store.buffer != buffer || count > MOST_LOOPS) return false;
  tir_point_ranges(ir, tir_operands(ir, n.store.indices), rank, ranges);
  return tir_region_exact(ir, ranges, rank, vars, count, TIR_NONE, out);
}

/* One statement of the init writes all that the region holds. */
static bool init_covers(struct tir *ir, tir_block block, struct tir_region region) {
  struct tir_interval read[MOST_RANK], written[MOST_RANK];
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++)
    read[d] = tir_interval_of(ir, ir->operands.at[region.ranges + 2 * d], ir->operands.at[region.ranges + 2 * d + 1]);
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = next_of_init(ir, block, s))
    if (find_written(ir, block, s, region.buffer, written) && tir_region_covers(ir, region.buffer, written, read))
      return true;
  return false;
}

static bool loads(struct tir *ir, void *context, tir_expr e) { return tir_uses_buffer(ir, e, *(tir_buffer *)context); }

/* The block, or one in it, has a load of the buffer. */
static bool loads_of(struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block))
    if (tir_is(ir, s, TIR_BLOCK) && tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer)) return true;
  return tir_any_own_expr(ir, block, loads, &buffer);
}

bool tir_reads_from_before(struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span reads = tir_block_at(ir, block)->reads;
  bool declared = tir_has_region_of(ir, reads, buffer);
  if (tir_updates_unbegun(ir, block) && (declared || loads_of(ir, block, buffer))) return true;
  if (!declared) return false;
  if (tir_buffer_at(ir, buffer)->rank > MOST_RANK || !only_writes(ir, block, buffer)) return true;
  for (uint32_t i = reads.first; i < reads.first + reads.count; i++)
    if (ir->regions.at[i].buffer == buffer && !init_covers(ir, block, ir->regions.at[i])) return true;
  return false;
}
