/* Where the iterations of a moved block run, by intervals of expressions: what is required of each buffer is turned
 * into intervals of the iterations by the inverse of the block's indices where these are an affine map, else a
 * dimension at a time. Source: TVM's compute_at draws the same lines. */
#include "move_domain.h"
#include "tir/analysis/analysis.h"
#include "tir/arith/affine.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(size_t count, size_t size) {
  void *at = calloc(count ? count : 1, size);
  if (!at) abort();
  return at;
}

/* ---- What is required and what is provided of a buffer ---- */

/* Joins what one required block accesses of the buffer to `out`; false: nothing. */
static bool join_required(struct tir *ir, const struct tir_move *move, tir_block required, tir_buffer buffer,
                          struct tir_interval *out) {
  struct tir_span span = tir_required_regions(ir, move, required);
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  struct tir_interval *one = allocate(rank, sizeof *one);
  tir_expr *ranges = allocate(2 * (size_t)rank, sizeof *ranges);
  struct tir_relaxed r;
  tir_open_relaxed(ir, move, required, buffer, &r);
  bool any = false;
  for (uint32_t k = span.first; k < span.first + span.count; k++) {
    if (ir->regions.at[k].buffer != buffer) continue;
    tir_region_over_loops(ir, required, ir->regions.at[k], ranges);
    tir_relax_region(ir, ranges, rank, r.vars, r.count, one);
    for (uint32_t d = 0; d < rank; d++) out[d] = tir_interval_union(ir, out[d], one[d]);
    any = true;
  }
  tir_close_relaxed(&r);
  free(ranges);
  free(one);
  return any;
}

bool tir_move_find_required(struct tir *ir, const struct tir_move *move, tir_buffer buffer, struct tir_interval *out) {
  assert(tir_is_buffer(ir, buffer));
  bool any = false;
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) out[d] = tir_nothing();
  for (uint32_t i = 0; i < move->required_count; i++) any |= join_required(ir, move, move->required[i], buffer, out);
  return any;
}

/* What one instance of the block provides, in terms of its iterations. */
static void find_provided(struct tir *ir, const struct tir_move *move, tir_buffer buffer, struct tir_interval *out) {
  struct tir_span span = tir_provided_regions(ir, move);
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) out[d] = tir_nothing();
  for (uint32_t k = span.first; k < span.first + span.count; k++) {
    if (ir->regions.at[k].buffer != buffer) continue;
    for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) {
      tir_expr min = ir->operands.at[ir->regions.at[k].ranges + 2 * d];
      tir_expr extent = ir->operands.at[ir->regions.at[k].ranges + 2 * d + 1];
      out[d] = tir_interval_union(ir, out[d], tir_interval_of(ir, min, extent));
    }
  }
}

/* ---- From buffers to iterations ---- */

/* Under construction, an iteration: all that is required of it, and as far as the buffers reach. */
struct extent_info {
  struct tir_interval domain, bound;
};

struct solver {
  struct tir *ir;
  struct tir_move *move;
  tir_buffer buffer;
  uint32_t rank;
  struct tir_interval *required, *provided; /* rank each */
  struct extent_info *iters;
};

static void join(struct tir *ir, struct extent_info *to, struct tir_interval domain, struct tir_interval bound) {
  to->domain = tir_interval_union(ir, to->domain, domain);
  to->bound = tir_interval_union(ir, to->bound, bound);
}

/* A variable that runs through the interval. */
static tir_expr stand_in(struct tir *ir, struct tir_interval i) {
  tir_var v = tir_new_var(ir, TIR_VAR_LOOP, TIR_NONE, tir_type_of(ir, i.min), i.min, tir_interval_extent(ir, i));
  return tir_var_expr(ir, v);
}

static tir_var var_of(const struct tir *ir, tir_expr e) { return tir_at(ir, e)->ref; }

static struct tir_interval whole_dimension(struct tir *ir, tir_buffer buffer, uint32_t dimension, tir_type type) {
  tir_expr size = ir->operands.at[tir_buffer_at(ir, buffer)->shape + dimension];
  return tir_interval_of(ir, tir_int(ir, type, 0), tir_cast(ir, type, size));
}

