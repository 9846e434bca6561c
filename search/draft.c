/* Drafts: what a candidate costs, estimated from its decisions alone, and the best of very many.
 *
 * Cycles of one core are those of the arithmetic, as register tiles let it flow, and of what moves between the levels of
 * the cache, as oneDNN's block chooser walks loops inside out; chunks over threads come in waves. Sources: oneDNN,
 * jit_brgemm_conv_utils.cpp, est_eff; Zhu et al., "ROLLER", OSDI 2022, section 4. */
#include "draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, MOST_NUMBERS = 512 };

/* ---- Making ---- */

struct search_draft *search_draft_new(struct tir *workload, const struct vm_trace *sketch,
                                      const struct vm_intrinsics *intrinsics, const struct search_machine *machine,
                                      ms_error *err) {
  assert(machine->cores >= 1 && machine->vector_bits >= 32);
  struct search_draft *d = calloc(1, sizeof *d);
  if (!d) abort();
  d->machine = *machine;
  d->most_vector = 1;
  d->sketch = vm_trace_copy(sketch);
  bool ok = draft_read_sketch(d, workload, intrinsics, err);
  if (ok && d->number_count > MOST_NUMBERS) ok = ms_fail(err, MS_TOO_LARGE, "a sketch of %u numbers", d->number_count);
  if (ok) return d;
  search_draft_free(d);
  return NULL;
}

void search_draft_free(struct search_draft *d) {
  if (!d) return;
  vm_trace_free(d->sketch);
  for (uint32_t i = 0; i < d->draw_count; i++) free(d->draws[i].values);
  free(d->draws);
  free(d->numbers);
  free(d->tables);
  free(d->nests);
  free(d);
}

const struct vm_trace *search_draft_sketch(const struct search_draft *d) { return d->sketch; }

/* ---- Numbers ---- */

static void compute_numbers(const struct search_draft *d, const int64_t *decisions, double *out) {
  assert(d->number_count <= MOST_NUMBERS);
  for (uint32_t i = 0; i < d->number_count; i++) {
    const struct draft_number *n = &d->numbers[i];
    switch (n->op) {
    case DRAFT_CONSTANT: out[i] = (double)n->value; break;
    case DRAFT_DECISION: out[i] = (double)decisions[n->a]; break;
    case DRAFT_CHOICE: out[i] = (double)d->tables[n->b + (uint32_t)decisions[n->a]]; break;
    case DRAFT_TIMES: out[i] = out[n->a] * out[n->b]; break;
    case DRAFT_CEILING: out[i] = ceil(out[n->a] / out[n->b]); break;
    }
  }
}

