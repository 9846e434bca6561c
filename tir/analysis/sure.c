/* What is surely covered: where conditions leave out a part of a region, or all of it. */
#include "analysis.h"

#include <string.h>

enum { MOST_LOOPS = 64, MOST_RANK = 16 };

/* ---- Conjuncts ---- */

static tir_expr conjuncts_without(struct tir *ir, tir_expr predicate, const tir_var *vars, uint32_t count) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) {
    tir_expr left = conjuncts_without(ir, n.a, vars, count);
    return tir_and(ir, left, conjuncts_without(ir, n.b, vars, count));
  }
  for (uint32_t i = 0; i < count; i++)
    if (tir_uses_var(ir, predicate, vars[i])) return TIR_NONE;
  return predicate;
}

tir_expr tir_invariant_conditions(struct tir *ir, tir_expr predicate, const tir_var *vars, uint32_t count) {
  if (!predicate) return TIR_NONE;
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_var_node *v = &ir->vars.at[vars[i]];
    if (v->extent && tir_is_const(ir, v->extent, 1)) tir_subst_var(ir, vars[i], v->min);
  }
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  return conjuncts_without(ir, predicate, vars, count);
}

bool tir_holds_at_end(struct tir *ir, tir_expr predicate, const tir_expr *ranges, uint32_t rank, const tir_var *vars,
                      uint32_t count, bool last) {
  for (uint32_t i = 0; i < count; i++) {
    struct tir_var_node v = ir->vars.at[vars[i]];
    bool used = !v.min || !v.extent;
    for (uint32_t d = 0; d < rank && !used; d++) used = tir_uses_var(ir, ranges[2 * d], vars[i]);
    tir_expr end = used ? TIR_NONE : v.min;
    if (end && last) end = tir_sub(ir, tir_add(ir, v.min, v.extent), tir_int(ir, v.type, 1));
    if (end) tir_subst_var(ir, vars[i], end);
  }
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  return tir_prove(ir, predicate);
}

/* The conjuncts that use a relaxed variable which the region's place does not depend on; TIR_NONE: none. */
static tir_expr conditions_beside(struct tir *ir, tir_expr predicate, const tir_expr *ranges, uint32_t rank,
                                  const tir_var *vars, uint32_t count) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) {
    tir_expr left = conditions_beside(ir, n.a, ranges, rank, vars, count);
    return tir_and(ir, left, conditions_beside(ir, n.b, ranges, rank, vars, count));
  }
  for (uint32_t i = 0; i < count; i++) {
    bool used = false;
    for (uint32_t d = 0; d < rank && !used; d++) used = tir_uses_var(ir, ranges[2 * d], vars[i]);
    if (!used && tir_uses_var(ir, predicate, vars[i])) return predicate;
  }
  return TIR_NONE;
}

bool tir_holds_somewhere(struct tir *ir, tir_expr predicate, tir_expr given, const tir_expr *ranges, uint32_t rank,
                         const tir_var *vars, uint32_t count) {
  assert(ranges || !rank);
  tir_var others[MOST_LOOPS];
  uint32_t left = 0;
  tir_expr beside = predicate ? conditions_beside(ir, predicate, ranges, rank, vars, count) : TIR_NONE;
  for (uint32_t i = 0; i < count; i++) {
    bool used = false;
    for (uint32_t d = 0; d < rank && !used; d++) used = tir_uses_var(ir, ranges[2 * d], vars[i]);
    if (used) continue;
    if (left == MOST_LOOPS) return false;
    others[left++] = vars[i];
  }
  if (beside) given = tir_and(ir, given, conjuncts_without(ir, predicate, others, left));
  return tir_is_satisfiable(ir, beside, given, others, left);
}

/* ---- Regions ---- */

void tir_join_box(struct tir *ir, struct tir_interval *box, const struct tir_interval *other, uint32_t rank) {
  uint32_t differs = 0, at = 0;
  bool inside = true;
  for (uint32_t d = 0; d < rank; d++) {
    bool covered = tir_interval_covers(ir, other[d], box[d]);
    inside = inside && covered;
    if (covered && tir_interval_covers(ir, box[d], other[d])) continue;
    differs++, at = d;
  }
  if (inside)
    memcpy(box, other, rank * sizeof *box);
  else if (differs == 1)
    box[at] = tir_interval_join(ir, box[at], other[at]);
}

static bool is_conjunct(const struct tir *ir, tir_expr given, tir_expr e) {
  if (given == e) return true;
  const struct tir_expr_node *n = given ? tir_at(ir, given) : NULL;
  return n && n->kind == TIR_AND && (is_conjunct(ir, n->a, e) || is_conjunct(ir, n->b, e));
}

bool tir_implies(struct tir *ir, tir_expr given, tir_expr predicate) {
  if (!predicate || is_conjunct(ir, given, predicate)) return true;
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) return tir_implies(ir, given, n.a) && tir_implies(ir, given, n.b);
  return tir_prove_under(ir, given, predicate);
}

bool tir_region_surely(struct tir *ir, const tir_expr *ranges, uint32_t rank, const tir_var *relaxed, uint32_t count,
                       tir_expr predicate, tir_expr given, struct tir_interval *out) {
  if (!tir_region_exact(ir, ranges, rank, relaxed, count, predicate, out)) return false;
  return (!predicate || tir_implies(ir, given, conjuncts_without(ir, predicate, relaxed, count))) &&
         tir_holds_somewhere(ir, predicate, given, ranges, rank, relaxed, count);
}

bool tir_sure_region_from(struct tir *ir, tir_block block, struct tir_region region, tir_stmt high, tir_symbol memory,
                          tir_expr given, struct tir_interval *out) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, region.buffer));
  tir_expr ranges[2 * MOST_RANK], predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  tir_var vars[MOST_LOOPS];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  uint32_t count = tir_running_loops(ir, block, high, memory, vars, MOST_LOOPS);
  if (count > MOST_LOOPS || rank > MOST_RANK) return false;
  tir_region_over_loops(ir, block, region, ranges);
  predicate = tir_limits_inside(ir, region.buffer, ranges, predicate);
  return tir_region_surely(ir, ranges, rank, vars, count, predicate, given, out);
}