/* Indices that fall as iterations rise are turned about. */
static bool falls(struct tir *ir, tir_expr index) {
  struct tir_linear l = tir_linear_of(ir, index);
  for (uint32_t i = 0; i < l.count; i++)
    if (ir->terms.at[l.first + i].coefficient > 0) return false;
  return l.count > 0;
}

static struct tir_interval negate(struct tir *ir, struct tir_interval i) {
  tir_expr zero = tir_int(ir, tir_type_of(ir, i.min), 0);
  return (struct tir_interval){tir_sub(ir, zero, i.max), tir_sub(ir, zero, i.min), false};
}

/* By the inverse of the map from iterations to the element provided: stand-ins for its indices run through what is
 * required, and through the whole buffer. `values` and `outputs` have room for both. */
static bool invert(struct solver *s, tir_expr *outputs, tir_expr *indices, tir_var *iters, tir_expr *values) {
  struct tir *ir = s->ir;
  uint32_t count = s->move->iter_count;
  for (uint32_t i = 0; i < count; i++) iters[i] = tir_iters(ir, s->move->block)[i].var;
  for (uint32_t d = 0; d < s->rank; d++) {
    if (!tir_is_point(ir, s->provided[d]) || s->required[d].empty || !s->required[d].min || !s->required[d].max)
      return false;
    struct tir_interval index = tir_point(s->provided[d].min), required = s->required[d];
    struct tir_interval whole = whole_dimension(ir, s->buffer, d, tir_type_of(ir, index.min));
    if (falls(ir, index.min)) {
      index = negate(ir, index);
      required = negate(ir, required);
      whole = negate(ir, whole);
    }
    indices[d] = index.min;
    outputs[d] = stand_in(ir, required);
    outputs[s->rank + d] = stand_in(ir, whole);
  }
  return tir_inverse_affine_map(ir, indices, s->rank, iters, count, TIR_NONE, outputs, 2, values);
}

static bool solve_affine(struct solver *s) {
  uint32_t count = s->move->iter_count, rank = s->rank;
  tir_expr *memory = allocate(4 * (size_t)rank + 3 * (size_t)count, sizeof *memory);
  tir_expr *outputs = memory, *indices = memory + 2 * rank, *iters = indices + rank, *values = iters + count;
  bool invertible = invert(s, outputs, indices, iters, values);
  for (uint32_t d = 0; d < 2 * rank && invertible; d++) outputs[d] = var_of(s->ir, outputs[d]);
  for (uint32_t i = 0; i < count && invertible; i++) {
    if (!values[i]) continue;
    struct tir_interval domain = tir_relax(s->ir, values[i], outputs, rank);
    join(s->ir, &s->iters[i], domain, tir_relax(s->ir, values[count + i], outputs + rank, rank));
  }
  free(memory);
  return invertible;
}

/* ---- One dimension at a time ---- */

struct equation { /* index in required: the iteration that solves it lies in info */
  tir_expr index;
  bool point;
  struct tir_interval required;
  tir_expr top; /* the last element of the dimension */
  tir_var var;
  struct extent_info info;
};

/* What is required may be of another type than the block's iterations. */
static void as_wider(struct tir *ir, tir_expr *a, tir_expr *b) {
  tir_type x = tir_type_of(ir, *a), y = tir_type_of(ir, *b), wide = tir_type_bits(x) >= tir_type_bits(y) ? x : y;
  if (x != wide) *a = tir_cast(ir, wide, *a);
  if (y != wide) *b = tir_cast(ir, wide, *b);
}

static tir_expr scale(struct tir *ir, enum tir_kind kind, tir_expr e, tir_expr by) {
  if (!e) return TIR_NONE;
  as_wider(ir, &e, &by);
  return tir_make(ir, kind, e, by);
}

/* The last of the values that are `e` when divided by `by`. */
static tir_expr last_of(struct tir *ir, tir_expr e, tir_expr by) {
  if (!e) return TIR_NONE;
  as_wider(ir, &e, &by);
  return tir_add(ir, tir_mul(ir, e, by), tir_sub(ir, by, tir_int(ir, tir_type_of(ir, by), 1)));
}

