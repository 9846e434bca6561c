/* Packed records: what many have in common stands in two tables.
 *
 *   context   "msc1", workload (16 bytes), target, versions, intrinsics, names of facts with their kinds, and the texts
 *             among their values; kept by content. A long text stands in the record.
 *   sketch    a trace's binary form, kept by the workload and a number; others of the workload are differences to it
 *   record    "msr4", context's id (16), module's hash (8), status and notes, seconds, low, high (8 each), runs, seed,
 *             candidate, when, reason, values of facts, bytes of the trace, 0 and the trace, or 1 + the sketch's
 *             number, the trace's hash (4) and the difference (delta.h)
 *
 * Numbers are LEB128; a text is its length, its bytes and a zero. The record's id is made from the context and the
 * module's hash. A fact's number that is whole is twice it, another a 1 and eight bytes. */
#include "packed.h"

#include "db/bytes.h"
#include "db/file/snapshot.h"
#include "delta.h"
#include "seal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

static const char CONTEXT_MAGIC[] = {'m', 's', 'c', '1'}, RECORD_MAGIC[] = {'m', 's', 'r', '4'};
enum { MAGIC = 4, MOST_SKETCHES = 8, LONGEST_SHARED = 64, ROOM_FOR_ITSELF = 16 };
enum { STATUS_BITS = 2, IS_UNSAFE = 4, IS_BUSY = 8, IS_PINNED = 16, NOTES_END = 32 };

/* ---- Writing ---- */

static void put_text(struct byte_writer *w, const char *text) {
  size_t length = strlen(text);
  bytes_put_number(w, length);
  bytes_put(w, text, length + 1);
}

static bool is_shared(const struct db_fact *f) { return f->kind == DB_TEXT && strlen(f->text) <= LONGEST_SHARED; }

enum { FACT_NUMBER = 'n', FACT_BOOLEAN = 'b', FACT_TEXT = 't', FACT_LONG_TEXT = 'l' };

static void put_context(struct byte_writer *w, const struct db_record *r) {
  struct db_fact f;
  bytes_put(w, CONTEXT_MAGIC, MAGIC);
  bytes_put(w, r->workload.bytes, sizeof r->workload.bytes);
  put_text(w, r->target);
  put_text(w, r->versions);
  bytes_put_number(w, r->intrinsic_bytes);
  bytes_put(w, r->intrinsics, r->intrinsic_bytes);
  for (size_t at = 0; db_next_fact(r, &at, &f);) {
    uint8_t letter = f.kind == DB_NUMBER    ? FACT_NUMBER
                     : f.kind == DB_BOOLEAN ? FACT_BOOLEAN
                     : is_shared(&f)        ? FACT_TEXT
                                            : FACT_LONG_TEXT;
    bytes_put(w, &letter, 1);
    put_text(w, f.name);
    if (letter == FACT_TEXT) put_text(w, f.text);
  }
}

/* Twice a whole number; others by their bits, behind an odd one: NaN, and the zero that is less than 0, too. */
static void put_fact_number(struct byte_writer *w, double x) {
  if (x >= 0 && x < 0x1p53 && x == trunc(x) && !signbit(x)) {
    bytes_put_number(w, (uint64_t)x << 1);
    return;
  }
  bytes_put_number(w, 1);
  bytes_put_real(w, x);
}

static void put_values(struct byte_writer *w, const struct db_record *r) {
  struct db_fact f;
  for (size_t at = 0; db_next_fact(r, &at, &f);) {
    uint8_t truth = f.number != 0;
    if (f.kind == DB_NUMBER) put_fact_number(w, f.number);
    if (f.kind == DB_BOOLEAN) bytes_put(w, &truth, 1);
    if (f.kind == DB_TEXT && !is_shared(&f)) put_text(w, f.text);
  }
}

/* ---- Sketches ---- */

struct db_sketches {
  db_id workload;
  uint32_t count, next; /* of `at`; a number that no sketch has */
  uint32_t last;        /* of `at`: the one that served last */
  struct {
    uint32_t number;
    struct delta_base base;
  } at[MOST_SKETCHES];
};

