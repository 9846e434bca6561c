/* Inlining: checks, the removal of a block, and the regions of those that take over its work. */
#include "inline.h"

#include "../detect.h"
#include "../loads.h"

#include <stdlib.h>

/* ---- Checks ---- */

bool tir_check_inlined_scope(struct tir *ir, tir_block block, tir_block *scope, ms_error *err) {
  if (tir_stmt_at(ir, block)->first[TIR_INIT])
    return tir_refuse(ir, err, MS_BLOCK_HAS_INIT, block, "block `%s` has an init", tir_block_name(ir, block));
  *scope = tir_scope_of(ir, block);
  if (!*scope) return tir_refuse(ir, err, MS_ROOT_BLOCK, block, "block `%s` is in no scope", tir_block_name(ir, block));
  return tir_check_stage_pipeline(ir, *scope, err);
}

bool tir_check_not_output(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  if (!tir_is_output_block(ir, block, scope)) return true;
  return tir_refuse(ir, err, MS_OUTPUT_BLOCK, block, "block `%s` writes an output of `%s`", tir_block_name(ir, block),
                    tir_block_name(ir, scope));
}

/* The block, or the outermost statement that holds nothing else. */
static tir_stmt top_of_leaf(const struct tir *ir, tir_block block) {
  tir_stmt s = block;
  for (;;) {
    tir_stmt parent = tir_stmt_at(ir, s)->parent;
    const struct tir_stmt_node *n = tir_stmt_at(ir, parent), *c = tir_stmt_at(ir, s);
    if (n->kind == TIR_BLOCK || c->prev || c->next || n->first[!c->list]) return s;
    s = parent;
  }
}

bool tir_check_not_only_block(struct tir *ir, tir_block block, ms_error *err) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, top_of_leaf(ir, block));
  if (n->prev || n->next || !tir_is(ir, n->parent, TIR_BLOCK)) return true;
  return tir_refuse(ir, err, MS_ONLY_BLOCK_IN_SCOPE, block, "block `%s` is all there is in `%s`",
                    tir_block_name(ir, block), tir_block_name(ir, n->parent));
}

static bool uses_opaquely(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_opaquely(ir, e, *(const tir_buffer *)context);
}

static bool matches_part_of(const struct tir *ir, tir_block block, tir_buffer buffer) {
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    if (ir->matches.at[i].source.buffer == buffer) return true;
  return false;
}

bool tir_check_no_opaque_access(struct tir *ir, tir_buffer buffer, tir_block block, ms_error *err) {
  uint32_t lists[] = {tir_buffer_at(ir, buffer)->readers, tir_buffer_at(ir, buffer)->writers};
  for (int i = 0; i < 2; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next) {
      tir_block user = ir->uses.at[u].block;
      if (user == block) continue;
      if (matches_part_of(ir, user, buffer) || tir_any_own_expr(ir, user, uses_opaquely, &buffer))
        return tir_refuse(ir, err, MS_OPAQUE_ACCESS, user,
                          "block `%s` uses buffer `%s` as a whole or through its pointer", tir_block_name(ir, user),
                          tir_text(ir, tir_buffer_at(ir, buffer)->name));
    }
  return true;
}

tir_stmt tir_only_store(const struct tir *ir, tir_block block) {
  tir_stmt s = tir_only_child(ir, block);
  return s && tir_is(ir, s, TIR_STORE) && !tir_stmt_at(ir, s)->store.predicate ? s : TIR_NONE;
}

/* ---- Edits ---- */

void tir_kill_leaf(struct tir *ir, tir_block block) { tir_kill(ir, top_of_leaf(ir, block)); }

static bool names(const struct tir_region *regions, uint32_t count, tir_buffer buffer) {
  for (uint32_t i = 0; i < count; i++)
    if (regions[i].buffer == buffer) return true;
  return false;
}

static struct tir_region whole_region(struct tir *ir, tir_buffer buffer) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, shape = tir_buffer_at(ir, buffer)->shape;
  uint32_t first = tir_grow_operands(ir, 2 * rank);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr extent = ir->operands.at[shape + i], zero = tir_int(ir, tir_type_of(ir, extent), 0);
    ir->operands.at[first + 2 * i] = zero;
    ir->operands.at[first + 2 * i + 1] = extent;
  }
  return (struct tir_region){buffer, first};
}

/* The declared regions without those of `buffer`; of each buffer in `instead`, the whole. */
static void replace_region(struct tir *ir, tir_block block, tir_buffer buffer, struct tir_span instead, bool write) {
  struct tir_span old = write ? tir_block_at(ir, block)->writes : tir_block_at(ir, block)->reads;
  struct tir_region *made = malloc(((size_t)old.count + instead.count + 1) * sizeof *made);
  if (!made) abort();
  uint32_t count = 0, kept;
  bool dropped = false;
  for (uint32_t i = 0; i < old.count; i++) {
    struct tir_region r = ir->regions.at[old.first + i];
    dropped |= r.buffer == buffer;
    if (r.buffer != buffer && !names(ir->regions.at + instead.first, instead.count, r.buffer)) made[count++] = r;
  }
  kept = count;
  for (uint32_t i = 0; dropped && i < instead.count; i++) {
    tir_buffer b = ir->regions.at[instead.first + i].buffer;
    if (!names(made + kept, count - kept, b)) made[count++] = whole_region(ir, b);
  }
  if (dropped && write) tir_set_writes(ir, block, made, count);
  if (dropped && !write) tir_set_reads(ir, block, made, count);
  free(made);
}

void tir_renew_regions(struct tir *ir, tir_block block, tir_buffer buffer, tir_block instead) {
  if (tir_detect_regions(ir, block, true, true)) return;
  replace_region(ir, block, buffer, tir_block_at(ir, instead)->reads, false);
  replace_region(ir, block, buffer, tir_block_at(ir, instead)->writes, true);
}
