/* Reverse compute inline: a block disappears, and its only producer computes and writes what the block did.
 *
 * Requires: no init, no predicate; loops alone around the block, which run for all values of its iterations, unless it
 *           reads one buffer, and writes each element of an intermediate one once; the scope is a stage pipeline; of
 *           what the block reads, one buffer is written in the scope (beside those that it is given: given.h): by one
 *           block, complete, and read by no other; the scope allocates what that producer writes. The block is
 *           complete; its body is one store that loads the buffer at one place, an affine map of its iterations that
 *           can be inverted, at least over domains that grow to whole numbers of what divides them; what the producer
 *           writes covers them. The producer's body is one store, one under a condition, or that of a copy under its
 *           loops; it needs no condition on those.
 * After:    the producer stores the block's value where the block did. Where the block takes less than all that was
 *           produced (a part of the iterations, one row, the first of longer rows), the producer has a predicate. Its
 *           regions are detected again; the buffer's allocation is gone.
 * Forward:  the block and the loops that held only it are dead; the producer stays.
 *
 * A producer's own predicate is kept beside the new one. */
#include "copy_stage.h"
#include "given.h"
#include "inline.h"
#include "move_block.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/detect.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/order/order.h"
#include "tir/analysis/outside.h"
#include "tir/arith/affine.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ITERS = 32 };

struct reverse_compute_inline_plan {
  tir_block scope, producer;
  tir_buffer buffer;
  tir_stmt store; /* of the block */
  tir_stmt producer_store;
  tir_stmt condition; /* the if around the producer's store, or TIR_NONE */
  uint32_t rank;
  tir_expr load;      /* of the buffer, in the block's store */
  tir_expr in_bounds; /* over the producer's iterations: the block has such an iteration */
  tir_var iters[MOST_ITERS];
  tir_expr values[MOST_ITERS]; /* of the block's iterations, over the producer's */
  uint32_t count;
  tir_expr stored[TIR_MOST_INLINED_RANK]; /* where the producer stores, in the types of the load's indices */
  struct tir_progression image[TIR_MOST_INLINED_RANK]; /* what the load's indices reach, each whatever the others are */
  bool has_image;
  bool grown; /* an iteration was inverted over more than its domain */
};

/* ---- Check ---- */

static bool is_written_in(const struct tir *ir, tir_buffer buffer, tir_block scope) {
  for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u; u = ir->uses.at[u].next)
    if (tir_scope_of(ir, ir->uses.at[u].block) == scope) return true;
  return false;
}

static bool find_buffer(struct tir *ir, tir_block block, struct reverse_compute_inline_plan *plan, ms_error *err) {
  struct tir_span reads = tir_block_at(ir, block)->reads;
  uint32_t found = 0;
  plan->buffer = TIR_NONE;
  for (uint32_t i = reads.first; i < reads.first + reads.count; i++) {
    tir_buffer b = ir->regions.at[i].buffer;
    if (b == plan->buffer || !is_written_in(ir, b, plan->scope) || tir_is_given(ir, block, b)) continue;
    plan->buffer = b;
    found++;
  }
  if (found == 1) return true;
  return tir_refuse(ir, err, MS_NOT_ONE_PRODUCED_READ, block, "block `%s` reads %u buffers that its scope writes",
                    tir_block_name(ir, block), found);
}

/* Of blocks in one another that write the buffer, the innermost is the producer. */
static bool find_producer(struct tir *ir, tir_block block, struct reverse_compute_inline_plan *plan, ms_error *err) {
  uint32_t found = 0;
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->writers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    bool innermost = tir_is_below(ir, b, plan->scope);
    for (uint32_t w = tir_buffer_at(ir, plan->buffer)->writers; w && innermost; w = ir->uses.at[w].next)
      innermost = !tir_is_below(ir, ir->uses.at[w].block, b);
    if (!innermost) continue;
    plan->producer = b;
    found++;
    if (tir_is_complete_block(ir, b, plan->scope)) continue;
    return tir_refuse(ir, err, MS_NOT_ONE_PRODUCER, b, "producer `%s` is not complete", tir_block_name(ir, b));
  }
  if (found == 1) return true;
  return tir_refuse(ir, err, MS_NOT_ONE_PRODUCER, block, "buffer `%s` has %u producers",
                    tir_buffer_name(ir, plan->buffer), found);
}

