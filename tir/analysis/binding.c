/* Affine bindings of blocks. Under a predicate that takes the long way: what was found there is kept. */
#include "analysis.h"
#include "tir/arith/affine.h"
#include "tir/arith/known.h"

#include <stdlib.h>

/* What the answer depends on. */
enum { MOST_ON_STACK = 96 };

struct binding {
  struct tir_map map;
  uint32_t on_stack[MOST_ON_STACK], *at; /* bindings, variables of the loops around */
};

static void read_binding(const struct tir *ir, tir_block block, tir_stmt high, struct binding *b) {
  uint32_t count = tir_block_at(ir, block)->iters.count, room = MOST_ON_STACK > count ? MOST_ON_STACK - count : 0;
  b->at = b->on_stack;
  uint32_t vars = tir_loop_vars(ir, block, high, b->at + (room ? count : 0), room);
  if (vars > room || !room) {
    b->at = malloc((count + vars + 1) * sizeof *b->at);
    if (!b->at) abort();
    tir_loop_vars(ir, block, high, b->at + count, vars);
  }
  for (uint32_t i = 0; i < count; i++) b->at[i] = tir_iters(ir, block)[i].binding;
  b->map = (struct tir_map){tir_as(ir, block, TIR_BLOCK)->block.predicate, b->at, b->at + count, count, vars};
}

static void free_binding(struct binding *b) {
  if (b->at != b->on_stack) free(b->at);
}

static bool is_affine(struct tir *ir, const struct tir_map *m) {
  return tir_is_affine_map(ir, m->indices, m->count, m->vars, m->var_count, m->predicate);
}

void tir_keep_affine(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct binding b;
  read_binding(ir, block, TIR_NONE, &b);
#ifdef MSCHED_CHECK
  assert(is_affine(ir, &b.map) && "bindings in simplest form are as affine as before");
#endif
  if (b.map.predicate) tir_keep_map(ir, TIR_FACT_AFFINE, &b.map);
  free_binding(&b);
}

bool tir_is_affine_binding(struct tir *ir, tir_block block, tir_stmt high) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct binding b;
  read_binding(ir, block, high, &b);
  bool affine = !b.map.var_count || (b.map.predicate && tir_is_known_map(ir, TIR_FACT_AFFINE, &b.map));
  if (!affine) {
    affine = is_affine(ir, &b.map);
    if (affine && b.map.predicate) tir_keep_map(ir, TIR_FACT_AFFINE, &b.map);
  }
  free_binding(&b);
  return affine;
}

bool tir_is_affine_without_single(struct tir *ir, tir_block block) {
  struct binding b;
  read_binding(ir, block, TIR_NONE, &b);
  struct tir_map *m = &b.map;
  uint32_t *indices = b.at, *vars = b.at + m->count, count = m->var_count < 64 ? m->var_count : 64;
  uint32_t left = tir_subst_single(ir, vars, count, TIR_NONE, vars);
  bool units = left < count;
  while (count < m->var_count) vars[left++] = vars[count++];
  m->var_count = left;
  for (uint32_t i = 0; units && i < m->count; i++) indices[i] = tir_subst(ir, indices[i]);
  if (units && m->predicate) m->predicate = tir_subst(ir, m->predicate);
  tir_subst_clear(ir);
  bool affine = units && is_affine(ir, m);
  free_binding(&b);
  return affine;
}

/* ---- Steps ---- */

bool tir_uses_any_loop(const struct tir *ir, tir_expr e, const tir_loop *loops, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (tir_uses_var(ir, e, tir_as(ir, loops[i], TIR_LOOP)->loop.var)) return true;
  return false;
}

/* Notes the variable, if it is of a loop. False: it was seen before. */
static bool see_loop(const tir_var *vars, uint32_t count, tir_var v, uint64_t *seen) {
  for (uint32_t k = 0; k < count; k++) {
    if (vars[k] != v) continue;
    if (*seen >> k & 1) return false;
    *seen |= 1ull << k;
  }
  return true;
}

/* The binding as a sum of the loops, each in it for the first time, whose steps do not overlap, nor those of what other
 * loops make, such as the parts of one that was fused further out. */
