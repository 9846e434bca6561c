/* What a candidate of a sketch costs, in cycles of one core, from its decisions alone.
 *
 * A nest takes as long as its arithmetic, as register tiles let it flow, as what moves between two levels of the cache,
 * or as the addresses of pages take to find, whichever is more, and a part of the rest, which they do not hide of each
 * other; chunks over threads come in waves. Sources: oneDNN, jit_brgemm_conv_utils.cpp, est_eff; Zhu et al., "ROLLER",
 * OSDI 2022, section 4. */
#include "analytical.h"

#include <math.h>
#include <stdlib.h>

enum { LINE = 64, PAGE = 4096 };

/* ---- Footprints ---- */

/* A candidate: its numbers, and the shapes of nests that are no others' copies. */
struct candidate {
  const struct search_estimator *estimator;
  double numbers[MODEL_NUMBERS];
  struct model_shape *shapes; /* a place for each nest: of as many as there may be, sanitizers watch 300 KiB a call */
};

/* Bytes that an access touches, in whole lines. */
static double touched(const struct model_access *a, const double *tile) {
  assert(a->rank <= MODEL_RANK);
  double all = a->bytes, width = 0;
  uint32_t d = a->rank;
  while (d > 0) { /* the last dimension, and those that go on without a gap within a line; of a constant, packed, all */
    width = model_width(a, tile, --d);
    all *= width;
    if (!a->constant && (width < (double)a->extents[d] || all >= LINE)) break;
  }
  if (a->rank) all = ceil(all / LINE) * LINE;
  while (d > 0) all *= model_width(a, tile, --d);
  return all;
}

/* How many times as much room what loops from `at` on touch takes in a level, where rows that are so far apart that
 * they have the same place share few of its places; one way of it is `span` bytes. What is packed lies close together,
 * and of what is passed on there is as much as the loops around both nests leave of it. */
static double crowding(const struct model_shape *s, const struct model_access *a, uint32_t at, int64_t span) {
  assert(span >= LINE);
  int64_t apart = (int64_t)a->bytes;
  if (a->constant || !a->rank) return 1;
  double row = ceil(model_width(a, s->tiles[at], a->rank - 1) * a->bytes / LINE) * LINE;
  for (uint32_t d = a->rank; d-- > 0;) {
    if (d + 1 < a->rank && model_width(a, s->tiles[at], d) > 1) {
      int64_t common = apart % span == 0 ? span : apart & -apart; /* a power of two: the greatest that divides both */
      return model_larger(1, (double)common / row);
    }
    apart *= a->passed ? (int64_t)model_width(a, s->tiles[a->near], d) : a->extents[d];
  }
  return 1;
}

/* Whether the copy that it reads, or fills, holds elements of twice the bits. */
static bool is_held_wide(const struct model_access *a, const double *numbers) {
  return a->in_copy && (!a->wide || numbers[a->wide] > 0);
}

static void shape_nest(const struct model_nest *nest, const double *numbers, struct model_shape *s) {
  assert(nest->access_count <= MODEL_ACCESSES);
  model_shape_loops(nest, numbers, s);
  for (uint32_t i = nest->loop_count + 1; i-- > 0;)
    for (uint32_t a = 0; a < nest->access_count; a++) {
      bool grows = i == nest->loop_count || (s->trips[i] > 1 && model_is_moved(nest, &nest->accesses[a], i));
      double times = is_held_wide(&nest->accesses[a], numbers) ? 2 : 1;
      s->bytes[i][a] = grows ? times * touched(&nest->accesses[a], s->tiles[i]) : s->bytes[i + 1][a];
    }
}

/* Loops of the nest, without that over the neighbours of a dot product: an instruction does it. */
static uint32_t loops_of(const struct model_nest *nest) {
  assert(nest->dots <= nest->loop_count);
  return nest->loop_count - nest->dots;
}

/* ---- What is run in parallel and in vectors: as rules/postproc/rewrite_parallel_vectorize_unroll.lua does it ---- */

static void find_parallel(const struct search_estimator *d, const double *numbers, struct model_shape *s) {
  double jobs = d->jobs ? numbers[d->jobs] : 0, product = 1;
  s->parallel = 0;
  for (uint32_t i = 0; i < s->nest->loop_count; i++)
    if (s->nest->loops[i].kind == MODEL_PARALLEL) s->parallel = i + 1;
  if (s->parallel) return;
  for (uint32_t i = 0; jobs > 0 && i < s->nest->loop_count; i++) {
    if (s->nest->loops[i].reduces || s->nest->loops[i].kind != MODEL_PLAIN) break;
    product *= s->trips[i];
    s->parallel = i + 1;
    if (product >= jobs || !s->nest->loops[i].alone) break;
  }
}

static bool is_dense(const struct model_shape *s, uint32_t loop) {
  if (s->trips[loop] <= 1) return true;
  for (uint32_t k = 0; k < s->nest->iter_count; k++)
    if (s->nest->loops[loop].iters == 1u << k) return s->nest->iters[k].dense && s->tiles[loop + 1][k] <= 1;
  return false;
}

