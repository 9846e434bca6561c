/* What is kept of the predicate of a moved block.
 *
 * Most predicates only keep the iterations inside their domains, where a split made too many: the new nest has its own.
 * One that leaves out instances of the domain says something of the block, and goes with it. */
#include "move_block.h"

#include <stdlib.h>

bool tir_is_domain_end(struct tir *ir, tir_block block, tir_expr conjunct) {
  assert(tir_is(ir, block, TIR_BLOCK));
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    struct tir_var_node v = ir->vars.at[iter.var];
    if (tir_type_of(ir, iter.binding) != tir_type_of(ir, v.extent) || !tir_is_const(ir, v.min, 0)) continue;
    if (tir_make(ir, TIR_LT, iter.binding, v.extent) == conjunct) return true;
  }
  return false;
}

static bool all_domain_ends(struct tir *ir, tir_block block, tir_expr predicate) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) return all_domain_ends(ir, block, n.a) && all_domain_ends(ir, block, n.b);
  return tir_is_domain_end(ir, block, predicate) || tir_is_domain_end(ir, block, tir_simplify(ir, predicate));
}

/* Under the predicate the bindings still take every value of the domains. */
static bool covers_domains(struct tir *ir, tir_block block) {
  uint32_t count = tir_block_at(ir, block)->iters.count;
  struct tir_interval *values = malloc((count + 1) * sizeof *values);
  if (!values) abort();
  bool covers = tir_exact_iterations(ir, block, TIR_NONE, values);
  for (uint32_t i = 0; i < count && covers; i++) {
    struct tir_var_node v = *tir_var_at(ir, tir_iters(ir, block)[i].var);
    covers = tir_interval_covers(ir, values[i], tir_interval_of(ir, v.min, v.extent));
  }
  free(values);
  return covers;
}

/* A limit of what is bound to an iteration is one of the iteration. */
static tir_expr limit_iterations(struct tir *ir, tir_block block, tir_expr predicate) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) {
    tir_expr a = limit_iterations(ir, block, n.a);
    return tir_make(ir, TIR_AND, a, limit_iterations(ir, block, n.b));
  }
  if (n.kind < TIR_LT || n.kind > TIR_GE) return predicate;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    tir_expr v = tir_var_expr(ir, iter.var);
    if (tir_type_of(ir, v) != tir_type_of(ir, iter.binding)) continue;
    if (n.a == iter.binding) return tir_binary(ir, (enum tir_kind)n.kind, v, n.b);
    if (n.b == iter.binding) return tir_binary(ir, (enum tir_kind)n.kind, n.a, v);
  }
  return predicate;
}

/* Rewrites the predicate from loops to iterations: what is bound to these, and loops that are bound alone. */
static tir_expr in_iterations(struct tir *ir, tir_block block, tir_expr predicate) {
  predicate = limit_iterations(ir, block, tir_simplify(ir, predicate));
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    const struct tir_expr_node *n = tir_at(ir, iter.binding);
    if (n->kind == TIR_VAR && ir->vars.at[n->ref].kind == TIR_VAR_LOOP)
      tir_subst_var(ir, n->ref, tir_var_expr(ir, iter.var));
  }
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  return predicate;
}

static bool uses_loops(const struct tir *ir, tir_block block, tir_expr e) {
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; !tir_is(ir, s, TIR_BLOCK); s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_uses_var(ir, e, tir_as(ir, s, TIR_LOOP)->loop.var)) return true;
  return false;
}

/* The conjuncts that use no loop of the scope: loops around it decide whether the block runs at all. */
static tir_expr conditions_around(struct tir *ir, tir_block block, tir_expr predicate) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) {
    tir_expr a = conditions_around(ir, block, n.a);
    return tir_and(ir, a, conditions_around(ir, block, n.b));
  }
  return uses_loops(ir, block, predicate) ? TIR_NONE : predicate;
}

bool tir_move_keep_predicate(struct tir *ir, struct tir_move *move, ms_error *err) {
  tir_expr predicate = tir_as(ir, move->block, TIR_BLOCK)->block.predicate;
  move->kept = predicate ? conditions_around(ir, move->block, predicate) : TIR_NONE;
  if (!predicate || all_domain_ends(ir, move->block, predicate) || covers_domains(ir, move->block)) return true;
  move->kept = in_iterations(ir, move->block, predicate);
  if (!uses_loops(ir, move->block, move->kept)) return true;
  return tir_refuse(ir, err, MS_MOVE_PREDICATE, move->block,
                    "the predicate of block `%s` says something of its loops that its iterations cannot express",
                    tir_block_name(ir, move->block));
}
