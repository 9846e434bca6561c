/* Delay: where the last nest of a parallel loop's iteration is delayed (msched.nontemporal = 2), it runs beside the
 * next iteration's, so that its stores, which go around the caches, are under way while that computes, and what that
 * reads comes meanwhile.
 *
 *   for i in parallel(4096):         for p in parallel(128):
 *     A(i); S(i); B(i)                 for r in 32, a software pipeline, jammed: A(i); S(i) beside B(i - 1)
 *
 * Requires: blocks, and allocations where they belong (place.c). Gives: a serial loop in the parallel one, annotated as
 * a software pipeline whose last statement is a stage later, and takes its turn behind the one that runs as often
 * (jam.c). Keeps: everything else; a loop that cannot be divided, or has no such statement, stays, and of one whose
 * rows cannot have two buffers, as those of unknown length, each row ends before the next one (pipeline.c). */
#include "tir/analysis/loads.h"
#include "tir/lower/lower.h"
#include "tir/node/arena.h"

enum { MOST_ROWS = 32, LEAST_ROWS = 8, LEAST_PIECES = 8, PIECES_A_THREAD = 4, MOST_STAGES = 32, MOST_DEPTH = 4 };

static bool is_delayed(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    tir_expr value = tir_annotation(ir, tir_stmt_at(ir, s)->annotations, TIR_NONTEMPORAL);
    if (value && tir_is_const(ir, value, 2)) return true;
  }
  return false;
}

/* The extents of the nest that a statement is, unit loops aside, down to a loop that holds several statements; 0: it
 * has none that runs. */
static uint32_t extents_of(const struct tir *ir, tir_stmt s, int64_t extents[MOST_DEPTH]) {
  uint32_t count = 0;
  for (; s && tir_is(ir, s, TIR_LOOP); s = tir_only_child(ir, s)) {
    int64_t extent = tir_loop_extent(ir, s);
    if (extent != 1 && count == MOST_DEPTH) return 0;
    if (extent != 1) extents[count++] = extent;
  }
  return count;
}

/* Whether a nest holds several statements below its first loop that runs, as what is done by blocks of a row does. */
static bool has_steps(const struct tir *ir, tir_stmt s) {
  while (tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) == 1 && tir_only_child(ir, s)) s = tir_only_child(ir, s);
  return tir_is(ir, s, TIR_LOOP) && !tir_only_child(ir, s);
}

static bool runs_as_often(const struct tir *ir, tir_stmt a, tir_stmt b) {
  int64_t x[MOST_DEPTH], y[MOST_DEPTH];
  uint32_t first = extents_of(ir, a, x), last = extents_of(ir, b, y);
  if (last < 2 || first == 0 || x[0] != y[0]) return false;
  return first == last || has_steps(ir, a);
}

/* Statements of the loop, allocations aside; 0: too many, or something else than loops and blocks. */
static uint32_t statements_of(const struct tir *ir, tir_loop loop, tir_stmt out[MOST_STAGES]) {
  uint32_t count = 0;
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (tir_is(ir, s, TIR_ALLOC)) continue;
    if (count == MOST_STAGES || (!tir_is(ir, s, TIR_LOOP) && !tir_is(ir, s, TIR_BLOCK))) return 0;
    out[count++] = s;
  }
  return count;
}

/* Whether blocks below a statement say that they read, or write, the buffer. */
static bool touches(const struct tir *ir, tir_stmt top, tir_buffer buffer, bool writes) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    const struct tir_block_record *r = tir_block_at(ir, s);
    if (tir_has_region_of(ir, writes ? r->writes : r->reads, buffer)) return true;
  }
  return false;
}

/* What the last statement shares with others, and one of them writes, is the loop's own. */
static bool shares_its_own(const struct tir *ir, tir_loop loop, const tir_stmt *all, uint32_t count) {
  tir_stmt last = all[count - 1];
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    bool reads = touches(ir, last, b, false), writes = touches(ir, last, b, true);
    for (uint32_t i = 0; i + 1 < count && (reads || writes); i++) {
      bool shared = touches(ir, all[i], b, true) || (writes && touches(ir, all[i], b, false));
      tir_stmt where = tir_buffer_at(ir, b)->where;
      if (shared && (!where || !tir_is(ir, where, TIR_ALLOC) || tir_stmt_at(ir, where)->parent != loop)) return false;
    }
  }
  return true;
}

