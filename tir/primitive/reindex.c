/* Reindex: a block uses a copy of a buffer whose dimensions are the block's iterations.
 *
 * Requires: the block has a region of this number, no blocks in it, and uses the buffer at one place, which depends on
 *           its iterations alone; it does not both write it and read it from before; no two iterations write one
 *           element. The scope is a stage pipeline. But for the innermost, the loops around the block hold one another
 *           and nothing else. What is read is written before them; what is written is read after them, by the scope
 *           itself too, and nothing else in them writes it; it is stored in any case, always within the buffer. But for
 *           inputs, the block runs for each value of its iterations, and of those that the place depends on, with each
 *           of the others. None of these is negative.
 * After:    a block copies to the new buffer, before the loops (what is read), or from it, after them (what is
 *           written), over the domains of the iterations that the place depends on; zero where a place read is outside
 *           of the buffer. The block uses the new buffer. Inside of a block, the copy is marked as the block is where a
 *           user annotated its regions.
 * Forward:  nothing dies. */
#include "cache_stage.h"
#include "copy_stage.h"
#include "tir/analysis/access.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/outside.h"

#include <stdio.h>
#include <string.h>

struct reindex_plan {
  tir_block scope;
  tir_buffer buffer;
  bool write;
  tir_stmt top; /* the outermost loop around the block, or the block */
  struct tir_single_access access;
  tir_var covered[TIR_MOST_EDITED_RANK]; /* iterations that the place depends on, in order */
  uint32_t count;
};

/* ---- Check ---- */

static bool check_nest(struct tir *ir, tir_block block, struct reindex_plan *plan, ms_error *err) {
  tir_stmt s = block, parent = tir_stmt_at(ir, s)->parent;
  for (; parent != plan->scope; s = parent, parent = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, parent, TIR_LOOP) && (s == block || tir_only_child(ir, parent) == s)) continue;
    return tir_refuse(ir, err, MS_LOOP_NOT_ONLY_CHILD, parent, "more than loops is around block `%s`",
                      tir_block_name(ir, block));
  }
  plan->top = s;
  return true;
}

static bool check_uses(struct tir *ir, tir_block block, const struct reindex_plan *plan, bool writers, ms_error *err) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, plan->buffer);
  for (uint32_t u = writers ? n->writers : n->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (!tir_is_below(ir, b, plan->scope) || b == block) continue;
    bool inside = b == plan->top || tir_is_below(ir, b, plan->top);
    bool after = tir_compare_position(ir, b, plan->top) > 0;
    if (!inside && (plan->write || !after)) continue;
    return tir_refuse(ir, err, MS_REINDEX_ORDER, b, "block `%s` %s buffer `%s` between the copy and block `%s`",
                      tir_block_name(ir, b), writers ? "writes" : "reads", tir_buffer_name(ir, plan->buffer),
                      tir_block_name(ir, block));
  }
  return true;
}

/* No other block of the nest, nor one on the wrong side of it, may have to do with the copy: whoever writes what is
 * copied, and who reads what is copied back. */
static bool check_order(struct tir *ir, tir_block block, const struct reindex_plan *plan, ms_error *err) {
  return check_uses(ir, block, plan, true, err) && (!plan->write || check_uses(ir, block, plan, false, err));
}

static bool refuse_scope(struct tir *ir, tir_block block, const struct reindex_plan *plan, tir_stmt at, ms_error *err) {
  return tir_refuse(ir, err, MS_SCOPE_ORDER, at,
                    "between the copy and block `%s`, `%s` uses buffer `%s` outside of blocks",
                    tir_block_name(ir, block), tir_block_name(ir, plan->scope), tir_buffer_name(ir, plan->buffer));
}

/* Nor may the scope itself, at a statement of the nest, or where it loads to say in which iterations blocks run. */
static bool check_scope(struct tir *ir, tir_block block, const struct reindex_plan *plan, ms_error *err) {
  struct tir_outside_use use;
  for (tir_stmt s = TIR_NONE; tir_next_outside_use(ir, plan->scope, plan->buffer, plan->top, s, &use); s = use.at)
    if (plan->write || use.writes) return refuse_scope(ir, block, plan, use.at, err);
  return true;
}

