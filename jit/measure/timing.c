/* Timing of calls: samples are taken until the median is known well enough. */
#include "timing.h"
#include "measure.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const double HERTZ_NOISE = 0.01; /* of a device's clock: what differs by less is the same */

/* By how much more time a call takes at the other clock. */
static double scale_between(double hertz, double other) {
  return hertz <= 0 || other <= 0 || fabs(hertz - other) <= HERTZ_NOISE * other ? 1 : hertz / other;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Student's t, two-sided 95 %, by degrees of freedom: for samples too few to bound a median by their order, which takes
 * six. */
enum { LEAST_SAMPLES = 3, FEW_SAMPLES = 6, MOST_SAMPLES = 4096 };
static const double student[FEW_SAMPLES] = {0, 12.71, 4.303, 3.182, 2.776, 2.571};

static void interval_of_few(const double *sorted, uint32_t n, struct jit_timing *out) {
  double mean = 0, square = 0;
  for (uint32_t i = 0; i < n; i++) mean += sorted[i] / n;
  for (uint32_t i = 0; i < n; i++) square += (sorted[i] - mean) * (sorted[i] - mean);
  double half = n > 1 ? student[n - 1] * sqrt(square / (n - 1) / n) : INFINITY;
  out->low = out->seconds - half > 0 ? out->seconds - half : 0;
  out->high = out->seconds + half;
}

/* Ranks n/2 -+ 0.98 sqrt(n): the normal approximation of the binomial that counts samples below the median. */
static void interval_by_order(const double *sorted, uint32_t n, struct jit_timing *out) {
  double half = 0.98 * sqrt((double)n), middle = 0.5 * (double)(n - 1);
  int64_t low = (int64_t)floor(middle - half), high = (int64_t)ceil(middle + half);
  out->low = sorted[low < 0 ? 0 : low];
  out->high = sorted[high >= n ? n - 1 : (uint32_t)high];
}

/* Fills everything but `censored` and `busy`; sorts the samples. */
static void timing_summarize(double *samples, uint32_t n, struct jit_timing *out) {
  qsort(samples, n, sizeof *samples, by_size);
  out->runs = n;
  out->seconds = n % 2 ? samples[n / 2] : 0.5 * (samples[n / 2 - 1] + samples[n / 2]);
  (n < FEW_SAMPLES ? interval_of_few : interval_by_order)(samples, n, out);
}

static const double SHORTEST_SAMPLE = 20e-6; /* seconds; shorter kernels are called several times a sample */
static const double SHORT_CALL = 1e-3;       /* below, what a cold call took says little of a warm one */
static const double WARM_CALL = 5e-3;        /* above, much the same */

/* Of all threads of the process. */
static uint64_t count_interruptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_nivcsw;
}

/* Threads that wait for work spin for some milliseconds before they sleep, and one that has slept is resumed at once:
 * so a parallel call after a rest is quick, where other programs make those in a row wait for slices of time. */
static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL); }
enum { MOST_RESTS = 3, MOST_WEARY_RESTS = 8 };
static const double LONG_CALL = 0.1; /* seconds: above, what slices of time cost does not matter */

static const struct timing_clock machine = {measure_now, count_interruptions, rest};
static uint64_t count_none(void) { return 0; }
const struct timing_clock timing_apart = {measure_now, count_none, rest};

/* Seconds: what a call may lose to other programs, however busy the machine. */
static const double LONGEST_INTERRUPTION = 0.5;

/* By the fastest of n samples: a slow one may have been interrupted, unseen where it was the whole machine. The call
 * that warmed the caches counts too, as a sample from another moment. */
static bool is_hopeless(const struct timing_plan *plan, double fastest, uint32_t n, bool interrupted) {
  assert(fastest > plan->hopeless && n > 0);
  bool first_was = plan->once > plan->hopeless;
  return n + first_was >= 3 || (first_was && !interrupted) || n * (fastest - plan->hopeless) > LONGEST_INTERRUPTION;
}

static const double BEATEN = 1.06; /* times the best: slower by more than what the end of tuning times again */
static const double FAR = 1.15;    /* times the best: by more than a call that nothing interrupted is off */

/* It is not the best: how far it is from it need not be known well. By two samples that are beaten, or, of a long call,
 * agree; the call that warmed the caches is one of the two where it is so long that this matters little. */
static bool is_beaten(const struct timing_plan *plan, const double *sorted, uint32_t n, bool interrupted) {
  assert(n > 0);
  bool is_long = plan->once >= SHORT_CALL;
  double low = n > 1 ? sorted[0] : fmin(plan->once, sorted[0]),
         high = n > 1 ? sorted[n - 1] : fmax(plan->once, sorted[0]);
  if (plan->best <= 0 || interrupted || low <= plan->best) return false;
  if (n == 1 && plan->once < WARM_CALL) return is_long && low > FAR * plan->best;
  return low > BEATEN * plan->best || (is_long && high - low <= plan->tolerance * low);
}

