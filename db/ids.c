/* Lists of ids: entries are looked at one by one, where no transaction is open any more. */
#include "ids.h"

#include <stdlib.h>

void db_add_id(struct db_ids *ids, const db_id *id) {
  assert(id && ids->count <= ids->room);
  if (ids->count == ids->room) {
    ids->room = ids->room * 2 + 16;
    ids->at = realloc(ids->at, ids->room * sizeof *ids->at);
    if (!ids->at) abort();
  }
  ids->at[ids->count++] = *id;
}

bool db_collect_id(void *data, const db_id *id, const char *name, uint64_t records) {
  (void)name, (void)records;
  db_add_id(data, id);
  return true;
}
