/* Divisions: quotients and remainders are of what all threads have, where threads differ by less than is divided.
 *
 *   (k * 128 + threadIdx.x) % 768 // 256    becomes    k % 6 // 2
 *
 * Requires: kernels, threads bound. Gives: nothing more. Keeps: every value. A sum that is divided by a constant is cut
 * into multiples of a divisor of that, in which no thread's number is, and a rest below the divisor. The tap of a
 * window, and its row and column, are then computed once a step, not for each place that a thread copies.
 * (tir/arith/simplify.c does so where the multiples are of one number, which keeps the form of iterators.) */
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <stdlib.h>

struct threads {
  uint8_t *is; /* by variable: the number of a thread in its block */
  uint32_t count;
};

struct search {
  const struct tir *ir;
  const struct threads *threads;
  bool found;
};

static bool find_thread(void *data, tir_expr e) {
  struct search *s = data;
  const struct tir_expr_node *n = tir_at(s->ir, e);
  if (n->kind == TIR_VAR && n->ref < s->threads->count) s->found |= s->threads->is[n->ref];
  return !s->found;
}

static bool has_thread(const struct tir *ir, const struct threads *threads, tir_expr e) {
  struct search s = {ir, threads, false};
  tir_walk_expr(ir, e, find_thread, &s);
  return s.found;
}

enum { MOST_TERMS = 16 };

/* A sum that is divided: terms without threads first, and what the others come to at least and at most. */
struct parts {
  struct tir_term terms[MOST_TERMS];
  uint32_t count, uniform;
  int64_t constant;
  struct tir_bounds rest;
};

/* False: there are too many terms, or not both kinds. */
static bool part_terms(struct tir *ir, const struct threads *threads, tir_expr a, struct parts *out) {
  struct tir_linear l = tir_linear_of(ir, a);
  if (l.count > MOST_TERMS) return false;
  *out = (struct parts){.count = l.count, .constant = l.constant};
  uint32_t last = l.count;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    bool varies = has_thread(ir, threads, t.atom);
    out->terms[varies ? --last : out->uniform++] = t;
    if (varies) out->rest = tir_add_bounds(out->rest, tir_scale_bounds(t.coefficient, tir_bounds_of(ir, t.atom)));
  }
  assert(last == out->uniform);
  return out->uniform > 0 && out->uniform < out->count;
}

static tir_expr sum_of(struct tir *ir, tir_type type, const struct tir_term *terms, uint32_t count, int64_t constant,
                       int64_t divisor) {
  struct tir_sum sum = tir_sum_open(ir);
  assert(constant % divisor == 0);
  sum.constant = constant / divisor;
  for (uint32_t i = 0; i < count; i++) tir_sum_add_term(ir, &sum, terms[i].atom, terms[i].coefficient / divisor);
  return tir_sum_close(ir, &sum, type);
}

static tir_expr divide_apart(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  struct tir_expr_node n = *tir_at(ir, made);
  struct parts p;
  (void)before;
  bool divides = (n.kind == TIR_FLOORDIV || n.kind == TIR_FLOORMOD) && tir_is_int(ir, n.b) && tir_is_index(ir, n.a);
  if (!divides || tir_at(ir, n.b)->imm < 2 || !part_terms(ir, data, n.a, &p)) return made;
  int64_t divisor = tir_at(ir, n.b)->imm, unit = divisor;
  for (uint32_t i = 0; i < p.uniform; i++) unit = tir_gcd(unit, p.terms[i].coefficient);
  int64_t low = tir_floor_mod(p.constant, unit);
  if (unit < 2 || tir_sat_add(p.rest.lo, low) < 0 || tir_sat_add(p.rest.hi, low) >= unit) return made;
  tir_type type = tir_type_of(ir, made);
  tir_expr whole = sum_of(ir, type, p.terms, p.uniform, p.constant - low, unit);
  tir_expr divided = tir_make(ir, (enum tir_kind)n.kind, whole, tir_int(ir, type, divisor / unit));
  if (n.kind == TIR_FLOORDIV) return divided;
  tir_expr rest = sum_of(ir, type, p.terms + p.uniform, p.count - p.uniform, low, 1);
  return tir_add(ir, tir_mul(ir, divided, tir_int(ir, type, unit)), rest);
}

bool lower_divisions(struct lowering *low) {
  struct tir *ir = low->ir;
  struct threads threads = {.count = ir->vars.count};
  threads.is = calloc(threads.count, sizeof *threads.is);
  if (!threads.is) abort();
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_LOOP) && tir_is_thread_axis(tir_loop_axis(ir, s)))
      threads.is[tir_as(ir, s, TIR_LOOP)->loop.var] = 1;
  lower_map(ir, low->body, TIR_HAS_DIVMOD, divide_apart, &threads);
  free(threads.is);
  return true;
}
