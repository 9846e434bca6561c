#include "order.h"

#include "iteration_order.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/loads.h"

/* ---- Places ---- */

tir_stmt tir_child_around(const struct tir *ir, tir_stmt s, tir_loop loop) {
  while (s && tir_stmt_at(ir, s)->parent != loop) s = tir_stmt_at(ir, s)->parent;
  return s;
}

bool tir_comes_before(const struct tir *ir, const struct tir_transfer *t, tir_stmt other) {
  MS_CHECK(t->to && (!t->before || tir_stmt_at(ir, t->before)->parent == t->to));
  tir_stmt child = t->before || tir_is(ir, t->to, TIR_LOOP) ? tir_child_around(ir, other, t->to) : TIR_NONE;
  if (!child) return tir_compare_position(ir, other, t->to) < 0;
  return !t->before || tir_compare_position(ir, child, t->before) < 0;
}

tir_block tir_written_later(const struct tir *ir, const struct tir_transfer *t, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u; u = ir->uses.at[u].next) {
    tir_block writer = ir->uses.at[u].block;
    if (!tir_comes_before(ir, t, writer)) return writer;
  }
  return TIR_NONE;
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

bool tir_shares_the_same(const struct tir *ir, const struct tir_transfer *t, tir_stmt other) {
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
  bool apart = !tir_shares_loop(ir, c->other.at, t->block, t->scope);
  return before ? !c->own.writes && apart : !c->other.writes && (apart || !c->other.around);
}

static bool keeps(struct tir *ir, const struct tir_transfer *t, const struct tir_conflict *c) {
  tir_stmt other = c->other.at;
  if (other == t->block || tir_is_below(ir, other, t->block)) return true;
  bool before = tir_compare_position(ir, other, t->block) < 0;
  if (c->own.writes && c->other.writes) return false;
  if (!t->to) return keeps_at_readers(ir, t, c, before);
  if (tir_comes_before(ir, t, other) != before) return false;
  bool same = tir_shares_the_same(ir, t, other), reads_only = c->own.writes && c->other.reads && !c->other.writes;
  if (before || !reads_only || !t->runs_all) return same;
  /* They are in no region: what the block has to provide for them is all that it has. */
  if (t->runs_all(ir, t->context, TIR_NONE)) return true;
  return same && t->runs_all(ir, t->context, tir_lowest_common_ancestor(ir, other, t->to));
}

struct order_check {
  const struct tir_transfer *transfer;
  ms_error *err;
};

static bool check_one(struct tir *ir, void *context, const struct tir_conflict *c) {
  const struct order_check *check = context;
  if (keeps(ir, check->transfer, c)) return true;
  if (c->other.block == check->transfer->scope)
    return tir_refuse(
        ir, check->err, MS_SCOPE_ORDER, check->transfer->block,
        "elsewhere block `%s` would not keep its order with what `%s` does with `%s` outside of its blocks",
        tir_block_name(ir, check->transfer->block), tir_block_name(ir, c->other.block), tir_buffer_name(ir, c->buffer));
  bool other_declares = (!c->other.reads || c->other.declares_reads) && (!c->other.writes || c->other.declares_writes);
  tir_block own = c->own.around ? c->own.around : c->own.block;
  tir_block silent = c->other.around ? c->other.around : other_declares ? own : c->other.block;
  return tir_refuse(ir, check->err, MS_ACCESS_UNDECLARED, c->other.block,
                    "elsewhere block `%s` might not keep its order with block `%s`: both use `%s`, which block `%s` "
                    "does not declare",
                    tir_block_name(ir, check->transfer->block), tir_block_name(ir, c->other.block),
                    tir_buffer_name(ir, c->buffer), tir_block_name(ir, silent));
}

/* ---- Buffers that statements declare ---- */

static bool loads_of(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_buffer(ir, e, *(tir_buffer *)context);
}