/* Whether a condition may turn out differently from one iteration of a loop to the next; others are decided outside. */
static bool is_asked_within(const struct model_shape *s, uint32_t loop) {
  return s->nest->branches > 0 && s->trips[loop] > 1 && (s->nest->loops[loop].iters & s->nest->decides);
}

/* Whether LLVM makes vectors of a loop: it is dense, and as long as one. */
static bool is_left_to_llvm(const struct search_estimator *d, const struct model_shape *s, uint32_t loop) {
  double lanes = d->machine.vector_bits / (8 * s->nest->accesses[0].bytes);
  return loop >= s->parallel && s->trips[loop] >= lanes && s->nest->loops[loop].alone && is_dense(s, loop);
}

/* What is left to LLVM: the innermost loop, or a reduction around an unrolled tile. */
static void find_automatic(const struct search_estimator *d, struct model_shape *s) {
  const struct model_nest *nest = s->nest;
  double lanes = d->machine.vector_bits / (8 * nest->accesses[0].bytes), tile = 1;
  uint32_t l = nest->loop_count;
  s->summed = 1;
  if (s->vector < l) return;
  while (l > 0 && s->trips[l - 1] <= 1) l--;
  if (l > 0 && is_asked_within(s, l - 1)) return;
  if (l > 0 && !nest->loops[l - 1].reduces && is_left_to_llvm(d, s, l - 1)) {
    s->vector = l - 1;
    return;
  }
  for (; l > 0 && !(nest->loops[l - 1].reduces && s->trips[l - 1] > 1); l--) tile *= s->trips[l - 1];
  if (l > 0 && tile <= d->machine.unrolled && nest->sums && nest->calls <= 0 && is_left_to_llvm(d, s, l - 1))
    s->summed = lanes;
}

static void find_vector(const struct search_estimator *d, struct model_shape *s) {
  double product = 1;
  s->vector = loops_of(s->nest);
  s->summed = 1;
  if (s->vector > 0 && s->nest->loops[s->vector - 1].kind == MODEL_VECTOR) {
    if (!is_asked_within(s, s->vector - 1)) s->vector--; /* else lane by lane */
    return;
  }
  while (s->vector > s->parallel) {
    uint32_t l = s->vector - 1;
    product *= s->trips[l];
    if (s->nest->loops[l].reduces || !s->nest->loops[l].alone || product > (double)d->most_vector || !is_dense(s, l))
      break;
    s->vector = l;
  }
  find_automatic(d, s);
}

static void shape_candidate(const struct search_estimator *d, const int64_t *decisions, struct candidate *c) {
  assert(d->nest_count <= MODEL_NESTS && d->number_count <= MODEL_NUMBERS);
  c->estimator = d;
  model_compute_numbers(d, decisions, c->numbers);
  for (uint32_t i = 0; i < d->nest_count; i++) {
    if (d->nests[i].follows) continue;
    shape_nest(&d->nests[i], c->numbers, &c->shapes[i]);
    find_parallel(d, c->numbers, &c->shapes[i]);
    find_vector(d, &c->shapes[i]);
  }
}

/* ---- Arithmetic ---- */

/* The innermost loop that reduces, or the first loop where none does: what is inside is the register tile. */
static uint32_t tile_begin(const struct model_shape *s) {
  for (uint32_t i = loops_of(s->nest); i-- > 0;)
    if (s->nest->loops[i].reduces && s->trips[i] > 1) return i + 1;
  uint32_t begin = s->vector;
  while (begin > s->parallel && s->nest->loops[begin - 1].kind == MODEL_UNROLLED) begin--;
  return begin;
}

/* The tile of results that stay in registers while the loops just around it reduce. */
struct tile {
  uint32_t first;        /* its outermost loop */
  double rows, vectors;  /* of each row */
  double steps, entries; /* additions to each result, one after another; how often that begins */
  bool reduces, unrolled;
  /* There are registers for it. One loop carries a tile that leaves none for operands, of several some copy it. */
  bool held;
};

/* Registers for what iterations of the tile read in common, and those of loops within the one that carries it: where a
 * quotient stands in an index, as in a transposed convolution, LLVM loads it once and keeps it. 0: there is no such. */
static double kept_operands(const struct model_shape *s, uint32_t carrier, uint32_t first) {
  const struct model_nest *nest = s->nest;
  double most = 0;
  for (uint32_t n = 0; n < nest->access_count; n++) {
    const struct model_access *a = &nest->accesses[n];
    double all = 1;
    bool shared = false;
    for (uint32_t d = 0; d < a->rank; d++) {
      double width = 1, more = 0;
      bool divided = false;
      for (uint32_t i = carrier + 1; i < s->vector; i++)
        for (uint32_t k = 0; k < nest->iter_count; k++) {
          if (!(nest->loops[i].iters >> k & 1) || !a->moves[d][k]) continue;
          if (i >= first)
            width *= model_distinct(s, a, i), divided = divided || a->quotients[k] > 1;
          else
            more += (s->trips[i] - 1) * fabs(a->moves[d][k]);
        }
      all *= width + more;
      shared = shared || (divided && width > 1 && more > 0);
    }
    if (shared && !a->written) most = model_larger(most, all);
  }
  return most;
}

