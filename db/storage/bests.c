#define _GNU_SOURCE
/* Lists of the fastest records.
 *
 *   how many (1 byte), of each: id (16), seconds (8), seconds of its limit (8), notes, versions, limit (1 each)
 *   the texts that versions and limits are the numbers of, as they are first named: each with its zero
 *
 * A record that goes leaves a list of fewer. One that comes is listed where it is faster than the last: of what is
 * behind that nothing is known, unless the list has all. */
#include "bests.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 2 * DB_MOST_BESTS, LONGEST_TEXT = 120, ENTRY = sizeof(db_id) + 8 + 8 + 3 };

/* What a trace holds whose record keeps the order of reductions (jit.h, JIT_FIXED_ORDER). */
static const char ORDERED[] = "msched.fixed_order";

void bests_clear(struct bests *b) {
  for (int i = 0; i < TEXTS; i++) free(b->texts[i]);
  *b = (struct bests){0};
}

/* ---- Texts ---- */

static bool is_named(const struct bests *b, int text) {
  for (uint32_t i = 0; i < b->count; i++)
    if (b->at[i].versions == text || b->at[i].limit == text) return true;
  return false;
}

/* The text's number. There is room: each that is listed names at most two. */
static uint8_t text_number(struct bests *b, const char *text) {
  int unused = -1;
  for (int i = 0; i < TEXTS; i++) {
    if (b->texts[i] && !strcmp(b->texts[i], text)) return (uint8_t)i;
    if (unused < 0 && (!b->texts[i] || !is_named(b, i))) unused = i;
  }
  assert(unused >= 0);
  free(b->texts[unused]);
  b->texts[unused] = strdup(text);
  if (!b->texts[unused]) abort();
  return (uint8_t)unused;
}

/* ---- Records ---- */

bool bests_limit(const struct db_record *r, const char **name, double *seconds) {
  struct db_fact f;
  *name = NULL, *seconds = 0;
  for (size_t at = 0; db_next_fact(r, &at, &f);) {
    if (f.kind == DB_TEXT && !strcmp(f.name, "limit")) *name = f.text;
    if (f.kind == DB_NUMBER && !strcmp(f.name, "limit_seconds")) *seconds = f.number;
  }
  if (*name && *seconds > 0) return true;
  *name = "", *seconds = 0;
  return false;
}

/* In the order of the index of times. */
static int compare(double seconds, const db_id *id, const struct best *to) {
  return seconds != to->seconds ? (seconds < to->seconds ? -1 : 1) : memcmp(id, &to->id, sizeof *id);
}

/* Whether lists take it: what is not short is left to its record. */
static bool is_short(const struct db_record *r) {
  const char *limit;
  double seconds;
  bests_limit(r, &limit, &seconds);
  return strlen(r->versions) <= LONGEST_TEXT && strlen(limit) <= LONGEST_TEXT;
}

/* Sets the texts last: the place that a text takes must not be that of another's. */
static void fill(struct bests *b, uint32_t i, const struct db_record *r) {
  assert(i < b->count);
  const char *limit;
  struct best *to = &b->at[i];
  *to = (struct best){.id = r->id, .seconds = r->seconds};
  bests_limit(r, &limit, &to->limit_seconds);
  bool ordered = r->trace_bytes && memmem(r->trace, r->trace_bytes, ORDERED, strlen(ORDERED));
  to->notes = (uint8_t)((r->unsafe ? BEST_UNSAFE : 0) | (r->busy ? BEST_BUSY : 0) | (r->pinned ? BEST_PINNED : 0) |
                        (ordered ? BEST_ORDERED : 0));
  to->versions = to->limit = text_number(b, r->versions);
  to->limit = text_number(b, limit);
}

bool bests_append(struct bests *b, const struct db_record *r) {
  assert(r->status == DB_MEASURED);
  if (b->count == DB_MOST_BESTS || !is_short(r)) return false;
  assert(!b->count || compare(r->seconds, &r->id, &b->at[b->count - 1]) > 0);
  b->count++;
  b->at[b->count - 1] = (struct best){0};
  fill(b, b->count - 1, r);
  return true;
}

static void remove_one(struct bests *b, const db_id *id) {
  for (uint32_t i = 0; i < b->count; i++) {
    if (memcmp(&b->at[i].id, id, sizeof *id) != 0) continue;
    memmove(&b->at[i], &b->at[i + 1], (--b->count - i) * sizeof *b->at);
    return;
  }
}

static void insert(struct bests *b, const struct db_record *r) {
  uint32_t i = 0;
  while (i < b->count && compare(r->seconds, &r->id, &b->at[i]) > 0) i++;
  if (!is_short(r)) b->count = i; /* those behind it are the first no more */
  if (!is_short(r) || i == DB_MOST_BESTS) return;
  if (b->count == DB_MOST_BESTS) b->count--;
  memmove(&b->at[i + 1], &b->at[i], (b->count - i) * sizeof *b->at);
  b->count++;
  b->at[i] = (struct best){0};
  fill(b, i, r);
}

