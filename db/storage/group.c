/* Groups: copies of records, put in one transaction when there are enough. */
#include "group.h"

#include "db/bounds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };
static const size_t MOST_BYTES = (size_t)1 << 20;

struct db_group {
  struct db *db;
  uint32_t count;
  size_t bytes; /* that they may take in the store */
  struct db_record records[MOST];
  void *held[MOST]; /* what each points into */
};

struct db_group *db_group_new(struct db *db) {
  assert(db);
  struct db_group *g = calloc(1, sizeof *g);
  if (!g) abort();
  g->db = db;
  return g;
}

static void clear(struct db_group *g) {
  for (uint32_t i = 0; i < g->count; i++) free(g->held[i]);
  g->count = 0;
  g->bytes = 0;
}

void db_group_free(struct db_group *g) {
  if (!g) return;
  clear(g);
  free(g);
}

bool db_group_has(const struct db_group *g, const db_id *id) {
  for (uint32_t i = 0; i < g->count; i++)
    if (!memcmp(&g->records[i].id, id, sizeof *id)) return true;
  return false;
}

static int put_all(struct db *db, MDB_txn *txn, void *data) {
  const struct db_group *g = data;
  int code = 0;
  for (uint32_t i = 0; i < g->count && !code; i++) code = db_insert_record(db, txn, &g->records[i]);
  return code;
}

bool db_group_put(struct db_group *g, ms_error *err) {
  if (!g->count) return true;
  bool ok = db_write_many(g->db, put_all, g, g->count, g->bytes, "keeping records", err);
  clear(g);
  return ok;
}

bool db_group_add(struct db_group *g, const struct db_record *r, ms_error *err) {
  char wrong[DB_WRONG_TEXT];
  if (db_find_out_of_range(r, wrong)) return ms_fail(err, MS_INVALID_ARGUMENT, "a record's %s", wrong);
  size_t bytes = db_most_bytes(r);
  if (g->count == MOST || (g->count && g->bytes + bytes > MOST_BYTES))
    if (!db_group_put(g, err)) return false;
  assert(g->count < MOST);
  struct db_record *to = &g->records[g->count];
  *to = *r;
  to->id = db_record_id(r);
  g->held[g->count++] = db_copy_parts(to);
  g->bytes += bytes;
  return true;
}