/* Whether other programs ran: threads were interrupted so often that a tenth of the time may be lost, each losing some
 * three milliseconds, in half of the calls, which the median shows; or half of the calls took a quarter longer than the
 * fastest. */
static bool was_disturbed(const double *sorted, const struct jit_timing *t, uint64_t interruptions, double seconds) {
  bool interrupted = interruptions > 1 && 2 * interruptions >= t->runs && 3e-3 * (double)interruptions > 0.1 * seconds;
  return interrupted || (t->runs >= LEAST_SAMPLES && t->seconds > 1.25 * sorted[0]);
}

struct timed {
  const struct timing_subject *subject;
  const struct timing_plan *plan;
  const struct timing_clock *clock;
  double *samples;
};

static struct jit_conditions take_turn(jit_turn *turn, void *data, bool begins) {
  struct jit_conditions conditions = {0};
  if (turn) turn(data, begins, &conditions);
  return conditions;
}

static double seconds_of_calls(const struct timed *t, uint32_t calls) {
  return t->subject->sample(t->subject->data, calls);
}

static double seconds_of_rest(const struct timed *t) {
  double before = t->clock->now();
  t->clock->rest();
  return t->clock->now() - before;
}

/* Samples until the plan is met, or its time is up. While other programs run, what seems hopeless is called again after
 * a rest; weary: so is all. */
static bool sample(const struct timed *t, uint32_t calls, bool weary, struct jit_timing *out) {
  const struct timing_plan *plan = t->plan;
  double start = t->clock->now(), spent = 0;
  uint32_t least = plan->least ? plan->least : LEAST_SAMPLES;
  uint64_t before = t->clock->interruptions(), interruptions = 0;
  uint32_t rests = 0, most_rests = weary ? MOST_WEARY_RESTS : MOST_RESTS;
  double rested = 0;
  *out = (struct jit_timing){0};
  for (uint32_t n = 0; n < MOST_SAMPLES;) {
    t->samples[n++] = seconds_of_calls(t, calls);
    if (t->samples[n - 1] < 0) return false;
    spent = t->clock->now() - start - rested;
    interruptions = t->clock->interruptions() - before;
    bool out_of_time = spent > plan->limit, interrupted = interruptions >= n; /* each sample, perhaps */
    bool rests_first = interrupted && t->samples[n - 1] < LONG_CALL && rests < most_rests;
    if (n < least && !out_of_time && !(plan->hopeless > 0 || plan->best > 0) && !(weary && rests_first)) continue;
    timing_summarize(t->samples, n, out);
    bool slow = plan->hopeless > 0 && t->samples[0] > plan->hopeless;
    out->censored = slow && is_hopeless(plan, t->samples[0], n, interrupted);
    if ((out->censored || weary) && rests_first) {
      rests++, rested += seconds_of_rest(t);
      continue;
    }
    if (out->censored || (out_of_time && !slow)) break;
    if (!slow && is_beaten(plan, t->samples, n, interrupted)) break;
    if (n >= least && out->high - out->low <= 2 * plan->tolerance * out->seconds) break;
  }
  out->busy = was_disturbed(t->samples, out, interruptions, spent);
  return true;
}

/* Where the machine was busy all is sampled again, with rests. */
static bool sample_again(const struct timed *t, uint32_t calls, struct jit_timing *out) {
  struct jit_timing other;
  bool ok = sample(t, calls, false, out);
  for (uint32_t i = 0; ok && i < t->plan->again && out->busy && !out->censored; i++) {
    ok = sample(t, calls, true, &other);
    if (ok && !other.censored && (!other.busy || other.seconds < out->seconds)) *out = other;
  }
  return ok;
}

/* What a card's power lets it do differs from one candidate to the next: compared are times at one clock. */
static void note_conditions(const struct timing_plan *plan, const struct jit_conditions *conditions,
                            struct jit_timing *out) {
  double scale = scale_between(conditions->clock, plan->hertz);
  out->clock = conditions->clock, out->by_launches = conditions->by_launches;
  if (scale == 1) return;
  out->raw = out->seconds;
  out->seconds *= scale, out->low *= scale, out->high *= scale;
}

