/* Packed records: what was put is what is read, byte for byte, in little room; older stores are read, written and
 * upgraded; what records share is found missing, and mended; summaries of tasks say what their records do. */
#include "unit/stored.h"

#include "db/storage/delta.h"
#include "db/storage/packed.h"
#include "db/storage/seal.h"
#include "db/storage/tasks.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525 + 1013904223;
  return (*state >> 8) % below;
}

/* ---- Differences ---- */

static void fill(uint32_t *random, uint8_t *out, size_t size) {
  for (size_t i = 0; i < size; i++) out[i] = (uint8_t)draw(random, draw(random, 2) ? 256 : 8);
}

/* Bytes changed, put in, taken out and moved. */
static size_t edit(uint32_t *random, const uint8_t *from, size_t size, uint8_t *out, size_t room) {
  size_t n = 0;
  for (size_t i = 0; i < size && n + 70 < room;) {
    switch (draw(random, 60)) {
    case 0: out[n++] = (uint8_t)draw(random, 256), i++; break;
    case 1: i += draw(random, 9); break;
    case 2:
      for (uint32_t k = draw(random, 9); k > 0; k--) out[n++] = (uint8_t)draw(random, 256);
      break;
    case 3: {
      size_t at = draw(random, (uint32_t)size), length = draw(random, 60);
      if (at + length > size) length = size - at;
      memcpy(out + n, from + at, length);
      n += length;
      break;
    }
    default: out[n++] = from[i++];
    }
  }
  return n;
}

static void differences_give_what_was_written(void **state) {
  (void)state;
  enum { ROOM = 3000 };
  static uint8_t from[ROOM], to[ROOM], delta[2 * ROOM], read[ROOM];
  uint32_t random = 3;
  for (int i = 0; i < 2000; i++) {
    struct delta_base base;
    size_t from_size = draw(&random, i % 3 ? 300 : ROOM);
    fill(&random, from, from_size);
    size_t size = i % 7 ? edit(&random, from, from_size, to, ROOM) : draw(&random, ROOM);
    if (i % 7 == 0) fill(&random, to, size);
    delta_prepare(&base, from, from_size);
    size_t length = delta_write(&base, to, size, delta, sizeof delta);
    assert_true(length > 0 || !size);
    memset(read, 0, size);
    assert_true(delta_read(from, from_size, delta, length, read, size) && !memcmp(read, to, size));
    if (size) assert_false(delta_read(from, from_size, delta, length, read, size - 1));
    assert_int_equal(delta_write(&base, to, size, delta, length - 1), 0); /* no room for it */
    delta_free(&base);
  }
}

/* A stranger's difference is refused, or gives some bytes; none outside of what is there is touched. */
static void strange_differences_end_nothing(void **state) {
  (void)state;
  uint8_t *base = malloc(200), *out = malloc(300);
  uint32_t random = 5;
  int refused = 0, taken = 0;
  memset(base, 7, 200);
  for (int i = 0; i < 20000; i++) {
    size_t size = draw(&random, 12);
    uint8_t *delta = malloc(size + !size);
    for (size_t k = 0; k < size; k++) delta[k] = (uint8_t)draw(&random, draw(&random, 3) ? 16 : 256);
    ++*(delta_read(base, 200, delta, size, out, draw(&random, 40)) ? &taken : &refused);
    free(delta);
  }
  assert_true(refused > 10000 && taken > 50);
  free(base);
  free(out);
}

/* ---- Records ---- */

static size_t kept_bytes(struct fixture *x, const db_id *id, bool *packed) {
  MDB_txn *txn;
  ms_error err = {0};
  MDB_val key = {sizeof *id, (void *)id->bytes}, value;
  assert_true(db_begin_read(x->db, &txn, &err));
  assert_int_equal(mdb_get(txn, x->db->records, &key, &value), 0);
  assert_int_equal(db_unseal(DB_RECORD, &key, &value), DB_SEALED);
  *packed = db_is_packed(value.mv_data, value.mv_size);
  db_end_read(x->db, txn, 0);
  return value.mv_size;
}

