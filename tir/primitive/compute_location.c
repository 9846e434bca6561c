/* The loops that a block may be computed at now: what SampleComputeLocation draws from, besides the root and inlining.
 *
 * Candidates are the loops around all consumers, outermost first; those of extent 1 are passed over, and so are
 * reduction loops with no data-parallel loop inside them, and data-parallel loops inside a reduction loop. */
#include "move_block.h"

#include <stdlib.h>

struct candidates {
  tir_loop *loops;
  uint8_t *kinds; /* of the iterations each is bound to, among all blocks below it: as tir_loop_iter_kinds */
  uint32_t count;
};

/* The loops of the first consumer down to the deepest one around all consumers; count 0: there are none. */
static void find_candidates(const struct tir *ir, const tir_block *consumers, uint32_t count, struct candidates *c) {
  tir_stmt deepest = tir_stmt_at(ir, consumers[0])->parent;
  while (deepest && !tir_is(ir, deepest, TIR_LOOP) && !tir_is(ir, deepest, TIR_BLOCK))
    deepest = tir_stmt_at(ir, deepest)->parent;
  for (uint32_t i = 1; i < count; i++) deepest = tir_lowest_common_ancestor(ir, deepest, consumers[i]);
  c->count = 0;
  if (!tir_is(ir, deepest, TIR_LOOP)) return;
  tir_stmt first_inside = tir_stmt_at(ir, deepest)->first[TIR_BODY];
  c->count = tir_loops_of(ir, first_inside, NULL, 0);
  c->loops = malloc(c->count * (sizeof *c->loops + 1));
  if (!c->loops) abort();
  c->kinds = (uint8_t *)(c->loops + c->count);
  tir_loops_of(ir, first_inside, c->loops, c->count);
}

/* The kinds of each loop's iterations: of every block below, for the candidates around it. */
static void find_kinds(const struct tir *ir, struct candidates *c) {
  static const uint8_t bits[] = {[TIR_SPATIAL] = 1, [TIR_REDUCE] = 2, [TIR_OPAQUE] = 4};
  for (uint32_t i = 0; i < c->count; i++) c->kinds[i] = 0;
  uint32_t inside = 1; /* candidates around the statement visited */
  for (tir_stmt s = c->loops[0]; s;) {
    if (!tir_is(ir, s, TIR_BLOCK)) {
      s = tir_next(ir, s, c->loops[0]);
      continue;
    }
    for (inside = c->count; !tir_is_below(ir, s, c->loops[inside - 1]);) inside--;
    struct tir_span iters = tir_block_at(ir, s)->iters;
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
      for (uint32_t l = 0; l < inside; l++)
        if (tir_uses_var(ir, ir->iters.at[i].binding, tir_stmt_at(ir, c->loops[l])->loop.var))
          c->kinds[l] |= bits[ir->iters.at[i].kind];
    s = tir_after(ir, s, c->loops[0]);
  }
}

static bool is_data_parallel(uint8_t kinds) { return !(kinds & ~1); }

static uint32_t choose(struct tir *ir, struct tir_move *move, const struct candidates *c, tir_loop *out,
                       uint32_t most) {
  ms_error err = {.brief = true};
  uint32_t last_parallel = 0, found = 0;
  bool reduced = false;
  for (uint32_t i = 0; i < c->count; i++)
    if (is_data_parallel(c->kinds[i])) last_parallel = i + 1;
  for (uint32_t i = 0; i < c->count; i++) {
    if (tir_loop_extent(ir, c->loops[i]) == 1) continue;
    if (is_data_parallel(c->kinds[i]) ? reduced : i >= last_parallel) break;
    reduced |= !is_data_parallel(c->kinds[i]);
    if (!tir_move_check_loop(ir, move, c->loops[i], -1, &err)) continue;
    if (found < most) out[found] = c->loops[i];
    found++;
  }
  return found;
}

uint32_t tir_compute_locations(struct tir *ir, tir_block block, tir_loop *out, uint32_t most) {
  struct tir_move move;
  struct tir_mark mark = tir_mark(ir);
  struct candidates c = {NULL, NULL, 0};
  ms_error err = {.brief = true};
  uint32_t found = 0;
  if (tir_move_check_block(ir, &move, block, true, &err) && move.required_count > 0) {
    find_candidates(ir, move.required, move.required_count, &c);
    if (c.count) {
      find_kinds(ir, &c);
      found = choose(ir, &move, &c, out, most);
      free(c.loops);
    }
  }
  tir_move_free(&move);
  if (ir->exprs.count != mark.exprs || ir->vars.count != mark.vars) tir_rewind(ir, &mark);
  return found;
}
