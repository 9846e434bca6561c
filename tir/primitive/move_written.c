/* Whether all that a consumer will read under its new loop has been written there. Its iterations run from the first to
 * the last element that its producers write below the loop; none between them may be left out, by steps longer than
 * what each covers, or by a condition on the producer that is more than the limits of its iterations. */
#include "move_domain.h"

/* The block reads every element between the first and the last in that dimension: an iteration of its own runs there
 * one by one. */
static bool reads_all(struct tir *ir, tir_block block, tir_buffer buffer, uint32_t dimension) {
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

/* What the producer writes of a buffer that the block reads has gaps in some dimension, of elements that the block does
 * not step over likewise; or dimensions that depend on each other are no box. */
static bool has_gaps(struct tir *ir, const struct tir_move *move, tir_block producer, struct tir_region region) {
  struct tir_relaxed r;
  bool gaps = false, known = true;
  tir_open_relaxed(ir, move, producer, region.buffer, &r);
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank && !gaps; d++) {
    enum tir_gaps found = tir_find_gaps(ir, producer, ir->operands.at[region.ranges + 2 * d],
                                        ir->operands.at[region.ranges + 2 * d + 1], r.vars, r.count);
    gaps = found == TIR_GAPS && reads_all(ir, move->block, region.buffer, d);
    known &= found != TIR_GAPS_NOT_KNOWN;
  }
  if (!known && !gaps) gaps = !tir_covers_box(ir, producer, region, r.vars, r.count);
  tir_close_relaxed(&r);
  return gaps;
}

/* All writes of the buffer leave gaps, so that none fills those of another. */
static bool buffer_has_gaps(struct tir *ir, const struct tir_move *move, tir_buffer buffer) {
  for (uint32_t i = 0; i < move->required_count; i++) {
    struct tir_span writes = tir_block_at(ir, move->required[i])->writes;
    for (uint32_t k = writes.first; k < writes.first + writes.count; k++)
      if (ir->regions.at[k].buffer == buffer && !has_gaps(ir, move, move->required[i], ir->regions.at[k])) return false;
  }
  return true;
}

/* ---- Conditions ---- */

/* Only loops below the new place that run through no spatial iteration decide: every element is written, in one of
 * their rounds or another. */
static bool decided_by_reductions(const struct tir *ir, const struct tir_move *move, tir_block producer,
                                  tir_expr condition) {
  bool below = true;
  for (tir_stmt s = tir_stmt_at(ir, producer)->parent; s && !tir_is(ir, s, TIR_BLOCK); s = tir_stmt_at(ir, s)->parent) {
    below &= s != move->loop;
    if (!tir_is(ir, s, TIR_LOOP) || !tir_uses_var(ir, condition, tir_stmt_at(ir, s)->loop.var)) continue;
    if (!below) return false;
    for (uint32_t i = 0; i < tir_block_at(ir, producer)->iters.count; i++) {
      struct tir_iter iter = tir_iters(ir, producer)[i];
      if (iter.kind == TIR_SPATIAL && tir_uses_var(ir, iter.binding, tir_stmt_at(ir, s)->loop.var)) return false;
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

static bool check_producer(struct tir *ir, const struct tir_move *move, tir_block producer, ms_error *err) {
  struct tir_span writes = tir_block_at(ir, producer)->writes;
  tir_expr predicate = tir_stmt_at(ir, producer)->block.predicate;
  if (predicate && !only_limits(ir, move, producer, predicate))
    return tir_refuse(ir, err, MS_MOVE_COVER, producer, "a condition leaves out some of what producer `%s` writes here",
                      tir_block_name(ir, producer));
  if (!tir_check_writes_told(ir, producer, err)) return false;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    struct tir_region region = ir->regions.at[k];
    if (!tir_has_region_of(ir, tir_block_at(ir, move->block)->reads, region.buffer) ||
        !has_gaps(ir, move, producer, region))
      continue;
    if (!buffer_has_gaps(ir, move, region.buffer)) continue;
    return tir_refuse(ir, err, MS_MOVE_COVER, move->loop, "under this loop `%s` is written with gaps by block `%s`",
                      tir_text(ir, tir_buffer_at(ir, region.buffer)->name), tir_block_name(ir, producer));
  }
  return true;
}

/* The iteration is a part of an index of what the block reads: past its domain come elements written in other rounds.
 */
static bool is_part_of_index(const struct tir *ir, const struct tir_move *move, tir_block producer, tir_var iter) {
  struct tir_span writes = tir_block_at(ir, producer)->writes;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    struct tir_region region = ir->regions.at[k];
    if (!tir_has_region_of(ir, tir_block_at(ir, move->block)->reads, region.buffer)) continue;
    for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++) {
      tir_expr index = ir->operands.at[region.ranges + 2 * d];
      if (tir_at(ir, index)->kind != TIR_VAR && tir_uses_var(ir, index, iter)) return true;
    }
  }
  return false;
}

/* Limits of such iterations that hold or fail for a whole round of the loop are the block's too. */
static void take_limits(struct tir *ir, struct tir_move *move, tir_block producer, const struct tir_relaxed *r,
                        tir_expr predicate) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) {
    take_limits(ir, move, producer, r, n.a);
    take_limits(ir, move, producer, r, n.b);
  }
  if (n.kind != TIR_LT || tir_uses_any_var(ir, predicate, r->vars, r->count)) return;
  for (uint32_t i = 0; i < tir_block_at(ir, producer)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, producer)[i];
    if (iter.binding == n.a && iter.kind == TIR_SPATIAL && is_part_of_index(ir, move, producer, iter.var)) {
      move->limits = tir_and(ir, move->limits, predicate);
      return;
    }
  }
}

bool tir_move_check_written(struct tir *ir, struct tir_move *move, ms_error *err) {
  for (uint32_t i = 0; i < move->required_count; i++)
    if (!check_producer(ir, move, move->required[i], err)) return false;
  if (move->required_count != 1) return true;
  tir_expr predicate = tir_stmt_at(ir, move->required[0])->block.predicate;
  if (!predicate) return true;
  struct tir_relaxed r;
  r.count = tir_loop_vars(ir, move->required[0], move->loop, r.on_stack, TIR_MOST_RELAXED);
  r.vars = r.on_stack;
  if (r.count <= TIR_MOST_RELAXED) take_limits(ir, move, move->required[0], &r, predicate);
  return true;
}
