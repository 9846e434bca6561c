#define _GNU_SOURCE
/* Housekeeping: check and compact. */
#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Check ---- */

struct checking {
  struct db *db;
  MDB_txn *txn;
  FILE *report;
  int64_t problems;
  uint64_t records;
};

static void problem(struct checking *c, const db_id *id, const char *what) {
  char text[DB_ID_TEXT] = "store";
  if (id) db_id_text(id, text);
  c->problems++;
  if (c->report) fprintf(c->report, "%s: %s\n", text, what);
}

static bool is_there(struct checking *c, MDB_dbi table, const void *key, size_t size, const db_id *expected) {
  MDB_val k = {size, (void *)key}, v;
  if (mdb_get(c->txn, table, &k, &v)) return false;
  return !expected || (v.mv_size == 16 && !memcmp(v.mv_data, expected->bytes, 16));
}

static void check_record(struct checking *c, MDB_val key, MDB_val value) {
  struct db_record r;
  db_id id = {{0}};
  if (key.mv_size != 16) {
    problem(c, NULL, "a record's key is not of 16 bytes");
    return;
  }
  memcpy(id.bytes, key.mv_data, 16);
  c->records++;
  if (!db_decode_record(value.mv_data, value.mv_size, &r)) {
    problem(c, &id, "the record does not decode");
    return;
  }
  uint8_t time[DB_TIME_KEY], module[DB_MODULE_KEY];
  db_time_key(&r, time);
  db_module_key(&r.workload, r.target, r.module_hash, r.versions, module);
  if (memcmp(r.id.bytes, id.bytes, 16) != 0) problem(c, &id, "the record is kept under another id than its own");
  if (!is_there(c, c->db->times, time, sizeof time, NULL)) problem(c, &id, "the record is not in the index of times");
  if (!is_there(c, c->db->modules, module, sizeof module, &id))
    problem(c, &id, "the record is not in the index of modules");
  if (!is_there(c, c->db->workloads, r.workload.bytes, 16, NULL)) problem(c, &id, "the record's workload is missing");
  ms_error err = {.brief = true};
  struct vm_trace *trace = vm_read_binary(r.trace, r.trace_bytes, &err);
  if (!trace) problem(c, &id, "the record's trace does not decode");
  vm_trace_free(trace);
  size_t at = 0;
  db_id intrinsic;
  const char *name;
  MDB_val text;
  for (int code; db_next_intrinsic(&r, &at, &intrinsic, &name);)
    if (!db_find_intrinsic(c->db, c->txn, &intrinsic, &text, &code))
      problem(c, &id, "a tensor intrinsic that the record names is missing");
}

static void check_intrinsic(struct checking *c, MDB_val key, MDB_val value) {
  db_id id = {{0}};
  if (key.mv_size == 16) memcpy(id.bytes, key.mv_data, 16);
  char *text = strndup(value.mv_data, value.mv_size);
  ms_error err = {.brief = true};
  struct vm_intrinsics *made = text && key.mv_size == 16 ? vm_read_intrinsics(text, "store", &err) : NULL;
  if (!made) problem(c, &id, "the tensor intrinsic cannot be read");
  vm_intrinsics_free(made);
  free(text);
}

static void check_time(struct checking *c, MDB_val key, MDB_val value) {
  (void)value;
  if (key.mv_size != DB_TIME_KEY)
    problem(c, NULL, "an entry of the index of times is ill-formed");
  else if (!is_there(c, c->db->records, (uint8_t *)key.mv_data + 33, 16, NULL))
    problem(c, NULL, "the index of times names a record that is not there");
}

static void check_module(struct checking *c, MDB_val key, MDB_val value) {
  if (key.mv_size != DB_MODULE_KEY || value.mv_size != 16)
    problem(c, NULL, "an entry of the index of modules is ill-formed");
  else if (!is_there(c, c->db->records, value.mv_data, 16, NULL))
    problem(c, NULL, "the index of modules names a record that is not there");
}

static void check_workload(struct checking *c, MDB_val key, MDB_val value) {
  db_id id = {{0}};
  if (key.mv_size == 16) memcpy(id.bytes, key.mv_data, 16);
  const char *end = memchr(value.mv_data, 0, value.mv_size);
  ms_error err = {.brief = true};
  struct tir *ir = NULL;
  if (key.mv_size == 16 && end)
    ir = tir_read(end + 1, value.mv_size - (size_t)(end + 1 - (const char *)value.mv_data), "workload", &err);
  if (!ir) problem(c, &id, "the workload does not parse");
  tir_free(ir);
}

static int check_table(struct checking *c, MDB_dbi table, void (*check)(struct checking *, MDB_val, MDB_val)) {
  MDB_cursor *cursor;
  MDB_val key, value;
  int code = mdb_cursor_open(c->txn, table, &cursor);
  if (code) return code;
  while (!(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) check(c, key, value);
  mdb_cursor_close(cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

int64_t db_check(struct db *db, FILE *report, ms_error *err) {
  struct checking c = {db, NULL, report, 0, 0};
  if (!db_begin_read(db, &c.txn, err)) return -1;
  int code = check_table(&c, db->records, check_record);
  if (!code) code = check_table(&c, db->times, check_time);
  if (!code) code = check_table(&c, db->modules, check_module);
  if (!code) code = check_table(&c, db->workloads, check_workload);
  if (!code && db->intrinsics) code = check_table(&c, db->intrinsics, check_intrinsic);
  MDB_stat times;
  if (!code && !mdb_stat(c.txn, db->times, &times) && times.ms_entries != c.records)
    problem(&c, NULL, "the index of times has another number of entries than there are records");
  mdb_txn_abort(c.txn);
  if (code) return db_failed(db, code, "checking", err), -1;
  return c.problems;
}

/* ---- Compact: a copy beside the file takes its place ---- */

bool db_compact(struct db *db, ms_error *err) {
  if (db->read_only) return ms_fail(err, MS_STORE, "%s: the store is open for reading only", db->path);
  char *copy = NULL;
  if (asprintf(&copy, "%s.compact", db->path) < 0) abort();
  unlink(copy);
  int code = mdb_env_copy2(db->env, copy, MDB_CP_COMPACT);
  bool ok = !code || db_failed(db, code, "compacting", err);
  if (ok) { /* the environment must not look at the old file any more */
    mdb_env_close(db->env);
    db->env = NULL;
    ok = rename(copy, db->path) == 0 || ms_fail(err, MS_STORE, "%s: %s", db->path, strerror(errno));
    ok = db_open_environment(db, ok ? err : NULL) && ok;
  }
  if (!ok) unlink(copy);
  free(copy);
  return ok;
}
