/* Blockize: a loop and all below it become one block, whose iterations are those parts of the inner block's that the
 * loops further out make.
 *
 * Requires: one block below the loop, in a scope; only loops between both; each of its bindings is outer * extent +
 *           inner, where the inner loops make `inner` and the others `outer`, or of one kind of loops alone; an init is
 *           guarded by spatial iterations only, runs once for each element, before its updates, reads nothing that the
 *           block writes, and touches no buffer of the block's own; no loop or iteration further out reduces in it,
 *           nor does data say that a loop runs no iteration.
 * After:    the block NAME_o stands in the loop's place, with an iteration v_o for each v of the block; it reads and
 *           writes what the block does in all its inner iterations. In it are the loops, and the block, which keeps the
 *           iterations v_i of more than one value. An init becomes that of NAME_o: the block NAME_init in copies of the
 *           loops that it needs. The block then reads what it updates.
 * Forward:  nothing dies: loops and block keep their ids.
 *
 * A list of blocks, one after the other in one list of statements, becomes one block likewise.
 * Requires: the blocks' outer parts are the same, and spatial; nothing stands between them.
 * After:    the block outer_NAME_NAME_… with all of them and their loops; it reads and writes, of each buffer, the
 *           union of what they do. */
#include "blockize.h"
#include "loops.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/order/order.h"
#include "tir/analysis/outside.h"

#include <stdlib.h>
#include <string.h>

/* ---- Check ---- */

/* How many values from 0 on the binding may take of the domain: a block that was moved may need but some. */
static tir_expr taken_extent(struct tir *ir, tir_expr binding, tir_expr extent) {
  struct tir_bounds taken = tir_bounds_of(ir, binding);
  if (!tir_is_int(ir, extent) || taken.lo < 0 || taken.hi >= tir_at(ir, extent)->imm - 1) return extent;
  return tir_int(ir, tir_type_of(ir, extent), taken.hi + 1);
}

/* Without a map: each iteration as a whole belongs to one side. */
static bool divide_trivially(struct tir *ir, struct tir_blockize_plan *plan, uint32_t loop_count) {
  for (uint32_t i = 0; i < plan->iter_count; i++) {
    struct tir_iter iter = tir_iters(ir, plan->block)[i];
    const struct tir_var_node *v = &ir->vars.at[iter.var];
    tir_expr extent = v->extent, zero = tir_int(ir, tir_type_of(ir, extent), 0);
    tir_expr one = tir_int(ir, tir_type_of(ir, extent), 1);
    if (!tir_is_const(ir, ir->vars.at[iter.var].min, 0)) return false;
    bool inner = tir_uses_any_loop(ir, iter.binding, plan->loops, plan->inner_count);
    bool outer = tir_uses_any_loop(ir, iter.binding, plan->loops + plan->inner_count, loop_count - plan->inner_count);
    if (inner && outer) return false;
    if (inner)
      plan->parts[i] = (struct tir_division){zero, one, iter.binding, taken_extent(ir, iter.binding, extent)};
    else if (outer || !tir_is_const(ir, iter.binding, 0))
      plan->parts[i] = (struct tir_division){iter.binding, extent, zero, one};
    else
      plan->parts[i] = (struct tir_division){zero, one, zero, one};
  }
  plan->predicates[0] = plan->predicates[1] = TIR_NONE;
  return true;
}

/* Iterations of the block around, which bindings may be made of, stand for loops further out. Returns the count. */
static uint32_t add_iterations_around(struct tir *ir, const struct tir_blockize_plan *plan, tir_var *vars,
                                      uint32_t count) {
  tir_block around = tir_parent_block(ir, plan->block);
  for (uint32_t k = 0; around && k < tir_block_at(ir, around)->iters.count; k++) {
    tir_var v = tir_iters(ir, around)[k].var;
    bool used = false;
    for (uint32_t i = 0; i < plan->iter_count && !used; i++)
      used = tir_uses_var(ir, tir_iters(ir, plan->block)[i].binding, v);
    if (used && count < TIR_MOST_BLOCKIZED) vars[count++] = v;
  }
  return count;
}

static bool divide(struct tir *ir, struct tir_blockize_plan *plan, uint32_t loop_count) {
  tir_var vars[TIR_MOST_BLOCKIZED];
  tir_expr bindings[TIR_MOST_BLOCKIZED];
  for (uint32_t i = 0; i < loop_count; i++) vars[i] = tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var;
  for (uint32_t i = 0; i < plan->iter_count; i++) bindings[i] = tir_iters(ir, plan->block)[i].binding;
  tir_expr predicate = tir_as(ir, plan->block, TIR_BLOCK)->block.predicate;
  uint32_t with_around = add_iterations_around(ir, plan, vars, loop_count);
  uint32_t first = plan->around_first ? with_around : loop_count;
  if (tir_divide_map(ir, bindings, plan->iter_count, vars, first, plan->inner_count, predicate,
                     !plan->preserve_unit_iters, plan->parts, plan->predicates) ||
      (!predicate && divide_trivially(ir, plan, loop_count)))
    return true;
  return first != with_around && tir_divide_map(ir, bindings, plan->iter_count, vars, with_around, plan->inner_count,
                                                predicate, !plan->preserve_unit_iters, plan->parts, plan->predicates);
}

