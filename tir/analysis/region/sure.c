/* What is surely covered: where conditions leave out a part of a region, or all of it. */
#include "tir/analysis/analysis.h"

#include <string.h>

enum { MOST_LOOPS = 64, MOST_RANK = 16 };

/* ---- Conjuncts ---- */

/* The conjuncts that use one of the variables, or those that use none (`with` false); TIR_NONE: there are none. */
static tir_expr conjuncts(struct tir *ir, tir_expr predicate, const tir_var *vars, uint32_t count, bool with) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) {
    tir_expr left = conjuncts(ir, n.a, vars, count, with);
    return tir_and(ir, left, conjuncts(ir, n.b, vars, count, with));
  }
  return tir_uses_any_var(ir, predicate, vars, count) == with ? predicate : TIR_NONE;
}

/* Whether a region's place depends on the variable. */
static bool moves_place(const struct tir *ir, const tir_expr *ranges, uint32_t rank, tir_var v) {
  for (uint32_t d = 0; d < rank; d++)
    if (tir_uses_var(ir, ranges[2 * d], v)) return true;
  return false;
}

tir_expr tir_invariant_conditions(struct tir *ir, tir_expr predicate, const tir_var *vars, uint32_t count) {
  if (!predicate) return TIR_NONE;
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_var_node *v = &ir->vars.at[vars[i]];
    if (v->extent && tir_is_const(ir, v->extent, 1)) tir_subst_var(ir, vars[i], v->min);
  }
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  return conjuncts(ir, predicate, vars, count, false);
}

bool tir_holds_at_end(struct tir *ir, tir_expr predicate, const tir_expr *ranges, uint32_t rank, const tir_var *vars,
                      uint32_t count, bool last) {
  for (uint32_t i = 0; i < count; i++) {
    struct tir_var_node v = ir->vars.at[vars[i]];
    bool used = !v.min || !v.extent || moves_place(ir, ranges, rank, vars[i]);
    tir_expr end = used ? TIR_NONE : v.min;
    if (end && last) end = tir_sub(ir, tir_add(ir, v.min, v.extent), tir_int(ir, v.type, 1));
    if (end) tir_subst_var(ir, vars[i], end);
  }
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  return tir_prove(ir, predicate);
}

bool tir_holds_somewhere(struct tir *ir, tir_expr predicate, tir_expr given, const tir_expr *ranges, uint32_t rank,
                         const tir_var *vars, uint32_t count) {
  assert(ranges || !rank);
  tir_var others[MOST_LOOPS];
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (moves_place(ir, ranges, rank, vars[i])) continue;
    if (left == MOST_LOOPS) return false;
    others[left++] = vars[i];
  }
  tir_expr beside = predicate ? conjuncts(ir, predicate, others, left, true) : TIR_NONE;
  if (beside) given = tir_and(ir, given, conjuncts(ir, predicate, others, left, false));
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
  return (!predicate || tir_implies(ir, given, conjuncts(ir, predicate, relaxed, count, false))) &&
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
