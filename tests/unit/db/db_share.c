/* A store that several processes have open: its file is replaced under none of them, what they wrote stays, and those
 * that were killed hold nobody up. */
#include "unit/stored.h"

#include "db/file/lock.h"
#include "db/file/pages.h"
#include "db/upkeep/replace.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void put_some(struct fixture *x, struct db *db, uint64_t from, uint64_t n) {
  ms_error err = {0};
  for (uint64_t i = 0; i < n; i++) {
    struct db_record r = record(x, from + i, 1.0 + (double)i, DB_FAILED);
    assert_true(db_put_record(db, &r, &err));
  }
}

/* ---- A file that is shorter than its header says ---- */

static bool is_shorter(const char *path) {
  struct db_pages pages;
  ms_error err = {0};
  if (!db_map_pages(path, false, &pages, &err)) fail_msg("%s", err.message);
  bool shorter = pages.count < pages.named;
  db_unmap_pages(&pages);
  return shorter;
}

/* ---- Processes ---- */

/* Runs `work` in a process of its own, in which no store is open; it ends with what that returns. */
static pid_t start(int (*work)(struct fixture *x, int out), struct fixture *x, int out) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(work(x, out));
  }
  return child;
}

static int status_of(pid_t child) {
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool say(int out) { return write(out, "x", 1) == 1; }
static void hear(int in) {
  char c;
  assert_int_equal(read(in, &c, 1), 1);
}

static int hold_open(struct fixture *x, int out) {
  struct db *db = db_open(x->path, DB_READ_ONLY, NULL);
  if (!db || !say(out)) return 1;
  for (;;) pause();
}

static void close_store(struct fixture *x) {
  db_close(x->db);
  x->db = NULL;
}

static void compacts_only_what_nobody_else_has_open(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  int pipes[2];
  struct stat before, after;
  put_some(x, x->db, 0, 50);
  close_store(x);
  assert_int_equal(pipe(pipes), 0);
  pid_t child = start(hold_open, x, pipes[1]);
  hear(pipes[0]);
  x->db = open_store(x);
  assert_int_equal(stat(x->path, &before), 0);
  assert_false(db_compact(x->db, &err));
  assert_non_null(strstr(err.message, "another process has the store open"));
  assert_int_equal(stat(x->path, &after), 0);
  assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
  put_some(x, x->db, 100, 1); /* it goes on */
  kill(child, SIGKILL);
  status_of(child);
  assert_true(db_compact(x->db, &err));
  assert_int_equal(count_records(x->db), 51);
  close(pipes[0]), close(pipes[1]);
}

/* Opens, which waits, puts ten records, and counts. */
static int put_ten(struct fixture *x, int out) {
  if (!say(out)) return 1;
  struct db *db = db_open(x->path, 0, NULL);
  for (uint64_t i = 0; db && i < 10; i++) {
    struct db_record r = record(x, 9000 + i, 1, DB_FAILED);
    if (!db_put_record(db, &r, NULL)) return 2;
  }
  int n = db ? 0 : -1;
  if (!db || !db_each_record(db, NULL, NULL, count_record, &n, NULL)) return 3;
  db_close(db);
  return n == 310 ? 0 : 4;
}

static bool copy_store(const char *from, const char *to) {
  MDB_env *env;
  bool ok = !mdb_env_create(&env) && !mdb_env_open(env, from, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0666) &&
            !mdb_env_copy2(env, to, MDB_CP_COMPACT);
  mdb_env_close(env);
  return ok;
}

/* One that opens the store while its file is being replaced takes the new one, and its newest snapshot: transactions of
 * the new file are counted from 1, those of the old one are past 300. */
static void opens_the_new_file(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  char made[120];
  int pipes[2];
  snprintf(made, sizeof made, "%s.made", x->path);
  for (int round = 0; round < 2; round++) { /* transactions by an even and an odd number */
    unlink(made);
    if (x->db) put_some(x, x->db, 0, 300);
    close_store(x);
    assert_int_equal(pipe(pipes), 0);
    int held = db_hold_alone(x->path, &err);
    assert_true(held >= 0);
    pid_t child = start(put_ten, x, pipes[1]);
    hear(pipes[0]);
    usleep(100000); /* it waits by now */
    assert_true(copy_store(x->path, made));
    assert_true(db_take_place(held, made, x->path, NULL, &err));
    db_release_alone(held);
    assert_int_equal(status_of(child), 0);
    x->db = open_store(x);
    assert_int_equal(count_records(x->db), 310);
    assert_int_equal(db_check(x->db, stderr, &err), 0);
    for (uint64_t i = 0; i < 10; i++) {
      struct db_record r = record(x, 9000 + i, 1, DB_FAILED);
      assert_true(db_put_record(x->db, &r, &err) && db_delete_record(x->db, &r.id, &err));
    }
    if (round == 0) put_some(x, x->db, 299, 1);
    close(pipes[0]), close(pipes[1]);
  }
}

/* Puts records until it is killed. */
static int put_on(struct fixture *x, int out) {
  struct db *db = db_open(x->path, 0, NULL);
  for (uint64_t i = 0; db; i++) {
    struct db_record r = record(x, 9000 + i, 1, DB_FAILED);
    if (!db_put_record(db, &r, NULL) || (i == 0 && !say(out))) return 1;
  }
  return 1;
}

/* Each backup is a whole store of what was committed when it was made. */
static void backs_up_beside_a_writer(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  int pipes[2], before = 0;
  put_some(x, x->db, 0, 20);
  close_store(x);
  assert_int_equal(pipe(pipes), 0);
  pid_t child = start(put_on, x, pipes[1]);
  hear(pipes[0]);
  for (int i = 0; i < 10; i++) {
    char to[120];
    snprintf(to, sizeof to, "%s.%d", x->path, i);
    x->db = db_open(x->path, i % 2 ? DB_READ_ONLY : 0, &err);
    if (!x->db || db_backup(x->db, to, stderr, &err) != 0) fail_msg("%s", err.message);
    close_store(x);
    struct db *copy = db_open(to, DB_READ_ONLY, &err);
    if (!copy) fail_msg("%s", err.message);
    int count = count_records(copy);
    db_close(copy);
    assert_true(count > 20 && count >= before);
    before = count;
  }
  kill(child, SIGKILL);
  status_of(child);
  close(pipes[0]), close(pipes[1]);
}

static bool stop_in_the_middle(void *data, const struct db_record *r) {
  (void)r;
  if (!say(*(int *)data)) return false;
  for (;;) pause();
}

static int read_for_ever(struct fixture *x, int out) {
  struct db *db = db_open(x->path, DB_READ_ONLY, NULL);
  return db ? db_each_record(db, NULL, NULL, stop_in_the_middle, &out, NULL) : 1;
}

/* Deletes all but a few together, as `db prune` does. */
static void prune(struct fixture *x, const db_id *ids, int n, int keep) {
  ms_error err = {0};
  char text[DB_ID_TEXT];
  db_id id;
  assert_true(db_begin_batch(x->db, &err));
  for (int i = keep; i < n; i++) {
    db_id_text(&ids[i], text);
    assert_int_equal(db_find_id(x->db, text, &id, &err), 1);
    assert_true(db_delete_record(x->db, &id, &err));
  }
  assert_true(db_end_batch(x->db, &err));
}

/* A transaction that takes pages at the end and gives them back never writes them. */
static void reads_a_file_without_its_last_free_pages(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  static char reason[2100];
  db_id ids[80];
  bool shorter = false;
  memset(reason, 'r', sizeof reason - 1);
  for (int round = 1; round < 6 && !shorter; round++) {
    for (int i = 0; i < 80; i++) {
      struct db_record r = record(x, (uint64_t)i, 1.0 + i, DB_FAILED);
      r.reason = reason + 100 * i % 1000;
      assert_true(db_put_record(x->db, &r, &err));
      ids[i] = r.id;
    }
    prune(x, ids, 80, 5 * round);
    shorter = is_shorter(x->path);
  }
  assert_true(shorter);
  int left = count_records(x->db);
  db_close(x->db);
  x->db = NULL;
  assert_int_equal(db_check_pages(x->path, stderr, &err), 0);
  x->db = open_store(x);
  assert_int_equal(count_records(x->db), left);
  put_some(x, x->db, 5000, 300);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  assert_true(db_compact(x->db, &err));
  assert_int_equal(count_records(x->db), left + 300);
  assert_false(is_shorter(x->path));
}

/* LMDB keeps 126 readers: those that were killed while they read are taken out, also where another process stays. */
static void forgets_readers_that_were_killed(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  int pipes[2];
  put_some(x, x->db, 0, 2);
  close_store(x);
  assert_int_equal(pipe(pipes), 0);
  pid_t holder = start(hold_open, x, pipes[1]);
  hear(pipes[0]);
  for (int i = 0; i < 140; i++) {
    pid_t child = start(read_for_ever, x, pipes[1]);
    hear(pipes[0]);
    kill(child, SIGKILL);
    assert_int_equal(status_of(child), 128 + SIGKILL);
  }
  x->db = open_store(x);
  assert_int_equal(count_records(x->db), 2);
  kill(holder, SIGKILL);
  status_of(holder);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  close(pipes[0]), close(pipes[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {STORED_TEST(reads_a_file_without_its_last_free_pages),
                                     STORED_TEST(backs_up_beside_a_writer),
                                     STORED_TEST(compacts_only_what_nobody_else_has_open),
                                     STORED_TEST(opens_the_new_file), STORED_TEST(forgets_readers_that_were_killed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
