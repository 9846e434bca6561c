/* Decompose reduction: the init of a reduction becomes a block of its own, before a loop around the reduction.
 *
 * Requires: a reduction block; the loop is around it, inside the same scope; no reduction iteration is bound to a loop
 *           of several iterations further out; only loops stand between both, and each of more than one iteration is
 *           in a binding (else its iterations would add up instead of starting over), and no step is taken in two
 *           iterations; the ranges of the loops copied do not depend on loops that are not; the init touches no buffer
 *           that the block itself allocates or matches, and reads none that another block below the loop writes; no
 *           other block below the loop writes what the reduction does, or reads more of it than is complete by then;
 *           no loop or iteration around the scope reduces in the block; nor does the scope use it outside of blocks
 *           there, and what says how often the loops run, and where the block does, is not written below the loop.
 * After:    before the loop, copies of it and of the loops inside it that stand in spatial bindings, named i_init, and
 *           in them the block NAME_init with the spatial iterations, the annotations and the writes of the reduction.
 *           Its predicate is the reduction's where the other loops start. The
 *           reduction is NAME_update, without init; it reads what it writes as well.
 * Forward:  nothing dies: the reduction keeps its id as NAME_update. */
#include "loops.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/outside.h"
#include "tir/arith/affine.h"

#include <stdlib.h>

enum { MOST_ON_STACK = 32, SPATIAL = 1u << TIR_SPATIAL, REDUCES = 1u << TIR_REDUCE };

struct decompose_reduction_plan {
  tir_loop *loops; /* from the one given inwards: those left behind, then those copied, outermost first */
  uint32_t count, left;
  tir_expr predicate; /* of the init, in terms of the loops that are copied */
};

/* ---- Check ---- */

static bool check_place(const struct tir *ir, tir_block block, tir_loop loop, uint32_t *depth, ms_error *err) {
  *depth = 1;
  tir_stmt s = tir_stmt_at(ir, block)->parent;
  for (; s && s != loop && !tir_is(ir, s, TIR_BLOCK); s = tir_stmt_at(ir, s)->parent) ++*depth;
  if (s != loop || !tir_is(ir, loop, TIR_LOOP))
    return tir_refuse(ir, err, MS_LOOP_NOT_AROUND_BLOCK, loop, "block `%s` is not in this loop's scope and below it",
                      tir_block_name(ir, block));
  if (!tir_only_loops_between(ir, block, loop))
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, loop, "more than loops stands between this and block `%s`",
                      tir_block_name(ir, block));
  return true;
}

static bool check_loops_above(struct tir *ir, tir_block block, tir_loop loop, ms_error *err) {
  /* Blocks without iterations bind nothing: those in them see the loops around. */
  for (tir_stmt s = tir_stmt_at(ir, loop)->parent; s; s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_BLOCK) && tir_block_at(ir, s)->iters.count) break;
    if (tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) != 1 && (tir_loop_iter_kinds(ir, s, block) & REDUCES))
      return tir_refuse(ir, err, MS_REDUCTION_LOOP_ABOVE, s, "this loop, around the one given, reduces in block `%s`",
                        tir_block_name(ir, block));
  }
  return true;
}

static bool sort_loops(struct tir *ir, tir_block block, struct decompose_reduction_plan *plan, ms_error *err) {
  uint32_t copied = 0;
  tir_stmt s = block;
  plan->left = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    s = tir_stmt_at(ir, s)->parent;
    unsigned kinds = tir_loop_iter_kinds(ir, s, block);
    if (!kinds && tir_loop_extent(ir, s) != 1)
      return tir_refuse(ir, err, MS_LOOP_UNBOUND, s, "no iteration of block `%s` is bound to this loop",
                        tir_block_name(ir, block));
    if (kinds & SPATIAL)
      plan->loops[plan->count - ++copied] = s;
    else
      plan->loops[plan->left++] = s;
  }
  return true;
}

/* No step is taken in two iterations of the loops: else the reduction would start over in one of them, and the init,
 * run apart, would not. */
