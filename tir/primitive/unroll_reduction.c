/* Unroll reduction: a reduction over a small constant window becomes one expression of all its terms, in the order in
 * which they were reduced, beginning with the init's value. No partial result goes through memory, and results are the
 * same bit for bit.
 *
 * Requires: a reduction block below loops alone, without buffers of its own, that reduces inside of its scope. Its init
 *           and its update are one store each, to one element; the update loads this element once, and neither they nor
 *           what places the block use the buffer otherwise. The domains of what it reduces are constant, of
 *           MOST_TERMS steps together at most. Loops that reduce are serial or unrolled, of constant range, with no
 *           annotation; they drive no spatial iteration and no predicate. From the outermost of them inwards each loop
 *           holds the next alone, has a range that does not depend on them, and drives the block, if it has several
 *           iterations. Their iterations take each step of the reduction once, that of the init first.
 * After:    the block has its spatial iterations, no init, and one store. It reads, of what it read, what all steps
 *           together do; no longer what it reduced into.
 * Forward:  the loops that reduced are dead; the block keeps its id, and other loops theirs. */
#include "loops.h"
#include "reduction_body.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"

#include <stdlib.h>

enum { MOST_TERMS = 64, MOST_RANK = 16, REDUCES = 1u << TIR_REDUCE };

struct unroll_reduction_plan {
  tir_buffer buffer;
  tir_stmt init, update;
  uint32_t terms;
  uint8_t steps[MOST_TERMS]; /* of the terms, in their order: the numbers of their steps, the last iteration fastest */
};

/* ---- Check ---- */

static bool check_scope(struct tir *ir, tir_block block, ms_error *err) {
  tir_block scope;
  return tir_find_scope(ir, block, &scope, err) && tir_check_bare_reduction(ir, block, scope, err) &&
         tir_check_begun_once(ir, block, err);
}

static bool refuse_body(const struct tir *ir, tir_block block, const char *why, ms_error *err) {
  return tir_refuse(ir, err, MS_UNROLL_BODY, block, "block `%s` %s", tir_block_name(ir, block), why);
}

/* The update's value depends on the element and on the step alone: it loads the element once, as written out. */
static bool loads_element_once(struct tir *ir, const struct unroll_reduction_plan *plan) {
  struct tir_stmt_node update = *tir_as(ir, plan->update, TIR_STORE);
  tir_expr load;
  if (tir_uses_opaquely(ir, update.store.value, plan->buffer) ||
      tir_find_loads(ir, update.store.value, plan->buffer, &load, 1) != 1 ||
      tir_count_loads(ir, update.store.value, plan->buffer) != 1)
    return false;
  for (uint32_t i = 0; i < tir_buffer_at(ir, plan->buffer)->rank; i++)
    if (!tir_prove_equal(ir, ir->operands.at[tir_at(ir, load)->operands + i],
                         ir->operands.at[update.store.indices + i]))
      return false;
  return true;
}

/* Both store to the same element, whose place does not depend on what is in the buffer. */
static bool stores_one_element(struct tir *ir, const struct unroll_reduction_plan *plan) {
  uint32_t begun = tir_as(ir, plan->init, TIR_STORE)->store.indices;
  uint32_t stored = tir_as(ir, plan->update, TIR_STORE)->store.indices;
  for (uint32_t i = 0; i < tir_buffer_at(ir, plan->buffer)->rank; i++)
    if (tir_uses_buffer(ir, ir->operands.at[stored + i], plan->buffer) ||
        !tir_prove_equal(ir, ir->operands.at[begun + i], ir->operands.at[stored + i]))
      return false;
  return true;
}

/* The buffer decides in no loop around the block, binding or predicate what runs. */
static bool is_placed_apart(struct tir *ir, tir_block block, tir_buffer buffer) {
  tir_expr load;
  for (tir_stmt s = block; s == block || tir_is(ir, s, TIR_LOOP); s = tir_stmt_at(ir, s)->parent)
    if (tir_scope_loads(ir, s, buffer, &load, 1)) return false;
  return true;
}