static void simplify_access(struct tir *ir, tir_block block, struct reindex_plan *plan) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t d = 0; d < plan->access.rank; d++) plan->access.at[d] = tir_simplify(ir, plan->access.at[d]);
  plan->count = 0;
  for (uint32_t i = 0; i < iters.count; i++) {
    tir_var v = ir->iters.at[iters.first + i].var;
    bool used = false;
    for (uint32_t d = 0; d < plan->access.rank; d++) used = used || tir_uses_var(ir, plan->access.at[d], v);
    if (used && plan->count < TIR_MOST_EDITED_RANK) plan->covered[plan->count++] = v;
  }
}

enum { MOST_LOOPS = 64 };

static bool check_extents(struct tir *ir, tir_block block, const struct reindex_plan *plan, ms_error *err) {
  for (uint32_t i = 0; i < plan->count; i++) {
    if (tir_at(ir, ir->vars.at[plan->covered[i]].min)->lo < 0) /* it is an index of the copy */
      return tir_refuse(ir, err, MS_DOMAIN_NEGATIVE, block,
                        "dimension %u of the copy is an iteration that may be negative", i);
    if (tir_uses_inner_var(ir, ir->vars.at[plan->covered[i]].extent))
      return tir_refuse(ir, err, MS_REINDEX_SHAPE, block, "extent %u of the copy depends on a loop around block `%s`",
                        i, tir_block_name(ir, block));
  }
  return true;
}

/* It is there before the scope begins. */
static bool is_input(struct tir *ir, const struct reindex_plan *plan) {
  return !plan->write && !tir_buffer_at(ir, plan->buffer)->writers &&
         tir_writes_are_declared(ir, plan->buffer, plan->scope);
}

/* What is copied was written: for every value of each iteration, as far as that is known. An input is there anyway. */
static bool check_domains(struct tir *ir, tir_block block, const struct reindex_plan *plan, ms_error *err) {
  tir_var vars[MOST_LOOPS];
  uint32_t count = tir_loop_vars(ir, block, plan->scope, vars, MOST_LOOPS);
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (is_input(ir, plan) || count > MOST_LOOPS) return true;
  if (tir_invariant_conditions(ir, tir_as(ir, block, TIR_BLOCK)->block.predicate, vars, count))
    return tir_refuse(ir, err, MS_REINDEX_DOMAIN, block,
                      "block `%s` runs under a condition that its loops do not change", tir_block_name(ir, block));
  for (uint32_t i = 0; i < iters.count; i++) {
    struct tir_iter iter = ir->iters.at[iters.first + i];
    struct tir_interval covers, domain = tir_interval_of(ir, ir->vars.at[iter.var].min, ir->vars.at[iter.var].extent);
    tir_expr range[2] = {iter.binding, tir_int(ir, tir_type_of(ir, iter.binding), 1)};
    bool exact = tir_region_exact(ir, range, 1, vars, count, tir_as(ir, block, TIR_BLOCK)->block.predicate, &covers);
    if (exact ? tir_interval_covers(ir, covers, domain) : !plan->write) continue;
    return tir_refuse(ir, err, MS_REINDEX_DOMAIN, block, "iteration %u of block `%s` does not run over its domain", i,
                      tir_block_name(ir, block));
  }
  return true;
}

/* The iterations that the place depends on take all their values with one another: of such as share a loop, some may
 * never meet. */
static bool check_together(struct tir *ir, tir_block block, const struct reindex_plan *plan, ms_error *err) {
  tir_var vars[MOST_LOOPS];
  tir_expr ranges[2 * TIR_MOST_EDITED_RANK];
  struct tir_interval taken[TIR_MOST_EDITED_RANK];
  uint32_t count = tir_loop_vars(ir, block, plan->scope, vars, MOST_LOOPS);
  if (is_input(ir, plan) || plan->count < 2 || count > MOST_LOOPS) return true;
  for (uint32_t i = 0; i < plan->count; i++) {
    ranges[2 * i] = tir_binding_of(ir, block, plan->covered[i]);
    ranges[2 * i + 1] = tir_int(ir, tir_type_of(ir, ranges[2 * i]), 1);
  }
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  return tir_region_is_box(ir, ranges, plan->count, vars, count, predicate, taken) ||
         tir_refuse(ir, err, MS_REINDEX_DOMAIN, block,
                    "block `%s` does not run for each value of its iterations with each of the others",
                    tir_block_name(ir, block));
}

