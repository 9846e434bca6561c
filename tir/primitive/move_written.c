/* Whether all that a consumer will read under its new loop has been written there. Its iterations run from the first to
 * the last element that its producers write below the loop; none between them may be left out, by steps longer than
 * what each covers, or by a condition on the producer that is more than the limits of its iterations. */
#include "move_domain.h"
#include "tir/analysis/order/order.h"
#include "tir/arith/linear.h"

enum { MOST_RANK = 16 };

/* The block reads every element between the first and the last in that dimension: an iteration of its own runs there
 * one by one. */
static bool reads_all(struct tir *ir, tir_block block, tir_buffer buffer, uint32_t dimension) {
  assert(dimension < tir_buffer_at(ir, buffer)->rank);
  struct tir_span reads = tir_block_at(ir, block)->reads;
  for (uint32_t k = reads.first; k < reads.first + reads.count; k++) {
    if (ir->regions.at[k].buffer != buffer) continue;
    struct tir_linear l = tir_linear_of(ir, ir->operands.at[ir->regions.at[k].ranges + 2 * dimension]);
    for (uint32_t i = 0; i < l.count; i++) {
      struct tir_term t = ir->terms.at[l.first + i];
      bool one = t.coefficient == 1 || t.coefficient == -1;
      if (one && tir_at(ir, t.atom)->kind == TIR_VAR && tir_iter_of(ir, block, tir_at(ir, t.atom)->ref) >= 0)
        return true;
    }
  }
  return false;
}

/* What the producer writes of a buffer that the block reads is strided in some dimension, by elements that the block
 * does not step over likewise; or dimensions that depend on each other are no box. */
static bool writes_strided(struct tir *ir, const struct tir_move *move, tir_block producer, struct tir_region region) {
  struct tir_relaxed r;
  bool strided = false, known = true;
  tir_open_relaxed(ir, move, producer, region.buffer, &r);
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank && !strided; d++) {
    enum tir_density found = tir_density_of(ir, producer, ir->operands.at[region.ranges + 2 * d],
                                            ir->operands.at[region.ranges + 2 * d + 1], r.vars, r.count);
    strided = found == TIR_STRIDED && reads_all(ir, move->block, region.buffer, d);
    known &= found != TIR_DENSITY_UNKNOWN;
  }
  if (!known && !strided) strided = !tir_covers_box(ir, producer, region, r.vars, r.count);
  tir_close_relaxed(&r);
  return strided;
}

/* All writes of the buffer are strided, so that none fills in what another leaves out. */
static bool all_write_strided(struct tir *ir, const struct tir_move *move, tir_buffer buffer) {
  for (uint32_t i = 0; i < move->required_count; i++) {
    struct tir_span writes = tir_block_at(ir, move->required[i])->writes;
    for (uint32_t k = writes.first; k < writes.first + writes.count; k++)
      if (ir->regions.at[k].buffer == buffer && !writes_strided(ir, move, move->required[i], ir->regions.at[k]))
        return false;
  }
  return true;
}

/* ---- Conditions ---- */

/* Only loops below the new place that run through no spatial iteration decide: every element is written, in one of
 * their iterations or another. */
static bool decided_by_reductions(const struct tir *ir, const struct tir_move *move, tir_block producer,
                                  tir_expr condition) {
  bool below = true;
  if (tir_uses_let(ir, condition)) return false;
  for (tir_stmt s = tir_stmt_at(ir, producer)->parent; s && !tir_is(ir, s, TIR_BLOCK); s = tir_stmt_at(ir, s)->parent) {
    below &= s != move->loop;
    if (!tir_is(ir, s, TIR_LOOP) || !tir_uses_var(ir, condition, tir_as(ir, s, TIR_LOOP)->loop.var)) continue;
    if (!below) return false;
    for (uint32_t i = 0; i < tir_block_at(ir, producer)->iters.count; i++) {
      struct tir_iter iter = tir_iters(ir, producer)[i];
      if (iter.kind == TIR_SPATIAL && tir_may_follow(ir, iter.binding, tir_as(ir, s, TIR_LOOP)->loop.var)) return false;
    }
  }
  return true;
}

/* That each iteration is inside its domain. */
static tir_expr domain_limits(struct tir *ir, tir_block block) {
  tir_expr all = TIR_NONE;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    struct tir_var_node v = ir->vars.at[iter.var];
    tir_type type = tir_type_of(ir, iter.binding);
    tir_expr min = tir_cast(ir, type, v.min), end = tir_add(ir, min, tir_cast(ir, type, v.extent));
    all = tir_and(ir, all, tir_make(ir, TIR_GE, iter.binding, min));
    all = tir_and(ir, all, tir_make(ir, TIR_LT, iter.binding, end));
  }
  return all;
}