static bool is_plain_number(struct tir *ir, const tir_var *vars, uint32_t count, tir_expr binding, uint64_t *seen) {
  const struct tir_expr_node *n = tir_at(ir, binding);
  if (n->kind == TIR_VAR && n->lo != INT64_MIN && n->hi != INT64_MAX) return see_loop(vars, count, n->ref, seen);
  struct tir_linear l = tir_linear_of(ir, binding);
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term term = tir_terms(ir, l)[i];
    bool is_plain = tir_at(ir, term.atom)->kind == TIR_VAR || !tir_uses_any_var(ir, term.atom, vars, count);
    if (!is_plain || term.coefficient <= 0) return false;
  }
  if (tir_steps_overlap(ir, l)) return false;
  for (uint32_t i = 0; i < l.count; i++) {
    const struct tir_expr_node *atom = tir_at(ir, ir->terms.at[l.first + i].atom);
    if (atom->kind == TIR_VAR && !see_loop(vars, count, atom->ref, seen)) return false;
  }
  return true;
}

/* The divisor, where it is a positive constant; else 0. */
static int64_t divisor_of(const struct tir *ir, tir_expr e, uint8_t kind) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == kind && tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm > 0 ? tir_at(ir, n->b)->imm : 0;
}

/* Whether the two are quotient and remainder of one number by one divisor. The remainder may be that of a multiple: e %
 * 56 is (e % 3136) % 56. */
static bool are_parts(const struct tir *ir, tir_expr quotient, tir_expr remainder) {
  int64_t by = divisor_of(ir, quotient, TIR_FLOORDIV), whole;
  if (!by || divisor_of(ir, remainder, TIR_FLOORMOD) != by) return false;
  tir_expr divided = tir_at(ir, quotient)->a, taken = tir_at(ir, remainder)->a;
  if (divided == taken) return true;
  whole = divisor_of(ir, divided, TIR_FLOORMOD);
  return whole && whole % by == 0 && tir_at(ir, divided)->a == taken;
}

/* Quotient and remainder together say what the number says. Gives how many bindings there are then. */
static uint32_t join_parts(const struct tir *ir, tir_expr *bindings, uint32_t count) {
  for (uint32_t r = 0; r < count; r++)
    for (uint32_t q = 0; q < count && tir_at(ir, bindings[r])->kind == TIR_FLOORMOD; q++) {
      if (q == r || !are_parts(ir, bindings[q], bindings[r])) continue;
      bindings[q] = tir_at(ir, bindings[q])->a;
      bindings[r] = bindings[--count];
      return join_parts(ir, bindings, count);
    }
  return count;
}

bool tir_takes_steps_once(struct tir *ir, const tir_expr *bindings, uint32_t count, const tir_loop *loops,
                          uint32_t loop_count, tir_expr predicate) {
  tir_var vars[TIR_MOST_STEPPED];
  tir_expr joined[TIR_MOST_STEPPED];
  uint64_t seen = 0;
  bool plain = true;
  assert(count <= TIR_MOST_STEPPED && loop_count <= TIR_MOST_STEPPED);
  if (count) memcpy(joined, bindings, count * sizeof *joined);
  uint32_t parts = join_parts(ir, joined, count);
  for (uint32_t k = 0; k < loop_count; k++) vars[k] = tir_as(ir, loops[k], TIR_LOOP)->loop.var;
  for (uint32_t i = 0; i < parts && plain; i++) plain = is_plain_number(ir, vars, loop_count, joined[i], &seen);
  for (uint32_t k = 0; k < loop_count && plain; k++) plain = seen >> k & 1 || tir_loop_extent(ir, loops[k]) == 1;
  struct tir_map map = {predicate, bindings, vars, count, loop_count};
  if (plain || tir_is_known_map(ir, TIR_FACT_ONCE, &map)) return true;
  bool once = tir_detect_iter_map(ir, bindings, count, vars, loop_count, predicate, TIR_MAP_BIJECTIVE, true, NULL);
  if (once) tir_keep_map(ir, TIR_FACT_ONCE, &map);
  return once;
}

bool tir_block_takes_steps_once(struct tir *ir, tir_block block, const tir_loop *loops, uint32_t count) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  tir_expr bindings[TIR_MOST_STEPPED], predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  tir_loop all[TIR_MOST_STEPPED];
  if (iters.count > TIR_MOST_STEPPED || count > TIR_MOST_STEPPED) return false;
  for (uint32_t i = 0; i < iters.count; i++) bindings[i] = ir->iters.at[iters.first + i].binding;
  if (tir_takes_steps_once(ir, bindings, iters.count, loops, count, predicate)) return true;
  uint32_t around = tir_loops_of(ir, block, all, TIR_MOST_STEPPED);
  return around <= TIR_MOST_STEPPED && tir_takes_steps_once(ir, bindings, iters.count, all, around, predicate);
}

