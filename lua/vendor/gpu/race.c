/* Ways to compute the same, timed in turn: a card's clock falls as it warms, so that what is timed later looks
 * slower. */
#include "race.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, MOST_CALLS = 50 };
static const double SAMPLE = 0.5e-3, HOPELESS = 2; /* seconds of a sample; times the fastest first sample */

bool vendor_logs(void) {
  const char *value = getenv("MSCHED_VENDOR_LOG");
  return value && *value;
}

void vendor_log(const char *format, ...) {
  if (!vendor_logs()) return;
  va_list list;
  va_start(list, format);
  fputs("vendor: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  va_end(list);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* So many calls that a sample lasts long enough to be told from another. */
static uint32_t calls_of(double seconds) {
  double calls = seconds > 0 ? SAMPLE / seconds : MOST_CALLS;
  return calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (uint32_t)calls;
}

/* One sample of each. Gives the least. */
static double warm_up(const struct vendor_race *race, double *seconds) {
  double least = -1;
  for (int i = 0; i < race->count; i++) {
    seconds[i] = race->warm(race->data, i) ? race->sample(race->data, i, 1) : -1;
    if (seconds[i] >= 0 && (least < 0 || seconds[i] < least)) least = seconds[i];
  }
  return least;
}

/* The fastest that passes the check; -1: none does. */
static int take(const struct vendor_race *race, const bool *runs, double *seconds) {
  for (;;) {
    int best = -1;
    for (int i = 0; i < race->count; i++)
      if (runs[i] && seconds[i] >= 0 && (best < 0 || seconds[i] < seconds[best])) best = i;
    if (best < 0 || race->check(race->data, best)) return best;
    seconds[best] = -1;
  }
}

int vendor_race(const struct vendor_race *race, double *seconds) {
  assert(race->count >= 0 && race->count <= VENDOR_MOST_WAYS);
  double samples[VENDOR_MOST_WAYS][ROUNDS], least = warm_up(race, seconds);
  bool runs[VENDOR_MOST_WAYS] = {false};
  uint32_t calls[VENDOR_MOST_WAYS];
  for (int i = 0; i < race->count; i++) {
    runs[i] = seconds[i] >= 0 && seconds[i] <= HOPELESS * least;
    calls[i] = calls_of(seconds[i]);
  }
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < race->count; i++) {
      if (!runs[i]) continue;
      samples[i][round] = race->sample(race->data, i, calls[i]);
      if (samples[i][round] < 0) runs[i] = false, seconds[i] = -1;
    }
  for (int i = 0; i < race->count; i++) {
    if (!runs[i]) continue;
    assert(calls[i] >= 1 && calls[i] <= MOST_CALLS);
    qsort(samples[i], ROUNDS, sizeof *samples[i], by_value);
    seconds[i] = samples[i][ROUNDS / 2];
  }
  return take(race, runs, seconds);
}