static tir_expr zero_like(struct tir *ir, tir_expr e) { return tir_int(ir, tir_type_of(ir, e), 0); }

static bool is_var(const struct tir *ir, tir_expr e) { return tir_at(ir, e)->kind == TIR_VAR; }

/* index = v * by */
static bool solve_product(struct tir *ir, struct equation *q) {
  const struct tir_expr_node *n = tir_at(ir, q->index);
  if (n->kind != TIR_MUL || !(is_var(ir, n->a) || is_var(ir, n->b))) return false;
  tir_expr v = is_var(ir, n->a) ? n->a : n->b, by = v == n->a ? n->b : n->a;
  if (tir_at(ir, by)->lo < 1) return false;
  q->var = var_of(ir, v);
  q->info.domain.min = scale(ir, TIR_FLOORDIV, q->required.min, by);
  q->info.domain.max = scale(ir, TIR_FLOORDIV, q->required.max, by);
  q->info.bound = (struct tir_interval){zero_like(ir, by), tir_floordiv(ir, q->top, by), false};
  return true;
}

/* The variable is found below quotients; a remainder says nothing of it. */
static bool solve(struct tir *ir, struct equation *q) {
  q->info = (struct extent_info){{TIR_NONE, TIR_NONE, false}, {TIR_NONE, TIR_NONE, false}};
  if (solve_product(ir, q)) return true;
  if (!q->point) return false;
  struct tir_expr_node n = *tir_at(ir, q->index);
  if (n.kind == TIR_VAR) {
    q->var = n.ref;
    q->info.domain = q->required;
    q->info.bound = (struct tir_interval){zero_like(ir, q->index), q->top, false};
    return true;
  }
  if (n.kind == TIR_FLOORMOD && is_var(ir, n.a)) {
    q->var = var_of(ir, n.a);
    q->info = (struct extent_info){tir_nothing(), tir_nothing()};
    return true;
  }
  if (n.kind != TIR_FLOORDIV || tir_at(ir, n.b)->lo < 1) return false;
  q->required =
      (struct tir_interval){scale(ir, TIR_MUL, q->required.min, n.b), last_of(ir, q->required.max, n.b), false};
  q->index = n.a;
  if (!is_var(ir, n.a)) return solve(ir, q);
  q->var = var_of(ir, n.a);
  q->info.domain = q->required;
  q->info.bound = (struct tir_interval){zero_like(ir, n.a), last_of(ir, q->top, n.b), false};
  return true;
}

static bool same_interval(struct tir *ir, struct tir_interval a, struct tir_interval b) {
  return a.min && a.max && b.min && b.max && tir_prove_equal(ir, a.min, b.min) && tir_prove_equal(ir, a.max, b.max);
}

static bool solve_dimension(struct solver *s, uint32_t dimension) {
  struct tir *ir = s->ir;
  struct tir_interval provided = s->provided[dimension], required = s->required[dimension];
  if (required.empty || !provided.min) return false;
  bool point = tir_is_point(ir, provided);
  if (point && tir_is_int(ir, provided.min)) return same_interval(ir, provided, required);
  tir_expr top = whole_dimension(ir, s->buffer, dimension, tir_type_of(ir, provided.min)).max;
  struct equation q = {.index = provided.min, .point = point, .required = required, .top = top};
  if (!solve(ir, &q)) return false;
  int iter = tir_iter_of(ir, s->move->block, q.var);
  if (iter < 0) return same_interval(ir, provided, required);
  join(ir, &s->iters[iter], q.info.domain, q.info.bound);
  return true;
}

static bool solve_buffer(struct solver *s, ms_error *err) {
  if (!tir_move_find_required(s->ir, s->move, s->buffer, s->required)) return true;
  find_provided(s->ir, s->move, s->buffer, s->provided);
  if (solve_affine(s)) return true;
  for (uint32_t d = 0; d < s->rank; d++)
    if (!solve_dimension(s, d))
      return tir_refuse(s->ir, err, MS_MOVE_REGION, s->move->block,
                        "dimension %u of `%s` does not determine which iterations of block `%s` are to run here", d,
                        tir_buffer_name(s->ir, s->buffer), tir_block_name(s->ir, s->move->block));
  return true;
}