static size_t entries_of(struct fixture *x, MDB_dbi table) {
  MDB_txn *txn;
  MDB_stat stat;
  ms_error err = {0};
  assert_true(db_begin_read(x->db, &txn, &err));
  assert_int_equal(mdb_stat(txn, table, &stat), 0);
  db_end_read(x->db, txn, 0);
  return stat.ms_entries;
}

/* Of no bytes there may be no address. */
static bool same_bytes(const void *a, size_t size, const void *b, size_t other) {
  return size == other && (!size || !memcmp(a, b, size));
}

static void expect_same(const struct db_record *a, const struct db_record *b) {
  assert_memory_equal(&a->id, &b->id, sizeof a->id);
  assert_memory_equal(&a->workload, &b->workload, sizeof a->workload);
  assert_string_equal(a->target, b->target);
  assert_string_equal(a->reason, b->reason);
  assert_string_equal(a->versions, b->versions);
  assert_true(same_bytes(a->trace, a->trace_bytes, b->trace, b->trace_bytes));
  assert_true(same_bytes(a->intrinsics, a->intrinsic_bytes, b->intrinsics, b->intrinsic_bytes));
  assert_true(same_bytes(a->facts, a->fact_bytes, b->facts, b->fact_bytes));
  assert_memory_equal(&a->seconds, &b->seconds, sizeof a->seconds);
  assert_memory_equal(&a->low, &b->low, sizeof a->low);
  assert_memory_equal(&a->high, &b->high, sizeof a->high);
  assert_true(a->module_hash == b->module_hash && a->status == b->status && a->runs == b->runs && a->seed == b->seed);
  assert_true(a->candidate == b->candidate && a->when == b->when);
  assert_true(a->unsafe == b->unsafe && a->busy == b->busy && a->pinned == b->pinned);
}

static void expect_kept(struct fixture *x, const struct db_record *r) {
  struct db_record found;
  ms_error err = {0};
  char text[DB_ID_TEXT];
  db_id_text(&r->id, text);
  if (db_find_record(x->db, text, &found, &err) != 1) fail_msg("%s: %s", text, err.message);
  expect_same(r, &found);
  assert_int_equal(db_find_module(x->db, &r->workload, r->target, r->module_hash, r->versions, &found, &err), 1);
  expect_same(r, &found);
}

/* The caller frees its facts. */
static struct db_record random_record(struct fixture *x, uint32_t *random, uint64_t module, const uint8_t *trace,
                                      size_t size) {
  static const double numbers[] = {0, 1, 1.5, 0.1, 1e18, 9007199254740992, 5e-324, 123456};
  static char long_text[200];
  struct db_record r = record(x, module, 1e-6 * (1 + draw(random, 1000)), (enum db_status)draw(random, 4));
  r.trace = trace, r.trace_bytes = size;
  r.high = draw(random, 3) ? r.seconds * 2 : INFINITY;
  r.runs = draw(random, 2) ? draw(random, 100) : UINT32_MAX;
  r.seed = draw(random, 2) ? draw(random, 100) : (uint64_t)draw(random, 1u << 24) << 40;
  r.candidate = draw(random, 1u << 20), r.when = 1700000000 + draw(random, 1u << 20);
  r.unsafe = draw(random, 2), r.busy = draw(random, 2), r.pinned = draw(random, 2);
  r.reason = draw(random, 4) ? "" : "it hung";
  memset(long_text, 'a' + (int)draw(random, 20), draw(random, 199));
  for (uint32_t i = draw(random, 8); i > 0; i--) {
    char name[8];
    snprintf(name, sizeof name, "f%u", draw(random, 4));
    struct db_fact f = {.name = name, .kind = (int)draw(random, 3), .number = numbers[draw(random, 8)]};
    f.text = draw(random, 2) ? "NVIDIA" : long_text;
    if (f.kind == DB_BOOLEAN) f.number = draw(random, 2);
    db_append_fact(&r, &f);
  }
  return r;
}

