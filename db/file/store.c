#define _GNU_SOURCE
/* Opening, growing and closing the environment; transactions. */
#include "lock.h"
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLES = 16 };
/* A map takes addresses, not memory: it is large from the start, or as large as the process may have it. */
static const size_t FIRST_MAP = (size_t)1 << 30, LEAST_MAP = (size_t)16 << 20;

/* LMDB must not have one file open twice in a process: paths in use, by device and inode. */
struct in_use {
  dev_t device;
  ino_t inode;
  struct in_use *next;
};
static struct in_use *files_in_use;
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

bool db_claim(struct db *db, ms_error *err) {
  struct stat s;
  if (stat(db->path, &s) != 0) return true; /* it is made by opening it, and claimed then */
  pthread_mutex_lock(&files_lock);
  bool taken = false;
  for (struct in_use *f = files_in_use; f; f = f->next) taken |= f->device == s.st_dev && f->inode == s.st_ino;
  if (!taken) {
    struct in_use *f = malloc(sizeof *f);
    if (!f) abort();
    *f = (struct in_use){s.st_dev, s.st_ino, files_in_use};
    db->claim = files_in_use = f;
  }
  pthread_mutex_unlock(&files_lock);
  return taken ? ms_fail(err, MS_STORE, "%s: this process has the store open already", db->path) : true;
}

void db_disclaim(struct db *db) {
  pthread_mutex_lock(&files_lock);
  for (struct in_use **link = &files_in_use; *link; link = &(*link)->next)
    if (*link == db->claim) {
      *link = db->claim->next;
      free(db->claim);
      break;
    }
  db->claim = NULL;
  pthread_mutex_unlock(&files_lock);
}

/* ---- Paths ---- */

static char *default_path(ms_error *err) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  char *path = NULL;
  int made = -1;
  if (data && *data == '/')
    made = asprintf(&path, "%s/msched/msched.db", data);
  else if (home && *home)
    made = asprintf(&path, "%s/.local/share/msched/msched.db", home);
  if (made > 0) return path;
  ms_fail(err, MS_STORE, "neither XDG_DATA_HOME nor HOME says where the store is; give --db PATH");
  return NULL;
}

static bool make_folders(struct db *db, ms_error *err) {
  char *copy = strdup(db->path), *made = NULL;
  if (!copy) abort();
  bool ok = true;
  for (char *c = copy + 1; *c && ok; c++) {
    if (*c != '/') continue;
    *c = 0;
    bool is_new = mkdir(copy, 0777) == 0;
    if (!is_new && errno != EEXIST)
      ok = ms_fail(err, MS_STORE, "%s: cannot make this folder, for the store: %s; give another --db PATH", copy,
                   strerror(errno));
    if (is_new) free(made), made = strdup(copy);
    *c = '/';
  }
  char *line = NULL;
  if (ok && made && db->damage.report && asprintf(&line, "%s: made this folder, for the store", made) > 0)
    db->damage.report(db->damage.data, line);
  free(line);
  free(made);
  free(copy);
  return ok;
}

/* Whether a file of that name can be made, as far as can be known before: in the last of its folders that is there. */
static bool may_make(const char *path) {
  char *folder = strdup(path), *end;
  if (!folder) abort();
  while ((end = strrchr(folder, '/')) && (end[end == folder] = 0, access(folder, F_OK) != 0) && end != folder) {}
  struct stat s;
  const char *last = end ? folder : ".";
  bool may = stat(last, &s) == 0 && S_ISDIR(s.st_mode) && access(last, W_OK | X_OK) == 0;
  free(folder);
  return may && strlen(path) && path[strlen(path) - 1] != '/';
}

/* LMDB maps what it is given: a file that is not its own must be found out first, and one cut short would be a bus
 * error later. */
static bool looks_like_store(struct db *db, ms_error *err) {
  struct db_pages pages;
  struct stat s;
  if (stat(db->path, &s) != 0) return true;
  if (db->read_only && S_ISREG(s.st_mode) && !s.st_size)
    return ms_fail(err, MS_STORE, "%s: there is no store: the file is empty; tuning makes one in it", db->path);
  if (!db_map_pages(db->path, false, &pages, err)) return false;
  db_unmap_pages(&pages);
  return true;
}

/* ---- Transactions ---- */

