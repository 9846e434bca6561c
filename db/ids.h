/* Lists of ids. Internal to db. */
#ifndef MSCHED_DB_IDS_H
#define MSCHED_DB_IDS_H

#include "db/db.h"

/* {0} is empty; `at` is freed by its user. */
struct db_ids {
  db_id *at;
  size_t count, room;
};
void db_add_id(struct db_ids *ids, const db_id *id);
/* A visitor of db_each_workload, for which data is a list. */
bool db_collect_id(void *data, const db_id *id, const char *name, uint64_t records);

#endif