static bool uses_declared(struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = block; s; s = tir_next(ir, s, block)) {
    if (tir_is(ir, s, TIR_STORE) && tir_stmt_at(ir, s)->store.buffer == buffer) return true;
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    const struct tir_block_record *r = tir_block_at(ir, s);
    if (tir_has_region_of(ir, r->reads, buffer) || tir_has_region_of(ir, r->writes, buffer)) return true;
    if (tir_any_own_expr(ir, s, loads_of, &buffer)) return true;
  }
  return false;
}

/* What the statement declares is in scope before `before`, or at the end of the loop or in the place of the block. */
static bool is_in_scope(const struct tir *ir, tir_stmt declared, tir_stmt to, tir_stmt before) {
  tir_stmt around = tir_stmt_at(ir, declared)->parent, place = before ? before : to;
  if (around == to) return !before || tir_compare_position(ir, declared, before) < 0;
  return tir_is_below(ir, place, around) && tir_compare_position(ir, declared, place) < 0;
}

static bool is_in_scope_there(const struct tir *ir, const struct tir_transfer *t, tir_stmt declared) {
  if (t->to) return is_in_scope(ir, declared, t->to, t->before);
  struct tir_span writes = tir_block_at(ir, t->block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    for (uint32_t u = tir_buffer_at(ir, ir->regions.at[i].buffer)->readers; u; u = ir->uses.at[u].next)
      if (!is_in_scope(ir, declared, ir->uses.at[u].block, TIR_NONE)) return false;
  return true;
}

/* Views and allocations of the scope that the block uses stand before the new place, too. */
static bool check_declared(struct tir *ir, const struct tir_transfer *t, ms_error *err) {
  for (tir_stmt s = t->block; s != t->scope; s = tir_stmt_at(ir, s)->parent)
    for (tir_stmt d = tir_stmt_at(ir, s)->prev; d; d = tir_stmt_at(ir, d)->prev) {
      if (!tir_is(ir, d, TIR_ALLOC) && !tir_is(ir, d, TIR_DECLARE)) continue;
      tir_buffer buffer = tir_stmt_at(ir, d)->alloc.buffer;
      if (!is_in_scope_there(ir, t, d) && uses_declared(ir, t->block, buffer))
        return tir_refuse(ir, err, MS_MOVE_NOT_IN_SCOPE, t->block, "block `%s` uses `%s`, which is not declared there",
                          tir_block_name(ir, t->block), tir_buffer_name(ir, buffer));
    }
  return true;
}

bool tir_check_order(struct tir *ir, const struct tir_transfer *transfer, ms_error *err) {
  MS_CHECK(tir_is(ir, transfer->block, TIR_BLOCK) && tir_is(ir, transfer->scope, TIR_BLOCK));
  struct order_check check = {transfer, err};
  if (!check_declared(ir, transfer, err)) return false;
  return tir_each_undeclared_conflict(ir, transfer->block, transfer->scope,
                                      &(struct tir_conflict_visitor){check_one, &check});
}

/* ---- Limits ---- */

static void narrow(const struct tir *ir, struct tir_limits *limits, tir_stmt child, bool consumer) {
  tir_stmt *limit = consumer ? &limits->before : &limits->after;
  if (!*limit || (tir_compare_position(ir, child, *limit) < 0) == consumer) *limit = child;
}

bool tir_only_loops_up_to(const struct tir *ir, tir_stmt s, tir_stmt high) {
  MS_CHECK(tir_is_below(ir, s, high));
  for (s = tir_stmt_at(ir, s)->parent; s != high; s = tir_stmt_at(ir, s)->parent)
    if (!tir_is(ir, s, TIR_LOOP)) return false;
  return true;
}

tir_stmt tir_nearest_condition(const struct tir *ir, tir_stmt s, tir_stmt high) {
  MS_CHECK(tir_is_below(ir, s, high));
  for (s = tir_stmt_at(ir, s)->parent; s != high; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_IF) || tir_is(ir, s, TIR_WHILE)) return s;
  return TIR_NONE;
}

enum { MOST_VARIABLES = 48 };
struct variables {
  tir_var at[MOST_VARIABLES];
  uint32_t count;
};

