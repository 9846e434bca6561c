/* The table of beginnings that ids share: one that a record which was deleted shared stays, until the store is
 * compacted, and costs a look at the records. */
#include "prefixes.h"

#include "db/file/snapshot.h"

#include <assert.h>
#include <string.h>

_Static_assert(DB_SHORTEST_ID % 2 == 1, "the last byte is half of one");

void db_prefix_of(const db_id *id, uint8_t out[DB_PREFIX]) {
  memcpy(out, id->bytes, DB_PREFIX);
  out[DB_PREFIX - 1] &= 0xf0;
}

static int keep(struct db *db, MDB_txn *txn, const uint8_t prefix[DB_PREFIX]) {
  assert(!(prefix[DB_PREFIX - 1] & 0x0f));
  MDB_val key = {DB_PREFIX, (void *)prefix}, nothing = {0, ""};
  return mdb_put(txn, db->prefixes, &key, &nothing, 0);
}

int db_note_prefix(struct db *db, MDB_txn *txn, const db_id *id) {
  struct db_cursor cursor;
  uint8_t first[sizeof id->bytes] = {0}, its[DB_PREFIX];
  db_prefix_of(id, first);
  MDB_val key = {sizeof first, first}, value;
  int code = db_cursor_open(db, txn, DB_RECORDS, &cursor);
  if (code) return code;
  code = db_cursor_seek(&cursor, &key, &value);
  bool shared = false;
  if (!code && key.mv_size == sizeof *id && memcmp(key.mv_data, id->bytes, sizeof *id) != 0) {
    db_prefix_of(key.mv_data, its);
    shared = !memcmp(its, first, DB_PREFIX);
  }
  db_cursor_close(&cursor);
  if (code && code != MDB_NOTFOUND) return code;
  return shared ? keep(db, txn, first) : 0;
}

static const MDB_val KNOWN = {sizeof DB_PREFIXES_KNOWN - 1, DB_PREFIXES_KNOWN}; /* in the table `meta` */

bool db_knows_prefixes(struct db *db, MDB_txn *txn) {
  MDB_val value;
  return !db_get(db, txn, DB_META, &KNOWN, &value);
}

bool db_is_shared_prefix(struct db *db, MDB_txn *txn, const db_id *id) {
  uint8_t prefix[DB_PREFIX];
  MDB_val key = {DB_PREFIX, prefix}, value;
  db_prefix_of(id, prefix);
  return db_get(db, txn, DB_PREFIXES, &key, &value) != MDB_NOTFOUND;
}

static int find_all(struct db *db, MDB_txn *txn, void *unused) {
  (void)unused;
  MDB_cursor *cursor;
  MDB_val key, value;
  uint8_t before[DB_PREFIX], its[DB_PREFIX];
  bool first = true;
  int code = mdb_drop(txn, db->prefixes, 0);
  if (!code) code = mdb_cursor_open(txn, db->records, &cursor);
  if (code) return code;
  for (; !code && !(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)); first = false) {
    if (key.mv_size != sizeof(db_id)) continue;
    db_prefix_of(key.mv_data, its);
    if (!first && !memcmp(its, before, DB_PREFIX)) code = keep(db, txn, its);
    memcpy(before, its, DB_PREFIX);
  }
  mdb_cursor_close(cursor);
  MDB_val known = KNOWN, nothing = {0, ""};
  return code == MDB_NOTFOUND ? mdb_put(txn, db->meta, &known, &nothing, 0) : code;
}

bool db_find_prefixes(struct db *db, ms_error *err) {
  return db_write(db, find_all, NULL, 0, "finding what ids share", err);
}
