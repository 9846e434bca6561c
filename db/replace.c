/* Replacing the store's file by one that was written beside it. */
#define _GNU_SOURCE
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LMDB's processes share the first byte of the lock file; the one that has it alone sets the file up anew. */
int db_hold_alone(const char *path, ms_error *err) {
  char *name = NULL;
  if (asprintf(&name, "%s-lock", path) < 0) abort();
  int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  if (file < 0) {
    ms_fail(err, MS_STORE, "%s: %s", name, strerror(errno));
  } else if (fcntl(file, F_SETLK, &first) != 0) {
    ms_fail(err, MS_STORE, "%s: another process has the store open; try again when it is done", path);
    close(file);
    file = -1;
  }
  free(name);
  return file;
}

void db_release_alone(int held) {
  if (held >= 0) close(held);
}

static bool refuse(const char *path, ms_error *err) { return ms_fail(err, MS_STORE, "%s: %s", path, strerror(errno)); }

static bool flush_folder(const char *path, ms_error *err) {
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

bool db_take_place(const char *made, const char *path, char **backup, ms_error *err) {
  struct stat old;
  if (stat(path, &old) == 0 && chmod(made, old.st_mode & 07777) != 0) return refuse(made, err);
  if (backup && !keep_backup(path, backup, err)) return false;
  if (rename(made, path) == 0) return flush_folder(path, err);
  refuse(path, err);
  if (backup) {
    unlink(*backup);
    free(*backup);
    *backup = NULL;
  }
  return false;
}
