/* What a candidate costs a GPU, in cycles of one multiprocessor, from its decisions alone.
 *
 * A kernel takes as long as the busiest multiprocessor works, or as what moves from the second level or from the
 * device's memory, whichever is more, and a part of the rest. A multiprocessor has as many blocks at a time as
 * registers, shared memory and threads allow; few warps with few accumulators each do not hide the latency of adding.
 * What is loaded from shared memory takes as many passes as its banks are asked twice, what comes from memory as many
 * bytes as whole sectors have. What a block may not have costs infinitely much. Numbers of rules/targets.lua were
 * fitted to what an H100 took for 710 candidates, most of them drawn at random, of 16 functions: of pairs of candidates
 * 92 % are in order (msched bench model).
 * Sources: Zhu et al., "ROLLER", OSDI 2022, section 4; CUDA C++ Programming Guide, "Compute Capabilities". */
#include "analytical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, BANK = 4, BANKS = 32, WIDEST = 16, MOST_WARP = 64 };

/* A nest that computes, as a candidate has it. */
struct work {
  const struct search_estimator *estimator;
  const struct search_gpu *gpu;
  const struct model_nest *nest;
  uint32_t number; /* of the nest */
  const double *numbers;
  struct model_shape shape;
  double blocks, threads, virtuals, warps; /* warps: of a block */
  uint32_t tile;                           /* the loops from here on are one step of a thread */
  double sums, steps;                      /* accumulators of a step, of all virtual threads; steps of a thread */
  double unrolled;                         /* steps that are unrolled side by side */
  double registers, shared;                /* of a thread, and bytes of a block */
  double passes;                           /* through shared memory and to the first level, of a warp's step */
  double loads;                            /* instructions of a warp's step */
  double fetches;                          /* cycles of a block's copies to shared memory, beside what is waited for */
  double waits;                            /* of a block, one after the other, for what arrives together */
  double rounds;                           /* and of a thread, from each of its copies to the next */
  double bytes;                            /* that come to a block from the second level */
  double near_bytes;                       /* of them, those of arrays that it holds anyway */
  double (*lanes)[MODEL_ITERS];            /* what each iteration variable is for each lane of a warp */
  uint32_t lane_count;                     /* 0: not found yet */
  bool ahead;                              /* copies to shared memory run ahead of what reads them */
  bool spread;                             /* nothing binds the nest: the rules will, along its innermost loops */
};

/* ---- Shape ---- */

/* What a loop covers of the iteration variables, times what is inside; a fused one by its parts, where known. */
static void cover(const struct work *w, uint32_t loop, double *tile) {
  const struct model_loop *l = &w->nest->loops[loop];
  double inner[MODEL_ITERS];
  memcpy(inner, tile, w->nest->iter_count * sizeof *inner);
  if (!l->part_count) model_grow_tile(w->nest, l, w->shape.trips[loop], inner, tile);
  for (uint32_t p = 0; p < l->part_count; p++) tile[l->part_iters[p]] *= w->numbers[l->parts[p]];
}

static double product_along(const struct work *w, int axis) {
  double product = 1;
  for (uint32_t i = 0; i < w->nest->loop_count; i++)
    if ((int)w->nest->loops[i].axis == axis) product *= w->shape.trips[i];
  return product;
}

/* The serial trips of loops in [first, end). */
static double serial(const struct work *w, uint32_t first, uint32_t end) {
  double product = 1;
  for (uint32_t i = first; i < end; i++)
    if (w->nest->loops[i].axis == MODEL_SERIAL) product *= w->shape.trips[i];
  return product;
}

/* Behind the innermost serial loop that reduces; where none does, behind the threads. */
static uint32_t find_tile(const struct work *w) {
  const struct model_nest *nest = w->nest;
  for (uint32_t i = nest->loop_count; i-- > 0;) {
    if (nest->loops[i].axis != MODEL_SERIAL) return i + 1;
    if (nest->loops[i].reduces && w->shape.trips[i] > 1) return i + 1;
  }
  return 0;
}

/* Iterations of a loop that touch other elements of the access: a fused one has those of its parts that move it. */
static double moving_trips(const struct work *w, const struct model_access *a, uint32_t loop) {
  const struct model_loop *l = &w->nest->loops[loop];
  double trips = 1;
  if (!l->part_count) return model_is_moved(w->nest, a, loop) ? w->shape.trips[loop] : 1;
  for (uint32_t p = 0; p < l->part_count; p++)
    for (uint32_t d = 0; d < a->rank; d++) {
      if (a->moves[d][l->part_iters[p]] == 0) continue;
      trips *= w->numbers[l->parts[p]];
      break;
    }
  return trips;
}

/* Elements of an access that a step of a thread, with all of its virtual threads, needs. */
static double needed(const struct work *w, const struct model_access *a) {
  double product = 1;
  for (uint32_t i = 0; i < w->nest->loop_count; i++) {
    bool inside = i >= w->tile && w->nest->loops[i].axis == MODEL_SERIAL;
    if (inside || w->nest->loops[i].axis == MODEL_VIRTUAL) product *= moving_trips(w, a, i);
  }
  return fmax(1, product / w->nest->team);
}

/* What the taps of a stencil make of that; a reduction's are counted by its loops. */
static double taps_of(const struct work *w, const struct model_access *a) {
  bool reduces = false;
  for (uint32_t i = 0; i < w->nest->loop_count; i++) reduces = reduces || w->nest->loops[i].reduces;
  return reduces ? 1 : model_taps(&w->shape, a, w->tile, w->nest->loop_count);
}

