/* Records as bytes, and the keys of the indexes. Integers are little-endian, but in keys that sort. */
#include "bounds.h"
#include "bytes.h"
#include "db/file/store.h"

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

static void put_text(struct byte_writer *w, const char *text) {
  size_t length = strlen(text);
  bytes_put_fixed(w, length);
  bytes_put(w, text, length + 1);
}

static void put_list(struct byte_writer *w, const void *bytes, size_t size) {
  bytes_put_fixed(w, size);
  bytes_put(w, bytes, size);
}

size_t db_encode_record(const struct db_record *r, void **out) {
  assert(out && r->target && r->versions && (r->trace || !r->trace_bytes));
  struct byte_writer w = {0};
  const char format = r->fact_bytes ? WITH_FACTS : r->intrinsic_bytes ? WITH_INTRINSICS : PLAIN;
  bytes_put(&w, MAGIC, sizeof MAGIC);
  bytes_put(&w, &format, 1);
  bytes_put(&w, r->id.bytes, 16);
  bytes_put(&w, r->workload.bytes, 16);
  bytes_put_fixed(&w, r->module_hash);
  bytes_put_fixed(&w, (uint64_t)r->status);
  bytes_put_real(&w, r->seconds);
  bytes_put_real(&w, r->low);
  bytes_put_real(&w, r->high);
  bytes_put_fixed(&w, r->runs);
  bytes_put_fixed(&w, r->seed);
  bytes_put_fixed(&w, r->candidate);
  bytes_put_fixed(&w, (uint64_t)r->when);
  bytes_put_fixed(&w, (r->unsafe ? NOTE_UNSAFE : 0u) | (r->busy ? NOTE_BUSY : 0u) | (r->pinned ? NOTE_PINNED : 0u));
  put_text(&w, r->target);
  put_text(&w, r->reason ? r->reason : "");
  put_text(&w, r->versions);
  bytes_put_fixed(&w, r->trace_bytes);
  bytes_put(&w, r->trace, r->trace_bytes);
  if (format >= WITH_INTRINSICS) put_list(&w, r->intrinsics, r->intrinsic_bytes);
  if (format >= WITH_FACTS) put_list(&w, r->facts, r->fact_bytes);
  *out = w.at;
  return w.size;
}

/* ---- Reading: a stranger's bytes ---- */

static const char *take_text(struct byte_reader *r) {
  uint64_t length = bytes_take_fixed(r);
  const char *text = length < UINT32_MAX ? bytes_take(r, length + 1) : NULL;
  if (!text || text[length] != 0 || strlen(text) != length) {
    r->bad = true;
    return "";
  }
  return text;
}

static void take_id(struct byte_reader *r, db_id *id) {
  const void *bytes = bytes_take(r, 16);
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
  assert(*at <= r->intrinsic_bytes);
  return true;
}

static void take_intrinsics(struct byte_reader *r, struct db_record *out) {
  size_t at = 0;
  db_id id;
  const char *name;
  out->intrinsic_bytes = bytes_take_fixed(r);
  out->intrinsics = bytes_take(r, out->intrinsic_bytes);
  if (r->bad) return;
  while (db_next_intrinsic(out, &at, &id, &name)) {}
  r->bad = at != out->intrinsic_bytes;
}

static void take_facts(struct byte_reader *r, struct db_record *out) {
  size_t at = 0;
  struct db_fact fact;
  out->fact_bytes = bytes_take_fixed(r);
  out->facts = bytes_take(r, out->fact_bytes);
  if (r->bad) return;
  while (db_next_fact(out, &at, &fact)) {}
  r->bad = at != out->fact_bytes;
}

bool db_decode_record(const void *bytes, size_t size, struct db_record *out) {
  assert(bytes || !size);
  struct byte_reader r = bytes_reader(bytes, size);
  const void *magic = bytes_take(&r, sizeof MAGIC);
  memset(out, 0, sizeof *out);
  const char *format = bytes_take(&r, 1);
  if (!format || memcmp(magic, MAGIC, sizeof MAGIC) != 0 || *format < PLAIN || *format > WITH_FACTS) return false;
  take_id(&r, &out->id);
  take_id(&r, &out->workload);
  out->module_hash = bytes_take_fixed(&r);
  uint64_t status = bytes_take_fixed(&r);
  out->status = (enum db_status)status;
  out->seconds = bytes_take_real(&r);
  out->low = bytes_take_real(&r);
  out->high = bytes_take_real(&r);
  uint64_t runs = bytes_take_fixed(&r);
  out->runs = (uint32_t)runs;
  out->seed = bytes_take_fixed(&r);
  out->candidate = bytes_take_fixed(&r);
  out->when = (int64_t)bytes_take_fixed(&r);
  uint64_t notes = bytes_take_fixed(&r);
  out->unsafe = (notes & NOTE_UNSAFE) != 0;
  out->busy = (notes & NOTE_BUSY) != 0;
  out->pinned = (notes & NOTE_PINNED) != 0;
  out->target = take_text(&r);
  out->reason = take_text(&r);
  out->versions = take_text(&r);
  out->trace_bytes = bytes_take_fixed(&r);
  out->trace = bytes_take(&r, out->trace_bytes);
  if (*format >= WITH_INTRINSICS) take_intrinsics(&r, out);
  if (*format >= WITH_FACTS) take_facts(&r, out);
  return !r.bad && r.at == r.end && status <= DB_UNMEASURED && runs <= UINT32_MAX;
}

/* ---- Keys ---- */

static uint64_t db_hash_text(const char *text) { return XXH3_64bits(text, strlen(text)); }

static void big_endian(uint64_t value, uint8_t *out) {
  for (int i = 0; i < 8; i++) out[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* Doubles at or above 0 sort as their bits do. */
void db_time_key(const struct db_record *r, uint8_t out[DB_TIME_KEY]) {
  assert(r->target && out);
  uint64_t bits;
  double seconds = r->seconds;
  memcpy(&bits, &seconds, 8);
  memcpy(out, r->workload.bytes, 16);
  big_endian(db_hash_text(r->target), out + 16);
  out[24] = (uint8_t)r->status;
  big_endian(bits, out + 25);
  memcpy(out + 33, r->id.bytes, 16);
}

static void put_module_key(const db_id *workload, const char *target, uint64_t module_hash, const char *versions,
                           uint8_t out[DB_MODULE_KEY]) {
  memcpy(out, workload->bytes, 16);
  big_endian(db_hash_text(target), out + 16);
  big_endian(module_hash, out + 24);
  big_endian(db_hash_text(versions), out + 32);
}

db_id db_record_id(const struct db_record *r) {
  uint8_t key[DB_MODULE_KEY];
  put_module_key(&r->workload, r->target, r->module_hash, r->versions, key);
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, XXH3_128bits(key, sizeof key));
  db_id id;
  memcpy(id.bytes, bytes.digest, 16);
  return id;
}