static void records_are_read_as_they_were_put(void **state) {
  struct fixture *x = *state;
  enum { COUNT = 300, ROOM = 4000 };
  static uint8_t traces[COUNT][ROOM], first[ROOM];
  static struct db_record put[COUNT];
  ms_error err = {0};
  uint32_t random = 11;
  fill(&random, first, 3000);
  for (int i = 0; i < COUNT; i++) {
    size_t size = i % 11 == 0 ? draw(&random, 9)
                  : i % 13    ? edit(&random, first, 3000, traces[i], ROOM)
                              : draw(&random, ROOM);
    if (i % 11 == 0 || i % 13 == 0) fill(&random, traces[i], size);
    put[i] = random_record(x, &random, (uint64_t)i, traces[i], size);
    if (i % 5 == 0) put[i].intrinsics = "0123456789abcdefgone", put[i].intrinsic_bytes = 16 + sizeof "gone";
    if (i % 6 == 0) put[i].workload.bytes[3] ^= 1;
    if (i % 40 == 0) assert_true(i ? db_end_batch(x->db, &err) : true);
    if (i % 40 == 0) assert_true(i % 80 ? true : db_begin_batch(x->db, &err));
    if (!db_put_record(x->db, &put[i], &err)) fail_msg("%s", err.message);
    if (i % 3 == 0) expect_kept(x, &put[i]);
  }
  assert_true(db_end_batch(x->db, &err));
  db_close(x->db);
  x->db = open_store(x);
  for (int i = 0; i < COUNT; i++) {
    expect_kept(x, &put[i]);
    free((void *)put[i].facts);
  }
}

/* What differs in a few bytes from what the store has takes little room; of the first, nothing is kept twice. */
static void records_are_small(void **state) {
  struct fixture *x = *state;
  uint8_t trace[3000];
  uint32_t random = 1;
  ms_error err = {0};
  fill(&random, trace, sizeof trace);
  for (uint64_t i = 0; i < 50; i++) {
    bool packed;
    for (int k = 0; k < 20; k++) trace[100 + 140 * k] = (uint8_t)draw(&random, 64);
    struct db_record r = record(x, i, 1e-3, DB_MEASURED);
    r.trace = trace, r.trace_bytes = sizeof trace;
    db_append_fact(&r, &(struct db_fact){.name = "name", .kind = DB_TEXT, .text = "NVIDIA H100 80GB HBM3"});
    db_append_fact(&r, &(struct db_fact){.name = "limit_seconds", .kind = DB_NUMBER, .number = 1.23e-4});
    assert_true(db_put_record(x->db, &r, &err));
    size_t size = kept_bytes(x, &r.id, &packed);
    assert_true(packed && (i == 0 || size <= 300) && size < 3300);
    assert_int_equal(entries_of(x, x->db->sketches), i > 0);
    assert_int_equal(entries_of(x, x->db->contexts), 1);
    expect_kept(x, &r);
    free((void *)r.facts);
  }
}

static void sketches_are_bounded(void **state) {
  struct fixture *x = *state;
  uint8_t trace[1000];
  uint32_t random = 1;
  ms_error err = {0};
  for (uint64_t i = 0; i < 40; i++) {
    fill(&random, trace, sizeof trace);
    struct db_record r = record(x, i, 1e-3, DB_MEASURED);
    r.trace = trace, r.trace_bytes = sizeof trace;
    assert_true(db_put_record(x->db, &r, &err));
    expect_kept(x, &r);
  }
  assert_int_equal(entries_of(x, x->db->sketches), 8);
}

/* ---- Older stores ---- */

