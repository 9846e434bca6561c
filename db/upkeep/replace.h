/* A new file takes the store's place. Internal to db. */
#ifndef MSCHED_DB_REPLACE_H
#define MSCHED_DB_REPLACE_H

#include "db/db.h"

bool db_flush_folder(const char *path, ms_error *err); /* that the file is in */
bool db_flush_file(const char *path, ms_error *err);
void db_remove_lock(const char *path); /* the lock file of a store that nobody has open */
/* Renames a file, without its own lock file, over the store, which db_hold_alone holds. It is on disk before it has the
 * name. backup, if not NULL, becomes a name of the old file, PATH.bak or PATH.bak2 and so on, which the caller
 * frees. */
bool db_take_place(int held, const char *made, const char *path, char **backup, ms_error *err);

#endif
