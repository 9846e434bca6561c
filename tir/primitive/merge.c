/* Merge: loops of equal ranges, with the loops around them up to what is common to all, become one nest whose body is
 * theirs in turn, in the order given.
 *
 * Requires: two loops or more, none named twice, none around another; from each up to the lowest loop or block around
 *           all only loops, as many for each, of equal extents, perfectly nested, with no annotation or thread binding,
 *           from zero; only blocks below; in the new order each element is still written before it is read, and read
 *           before it is overwritten; no block uses what another of them uses without telling so.
 * After:    serial loops i_m (i: the loops of the first given) in the place of the nest given last.
 * Forward:  the old loops are dead; blocks live on. */
#include "loops.h"
#include "tir/analysis/outside.h"

#include <stdlib.h>

enum { MOST_MERGED = 32, MOST_DEPTH = 16, MOST_BLOCKS = 32, MOST_VARS = 64, MOST_RANK = 16 };

/* One of the nests that are merged. */
struct nest {
  tir_loop loops[MOST_DEPTH]; /* outermost first */
  uint32_t depth;
  tir_block blocks[MOST_BLOCKS]; /* below, outermost of those that declare what they access */
  uint32_t block_count;
};

struct merge_plan {
  struct nest *nests;
  uint32_t count;
  tir_stmt common;
};

/* ---- The nests ---- */

static bool check_named(const struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  if (count < 2) return tir_refuse(ir, err, MS_MERGE_TOO_FEW, count ? loops[0] : TIR_NONE, "%u loops are given", count);
  if (count > MOST_MERGED) return tir_refuse(ir, err, MS_TOO_LARGE, loops[0], "%u loops are given", count);
  for (uint32_t i = 1; i < count; i++)
    for (uint32_t j = 0; j < i; j++) {
      if (loops[i] == loops[j]) return tir_refuse(ir, err, MS_LOOP_REPEATED, loops[i], "this loop is named twice");
      if (tir_is_below(ir, loops[i], loops[j]) || tir_is_below(ir, loops[j], loops[i]))
        return tir_refuse(ir, err, MS_MERGE_NESTED, loops[i], "of this loop and loop %u one is around the other", j);
    }
  return true;
}

static bool find_nest(struct tir *ir, tir_loop loop, tir_stmt common, struct nest *out, ms_error *err) {
  tir_loop up[MOST_DEPTH];
  out->depth = 0;
  for (tir_stmt s = loop, inner = TIR_NONE; s != common; inner = s, s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_BLOCK))
      return tir_refuse(ir, err, MS_MERGE_SCOPE, loop, "block `%s` is around this loop, not around all",
                        tir_block_name(ir, s));
    if (!tir_is(ir, s, TIR_LOOP))
      return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, loop, "a condition is around this loop, not around all");
    if (!tir_check_plain_loop(ir, s, err)) return false;
    if (inner && tir_only_child(ir, s) != inner)
      return tir_refuse(ir, err, MS_LOOP_NOT_ONLY_CHILD, s, "more than the loops to be merged is in this loop");
    if (out->depth == MOST_DEPTH) return tir_refuse(ir, err, MS_TOO_LARGE, loop, "too many loops would be merged");
    up[out->depth++] = s;
  }
  for (uint32_t i = 0; i < out->depth; i++) out->loops[i] = up[out->depth - 1 - i];
  return true;
}

static bool check_extents(struct tir *ir, const struct nest *first, const struct nest *n, ms_error *err) {
  if (n->depth != first->depth)
    return tir_refuse(ir, err, MS_MERGE_DEPTH, n->loops[0], "%u loops would be merged with %u", n->depth, first->depth);
  for (uint32_t i = 0; i < n->depth; i++)
    if (!tir_prove_equal(ir, tir_as(ir, n->loops[i], TIR_LOOP)->loop.extent,
                         tir_as(ir, first->loops[i], TIR_LOOP)->loop.extent))
      return tir_refuse(ir, err, MS_MERGE_EXTENT, n->loops[i], "this loop and the one it would be merged with differ");
  return true;
}

