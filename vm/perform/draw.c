/* Instructions that draw. Each looks up its decision, checks it or samples one, and notes what it used.
 * Source: Shao et al., NeurIPS 2022, section 3.2. */
#include "vm/run.h"

#include <math.h>
#include <stdlib.h>

static bool refuse_decision(struct vm_run *r, int64_t decision, const char *what) {
  return ms_fail(r->err, MS_DECISION, "the decision %lld is %s", (long long)decision, what);
}

/* ---- SampleCategorical ------------------------------------------------------------------------------------------- */

static bool check_weights(struct vm_run *r, const struct vm_operand *candidates, const struct vm_operand *weights,
                          double *sum) {
  if (candidates->count != weights->count || !weights->count)
    return ms_fail(r->err, MS_INVALID_ARGUMENT, "%u candidates with %u probabilities", candidates->count,
                   weights->count);
  *sum = 0;
  for (uint32_t i = 0; i < weights->count; i++) {
    int64_t candidate = r->operands[candidates->value + i].value;
    if (candidate <= VM_UNSET)
      return ms_fail(r->err, MS_INVALID_ARGUMENT, "candidate %u is %lld", i, (long long)candidate);
    double weight = r->operands[weights->value + i].real;
    if (!(weight >= 0)) return ms_fail(r->err, MS_INVALID_ARGUMENT, "probability %u is %g", i, weight);
    *sum += weight;
  }
  return (*sum > 0 && isfinite(*sum)) || ms_fail(r->err, MS_INVALID_ARGUMENT, "the probabilities add up to %g", *sum);
}

static int64_t draw_by_weight(struct vm_stream stream, const struct vm_operand *weights, uint32_t count, double sum) {
  double at = vm_stream_unit(&stream) * sum;
  uint32_t last = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (weights[i].real <= 0) continue;
    last = i;
    if (at < weights[i].real) return i;
    at -= weights[i].real;
  }
  assert(weights[last].real > 0); /* the sum is */
  return last;                    /* rounding left a rest */
}

static bool admits_candidate(struct vm_run *r, const struct vm_step *s, const struct vm_operand *candidates,
                             int64_t choice) {
  return vm_admits(r, s, &r->operands[candidates->value + choice].value, 1);
}

/* By weight, among the candidates that Asserts admit but for the one given, which they do not. False: there is none. */
static bool draw_other(struct vm_run *r, const struct vm_step *s, const struct vm_operand *candidates,
                       const struct vm_operand *weights, int64_t *choice) {
  struct vm_stream stream = vm_stream_of(r->draws->seed, r->draws->candidate, s->draw, r->draws->attempt + 1);
  double sum = 0, at = vm_stream_unit(&stream);
  int64_t refused = *choice;
  uint8_t *admitted = calloc(candidates->count, 1);
  if (!admitted) abort();
  for (int64_t i = 0; i < candidates->count; i++) {
    admitted[i] = i != refused && weights[i].real > 0 && admits_candidate(r, s, candidates, i);
    if (admitted[i]) sum += weights[i].real;
  }
  at *= sum;
  for (int64_t i = 0; i < candidates->count && at >= 0; i++) {
    if (!admitted[i]) continue;
    *choice = i;
    at -= weights[i].real;
  }
  assert(sum <= 0 || (*choice != refused && admitted[*choice]));
  free(admitted);
  return sum > 0 || vm_no_number(r, s);
}

