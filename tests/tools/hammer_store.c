/* Processes that share a store: in each round two that write, one that reads, and one that prunes, compacts, repairs or
 * merges; some are killed at a random moment. Afterwards the store is sound, and has all that was committed.
 *
 *   hammer_store FOLDER ROUNDS [SEED]
 *
 * What a writer committed it notes in memory that all share, once the call that put it has returned; what one prunes is
 * noted before. */
#define _GNU_SOURCE
#include "db/db.h"
#include "db/file/snapshot.h"
#include "db/storage/packed.h"
#include "db/storage/seal.h"
#include "support/store_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 20, MERGED = 40, FRESH = 40 }; /* records; those of each merge; rounds of one store */
enum state { UNKNOWN, COMMITTED, PRUNED };

struct shared {
  atomic_uint next;
  _Atomic(uint8_t) state[MOST];
};

static struct shared *shared;
static char path[200];
static void *trace;
static size_t trace_bytes;
static char *merged; /* lines of an export */
static size_t merged_bytes;
static db_id workload;

/* Every fourth may be pruned. */
static bool may_prune(uint64_t number) { return number >= MERGED && number % 4 == 0; }

static struct db_record record_of(uint64_t number) {
  static char reason[3000];
  memset(reason, 'r', sizeof reason - 1);
  return (struct db_record){.workload = workload,
                            .target = "llvm -mcpu=x",
                            .trace = trace,
                            .trace_bytes = trace_bytes,
                            .module_hash = number,
                            .status = DB_FAILED,
                            .reason = reason + number * 7919 % 2900,
                            .versions = "1",
                            .when = 5};
}

static struct db *open_store(unsigned flags) {
  ms_error err = {0};
  struct db *db = db_open(path, flags, &err);
  if (!db) stop("opening", &err);
  return db;
}

/* ---- What the processes do ---- */

/* One that was pruned since it was committed stays so. */
static void note_committed(uint32_t number) {
  uint8_t unknown = UNKNOWN;
  atomic_compare_exchange_strong(&shared->state[number], &unknown, COMMITTED);
}

static void put(struct db *db, uint64_t number) {
  ms_error err = {0};
  struct db_record r = record_of(number);
  if (!db_put_record(db, &r, &err)) stop("putting", &err);
}

static void write_records(void) {
  ms_error err = {0};
  struct db *db = open_store(DB_CREATE);
  uint32_t writes = 1 + draw(12);
  for (uint32_t i = 0; i < writes; i++) {
    uint32_t count = draw(4) ? 1 : 1 + draw(60);
    uint32_t first = atomic_fetch_add(&shared->next, count);
    if (first + count > MOST) stop("too many records", NULL);
    if (count > 1 && !db_begin_batch(db, &err)) stop("a batch", &err);
    for (uint32_t k = 0; k < count; k++) put(db, first + k);
    if (count > 1 && !db_end_batch(db, &err)) stop("a batch", &err);
    for (uint32_t k = 0; k < count; k++) note_committed(first + k);
  }
  db_close(db);
}

static bool look(void *data, const struct db_record *r) {
  ++*(uint64_t *)data;
  return r->module_hash < MOST;
}

static void read_records(void) {
  ms_error err = {0};
  for (int i = 0; i < 6; i++) {
    uint64_t seen = 0;
    struct db *db = open_store(DB_READ_ONLY);
    if (!db_each_record(db, NULL, NULL, look, &seen, &err)) stop("reading", &err);
    db_close(db);
  }
}

struct prunable {
  db_id ids[2000];
  uint32_t numbers[2000];
  size_t count;
};

static bool collect(void *data, const struct db_record *r) {
  struct prunable *p = data;
  if (!may_prune(r->module_hash)) return true;
  p->ids[p->count] = r->id;
  p->numbers[p->count++] = (uint32_t)r->module_hash;
  return p->count < 2000;
}

static void prune(void) {
  static struct prunable p;
  ms_error err = {0};
  struct db *db = open_store(0);
  p.count = 0;
  if (!db_each_record(db, NULL, NULL, collect, &p, &err) || !db_begin_batch(db, &err)) stop("pruning", &err);
  for (size_t i = 0; i < p.count; i++) {
    shared->state[p.numbers[i]] = PRUNED;
    db_id id;
    char text[DB_ID_TEXT];
    db_id_text(&p.ids[i], text);
    if (db_find_id(db, text, &id, &err) != 1 || !db_delete_record(db, &id, &err)) stop("pruning", &err);
  }
  if (!db_end_batch(db, &err)) stop("pruning", &err);
  db_close(db);
}

/* Whether it was refused since others have the store open. */
static void check_refusal(const char *what, const ms_error *err) {
  if (!strstr(err->message, "another process has the store open")) stop(what, err);
}

static void compact(void) {
  ms_error err = {0};
  struct db *db = open_store(0);
  if (!db_compact(db, &err)) check_refusal("compacting", &err);
  put(db, atomic_fetch_add(&shared->next, 1)); /* it goes on */
  db_close(db);
}

static void repair(void) {
  ms_error err = {0};
  struct db_repair done;
  if (!db_repair_file(path, NULL, &done, &err)) check_refusal("repairing", &err);
  if (done.backup) unlink(done.backup);
  free(done.backup);
}

static void merge(void) {
  ms_error err = {0};
  struct db_import import = {0};
  struct db *db = open_store(DB_CREATE);
  FILE *in = fmemopen(merged, merged_bytes, "r");
  if (!in || !db_import_json(db, in, "merged", &import, &err) || import.refused) stop("merging", &err);
  fclose(in);
  db_close(db);
  for (uint32_t i = 0; i < MERGED; i++) note_committed(i);
}

/* ---- Rounds ---- */