static void take_store(struct fixture *x, const char *name) {
  char command[300];
  db_close(x->db);
  snprintf(command, sizeof command, "cp %s/unit/data/%s %s", TEST_ROOT, name, x->path);
  assert_int_equal(system(command), 0);
  x->db = open_store(x);
}

static char *export_of(struct fixture *x) {
  char *text = NULL;
  size_t size;
  ms_error err = {0};
  FILE *out = open_memstream(&text, &size);
  assert_true(db_export_json(x->db, out, &err));
  fclose(out);
  return text;
}

static int count_packed(struct fixture *x, int *others) {
  MDB_txn *txn;
  MDB_cursor *cursor;
  MDB_val key, value;
  ms_error err = {0};
  int packed = 0;
  *others = 0;
  assert_true(db_begin_read(x->db, &txn, &err));
  assert_int_equal(mdb_cursor_open(txn, x->db->records, &cursor), 0);
  while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    db_unseal(DB_RECORD, &key, &value);
    ++*(db_is_packed(value.mv_data, value.mv_size) ? &packed : others);
  }
  mdb_cursor_close(cursor);
  db_end_read(x->db, txn, 0);
  return packed;
}

static bool has_table(struct fixture *x, const char *name) {
  MDB_txn *txn;
  MDB_dbi table;
  ms_error err = {0};
  assert_true(db_begin_read(x->db, &txn, &err));
  bool has = !mdb_dbi_open(txn, name, 0, &table);
  db_end_read(x->db, txn, 0);
  return has;
}

static bool count_task(void *data, const struct db_task *t) {
  for (int i = 0; db_status_names[i]; i++) *(uint64_t *)data += t->counts[i];
  return true;
}

/* The upgrade makes the list of the fastest of each task. */
static bool expect_listed(void *data, const struct db_task *t) {
  assert_true(t->best_count == t->counts[DB_MEASURED] && t->has_best == (t->best_count > 0));
  ++*(int *)data;
  return true;
}

static bool expect_best(void *data, const struct db_task *t) {
  assert_true(t->has_best == (t->counts[DB_MEASURED] > 0));
  ++*(int *)data;
  return true;
}

/* Of each form that was released, as its program wrote it: read, written to, and upgraded; all is read as before.
 * Records of msr1 without checksums; of msr1, msr2 and msr3 with them; packed ones, msr4; those with summaries of
 * tasks, and with outlines. */
static void older_stores_are_upgraded(void **state) {
  static const struct {
    const char *name;
    int records, packed; /* packed: of the records */
    bool modules;
  } stores[] = {{"store_format_1.db", 3, 0, true},
                {"store_format_2.db", 4, 0, true},
                {"store_format_2_intrinsics.db", 4, 0, true},
                {"store_format_3.db", 4, 4, false},
                {"store_format_3_tasks.db", 4, 4, false},
                {"store_format_3_outlines.db", 4, 4, false}};
  struct fixture *x = *state;
  for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
    ms_error err = {0};
    int others;
    int tasks = 0, listed = 0;
    take_store(x, stores[i].name);
    assert_true(db_each_task(x->db, NULL, expect_best, &tasks, &err) && tasks > 0);
    assert_int_equal(count_packed(x, &others), stores[i].packed);
    assert_int_equal(others, stores[i].records - stores[i].packed);
    assert_int_equal(has_table(x, "modules"), stores[i].modules);
    assert_true(db_put_workload(x->db, x->ir, 1, &x->workload, &err));
    struct db_record r = record(x, 1, 1.0, DB_MEASURED);
    assert_true(db_put_record(x->db, &r, &err));
    assert_int_equal(count_packed(x, &others), stores[i].packed + 1);
    assert_int_equal(others, stores[i].records - stores[i].packed);
    assert_int_equal(db_check(x->db, stderr, &err), 0);
    uint64_t counted = 0;
    assert_true(db_each_task(x->db, NULL, count_task, &counted, &err));
    assert_int_equal(counted, stores[i].records + 1);
    char *before = export_of(x);
    if (!db_compact(x->db, &err)) fail_msg("%s", err.message);
    assert_int_equal(count_packed(x, &others), stores[i].records + 1);
    assert_int_equal(others, 0);
    assert_false(has_table(x, "modules"));
    assert_true(db_each_task(x->db, NULL, expect_listed, &listed, &err) && listed >= tasks);
    assert_int_equal(db_check(x->db, stderr, &err), 0);
    char *after = export_of(x);
    assert_string_equal(before, after);
    counted = 0;
    assert_true(db_each_task(x->db, NULL, count_task, &counted, &err));
    assert_int_equal(counted, stores[i].records + 1);
    free(before);
    free(after);
  }
}