bool vm_do_sample_categorical(struct vm_run *r, const struct vm_step *s) {
  const struct vm_operand *candidates = vm_attr(r, s, 0), *weights = vm_attr(r, s, 1);
  const int64_t *decided;
  double sum = 0;
  if (!check_weights(r, candidates, weights, &sum) || !vm_get_decision(r, s, 1, &decided)) return false;
  int64_t choice = decided ? *decided : 0, count = candidates->count;
  if (choice < 0 || choice >= count) {
    if (r->draws->mode == VM_STRICT) return refuse_decision(r, choice, "no candidate's number");
    choice = choice < 0 ? 0 : count - 1;
  }
  if (!decided) choice = draw_by_weight(vm_stream_for(r, s), r->operands + weights->value, weights->count, sum);
  enum vm_verdict verdict = vm_judge(r, s, &r->operands[candidates->value + choice].value, 1, decided);
  if (verdict == VM_BACK) return false;
  if (verdict == VM_OTHER && !draw_other(r, s, candidates, r->operands + weights->value, &choice)) return false;
  if (!vm_give_numbers(r, s, &r->operands[candidates->value + choice].value, 1)) return false;
  vm_set_decision(r, s, &choice, 1);
  return true;
}

/* ---- SamplePerfectTile ------------------------------------------------------------------------------------------- */

enum { MOST_FACTORS = 64 };

/* Checks a decided tile; in repair, as MetaSchedule does: a factor that does not divide what the inner ones leave
 * becomes all of it, and the outermost is the rest. The innermost may be past the limit, which holds for sampled tiles
 * only: repairing gives such tiles, MetaSchedule records them, and they are replayed. */
static bool fit_tile(struct vm_run *r, int64_t extent, int64_t *tile, uint32_t n) {
  int64_t rest = extent;
  for (uint32_t i = n; i-- > 0;) {
    bool fits = tile[i] > 0 && rest % tile[i] == 0 && (i || tile[i] == rest);
    if (!fits && r->draws->mode == VM_STRICT)
      return ms_fail(r->err, MS_DECISION, "factor %u of the tile decided is %lld, which does not fit the extent %lld",
                     i, (long long)tile[i], (long long)extent);
    if (!fits) tile[i] = rest;
    rest /= tile[i];
  }
  assert(rest == 1 || !n);
  return true;
}

/* A symbolic extent has one tile: all in the first loop, left open (VM_NIL). So has one that a partition's factor does
 * not divide; its first factor is -1, which no split takes: there is no such partition. */
static bool give_open_tile(struct vm_run *r, const struct vm_step *s, int64_t open, const int64_t *decided,
                           uint32_t n) {
  int64_t tile[MOST_FACTORS] = {open}, noted[MOST_FACTORS] = {-1};
  assert(n && n <= MOST_FACTORS);
  for (uint32_t i = 1; i < n; i++) tile[i] = noted[i] = 1;
  for (uint32_t i = 0; decided && r->draws->mode == VM_STRICT && i < n; i++)
    if (decided[i] != noted[i]) return refuse_decision(r, decided[i], "a factor of a loop whose extent is not known");
  if (!vm_give_numbers(r, s, tile, n)) return false;
  vm_set_decision(r, s, noted, n);
  return true;
}

/* All its factors together are the extent. */
static bool is_tile(const int64_t *tile, uint32_t n, int64_t extent) {
  for (uint32_t i = 0; i < n; i++) {
    if (tile[i] < 1 || extent % tile[i]) return false;
    extent /= tile[i];
  }
  return extent == 1;
}

/* Gives a tile that was drawn, or decided, or another where Asserts do not admit it. */
static bool settle_tile(struct vm_run *r, const struct vm_step *s, const struct vm_tile_rule *rule, bool decided,
                        int64_t *tile) {
  enum vm_verdict verdict = vm_judge(r, s, tile, rule->n, decided);
  if (verdict == VM_BACK || (verdict == VM_OTHER && !vm_draw_other_tile(r, s, rule, tile))) return false;
  assert(is_tile(tile, rule->n, rule->extent));
  if (!vm_give_numbers(r, s, tile, rule->n)) return false;
  vm_set_decision(r, s, tile, rule->n);
  return true;
}