/* All loads of the buffer in the store are one expression. */
static bool find_load(struct tir *ir, struct reverse_compute_inline_plan *plan) {
  struct tir_stmt_node n = *tir_stmt_at(ir, plan->store);
  uint32_t count = tir_find_loads(ir, n.store.value, plan->buffer, &plan->load, 1);
  for (uint32_t i = 0; i < tir_buffer_at(ir, n.store.buffer)->rank; i++) {
    tir_expr load;
    uint32_t more = tir_find_loads(ir, ir->operands.at[n.store.indices + i], plan->buffer, &load, 1);
    if (more > 1 || (more && count && load != plan->load)) return false;
    if (more) plan->load = load;
    count |= more;
  }
  return count == 1;
}

static bool has_constant_domain(const struct tir *ir, tir_var v) {
  return tir_is_int(ir, ir->vars.at[v].min) && tir_is_int(ir, ir->vars.at[v].extent);
}

/* Of `vars`, one that the value uses has a range that differs. */
static bool ranges_differ(const struct tir *ir, tir_expr value, const tir_var *vars, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!has_constant_domain(ir, vars[i]) && tir_uses_var(ir, value, vars[i])) return true;
  return false;
}

/* The producer's iterations in the value, or its own loops, have ranges that differ from iteration to iteration of
 * what is around them: in each iteration of what is around the producer, the value runs from end to end of the
 * iteration's domain.
 */
static bool is_covered_each_iteration(struct tir *ir, const struct reverse_compute_inline_plan *plan, tir_var iter,
                                      tir_expr value) {
  struct tir_span iters = tir_block_at(ir, plan->producer)->iters;
  tir_var vars[MOST_ITERS], own[MOST_ITERS];
  uint32_t own_count = tir_loop_vars(ir, plan->producer_store, plan->producer, own, MOST_ITERS);
  if (iters.count > MOST_ITERS || own_count > MOST_ITERS) return false;
  for (uint32_t i = 0; i < iters.count; i++) vars[i] = ir->iters.at[iters.first + i].var;
  if (!ranges_differ(ir, value, vars, iters.count) && !ranges_differ(ir, value, own, own_count)) return true;
  struct tir_interval taken = tir_relax(ir, value, own, own_count);
  if (taken.empty) return false;
  if (taken.min) taken.min = tir_relax(ir, taken.min, vars, iters.count).min;
  if (taken.max) taken.max = tir_relax(ir, taken.max, vars, iters.count).max;
  struct tir_var_node v = ir->vars.at[iter];
  return tir_interval_covers(ir, taken, tir_interval_of(ir, v.min, v.extent));
}

/* The iteration takes only values of its domain: sure misses, at either end, are found by the bounds of the values. */
static bool is_covered(struct tir *ir, const struct reverse_compute_inline_plan *plan, tir_var iter, tir_expr value) {
  struct tir_bounds taken = tir_bounds_of(ir, value), wanted = tir_bounds_of(ir, ir->vars.at[iter].expr);
  if (!has_constant_domain(ir, iter)) return true;
  return taken.lo <= wanted.lo && taken.hi >= wanted.hi && is_covered_each_iteration(ir, plan, iter, value);
}

/* An iteration that no index depends on, one of several, or an index of none: what the producer stores may be no
 * element that the load reaches, though the iterations found for it are in their domains. */
static bool may_miss(const struct tir *ir, const struct reverse_compute_inline_plan *plan, const tir_expr *indices) {
  uint64_t met = 0;
  for (uint32_t d = 0; d < plan->rank; d++) {
    uint64_t own = 0;
    for (uint32_t i = 0; i < plan->count; i++)
      if (tir_uses_var(ir, indices[d], plan->iters[i])) own |= 1ull << i;
    if (!own || (own & met)) return true;
    met |= own;
  }
  return false;
}

/* ---- Check: iterations that grow ----
 *
 * w // 4 and w % 4 are digits of w where its domain is a multiple of 4. Others are inverted over a domain that grows to
 * one, as predicates cut the values to the old one. */

