/* Moving a block under a loop: where it may go, and the edit. */
#include "given.h"
#include "inline.h"
#include "loops.h"
#include "move_domain.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/order/order.h"
#include "tir/arith/linear.h"

#include <stdlib.h>

/* ---- What does not depend on the loop ---- */

/* A consumer need not meet the producers of what it is given. */
static void leave_out_given(const struct tir *ir, struct tir_move *move) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < move->required_count; i++)
    if (!tir_is_given_all(ir, move->block, move->required[i])) move->required[count++] = move->required[i];
  move->required_count = count;
}

static void collect_required(struct tir *ir, struct tir_move *move) {
  uint32_t (*collect)(const struct tir *, tir_block, tir_block *, uint32_t) =
      move->to_consumers ? tir_consumers : tir_producers;
  uint32_t count = collect(ir, move->block, move->required_on_stack, TIR_MOVE_MOST);
  move->required = tir_room(move->required_on_stack, sizeof move->required_on_stack, count * sizeof *move->required);
  if (move->required != move->required_on_stack) collect(ir, move->block, move->required, count);
  move->required_count = count;
  if (!move->to_consumers) leave_out_given(ir, move);
}

static bool check_removal(const struct tir *ir, const struct tir_move *move, ms_error *err) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, move->removed);
  return n->prev || n->next ||
         tir_refuse(ir, err, MS_MOVE_ONLY_LEAF, move->block, "block `%s` is all there is in its scope",
                    tir_block_name(ir, move->block));
}

enum { MOST_LOOPS = 64, MOST_ITERS = 16 };

bool tir_indices_apart(struct tir *ir, tir_block block, const tir_expr *at, uint32_t rank) {
  tir_var vars[MOST_ITERS];
  uint32_t count = 0;
  assert(tir_is(ir, block, TIR_BLOCK) && at);
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    tir_var v = tir_iters(ir, block)[i].var;
    if (tir_is_const(ir, ir->vars.at[v].extent, 1)) continue;
    bool used = false;
    for (uint32_t d = 0; d < rank && !used; d++) used = tir_uses_var(ir, at[d], v);
    if (!used || count == MOST_ITERS) return false;
    vars[count++] = v;
  }
  return tir_is_one_to_one(ir, at, rank, vars, count, TIR_NONE);
}

bool tir_writes_apart(struct tir *ir, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  tir_expr at[MOST_ITERS];
  if (tir_block_at(ir, block)->iters.count > MOST_ITERS) return false;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    struct tir_region region = ir->regions.at[k];
    uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
    if (rank > MOST_ITERS || !tir_is_one_element(ir, region)) return false;
    for (uint32_t d = 0; d < rank; d++) at[d] = ir->operands.at[region.ranges + 2 * d];
    if (!tir_indices_apart(ir, block, at, rank)) return false;
  }
  return true;
}

/* For other values of its iterations it reads other elements of what a block around it is given; the regions of that
 * one name those that it reads now. */
static bool reads_others(struct tir *ir, const struct tir_move *move) {
  struct tir_span reads = tir_block_at(ir, move->block)->reads;
  if (!tir_parent_block(ir, move->scope)) return false;
  for (uint32_t k = reads.first; k < reads.first + reads.count; k++) {
    struct tir_region region = ir->regions.at[k];
    if (tir_allocates(ir, move->scope, region.buffer)) continue;
    for (uint32_t i = 0; i < tir_block_at(ir, move->block)->iters.count; i++) {
      tir_var v = tir_iters(ir, move->block)[i].var;
      for (uint32_t d = 0; d < 2 * tir_buffer_at(ir, region.buffer)->rank; d++)
        if (!tir_is_const(ir, ir->vars.at[v].extent, 1) && tir_uses_var(ir, ir->operands.at[region.ranges + d], v))
          return true;
    }
  }
  return false;
}

/* At its new place the block may run for each value of its iterations; now it may not. */
static bool check_runs(struct tir *ir, const struct tir_move *move, ms_error *err) {
  if (tir_runs_for_all(ir, move->block)) return true;
  bool output = !move->to_consumers && tir_is_output_block(ir, move->block, move->scope);
  if (!move->to_consumers && reads_others(ir, move))
    return tir_refuse(ir, err, MS_MOVE_DOMAIN, move->block,
                      "block `%s` may not run for each value of its iterations, and reads what block `%s` is given",
                      tir_block_name(ir, move->block), tir_block_name(ir, move->scope));
  if (!output && tir_writes_apart(ir, move->block)) return true;
  return tir_refuse(ir, err, MS_MOVE_DOMAIN, move->block,
                    output ? "block `%s` writes an output, and may not run for each value of its iterations"
                           : "block `%s` may not run for each value of its iterations, and others write the same",
                    tir_block_name(ir, move->block));
}