/* How far each iteration variable reaches in what a block touches while the serial loops from `at` on run. */
static void tile_of_block(const struct work *w, uint32_t at, double *tile) {
  for (uint32_t k = 0; k < w->nest->iter_count; k++) tile[k] = 1;
  for (uint32_t i = w->nest->loop_count; i-- > 0;) {
    int axis = w->nest->loops[i].axis;
    if (axis == MODEL_THREADS || axis == MODEL_VIRTUAL || (axis == MODEL_SERIAL && i >= at)) cover(w, i, tile);
  }
}

/* ---- A warp's access ---- */

/* Quotient and remainder of a whole number below 2^32, which a lane's digits are; most sizes are whole numbers too. */
static double take_digit(double *rest, double size) {
  double from = *rest;
  if (from < size) {
    *rest = 0;
    return from;
  }
  uint32_t whole = (uint32_t)size, all = (uint32_t)from;
  if ((double)whole != size || !whole) {
    *rest = floor(from / size);
    return fmod(from, size);
  }
  *rest = all / whole;
  return all % whole;
}

/* Whether threads lie side by side along the loop. */
static bool is_along_threads(const struct work *w, const struct model_loop *l) {
  return l->axis == MODEL_THREADS || (w->spread && !l->reduces);
}

/* What each iteration variable is for a lane: its digits along the loops of threads, the innermost first. */
static void place_lane(const struct work *w, double lane, double *value) {
  const struct model_nest *nest = w->nest;
  for (uint32_t k = 0; k < nest->iter_count; k++) value[k] = 0;
  for (uint32_t i = nest->loop_count; i-- > 0 && lane > 0;) {
    if (!is_along_threads(w, &nest->loops[i]) || w->shape.trips[i] == 1) continue;
    double digit = take_digit(&lane, w->shape.trips[i]), steps[MODEL_ITERS];
    const struct model_loop *l = &nest->loops[i];
    memcpy(steps, w->shape.tiles[i + 1], sizeof steps);
    for (uint32_t p = l->part_count; p-- > 0 && digit > 0;) { /* of one variable, the inner parts move it less */
      double extent = w->numbers[l->parts[p]], *step = &steps[l->part_iters[p]];
      value[l->part_iters[p]] += take_digit(&digit, extent) * *step;
      *step *= extent;
    }
    for (uint32_t k = nest->iter_count; k-- > 0 && !l->part_count && digit > 0;) { /* fused ones fill the last first */
      if (!(l->iters >> k & 1)) continue;
      double room = fmax(1, w->shape.tiles[i][k] / w->shape.tiles[i + 1][k]);
      value[k] += take_digit(&digit, room) * w->shape.tiles[i + 1][k];
    }
  }
}

/* Lanes are the same for all of a nest's accesses. */
static void place_lanes(struct work *w) {
  w->lane_count = (uint32_t)fmin(w->threads, w->gpu->warp);
  assert(w->lane_count <= MOST_WARP);
  for (uint32_t l = 0; l < w->lane_count; l++) place_lane(w, l, w->lanes[l]);
}

/* Bytes from the access's first to each lane's, where dimensions lie as far apart as `strides` say. */
static uint32_t places_of_warp(struct work *w, const struct model_access *a, const double *strides, int64_t *out) {
  double steps[MODEL_ITERS] = {0};
  uint32_t moved[MODEL_ITERS] = {0}, count = 0;
  if (!w->lane_count) place_lanes(w);
  for (uint32_t k = 0; k < w->nest->iter_count; k++) {
    double step = 0;
    for (uint32_t d = 0; d < a->rank; d++) step += (double)a->moves[d][k] * strides[d];
    if (step != 0) moved[count] = k, steps[count++] = step * a->bytes;
  }
  assert(count <= w->nest->iter_count);
  for (uint32_t l = 0; l < w->lane_count; l++) {
    double at = 0;
    for (uint32_t m = 0; m < count; m++) at += steps[m] * w->lanes[l][moved[m]];
    out[l] = (int64_t)at;
  }
  return w->lane_count;
}

static int by_place(const void *x, const void *y) {
  const int64_t *a = x, *b = y;
  return (*a > *b) - (*a < *b);
}

/* Steps that the unroll pass, or the compiler that it asks, repeats side by side: of reductions whose stores are no
 * more than the pragma names, as many iterations as divide the last. */
static double find_unrolled(const struct work *w) {
  uint32_t draw = w->estimator->unroll;
  double most = draw ? w->numbers[draw] : 0, repeated = 1;
  for (uint32_t i = w->tile; i-- > 0 && w->nest->loops[i].axis == MODEL_SERIAL && !w->nest->loops[i].ahead;) {
    double trips = w->shape.trips[i], part = fmin(trips, floor(most / fmax(1, w->sums * repeated)));
    while (part > 1 && fmod(trips, part) > 0) part--;
    repeated *= fmax(1, part);
    if (part < trips) break;
  }
  return repeated;
}

/* Neighbours along a reduction that a thread loads by one instruction, where steps are unrolled. */
static double run_of_steps(const struct work *w, const struct model_access *a) {
  double most = WIDEST / a->bytes;
  uint32_t i = w->tile;
  if (!i || w->unrolled <= 1 || !w->nest->loops[i - 1].reduces) return 1;
  for (uint32_t k = 0; k < w->nest->iter_count; k++) {
    if (w->nest->loops[i - 1].iters != 1u << k || a->steps[k] != 1) continue;
    double steps = fmin(w->unrolled, w->shape.trips[i - 1]);
    while (most > 1 && fmod(steps, most) > 0) most /= 2;
    return fmax(1, most);
  }
  return 1;
}

