/* A new file takes the store's place. Internal to db. */
#ifndef MSCHED_DB_REPLACE_H
#define MSCHED_DB_REPLACE_H

#include "db.h"

/* No other process has the store open, nor opens it until db_release_alone: what it wrote to the old file would be lost,
 * and LMDB's lock file goes with one file. This process has it closed. Returns a descriptor; -1: err is filled. */
int db_hold_alone(const char *path, ms_error *err);
void db_release_alone(int held);
/* Renames a file that is on disk, and without its own lock file, over the store. backup, if not NULL, becomes a name of
 * the old file, PATH.bak or PATH.bak2 and so on, which the caller frees. */
bool db_take_place(const char *made, const char *path, char **backup, ms_error *err);

#endif