/* How many iterations of the block have more than one value; *which: the last of them. */
static uint32_t count_iters(const struct tir *ir, tir_block block, uint32_t *which) {
  uint32_t count = 0;
  *which = 0;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++)
    if (!tir_is_const(ir, ir->vars.at[tir_iters(ir, block)[i].var].extent, 1)) *which = i, count++;
  return count;
}

/* What ReadAt copies is the same in all iterations that copy it. */
static bool copies_the_same(const struct tir *ir, tir_block block) {
  return tir_annotation(ir, tir_stmt_at(ir, block)->annotations, "auto_copy");
}

static bool needs_order(struct tir *ir, const struct tir_move *move) {
  return !move->orderless && !copies_the_same(ir, move->block) && tir_instances_meet(ir, move->block);
}

static bool refuse_order(struct tir *ir, tir_block block, ms_error *err) {
  return tir_refuse(ir, err, MS_ITERATIONS_IN_ORDER, block,
                    "iterations of block `%s` use the same element, and would run in another order",
                    tir_block_name(ir, block));
}

/* The value falls nowhere while the loops around `s` run, and `s` where it is one. A loop that neither it nor the
 * condition uses takes all of it again. */
static bool ascends(struct tir *ir, tir_stmt s, tir_block scope, tir_expr value, tir_expr condition) {
  tir_var vars[MOST_LOOPS];
  uint32_t count = MOST_LOOPS;
  for (; s != scope; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    tir_var v = tir_as(ir, s, TIR_LOOP)->loop.var;
    if (!tir_uses_var(ir, value, v) && !(condition && tir_uses_var(ir, condition, v))) continue;
    if (!count) return false;
    vars[--count] = v;
  }
  return !tir_may_fall(ir, value, vars + count, MOST_LOOPS - count);
}

/* The new loops run through the iterations in their order, whatever loops they have now: of one iteration, these may do
 * so too. */
static bool check_meeting(struct tir *ir, struct tir_move *move, ms_error *err) {
  uint32_t i, count = count_iters(ir, move->block, &i);
  move->orderless = count && !needs_order(ir, move);
  if (!count || move->orderless) return true;
  tir_expr predicate = tir_as(ir, move->block, TIR_BLOCK)->block.predicate;
  return (count == 1 && ascends(ir, move->block, move->scope, tir_iters(ir, move->block)[i].binding, predicate)) ||
         refuse_order(ir, move->block, err);
}

/* Steps of a reduction that loops around it take again, new loops would take once. */
static bool check_steps(struct tir *ir, tir_block block, ms_error *err) {
  tir_loop loops[MOST_LOOPS];
  bool reduces = false;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count && !reduces; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    reduces = iter.kind != TIR_SPATIAL && !tir_is_const(ir, ir->vars.at[iter.var].extent, 1);
  }
  if (!reduces) return true;
  uint32_t count = tir_loops_of(ir, block, loops, MOST_LOOPS);
  return (count <= MOST_LOOPS && tir_block_takes_steps_once(ir, block, loops, count)) ||
         tir_refuse(ir, err, MS_REDUCTION_REPEATED, block, "iterations of loops take steps of block `%s` again",
                    tir_block_name(ir, block));
}

static bool begin_move(struct tir *ir, struct tir_move *move, tir_block block, bool to_consumers, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  move->block = block;
  move->to_consumers = to_consumers;
  move->required = move->required_on_stack;
  move->domains = move->domains_on_stack;
  move->required_count = 0;
  move->orderless = false;
  if (!tir_find_scope(ir, block, &move->scope, err)) return false;
  move->removed = tir_top_of_leaf(ir, block);
  return true;
}