/* The condition keeps no iteration inside the domains from being run. */
static bool only_limits(struct tir *ir, const struct tir_move *move, tir_block producer, tir_expr condition) {
  struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind == TIR_AND) return only_limits(ir, move, producer, n.a) && only_limits(ir, move, producer, n.b);
  return tir_is_domain_end(ir, producer, condition) || decided_by_reductions(ir, move, producer, condition) ||
         tir_prove_under(ir, domain_limits(ir, producer), condition);
}

/* ---- Both ---- */

/* What the producer itself takes, in each iteration of a loop, from a block that writes part of a region: its copy has
 * as many elements that were not written. */
static bool check_taken(struct tir *ir, const struct tir_move *move, tir_block producer, ms_error *err) {
  struct tir_span reads = tir_block_at(ir, producer)->reads;
  for (uint32_t k = reads.first; k < reads.first + reads.count; k++) {
    tir_buffer buffer = ir->regions.at[k].buffer;
    for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u; u = ir->uses.at[u].next) {
      tir_block writer = ir->uses.at[u].block;
      if (writer == producer || tir_scope_of(ir, writer) != move->scope) continue;
      if (!tir_shares_loop(ir, producer, writer, move->scope)) continue;
      if (!tir_check_stores_all(ir, writer, buffer, TIR_NONE, err)) return false;
    }
  }
  return true;
}

/* All that the producer declares is written, of the buffers that the block reads, and of what it takes itself. */
static bool check_stores(struct tir *ir, const struct tir_move *move, tir_block producer, ms_error *err) {
  struct tir_span writes = tir_block_at(ir, producer)->writes;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    tir_buffer buffer = ir->regions.at[k].buffer;
    if (tir_has_region_of(ir, tir_block_at(ir, move->block)->reads, buffer) &&
        !tir_check_stores_all(ir, producer, buffer, TIR_NONE, err))
      return false;
  }
  return check_taken(ir, move, producer, err) && tir_check_writes_exact(ir, producer, err);
}

static bool check_producer(struct tir *ir, const struct tir_move *move, tir_block producer, ms_error *err) {
  struct tir_span writes = tir_block_at(ir, producer)->writes;
  tir_expr predicate = tir_as(ir, producer, TIR_BLOCK)->block.predicate;
  if (predicate && !only_limits(ir, move, producer, predicate))
    return tir_refuse(ir, err, MS_MOVE_COVER, producer, "a condition leaves out some of what producer `%s` writes here",
                      tir_block_name(ir, producer));
  if (!check_stores(ir, move, producer, err)) return false;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    struct tir_region region = ir->regions.at[k];
    if (!tir_has_region_of(ir, tir_block_at(ir, move->block)->reads, region.buffer) ||
        !writes_strided(ir, move, producer, region))
      continue;
    if (!all_write_strided(ir, move, region.buffer)) continue;
    return tir_refuse(ir, err, MS_MOVE_COVER, move->loop, "under this loop `%s` is written strided by block `%s`",
                      tir_buffer_name(ir, region.buffer), tir_block_name(ir, producer));
  }
  return true;
}

/* ---- Iterations that are parts of an index ---- */

/* What the producer writes in one iteration of the loop, of a buffer that the block reads. */
struct written {
  tir_block producer;
  struct tir_region region;
  const struct tir_relaxed *relaxed;
  tir_expr limits; /* in which iterations it writes at all; TIR_NONE: in all */
  bool cut;        /* within an iteration, it writes less than its bindings reach */
};

/* Where an iteration is past that side of its domain, the index is outside of the buffer, whatever the others are. */
static bool leaves_buffer(struct tir *ir, const struct written *w, uint32_t dimension, struct tir_iter iter,
                          bool past_end) {
  assert(dimension < tir_buffer_at(ir, w->region.buffer)->rank);
  struct tir_linear l = tir_linear_of(ir, ir->operands.at[w->region.ranges + 2 * dimension]);
  const struct tir_expr_node *size =
      tir_at(ir, ir->operands.at[tir_buffer_at(ir, w->region.buffer)->shape + dimension]);
  struct tir_bounds domain = tir_bounds_of(ir, tir_var_expr(ir, iter.var)), rest = {l.constant, l.constant};
  int64_t own = 0;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    int other = tir_at(ir, t.atom)->kind == TIR_VAR ? tir_iter_of(ir, w->producer, tir_at(ir, t.atom)->ref) : -1;
    if (other < 0) return false;
    if (tir_at(ir, t.atom)->ref == iter.var) {
      own = t.coefficient;
      continue;
    }
    struct tir_bounds b = tir_bounds_of(ir, tir_iters(ir, w->producer)[other].binding);
    rest.lo = tir_sat_add(rest.lo, tir_sat_mul(t.coefficient, t.coefficient > 0 ? b.lo : b.hi));
    rest.hi = tir_sat_add(rest.hi, tir_sat_mul(t.coefficient, t.coefficient > 0 ? b.hi : b.lo));
  }
  int64_t past = tir_sat_mul(own, past_end ? tir_sat_add(domain.hi, 1) : tir_sat_add(domain.lo, -1));
  tir_expr extent = ir->operands.at[w->region.ranges + 2 * dimension + 1];
  if (!own || size->kind != TIR_INT_IMM || !tir_is_int(ir, extent)) return false;
  if (past_end == (own > 0)) return tir_sat_add(rest.lo, past) >= size->imm;
  return tir_sat_add(tir_sat_add(rest.hi, past), tir_at(ir, extent)->imm - 1) < 0;
}

