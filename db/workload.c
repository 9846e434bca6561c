/* Workloads: functions by structural hash. */
#include "store.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

/* An id joins the structural hash with the names that traces refer to: blocks' names are part of the former, the
 * function's of the latter. */
static db_id workload_id(const struct tir *ir, tir_func f) {
  uint64_t hash = tir_structural_hash(ir, f);
  const char *name = tir_text(ir, ir->funcs.at[f].name);
  XXH128_hash_t all = XXH3_128bits_withSeed(name, strlen(name), hash);
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, all);
  db_id id;
  memcpy(id.bytes, bytes.digest, 16);
  return id;
}

struct putting {
  db_id id;
  const char *name, *text;
};

static int put_workload(struct db *db, MDB_txn *txn, void *data) {
  struct putting *p = data;
  size_t name = strlen(p->name) + 1, text = strlen(p->text);
  MDB_val key = {16, p->id.bytes}, value = {name + text, NULL};
  int code = mdb_put(txn, db->workloads, &key, &value, MDB_RESERVE | MDB_NOOVERWRITE);
  if (code == MDB_KEYEXIST) return 0;
  if (code) return code;
  memcpy(value.mv_data, p->name, name);
  memcpy((char *)value.mv_data + name, p->text, text);
  return 0;
}

bool db_put_workload(struct db *db, const struct tir *ir, tir_func f, db_id *out, ms_error *err) {
  char *text = tir_print(ir, f, 0);
  if (!text) abort();
  struct putting p = {workload_id(ir, f), tir_text(ir, ir->funcs.at[f].name), text};
  *out = p.id;
  bool ok = db_write(db, put_workload, &p, "keeping a workload", err);
  free(text);
  return ok;
}

static bool split_workload(MDB_val value, const char **name, const char **text, size_t *length) {
  const char *end = memchr(value.mv_data, 0, value.mv_size);
  if (!end) return false;
  *name = value.mv_data;
  *text = end + 1;
  *length = value.mv_size - (size_t)(end + 1 - (const char *)value.mv_data);
  return true;
}

struct tir *db_get_workload(struct db *db, const db_id *id, ms_error *err) {
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return NULL;
  MDB_val key = {16, (void *)id->bytes}, value;
  const char *name, *text;
  size_t length;
  struct tir *ir = NULL;
  int code = mdb_get(txn, db->workloads, &key, &value);
  if (code == MDB_NOTFOUND)
    ms_fail(err, MS_STORE, "%s: the record's workload is not in the store", db->path);
  else if (code)
    db_failed(db, code, "reading a workload", err);
  else if (!split_workload(value, &name, &text, &length))
    db_failed(db, MDB_CORRUPTED, "reading a workload", err);
  else
    ir = tir_read(text, length, db->path, err);
  mdb_txn_abort(txn);
  return ir;
}

static uint64_t count_records(struct db *db, MDB_txn *txn, const db_id *id) {
  MDB_cursor *cursor;
  uint64_t count = 0;
  if (mdb_cursor_open(txn, db->times, &cursor)) return 0;
  MDB_val key = {16, (void *)id->bytes}, value;
  for (int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE); !code;
       code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    if (key.mv_size != DB_TIME_KEY || memcmp(key.mv_data, id->bytes, 16) != 0) break;
    count++;
  }
  mdb_cursor_close(cursor);
  return count;
}

bool db_each_workload(struct db *db, db_workload_visit *visit, void *data, ms_error *err) {
  MDB_txn *txn;
  MDB_cursor *cursor;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = mdb_cursor_open(txn, db->workloads, &cursor);
  MDB_val key, value;
  const char *name, *text;
  size_t length;
  for (int step = code; !step && !(step = mdb_cursor_get(cursor, &key, &value, MDB_NEXT));) {
    db_id id;
    if (key.mv_size != 16 || !split_workload(value, &name, &text, &length)) continue;
    memcpy(id.bytes, key.mv_data, 16);
    if (!visit(data, &id, name, count_records(db, txn, &id))) break;
  }
  if (!code) mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  return code ? db_failed(db, code, "reading workloads", err) : true;
}