static bool ranges_use(const struct tir *ir, const struct tir_blockize_plan *plan, tir_var v) {
  for (uint32_t i = 0; i < plan->inner_count; i++) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, plan->loops[i]);
    if (tir_uses_var(ir, n->loop.min, v) || tir_uses_var(ir, n->loop.extent, v)) return true;
  }
  for (uint32_t i = 0; i < plan->iter_count; i++)
    if (tir_uses_var(ir, plan->parts[i].inner_extent, v)) return true;
  return false;
}

/* A range uses the loop's variable, for which no iteration of the block stands. */
static bool follows_loop(const struct tir *ir, const struct tir_blockize_plan *plan, tir_loop loop) {
  tir_var v = tir_as(ir, loop, TIR_LOOP)->loop.var;
  bool bound = false;
  for (uint32_t i = 0; i < plan->iter_count && !bound; i++) {
    const struct tir_expr_node *outer = tir_at(ir, plan->parts[i].outer);
    bound = outer->kind == TIR_VAR && outer->ref == v;
  }
  return !bound && ranges_use(ir, plan, v);
}

/* A block with iterations: what is in it knows the loops around it by these. */
static bool has_iterations(const struct tir *ir, tir_stmt s) {
  return tir_is(ir, s, TIR_BLOCK) && tir_block_at(ir, s)->iters.count;
}

/* What is put into a block knows the loops around it, those around conditions and around blocks without iterations too,
 * by the block's iterations only. */
static bool check_ranges(struct tir *ir, const struct tir_blockize_plan *plan, ms_error *err) {
  tir_stmt first = plan->inner_count ? plan->loops[plan->inner_count - 1] : plan->block;
  for (tir_stmt s = tir_stmt_at(ir, first)->parent; s && !has_iterations(ir, s); s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && follows_loop(ir, plan, s))
      return tir_refuse(ir, err, MS_LOOP_RANGE_DEPENDS, plan->block,
                        "a range around block `%s` depends on a loop that no iteration stands for",
                        tir_block_name(ir, plan->block));
  /* The outer block says what all inner iterations touch: it cannot, if their ranges follow loops inside it. */
  for (uint32_t l = 0; l < plan->inner_count; l++)
    for (uint32_t i = 0; i < plan->iter_count; i++)
      if (tir_uses_var(ir, plan->parts[i].inner_extent, tir_as(ir, plan->loops[l], TIR_LOOP)->loop.var))
        return tir_refuse(ir, err, MS_LOOP_RANGE_DEPENDS, plan->block,
                          "the range of an iteration of block `%s` depends on a loop that goes into the new block",
                          tir_block_name(ir, plan->block));
  return true;
}

/* The inner block's initialization runs under the inner predicate, where loops that reduce mean nothing. */
static bool check_init(struct tir *ir, const struct tir_blockize_plan *plan, ms_error *err) {
  if (!tir_stmt_at(ir, plan->block)->first[TIR_INIT] || !plan->predicates[1]) return true;
  for (uint32_t l = 0; l < plan->inner_count; l++) {
    if (!tir_uses_var(ir, plan->predicates[1], tir_as(ir, plan->loops[l], TIR_LOOP)->loop.var)) continue;
    if (tir_loop_iter_kinds(ir, plan->loops[l], plan->block) == 1u << TIR_SPATIAL) continue;
    return tir_refuse(ir, err, MS_BLOCKIZE_INIT_PREDICATE, plan->block,
                      "the init of block `%s` would run under a condition on a reduction",
                      tir_block_name(ir, plan->block));
  }
  return true;
}

/* A statement of the init, or of blocks in it, loads of a buffer that the block writes. */
static bool init_reads_written(struct tir *ir, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    if (tir_init_loads(ir, block, ir->regions.at[i].buffer)) return true;
  return false;
}

/* The init runs once in the new block, before all of it: iterations that take the steps of the reduction again do not,
 * nor those that the init leaves out or runs in several times. */