/* Where processes of others computed on the device all is sampled again, and else marked as disturbed. */
static bool sample_apart(const struct timed *t, uint32_t calls, struct jit_timing *out,
                         struct jit_conditions *conditions) {
  const struct timing_subject *subject = t->subject;
  struct jit_timing other;
  bool ok = sample_again(t, calls, out);
  struct jit_conditions now = *conditions = take_turn(subject->turn, subject->data, false);
  out->busy |= now.shared;
  for (uint32_t i = 0; ok && i < t->plan->again && now.shared && !out->censored; i++) {
    seconds_of_rest(t);
    take_turn(subject->turn, subject->data, true);
    ok = sample(t, calls, false, &other);
    now = take_turn(subject->turn, subject->data, false);
    other.busy |= now.shared;
    if (!ok || other.censored || (other.busy && other.seconds >= out->seconds)) continue;
    *out = other, *conditions = now;
  }
  return ok;
}

bool timing_measure(const struct timing_subject *subject, const struct timing_plan *plan, struct jit_timing *out) {
  struct jit_conditions conditions = {0};
  struct timed t = {subject, plan, plan->clock ? plan->clock : &machine, NULL};
  t.samples = malloc(MOST_SAMPLES * sizeof *t.samples);
  if (!t.samples) return false;
  take_turn(subject->turn, subject->data, true);
  double once = plan->once < SHORT_CALL ? seconds_of_calls(&t, 1) : plan->once;
  bool ok = once >= 0;
  if (once < 1e-9) once = 1e-9;
  uint32_t calls = once >= SHORTEST_SAMPLE ? 1 : (uint32_t)(SHORTEST_SAMPLE / once) + 1;
  if (ok)
    ok = sample_apart(&t, calls, out, &conditions);
  else
    take_turn(subject->turn, subject->data, false);
  if (ok) note_conditions(plan, &conditions, out);
  free(t.samples);
  return ok;
}

bool timing_or_why(const struct timing_subject *subject, const struct timing_plan *plan, const ms_error *why,
                   struct jit_timing *out, ms_error *err) {
  if (plan->once >= 0 && timing_measure(subject, plan, out)) return true;
  return *why->message ? ms_fail(err, why->code, "%s", why->message)
                       : ms_fail(err, MS_TOO_LARGE, "memory for timing cannot be had");
}

/* ---- In turn ---- */

static const double SLICE = 0.03; /* in seconds */
enum { WARMING_CALLS = 2, LEAST_SLICES = 5, LEAST_OF_FASTEST = 3, LEAST_OF_LOSERS = 2 };

struct samples {
  double *at, seconds; /* of all slices */
  double taken;        /* seconds that samples took, by the finalist's own clock */
  uint64_t interruptions;
  uint32_t count, calls; /* calls a sample */
  uint32_t clocked;
  double hertz, raw; /* sums: of the slices whose clock is known; of samples, as they were */
  bool scaled, by_launches, shared;
  bool lost; /* another is faster: no more slices */
};

static double sample_finalist(const struct jit_finalist *c, uint32_t calls, const struct timing_clock *clock) {
  if (c->sample) return c->sample(c->data, calls);
  double before = clock->now();
  for (uint32_t i = 0; i < calls; i++) c->call(c->data);
  return (clock->now() - before) / calls;
}

/* The samples of a slice, times the scale. */
static bool sample_slice(const struct jit_finalist *c, struct samples *s, const struct timing_clock *clock,
                         double scale) {
  double warming = sample_finalist(c, WARMING_CALLS, clock), once = fmax(warming, 1e-9), start = clock->now();
  double before = s->taken;
  uint64_t interruptions = clock->interruptions();
  if (warming < 0) return false;
  if (!s->calls) s->calls = once >= SHORTEST_SAMPLE ? 1 : (uint32_t)(SHORTEST_SAMPLE / once) + 1;
  do {
    double seconds = sample_finalist(c, s->calls, clock);
    if (seconds < 0) return false;
    s->at[s->count++] = scale * seconds, s->raw += seconds, s->taken += seconds * s->calls;
  } while (s->count < MOST_SAMPLES && fmax(clock->now() - start, s->taken - before) < SLICE);
  s->seconds += clock->now() - start;
  s->interruptions += clock->interruptions() - interruptions;
  return true;
}

/* After a rest all begin alike, but for what warms the device over many slices: *hertz is the clock that the first
 * began at. */
static bool time_slice(const struct jit_finalist *c, const struct jit_finalist *turns, struct samples *s,
                       const struct timing_clock *clock, double *hertz) {
  clock->rest();
  double now = take_turn(turns->turn, turns->data, true).clock;
  struct timing_clock own = *clock;
  if (now > 0) own.interruptions = count_none; /* its time is a device's */
  if (*hertz <= 0) *hertz = now;
  double scale = scale_between(now, *hertz);
  bool ok = sample_slice(c, s, &own, scale);
  const struct jit_conditions conditions = take_turn(turns->turn, turns->data, false);
  s->scaled |= scale != 1, s->by_launches |= conditions.by_launches, s->shared |= conditions.shared;
  if (conditions.clock > 0) s->hertz += conditions.clock, s->clocked++;
  return ok;
}

