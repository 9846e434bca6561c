/* Checking a store: its pages, its entries, its indexes. */
#include "db/file/snapshot.h"
#include "db/storage/outlines.h"
#include "db/storage/packed.h"
#include "db/storage/prefixes.h"
#include "db/storage/seal.h"
#include "db/storage/tasks.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

/* ---- Entries ---- */

/* Of keys, whatever their order: that of others is another. */
struct sum {
  uint64_t low, high;
};

enum { KNOWN = 4096 };

struct checking {
  struct db *db;
  MDB_txn *txn;
  FILE *report;
  int64_t problems;
  uint64_t records;
  struct db_tally *tally; /* of the records */
  struct vm_binary_checker *traces;
  struct sum listed, kept; /* of the index of times: its entries, and those that records should have */
  struct known {
    bool there;
    db_id id;
  } known[KNOWN]; /* workloads that were looked for */
  bool cut;       /* the file is shorter than what its tables need */
  bool prefixes;  /* whether those that ids share are known */
  db_id before;   /* of the record before: their ids rise */
};

static void problem(struct checking *c, char kind, MDB_val key, const char *what) {
  db_id id = db_id_of_key(key);
  char text[DB_ID_TEXT];
  db_id_text(&id, text);
  c->problems++;
  if (c->report) fprintf(c->report, "%s %s: %s\n", db_kind_name(kind), text, what);
}

static void index_problem(struct checking *c, const char *what) {
  c->problems++;
  if (c->report) fprintf(c->report, "index: %s\n", what);
}

static bool is_there(struct checking *c, enum db_table table, const void *key, size_t size) {
  assert(key && size);
  MDB_val k = {size, (void *)key}, v;
  return !db_get(c->db, c->txn, table, &k, &v);
}

static void add_key(struct sum *sum, const void *key, size_t size) {
  XXH128_hash_t hash = XXH3_128bits(key, size);
  sum->low += hash.low64, sum->high += hash.high64;
}

static void sum_time(struct checking *c, MDB_val key, MDB_val value) {
  (void)value;
  add_key(&c->listed, key.mv_data, key.mv_size);
}

/* Each record has its entry, which is of its time: what sums cannot tell is which one lacks it. */
static void find_time(struct checking *c, MDB_val key, MDB_val value) {
  struct db_record r;
  uint8_t time[DB_TIME_KEY];
  if (db_read_record(db_parts_of(c->db, c->txn, true), key, value, &r)) return;
  db_time_key(&r, time);
  if (!is_there(c, DB_TIMES, time, sizeof time)) problem(c, DB_RECORD, key, "it is not in the index of times");
}

static bool has_workload(struct checking *c, const db_id *id) {
  struct known *known = &c->known[(id->bytes[0] | id->bytes[1] << 8) % KNOWN];
  if (known->there && !memcmp(&known->id, id, sizeof *id)) return true;
  *known = (struct known){is_there(c, DB_WORKLOADS, id->bytes, sizeof id->bytes), *id};
  return known->there;
}

/* What the ids of this record and of the one before begin with, where that is the same, is in its table. */
static void check_prefix(struct checking *c, MDB_val key) {
  uint8_t its[DB_PREFIX], before[DB_PREFIX];
  db_id id = db_id_of_key(key);
  db_prefix_of(&id, its), db_prefix_of(&c->before, before);
  bool shared = c->prefixes && c->records > 1 && !memcmp(its, before, sizeof its);
  if (shared && !db_is_shared_prefix(c->db, c->txn, &id)) index_problem(c, "that of beginnings of ids lacks one");
  c->before = id;
}

