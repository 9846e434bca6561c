/* Where the iterations of a moved block run, on numbers alone: the block provides one element an instance, indexed by
 * plain iterations, and the blocks that require it access sums of theirs, bound to sums of loops. Nearly all that
 * schedules move is of this kind. move_domain.c holds the rest; both give the same where both apply. */
#include "move_domain.h"

#include <string.h>

enum { MOST_RANK = 16 };

/* A sum of the move's terms, which stay put, plus lo up to hi. */
struct form {
  uint32_t first, count;
  int64_t lo, hi;
  uint64_t whole, digits; /* loops that run in it, and those of which digits do: bits of their places in the list */
};

static bool add_scaled(int64_t *to, int64_t a, int64_t b) {
  int64_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*to, product, to);
}

/* Terms of the form under construction are the last of the move's, ascending by atom. */
static bool add_fixed(struct tir_move *move, struct form *f, int64_t coefficient, tir_expr atom) {
  assert(f->first + f->count == move->term_count && move->term_count <= TIR_MOVE_TERMS);
  struct tir_term *terms = move->terms + f->first;
  uint32_t i = f->count;
  while (i > 0 && terms[i - 1].atom > atom) i--;
  if (i > 0 && terms[i - 1].atom == atom) {
    if (__builtin_add_overflow(terms[i - 1].coefficient, coefficient, &terms[i - 1].coefficient)) return false;
    if (terms[i - 1].coefficient != 0) return true;
    memmove(terms + i - 1, terms + i, (f->count - i) * sizeof *terms);
    f->count--, move->term_count--;
    return true;
  }
  if (move->term_count == TIR_MOVE_TERMS) return false;
  memmove(terms + i + 1, terms + i, (f->count - i) * sizeof *terms);
  terms[i] = (struct tir_term){coefficient, atom};
  f->count++, move->term_count++;
  return true;
}

/* Between which numbers a digit of a loop that runs lies: quotients and remainders of it by constants. */
static bool find_digit(const struct tir *ir, const struct tir_relaxed *r, tir_expr e, struct tir_bounds *out) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_VAR) {
    const struct tir_var_node *v = &ir->vars.at[n->ref];
    *out = (struct tir_bounds){n->lo, n->hi};
    return tir_is_relaxed(r, n->ref) && tir_is_int(ir, v->min) && tir_is_int(ir, v->extent);
  }
  if ((n->kind != TIR_FLOORDIV && n->kind != TIR_FLOORMOD) || !tir_is_int(ir, n->b)) return false;
  int64_t by = tir_at(ir, n->b)->imm;
  if (by <= 0 || !find_digit(ir, r, n->a, out)) return false;
  struct tir_bounds quotient = {tir_floor_div(out->lo, by), tir_floor_div(out->hi, by)};
  if (n->kind == TIR_FLOORDIV)
    *out = quotient;
  else if (quotient.lo == quotient.hi)
    *out = (struct tir_bounds){tir_floor_mod(out->lo, by), tir_floor_mod(out->hi, by)};
  else
    *out = (struct tir_bounds){0, by - 1};
  return true;
}

/* A loop's bit in a form; 0: it is too far in the list. */
static uint64_t bit_of(const struct tir_relaxed *r, tir_var v) {
  for (uint32_t i = 0; i < r->count && i < 64; i++)
    if (r->vars[i] == v) return 1ull << i;
  return 0;
}

static tir_var loop_of_digit(const struct tir *ir, tir_expr e) {
  while (tir_at(ir, e)->kind != TIR_VAR) e = tir_at(ir, e)->a;
  return tir_at(ir, e)->ref;
}

/* Several digits of one loop may be less than each by itself: that is left to the general way. */
static bool add_digit(const struct tir *ir, const struct tir_move *move, struct form *f, const struct tir_relaxed *r,
                      int64_t coefficient, tir_expr atom) {
  struct tir_bounds digit;
  if (!move->to_consumers || !find_digit(ir, r, atom, &digit)) return false;
  uint64_t loop = bit_of(r, loop_of_digit(ir, atom));
  if (!loop || ((f->whole | f->digits) & loop)) return false;
  f->digits |= loop;
  return add_scaled(&f->lo, coefficient, coefficient > 0 ? digit.lo : digit.hi) &&
         add_scaled(&f->hi, coefficient, coefficient > 0 ? digit.hi : digit.lo);
}