bool tir_block_reduces_once(struct tir *ir, tir_block block) {
  tir_loop all[TIR_MOST_STEPPED], reducing[TIR_MOST_STEPPED];
  uint32_t around = tir_loops_of(ir, block, all, TIR_MOST_STEPPED), count = 0;
  if (around > TIR_MOST_STEPPED) return false;
  for (uint32_t i = 0; i < around; i++)
    if (tir_loop_iter_kinds(ir, all[i], block) & ~(1u << TIR_SPATIAL)) reducing[count++] = all[i];
  return tir_block_takes_steps_once(ir, block, reducing, count);
}

bool tir_check_reduces_once(struct tir *ir, tir_block block, tir_loop at, ms_error *err) {
  MS_CHECK(tir_is(ir, at, TIR_LOOP));
  return tir_block_reduces_once(ir, block) ||
         tir_refuse(ir, err, MS_REDUCTION_REPEATED, at,
                    "iterations of this loop and others take steps of block `%s` again", tir_block_name(ir, block));
}

bool tir_is_one_to_one(struct tir *ir, const tir_expr *values, uint32_t count, tir_var *vars, uint32_t var_count,
                       tir_expr predicate) {
  uint32_t used = 0;
  for (uint32_t k = 0; k < var_count; k++) {
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) found = tir_uses_var(ir, values[i], vars[k]);
    if (found) vars[used++] = vars[k];
  }
  return tir_detect_iter_map(ir, values, count, vars, used, predicate, TIR_MAP_BIJECTIVE, true, NULL);
}

/* ---- Instances ---- */

enum { MOST_LOOPS = 64, MOST_ITERS = 16 };

/* Each iteration is a loop of its own, that runs through its domain. */
static bool is_plain(const struct tir *ir, tir_block block, const tir_var *vars, uint32_t count) {
  uint64_t taken = 0;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    const struct tir_expr_node *n = tir_at(ir, iter.binding);
    uint32_t l = 0;
    while (l < count && (n->kind != TIR_VAR || vars[l] != n->ref)) l++;
    if (l == count || taken >> l & 1) return false;
    const struct tir_var_node *loop = &ir->vars.at[n->ref], *v = &ir->vars.at[iter.var];
    if (loop->min != v->min || loop->extent != v->extent) return false;
    taken |= 1ull << l;
  }
  return !tir_as(ir, block, TIR_BLOCK)->block.predicate;
}

/* A loop that no iteration is bound to may have no iteration. */
static bool may_not_run(const struct tir *ir, tir_block block, const tir_var *vars, uint32_t count) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t l = 0; l < count; l++) {
    bool bound = false;
    if (tir_at(ir, ir->vars.at[vars[l]].extent)->lo >= 1) continue;
    for (uint32_t i = iters.first; i < iters.first + iters.count && !bound; i++)
      bound = tir_uses_var(ir, ir->iters.at[i].binding, vars[l]);
    if (!bound) return true;
  }
  return false;
}

bool tir_runs_for_all(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  tir_var vars[MOST_LOOPS];
  tir_expr ranges[2 * MOST_ITERS];
  struct tir_interval taken[MOST_ITERS];
  uint32_t loops = tir_loop_vars(ir, block, TIR_NONE, vars, MOST_LOOPS), count = tir_block_at(ir, block)->iters.count;
  if (loops > MOST_LOOPS || count > MOST_ITERS) return false;
  if (may_not_run(ir, block, vars, loops)) return false;
  if (is_plain(ir, block, vars, loops)) return true;
  for (uint32_t i = 0; i < count; i++) {
    ranges[2 * i] = tir_iters(ir, block)[i].binding;
    ranges[2 * i + 1] = tir_int(ir, tir_type_of(ir, ranges[2 * i]), 1);
  }
  for (int keeps = 0; keeps < 2; keeps++) {
    tir_expr predicate = keeps ? TIR_NONE : tir_as(ir, block, TIR_BLOCK)->block.predicate;
    bool all = tir_region_is_box(ir, ranges, count, vars, loops, predicate, taken);
    for (uint32_t i = 0; i < count && all; i++) {
      tir_expr min, extent;
      tir_needed_domain(ir, block, i, &min, &extent);
      all = !taken[i].empty && tir_interval_covers(ir, taken[i], tir_interval_of(ir, min, extent));
    }
    if (all) return true;
  }
  return false;
}