/* Elements side by side that a thread's step has of the access, a power of two: as many are one instruction. */
static double run_of(const struct work *w, const struct model_access *a) {
  const struct model_nest *nest = w->nest;
  double run = 1;
  for (uint32_t i = nest->loop_count; i-- > w->tile && !w->spread;) {
    if (w->shape.trips[i] <= 1 || nest->loops[i].axis != MODEL_SERIAL || !model_is_moved(nest, a, i)) continue;
    for (uint32_t k = 0; k < nest->iter_count; k++)
      if (nest->loops[i].iters == 1u << k && a->steps[k] == 1) run = w->shape.trips[i];
    break;
  }
  double most = WIDEST / a->bytes;
  while (most > 1 && fmod(run, most) > 0) most /= 2;
  return fmax(1, most);
}

/* Whether each lane loads what the lane so far from it does. */
static bool is_paired(const int64_t *places, uint32_t lanes, uint32_t apart) {
  for (uint32_t l = 0; l < lanes; l++)
    if ((l ^ apart) < lanes && places[l] != places[l ^ apart]) return false;
  return true;
}

/* Passes of a warp's load of so many bytes a lane: each bank gives one word a pass, to all who want it. Lanes go in
 * groups of those whose words fill the banks, and twice as many where two each load the same. */
static double bank_passes(const int64_t *places, uint32_t lanes, double bytes) {
  uint32_t words = (uint32_t)fmax(1, bytes / BANK), group = BANKS / words;
  double passes = 0;
  if (words > 1 && (is_paired(places, lanes, 1) || is_paired(places, lanes, 2))) group *= 2;
  for (uint32_t first = 0; first < lanes; first += group) {
    int64_t seen[BANKS], distinct = 0;
    uint32_t asked[BANKS] = {0}, most = 1;
    for (uint32_t l = first; l < lanes && l < first + group; l++) {
      int64_t word = places[l] / BANK;
      bool again = false;
      for (int64_t s = 0; s < distinct; s++) again = again || seen[s] == word;
      if (again) continue;
      seen[distinct++] = word;
      for (uint32_t k = 0; k < words; k++) {
        uint32_t *bank = &asked[(uint64_t)(word + k) % BANKS];
        if (++*bank > most) most = *bank;
      }
    }
    passes += most;
  }
  return passes;
}

/* Sectors that a warp's access of so many bytes a lane touches. */
static double sectors_of(int64_t *places, uint32_t lanes, double bytes) {
  double sectors = 0;
  int64_t next = INT64_MIN;
  qsort(places, lanes, sizeof *places, by_place);
  for (uint32_t l = 0; l < lanes; l++) {
    int64_t first = places[l] / SECTOR, last = (places[l] + (int64_t)bytes - 1) / SECTOR;
    if (first < next) first = next;
    if (last >= first) sectors += (double)(last - first + 1), next = last + 1;
  }
  return sectors;
}

/* ---- Accesses ---- */

/* Whether the row that a thread copies from is a quotient for each thread: the rows of a tile and what all copy at once
 * are no multiples of one another. */
static bool is_divided(const struct model_access *a, const double *tile, double at_once) {
  double row = 1;
  for (uint32_t d = a->rank; d-- > 1;) {
    row *= model_width(a, tile, d);
    if (fmod(row, at_once) > 0 && fmod(at_once, row) > 0) return true;
  }
  return false;
}

/* What a thread copies one after the other, so many bytes at once. Under a condition that differs from thread to
 * thread, as a padding's does where each divides for its row, no load begins before the one before it is there, but for
 * asynchronous copies. */
static void add_rounds(struct work *w, const struct model_nest *copy, bool divides, double rounds, double bytes,
                       uint32_t ahead) {
  const struct search_gpu *g = w->gpu;
  bool guarded = copy && copy->branches > 0, divided = guarded && divides;
  double plain = divided ? g->divided_plain : guarded ? g->guarded_plain : g->plain_wait;
  w->fetches += rounds * w->warps * (2 * fmax(1, bytes / BANK) + (divided ? g->divided_copy : 0));
  w->rounds += rounds * ((divided ? g->divided_wait : g->copy_wait) + (ahead ? 0 : plain));
}

/* How long a dimension is in shared memory, where rows are laid apart: as tir_pad_rows has it. */
static double laid_width(const struct model_nest *copy, uint32_t d, double width, double inner) {
  if (!copy || copy->align_factor <= 0 || d != copy->align_dimension) return width;
  for (double more = 0; more < fmin((double)copy->align_factor, TIR_MOST_APART); more++)
    if (fmod((width + more) * inner - (double)copy->align_offset, (double)copy->align_factor) == 0) return width + more;
  return width;
}