struct growth {
  struct tir *ir;
  const struct reverse_compute_inline_plan *plan;
  int64_t steps[MOST_ITERS], shifts[MOST_ITERS]; /* the domain, moved by the shift, is to be a multiple of the step */
  bool differ;                                   /* one iteration is divided from several beginnings */
  bool grown;
};

/* The iteration that counts most in what is divided: it may take more values, and no other does. */
static bool find_divided(struct growth *g, tir_expr divided, int64_t divisor) {
  struct tir_linear l = tir_linear_of(g->ir, divided);
  uint32_t most = MOST_ITERS;
  int64_t coefficient = 0, begin = tir_floor_mod(l.constant, divisor);
  for (uint32_t t = 0; t < l.count; t++) {
    struct tir_term term = tir_terms(g->ir, l)[t];
    uint32_t i = 0;
    while (i < g->plan->count && tir_var_expr(g->ir, g->plan->iters[i]) != term.atom) i++;
    if (i == g->plan->count || term.coefficient <= 0) return false;
    if (term.coefficient > coefficient) coefficient = term.coefficient, most = i;
  }
  if (most == MOST_ITERS || begin % coefficient) return false;
  int64_t step = divisor / tir_gcd(divisor, coefficient), old = g->steps[most], together;
  g->differ |= old > 1 && g->shifts[most] != begin / coefficient;
  g->shifts[most] = begin / coefficient;
  if (__builtin_mul_overflow(step / tir_gcd(step, old), old, &together) || together > INT32_MAX) return false;
  g->steps[most] = together;
  return true;
}

static bool visit_divided(void *data, tir_expr e) {
  struct growth *g = data;
  struct tir_expr_node n = *tir_at(g->ir, e);
  if ((n.kind == TIR_FLOORDIV || n.kind == TIR_FLOORMOD) && tir_is_int(g->ir, n.b) && tir_at(g->ir, n.b)->imm > 0)
    find_divided(g, n.a, tir_at(g->ir, n.b)->imm);
  return true;
}

/* Puts variables of grown domains into the indices, in the place of those in `vars`. */
static void grow_domains(struct tir *ir, struct growth *g, tir_expr *indices, tir_var *vars) {
  const struct reverse_compute_inline_plan *plan = g->plan;
  for (uint32_t i = 0; i < plan->count; i++) {
    struct tir_var_node v = ir->vars.at[plan->iters[i]];
    if (g->steps[i] == 1 || g->differ || !tir_is_const(ir, v.min, 0) || !tir_is_int(ir, v.extent)) continue;
    int64_t end = tir_at(ir, v.extent)->imm + g->shifts[i];
    int64_t grown = (end + g->steps[i] - 1) / g->steps[i] * g->steps[i];
    if (grown == tir_at(ir, v.extent)->imm) continue;
    vars[i] = tir_new_var(ir, TIR_VAR_ITER, v.name, v.type, v.min, tir_int(ir, tir_type_of(ir, v.extent), grown));
    tir_expr moved = tir_sub(ir, tir_var_expr(ir, vars[i]), tir_int(ir, v.type, g->shifts[i]));
    g->grown = true;
    tir_subst_var(ir, plan->iters[i], moved);
  }
  for (uint32_t d = 0; d < plan->rank; d++) indices[d] = tir_subst(ir, indices[d]);
  tir_subst_clear(ir);
  for (uint32_t d = 0; d < plan->rank; d++) indices[d] = tir_simplify(ir, indices[d]);
}

static bool invert_grown(struct tir *ir, struct reverse_compute_inline_plan *plan, const tir_expr *indices) {
  struct growth g = {.ir = ir, .plan = plan};
  tir_expr grown[TIR_MOST_INLINED_RANK];
  tir_var vars[MOST_ITERS];
  for (uint32_t i = 0; i < plan->count; i++) g.steps[i] = 1, vars[i] = plan->iters[i];
  for (uint32_t d = 0; d < plan->rank; d++) tir_walk_expr(ir, grown[d] = indices[d], visit_divided, &g);
  plan->has_image = may_miss(ir, plan, indices);
  if (plan->has_image) grow_domains(ir, &g, grown, vars);
  plan->grown = g.grown;
  if (!tir_inverse_affine_map(ir, grown, plan->rank, vars, plan->count, TIR_NONE, plan->stored, 1, plan->values) ||
      (plan->has_image &&
       !tir_detect_iter_map(ir, grown, plan->rank, vars, plan->count, TIR_NONE, TIR_MAP_BIJECTIVE, false, plan->image)))
    return false;
  for (uint32_t i = 0; i < plan->count; i++)
    if (vars[i] != plan->iters[i] && plan->values[i])
      plan->values[i] = tir_sub(ir, plan->values[i], tir_int(ir, tir_type_of(ir, plan->values[i]), g.shifts[i]));
  return true;
}

