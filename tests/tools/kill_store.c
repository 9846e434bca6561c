/* Processes that are killed while they write a store: one by one, in batches, merging, upgrading records of older
 * forms. Afterwards its pages and entries are sound, and it has all that was committed, as it was.
 *
 *   kill_store FOLDER ROUNDS [SEED]         so many of each kind
 *
 * What was committed is noted in memory that both processes share, once the call has returned. */
#define _GNU_SOURCE
#include "db/file/store.h"
#include "db/storage/seal.h"
#include "support/store_tool.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 6000, BEFORE = 1500, EACH = 300 }; /* records; those that are there before; commits one by one */
static struct shared { atomic_uint committed; /* all of the first so many */ } * shared;
static char path[200], other[200];
static db_id workload;
static void *trace;
static size_t trace_bytes;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct db_record record_of(uint64_t number) {
  static char reason[400];
  snprintf(reason, sizeof reason, "reason %llu %0*d", (unsigned long long)number, (int)(number * 7919 % 300), 0);
  return (struct db_record){.workload = workload,
                            .target = number % 3 ? "llvm -mcpu=x" : "llvm -mcpu=y",
                            .trace = trace,
                            .trace_bytes = trace_bytes,
                            .module_hash = number,
                            .status = DB_FAILED,
                            .reason = reason,
                            .versions = "1",
                            .when = 5};
}

static struct db *open_store(const char *name, unsigned flags) {
  ms_error err = {0};
  struct db *db = db_open(name, flags, &err);
  if (!db) stop("opening", &err);
  return db;
}

static struct db *new_store(const char *name) {
  char lock[220];
  snprintf(lock, sizeof lock, "%s-lock", name);
  unlink(name), unlink(lock);
  struct db *db = open_store(name, DB_CREATE);
  put_workload(db, &workload);
  return db;
}

static void put(struct db *db, uint64_t from, uint64_t count) {
  ms_error err = {0};
  for (uint64_t i = from; i < from + count; i++) {
    struct db_record r = record_of(i);
    if (!db_put_record(db, &r, &err)) stop("putting", &err);
  }
}

static void put_batch(struct db *db, uint64_t from, uint64_t count) {
  ms_error err = {0};
  if (!db_begin_batch(db, &err)) stop("a batch", &err);
  put(db, from, count);
  if (!db_end_batch(db, &err)) stop("a batch", &err);
}

/* ---- What is killed ---- */

static void commit_each(struct db *db) {
  for (uint32_t i = 0; i < EACH; i++) {
    put(db, i, 1);
    shared->committed = i + 1;
  }
}

static void commit_batches(struct db *db) {
  for (uint32_t i = 0; i < MOST; i += 200) {
    put_batch(db, i, 200);
    shared->committed = i + 200;
  }
}

static void merge(struct db *db) {
  struct db_merge done;
  ms_error err = {0};
  struct db *from = open_store(other, DB_READ_ONLY);
  if (!db_merge(db, from, &done, &err)) stop("merging", &err);
  shared->committed = MOST;
  db_close(from);
}

static void upgrade(struct db *db) {
  ms_error err = {0};
  if (!db_compact(db, &err)) stop("compacting", &err);
}

/* ---- What there was before ---- */

static void begin_empty(void) { db_close(new_store(path)); }

static void begin_merge(void) {
  struct db *db = new_store(other);
  put_batch(db, 0, MOST);
  db_close(db);
  db = new_store(path);
  put_batch(db, 0, BEFORE);
  db_close(db);
  shared->committed = BEFORE;
}

/* As older versions wrote them: whole, and without summaries. */
static int insert_older(struct db *db, MDB_txn *txn, void *data) {
  const uint64_t *first = data;
  int code = 0;
  for (uint64_t i = *first; i < *first + 100 && !code; i++) {
    struct db_record r = record_of(i);
    r.id = db_record_id(&r);
    void *bytes;
    size_t size = db_encode_record(&r, &bytes);
    uint8_t time[DB_TIME_KEY];
    db_time_key(&r, time);
    MDB_val key = {sizeof time, time}, nothing = {0, ""};
    code = db_put_sealed(txn, db->records, DB_RECORD, &r.id, bytes, size);
    if (!code) code = mdb_put(txn, db->times, &key, &nothing, 0);
    free(bytes);
  }
  return code;
}