/* What threads copy to shared memory for the nest, again whenever the loops around both go on. */
static void add_copied(struct work *w, const struct model_access *a, const struct model_nest *copy, uint32_t at) {
  double tile[MODEL_ITERS], strides[MODEL_RANK], elements = 1, laid = 1, times = serial(w, 0, at);
  int64_t places[MOST_WARP] = {0};
  tile_of_block(w, at, tile);
  for (uint32_t d = a->rank; d-- > 0;) {
    double width = model_width(a, tile, d);
    strides[d] = laid;
    elements *= width, laid *= laid_width(copy, d, width, laid);
  }
  double row = a->rank ? model_width(a, tile, a->rank - 1) * a->bytes : a->bytes;
  double lanes = copy && copy->lanes ? w->numbers[copy->lanes] : 1;
  if (fmod(row, lanes * a->bytes) > 0 || fmod(WIDEST, lanes * a->bytes) > 0) lanes = 1;
  double bytes = elements * ceil(row / SECTOR) * SECTOR / row * a->bytes;
  uint32_t ahead = at > 0 && w->shape.trips[at - 1] > 1 ? w->nest->loops[at - 1].ahead : 0;
  w->shared += laid * a->bytes * (ahead ? ahead + 1 : 1);
  w->ahead = w->ahead || ahead > 0;
  w->bytes += times * bytes;
  add_rounds(w, copy, is_divided(a, tile, lanes * w->threads), times * ceil(elements / (lanes * w->threads)),
             lanes * a->bytes, ahead);
  w->waits = fmax(w->waits, times * (w->gpu->barrier + (ahead ? 0 : w->gpu->memory_latency)));
  double run = run_of(w, a), along = run > 1 ? 1 : run_of_steps(w, a), own = needed(w, a);
  double loads = own * taps_of(w, a) / (run * along);
  w->loads += loads;
  w->passes += loads * bank_passes(places, places_of_warp(w, a, strides, places), run * along * a->bytes);
  w->registers += (along > 1 ? own * along : fmin(own, run * 2)) * a->bytes / BANK;
}

/* Bytes side by side that a thread touches in all, at most a sector. */
static double reach_of(const struct work *w, const struct model_access *a) {
  double reach = a->bytes;
  for (uint32_t i = w->nest->loop_count; i-- > 0;)
    for (uint32_t k = 0; k < w->nest->iter_count && w->nest->loops[i].axis == MODEL_SERIAL; k++) {
      bool along = w->nest->loops[i].iters == 1u << k && a->steps[k] == 1;
      if (along && w->shape.tiles[i + 1][k] * a->bytes <= reach) reach *= w->shape.trips[i]; /* no threads between */
    }
  return fmin(reach, SECTOR);
}

/* What each thread loads for itself, or stores: what it wants later of a sector it finds in the first level. */
static void add_direct(struct work *w, const struct model_access *a, double times) {
  double strides[MODEL_RANK], stride = 1, run = run_of(w, a), own = needed(w, a);
  int64_t places[MOST_WARP] = {0};
  for (uint32_t d = a->rank; d-- > 0; stride *= (double)a->extents[d]) strides[d] = stride;
  uint32_t lanes = places_of_warp(w, a, strides, places);
  double sectors = sectors_of(places, lanes, run * a->bytes), own_bytes = fmin(run * a->bytes, SECTOR);
  double loads = own * taps_of(w, a) / run;
  w->loads += loads;
  w->passes += loads * fmax(1, sectors / (SECTOR / 8));
  w->bytes += times * w->warps * own / run * sectors * SECTOR * own_bytes / fmax(own_bytes, reach_of(w, a));
  w->registers += fmin(own, 4) * a->bytes / BANK;
}

/* A nest that brings what a thread reads to its registers. */
static bool fills_registers(const struct model_nest *nest) {
  bool reduces = false, reads = false;
  for (uint32_t i = 0; i < nest->loop_count; i++) reduces = reduces || nest->loops[i].reduces;
  for (uint32_t i = 1; i < nest->access_count; i++) reads = reads || nest->accesses[i].memory == MODEL_DEVICE;
  return !reduces && reads && nest->accesses[0].memory == MODEL_LOCAL;
}

/* The nest's threads are all bound by its outermost loops. */
static bool binds_within(const struct model_nest *nest, uint32_t loops) {
  for (uint32_t i = loops; i < nest->loop_count; i++)
    if (nest->loops[i].axis != MODEL_SERIAL) return false;
  return true;
}

/* How many loops are around a nest and the copy to registers of what it reads, if it copies again and again as it sums
 * up; 0: it does not. */
static uint32_t streamed_in(const struct search_estimator *d, const struct model_nest *nest, uint32_t copy) {
  uint32_t around = model_shared(d, (uint32_t)(nest - d->nests), copy);
  bool again = false;
  for (uint32_t i = 0; i < around; i++)
    again = again || (nest->loops[i].reduces && nest->loops[i].axis == MODEL_SERIAL);
  again = again && binds_within(nest, around) && binds_within(&d->nests[copy], around);
  return again && fills_registers(&d->nests[copy]) ? around : 0;
}

static double array_bytes(const struct model_access *a) {
  double bytes = a->bytes;
  for (uint32_t d = 0; d < a->rank; d++) bytes *= (double)a->extents[d];
  return bytes;
}

static bool shape_work(struct work *w);

/* What threads copy to registers as the nest sums up: its loads. Those of the innermost of the loops around both, which
 * is unrolled, are under way together. */
