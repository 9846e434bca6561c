/* Uses of one buffer by two blocks, one of which writes it, where one of them does not tell in its regions what it
 * does: such as index computations that are stored, and what was hidden on request. Nothing that goes by regions sees
 * them, so that who moves a block asks for them. */
#include "analysis.h"
#include "loads.h"

bool tir_shares_loop(const struct tir *ir, tir_stmt a, tir_stmt b, tir_block scope) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK));
  for (tir_stmt s = tir_lowest_common_ancestor(ir, a, b); s != scope; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) != 1) return true;
  return false;
}

static bool uses(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_buffer(ir, e, *(const tir_buffer *)context);
}

static bool uses_opaquely(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_opaquely(ir, e, *(const tir_buffer *)context);
}

static bool is_data_of(struct tir *ir, void *context, tir_expr e) {
  return uses_opaquely(ir, context, e) && (tir_at(ir, e)->flags & TIR_HAS_CALL);
}

static bool stores_to(const struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = tir_next(ir, block, block); s;) {
    if (tir_is(ir, s, TIR_STORE) && tir_stmt_at(ir, s)->store.buffer == buffer) return true;
    s = tir_is(ir, s, TIR_BLOCK) ? tir_after(ir, s, block) : tir_next(ir, s, block);
  }
  return false;
}

struct tir_access tir_access_of(struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_block_record *r = tir_block_at(ir, block);
  struct tir_access use = {.tells_reads = tir_has_region_of(ir, r->reads, buffer),
                           .tells_writes = tir_has_region_of(ir, r->writes, buffer)};
  bool told = use.tells_reads || use.tells_writes; /* of what it does through a pointer or a match, all there is */
  bool opaque = tir_matches_part_of(ir, block, buffer) || tir_any_own_expr(ir, block, is_data_of, &buffer);
  if (opaque) {
    use.reads = !told || use.tells_reads;
    use.writes = !told || use.tells_writes;
  }
  use.writes |= stores_to(ir, block, buffer);
  use.reads |= !opaque && tir_any_own_expr(ir, block, uses, &buffer);
  use.tells_reads |= use.tells_writes && tir_stmt_at(ir, block)->first[TIR_INIT]; /* its own result, so far */
  return use;
}

/* A read and a write, or two writes, one of which is not told. */
static bool is_untold_conflict(struct tir_access a, struct tir_access b) {
  if (a.writes && b.writes && !(a.tells_writes && b.tells_writes)) return true;
  if (a.writes && b.reads && !(a.tells_writes && b.tells_reads)) return true;
  return a.reads && b.writes && !(a.tells_reads && b.tells_writes);
}

static bool visit_users(struct tir *ir, tir_block block, tir_block scope, tir_buffer buffer,
                        const struct tir_conflict_visitor *visitor) {
  struct tir_access own = tir_access_of(ir, block, buffer);
  if (!own.reads && !own.writes) return true;
  for (tir_stmt s = tir_next(ir, scope, scope); s; s = tir_next(ir, s, scope)) {
    if (!tir_is(ir, s, TIR_BLOCK) || s == block) continue;
    struct tir_access its = tir_access_of(ir, s, buffer);
    if (is_untold_conflict(own, its) && !visitor->visit(ir, visitor->context, s, own, its)) return false;
  }
  return true;
}

bool tir_may_hide(const struct tir *ir, tir_block block, tir_block scope) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  if ((tir_block_at(ir, block)->facts | tir_block_at(ir, scope)->facts) & (TIR_BLOCK_HIDES | TIR_HIDDEN_INSIDE))
    return true;
  struct tir_span regions[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  for (int w = 0; w < 2; w++)
    for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++)
      if (tir_may_be_hidden(ir, ir->regions.at[i].buffer)) return true;
  return false;
}

bool tir_each_untold_conflict(struct tir *ir, tir_block block, tir_block scope,
                              const struct tir_conflict_visitor *visitor) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  for (tir_stmt s = block; s; s = tir_next(ir, s, block)) {
    if (!tir_is(ir, s, TIR_BLOCK) || !tir_may_hide(ir, s, scope)) continue;
    for (tir_buffer b = 1; b < ir->buffers.count; b++)
      if (!visit_users(ir, s, scope, b, visitor)) return false;
  }
  return true;
}

static bool refuse(struct tir *ir, void *context, tir_block other, struct tir_access own, struct tir_access its) {
  (void)own, (void)its;
  return tir_refuse(ir, context, MS_ACCESS_NOT_TOLD, other, "block `%s` shares a buffer with another, untold",
                    tir_block_name(ir, other));
}

bool tir_check_no_untold_conflict(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  struct tir_conflict_visitor visitor = {refuse, err};
  return tir_each_untold_conflict(ir, block, scope, &visitor);
}

void tir_hide_buffer(struct tir *ir, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  tir_stmt where = tir_buffer_at(ir, buffer)->where;
  if (where && tir_is(ir, where, TIR_BLOCK)) tir_block_at(ir, where)->facts |= TIR_HIDDEN_INSIDE;
  uint32_t lists[] = {tir_buffer_at(ir, buffer)->readers, tir_buffer_at(ir, buffer)->writers};
  for (int i = 0; i < 2; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next)
      tir_block_at(ir, ir->uses.at[u].block)->facts |= TIR_BLOCK_HIDES;
}
