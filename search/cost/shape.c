/* Shapes: how often a candidate runs each loop of a nest, and what of the iteration variables its loops cover. */
#include "analytical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t model_add_number(struct search_estimator *d, struct model_number n) {
  bool derived = n.op == MODEL_TIMES || n.op == MODEL_CEILING;
  assert(!derived || (n.a < d->number_count && n.b < d->number_count));
  d->numbers = realloc(d->numbers, (d->number_count + 1) * sizeof *d->numbers);
  if (!d->numbers) abort();
  d->numbers[d->number_count] = n;
  return d->number_count++;
}

uint32_t model_add_constant(struct search_estimator *d, int64_t value) {
  return model_add_number(d, (struct model_number){MODEL_CONSTANT, .value = value});
}

uint32_t model_number_of(struct search_estimator *d, const uint32_t *numbers, const struct vm_value *v) {
  if (v->kind == VM_INT) return model_add_constant(d, v->integer);
  return v->kind == VM_REF ? numbers[v->ref] : 0;
}

void model_compute_numbers(const struct search_estimator *d, const int64_t *decisions, double *out) {
  for (uint32_t i = 0; i < d->number_count; i++) {
    const struct model_number *n = &d->numbers[i];
    switch (n->op) {
    case MODEL_CONSTANT: out[i] = (double)n->value; break;
    case MODEL_DECISION: out[i] = (double)decisions[n->a]; break;
    case MODEL_CHOICE: out[i] = (double)d->tables[n->b + (uint32_t)decisions[n->a]]; break;
    case MODEL_TIMES: out[i] = out[n->a] * out[n->b]; break;
    case MODEL_CEILING: out[i] = ceil(out[n->a] / out[n->b]); break;
    }
  }
}

/* A loop that moves several iteration variables, as fused ones do, fills the last of them first. left: how much of each
 * such loops may cover; NULL: all of it. */
static void grow(const struct model_nest *nest, const struct model_loop *loop, double trips, const double *inner,
                 double *left, double *out) {
  assert(nest->iter_count <= MODEL_ITERS);
  memcpy(out, inner, nest->iter_count * sizeof *out);
  for (uint32_t moves = loop->iters, k; moves && trips > 1; moves &= ~(1u << k)) {
    k = 31 - (uint32_t)__builtin_clz(moves);
    double room = (double)nest->iters[k].extent / inner[k];
    if (left) room = model_lesser(room, left[k]);
    double take = model_larger(1, model_lesser(trips, room));
    out[k] *= take;
    if (left) left[k] = model_larger(1, left[k] / take);
    trips = ceil(trips / take);
  }
}

void model_grow_tile(const struct model_nest *nest, const struct model_loop *loop, double trips, const double *inner,
                     double *out) {
  grow(nest, loop, trips, inner, NULL, out);
}

static bool moves_one(const struct model_loop *l) { return l->iters && !(l->iters & (l->iters - 1)); }

/* How much of each iteration variable the loops that move it alone leave to those that move several. */
static void leave_to_fused(const struct model_nest *nest, const double *numbers, double *left) {
  double alone[MODEL_ITERS];
  for (uint32_t k = 0; k < nest->iter_count; k++) alone[k] = 1;
  for (uint32_t i = 0; i < nest->loop_count; i++)
    if (moves_one(&nest->loops[i])) alone[__builtin_ctz(nest->loops[i].iters)] *= numbers[nest->loops[i].extent];
  for (uint32_t k = 0; k < nest->iter_count; k++)
    left[k] = model_larger(1, ceil((double)nest->iters[k].extent / alone[k]));
}

/* What runs past the end of its iteration is cut off. */
static double trips_within(const struct model_nest *nest, const struct model_loop *loop, double trips,
                           const double *inner) {
  if (!moves_one(loop)) return trips;
  uint32_t k = (uint32_t)__builtin_ctz(loop->iters);
  return model_lesser(trips, ceil((double)nest->iters[k].extent / inner[k]));
}

/* Elements along a dimension that an access touches in a tile. */
double model_width(const struct model_access *a, const double *tile, uint32_t d) {
  assert(d < a->rank && a->rank <= MODEL_RANK);
  double width = 1;
  for (uint32_t moves = a->moved[d]; moves; moves &= moves - 1) {
    uint32_t k = (uint32_t)__builtin_ctz(moves);
    width += fabs(a->moves[d][k]) * (tile[k] - 1);
  }
  return model_lesser(width, (double)a->extents[d]);
}

double model_distinct(const struct model_shape *s, const struct model_access *a, uint32_t loop) {
  const struct model_nest *nest = s->nest;
  double trips = s->trips[loop], distinct = 1;
  if (!model_is_moved(nest, a, loop)) return 1;
  if (!moves_one(&nest->loops[loop])) return trips;
  uint32_t k = (uint32_t)__builtin_ctz(nest->loops[loop].iters);
  double inside = s->tiles[loop + 1][k], quotient = (double)a->quotients[k], remainder = (double)a->remainders[k];
  double begin = a->shifted[k] ? quotient - 1 : 0;
  if (a->whole[k]) return trips;
  if (remainder > 0) distinct *= model_larger(1, ceil(remainder / inside));
  if (quotient > 0) distinct *= inside < quotient ? ceil((trips * inside + begin) / quotient) : trips;
  return model_lesser(trips, distinct);
}

void model_shape_loops(const struct model_nest *nest, const double *numbers, struct model_shape *s) {
  assert(nest->loop_count <= MODEL_LOOPS);
  double left[MODEL_ITERS];
  s->nest = nest;
  s->overrun = 1;
  leave_to_fused(nest, numbers, left);
  for (uint32_t k = 0; k < nest->iter_count; k++) s->tiles[nest->loop_count][k] = 1;
  for (uint32_t i = nest->loop_count; i-- > 0;) {
    s->trips[i] = trips_within(nest, &nest->loops[i], numbers[nest->loops[i].extent], s->tiles[i + 1]);
    s->overrun *= numbers[nest->loops[i].extent] / s->trips[i];
    grow(nest, &nest->loops[i], s->trips[i], s->tiles[i + 1], moves_one(&nest->loops[i]) ? NULL : left, s->tiles[i]);
  }
}

double model_taps(const struct model_shape *s, const struct model_access *a, uint32_t first, uint32_t end) {
  double all = model_larger(a->taps, 1);
  assert(end <= s->nest->loop_count);
  for (uint32_t i = first; i < end; i++) {
    double reach = 0;
    for (uint32_t d = 0; d < a->rank; d++)
      for (uint32_t k = 0; k < s->nest->iter_count; k++)
        if (s->nest->loops[i].iters >> k & 1 && a->moves[d][k])
          reach = model_larger(reach, (double)(a->last[d] - a->first[d]) / fabs((double)a->moves[d][k]));
    if (reach > 0) all *= (s->trips[i] + reach) / ((1 + reach) * s->trips[i]);
  }
  return model_larger(all, 1);
}

double model_product(const struct model_shape *s, uint32_t first, uint32_t end) {
  assert(end <= s->nest->loop_count);
  double product = 1;
  for (uint32_t i = first; i < end; i++) product *= s->trips[i];
  return product;
}