/* What is asked of the block alone, and changes nothing. */
static bool check_moved(struct tir *ir, struct tir_move *move, ms_error *err) {
  tir_block block = move->block;
  if (!tir_check_stage_pipeline(ir, move->scope, err) ||
      !tir_check_complete_or_reduction_block(ir, block, move->scope, err))
    return false;
  if (!tir_only_loops_up_to(ir, block, move->scope))
    return tir_refuse(ir, err, MS_MOVE_CONDITIONAL, block, "block `%s` stands under more than loops",
                      tir_block_name(ir, block));
  if (!tir_check_free_of_place(ir, block, move->scope, !move->to_consumers, err)) return false;
  if (move->to_consumers && tir_is_output_block(ir, block, move->scope))
    return tir_refuse(ir, err, MS_MOVE_OUTPUT, block, "block `%s` writes an output of its scope",
                      tir_block_name(ir, block));
  if (!check_runs(ir, move, err) || !check_steps(ir, block, err) || !check_meeting(ir, move, err)) return false;
  return check_removal(ir, move, err) && tir_check_declares_inner(ir, block, err) &&
         tir_check_writes_exact(ir, block, err) && tir_check_reduces_inside(ir, block, move->scope, err);
}

/* The rest of the plan, of a block that passes. */
static bool plan_move(struct tir *ir, struct tir_move *move, ms_error *err) {
  collect_required(ir, move);
  move->iter_count = tir_block_at(ir, move->block)->iters.count;
  size_t domains = move->iter_count * sizeof *move->domains;
  move->domains = tir_room(move->domains_on_stack, sizeof move->domains_on_stack, domains);
  return tir_move_keep_predicate(ir, move, err);
}

bool tir_move_check_block(struct tir *ir, struct tir_move *move, tir_block block, bool to_consumers, ms_error *err) {
  return begin_move(ir, move, block, to_consumers, err) && check_moved(ir, move, err) && plan_move(ir, move, err);
}

void tir_move_free(struct tir_move *move) {
  if (move->required != move->required_on_stack) free(move->required);
  if (move->domains != move->domains_on_stack) free(move->domains);
}

/* ---- The loop ---- */

static bool check_place(const struct tir *ir, const struct tir_move *move, tir_loop loop, ms_error *err) {
  tir_stmt s = loop;
  bool only_loops = true;
  while (!tir_is(ir, s, TIR_BLOCK)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    only_loops &= n->kind == TIR_LOOP;
    if (!n->parent || (tir_is(ir, n->parent, TIR_BLOCK) && n->list == TIR_INIT)) break;
    s = n->parent;
  }
  if (s != move->scope)
    return tir_refuse(ir, err, MS_MOVE_OTHER_SCOPE, loop, "this loop is not in the scope of block `%s`",
                      tir_block_name(ir, move->block));
  if (tir_is_below(ir, move->block, loop))
    return tir_refuse(ir, err, MS_MOVE_OWN_LOOP, loop, "block `%s` is under this loop already",
                      tir_block_name(ir, move->block));
  if (!only_loops && !move->to_consumers)
    return tir_refuse(ir, err, MS_MOVE_CONDITIONAL, loop, "this loop stands under more than loops");
  return true;
}

static int position_of(const struct tir *ir, tir_stmt child) {
  int position = 0;
  for (tir_stmt s = tir_stmt_at(ir, child)->prev; s; s = tir_stmt_at(ir, s)->prev) position++;
  return position;
}

/* Places are counted among the loop's statements. */
static bool find_place(const struct tir *ir, struct tir_move *move, const struct tir_limits *limits, int index,
                       ms_error *err) {
  const struct tir_stmt_node *loop = tir_stmt_at(ir, move->loop);
  if (index == -1) {
    move->before = limits->before;
  } else if (index == -2) {
    move->before = limits->after ? tir_stmt_at(ir, limits->after)->next : loop->first[TIR_BODY];
  } else {
    tir_stmt last = loop->last[TIR_BODY];
    int lowest = limits->after ? position_of(ir, limits->after) + 1 : 0;
    int highest = limits->before ? position_of(ir, limits->before) : last ? position_of(ir, last) + 1 : 0;
    if (index < lowest || index > highest)
      return tir_refuse(ir, err, MS_MOVE_INDEX, move->loop, "index %d is not in %d..%d", index, lowest, highest);
    move->before = loop->first[TIR_BODY];
    for (int i = 0; i < index; i++) move->before = tir_stmt_at(ir, move->before)->next;
  }
  return true;
}