/* Whether the process may have so many addresses more. */
static bool may_map(size_t size) {
  void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED && munmap(at, size) == 0;
}

/* LMDB gives the map up before it asks for another, and cannot go on without: it is asked for one that can be had.
 * Where that fails all the same, the store is closed: what follows is refused. */
static int set_map(struct db *db, size_t size) {
  if (!may_map(size)) return ENOMEM;
  int code = mdb_env_set_mapsize(db->env, size);
  if (code) db_close_environment(db);
  return code;
}

static size_t used_bytes(struct db *db, size_t *page, size_t *map) {
  MDB_envinfo info;
  MDB_stat stat;
  mdb_env_info(db->env, &info);
  mdb_env_stat(db->env, &stat);
  *page = stat.ms_psize;
  *map = info.me_mapsize;
  return (info.me_last_pgno + 1) * (size_t)stat.ms_psize;
}

/* Another process wrote past the end of this one's map: as large again, or no larger than it must be. */
static int follow_map(struct db *db) {
  size_t page, map, used = used_bytes(db, &page, &map);
  if (used > DB_MOST_MAP) return MDB_CORRUPTED; /* another program wrote over the first pages */
  int code = set_map(db, 2 * used > map ? 2 * used : map);
  return code == ENOMEM && db->env ? set_map(db, used) : code;
}

/* What other programs did to the open file, asked before LMDB reads it by its map: past the end of a file that was cut
 * short that would be a bus error, and what is written to a file without a name is lost. One that was renamed has both:
 * its records, and a name. */
static int look_after_file(struct db *db, unsigned flags) {
  struct stat open_file, named;
  int file = -1;
  if (db->pending || mdb_env_get_fd(db->env, &file) || fstat(file, &open_file) != 0) return 0;
  if (open_file.st_size < db->longest) return DB_CUT;
  db->longest = open_file.st_size;
  if ((flags & MDB_RDONLY) || open_file.st_nlink > 0) return 0;
  bool is_same = stat(db->path, &named) == 0 && named.st_dev == open_file.st_dev && named.st_ino == open_file.st_ino;
  return is_same ? 0 : DB_GONE;
}

/* Begins one, also where another process grew the map or left readers behind when it was killed. */
static int begin_any(struct db *db, MDB_txn *parent, unsigned flags, MDB_txn **txn) {
  for (;;) {
    if (!db->env) return ENOMEM;
    int code = parent ? 0 : look_after_file(db, flags), dead = 0;
    if (code) return code;
    code = mdb_txn_begin(db->env, parent, flags, txn);
    if (code == MDB_MAP_RESIZED && !parent)
      code = follow_map(db);
    else if (code == MDB_READERS_FULL && !mdb_reader_check(db->env, &dead) && dead > 0)
      code = 0;
    else
      return code;
    if (code) return code;
  }
}

/* One that writes, within the batch where there is one; it ends by commit_write or drop_write. Others that write wait
 * for the batch, or for a write that is none of one. */
static bool ends_writing(const struct db *db, const MDB_txn *txn) { return !db->batch || db->batch == txn; }

static int begin_write(struct db *db, unsigned flags, MDB_txn **txn) {
  bool first = !db->batch;
  if (first) db_lock_writing(db->lock);
  int code = begin_any(db, db->batch, flags, txn);
  if (code && first) db_unlock_writing(db->lock);
  return code;
}

static int commit_write(struct db *db, MDB_txn *txn) {
  bool last = ends_writing(db, txn);
  int code = mdb_txn_commit(txn);
  if (last) db_unlock_writing(db->lock);
  return code;
}

static void drop_write(struct db *db, MDB_txn *txn) {
  bool last = ends_writing(db, txn);
  mdb_txn_abort(txn);
  if (last) db_unlock_writing(db->lock);
}

static bool make_file(struct db *db, ms_error *err);

enum { MOST_TRIES = 100 }; /* to read a snapshot before its meta page is gone: others may commit between */

static int begin_reading(struct db *db, MDB_txn **txn) {
  int code = DB_AGAIN;
  for (int i = 0; i < MOST_TRIES && code == DB_AGAIN; i++) {
    code = begin_any(db, NULL, MDB_RDONLY, txn);
    if (code) return code;
    code = db_take_snapshot(db, *txn);
    if (code) mdb_txn_abort(*txn);
  }
  return code;
}