static bool uses_variable(struct tir *ir, void *context, tir_expr e) {
  const struct variables *v = context;
  return tir_uses_any_var(ir, e, v->at, v->count);
}

/* The block itself, or one in it, evaluates or matches what the variables stand in. */
static bool any_uses(struct tir *ir, tir_block block, struct variables *v) {
  for (tir_stmt s = block; s; s = tir_next(ir, s, block))
    if (tir_is(ir, s, TIR_BLOCK) &&
        (tir_matches_by_vars(ir, s, v->at, v->count) || tir_any_own_expr(ir, s, uses_variable, v)))
      return true;
  return false;
}

/* A statement before s, where s stands, binds a name that the block uses. */
static bool uses_bound_before(struct tir *ir, tir_block block, tir_stmt s) {
  const struct tir_stmt_node *around = tir_stmt_at(ir, tir_stmt_at(ir, s)->parent);
  for (int part = 0; part < 2; part++)
    for (tir_stmt b = around->first[part]; b && b != s; b = tir_stmt_at(ir, b)->next) {
      if (!tir_is(ir, b, TIR_BIND)) continue;
      struct variables v = {.at = {tir_as(ir, b, TIR_BIND)->bind.var}, .count = 1};
      if (any_uses(ir, block, &v)) return true;
    }
  return false;
}

static bool uses_loops(struct tir *ir, tir_block block) {
  struct variables v;
  v.count = tir_loops_in_reach(ir, block, v.at, MOST_VARIABLES);
  return v.count > MOST_VARIABLES || (v.count && any_uses(ir, block, &v));
}

static bool is_of_place(const struct tir *ir, const void *context, tir_var v) {
  (void)context;
  return tir_var_at(ir, v)->kind == TIR_VAR_LOOP || tir_is_let(ir, v);
}

/* A loop, or a name that is bound around the block, says what an iteration's domain is. */
static bool has_domain_of_place(const struct tir *ir, tir_block block) {
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    const struct tir_var_node *v = &ir->vars.at[tir_iters(ir, block)[i].var];
    if (tir_any_var(ir, v->min, is_of_place, NULL) || tir_any_var(ir, v->extent, is_of_place, NULL)) return true;
  }
  return false;
}

bool tir_check_free_of_place(struct tir *ir, tir_block block, tir_block scope, bool goes_back, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_below(ir, block, scope));
  bool uses = has_domain_of_place(ir, block) || uses_loops(ir, block);
  for (tir_stmt s = block; ir->has_lets && s != scope && !uses; s = tir_stmt_at(ir, s)->parent)
    if (goes_back || tir_stmt_at(ir, s)->parent != scope) uses = uses_bound_before(ir, block, s);
  return !uses || tir_refuse(ir, err, MS_MOVE_DOMAIN, block,
                             "block `%s` uses loops or names around it itself, and not by its iterations",
                             tir_block_name(ir, block));
}

bool tir_check_load_outside(struct tir *ir, tir_loop loop, ms_error *err) {
  MS_CHECK(tir_is(ir, loop, TIR_LOOP));
  struct variables v = {.at = {tir_as(ir, loop, TIR_LOOP)->loop.var}, .count = 1};
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next_in_scope(ir, s, loop))
    if (tir_is(ir, s, TIR_BLOCK) && any_uses(ir, s, &v))
      return tir_refuse(ir, err, MS_ACCESS_UNDECLARED, s,
                        "block `%s` uses the loop's variable itself, which is to depend on what a range loads",
                        tir_block_name(ir, s));
  return true;
}

/* Consumers or producers, all of which must be below the loop. */
static bool find_required(const struct tir *ir, const struct tir_transfer *t, const tir_block *required, uint32_t count,
                          bool consumers, struct tir_limits *limits, ms_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    tir_stmt child = tir_child_around(ir, required[i], t->to);
    if (!child)
      return tir_refuse(ir, err, consumers ? MS_MOVE_CONSUMERS : MS_MOVE_PRODUCERS, t->to,
                        "%s `%s` of block `%s` is not under this loop", consumers ? "consumer" : "producer",
                        tir_block_name(ir, required[i]), tir_block_name(ir, t->block));
    if (!consumers && !tir_only_loops_up_to(ir, required[i], t->to))
      return tir_refuse(ir, err, MS_MOVE_CONDITIONAL, required[i], "producer `%s` stands under more than loops",
                        tir_block_name(ir, required[i]));
    narrow(ir, limits, child, consumers);
  }
  return true;
}