/* A loop at or above the new place that runs through a producer's reduction: what it reduces is not complete there. */
static bool check_producers_complete(struct tir *ir, const struct tir_move *move, ms_error *err) {
  for (tir_stmt s = move->loop; s != move->scope; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) == 1) continue;
    tir_var v = tir_as(ir, s, TIR_LOOP)->loop.var;
    for (uint32_t i = 0; i < move->required_count; i++)
      for (uint32_t j = 0; j < tir_block_at(ir, move->required[i])->iters.count; j++) {
        const struct tir_iter *iter = &tir_iters(ir, move->required[i])[j];
        if (iter->kind != TIR_SPATIAL && tir_may_follow(ir, iter->binding, v))
          return tir_refuse(ir, err, MS_MOVE_REDUCTION_LOOP, s, "this loop reduces what producer `%s` writes",
                            tir_block_name(ir, move->required[i]));
      }
  }
  return true;
}

/* A consumer goes on until it has run for all that its producers write: all of it runs in all iterations together. */
static bool runs_all(struct tir *ir, const void *context, tir_stmt around) {
  const struct tir_move *move = context;
  if (!around) return tir_move_runs_all(ir, move);
  if (!move->to_consumers) return true;
  return around != move->loop && !tir_is_below(ir, around, move->loop) && tir_move_runs_through(ir, move, around);
}

static bool runs_in_turn(const struct tir *ir, const struct tir_move *move) {
  for (tir_stmt s = move->loop; s != move->scope; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) == 1) continue;
    enum tir_loop_kind kind = tir_stmt_at(ir, s)->loop_kind;
    if (kind != TIR_SERIAL && kind != TIR_UNROLLED) return false;
  }
  return true;
}

/* What runs in later iterations of the loops begins and ends no earlier: of the iterations that each value runs in, the
 * last then come in the order of the values. */
static bool keeps_order(struct tir *ir, const struct tir_move *move, const struct tir_move_domain *d) {
  tir_expr min = d->linear ? tir_from_terms(ir, d->type, d->lo, move->terms + d->first, d->count) : d->min;
  if (!runs_in_turn(ir, move) || !ascends(ir, move->loop, move->scope, min, move->limits)) return false;
  if (d->linear || tir_is_int(ir, d->extent)) return true;
  return ascends(ir, move->loop, move->scope, tir_add(ir, min, tir_cast(ir, tir_type_of(ir, min), d->extent)),
                 move->limits);
}

/* Of each buffer an instance writes one element: the iterations found for it are all that write it. */
static bool writes_points(const struct tir *ir, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    struct tir_region region = ir->regions.at[k];
    if (tir_region_of(ir, writes, region.buffer) != &ir->regions.at[k] || !tir_is_one_element(ir, region)) return false;
  }
  return true;
}

/* Before each consumer run, in order, all iterations that write what it reads: those that are found for one of its
 * buffers need not be those for another, nor those that write one part of a box those of another part. */
static bool consumers_see_last(struct tir *ir, const struct tir_move *move) {
  bool several = tir_block_at(ir, move->block)->writes.count > 1;
  bool meet = writes_points(ir, move->block) ? several && needs_order(ir, move) : tir_reaches_meet(ir, move->block);
  return !meet || tir_move_runs_all(ir, move);
}

static bool check_new_order(struct tir *ir, const struct tir_move *move, ms_error *err) {
  uint32_t i, count = count_iters(ir, move->block, &i);
  if (!count || copies_the_same(ir, move->block)) return true;
  bool kept = move->to_consumers ? consumers_see_last(ir, move)
                                 : count > 1 || !needs_order(ir, move) || keeps_order(ir, move, &move->domains[i]);
  return kept || refuse_order(ir, move->block, err);
}

bool tir_move_check_loop(struct tir *ir, struct tir_move *move, tir_loop loop, int index, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  struct tir_limits limits;
  move->loop = loop;
  move->limits = TIR_NONE;
  struct tir_transfer transfer = tir_move_transfer(move);
  if (!check_place(ir, move, loop, err) ||
      (!move->to_consumers && !tir_check_given(ir, move->block, move->scope, loop, err)) ||
      !tir_find_limits(ir, &transfer, move->required, move->required_count, move->to_consumers, &limits, err))
    return false;
  if (!find_place(ir, move, &limits, index, err)) return false;
  if (!move->to_consumers && !check_producers_complete(ir, move, err)) return false;
  if (!tir_move_find_domains(ir, move, err)) return false;
  if (move->to_consumers && !tir_move_keep_to_iteration(ir, move, err)) return false;
  if (!tir_move_check_reduction(ir, move, err)) return false;
  transfer = tir_move_transfer(move);
  transfer.runs_all = runs_all;
  transfer.context = move;
  if (!tir_check_order(ir, &transfer, err)) return false;
  if (!tir_move_check_loads(ir, move, err)) return false;
  return (move->to_consumers || tir_move_check_written(ir, move, err)) && check_new_order(ir, move, err);
}

