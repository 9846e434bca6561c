#define _GNU_SOURCE
/* Messages for LMDB's errors. */
#include "db/file/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

const char db_page_behind_end[] = "it names a page behind the end of the file";

/* Another user made the lock, for whom alone it is: those of a store and of its lock are two permissions. */
static bool is_locked_out(const char *path) {
  char lock[PATH_MAX];
  int length = snprintf(lock, sizeof lock, "%s-lock", path);
  return length > 0 && length < (int)sizeof lock && faccessat(AT_FDCWD, lock, R_OK | W_OK, AT_EACCESS) != 0 &&
         errno == EACCES;
}

int db_limited_code(const char *path, int code) {
  struct rlimit limit;
  struct stat file;
  bool is_short = (code == EIO || code == ENOSPC) && stat(path, &file) == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0;
  return is_short && (rlim_t)file.st_size >= limit.rlim_cur ? EFBIG : code;
}

bool db_failed(struct db *db, int code, const char *what, ms_error *err) {
  assert(code != MDB_SUCCESS);
  const char *path = db->path ? db->path : "store";
  code = db_limited_code(path, code);
  switch (code) {
  case MDB_INVALID:
  case MDB_VERSION_MISMATCH:
    return ms_fail(err, MS_STORE, "%s: this file is no store of msched, or is damaged at its start", path);
  case MDB_CORRUPTED:
  case MDB_PAGE_NOTFOUND:
    return ms_fail(err, MS_STORE, "%s: the store is damaged (%s); `msched db repair` saves what can be read", path,
                   mdb_strerror(code));
  case DB_GONE:
    return ms_fail(err, MS_STORE,
                   "%s: the store was removed or replaced while it was in use, and what was kept since is lost: "
                   "start the command again, and look after stores by `msched db`",
                   path);
  case DB_CUT:
    return ms_fail(err, MS_STORE,
                   "%s: the store was cut short while it was in use: `msched db repair` saves what can be read", path);
  case DB_DAMAGED:
    if (db->bad.why == db_page_behind_end)
      return ms_fail(
          err, MS_STORE,
          "%s: the store is cut short: %llu bytes of %llu are there; `msched db repair` saves what can be read", path,
          (unsigned long long)db->bad.bytes, (unsigned long long)db->bad.named_bytes);
    return ms_fail(err, MS_STORE, "%s: the store is damaged: page %llu: %s; `msched db repair` saves what can be read",
                   path, (unsigned long long)db->bad.page, db->bad.why);
  case DB_AGAIN: return ms_fail(err, MS_STORE, "%s: other processes write it all the time; try again", path);
  case ENOSPC:
  case EDQUOT: return ms_fail(err, MS_STORE, "%s: the disk is full; what was committed before is kept", path);
  case EIO: /* LMDB says so when less than a page was written, as when the room ends in the middle of one */
    return ms_fail(err, MS_STORE, "%s: no room, or the disk fails; what was committed before is kept", path);
  case ENOMEM:
    return ms_fail(err, MS_STORE, "%s: %s: the process may not have enough memory or addresses (`ulimit -v`)", path,
                   what);
  case MDB_PANIC:
    return ms_fail(err, MS_STORE, "%s: writing failed before; what was committed is kept: start the command again",
                   path);
  case EFBIG:
    return ms_fail(
        err, MS_STORE,
        "%s: the limit of files' sizes is reached, raise it (`ulimit -f`); what was committed before is kept", path);
  case EACCES:
    if (is_locked_out(path))
      return ms_fail(err, MS_STORE,
                     "%s-lock: the store's lock is another user's: who reads or writes the store needs the permission "
                     "to write it (`chmod`)",
                     path);
    return ms_fail(err, MS_STORE, "%s: the store cannot be written: %s", path, strerror(code));
  case EROFS: return ms_fail(err, MS_STORE, "%s: the store cannot be written: %s", path, strerror(code));
  case ENOENT: return ms_fail(err, MS_STORE, "%s: no store can be made there: %s", path, strerror(code));
  default: return ms_fail(err, MS_STORE, "%s: %s: %s", path, what, mdb_strerror(code));
  }
}
