/* Stores of many records, made quickly, and what the store costs below the program.
 *
 *   fill_store make STORE RECORDS FROM [N]   records like those of the store FROM, with other decisions, times and
 *                                            modules: one in ten of one task, the others of N workloads; unless said,
 *                                            of one for each 1,000 records, and at most 1,000
 *   fill_store time STORE                    seconds of opening, of the best 10 of a workload, of a record by its ID
 *   fill_store commit STORE BARE COUNT       durable puts a second, one by one, behind the first, before
 *                                            which the pages of a large store are walked; and of an LMDB file BARE with
 *                                            as large entries and one table */
#include "db/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lmdb.h>

static _Noreturn void stop(const char *what, const ms_error *err) {
  fprintf(stderr, "fill_store: %s: %s\n", what, err ? err->message : "");
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t random_state = 1;
static uint32_t draw(uint32_t below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % below;
}

static struct db *open_store(const char *path, unsigned flags) {
  ms_error err = {0};
  struct db *db = db_open(path, flags, &err);
  if (!db) stop("opening", &err);
  return db;
}

/* ---- Records like others ---- */

enum { MOST_LIKE = 64, MOST_WORKLOADS = 1 << 16, USUAL_WORKLOADS = 1000, EACH = 1000 };
static struct {
  struct db_record record;
  struct vm_trace *trace;
} like[MOST_LIKE];
static uint32_t like_count;

static bool take_like(void *data, const struct db_record *r) {
  (void)data;
  ms_error err = {0};
  struct db_record *to = &like[like_count].record;
  *to = *r;
  to->target = strdup(r->target), to->versions = strdup(r->versions), to->reason = "";
  void *facts = malloc(r->fact_bytes + 1);
  if (r->fact_bytes) memcpy(facts, r->facts, r->fact_bytes);
  to->facts = facts, to->intrinsics = NULL, to->intrinsic_bytes = 0;
  like[like_count].trace = vm_read_binary(r->trace, r->trace_bytes, &err);
  if (!like[like_count++].trace) stop("a trace", &err);
  return like_count < MOST_LIKE;
}

/* Tiles are powers of two, as they mostly are. */
static void decide(struct vm_trace *trace) {
  for (uint32_t i = 0; i < trace->steps->count; i++) {
    const struct vm_instruction *at = &trace->steps->instructions[i];
    int64_t values[32];
    if (at->draw == VM_NO_DRAW || at->outputs > 32) continue;
    for (uint32_t k = 0; k < at->outputs; k++) values[k] = at->outputs > 1 ? (int64_t)1 << draw(8) : (int64_t)draw(4);
    vm_decide(trace, i, values, at->outputs);
  }
}

static db_id put_workload(struct db *db, uint32_t number) {
  char text[600];
  ms_error err = {0};
  db_id id;
  snprintf(text, sizeof text,
           "@T.prim_func(s_tir=True)\ndef add_%u(A: T.Buffer((%u,), \"float32\"), B: T.Buffer((%u,), \"float32\")):\n"
           "    for i in range(%u):\n        with T.sblock(\"B\"):\n            v = T.axis.spatial(%u, i)\n"
           "            B[v] = A[v] + T.float32(1.0)\n",
           number, number + 8, number + 8, number + 8, number + 8);
  struct tir *ir = tir_read(text, strlen(text), "f", &err);
  if (!ir || !db_put_workload(db, ir, 1, &id, &err)) stop("a workload", &err);
  tir_free(ir);
  return id;
}

static uint32_t usual_workloads(uint64_t records) {
  return (uint32_t)(records / EACH < USUAL_WORKLOADS ? records / EACH : USUAL_WORKLOADS);
}

static void make(const char *path, uint64_t count, const char *from, uint32_t others) {
  ms_error err = {0};
  struct db *source = open_store(from, DB_READ_ONLY);
  if (!db_each_record(source, NULL, NULL, take_like, NULL, &err) || !like_count) stop("reading", &err);
  db_close(source);
  struct db *db = open_store(path, DB_CREATE);
  static db_id workloads[MOST_WORKLOADS];
  if (others < 2) others = 2;
  if (others > MOST_WORKLOADS) stop("a store of so many workloads", NULL);
  if (!db_begin_batch(db, &err)) stop("a batch", &err);
  for (uint32_t i = 0; i < others; i++) workloads[i] = put_workload(db, i);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t large = count / 10;
    uint32_t n = draw(like_count);
    struct db_record r = like[n].record;
    r.workload = workloads[i < large ? 0u : 1u + (i - large) * (others - 1) / (count - large)];
    decide(like[n].trace);
    void *trace = vm_write_binary(like[n].trace, &r.trace_bytes);
    r.trace = trace;
    r.module_hash = ((uint64_t)draw(1u << 30) << 32) ^ i;
    r.seconds = 1e-4 * (1 + draw(1u << 20) * 1e-5), r.low = r.seconds * 0.99, r.high = r.seconds * 1.01;
    r.status = draw(20) ? DB_MEASURED : DB_FAILED;
    if (r.status == DB_FAILED) r.reason = "the kernel's result is wrong";
    r.candidate = i, r.when = 1700000000 + (int64_t)(i / 10);
    if (!db_put_record(db, &r, &err)) stop("putting", &err);
    free(trace);
  }
  if (!db_end_batch(db, &err)) stop("a batch", &err);
  db_close(db);
}