static void begin_older(void) {
  ms_error err = {0};
  struct db *db = new_store(path);
  for (uint64_t i = 0; i < MOST; i += 100)
    if (!db_write_many(db, insert_older, &i, 100, 1 << 20, "test", &err)) stop("older records", &err);
  db_close(db);
  shared->committed = MOST;
}

/* ---- Rounds ---- */

static const struct kind {
  const char *name;
  void (*begin)(void);
  void (*work)(struct db *db);
} kinds[] = {{"commits", begin_empty, commit_each},
             {"batches", begin_empty, commit_batches},
             {"merges", begin_merge, merge},
             {"upgrades", begin_older, upgrade}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint8_t seen[MOST];

static bool look(void *data, const struct db_record *r) {
  (void)data;
  struct db_record expected = record_of(r->module_hash);
  if (r->module_hash >= MOST || strcmp(r->reason, expected.reason) != 0 || r->trace_bytes != trace_bytes ||
      memcmp(r->trace, trace, trace_bytes) != 0)
    stop("a record is another", NULL);
  seen[r->module_hash] = 1;
  return true;
}

static void judge(const char *name) {
  ms_error err = {0};
  uint32_t committed = shared->committed;
  memset(seen, 0, sizeof seen);
  if (db_check_pages(path, stderr, &err)) stop("its pages", &err);
  struct db *db = open_store(path, DB_READ_ONLY);
  if (db_check(db, stderr, &err)) stop("its entries", &err);
  if (!db_each_record(db, NULL, NULL, look, NULL, &err)) stop("reading", &err);
  db_close(db);
  for (uint32_t i = 0; i < committed; i++)
    if (!seen[i]) {
      fprintf(stderr, "kill_store: %s: record %u was committed, and is lost\n", name, i);
      exit(1);
    }
}

/* Runs the work in a process, which is killed after so long, if it takes that; whether it was. */
static bool run(const struct kind *k, double seconds) {
  int status = 0;
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) stop("fork", NULL);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct db *db = open_store(path, 0);
    k->work(db);
    db_close(db);
    _exit(0);
  }
  if (seconds >= 0) {
    usleep((unsigned)(1e6 * seconds));
    kill(child, SIGKILL);
  }
  if (waitpid(child, &status, 0) != child) stop("waitpid", NULL);
  if (WIFEXITED(status) && WEXITSTATUS(status)) stop(k->name, NULL);
  return WIFSIGNALED(status);
}

static void play(const struct kind *k, int rounds) {
  uint32_t killed = 0, partly = 0;
  k->begin();
  double begun = now();
  run(k, -1);
  double whole = now() - begun;
  judge(k->name);
  while (killed < (uint32_t)rounds) {
    shared->committed = 0;
    k->begin();
    uint32_t before = shared->committed;
    bool was_killed = run(k, whole * 1e-3 * draw(1000));
    judge(k->name);
    killed += was_killed;
    partly += was_killed && shared->committed > before;
    if (was_killed && draw(4)) continue;
    run(k, -1); /* and it goes on */
    judge(k->name);
  }
  printf("%s: %u killed, %u of them between commits that were noted; nothing is lost\n", k->name, killed, partly);
}

int main(int argc, char **argv) {
  if (argc < 3) stop("usage: kill_store FOLDER ROUNDS [SEED]", NULL);
  random_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) stop("mmap", NULL);
  snprintf(path, sizeof path, "%s/killed.db", argv[1]);
  snprintf(other, sizeof other, "%s/other.db", argv[1]);
  trace = empty_trace(&trace_bytes);
  for (int i = 0; i < KINDS; i++) play(&kinds[i], atoi(argv[2]));
  free(trace);
  return 0;
}