/* ---- Settling ---- */

/* What is required, inside the iteration's own domain and the buffers' bounds: as a range where that is known to be
 * one, else as a range under a predicate. */
static void intersect_bound(struct tir *ir, struct extent_info *info) {
  struct tir_interval both = tir_interval_intersect(ir, info->domain, info->bound);
  if (both.empty) return;
  bool constant = both.min && both.max && tir_is_int(ir, both.min) && tir_is_int(ir, both.max);
  if (same_interval(ir, both, info->domain)) {
    info->bound = tir_nothing();
  } else if (constant || same_interval(ir, both, info->bound)) {
    info->domain = both;
    info->bound = tir_nothing();
  }
}

static tir_type wider(tir_type a, tir_type b) { return tir_type_bits(a) >= tir_type_bits(b) ? a : b; }

static bool settle(struct tir *ir, struct extent_info *info, tir_block block, uint32_t iter,
                   struct tir_move_domain *d) {
  tir_expr min, extent;
  tir_needed_domain(ir, block, iter, &min, &extent);
  struct tir_interval own = tir_interval_of(ir, min, extent);
  info->bound = info->bound.empty ? own : tir_interval_intersect(ir, info->bound, own);
  if (info->domain.empty) {
    info->domain = info->bound;
    info->bound = tir_nothing();
  } else {
    intersect_bound(ir, info);
  }
  if (info->domain.empty || tir_uses_let(ir, info->domain.min) || tir_uses_let(ir, info->domain.max)) return false;
  if (!info->domain.min || !info->domain.max) info->domain = own;
  *d = (struct tir_move_domain){.min = info->domain.min, .extent = tir_interval_extent(ir, info->domain)};
  d->type = wider(tir_type_of(ir, d->min), tir_type_of(ir, d->extent));
  if (info->bound.empty) return true;
  d->at_least = info->bound.min;
  if (info->bound.max) d->below = tir_add(ir, info->bound.max, tir_int(ir, tir_type_of(ir, info->bound.max), 1));
  return true;
}

/* ---- Cover ---- */

/* What the moved block reads of the buffer, its iterations running through `domains`, is inside what is produced. */
static bool reads_inside(struct solver *s, const tir_expr *stand_ins) {
  struct tir *ir = s->ir;
  struct tir_span iters = tir_block_at(ir, s->move->block)->iters;
  tir_var *vars = allocate(iters.count, sizeof *vars);
  tir_expr *ends = allocate(2 * (size_t)s->rank, sizeof *ends);
  for (uint32_t d = 0; d < s->rank; d++) ends[2 * d] = s->provided[d].min, ends[2 * d + 1] = s->provided[d].max;
  for (uint32_t i = 0; i < iters.count; i++) {
    vars[i] = var_of(ir, stand_ins[i]);
    tir_subst_var(ir, ir->iters.at[iters.first + i].var, stand_ins[i]);
  }
  for (uint32_t i = 0; i < 2 * s->rank; i++) ends[i] = tir_subst(ir, ends[i]);
  tir_subst_clear(ir);
  struct tir_interval *read = allocate(s->rank, sizeof *read);
  for (uint32_t d = 0; d < s->rank; d++) {
    read[d] = (struct tir_interval){tir_relax(ir, ends[2 * d], vars, iters.count).min,
                                    tir_relax(ir, ends[2 * d + 1], vars, iters.count).max, false};
  }
  bool inside = tir_region_covers(ir, s->buffer, s->required, read);
  free(read);
  free(ends);
  free(vars);
  return inside;
}

/* The domains as they are, then cut to where the predicate holds. */
static bool is_covered(struct solver *s) {
  struct tir *ir = s->ir;
  tir_expr *stand_ins = allocate(s->move->iter_count, sizeof *stand_ins);
  bool covered = false;
  for (int cut = 0; cut < 2 && !covered; cut++) {
    for (uint32_t i = 0; i < s->move->iter_count; i++) {
      struct tir_interval runs = s->iters[i].domain;
      if (cut && !s->iters[i].bound.empty) {
        struct tir_interval both = tir_interval_intersect(ir, runs, s->iters[i].bound);
        if (!both.empty) runs = both;
      }
      stand_ins[i] = stand_in(ir, runs);
    }
    covered = reads_inside(s, stand_ins);
  }
  free(stand_ins);
  return covered;
}

