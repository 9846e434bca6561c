/* Deleting records of a task by rules: what goes is found by a walk over the index, then deleted in a batch. */
#include "db/file/snapshot.h"
#include "db/storage/packed.h"
#include "db/storage/seal.h"
#include "db/storage/tasks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db/ids.h"

struct pruning {
  const struct db_prune *rule;
  struct db_pruned *out;
  struct db_ids ids;
  uint64_t measured; /* that came before */
  double best;       /* seconds; 0: none came */
};

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool contains(const char *text, const char *part) {
  for (; *text; text++) {
    size_t i = 0;
    while (part[i] && lower(text[i]) == lower(part[i])) i++;
    if (!part[i]) return true;
  }
  return !*part;
}

static bool is_of_device(const struct db_record *r, const char *part) {
  struct db_fact f;
  for (size_t at = 0; db_next_fact(r, &at, &f);)
    if (f.kind == DB_TEXT && !strcmp(f.name, "name")) return contains(f.text, part);
  return contains(r->target, part);
}

static bool judge(void *data, const struct db_record *r) {
  struct pruning *p = data;
  const struct db_prune *rule = p->rule;
  bool measured = r->status == DB_MEASURED;
  if (measured && !p->best) p->best = r->seconds;
  bool goes = !r->pinned && !(measured && p->measured < rule->keep) && (!rule->before || r->when < rule->before) &&
              (!rule->device || is_of_device(r, rule->device)) &&
              (!(rule->within > 0) || !measured || r->seconds > rule->within * p->best);
  p->measured += measured;
  ++*(goes ? &p->out->deleted : &p->out->kept);
  if (goes && !rule->dry) db_add_id(&p->ids, &r->id);
  return true;
}

struct group {
  const db_id *ids;
  size_t count;
  uint64_t pinned; /* meanwhile, by another process: they stay */
};

static int delete_group(struct db *db, MDB_txn *txn, void *data) {
  struct group *g = data;
  int code = 0;
  g->pinned = 0;
  for (size_t i = 0; i < g->count && !code; i++) {
    MDB_val key = {sizeof g->ids[i], (void *)g->ids[i].bytes}, value;
    struct db_record r;
    code = db_get(db, txn, DB_RECORDS, &key, &value);
    bool stays = !code && !db_read_record(db_parts_of(db, txn, true), key, value, &r) && r.pinned;
    g->pinned += stays;
    if (!code && !stays) code = db_remove_record(db, txn, &g->ids[i]);
    if (code == MDB_NOTFOUND) code = 0; /* another process deleted it */
  }
  return code;
}

static bool delete_all(struct db *db, struct pruning *p, ms_error *err) {
  enum { GROUP = 100 };
  if (!p->ids.count) return true;
  bool ok = db_begin_batch(db, err);
  for (size_t i = 0; ok && i < p->ids.count; i += GROUP) {
    struct group g = {p->ids.at + i, p->ids.count - i < GROUP ? p->ids.count - i : GROUP, 0};
    ok = db_write_many(db, delete_group, &g, (uint32_t)g.count, 0, "deleting records", err);
    assert(g.pinned <= g.count && g.pinned <= p->out->deleted);
    p->out->deleted -= g.pinned, p->out->kept += g.pinned;
  }
  return db_end_batch(db, ok ? err : NULL) && ok;
}

bool db_prune_task(struct db *db, const db_id *workload, const char *target, const struct db_prune *rule,
                   struct db_pruned *out, ms_error *err) {
  assert(workload && target && rule && out);
  struct pruning p = {.rule = rule, .out = out};
  MDB_txn *txn;
  uint8_t key[DB_TIME_KEY];
  struct db_record like = {.workload = *workload, .target = target};
  *out = (struct db_pruned){0};
  if (!rule->dry && db->read_only) return ms_fail(err, MS_STORE, "%s: the store is open for reading only", db->path);
  db_time_key(&like, key);
  if (!db_begin_read(db, &txn, err)) return false;
  int code = db_walk_task(db, txn, key, DB_TASK_KEY, true, judge, &p);
  code = db_end_read(db, txn, code);
  db_report_damage(db);
  bool ok = code ? db_failed(db, code, "reading records", err) : delete_all(db, &p, err);
  assert(!ok || rule->dry || out->deleted <= p.ids.count);
  free(p.ids.at);
  return ok;
}