/* The binding of an iteration in the index may be past that side of its domain, where the producer does not run. */
static void take_limit(struct tir *ir, struct written *w, uint32_t dimension, struct tir_iter iter, bool past_end) {
  struct tir_var_node v = ir->vars.at[iter.var];
  tir_type type = tir_type_of(ir, iter.binding);
  tir_expr limit = tir_cast(ir, type, v.min);
  if (past_end) limit = tir_add(ir, limit, tir_cast(ir, type, v.extent));
  tir_expr inside = tir_make(ir, past_end ? TIR_LT : TIR_GE, iter.binding, limit);
  if (tir_prove(ir, inside) || leaves_buffer(ir, w, dimension, iter, past_end)) return;
  if (tir_uses_relaxed(ir, w->relaxed, inside))
    w->cut = true;
  else
    w->limits = tir_and(ir, w->limits, inside);
}

static void take_limits_of_region(struct tir *ir, struct written *w) {
  for (uint32_t d = 0; d < tir_buffer_at(ir, w->region.buffer)->rank; d++) {
    tir_expr index = ir->operands.at[w->region.ranges + 2 * d];
    if (tir_at(ir, index)->kind == TIR_VAR) continue;
    for (uint32_t i = 0; i < tir_block_at(ir, w->producer)->iters.count; i++) {
      struct tir_iter iter = tir_iters(ir, w->producer)[i];
      if (!tir_uses_var(ir, index, iter.var)) continue;
      take_limit(ir, w, d, iter, true);
      take_limit(ir, w, d, iter, false);
    }
  }
}

/* All between the first and the last that its bindings reach is written, other iterations filling what one leaves. */
static bool is_whole(struct tir *ir, const struct written *w) {
  tir_expr ranges[2 * MOST_RANK];
  struct tir_interval reached[MOST_RANK], covered[MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, w->region.buffer)->rank;
  tir_expr predicate = tir_as(ir, w->producer, TIR_BLOCK)->block.predicate;
  if (rank > MOST_RANK) return false;
  tir_region_over_loops(ir, w->producer, w->region, ranges);
  tir_relax_region(ir, ranges, rank, w->relaxed->vars, w->relaxed->count, reached);
  return tir_region_exact(ir, ranges, rank, w->relaxed->vars, w->relaxed->count, predicate, covered) &&
         tir_region_covers(ir, w->region.buffer, covered, reached);
}

/* Where an index is made of several iterations, past the domain of one come elements that are written in other
 * iterations: iterations in which the producer does not run are left out; of others it must write all. */
static bool find_limits(struct tir *ir, const struct tir_move *move, tir_block producer, tir_expr *limits) {
  struct tir_span writes = tir_block_at(ir, producer)->writes;
  struct tir_relaxed r;
  bool whole = true;
  *limits = TIR_NONE;
  for (uint32_t k = writes.first; k < writes.first + writes.count && whole; k++) {
    struct written w = {producer, ir->regions.at[k], &r, *limits, false};
    if (!tir_has_region_of(ir, tir_block_at(ir, move->block)->reads, w.region.buffer)) continue;
    tir_open_relaxed(ir, move, producer, w.region.buffer, &r);
    take_limits_of_region(ir, &w);
    whole = !w.cut || is_whole(ir, &w);
    tir_close_relaxed(&r);
    *limits = w.limits;
  }
  return whole;
}

/* Producers that do not run in the same iterations: what one has for the block in an iteration the
 * other may not have. */
static bool take_limits(struct tir *ir, struct tir_move *move, ms_error *err) {
  bool any = false;
  for (uint32_t i = 0; i < move->required_count; i++) {
    tir_expr limits;
    struct tir_span written = tir_block_at(ir, move->required[i])->writes;
    if (!tir_share_buffer(ir, written, tir_block_at(ir, move->block)->reads)) continue;
    if (!find_limits(ir, move, move->required[i], &limits) || (any && limits != move->limits))
      return tir_refuse(ir, err, MS_MOVE_COVER, move->required[i],
                        "past the end of an iteration of producer `%s` come elements that are written elsewhere",
                        tir_block_name(ir, move->required[i]));
    move->limits = limits;
    any = true;
  }
  return true;
}

bool tir_move_check_written(struct tir *ir, struct tir_move *move, ms_error *err) {
  for (uint32_t i = 0; i < move->required_count; i++)
    if (!check_producer(ir, move, move->required[i], err)) return false;
  return take_limits(ir, move, err);
}