/* Pieces are for all of the target's threads: each gets as many as the others, or so many that one more is little. */
static int64_t rows_of(const struct lowering *low, int64_t extent) {
  int64_t threads = low->options && low->options->threads ? low->options->threads : 1;
  for (int64_t rows = MOST_ROWS; rows >= LEAST_ROWS; rows--) {
    int64_t pieces = extent / rows;
    if (extent % rows || pieces < LEAST_PIECES) continue;
    if (pieces % threads == 0 || pieces >= PIECES_A_THREAD * threads) return rows;
  }
  return 0;
}

/* Divides the loop; gives the inner one, which holds all. */
static tir_loop divide(struct tir *ir, tir_loop loop, int64_t rows) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  tir_expr zero = tir_int(ir, v.type, 0), extent = tir_int(ir, v.type, rows);
  tir_var inner = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, zero, extent);
  tir_loop made = tir_new_loop(ir, inner, zero, extent, TIR_SERIAL);
  tir_move_children(ir, loop, TIR_BODY, made, TIR_BODY);
  tir_append(ir, loop, TIR_BODY, made);
  tir_expr outer = tir_var_expr(ir, n.loop.var);
  tir_subst_var(ir, n.loop.var, tir_add(ir, tir_mul(ir, outer, extent), tir_var_expr(ir, inner)));
  for (tir_stmt s = tir_stmt_at(ir, made)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  tir_set_loop_range(ir, loop, zero, tir_int(ir, v.type, tir_at(ir, n.loop.extent)->imm / rows)); /* by another one */
  return made;
}

/* at: of the statement behind which the last one takes its turn. */
static void annotate(struct tir *ir, tir_loop loop, uint32_t count, uint32_t at) {
  tir_expr stages[MOST_STAGES], places[MOST_STAGES];
  for (uint32_t i = 0; i < count; i++) {
    bool last = i + 1 == count;
    stages[i] = tir_int(ir, TIR_T_I32, last);
    places[i] = tir_int(ir, TIR_T_I32, last ? at + 1 : i <= at ? i : i + 1);
  }
  tir_annotate_symbol(ir, loop, tir_symbol_of(ir, TIR_PIPELINE_STAGE), tir_list_value(ir, stages, count));
  tir_annotate_symbol(ir, loop, tir_symbol_of(ir, TIR_PIPELINE_ORDER), tir_list_value(ir, places, count));
  tir_annotate_symbol(ir, loop, tir_symbol_of(ir, TIR_JAM), tir_int(ir, TIR_T_I32, 1));
}

static void delay(struct lowering *low, tir_loop loop) {
  struct tir *ir = low->ir;
  tir_stmt all[MOST_STAGES];
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  uint32_t count = statements_of(ir, loop, all), at;
  bool from_zero = tir_is_int(ir, n.loop.min) && !tir_at(ir, n.loop.min)->imm;
  int64_t rows = from_zero ? rows_of(low, tir_loop_extent(ir, loop)) : 0;
  if (count < 2 || !rows || !is_delayed(ir, all[count - 1]) || !shares_its_own(ir, loop, all, count)) return;
  for (at = count - 1; at-- > 0;)
    if (runs_as_often(ir, all[at], all[count - 1])) break;
  if (at < count) annotate(ir, divide(ir, loop, rows), count, at);
}

bool lower_delay(struct lowering *low) {
  struct tir *ir = low->ir;
  tir_symbol stage = tir_symbol_of(ir, TIR_PIPELINE_STAGE);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) /* those of a GPU's schedule stay loops */
    if (tir_is_pipeline(ir, s)) tir_annotate_span(ir, &tir_stmt_at(ir, s)->annotations, stage, TIR_NONE);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_PARALLEL) delay(low, s);
  return true;
}
