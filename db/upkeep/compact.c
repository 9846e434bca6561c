/* Compact: what older versions wrote is upgraded, then a copy beside the file takes its place. Its entries are appended
 * in the order of their keys, so that pages are full: keys are hashes, and a tree that takes them as they come leaves a
 * third of each page free. */
#define _GNU_SOURCE
#include "db/file/lock.h"
#include "db/file/snapshot.h"
#include "db/storage/packed.h"
#include "replace.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Entries that are written in one transaction: memory is bounded, and few pages are written twice. */
enum { PART = 1 << 11 };

struct filling {
  MDB_env *to;
  MDB_txn *txn;
  size_t entries; /* in the transaction */
};

/* A commit that fails ends the transaction too. */
static int end_part(struct filling *f) {
  assert(f->txn && f->entries <= PART);
  MDB_txn *txn = f->txn;
  f->txn = NULL;
  f->entries = 0;
  return mdb_txn_commit(txn);
}

static int append(struct filling *f, MDB_dbi table, MDB_val *key, MDB_val *value) {
  assert(f->txn && f->entries <= PART);
  int code = 0;
  if (f->entries == PART && !(code = end_part(f))) code = mdb_txn_begin(f->to, NULL, 0, &f->txn);
  f->entries++;
  return code ? code : mdb_put(f->txn, table, key, value, MDB_APPEND);
}

static int copy_table(struct filling *f, MDB_txn *from, const char *name) {
  MDB_dbi old, new;
  MDB_cursor *cursor;
  MDB_val key, value;
  int code = mdb_dbi_open(from, name, 0, &old);
  if (code) return code == MDB_NOTFOUND ? 0 : code; /* an older store lacks some */
  if (!(code = mdb_dbi_open(f->txn, name, MDB_CREATE, &new))) code = mdb_cursor_open(from, old, &cursor);
  if (code) return code;
  while (!code && !(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) code = append(f, new, &key, &value);
  mdb_cursor_close(cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

static int copy_tables(struct filling *f, MDB_txn *from) {
  int code = mdb_txn_begin(f->to, NULL, 0, &f->txn);
  for (int i = 0; i < DB_TABLES && !code; i++) code = copy_table(f, from, db_table_names[i]);
  if (!code) return end_part(f);
  if (f->txn) mdb_txn_abort(f->txn);
  return code;
}

static int open_file(const char *path, unsigned flags, size_t map, MDB_env **env) {
  int code = mdb_env_create(env);
  if (!code) code = mdb_env_set_maxdbs(*env, DB_TABLES);
  if (!code) code = mdb_env_set_mapsize(*env, map);
  return code ? code : mdb_env_open(*env, path, MDB_NOSUBDIR | MDB_NOLOCK | flags, 0666);
}

/* The caller has the store alone, and flushes the copy. */
static bool copy_alone(const char *path, const char *copy, ms_error *err) {
  struct db db = {.path = (char *)path};
  struct filling f = {0};
  struct stat s = {0};
  MDB_txn *txn = NULL;
  int code = stat(path, &s) ? errno : 0;
  /* An entry takes at most half a page more than it needs: a copy has at most twice the pages. */
  if (!code) code = open_file(path, MDB_NOTLS | MDB_RDONLY, 1 /* as large as the file is */, &db.env);
  if (!code) code = open_file(copy, MDB_NOSYNC, 2 * (size_t)s.st_size + ((size_t)1 << 20), &f.to);
  if (!code) code = mdb_txn_begin(db.env, NULL, MDB_RDONLY, &txn);
  if (!code) code = copy_tables(&f, txn);
  if (txn) mdb_txn_abort(txn);
  if (f.to) mdb_env_close(f.to);
  if (db.env) mdb_env_close(db.env);
  db.env = NULL;
  return !code || db_failed(&db, code, "compacting", err);
}

bool db_compact(struct db *db, ms_error *err) {
  if (db->read_only) return ms_fail(err, MS_STORE, "%s: the store is open for reading only", db->path);
  if (db->batch) return ms_fail(err, MS_STORE, "%s: a batch is open", db->path);
  if (db->pending) return ms_fail(err, MS_STORE, "%s: there is no store; tuning makes one", db->path);
  if (!db_upgrade(db, err)) return false;
  char *copy = NULL;
  if (asprintf(&copy, "%s.compact", db->path) < 0) abort();
  db_close_environment(db); /* it must not look at the old file any more */
  int held = db_hold_alone(db->path, err);
  if (held >= 0) unlink(copy); /* of a process that was killed */
  bool ok = held >= 0 && copy_alone(db->path, copy, err) && db_take_place(held, copy, db->path, NULL, err);
  if (!ok && held >= 0) unlink(copy);
  free(copy);
  db_release_alone(held);
  db_disclaim(db);
  return db_claim(db, ok ? err : NULL) && db_open_environment(db, ok ? err : NULL) && ok;
}
