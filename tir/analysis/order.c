#include "order.h"

#include "analysis.h"

/* ---- Places ---- */

tir_stmt tir_child_around(const struct tir *ir, tir_stmt s, tir_loop loop) {
  while (s && tir_stmt_at(ir, s)->parent != loop) s = tir_stmt_at(ir, s)->parent;
  return s;
}

bool tir_comes_before(const struct tir *ir, const struct tir_transfer *t, tir_stmt other) {
  MS_CHECK(t->to && (!t->before || tir_stmt_at(ir, t->before)->parent == t->to));
  tir_stmt child = tir_is(ir, t->to, TIR_LOOP) ? tir_child_around(ir, other, t->to) : TIR_NONE;
  if (!child) return tir_compare_position(ir, other, t->to) < 0;
  return !t->before || tir_compare_position(ir, child, t->before) < 0;
}

/* A loop of more than one iteration is among the statements from `s` up to `high`. */
static bool loops_between(const struct tir *ir, tir_stmt s, tir_stmt high) {
  for (; s != high; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) != 1) return true;
  return false;
}

bool tir_shares_loop(const struct tir *ir, tir_stmt a, tir_stmt b, tir_block scope) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK));
  return loops_between(ir, tir_lowest_common_ancestor(ir, a, b), scope);
}

/* The block runs at the new place in the same iterations of the loops that it shares with the other as now, as far as
 * it is in the same ones there. */
static bool shares_the_same(const struct tir *ir, const struct tir_transfer *t, tir_block other) {
  if (!t->keeps_iterations)
    return !tir_shares_loop(ir, other, t->block, t->scope) && !tir_shares_loop(ir, other, t->to, t->scope);
  tir_stmt now = tir_lowest_common_ancestor(ir, other, t->block);
  tir_stmt then = tir_lowest_common_ancestor(ir, other, t->to);
  return !(tir_is_below(ir, then, now) ? loops_between(ir, then, now) : loops_between(ir, now, then));
}

/* ---- Order ---- */

/* At each of its readers, which come after it: those are served whether they declare it or not. One in a block that
 * does not declare it may read what other iterations of a loop around both write. */
static bool keeps_at_readers(const struct tir *ir, const struct tir_transfer *t, const struct tir_conflict *c,
                             bool before) {
  bool apart = !tir_shares_loop(ir, c->other.block, t->block, t->scope);
  return before ? !c->own.writes && apart : !c->other.writes && (apart || !c->other.around);
}

static bool keeps(struct tir *ir, const struct tir_transfer *t, const struct tir_conflict *c) {
  tir_block other = c->other.block;
  if (other == t->block || tir_is_below(ir, other, t->block)) return true;
  bool before = tir_compare_position(ir, other, t->block) < 0;
  if (c->own.writes && c->other.writes) return false;
  if (!t->to) return keeps_at_readers(ir, t, c, before);
  if (tir_comes_before(ir, t, other) != before) return false;
  bool same = shares_the_same(ir, t, other), reads_only = c->own.writes && c->other.reads && !c->other.writes;
  if (before || !reads_only || !t->runs_all) return same;
  /* They are in no region: what the block has to provide for them is all that it has. */
  if (t->runs_all(ir, t->context, TIR_NONE)) return true;
  return same && t->runs_all(ir, t->context, tir_lowest_common_ancestor(ir, other, t->to));
}

struct check {
  const struct tir_transfer *transfer;
  ms_error *err;
};

static bool check_one(struct tir *ir, void *context, const struct tir_conflict *c) {
  const struct check *check = context;
  if (keeps(ir, check->transfer, c)) return true;
  bool other_declares = (!c->other.reads || c->other.declares_reads) && (!c->other.writes || c->other.declares_writes);
  tir_block silent = c->other.around ? c->other.around : other_declares ? c->own.block : c->other.block;
  return tir_refuse(ir, check->err, MS_ACCESS_UNDECLARED, c->other.block,
                    "elsewhere block `%s` might not keep its order with block `%s`: both use `%s`, which block `%s` "
                    "does not declare",
                    tir_block_name(ir, check->transfer->block), tir_block_name(ir, c->other.block),
                    tir_text(ir, tir_buffer_at(ir, c->buffer)->name), tir_block_name(ir, silent));
}

bool tir_check_order(struct tir *ir, const struct tir_transfer *transfer, ms_error *err) {
  MS_CHECK(tir_is(ir, transfer->block, TIR_BLOCK) && tir_is(ir, transfer->scope, TIR_BLOCK));
  struct check check = {transfer, err};
  return tir_each_undeclared_conflict(ir, transfer->block, transfer->scope,
                                      &(struct tir_conflict_visitor){check_one, &check});
}

struct limit {
  const struct tir_transfer *transfer;
  tir_stmt first;
};

/* A reader that does not declare it comes after the new place, as those do that declare it. */
static bool find_limit(struct tir *ir, void *context, const struct tir_conflict *c) {
  struct limit *limit = context;
  const struct tir_transfer *t = limit->transfer;
  tir_stmt child = tir_child_around(ir, c->other.block, t->to);
  if (!child || !c->own.writes || !c->other.reads || tir_compare_position(ir, c->other.block, t->block) < 0)
    return true;
  if (!limit->first || tir_compare_position(ir, child, limit->first) < 0) limit->first = child;
  return true;
}

tir_stmt tir_first_to_stay_after(struct tir *ir, const struct tir_transfer *transfer) {
  MS_CHECK(tir_is(ir, transfer->to, TIR_LOOP));
  struct limit limit = {transfer, TIR_NONE};
  tir_each_undeclared_conflict(ir, transfer->block, transfer->scope,
                               &(struct tir_conflict_visitor){find_limit, &limit});
  return limit.first;
}