/* ---- Check ---- */

/* No instance of the block has an index past the buffer, as those that pad do: none is asked for by what is stored. */
static bool stays_inside(struct tir *ir, const struct reverse_compute_inline_plan *plan, const tir_expr *indices) {
  for (uint32_t d = 0; d < plan->rank; d++) {
    tir_expr size = ir->operands.at[tir_buffer_at(ir, plan->buffer)->shape + d];
    struct tir_bounds b = tir_bounds_of(ir, indices[d]);
    if (tir_is_int(ir, size) && b.lo >= 0 && b.hi < tir_at(ir, size)->imm) continue;
    tir_type type = tir_type_of(ir, indices[d]);
    struct tir_interval whole = tir_interval_of(ir, tir_int(ir, type, 0), tir_cast(ir, type, size));
    if (!tir_interval_covers(ir, whole, tir_relax(ir, indices[d], plan->iters, plan->count))) return false;
  }
  return true;
}

static bool invert_load(struct tir *ir, tir_block block, struct reverse_compute_inline_plan *plan) {
  tir_expr indices[TIR_MOST_INLINED_RANK];
  plan->count = tir_block_at(ir, block)->iters.count;
  plan->rank = tir_buffer_at(ir, plan->buffer)->rank;
  if (plan->count > MOST_ITERS || plan->rank > TIR_MOST_INLINED_RANK) return false;
  for (uint32_t i = 0; i < plan->count; i++) plan->iters[i] = tir_iters(ir, block)[i].var;
  for (uint32_t i = 0; i < plan->rank; i++) {
    indices[i] = ir->operands.at[tir_at(ir, plan->load)->operands + i];
    tir_expr stored = ir->operands.at[tir_as(ir, plan->producer_store, TIR_STORE)->store.indices + i];
    plan->stored[i] = tir_cast(ir, tir_type_of(ir, indices[i]), stored);
  }
  if (!stays_inside(ir, plan, indices) || !invert_grown(ir, plan, indices)) return false;
  for (uint32_t i = 0; i < plan->count; i++) {
    const struct tir_var_node *v = &ir->vars.at[plan->iters[i]];
    if (!plan->values[i] && tir_is_int(ir, v->min) && tir_is_const(ir, v->extent, 1)) plan->values[i] = v->min;
    if (!plan->values[i] || !is_covered(ir, plan, plan->iters[i], plan->values[i])) return false;
  }
  return true;
}

static bool find_producer_store(const struct tir *ir, struct reverse_compute_inline_plan *plan) {
  tir_stmt s = tir_only_child(ir, plan->producer);
  bool copies = tir_annotation(ir, tir_stmt_at(ir, plan->producer)->annotations, "auto_copy");
  while (copies && s && tir_is(ir, s, TIR_LOOP)) s = tir_only_child(ir, s);
  plan->condition = TIR_NONE;
  if (s && tir_is(ir, s, TIR_IF)) {
    if (tir_stmt_at(ir, s)->first[TIR_ELSE]) return false;
    plan->condition = s;
    s = tir_only_child(ir, s);
  }
  plan->producer_store = s;
  return s && tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == plan->buffer &&
         !tir_as(ir, s, TIR_STORE)->store.predicate && !tir_stmt_at(ir, plan->producer)->first[TIR_INIT];
}

/* A predicate cannot name the loops in the producer. */
static bool holds_own_loop(const struct tir *ir, const struct reverse_compute_inline_plan *plan, tir_expr predicate) {
  for (tir_stmt s = tir_stmt_at(ir, plan->producer_store)->parent; s != plan->producer; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_uses_var(ir, predicate, tir_as(ir, s, TIR_LOOP)->loop.var)) return true;
  return false;
}