/* A block that lists no access, such as those around the parts of a loop, leaves it to the blocks in it. */
static bool is_silent(const struct tir *ir, tir_block block) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  return !r->iters.count && !r->reads.count && !r->writes.count;
}

/* The blocks of a statement's tree; false: more than loops and blocks is there, or too many. */
static bool find_blocks(const struct tir *ir, tir_stmt top, tir_block *out, uint32_t *count) {
  *count = 0;
  for (tir_stmt s = top; s;) {
    bool block = tir_is(ir, s, TIR_BLOCK), silent = block && is_silent(ir, s);
    if (!block && !tir_is(ir, s, TIR_LOOP)) return false;
    if (block && !silent) {
      if (*count == MOST_BLOCKS) return false;
      out[(*count)++] = s;
    }
    s = block && !silent ? tir_after(ir, s, top) : tir_next(ir, s, top);
  }
  return true;
}

/* ---- The order of accesses ----
 *
 * The question about the order of iterations (analysis/iteration_order.h) is about one nest, whose loops are all around
 * each of the blocks that it compares: a direction says by these loops which iteration comes first, now and then. Here
 * the loops that will be around a block are not around it now. Two blocks of different nests run one wholly before the
 * other now, and in turns then, by variables that stand for one another; and blocks of one nest keep their order, so
 * that there is nothing to ask. So this is asked of pairs of nests, with one's loops in the place of the other's. */

/* Makes one dimension of the ranges of a single element: its number in row-major order. False: there are several
 * elements, or the buffer's shape is not known. */
static bool number_element(struct tir *ir, tir_buffer buffer, tir_expr *ranges) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (!rank) return false;
  tir_expr sum = ranges[0];
  for (uint32_t d = 0; d < rank; d++) {
    tir_expr extent = tir_operands(ir, tir_buffer_at(ir, buffer)->shape)[d];
    if (!tir_is_int(ir, extent) || !tir_is_const(ir, ranges[2 * d + 1], 1)) return false;
    if (d) sum = tir_add(ir, tir_mul(ir, sum, tir_cast(ir, tir_type_of(ir, sum), extent)), ranges[2 * d]);
  }
  ranges[0] = sum;
  return true;
}

/* What a block accesses of a buffer, while the loops of its nest stand still; dimension by dimension, or `numbered`. */
static bool find_region(struct tir *ir, const struct nest *n, tir_block block, struct tir_region region, bool numbered,
                        struct tir_interval *out) {
  tir_var vars[MOST_VARS];
  tir_expr ranges[2 * MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank, count = 0;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s != n->loops[n->depth - 1]; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    if (count == MOST_VARS) return false;
    vars[count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
  }
  if (rank > MOST_RANK) return false;
  tir_region_over_loops(ir, block, region, ranges);
  if (numbered && !number_element(ir, region.buffer, ranges)) return false;
  tir_relax_region(ir, ranges, numbered ? 1 : rank, vars, count, out);
  return true;
}

static bool is_below(struct tir *ir, tir_expr a, tir_expr b) {
  return a && b && tir_prove(ir, tir_make(ir, TIR_LT, a, b));
}

static bool are_disjoint(struct tir *ir, const struct tir_interval *a, const struct tir_interval *b, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++) {
    if (a[d].empty || b[d].empty) return true;
    if (is_below(ir, a[d].max, b[d].min) || is_below(ir, b[d].max, a[d].min)) return true;
  }
  return false;
}

static tir_var loop_var(const struct tir *ir, const struct nest *n, uint32_t i) {
  return tir_as(ir, n->loops[i], TIR_LOOP)->loop.var;
}