static bool check_stores(struct tir *ir, tir_block block, struct unroll_reduction_plan *plan, ms_error *err) {
  plan->init = tir_only_store(ir, block, TIR_INIT);
  plan->update = tir_only_store(ir, block, TIR_BODY);
  if (!plan->init || !plan->update) return refuse_body(ir, block, "is no init and update of one store each", err);
  plan->buffer = tir_as(ir, plan->update, TIR_STORE)->store.buffer;
  struct tir_span writes = tir_block_at(ir, block)->writes;
  if (tir_as(ir, plan->init, TIR_STORE)->store.buffer != plan->buffer || !stores_one_element(ir, plan))
    return refuse_body(ir, block, "begins and updates different elements", err);
  if (writes.count != 1 || ir->regions.at[writes.first].buffer != plan->buffer)
    return tir_refuse(ir, err, MS_WRITES_NOT_REDUCED, block, "block `%s` says that it writes %u regions",
                      tir_block_name(ir, block), writes.count);
  tir_expr begin = tir_as(ir, plan->init, TIR_STORE)->store.value;
  if (tir_uses_buffer(ir, begin, plan->buffer)) return refuse_body(ir, block, "begins with what it writes", err);
  if (!loads_element_once(ir, plan))
    return refuse_body(ir, block, "does not load the element that it updates, and no other, once", err);
  return is_placed_apart(ir, block, plan->buffer) ||
         refuse_body(ir, block, "runs where the buffer that it writes says", err);
}

static bool refuse_terms(struct tir *ir, tir_block block, const char *what, ms_error *err) {
  return tir_refuse(ir, err, MS_UNROLL_TERMS, block, "block `%s` reduces %s", tir_block_name(ir, block), what);
}

static bool refuse_steps(const struct tir *ir, tir_block block, ms_error *err) {
  return tir_refuse(ir, err, MS_UNROLL_STEPS, block,
                    "the loops around block `%s` do not take each step of its reduction once",
                    tir_block_name(ir, block));
}

/* How many steps there are. */
static bool count_terms(struct tir *ir, tir_block block, struct unroll_reduction_plan *plan, ms_error *err) {
  plan->terms = 1;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind != TIR_REDUCE) continue;
    struct tir_var_node v = ir->vars.at[iter.var];
    if (!tir_is_int(ir, v.min) || !tir_is_int(ir, v.extent))
      return refuse_terms(ir, block, "over a range that is not constant", err);
    int64_t extent = tir_at(ir, v.extent)->imm;
    if (extent < 1 || extent > MOST_TERMS / (int64_t)plan->terms)
      return refuse_terms(ir, block, "more than 64 terms, or none", err);
    plan->terms *= (uint32_t)extent;
  }
  return true;
}

static tir_loop loop_around(const struct tir *ir, tir_stmt s) {
  tir_stmt parent = tir_stmt_at(ir, s)->parent;
  return parent && tir_is(ir, parent, TIR_LOOP) ? parent : TIR_NONE;
}

static bool reduces(struct tir *ir, tir_loop loop, tir_block block) {
  return (tir_loop_iter_kinds(ir, loop, block) & REDUCES) != 0;
}

static bool uses_loop(const struct tir *ir, tir_expr e, tir_loop loop) {
  return e && tir_uses_var(ir, e, tir_as(ir, loop, TIR_LOOP)->loop.var);
}

/* A loop that reduces can be taken away. */
static bool check_reducing_loop(struct tir *ir, tir_loop loop, tir_block block, ms_error *err) {
  const struct tir_stmt_node *n = tir_as(ir, loop, TIR_LOOP);
  const char *name = tir_block_name(ir, block);
  if (!tir_check_free_loop(ir, loop, err)) return false;
  if (n->loop_kind != TIR_SERIAL && n->loop_kind != TIR_UNROLLED)
    return tir_refuse(ir, err, MS_LOOP_NOT_SERIAL, loop, "this loop, which reduces in block `%s`, is not serial", name);
  if (tir_loop_iter_kinds(ir, loop, block) != REDUCES)
    return tir_refuse(ir, err, MS_LOOP_SPATIAL_AND_REDUCTION, loop,
                      "this loop drives more of block `%s` than its reduction", name);
  if (!tir_is_int(ir, n->loop.min) || tir_loop_extent(ir, loop) < 1)
    return refuse_terms(ir, block, "by a loop whose range is not constant", err);
  if (uses_loop(ir, tir_as(ir, block, TIR_BLOCK)->block.predicate, loop))
    return tir_refuse(ir, err, MS_UNROLL_PREDICATE, block, "the predicate of block `%s` decides what it reduces", name);
  for (tir_stmt s = loop_around(ir, block); s != loop; s = loop_around(ir, s))
    if (uses_loop(ir, tir_as(ir, s, TIR_LOOP)->loop.min, loop) ||
        uses_loop(ir, tir_as(ir, s, TIR_LOOP)->loop.extent, loop))
      return tir_refuse(ir, err, MS_LOOP_RANGE_DEPENDS, s,
                        "the range of this loop depends on a reduction of block `%s`", name);
  return true;
}