static void add_streamed(struct work *w, uint32_t number, uint32_t around) {
  double lanes[MOST_WARP][MODEL_ITERS];
  struct work c = {.estimator = w->estimator, .gpu = w->gpu, .numbers = w->numbers, .lanes = lanes};
  c.nest = &w->estimator->nests[c.number = number];
  (void)shape_work(&c); /* its loops are shorter where they do not move it */
  c.threads = w->threads, c.warps = w->warps, c.steps = serial(w, 0, c.tile);
  for (uint32_t i = 1; i < c.nest->access_count; i++) {
    const struct model_access *a = &c.nest->accesses[i];
    double before = c.bytes, again = 1;
    if (a->memory != MODEL_DEVICE) continue;
    add_direct(&c, a, c.steps);
    for (uint32_t l = 0; l < c.nest->loop_count; l++)
      if (c.nest->loops[l].axis == MODEL_THREADS && !model_is_moved(c.nest, a, l)) again *= c.shape.trips[l];
    double bytes = (c.bytes - before) / fmin(again, c.warps); /* what other warps want the first level has */
    w->bytes += bytes;
    if (array_bytes(a) <= w->gpu->l2_bytes / 4) w->near_bytes += bytes;
  }
  w->loads += c.loads * c.steps / w->steps;
  w->passes += c.passes * c.steps / w->steps;
  w->registers += c.sums * c.nest->accesses[0].bytes / BANK;
  uint32_t last = around;
  while (last > 1 && w->nest->loops[last - 1].axis != MODEL_SERIAL) last--;
  w->waits = fmax(w->waits, serial(w, 0, last - 1) * w->gpu->memory_latency);
}

/* Accumulators, that another nest writes out once: of those that lie side by side in a thread several at once. Each
 * store takes as many passes as its sectors fill lines. */
static void add_results(struct work *w, const struct model_access *a) {
  double strides[MODEL_RANK], stride = 1, run = run_of(w, a);
  int64_t places[MOST_WARP] = {0};
  for (uint32_t d = a->rank; d-- > 0; stride *= (double)a->extents[d]) strides[d] = stride;
  uint32_t lanes = places_of_warp(w, a, strides, places);
  double sectors = sectors_of(places, lanes, run * a->bytes);
  w->fetches += w->warps * w->sums / run * fmax(1, sectors / (SECTOR / 8));
  w->bytes += w->sums * w->threads * a->bytes;
}

/* Steps of a thread at each of which it writes: of a reduction it does when all is summed up. */
static double writing_steps(const struct work *w) {
  for (uint32_t i = 0; i < w->nest->loop_count; i++)
    if (w->nest->loops[i].reduces) return 1;
  return w->steps;
}

/* Blocks of a cluster reduce together: no others do. */
static bool joins_blocks(const struct work *w) {
  for (uint32_t i = 0; i < w->nest->loop_count; i++)
    if (w->nest->loops[i].reduces && w->nest->loops[i].axis == MODEL_BLOCKS) return true;
  return false;
}

static const struct model_nest *copy_of(const struct search_estimator *d, const struct model_access *a) {
  return a->copy ? &d->nests[a->copy - 1] : NULL;
}

static void add_accesses(struct work *w) {
  const struct search_estimator *d = w->estimator;
  for (uint32_t i = 0; i < w->nest->access_count; i++) {
    const struct model_access *a = &w->nest->accesses[i];
    const struct model_nest *copy = copy_of(d, a);
    if (a->memory == MODEL_SHARED && !a->written)
      add_copied(w, a, copy, copy ? model_shared(d, w->number, (uint32_t)(copy - d->nests)) : 0);
    else if (a->memory == MODEL_DEVICE)
      add_direct(w, a, a->written ? writing_steps(w) : w->steps);
    else if (!a->written && copy && streamed_in(d, w->nest, a->copy - 1))
      add_streamed(w, a->copy - 1, streamed_in(d, w->nest, a->copy - 1));
    else if (a->written && w->nest->team <= 1)
      add_results(w, a);
  }
  if (joins_blocks(w)) w->waits += w->gpu->cluster_join;
}

/* ---- A kernel ---- */

/* Threads, as the rules will bind a nest that nothing binds. */
static void spread_threads(struct work *w) {
  enum { BOUND_THREADS = 256, MOST_BLOCKS = 256 };
  double all = 1;
  for (uint32_t i = 0; i < w->nest->loop_count; i++)
    if (!w->nest->loops[i].reduces) all *= w->shape.trips[i];
  w->threads = fmin(all, BOUND_THREADS), w->blocks = fmin(ceil(all / w->threads), MOST_BLOCKS);
}

/* Results that a thread has in registers: of a step, or where they stay with the thread until it has summed them all
 * up, of all its steps. */
static double held_results(const struct work *w) {
  double all = w->virtuals;
  if (w->nest->team > 1) return 0; /* the rule holds fragments against the registers that there are */
  if (w->nest->accesses[0].memory != MODEL_LOCAL) return w->sums;
  for (uint32_t i = 0; i < w->nest->loop_count; i++)
    if (w->nest->loops[i].axis == MODEL_SERIAL && !w->nest->loops[i].reduces) all *= w->shape.trips[i];
  return all;
}

/* A warp, or a warp group, has a fragment together: its threads share the elements. */
static void share_fragment(struct work *w) {
  double of_step = fmin(w->sums, w->nest->team);
  w->sums /= of_step;
  w->steps /= w->nest->team / of_step;
  w->threads *= w->nest->team;
}

