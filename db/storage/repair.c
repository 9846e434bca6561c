/* Rewriting the store's file: compacting it, and saving what can be read of a damaged one. */
#define _GNU_SOURCE
#include "lock.h"
#include "pages.h"
#include "replace.h"
#include "seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Compact: a copy beside the file takes its place ---- */

static bool copy_alone(const char *path, const char *copy, ms_error *err) {
  struct db db = {.path = (char *)path};
  int code = mdb_env_create(&db.env);
  if (!code) code = mdb_env_set_mapsize(db.env, 1); /* as large as the file is */
  if (!code) code = mdb_env_open(db.env, path, MDB_NOSUBDIR | MDB_NOTLS | MDB_RDONLY | MDB_NOLOCK, 0666);
  if (!code) code = mdb_env_copy2(db.env, copy, MDB_CP_COMPACT);
  mdb_env_close(db.env);
  return !code || db_failed(&db, code, "compacting", err);
}

bool db_compact(struct db *db, ms_error *err) {
  if (db->read_only) return ms_fail(err, MS_STORE, "%s: the store is open for reading only", db->path);
  if (db->batch) return ms_fail(err, MS_STORE, "%s: a batch is open", db->path);
  if (db->pending) return ms_fail(err, MS_STORE, "%s: there is no store; tuning makes one", db->path);
  char *copy = NULL;
  if (asprintf(&copy, "%s.compact", db->path) < 0) abort();
  db_close_environment(db); /* it must not look at the old file any more */
  int held = db_hold_alone(db->path, err);
  if (held >= 0) unlink(copy); /* of a process that was killed */
  bool ok = held >= 0 && copy_alone(db->path, copy, err) && db_take_place(held, copy, db->path, NULL, err);
  if (!ok && held >= 0) unlink(copy);
  free(copy);
  db_release_alone(held);
  db_disclaim(db);
  return db_claim(db, ok ? err : NULL) && db_open_environment(db, ok ? err : NULL) && ok;
}

/* ---- Repair: what was found ---- */

struct entry {
  char kind;
  db_id id;
  MDB_val value; /* in the map */
};

struct repair {
  struct db_pages pages;
  struct entry *entries; /* sorted by kind and id once they are complete */
  size_t count, room;
  FILE *report;
  struct db_repair *out;
};

static bool report_page(void *data, uint64_t page, const char *why) {
  struct repair *r = data;
  r->out->pages++;
  if (r->report) fprintf(r->report, "page %llu: %s\n", (unsigned long long)page, why);
  return true;
}

static void drop(struct repair *r, char kind, MDB_val key, const char *why) {
  db_id id = db_id_of_key(key);
  char text[DB_ID_TEXT];
  db_id_text(&id, text);
  r->out->dropped++;
  if (r->report) fprintf(r->report, "%s %s: dropped: %s\n", db_kind_name(kind), text, why);
}

static void keep(struct repair *r, char kind, MDB_val key, MDB_val value) {
  assert(kind == DB_WORKLOAD || kind == DB_RECORD || kind == DB_INTRINSIC);
  assert(key.mv_size == sizeof(db_id));
  if (r->count == r->room) {
    r->room = r->room * 2 + 64;
    r->entries = realloc(r->entries, r->room * sizeof *r->entries);
    if (!r->entries) abort();
  }
  r->entries[r->count].kind = kind;
  r->entries[r->count].value = value;
  memcpy(r->entries[r->count++].id.bytes, key.mv_data, sizeof(db_id));
}

static const char *judge(char kind, MDB_val key, MDB_val value) {
  struct db_record record;
  struct db_workload_text workload;
  return kind == DB_RECORD     ? db_read_record(key, value, &record)
         : kind == DB_WORKLOAD ? db_read_workload_entry(key, value, &workload)
                               : db_read_intrinsic_entry(key, &value);
}

static char kind_of_table(const char *table) {
  return !strcmp(table, "records")      ? DB_RECORD
         : !strcmp(table, "workloads")  ? DB_WORKLOAD
         : !strcmp(table, "intrinsics") ? DB_INTRINSIC
                                        : 0;
}