/* Sets the loops of one nest to an iteration of the other's: the same as far as `level`, where it is later. */
static void set_iteration(struct tir *ir, const struct nest *na, const struct nest *nb, uint32_t level) {
  for (uint32_t i = 0; i < na->depth && i <= level; i++) {
    struct tir_var_node v = ir->vars.at[loop_var(ir, na, i)];
    tir_expr iteration = tir_cast(ir, v.type, tir_var_expr(ir, loop_var(ir, nb, i)));
    if (i == level) {
      tir_expr one = tir_int(ir, v.type, 1);
      tir_var ahead = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, one, tir_sub(ir, v.extent, one));
      iteration = tir_add(ir, iteration, tir_var_expr(ir, ahead));
    }
    tir_subst_var(ir, loop_var(ir, na, i), iteration);
  }
}

/* Whether `a` in a later iteration of the merged loops touches nothing that `b` does in this one; `same`: nor in the
 * same iteration. An iteration is later if a loop is further on and those around it stand where they did. */
static bool comes_first(struct tir *ir, const struct nest *na, const struct nest *nb, const struct tir_interval *a,
                        const struct tir_interval *b, uint32_t rank, bool same) {
  struct tir_interval later[MOST_RANK];
  for (uint32_t level = 0; level < na->depth + same; level++) {
    if (level < na->depth && tir_loop_extent(ir, na->loops[level]) == 1) continue;
    set_iteration(ir, na, nb, level);
    for (uint32_t d = 0; d < rank; d++) {
      later[d] = a[d];
      if (later[d].min) later[d].min = tir_subst(ir, later[d].min);
      if (later[d].max) later[d].max = tir_subst(ir, later[d].max);
    }
    tir_subst_clear(ir);
    if (!are_disjoint(ir, later, b, rank)) return false;
  }
  return true;
}

/* One region of a block that comes before another's now, which will be after it iteration by iteration. Where loops
 * were fused, rows and columns of their tiles say little, the numbers of elements all. */
static bool keeps_order(struct tir *ir, const struct nest *na, tir_block a, struct tir_region ra, const struct nest *nb,
                        tir_block b, struct tir_region rb, bool same) {
  struct tir_interval ia[MOST_RANK], ib[MOST_RANK];
  if (ra.buffer != rb.buffer) return true;
  for (int numbered = 0; numbered < 2; numbered++)
    if (find_region(ir, na, a, ra, numbered, ia) && find_region(ir, nb, b, rb, numbered, ib) &&
        comes_first(ir, na, nb, ia, ib, numbered ? 1 : tir_buffer_at(ir, ra.buffer)->rank, same))
      return true;
  return false;
}

static bool check_blocks(struct tir *ir, const struct nest *na, tir_block a, const struct nest *nb, tir_block b,
                         bool same, ms_error *err) {
  if (tir_conflict_undeclared(ir, a, b))
    return tir_refuse(ir, err, MS_ACCESS_UNDECLARED, b, "blocks `%s` and `%s` use a buffer that one does not declare",
                      tir_block_name(ir, b), tir_block_name(ir, a));
  for (int kinds = 1; kinds < 4; kinds++) { /* not two reads */
    struct tir_span sa = tir_regions(ir, a, kinds & 1), sb = tir_regions(ir, b, kinds & 2);
    for (uint32_t i = 0; i < sa.count; i++)
      for (uint32_t j = 0; j < sb.count; j++)
        if (!keeps_order(ir, na, a, ir->regions.at[sa.first + i], nb, b, ir->regions.at[sb.first + j], same))
          return tir_refuse(ir, err, MS_MERGE_ORDER, b, "block `%s` would run before `%s` is done with `%s`",
                            tir_block_name(ir, b), tir_block_name(ir, a),
                            tir_buffer_name(ir, ir->regions.at[sa.first + i].buffer));
  }
  return true;
}

static bool check_nests(struct tir *ir, const struct merge_plan *plan, uint32_t i, uint32_t j, ms_error *err) {
  bool swapped = tir_compare_position(ir, plan->nests[i].loops[0], plan->nests[j].loops[0]) > 0;
  const struct nest *na = &plan->nests[swapped ? j : i], *nb = &plan->nests[swapped ? i : j];
  for (uint32_t a = 0; a < na->block_count; a++)
    for (uint32_t b = 0; b < nb->block_count; b++)
      if (!check_blocks(ir, na, na->blocks[a], nb, nb->blocks[b], swapped, err)) return false;
  return true;
}

