/* Inlining: checks, the removal of a block, and the regions of those that take over its work. */
#include "inline.h"

#include "buffer.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/outside.h"

/* ---- Checks ---- */

bool tir_check_inlined_scope(struct tir *ir, tir_block block, tir_block *scope, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  if (tir_stmt_at(ir, block)->first[TIR_INIT])
    return tir_refuse(ir, err, MS_BLOCK_HAS_INIT, block, "block `%s` has an init", tir_block_name(ir, block));
  if (!tir_find_scope(ir, block, scope, err)) return false;
  return tir_check_stage_pipeline(ir, *scope, err);
}

bool tir_check_not_output(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  if (!tir_is_output_block(ir, block, scope)) return true;
  return tir_refuse(ir, err, MS_OUTPUT_BLOCK, block, "block `%s` writes an output of `%s`", tir_block_name(ir, block),
                    tir_block_name(ir, scope));
}

tir_stmt tir_top_of_leaf(const struct tir *ir, tir_block block) {
  assert(tir_is(ir, block, TIR_BLOCK));
  tir_stmt s = block;
  for (;;) {
    tir_stmt parent = tir_stmt_at(ir, s)->parent;
    assert(parent && "the block stands in a scope");
    const struct tir_stmt_node *n = tir_stmt_at(ir, parent), *c = tir_stmt_at(ir, s);
    if (n->kind == TIR_BLOCK || c->prev || c->next || n->first[!c->list]) return s;
    s = parent;
  }
}

bool tir_check_not_only_block(struct tir *ir, tir_block block, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  const struct tir_stmt_node *n = tir_stmt_at(ir, tir_top_of_leaf(ir, block));
  if (n->prev || n->next || !tir_is(ir, n->parent, TIR_BLOCK)) return true;
  return tir_refuse(ir, err, MS_ONLY_BLOCK_IN_SCOPE, block, "block `%s` is all there is in `%s`",
                    tir_block_name(ir, block), tir_block_name(ir, n->parent));
}

bool tir_check_only_reader(const struct tir *ir, tir_buffer buffer, tir_block reader, tir_block except, ms_error *err) {
  assert(tir_is_buffer(ir, buffer) && tir_is(ir, reader, TIR_BLOCK));
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == reader || b == except || tir_is_below(ir, reader, b)) continue;
    return tir_refuse(ir, err, MS_OTHER_CONSUMER, b, "block `%s` reads buffer `%s` too", tir_block_name(ir, b),
                      tir_buffer_name(ir, buffer));
  }
  return true;
}

static bool uses_opaquely(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_opaquely(ir, e, *(const tir_buffer *)context);
}

/* A statement of the block stores to several elements of the buffer at once, or to some of them. */
static bool stores_vectors(const struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind != TIR_STORE || n->store.buffer != buffer) continue;
    if (n->store.predicate) return true;
    for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++)
      if (tir_type_lanes(tir_type_of(ir, ir->operands.at[n->store.indices + d])) != 1) return true;
  }
  return false;
}

static bool check_user(struct tir *ir, tir_buffer buffer, tir_block user, ms_error *err) {
  if (!tir_matches_part_of(ir, user, buffer) && !stores_vectors(ir, user, buffer) &&
      !tir_any_own_expr(ir, user, uses_opaquely, &buffer))
    return true;
  return tir_refuse(ir, err, MS_OPAQUE_ACCESS, user,
                    "block `%s` uses buffer `%s` as a whole, as vectors, or through its pointer",
                    tir_block_name(ir, user), tir_buffer_name(ir, buffer));
}

/* No other buffer is a view of it. */
static bool check_not_viewed(struct tir *ir, tir_buffer buffer, ms_error *err) {
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    struct tir_buffer_node n = *tir_buffer_at(ir, b);
    if (b == buffer || !n.data || !n.where || !tir_is_view(ir, b) || !tir_uses_opaquely(ir, n.data, buffer)) continue;
    return tir_refuse(ir, err, MS_OPAQUE_ACCESS, n.where, "buffer `%s` is a view of `%s`", tir_buffer_name(ir, b),
                      tir_buffer_name(ir, buffer));
  }
  return true;
}

bool tir_check_no_opaque_access(struct tir *ir, tir_buffer buffer, tir_block block, ms_error *err) {
  assert(tir_is_buffer(ir, buffer) && (!block || tir_is(ir, block, TIR_BLOCK)));
  if (!check_not_viewed(ir, buffer, err)) return false;
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  uint32_t lists[] = {n->undeclared, n->readers, n->writers};
  for (int i = 0; i < 3; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next) {
      tir_block user = ir->uses.at[u].block;
      if (user != block && !check_user(ir, buffer, user, err)) return false;
    }
  return true;
}

static bool is_reader(const struct tir *ir, tir_block block, tir_buffer buffer) {
  uint32_t u = tir_buffer_at(ir, buffer)->readers;
  while (u && ir->uses.at[u].block != block) u = ir->uses.at[u].next;
  return u != 0;
}

bool tir_check_no_range_loads(struct tir *ir, tir_buffer buffer, tir_block writer, ms_error *err) {
  assert(tir_is_buffer(ir, buffer) && (!writer || tir_is(ir, writer, TIR_BLOCK)));
  for (uint32_t i = 1; i < ir->blocks.count && ir->indirect; i++) {
    tir_block b = ir->blocks.at[i].block;
    if (!b || !tir_is(ir, b, TIR_BLOCK) || !tir_regions_load(ir, b, buffer) || is_reader(ir, b, buffer)) continue;
    return tir_refuse(ir, err, MS_OPAQUE_ACCESS, b, "where block `%s` reads or writes depends on buffer `%s`",
                      tir_block_name(ir, b), tir_buffer_name(ir, buffer));
  }
  struct tir_outside_use use;
  tir_block scope = writer ? tir_scope_of(ir, writer) : TIR_NONE;
  for (tir_stmt s = TIR_NONE; scope && tir_next_outside_use(ir, scope, buffer, TIR_NONE, s, &use); s = use.at)
    if (use.places || tir_compare_position(ir, use.at, writer) > 0)
      return tir_refuse(ir, err, MS_OPAQUE_ACCESS, use.at, "where blocks run here depends on buffer `%s`",
                        tir_buffer_name(ir, buffer));
  return true;
}

bool tir_check_blocks_only(struct tir *ir, tir_buffer buffer, tir_block scope, bool reads_too, ms_error *err) {
  assert(tir_is_buffer(ir, buffer) && tir_is(ir, scope, TIR_BLOCK));
  struct tir_outside_use use;
  for (tir_stmt s = TIR_NONE; tir_next_outside_use(ir, scope, buffer, TIR_NONE, s, &use); s = use.at)
    if (!use.places && (use.writes || reads_too))
      return tir_refuse(ir, err, use.writes ? MS_SEVERAL_WRITERS : MS_OTHER_CONSUMER, scope,
                        "buffer `%s` is %s in `%s` outside of its blocks", tir_buffer_name(ir, buffer),
                        use.writes ? "stored to" : "read", tir_block_name(ir, scope));
  return true;
}

/* ---- Edits ---- */

void tir_kill_leaf(struct tir *ir, tir_block block) { tir_kill(ir, tir_top_of_leaf(ir, block)); }

void tir_take_leaf(struct tir *ir, tir_block block) {
  tir_stmt top = tir_top_of_leaf(ir, block);
  tir_detach(ir, block);
  if (top != block) tir_kill(ir, top);
}