/* Within a batch, what is read is what the batch has put. */
bool db_begin_read(struct db *db, MDB_txn **txn, ms_error *err) {
  int code = 0;
  if (db->pending && access(db->path, F_OK) == 0 && !make_file(db, err)) return false; /* another process made it */
  if (db->batch)
    *txn = db->batch;
  else
    code = begin_reading(db, txn);
  return code ? db_failed(db, code, "reading", err) : true;
}

int db_end_read(struct db *db, MDB_txn *txn, int code) {
  assert(txn);
  if (txn == db->batch) return code;
  int met = db_drop_snapshot(db, txn);
  mdb_txn_abort(txn);
  return met && (!code || code == MDB_NOTFOUND) ? met : code;
}

static int grow(struct db *db) {
  assert(!db->batch);
  size_t page, map;
  used_bytes(db, &page, &map);
  return map >= DB_MOST_MAP ? MDB_MAP_FULL : set_map(db, map * 2);
}

/* ---- Batches: committed in parts, each of which the map has room for before it begins. A part is on disk when the
 * next one is, or the batch ends: where the machine loses its power before, the store is as it was before the part.
 * ---- */

/* A write changes the pages from the root to a leaf of four tables, each of which it may split, and those of the free
 * list when it is committed. */
enum { PART_WRITES = 1000, WRITE_PAGES = 64 };
/* A batch that goes on has larger parts: what records that come by chance share of pages is written once in each. */
enum { NEXT_WRITES = 8 * PART_WRITES };
static const size_t PART_BYTES = (size_t)16 << 20;

/* A part of a store that was small copies few pages: what it writes is new, and is written once. So it goes on, up to
 * as many pages as memory may hold, where parts would write each page again as its keys come by chance. */
enum { SMALL_STORE = 2048, NEW_PAGES = 1 << 15, NEW_WRITES = 200000 };

/* Pages of the tables, as they are in the batch; more than there can be: they cannot be counted. */
static size_t count_pages(struct db *db) {
  size_t pages = 0;
  for (int i = 0; i < DB_TABLES; i++) {
    MDB_stat s;
    MDB_dbi table = *db_table_of(db, (enum db_table)i);
    if (!table) continue;
    if (mdb_stat(db->batch, table, &s)) return SIZE_MAX;
    pages += s.ms_branch_pages + s.ms_leaf_pages + s.ms_overflow_pages;
  }
  return pages;
}

/* Bytes of the map that no snapshot has. The batch is open, so that nobody else takes any. */
static size_t room_left(struct db *db, size_t *page) {
  size_t map, used = used_bytes(db, page, &map);
  return map > used ? map - used : 0;
}

/* Begins a part with room for so many writes of so many bytes, and for as many more as a part has, at most so many.
 * Where the map cannot grow so far, the part is of fewer writes. */
static int begin_part(struct db *db, uint32_t least, uint32_t most, size_t bytes) {
  assert(!db->batch && !db->read_only && least <= most);
  for (bool may_grow = true;;) {
    size_t page;
    int code = begin_write(db, MDB_NOMETASYNC, &db->batch);
    if (code) {
      db->batch = NULL;
      return code;
    }
    size_t room = room_left(db, &page), values = 2 * (PART_BYTES + bytes);
    size_t writes = room > values ? (room - values) / (WRITE_PAGES * page) : 0;
    db->part = (struct db_part){.most = writes < most ? (uint32_t)writes : most};
    /* Room for the new pages, and for what a part of any store takes behind them. */
    db->part.is_new = count_pages(db) < SMALL_STORE && writes >= PART_WRITES + NEW_PAGES / WRITE_PAGES;
    if (writes >= most || (!may_grow && writes >= least)) return 0;
    drop_write(db, db->batch);
    db->batch = NULL;
    if (!may_grow) return MDB_MAP_FULL;
    code = grow(db);
    if ((code == ENOMEM || code == MDB_MAP_FULL) && db->env)
      may_grow = false;
    else if (code)
      return code;
  }
}

static int end_part(struct db *db) {
  assert(db->batch);
  int code = commit_write(db, db->batch);
  db->batch = NULL;
  return code;
}

