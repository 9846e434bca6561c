/* What stands between a moved block and blocks that use the same buffer without telling so, or inside of a block that
 * does not. They keep their order with it; as they are in no region, what the block has to provide for them is all that
 * it has. */
#include "../analysis/analysis.h"
#include "move_domain.h"

/* The child of the loop that `s` is in, or TIR_NONE. */
static tir_stmt child_around(const struct tir *ir, tir_stmt s, tir_loop loop) {
  while (s && tir_stmt_at(ir, s)->parent != loop) s = tir_stmt_at(ir, s)->parent;
  return s;
}

bool tir_move_comes_before(const struct tir *ir, const struct tir_move *move, tir_stmt other) {
  tir_stmt child = child_around(ir, other, move->loop);
  if (!child) return tir_compare_position(ir, other, move->loop) < 0;
  return !move->before || tir_compare_position(ir, child, move->before) < 0;
}

static bool loops_between(const struct tir *ir, tir_stmt s, tir_stmt high) {
  for (; s != high; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) != 1) return true;
  return false;
}

/* The new place shares a loop with the other block that the old one does not, or the other way round. */
static bool shares_otherwise(const struct tir *ir, const struct tir_move *move, tir_block other) {
  tir_stmt now = tir_lowest_common_ancestor(ir, other, move->block);
  tir_stmt then = tir_lowest_common_ancestor(ir, other, move->loop);
  return tir_is_below(ir, then, now) ? loops_between(ir, then, now) : loops_between(ir, now, then);
}

bool tir_move_runs_all(struct tir *ir, const struct tir_move *move) {
  for (uint32_t i = 0; i < move->iter_count; i++)
    if (!tir_move_runs_whole(ir, move, i)) return false;
  return true;
}

static bool keeps(struct tir *ir, void *context, tir_block other, struct tir_access own, struct tir_access its) {
  const struct tir_move *move = context;
  if (other == move->block || tir_is_below(ir, other, move->block)) return true;
  bool before = tir_compare_position(ir, other, move->block) < 0;
  if (tir_move_comes_before(ir, move, other) != before || (own.writes && its.writes)) return false;
  bool shares = shares_otherwise(ir, move, other);
  if (before || !own.writes || !its.reads || (own.reads && its.writes)) return !shares;
  if (tir_move_runs_all(ir, move) || (!move->to_consumers && !shares)) return true;
  tir_stmt around = tir_lowest_common_ancestor(ir, other, move->loop);
  return !shares && around != move->loop && !tir_is_below(ir, around, move->loop) &&
         tir_move_runs_through(ir, move, around);
}

struct check {
  struct tir_move *move;
  ms_error *err;
};

static bool check_keeps(struct tir *ir, void *context, tir_block other, struct tir_access own, struct tir_access its) {
  const struct check *c = context;
  if (keeps(ir, c->move, other, own, its)) return true;
  return tir_refuse(ir, c->err, MS_ACCESS_NOT_TOLD, other,
                    "under that loop block `%s` would not do for block `%s`, with which it shares a buffer: one of "
                    "them does not tell so",
                    tir_block_name(ir, c->move->block), tir_block_name(ir, other));
}

/* What the block itself does with the buffer, as it tells; who tells too is no concern of others. */
static bool check_silent(struct tir *ir, void *context, struct tir_silent_use use) {
  const struct check *c = context;
  struct tir_block_record *r = tir_block_at(ir, c->move->block);
  struct tir_access own = {.reads = tir_has_region_of(ir, r->reads, use.buffer),
                           .writes = tir_has_region_of(ir, r->writes, use.buffer)};
  struct tir_access its = {.reads = !use.writes, .writes = use.writes};
  if (!own.writes && !its.writes) return true;
  return keeps(ir, c->move, use.user, own, its) || tir_refuse_silent_use(ir, use, c->err);
}

static bool each_silent_use(struct tir *ir, const struct tir_move *move, const struct tir_silent_visitor *visitor) {
  struct tir_span regions[] = {tir_block_at(ir, move->block)->reads, tir_block_at(ir, move->block)->writes};
  for (int w = 0; w < 2; w++)
    for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++)
      if (!tir_each_silent_use(ir, ir->regions.at[i].buffer, move->scope, visitor)) return false;
  return true;
}

static bool find_any(struct tir *ir, void *context, struct tir_silent_use use) {
  (void)ir, (void)context, (void)use;
  return false;
}

bool tir_move_has_silent(struct tir *ir, const struct tir_move *move) {
  return !each_silent_use(ir, move, &(struct tir_silent_visitor){find_any, NULL});
}

bool tir_move_check_untold(struct tir *ir, struct tir_move *move, ms_error *err) {
  struct check c = {move, err};
  return each_silent_use(ir, move, &(struct tir_silent_visitor){check_silent, &c}) &&
         tir_each_untold_conflict(ir, move->block, move->scope, &(struct tir_conflict_visitor){check_keeps, &c});
}

/* A consumer that does not tell comes after the new place, as those do that tell. */
static bool limit_place(struct tir *ir, void *context, tir_block other, struct tir_access own, struct tir_access its) {
  struct tir_move *move = context;
  tir_stmt child = child_around(ir, other, move->loop);
  if (!child || !own.writes || !its.reads || tir_compare_position(ir, other, move->block) < 0) return true;
  if (!move->untold || tir_compare_position(ir, child, move->untold) < 0) move->untold = child;
  return true;
}

tir_stmt tir_move_find_untold(struct tir *ir, struct tir_move *move) {
  struct tir_conflict_visitor visitor = {limit_place, move};
  move->untold = TIR_NONE;
  tir_each_untold_conflict(ir, move->block, move->scope, &visitor);
  return move->untold;
}