static bool check_steps(struct tir *ir, const struct tir_blockize_plan *plan, ms_error *err) {
  tir_expr inner[TIR_MOST_BLOCKIZED];
  if (!tir_stmt_at(ir, plan->block)->first[TIR_INIT] || !plan->inner_count) return true;
  if (tir_updates_unbegun(ir, plan->block))
    return tir_refuse(ir, err, MS_NOT_REDUCTION_BLOCK, plan->block,
                      "block `%s` updates what its init does not begin, or not before",
                      tir_block_name(ir, plan->block));
  if (init_reads_written(ir, plan->block))
    return tir_refuse(ir, err, MS_INIT_READS_WRITTEN, plan->block,
                      "the init of block `%s` reads what the block writes, and would run before all of it",
                      tir_block_name(ir, plan->block));
  if (tir_reads_other_iterations(ir, plan->block))
    return tir_refuse(ir, err, MS_NOT_REDUCTION_BLOCK, plan->block,
                      "block `%s` reads what other iterations of it write, before their init would run",
                      tir_block_name(ir, plan->block));
  if (!tir_check_begun_once(ir, plan->block, err) || !tir_check_init_buffers(ir, plan->block, err) ||
      !tir_check_reduces_inside(ir, plan->block, tir_parent_block(ir, plan->block), err))
    return false;
  for (uint32_t i = 0; i < plan->inner_count; i++) { /* extents by shapes are at least 1 */
    const struct tir_expr_node *extent = tir_at(ir, tir_as(ir, plan->loops[i], TIR_LOOP)->loop.extent);
    if (extent->lo < 1 && extent->flags & TIR_HAS_LOAD)
      return tir_refuse(ir, err, MS_NOT_REDUCTION_BLOCK, plan->loops[i],
                        "the init of block `%s` would run where data has this loop run no iteration",
                        tir_block_name(ir, plan->block));
  }
  for (uint32_t i = 0; i < plan->iter_count; i++) inner[i] = plan->parts[i].inner;
  return tir_takes_steps_once(ir, inner, plan->iter_count, plan->loops, plan->inner_count, plan->predicates[1]) ||
         tir_refuse(ir, err, MS_REDUCTION_REPEATED, plan->loops[0],
                    "iterations of loops take steps of block `%s` again", tir_block_name(ir, plan->block));
}

/* Of a loop that does not go into the new block. */
static bool stays_outside(const struct tir *ir, const void *context, tir_var v) {
  const struct tir_blockize_plan *plan = context;
  return tir_var_at(ir, v)->kind == TIR_VAR_LOOP &&
         !tir_uses_any_loop(ir, tir_var_expr(ir, v), plan->loops, plan->inner_count);
}

/* Inside the new block no binding speaks of loops around it: of those around its scope either. */
static bool check_inner(struct tir *ir, const struct tir_blockize_plan *plan, ms_error *err) {
  bool outside = tir_any_var(ir, plan->predicates[1], stays_outside, plan);
  for (uint32_t i = 0; i < plan->iter_count; i++)
    outside = outside || tir_any_var(ir, plan->parts[i].inner, stays_outside, plan);
  return !outside || tir_refuse(ir, err, MS_BLOCKIZE_NOT_DIVISIBLE, plan->block,
                                "the bindings of block `%s` are not divided from loops around its scope",
                                tir_block_name(ir, plan->block));
}

/* Nothing in the new block writes what says how often its loops run, or where its block does; and of a buffer that the
 * block declares it is not known which elements the new one, which declares what loops in it load, would read. */
static bool check_loads(struct tir *ir, const struct tir_blockize_plan *plan, ms_error *err) {
  const struct tir_block_record *r = tir_block_at(ir, plan->block);
  tir_expr loads[TIR_MOST_BLOCKIZED];
  if (!ir->indirect) return true;
  for (uint32_t l = 0; l <= plan->inner_count; l++) {
    tir_stmt s = l ? plan->loops[l - 1] : plan->block;
    uint32_t count = tir_scope_loads(ir, s, TIR_NONE, loads, TIR_MOST_BLOCKIZED);
    if (!tir_check_place_steady(ir, s, plan->inner_count ? plan->loops[plan->inner_count - 1] : plan->block, err))
      return false;
    for (uint32_t i = 0; i < count && i < TIR_MOST_BLOCKIZED; i++) {
      tir_buffer buffer = tir_at(ir, loads[i])->ref;
      if (count <= TIR_MOST_BLOCKIZED && !tir_has_region_of(ir, r->reads, buffer)) continue;
      return tir_refuse(ir, err, MS_LOOP_RANGE_DEPENDS, s,
                        "where block `%s` runs depends on `%s`, of which it reads a part",
                        tir_block_name(ir, plan->block), tir_buffer_name(ir, buffer));
    }
  }
  return true;
}

/* Divides `block` by the loops below `top` (exclusive); refuses where that cannot be done. */
static bool check_division(struct tir *ir, tir_block block, tir_stmt top, bool preserve_unit_iters,
                           struct tir_blockize_plan *plan, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  plan->block = block;
  plan->preserve_unit_iters = preserve_unit_iters;
  plan->iter_count = tir_block_at(ir, block)->iters.count;
  plan->inner_count = 0;
  uint32_t count = 0;
  bool inside = true;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s && tir_is(ir, s, TIR_LOOP); s = tir_stmt_at(ir, s)->parent) {
    inside &= s != top;
    if (count == TIR_MOST_BLOCKIZED || plan->iter_count > TIR_MOST_BLOCKIZED)
      return tir_refuse(ir, err, MS_TOO_LARGE, block, "too many loops or iterations");
    plan->loops[count++] = s;
    plan->inner_count += inside;
  }
  if (!divide(ir, plan, count))
    return tir_refuse(ir, err, MS_BLOCKIZE_NOT_DIVISIBLE, block,
                      "the bindings of block `%s` are not divided by the loops from here on",
                      tir_block_name(ir, block));
  return check_inner(ir, plan, err) && check_ranges(ir, plan, err) && check_loads(ir, plan, err) &&
         check_init(ir, plan, err) && check_steps(ir, plan, err);
}