static bool is_full(struct db *db, uint32_t writes, size_t bytes) {
  const struct db_part *p = &db->part;
  if (p->writes + writes <= p->most && p->bytes + bytes <= PART_BYTES) return false;
  return !p->is_new || p->writes + writes > NEW_WRITES || bytes > PART_BYTES || count_pages(db) > NEW_PAGES;
}

/* Counts writes to the batch's part, or to the next one where this one is full. */
static int take_part(struct db *db, uint32_t writes, size_t bytes) {
  assert(db->batch && writes > 0);
  int code = 0;
  if (db->part.writes && is_full(db, writes, bytes)) {
    code = end_part(db);
    if (!code) code = begin_part(db, writes, NEXT_WRITES, bytes);
  } else if (!db->part.writes && (writes > db->part.most || bytes > PART_BYTES)) { /* it had room for less */
    drop_write(db, db->batch);
    db->batch = NULL;
    code = begin_part(db, writes, PART_WRITES, bytes);
  }
  db->part.writes += writes;
  db->part.bytes += bytes;
  return code;
}

static bool prepare_writing(struct db *db, ms_error *err);

bool db_begin_batch(struct db *db, ms_error *err) {
  if (db->batch) return ms_fail(err, MS_STORE, "%s: a batch is open already", db->path);
  if (db->read_only) return ms_fail(err, MS_STORE, "%s: the store is open for reading only", db->path);
  if (!prepare_writing(db, err)) return false;
  int code = begin_part(db, 1, PART_WRITES, 0);
  return code ? db_failed(db, code, "writing", err) : true;
}

bool db_end_batch(struct db *db, ms_error *err) {
  if (!db->batch) return true; /* it could not go on, and what failed was said */
  if (db->pending) drop_write(db, db->batch), db->batch = NULL;
  int code = db->batch ? end_part(db) : 0;
  if (!code && db->env && !db->pending) code = mdb_env_sync(db->env, 1);
  return code ? db_failed(db, code, "writing", err) : true;
}

/* ---- Writes ---- */

static int write_once(struct db *db, int (*work)(struct db *db, MDB_txn *txn, void *data), void *data) {
  MDB_txn *txn;
  int code = begin_write(db, 0, &txn);
  if (code) return code;
  code = work(db, txn, data);
  if (!code) return commit_write(db, txn);
  drop_write(db, txn);
  return code;
}

static int write_growing(struct db *db, int (*work)(struct db *db, MDB_txn *txn, void *data), void *data,
                         uint32_t writes, size_t bytes) {
  int code = db->batch ? take_part(db, writes, bytes) : 0;
  while (!code) {
    bool batch = db->batch != NULL;
    code = write_once(db, work, data);
    if (code != MDB_MAP_FULL) break;
    code = batch ? end_part(db) : 0;
    if (!code) code = grow(db); /* no transaction is open now */
    if (!code && batch) code = begin_part(db, writes, PART_WRITES, bytes);
  }
  return code;
}

bool db_write(struct db *db, int (*work)(struct db *db, MDB_txn *txn, void *data), void *data, size_t bytes,
              const char *what, ms_error *err) {
  return db_write_many(db, work, data, 1, bytes, what, err);
}

bool db_write_many(struct db *db, int (*work)(struct db *db, MDB_txn *txn, void *data), void *data, uint32_t writes,
                   size_t bytes, const char *what, ms_error *err) {
  assert(work && writes > 0);
  if (db->read_only) return ms_fail(err, MS_STORE, "%s: the store is open for reading only", db->path);
  if ((db->pending && !make_file(db, err)) || !prepare_writing(db, err)) return false;
  int code = write_growing(db, work, data, writes, bytes);
  return code ? db_failed(db, code, what, err) : true;
}

/* ---- Opening ---- */

static void forget_tables(struct db *db) {
  for (int i = 0; i < DB_TABLES; i++) *db_table_of(db, (enum db_table)i) = 0;
}

static int open_tables(struct db *db, MDB_txn *txn) {
  int code = 0;
  for (int i = 0; i < DB_TABLES && !code; i++)
    code = mdb_dbi_open(txn, db_table_names[i], MDB_CREATE, db_table_of(db, (enum db_table)i));
  return code;
}

static bool is_known(int format) { return format >= DB_FORMAT_UNSEALED && format <= DB_FORMAT; }

