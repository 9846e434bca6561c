/* The environment and its tables. Internal to db.
 *
 *   meta       "format" → DB_FORMAT; DB_PREFIXES_KNOWN, where all of that table are known
 *   workloads  id (16 bytes) → seal, name, 0, TVMScript
 *   intrinsics id (16 bytes) → seal, the text of a tensor intrinsic; older stores lack the table
 *   records    id (16 bytes) → seal, the encoded record (record.c)
 *   times      workload (16), target's hash (8), status (1), seconds (8, big-endian order), id (16) → nothing
 *   contexts   id (16 bytes) → seal, what records have in common (packed.c)
 *   sketches   workload (its first 12 bytes), number (4, big-endian) → seal, a trace that others are differences to
 *   tasks      workload (16), target's hash (8) → seal, summary of their records (tasks.c)
 *   outlines   id (16 bytes) → seal, what lists say of a workload (outlines.c)
 *   prefixes   beginning of ids that several records have (4 bytes, the last half) → nothing (prefixes.c)
 * Older stores lack the last five. times is an index: it holds nothing that records do not. A seal is a checksum
 * (seal.c), which entries of format 1 lack. Up to format 2 there was an index of modules, of what a record's id is made
 * from now. */
#ifndef MSCHED_DB_STORE_H
#define MSCHED_DB_STORE_H

#include "db/db.h"

#include <lmdb.h>

enum { DB_FORMAT = 4, DB_FORMAT_UNSEALED = 1 }; /* any from the second to the first is read */
#define DB_PREFIXES_KNOWN "prefixes"
#define DB_MOST_MAP       ((size_t)1 << 40) /* bytes of a store */

/* Entries that were met and are damaged. */
struct db_damaged {
  char kind;
  db_id id;
};
struct db_damage {
  struct db_damaged *at;
  size_t count, reported;
  db_damage_report *report; /* NULL: nobody asks */
  void *data;
};

/* Writes that one commit takes: so many and so large that the map has room for all they may change. */
struct db_part {
  uint32_t writes, most;
  size_t bytes;
  bool is_new; /* of a small store: it may be larger than that */
};

/* Where contexts and sketches are found, and room to put a record together in. */
struct db_parts {
  bool (*find)(void *data, char kind, const void *key, MDB_val *value); /* as it is kept, with its seal */
  void *data;
  bool brief; /* traces are not asked for: a packed record is given without */
  uint8_t *room;
  size_t size;
  uint64_t snapshot;                /* which what is remembered is of; 0: nothing may be, as pages may change */
  struct db_remembered *remembered; /* parts that were found; NULL: none was */
  db_id context;                    /* of the packed record that was read last, */
  uint64_t sketch;                  /* and 1 + the number of its sketch; 0: it has none */
};

/* Sketches of one workload, as they were when they were read last: traces are written as differences to them. */
struct db_sketches;

struct db {
  MDB_env *env;
  MDB_dbi meta, workloads, records, times, intrinsics, contexts, sketches, tasks, outlines,
      prefixes; /* of LMDB; 0: nothing was written */
  int lock;     /* on the lock file, see lock.h; -1: none */
  bool read_only;
  bool pending; /* there is no file yet: an empty environment without a name stands for it until something is written */
  MDB_txn *batch;       /* what is open: writes are nested in it. NULL: each is one of its own */
  struct db_part part;  /* of the batch: what is written with one commit */
  struct in_use *claim; /* the file is open once in the process */
  char *path;
  int64_t longest;               /* bytes that the open file was seen to have: it never shrinks */
  unsigned walk;                 /* DB_WALK_ALL, DB_WALK_NONE, or 0 */
  bool walked;                   /* its pages, all of them: LMDB may have them */
  struct db_snapshot *snapshots; /* of transactions that read */
  uint64_t snapshots_taken;
  struct db_map *map;
  struct db_sound *sound;
  struct {
    uint64_t page, bytes, named_bytes;
    const char *why; /* NULL: none was met */
  } bad;             /* page, in what was read last */
  MDB_txn *reading;  /* of parts */
  struct db_parts parts;
  struct db_sketches *sketches_read; /* NULL: none were */
  void (*forget)(struct db *db);     /* frees what was read of parts and sketches; NULL: nothing was (packed.c) */
  void *held;                        /* what was read last: a record that was found points into it */
  struct db_damage damage;
};