static struct tile tile_of(const struct candidate *c, const struct model_shape *s) {
  const struct search_machine *m = &c->estimator->machine;
  const struct model_nest *nest = s->nest;
  uint32_t begin = tile_begin(s);
  struct tile t = {.first = begin < s->vector ? begin : s->vector, .steps = 1, .entries = 1};
  t.reduces = begin > 0 && nest->loops[begin - 1].reduces;
  t.rows = model_product(s, t.first, s->vector);
  t.vectors = ceil(model_product(s, s->vector, loops_of(nest)) * 8 * nest->accesses[0].bytes / m->vector_bits);
  t.unrolled = nest->promoted ||
               t.rows <= model_larger(c->estimator->unroll ? c->numbers[c->estimator->unroll] : 0, m->unrolled);
  t.held = t.reduces && t.unrolled && t.rows * t.vectors < m->registers - 2;
  uint32_t carried = 0,
           carrier = t.first; /* loops that carry the tile; the outermost around no more than LLVM unrolls */
  double copies = 1;
  bool inside = t.reduces;
  for (uint32_t i = t.first; i-- > 0;) {
    bool goes_on = nest->loops[i].reduces && (s->summed <= 1 || i + 1 == begin); /* LLVM's lanes end with their loop */
    inside = inside && (goes_on || s->trips[i] <= 1);
    carried += inside && s->trips[i] > 1;
    if (inside && s->trips[i] > 1 && copies <= m->unrolled) carrier = i;
    if (inside) copies *= s->trips[i];
    *(inside ? &t.steps : &t.entries) *= s->trips[i];
  }
  t.steps = ceil(t.steps / s->summed);
  if (carried > 1 && t.rows * t.vectors + model_lesser(t.rows, t.vectors) + 1 > m->registers) t.held = false;
  if (carried > 1 && !nest->promoted && t.rows * t.vectors + kept_operands(s, carrier, t.first) + 1 > m->registers)
    t.held = false;
  return t;
}

/* Vectors of an access that a step of the register tile loads: distinct ones along its loops; and the same again in a
 * loop that does not move them, where the registers that results leave do not hold them, beside one for the other
 * operand. */
static double vectors_of(const struct search_machine *m, const struct model_shape *s, const struct model_access *a,
                         const struct tile *t) {
  double left = t->held && !a->written ? m->registers - t->rows * t->vectors : INFINITY, loaded = 1;
  for (uint32_t i = s->vector; i < loops_of(s->nest); i++)
    if (s->trips[i] > 1 && model_is_moved(s->nest, a, i)) loaded = t->vectors;
  for (uint32_t i = s->vector; i-- > t->first;) {
    double distinct = model_distinct(s, a, i);
    if (distinct > 1 && !t->unrolled) distinct = s->trips[i];
    loaded *= loaded * distinct + 1 > left ? s->trips[i] : distinct;
  }
  return loaded;
}

/* How many elements an access has for each that one tap has: unrolled loops share what lies between its taps, as far as
 * registers hold it. */
static double taps_of(const struct search_machine *m, const struct model_shape *s, const struct model_access *a,
                      const struct tile *t) {
  if (t->reduces) return 1;
  bool held = t->rows * t->vectors + a->taps < m->registers;
  return model_taps(s, a, t->first, held ? s->vector : t->first);
}

/* The outermost of the loops that reduce around a register tile and are unrolled with it: what they read again of a
 * window stays in registers, and what they ask is known (tir/lower/loop/unroll.c). The tile's first loop: none are. */
static uint32_t unrolled_begin(const struct candidate *c, const struct model_shape *s, const struct tile *t) {
  enum { FEW_STEPS = 32 }; /* that are unrolled without being asked */
  const struct model_nest *nest = s->nest;
  uint32_t unroll = c->estimator->unroll, begin = t->first;
  double most = model_larger(unroll ? c->numbers[unroll] : 0, FEW_STEPS), steps = t->rows * t->vectors;
  if (!nest->promoted || !t->reduces || !t->unrolled) return t->first;
  for (uint32_t i = t->first; i-- > 0 && (nest->loops[i].reduces || s->trips[i] <= 1);) {
    steps *= s->trips[i];
    if (steps > most) break;
    if (s->trips[i] > 1) begin = i;
  }
  return begin;
}

/* Elements that an access touches in the loops from `at` on. */
static double elements_of(const struct model_shape *s, const struct model_access *a, uint32_t at) {
  double all = 1;
  for (uint32_t d = 0; d < a->rank; d++) all *= model_width(a, s->tiles[at], d);
  return all;
}

/* Whether vectors of an access are loaded as they lie: a loop that is vectorized moves it by one element. */
static bool is_loaded_in_vectors(const struct model_shape *s, const struct model_access *a) {
  const struct model_nest *nest = s->nest;
  for (uint32_t i = s->vector; i < loops_of(nest); i++)
    for (uint32_t k = 0; k < nest->iter_count; k++)
      if (nest->loops[i].iters == 1u << k && a->steps[k] == 1 && !a->quotients[k] && !a->remainders[k]) return true;
  return false;
}