bool search_draft_has(const struct search_draft *d, const struct vm_trace *trace) {
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

/* ---- Footprints ---- */

/* A nest with the extents that a candidate gives it. */
struct shape {
  const struct draft_nest *nest;
  double trips[DRAFT_LOOPS];
  double tiles[DRAFT_LOOPS + 1][DRAFT_ITERS];    /* of each iteration variable, in the loops from the i-th on */
  double bytes[DRAFT_LOOPS + 1][DRAFT_ACCESSES]; /* what they touch, in whole lines */
  uint32_t parallel, vector; /* loops run in parallel, from outside; the first loop that is vectorized */
};

/* A loop that moves several iteration variables, as fused ones do, fills the last of them first. */
static void grow_tile(const struct draft_nest *nest, const struct draft_loop *loop, double trips, const double *inner,
                      double *out) {
  memcpy(out, inner, nest->iter_count * sizeof *out);
  for (uint32_t k = nest->iter_count; k-- > 0 && trips > 1;) {
    if (!(loop->iters >> k & 1)) continue;
    double room = (double)nest->iters[k].extent / inner[k], take = trips < room ? trips : room;
    out[k] *= take < 1 ? 1 : take;
    trips = ceil(trips / (take < 1 ? 1 : take));
  }
}

static double touched(const struct draft_nest *nest, const struct draft_access *a, const double *tile) {
  assert(a->rank <= DRAFT_RANK && nest->iter_count <= DRAFT_ITERS);
  double all = a->bytes;
  for (uint32_t d = 0; d < a->rank; d++) {
    double width = 1;
    for (uint32_t k = 0; k < nest->iter_count; k++) width += fabs((double)a->moves[d][k]) * (tile[k] - 1);
    if (width > (double)a->extents[d]) width = (double)a->extents[d];
    if (d + 1 == a->rank) width = ceil(width * a->bytes / LINE) * LINE / a->bytes;
    all *= width;
  }
  return all;
}

static bool is_moved(const struct draft_nest *nest, const struct draft_access *a, uint32_t loop) {
  assert(loop < nest->loop_count);
  for (uint32_t k = 0; k < nest->iter_count; k++)
    for (uint32_t d = 0; d < a->rank && (nest->loops[loop].iters >> k & 1); d++)
      if (a->moves[d][k]) return true;
  return false;
}

static void shape_nest(const struct draft_nest *nest, const double *numbers, struct shape *s) {
  assert(nest->loop_count <= DRAFT_LOOPS && nest->access_count <= DRAFT_ACCESSES);
  s->nest = nest;
  for (uint32_t k = 0; k < nest->iter_count; k++) s->tiles[nest->loop_count][k] = 1;
  for (uint32_t i = nest->loop_count + 1; i-- > 0;) {
    if (i < nest->loop_count) {
      s->trips[i] = numbers[nest->loops[i].extent];
      grow_tile(nest, &nest->loops[i], s->trips[i], s->tiles[i + 1], s->tiles[i]);
    }
    for (uint32_t a = 0; a < nest->access_count; a++) s->bytes[i][a] = touched(nest, &nest->accesses[a], s->tiles[i]);
  }
}

/* ---- What is run in parallel and in vectors: as rules/rewrite_parallel_vectorize_unroll.lua does it ---- */

static void find_parallel(const struct search_draft *d, const double *numbers, struct shape *s) {
  double jobs = d->jobs ? numbers[d->jobs] : 0, product = 1;
  s->parallel = 0;
  for (uint32_t i = 0; jobs > 0 && i < s->nest->loop_count; i++) {
    if (s->nest->loops[i].reduces) break;
    product *= s->trips[i];
    s->parallel = i + 1;
    if (product >= jobs || !s->nest->loops[i].alone) break;
  }
}

static bool is_dense(const struct shape *s, uint32_t loop) {
  if (s->trips[loop] <= 1) return true;
  for (uint32_t k = 0; k < s->nest->iter_count; k++)
    if (s->nest->loops[loop].iters == 1u << k) return s->nest->iters[k].dense && s->tiles[loop + 1][k] <= 1;
  return false;
}

static void find_vector(const struct search_draft *d, struct shape *s) {
  double product = 1;
  s->vector = s->nest->loop_count;
  while (s->vector > s->parallel) {
    uint32_t l = s->vector - 1;
    product *= s->trips[l];
    if (s->nest->loops[l].reduces || !s->nest->loops[l].alone || product > (double)d->most_vector || !is_dense(s, l))
      break;
    s->vector = l;
  }
}

static double product_of(const struct shape *s, uint32_t first, uint32_t end) {
  assert(end <= s->nest->loop_count);
  double product = 1;
  for (uint32_t i = first; i < end; i++) product *= s->trips[i];
  return product;
}

/* ---- Cycles ---- */

/* The innermost loop that reduces, or the first loop where none does: what is inside is the register tile. */
static uint32_t tile_begin(const struct shape *s) {
  for (uint32_t i = s->nest->loop_count; i-- > 0;)
    if (s->nest->loops[i].reduces && s->trips[i] > 1) return i + 1;
  return s->vector;
}

/* Vectors of each access that a step of the register tile needs: distinct ones along its loops. */
static double vectors_of(const struct shape *s, const struct draft_access *a, uint32_t first, double vectors) {
  double distinct = 1;
  bool wide = false;
  for (uint32_t i = first; i < s->nest->loop_count; i++) {
    if (s->trips[i] <= 1 || !is_moved(s->nest, a, i)) continue;
    if (i < s->vector)
      distinct *= s->trips[i];
    else
      wide = true;
  }
  return distinct * (wide ? vectors : 1);
}

/* Whether vectors run past the end of what they compute: those at the edge, and with them all, stand under a condition. */
static bool is_guarded(const struct shape *s) {
  const struct draft_nest *nest = s->nest;
  for (uint32_t k = 0; k < nest->iter_count; k++) {
    double all = 1;
    bool vector = false;
    for (uint32_t i = 0; i < nest->loop_count; i++) {
      if (nest->loops[i].iters != 1u << k) continue;
      all *= s->trips[i];
      vector = vector || i >= s->vector;
    }
    if (vector && all > (double)nest->iters[k].extent) return true;
  }
  return false;
}

/* Cycles of the arithmetic, and of the loads that feed it. Results stay in registers over the reduction where there are
 * enough, and then a few do not hide the latency of adding to them. */
static double arithmetic_cycles(const struct search_draft *d, const struct shape *s, const double *numbers) {
  const struct search_machine *m = &d->machine;
  const struct draft_nest *nest = s->nest;
  uint32_t begin = tile_begin(s), first = begin < s->vector ? begin : s->vector;
  bool reduces = begin > 0 && nest->loops[begin - 1].reduces;
  double elements = product_of(s, s->vector, nest->loop_count), rows = product_of(s, first, s->vector);
  double vectors = ceil(elements * 8 * nest->accesses[0].bytes / m->vector_bits), results = rows * vectors;
  double loads = 0, stores = 0;
  for (uint32_t a = 0; a < nest->access_count; a++)
    *(nest->accesses[a].written ? &stores : &loads) += vectors_of(s, &nest->accesses[a], first, vectors);
  bool unrolled = nest->promoted || rows <= fmax(d->unroll ? numbers[d->unroll] : 0, m->unrolled);
  bool held = reduces && unrolled && results < m->registers - 2;
  double step = fmax(results / m->multiply_adds, (loads + (held ? 0 : 2 * stores)) / m->loads);
  if (reduces) step = fmax(step, held ? m->latency : m->latency + m->reload);
  if (is_guarded(s)) step *= m->guarded;
  return product_of(s, 0, first) * (step + m->iteration * (unrolled ? 1 : 1 + rows));
}

/* Cycles of what comes from each level to the one inside it: there stays what the loops inside touch, if it fits; an
 * array that a loop just outside does not move stays too. */
static double traffic_cycles(const struct search_draft *d, const struct shape *s, uint32_t outermost) {
  const struct draft_nest *nest = s->nest;
  double cycles = 0;
  for (int level = 0; level < SEARCH_LEVELS; level++) {
    uint32_t at = outermost;
    for (; at < nest->loop_count; at++) {
      double all = 0;
      for (uint32_t a = 0; a < nest->access_count; a++) all += s->bytes[at][a];
      if (all <= d->machine.cache_bytes[level]) break;
    }
    double bytes = 0;
    for (uint32_t a = 0; a < nest->access_count; a++) {
      double again = 1;
      bool moved = false;
      for (uint32_t i = at; i-- > outermost;) {
        moved = moved || (s->trips[i] > 1 && is_moved(nest, &nest->accesses[a], i));
        if (moved) again *= s->trips[i];
      }
      bytes += again * s->bytes[at][a] * (nest->accesses[a].written ? 2 : 1);
    }
    cycles += bytes / d->machine.bytes_a_cycle[level];
  }
  return cycles * product_of(s, 0, outermost);
}

/* A nest that follows another's tiles moves what that one touches, each time that the loops around both go on. */
static double copy_cycles(const struct search_draft *d, const struct shape *s, const struct draft_nest *nest) {
  return product_of(s, 0, nest->at) * s->bytes[nest->at][nest->access] * d->machine.copy;
}

static double waves(const struct search_draft *d, const struct shape *s) {
  double chunks = product_of(s, 0, s->parallel);
  return s->parallel ? ceil(chunks / d->machine.cores) / chunks : 1;
}

double search_draft_cost(const struct search_draft *d, const int64_t *decisions) {
  double numbers[MOST_NUMBERS], cycles = 0;
  compute_numbers(d, decisions, numbers);
  for (uint32_t i = 0; i < d->nest_count; i++) {
    const struct draft_nest *nest = &d->nests[i];
    struct shape s;
    if (nest->follows) continue;
    shape_nest(nest, numbers, &s);
    find_parallel(d, numbers, &s);
    find_vector(d, &s);
    double own = arithmetic_cycles(d, &s, numbers) + traffic_cycles(d, &s, 0);
    for (uint32_t k = 0; k < d->nest_count; k++)
      if (d->nests[k].follows == nest) own += copy_cycles(d, &s, &d->nests[k]);
    cycles += own * waves(d, &s) + (s.parallel ? d->machine.parallel : 0);
  }
  return cycles;
}

/* ---- The best of many ---- */

/* What the innermost loops of the nests are: candidates with the same differ in what is around them only. */
static uint64_t register_tile(const struct search_draft *d, const int64_t *decisions) {
  double numbers[MOST_NUMBERS];
  uint64_t key = 1469598103934665603u;
  compute_numbers(d, decisions, numbers);
  for (uint32_t i = 0; i < d->nest_count; i++) {
    struct shape s;
    if (d->nests[i].follows) continue;
    shape_nest(&d->nests[i], numbers, &s);
    find_parallel(d, numbers, &s);
    find_vector(d, &s);
    for (uint32_t l = tile_begin(&s); l < d->nests[i].loop_count; l++)
      key = (key ^ (uint64_t)s.trips[l]) * 1099511628211u + l;
  }
  return key;
}

struct found {
  double cost;
  uint64_t tile;
  uint32_t width;
  int64_t *decisions;
};

struct finding {
  const struct search_draft *draft;
  uint32_t most, each; /* candidates wanted, and of one register tile */
  struct found *found;
  uint32_t count, room;
  double limit;    /* what costs as much or more is not among them */
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

static double offer(struct finding *f, const int64_t *decisions) {
  assert(f->count < f->room);
  const struct search_draft *d = f->draft;
  double cost = search_draft_cost(d, decisions);
  if (!(cost < f->limit)) return cost;
  if (f->count == f->room - 1) trim(f);
  uint32_t width = d->sketch->steps->decisions;
  struct found *x = &f->found[f->count++];
  *x = (struct found){cost, register_tile(d, decisions), width, malloc((width + 1) * sizeof *decisions)};
  if (!x->decisions) abort();
  memcpy(x->decisions, decisions, width * sizeof *decisions);
  return cost;
}

static void choose(const struct draft_draw *draw, uint32_t choice, int64_t *decisions) {
  assert(choice < draw->choices);
  memcpy(decisions + draw->decision, draw->values + (size_t)choice * draw->width, draw->width * sizeof *decisions);
}

static void enumerate(struct finding *f, uint32_t draw, int64_t *decisions) {
  const struct search_draft *d = f->draft;
  if (draw == d->draw_count) {
    offer(f, decisions);
    return;
  }
  for (uint32_t i = 0; i < d->draws[draw].choices; i++) {
    choose(&d->draws[draw], i, decisions);
    enumerate(f, draw + 1, decisions);
  }
}

/* One draw after the other takes its best choice, until none gets better. Returns how many candidates were seen. */
static uint64_t descend(struct finding *f, int64_t *decisions, double cost) {
  const struct search_draft *d = f->draft;
  uint64_t seen = 0;
  for (bool better = true; better;) {
    better = false;
    for (uint32_t k = 0; k < d->draw_count; k++) {
      const struct draft_draw *draw = &d->draws[k];
      assert(draw->width <= DRAFT_LOOPS);
      int64_t before[DRAFT_LOOPS];
      memcpy(before, decisions + draw->decision, draw->width * sizeof *before);
      for (uint32_t i = 0; i < draw->choices; i++, seen++) {
        choose(draw, i, decisions);
        double other = offer(f, decisions);
        if (other < cost)
          cost = other, better = true, memcpy(before, decisions + draw->decision, draw->width * sizeof *before);
      }
      memcpy(decisions + draw->decision, before, draw->width * sizeof *before);
    }
  }
  return seen;
}

enum { DESCEND_EVERY = 64 }; /* candidates that are drawn, and the best of them goes down */

static void draw_many(struct finding *f, uint64_t seed, uint64_t budget, int64_t *decisions) {
  const struct search_draft *d = f->draft;
  uint32_t width = d->sketch->steps->decisions;
  int64_t *best = malloc((width + 1) * sizeof *best);
  if (!best) abort();
  for (uint64_t seen = 0, number = 0; seen < budget;) {
    double least = INFINITY;
    for (int i = 0; i < DESCEND_EVERY; i++, seen++, number++) {
      for (uint32_t k = 0; k < d->draw_count; k++) {
        struct vm_stream stream = vm_stream_of(seed, number, k, 0);
        choose(&d->draws[k], vm_stream_below(&stream, d->draws[k].choices), decisions);
      }
      double cost = offer(f, decisions);
      if (cost < least) least = cost, memcpy(best, decisions, width * sizeof *best);
    }
    if (isfinite(least)) seen += descend(f, best, least);
  }
  free(best);
}

double search_draft_size(const struct search_draft *d) {
  double size = 1;
  for (uint32_t i = 0; i < d->draw_count; i++) size *= d->draws[i].choices;
  return size;
}

uint32_t search_draft_best(const struct search_draft *d, uint64_t seed, uint64_t budget, uint32_t most, uint32_t each,
                           struct search_drafted *out) {
  assert(most > 0 && each > 0 && out);
  struct finding f = {.draft = d, .most = most, .each = each, .room = 4 * most + 1024, .limit = INFINITY};
  uint32_t width = d->sketch->steps->decisions;
  int64_t *decisions = malloc((width + 1) * sizeof *decisions);
  f.found = malloc(f.room * sizeof *f.found);
  f.tiles = malloc(f.room * sizeof *f.tiles);
  f.of_tile = malloc(f.room * sizeof *f.of_tile);
  if (!decisions || !f.found || !f.tiles || !f.of_tile) abort();
  memcpy(decisions, d->sketch->decisions, width * sizeof *decisions);
  if (search_draft_size(d) <= (double)budget)
    enumerate(&f, 0, decisions);
  else
    draw_many(&f, seed, budget, decisions);
  trim(&f);
  for (uint32_t i = 0; i < f.count; i++) {
    out[i] = (struct search_drafted){f.found[i].cost, f.found[i].tile, vm_trace_copy(d->sketch)};
    memcpy(out[i].trace->decisions, f.found[i].decisions, width * sizeof *decisions);
    free(f.found[i].decisions);
  }
  free(f.found), free(f.tiles), free(f.of_tile);
  free(decisions);
  return f.count;
}
