/* Records as bytes, and the keys of the indexes. Integers are little-endian, but in keys that sort. */
#include "bounds.h"
#include "db/storage/store.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

/* A record whose trace names no intrinsic of a user's, and of which no facts are known, is as it always was. Each
 * format has what the one before it has, and more; what a later version writes is refused. */
static const char MAGIC[] = {'m', 's', 'r'};
enum { PLAIN = '1', WITH_INTRINSICS = '2', WITH_FACTS = '3' };

/* What a record notes; older ones have no bit but the first. */
enum { NOTE_UNSAFE = 1, NOTE_BUSY = 2, NOTE_PINNED = 4 };

const char *const db_status_names[] = {[DB_MEASURED] = "measured",
                                       [DB_CENSORED] = "censored",
                                       [DB_FAILED] = "failed",
                                       [DB_UNMEASURED] = "unmeasured",
                                       NULL};

/* ---- Writing ---- */

struct writer {
  uint8_t *at;
  size_t size, room;
};

static void put(struct writer *w, const void *bytes, size_t size) {
  assert(bytes || !size);
  if (w->size + size > w->room) {
    w->room = (w->size + size) * 2 + 256;
    w->at = realloc(w->at, w->room);
    if (!w->at) abort();
  }
  if (size) memcpy(w->at + w->size, bytes, size);
  w->size += size;
}

static void put_number(struct writer *w, uint64_t value) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> 8 * i);
  put(w, bytes, 8);
}

static void put_real(struct writer *w, double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  put_number(w, bits);
}

static void put_text(struct writer *w, const char *text) {
  size_t length = strlen(text);
  put_number(w, length);
  put(w, text, length + 1);
}

static void put_list(struct writer *w, const void *bytes, size_t size) {
  put_number(w, size);
  put(w, bytes, size);
}

size_t db_encode_record(const struct db_record *r, void **out) {
  assert(out);
  struct writer w = {0};
  const char format = r->fact_bytes ? WITH_FACTS : r->intrinsic_bytes ? WITH_INTRINSICS : PLAIN;
  put(&w, MAGIC, sizeof MAGIC);
  put(&w, &format, 1);
  put(&w, r->id.bytes, 16);
  put(&w, r->workload.bytes, 16);
  put_number(&w, r->module_hash);
  put_number(&w, (uint64_t)r->status);
  put_real(&w, r->seconds);
  put_real(&w, r->low);
  put_real(&w, r->high);
  put_number(&w, r->runs);
  put_number(&w, r->seed);
  put_number(&w, r->candidate);
  put_number(&w, (uint64_t)r->when);
  put_number(&w, (r->unsafe ? NOTE_UNSAFE : 0u) | (r->busy ? NOTE_BUSY : 0u) | (r->pinned ? NOTE_PINNED : 0u));
  put_text(&w, r->target);
  put_text(&w, r->reason ? r->reason : "");
  put_text(&w, r->versions);
  put_number(&w, r->trace_bytes);
  put(&w, r->trace, r->trace_bytes);
  if (format >= WITH_INTRINSICS) put_list(&w, r->intrinsics, r->intrinsic_bytes);
  if (format >= WITH_FACTS) put_list(&w, r->facts, r->fact_bytes);
  *out = w.at;
  return w.size;
}

/* ---- Reading: a stranger's bytes ---- */

struct reader {
  const uint8_t *at;
  size_t left;
  bool bad;
};

static const void *take(struct reader *r, uint64_t size) {
  if (r->bad || size > r->left) {
    r->bad = true;
    return NULL;
  }
  const void *bytes = r->at;
  r->at += size;
  r->left -= size;
  return bytes;
}

static uint64_t take_number(struct reader *r) {
  const uint8_t *bytes = take(r, 8);
  uint64_t value = 0;
  for (int i = 0; bytes && i < 8; i++) value |= (uint64_t)bytes[i] << 8 * i;
  return value;
}

