/* The analytical model: made of sketches; the best of very many of their candidates (cpu.c estimates one's cost). */
#include "analytical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Making ---- */

struct search_estimator *model_new(struct vm_schedule *into, const struct vm_plan *plan, const struct vm_draws *draws,
                                   const struct search_machine *machine, bool as_is, ms_error *err) {
  assert(machine->cores >= 1 && machine->vector_bits >= 32);
  struct search_estimator *d = calloc(1, sizeof *d);
  if (!d) abort();
  d->machine = *machine;
  d->most_vector = 1;
  d->as_is = as_is;
  bool ok = model_read_sketch(d, into, plan, draws, err);
  if (ok && (d->number_count > MODEL_NUMBERS || d->nest_count > MODEL_NESTS))
    ok = ms_fail(err, MS_TOO_LARGE, "a sketch of %u numbers and %u nests", d->number_count, d->nest_count);
  if (ok && d->machine.gpu.sms > 0) model_begin_gpu(d);
  if (ok) return d;
  search_estimator_free(d);
  return NULL;
}

static struct search_estimator *model_of(struct tir *workload, const struct vm_trace *trace,
                                         const struct vm_intrinsics *intrinsics, const struct search_machine *machine,
                                         bool as_is, ms_error *err) {
  struct vm_plan *plan = vm_prepare_with(workload, trace, intrinsics);
  struct vm_schedule *into = vm_schedule_new(NULL, 1);
  struct vm_draws draws = {.mode = VM_REPAIR, .decisions = trace, .seed = 1};
  struct search_estimator *d = model_new(into, plan, &draws, machine, as_is, err);
  vm_schedule_free(into);
  vm_plan_free(plan);
  return d;
}

struct search_estimator *search_estimator_new(struct tir *workload, const struct vm_trace *sketch,
                                              const struct vm_intrinsics *intrinsics,
                                              const struct search_machine *machine, ms_error *err) {
  return model_of(workload, sketch, intrinsics, machine, false, err);
}

struct search_estimated model_estimated(const struct search_estimator *d) {
  return (struct search_estimated){search_estimator_cost(d, d->sketch->decisions), model_tile(d, d->sketch->decisions)};
}

bool search_estimate(struct tir *workload, const struct vm_trace *trace, const struct vm_intrinsics *intrinsics,
                     const struct search_machine *machine, struct search_estimated *out, ms_error *err) {
  assert(out);
  struct search_estimator *d = model_of(workload, trace, intrinsics, machine, true, err);
  if (d) *out = model_estimated(d);
  search_estimator_free(d);
  return d != NULL;
}

void search_estimator_free(struct search_estimator *d) {
  if (!d) return;
  vm_trace_free(d->sketch);
  for (uint32_t i = 0; i < d->draw_count; i++) free(d->draws[i].values);
  free(d->draws);
  free(d->numbers);
  free(d->tables);
  free(d->nests);
  free(d->products);
  free(d->shared);
  free(d->memo);
  free(d);
}

bool search_estimator_has(const struct search_estimator *d, const struct vm_trace *trace) {
  assert(trace);
  const struct vm_steps *steps = trace->steps, *own = d->sketch->steps;
  if (steps->count != own->count || steps->decisions != own->decisions) return false;
  for (uint32_t i = 0; i < steps->count; i++) {
    const struct vm_instruction *in = &steps->instructions[i], *other = &own->instructions[i];
    if (in->kind != other->kind || in->decision != other->decision || in->draw != other->draw) return false;
    if (in->draw == VM_NO_DRAW) continue;
    if (trace->decided[in->decision] != VM_DECIDED) return false;
    for (uint32_t k = 0; in->kind == VM_SamplePerfectTile && k < in->outputs; k++)
      if (trace->decisions[in->decision + k] < 1) return false;
    int64_t choice = trace->decisions[in->decision];
    if (in->kind == VM_SampleCategorical && (choice < 0 || choice >= vm_attrs_of(own, other)->count)) return false;
  }
  return true;
}

/* ---- The best of many ---- */

struct found {
  double cost;
  uint64_t tile;
  uint32_t width;
  int64_t *decisions;
};