/* What is read for the copy, for all values of the iterations, is what the scope states that it reads: a root states
 * nothing, neither does a block that does not name the buffer, and what was stated by hand is trusted. */
static bool check_stated(struct tir *ir, tir_block block, const struct reindex_plan *plan, ms_error *err) {
  const struct tir_region *stated = tir_region_of(ir, tir_block_at(ir, plan->scope)->reads, plan->buffer);
  if (plan->write || !stated || !tir_parent_block(ir, plan->scope) || tir_buffer_at(ir, plan->buffer)->user_annotated)
    return true;
  tir_expr ranges[2 * TIR_MOST_EDITED_RANK];
  struct tir_interval copied[TIR_MOST_EDITED_RANK];
  uint32_t at = stated->ranges, rank = plan->access.rank;
  tir_point_ranges(ir, plan->access.at, rank, ranges);
  tir_relax_region(ir, ranges, rank, plan->covered, plan->count, copied);
  for (uint32_t d = 0; d < rank; d++) {
    struct tir_interval all = tir_interval_of(ir, ir->operands.at[at + 2 * d], ir->operands.at[at + 2 * d + 1]);
    if (tir_interval_covers(ir, all, copied[d])) continue;
    return tir_refuse(ir, err, MS_REINDEX_DOMAIN, block,
                      "the copy for block `%s` would read more of buffer `%s` than block `%s` states",
                      tir_block_name(ir, block), tir_buffer_name(ir, plan->buffer), tir_block_name(ir, plan->scope));
  }
  return true;
}

/* The copy goes through the iterations in their order, whatever loops the block has: of what several of them write, it
 * would take another. */
static bool check_meeting(struct tir *ir, tir_block block, const struct reindex_plan *plan, ms_error *err) {
  return !plan->write || !tir_instances_meet(ir, block) ||
         tir_refuse(
             ir, err, MS_ITERATIONS_IN_ORDER, block,
             "iterations of block `%s` write the same element of buffer `%s`, and would be copied in another order",
             tir_block_name(ir, block), tir_buffer_name(ir, plan->buffer));
}

static bool check_reindex(struct tir *ir, tir_block block, uint32_t index, bool write, struct reindex_plan *plan,
                          ms_error *err) {
  plan->write = write;
  if (!tir_check_buffer_of(ir, block, index, write, &plan->buffer, err)) return false;
  if (!tir_find_scope(ir, block, &plan->scope, err)) return false;
  if (!tir_check_stage_pipeline(ir, plan->scope, err) || !check_nest(ir, block, plan, err) ||
      !tir_check_declared_below(ir, plan->buffer, plan->top, err))
    return false;
  if (write ? tir_reads_from_before(ir, block, plan->buffer)
            : tir_has_region_of(ir, tir_block_at(ir, block)->writes, plan->buffer))
    return tir_refuse(ir, err, MS_CACHE_IN_PLACE, block, "block `%s` reads and writes buffer `%s`",
                      tir_block_name(ir, block), tir_buffer_name(ir, plan->buffer));
  if (write && !tir_check_begun_once(ir, block, err)) return false;
  if (!tir_find_single_access(ir, block, plan->buffer, false, &plan->access, err)) return false;
  simplify_access(ir, block, plan);
  return check_extents(ir, block, plan, err) &&
         (!write || tir_check_copied_back(ir, block, plan->buffer, plan->access.at, err)) &&
         check_order(ir, block, plan, err) && check_scope(ir, block, plan, err) &&
         check_domains(ir, block, plan, err) && check_together(ir, block, plan, err) &&
         check_meeting(ir, block, plan, err) && check_stated(ir, block, plan, err);
}