static bool check_steps(struct tir *ir, tir_block block, const struct decompose_reduction_plan *plan, ms_error *err) {
  return tir_block_takes_steps_once(ir, block, plan->loops, plan->count) ||
         tir_refuse(ir, err, MS_REDUCTION_REPEATED, plan->loops[plan->count - 1],
                    "iterations of this loop and those in it may take steps of block `%s` again",
                    tir_block_name(ir, block));
}

static bool uses_left(const struct tir *ir, const struct decompose_reduction_plan *plan, tir_expr e) {
  return tir_uses_any_loop(ir, e, plan->loops, plan->left);
}

/* What of a predicate the init runs under: the reduction's first iteration, which is where all loops that are left
 * start. */
static tir_expr predicate_of_init(struct tir *ir, const struct decompose_reduction_plan *plan, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_AND) {
    tir_expr right = n->b, left = predicate_of_init(ir, plan, n->a);
    return tir_and(ir, left, predicate_of_init(ir, plan, right));
  }
  return uses_left(ir, plan, e) ? tir_subst(ir, e) : e;
}

static bool find_predicate(struct tir *ir, tir_block block, struct decompose_reduction_plan *plan, ms_error *err) {
  plan->predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  if (plan->predicate && plan->left) {
    for (uint32_t i = 0; i < plan->left; i++) {
      const struct tir_stmt_node *n = tir_stmt_at(ir, plan->loops[i]);
      tir_subst_var(ir, n->loop.var, n->loop.min);
    }
    plan->predicate = predicate_of_init(ir, plan, plan->predicate);
    tir_subst_clear(ir);
  }
  bool depends = plan->predicate && uses_left(ir, plan, plan->predicate);
  for (uint32_t i = plan->left; i < plan->count && !depends; i++) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, plan->loops[i]);
    depends = uses_left(ir, plan, n->loop.min) || uses_left(ir, plan, n->loop.extent);
  }
  if (depends)
    return tir_refuse(ir, err, MS_LOOP_RANGE_DEPENDS, plan->loops[0], "a range around block `%s` depends on this nest",
                      tir_block_name(ir, block));
  return true;
}

struct moved_init { /* looks in it for a buffer that is written below the loop, by another block, or by none */
  struct tir *ir;
  tir_block block, scope;
  tir_loop loop;
  tir_stmt writer;
};

static bool is_moved_past(const struct moved_init *m, tir_stmt s) {
  return s != m->block && tir_is_below(m->ir, s, m->loop) && !tir_is_below(m->ir, s, m->block);
}

/* Of blocks that declare no writing some write, some read alone. */
static tir_stmt find_writer(const struct moved_init *m, tir_buffer buffer) {
  const struct tir_buffer_node *n = tir_buffer_at(m->ir, buffer);
  const uint32_t lists[] = {n->writers, n->undeclared};
  for (int l = 0; l < 2; l++)
    for (uint32_t u = lists[l]; u; u = m->ir->uses.at[u].next) {
      tir_block b = m->ir->uses.at[u].block;
      if (is_moved_past(m, b) && (l == 0 || tir_access_of(m->ir, b, buffer).writes)) return b;
    }
  struct tir_outside_use use;
  for (tir_stmt s = TIR_NONE; tir_next_outside_use(m->ir, m->scope, buffer, m->loop, s, &use); s = use.at)
    if (use.writes) return use.at;
  return TIR_NONE;
}

static bool look_for_writer(void *data, tir_expr e) {
  struct moved_init *m = data;
  const struct tir_expr_node *n = tir_at(m->ir, e);
  if (n->kind == TIR_LOAD && !m->writer) m->writer = find_writer(m, n->ref);
  return !m->writer && (n->flags & TIR_HAS_LOAD);
}

static bool refuse_writer(const struct moved_init *m, ms_error *err) {
  tir_block by = tir_is(m->ir, m->writer, TIR_BLOCK) ? m->writer : m->scope;
  return tir_refuse(m->ir, err, MS_INIT_READS_WRITTEN, m->writer, "block `%s` writes what the init of block `%s` reads",
                    tir_block_name(m->ir, by), tir_block_name(m->ir, m->block));
}