struct finding {
  const struct search_estimator *estimator;
  uint32_t most, each; /* candidates wanted, and of one register tile */
  struct found *found;
  uint32_t count, room;
  double limit; /* what costs as much or more is not among them */
  uint64_t seen,
      most_seen; /* candidates; where all of the budget is spent twice, and a descent besides, none goes on */
  const volatile int *stop;
  uint64_t *tiles; /* those seen, by their hash, and how many of each: for trim */
  uint32_t *of_tile;
};

static int by_cost(const void *x, const void *y) {
  const struct found *a = x, *b = y;
  if (a->cost != b->cost) return a->cost < b->cost ? -1 : 1;
  for (uint32_t i = 0; i < a->width; i++)
    if (a->decisions[i] != b->decisions[i]) return a->decisions[i] < b->decisions[i] ? -1 : 1;
  return 0;
}

/* Whether there is room for one more of the register tile. */
static bool count_tile(struct finding *f, uint64_t tile) {
  uint32_t at = (uint32_t)(tile % f->room);
  while (f->of_tile[at] && f->tiles[at] != tile) at = (at + 1) % f->room;
  f->tiles[at] = tile;
  return f->of_tile[at]++ < f->each;
}

/* Keeps the best, each once. */
static void trim(struct finding *f) {
  qsort(f->found, f->count, sizeof *f->found, by_cost);
  memset(f->of_tile, 0, f->room * sizeof *f->of_tile);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    struct found *x = &f->found[i];
    bool again = kept && !by_cost(&f->found[kept - 1], x);
    if (kept < f->most && !again && count_tile(f, x->tile))
      f->found[kept++] = *x;
    else
      free(x->decisions);
  }
  f->count = kept;
  if (kept == f->most) f->limit = f->found[kept - 1].cost;
}

static bool is_over(const struct finding *f) { return f->seen >= f->most_seen || (f->stop && *f->stop); }

static double offer(struct finding *f, const int64_t *decisions) {
  assert(f->count < f->room);
  const struct search_estimator *d = f->estimator;
  f->seen++;
  double cost = search_estimator_cost(d, decisions);
  if (!(cost < f->limit)) return cost;
  if (f->count == f->room - 1) trim(f);
  uint32_t width = d->sketch->steps->decisions;
  struct found *x = &f->found[f->count++];
  *x = (struct found){cost, model_tile(d, decisions), width, malloc((width + 1) * sizeof *decisions)};
  if (!x->decisions) abort();
  if (width) memcpy(x->decisions, decisions, width * sizeof *decisions);
  return cost;
}

static void choose(const struct model_draw *draw, uint32_t choice, int64_t *decisions) {
  assert(choice < draw->choices);
  memcpy(decisions + draw->decision, draw->values + (size_t)choice * draw->width, draw->width * sizeof *decisions);
}

static void enumerate(struct finding *f, uint32_t draw, int64_t *decisions) {
  const struct search_estimator *d = f->estimator;
  if (draw == d->draw_count) {
    offer(f, decisions);
    return;
  }
  for (uint32_t i = 0; i < d->draws[draw].choices && !is_over(f); i++) {
    choose(&d->draws[draw], i, decisions);
    enumerate(f, draw + 1, decisions);
  }
}

/* One draw after the other takes its best choice, until a whole round brings no gain. */
static void descend(struct finding *f, int64_t *decisions, double cost) {
  const struct search_estimator *d = f->estimator;
  uint32_t idle = 0;
  for (uint32_t k = 0; idle < d->draw_count && !is_over(f); k = (k + 1) % d->draw_count) {
    const struct model_draw *draw = &d->draws[k];
    assert(draw->width <= MODEL_LOOPS);
    int64_t before[MODEL_LOOPS];
    memcpy(before, decisions + draw->decision, draw->width * sizeof *before);
    idle++;
    for (uint32_t i = 0; i < draw->choices && !is_over(f); i++) {
      choose(draw, i, decisions);
      double other = offer(f, decisions);
      if (other < cost)
        cost = other, idle = 1, memcpy(before, decisions + draw->decision, draw->width * sizeof *before);
    }
    memcpy(decisions + draw->decision, before, draw->width * sizeof *before);
  }
}

