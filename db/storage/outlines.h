/* Outlines of workloads, kept beside them. Internal to db. */
#ifndef MSCHED_DB_OUTLINES_H
#define MSCHED_DB_OUTLINES_H

#include "db/file/store.h"

/* Keeps that of a workload, where the store has another or none. Returns LMDB's code. */
int db_put_outline(struct db *db, MDB_txn *txn, const db_id *id, const struct tir *ir, tir_func f);
/* The same of a workload's text, which is a stranger's: of one that does not parse none is kept. */
int db_make_outline(struct db *db, MDB_txn *txn, const db_id *id, const char *text, size_t length);
/* Makes those that an older version's writes left out. */
bool db_make_outlines(struct db *db, ms_error *err);
/* NULL, or what is wrong with an entry of the table. */
const char *db_check_outline(struct db *db, MDB_txn *txn, MDB_val key, MDB_val value);

#endif
