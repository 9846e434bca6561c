/* Differences: greedy matches by runs of four bytes, before all at the place where the last one ended: what traces of
 * one sketch differ in are numbers here and there. */
#include "delta.h"

#include "db/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 4, HEADS = 1 << 12, LONGEST_CHAIN = 16, LONG_ENOUGH = 32 };
/* What a copy costs besides the bytes that it spares: nearly always two numbers, a far one a longer. */
enum { NEAR_COST = 2, FAR_COST = 4 };

static uint32_t hash_of(const uint8_t *at) {
  uint32_t run;
  memcpy(&run, at, sizeof run);
  return run * 2654435761u >> 20;
}

void delta_prepare(struct delta_base *base, const void *bytes, size_t size) {
  assert(size <= DELTA_MOST && (bytes || !size));
  *base = (struct delta_base){malloc(size + 1), size, malloc(HEADS * sizeof(int32_t)),
                              malloc((size + 1) * sizeof(int32_t))};
  if (!base->bytes || !base->first || !base->next) abort();
  if (size) memcpy(base->bytes, bytes, size);
  for (int i = 0; i < HEADS; i++) base->first[i] = -1;
  for (size_t i = size >= RUN ? size - RUN + 1 : 0; i-- > 0;) { /* the earliest comes first */
    uint32_t hash = hash_of(base->bytes + i);
    base->next[i] = base->first[hash];
    base->first[hash] = (int32_t)i;
  }
}

void delta_free(struct delta_base *base) {
  free(base->bytes);
  free(base->first);
  free(base->next);
  *base = (struct delta_base){0};
}

/* ---- Writing ---- */

struct writer {
  uint8_t *at, *end;
  bool full;
};

static void put_number(struct writer *w, uint64_t n) {
  do {
    if (w->at == w->end) {
      w->full = true;
      return;
    }
    *w->at++ = (uint8_t)((n & 127) | (n > 127 ? 128 : 0));
  } while (n >>= 7);
}

static void put_bytes(struct writer *w, const uint8_t *bytes, size_t size) {
  put_number(w, size);
  w->full |= size > (size_t)(w->end - w->at);
  if (w->full) return;
  if (size) memcpy(w->at, bytes, size);
  w->at += size;
}

static size_t count_equal(const uint8_t *a, const uint8_t *b, size_t most) {
  size_t n = 0;
  for (uint64_t x, y; n + 8 <= most; n += 8) {
    memcpy(&x, a + n, 8), memcpy(&y, b + n, 8);
    if (x != y) break;
  }
  while (n < most && a[n] == b[n]) n++;
  return n;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

struct match {
  size_t place, length;
};

/* The best copy for what begins at `at`, or one of no length; `expected`: the place where the last one would go on. */
static struct match find_match(const struct delta_base *base, const uint8_t *at, size_t left, size_t expected) {
  assert(left > 0 && base->size <= DELTA_MOST);
  struct match best = {expected, 0};
  if (expected < base->size) best.length = count_equal(at, base->bytes + expected, least(left, base->size - expected));
  size_t gain = best.length > NEAR_COST ? best.length - NEAR_COST : 0;
  if (best.length >= LONG_ENOUGH || left < RUN) return gain ? best : (struct match){expected, 0};
  int tries = LONGEST_CHAIN;
  for (int32_t i = base->first[hash_of(at)]; i >= 0 && tries-- > 0; i = base->next[i]) {
    size_t length = count_equal(at, base->bytes + i, least(left, base->size - (size_t)i));
    if (length <= FAR_COST + gain) continue;
    gain = length - FAR_COST;
    best = (struct match){(size_t)i, length};
  }
  return gain ? best : (struct match){expected, 0};
}

size_t delta_write(const struct delta_base *base, const void *bytes, size_t size, uint8_t *out, size_t room) {
  const uint8_t *from = bytes;
  struct writer w = {out, out + room, false};
  size_t fresh = 0, place = 0; /* where bytes begin that no copy gives; where the next copy is expected */
  for (size_t i = 0; i < size && !w.full;) {
    size_t expected = place + (i - fresh);
    struct match m = find_match(base, from + i, size - i, expected);
    if (!m.length) {
      i++;
      w.full |= i - fresh > room;
      continue;
    }
    int64_t from_expected = (int64_t)m.place - (int64_t)expected;
    put_bytes(&w, from + fresh, i - fresh);
    put_number(&w, (uint64_t)from_expected << 1 ^ (from_expected < 0 ? UINT64_MAX : 0));
    put_number(&w, m.length);
    i += m.length;
    fresh = i;
    place = m.place + m.length;
  }
  if (fresh < size || !size) put_bytes(&w, from + fresh, size - fresh);
  assert(w.at <= w.end);
  return w.full ? 0 : (size_t)(w.at - out);
}

/* ---- Reading ---- */

bool delta_read(const void *base, size_t base_size, const void *delta, size_t delta_size, uint8_t *out, size_t size) {
  struct byte_reader r = bytes_reader(delta, delta_size);
  size_t place = 0, made = 0;
  while (r.at < r.end) {
    assert(made <= size);
    uint64_t fresh = bytes_take_number(&r);
    const void *bytes = bytes_take(&r, fresh);
    if (!bytes || fresh > size - made) return false;
    if (fresh) memcpy(out + made, bytes, fresh);
    made += fresh;
    if (r.at == r.end) break;
    uint64_t far = bytes_take_number(&r), length = bytes_take_number(&r);
    if (r.bad) return false;
    /* Wraps where a stranger says so, and is then past the end of the base. */
    uint64_t from = place + fresh + ((far >> 1) ^ -(far & 1));
    if (from > base_size || length > base_size - from || length > size - made) return false;
    if (length) memcpy(out + made, (const uint8_t *)base + from, length);
    made += length;
    place = from + length;
  }
  return made == size;
}