static bool share_buffer(struct tir *ir, tir_block a, tir_block b) {
  for (int kinds = 1; kinds < 4; kinds++) /* not two reads */
    if (tir_share_buffer(ir, tir_regions(ir, a, kinds & 1), tir_regions(ir, b, kinds & 2))) return true;
  return tir_conflict_undeclared(ir, a, b);
}

static bool is_merged(const struct merge_plan *plan, tir_stmt s) {
  for (uint32_t i = 0; i < plan->count; i++)
    if (plan->nests[i].loops[0] == s) return true;
  return false;
}

static bool may_pass(struct tir *ir, const struct nest *n, tir_stmt s) {
  tir_block passed[MOST_BLOCKS];
  uint32_t count;
  if (!find_blocks(ir, s, passed, &count)) return false;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < n->block_count; k++)
      if (share_buffer(ir, passed[i], n->blocks[k])) return false;
  return true;
}

/* A nest moves to the place of the last: past what stands between. */
static bool check_passed(struct tir *ir, const struct merge_plan *plan, const struct nest *n, ms_error *err) {
  tir_stmt place = plan->nests[plan->count - 1].loops[0];
  if (n->loops[0] == place) return true;
  bool ahead = tir_compare_position(ir, n->loops[0], place) < 0;
  tir_stmt first = ahead ? n->loops[0] : place, last = ahead ? place : n->loops[0];
  for (tir_stmt s = tir_stmt_at(ir, first)->next; s != last; s = tir_stmt_at(ir, s)->next)
    if (!is_merged(plan, s) && !may_pass(ir, n, s))
      return tir_refuse(ir, err, MS_MERGE_PASSES, n->loops[0], "this loop cannot move past what is between");
  return true;
}

static bool check_merge(struct tir *ir, const tir_loop *loops, struct merge_plan *plan, ms_error *err) {
  plan->common = tir_stmt_at(ir, loops[0])->parent;
  for (uint32_t i = 0; i < plan->count; i++) plan->common = tir_lowest_common_ancestor(ir, plan->common, loops[i]);
  for (uint32_t i = 0; i < plan->count; i++) {
    struct nest *n = &plan->nests[i];
    if (!find_nest(ir, loops[i], plan->common, n, err)) return false;
    if (tir_stmt_at(ir, n->loops[0])->list != tir_stmt_at(ir, plan->nests[0].loops[0])->list)
      return tir_refuse(ir, err, MS_MERGE_SCOPE, loops[i], "this loop stands in an init or branch, not all do");
    if (i && !check_extents(ir, &plan->nests[0], n, err)) return false;
    /* Ranges, bindings and predicates are evaluated between other iterations of the other nests. */
    for (tir_stmt s = n->loops[0]; s; s = tir_next_in_scope(ir, s, n->loops[0]))
      if (!tir_check_place_steady(ir, s, tir_parent_block(ir, loops[0]), err)) return false;
    if (!find_blocks(ir, loops[i], n->blocks, &n->block_count))
      return tir_refuse(ir, err, MS_MERGE_BODY, loops[i], "more than loops and blocks is in this loop");
  }
  for (uint32_t i = 0; i < plan->count; i++) {
    if (!check_passed(ir, plan, &plan->nests[i], err)) return false;
    for (uint32_t j = 0; j < i; j++)
      if (!check_nests(ir, plan, j, i, err)) return false;
  }
  return true;
}

/* ---- Edit ---- */

