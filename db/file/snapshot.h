/* Snapshots: what a transaction that reads sees, read without LMDB, so that each page is checked when it is come to and
 * opening a large store looks at few. Internal to db.
 *
 * Transactions that write are LMDB's, which is let loose only on files whose pages were all walked. */
#ifndef MSCHED_DB_SNAPSHOT_H
#define MSCHED_DB_SNAPSHOT_H

#include "pages.h"

enum db_table {
  DB_META,
  DB_WORKLOADS,
  DB_INTRINSICS,
  DB_RECORDS,
  DB_TIMES,
  DB_CONTEXTS,
  DB_SKETCHES,
  DB_TASKS,
  DB_OUTLINES,
  DB_PREFIXES,
  DB_TABLES
};
extern const char *const db_table_names[DB_TABLES];
MDB_dbi *db_table_of(struct db *db,
                     enum db_table table); /* of LMDB; 0: it is not open, as it is where nothing was written */

/* Of a transaction that began to read just now. Returns LMDB's code; DB_AGAIN: its snapshot is gone, begin another. */
enum { DB_AGAIN = -4 };
int db_take_snapshot(struct db *db, MDB_txn *txn);
/* 0, or DB_DAMAGED where a page was bad that it came to. */
int db_drop_snapshot(struct db *db, MDB_txn *txn);
const struct db_pages *db_snapshot_pages(struct db *db, MDB_txn *txn);
uint64_t db_snapshot_serial(struct db *db, MDB_txn *txn); /* no other of the store has it; 0: the transaction writes */
void db_forget_snapshots(struct db *db);                  /* the environment is closed */

/* As LMDB's, of a transaction of either kind. A table that is not there is empty. */
int db_get(struct db *db, MDB_txn *txn, enum db_table table, const MDB_val *key, MDB_val *value);
int db_count_entries(struct db *db, MDB_txn *txn, enum db_table table, uint64_t *out);
struct db_cursor {
  MDB_cursor *lmdb; /* of a transaction that writes */
  struct db_snapshot *snapshot;
  struct db_tree tree;
  uint32_t depth; /* of the path; 0: nowhere */
  struct db_step {
    uint64_t number;
    uint32_t at, count; /* which node, of how many */
    struct db_bounds bounds;
  } path[DB_DEEPEST];
};
int db_cursor_open(struct db *db, MDB_txn *txn, enum db_table table, struct db_cursor *out);
/* The first entry from the key on; size 0: the first of all. */
int db_cursor_seek(struct db_cursor *cursor, MDB_val *key, MDB_val *value);
int db_cursor_next(struct db_cursor *cursor, MDB_val *key, MDB_val *value); /* the first, where it is nowhere yet */
void db_cursor_close(struct db_cursor *cursor);

#endif