/* A term whose atom is no iteration of the required block: a loop that runs, or a value that stays put; a loop of one
 * value is that value. */
static bool add_term(const struct tir *ir, struct tir_move *move, struct form *f, const struct tir_relaxed *r,
                     int64_t coefficient, tir_expr atom) {
  const struct tir_expr_node *n = tir_at(ir, atom);
  if (n->kind != TIR_VAR && tir_uses_relaxed(ir, r, atom)) return add_digit(ir, move, f, r, coefficient, atom);
  if (n->kind != TIR_VAR) return !tir_uses_let(ir, atom) && add_fixed(move, f, coefficient, atom);
  const struct tir_var_node *v = &ir->vars.at[n->ref];
  if (v->kind >= TIR_VAR_LET) return false;
  bool relaxed = tir_is_relaxed(r, n->ref);
  if (!relaxed && n->lo != n->hi) return add_fixed(move, f, coefficient, atom);
  if (relaxed && (!tir_is_int(ir, v->min) || !tir_is_int(ir, v->extent))) return false;
  uint64_t loop = relaxed ? bit_of(r, n->ref) : 0;
  if (relaxed && (!loop || (f->digits & loop))) return false;
  f->whole |= loop;
  bool rising = coefficient > 0;
  return add_scaled(&f->lo, coefficient, rising ? n->lo : n->hi) &&
         add_scaled(&f->hi, coefficient, rising ? n->hi : n->lo);
}

/* Each iteration runs by itself: one that stands in two terms is not known to be the same in both, as in TVM. */
static bool add_binding(struct tir *ir, struct tir_move *move, struct form *f, const struct tir_relaxed *r,
                        int64_t coefficient, tir_expr binding) {
  struct tir_linear l = tir_linear_of(ir, binding);
  if (!add_scaled(&f->lo, coefficient, l.constant) || !add_scaled(&f->hi, coefficient, l.constant)) return false;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    if (__builtin_mul_overflow(t.coefficient, coefficient, &t.coefficient)) return false;
    if (!add_term(ir, move, f, r, t.coefficient, t.atom)) return false;
  }
  return true;
}

/* What min + [0, extent), in terms of the required block's iterations, covers while the relaxed loops run. */
static bool find_form(struct tir *ir, struct tir_move *move, tir_block required, const struct tir_relaxed *r,
                      tir_expr min, tir_expr extent, struct form *f) {
  if (!tir_is_int(ir, extent) || tir_at(ir, extent)->imm < 1) return false;
  struct tir_linear l = tir_linear_of(ir, min);
  *f = (struct form){.first = move->term_count, .lo = l.constant, .hi = l.constant};
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    const struct tir_expr_node *n = tir_at(ir, t.atom);
    if (n->kind != TIR_VAR) return false;
    int iter = tir_iter_of(ir, required, n->ref);
    bool added = iter < 0 ? add_term(ir, move, f, r, t.coefficient, t.atom)
                          : add_binding(ir, move, f, r, t.coefficient, tir_iters(ir, required)[iter].binding);
    if (!added) return false;
  }
  return !__builtin_add_overflow(f->hi, tir_at(ir, extent)->imm - 1, &f->hi);
}

static bool same_terms(const struct tir_move *move, uint32_t a, uint32_t a_count, uint32_t b, uint32_t b_count) {
  if (a_count != b_count) return false;
  for (uint32_t i = 0; i < a_count; i++)
    if (move->terms[a + i].atom != move->terms[b + i].atom ||
        move->terms[a + i].coefficient != move->terms[b + i].coefficient)
      return false;
  return true;
}