/* The part of what an access loads at each step that is not there from a step before, in unrolled loops that move a
 * window over it: registers hold what the innermost one of them reads. A broadcast is an operand in memory each time.
 */
static double window_part(const struct search_machine *m, const struct model_shape *s, const struct model_access *a,
                          const struct tile *t, uint32_t begin) {
  uint32_t last = t->first;
  while (last > begin && s->trips[last - 1] <= 1) last--;
  if (last == begin || a->written || !t->held || !is_loaded_in_vectors(s, a)) return 1;
  double one = elements_of(s, a, t->first), held = elements_of(s, a, last - 1) * 8 * s->nest->accesses[0].bytes;
  if (t->rows * t->vectors + held / m->vector_bits + 1 > m->registers) return 1;
  return model_lesser(1, elements_of(s, a, begin) / (one * model_product(s, begin, t->first)));
}

/* The part of the vectors that run past the end of what they compute, and so stand under a condition. */
static double guarded_part(const struct model_shape *s) {
  const struct model_nest *nest = s->nest;
  double part = 0;
  for (uint32_t k = 0; k < nest->iter_count; k++) {
    double all = 1, outside = 1;
    bool vector = false;
    for (uint32_t i = 0; i < nest->loop_count; i++) {
      if (nest->loops[i].iters != 1u << k) continue;
      all *= s->trips[i];
      outside *= i < s->vector ? s->trips[i] : 1;
      vector = vector || i >= s->vector;
    }
    if (vector && all > (double)nest->iters[k].extent) part = model_larger(part, 1 / outside);
  }
  return part;
}

/* The part of the tiles with an element on both sides of a condition: those at the two ends of what it depends on. */
static double undecided_part(const struct model_shape *s, uint32_t first) {
  const struct model_nest *nest = s->nest;
  double decided = 1;
  for (uint32_t k = 0; k < nest->iter_count; k++) {
    double tiles = 1, inside = 1;
    for (uint32_t i = 0; i < nest->loop_count; i++)
      if (nest->loops[i].iters >> k & nest->decides >> k & 1) *(i < first ? &tiles : &inside) *= s->trips[i];
    if (!nest->iters[k].reduces && inside > 1) decided *= 1 - model_lesser(1, 2 / tiles);
  }
  return 1 - decided;
}

/* Of the rows of an undecided tile the part with steps on both sides, which alone ask: rows are unrolled, so that each
 * has conditions of its own, and those of most hold. A row that is divided has a failing step at least. Rows that go
 * on from line to line all ask; none do where the innermost steps that decide are unrolled from `begin` on. */
static double divided_part(const struct model_shape *s, uint32_t first, uint32_t begin) {
  const struct model_nest *nest = s->nest;
  double steps = 1;
  if (!nest->promoted) return 1;
  for (uint32_t i = nest->loop_count; i-- > 0;) {
    bool alone = !(nest->loops[i].iters & (nest->loops[i].iters - 1));
    if (s->trips[i] <= 1 || !(nest->loops[i].iters & nest->decides)) continue;
    if (i >= first && !alone) return 1;
    if (nest->loops[i].reduces && steps == 1 && i >= begin) return 0;
    if (nest->loops[i].reduces) steps *= s->trips[i];
  }
  return model_lesser(1, (1 - nest->inside) * steps);
}

/* Whether a sum leaves out the zeros of a padding (tir/lower/loop/zeros.c): no loop of the tile mixes what the
 * conditions depend on, and the innermost one that reduces says nothing of them. */
static bool skips(const struct model_shape *s) {
  const struct model_nest *nest = s->nest;
  uint32_t begin = tile_begin(s);
  if (!nest->promoted || !nest->sums || !nest->decides || !begin || nest->loops[begin - 1].iters & nest->decides)
    return false;
  for (uint32_t i = begin; i < nest->loop_count; i++) {
    uint32_t moved = 0;
    for (uint32_t k = 0; k < nest->iter_count; k++)
      if (nest->iters[k].extent > 1) moved |= nest->loops[i].iters & 1u << k;
    if (s->trips[i] > 1 && (moved & nest->decides) && (moved & (moved - 1))) return false;
  }
  return true;
}

/* How often a tile is loaded and stored again since conditions stand between the loops that reduce. */
static double parted(const struct model_shape *s) {
  double parts = 1;
  for (uint32_t i = 0; i < s->nest->loop_count; i++)
    if (s->nest->loops[i].reduces && (s->nest->loops[i].iters & s->nest->decides)) parts *= s->trips[i];
  return parts;
}

/* Whether a register tile begins with its init, and so loads no results: no other loop stands between. */
static bool begins_in_registers(const struct candidate *c, const struct model_shape *s, const struct tile *t) {
  const struct model_nest *nest = s->nest;
  if (!nest->promoted || (nest->init_before && c->numbers[nest->init_before] > 0)) return false;
  uint32_t at = 0;
  while (at < t->first && !(nest->loops[at].reduces && s->trips[at] > 1)) at++;
  while (at < t->first && (nest->loops[at].reduces || s->trips[at] <= 1)) at++;
  return at == t->first;
}