void bests_change(struct bests *b, const struct db_record *removed, const struct db_record *added, bool complete) {
  bool measured = added && added->status == DB_MEASURED;
  bool known = measured && (complete || (b->count && compare(added->seconds, &added->id, &b->at[b->count - 1]) <= 0));
  if (removed) remove_one(b, &removed->id);
  if (known) insert(b, added);
}

/* ---- As bytes ---- */

void bests_write(struct byte_writer *w, const struct bests *b) {
  assert(b->count <= DB_MOST_BESTS);
  uint8_t count = (uint8_t)b->count, number[TEXTS], order[TEXTS], texts = 0;
  memset(number, UINT8_MAX, sizeof number);
  bytes_put(w, &count, 1);
  for (uint32_t i = 0; i < b->count; i++) {
    const struct best *at = &b->at[i];
    const uint8_t named[2] = {at->versions, at->limit};
    for (int k = 0; k < 2; k++)
      if (number[named[k]] == UINT8_MAX) order[texts] = named[k], number[named[k]] = texts++;
    bytes_put(w, at->id.bytes, sizeof at->id.bytes);
    bytes_put_real(w, at->seconds);
    bytes_put_real(w, at->limit_seconds);
    bytes_put(w, (const uint8_t[]){at->notes, number[at->versions], number[at->limit]}, 3);
  }
  for (uint8_t i = 0; i < texts; i++) bytes_put(w, b->texts[order[i]], strlen(b->texts[order[i]]) + 1);
}

static void read_one(struct byte_reader *r, struct best *out) {
  const void *id = bytes_take(r, sizeof out->id.bytes);
  if (id) memcpy(out->id.bytes, id, sizeof out->id.bytes);
  out->seconds = bytes_take_real(r);
  out->limit_seconds = bytes_take_real(r);
  const uint8_t *rest = bytes_take(r, 3);
  if (!rest) return;
  out->notes = rest[0], out->versions = rest[1], out->limit = rest[2];
  r->bad |= out->notes >= BEST_NOTES || !(out->seconds > 0 && isfinite(out->seconds)) ||
            !(out->limit_seconds >= 0 && isfinite(out->limit_seconds));
}

bool bests_read(struct byte_reader *r, struct bests *out) {
  *out = (struct bests){0};
  const uint8_t *count = bytes_take(r, 1);
  uint8_t texts = 0;
  r->bad |= !count || *count > DB_MOST_BESTS;
  for (uint8_t i = 0; !r->bad && i < *count; i++) {
    struct best *at = &out->at[i];
    read_one(r, at);
    if (i && compare(at->seconds, &at->id, at - 1) <= 0) r->bad = true;
    for (int k = 0; k < 2; k++) { /* numbers go up as texts are first named */
      uint8_t named = k ? at->limit : at->versions;
      if (named > texts || named >= TEXTS) r->bad = true;
      if (named == texts) texts++;
    }
  }
  for (uint8_t i = 0; !r->bad && i < texts; i++) {
    const uint8_t *end = memchr(r->at, 0, (size_t)(r->end - r->at));
    size_t length = end ? (size_t)(end - r->at) : 0;
    if (!end || length > LONGEST_TEXT) {
      r->bad = true;
      break;
    }
    out->texts[i] = strdup((const char *)bytes_take(r, length + 1));
    if (!out->texts[i]) abort();
  }
  if (!r->bad) out->count = *count;
  return !r->bad;
}

bool bests_equal(const struct bests *a, const struct bests *b) {
  struct byte_writer first = {0}, second = {0};
  bests_write(&first, a);
  bests_write(&second, b);
  bool equal = first.size == second.size && !memcmp(first.at, second.at, first.size);
  free(first.at);
  free(second.at);
  return equal;
}

/* ---- Bytes that are not read ---- */

uint32_t bests_count(const void *bytes, size_t size) {
  const uint8_t *at = bytes;
  bool sound = size && *at <= DB_MOST_BESTS && size > (size_t)*at * ENTRY;
  return sound ? *at : 0;
}

bool bests_touch(const void *bytes, size_t size, const struct db_record *removed, const struct db_record *added,
                 bool complete) {
  uint32_t count = bests_count(bytes, size);
  bool measured = added && added->status == DB_MEASURED;
  if (complete) return measured || removed;
  if (!count) return false;
  const uint8_t *entries = (const uint8_t *)bytes + 1, *end = entries + (size_t)count * ENTRY;
  struct byte_reader last = bytes_reader(end - ENTRY, ENTRY);
  struct best its;
  read_one(&last, &its);
  if (last.bad || (measured && compare(added->seconds, &added->id, &its) <= 0)) return true;
  for (const uint8_t *at = entries; removed && at < end; at += ENTRY)
    if (!memcmp(at, removed->id.bytes, sizeof removed->id)) return true;
  return false;
}