static void check_record(struct checking *c, MDB_val key, MDB_val value) {
  struct db_record r;
  uint8_t time[DB_TIME_KEY];
  const char *wrong = db_read_record(db_parts_of(c->db, c->txn, false), key, value, &r);
  c->records++;
  check_prefix(c, key);
  if (wrong) {
    problem(c, DB_RECORD, key, wrong);
    return;
  }
  assert(key.mv_size == sizeof r.id && !memcmp(&r.id, key.mv_data, sizeof r.id)); /* what is read has its own id */
  db_tally_add(c->tally, &r);
  db_time_key(&r, time);
  add_key(&c->kept, time, sizeof time);
  if (!has_workload(c, &r.workload)) problem(c, DB_RECORD, key, "its workload is missing");
  uint64_t group = XXH3_64bits_withSeed(r.workload.bytes, sizeof r.workload.bytes, c->db->parts.sketch);
  if (!vm_check_next_binary(c->traces, group, r.trace, r.trace_bytes))
    problem(c, DB_RECORD, key, "its trace does not decode");
  size_t at = 0;
  db_id intrinsic;
  const char *name;
  for (; db_next_intrinsic(&r, &at, &intrinsic, &name);)
    if (!is_there(c, DB_INTRINSICS, intrinsic.bytes, 16))
      problem(c, DB_RECORD, key, "a tensor intrinsic that it names is missing");
}

static void check_intrinsic(struct checking *c, MDB_val key, MDB_val value) {
  const char *wrong = db_read_intrinsic_entry(key, &value);
  ms_error err = {.brief = true};
  char *text = strndup(value.mv_data, value.mv_size);
  if (!text) abort();
  struct vm_intrinsics *made = wrong ? NULL : vm_read_intrinsics(text, "store", &err);
  if (!made) problem(c, DB_INTRINSIC, key, wrong ? wrong : "it cannot be read");
  vm_intrinsics_free(made);
  free(text);
}

/* Each entry is that of a record. One of a record that is damaged is left to the record. */
static void check_time(struct checking *c, MDB_val key, MDB_val value) {
  struct db_record r;
  uint8_t its[DB_TIME_KEY];
  if (key.mv_size != DB_TIME_KEY) {
    index_problem(c, "an entry of that of times is ill-formed");
    return;
  }
  MDB_val id = {16, (uint8_t *)key.mv_data + DB_TIME_KEY - 16};
  if (db_get(c->db, c->txn, DB_RECORDS, &id, &value)) {
    index_problem(c, "that of times names a record that is not there");
    return;
  }
  if (db_read_record(db_parts_of(c->db, c->txn, true), id, value, &r)) return;
  db_time_key(&r, its);
  if (memcmp(its, key.mv_data, key.mv_size) != 0)
    index_problem(c, "that of times has an entry that is not its record's");
}

static void check_part(struct checking *c, char kind, MDB_val key, MDB_val value) {
  const char *wrong = db_read_part_entry(kind, key, value);
  if (wrong) problem(c, kind, key, wrong);
}
static void check_context(struct checking *c, MDB_val key, MDB_val value) { check_part(c, DB_CONTEXT, key, value); }
static void check_sketch(struct checking *c, MDB_val key, MDB_val value) { check_part(c, DB_SKETCH, key, value); }

static void check_workload(struct checking *c, MDB_val key, MDB_val value) {
  struct db_workload_text w;
  const char *wrong = db_read_workload_entry(key, value, &w);
  ms_error err = {.brief = true};
  struct tir *ir = wrong ? NULL : tir_read(w.text, w.length, "workload", &err);
  if (!ir) problem(c, DB_WORKLOAD, key, wrong ? wrong : "it does not parse");
  tir_free(ir);
}

static void check_task(struct checking *c, MDB_val key, MDB_val value) {
  const char *wrong = db_check_task(c->db, c->txn, c->tally, key, value);
  char text[DB_ID_TEXT];
  db_id id = db_id_of_key(key);
  db_id_text(&id, text);
  if (!wrong) return;
  c->problems++;
  if (c->report) fprintf(c->report, "task of workload %s: %s\n", text, wrong);
}

static void check_outline(struct checking *c, MDB_val key, MDB_val value) {
  const char *wrong = db_check_outline(c->db, c->txn, key, value);
  if (wrong) problem(c, DB_WORKLOAD, key, wrong);
}