/* Whether conditions are asked for each element: they depend on the innermost loop that goes on. */
static bool is_lane_by_lane(const struct model_shape *s) {
  uint32_t l = s->nest->loop_count;
  while (l > 0 && s->trips[l - 1] <= 1) l--;
  return l == 0 || is_asked_within(s, l - 1);
}

/* Where the loops begin that hold accumulators of AMX's tiles: the innermost ones that reduce, before those over
 * accumulators and the instruction's own. */
static uint32_t holding_begin(const struct model_shape *s) {
  enum { INNER = 6 };
  const struct model_nest *nest = s->nest;
  uint32_t l = nest->loop_count > INNER ? nest->loop_count - INNER : 0;
  while (l > 0 && nest->loops[l - 1].reduces) l--;
  return l;
}

/* Cycles of the products of AMX's tiles: of each a row of 64 bytes a cycle, of each step over the reduction no less
 * than a result takes until it is added to again, or than its operands take to load; accumulators begin as zeros or are
 * loaded before the loops that hold them, and stored behind these (tir/lower/vector/tiles.c). Source: Intel,
 * "Optimization Reference Manual", chapter "Intel AMX": latency and throughput of TDP*, TILELOADD, TILESTORED. */
static double tile_cycles(const struct model_shape *s) {
  enum { LATENCY = 52, LOAD = 8, STORE = 16, ELEMENTS = MODEL_TILE_SIDE * MODEL_TILE_SIDE };
  enum { ROWS = 6, COLUMNS = 5 }; /* loops over accumulators, from the last */
  const struct model_nest *nest = s->nest;
  uint32_t held = holding_begin(s), last = nest->loop_count;
  if (last < ROWS) return model_product(s, 0, last) / nest->tile_products * LATENCY;
  double products = model_product(s, 0, last) / nest->tile_products;
  double rows = s->trips[last - ROWS], columns = s->trips[last - COLUMNS];
  double step = model_larger(model_larger(rows * columns * nest->tile_rows, LATENCY), (rows + columns) * LOAD);
  double moved = model_product(s, 0, held); /* elements of accumulators, loaded and stored */
  for (uint32_t l = last; l-- > held;)
    if (!nest->loops[l].reduces) moved *= s->trips[l];
  return products / (rows * columns) * step + moved / ELEMENTS * (LOAD + STORE);
}

/* Cycles of an element of a copy that the products of tiles read: by vectors, or interleaved (tir/lower/vector/
 * transpose.c), where that goes on from element to element along its innermost loop; else piece by piece. */
static double tile_copy_cycles(const struct search_machine *m, const struct model_nest *nest) {
  enum { INTERLEAVED = 16 };
  uint32_t last = nest->loop_count, k = 0;
  while (last > 0 && (!nest->loops[last - 1].iters || nest->loops[last - 1].iters & (nest->loops[last - 1].iters - 1)))
    last--;
  while (last > 0 && !(nest->loops[last - 1].iters >> k & 1)) k++;
  double bytes = nest->accesses[0].bytes, run = last > 0 ? (double)nest->iters[k].extent : 1;
  for (uint32_t a = 0; a < nest->access_count && last > 0; a++) {
    const struct model_access *access = &nest->accesses[a];
    int64_t step = access->steps[k];
    if (step == 1 && access->remainders[k] > 0)
      run = model_lesser(run, (double)access->remainders[k]);
    else if (access->written && (double)step * bytes == 4 && bytes < 4)
      run = model_lesser(run, INTERLEAVED);
    else if (step != 1)
      run = 1;
  }
  return model_larger(bytes * m->copy, 1 / run);
}

enum { PRODUCTS_OF_INTRINSIC = 16 }; /* at least, in the place of one */

/* Where loops that reduce around a tile are unrolled windows of bytes, the cycles of each step; 0: they are not. Of
 * four elements of a window, along the innermost of these loops, a result takes one dot product; each element of the
 * image, and of the filter, makes a word for all lines: it is loaded, widened, and shifted in. */
static double sliding_step(const struct search_machine *m, const struct model_shape *s, const struct tile *t) {
  enum { WORD = 4, OPERATIONS_A_WORD = 2 };
  const struct model_nest *nest = s->nest;
  uint32_t begin = t->first;
  double along = 1, lanes = model_product(s, s->vector, loops_of(nest)), words = 0;
  if (!nest->slides || !t->reduces || !t->held || s->vector == loops_of(nest)) return 0;
  for (; begin > 0 && nest->loops[begin - 1].reduces && nest->loops[begin - 1].kind == MODEL_UNROLLED; begin--)
    if (along == 1) along = s->trips[begin - 1];
  if (along == 1) return 0;
  for (uint32_t a = 0; a < nest->access_count; a++)
    if (!nest->accesses[a].written) words += elements_of(s, &nest->accesses[a], begin) / lanes;
  double terms = model_product(s, begin, t->first), dots = t->rows * t->vectors * terms / along * ceil(along / WORD);
  return model_larger((dots + OPERATIONS_A_WORD * words) / m->multiply_adds, words / m->loads) / terms;
}