static bool shape_work(struct work *w) {
  model_shape_loops(w->nest, w->numbers, &w->shape);
  for (uint32_t i = w->nest->loop_count; i-- > 0;) {
    if (w->nest->loops[i].part_count) w->shape.trips[i] = w->numbers[w->nest->loops[i].extent];
    memcpy(w->shape.tiles[i], w->shape.tiles[i + 1], sizeof w->shape.tiles[i]);
    cover(w, i, w->shape.tiles[i]);
  }
  w->blocks = product_along(w, MODEL_BLOCKS), w->threads = product_along(w, MODEL_THREADS);
  double virtuals = product_along(w, MODEL_VIRTUAL);
  w->virtuals = virtuals > TIR_MOST_VIRTUAL ? 1 : virtuals;
  w->tile = find_tile(w);
  w->sums = w->virtuals * serial(w, w->tile, w->nest->loop_count);
  w->steps = serial(w, 0, w->tile) * virtuals / w->virtuals;
  w->unrolled = find_unrolled(w);
  bool bound = false;
  for (uint32_t i = 0; i < w->nest->loop_count; i++) bound = bound || w->nest->loops[i].axis != MODEL_SERIAL;
  w->spread = !bound;
  if (bound) share_fragment(w);
  if (!bound) {
    double all = w->sums * w->steps;
    spread_threads(w);
    w->steps = fmax(1, all / (w->sums * w->blocks * w->threads));
  }
  w->warps = ceil(w->threads / w->gpu->warp);
  w->registers = w->gpu->used_registers + held_results(w) * w->nest->accesses[0].bytes / BANK;
  return w->threads <= w->gpu->block_threads;
}

/* Blocks that a multiprocessor has at a time, and what of a thread's registers is not there. */
static double find_resident(const struct work *w, double *spilled) {
  const struct search_gpu *g = w->gpu;
  double threads = w->warps * g->warp, most = fmin(g->own_registers, floor(g->sm_registers / threads / 8) * 8);
  double registers = fmin(ceil(w->registers / 8) * 8, most);
  *spilled = fmax(0, w->registers - most);
  double resident = fmin(g->sm_blocks, floor(g->sm_threads / threads));
  resident = fmin(resident, floor(g->sm_registers / (registers * threads)));
  if (w->shared > 0) resident = fmin(resident, floor(g->sm_shared / w->shared));
  return fmax(1, resident);
}

/* Whether nothing in the nest waits for memory but what others wait for already: it is all in registers, or loads to
 * registers begin right after others have. */
static bool waits_with_others(const struct work *w) {
  const struct search_estimator *d = w->estimator;
  bool all = w->nest->access_count > 0, before = false;
  for (uint32_t i = 0; i < w->nest->access_count; i++) all = all && w->nest->accesses[i].memory == MODEL_LOCAL;
  for (uint32_t k = 0; k < w->number && !before; k++)
    before = model_shared(d, w->number, k) > 0 && fills_registers(&d->nests[k]);
  return before && (all || fills_registers(w->nest));
}

/* Cycles of a multiprocessor that has so many of the kernel's blocks, one after the other. */
static double busy_cycles(const struct work *w, double blocks) {
  enum { CHAINS = 8 };         /* additions that a warp has under way at most */
  const double AT_ONCE = 0.02; /* of such waits */
  const struct search_gpu *g = w->gpu;
  const struct model_nest *nest = w->nest;
  double spilled, resident = fmin(find_resident(w, &spilled), blocks);
  double each = nest->simple + nest->branches + nest->calls * g->call + nest->divisions * g->division;
  double arithmetic = w->sums * each / g->multiply_adds, issued = (w->sums * each + w->loads) / g->multiply_adds;
  double hidden = fmin(1, resident * w->warps * fmin(w->sums, CHAINS) / (g->multiply_adds * g->latency));
  double computed = arithmetic / hidden, step = fmax(fmax(computed, w->passes), issued);
  step += g->exposed * fmin(computed, w->passes) + 2 * spilled * g->spill;
  double latency_of_loads = w->loads > 0 ? g->shared_latency / w->unrolled : 0;
  step = fmax(step, (latency_of_loads + w->sums * each) / (resident * w->warps)); /* a warp's step by itself */
  /* Where nothing else is waited for, warps may wait at once for what they load before their unrolled steps. */
  if (w->ahead) step += AT_ONCE * latency_of_loads / (resident * w->warps);
  double block = w->warps * w->steps * step + w->fetches;
  double latency = waits_with_others(w) ? 0 : g->memory_latency;
  double waits = ceil(blocks / resident) * (w->waits + w->rounds + latency);
  double most = fmax(blocks * block, waits);
  return most + g->exposed * (blocks * block + waits - most);
}

/* Whether a nest before this one, in the same kernel, has touched what an access does, and the second level holds what
 * all blocks that run have of it. */
static bool is_near(const struct work *w, const struct model_access *a, double bytes) {
  const struct search_estimator *d = w->estimator;
  double running = fmin(w->blocks, w->gpu->sms * fmax(1, floor(w->gpu->sm_threads / (w->warps * w->gpu->warp))));
  bool before = false;
  for (uint32_t k = 0; k < w->number && !before; k++)
    for (uint32_t i = 0; i < d->nests[k].access_count; i++)
      before = before || (model_shared(d, w->number, k) > 0 && d->nests[k].accesses[i].buffer == a->buffer);
  return before && bytes * running / w->blocks <= w->gpu->l2_bytes;
}

/* Bytes that must come from the device's memory: each array once, and more often where the second level does not hold
 * what the kernel has. */
static double far_bytes(const struct work *w) {
  double all = 0;
  for (uint32_t i = 0; i < w->nest->access_count; i++) {
    const struct model_access *a = &w->nest->accesses[i];
    if (w->nest->team > 1 && a->memory == MODEL_LOCAL) continue; /* fragments: no other memory has them */
    bool streamed = a->memory == MODEL_LOCAL && a->copy && streamed_in(w->estimator, w->nest, a->copy - 1);
    if (streamed || !is_near(w, a, array_bytes(a))) all += array_bytes(a);
  }
  if (all <= w->gpu->l2_bytes) return all;
  return fmin(fmax(all, w->blocks * (w->bytes - w->near_bytes)), all * fmax(1, w->blocks / w->gpu->sms));
}