/* A let before `s` or before what is around it: what is bound there may not be in scope elsewhere. */
static bool sees_let(const struct tir *ir, tir_stmt s, tir_stmt scope) {
  for (; ir->has_lets && s != scope; s = tir_stmt_at(ir, s)->parent)
    for (tir_stmt t = tir_stmt_at(ir, s)->prev; t; t = tir_stmt_at(ir, t)->prev)
      if (tir_is(ir, t, TIR_BIND)) return true;
  return false;
}

/* The block writes elements indexed by its iterations alone: whatever is required of them is their range. */
bool tir_move_fits_anywhere(struct tir *ir, const struct tir_move *move) {
  struct tir_span writes = tir_block_at(ir, move->block)->writes;
  assert(move->to_consumers);
  if (tir_stmt_at(ir, move->removed)->parent != move->scope) return false; /* shared loops set limits */
  if (tir_has_undeclared_conflict(ir, move->block, move->scope) || tir_move_may_load(ir, move)) return false;
  if (needs_order(ir, move) || !writes_points(ir, move->block)) return false;
  for (uint32_t i = 0; i < move->required_count; i++)
    if (sees_let(ir, move->required[i], move->scope)) return false;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    struct tir_region region = ir->regions.at[k];
    for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++) {
      const struct tir_expr_node *index = tir_at(ir, ir->operands.at[region.ranges + 2 * d]);
      if (index->kind != TIR_VAR || tir_iter_of(ir, move->block, index->ref) < 0) return false;
    }
  }
  return true;
}

/* ---- The edit ---- */

struct nest {
  tir_loop outermost, innermost;
  tir_symbol stem; /* of the loops' names; TIR_NONE: not yet known */
  uint32_t count;
};

/* A new loop inside the nest; its variable. Names are ax0, ax1, …. */
static tir_expr add_loop(struct tir *ir, struct nest *nest, tir_type type, tir_expr extent) {
  if (!nest->stem) nest->stem = tir_symbol_of(ir, "ax");
  tir_name name = tir_name_ordinal(ir, nest->stem, nest->count++);
  tir_expr zero = tir_int(ir, type, 0);
  tir_var v = tir_new_var(ir, TIR_VAR_LOOP, name, type, zero, extent);
  tir_loop loop = tir_new_loop(ir, v, zero, extent, TIR_SERIAL);
  if (nest->innermost)
    tir_append(ir, nest->innermost, TIR_BODY, loop);
  else
    nest->outermost = loop;
  nest->innermost = loop;
  return tir_var_expr(ir, v);
}

static tir_expr bind_linear(struct tir *ir, const struct tir_move *move, const struct tir_move_domain *d,
                            struct nest *nest, bool preserve_unit_loops) {
  tir_expr v = TIR_NONE;
  if (preserve_unit_loops || d->hi > d->lo) v = add_loop(ir, nest, d->type, tir_int(ir, d->type, d->hi - d->lo + 1));
  struct tir_sum sum = tir_sum_open(ir);
  sum.constant = d->lo;
  for (uint32_t i = d->first; i < d->first + d->count; i++)
    tir_sum_add_term(ir, &sum, move->terms[i].atom, move->terms[i].coefficient);
  if (v) tir_sum_add_term(ir, &sum, v, 1);
  return tir_sum_close(ir, &sum, d->type);
}

static tir_expr bind(struct tir *ir, const struct tir_move *move, const struct tir_move_domain *d, struct nest *nest,
                     bool preserve_unit_loops) {
  if (d->linear) return bind_linear(ir, move, d, nest, preserve_unit_loops);
  if (!preserve_unit_loops && tir_is_const(ir, d->extent, 1)) return d->min;
  tir_expr v = add_loop(ir, nest, d->type, tir_cast(ir, d->type, d->extent));
  return tir_add(ir, tir_cast(ir, d->type, d->min), v);
}

