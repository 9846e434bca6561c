/* Processes that are killed while they write a store: one by one, in batches, merging, upgrading records of older
 * forms. Afterwards its pages and entries are sound, and it has all that was committed, as it was; what was not done
 * is done by the next run.
 *
 *   kill_store FOLDER ROUNDS [SEED]         so many of each kind
 *
 * What was committed is noted in memory that both processes share, once the call has returned. A process kills itself
 * at one of its system calls that change files, drawn among those that the whole work takes, two of three times among
 * those between its first commit and its last: before it, after it, or where it has written a part of its pages. */
#define _GNU_SOURCE
#include "db/file/snapshot.h"
#include "db/storage/packed.h"
#include "db/storage/seal.h"
#include "support/store_tool.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Records; those that are there before; commits one by one. Under sanitizers a transaction costs a hundred times as
 * much: it takes 2 MB of LMDB's, of which they mark each byte. */
#ifdef MSCHED_CHECK
enum { MOST = 1200, BEFORE = 300, EACH = 300 };
#else
enum { MOST = 6000, BEFORE = 1500, EACH = 300 };
#endif
static struct shared {
  atomic_uint committed;   /* all of the first so many */
  atomic_uint calls;       /* that change files, of the process that works */
  atomic_uint first, last; /* of them, those that write a meta page: each commits */
} * shared;
static char path[200], other[200];
static db_id workload;
static void *trace;
static size_t trace_bytes;

/* ---- Where a process ends: the C library's functions, as the store and LMDB call them ---- */

static struct { /* of the process that works */
  bool counts;
  uint32_t at; /* the call, from 1; 0: none */
  enum { BEFORE_CALL, IN_CALL, AFTER_CALL, WHERES } where;
} end;

static void *real(const char *name) {
  void *at = dlsym(RTLD_NEXT, name);
  if (!at) stop(name, NULL);
  return at;
}