/* Cycles of the arithmetic, and of the loads that feed it. Results stay in registers over the reduction where there are
 * enough, and then a few do not hide the latency of adding to them; what is not in registers is loaded and stored at
 * each step. */
static double arithmetic_cycles(const struct candidate *c, const struct model_shape *s) {
  const struct search_machine *m = &c->estimator->machine;
  const struct model_nest *nest = s->nest;
  if (nest->tile_products > 0) return tile_cycles(s);
  if (nest->tile_copy) return model_product(s, 0, nest->loop_count) * tile_copy_cycles(m, nest);
  struct tile t = tile_of(c, s);
  double loads = 0, stores = 0, widened = 0, results = t.rows * t.vectors;
  uint32_t begin = unrolled_begin(c, s, &t);
  for (uint32_t a = 0; a < nest->access_count; a++) {
    const struct model_access *access = &nest->accesses[a];
    double vectors = vectors_of(m, s, access, &t) * taps_of(m, s, access, &t) * window_part(m, s, access, &t, begin);
    *(access->written ? &stores : &loads) += vectors;
    bool narrow = access->in_copy && !access->written && !is_held_wide(access, c->numbers);
    if (access->widened || narrow) widened += vectors * (is_loaded_in_vectors(s, access) ? 1 : 2); /* and broadcast */
  }
  double each = nest->simple / m->multiply_adds + nest->calls * m->call + nest->divisions * m->division;
  if (!t.reduces && is_lane_by_lane(s)) /* a reduction's are decided outside of it */
    each += nest->branches * m->branch * m->vector_bits / (8 * nest->accesses[0].bytes);
  if (!t.held) loads += t.reduces ? 2 * stores : stores;
  double step = model_larger(results * each + widened / m->multiply_adds, loads / m->loads);
  if (nest->tensorized) step /= PRODUCTS_OF_INTRINSIC;
  double sliding = sliding_step(m, s, &t);
  if (sliding > 0) step = sliding;
  if (t.reduces && !nest->tensorized) step = model_larger(step, t.held ? m->latency : m->latency + m->reload);
  bool skip = t.reduces && skips(s);
  double undecided = t.reduces && !skip ? undecided_part(s, t.first) * divided_part(s, t.first, begin) : 0;
  step *= 1 + model_larger(guarded_part(s), undecided) * (m->guarded - 1);
  step += m->iteration * (t.unrolled ? 1 : 1 + t.rows);
  double enter = t.held ? (begins_in_registers(c, s, &t) && !skip ? 1 : 2) * results / m->loads + m->latency : 0;
  if (s->summed > 1) enter += (results + m->latency) * log2(s->summed); /* its lanes are added up, side by side */
  if (skip) step *= nest->inside, enter *= parted(s);
  return t.entries * (t.steps * step + enter) * (1 + m->overrun * (s->overrun - 1));
}

/* ---- Traffic ---- */

static double bytes_of_buffer(const struct model_shape *s, uint32_t at, tir_buffer buffer) {
  for (uint32_t a = 0; a < s->nest->access_count; a++)
    if (s->nest->accesses[a].buffer == buffer) return s->bytes[at][a];
  return 0;
}

/* What all nests inside the first `at` loops around a nest touch there. */
static double touched_inside(const struct candidate *c, uint32_t nest, uint32_t at) {
  const struct search_estimator *d = c->estimator;
  double all = 0;
  for (uint32_t i = 0; i < d->nest_count; i++) {
    if (d->nests[i].follows || model_shared(d, nest, i) < at) continue;
    for (uint32_t a = 0; a < d->nests[i].access_count; a++) {
      tir_buffer buffer = d->nests[i].accesses[a].buffer;
      double most = c->shapes[i].bytes[at][a], before = 0;
      for (uint32_t k = 0; k < i; k++)
        if (!d->nests[k].follows && model_shared(d, nest, k) >= at)
          before = model_larger(before, bytes_of_buffer(&c->shapes[k], at, buffer));
      all += model_larger(most - before, 0);
    }
  }
  return all;
}

static bool goes_around(const struct candidate *c, const struct model_nest *nest) {
  return nest->nontemporal && c->numbers[nest->nontemporal] > 0;
}

/* Whether an iteration of a loop goes on, in an access, within as many bytes as the line or page where the one before
 * ended has. */
static bool stays_within(const struct model_shape *s, const struct model_access *a, uint32_t loop, double bytes) {
  double step = 0;
  for (uint32_t k = 0; k < s->nest->iter_count; k++)
    if (s->nest->loops[loop].iters >> k & 1) step += fabs((double)a->steps[k]) * s->tiles[loop + 1][k];
  return step * a->bytes < bytes;
}

/* Bytes of an access that come from outside of a level which holds what the loops from `at` on touch, and of the first
 * loop outside of these that moves it the line where it is: of what is written each line comes and goes, but for
 * nontemporal stores. */