/* Codes beside LMDB's and errno's: the file was removed or replaced, or cut short, while it was open. */
enum { DB_GONE = -1, DB_CUT = -2, DB_DAMAGED = -3 }; /* the last: db->bad says which page */

bool db_failed(struct db *db, int code, const char *what, ms_error *err); /* returns false */
/* EFBIG for what LMDB says of a short write where the file has reached the limit of files' sizes; else `code`. */
int db_limited_code(const char *path, int code);
/* Runs `work`, which writes some `bytes`, in a write transaction; when the map is full, it grows and the work is run
 * again. A batch is committed before, and begun again, where its part is full. */
bool db_write(struct db *db, int (*work)(struct db *db, MDB_txn *txn, void *data), void *data, size_t bytes,
              const char *what, ms_error *err);
/* The same of work that is as much as so many writes. */
bool db_write_many(struct db *db, int (*work)(struct db *db, MDB_txn *txn, void *data), void *data, uint32_t writes,
                   size_t bytes, const char *what, ms_error *err);
bool db_begin_read(struct db *db, MDB_txn **txn, ms_error *err); /* within a batch: the batch's own */
/* The code, or DB_DAMAGED where that is 0 or MDB_NOTFOUND and a page was damaged: what was read may lack some. */
int db_end_read(struct db *db, MDB_txn *txn, int code);
bool db_open_environment(struct db *db, ms_error *err); /* of db->path, with its tables */
void db_close_environment(struct db *db);
struct db *db_name_store(const char *path, ms_error *err); /* one that is there: claimed, not opened */
bool db_claim(struct db *db, ms_error *err);               /* the file that has the name now */
void db_disclaim(struct db *db);
/* Flags of db_open beside the public ones: whether all pages are walked by opening it; neither: those of a small
 * one. */
enum { DB_WALK_ALL = 8, DB_WALK_NONE = 16 };
int64_t db_check_pages_of(struct db *named, FILE *report, ms_error *err); /* db_check_pages */
/* Copies what a record points to, and makes it point there; the copy is the caller's to free(). */
void *db_copy_parts(struct db_record *record);
/* Keeps a copy of what a record holds until the next call that reads. */
void db_hold(struct db *db, struct db_record *record);

/* The text of an intrinsic, valid as long as the transaction. False: *code is LMDB's, MDB_NOTFOUND: it is not there,
 * or damaged. */
bool db_find_intrinsic(struct db *db, MDB_txn *txn, const db_id *id, MDB_val *text, int *code);

db_id db_content_id(const void *bytes, size_t length); /* of what is kept by content */
/* Adds one to what a record names; record->intrinsics is the caller's to free(). */
void db_append_intrinsic(struct db_record *record, const db_id *id, const char *name);
/* Whether it names one so. */
bool db_names_intrinsic(const struct db_record *record, const char *name);

int db_remove_record(struct db *db, MDB_txn *txn, const db_id *id); /* LMDB's code */
bool db_walk_store(struct db *db, ms_error *err);                   /* all its pages, once: LMDB may have them then */
/* access.c: puts a record, with what the indexes say of it; returns LMDB's code. */
int db_insert_record(struct db *db, MDB_txn *txn, const struct db_record *record);
size_t db_most_bytes(const struct db_record *record); /* that it takes, with what it shares, but for unfilled pages */

/* facts.c */
size_t db_fact_bytes(const struct db_fact *fact);
void db_write_fact(const struct db_fact *fact, uint8_t *out); /* so many bytes */

/* record.c: records by themselves */
db_id db_record_id(const struct db_record *record);
size_t db_encode_record(const struct db_record *record, void **out); /* malloc'd */
/* Strings point into `bytes`. False: the bytes are no record. */
bool db_decode_record(const void *bytes, size_t size, struct db_record *out);
enum { DB_TIME_KEY = 49, DB_MODULE_KEY = 40 };
void db_time_key(const struct db_record *record, uint8_t out[DB_TIME_KEY]);

/* transfer.c: takes a line that holds a tuning record. False: err is filled; *store: not the line is at fault. */
bool db_import_tuning(struct db *db, const char *line, size_t length, const struct db_import *import, bool *store,
                      ms_error *err);

#endif