bool tir_check_blockize(struct tir *ir, tir_loop loop, bool preserve_unit_iters, struct tir_blockize_plan *plan,
                        ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  tir_block block;
  uint32_t blocks = tir_child_blocks(ir, loop, &block, 1);
  if (blocks != 1) return tir_refuse(ir, err, MS_NOT_ONE_CHILD_BLOCK, loop, "%u blocks are below this loop", blocks);
  if (!tir_is_nest_of(ir, loop, block))
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, loop, "more than loops stands between this and block `%s`",
                      tir_block_name(ir, block));
  return check_division(ir, block, tir_stmt_at(ir, loop)->parent, preserve_unit_iters, plan, err);
}

/* ---- Edit ---- */

/* The iterations of both blocks. */
struct iterations {
  struct tir_iter outer[TIR_MOST_BLOCKIZED], inner[TIR_MOST_BLOCKIZED];
  uint32_t outer_count, inner_count;
};

static tir_var new_iter(struct tir *ir, tir_var from, const char *suffix, tir_expr extent) {
  tir_name name = tir_name_suffix(ir, ir->vars.at[from].name, suffix);
  tir_type type = tir_type_of(ir, extent);
  return tir_new_var(ir, TIR_VAR_ITER, name, type, tir_int(ir, type, 0), extent);
}

static bool is_constant(const struct tir *ir, const struct tir_blockize_plan *plan) {
  bool constant = true;
  for (uint32_t l = 0; l < plan->inner_count && constant; l++)
    constant =
        tir_loop_extent(ir, plan->loops[l]) >= 0 && tir_is_int(ir, tir_as(ir, plan->loops[l], TIR_LOOP)->loop.min);
  for (uint32_t i = 0; i < plan->iter_count && constant; i++) constant = tir_is_int(ir, plan->parts[i].inner_extent);
  return constant;
}

/* The ranges of the inner loops and iterations, in terms of the outer block's iterations. A loop of a new range has a
 * new variable: the bindings follow. */
static void bind_ranges(struct tir *ir, struct tir_blockize_plan *plan, const struct iterations *made) {
  if (is_constant(ir, plan)) return;
  for (uint32_t i = 0; i < plan->iter_count; i++) {
    const struct tir_expr_node *outer = tir_at(ir, plan->parts[i].outer);
    if (outer->kind == TIR_VAR) tir_subst_var(ir, outer->ref, tir_var_expr(ir, made->outer[i].var));
  }
  if (plan->inner_count) tir_subst_loops(ir, plan->loops[plan->inner_count - 1]);
  for (uint32_t i = 0; i < plan->iter_count; i++) {
    plan->parts[i].inner = tir_subst(ir, plan->parts[i].inner);
    plan->parts[i].inner_extent = tir_subst(ir, plan->parts[i].inner_extent);
  }
  plan->predicates[1] = tir_subst(ir, plan->predicates[1]);
  tir_subst_clear(ir);
}

static void make_outer(struct tir *ir, const struct tir_blockize_plan *plan, struct iterations *made) {
  for (uint32_t i = 0; i < plan->iter_count; i++) {
    struct tir_iter iter = tir_iters(ir, plan->block)[i];
    const struct tir_division *part = &plan->parts[i];
    made->outer[i] = (struct tir_iter){new_iter(ir, iter.var, "_o", part->outer_extent), iter.kind, part->outer};
  }
  made->outer_count = plan->iter_count;
}

/* Leaves in the substitution what each old iteration has become. */
static void make_inner(struct tir *ir, const struct tir_blockize_plan *plan, struct iterations *made) {
  made->inner_count = 0;
  for (uint32_t i = 0; i < plan->iter_count; i++) {
    struct tir_iter iter = tir_iters(ir, plan->block)[i];
    const struct tir_division *part = &plan->parts[i];
    tir_expr outer = tir_var_expr(ir, made->outer[i].var), value = outer;
    bool unit = tir_is_const(ir, part->outer_extent, 1);
    if (!tir_is_const(ir, part->inner_extent, 1)) {
      tir_var inner = new_iter(ir, iter.var, "_i", part->inner_extent);
      made->inner[made->inner_count++] = (struct tir_iter){inner, iter.kind, part->inner};
      value = tir_var_expr(ir, inner);
      if (!unit) value = tir_add(ir, tir_mul(ir, outer, part->inner_extent), value);
    } else if (unit && !plan->preserve_unit_iters) {
      value = tir_is_int(ir, part->outer) ? part->outer : tir_int(ir, tir_type_of(ir, part->outer), 0);
    }
    tir_subst_var(ir, iter.var, value);
  }
}

