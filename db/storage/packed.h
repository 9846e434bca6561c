/* Records without what others have too: what a record shares with the others of its workload is kept once. Internal to
 * db. */
#ifndef MSCHED_DB_PACKED_H
#define MSCHED_DB_PACKED_H

#include "db/file/store.h"

void db_free_parts(struct db_parts *parts);
/* Of a store, within a transaction; the room is the store's: a record is valid until the next is read. */
struct db_parts *db_parts_of(struct db *db, MDB_txn *txn, bool brief);

bool db_is_packed(const void *bytes, size_t size);
/* Puts what a record shares, as far as it is not there, and gives what is to be kept of it, the caller's to free(): of
 * a record whose id is another than db_record_id gives, all of it. Returns LMDB's code. */
int db_pack_record(struct db *db, MDB_txn *txn, const struct db_record *record, void **out, size_t *size);
/* NULL, or what is wrong. Strings point into `bytes`, into what parts->find gave, and into parts->room. */
const char *db_unpack_record(struct db_parts *parts, const void *bytes, size_t size, struct db_record *out);
bool db_is_context(const void *bytes, size_t size); /* a stranger's bytes */
/* upgrade.c: packs what older versions wrote, and drops what no record names. The store is open for writing, without a
 * batch. */
bool db_upgrade(struct db *db, ms_error *err);
db_id db_sketch_key(const db_id *workload, uint32_t number);

#endif