/* Which finalist runs a finalist's slices: itself, or, for a kernel of another library on a device, the first such. */
static const struct jit_finalist *turns_of(const struct jit_finalist *all, uint32_t count, uint32_t at) {
  for (uint32_t i = 0; !all[at].turn && all[at].sample && i < count; i++)
    if (all[i].turn) return &all[i];
  return &all[at];
}

/* A permutation of 0 to count-1, by the round. */
static void draw_order(uint32_t round, uint32_t count, uint32_t *order) {
  uint64_t state = 0x9e3779b97f4a7c15u * (round + 1);
  for (uint32_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t at = (uint32_t)((state >> 33) % (i + 1));
    order[i] = order[at];
    order[at] = i;
  }
}

static void summarize_slices(struct samples *s, struct jit_timing *out) {
  *out = (struct jit_timing){0};
  timing_summarize(s->at, s->count, out);
  out->busy = s->shared || was_disturbed(s->at, out, s->interruptions, s->seconds);
  out->clock = s->clocked ? s->hertz / s->clocked : 0;
  out->by_launches = s->by_launches;
  out->raw = s->scaled ? s->raw / s->count : 0;
}

/* Those whose median is above that of the fastest, by intervals that do not overlap, have lost. Gives how many have
 * not. */
static uint32_t leave_out_losers(struct samples *all, uint32_t count) {
  struct jit_timing each, fastest = {.seconds = INFINITY};
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; i++) {
    summarize_slices(&all[i], &each);
    if (each.seconds < fastest.seconds) fastest = each;
  }
  for (uint32_t i = 0; i < count; i++) {
    summarize_slices(&all[i], &each);
    all[i].lost = all[i].lost || each.low > fastest.high;
    left += !all[i].lost;
  }
  return left;
}

/* Seconds since the first slice began: by the machine's clock, or by the finalists' own clocks where these are ahead of
 * it, as a simulated device's is. */
static double seconds_of_turns(const struct samples *all, uint32_t count, double start,
                               const struct timing_clock *clock) {
  double taken = 0;
  for (uint32_t i = 0; i < count; i++) taken += all[i].taken;
  return fmax(clock->now() - start, taken);
}

static bool take_turns(const struct jit_finalist *finalists, struct samples *all, uint32_t *order, uint32_t count,
                       const struct timing_turns *turns) {
  double start = turns->clock->now(), hertz = 0;
  uint32_t left = count, least = turns->to_find_fastest ? LEAST_OF_FASTEST : LEAST_SLICES;
  bool timed = true; /* some have room for samples: else time could stand still, by a clock that runs backwards */
  for (uint32_t round = 0;
       timed && (round < least || seconds_of_turns(all, count, start, turns->clock) < turns->seconds * left); round++) {
    draw_order(round, count, order);
    timed = false;
    for (uint32_t i = 0; i < count; i++) {
      struct samples *s = &all[order[i]];
      if (s->count == MOST_SAMPLES || s->lost) continue;
      const struct jit_finalist *c = &finalists[order[i]];
      if (!time_slice(c, turns_of(finalists, count, order[i]), s, turns->clock, &hertz)) return false;
      timed = true;
    }
    if (turns->to_find_fastest && round + 1 >= LEAST_OF_LOSERS) left = leave_out_losers(all, count);
    if (turns->to_find_fastest && left < 2) return true;
  }
  return true;
}

bool timing_in_turn(const struct jit_finalist *finalists, uint32_t count, const struct timing_turns *turns,
                    struct jit_timing *out) {
  assert(count > 0);
  struct samples *all = calloc(count, sizeof *all);
  uint32_t *order = calloc(count, sizeof *order);
  bool ok = all != NULL;
  for (uint32_t i = 0; ok && i < count; i++) ok = (all[i].at = malloc(MOST_SAMPLES * sizeof(double))) != NULL;
  ok = ok && order && take_turns(finalists, all, order, count, turns);
  for (uint32_t i = 0; ok && i < count; i++) summarize_slices(&all[i], &out[i]);
  for (uint32_t i = 0; all && i < count; i++) free(all[i].at);
  free(all);
  free(order);
  return ok;
}

bool jit_time_in_turn(const struct jit_finalist *finalists, uint32_t count, double seconds, struct jit_timing *out) {
  return timing_in_turn(finalists, count, &(struct timing_turns){seconds, false, &machine}, out);
}

bool jit_find_fastest(const struct jit_finalist *finalists, uint32_t count, double seconds, struct jit_timing *out) {
  return timing_in_turn(finalists, count, &(struct timing_turns){seconds, true, &machine}, out);
}