enum { MOST_RANK = 32 };

static bool is_iter(const struct tir *ir, const void *context, tir_var v) {
  (void)context;
  return tir_var_at(ir, v)->kind == TIR_VAR_ITER;
}

/* An iteration that a block around decides too: it does not run over its domain each time. */
static bool is_moved(const struct tir *ir, tir_expr binding) { return tir_any_var(ir, binding, is_iter, NULL); }

/* What the outer block's iterations are bound to in their place: they may run through less than their domains. */
static struct tir_interval as_bound(struct tir *ir, const struct iterations *made, struct tir_interval i) {
  for (uint32_t k = 0; k < made->outer_count; k++) tir_subst_var(ir, made->outer[k].var, made->outer[k].binding);
  struct tir_interval bound = {tir_subst(ir, i.min), i.max ? tir_subst(ir, i.max) : TIR_NONE, i.empty};
  tir_subst_clear(ir);
  return bound;
}

/* Loops that a block without iterations around the new one may speak of, and the new one may not. */
static uint32_t loops_unknown_inside(const struct tir *ir, tir_block around, const struct iterations *made,
                                     tir_var *vars) {
  uint32_t count = 0;
  if (!made->outer_count) return 0;
  for (tir_stmt s = around; s && !has_iterations(ir, s) && count < TIR_MOST_BLOCKIZED; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP)) vars[count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
  return count;
}

/* A dimension of the only region of the buffer that the block declares to read or write, in that type, whatever these
 * variables are. */
static struct tir_interval declared_by(struct tir *ir, tir_block block, bool write, tir_buffer buffer, uint32_t d,
                                       tir_type type, const tir_var *vars, uint32_t count) {
  uint32_t at = tir_region_of(ir, tir_regions(ir, block, write), buffer)->ranges + 2 * d;
  tir_expr range[2] = {tir_cast(ir, type, ir->operands.at[at]), tir_cast(ir, type, ir->operands.at[at + 1])};
  struct tir_interval declared;
  if (!count) return tir_interval_of(ir, range[0], range[1]);
  tir_relax_region(ir, range, 1, vars, count, &declared);
  return declared;
}

/* Cuts a dimension to what the block around declares of the buffer, where inner iterations run past that under a
 * guard, or it is not known how far. */
static void cut_to_declared(struct tir *ir, tir_block around, bool write, tir_buffer buffer, uint32_t d,
                            const struct iterations *made, struct tir_interval *covered) {
  if (!tir_scope_of(ir, around) || tir_buffer_at(ir, buffer)->user_annotated || covered->empty) return;
  uint32_t read = write ? 0 : tir_count_regions_of(ir, tir_regions(ir, around, false), buffer);
  uint32_t written = tir_count_regions_of(ir, tir_regions(ir, around, true), buffer); /* which it may read, too */
  if (read > 1 || written > 1 || !(read + written)) return;
  bool known = covered->min && covered->max;
  tir_type type = tir_type_of(ir, known ? covered->min : ir->operands.at[tir_buffer_at(ir, buffer)->shape + d]);
  struct tir_interval declared = tir_nothing();
  tir_var vars[TIR_MOST_BLOCKIZED];
  uint32_t count = loops_unknown_inside(ir, around, made, vars);
  if (read) declared = declared_by(ir, around, false, buffer, d, type, vars, count);
  if (written) declared = tir_interval_union(ir, declared, declared_by(ir, around, true, buffer, d, type, vars, count));
  if (count && !(declared.min && declared.max)) return;
  if (known &&
      (tir_interval_covers(ir, declared, *covered) || tir_interval_covers(ir, declared, as_bound(ir, made, *covered))))
    return;
  struct tir_interval both = known ? tir_interval_intersect(ir, *covered, declared) : declared;
  if (!both.empty) *covered = both;
}