/* ---- Edit ---- */

static tir_buffer make_buffer(struct tir *ir, const struct reindex_plan *plan) {
  tir_expr shape[TIR_MOST_EDITED_RANK];
  for (uint32_t i = 0; i < plan->count; i++) {
    struct tir_var_node v = ir->vars.at[plan->covered[i]];
    shape[i] = tir_is_const(ir, v.min, 0) ? v.extent : tir_add(ir, v.min, v.extent); /* a sum may have no bounds */
  }
  struct tir_buffer_node like = *tir_buffer_at(ir, plan->buffer);
  tir_buffer made =
      tir_new_buffer(ir, tir_symbol_suffix(ir, like.name, "_reindex"), like.type, shape, plan->count, like.scope);
  tir_buffer_at(ir, made)->alignment = like.alignment;
  tir_buffer_at(ir, made)->offset_factor = like.offset_factor;
  tir_annotate_as(ir, made, plan->buffer);
  tir_add_alloc(ir, plan->scope, made);
  return made;
}

static tir_var new_var(struct tir *ir, enum tir_var_kind kind, const char *stem, uint32_t i, tir_var like) {
  struct tir_var_node v = ir->vars.at[like];
  return tir_new_var(ir, kind, tir_name_ordinal(ir, tir_symbol_of(ir, stem), i), v.type, v.min, v.extent);
}

static tir_block make_stage(struct tir *ir, const struct reindex_plan *plan, tir_buffer made) {
  struct tir_copy_stage s = {.loop_count = plan->count, .iter_count = plan->count};
  tir_expr at[TIR_MOST_EDITED_RANK], by_iters[TIR_MOST_EDITED_RANK];
  for (uint32_t i = 0; i < plan->count; i++) {
    s.loops[i] = new_var(ir, TIR_VAR_LOOP, "ax", i, plan->covered[i]);
    tir_var v = new_var(ir, TIR_VAR_ITER, "v", i, plan->covered[i]);
    s.iters[i] = (struct tir_iter){v, TIR_SPATIAL, tir_var_expr(ir, s.loops[i])};
    by_iters[i] = tir_var_expr(ir, v);
    tir_subst_var(ir, plan->covered[i], by_iters[i]);
  }
  for (uint32_t d = 0; d < plan->access.rank; d++) at[d] = tir_subst(ir, plan->access.at[d]);
  tir_subst_clear(ir);
  s.from = plan->write ? made : plan->buffer;
  s.to = plan->write ? plan->buffer : made;
  s.from_rank = plan->write ? plan->count : plan->access.rank;
  s.to_rank = plan->write ? plan->access.rank : plan->count;
  memcpy(s.from_at, plan->write ? by_iters : at, s.from_rank * sizeof *at);
  memcpy(s.to_at, plan->write ? at : by_iters, s.to_rank * sizeof *at);
  s.name = tir_free_block_name(ir, tir_symbol_suffix(ir, tir_buffer_at(ir, s.to)->name, "_reindex"));
  tir_block block;
  tir_stmt nest = tir_make_copy_stage(ir, &s, &block);
  if (plan->write)
    tir_insert_after(ir, plan->top, nest);
  else
    tir_insert_before(ir, plan->top, nest);
  return block;
}

static tir_block edit_reindex(struct tir *ir, tir_block block, const struct reindex_plan *plan) {
  tir_expr at[TIR_MOST_EDITED_RANK];
  tir_buffer made = make_buffer(ir, plan);
  for (uint32_t i = 0; i < plan->count; i++) at[i] = tir_var_expr(ir, plan->covered[i]);
  tir_replace_access(ir, block, plan->buffer, made, at, plan->count);
  return make_stage(ir, plan, made);
}

bool tir_reindex(struct tir *ir, tir_block block, uint32_t buffer_index, bool write, tir_block *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct reindex_plan plan;
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_reindex(ir, block, buffer_index, write, &plan, err))) return false;
  *out = edit_reindex(ir, block, &plan);
  return true;
}