static bool plan_body(struct tir *ir, tir_block block, struct reverse_compute_inline_plan *plan) {
  plan->store = tir_only_store(ir, block, TIR_BODY);
  return plan->store && !tir_has_own_buffers(ir, block) && !tir_as(ir, block, TIR_BLOCK)->block.predicate &&
         find_load(ir, plan) && !tir_uses_opaquely(ir, plan->load, plan->buffer) && find_producer_store(ir, plan) &&
         invert_load(ir, block, plan);
}

/* min <= value < min + extent for each iteration of the block. */
static tir_expr bounds_of_iters(struct tir *ir, tir_block block, const struct reverse_compute_inline_plan *plan) {
  tir_expr all = TIR_NONE;
  for (uint32_t i = 0; i < plan->count; i++) {
    tir_expr value = plan->values[i], min, extent;
    tir_needed_domain(ir, block, i, &min, &extent);
    tir_type type = tir_type_of(ir, value);
    if (tir_type_of(ir, min) != type) min = tir_cast(ir, type, min);
    if (tir_type_of(ir, extent) != type) extent = tir_cast(ir, type, extent);
    all = tir_and(ir, all, tir_make(ir, TIR_GE, value, min));
    all = tir_and(ir, all, tir_make(ir, TIR_LT, value, tir_add(ir, min, extent)));
  }
  return all;
}

/* Iterations of the producer in the condition. */
static uint32_t count_iters(const struct tir *ir, const struct reverse_compute_inline_plan *plan, tir_expr condition) {
  struct tir_span iters = tir_block_at(ir, plan->producer)->iters;
  uint32_t count = 0;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    count += tir_uses_var(ir, condition, ir->iters.at[i].var);
  return count;
}

/* The producer's loops, made for the block, make sure of a condition on several of its iterations: as a predicate over
 * loops it would go, and the domains of the iterations, over which a later move may make new loops, do not show it. */
static bool loses_condition(struct tir *ir, const struct reverse_compute_inline_plan *plan, tir_expr condition) {
  if (!condition || !plan->grown) return false;
  struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind == TIR_AND) return loses_condition(ir, plan, n.a) || loses_condition(ir, plan, n.b);
  if (count_iters(ir, plan, condition) < 2) return false;
  struct tir_span iters = tir_block_at(ir, plan->producer)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    tir_subst_var(ir, ir->iters.at[i].var, ir->iters.at[i].binding);
  tir_expr over_loops = tir_subst(ir, condition);
  tir_subst_clear(ir);
  return tir_prove(ir, over_loops);
}

/* What is stored is at an element that the load reaches, where the iterations do not make sure of that. False: it may
 * be between such elements. */
static bool add_image(struct tir *ir, struct reverse_compute_inline_plan *plan) {
  for (uint32_t d = 0; d < plan->rank && plan->has_image; d++) {
    struct tir_progression p = plan->image[d];
    tir_type type = tir_type_of(ir, plan->stored[d]);
    if (p.scale && !tir_is_const(ir, p.scale, 1)) return false;
    tir_expr min = tir_cast(ir, type, p.base);
    tir_expr extent = p.scale ? tir_cast(ir, type, p.extent) : tir_int(ir, type, 1);
    tir_expr ends[] = {tir_make(ir, TIR_GE, plan->stored[d], min),
                       tir_make(ir, TIR_LT, plan->stored[d], tir_add(ir, min, extent))};
    for (int i = 0; i < 2; i++)
      if (!tir_prove_under(ir, plan->in_bounds, ends[i])) plan->in_bounds = tir_and(ir, plan->in_bounds, ends[i]);
  }
  return true;
}

/* The block goes to where its producer is, and all that uses what is between them is known. */
static bool check_order(struct tir *ir, tir_block block, const struct reverse_compute_inline_plan *plan,
                        ms_error *err) {
  struct tir_transfer to_producer = {.block = block, .scope = plan->scope, .to = plan->producer};
  for (tir_stmt s = block; s != plan->scope; s = tir_stmt_at(ir, s)->parent)
    if (!tir_check_place_steady(ir, s, plan->scope, err)) return false;
  return tir_check_declared_around(ir, plan->buffer, plan->scope, err) &&
         tir_check_declared_below(ir, plan->buffer, plan->scope, err) && tir_check_order(ir, &to_producer, err);
}