/* Records of this version may be written from now on, which older versions cannot read: they refuse the store. */
static int create_tables(struct db *db, MDB_txn *txn, void *unused) {
  (void)unused;
  uint8_t format = DB_FORMAT;
  MDB_val key = {6, "format"}, value = {1, &format}, old;
  int code = mdb_dbi_open(txn, db_table_names[DB_META], MDB_CREATE, db_table_of(db, DB_META));
  if (!code) code = mdb_get(txn, db->meta, &key, &old);
  bool is_new = code == MDB_NOTFOUND;
  if (code && !is_new) return code;
  int found = !is_new && old.mv_size == 1 ? *(uint8_t *)old.mv_data : 0;
  if (!is_new && !is_known(found)) return 0; /* of a later version: nothing is added to it */
  code = open_tables(db, txn);
  MDB_val known = {sizeof DB_PREFIXES_KNOWN - 1, DB_PREFIXES_KNOWN}, nothing = {0, ""};
  if (!code && is_new) code = mdb_put(txn, db->meta, &known, &nothing, 0);
  return code || found == DB_FORMAT ? code : mdb_put(txn, db->meta, &key, &value, 0);
}

struct bad_page {
  uint64_t page;
  const char *why; /* NULL: none is */
};

static bool stop_at_bad(void *data, uint64_t page, const char *why) {
  struct bad_page *out = data;
  *out = (struct bad_page){page, why};
  return false;
}

/* The snapshot's pages, all of them, before LMDB walks any: it asserts or runs astray on those that are damaged. An
 * LMDB file of another program is left as it is: it has tables, and none of ours. */
static bool walk_pages(struct db *db, ms_error *err) {
  struct bad_page bad = {0, NULL};
  struct db_page_visit visit = {.bad = stop_at_bad, .data = &bad};
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  const struct db_pages *pages = db_snapshot_pages(db, txn);
  enum db_owner owner = db_walk_pages(pages, &visit, NULL);
  bool cut = bad.why == db_page_behind_end && !db_refuse_cut(db->path, pages, err);
  db_end_read(db, txn, 0);
  if (owner == DB_STRANGE) return ms_fail(err, MS_STORE, "%s: this LMDB file is another program's", db->path);
  if (cut) return false;
  db->walked = !bad.why;
  return !bad.why ||
         ms_fail(err, MS_STORE, "%s: the store is damaged: page %llu: %s; `msched db repair` saves what can be read",
                 db->path, (unsigned long long)bad.page, bad.why);
}

/* What LMDB writes to: pages that were walked, and tables that are there. */
bool db_walk_store(struct db *db, ms_error *err) { return db->walked || walk_pages(db, err); }

static bool prepare_writing(struct db *db, ms_error *err) {
  if (db->meta) return true;
  if (!db_walk_store(db, err)) return false;
  int code = write_growing(db, create_tables, NULL, 1, 0);
  if (code) forget_tables(db);
  return code ? db_failed(db, code, "making tables", err) : true;
}

/* 0: it has none; it is new, or another program's. */
static bool read_format(struct db *db, int *out, ms_error *err) {
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  MDB_val key = {6, "format"}, value;
  int code = db_get(db, txn, DB_META, &key, &value);
  *out = !code && value.mv_size == 1 ? *(uint8_t *)value.mv_data : code ? 0 : -1;
  code = db_end_read(db, txn, code);
  return !code || code == MDB_NOTFOUND || db_failed(db, code, "opening", err);
}

static bool check_format(struct db *db, ms_error *err) {
  int format;
  if (!read_format(db, &format, err)) return false;
  if (!format && !db->read_only && (!prepare_writing(db, err) || !read_format(db, &format, err))) return false;
  MDB_stat main = {0};
  if (!format && !mdb_env_stat(db->env, &main) && !main.ms_entries)
    return ms_fail(err, MS_STORE, "%s: there is no store: nothing was ever kept in the file; tuning makes one in it",
                   db->path);
  if (!format) return ms_fail(err, MS_STORE, "%s: this LMDB file is another program's", db->path);
  return is_known(format)
             ? true
             : ms_fail(err, MS_STORE, "%s: the store is of another format; export it with the version that made it",
                       db->path);
}

