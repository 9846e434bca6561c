/* What conditions of a block leave of its iterations: those of a padding, which name few iteration variables, are tried
 * at each value of these. */
#include "analytical.h"

enum { MOST_MOVED = 2, MOST_TRIED = 1 << 16 };

/* Values of the iteration variables that a condition depends on. */
struct point {
  const struct tir *ir;
  tir_block block;
  uint32_t iters[MOST_MOVED], count;
  int64_t lows[MOST_MOVED], values[MOST_MOVED]; /* counted from the least ones, of the domains */
};

static bool value_of_variable(const struct point *p, uint32_t var, int64_t *out) {
  assert(p->count <= MOST_MOVED);
  for (uint32_t i = 0; i < p->count; i++)
    if (tir_iters(p->ir, p->block)[p->iters[i]].var == var) return *out = p->lows[i] + p->values[i], true;
  return false;
}

static bool fits(int64_t a, int64_t b) { return a >= INT32_MIN && a <= INT32_MAX && b >= INT32_MIN && b <= INT32_MAX; }

/* The value of an index or a comparison at the point; false: it has something else in it. */
static bool evaluate(const struct point *p, tir_expr e, int64_t *out) {
  const struct tir_expr_node *n = tir_at(p->ir, e);
  if (n->kind == TIR_INT_IMM) return *out = n->imm, true;
  if (n->kind == TIR_VAR) return value_of_variable(p, n->ref, out);
  bool binary = n->kind == TIR_ADD || n->kind == TIR_SUB || n->kind == TIR_MUL || n->kind == TIR_FLOORDIV ||
                n->kind == TIR_FLOORMOD || (n->kind >= TIR_LT && n->kind <= TIR_GE);
  int64_t a, b;
  if (!binary || !evaluate(p, n->a, &a) || !evaluate(p, n->b, &b) || !fits(a, b)) return false;
  bool divides = n->kind == TIR_FLOORDIV || n->kind == TIR_FLOORMOD;
  if (divides && b <= 0) return false;
  int64_t remainder = divides ? (a % b + b) % b : 0;
  switch (n->kind) {
  case TIR_ADD: *out = a + b; break;
  case TIR_SUB: *out = a - b; break;
  case TIR_MUL: *out = a * b; break;
  case TIR_FLOORDIV: *out = (a - remainder) / b; break;
  case TIR_FLOORMOD: *out = remainder; break;
  case TIR_LT: *out = a < b; break;
  case TIR_LE: *out = a <= b; break;
  case TIR_GT: *out = a > b; break;
  default: *out = a >= b;
  }
  return true;
}

/* The part of the iterations in which a comparison fails; 0 where that is not known. */
static double part_outside(const struct tir *ir, tir_block block, const struct model_nest *nest, tir_expr condition) {
  const struct tir_expr_node *n = tir_at(ir, condition);
  struct point p = {.ir = ir, .block = block};
  if (n->kind < TIR_LT || n->kind > TIR_GE) return 0;
  for (uint32_t k = 0; k < nest->iter_count; k++) {
    if (!tir_uses_var(ir, condition, tir_iters(ir, block)[k].var)) continue;
    tir_expr low = ir->vars.at[tir_iters(ir, block)[k].var].min;
    if (p.count == MOST_MOVED || !low || !tir_is_int(ir, low)) return 0;
    p.lows[p.count] = tir_at(ir, low)->imm;
    p.iters[p.count++] = k;
  }
  int64_t first = p.count > 0 ? nest->iters[p.iters[0]].extent : 1;
  int64_t second = p.count > 1 ? nest->iters[p.iters[1]].extent : 1, fails = 0;
  if (first < 1 || second < 1 || first > MOST_TRIED / second) return 0;
  for (p.values[0] = 0; p.values[0] < first; p.values[0]++)
    for (p.values[1] = 0; p.values[1] < second; p.values[1]++) {
      int64_t holds;
      if (!evaluate(&p, condition, &holds)) return 0;
      fails += !holds;
    }
  return (double)fails / ((double)first * (double)second);
}

double model_part_inside(const struct tir *ir, tir_block block, const struct model_nest *nest, tir_expr condition) {
  const struct tir_expr_node *n = tir_at(ir, condition);
  if (n->kind == TIR_AND) return model_part_inside(ir, block, nest, n->a) * model_part_inside(ir, block, nest, n->b);
  return 1 - part_outside(ir, block, nest, condition);
}