/* A store is of another format as soon as it may hold what older programs cannot read; those of later ones are refused,
 * as older programs refuse these. */
static int write_format(struct db *db, MDB_txn *txn, void *format) {
  MDB_val key = {6, "format"}, value = {1, format};
  return mdb_put(txn, db->meta, &key, &value, 0);
}

static int drop_tasks(struct db *db, MDB_txn *txn, void *unused) {
  (void)unused;
  return mdb_drop(txn, db->tasks, 1);
}

static void stores_say_their_format(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  MDB_txn *txn;
  MDB_val key = {6, "format"}, value;
  uint8_t later = DB_FORMAT + 1;
  take_store(x, "store_format_2.db");
  assert_true(db_begin_read(x->db, &txn, &err));
  assert_int_equal(mdb_get(txn, x->db->meta, &key, &value), 0);
  assert_true(value.mv_size == 1 && *(uint8_t *)value.mv_data == DB_FORMAT);
  db_end_read(x->db, txn, 0);
  assert_true(db_write(x->db, write_format, &later, 0, "test", &err));
  assert_true(db_write(x->db, drop_tasks, NULL, 0, "test", &err));
  for (unsigned i = 0; i < 2; i++) { /* nothing is added to one of a later version */
    db_close(x->db);
    x->db = db_open(x->path, i ? DB_READ_ONLY : 0, &err);
    assert_null(x->db);
    assert_non_null(strstr(err.message, "of another format; export it with the version that made it"));
  }
  MDB_env *env;
  MDB_dbi tasks;
  assert_int_equal(mdb_env_create(&env), 0);
  assert_int_equal(mdb_env_set_maxdbs(env, 16), 0);
  assert_int_equal(mdb_env_open(env, x->path, MDB_NOSUBDIR | MDB_RDONLY, 0), 0);
  assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
  assert_int_equal(mdb_dbi_open(txn, "tasks", 0, &tasks), MDB_NOTFOUND);
  mdb_txn_abort(txn);
  mdb_env_close(env);
}

static int insert_older(struct db *db, MDB_txn *txn, void *data) {
  const struct db_record *r = data;
  void *bytes;
  size_t size = db_encode_record(r, &bytes);
  uint8_t time[DB_TIME_KEY];
  db_time_key(r, time);
  MDB_val key = {sizeof time, time}, nothing = {0, ""};
  int code = db_put_sealed(txn, db->records, DB_RECORD, &r->id, bytes, size);
  free(bytes);
  return code ? code : mdb_put(txn, db->times, &key, &nothing, 0);
}

enum { OLDER = 1500 };

static void put_older(struct fixture *x) {
  static uint8_t trace[1500];
  ms_error err = {0};
  assert_true(db_begin_batch(x->db, &err));
  for (uint64_t i = 0; i < OLDER; i++) {
    struct db_record r = record(x, i, 1.0 + (double)i, DB_MEASURED);
    trace[i % sizeof trace]++;
    memcpy(trace, x->trace, x->trace_bytes);
    r.trace = trace, r.trace_bytes = sizeof trace;
    r.id = db_record_id(&r);
    assert_true(db_write(x->db, insert_older, &r, 0, "test", &err));
  }
  assert_true(db_end_batch(x->db, &err));
}