/* No instance reads past the buffer: none is asked for by what producers write there. */
static bool reads_buffer_only(struct solver *s) {
  struct tir *ir = s->ir;
  struct tir_span iters = tir_block_at(ir, s->move->block)->iters;
  tir_var *vars = allocate(iters.count, sizeof *vars);
  bool inside = true;
  for (uint32_t i = 0; i < iters.count; i++) vars[i] = ir->iters.at[iters.first + i].var;
  for (uint32_t d = 0; d < s->rank && inside; d++) {
    struct tir_interval read = {tir_relax(ir, s->provided[d].min, vars, iters.count).min,
                                tir_relax(ir, s->provided[d].max, vars, iters.count).max, false};
    struct tir_interval whole = whole_dimension(ir, s->buffer, d, tir_type_of(ir, s->provided[d].min));
    inside = tir_interval_covers(ir, whole, read);
  }
  free(vars);
  return inside;
}

static bool check_cover(struct solver *s, ms_error *err) {
  if (!tir_move_find_required(s->ir, s->move, s->buffer, s->required)) return true;
  find_provided(s->ir, s->move, s->buffer, s->provided);
  if (!reads_buffer_only(s))
    return tir_refuse(s->ir, err, MS_MOVE_LEFT_OUT, s->move->block,
                      "block `%s` has instances that read outside of `%s`", tir_block_name(s->ir, s->move->block),
                      tir_buffer_name(s->ir, s->buffer));
  if (is_covered(s)) return true;
  return tir_refuse(s->ir, err, MS_MOVE_COVER, s->move->loop,
                    "under this loop block `%s` reads more of `%s` than is there",
                    tir_block_name(s->ir, s->move->block), tir_buffer_name(s->ir, s->buffer));
}

/* ---- All of it ---- */

static bool is_first_of_buffer(const struct tir *ir, struct tir_span span, uint32_t k) {
  for (uint32_t i = span.first; i < k; i++)
    if (ir->regions.at[i].buffer == ir->regions.at[k].buffer) return false;
  return true;
}

static bool for_each_buffer(struct solver *s, bool (*visit)(struct solver *, ms_error *), ms_error *err) {
  struct tir_span provided = tir_provided_regions(s->ir, s->move);
  for (uint32_t k = provided.first; k < provided.first + provided.count; k++) {
    if (!is_first_of_buffer(s->ir, provided, k)) continue;
    s->buffer = s->ir->regions.at[k].buffer;
    s->rank = tir_buffer_at(s->ir, s->buffer)->rank;
    s->required = allocate(2 * (size_t)s->rank, sizeof *s->required);
    s->provided = s->required + s->rank;
    bool accepted = visit(s, err);
    free(s->required);
    if (!accepted) return false;
  }
  return true;
}

static bool find_intervals(struct solver *s, ms_error *err) {
  for (uint32_t i = 0; i < s->move->iter_count; i++) s->iters[i] = (struct extent_info){tir_nothing(), tir_nothing()};
  if (!for_each_buffer(s, solve_buffer, err)) return false;
  for (uint32_t i = 0; i < s->move->iter_count; i++) {
    if (!settle(s->ir, &s->iters[i], s->move->block, i, &s->move->domains[i]))
      return tir_refuse(s->ir, err, MS_MOVE_REGION, s->move->block, "iteration %u of block `%s` has no range here", i,
                        tir_block_name(s->ir, s->move->block));
  }
  return s->move->to_consumers || for_each_buffer(s, check_cover, err);
}

bool tir_move_find_domains(struct tir *ir, struct tir_move *move, ms_error *err) {
  if (tir_move_find_linear(ir, move)) return true;
  struct solver s = {.ir = ir, .move = move, .iters = allocate(move->iter_count, sizeof *s.iters)};
  bool accepted = find_intervals(&s, err);
  free(s.iters);
  return accepted;
}