/* New loops like those of the nest given first, detached, each inside the one before it. */
static void make_loops(struct tir *ir, const struct nest *like, tir_loop *out) {
  for (uint32_t i = 0; i < like->depth; i++) {
    struct tir_stmt_node n = *tir_stmt_at(ir, like->loops[i]);
    struct tir_var_node v = ir->vars.at[n.loop.var];
    tir_var var = tir_new_var(ir, TIR_VAR_LOOP, tir_name_suffix(ir, v.name, "_m"), v.type, n.loop.min, n.loop.extent);
    out[i] = tir_new_loop(ir, var, n.loop.min, n.loop.extent, TIR_SERIAL);
    if (i > 0) tir_append(ir, out[i - 1], TIR_BODY, out[i]);
  }
}

static void move_body(struct tir *ir, const struct nest *n, const tir_loop *merged) {
  assert(n->depth > 0 && n->depth <= MOST_DEPTH);
  tir_loop from = n->loops[n->depth - 1], to = merged[n->depth - 1];
  for (uint32_t i = 0; i < n->depth; i++) {
    tir_var v = tir_as(ir, n->loops[i], TIR_LOOP)->loop.var, w = tir_as(ir, merged[i], TIR_LOOP)->loop.var;
    tir_subst_var(ir, v, tir_cast(ir, ir->vars.at[v].type, tir_var_expr(ir, w)));
  }
  for (tir_stmt s = tir_stmt_at(ir, from)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_loops(ir, s);
  tir_subst_clear(ir);
  tir_move_children(ir, from, TIR_BODY, to, TIR_BODY);
}

/* A block of another nest writes what the block reads. */
static bool reads_of_others(const struct tir *ir, const struct merge_plan *plan, const struct nest *own,
                            tir_block block) {
  for (uint32_t i = 0; i < plan->count; i++)
    for (uint32_t k = 0; k < plan->nests[i].block_count && &plan->nests[i] != own; k++)
      if (tir_share_buffer(ir, tir_block_at(ir, block)->reads, tir_block_at(ir, plan->nests[i].blocks[k])->writes))
        return true;
  return false;
}

/* What a block reads of another nest was all written before it: now earlier iterations of the new loops may have. */
static void note_across(struct tir *ir, const struct merge_plan *plan, tir_block scope) {
  for (uint32_t i = 0; i < plan->count; i++)
    for (uint32_t k = 0; k < plan->nests[i].block_count; k++) {
      tir_block block = plan->nests[i].blocks[k];
      if (tir_scope_of(ir, block) == scope && reads_of_others(ir, plan, &plan->nests[i], block) &&
          !tir_reads_are_covered(ir, block, scope))
        tir_note_across(ir, scope);
    }
}

static tir_loop edit_merge(struct tir *ir, const struct merge_plan *plan) {
  tir_loop merged[MOST_DEPTH] = {TIR_NONE};
  assert(plan->nests[0].depth > 0);
  bool swaps = false;
  for (uint32_t i = 1; i < plan->count; i++)
    swaps |= tir_compare_position(ir, plan->nests[i].loops[0], plan->nests[i - 1].loops[0]) < 0;
  make_loops(ir, &plan->nests[0], merged);
  for (uint32_t i = 0; i < plan->count; i++) move_body(ir, &plan->nests[i], merged);
  tir_replace(ir, plan->nests[plan->count - 1].loops[0], merged[0]);
  for (uint32_t i = 0; i < plan->count; i++) tir_kill(ir, plan->nests[i].loops[0]);
  if (swaps)
    tir_renew_pipeline(ir, tir_parent_block(ir, merged[0])); /* what is read may have been written later */
  else
    note_across(ir, plan, tir_parent_block(ir, merged[0]));
  return merged[plan->nests[0].depth - 1];
}

bool tir_merge(struct tir *ir, const tir_loop *loops, uint32_t count, tir_loop *out, ms_error *err) {
  assert(loops || !count);
  if (!check_named(ir, loops, count, err)) return false;
  struct merge_plan plan = {.nests = calloc(count, sizeof *plan.nests), .count = count};
  if (!plan.nests) abort();
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_merge(ir, loops, &plan, err);
  if (accepted)
    *out = edit_merge(ir, &plan);
  else
    tir_rewind(ir, &mark);
  free(plan.nests);
  return accepted;
}