/* Of a large store pages are checked as they are read, or all of them before the first write. */
static bool check_pages(struct db *db, ms_error *err) {
  enum { SMALL = 2048 };
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  const struct db_pages *pages = db_snapshot_pages(db, txn);
  bool walk = db->walk == DB_WALK_ALL || pages->count < pages->named || (!db->walk && pages->count <= SMALL);
  db_end_read(db, txn, 0);
  return !walk || (walk_pages(db, err) && (db->read_only || prepare_writing(db, err)));
}

static int open_mapped(struct db *db, size_t map, bool lockless) {
  int code = mdb_env_create(&db->env);
  if (code) return code;
  mdb_env_set_maxdbs(db->env, TABLES);
  mdb_env_set_mapsize(db->env, map);
  unsigned how = MDB_NOSUBDIR | MDB_NOTLS;
  if (db->read_only) how |= MDB_RDONLY | (lockless ? MDB_NOLOCK : 0);
  return mdb_env_open(db->env, db->path, how, 0666);
}

/* What could not make a store leaves nothing of one: half of its first pages would be refused ever after. A file that
 * has them is another process's store, made meanwhile. */
static void empty_again(const char *path) {
  struct stat s;
  if (stat(path, &s) || s.st_size >= 2 * (off_t)sysconf(_SC_PAGESIZE)) return;
  int code = truncate(path, 0);
  (void)code; /* who could not write it all may not be able to cut it either */
}

static int open_locked(struct db *db) {
  struct stat s;
  int file = -1, dead, code;
  size_t least = stat(db->path, &s) == 0 && (size_t)s.st_size > LEAST_MAP ? (size_t)s.st_size : LEAST_MAP;
  size_t map = least > FIRST_MAP / 2 ? least * 2 : FIRST_MAP;
  bool is_empty = stat(db->path, &s) != 0 || !s.st_size;
  int full = db_fill_lock(db->lock);
  if (full && !db->read_only) return full;
  /* A reader that may not write the lock file, or for whom the disk has no room for it, reads without locks: nobody
   * writes who has no room for them either. */
  bool lockless = full || access(db->path, W_OK) != 0;
  while ((code = open_mapped(db, map, lockless)) == ENOMEM && map / 2 >= least) {
    mdb_env_close(db->env);
    db->env = NULL;
    map /= 2;
  }
  code = db_limited_code(db->path, code); /* which reads the file's size: before it is cut */
  if (code && is_empty && !db->read_only) empty_again(db->path);
  if (code) return code;
  if (!mdb_env_get_fd(db->env, &file)) fcntl(file, F_SETFD, FD_CLOEXEC);
  return mdb_reader_check(db->env, &dead); /* their snapshots keep pages from being used again */
}

bool db_open_environment(struct db *db, ms_error *err) {
  db->lock = db_lock_opening(db->path, err);
  if (db->lock == -1) return false;
  int code = open_locked(db);
  db_unlock_opening(db->lock);
  if (code) return db_failed(db, code, "opening", err);
  return check_pages(db, err) && check_format(db, err);
}

void db_close_environment(struct db *db) {
  if (db->batch) drop_write(db, db->batch);
  db->batch = NULL;
  db_forget_snapshots(db);
  forget_tables(db);
  db->walked = false;
  mdb_env_close(db->env);
  db->env = NULL;
  db->longest = 0;
  if (db->lock >= 0) close(db->lock);
  db->lock = -1;
}

/* ---- A store that is not there yet: nothing is left of one that nothing is written to ---- */

static int make_empty(struct db *db) {
  MDB_txn *txn;
  int code = mdb_txn_begin(db->env, NULL, 0, &txn);
  if (code) return code;
  code = create_tables(db, txn, NULL);
  if (!code) return mdb_txn_commit(txn);
  mdb_txn_abort(txn);
  return code;
}

/* An environment without a name, which is read as the empty store. False: there cannot be one, which is no error. */
static bool open_pending(struct db *db) {
  const char *folder = getenv("TMPDIR");
  char *name = NULL;
  int file = -1;
  if (asprintf(&name, "%s/msched-XXXXXX", folder && *folder ? folder : "/tmp") < 0) abort();
  int made = mkostemp(name, O_CLOEXEC);
  bool ok = made >= 0 && mdb_env_create(&db->env) == 0;
  if (ok) {
    mdb_env_set_maxdbs(db->env, TABLES);
    ok = mdb_env_set_mapsize(db->env, FIRST_MAP) == 0 &&
         mdb_env_open(db->env, name, MDB_NOSUBDIR | MDB_NOTLS | MDB_NOLOCK | MDB_NOSYNC, 0600) == 0 &&
         make_empty(db) == 0;
  }
  if (ok && !mdb_env_get_fd(db->env, &file)) fcntl(file, F_SETFD, FD_CLOEXEC);
  if (made >= 0) {
    unlink(name);
    close(made);
  }
  free(name);
  if (!ok) db_close_environment(db);
  return ok;
}

