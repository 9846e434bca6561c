/* Beginnings of ids that more than one record has: an id whose own is none of them is named by so many digits, without
 * a look at the records. Internal to db. */
#ifndef MSCHED_DB_PREFIXES_H
#define MSCHED_DB_PREFIXES_H

#include "db/file/store.h"

enum { DB_SHORTEST_ID = 7, DB_PREFIX = (DB_SHORTEST_ID + 1) / 2 }; /* digits; bytes */

void db_prefix_of(const db_id *id, uint8_t out[DB_PREFIX]);
/* Of a record that the store does not have yet: before it is put. Returns LMDB's code. */
int db_note_prefix(struct db *db, MDB_txn *txn, const db_id *id);
/* Whether all of the store's are known: an older one's are where db_compact looked for them. */
bool db_knows_prefixes(struct db *db, MDB_txn *txn);
/* Whether some other record may have the same. */
bool db_is_shared_prefix(struct db *db, MDB_txn *txn, const db_id *id);
bool db_find_prefixes(struct db *db, ms_error *err); /* of all records */

#endif