/* Whether a loop around both the block and the other loop (or that loop) runs through some of the block's iterations.
 */
static bool runs_in_part(const struct tir *ir, tir_block block, tir_loop loop) {
  for (tir_stmt s = tir_lowest_common_ancestor(ir, block, loop); !tir_is(ir, s, TIR_BLOCK);
       s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) == 1) continue;
    for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++)
      if (tir_may_follow(ir, tir_iters(ir, block)[i].binding, tir_as(ir, s, TIR_LOOP)->loop.var)) return true;
  }
  return false;
}

static bool find_other(const struct tir *ir, const struct tir_transfer *t, tir_block other, bool consumer,
                       struct tir_limits *limits, ms_error *err) {
  tir_stmt child = tir_child_around(ir, other, t->to);
  if (child)
    narrow(ir, limits, child, consumer);
  else if ((tir_compare_position(ir, other, t->to) < 0) == consumer)
    return tir_refuse(ir, err, MS_MOVE_ORDER, t->to, "%s `%s` of block `%s` is on the wrong side of this loop",
                      consumer ? "consumer" : "producer", tir_block_name(ir, other), tir_block_name(ir, t->block));
  if (consumer || !runs_in_part(ir, other, t->to)) return true;
  return tir_refuse(ir, err, MS_MOVE_COVER, t->to,
                    "producer `%s` writes a part only in each iteration of the loops around both",
                    tir_block_name(ir, other));
}

/* Nothing requires the block, so that the loop may stand anywhere: those on the other side must stay there. Where the
 * block is required, they do by their order in the text. */
static bool find_others(const struct tir *ir, const struct tir_transfer *t, bool consumers, struct tir_limits *limits,
                        ms_error *err) {
  struct tir_block_record *record = tir_block_at(ir, t->block);
  struct tir_span regions = consumers ? record->writes : record->reads;
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++) {
    const struct tir_buffer_node *buffer = tir_buffer_at(ir, ir->regions.at[i].buffer);
    for (uint32_t u = consumers ? buffer->readers : buffer->writers; u; u = ir->uses.at[u].next) {
      tir_block other = ir->uses.at[u].block;
      if (other == t->block || tir_scope_of(ir, other) != t->scope) continue;
      if (!find_other(ir, t, other, consumers, limits, err)) return false;
    }
  }
  return true;
}

struct undeclared {
  const struct tir_transfer *transfer;
  struct tir_limits *limits;
};

/* A reader that does not declare it comes after the new place, as those do that declare it. */
static bool find_undeclared(struct tir *ir, void *context, const struct tir_conflict *c) {
  struct undeclared *u = context;
  tir_stmt child = tir_child_around(ir, c->other.at, u->transfer->to);
  if (child && c->own.writes && c->other.reads && tir_compare_position(ir, c->other.at, u->transfer->block) > 0)
    narrow(ir, u->limits, child, true);
  return true;
}

bool tir_find_limits(struct tir *ir, const struct tir_transfer *t, const tir_block *required, uint32_t count,
                     bool to_consumers, struct tir_limits *limits, ms_error *err) {
  MS_CHECK(tir_is(ir, t->to, TIR_LOOP));
  struct undeclared u = {t, limits};
  *limits = (struct tir_limits){TIR_NONE, TIR_NONE};
  if (!find_required(ir, t, required, count, to_consumers, limits, err)) return false;
  if (!count && !find_others(ir, t, !to_consumers, limits, err)) return false;
  return tir_each_undeclared_conflict(ir, t->block, t->scope, &(struct tir_conflict_visitor){find_undeclared, &u});
}