/* What the predicate limits: a unit loop adds nothing to it. */
static tir_expr limited(struct tir *ir, const struct tir_move *move, const struct tir_move_domain *d, tir_expr value) {
  if (d->linear) return d->hi > d->lo ? value : tir_from_terms(ir, d->type, d->lo, move->terms + d->first, d->count);
  return tir_is_const(ir, d->extent, 1) ? tir_cast(ir, tir_type_of(ir, value), d->min) : value;
}

/* Takes the block out, with the loops that hold nothing else. */
static void remove_nest(struct tir *ir, const struct tir_move *move) {
  tir_detach(ir, move->block);
  if (move->removed != move->block) tir_kill(ir, move->removed);
}

/* Makes the new nest under the loop last checked, and removes the old one. */
static void tir_move_edit(struct tir *ir, struct tir_move *move, bool preserve_unit_loops) {
  assert(tir_is(ir, move->loop, TIR_LOOP));
  struct nest nest = {TIR_NONE, TIR_NONE, TIR_NONE, 0};
  tir_expr predicate = TIR_NONE;
  for (uint32_t i = 0; i < move->iter_count; i++) {
    tir_expr value = bind(ir, move, &move->domains[i], &nest, preserve_unit_loops);
    tir_var var = tir_iters(ir, move->block)[i].var;
    tir_expr binding = tir_cast(ir, ir->vars.at[var].type, value);
    tir_iters(ir, move->block)[i].binding = binding;
    predicate = tir_move_limit(ir, predicate, &move->domains[i], limited(ir, move, &move->domains[i], value));
  }
  if (move->kept) {
    tir_subst_iters(ir, move->block);
    predicate = tir_and(ir, predicate, tir_subst(ir, move->kept));
    tir_subst_clear(ir);
  }
  tir_as(ir, move->block, TIR_BLOCK)->block.predicate = tir_and(ir, predicate, move->limits);
  remove_nest(ir, move);
  if (nest.innermost) tir_append(ir, nest.innermost, TIR_BODY, move->block);
  tir_stmt top = nest.outermost ? nest.outermost : move->block;
  if (move->before)
    tir_insert_before(ir, move->before, top);
  else
    tir_append(ir, move->loop, TIR_BODY, top);
  if (tir_is_placed_by_loads(ir, move->block)) tir_find_undeclared(ir);
}

static bool finish_move(struct tir *ir, struct tir_move *move, const struct tir_mark *mark, bool accepted,
                        bool preserve_unit_loops) {
  if (accepted)
    tir_move_edit(ir, move, preserve_unit_loops);
  else
    tir_rewind(ir, mark);
  tir_move_free(move);
  return accepted;
}

bool tir_move_block(struct tir *ir, tir_block block, tir_loop loop, bool to_consumers, bool preserve_unit_loops,
                    int index, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, loop, TIR_LOOP));
  struct tir_move move;
  struct tir_mark mark = tir_mark(ir);
  bool accepted =
      tir_move_check_block(ir, &move, block, to_consumers, err) && tir_move_check_loop(ir, &move, loop, index, err);
  return finish_move(ir, &move, &mark, accepted, preserve_unit_loops);
}

#ifdef MSCHED_CHECK
static bool passes(struct tir *ir, tir_block block) {
  struct tir_move move;
  struct tir_mark mark = tir_mark(ir);
  bool accepted = tir_move_check_block(ir, &move, block, true, NULL);
  tir_rewind(ir, &mark);
  tir_move_free(&move);
  return accepted;
}
#endif

bool tir_move_located(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                      ms_error *err) {
#ifdef MSCHED_CHECK
  assert(passes(ir, block));
#endif
  struct tir_move move;
  struct tir_mark mark = tir_mark(ir);
  bool accepted = begin_move(ir, &move, block, true, err) && plan_move(ir, &move, err) &&
                  tir_move_check_loop(ir, &move, loop, index, err);
  return finish_move(ir, &move, &mark, accepted, preserve_unit_loops);
}

bool tir_can_move_block(struct tir *ir, tir_block block, tir_loop loop, bool to_consumers) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, loop, TIR_LOOP));
  struct tir_move move;
  struct tir_mark mark = tir_mark(ir);
  bool accepted =
      tir_move_check_block(ir, &move, block, to_consumers, NULL) && tir_move_check_loop(ir, &move, loop, -1, NULL);
  tir_rewind(ir, &mark);
  tir_move_free(&move);
  return accepted;
}