/* The init goes to before the loop: what it reads is there by then. */
static bool check_init_reads(struct tir *ir, tir_block block, tir_block scope, tir_loop loop, ms_error *err) {
  struct moved_init m = {ir, block, scope, loop, TIR_NONE};
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = tir_next(ir, s, block)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (s == tir_stmt_at(ir, block)->first[TIR_BODY]) break;
    if (n->kind != TIR_STORE) continue;
    tir_walk_expr(ir, n->store.value, look_for_writer, &m);
    for (uint32_t i = 0; i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
      tir_walk_expr(ir, ir->operands.at[n->store.indices + i], look_for_writer, &m);
  }
  return !m.writer || refuse_writer(&m, err);
}

/* The block, or that around it which is in the scope, declares that it reads the buffer, and comes after the reduction:
 * all that it reads is complete then. */
static bool reads_results(struct tir *ir, tir_block user, tir_block block, tir_block scope, tir_buffer buffer) {
  while (user && tir_scope_of(ir, user) != scope) user = tir_scope_of(ir, user);
  return user && tir_has_region_of(ir, tir_block_at(ir, user)->reads, buffer) &&
         tir_compare_position(ir, user, block) > 0 && tir_has_region_cover(ir, user, scope);
}

/* No other block below the loop writes what the init begins before it, and none reads of it what was there before. */
static bool check_users(struct tir *ir, tir_block block, tir_block scope, tir_loop loop, tir_buffer buffer,
                        ms_error *err) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  const uint32_t lists[] = {n->writers, n->undeclared, n->readers};
  for (int l = 0; l < 3; l++)
    for (uint32_t u = lists[l]; u; u = ir->uses.at[u].next) {
      tir_block b = ir->uses.at[u].block;
      if (b == block || !tir_is_below(ir, b, loop) || tir_is_below(ir, b, block)) continue;
      if (l == 2 && reads_results(ir, b, block, scope, buffer)) continue;
      return tir_refuse(ir, err, l == 2 ? MS_READS_NOT_COVERED : MS_NOT_REDUCTION_BLOCK, b,
                        "block `%s` uses `%s` beside block `%s`, whose init would run before", tir_block_name(ir, b),
                        tir_buffer_name(ir, buffer), tir_block_name(ir, block));
    }
  return true;
}

/* Nor does the scope itself below the loop. */
static bool check_scope(struct tir *ir, tir_block block, tir_block scope, tir_loop loop, tir_buffer buffer,
                        ms_error *err) {
  struct tir_outside_use use;
  return !tir_next_outside_use(ir, scope, buffer, loop, loop, &use) ||
         tir_refuse(ir, err, MS_SCOPE_ORDER, use.at,
                    "`%s` uses `%s` outside of blocks beside block `%s`, whose init would run before",
                    tir_block_name(ir, scope), tir_buffer_name(ir, buffer), tir_block_name(ir, block));
}

static bool check_beside(struct tir *ir, tir_block block, tir_block scope, tir_loop loop, ms_error *err) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    if (!check_users(ir, block, scope, loop, ir->regions.at[i].buffer, err) ||
        !check_scope(ir, block, scope, loop, ir->regions.at[i].buffer, err))
      return false;
  return true;
}

static bool check_decompose_reduction(struct tir *ir, tir_block block, tir_loop loop,
                                      struct decompose_reduction_plan *plan, ms_error *err) {
  tir_block scope;
  if (!tir_find_scope(ir, block, &scope, err)) return false;
  return tir_check_init_buffers(ir, block, err) && tir_check_reduction_block(ir, block, scope, err) &&
         tir_check_begun_once(ir, block, err) && /* the init, run apart, begins it once */
         check_loops_above(ir, block, loop, err) && sort_loops(ir, block, plan, err) &&
         check_steps(ir, block, plan, err) && tir_check_reduces_inside(ir, block, scope, err) &&
         find_predicate(ir, block, plan, err) && check_init_reads(ir, block, scope, loop, err) &&
         check_beside(ir, block, scope, loop, err) && tir_check_places_steady(ir, block, loop, err);
}