static double traffic_of(const struct candidate *c, const struct model_shape *s, uint32_t access, uint32_t at) {
  const struct model_access *a = &s->nest->accesses[access];
  double bytes = s->bytes[at][access];
  bool moved = false;
  for (uint32_t i = at; i-- > 0;) {
    bool moves = s->trips[i] > 1 && model_is_moved(s->nest, a, i);
    if (moves && !moved && stays_within(s, a, i, LINE))
      bytes = s->bytes[i][access];
    else if (moves || moved)
      bytes *= s->trips[i];
    moved = moved || moves;
  }
  return bytes * (a->written && !goes_around(c, s->nest) ? 2 : 1);
}

/* Whether a nest that stands before it inside of the first `at` loops around both touches as much of the same array. */
static bool is_there(const struct candidate *c, uint32_t nest, uint32_t access, uint32_t at) {
  const struct model_shape *s = &c->shapes[nest];
  for (uint32_t k = 0; k < nest; k++)
    if (!c->estimator->nests[k].follows && model_shared(c->estimator, nest, k) >= at &&
        bytes_of_buffer(&c->shapes[k], at, s->nest->accesses[access].buffer) >= s->bytes[at][access])
      return true;
  return false;
}

/* Bytes that come from outside of a level: there stays what the loops inside touch, if it fits, and of each access what
 * finds places; an array that a loop just outside does not move stays too, and so does what another nest inside
 * touched. Nontemporal stores go to the memory, whatever the caches hold, and through none of them. */
static double traffic(const struct candidate *c, uint32_t nest, int level) {
  const struct model_shape *s = &c->shapes[nest];
  const struct model_nest *n = s->nest;
  double capacity = c->estimator->machine.cache_bytes[level], bytes = 0;
  bool around = goes_around(c, n), is_last = level + 1 == SEARCH_LEVELS;
  int64_t way = (int64_t)c->estimator->machine.way_bytes[level];
  uint32_t at = 0;
  while (at < n->loop_count && touched_inside(c, nest, at) > capacity) at++;
  if (at == 0 && !(around && is_last)) return 0; /* all of it was there before: it is run again and again */
  for (uint32_t a = 0; a < n->access_count; a++) {
    const struct model_access *access = &n->accesses[a];
    if (around && access->written ? !is_last : at == 0) continue;
    if ((access->passed && access->near >= at) || is_there(c, nest, a, at)) continue;
    uint32_t own = at, most = n->loop_count;
    if (n->tile_products > 0) { /* whole tiles are loaded at once, and accumulators stay in registers */
      uint32_t held = holding_begin(s);
      most = own = access->written && held < at ? held : at;
    }
    while (own < most && s->bytes[own][a] * crowding(s, access, own, way) > capacity) own++;
    bytes += traffic_of(c, s, a, own);
  }
  return bytes;
}

/* ---- Pages ---- */

/* Pages that an access touches in the loops from `at` on. */
static double pages_of(const struct model_shape *s, const struct model_access *a, uint32_t at) {
  double apart = a->bytes, span = a->bytes, pages = 1;
  for (uint32_t d = a->rank; d-- > 0;) {
    double width = model_width(a, s->tiles[at], d);
    if (apart <= PAGE)
      span += (width - 1) * apart;
    else
      pages *= width;
    apart *= a->constant ? width : a->passed ? model_width(a, s->tiles[a->near], d) : (double)a->extents[d];
  }
  assert(pages >= 1 && span >= a->bytes);
  return pages * ceil(span / PAGE);
}

/* The pages of each access in the loops from each on, to where they are no more than `least` in all; gives where. */
static uint32_t count_pages(const struct model_shape *s, double least, double (*pages)[MODEL_ACCESSES], double *all) {
  const struct model_nest *nest = s->nest;
  for (uint32_t at = 0;; at++) {
    all[at] = 0;
    for (uint32_t a = 0; a < nest->access_count; a++) all[at] += pages[at][a] = pages_of(s, &nest->accesses[a], at);
    if (all[at] <= least || at == nest->loop_count) return at;
  }
}

/* How often a page is touched whose address is not at hand, where those of the loops from `at` on are. */
static double walks(const struct model_shape *s, double (*pages)[MODEL_ACCESSES], uint32_t at) {
  double all = 0;
  for (uint32_t k = 0; k < s->nest->access_count && at > 0; k++) {
    const struct model_access *a = &s->nest->accesses[k];
    if (a->passed && a->near >= at) continue;
    double own = pages[at][k];
    bool moved = false;
    for (uint32_t i = at; i-- > 0;) {
      bool moves = s->trips[i] > 1 && model_is_moved(s->nest, a, i);
      if (moves && !moved && stays_within(s, a, i, PAGE))
        own = pages[i][k];
      else if (moves || moved)
        own *= s->trips[i];
      moved = moved || moves;
    }
    all += own;
  }
  return all;
}

/* Cycles of finding the addresses of pages: a core holds those of few close by, and of some more. Rows of a matrix that
 * are read a vector at a time have a page each. Nothing is said of what remainders choose, as the taps of a transposed
 * convolution, whose pages are other ones for each remainder. The numbers fit 447 kernels of a Zen 3. Source: AMD,
 * "Software Optimization Guide for the AMD Family 19h Processors", "Memory Address Translation". */
