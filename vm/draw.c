/* Random numbers that are a function of their key, and the draws made of them.
 *
 * The generator is a counter hashed by splitmix64's finalizer (Steele, Lea, Flood: "Fast splittable pseudorandom number
 * generators", OOPSLA 2014): any number of the stream is had without those before it, on any machine. */
#include "vm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct vm_stream vm_stream_of(uint64_t seed, uint64_t candidate, uint32_t draw, uint64_t attempt) {
  uint64_t key = vm_stream_mix(seed + VM_STREAM_GOLDEN);
  key = vm_stream_mix(key + candidate * VM_STREAM_GOLDEN + 1);
  key = vm_stream_mix(key + draw * VM_STREAM_GOLDEN + 2);
  return (struct vm_stream){.key = vm_stream_mix(key + attempt * VM_STREAM_GOLDEN + 3)};
}

/* Multiply and shift; the bias is below 2^-32 of a draw, the same everywhere (Lemire, "Fast random integer generation
 * in an interval", 2019). */
uint32_t vm_stream_below(struct vm_stream *stream, uint32_t bound) {
  assert(bound);
  return (uint32_t)(((unsigned __int128)vm_stream_next(stream) * bound) >> 64);
}

/* ---- Perfect tiles ----------------------------------------------------------------------------------------------- */

struct prime_power {
  int64_t prime;
  uint32_t power;
};
enum { MOST_PRIMES = 16 }; /* 2·3·5·…·53 is the last product of primes below 2^63 */

static uint32_t take_prime(int64_t *extent, int64_t prime, struct prime_power *out) {
  assert(prime > 1 && *extent > 0);
  uint32_t power = 0;
  for (; *extent % prime == 0; *extent /= prime) power++;
  if (!power) return 0;
  *out = (struct prime_power){prime, power};
  return 1;
}

/* Trial division by 2, 3, 5 and then the numbers that none of them divides. What is left past 2^20 is one factor: its
 * parts, if it has any, are tiles nobody wants. */
static uint32_t factorize(int64_t extent, struct prime_power out[MOST_PRIMES]) {
  assert(extent >= 1);
  static const uint8_t wheel[8] = {4, 2, 4, 2, 4, 6, 2, 6}; /* from 7 on */
  uint32_t count = 0;
  uint32_t twos = (uint32_t)__builtin_ctzll((uint64_t)extent);
  if (twos) out[count++] = (struct prime_power){2, twos};
  extent >>= twos;
  count += take_prime(&extent, 3, &out[count]);
  count += take_prime(&extent, 5, &out[count]);
  for (int64_t p = 7, i = 0; p * p <= extent && p < 1 << 20; p += wheel[i], i = (i + 1) & 7)
    count += take_prime(&extent, p, &out[count]);
  if (extent > 1) out[count++] = (struct prime_power){extent, 1};
  return count;
}

/* Spreads `power` copies of a prime over n factors, each way equally likely: a walk over the power + n - 1 places of
 * copies and of n - 1 bars between them, a place being a bar with the chance of what is left. */
static void spread(struct vm_stream *stream, int64_t prime, uint32_t power, uint32_t n, int64_t *out) {
  assert(n >= 1);
  if (power == 1) {
    out[vm_stream_below(stream, n)] *= prime;
    return;
  }
  if (n == 2) {
    uint32_t first = vm_stream_below(stream, power + 1);
    for (uint32_t i = 0; i < first; i++) out[0] *= prime;
    for (uint32_t i = first; i < power; i++) out[1] *= prime;
    return;
  }
  uint32_t bars = n - 1, at = 0;
  for (uint32_t places = power + bars; power; places--) {
    if (bars && vm_stream_below(stream, places) < bars) {
      bars--;
      at++;
    } else {
      out[at] *= prime;
      power--;
    }
  }
}

static void draw_once(struct vm_stream *stream, const struct prime_power *primes, uint32_t count, uint32_t n,
                      int64_t *out) {
  assert(n >= 1);
  for (uint32_t i = 0; i < n; i++) out[i] = 1;
  for (uint32_t i = 0; i < count; i++) spread(stream, primes[i].prime, primes[i].power, n, out);
}

/* Rejection keeps the draw uniform. A last factor of 1 always fits, so it ends; where only few tuples fit (a limit
 * below every prime of a long product), the last factor is 1 in the end and the others are uniform. */
void vm_draw_tile(struct vm_stream *stream, int64_t extent, uint32_t n, int64_t most, int64_t *out) {
  assert(extent >= 1 && n >= 1);
  enum { TRIES = 256 };
  struct prime_power primes[MOST_PRIMES];
  uint32_t count = factorize(extent, primes);
  for (int i = 0; i < TRIES; i++) {
    draw_once(stream, primes, count, n, out);
    if (n == 1 || !most || out[n - 1] <= most) return;
  }
  draw_once(stream, primes, count, n - 1, out);
  out[n - 1] = 1;
}

/* Each tile that is drawn stands for itself: what is admitted is uniform. */
bool vm_draw_admitted_tile(struct vm_stream *stream, int64_t extent, uint32_t n, int64_t most, vm_admits_tile *admits,
                           void *data, int64_t *out) {
  assert(extent >= 1 && n >= 1 && admits);
  enum { TRIES = 32 };
  struct prime_power primes[MOST_PRIMES];
  uint32_t count = factorize(extent, primes);
  for (int i = 0; i < TRIES; i++) {
    draw_once(stream, primes, count, n, out);
    if ((!most || out[n - 1] <= most) && admits(data, out)) return true;
  }
  return false;
}

static int by_size(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

int64_t *vm_divisors(int64_t extent, uint32_t *count) {
  assert(extent >= 1 && count);
  struct prime_power primes[MOST_PRIMES];
  uint32_t kinds = factorize(extent, primes), all = 1;
  for (uint32_t i = 0; i < kinds; i++) all *= primes[i].power + 1;
  int64_t *list = malloc(all * sizeof *list);
  if (!list) abort();
  list[0] = 1, *count = 1;
  for (uint32_t i = 0; i < kinds; i++) { /* each of before, times each power of this prime */
    uint32_t before = *count;
    for (uint32_t k = 0; k < before * primes[i].power; k++)
      list[*count] = list[*count - before] * primes[i].prime, ++*count;
  }
  assert(*count == all);
  qsort(list, all, sizeof *list, by_size);
  return list;
}