static bool sum(void *data, const struct db_record *r) {
  uint64_t *all = data;
  for (size_t i = 0; i < r->trace_bytes; i++) all[1] += ((const uint8_t *)r->trace)[i] * (r->module_hash + 1) * (i + 1);
  all[0]++;
  return true;
}

/* Killed at any moment of an upgrade, the process leaves a store that opens, with all that was in it. */
static void a_killed_upgrade_loses_nothing(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  uint64_t before[2] = {0}, after[2];
  int others;
  uint32_t random = 17;
  put_older(x);
  assert_true(db_each_record(x->db, NULL, NULL, sum, before, &err));
  assert_int_equal(before[0], OLDER);
  for (int round = 0; round < 12; round++) {
    db_close(x->db);
    x->db = NULL;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      struct db *db = db_open(x->path, 0, NULL);
      _exit(db && db_compact(db, NULL) ? 0 : 1);
    }
    usleep(1000 + draw(&random, 40000));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    x->db = open_store(x);
    memset(after, 0, sizeof after);
    assert_true(db_each_record(x->db, NULL, NULL, sum, after, &err));
    assert_true(after[0] == before[0] && after[1] == before[1]);
    int packed = count_packed(x, &others);
    assert_int_equal(packed + others, OLDER);
  }
  if (!db_compact(x->db, &err)) fail_msg("%s", err.message);
  assert_int_equal(count_packed(x, &others), OLDER);
  assert_int_equal(others, 0);
}

/* ---- What is shared ---- */

static int drop_table(struct db *db, MDB_txn *txn, void *table) {
  (void)db;
  return mdb_drop(txn, *(MDB_dbi *)table, 0);
}

/* A record whose context or sketch is lost is damaged; to put one again mends all that share it. */
static void missing_parts_are_said_and_mended(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  uint8_t traces[4][600] = {{0}};
  struct db_record r[4];
  for (int i = 0; i < 4; i++) {
    r[i] = record(x, (uint64_t)i, 1.0 + i, DB_MEASURED);
    traces[i][300] = (uint8_t)i;
    memcpy(traces[i], x->trace, x->trace_bytes);
    r[i].trace = traces[i], r[i].trace_bytes = sizeof traces[i];
    assert_true(db_put_record(x->db, &r[i], &err));
  }
  assert_true(db_write(x->db, drop_table, &x->db->contexts, 0, "test", &err));
  assert_int_equal(count_records(x->db), 0);
  assert_true(db_check(x->db, NULL, &err) >= 4);
  assert_true(db_put_record(x->db, &r[2], &err));
  assert_int_equal(count_records(x->db), 4);
  assert_true(db_write(x->db, drop_table, &x->db->sketches, 0, "test", &err));
  assert_int_equal(count_records(x->db), 1); /* the first needs none */
  for (int i = 1; i < 4; i++) assert_true(db_put_record(x->db, &r[i], &err));
  assert_int_equal(count_records(x->db), 4);
  for (int i = 0; i < 4; i++) expect_kept(x, &r[i]);
}

/* The sketch has the number of another: that is noticed by the trace's hash. */
static int change_sketch(struct db *db, MDB_txn *txn, void *data) {
  struct fixture *x = data;
  uint8_t bytes[600] = {1, 2, 3};
  db_id key = db_sketch_key(&x->workload, 0);
  return db_put_sealed(txn, db->sketches, DB_SKETCH, &key, bytes, sizeof bytes);
}

static void another_sketch_is_no_substitute(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  uint8_t trace[600] = {0};
  for (uint64_t i = 0; i < 3; i++) {
    struct db_record r = record(x, i, 1.0, DB_MEASURED);
    trace[0] = (uint8_t)i;
    r.trace = trace, r.trace_bytes = sizeof trace;
    assert_true(db_put_record(x->db, &r, &err));
  }
  assert_true(db_write(x->db, change_sketch, x, 0, "test", &err));
  assert_int_equal(count_records(x->db), 1);
}