/* The index of times is lost: a repair rewrites the file. */
static int lose_index(struct db *db, MDB_txn *txn, void *unused) {
  (void)unused;
  return mdb_drop(txn, db->times, 0);
}

static void damage(void) {
  ms_error err = {0};
  struct db *db = open_store(DB_CREATE);
  if (!db_write(db, lose_index, NULL, 0, "damaging", &err)) stop("damaging", &err);
  db_close(db);
}

static pid_t start(void (*work)(void)) {
  uint64_t seed = random_state ^ draw(1u << 30);
  pid_t child = fork();
  if (child < 0) stop("fork", NULL);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  random_state = seed;
  work();
  _exit(0);
}

static int read_entry(MDB_txn *txn, struct db *db, uint8_t *seen) {
  struct db_cursor cursor;
  MDB_val key, value;
  struct db_record r;
  int code = db_cursor_open(db, txn, DB_RECORDS, &cursor), count = 0;
  while (!code && !(code = db_cursor_next(&cursor, &key, &value))) {
    if (db_read_record(db_parts_of(db, txn, false), key, value, &r) || r.module_hash >= MOST) stop("a record", NULL);
    seen[r.module_hash] = 1;
    count++;
  }
  db_cursor_close(&cursor);
  return count;
}

/* Sound, and with all that was committed; returns how many records there are. */
static int judge(bool damaged) {
  ms_error err = {0};
  if (damaged) repair();
  if (access(path, F_OK) != 0) return 0; /* all were killed before they made it */
  int64_t pages = db_check_pages(path, stderr, &err);
  if (pages) stop("its pages", &err);
  struct db *db = open_store(0);
  if (db_check(db, stderr, &err)) stop("its entries", &err);
  uint8_t *seen = calloc(MOST, 1);
  MDB_txn *txn;
  if (!seen || !db_begin_read(db, &txn, &err)) stop("reading", &err);
  int count = read_entry(txn, db, seen);
  int code = db_end_read(db, txn, 0);
  if (code) db_failed(db, code, "reading", &err), stop("reading", &err);
  for (uint32_t i = 0; i < MOST; i++)
    if (shared->state[i] == COMMITTED && !seen[i]) {
      fprintf(stderr, "hammer_store: record %u was committed, and is lost\n", i);
      exit(1);
    }
  free(seen);
  db_close(db);
  return count;
}

static int killed, refused_or_done;

static int play_round(uint32_t round) {
  static void (*const operators[])(void) = {prune, compact, repair, merge, NULL};
  uint32_t kind = round % 5;
  bool damaged = kind == 2 && draw(2);
  if (damaged) damage();
  void (*works[4])(void) = {write_records, operators[kind] ? operators[kind] : read_records, write_records,
                            read_records};
  pid_t children[4];
  int count = kind == 1 && draw(2) ? 2 : 4; /* compaction needs a store that nobody else has open */
  if (kind == 2 && draw(2)) count = 2;
  for (int i = 0; i < count; i++) {
    children[i] = start(works[i]);
    if (count == 2) usleep(draw(20000));
    if (i == 0 && access(path, F_OK) != 0) /* readers and others need one */
      while (access(path, F_OK) != 0 && waitpid(children[0], NULL, WNOHANG | WNOWAIT) == 0) usleep(500);
  }
  if (round % 3 == 0) {
    usleep(draw(40000));
    for (int i = 0; i < count; i++)
      if (draw(4)) kill(children[i], SIGKILL);
  }
  for (int i = 0; i < count; i++) {
    int status = 0;
    if (waitpid(children[i], &status, 0) != children[i]) stop("waitpid", NULL);
    bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!was_killed && status) {
      fprintf(stderr, "hammer_store: round %u: process %d of kind %u ended with status %x\n", round, i, kind,
              (unsigned)status);
      exit(1);
    }
    killed += was_killed;
    refused_or_done += i == 1 && !was_killed;
  }
  return judge(damaged);
}

static void make_merged(void) {
  ms_error err = {0};
  struct db *db = db_open(path, DB_CREATE, &err);
  if (!db) stop("a store", &err);
  put_workload(db, &workload);
  trace = empty_trace(&trace_bytes);
  for (uint32_t i = 0; i < MERGED; i++) put(db, i);
  FILE *out = open_memstream(&merged, &merged_bytes);
  if (!out || !db_export_json(db, out, &err) || fclose(out) != 0) stop("an export", &err);
  db_close(db);
}

static void begin_store(const char *folder, uint32_t number) {
  ms_error err = {0};
  snprintf(path, sizeof path, "%s/%u.db", folder, number);
  shared->next = MERGED;
  memset((void *)shared->state, 0, sizeof shared->state);
  struct db *db = db_open(path, DB_CREATE, &err);
  if (!db) stop("a store", &err);
  put_workload(db, &workload);
  db_close(db);
}

int main(int argc, char **argv) {
  if (argc < 3) stop("usage: hammer_store FOLDER ROUNDS [SEED]", NULL);
  uint32_t rounds = (uint32_t)strtoul(argv[2], NULL, 10);
  random_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) stop("mmap", NULL);
  snprintf(path, sizeof path, "%s/merged.db", argv[1]);
  make_merged();
  uint64_t records = 0;
  for (uint32_t round = 0; round < rounds; round++) {
    if (round % FRESH == 0) {
      if (round) unlink(path);
      begin_store(argv[1], round / FRESH);
    }
    records = (uint64_t)play_round(round);
  }
  printf("%u rounds: clean; %d processes killed, %d operations ended by themselves; %llu records in the last store\n",
         rounds, killed, refused_or_done, (unsigned long long)records);
  free(merged);
  free(trace);
  return 0;
}
