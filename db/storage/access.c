/* Records: putting, finding. */
#include "db/bounds.h"
#include "db/file/snapshot.h"
#include "packed.h"
#include "prefixes.h"
#include "seal.h"
#include "tasks.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Putting: the record and its index entries in one transaction ---- */

/* Takes the entries of the index whose record is `id`, by looking at all. */
static int drop_entries(struct db *db, MDB_txn *txn, const db_id *id) {
  MDB_cursor *cursor;
  MDB_val key, value;
  int code = mdb_cursor_open(txn, db->times, &cursor);
  if (code) return code;
  while (!(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)))
    if (key.mv_size == DB_TIME_KEY && !memcmp((uint8_t *)key.mv_data + DB_TIME_KEY - 16, id->bytes, 16) &&
        ((code = db_doubt_task(db, txn, key.mv_data)) || (code = mdb_cursor_del(cursor, 0))))
      break;
  mdb_cursor_close(cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

/* Takes out what the index and the summary have of a record, which may be damaged, so that it does not say what that
 * is; by: what takes its place, or NULL. */
static int drop_from_index(struct db *db, MDB_txn *txn, const db_id *id, MDB_val value, const struct db_record *by) {
  struct db_record old;
  uint8_t time[DB_TIME_KEY];
  MDB_val key = {16, (void *)id->bytes}, entry = {sizeof time, time};
  if (db_read_record(db_parts_of(db, txn, true), key, value, &old)) {
    int code = drop_entries(db, txn, id);
    return code || !by ? code : db_count_record(db, txn, NULL, by);
  }
  db_time_key(&old, time);
  int code = db_count_record(db, txn, &old, by);
  if (!code) code = mdb_del(txn, db->times, &entry, NULL);
  return code == MDB_NOTFOUND ? 0 : code;
}

static int take_place(struct db *db, MDB_txn *txn, const struct db_record *r) {
  MDB_val key = {16, (void *)r->id.bytes}, value;
  int code = db_get(db, txn, DB_RECORDS, &key, &value);
  if (code == MDB_NOTFOUND) {
    code = db_note_prefix(db, txn, &r->id);
    return code ? code : db_count_record(db, txn, NULL, r);
  }
  return code ? code : drop_from_index(db, txn, &r->id, value, r);
}

int db_insert_record(struct db *db, MDB_txn *txn, const struct db_record *r) {
  uint8_t time[DB_TIME_KEY];
  void *bytes;
  size_t size;
  db_time_key(r, time);
  MDB_val nothing = {0, ""}, time_key = {DB_TIME_KEY, time};
  int code = db_pack_record(db, txn, r, &bytes, &size); /* first: what was read last may be the record */
  if (!code) code = take_place(db, txn, r);
  if (!code) code = db_put_sealed(txn, db->records, DB_RECORD, &r->id, bytes, size);
  free(bytes);
  return code ? code : mdb_put(txn, db->times, &time_key, &nothing, 0);
}

size_t db_most_bytes(const struct db_record *r) {
  enum { NUMBERS = 256 };
  return NUMBERS + 2 * r->trace_bytes + r->intrinsic_bytes + r->fact_bytes + strlen(r->target) + strlen(r->versions) +
         (r->reason ? strlen(r->reason) : 0);
}

static int put_record(struct db *db, MDB_txn *txn, void *data) { return db_insert_record(db, txn, data); }

bool db_put_record(struct db *db, struct db_record *r, ms_error *err) {
  assert(r->trace || !r->trace_bytes);
  char wrong[DB_WRONG_TEXT];
  if (db_find_out_of_range(r, wrong)) return ms_fail(err, MS_INVALID_ARGUMENT, "a record's %s", wrong);
  r->id = db_record_id(r);
  return db_write(db, put_record, r, db_most_bytes(r), "keeping a record", err);
}

int db_remove_record(struct db *db, MDB_txn *txn, const db_id *id) {
  MDB_val key = {16, (void *)id->bytes}, value;
  int code = db_get(db, txn, DB_RECORDS, &key, &value);
  if (!code) code = drop_from_index(db, txn, id, value, NULL);
  return code ? code : mdb_del(txn, db->records, &key, NULL);
}

static int delete_record(struct db *db, MDB_txn *txn, void *data) { return db_remove_record(db, txn, data); }

bool db_delete_record(struct db *db, const db_id *id, ms_error *err) {
  return db_write(db, delete_record, (void *)id, 0, "deleting a record", err);
}

/* ---- Finding ---- */

static size_t text_bytes(const char *text) { return text ? strlen(text) + 1 : 0; }

void *db_copy_parts(struct db_record *r) {
  const struct {
    const void **at;
    size_t size;
  } all[] = {{(const void **)&r->target, text_bytes(r->target)},
             {(const void **)&r->reason, text_bytes(r->reason)},
             {(const void **)&r->versions, text_bytes(r->versions)},
             {&r->trace, r->trace_bytes},
             {&r->intrinsics, r->intrinsic_bytes},
             {&r->facts, r->fact_bytes}};
  enum { PARTS = sizeof all / sizeof *all };
  size_t size = 1;
  for (int i = 0; i < PARTS; i++) size += all[i].size;
  uint8_t *held = malloc(size), *to = held;
  if (!held) abort();
  for (int i = 0; i < PARTS; to += all[i++].size) {
    if (!all[i].size) continue;
    memcpy(to, *all[i].at, all[i].size);
    *all[i].at = to;
  }
  return held;
}

void db_hold(struct db *db, struct db_record *r) {
  void *held = db_copy_parts(r); /* it may point into what is held */
  free(db->held);
  db->held = held;
}

/* 1: it is sound, and held; 0: it is damaged. */
static int hold_record(struct db *db, MDB_txn *txn, MDB_val key, MDB_val value, struct db_record *out) {
  if (db_read_record(db_parts_of(db, txn, false), key, value, out)) {
    db_note_damage(db, DB_RECORD, key);
    return 0;
  }
  db_hold(db, out);
  return 1;
}

static int digit(char c) {
  return isdigit((unsigned char)c) ? c - '0'
         : c >= 'a' && c <= 'f'    ? c - 'a' + 10
         : c >= 'A' && c <= 'F'    ? c - 'A' + 10
                                   : -1;
}

enum { LEAST_PREFIX = 4 };

static bool parse_prefix(const char *text, uint8_t out[16], size_t *digits) {
  memset(out, 0, 16);
  for (*digits = 0; text[*digits]; (*digits)++) {
    int d = digit(text[*digits]);
    if (d < 0 || *digits >= 32) return false;
    out[*digits / 2] |= (uint8_t)(*digits % 2 ? d : d << 4);
  }
  return *digits >= LEAST_PREFIX;
}

static bool has_prefix(const uint8_t *id, const uint8_t *prefix, size_t digits) {
  if (memcmp(id, prefix, digits / 2) != 0) return false;
  return digits % 2 == 0 || (id[digits / 2] & 0xf0) == prefix[digits / 2];
}

/* Ids that start with the prefix, at most `most`; returns how many there are up to that. */
static int match_prefix(struct db *db, MDB_txn *txn, const uint8_t prefix[16], size_t digits, db_id *out, int most) {
  assert(digits <= 32 && most >= 0);
  struct db_cursor cursor;
  int count = 0;
  if (db_cursor_open(db, txn, DB_RECORDS, &cursor)) return 0;
  MDB_val key = {16, (void *)prefix}, value;
  for (int code = db_cursor_seek(&cursor, &key, &value); !code && count < most;
       code = db_cursor_next(&cursor, &key, &value)) {
    if (key.mv_size != 16 || !has_prefix(key.mv_data, prefix, digits)) break;
    memcpy(out[count++].bytes, key.mv_data, 16);
  }
  db_cursor_close(&cursor);
  return count;
}

static void refuse_ambiguous(const char *prefix, const db_id *found, int count, int shown, ms_error *err) {
  char list[16 * DB_ID_TEXT] = "", *at = list;
  assert(count <= 16);
  for (int i = 0; i < count; i++) {
    *at++ = ' ';
    db_id_text(&found[i], at);
    at += 12;
  }
  *at = 0;
  ms_fail(err, MS_INVALID_ARGUMENT, "`%s` may be any of:%s%s", prefix, list, count == shown ? " …" : "");
}

int db_match_ids(struct db *db, const char *prefix, db_id *out, int most, ms_error *err) {
  assert(prefix && out);
  uint8_t bytes[16];
  size_t digits;
  MDB_txn *txn;
  if (!parse_prefix(prefix, bytes, &digits)) {
    ms_fail(err, MS_INVALID_ARGUMENT, "`%s` is no record's id: at least %d hexadecimal digits are expected", prefix,
            LEAST_PREFIX);
    return -1;
  }
  if (!db_begin_read(db, &txn, err)) return -1;
  int count = match_prefix(db, txn, bytes, digits, out, most);
  int code = db_end_read(db, txn, 0);
  return code ? db_failed(db, code, "reading a record", err), -1 : count;
}

int db_find_id(struct db *db, const char *prefix, db_id *out, ms_error *err) {
  assert(out);
  enum { SHOWN = 8 };
  db_id found[SHOWN];
  int count = db_match_ids(db, prefix, found, SHOWN, err);
  if (count > 1) refuse_ambiguous(prefix, found, count, SHOWN, err);
  if (count == 1) *out = found[0];
  return count > 1 ? -1 : count;
}

int db_find_record(struct db *db, const char *prefix, struct db_record *out, ms_error *err) {
  db_id id;
  MDB_txn *txn;
  int found = db_find_id(db, prefix, &id, err);
  if (found <= 0) return found;
  if (!db_begin_read(db, &txn, err)) return -1;
  MDB_val key = {16, id.bytes}, value;
  int code = db_get(db, txn, DB_RECORDS, &key, &value);
  int held = code ? 0 : hold_record(db, txn, key, value, out);
  code = db_end_read(db, txn, code);
  if (held || code == MDB_NOTFOUND) return held;
  char text[DB_ID_TEXT];
  db_id_text(&id, text);
  if (code)
    db_failed(db, code, "reading a record", err);
  else
    ms_fail(err, MS_STORE, "%s: record %.12s is damaged; `msched db delete %.12s` removes it", db->path, text, text);
  return -1;
}

int db_find_module(struct db *db, const db_id *workload, const char *target, uint64_t module_hash, const char *versions,
                   struct db_record *out, ms_error *err) {
  struct db_record like = {.workload = *workload, .target = target, .module_hash = module_hash, .versions = versions};
  db_id id = db_record_id(&like);
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return -1;
  MDB_val key = {16, id.bytes}, value;
  int code = db_get(db, txn, DB_RECORDS, &key, &value), result = 0;
  if (!code) result = hold_record(db, txn, key, value, out);
  code = db_end_read(db, txn, code);
  if (code && code != MDB_NOTFOUND) result = (db_failed(db, code, "reading a record", err), -1);
  db_report_damage(db);
  return result;
}

static void shorten(struct db *db, MDB_txn *txn, const db_id *id, char out[DB_ID_TEXT]) {
  db_id found[2];
  for (size_t digits = DB_SHORTEST_ID; digits < 32; digits++) {
    uint8_t prefix[16] = {0};
    memcpy(prefix, id->bytes, digits / 2);
    if (digits % 2) prefix[digits / 2] = id->bytes[digits / 2] & 0xf0;
    if (match_prefix(db, txn, prefix, digits, found, 2) > 1) continue;
    out[digits] = 0;
    break;
  }
}

void db_short_ids(struct db *db, const db_id *ids, size_t count, char (*out)[DB_ID_TEXT]) {
  MDB_txn *txn;
  for (size_t i = 0; i < count; i++) db_id_text(&ids[i], out[i]);
  if (!count || !db_begin_read(db, &txn, NULL)) return;
  bool known = db_knows_prefixes(db, txn);
  for (size_t i = 0; i < count; i++)
    if (known && !db_is_shared_prefix(db, txn, &ids[i]))
      out[i][DB_SHORTEST_ID] = 0;
    else
      shorten(db, txn, &ids[i], out[i]);
  db_end_read(db, txn, 0);
}

void db_short_id(struct db *db, const db_id *id, char out[DB_ID_TEXT]) {
  db_short_ids(db, id, 1, (char(*)[DB_ID_TEXT])out);
}