static void take_entry(void *data, const char *table, MDB_val key, MDB_val value) {
  struct repair *r = data;
  char kind = kind_of_table(table);
  if (!kind) return; /* indexes are rebuilt */
  const char *wrong = judge(kind, key, value);
  if (wrong)
    drop(r, kind, key, wrong);
  else
    keep(r, kind, key, value);
}

static int compare_entries(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : memcmp(&x->id, &y->id, sizeof x->id);
}

static const struct entry *find(const struct repair *r, size_t count, char kind, const void *id) {
  struct entry key = {.kind = kind};
  memcpy(key.id.bytes, id, sizeof key.id);
  return count ? bsearch(&key, r->entries, count, sizeof key, compare_entries) : NULL;
}

/* ---- What damaged pages still hold: only what proves to be what it was ---- */

/* An older entry has no checksum: a record holds its id and a trace that decodes, an intrinsic's id is that of its
 * text, a workload parses to its end. */
static bool is_older(char kind, MDB_val key, MDB_val value) {
  return db_unseal(kind, &key, &value) == DB_UNSEALED && !judge(kind, key, value);
}

static bool is_sealed(char kind, MDB_val key, MDB_val value) {
  MDB_val inner = value;
  return db_unseal(kind, &key, &inner) == DB_SEALED && !judge(kind, key, value);
}

static void rescue(void *data, MDB_val key, MDB_val value) {
  static const char kinds[] = {DB_RECORD, DB_WORKLOAD, DB_INTRINSIC};
  struct repair *r = data;
  for (size_t i = 0; key.mv_size == sizeof(db_id) && i < sizeof kinds; i++)
    if (is_sealed(kinds[i], key, value) || is_older(kinds[i], key, value)) keep(r, kinds[i], key, value);
}

static void sort_first(struct repair *r, size_t count) {
  if (count) qsort(r->entries, count, sizeof *r->entries, compare_entries);
}

/* One entry each; of those that are found twice the first, which the walk found. */
static void sort_entries(struct repair *r, size_t walked) {
  size_t kept = walked;
  sort_first(r, walked);
  for (size_t i = walked; i < r->count; i++)
    if (!find(r, walked, r->entries[i].kind, r->entries[i].id.bytes)) r->entries[kept++] = r->entries[i];
  r->count = kept;
  sort_first(r, r->count);
  kept = 0;
  for (size_t i = 0; i < r->count; i++)
    if (!kept || compare_entries(&r->entries[kept - 1], &r->entries[i]) != 0) r->entries[kept++] = r->entries[i];
  r->count = kept;
}

static bool gather(struct repair *r, const char *path, ms_error *err) {
  struct db_page_visit visit = {report_page, take_entry, r};
  uint8_t *used;
  if (!db_map_pages(path, true, &r->pages, err)) return false;
  enum db_owner owner = db_walk_pages(&r->pages, &visit, &used);
  size_t walked = r->count;
  if (owner != DB_OURS || r->pages.lost) report_page(r, 0, "it, or page 1, does not say where the tables are");
  for (uint64_t i = 0; r->out->pages && i < r->pages.count; i++)
    if (used[i] != DB_USED) db_scan_page(&r->pages, i, rescue, r);
  free(used);
  sort_entries(r, walked);
  return r->count || !r->out->pages || ms_fail(err, MS_STORE, "%s: there is nothing of a store of msched in it", path);
}

/* ---- Writing it ---- */

static const char *lacks(const struct repair *r, const struct db_record *record) {
  size_t at = 0;
  db_id id;
  const char *name;
  if (!find(r, r->count, DB_WORKLOAD, record->workload.bytes)) return "its workload is missing";
  while (db_next_intrinsic(record, &at, &id, &name))
    if (!find(r, r->count, DB_INTRINSIC, id.bytes)) return "a tensor intrinsic that it names is missing";
  return NULL;
}