/* The file, of which something is wanted now. Nothing has been read that could be held: the empty store has no
 * entries. */
static bool make_file(struct db *db, ms_error *err) {
  assert(db->pending && !db->read_only);
  bool batch = db->batch != NULL;
  db_close_environment(db);
  db->pending = false;
  if (!make_folders(db, err) || !looks_like_store(db, err) || !db_claim(db, err) || !db_open_environment(db, err) ||
      !(db->claim || db_claim(db, err)))
    return db_close_environment(db), false;
  int code = batch ? begin_part(db, 1, PART_WRITES, 0) : 0;
  return code ? db_failed(db, code, "writing", err) : true;
}

/* LMDB's lock file goes with the name: a link is followed first. One to a file that is not there would have a lock file
 * of its own, beside the file's once that is made. */
static bool follow_link(struct db *db, ms_error *err) {
  struct stat s;
  if (lstat(db->path, &s) != 0 || !S_ISLNK(s.st_mode)) return true;
  char *real = realpath(db->path, NULL);
  if (!real)
    return ms_fail(err, MS_STORE,
                   "%s: a link that leads to no file: %s; name the file that it should lead to, or remove the link",
                   db->path, strerror(errno));
  free(db->path);
  db->path = real;
  return true;
}

/* A file that may not be looked for may be there. */
static bool look_for(struct db *db, bool *missing, ms_error *err) {
  *missing = access(db->path, F_OK) != 0;
  if (!*missing || errno == ENOENT || errno == ENOTDIR) return true;
  return ms_fail(err, MS_STORE, "%s: the store cannot be looked for: %s", db->path, strerror(errno));
}

static struct db *new_store(const char *path, unsigned flags, ms_error *err) {
  struct db *db = calloc(1, sizeof *db);
  if (!db) abort();
  db->read_only = flags & DB_READ_ONLY;
  db->walk = flags & (DB_WALK_ALL | DB_WALK_NONE);
  db->lock = -1;
  db->path = path ? strdup(path) : default_path(err);
  bool is_new = false, ok = db->path && follow_link(db, err) && look_for(db, &is_new, err);
  if (ok && is_new && (db->read_only || !(flags & DB_CREATE)))
    ok = ms_fail(err, MS_STORE, "%s: there is no store; tuning makes one", db->path);
  if (ok && is_new && !(flags & DB_AT_ONCE) && may_make(db->path)) db->pending = open_pending(db);
  if (ok && is_new && !db->pending) ok = make_folders(db, err);
  if (ok && db_claim(db, err)) return db;
  db_close(db);
  return NULL;
}

struct db *db_open(const char *path, unsigned flags, ms_error *err) {
  struct db *db = new_store(path, flags, err);
  if (db && db->pending) return db;
  if (db && looks_like_store(db, err) && db_open_environment(db, err) && (db->claim || db_claim(db, err))) return db;
  db_close(db);
  return NULL;
}

/* A store to rewrite the file of: claimed, not opened. */
struct db *db_name_store(const char *path, ms_error *err) {
  return new_store(path, 0, err);
}

void db_close(struct db *db) {
  if (!db) return;
  db_close_environment(db);
  db_disclaim(db);
  if (db->forget) db->forget(db);
  free(db->held);
  free(db->damage.at);
  free(db->path);
  free(db);
}

const char *db_path(const struct db *db) { return db->path; }

void db_id_text(const db_id *id, char out[DB_ID_TEXT]) {
  assert(id);
  static const char DIGITS[] = "0123456789abcdef";
  for (int i = 0; i < 16; i++) {
    out[2 * i] = DIGITS[id->bytes[i] >> 4];
    out[2 * i + 1] = DIGITS[id->bytes[i] & 15];
  }
  out[32] = 0;
}