static void compaction_drops_what_no_record_names(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  uint8_t trace[900];
  uint32_t random = 9;
  db_id ids[20];
  for (int i = 0; i < 20; i++) {
    struct db_record r = record(x, (uint64_t)i, 1.0, DB_MEASURED);
    if (i % 4 == 0) fill(&random, trace, sizeof trace);
    r.trace = trace, r.trace_bytes = sizeof trace;
    r.target = i < 12 ? "llvm -mcpu=x" : "llvm -mcpu=y";
    assert_true(db_put_record(x->db, &r, &err));
    ids[i] = r.id;
  }
  size_t sketches = entries_of(x, x->db->sketches);
  assert_true(sketches > 2 && entries_of(x, x->db->contexts) == 2);
  for (int i = 2; i < 20; i++) assert_true(db_delete_record(x->db, &ids[i], &err));
  assert_true(db_compact(x->db, &err));
  assert_int_equal(entries_of(x, x->db->sketches), 1);
  assert_int_equal(entries_of(x, x->db->contexts), 1);
  assert_int_equal(count_records(x->db), 2);
}

/* ---- Tasks ---- */

struct shown {
  int tasks;
  struct db_task last;
  char devices[100];
};
static bool show_task(void *data, const struct db_task *t) {
  struct shown *s = data;
  s->tasks++;
  s->last = *t;
  s->devices[0] = 0;
  for (int i = 0; t->devices[i]; i++)
    snprintf(s->devices + strlen(s->devices), sizeof s->devices - strlen(s->devices), "%s;", t->devices[i]);
  return true;
}

static struct shown tasks_of(struct fixture *x) {
  struct shown s = {0};
  ms_error err = {0};
  if (!db_each_task(x->db, &x->workload, show_task, &s, &err)) fail_msg("%s", err.message);
  return s;
}

static bool is_stale(struct fixture *x) {
  MDB_txn *txn;
  MDB_cursor *cursor;
  MDB_val key, value;
  ms_error err = {0};
  bool stale = false;
  assert_true(db_begin_read(x->db, &txn, &err));
  assert_int_equal(mdb_cursor_open(txn, x->db->tasks, &cursor), 0);
  while (!mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) stale |= ((const uint8_t *)value.mv_data)[16] != 0;
  mdb_cursor_close(cursor);
  db_end_read(x->db, txn, 0);
  return stale;
}

static void put(struct fixture *x, uint64_t module, double seconds, int64_t when, const char *device, bool pinned) {
  ms_error err = {0};
  struct db_record r = record(x, module, seconds, seconds > 0 ? DB_MEASURED : DB_FAILED);
  r.when = when, r.pinned = pinned;
  if (device) db_append_fact(&r, &(struct db_fact){.name = "name", .kind = DB_TEXT, .text = device});
  assert_true(db_put_record(x->db, &r, &err));
  free((void *)r.facts);
}

static db_id id_of(struct fixture *x, uint64_t module) {
  struct db_record r = record(x, module, 1.0, DB_MEASURED);
  return db_record_id(&r);
}

