/* The loops that a block may be computed at now: what SampleComputeLocation draws from, besides the root and inlining.
 *
 * Candidates are the loops around all consumers, outermost first; those of extent 1 are passed over, and so are
 * reduction loops with no data-parallel loop inside them, and data-parallel loops inside a reduction loop. */
#include "move_block.h"

#include <stdlib.h>

struct candidates {
  tir_loop *loops;
  tir_var *vars;  /* theirs */
  uint8_t *kinds; /* of the iterations each is bound to, among all blocks below it: as tir_loop_iter_kinds */
  uint64_t mask;  /* of the loops: bit number % 64 */
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
  c->loops = malloc(c->count * (sizeof *c->loops + sizeof *c->vars + 1));
  if (!c->loops) abort();
  c->vars = c->loops + c->count;
  c->kinds = (uint8_t *)(c->vars + c->count);
  tir_loops_of(ir, first_inside, c->loops, c->count);
  c->mask = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    c->vars[i] = tir_as(ir, c->loops[i], TIR_LOOP)->loop.var;
    c->mask |= 1ull << (c->loops[i] & 63);
  }
}

static void mark_loops(const struct tir *ir, const struct candidates *c, uint32_t inside, tir_expr atom, uint8_t bit) {
  const struct tir_expr_node *n = tir_at(ir, atom);
  if (n->kind == TIR_VAR) {
    uint32_t l = 0;
    while (l < inside && c->vars[l] != n->ref) l++;
    if (l < inside) c->kinds[l] |= bit;
    return;
  }
  for (uint32_t l = 0; l < inside; l++)
    if (n->vars >> (c->vars[l] & 63) & 1 && tir_uses_var(ir, atom, c->vars[l])) c->kinds[l] |= bit;
}

/* How many of the candidates are around a block below the first: they are nested. */
static uint32_t candidates_around(const struct tir *ir, const struct candidates *c, tir_block block) {
  for (tir_stmt s = tir_stmt_at(ir, block)->parent;; s = tir_stmt_at(ir, s)->parent)
    for (uint32_t inside = c->mask >> (s & 63) & 1 ? c->count : 0; inside > 0; inside--)
      if (c->loops[inside - 1] == s) return inside;
}

/* The kinds of each loop's iterations: of every block below, for the candidates around it. */
static void find_kinds(struct tir *ir, const struct candidates *c) {
  static const uint8_t bits[] = {[TIR_SPATIAL] = 1, [TIR_REDUCE] = 2, [TIR_OPAQUE] = 4};
  for (uint32_t i = 0; i < c->count; i++) c->kinds[i] = 0;
  for (tir_stmt s = c->loops[0]; s; s = tir_next_in_scope(ir, s, c->loops[0])) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    uint32_t inside = candidates_around(ir, c, s);
    for (uint32_t i = 0; i < tir_block_at(ir, s)->iters.count; i++) {
      struct tir_iter iter = tir_iters(ir, s)[i];
      struct tir_linear l = tir_linear_of(ir, iter.binding);
      for (uint32_t k = 0; k < l.count; k++) mark_loops(ir, c, inside, ir->terms.at[l.first + k].atom, bits[iter.kind]);
    }
  }
}

static bool is_data_parallel(uint8_t kinds) { return !(kinds & ~1); }

static uint32_t choose(struct tir *ir, struct tir_move *move, const struct candidates *c, tir_loop *out,
                       uint32_t most) {
  ms_error err;
  err.brief = true; /* nothing else of it is read */
  uint32_t last_parallel = 0, found = 0;
  bool reduced = false, anywhere = tir_move_fits_anywhere(ir, move);
  for (uint32_t i = 0; i < c->count; i++)
    if (is_data_parallel(c->kinds[i])) last_parallel = i + 1;
  for (uint32_t i = 0; i < c->count; i++) {
    if (tir_loop_extent(ir, c->loops[i]) == 1) continue;
    if (is_data_parallel(c->kinds[i]) ? reduced : i >= last_parallel) break;
    reduced |= !is_data_parallel(c->kinds[i]);
    bool fits =
        anywhere ? !tir_is_below(ir, move->block, c->loops[i]) : tir_move_check_loop(ir, move, c->loops[i], -1, &err);
    if (!fits) continue;
    if (found < most) out[found] = c->loops[i];
    found++;
  }
  return found;
}

uint32_t tir_compute_locations(struct tir *ir, tir_block block, tir_loop *out, uint32_t most) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_move move;
  struct tir_mark mark = tir_mark(ir);
  struct candidates c = {0};
  ms_error err;
  err.brief = true; /* nothing else of it is read */
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
