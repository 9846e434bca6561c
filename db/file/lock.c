#define _GNU_SOURCE
/* The locks of the store's lock file, besides those that LMDB takes itself. */
#include "lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned PAUSE = 1000;                 /* microseconds between two tries */
enum { OPENING_TRIES = 30000, ALONE_TRIES = 2000 }; /* half a minute; two seconds, since others open in far less */
enum { MOST_INTERRUPTED = 100 };                    /* calls that signals ended, of one lock */

static int open_lock(const char *path, ms_error *err) {
  char *name = NULL;
  if (asprintf(&name, "%s-lock", path) < 0) abort();
  int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  int code = errno;
  if (file < 0) ms_fail(err, MS_STORE, "%s: %s", name, strerror(code));
  free(name);
  errno = code;
  return file;
}

static int refuse_lock(const char *path, ms_error *err) {
  ms_fail(err, MS_STORE, "%s-lock: this is no file, and the store's lock file has this name; move it away", path);
  return -1;
}

/* 0, or errno: EWOULDBLOCK where another has it all the time; EINTR where signals never end. */
static int lock_whole(int file, int tries) {
  assert(file >= 0 && tries > 0);
  int interrupted = 0;
  for (int i = 0; i < tries; i++) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EINTR ? ++interrupted > MOST_INTERRUPTED : errno != EWOULDBLOCK) return errno;
    usleep(PAUSE);
  }
  return EWOULDBLOCK;
}

int db_lock_opening(const char *path, ms_error *err) {
  int file = open_lock(path, NULL);
  if (file < 0) return errno == EISDIR || errno == ELOOP || errno == ENXIO ? refuse_lock(path, err) : -2;
  struct stat s;
  if (fstat(file, &s) != 0 || !S_ISREG(s.st_mode)) return close(file), refuse_lock(path, err);
  int code = lock_whole(file, OPENING_TRIES);
  if (!code) return file;
  close(file);
  if (code == EWOULDBLOCK)
    ms_fail(err, MS_STORE, "%s: another process opens, compacts or repairs the store; try again when it is done", path);
  else
    ms_fail(err, MS_STORE, "%s-lock: cannot be locked: %s", path, strerror(code));
  return -1;
}

int db_fill_lock(int lock) {
  enum { LMDB_BYTES = 8192, BLOCK = 512 }; /* for 126 readers, as LMDB has it where nobody says another number */
  struct stat s;
  if (lock < 0 || fstat(lock, &s) != 0) return 0;
  off_t bytes = s.st_size > LMDB_BYTES ? s.st_size : LMDB_BYTES;
  int code = s.st_blocks * BLOCK < bytes ? posix_fallocate(lock, 0, bytes) : 0;
  return code == ENOSPC || code == EDQUOT || code == EFBIG ? code : 0;
}

void db_unlock_opening(int lock) {
  if (lock >= 0) flock(lock, LOCK_UN);
}

/* A lock of the open file, not of the process: other descriptors of the lock file are closed meanwhile. */
void db_lock_writing(int lock) {
  struct flock second = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
  if (lock < 0) return;
  for (int i = 0; i < MOST_INTERRUPTED && fcntl(lock, F_OFD_SETLKW, &second) != 0 && errno == EINTR; i++) continue;
}

void db_unlock_writing(int lock) {
  struct flock second = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
  if (lock >= 0) fcntl(lock, F_OFD_SETLK, &second);
}

int db_hold_alone(const char *path, ms_error *err) {
  int file = open_lock(path, err);
  if (file < 0) return -1;
  struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  int code = lock_whole(file, ALONE_TRIES);
  for (int interrupted = 0; !code && fcntl(file, F_SETLK, &first) != 0; interrupted++)
    if (errno != EINTR || interrupted == MOST_INTERRUPTED) code = errno;
  if (!code) return file;
  if (code == EWOULDBLOCK || code == EACCES)
    ms_fail(err, MS_STORE, "%s: another process has the store open; try again when it is done", path);
  else
    ms_fail(err, MS_STORE, "%s-lock: cannot be locked: %s", path, strerror(code));
  close(file);
  return -1;
}

bool db_forget_old(int held, const char *path, ms_error *err) {
  assert(held >= 0);
  return ftruncate(held, 0) == 0 || ms_fail(err, MS_STORE, "%s-lock: %s", path, strerror(errno));
}

/* The byte first: who has the lock file never waits for the byte of who replaces the file. A child may share the
 * descriptor, so that closing it alone would not do. */
void db_release_alone(int held) {
  struct flock first = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  if (held < 0) return;
  fcntl(held, F_SETLK, &first);
  flock(held, LOCK_UN);
  close(held);
}