bool vm_do_sample_perfect_tile(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  if (!vm_get_loop(r, vm_input(r, s, 0), &loop)) return false;
  int64_t n = vm_attr(r, s, 0)->value, most = vm_attr(r, s, 1)->value, tile[MOST_FACTORS];
  if (n < 1 || n > MOST_FACTORS) return ms_fail(r->err, MS_INVALID_ARGUMENT, "n is %lld", (long long)n);
  if (most != -1 && (most < 1 || n < 2))
    return ms_fail(r->err, MS_INVALID_ARGUMENT, "max_innermost_factor is %lld, with n %lld", (long long)most,
                   (long long)n);
  const int64_t *decided;
  if (!vm_get_decision(r, s, (uint32_t)n, &decided)) return false;
  tir_expr bound = tir_as(r->ir, loop, TIR_LOOP)->loop.extent;
  if (!tir_is_int(r->ir, bound)) return give_open_tile(r, s, VM_NIL, decided, (uint32_t)n);
  int64_t extent = tir_at(r->ir, bound)->imm;
  if (extent < 1)
    return tir_refuse(r->ir, r->err, MS_INVALID_ARGUMENT, loop, "the loop's extent is %lld", (long long)extent);
  if (most == -1) most = 0;
  if (!decided) {
    struct vm_stream stream = vm_stream_for(r, s);
    vm_draw_tile(&stream, extent, (uint32_t)n, most, tile);
  } else {
    for (int64_t i = 0; i < n; i++) tile[i] = decided[i];
    if (!fit_tile(r, extent, tile, (uint32_t)n)) return false;
  }
  struct vm_tile_rule rule = {extent, most, 0, 1, (uint32_t)n};
  return settle_tile(r, s, &rule, decided, tile);
}

/* ---- SamplePartitionedTile --------------------------------------------------------------------------------------- */

/* The factors from `position` on: their product shall be a multiple of `factor`. */
struct partition {
  int64_t position, factor;
};

static bool is_partitioned(const struct partition *p, const int64_t *tile, uint32_t n) {
  int64_t product = 1;
  for (uint32_t i = (uint32_t)p->position; i < n; i++)
    if (tile[i] < 1 || __builtin_mul_overflow(product, tile[i], &product)) return false;
  return product % p->factor == 0;
}

/* As perfect tiles; where the inner factors do not fit, MetaSchedule's choice: the factor asked for, and the rest
 * outside. */
static bool fit_partition(struct vm_run *r, int64_t extent, const struct partition *p, int64_t *tile, uint32_t n) {
  if (is_partitioned(p, tile, n)) return fit_tile(r, extent, tile, n);
  if (r->draws->mode == VM_STRICT)
    return ms_fail(r->err, MS_DECISION, "the inner factors of the tile decided are no multiple of %lld",
                   (long long)p->factor);
  for (uint32_t i = 0; i < n; i++) tile[i] = 1;
  tile[0] = extent / p->factor;
  tile[p->position] *= p->factor;
  return true;
}

/* Rejection keeps the draw uniform; where few tiles fit, the factor goes to the partition's first loop in the end, and
 * the rest is drawn. */
static void draw_partition(struct vm_stream *stream, int64_t extent, const struct partition *p, int64_t *tile,
                           uint32_t n) {
  enum { TRIES = 64 };
  for (int i = 0; i < TRIES; i++) {
    vm_draw_tile(stream, extent, n, 0, tile);
    if (is_partitioned(p, tile, n)) return;
  }
  vm_draw_tile(stream, extent / p->factor, n, 0, tile);
  tile[p->position] *= p->factor;
  assert(is_partitioned(p, tile, n));
}