/* What a region covers in all inner iterations; the whole dimension where that is not known. */
static struct tir_region relaxed_region(struct tir *ir, const struct tir_blockize_plan *plan, struct tir_region region,
                                        const struct iterations *made, bool write) {
  tir_var vars[2 * TIR_MOST_BLOCKIZED];
  tir_expr ranges[2 * MOST_RANK];
  struct tir_interval covered[MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank, count = 0;
  assert(rank <= MOST_RANK);
  for (uint32_t i = 0; i < made->inner_count; i++) {
    if (is_moved(ir, made->inner[i].binding))
      tir_subst_var(ir, made->inner[i].var, made->inner[i].binding);
    else
      vars[count++] = made->inner[i].var;
  }
  for (uint32_t i = 0; i < 2 * rank; i++) ranges[i] = tir_subst(ir, ir->operands.at[region.ranges + i]);
  tir_subst_clear(ir);
  for (uint32_t l = 0; l < plan->inner_count; l++) vars[count++] = tir_as(ir, plan->loops[l], TIR_LOOP)->loop.var;
  tir_relax_region(ir, ranges, rank, vars, count, covered);
  for (uint32_t i = 0; i < rank; i++)
    cut_to_declared(ir, tir_parent_block(ir, plan->block), write, region.buffer, i, made, &covered[i]);
  return tir_region_of_box(ir, region.buffer, covered);
}

static bool uses_var(struct tir *ir, void *context, tir_expr e) { return tir_uses_var(ir, e, *(tir_var *)context); }

/* Blocks below, those of an init that was blockized before, see the iterations too. */
static bool init_uses(struct tir *ir, tir_block init, tir_var v) {
  for (tir_stmt s = init; s; s = tir_next(ir, s, init))
    if (tir_is(ir, s, TIR_BLOCK) && (tir_matches_by_vars(ir, s, &v, 1) || tir_any_own_expr(ir, s, uses_var, &v)))
      return true;
  return false;
}

/* The init of the outer block. */
static void make_init(struct tir *ir, const struct tir_blockize_plan *plan, tir_block outer) {
  struct tir_iter iters[TIR_MOST_BLOCKIZED];
  tir_loop nest[TIR_MOST_BLOCKIZED];
  uint32_t count = 0, loops = 0;
  tir_symbol name = tir_symbol_suffix(ir, tir_block_at(ir, plan->block)->name, "_init");
  tir_block init = tir_new_block(ir, name);
  tir_move_children(ir, plan->block, TIR_INIT, init, TIR_BODY);
  for (uint32_t i = 0; i < tir_block_at(ir, plan->block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, plan->block)[i];
    if (iter.kind != TIR_REDUCE && init_uses(ir, init, iter.var)) iters[count++] = iter;
  }
  for (uint32_t l = plan->inner_count; l-- > 0;) {
    bool used =
        plan->predicates[1] && tir_uses_var(ir, plan->predicates[1], tir_as(ir, plan->loops[l], TIR_LOOP)->loop.var);
    for (uint32_t i = 0; i < count && !used; i++)
      used = tir_uses_var(ir, iters[i].binding, tir_as(ir, plan->loops[l], TIR_LOOP)->loop.var);
    if (used) nest[loops++] = plan->loops[l];
  }
  tir_take_init_regions(ir, plan->block, init);
  tir_as(ir, init, TIR_BLOCK)->block.predicate = tir_as(ir, plan->block, TIR_BLOCK)->block.predicate;
  if (loops) tir_copy_nest(ir, nest, loops, "", nest);
  for (uint32_t i = 0; i < count; i++) {
    tir_var old = iters[i].var;
    iters[i].var = new_iter(ir, old, "_init", ir->vars.at[old].extent);
    tir_subst_var(ir, old, tir_var_expr(ir, iters[i].var));
  }
  for (uint32_t i = 0; i < tir_block_at(ir, plan->block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, plan->block)[i];
    if (iter.kind == TIR_REDUCE) tir_subst_var(ir, iter.var, ir->vars.at[iter.var].min);
  }
  tir_set_iters(ir, init, iters, count);
  tir_subst_stmt(ir, init);
  tir_subst_clear(ir);
  tir_append(ir, loops ? nest[loops - 1] : outer, loops ? TIR_BODY : TIR_INIT, init);
  if (loops) tir_append(ir, outer, TIR_INIT, nest[0]);
}

/* A block that updates what was initialized elsewhere reads it first. */
static void read_what_is_updated(struct tir *ir, tir_block block) {
  struct tir_span reads = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  uint32_t first = tir_grow_regions(ir, reads.count + writes.count);
  for (uint32_t i = 0; i < writes.count; i++) ir->regions.at[first + i] = ir->regions.at[writes.first + i];
  for (uint32_t i = 0; i < reads.count; i++) ir->regions.at[first + writes.count + i] = ir->regions.at[reads.first + i];
  tir_set_reads(ir, block, ir->regions.at + first, reads.count + writes.count);
}

/* Turns the block into the inner one. */
static void narrow_block(struct tir *ir, const struct tir_blockize_plan *plan, const struct iterations *made) {
  tir_subst_order(ir);
  tir_subst_stmt(ir, plan->block);
  tir_subst_clear(ir);
  tir_set_iters(ir, plan->block, made->inner, made->inner_count);
  tir_as(ir, plan->block, TIR_BLOCK)->block.predicate = plan->predicates[1];
}

static void relax_regions(struct tir *ir, const struct tir_blockize_plan *plan, tir_block outer,
                          const struct iterations *made) {
  tir_block block = plan->block;
  struct tir_span reads = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  uint32_t first = tir_grow_regions(ir, reads.count + writes.count);
  for (uint32_t i = 0; i < reads.count + writes.count; i++) {
    uint32_t from = i < reads.count ? reads.first + i : writes.first + i - reads.count;
    struct tir_region r = relaxed_region(ir, plan, ir->regions.at[from], made, i >= reads.count);
    ir->regions.at[first + i] = r;
  }
  tir_set_reads(ir, outer, ir->regions.at + first, reads.count);
  tir_set_writes(ir, outer, ir->regions.at + first + reads.count, writes.count);
}

/* The nest of one block, as it stands in the outer block. */
static tir_stmt narrow_nest(struct tir *ir, struct tir_blockize_plan *plan, struct iterations *made) {
  bind_ranges(ir, plan, made);
  make_inner(ir, plan, made);
  narrow_block(ir, plan, made);
  return plan->inner_count ? plan->loops[plan->inner_count - 1] : plan->block;
}

tir_block tir_edit_blockize(struct tir *ir, struct tir_blockize_plan *plan) {
  struct iterations made;
  tir_block block = plan->block, outer = tir_new_block(ir, tir_symbol_suffix(ir, tir_block_at(ir, block)->name, "_o"));
  make_outer(ir, plan, &made);
  tir_stmt nest = narrow_nest(ir, plan, &made);
  tir_set_iters(ir, outer, made.outer, plan->iter_count);
  tir_as(ir, outer, TIR_BLOCK)->block.predicate = plan->predicates[0];
  relax_regions(ir, plan, outer, &made);
  tir_wrap(ir, nest, outer);
  tir_inherit_cover(ir, outer, block, tir_parent_block(ir, outer));
  tir_forget_cover(ir, block);
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return outer;
  make_init(ir, plan, outer);
  read_what_is_updated(ir, block);
  return outer;
}

bool tir_blockize(struct tir *ir, tir_loop loop, bool preserve_unit_iters, tir_block *out, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  struct tir_blockize_plan plan;
  struct tir_mark mark = tir_mark(ir);
  plan.around_first = false;
  if (!tir_rewind_unless(ir, &mark, tir_check_blockize(ir, loop, preserve_unit_iters, &plan, err))) return false;
  *out = tir_edit_blockize(ir, &plan);
  return true;
}

/* ---- A list of blocks ---- */

struct group {
  struct tir_blockize_plan *plans;
  uint32_t count;
  tir_stmt top, *nests; /* the statements in top's list that are the blocks and their loops */
};

static bool check_order(const struct tir *ir, const struct group *g, const tir_block *blocks, ms_error *err) {
  for (uint32_t i = 0; i < g->count; i++) {
    g->nests[i] = tir_child_around(ir, blocks[i], g->top);
    if (!g->nests[i] || (i > 0 && tir_stmt_at(ir, g->nests[i])->prev != g->nests[i - 1]) ||
        tir_stmt_at(ir, g->nests[i])->list != TIR_BODY)
      return tir_refuse(ir, err, MS_BLOCKIZE_NOT_CONSECUTIVE, blocks[i], "block `%s` does not follow the one before it",
                        tir_block_name(ir, blocks[i]));
    if (!tir_is_nest_of(ir, g->nests[i], blocks[i]))
      return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, g->nests[i],
                        "more than loops stands between this and block `%s`", tir_block_name(ir, blocks[i]));
    if (tir_stmt_at(ir, blocks[i])->first[TIR_INIT])
      return tir_refuse(ir, err, MS_BLOCK_HAS_INIT, blocks[i], "block `%s` has an init", tir_block_name(ir, blocks[i]));
  }
  return true;
}

