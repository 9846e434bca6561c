/* Dense and strided: whether what a block accesses while loops run leaves out elements between the first and the
 * last. */
#include "tir/analysis/analysis.h"

enum { MOST_STEPS = 32, MOST_RANK = 16 };

/* The loops that run. */
struct running {
  const tir_var *vars;
  uint32_t count;
  uint64_t mask;
};

static bool runs(const struct running *r, tir_var v) {
  if (!(r->mask >> (v & 63) & 1)) return false;
  for (uint32_t i = 0; i < r->count; i++)
    if (r->vars[i] == v) return true;
  return false;
}

/* The sum of terms, of which the relaxed run, plus [0, width): by which steps it is covered. */
struct steps {
  uint32_t count;
  struct {
    int64_t step, times;
  } at[MOST_STEPS]; /* ascending by step */
};

static bool add_step(struct steps *s, int64_t step, int64_t times) {
  if (step < 0) step = -step;
  if (times <= 1 || step == 0) return true;
  if (s->count == MOST_STEPS || step < 0) return false;
  uint32_t i = s->count++;
  for (; i > 0 && s->at[i - 1].step > step; i--) s->at[i] = s->at[i - 1];
  s->at[i].step = step;
  s->at[i].times = times;
  return true;
}

/* Adds the terms of `e`, times `scale`; false: it is not known by which steps it runs. */
static bool add_steps(struct tir *ir, const struct running *r, tir_block block, tir_expr e, int64_t scale,
                      struct steps *s) {
  struct tir_linear l = tir_linear_of(ir, e);
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    const struct tir_expr_node *n = tir_at(ir, t.atom);
    int iter = n->kind == TIR_VAR && block ? tir_iter_of(ir, block, n->ref) : -1;
    if (__builtin_mul_overflow(t.coefficient, scale, &t.coefficient)) return false;
    if (iter >= 0) {
      if (!add_steps(ir, r, TIR_NONE, tir_iters(ir, block)[iter].binding, t.coefficient, s)) return false;
      continue;
    }
    if (n->kind != TIR_VAR) {
      if (block ? n->flags & TIR_HAS_VAR : tir_uses_masked_var(ir, t.atom, r->mask, r->vars, r->count)) return false;
      continue;
    }
    if (!runs(r, n->ref)) continue;
    tir_expr extent = ir->vars.at[n->ref].extent;
    if (!extent || !tir_is_int(ir, extent) || !add_step(s, t.coefficient, tir_at(ir, extent)->imm)) return false;
  }
  return true;
}

enum tir_density tir_density_of(struct tir *ir, tir_block block, tir_expr min, tir_expr extent, const tir_var *vars,
                                uint32_t count) {
  MS_CHECK(vars || !count);
  struct running r = {vars, count, 0};
  struct steps s;
  s.count = 0;
  for (uint32_t i = 0; i < count; i++) r.mask |= 1ull << (vars[i] & 63);
  if (!tir_is_int(ir, extent) || !add_steps(ir, &r, block, min, 1, &s)) return TIR_DENSITY_UNKNOWN;
  int64_t reach = tir_at(ir, extent)->imm, more;
  for (uint32_t i = 0; i < s.count; i++) {
    if (s.at[i].step > reach) return TIR_STRIDED;
    if (__builtin_mul_overflow(s.at[i].step, s.at[i].times - 1, &more) || __builtin_add_overflow(reach, more, &reach))
      return TIR_DENSITY_UNKNOWN;
  }
  return TIR_DENSE;
}

bool tir_covers_box(struct tir *ir, tir_block block, struct tir_region region, const tir_var *vars, uint32_t count) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  tir_expr ranges[2 * MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  if (rank > MOST_RANK) return true;
  tir_region_over_loops(ir, block, region, ranges);
  return tir_region_is_box(ir, ranges, rank, vars, count, tir_as(ir, block, TIR_BLOCK)->block.predicate, NULL);
}

bool tir_is_strided(struct tir *ir, tir_block block, struct tir_region region, const tir_var *vars, uint32_t count) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  bool known = true;
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++) {
    enum tir_density found = tir_density_of(ir, block, ir->operands.at[region.ranges + 2 * d],
                                            ir->operands.at[region.ranges + 2 * d + 1], vars, count);
    if (found == TIR_STRIDED) return true;
    known &= found == TIR_DENSE;
  }
  return !known && !tir_covers_box(ir, block, region, vars, count);
}

/* That some of min + [0, extent) is inside the buffer, in each dimension. */
static tir_expr reaches_inside(struct tir *ir, tir_buffer buffer, const tir_expr *ranges) {
  tir_expr all = TIR_NONE;
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) {
    tir_type type = tir_type_of(ir, ranges[2 * d]);
    tir_expr end = tir_add(ir, ranges[2 * d], tir_cast(ir, type, ranges[2 * d + 1]));
    tir_expr shape = tir_cast(ir, type, ir->operands.at[tir_buffer_at(ir, buffer)->shape + d]);
    all = tir_and(ir, all, tir_make(ir, TIR_LT, ranges[2 * d], shape));
    all = tir_and(ir, all, tir_make(ir, TIR_GT, end, tir_int(ir, type, 0)));
  }
  return all;
}

static tir_expr limits_under(struct tir *ir, tir_expr given, tir_expr predicate) {
  struct tir_expr_node n = *tir_at(ir, predicate);
  if (n.kind == TIR_AND) return tir_and(ir, limits_under(ir, given, n.a), limits_under(ir, given, n.b));
  return tir_prove_under(ir, given, predicate) ? TIR_NONE : predicate;
}

tir_expr tir_limits_inside(struct tir *ir, tir_buffer buffer, const tir_expr *ranges, tir_expr predicate) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  return predicate ? limits_under(ir, reaches_inside(ir, buffer, ranges), predicate) : TIR_NONE;
}