bool vm_do_sample_partitioned_tile(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  if (!vm_get_loop(r, vm_input(r, s, 0), &loop)) return false;
  int64_t n = vm_attr(r, s, 0)->value, tile[MOST_FACTORS];
  struct partition p = {vm_attr(r, s, 1)->value, vm_attr(r, s, 2)->value};
  if (n < 2 || n > MOST_FACTORS) return ms_fail(r->err, MS_INVALID_ARGUMENT, "n is %lld", (long long)n);
  if (p.position < 0 || p.position >= n || p.factor < 1)
    return ms_fail(r->err, MS_INVALID_ARGUMENT, "partition_pos is %lld and innerpart_factor %lld, with n %lld",
                   (long long)p.position, (long long)p.factor, (long long)n);
  const int64_t *decided;
  if (!vm_get_decision(r, s, (uint32_t)n, &decided)) return false;
  tir_expr bound = tir_as(r->ir, loop, TIR_LOOP)->loop.extent;
  int64_t extent = tir_is_int(r->ir, bound) ? tir_at(r->ir, bound)->imm : 0;
  if (tir_is_int(r->ir, bound) && extent < 1)
    return tir_refuse(r->ir, r->err, MS_INVALID_ARGUMENT, loop, "the loop's extent is %lld", (long long)extent);
  if (!extent) return give_open_tile(r, s, VM_NIL, decided, (uint32_t)n);
  if (extent % p.factor) return give_open_tile(r, s, -1, decided, (uint32_t)n);
  if (!decided) {
    struct vm_stream stream = vm_stream_for(r, s);
    draw_partition(&stream, extent, &p, tile, (uint32_t)n);
  } else {
    for (int64_t i = 0; i < n; i++) tile[i] = decided[i];
    if (!fit_partition(r, extent, &p, tile, (uint32_t)n)) return false;
  }
  struct vm_tile_rule rule = {extent, 0, p.position, p.factor, (uint32_t)n};
  return settle_tile(r, s, &rule, decided, tile);
}

/* ---- SampleComputeLocation --------------------------------------------------------------------------------------- */

/* The places a block may be computed at, by falling rank: inlined (-2), at the root (-1), at a loop (its number from
 * outside among the loops of the consumer). */
struct places {
  uint32_t *loops, count;
  bool inlined;
};

static void find_places(struct vm_run *r, tir_block block, struct places *out) {
  out->inlined = tir_can_compute_inline(r->ir, block);
  out->loops = vm_out(r, 0);
  out->count = tir_compute_locations(r->ir, block, out->loops, VM_OUT_ROOM);
  if (out->count <= VM_OUT_ROOM) return;
  out->loops = vm_out(r, out->count);
  uint32_t found = tir_compute_locations(r->ir, block, out->loops, out->count);
  assert(found == out->count && "asking of locations leaves the module as it was");
  (void)found;
}

static int64_t number_of(const struct tir *ir, tir_loop loop) { return tir_loops_of(ir, loop, NULL, 0); }

/* The place decided, or the nearest one before it; gives the slot's value too. */
static int64_t nearest_place(const struct tir *ir, const struct places *p, int64_t decided, int64_t *slot) {
  *slot = VM_MARK_ROOT;
  if (decided <= VM_MARK_INLINE && p->inlined) return *slot = VM_MARK_INLINE;
  int64_t best = VM_MARK_ROOT;
  for (uint32_t i = 0; i < p->count; i++) {
    int64_t number = number_of(ir, p->loops[i]);
    if (number > decided) break;
    best = number;
    *slot = p->loops[i];
  }
  return best;
}

bool vm_do_sample_compute_location(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  const int64_t *decided;
  if (!vm_get_block(r, vm_input(r, s, 0), &block) || !vm_get_decision(r, s, 1, &decided)) return false;
  struct places places;
  find_places(r, block, &places);
  r->located = places.count ? block : TIR_NONE;
  r->located_by = r->next + 1;
  int64_t decision, slot;
  if (!decided) {
    struct vm_stream stream = vm_stream_for(r, s);
    int64_t choice = (int64_t)vm_stream_below(&stream, places.count + 1 + places.inlined) - 1 - places.inlined;
    assert(choice >= VM_MARK_INLINE && choice < (int64_t)places.count);
    decision = choice < 0 ? choice : number_of(r->ir, places.loops[choice]);
    slot = choice < 0 ? choice : places.loops[choice];
  } else {
    decision = nearest_place(r->ir, &places, *decided, &slot);
    if (decision != *decided && r->draws->mode == VM_STRICT)
      return refuse_decision(r, *decided, "no place where the block can be computed now");
  }
  if (!vm_give_numbers(r, s, &slot, 1)) return false;
  vm_set_decision(r, s, &decision, 1);
  return true;
}
