/* Saving what can be read of a damaged store: it is written into a file that takes the store's place. */
#define _GNU_SOURCE
#include "db/file/lock.h"
#include "db/file/pages.h"
#include "db/storage/outlines.h"
#include "db/storage/packed.h"
#include "db/storage/seal.h"
#include "replace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  struct repair *shared; /* the contexts and sketches, of which records are put together: entries that are sorted when
                            one is asked for; they are made again as the records are written */
  bool sorted;
  struct db_parts parts;
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

static bool is_shared(char kind) { return kind == DB_CONTEXT || kind == DB_SKETCH; }

static void keep(struct repair *r, char kind, MDB_val key, MDB_val value) {
  assert(key.mv_size == sizeof(db_id));
  if (is_shared(kind) && r->shared) {
    r->shared->sorted = false;
    keep(r->shared, kind, key, value);
    return;
  }
  if (r->count == r->room) {
    r->room = r->room * 2 + 64;
    r->entries = realloc(r->entries, r->room * sizeof *r->entries);
    if (!r->entries) abort();
  }
  r->entries[r->count].kind = kind;
  r->entries[r->count].value = value;
  memcpy(r->entries[r->count++].id.bytes, key.mv_data, sizeof(db_id));
}

static const char *judge(struct repair *r, char kind, MDB_val key, MDB_val value) {
  struct db_record record;
  struct db_workload_text workload;
  return kind == DB_RECORD     ? db_read_record(&r->parts, key, value, &record)
         : is_shared(kind)     ? db_read_part_entry(kind, key, value)
         : kind == DB_WORKLOAD ? db_read_workload_entry(key, value, &workload)
                               : db_read_intrinsic_entry(key, &value);
}

static char kind_of_table(const char *table) {
  return !strcmp(table, "records")      ? DB_RECORD
         : !strcmp(table, "workloads")  ? DB_WORKLOAD
         : !strcmp(table, "intrinsics") ? DB_INTRINSIC
         : !strcmp(table, "contexts")   ? DB_CONTEXT
         : !strcmp(table, "sketches")   ? DB_SKETCH
                                        : 0;
}

static void take_entry(void *data, const char *table, MDB_val key, MDB_val value) {
  struct repair *r = data;
  char kind = kind_of_table(table);
  if (!kind) return;                                              /* indexes are rebuilt */
  bool later = kind == DB_RECORD && key.mv_size == sizeof(db_id); /* what it names may be on a damaged page */
  const char *wrong = later ? NULL : judge(r, kind, key, value);
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
  assert(count <= r->count);
  struct entry key = {.kind = kind};
  memcpy(key.id.bytes, id, sizeof key.id);
  return count ? bsearch(&key, r->entries, count, sizeof key, compare_entries) : NULL;
}

/* ---- What damaged pages still hold: only what proves to be what it was ---- */

/* An older entry has no checksum: a record holds its id and a trace that decodes, an intrinsic's id is that of its
 * text, a workload parses to its end. */
static bool is_older(struct repair *r, char kind, MDB_val key, MDB_val value) {
  return !is_shared(kind) && db_unseal(kind, &key, &value) == DB_UNSEALED && !judge(r, kind, key, value);
}

static bool is_sealed(struct repair *r, char kind, MDB_val key, MDB_val value) {
  MDB_val inner = value;
  return db_unseal(kind, &key, &inner) == DB_SEALED && !judge(r, kind, key, value);
}

static void rescue(struct repair *r, const char *kinds, MDB_val key, MDB_val value) {
  for (; key.mv_size == sizeof(db_id) && *kinds; kinds++)
    if (is_sealed(r, *kinds, key, value) || is_older(r, *kinds, key, value)) keep(r, *kinds, key, value);
}

static void rescue_entry(void *data, MDB_val key, MDB_val value) {
  rescue(data, (const char[]){DB_RECORD, DB_WORKLOAD, DB_INTRINSIC, 0}, key, value);
}

/* Of a key that is found twice the first is taken: one that the walk found, and of those behind any. */
static void rescue_part(void *data, MDB_val key, MDB_val value) {
  rescue(data, (const char[]){DB_CONTEXT, DB_SKETCH, 0}, key, value);
}

static void sort_first(struct repair *r, size_t count) {
  if (count) qsort(r->entries, count, sizeof *r->entries, compare_entries);
}

