/* Records by run time. */
#include "db/file/snapshot.h"
#include "packed.h"
#include "seal.h"
#include "tasks.h"

#include <assert.h>
#include <string.h>

struct walk {
  struct db *db;
  bool brief;
  MDB_txn *txn;
  const char *target;
  db_visit *visit;
  void *data;
  int code;
  struct db_sample sample;
  uint64_t at; /* of the entries */
};

static bool is_sampled(const struct db_sample *s, uint64_t at) {
  return at < s->first || (at - s->first) % s->step == 0;
}

/* The records of one status of one workload and target, or of all that `prefix` covers. Returns false to stop. */
static bool walk_prefix(struct walk *w, const uint8_t *prefix, size_t length) {
  assert(prefix || !length);
  struct db_cursor cursor;
  w->code = db_cursor_open(w->db, w->txn, DB_TIMES, &cursor);
  if (w->code) return false;
  MDB_val key = {length, (void *)prefix}, value;
  bool go_on = true;
  for (int code = db_cursor_seek(&cursor, &key, &value); !code && go_on; code = db_cursor_next(&cursor, &key, &value)) {
    if (key.mv_size != DB_TIME_KEY || (length && memcmp(key.mv_data, prefix, length) != 0)) break;
    MDB_val id = {16, (uint8_t *)key.mv_data + 33}, bytes;
    struct db_record r;
    uint8_t its[DB_TIME_KEY];
    if (!is_sampled(&w->sample, w->at++)) continue;
    if (db_get(w->db, w->txn, DB_RECORDS, &id, &bytes)) continue;
    if (db_read_record(db_parts_of(w->db, w->txn, w->brief), id, bytes, &r)) {
      db_note_damage(w->db, DB_RECORD, id);
      continue;
    }
    db_time_key(&r, its);
    if (memcmp(its, key.mv_data, sizeof its) != 0)
      continue; /* left of a record that is another now; db_check says it */
    if (!w->target || !strcmp(w->target, r.target)) go_on = w->visit(w->data, &r);
  }
  db_cursor_close(&cursor);
  return go_on;
}

int db_walk_task(struct db *db, MDB_txn *txn, const void *prefix, size_t length, bool brief, db_visit *visit,
                 void *data) {
  struct walk w = {.db = db, .brief = brief, .txn = txn, .visit = visit, .data = data, .sample = {UINT64_MAX, 1}};
  walk_prefix(&w, prefix, length);
  return w.code;
}

bool db_each_record(struct db *db, const db_id *workload, const char *target, db_visit *visit, void *data,
                    ms_error *err) {
  return db_each_sampled(db, workload, target, (struct db_sample){UINT64_MAX, 1}, visit, data, err);
}

bool db_each_sampled(struct db *db, const db_id *workload, const char *target, struct db_sample sample, db_visit *visit,
                     void *data, ms_error *err) {
  assert(visit && sample.step > 0);
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  struct walk w = {.db = db, .txn = txn, .target = target, .visit = visit, .data = data, .sample = sample};
  uint8_t prefix[25];
  size_t length = 0;
  if (workload) {
    memcpy(prefix, workload->bytes, 16);
    length = 16;
    if (target) {
      struct db_record like = {.workload = *workload, .target = target};
      uint8_t key[DB_TIME_KEY];
      db_time_key(&like, key);
      memcpy(prefix, key, 24);
      length = 24;
    }
  }
  walk_prefix(&w, prefix, length);
  w.code = db_end_read(db, txn, w.code);
  db_report_damage(db);
  return w.code ? db_failed(db, w.code, "reading records", err) : true;
}

bool db_each_result(struct db *db, db_visit *visit, void *data, ms_error *err) {
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = db_walk_task(db, txn, NULL, 0, true, visit, data);
  code = db_end_read(db, txn, code);
  db_report_damage(db);
  return code ? db_failed(db, code, "reading records", err) : true;
}