static double work_cycles(const struct work *w) {
  const struct search_gpu *g = w->gpu;
  double blocks = ceil(w->blocks / g->sms), near = w->blocks * w->bytes;
  double parts[] = {busy_cycles(w, blocks), fmax(near / g->l2_bytes_a_cycle, blocks * w->bytes / g->sm_bytes_a_cycle),
                    far_bytes(w) / g->dram_bytes_a_cycle};
  double most = 0, all = 0;
  for (int i = 0; i < 3; i++) most = fmax(most, parts[i]), all += parts[i];
  return most + g->exposed * (all - most);
}

/* A nest that another reads what it copied to registers of as it sums up. */
static bool is_streamed(const struct search_estimator *d, const struct model_nest *nest) {
  uint32_t number = (uint32_t)(nest - d->nests);
  for (uint32_t k = 0; k < d->nest_count; k++)
    for (uint32_t i = 1; i < d->nests[k].access_count; i++)
      if (d->nests[k].accesses[i].copy == number + 1 && streamed_in(d, &d->nests[k], number)) return true;
  return false;
}

/* A nest that only brings what another one needs, or writes out what one has summed up: counted where that is. */
static bool moves_only(const struct search_estimator *d, const struct model_nest *nest) {
  bool reduces = false;
  if (!nest->access_count || is_streamed(d, nest)) return true;
  for (uint32_t i = 0; i < nest->loop_count; i++) reduces = reduces || nest->loops[i].reduces;
  if (nest->accesses[0].memory == MODEL_SHARED && !reduces) return true;
  if (nest->team > 1) return false; /* what is computed of fragments stays in registers */
  for (uint32_t i = 1; i < nest->access_count; i++) {
    const struct model_access *a = &nest->accesses[i];
    if (a->memory == MODEL_LOCAL && copy_of(d, a)) return !streamed_in(d, nest, a->copy - 1);
  }
  return false;
}

/* A kernel begins with each nest that has no loop around it with one before. */
static bool begins(const struct search_estimator *d, uint32_t nest) {
  bool alone = d->nests[nest].access_count > 0;
  for (uint32_t k = 0; k < nest; k++) alone = alone && !model_shared(d, nest, k);
  return alone;
}

/* Cycles of a nest as a candidate has it; INFINITY: a block may not have so much. */
static double nest_cycles(const struct search_estimator *d, uint32_t number, const double *numbers) {
  double lanes[MOST_WARP][MODEL_ITERS];
  struct work w = {.estimator = d,
                   .gpu = &d->machine.gpu,
                   .nest = &d->nests[number],
                   .number = number,
                   .numbers = numbers,
                   .lanes = lanes};
  if (!shape_work(&w)) return INFINITY;
  add_accesses(&w);
  if (w.shared > w.gpu->block_shared) return INFINITY;
  return work_cycles(&w);
}

/* ---- What is known already ----
 * Candidates that are estimated one after another mostly differ in one draw, and that in one nest: the others cost what
 * they did. */

enum { REMEMBERED = 128 /* of a nest; a power of two */ };
struct model_memo {
  uint64_t key; /* 0: nothing is remembered here */
  double cycles;
};

/* ---- What tensor cores read ----
 * Products of fragments are no nests: what copies to shared memory for them alone is counted here, beside the products
 * themselves. */

static bool feeds(const struct search_estimator *d, uint32_t nest) {
  if (d->multiplying <= 0 || !d->nests[nest].access_count || d->nests[nest].accesses[0].memory != MODEL_SHARED)
    return false;
  for (uint32_t k = 0; k < d->nest_count; k++)
    for (uint32_t i = 0; i < d->nests[k].access_count; i++)
      if (d->nests[k].accesses[i].copy == nest + 1) return false;
  return true;
}

/* Bytes of the arrays that a copy reads, each once. */
static double read_bytes(const struct model_nest *copy) {
  double all = 0;
  for (uint32_t i = 0; i < copy->access_count; i++) {
    const struct model_access *a = &copy->accesses[i];
    if (!a->written && a->memory == MODEL_DEVICE) all += array_bytes(a);
  }
  return all;
}

/* What all copies of a kernel come to. */
struct feed {
  double bytes, tile_bytes, far; /* of a block in all, of its tiles that are there at once, of all arrays */
  double blocks, warps, steps;   /* of the kernel, of a block; times that a block waits for tiles */
};

static void add_feed(struct feed *feed, const struct search_estimator *d, uint32_t number, const double *numbers) {
  const struct model_nest *nest = &d->nests[number];
  struct work w = {.estimator = d, .gpu = &d->machine.gpu, .nest = nest, .number = number, .numbers = numbers};
  double bytes = nest->accesses[0].bytes, tile = bytes, steps = 1;
  uint32_t ahead = 0, at = 0;
  model_shape_loops(nest, numbers, &w.shape);
  for (uint32_t i = 0; i < nest->loop_count; i++) {
    if (nest->loops[i].part_count) w.shape.trips[i] = numbers[nest->loops[i].extent];
    if (nest->loops[i].ahead) ahead = nest->loops[i].ahead, at = i + 1;
  }
  for (uint32_t i = 0; i < nest->loop_count; i++)
    if (nest->loops[i].axis == MODEL_SERIAL) *(i < at ? &steps : &tile) *= w.shape.trips[i];
  feed->bytes += steps * tile;
  feed->tile_bytes += tile * (ahead + 1);
  feed->steps = fmax(feed->steps, steps);
  feed->far += read_bytes(nest);
  feed->blocks = fmax(feed->blocks, product_along(&w, MODEL_BLOCKS));
  feed->warps = fmax(feed->warps, product_along(&w, MODEL_THREADS));
}