/* ---- What the store costs ---- */

struct largest {
  db_id id;
  uint64_t records;
};
static bool take_id(void *data, const db_id *id, const char *name, uint64_t records) {
  (void)name;
  struct largest *best = data;
  if (records >= best->records) best->id = *id, best->records = records;
  return true;
}

struct seen {
  int count;
  db_id last;
};
static bool see(void *data, const struct db_record *r) {
  struct seen *seen = data;
  seen->last = r->id;
  return ++seen->count < 10;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times, int n) {
  qsort(times, (size_t)n, sizeof *times, compare);
  return times[n / 2];
}

static void time_store(const char *path) {
  enum { TIMES = 9 };
  double opening[TIMES], best[TIMES], finding[TIMES];
  ms_error err = {0};
  for (int i = 0; i < TIMES; i++) {
    double begin = now();
    struct db *db = open_store(path, DB_READ_ONLY);
    opening[i] = now() - begin;
    struct largest largest = {.records = 0};
    struct seen seen = {0};
    struct db_record r;
    char id[DB_ID_TEXT];
    if (!db_each_workload(db, take_id, &largest, &err)) stop("reading", &err);
    begin = now();
    if (!db_each_record(db, &largest.id, NULL, see, &seen, &err)) stop("reading", &err);
    best[i] = now() - begin;
    db_id_text(&seen.last, id);
    begin = now();
    if (db_find_record(db, id, &r, &err) != 1) stop("finding", &err);
    finding[i] = now() - begin;
    db_close(db);
  }
  printf("open %.2f ms, best 10 %.3f ms, by ID %.3f ms\n", 1e3 * median(opening, TIMES), 1e3 * median(best, TIMES),
         1e3 * median(finding, TIMES));
}

static void commit_bare(const char *path, int count) {
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi table;
  uint8_t bytes[300] = {0}, key[16] = {0};
  mdb_env_create(&env);
  mdb_env_set_mapsize(env, (size_t)1 << 30);
  if (mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOTLS, 0666)) stop("LMDB", NULL);
  double begin = now();
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < 16; k++) key[k] = (uint8_t)draw(256);
    MDB_val k = {sizeof key, key}, v = {sizeof bytes, bytes};
    if (mdb_txn_begin(env, NULL, 0, &txn) || mdb_dbi_open(txn, NULL, 0, &table) || mdb_put(txn, table, &k, &v, 0) ||
        mdb_txn_commit(txn))
      stop("LMDB", NULL);
  }
  printf("bare LMDB: %.0f a second\n", count / (now() - begin));
  mdb_env_close(env);
}

static void commit(const char *path, const char *bare, int count) {
  ms_error err = {0};
  struct db *db = open_store(path, DB_CREATE);
  if (!db_each_record(db, NULL, NULL, take_like, NULL, &err) || !like_count) stop("reading", &err);
  struct db_record r = like[0].record;
  double begin = now(), first = 0;
  for (int i = -1; i < count; i++) {
    decide(like[0].trace);
    void *trace = vm_write_binary(like[0].trace, &r.trace_bytes);
    r.trace = trace, r.module_hash = (uint64_t)draw(1u << 30) << 32 | (uint64_t)(i + 1);
    if (!db_put_record(db, &r, &err)) stop("putting", &err);
    free(trace);
    if (i < 0) first = now() - begin, begin = now();
  }
  printf("store: the first commit %.0f ms, then %.0f a second\n", 1e3 * first, count / (now() - begin));
  db_close(db);
  commit_bare(bare, count);
}

int main(int argc, char **argv) {
  uint64_t records = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
  if ((argc == 5 || argc == 6) && !strcmp(argv[1], "make"))
    make(argv[2], records, argv[4], argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : usual_workloads(records));
  else if (argc == 3 && !strcmp(argv[1], "time"))
    time_store(argv[2]);
  else if (argc == 5 && !strcmp(argv[1], "commit"))
    commit(argv[2], argv[3], atoi(argv[4]));
  else
    stop("usage: fill_store make STORE RECORDS FROM [N] | time STORE | commit STORE BARE COUNT", NULL);
  for (uint32_t i = 0; i < like_count; i++) {
    free((char *)like[i].record.target), free((char *)like[i].record.versions), free((void *)like[i].record.facts);
    vm_trace_free(like[i].trace);
  }
  return 0;
}
