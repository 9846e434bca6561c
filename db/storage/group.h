/* Records that are put together: in a batch each write is a transaction within the batch's, which copies the pages that
 * it changes; of many records most of those are the same. Internal to db. */
#ifndef MSCHED_DB_GROUP_H
#define MSCHED_DB_GROUP_H

#include "db/file/store.h"

struct db_group;

struct db_group *db_group_new(struct db *db);
/* Whether it has a record with the id that is not in the store yet. */
bool db_group_has(const struct db_group *group, const db_id *id);
/* Copies the record, whose numbers must be in their ranges, and puts those that it has where there are many. False: the
 * store cannot be written, and err is filled; those of the group are lost. */
bool db_group_add(struct db_group *group, const struct db_record *record, ms_error *err);
bool db_group_put(struct db_group *group, ms_error *err); /* all that it has; false as above */
void db_group_free(struct db_group *group);               /* what was not put is lost */

#endif