/* Joins what one region requires, dimension by dimension, to what others of the buffer do. */
static bool join_region(struct tir *ir, struct tir_move *move, tir_block required, const struct tir_relaxed *r,
                        struct tir_region region, struct form *forms, bool first) {
  assert(tir_buffer_at(ir, region.buffer)->rank <= MOST_RANK);
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  for (uint32_t d = 0; d < rank; d++) {
    struct form f;
    tir_expr min = ir->operands.at[region.ranges + 2 * d], extent = ir->operands.at[region.ranges + 2 * d + 1];
    if (!find_form(ir, move, required, r, min, extent, &f)) return false;
    if (first) {
      forms[d] = f;
      continue;
    }
    if (!same_terms(move, f.first, f.count, forms[d].first, forms[d].count)) return false;
    move->term_count = f.first;
    if (f.lo < forms[d].lo) forms[d].lo = f.lo;
    if (f.hi > forms[d].hi) forms[d].hi = f.hi;
  }
  return true;
}

/* What is required of a buffer; *any: something is. */
static bool find_forms(struct tir *ir, struct tir_move *move, tir_buffer buffer, struct form *forms, bool *any) {
  *any = false;
  for (uint32_t i = 0; i < move->required_count; i++) {
    tir_block required = move->required[i];
    struct tir_span span = tir_required_regions(ir, move, required);
    struct tir_relaxed r;
    bool open = false, fits = true;
    for (uint32_t k = span.first; k < span.first + span.count && fits; k++) {
      if (ir->regions.at[k].buffer != buffer) continue;
      if (!open) tir_open_relaxed(ir, move, required, buffer, &r);
      open = true;
      fits = join_region(ir, move, required, &r, ir->regions.at[k], forms, !*any);
      *any = true;
    }
    if (open) tir_close_relaxed(&r);
    if (!fits) return false;
  }
  return true;
}

/* An iteration provides two dimensions, or buffers. What reverse_compute_at reads must be produced in all of them. */
static bool join_domain(struct tir_move *move, struct tir_move_domain *d, const struct form *f, int64_t top) {
  if (!same_terms(move, d->first, d->count, f->first, f->count)) return false;
  if (!move->to_consumers && (d->lo != f->lo || d->hi != f->hi)) return false;
  if (f->lo < d->lo) d->lo = f->lo;
  if (f->hi > d->hi) d->hi = f->hi;
  if (top > d->upper) d->upper = top;
  return true;
}

/* What reads past the buffer has instances that no producer asks for: the general way finds them. */
static bool stays_inside(const struct tir *ir, tir_var iter, int64_t top) {
  struct tir_bounds b = tir_bounds_of(ir, tir_var_expr(ir, iter));
  return b.lo >= 0 && b.hi <= top;
}

static bool add_dimension(struct tir *ir, struct tir_move *move, struct tir_region region, uint32_t dimension,
                          const struct form *f, uint32_t *seen) {
  assert(dimension < tir_buffer_at(ir, region.buffer)->rank);
  tir_expr index = ir->operands.at[region.ranges + 2 * dimension];
  tir_expr size = ir->operands.at[tir_buffer_at(ir, region.buffer)->shape + dimension];
  if (tir_at(ir, index)->kind != TIR_VAR || !tir_is_const(ir, ir->operands.at[region.ranges + 2 * dimension + 1], 1))
    return false;
  int iter = tir_iter_of(ir, move->block, tir_at(ir, index)->ref);
  if (iter < 0 || !tir_is_int(ir, size)) return false;
  struct tir_move_domain *d = &move->domains[iter];
  int64_t top = tir_at(ir, size)->imm - 1;
  if (!move->to_consumers && !stays_inside(ir, tir_at(ir, index)->ref, top)) return false;
  tir_type type = tir_type_of(ir, index);
  for (uint32_t i = f->first; i < f->first + f->count; i++)
    if (tir_type_of(ir, move->terms[i].atom) != type) return false;
  if (*seen >> iter & 1) return join_domain(move, d, f, top);
  *seen |= 1u << iter;
  *d = (struct tir_move_domain){.linear = true,
                                .type = type,
                                .first = f->first,
                                .count = f->count,
                                .lo = f->lo,
                                .hi = f->hi,
                                .lower = 0,
                                .upper = top};
  return true;
}