/* Both blocks have the same outer iterations. */
static bool same_outer(struct tir *ir, const struct tir_blockize_plan *a, const struct tir_blockize_plan *b) {
  tir_expr yes = tir_int(ir, TIR_T_BOOL, 1);
  bool same = a->iter_count == b->iter_count &&
              (a->predicates[0] ? a->predicates[0] : yes) == (b->predicates[0] ? b->predicates[0] : yes);
  for (uint32_t i = 0; i < a->iter_count && same; i++)
    same = tir_iters(ir, a->block)[i].kind == tir_iters(ir, b->block)[i].kind &&
           tir_prove_equal(ir, a->parts[i].outer_extent, b->parts[i].outer_extent) &&
           tir_prove_equal(ir, a->parts[i].outer, b->parts[i].outer);
  return same;
}

static bool check_group(struct tir *ir, struct group *g, const tir_block *blocks, bool preserve_unit_iters,
                        ms_error *err) {
  g->top = tir_stmt_at(ir, blocks[0])->parent;
  for (uint32_t i = 1; i < g->count; i++) g->top = tir_lowest_common_ancestor(ir, g->top, blocks[i]);
  if (!g->top || !tir_scope_of(ir, blocks[0]))
    return tir_refuse(ir, err, MS_ROOT_BLOCK, blocks[0], "block `%s` is in no scope", tir_block_name(ir, blocks[0]));
  if (!check_order(ir, g, blocks, err)) return false;
  for (uint32_t i = 0; i < g->count; i++) {
    g->plans[i].around_first = false;
    if (!check_division(ir, blocks[i], g->top, preserve_unit_iters, &g->plans[i], err)) return false;
    if (!same_outer(ir, &g->plans[0], &g->plans[i]))
      return tir_refuse(ir, err, MS_BLOCKIZE_OUTER_DIFFERS, blocks[i],
                        "the outer iterations of block `%s` are not those of `%s`", tir_block_name(ir, blocks[i]),
                        tir_block_name(ir, blocks[0]));
  }
  return true;
}

