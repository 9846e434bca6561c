/* Workloads: functions by structural hash. */
#include "db/file/snapshot.h"
#include "db/storage/outlines.h"
#include "db/storage/seal.h"
#include "db/storage/tasks.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

/* An id joins the structural hash with the names that traces refer to: blocks' names are part of the former, the
 * function's of the latter. */
static db_id id_of(uint64_t hash, const char *name) {
  XXH128_hash_t all = XXH3_128bits_withSeed(name, strlen(name), hash);
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, all);
  db_id id;
  memcpy(id.bytes, bytes.digest, 16);
  return id;
}

db_id db_workload_id(const struct tir *ir, tir_func f) {
  return id_of(tir_structural_hash(ir, f), tir_text(ir, ir->funcs.at[f].name));
}

/* Lists have the function's own name, or another where that is `main`. */
bool db_is_workload_of(const db_id *id, const char *listed, const struct tir *ir, tir_func f) {
  assert(id && listed);
  uint64_t hash = tir_structural_hash(ir, f);
  db_id named = id_of(hash, listed), unnamed = id_of(hash, "main");
  return !memcmp(id, &named, sizeof named) || !memcmp(id, &unnamed, sizeof unnamed);
}

static bool reduces(const struct tir *ir, tir_block b) {
  const struct tir_iter *iters = tir_iters(ir, b);
  for (uint32_t i = 0; i < tir_block_at(ir, b)->iters.count; i++)
    if (iters[i].kind == TIR_REDUCE) return true;
  return false;
}

/* What lists call it. Every function of TVM's is `main`: it goes by its global_symbol, else by its last block that
 * reduces, else by its last. */
static const char *telling_name(const struct tir *ir, tir_func f) {
  const struct tir_func_node *func = &ir->funcs.at[f];
  const char *name = tir_text(ir, func->name);
  if (strcmp(name, "main") != 0) return name;
  tir_expr symbol = tir_annotation(ir, func->attrs, "global_symbol");
  if (symbol && tir_at(ir, symbol)->kind == TIR_STRING_IMM &&
      strcmp(tir_text(ir, tir_at(ir, symbol)->ref), "main") != 0)
    return tir_text(ir, tir_at(ir, symbol)->ref);
  tir_block anchor = TIR_NONE;
  for (tir_stmt s = tir_next(ir, func->body, func->body); s; s = tir_next(ir, s, func->body))
    if (tir_is(ir, s, TIR_BLOCK) && *tir_block_name(ir, s) && tir_parent_block(ir, s) != TIR_NONE &&
        (!anchor || reduces(ir, s) || !reduces(ir, anchor)))
      anchor = s;
  return anchor ? tir_block_name(ir, anchor) : name;
}

struct putting {
  db_id id;
  const char *name, *text;
  const struct tir *ir;
  tir_func func;
};

static int put_workload(struct db *db, MDB_txn *txn, void *data) {
  struct putting *p = data;
  struct db_workload_text there;
  MDB_val key = {16, p->id.bytes}, value;
  int code = db_get(db, txn, DB_WORKLOADS, &key, &value);
  if (code && code != MDB_NOTFOUND) return code;
  bool is_there = !code && !db_read_workload_entry(key, value, &there);
  code = db_put_outline(db, txn, &p->id, p->ir, p->func);
  if (code || is_there) return code;
  size_t name = strlen(p->name) + 1, text = strlen(p->text);
  char *both = malloc(name + text);
  if (!both) abort();
  memcpy(both, p->name, name);
  memcpy(both + name, p->text, text);
  code = db_put_sealed(txn, db->workloads, DB_WORKLOAD, &p->id, both, name + text);
  free(both);
  return code;
}

bool db_put_workload(struct db *db, const struct tir *ir, tir_func f, db_id *out, ms_error *err) {
  assert(tir_is_func(ir, f));
  char *text = tir_print(ir, f, 0);
  if (!text) abort();
  struct putting p = {db_workload_id(ir, f), telling_name(ir, f), text, ir, f};
  *out = p.id;
  bool ok = db_write(db, put_workload, &p, strlen(text), "keeping a workload", err);
  free(text);
  return ok;
}

static struct tir *refuse_damaged(struct db *db, const db_id *id, const char *what, ms_error *err) {
  char text[DB_ID_TEXT];
  db_id_text(id, text);
  ms_fail(err, MS_STORE, "%s: workload %.12s is damaged: %s; `msched db repair` drops it, tuning it again restores it",
          db->path, text, what);
  return NULL;
}

struct tir *db_get_workload(struct db *db, const db_id *id, ms_error *err) {
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return NULL;
  MDB_val key = {16, (void *)id->bytes}, value;
  struct db_workload_text w;
  struct tir *ir = NULL;
  const char *wrong = NULL;
  int code = db_get(db, txn, DB_WORKLOADS, &key, &value);
  if (code == MDB_NOTFOUND)
    ms_fail(err, MS_STORE, "%s: the record's workload is not in the store", db->path);
  else if (code)
    db_failed(db, code, "reading a workload", err);
  else if ((wrong = db_read_workload_entry(key, value, &w)))
    refuse_damaged(db, id, wrong, err);
  else
    ir = tir_read(w.text, w.length, db->path, err);
  db_end_read(db, txn, code);
  if (!ir || tir_find_func(ir, "main")) return ir;
  tir_free(ir);
  return refuse_damaged(db, id, "it has no function, or several", err);
}

/* By the summaries of its tasks; where one is stale, by the index. */
static uint64_t count_records(struct db *db, MDB_txn *txn, const db_id *id) {
  struct db_cursor cursor;
  int64_t known = db_count_tasks(db, txn, id);
  if (known >= 0) return (uint64_t)known;
  uint64_t count = 0;
  if (db_cursor_open(db, txn, DB_TIMES, &cursor)) return 0;
  MDB_val key = {16, (void *)id->bytes}, value;
  for (int code = db_cursor_seek(&cursor, &key, &value); !code; code = db_cursor_next(&cursor, &key, &value)) {
    if (key.mv_size != DB_TIME_KEY || memcmp(key.mv_data, id->bytes, 16) != 0) break;
    count++;
  }
  db_cursor_close(&cursor);
  return count;
}

bool db_each_workload(struct db *db, db_workload_visit *visit, void *data, ms_error *err) {
  assert(visit);
  MDB_txn *txn;
  struct db_cursor cursor;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = db_cursor_open(db, txn, DB_WORKLOADS, &cursor);
  struct db_counts *counts = code ? NULL : db_counts_new(db, txn);
  MDB_val key, value;
  struct db_workload_text w;
  for (int step = code; !step && !(step = db_cursor_next(&cursor, &key, &value));) {
    db_id id;
    if (db_read_workload_entry(key, value, &w)) {
      db_note_damage(db, DB_WORKLOAD, key);
      continue;
    }
    memcpy(id.bytes, key.mv_data, 16);
    if (!visit(data, &id, w.name, counts ? db_counts_next(counts, &id) : count_records(db, txn, &id))) break;
  }
  db_counts_free(counts);
  if (!code) db_cursor_close(&cursor);
  code = db_end_read(db, txn, code);
  db_report_damage(db);
  return code ? db_failed(db, code, "reading workloads", err) : true;
}
