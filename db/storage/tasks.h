/* Summaries of tasks, kept with each write. Internal to db. */
#ifndef MSCHED_DB_TASKS_H
#define MSCHED_DB_TASKS_H

#include "db/file/store.h"

enum { DB_TASK_KEY = 24 }; /* what a key of the index of times begins with: workload, target's hash */

/* A record goes, or comes, or both; NULL: none does. Before it is written. Returns LMDB's code. */
int db_count_record(struct db *db, MDB_txn *txn, const struct db_record *removed, const struct db_record *added);
/* Of a damaged record that goes all is known that its entry in the index of times says. */
int db_doubt_task(struct db *db, MDB_txn *txn, const void *time_key);
int64_t db_count_tasks(struct db *db, MDB_txn *txn, const db_id *workload); /* records; -1: some task's are not known */
/* Records of each workload, by the summaries of all tasks; NULL: these do not say of all records. Workloads are asked
 * in order. */
struct db_counts;
struct db_counts *db_counts_new(struct db *db, MDB_txn *txn);
uint64_t db_counts_next(struct db_counts *counts, const db_id *workload);
void db_counts_free(struct db_counts *counts);
/* What the summaries of records should say. */
struct db_tally;
struct db_tally *db_tally_new(void);
void db_tally_add(struct db_tally *tally, const struct db_record *record);
void db_tally_free(struct db_tally *tally);
/* NULL, or what is wrong with an entry of the table. tally: of all records that are sound. */
const char *db_check_task(struct db *db, MDB_txn *txn, const struct db_tally *tally, MDB_val key, MDB_val value);

/* by_time.c: records whose keys in the index of times begin so, without those that are damaged. */
int db_walk_task(struct db *db, MDB_txn *txn, const void *prefix, size_t length, bool brief, db_visit *visit,
                 void *data);

#endif