/* Adds a region to those from `first` on: to that of its buffer, if there is one. */
static void unite(struct tir *ir, uint32_t first, uint32_t *count, struct tir_region region) {
  uint32_t at = 0, rank = tir_buffer_at(ir, region.buffer)->rank;
  while (at < *count && ir->regions.at[first + at].buffer != region.buffer) at++;
  if (at == *count) {
    ir->regions.at[first + (*count)++] = region;
    return;
  }
  struct tir_interval both[MOST_RANK];
  uint32_t old = ir->regions.at[first + at].ranges;
  for (uint32_t d = 0; d < rank; d++) {
    const tir_expr *a = ir->operands.at + old + 2 * d, *b = ir->operands.at + region.ranges + 2 * d;
    tir_expr a_min = a[0], a_extent = a[1], b_min = b[0], b_extent = b[1];
    both[d] = tir_interval_of(ir, a_min, a_extent);
    both[d] = tir_interval_union(ir, both[d], tir_interval_of(ir, b_min, b_extent));
  }
  region = tir_region_of_box(ir, region.buffer, both);
  ir->regions.at[first + at] = region;
}

static void unite_regions(struct tir *ir, const struct group *g, tir_block outer, const struct iterations *made,
                          bool writes) {
  uint32_t all = 0, count = 0;
  for (uint32_t i = 0; i < g->count; i++) {
    const struct tir_block_record *r = tir_block_at(ir, g->plans[i].block);
    all += writes ? r->writes.count : r->reads.count;
  }
  uint32_t first = tir_grow_regions(ir, all);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct tir_block_record *r = tir_block_at(ir, g->plans[i].block);
    struct tir_span span = writes ? r->writes : r->reads;
    for (uint32_t k = 0; k < span.count; k++)
      unite(ir, first, &count, relaxed_region(ir, &g->plans[i], ir->regions.at[span.first + k], &made[i], writes));
  }
  (writes ? tir_set_writes : tir_set_reads)(ir, outer, ir->regions.at + first, count);
}

static tir_symbol name_group(struct tir *ir, const struct group *g) {
  tir_symbol name = tir_symbol_of(ir, "outer_");
  for (uint32_t i = 0; i < g->count; i++)
    name = tir_symbol_format(ir, "%s%s_", tir_text(ir, name), tir_block_name(ir, g->plans[i].block));
  return name;
}

static tir_block edit_group(struct tir *ir, const struct group *g, struct iterations *made) {
  tir_block outer = tir_new_block(ir, name_group(ir, g));
  for (uint32_t i = 0; i < g->count; i++) {
    if (i > 0)
      memcpy(made[i].outer, made[0].outer, sizeof made[0].outer);
    else
      make_outer(ir, &g->plans[i], &made[i]);
    narrow_nest(ir, &g->plans[i], &made[i]);
  }
  tir_set_iters(ir, outer, made[0].outer, g->plans[0].iter_count);
  tir_as(ir, outer, TIR_BLOCK)->block.predicate = g->plans[0].predicates[0];
  unite_regions(ir, g, outer, made, false);
  unite_regions(ir, g, outer, made, true);
  tir_insert_before(ir, g->nests[0], outer);
  for (uint32_t i = 0; i < g->count; i++) {
    tir_detach(ir, g->nests[i]);
    tir_append(ir, outer, TIR_BODY, g->nests[i]);
    tir_inherit_cover(ir, outer, g->plans[i].block, tir_parent_block(ir, outer));
    tir_forget_cover(ir, g->plans[i].block);
  }
  return outer;
}

bool tir_blockize_blocks(struct tir *ir, const tir_block *blocks, uint32_t count, bool preserve_unit_iters,
                         tir_block *out, ms_error *err) {
  if (!count) return ms_fail(err, MS_BLOCKIZE_NO_BLOCKS, "the list of blocks is empty");
  struct group g = {malloc(count * sizeof *g.plans), count, TIR_NONE, malloc(count * sizeof *g.nests)};
  struct iterations *made = malloc(count * sizeof *made);
  if (!g.plans || !g.nests || !made) abort();
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_group(ir, &g, blocks, preserve_unit_iters, err);
  if (accepted)
    *out = edit_group(ir, &g, made);
  else
    tir_rewind(ir, &mark);
  free(made);
  free(g.nests);
  free(g.plans);
  return accepted;
}
