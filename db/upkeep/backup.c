/* A copy of the store as it is now, beside processes that write it: it has its name when it is whole and was
 * checked. */
#define _GNU_SOURCE
#include "db/file/snapshot.h"
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool refuse_there(const char *to, ms_error *err) {
  return ms_fail(err, MS_IO, "%s: there is a file of that name; a backup replaces none", to);
}

/* Gives a file its name where there is none of that name; a file system without that rename makes a second name. */
static bool take_name(const char *made, const char *to, ms_error *err) {
  if (renameat2(AT_FDCWD, made, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return db_flush_folder(to, err);
  if ((errno == EINVAL || errno == ENOSYS) && link(made, to) == 0) return unlink(made), db_flush_folder(to, err);
  return errno == EEXIST ? refuse_there(to, err) : ms_fail(err, MS_IO, "%s: %s", to, strerror(errno));
}

/* The copy's problems: pages first, without which nothing can be read. -1: err is filled. */
static int64_t check_copy(const char *made, FILE *report, ms_error *err) {
  struct db *copy = db_open(made, DB_READ_ONLY | DB_WALK_ALL, err);
  int64_t problems = copy ? db_check(copy, report, err) : -1;
  db_close(copy);
  db_remove_lock(made);
  return problems;
}

int64_t db_backup(struct db *db, const char *to, FILE *report, ms_error *err) {
  assert(to);
  char *made = NULL;
  if (!*to) return ms_fail(err, MS_IO, "the name of the backup is empty"), -1;
  if (db->batch) return ms_fail(err, MS_STORE, "%s: a batch is open", db->path), -1;
  if (db->pending) return ms_fail(err, MS_STORE, "%s: there is no store; tuning makes one", db->path), -1;
  if (access(to, F_OK) == 0) return refuse_there(to, err), -1;
  if (!db_walk_store(db, err)) return -1; /* LMDB reads the pages */
  if (asprintf(&made, "%s.part-%ld", to, (long)getpid()) < 0) abort();
  unlink(made); /* of a process that had the number, and was killed */
  int code = mdb_env_copy2(db->env, made, MDB_CP_COMPACT);
  int64_t problems = -1;
  if (code)
    ms_fail(err, MS_IO, "%s: the backup cannot be written: %s", to, mdb_strerror(code));
  else if (db_flush_file(made, err))
    problems = check_copy(made, report, err);
  if (problems >= 0 && !take_name(made, to, err)) problems = -1;
  if (problems < 0) unlink(made);
  free(made);
  return problems;
}