/* ---- Edit ---- */

/* The init runs where reductions begin: there it has their first values. */
static void add_spatial_iters(struct tir *ir, tir_block block, tir_block init) {
  struct tir_span from = tir_block_at(ir, block)->iters;
  uint32_t first = tir_grow_iters(ir, from.count), count = 0;
  for (uint32_t i = 0; i < from.count; i++) {
    struct tir_iter iter = ir->iters.at[from.first + i];
    struct tir_var_node v = ir->vars.at[iter.var];
    if (iter.kind != TIR_SPATIAL) {
      tir_subst_var(ir, iter.var, v.min);
      continue;
    }
    tir_var made = tir_new_var(ir, TIR_VAR_ITER, v.name, v.type, v.min, v.extent);
    tir_subst_var(ir, iter.var, tir_var_expr(ir, made));
    ir->iters.at[first + count++] = (struct tir_iter){made, TIR_SPATIAL, iter.binding};
  }
  tir_block_at(ir, init)->iters = (struct tir_span){first, count};
}

/* The block of the init, in terms of the loops and iterations of the reduction, which are substituted later. */
static tir_block take_init(struct tir *ir, tir_block block, tir_expr predicate) {
  tir_block init = tir_new_block(ir, tir_symbol_suffix(ir, tir_block_at(ir, block)->name, "_init"));
  struct tir_span annotations = tir_copy_annotations(ir, tir_stmt_at(ir, block)->annotations);
  tir_stmt_at(ir, init)->annotations = annotations;
  tir_as(ir, init, TIR_BLOCK)->block.predicate = predicate;
  tir_move_children(ir, block, TIR_INIT, init, TIR_BODY);
  tir_take_init_regions(ir, block, init);
  return init;
}

static tir_block edit_decompose_reduction(struct tir *ir, tir_block block, tir_loop loop,
                                          struct decompose_reduction_plan *plan) {
  tir_loop *nest = plan->loops + plan->left;
  uint32_t copied = plan->count - plan->left;
  tir_block init = take_init(ir, block, plan->predicate);
  if (copied) tir_copy_nest(ir, nest, copied, "_init", nest);
  add_spatial_iters(ir, block, init);
  tir_subst_stmt(ir, init);
  tir_subst_clear(ir);
  if (copied) tir_append(ir, nest[copied - 1], TIR_BODY, init);
  tir_insert_before(ir, loop, copied ? nest[0] : init);
  tir_inherit_cover(ir, init, block, tir_scope_of(ir, block));
  tir_set_block_name(ir, block, tir_symbol_suffix(ir, tir_block_at(ir, block)->name, "_update"));
  tir_read_what_is_written(ir, block);
  return init;
}

/* init NULL: only asks. */
static bool perform(struct tir *ir, tir_block block, tir_loop loop, tir_block *init, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, loop, TIR_LOOP));
  struct decompose_reduction_plan plan = {0};
  if (!check_place(ir, block, loop, &plan.count, err)) return false;
  tir_loop on_stack[MOST_ON_STACK];
  plan.loops = tir_room(on_stack, sizeof on_stack, plan.count * sizeof *plan.loops);
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_decompose_reduction(ir, block, loop, &plan, err);
  if (accepted && init)
    *init = edit_decompose_reduction(ir, block, loop, &plan);
  else
    tir_rewind(ir, &mark);
  if (plan.loops != on_stack) free(plan.loops);
  return accepted;
}

bool tir_decompose_reduction(struct tir *ir, tir_block block, tir_loop loop, tir_block *init, ms_error *err) {
  assert(init);
  return perform(ir, block, loop, init, err);
}

bool tir_can_decompose_reduction(struct tir *ir, tir_block block, tir_loop loop) {
  return perform(ir, block, loop, NULL, NULL);
}