enum { DESCEND_EVERY = 64 }; /* candidates that are drawn, and the best of them goes down */

/* Every tile is of one element: what is outermost is all. */
static void choose_least(const struct search_estimator *d, int64_t *decisions) {
  for (uint32_t k = 0; k < d->draw_count; k++) {
    const struct model_draw *draw = &d->draws[k];
    uint32_t best = 0;
    for (uint32_t i = 1; draw->width > 1 && i < draw->choices; i++)
      if (draw->values[(size_t)i * draw->width] > draw->values[(size_t)best * draw->width]) best = i;
    choose(draw, best, decisions);
  }
}

/* From the least tiles downhill, then from the best of some that are drawn, and again. */
static void draw_many(struct finding *f, uint64_t seed, uint64_t budget, int64_t *decisions) {
  const struct search_estimator *d = f->estimator;
  uint32_t width = d->sketch->steps->decisions;
  int64_t *best = malloc((width + 1) * sizeof *best);
  if (!best) abort();
  choose_least(d, decisions);
  descend(f, decisions, offer(f, decisions));
  for (uint64_t number = 0; f->seen < budget && !is_over(f);) {
    double least = INFINITY;
    for (int i = 0; i < DESCEND_EVERY && !is_over(f); i++, number++) {
      for (uint32_t k = 0; k < d->draw_count; k++) {
        struct vm_stream stream = vm_stream_of(seed, number, k, 0);
        choose(&d->draws[k], vm_stream_below(&stream, d->draws[k].choices), decisions);
      }
      double cost = offer(f, decisions);
      if (cost < least) least = cost, memcpy(best, decisions, width * sizeof *best);
    }
    if (isfinite(least)) descend(f, best, least);
  }
  free(best);
}

/* However small the budget, the first descent, from the least tiles, goes on for some rounds. */
static uint64_t most_of_descent(const struct search_estimator *d) {
  enum { ROUNDS = 8, MOST = 1 << 16 };
  uint64_t round = 0;
  for (uint32_t k = 0; k < d->draw_count; k++) round += d->draws[k].choices;
  return ROUNDS * round < MOST ? ROUNDS * round : MOST;
}

double search_estimator_size(const struct search_estimator *d) {
  double size = 1;
  for (uint32_t i = 0; i < d->draw_count; i++) size *= d->draws[i].choices;
  return size;
}

uint32_t search_estimator_best(const struct search_estimator *d, uint64_t seed, uint64_t budget, uint32_t most,
                               uint32_t each, const volatile int *stop, struct search_proposal *out) {
  assert(most > 0 && each > 0 && budget > 0 && out);
  if (d->nest_count > SEARCH_ESTIMATOR_NESTS) budget = 1 + budget * SEARCH_ESTIMATOR_NESTS / d->nest_count;
  struct finding f = {
      .estimator = d, .most = most, .each = each, .room = 4 * most + 64, .limit = INFINITY, .stop = stop};
  f.most_seen = 2 * budget + most_of_descent(d);
  uint32_t width = d->sketch->steps->decisions;
  int64_t *decisions = malloc((width + 1) * sizeof *decisions);
  f.found = malloc(f.room * sizeof *f.found);
  f.tiles = malloc(f.room * sizeof *f.tiles);
  f.of_tile = malloc(f.room * sizeof *f.of_tile);
  if (!decisions || !f.found || !f.tiles || !f.of_tile) abort();
  if (width) memcpy(decisions, d->sketch->decisions, width * sizeof *decisions);
  if (search_estimator_size(d) <= (double)budget)
    enumerate(&f, 0, decisions);
  else
    draw_many(&f, seed, budget, decisions);
  trim(&f);
  for (uint32_t i = 0; i < f.count; i++) {
    out[i] = (struct search_proposal){f.found[i].cost, f.found[i].tile, vm_trace_copy(d->sketch)};
    if (width) memcpy(out[i].trace->decisions, f.found[i].decisions, width * sizeof *decisions);
    free(f.found[i].decisions);
  }
  free(f.found), free(f.tiles), free(f.of_tile);
  free(decisions);
  return f.count;
}