static double take_real(struct reader *r) {
  uint64_t bits = take_number(r);
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

static const char *take_text(struct reader *r) {
  uint64_t length = take_number(r);
  const char *text = length < UINT32_MAX ? take(r, length + 1) : NULL;
  if (!text || text[length] != 0 || strlen(text) != length) {
    r->bad = true;
    return "";
  }
  return text;
}

static void take_id(struct reader *r, db_id *id) {
  const void *bytes = take(r, 16);
  if (bytes) memcpy(id->bytes, bytes, 16);
}

bool db_next_intrinsic(const struct db_record *r, size_t *at, db_id *id, const char **name) {
  const uint8_t *all = r->intrinsics;
  if (r->intrinsic_bytes < *at + sizeof id->bytes) return false;
  const uint8_t *text = all + *at + sizeof id->bytes;
  const uint8_t *end = memchr(text, 0, (size_t)(all + r->intrinsic_bytes - text));
  if (!end) return false;
  memcpy(id->bytes, all + *at, sizeof id->bytes);
  *name = (const char *)text;
  *at = (size_t)(end + 1 - all);
  return true;
}

static void take_intrinsics(struct reader *r, struct db_record *out) {
  size_t at = 0;
  db_id id;
  const char *name;
  out->intrinsic_bytes = take_number(r);
  out->intrinsics = take(r, out->intrinsic_bytes);
  if (r->bad) return;
  while (db_next_intrinsic(out, &at, &id, &name)) {}
  r->bad = at != out->intrinsic_bytes;
}

static void take_facts(struct reader *r, struct db_record *out) {
  size_t at = 0;
  struct db_fact fact;
  out->fact_bytes = take_number(r);
  out->facts = take(r, out->fact_bytes);
  if (r->bad) return;
  while (db_next_fact(out, &at, &fact)) {}
  r->bad = at != out->fact_bytes;
}

bool db_decode_record(const void *bytes, size_t size, struct db_record *out) {
  assert(bytes || !size);
  struct reader r = {bytes, size, false};
  const void *magic = take(&r, sizeof MAGIC);
  memset(out, 0, sizeof *out);
  const char *format = take(&r, 1);
  if (!format || memcmp(magic, MAGIC, sizeof MAGIC) != 0 || *format < PLAIN || *format > WITH_FACTS) return false;
  take_id(&r, &out->id);
  take_id(&r, &out->workload);
  out->module_hash = take_number(&r);
  uint64_t status = take_number(&r);
  out->status = (enum db_status)status;
  out->seconds = take_real(&r);
  out->low = take_real(&r);
  out->high = take_real(&r);
  uint64_t runs = take_number(&r);
  out->runs = (uint32_t)runs;
  out->seed = take_number(&r);
  out->candidate = take_number(&r);
  out->when = (int64_t)take_number(&r);
  uint64_t notes = take_number(&r);
  out->unsafe = (notes & NOTE_UNSAFE) != 0;
  out->busy = (notes & NOTE_BUSY) != 0;
  out->pinned = (notes & NOTE_PINNED) != 0;
  out->target = take_text(&r);
  out->reason = take_text(&r);
  out->versions = take_text(&r);
  out->trace_bytes = take_number(&r);
  out->trace = take(&r, out->trace_bytes);
  if (*format >= WITH_INTRINSICS) take_intrinsics(&r, out);
  if (*format >= WITH_FACTS) take_facts(&r, out);
  return !r.bad && r.left == 0 && status <= DB_UNMEASURED && runs <= UINT32_MAX;
}

/* ---- Keys ---- */

static uint64_t db_hash_text(const char *text) { return XXH3_64bits(text, strlen(text)); }

static void big_endian(uint64_t value, uint8_t *out) {
  for (int i = 0; i < 8; i++) out[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* Doubles at or above 0 sort as their bits do. */
void db_time_key(const struct db_record *r, uint8_t out[DB_TIME_KEY]) {
  uint64_t bits;
  double seconds = r->seconds;
  memcpy(&bits, &seconds, 8);
  memcpy(out, r->workload.bytes, 16);
  big_endian(db_hash_text(r->target), out + 16);
  out[24] = (uint8_t)r->status;
  big_endian(bits, out + 25);
  memcpy(out + 33, r->id.bytes, 16);
}

void db_module_key(const db_id *workload, const char *target, uint64_t module_hash, const char *versions,
                   uint8_t out[DB_MODULE_KEY]) {
  memcpy(out, workload->bytes, 16);
  big_endian(db_hash_text(target), out + 16);
  big_endian(module_hash, out + 24);
  big_endian(db_hash_text(versions), out + 32);
}