/* Removes the records that lack what they name. */
static void drop_incomplete(struct repair *r) {
  bool *gone = calloc(r->count + 1, sizeof *gone);
  if (!gone) abort();
  for (size_t i = 0; i < r->count; i++) {
    struct db_record record;
    MDB_val key = {sizeof(db_id), r->entries[i].id.bytes};
    if (r->entries[i].kind != DB_RECORD || db_read_record(key, r->entries[i].value, &record)) continue;
    const char *why = lacks(r, &record);
    if (why) drop(r, DB_RECORD, key, why);
    gone[i] = why;
  }
  size_t kept = 0;
  for (size_t i = 0; i < r->count; i++)
    if (!gone[i]) r->entries[kept++] = r->entries[i];
  r->count = kept;
  free(gone);
}

static int insert(struct db *db, MDB_txn *txn, void *data) {
  const struct entry *e = data;
  struct db_record record;
  MDB_val key = {sizeof(db_id), (void *)e->id.bytes}, value = e->value;
  if (e->kind == DB_RECORD) return db_read_record(key, value, &record) ? 0 : db_insert_record(db, txn, &record);
  db_unseal(e->kind, &key, &value);
  MDB_dbi table = e->kind == DB_WORKLOAD ? db->workloads : db->intrinsics;
  return db_put_sealed(txn, table, e->kind, &e->id, value.mv_data, value.mv_size);
}

static bool insert_all(struct db *db, const struct repair *r, ms_error *err) {
  bool ok = db_begin_batch(db, err);
  for (size_t i = 0; ok && i < r->count; i++)
    ok = db_write(db, insert, &r->entries[i], r->entries[i].value.mv_size, "writing what is saved", err);
  return ok && db_end_batch(db, err);
}

static void count_kept(struct repair *r) {
  for (size_t i = 0; i < r->count; i++)
    ++*(r->entries[i].kind == DB_RECORD     ? &r->out->records
        : r->entries[i].kind == DB_WORKLOAD ? &r->out->workloads
                                            : &r->out->intrinsics);
}

static void remove_lock(const char *path) {
  char *lock = NULL;
  if (asprintf(&lock, "%s-lock", path) < 0) abort();
  unlink(lock);
  free(lock);
}

static void remove_with_lock(const char *path) {
  unlink(path);
  remove_lock(path);
}

static bool write_anew(struct repair *r, int held, const char *path, ms_error *err) {
  char *made = NULL;
  if (asprintf(&made, "%s.repair", path) < 0) abort();
  remove_with_lock(made);
  struct db *db = db_open(made, DB_CREATE | DB_AT_ONCE, err);
  bool ok = db && insert_all(db, r, err);
  db_close(db);
  remove_lock(made);
  ok = ok && db_take_place(held, made, path, &r->out->backup, err);
  if (!ok) remove_with_lock(made);
  free(made);
  return ok;
}

/* Whether a store whose pages and entries are sound has sound indexes too. */
static bool is_clean(struct db *named, FILE *report, int64_t *problems, ms_error *err) {
  db_disclaim(named);
  struct db *db = db_open(named->path, DB_READ_ONLY, err);
  *problems = db ? db_check(db, report, err) : -1;
  db_close(db);
  return *problems >= 0 && db_claim(named, err);
}

static bool repair_alone(struct db *named, int held, struct repair *r, ms_error *err) {
  if (!gather(r, named->path, err)) {
    remove_lock(named->path); /* of what is no store; it is ours alone */
    return false;
  }
  drop_incomplete(r);
  count_kept(r);
  return write_anew(r, held, named->path, err);
}

bool db_repair_file(const char *path, FILE *report, struct db_repair *out, ms_error *err) {
  assert(out && err); /* path NULL: the user's store */
  struct repair r = {.report = report, .out = out};
  struct db *named = db_name_store(path, err);
  *out = (struct db_repair){0};
  if (!named) return false;
  int64_t problems = 0;
  bool sound = db_check_pages_of(named, NULL, NULL) == 0;
  bool ok = !sound || is_clean(named, NULL, &problems, err);
  out->needed = !sound || problems > 0;
  if (ok && out->needed) {
    int held = db_hold_alone(named->path, err);
    ok = held >= 0 && repair_alone(named, held, &r, err);
    db_release_alone(held);
  }
  db_unmap_pages(&r.pages);
  free(r.entries);
  db_close(named);
  return ok;
}