static bool add_region(struct tir *ir, struct tir_move *move, struct tir_span provided, uint32_t k, uint32_t *seen) {
  struct form forms[MOST_RANK];
  struct tir_region region = ir->regions.at[k];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  bool any;
  if (rank > MOST_RANK || !find_forms(ir, move, region.buffer, forms, &any)) return false;
  if (!any) return true;
  for (uint32_t other = provided.first; other < provided.first + provided.count; other++)
    if (other != k && ir->regions.at[other].buffer == region.buffer) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (!add_dimension(ir, move, region, d, &forms[d], seen)) return false;
  return true;
}

static struct tir_bounds bounds_of_terms(const struct tir *ir, const struct tir_move *move,
                                         const struct tir_move_domain *d) {
  assert(d->first + d->count <= move->term_count);
  struct tir_bounds b = {0, 0};
  for (uint32_t i = d->first; i < d->first + d->count; i++) {
    int64_t k = move->terms[i].coefficient;
    const struct tir_expr_node *n = tir_at(ir, move->terms[i].atom);
    b.lo = tir_sat_add(b.lo, tir_sat_mul(k, k > 0 ? n->lo : n->hi));
    b.hi = tir_sat_add(b.hi, tir_sat_mul(k, k > 0 ? n->hi : n->lo));
  }
  return b;
}

/* An iteration of which nothing is required runs through its own domain. */
static bool take_whole(const struct tir *ir, tir_expr min, tir_expr extent, struct tir_move_domain *d) {
  *d = (struct tir_move_domain){.linear = true, .type = tir_type_of(ir, extent)};
  if (!tir_is_int(ir, min) || !tir_is_int(ir, extent) || tir_type_of(ir, min) != d->type) return false;
  d->lo = tir_at(ir, min)->imm;
  d->hi = d->lo + tir_at(ir, extent)->imm - 1;
  return true;
}

/* Intersects with the iteration's own domain: what is required lies inside, or outside at some places, which a
 * predicate leaves out. */
static bool settle(const struct tir *ir, struct tir_move *move, tir_expr min, tir_expr extent,
                   struct tir_move_domain *d) {
  if (!tir_is_int(ir, min) || !tir_is_int(ir, extent)) return false;
  int64_t low = tir_at(ir, min)->imm, high = low + tir_at(ir, extent)->imm - 1;
  if (low > d->lower) d->lower = low;
  if (high < d->upper) d->upper = high;
  struct tir_bounds terms = bounds_of_terms(ir, move, d);
  struct tir_bounds first = {tir_sat_add(terms.lo, d->lo), tir_sat_add(terms.hi, d->lo)};
  struct tir_bounds last = {tir_sat_add(terms.lo, d->hi), tir_sat_add(terms.hi, d->hi)};
  if (first.lo >= d->lower && last.hi <= d->upper) return true;
  if (d->count == 0) {
    if (d->lo < d->lower) d->lo = d->lower;
    if (d->hi > d->upper) d->hi = d->upper;
    return d->lo <= d->hi;
  }
  if (first.hi <= d->lower && last.lo >= d->upper) {
    d->count = 0;
    d->lo = d->lower;
    d->hi = d->upper;
    return d->lo <= d->hi;
  }
  d->has_lower = first.lo < d->lower;
  d->has_upper = last.hi > d->upper;
  return first.lo <= d->upper && last.hi >= d->lower; /* else it lies outside altogether */
}

bool tir_move_find_linear(struct tir *ir, struct tir_move *move) {
  struct tir_span provided = tir_provided_regions(ir, move);
  uint32_t seen = 0;
  if (move->iter_count > TIR_MOVE_MOST) return false;
  move->term_count = 0;
  for (uint32_t k = provided.first; k < provided.first + provided.count; k++)
    if (!add_region(ir, move, provided, k, &seen)) return false;
  for (uint32_t i = 0; i < move->iter_count; i++) {
    struct tir_move_domain *d = &move->domains[i];
    tir_expr min, extent;
    tir_needed_domain(ir, move->block, i, &min, &extent);
    if (!(seen >> i & 1 ? settle(ir, move, min, extent, d) : take_whole(ir, min, extent, d))) return false;
  }
  return true;
}
