/* Replacing the store's file by one that was written beside it. */
#define _GNU_SOURCE
#include "replace.h"

#include "db/file/lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool refuse(const char *path, ms_error *err) { return ms_fail(err, MS_STORE, "%s: %s", path, strerror(errno)); }

bool db_flush_folder(const char *path, ms_error *err) {
  char *copy = strdup(path);
  if (!copy) abort();
  int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool ok = folder >= 0 && (fsync(folder) == 0 || errno == EINVAL);
  if (folder >= 0) close(folder);
  free(copy);
  return ok || refuse(path, err);
}

/* A second name for the old file, none that is there: at every instant the store's own name is one of the two. */
static bool keep_backup(const char *path, char **backup, ms_error *err) {
  for (int i = 1; i < 1000; i++) {
    if (asprintf(backup, i > 1 ? "%s.bak%d" : "%s.bak", path, i) < 0) abort();
    if (link(path, *backup) == 0) return true;
    bool there = errno == EEXIST;
    if (!there) refuse(*backup, err);
    free(*backup);
    *backup = NULL;
    if (!there) return false;
  }
  return ms_fail(err, MS_STORE, "%s.bak: there are a thousand of them", path);
}

/* A rename that is on disk names data that is. */
bool db_flush_file(const char *path, ms_error *err) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  bool ok = file >= 0 && fsync(file) == 0;
  if (!ok) refuse(path, err);
  if (file >= 0) close(file);
  return ok;
}

/* Whoever may use the old file may use the new one, as far as this process may say so. */
static bool take_rights(const char *made, const char *path, ms_error *err) {
  struct stat old, new;
  if (stat(path, &old) != 0) return true;
  if (stat(made, &new) != 0) return refuse(made, err);
  if ((old.st_uid != new.st_uid || old.st_gid != new.st_gid) && chown(made, old.st_uid, old.st_gid) != 0 &&
      errno != EPERM)
    return refuse(made, err);
  return chmod(made, old.st_mode & 07777) == 0 || refuse(made, err);
}

bool db_take_place(int held, const char *made, const char *path, char **backup, ms_error *err) {
  assert(held >= 0);
  if (!take_rights(made, path, err) || !db_flush_file(made, err)) return false;
  if (!db_forget_old(held, path, err)) return false;
  if (backup && !keep_backup(path, backup, err)) return false;
  assert(!backup || *backup); /* before the new file has the name, the old one has another */
  if (rename(made, path) == 0) return db_flush_folder(path, err);
  refuse(path, err);
  if (backup) {
    unlink(*backup);
    free(*backup);
    *backup = NULL;
  }
  return false;
}

void db_remove_lock(const char *path) {
  char *lock = NULL;
  if (asprintf(&lock, "%s-lock", path) < 0) abort();
  unlink(lock);
  free(lock);
}