/* The block's iterations run in the order of the producer's: no two of them may write one element. */
static bool check_meeting(struct tir *ir, tir_block block, ms_error *err) {
  return !tir_instances_meet(ir, block) || tir_writes_apart(ir, block) ||
         tir_refuse(ir, err, MS_ITERATIONS_IN_ORDER, block,
                    "iterations of block `%s` use the same element, and would run in another order",
                    tir_block_name(ir, block));
}

/* The producer stores for all values of the block's iterations: it runs for them now, under no condition; or what is
 * stored beside goes to elements that nothing else writes, and nobody sees. */
static bool check_around(struct tir *ir, tir_block block, const struct reverse_compute_inline_plan *plan,
                         ms_error *err) {
  if (!tir_only_loops_up_to(ir, block, plan->scope))
    return tir_refuse(ir, err, MS_MOVE_CONDITIONAL, block, "block `%s` stands under more than loops",
                      tir_block_name(ir, block));
  if (!tir_check_free_of_place(ir, block, plan->scope, true, err)) return false;
  bool apart = !tir_is_output_block(ir, block, plan->scope) && tir_block_at(ir, block)->reads.count == 1 &&
               tir_writes_apart(ir, block);
  return apart || tir_runs_for_all(ir, block) ||
         tir_refuse(ir, err, MS_MOVE_DOMAIN, block, "block `%s` may not run for each value of its iterations",
                    tir_block_name(ir, block));
}

static bool check_reverse_compute_inline(struct tir *ir, tir_block block, struct reverse_compute_inline_plan *plan,
                                         ms_error *err) {
  if (!tir_check_inlined_scope(ir, block, &plan->scope, err) || !check_around(ir, block, plan, err) ||
      !find_buffer(ir, block, plan, err) || !tir_check_complete_block(ir, block, plan->scope, err) ||
      !find_producer(ir, block, plan, err) || !tir_check_given(ir, block, plan->scope, plan->producer, err) ||
      !tir_check_not_output(ir, plan->producer, plan->scope, err) ||
      !tir_check_only_reader(ir, plan->buffer, block, TIR_NONE, err))
    return false;
  bool planned = plan_body(ir, block, plan);
  plan->in_bounds = planned ? bounds_of_iters(ir, block, plan) : TIR_NONE;
  if (!planned || !add_image(ir, plan) || loses_condition(ir, plan, plan->in_bounds) ||
      (plan->in_bounds &&
       (holds_own_loop(ir, plan, plan->in_bounds) ||
        (tir_scope_of(ir, plan->producer) != plan->scope && tir_uses_inner_var(ir, plan->in_bounds)))))
    return tir_refuse(ir, err, MS_REVERSE_INLINE_BODY, block, "block `%s` is no single store of what `%s` produces",
                      tir_block_name(ir, block), tir_block_name(ir, plan->producer));
  return tir_check_blocks_only(ir, plan->buffer, plan->scope, true, err) && tir_check_not_only_block(ir, block, err) &&
         tir_check_no_opaque_access(ir, plan->buffer, block, err) &&
         tir_check_no_range_loads(ir, plan->buffer, plan->producer, err) && check_order(ir, block, plan, err) &&
         check_meeting(ir, block, err);
}

/* ---- Edit ---- */

static tir_expr produced_value(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  (void)ir, (void)indices, (void)count;
  return *(const tir_expr *)context;
}

static void bind_iters(struct tir *ir, const struct reverse_compute_inline_plan *plan) {
  assert(plan->count <= MOST_ITERS);
  for (uint32_t i = 0; i < plan->count; i++)
    tir_subst_var(ir, plan->iters[i], tir_cast(ir, ir->vars.at[plan->iters[i]].type, plan->values[i]));
}

/* The block's store in the place of the producer's. The block's iterations go first: the produced value is over the
 * producer's, and is not to be touched. */