/* One entry each; of those that are found twice the first, which the walk found. */
static void sort_entries(struct repair *r, size_t walked) {
  assert(walked <= r->count);
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

static void scan_damaged(struct repair *r, const uint8_t *used, void (*entry)(void *data, MDB_val key, MDB_val value)) {
  for (uint64_t i = 0; r->out->pages && i < r->pages.count; i++)
    if (used[i] != DB_USED) db_scan_page(&r->pages, i, entry, r);
}

/* Of repair->shared: the walk meets those that records name before records. */
static bool find_part(void *data, char kind, const void *key, MDB_val *value) {
  struct repair *shared = data;
  if (!shared->sorted) sort_first(shared, shared->count);
  shared->sorted = true;
  const struct entry *e = find(shared, shared->count, kind, key);
  if (e) *value = e->value;
  return e != NULL;
}

/* Of those that the walk met, now that all is there which they name. */
static void drop_damaged_records(struct repair *r) {
  size_t kept = 0;
  for (size_t i = 0; i < r->count; i++) {
    struct entry e = r->entries[i];
    MDB_val key = {sizeof e.id, e.id.bytes};
    const char *wrong = e.kind == DB_RECORD ? judge(r, e.kind, key, e.value) : NULL;
    if (wrong)
      drop(r, e.kind, key, wrong);
    else
      r->entries[kept++] = e;
  }
  r->count = kept;
}

static bool gather(struct repair *r, const char *path, ms_error *err) {
  struct db_page_visit visit = {report_page, take_entry, r};
  uint8_t *used;
  if (!db_map_pages(path, true, &r->pages, err)) return false;
  enum db_owner owner = db_walk_pages(&r->pages, &visit, &used);
  if (owner != DB_OURS || r->pages.lost) report_page(r, 0, "it, or page 1, does not say where the tables are");
  size_t parts_walked = r->shared->count;
  scan_damaged(r, used, rescue_part);
  sort_entries(r->shared, parts_walked);
  drop_damaged_records(r);
  size_t walked = r->count;
  scan_damaged(r, used, rescue_entry);
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
  r->parts.brief = true;
  bool *gone = calloc(r->count + 1, sizeof *gone);
  if (!gone) abort();
  for (size_t i = 0; i < r->count; i++) {
    struct db_record record;
    MDB_val key = {sizeof(db_id), r->entries[i].id.bytes};
    if (r->entries[i].kind != DB_RECORD || db_read_record(&r->parts, key, r->entries[i].value, &record)) continue;
    const char *why = lacks(r, &record);
    if (why) drop(r, DB_RECORD, key, why);
    gone[i] = why;
  }
  r->parts.brief = false;
  size_t kept = 0;
  for (size_t i = 0; i < r->count; i++)
    if (!gone[i]) r->entries[kept++] = r->entries[i];
  r->count = kept;
  free(gone);
}

static int insert_record(struct db *db, MDB_txn *txn, void *data) { return db_insert_record(db, txn, data); }

static int insert_other(struct db *db, MDB_txn *txn, void *data) {
  const struct entry *e = data;
  assert(!is_shared(e->kind) && e->kind != DB_RECORD); /* records are packed again, with parts of their own */
  MDB_val key = {sizeof(db_id), (void *)e->id.bytes}, value = e->value;
  db_unseal(e->kind, &key, &value);
  MDB_dbi table = e->kind == DB_WORKLOAD ? db->workloads : db->intrinsics;
  int code = db_put_sealed(txn, table, e->kind, &e->id, value.mv_data, value.mv_size);
  struct db_workload_text w;
  value = e->value;
  if (code || e->kind != DB_WORKLOAD || db_read_workload_entry(key, value, &w)) return code;
  return db_make_outline(db, txn, &e->id, w.text, w.length);
}

static bool insert(struct db *db, struct repair *r, const struct entry *e, ms_error *err) {
  static const char what[] = "writing what is saved";
  struct db_record record;
  MDB_val key = {sizeof(db_id), (void *)e->id.bytes};
  if (e->kind != DB_RECORD) return db_write(db, insert_other, (void *)e, e->value.mv_size, what, err);
  return db_read_record(&r->parts, key, e->value, &record) ||
         db_write(db, insert_record, &record, db_most_bytes(&record), what, err);
}

static bool insert_all(struct db *db, struct repair *r, ms_error *err) {
  bool ok = db_begin_batch(db, err);
  for (size_t i = 0; ok && i < r->count; i++) ok = insert(db, r, &r->entries[i], err);
  return ok && db_end_batch(db, err);
}

static void count_kept(struct repair *r) {
  for (size_t i = 0; i < r->count; i++)
    ++*(r->entries[i].kind == DB_RECORD     ? &r->out->records
        : r->entries[i].kind == DB_WORKLOAD ? &r->out->workloads
                                            : &r->out->intrinsics);
}

static void remove_with_lock(const char *path) {
  unlink(path);
  db_remove_lock(path);
}

static bool write_again(struct repair *r, int held, const char *path, ms_error *err) {
  char *made = NULL;
  if (asprintf(&made, "%s.repair", path) < 0) abort();
  remove_with_lock(made);
  struct db *db = db_open(made, DB_CREATE | DB_AT_ONCE, err);
  bool ok = db && insert_all(db, r, err);
  db_close(db);
  db_remove_lock(made);
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
    db_remove_lock(named->path); /* of what is no store; it is ours alone */
    return false;
  }
  drop_incomplete(r);
  count_kept(r);
  return write_again(r, held, named->path, err);
}

bool db_repair_file(const char *path, FILE *report, struct db_repair *out, ms_error *err) {
  assert(out && err); /* path NULL: the user's store */
  struct repair shared = {0};
  struct repair r = {.report = report, .out = out, .shared = &shared, .parts = {.find = find_part, .data = &shared}};
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
  db_free_parts(&r.parts);
  free(shared.entries);
  free(r.entries);
  db_close(named);
  return ok;
}