/* What summaries say follows each put and each deletion, and is what the records say. */
static void summaries_follow_records(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  assert_int_equal(tasks_of(x).tasks, 0);
  put(x, 1, 2.0, 10, "A", false);
  put(x, 2, 1.0, 30, "B", false);
  put(x, 3, 0.0, 20, NULL, false);
  struct shown s = tasks_of(x);
  assert_true(s.tasks == 1 && s.last.counts[DB_MEASURED] == 2 && s.last.counts[DB_FAILED] == 1 && s.last.last == 30);
  assert_true(s.last.has_best && s.last.seconds == 1.0 && !s.last.has_pinned && !strcmp(s.devices, "A;B;"));
  db_id second = id_of(x, 2), first = id_of(x, 1);
  assert_memory_equal(&s.last.best, &second, sizeof second);
  put(x, 2, 3.0, 30, "A", true); /* timed again elsewhere, and pinned */
  s = tasks_of(x);
  assert_true(s.last.has_pinned && s.last.seconds == 2.0 && !strcmp(s.devices, "A;") && !is_stale(x));
  assert_memory_equal(&s.last.pinned, &second, sizeof second);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  assert_true(db_delete_record(x->db, &second, &err)); /* the last */
  assert_true(is_stale(x));
  s = tasks_of(x);
  assert_true(s.last.last == 20 && !s.last.has_pinned && s.last.counts[DB_MEASURED] == 1);
  assert_true(db_refresh_tasks(x->db, &err) && !is_stale(x));
  assert_int_equal(tasks_of(x).last.last, 20);
  assert_true(db_delete_record(x->db, &first, &err) && !is_stale(x));
  s = tasks_of(x);
  assert_true(!s.last.has_best && s.last.counts[DB_FAILED] == 1 && !strcmp(s.devices, ""));
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  first = id_of(x, 3);
  assert_true(db_delete_record(x->db, &first, &err) && tasks_of(x).tasks == 0);
  assert_int_equal(entries_of(x, x->db->tasks), 0);
}

static void summaries_hold_after_any_changes(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  uint32_t random = 23;
  assert_true(db_begin_batch(x->db, &err));
  for (int i = 0; i < 1500; i++) {
    uint64_t module = draw(&random, 40);
    db_id id = id_of(x, module);
    if (draw(&random, 3))
      put(x, module, draw(&random, 4), draw(&random, 50), draw(&random, 2) ? "A" : "B", draw(&random, 5) == 0);
    else
      db_delete_record(x->db, &id, &err); /* where it is there */
    if (i % 100 == 50)
      assert_true(db_end_batch(x->db, &err) && db_refresh_tasks(x->db, &err) && db_begin_batch(x->db, &err));
    if (i % 10 == 0) assert_int_equal(db_check(x->db, stderr, &err), 0);
  }
  assert_true(db_end_batch(x->db, &err));
}

/* A summary that says something else is found, and made again. */
static int miscount(struct db *db, MDB_txn *txn, void *data) {
  struct fixture *x = data;
  struct db_record r = record(x, 99, 1.0, DB_MEASURED);
  return db_count_record(db, txn, NULL, &r);
}

static void wrong_summaries_are_found(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  put(x, 1, 2.0, 10, "A", false);
  assert_true(db_write(x->db, miscount, x, 0, "test", &err));
  assert_int_equal(db_check(x->db, NULL, &err), 1);
  assert_true(db_write(x->db, drop_table, &x->db->tasks, 0, "test", &err));
  assert_int_equal(tasks_of(x).last.counts[DB_MEASURED], 1);
  put(x, 2, 2.0, 10, "A", false); /* it does not know of the other */
  assert_true(is_stale(x) && tasks_of(x).last.counts[DB_MEASURED] == 2);
  assert_int_equal(db_check(x->db, NULL, &err), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(differences_give_what_was_written),
                                     cmocka_unit_test(strange_differences_end_nothing),
                                     STORED_TEST(records_are_read_as_they_were_put),
                                     STORED_TEST(records_are_small),
                                     STORED_TEST(sketches_are_bounded),
                                     STORED_TEST(older_stores_are_upgraded),
                                     STORED_TEST(stores_say_their_format),
                                     STORED_TEST(a_killed_upgrade_loses_nothing),
                                     STORED_TEST(missing_parts_are_said_and_mended),
                                     STORED_TEST(another_sketch_is_no_substitute),
                                     STORED_TEST(compaction_drops_what_no_record_names),
                                     STORED_TEST(summaries_follow_records),
                                     STORED_TEST(summaries_hold_after_any_changes),
                                     STORED_TEST(wrong_summaries_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
