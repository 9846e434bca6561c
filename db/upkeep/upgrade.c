/* Records of older versions become packed ones, and what no record shares any more is dropped. All by transactions: a
 * process that is killed leaves a store with records of both forms, which every reader of this version reads. */
#include "db/file/snapshot.h"
#include "db/storage/outlines.h"
#include "db/storage/packed.h"
#include "db/storage/prefixes.h"
#include "db/storage/seal.h"
#include "db/storage/tasks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Older records ---- */

enum { PART = 512 };
struct older {
  db_id at[PART], last;
  size_t count;
  bool more;
};

/* Those behind `last` that are sound and not packed. */
static bool find_older(struct db *db, struct older *o, ms_error *err) {
  MDB_txn *txn;
  struct db_cursor cursor;
  struct db_record r;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = db_cursor_open(db, txn, DB_RECORDS, &cursor), step = code;
  MDB_val key = {sizeof o->last, o->last.bytes}, value;
  o->count = 0;
  if (!step) step = db_cursor_seek(&cursor, &key, &value);
  for (; !step && o->count < PART; step = db_cursor_next(&cursor, &key, &value)) {
    if (key.mv_size != sizeof o->last) continue;
    MDB_val inner = value;
    memcpy(o->last.bytes, key.mv_data, sizeof o->last);
    if (db_unseal(DB_RECORD, &key, &inner) == DB_BROKEN || db_is_packed(inner.mv_data, inner.mv_size)) continue;
    if (!db_read_record(db_parts_of(db, txn, true), key, value, &r)) o->at[o->count++] = o->last;
  }
  assert(o->count <= PART);
  o->more = !step;
  if (!code) db_cursor_close(&cursor);
  code = db_end_read(db, txn, code);
  return code ? db_failed(db, code, "reading records", err) : true;
}

static int repack(struct db *db, MDB_txn *txn, void *data) {
  const db_id *id = data;
  MDB_val key = {sizeof *id, (void *)id->bytes}, value;
  struct db_record r;
  void *bytes = NULL;
  size_t size;
  int code = db_get(db, txn, DB_RECORDS, &key, &value);
  if (code == MDB_NOTFOUND) return 0; /* another process has deleted it since */
  if (code || db_read_record(db_parts_of(db, txn, false), key, value, &r)) return code;
  assert(!memcmp(&r.id, id, sizeof *id)); /* it goes to its own place */
  db_hold(db, &r);                        /* what is written may take the place of what was read */
  code = db_pack_record(db, txn, &r, &bytes, &size);
  if (!code) code = db_put_sealed(txn, db->records, DB_RECORD, id, bytes, size);
  free(bytes);
  return code;
}

static bool repack_all(struct db *db, ms_error *err) {
  enum { ROOM = 1 << 16 };
  struct older *o = calloc(1, sizeof *o);
  if (!o) abort();
  bool ok = true;
  do {
    ok = find_older(db, o, err);
    if (!ok || !o->count) continue;
    ok = db_begin_batch(db, err);
    for (size_t i = 0; ok && i < o->count; i++) ok = db_write(db, repack, &o->at[i], ROOM, "upgrading records", err);
    ok = db_end_batch(db, ok ? err : NULL) && ok;
  } while (ok && o->more);
  free(o);
  return ok;
}

/* ---- What no record names ---- */

struct keys {
  db_id *at; /* in order */
  bool *used;
  size_t count;
};

static int read_keys(MDB_txn *txn, MDB_dbi table, struct keys *out) {
  MDB_cursor *cursor;
  MDB_val key, value;
  MDB_stat stat;
  int code = mdb_stat(txn, table, &stat);
  if (!code) code = mdb_cursor_open(txn, table, &cursor);
  if (code) return code;
  *out = (struct keys){malloc((stat.ms_entries + 1) * sizeof *out->at), calloc(stat.ms_entries + 1, 1), 0};
  if (!out->at || !out->used) abort();
  while (!(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) {
    if (key.mv_size != sizeof *out->at) continue;
    bool fits = out->count < stat.ms_entries &&
                (!out->count || memcmp(&out->at[out->count - 1], key.mv_data, sizeof *out->at) < 0);
    if (!fits) break; /* damaged: the file counts fewer, or has them in another order */
    memcpy(out->at[out->count++].bytes, key.mv_data, sizeof *out->at);
  }
  mdb_cursor_close(cursor);
  return code == MDB_NOTFOUND ? 0 : code ? code : MDB_CORRUPTED;
}

static int compare_ids(const void *a, const void *b) { return memcmp(a, b, sizeof(db_id)); }

static void use(struct keys *keys, const db_id *id) {
  const db_id *found = keys->count ? bsearch(id, keys->at, keys->count, sizeof *id, compare_ids) : NULL;
  if (found) keys->used[found - keys->at] = true;
}

/* Marks what the records name. *all: each could be read, so that what is not marked is not named. */
static int mark_used(struct db *db, MDB_txn *txn, struct keys *contexts, struct keys *sketches, bool *all) {
  MDB_cursor *cursor;
  MDB_val key, value;
  struct db_record r;
  struct db_parts *parts = db_parts_of(db, txn, false);
  int code = mdb_cursor_open(txn, db->records, &cursor);
  if (code) return code;
  *all = true;
  while (*all && !(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) {
    parts->context = (db_id){{0}};
    parts->sketch = 0;
    *all = !db_read_record(parts, key, value, &r);
    use(contexts, &parts->context);
    db_id sketch = db_sketch_key(&r.workload, (uint32_t)(parts->sketch - 1));
    if (parts->sketch) use(sketches, &sketch);
  }
  mdb_cursor_close(cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

static int drop_unused(MDB_txn *txn, MDB_dbi table, const struct keys *keys) {
  int code = 0;
  for (size_t i = 0; i < keys->count && !code; i++) {
    MDB_val key = {sizeof keys->at[i], keys->at[i].bytes};
    if (!keys->used[i]) code = mdb_del(txn, table, &key, NULL);
  }
  return code;
}

/* In one transaction: no record that names one of them is put meanwhile. */
static int drop_left(struct db *db, MDB_txn *txn, void *unused) {
  (void)unused;
  struct keys contexts = {0}, sketches = {0};
  bool all = false;
  MDB_dbi modules;
  int code = read_keys(txn, db->contexts, &contexts);
  if (!code) code = read_keys(txn, db->sketches, &sketches);
  if (!code) code = mark_used(db, txn, &contexts, &sketches, &all);
  if (!code && all) code = drop_unused(txn, db->contexts, &contexts);
  if (!code && all) code = drop_unused(txn, db->sketches, &sketches);
  if (!code && !mdb_dbi_open(txn, "modules", 0, &modules)) code = mdb_drop(txn, modules, 1);
  free(contexts.at), free(contexts.used);
  free(sketches.at), free(sketches.used);
  return code;
}

bool db_upgrade(struct db *db, ms_error *err) {
  assert(!db->batch && !db->read_only);
  return repack_all(db, err) && db_write(db, drop_left, NULL, 0, "upgrading the store", err) &&
         db_make_outlines(db, err) && db_find_prefixes(db, err) && db_refresh_tasks(db, err);
}