static int check_table(struct checking *c, enum db_table table, void (*check)(struct checking *, MDB_val, MDB_val)) {
  assert(check);
  struct db_cursor cursor;
  MDB_val key, value;
  int code = db_cursor_open(c->db, c->txn, table, &cursor);
  if (code) return code;
  while (!(code = db_cursor_next(&cursor, &key, &value))) check(c, key, value);
  db_cursor_close(&cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

/* Entries of the index are those of the records where their sums are the same: one by one they are looked for where
 * these are not. */
static int check_index(struct checking *c) {
  int code = check_table(c, DB_TIMES, sum_time);
  if (code || (c->kept.low == c->listed.low && c->kept.high == c->listed.high)) return code;
  code = check_table(c, DB_RECORDS, find_time);
  return code ? code : check_table(c, DB_TIMES, check_time);
}

static int64_t check_tables(struct checking *c, ms_error *err) {
  struct db *db = c->db;
  if (!db_begin_read(db, &c->txn, err)) return -1;
  c->prefixes = db_knows_prefixes(db, c->txn);
  int code = check_table(c, DB_RECORDS, check_record);
  uint64_t times = 0;
  if (!code) code = db_count_entries(db, c->txn, DB_TIMES, &times);
  if (!code) code = check_index(c);
  if (!code) code = check_table(c, DB_CONTEXTS, check_context);
  if (!code) code = check_table(c, DB_SKETCHES, check_sketch);
  if (!code) code = check_table(c, DB_WORKLOADS, check_workload);
  if (!code) code = check_table(c, DB_INTRINSICS, check_intrinsic);
  if (!code) code = check_table(c, DB_TASKS, check_task);
  if (!code) code = check_table(c, DB_OUTLINES, check_outline);
  if (!code && times != c->records)
    index_problem(c, "that of times has another number of entries than there are records");
  code = db_end_read(db, c->txn, code);
  return code ? db_failed(db, code, "checking", err), -1 : c->problems;
}

int64_t db_check(struct db *db, FILE *report, ms_error *err) {
  struct checking *c = calloc(1, sizeof *c);
  if (!c) abort();
  c->db = db, c->report = report, c->tally = db_tally_new(), c->traces = vm_binary_checker_new();
  int64_t problems = check_tables(c, err);
  vm_binary_checker_free(c->traces);
  db_tally_free(c->tally);
  free(c);
  return problems;
}

/* ---- Pages ---- */

static bool report_page(void *data, uint64_t page, const char *why) {
  struct checking *c = data;
  c->problems++;
  c->cut |= why == db_page_behind_end;
  if (c->report && !c->cut) fprintf(c->report, "page %llu: %s\n", (unsigned long long)page, why);
  return true;
}

/* A store that opens has sound pages: of the snapshot that was looked at, which LMDB kept from writers meanwhile. Of
 * one that does not, all that is wrong is said. */
int64_t db_check_pages_of(struct db *named, FILE *report, ms_error *err) {
  struct checking c = {.report = report};
  struct db_page_visit visit = {.bad = report_page, .data = &c};
  struct db_pages pages;
  db_disclaim(named);
  struct db *db = db_open(named->path, DB_READ_ONLY | DB_WALK_ALL, NULL);
  db_close(db);
  if (!db_claim(named, err)) return -1;
  if (db) return 0;
  if (!db_map_pages(named->path, false, &pages, err)) return -1;
  db_walk_pages(&pages, &visit, NULL);
  if (c.cut) db_refuse_cut(named->path, &pages, err);
  db_unmap_pages(&pages);
  return c.cut ? -1 : c.problems;
}

int64_t db_check_pages(const char *path, FILE *report, ms_error *err) {
  struct db *named = db_name_store(path, err);
  int64_t problems = named ? db_check_pages_of(named, report, err) : -1;
  db_close(named);
  return problems;
}