/* Products, and what is copied for them, of the busiest multiprocessor: side by side. A warp has the tensor cores of a
 * quarter of it, and waits for its tiles. */
static double fed_cycles(const struct search_estimator *d, const double *numbers) {
  enum { QUARTERS = 4 };
  const struct search_gpu *g = &d->machine.gpu;
  struct feed feed = {.steps = 1};
  double team = 1;
  for (uint32_t i = 0; i < d->nest_count; i++) {
    if (d->nests[i].feeds) add_feed(&feed, d, i, numbers);
    team = fmax(team, d->nests[i].team);
  }
  if (feed.blocks < 1) return d->multiplying;
  if (feed.tile_bytes > g->block_shared) return INFINITY;
  double warps = fmax(1, feed.warps) * team / g->warp, rounds = ceil(feed.blocks / g->sms);
  double resident = fmin(fmin(rounds, g->sm_blocks), floor(g->sm_shared / fmax(feed.tile_bytes, 1)));
  double busy = d->multiplying * g->sms * rounds / feed.blocks / fmin(1, fmax(1, resident) * warps / QUARTERS);
  double all = feed.blocks * feed.bytes,
         near = fmax(all / g->l2_bytes_a_cycle, rounds * feed.bytes / g->sm_bytes_a_cycle);
  double far = feed.far > g->l2_bytes ? fmin(fmax(all, feed.far), feed.far * fmax(1, feed.blocks / g->sms)) : feed.far;
  double waits = ceil(rounds / fmax(1, resident)) * feed.steps * g->memory_latency;
  double parts[] = {busy, fmax(near, waits), far / g->dram_bytes_a_cycle}, most = 0, sum = 0;
  for (int i = 0; i < 3; i++) most = fmax(most, parts[i]), sum += parts[i];
  return most + g->exposed * (sum - most);
}

void model_begin_gpu(struct search_estimator *d) {
  d->memo = calloc((size_t)d->nest_count * REMEMBERED + 1, sizeof *d->memo);
  if (!d->memo) abort();
  for (uint32_t i = 0; i < d->nest_count; i++) {
    d->nests[i].counts = !moves_only(d, &d->nests[i]);
    d->nests[i].begins = begins(d, i);
    d->nests[i].feeds = feeds(d, i);
  }
}

static uint64_t mix(uint64_t key, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  key = (key ^ bits) * 0x9E3779B97F4A7C15u;
  return key ^ key >> 29;
}

/* Stands for all numbers that the nest's cost depends on; never 0. */
static uint64_t key_of(const struct search_estimator *d, const struct model_nest *nest, const double *numbers) {
  uint64_t key = 1;
  for (uint32_t i = 0; i < nest->loop_count; i++) {
    key = mix(key, numbers[nest->loops[i].extent]);
    for (uint32_t p = 0; p < nest->loops[i].part_count; p++) key = mix(key, numbers[nest->loops[i].parts[p]]);
  }
  if (d->unroll) key = mix(key, numbers[d->unroll]);
  for (uint32_t i = 0; i < nest->access_count; i++) {
    const struct model_nest *copy = copy_of(d, &nest->accesses[i]);
    if (copy && copy->lanes) key = mix(key, numbers[copy->lanes]);
  }
  return key | 1;
}

/* Of products and what comes between them, cycles that overlaps hide: each hides its part of what is left. */
static double hidden_cycles(const struct search_estimator *d, const double *numbers, double products, double between) {
  const struct search_gpu *g = &d->machine.gpu;
  double left = 1;
  if (d->overlap && numbers[d->overlap] == 1) left *= 1 - g->overlap_hides;
  if (d->turns && numbers[d->turns] == 1) left *= 1 - g->turns_hide;
  return (1 - left) * fmin(products, between);
}

double model_gpu_cost(const struct search_estimator *d, const int64_t *decisions) {
  double numbers[MODEL_NUMBERS], cycles = 0, products, between = 0;
  bool placed = false;
  assert(d->machine.gpu.sms > 0 && d->number_count <= MODEL_NUMBERS);
  if (d->product_count) cycles = model_products_cost(d, decisions); /* and the kernels before them */
  model_compute_numbers(d, decisions, numbers);
  if (d->multiplying > 0) cycles = fed_cycles(d, numbers);
  products = cycles;
  for (uint32_t i = 0; i < d->nest_count && cycles < INFINITY; i++) {
    cycles += d->nests[i].begins ? d->machine.gpu.launch : 0;
    if (!d->nests[i].counts) continue;
    uint64_t key = key_of(d, &d->nests[i], numbers);
    struct model_memo *known = &d->memo[i * REMEMBERED + (key >> 32) % REMEMBERED];
    if (known->key != key) *known = (struct model_memo){key, nest_cycles(d, i, numbers)};
    if (isinf(known->cycles)) return INFINITY;
    cycles += known->cycles, between += known->cycles;
    placed = placed || d->nests[i].placed;
  }
  if (cycles < INFINITY) cycles -= hidden_cycles(d, numbers, products, between);
  return cycles * (placed ? fmax(d->machine.gpu.doubt, 1) : 1);
}