static double page_cycles(const struct search_machine *m, const struct model_shape *s) {
  for (uint32_t a = 0; a < s->nest->access_count; a++)
    for (uint32_t k = 0; k < s->nest->iter_count; k++)
      if (s->nest->accesses[a].remainders[k]) return 0;
  double pages[MODEL_LOOPS + 1][MODEL_ACCESSES], all[MODEL_LOOPS + 1];
  uint32_t near = count_pages(s, model_lesser(m->near_pages, m->pages), pages, all), at = 0;
  while (at < near && all[at] > m->pages) at++;
  return m->walk * walks(s, pages, at) + m->near_walk * walks(s, pages, near);
}

/* ---- Together ---- */

/* A nest that follows another's tiles moves what that one touches, each time that the loops around both go on; from
 * pages that are not at hand where all of it has more than are. */
static double copy_cycles(const struct search_estimator *d, const struct model_shape *s,
                          const struct model_nest *nest) {
  const struct search_machine *m = &d->machine;
  double each = nest->tile_copy ? tile_copy_cycles(m, nest) / nest->accesses[0].bytes : m->copy;
  double times = model_product(s, 0, nest->at);
  struct model_access from = s->nest->accesses[nest->access]; /* what is copied lies as far apart as its extents say */
  from.passed = false;
  double pages = times * pages_of(s, &from, nest->at);
  double walk = (pages > m->pages ? m->walk : 0) + (pages > m->near_pages ? m->near_walk : 0);
  return times * s->bytes[nest->at][nest->access] * each + pages * walk;
}

/* The part of the work that the busiest thread has: whole chunks, and threads end a part of one apart. */
static double waves(const struct search_estimator *d, const struct model_shape *s) {
  double chunks = model_product(s, 0, s->parallel), cores = d->machine.cores;
  if (!s->parallel) return 1;
  return (ceil(chunks / cores) + (cores > 1 ? d->machine.apart : 0)) / chunks;
}

/* What a delayed nest takes of the memory's time, where the next row is computed meanwhile. */
static const double DELAYED = 0.6;

static double nest_cycles(const struct candidate *c, uint32_t nest) {
  const struct search_machine *m = &c->estimator->machine;
  const struct model_shape *s = &c->shapes[nest];
  double most = arithmetic_cycles(c, s), all = most;
  for (int level = s->nest->tile_copy; level < SEARCH_LEVELS; level++) { /* lines of a tile are written at once */
    double cycles = traffic(c, nest, level) / m->bytes_a_cycle[level];
    if (goes_around(c, s->nest) && c->numbers[s->nest->nontemporal] == 2) cycles *= DELAYED;
    most = model_larger(most, cycles);
    all += cycles;
  }
  double paged = page_cycles(m, s);
  most = model_larger(most, paged), all += paged;
  return most + m->exposed * (all - most);
}

static const double LONGER = 1e-7; /* of equal candidates the one with the shortest code is first */

double search_estimator_cost(const struct search_estimator *d, const int64_t *decisions) {
  if (d->machine.gpu.sms > 0) return model_gpu_cost(d, decisions);
  struct model_shape shapes[d->nest_count + 1];
  struct candidate c;
  double cycles = 0;
  bool placed = false;
  c.shapes = shapes;
  shape_candidate(d, decisions, &c);
  for (uint32_t i = 0; i < d->nest_count; i++) {
    const struct model_nest *nest = &d->nests[i];
    const struct model_shape *s = &c.shapes[i];
    if (nest->follows) continue;
    double own = nest_cycles(&c, i);
    for (uint32_t k = 0; k < d->nest_count; k++)
      if (d->nests[k].follows == nest) own += copy_cycles(d, s, &d->nests[k]);
    placed = placed || nest->placed;
    bool begins = s->parallel > 0;
    for (uint32_t k = 0; k < i; k++) begins = begins && (d->nests[k].follows || !model_shared(d, i, k));
    cycles += own * waves(d, s) + (begins ? d->machine.parallel : 0);
  }
  if (d->unroll) cycles *= 1 + LONGER * c.numbers[d->unroll];
  return cycles * (placed ? model_larger(d->machine.doubt, 1) : 1);
}

uint64_t model_tile(const struct search_estimator *d, const int64_t *decisions) {
  struct model_shape shapes[d->nest_count + 1];
  struct candidate c;
  uint64_t key = 1469598103934665603u;
  if (d->product_count) return model_products_tile(d, decisions);
  c.shapes = shapes;
  shape_candidate(d, decisions, &c);
  for (uint32_t i = 0; i < d->nest_count; i++) {
    if (d->nests[i].follows) continue;
    for (uint32_t l = tile_begin(&c.shapes[i]); l < d->nests[i].loop_count; l++)
      key = (key ^ (uint64_t)c.shapes[i].trips[l]) * 1099511628211u + l;
    for (uint32_t l = 0; l < d->nests[i].loop_count; l++)
      if (d->nests[i].loops[l].axis == MODEL_VIRTUAL) key = (key ^ (uint64_t)c.shapes[i].trips[l]) * 1099511628211u + l;
  }
  return key;
}