/* A loop that stays inside of one that reduces; or that reduces. Nothing stands in it besides the block. */
static bool check_inner_loop(struct tir *ir, tir_loop loop, tir_block block, ms_error *err) {
  if (!tir_only_child(ir, loop))
    return tir_refuse(ir, err, MS_LOOP_NOT_ONLY_CHILD, loop, "this loop holds more than block `%s`",
                      tir_block_name(ir, block));
  if (!tir_loop_iter_kinds(ir, loop, block) && tir_loop_extent(ir, loop) != 1)
    return tir_refuse(ir, err, MS_LOOP_UNBOUND, loop, "no iteration of block `%s` is bound to this loop",
                      tir_block_name(ir, block));
  return !reduces(ir, loop, block) || check_reducing_loop(ir, loop, block, err);
}

static bool check_loops(struct tir *ir, tir_block block, ms_error *err) {
  tir_loop outermost = TIR_NONE, loops[TIR_MOST_STEPPED];
  uint32_t count = 0;
  for (tir_loop l = loop_around(ir, block); l; l = loop_around(ir, l))
    if (reduces(ir, l, block)) outermost = l;
  for (tir_stmt s = block; outermost && s != outermost; count++) {
    s = loop_around(ir, s);
    if (!check_inner_loop(ir, s, block, err)) return false;
    if (count < TIR_MOST_STEPPED) loops[TIR_MOST_STEPPED - 1 - count] = s;
  }
  if (count > TIR_MOST_STEPPED) return refuse_terms(ir, block, "in more than 64 loops", err);
  return !count || tir_block_takes_steps_once(ir, block, loops + TIR_MOST_STEPPED - count, count) ||
         refuse_steps(ir, block, err);
}

/* Substitutes the loops that reduce as they stand in their iteration of that number. False: there are not so many. */
static bool subst_iteration(struct tir *ir, tir_block block, uint32_t number) {
  for (tir_loop l = loop_around(ir, block); l; l = loop_around(ir, l)) {
    if (!reduces(ir, l, block)) continue;
    tir_var v = tir_as(ir, l, TIR_LOOP)->loop.var;
    int64_t extent = tir_loop_extent(ir, l), min = tir_at(ir, tir_as(ir, l, TIR_LOOP)->loop.min)->imm;
    tir_subst_var(ir, v, tir_int(ir, ir->vars.at[v].type, min + number % extent));
    number = (uint32_t)(number / extent);
  }
  return number == 0;
}

/* The number of the step that the loops, substituted, take; -1: it is no constant, or outside of the domains. */
static int64_t step_of(struct tir *ir, tir_block block) {
  int64_t step = 0;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind != TIR_REDUCE) continue;
    struct tir_var_node v = ir->vars.at[iter.var];
    tir_expr value = tir_subst(ir, iter.binding);
    if (!tir_is_int(ir, value)) return -1;
    int64_t extent = tir_at(ir, v.extent)->imm, at = tir_at(ir, value)->imm - tir_at(ir, v.min)->imm;
    if (at < 0 || at >= extent) return -1;
    step = step * extent + at;
  }
  return step;
}

/* The steps, in order: each once, that of the init first. */
static bool find_steps(struct tir *ir, tir_block block, struct unroll_reduction_plan *plan, ms_error *err) {
  uint64_t taken = 0;
  bool once = true, more = false;
  for (uint32_t i = 0; i < plan->terms && once; i++) {
    once = subst_iteration(ir, block, i);
    int64_t step = once ? step_of(ir, block) : -1;
    tir_subst_clear(ir);
    once = once && step >= 0 && !(taken >> step & 1) && (i || step == 0);
    if (!once) break;
    taken |= (uint64_t)1 << step;
    plan->steps[i] = (uint8_t)step;
  }
  if (once) more = subst_iteration(ir, block, plan->terms);
  tir_subst_clear(ir);
  return (once && !more) || refuse_steps(ir, block, err);
}

static bool check_unroll_reduction(struct tir *ir, tir_block block, struct unroll_reduction_plan *plan, ms_error *err) {
  return check_scope(ir, block, err) && check_stores(ir, block, plan, err) && count_terms(ir, block, plan, err) &&
         check_loops(ir, block, err) && find_steps(ir, block, plan, err);
}

/* ---- Edit ---- */

static tir_expr reduced_so_far(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  (void)ir, (void)indices, (void)count;
  return *(const tir_expr *)context;
}