db_id db_sketch_key(const db_id *workload, uint32_t number) {
  db_id key = *workload;
  for (int i = 0; i < 4; i++) key.bytes[12 + i] = (uint8_t)(number >> (24 - 8 * i));
  return key;
}

static void forget_sketches(struct db *db) {
  for (uint32_t i = 0; db->sketches_read && i < db->sketches_read->count; i++)
    delta_free(&db->sketches_read->at[i].base);
  free(db->sketches_read);
  db->sketches_read = NULL;
}

static void forget_read(struct db *db) {
  forget_sketches(db);
  db_free_parts(&db->parts);
}

/* Reads those of a workload; one that is damaged serves for nothing more. */
static int read_sketches(struct db *db, MDB_txn *txn, const db_id *workload) {
  struct db_cursor cursor;
  int code = db_cursor_open(db, txn, DB_SKETCHES, &cursor);
  if (code) return code;
  forget_sketches(db);
  db->forget = forget_read;
  struct db_sketches *s = db->sketches_read = calloc(1, sizeof *s);
  if (!s) abort();
  s->workload = *workload;
  db_id first = db_sketch_key(workload, 0);
  MDB_val key = {sizeof first, first.bytes}, value;
  for (code = db_cursor_seek(&cursor, &key, &value); !code; code = db_cursor_next(&cursor, &key, &value)) {
    if (key.mv_size != sizeof first || memcmp(key.mv_data, first.bytes, 12) != 0) break;
    const uint8_t *number = (const uint8_t *)key.mv_data + 12;
    s->next = ((uint32_t)number[0] << 24 | (uint32_t)number[1] << 16 | (uint32_t)number[2] << 8 | number[3]) + 1;
    if (s->count == MOST_SKETCHES || db_unseal(DB_SKETCH, &key, &value) != DB_SEALED || value.mv_size > DELTA_MOST)
      continue;
    s->at[s->count].number = s->next - 1;
    delta_prepare(&s->at[s->count++].base, value.mv_data, value.mv_size);
  }
  db_cursor_close(&cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

/* Whether it is in the store as it was when it was read: a transaction may not have been committed, and another process
 * may have removed it. */
static bool is_there(struct db *db, MDB_txn *txn, uint32_t i) {
  const struct db_sketches *s = db->sketches_read;
  db_id id = db_sketch_key(&s->workload, s->at[i].number);
  MDB_val key = {sizeof id, id.bytes}, value;
  return !db_get(db, txn, DB_SKETCHES, &key, &value) && db_unseal(DB_SKETCH, &key, &value) == DB_SEALED &&
         value.mv_size == s->at[i].base.size && !memcmp(value.mv_data, s->at[i].base.bytes, value.mv_size);
}

/* A difference that is short enough not to look for a shorter one, and for no sketch to be made of the trace. */
static size_t short_enough(size_t trace) { return 48 + trace / 64; }
static size_t no_sketch_needed(size_t trace) { return 64 + trace / 16; }

static bool wants_sketch(const struct db_sketches *s, const struct db_record *r, size_t size) {
  return (!size || size > no_sketch_needed(r->trace_bytes)) && s->count < MOST_SKETCHES && s->next < UINT32_MAX;
}

/* The sketches were read in this transaction: the number is free. */
static int add_sketch(struct db *db, MDB_txn *txn, const struct db_record *r, uint8_t *difference, size_t *size) {
  struct db_sketches *s = db->sketches_read;
  assert(s->count < MOST_SKETCHES && s->next < UINT32_MAX);
  db_id key = db_sketch_key(&s->workload, s->next);
  int code = db_put_sealed(txn, db->sketches, DB_SKETCH, &key, r->trace, r->trace_bytes);
  if (code) return code;
  s->at[s->count].number = s->next++;
  delta_prepare(&s->at[s->count].base, r->trace, r->trace_bytes);
  s->last = s->count++;
  *size = delta_write(&s->at[s->last].base, r->trace, r->trace_bytes, difference, r->trace_bytes + ROOM_FOR_ITSELF);
  return 0;
}

/* The shortest difference to a sketch, written to `out`, which has room for the trace; its length, or 0. */
static size_t find_shortest(struct db_sketches *s, const struct db_record *r, uint8_t *out) {
  assert(r->trace_bytes && s->count <= MOST_SKETCHES);
  size_t shortest = 0;
  uint8_t *other = malloc(r->trace_bytes + 1);
  if (!other) abort();
  for (uint32_t k = 0, from = s->last; k < s->count; k++) {
    uint32_t i = (from + k) % s->count;
    size_t size = delta_write(&s->at[i].base, r->trace, r->trace_bytes, other, shortest ? shortest : r->trace_bytes);
    if (!size || (shortest && size >= shortest)) continue;
    memcpy(out, other, size);
    shortest = size;
    s->last = i;
    if (size <= short_enough(r->trace_bytes)) break;
  }
  free(other);
  return shortest;
}

enum { CHECK = 4 };
static void write_check(const void *trace, size_t size, uint8_t out[CHECK]) {
  uint64_t hash = XXH3_64bits(trace, size);
  for (int i = 0; i < CHECK; i++) out[i] = (uint8_t)(hash >> 8 * i);
}

static void put_check(struct byte_writer *w, const void *trace, size_t size) {
  write_check(trace, size, bytes_extend(w, CHECK));
}

static void put_whole(struct byte_writer *w, const struct db_record *r) {
  assert(r->trace || !r->trace_bytes);
  bytes_put_number(w, 0);
  bytes_put(w, r->trace, r->trace_bytes);
}

/* Whether the workload has a record besides this one: a trace that is alone needs no sketch. */
static bool has_others(struct db *db, MDB_txn *txn, const struct db_record *r) {
  struct db_cursor cursor;
  MDB_val key = {sizeof r->workload, (void *)r->workload.bytes}, value;
  bool found = false;
  if (db_cursor_open(db, txn, DB_TIMES, &cursor)) return false;
  for (int code = db_cursor_seek(&cursor, &key, &value); !code && !found;
       code = db_cursor_next(&cursor, &key, &value)) {
    if (key.mv_size != DB_TIME_KEY || memcmp(key.mv_data, r->workload.bytes, sizeof r->workload) != 0) break;
    found = memcmp((uint8_t *)key.mv_data + DB_TIME_KEY - 16, r->id.bytes, sizeof r->id) != 0;
  }
  db_cursor_close(&cursor);
  return found;
}

static int put_trace(struct db *db, MDB_txn *txn, const struct db_record *r, struct byte_writer *w) {
  bytes_put_number(w, r->trace_bytes);
  if (!r->trace_bytes || r->trace_bytes > DELTA_MOST) {
    put_whole(w, r);
    return 0;
  }
  const struct db_sketches *s = db->sketches_read;
  uint8_t *difference = malloc(r->trace_bytes + ROOM_FOR_ITSELF);
  if (!difference) abort();
  bool known = s && !memcmp(&s->workload, &r->workload, sizeof s->workload);
  size_t size = known ? find_shortest(db->sketches_read, r, difference) : 0;
  int code = 0;
  if (!known || wants_sketch(s, r, size) || (size && !is_there(db, txn, s->last))) {
    code = read_sketches(db, txn, &r->workload);
    size = code ? 0 : find_shortest(db->sketches_read, r, difference);
    if (!code && wants_sketch(db->sketches_read, r, size) && (db->sketches_read->count || has_others(db, txn, r)))
      code = add_sketch(db, txn, r, difference, &size);
  }
  s = db->sketches_read;
  if (!code && size) {
    bytes_put_number(w, 1 + (uint64_t)s->at[s->last].number);
    put_check(w, r->trace, r->trace_bytes);
    bytes_put(w, difference, size);
  }
  if (!code && !size) put_whole(w, r);
  free(difference);
  return code;
}

/* ---- Packing ---- */

static int keep_context(struct db *db, MDB_txn *txn, const struct db_record *r, db_id *id) {
  struct byte_writer w = {0};
  put_context(&w, r);
  *id = db_content_id(w.at, w.size);
  MDB_val key = {sizeof *id, id->bytes}, value;
  int code = db_get(db, txn, DB_CONTEXTS, &key, &value);
  bool there = !code && db_unseal(DB_CONTEXT, &key, &value) == DB_SEALED;
  if (!there && (!code || code == MDB_NOTFOUND)) code = db_put_sealed(txn, db->contexts, DB_CONTEXT, id, w.at, w.size);
  free(w.at);
  return there ? 0 : code;
}

int db_pack_record(struct db *db, MDB_txn *txn, const struct db_record *r, void **out, size_t *size) {
  db_id own = db_record_id(r), context;
  *out = NULL;
  if (memcmp(&own, &r->id, sizeof own) != 0 || (unsigned)r->status > DB_UNMEASURED) {
    *size = db_encode_record(r, out);
    return 0;
  }
  struct byte_writer w = {0};
  int code = keep_context(db, txn, r, &context);
  bytes_put(&w, RECORD_MAGIC, MAGIC);
  bytes_put(&w, context.bytes, sizeof context.bytes);
  bytes_put_fixed(&w, r->module_hash);
  bytes_put_number(&w, (unsigned)r->status | (r->unsafe ? IS_UNSAFE : 0u) | (r->busy ? IS_BUSY : 0u) |
                           (r->pinned ? IS_PINNED : 0u));
  bytes_put_real(&w, r->seconds);
  bytes_put_real(&w, r->low);
  bytes_put_real(&w, r->high);
  bytes_put_number(&w, r->runs);
  bytes_put_number(&w, r->seed);
  bytes_put_number(&w, r->candidate);
  bytes_put_number(&w, (uint64_t)r->when);
  put_text(&w, r->reason ? r->reason : "");
  put_values(&w, r);
  if (!code) code = put_trace(db, txn, r, &w);
  if (code) {
    free(w.at);
    return code;
  }
  *out = w.at;
  *size = w.size;
  return 0;
}

/* ---- Reading: a stranger's bytes ---- */

static const char *take_text(struct byte_reader *r) {
  uint64_t length = bytes_take_number(r);
  const char *text = length < UINT32_MAX ? bytes_take(r, length + 1) : NULL;
  if (!text || text[length] != 0 || strlen(text) != length) {
    r->bad = true;
    return "";
  }
  return text;
}

static struct byte_reader reader_of(const void *bytes, size_t size, const char magic[MAGIC]) {
  struct byte_reader r = bytes_reader(bytes, size);
  const void *has = bytes_take(&r, MAGIC);
  r.bad |= !has || memcmp(has, magic, MAGIC) != 0;
  return r;
}

bool db_is_packed(const void *bytes, size_t size) { return size >= MAGIC && !memcmp(bytes, RECORD_MAGIC, MAGIC); }

/* The reader stands at the facts afterwards. */
static struct byte_reader read_context(const void *bytes, size_t size, struct db_record *out) {
  struct byte_reader r = reader_of(bytes, size, CONTEXT_MAGIC);
  const void *workload = bytes_take(&r, sizeof out->workload.bytes);
  if (workload) memcpy(out->workload.bytes, workload, sizeof out->workload.bytes);
  out->target = take_text(&r);
  out->versions = take_text(&r);
  out->intrinsic_bytes = bytes_take_number(&r);
  out->intrinsics = bytes_take(&r, out->intrinsic_bytes);
  size_t at = 0;
  db_id id;
  const char *name;
  while (!r.bad && db_next_intrinsic(out, &at, &id, &name)) {}
  r.bad |= at != out->intrinsic_bytes;
  return r;
}

static bool take_fact(struct byte_reader *context, struct db_fact *out, uint8_t *letter) {
  const uint8_t *kind = bytes_take(context, 1);
  *letter = kind ? *kind : 0;
  context->bad |= !*letter || !strchr("nbtl", *letter);
  *out = (struct db_fact){.name = take_text(context), .text = ""};
  out->kind = *letter == FACT_NUMBER ? DB_NUMBER : *letter == FACT_BOOLEAN ? DB_BOOLEAN : DB_TEXT;
  if (*letter == FACT_TEXT) out->text = take_text(context);
  return !context->bad;
}

bool db_is_context(const void *bytes, size_t size) {
  struct db_record like = {0};
  struct byte_reader r = read_context(bytes, size, &like);
  struct db_fact f;
  uint8_t letter;
  while (!r.bad && r.at < r.end) take_fact(&r, &f, &letter);
  return !r.bad;
}

/* Room for `size` bytes more; a record's pointers into it are set once it is complete. */
static uint8_t *room_for(struct db_parts *p, size_t used, size_t size) {
  if (used + size > p->size) {
    p->size = (used + size) * 2 + 1024;
    p->room = realloc(p->room, p->size);
    if (!p->room) abort();
  }
  return p->room + used;
}

static void take_value(struct byte_reader *r, uint8_t letter, struct db_fact *f) {
  if (letter == FACT_LONG_TEXT) f->text = take_text(r);
  if (letter == FACT_BOOLEAN) {
    const uint8_t *truth = bytes_take(r, 1);
    r->bad |= !truth || *truth > 1;
    f->number = truth && *truth;
  }
  if (letter != FACT_NUMBER) return;
  uint64_t n = bytes_take_number(r);
  f->number = n & 1 ? bytes_take_real(r) : (double)(n >> 1);
  r->bad |= (n & 1 && n != 1) || !isfinite(f->number);
}

/* The facts as records hold them, at the beginning of the room; how many bytes. */
static size_t take_facts(struct db_parts *p, struct byte_reader *r, struct byte_reader *context) {
  size_t used = 0;
  while (!r->bad && !context->bad && context->at < context->end) {
    struct db_fact f;
    uint8_t letter;
    if (!take_fact(context, &f, &letter)) break;
    take_value(r, letter, &f);
    if (r->bad) break;
    size_t size = db_fact_bytes(&f);
    db_write_fact(&f, room_for(p, used, size));
    used += size;
  }
  return used;
}

/* ---- Parts: contexts and sketches that were found sound are remembered as long as their snapshot is read ---- */

enum { REMEMBERED = 4096 };
struct db_remembered {
  char kind;
  db_id id;
  uint64_t snapshot;
  MDB_val value; /* without its seal */
};

enum found { FOUND, MISSING, DAMAGED };

static struct db_remembered *slot_of(struct db_parts *p, char kind, const db_id *id) {
  if (!p->remembered && !(p->remembered = calloc(REMEMBERED, sizeof *p->remembered))) abort();
  return &p->remembered[XXH3_64bits_withSeed(id->bytes, sizeof id->bytes, (uint8_t)kind) % REMEMBERED];
}

static enum found find_part(struct db_parts *p, char kind, const db_id *id, MDB_val *value) {
  struct db_remembered *slot = p->snapshot ? slot_of(p, kind, id) : NULL;
  if (slot && slot->snapshot == p->snapshot && slot->kind == kind && !memcmp(&slot->id, id, sizeof *id)) {
    *value = slot->value;
    return FOUND;
  }
  MDB_val key = {sizeof *id, (void *)id->bytes};
  if (!p->find(p->data, kind, id->bytes, value)) return MISSING;
  if (db_unseal(kind, &key, value) != DB_SEALED) return DAMAGED;
  if (slot) *slot = (struct db_remembered){kind, *id, p->snapshot, *value};
  return FOUND;
}

/* Behind `used` bytes of the room. */
static const char *take_trace(struct db_parts *p, struct byte_reader *r, size_t used, struct db_record *out) {
  uint64_t size = bytes_take_number(r), sketch = bytes_take_number(r);
  if (r->bad || sketch > (uint64_t)UINT32_MAX + 1) return "it does not decode";
  out->trace_bytes = size;
  p->sketch = sketch;
  if (!sketch) {
    out->trace = bytes_take(r, size);
    return r->bad || r->at != r->end ? "it does not decode" : NULL;
  }
  db_id id = db_sketch_key(&out->workload, (uint32_t)(sketch - 1));
  MDB_val value;
  if (size > DELTA_MOST) return "it does not decode";
  enum found found = find_part(p, DB_SKETCH, &id, &value);
  if (found == MISSING) return "the sketch that its trace is kept by is missing";
  if (found == DAMAGED) return "the sketch that its trace is kept by is damaged";
  const void *check = bytes_take(r, CHECK);
  uint8_t *to = room_for(p, used, size), its[CHECK];
  out->trace = to;
  if (!check || !delta_read(value.mv_data, value.mv_size, r->at, (size_t)(r->end - r->at), to, size))
    return "its trace does not decode";
  write_check(to, size, its);
  return memcmp(its, check, CHECK) != 0 ? "the sketch that its trace is kept by is another" : NULL;
}

static const char *take_numbers(struct byte_reader *r, struct db_record *out) {
  out->module_hash = bytes_take_fixed(r);
  uint64_t notes = bytes_take_number(r);
  out->status = (enum db_status)(notes & ((1 << STATUS_BITS) - 1));
  out->unsafe = notes & IS_UNSAFE;
  out->busy = notes & IS_BUSY;
  out->pinned = notes & IS_PINNED;
  out->seconds = bytes_take_real(r);
  out->low = bytes_take_real(r);
  out->high = bytes_take_real(r);
  uint64_t runs = bytes_take_number(r);
  out->runs = (uint32_t)runs;
  out->seed = bytes_take_number(r);
  out->candidate = bytes_take_number(r);
  out->when = (int64_t)bytes_take_number(r);
  out->reason = take_text(r);
  return r->bad || notes >= NOTES_END || runs > UINT32_MAX ? "it does not decode" : NULL;
}

const char *db_unpack_record(struct db_parts *p, const void *bytes, size_t size, struct db_record *out) {
  struct byte_reader r = reader_of(bytes, size, RECORD_MAGIC);
  memset(out, 0, sizeof *out);
  const void *id = bytes_take(&r, sizeof p->context.bytes);
  if (r.bad) return "it does not decode";
  memcpy(p->context.bytes, id, sizeof p->context.bytes);
  MDB_val value;
  enum found found = find_part(p, DB_CONTEXT, &p->context, &value);
  if (found == MISSING) return "the context that it names is missing";
  if (found == DAMAGED) return "the context that it names is damaged";
  struct byte_reader shared = read_context(value.mv_data, value.mv_size, out);
  if (shared.bad) return "the context that it names does not decode";
  const char *wrong = take_numbers(&r, out);
  if (wrong) return wrong;
  out->id = db_record_id(out);
  size_t facts = take_facts(p, &r, &shared);
  if (r.bad || shared.bad) return "it does not decode";
  wrong = p->brief ? NULL : take_trace(p, &r, facts, out);
  if (wrong) return wrong;
  out->facts = p->room; /* nothing moves it any more */
  out->fact_bytes = facts;
  return NULL;
}

void db_free_parts(struct db_parts *p) {
  free(p->room);
  free(p->remembered);
  p->room = NULL;
  p->remembered = NULL;
  p->size = 0;
}

static bool find_in_store(void *data, char kind, const void *key, MDB_val *value) {
  struct db *db = data;
  MDB_val k = {sizeof(db_id), (void *)key};
  return !db_get(db, db->reading, kind == DB_CONTEXT ? DB_CONTEXTS : DB_SKETCHES, &k, value);
}

struct db_parts *db_parts_of(struct db *db, MDB_txn *txn, bool brief) {
  db->reading = txn;
  db->forget = forget_read;
  db->parts.find = find_in_store;
  db->parts.data = db;
  db->parts.brief = brief;
  db->parts.snapshot = db_snapshot_serial(db, txn);
  return &db->parts;
}
