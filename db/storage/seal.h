/* Entries with their checksums, and what to do with those that are damaged. Internal to db. */
#ifndef MSCHED_DB_SEAL_H
#define MSCHED_DB_SEAL_H

#include "db/file/store.h"

/* Kinds of entries. */
#define DB_RECORD    'r'
#define DB_WORKLOAD  'w'
#define DB_INTRINSIC 'i'
#define DB_CONTEXT   'c'
#define DB_SKETCH    's'
#define DB_TASK      't'
#define DB_OUTLINE   'o'
const char *db_kind_name(char kind);
/* The id that a key holds; of a damaged key, as much as is there. */
db_id db_id_of_key(MDB_val key);

int db_put_sealed_at(MDB_txn *txn, MDB_dbi table, char kind, MDB_val key, const void *value, size_t size);
int db_put_sealed(MDB_txn *txn, MDB_dbi table, char kind, const db_id *id, const void *value, size_t size);
/* Takes the seal off a value, where it has one. */
enum db_seal { DB_UNSEALED, DB_SEALED, DB_BROKEN };
enum db_seal db_unseal(char kind, const MDB_val *key, MDB_val *value);

/* Read an entry (entries.c), which is as long valid as the value. NULL: it is sound; else what is wrong with it. parts:
 * of what packed records name. */
const char *db_read_record(struct db_parts *parts, MDB_val key, MDB_val value, struct db_record *out);
struct db_workload_text {
  const char *name, *text;
  size_t length;
};
const char *db_read_workload_entry(MDB_val key, MDB_val value, struct db_workload_text *out);
const char *db_read_part_entry(char kind, MDB_val key, MDB_val value); /* a context, or a sketch */
const char *db_read_intrinsic_entry(MDB_val key, MDB_val *value);      /* value is the text afterwards */

/* An entry was met that is damaged: it is left out. */
void db_note_damage(struct db *db, char kind, MDB_val key);
/* Says so in one line, of those that it was not said of before; no transaction is open. */
void db_report_damage(struct db *db);

#endif