/* The update's value at a step, of the element as it is so far. */
static tir_expr value_at(struct tir *ir, tir_block block, const struct unroll_reduction_plan *plan, uint32_t step,
                         tir_expr so_far) {
  for (uint32_t i = tir_block_at(ir, block)->iters.count; i-- > 0;) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind != TIR_REDUCE) continue;
    struct tir_var_node v = ir->vars.at[iter.var];
    int64_t extent = tir_at(ir, v.extent)->imm;
    tir_subst_var(ir, iter.var, tir_int(ir, v.type, tir_at(ir, v.min)->imm + step % extent));
    step = (uint32_t)(step / extent);
  }
  tir_expr value = tir_subst_value(ir, tir_as(ir, plan->update, TIR_STORE)->store.value);
  tir_subst_clear(ir);
  struct tir_load_rule rule = {plan->buffer, TIR_NONE, reduced_so_far, &so_far};
  return tir_rewrite_loads(ir, &rule, value);
}

/* What all steps together access of a region. */
static struct tir_region region_of_all(struct tir *ir, struct tir_region r, const tir_var *reduced, uint32_t count) {
  uint32_t rank = tir_buffer_at(ir, r.buffer)->rank;
  tir_expr ranges[2 * MOST_RANK];
  struct tir_interval box[MOST_RANK];
  bool uses = false;
  for (uint32_t k = 0; k < 2 * rank * count; k++)
    uses = uses || tir_uses_var(ir, ir->operands.at[r.ranges + k / count], reduced[k % count]);
  if (!uses) return r;
  if (rank > MOST_RANK) return tir_region_of_box(ir, r.buffer, NULL);
  for (uint32_t k = 0; k < 2 * rank; k++) ranges[k] = ir->operands.at[r.ranges + k];
  tir_relax_region(ir, ranges, rank, reduced, count, box);
  return tir_region_of_box(ir, r.buffer, box);
}

/* What all steps read, but of the buffer itself. */
static void set_reads(struct tir *ir, tir_block block, tir_buffer buffer, const tir_var *reduced, uint32_t count) {
  struct tir_span reads = tir_block_at(ir, block)->reads;
  uint32_t first = tir_grow_regions(ir, reads.count), kept = 0;
  for (uint32_t i = 0; i < reads.count; i++) {
    if (ir->regions.at[reads.first + i].buffer == buffer) continue;
    struct tir_region r = region_of_all(ir, ir->regions.at[reads.first + i], reduced, count);
    ir->regions.at[first + kept++] = r;
  }
  tir_set_reads(ir, block, ir->regions.at + first, kept);
}

static void take_loops(struct tir *ir, tir_block block) {
  for (tir_loop l = loop_around(ir, block), next; l; l = next) {
    next = loop_around(ir, l);
    if (reduces(ir, l, block)) tir_kill_alone(ir, l);
  }
}

/* The block's iterations without those that reduce, over which its regions then extend. */
static void take_iterations(struct tir *ir, tir_block block, tir_buffer buffer) {
  uint32_t count = tir_block_at(ir, block)->iters.count, spatial = 0, reduced = 0;
  struct tir_iter *iters = malloc((count + 1) * sizeof *iters);
  tir_var *vars = malloc((count + 1) * sizeof *vars);
  if (!iters || !vars) abort();
  for (uint32_t i = 0; i < count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind == TIR_REDUCE)
      vars[reduced++] = iter.var;
    else
      iters[spatial++] = iter;
  }
  set_reads(ir, block, buffer, vars, reduced);
  tir_set_iters(ir, block, iters, spatial);
  free(iters);
  free(vars);
}

/* What the init begins with, at the step where it runs. */
static tir_expr value_of_init(struct tir *ir, tir_block block, const struct unroll_reduction_plan *plan) {
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind == TIR_REDUCE) tir_subst_var(ir, iter.var, ir->vars.at[iter.var].min);
  }
  tir_expr value = tir_subst_value(ir, tir_as(ir, plan->init, TIR_STORE)->store.value);
  tir_subst_clear(ir);
  return value;
}

static void edit_unroll_reduction(struct tir *ir, tir_block block, const struct unroll_reduction_plan *plan) {
  tir_expr value = value_of_init(ir, block, plan);
  for (uint32_t i = 0; i < plan->terms; i++) value = value_at(ir, block, plan, plan->steps[i], value);
  tir_as(ir, plan->update, TIR_STORE)->store.value = value;
  take_loops(ir, block);
  tir_kill(ir, plan->init);
  take_iterations(ir, block, plan->buffer);
  if (ir->indirect) tir_find_undeclared(ir);
}

bool tir_unroll_reduction(struct tir *ir, tir_block block, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct unroll_reduction_plan plan = {0};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_unroll_reduction(ir, block, &plan, err))) return false;
  edit_unroll_reduction(ir, block, &plan);
  return true;
}