static void replace_store(struct tir *ir, const struct reverse_compute_inline_plan *plan) {
  tir_expr produced = tir_as(ir, plan->producer_store, TIR_STORE)->store.value;
  struct tir_load_rule rule = {plan->buffer, TIR_NONE, produced_value, &produced};
  tir_buffer target = tir_as(ir, plan->store, TIR_STORE)->store.buffer;
  uint32_t rank = tir_buffer_at(ir, target)->rank, first = tir_grow_operands(ir, rank);
  bind_iters(ir, plan);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr index = tir_subst(ir, ir->operands.at[tir_as(ir, plan->store, TIR_STORE)->store.indices + i]);
    ir->operands.at[first + i] = index;
  }
  tir_expr value = tir_subst_value(ir, tir_as(ir, plan->store, TIR_STORE)->store.value);
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr index = tir_rewrite_loads(ir, &rule, ir->operands.at[first + i]);
    ir->operands.at[first + i] = index;
  }
  value = tir_rewrite_loads(ir, &rule, value);
  struct tir_stmt_node *n = tir_stmt_at(ir, plan->producer_store);
  n->store.buffer = target;
  n->store.indices = first;
  n->store.value = value;
}

/* `new` makes sure of `old`: the same comparison with a constant as tight or tighter. */
static bool implies(const struct tir *ir, tir_expr new, tir_expr old) {
  const struct tir_expr_node *n = tir_at(ir, new), *o = tir_at(ir, old);
  if (new == old) return true;
  if (n->kind == TIR_AND) return implies(ir, n->a, old) || implies(ir, n->b, old);
  if (n->kind != o->kind || (n->kind != TIR_LT && n->kind != TIR_LE)) return false;
  if (n->a == o->a && tir_is_int(ir, n->b) && tir_is_int(ir, o->b))
    return tir_at(ir, n->b)->imm <= tir_at(ir, o->b)->imm;
  return n->b == o->b && tir_is_int(ir, n->a) && tir_is_int(ir, o->a) && tir_at(ir, n->a)->imm >= tir_at(ir, o->a)->imm;
}

/* Both, without what the new one implies. */
static tir_expr add_own_predicate(struct tir *ir, tir_expr new, tir_expr own) {
  if (!own || implies(ir, new, own)) return new;
  struct tir_expr_node n = *tir_at(ir, own);
  if (n.kind != TIR_AND) return tir_and(ir, new, own);
  return add_own_predicate(ir, add_own_predicate(ir, new, n.a), n.b);
}

/* Conditions on the producer's iterations become its predicate, in terms of its loops; a condition inside moves out. */
static void add_predicate(struct tir *ir, const struct reverse_compute_inline_plan *plan) {
  tir_expr predicate = plan->in_bounds;
  if (!predicate) return;
  if (plan->condition && tir_stmt_at(ir, plan->condition)->test.condition != predicate) {
    predicate = tir_and(ir, predicate, tir_stmt_at(ir, plan->condition)->test.condition);
    tir_kill_alone(ir, plan->condition);
  }
  tir_subst_iters(ir, plan->producer);
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  tir_expr own = tir_as(ir, plan->producer, TIR_BLOCK)->block.predicate;
  predicate = add_own_predicate(ir, predicate, own);
  tir_as(ir, plan->producer, TIR_BLOCK)->block.predicate = predicate;
}

static void renew_regions(struct tir *ir, const struct reverse_compute_inline_plan *plan) {
  for (tir_stmt s = plan->producer; s != plan->scope; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_BLOCK)) tir_renew_regions(ir, s);
}

static void edit_reverse_compute_inline(struct tir *ir, tir_block block,
                                        const struct reverse_compute_inline_plan *plan) {
  assert(plan->producer != block && tir_is(ir, plan->producer_store, TIR_STORE));
  replace_store(ir, plan);
  add_predicate(ir, plan);
  renew_regions(ir, plan);
  tir_kill_leaf(ir, block);
  tir_remove_alloc(ir, plan->scope, plan->buffer);
}

bool tir_reverse_compute_inline(struct tir *ir, tir_block block, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct reverse_compute_inline_plan plan;
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_reverse_compute_inline(ir, block, &plan, err))) return false;
  edit_reverse_compute_inline(ir, block, &plan);
  return true;
}

bool tir_can_reverse_compute_inline(struct tir *ir, tir_block block) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct reverse_compute_inline_plan plan;
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_reverse_compute_inline(ir, block, &plan, NULL);
  tir_rewind(ir, &mark);
  return accepted;
}