static void end_here(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

enum { PAGE = 4096 };

/* LMDB's first two pages are its meta pages, which it writes by pwrite. */
static void note_write(off_t at) {
  if (!end.counts || at < 0 || at >= 2 * PAGE) return;
  if (!shared->first) shared->first = shared->calls;
  shared->last = shared->calls;
}

/* Counts a call; whether the process ends within it or after it. */
static bool ends_by_call(void) {
  if (!end.counts) return false;
  bool ends = ++shared->calls == end.at;
  if (ends && end.where == BEFORE_CALL) end_here();
  return ends;
}

/* What a call that is cut short leaves: some of the pages. */
static size_t part_of(size_t bytes) { return end.where == IN_CALL ? bytes / PAGE / 2 * PAGE : bytes; }

#define VISIBLE __attribute__((visibility("default")))
#define WRAP(type, name, parameters, arguments)                                                                        \
  VISIBLE type name parameters {                                                                                       \
    static type(*next) parameters;                                                                                     \
    if (!next) next = (type(*) parameters)real(#name);                                                                 \
    bool ends = ends_by_call();                                                                                        \
    type result = next arguments;                                                                                      \
    if (ends) end_here();                                                                                              \
    return result;                                                                                                     \
  }
#define WRAP_WRITE(name, parameters, arguments, offset)                                                                \
  VISIBLE ssize_t name parameters {                                                                                    \
    static ssize_t(*next) parameters;                                                                                  \
    if (!next) next = (ssize_t(*) parameters)real(#name);                                                              \
    bool ends = ends_by_call();                                                                                        \
    note_write(offset);                                                                                                \
    if (ends) bytes = part_of(bytes);                                                                                  \
    ssize_t result = bytes ? next arguments : 0;                                                                       \
    if (ends) end_here();                                                                                              \
    return result;                                                                                                     \
  }
WRAP_WRITE(write, (int file, const void *from, size_t bytes), (file, from, bytes), -1)
WRAP_WRITE(pwrite, (int file, const void *from, size_t bytes, off_t at), (file, from, bytes, at), at)
WRAP(ssize_t, writev, (int file, const struct iovec *from, int count),
     (file, from, ends &&end.where == IN_CALL ? (count + 1) / 2 : count))
WRAP(int, fdatasync, (int file), (file))
WRAP(int, fsync, (int file), (file))
WRAP(int, msync, (void *from, size_t bytes, int flags), (from, bytes, flags))
WRAP(int, ftruncate, (int file, off_t bytes), (file, bytes))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, unlink, (const char *name), (name))
WRAP(int, chmod, (const char *name, mode_t rights), (name, rights))

enum { FILLER = MOST }; /* the number of a record that no work has */

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

/* A record of 9 MB: a store that is no small one, whose batches have several parts. */
static void put_filler(struct db *db) {
  enum { LONG = 9 << 20 };
  ms_error err = {0};
  char *text = malloc(LONG + 1);
  if (!text) abort();
  memset(text, 'x', LONG);
  text[LONG] = 0;
  struct db_record r = record_of(FILLER);
  r.reason = text;
  if (!db_put_record(db, &r, &err)) stop("putting a long record", &err);
  free(text);
}

static void begin_merge(void) {
  struct db *db = new_store(other);
  put_batch(db, 0, MOST);
  db_close(db);
  db = new_store(path);
  put_filler(db);
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

/* ---- How far it came ---- */

static uint8_t seen[MOST];

static bool look(void *data, const struct db_record *r) {
  (void)data;
  if (r->module_hash == FILLER) return true;
  struct db_record expected = record_of(r->module_hash);
  if (r->module_hash >= MOST || strcmp(r->reason, expected.reason) != 0 || r->trace_bytes != trace_bytes ||
      memcmp(r->trace, trace, trace_bytes) != 0)
    stop("a record is another", NULL);
  seen[r->module_hash] = 1;
  return true;
}

static uint32_t count_seen(struct db *db) {
  (void)db;
  uint32_t count = 0;
  for (uint32_t i = 0; i < MOST; i++) count += seen[i];
  return count;
}

/* Records that are packed, as this version writes them. */
static uint32_t count_packed(struct db *db) {
  ms_error err = {0};
  MDB_txn *txn;
  struct db_cursor cursor;
  MDB_val key = {0, NULL}, value;
  uint32_t count = 0;
  if (!db_begin_read(db, &txn, &err)) stop("reading", &err);
  int code = db_cursor_open(db, txn, DB_RECORDS, &cursor), step = code;
  if (!code) step = db_cursor_next(&cursor, &key, &value);
  for (; !step; step = db_cursor_next(&cursor, &key, &value))
    if (db_unseal(DB_RECORD, &key, &value) != DB_BROKEN) count += db_is_packed(value.mv_data, value.mv_size);
  if (!code) db_cursor_close(&cursor);
  if (db_end_read(db, txn, code)) stop("reading packed records", NULL);
  return count;
}

/* ---- Rounds ---- */

static const struct kind {
  const char *name;
  void (*begin)(void);
  void (*work)(struct db *db);
  uint32_t (*done)(struct db *db);
  uint32_t whole; /* what it has done in the end */
} kinds[] = {{"commits", begin_empty, commit_each, count_seen, EACH},
             {"batches", begin_empty, commit_batches, count_seen, MOST},
             {"merges", begin_merge, merge, count_seen, MOST},
             {"upgrades", begin_older, upgrade, count_packed, MOST}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* How far the work came. */
static uint32_t judge(const struct kind *k) {
  ms_error err = {0};
  uint32_t committed = shared->committed;
  memset(seen, 0, sizeof seen);
  if (db_check_pages(path, stderr, &err)) stop("its pages", &err);
  struct db *db = open_store(path, DB_READ_ONLY);
  if (db_check(db, stderr, &err)) stop("its entries", &err);
  if (!db_each_record(db, NULL, NULL, look, NULL, &err)) stop("reading", &err);
  for (uint32_t i = 0; i < committed; i++)
    if (!seen[i]) {
      fprintf(stderr, "kill_store: %s: record %u was committed, and is lost\n", k->name, i);
      exit(1);
    }
  uint32_t done = k->done(db);
  db_close(db);
  return done;
}

/* Runs the work in a process, which ends at that call; 0: by itself. Whether it was killed. */
static bool run(const struct kind *k, uint32_t at) {
  int status = 0;
  fflush(NULL);
  shared->calls = shared->first = shared->last = 0;
  end.where = draw(WHERES);
  pid_t child = fork();
  if (child < 0) stop("fork", NULL);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    end.counts = true, end.at = at;
    struct db *db = open_store(path, 0);
    k->work(db);
    db_close(db);
    _exit(0);
  }
  if (waitpid(child, &status, 0) != child) stop("waitpid", NULL);
  if (WIFEXITED(status) && WEXITSTATUS(status)) stop(k->name, NULL);
  return WIFSIGNALED(status);
}

static void finish(const struct kind *k) {
  run(k, 0);
  if (judge(k) == k->whole) return;
  fprintf(stderr, "kill_store: %s: the next run does not do what was left\n", k->name);
  exit(1);
}

/* A call of a whole work's, from 1. */
static uint32_t draw_call(uint32_t calls, uint32_t first, uint32_t last) {
  return draw(3) && last > first ? first + 1 + draw(last - first) : 1 + draw(calls);
}

static void play(const struct kind *k, int rounds) {
  uint32_t partly = 0;
  shared->committed = 0;
  k->begin();
  finish(k);
  uint32_t calls = shared->calls, first = shared->first, last = shared->last;
  for (int i = 0; i < rounds; i++) {
    shared->committed = 0;
    k->begin();
    uint32_t before = judge(k);
    if (!run(k, draw_call(calls, first, last))) stop("nobody was killed", NULL);
    uint32_t done = judge(k);
    partly += done > before && done < k->whole;
    if (draw(3)) run(k, draw_call(calls, first, last)), judge(k); /* and again, in what it left */
    finish(k);
  }
  printf("%s: %d killed at one of %u calls, the commits %u to %u, %u of them with a part of the work done; nothing is "
         "lost, all is done by "
         "the next run\n",
         k->name, rounds, calls, first, last, partly);
  if (rounds >= 20 && partly < (uint32_t)rounds / 3 * 2) stop("most were killed before or after all of the work", NULL);
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
