/* db: the store of workloads and records: one LMDB environment in one file. The module's public header.
 *
 * A record is on disk when the call that puts it returns: kill -9 at any instant loses nothing committed. What is read
 * is checked: a store from a stranger is data. A process opens a file once; a store is not used across fork. */
#ifndef MSCHED_DB_H
#define MSCHED_DB_H

#include "tir/tir.h"
#include "vm/vm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct db_id {
  uint8_t bytes[16];
} db_id; /* XXH3-128 of what it names */
enum { DB_ID_TEXT = 33 };
void db_id_text(const db_id *id, char out[DB_ID_TEXT]); /* lower-case hexadecimal */

struct db;
enum { DB_READ_ONLY = 1, DB_CREATE = 2, DB_AT_ONCE = 4 };
/* path NULL: $XDG_DATA_HOME/msched/msched.db, else ~/.local/share/msched/msched.db. DB_CREATE: where there is none, the
 * first write makes the file and its folders, the last of which is said as damage is; until then it reads as empty.
 * DB_AT_ONCE: they are made by opening it. */
struct db *db_open(const char *path, unsigned flags, ms_error *err);
void db_close(struct db *db);
const char *db_path(const struct db *db);
/* Entries carry a checksum. One that is damaged is left out of what is read, and said in a line after the call that met
 * it; `report` must not call the store. */
typedef void db_damage_report(void *data, const char *line);
void db_on_damage(struct db *db, db_damage_report *report, void *data);

/* What is put and deleted from here to the end is written together, which is faster. Any number may be: it is committed
 * in parts, in the order of the calls, the first of 1,000 puts and deletes, the others of 8,000, or of 16 MiB of them;
 * of 200,000 or 128 MiB, where the store had no more than 8 MiB before the part. A part is lost whole where the process
 * dies before it is committed, and those before it are kept; where the machine loses its power before the batch ends,
 * the last of these may be lost as well. So a batch of no more than 1,000 or 16 MiB is all or nothing, unless the
 * process may not have the addresses that a part needs, some 300 MB; where it may not have 2 GB, later parts are
 * smaller. A batch is refused where one is open, as imports have their own. */
bool db_begin_batch(struct db *db, ms_error *err);
bool db_end_batch(struct db *db, ms_error *err);

/* ---- Workloads: one function each, by structural hash, kept as TVMScript with the names that traces refer to. */
db_id db_workload_id(const struct tir *ir, tir_func f); /* what it has in every store */
bool db_put_workload(struct db *db, const struct tir *ir, tir_func f, db_id *out, ms_error *err);
struct tir *db_get_workload(struct db *db, const db_id *id, ms_error *err); /* owned by the caller */
typedef bool db_workload_visit(void *data, const db_id *id, const char *name, uint64_t records);
bool db_each_workload(struct db *db, db_workload_visit *visit, void *data, ms_error *err);
/* What lists say of a workload without reading its function. */
struct db_outline {
  const char *const *arguments; /* borrowed; "float32[8, 4]" each; ends with NULL */
  double floats, integers;      /* operations, as tir_count_work counts them */
  double read_bytes, written_bytes;
};
typedef bool db_outline_visit(void *data, const db_id *id, const struct db_outline *outline);
/* Of those that have one: what older versions put has none until db_compact. visit must not call the store. */
bool db_each_outline(struct db *db, db_outline_visit *visit, void *data, ms_error *err);
/* Whether the workload that is listed so is the function, by this name or another: its records hold for it too. */
bool db_is_workload_of(const db_id *id, const char *listed, const struct tir *ir, tir_func f);

/* ---- Tensor intrinsics that records name, besides those shipped: by content, each the text that vm_write_intrinsics
 * makes of it. A record keeps which it was measured with. */
bool db_put_intrinsic(struct db *db, const char *text, db_id *out, ms_error *err);
typedef bool db_intrinsic_visit(void *data, const db_id *id, const char *text);
bool db_each_intrinsic(struct db *db, db_intrinsic_visit *visit, void *data, ms_error *err);

/* ---- Records */
enum db_status { DB_MEASURED, DB_CENSORED, DB_FAILED, DB_UNMEASURED }; /* the last: chosen by estimate, and not run */
extern const char *const db_status_names[];                            /* ends with NULL */
struct db_record {
  db_id id; /* of (workload, target, module hash, versions): filled by db_put_record */
  db_id workload;
  const char *target; /* canonical text. Strings and bytes are borrowed: from the caller for a put; from the store, by
                         what is read, until the next call on it */
  const void *trace;  /* vm's binary form */
  size_t trace_bytes;
  const void *intrinsics; /* that the trace names: each an id and a name; read by db_next_intrinsic */
  size_t intrinsic_bytes;
  const void *facts; /* of its code and of the device that it ran on: each a name and a value; read by db_next_fact */
  size_t fact_bytes;
  uint64_t module_hash; /* structural hash of the scheduled module */
  enum db_status status;
  double seconds, low, high;
  uint32_t runs;
  const char *reason;   /* of a failure, else "" */
  const char *versions; /* of msched and LLVM: another compiler, another record */
  uint64_t seed, candidate;
  int64_t when; /* seconds since 1970 */
  bool unsafe;  /* the trace may change what is computed */
  bool busy;    /* other programs ran while it was timed: it may be faster */
  bool pinned;  /* the one to use of its workload on its target, whatever is faster */
};
/* What a stranger's record says that cannot be: a number out of its range (bounds.c), a time outside of its interval.
 * False: nothing is wrong. */
enum { DB_WRONG_TEXT = 200 };
bool db_find_wrong_number(const struct db_record *record, char out[DB_WRONG_TEXT]);
/* The moment nearest to it that a record can have, from 1970 to the year 9999: the computer's clock may be wrong. */
int64_t db_when(int64_t seconds);
bool db_put_record(struct db *db, struct db_record *record, ms_error *err);
/* Puts those of the table that the trace names, and has the record say so; record->intrinsics is the caller's to
 * free().
 */
bool db_keep_intrinsics(struct db *db, const struct vm_trace *trace, const struct vm_intrinsics *table,
                        struct db_record *record, ms_error *err);
/* Adds those of a record to a table. False: the store lacks one, or the table holds another of its name. */
bool db_take_intrinsics(struct db *db, const struct db_record *record, struct vm_intrinsics *table, ms_error *err);
/* The intrinsic at byte *at, which is then behind it; name borrowed from the record. False: there is no more. */
bool db_next_intrinsic(const struct db_record *record, size_t *at, db_id *id, const char **name);
/* What is kept of a device besides the record's own fields: "registers", "clock", "name"; whatever a caller names. */
struct db_fact {
  const char *name; /* borrowed, from the caller for adding, from the record by what is read */
  enum { DB_NUMBER, DB_BOOLEAN, DB_TEXT } kind;
  double number;    /* finite; of a boolean 0 or 1 */
  const char *text; /* of a text */
};
/* record->facts is the caller's to free(). A number that is not finite is left out. */
void db_append_fact(struct db_record *record, const struct db_fact *fact);
/* The fact at byte *at, which is then behind it. False: there is no more. */
bool db_next_fact(const struct db_record *record, size_t *at, struct db_fact *out);
/* By id or a prefix of at least 4 digits. 1: found, 0: not there, -1: err (an ambiguous prefix lists the matches). */
int db_find_record(struct db *db, const char *prefix, struct db_record *out, ms_error *err);
/* The id alone, of a record that may be damaged. */
int db_find_id(struct db *db, const char *prefix, db_id *out, ms_error *err);
/* Those of all records whose ids start so, in order, at most `most` of them: how many; -1: err. A range read. */
int db_match_ids(struct db *db, const char *prefix, db_id *out, int most, ms_error *err);
/* The record of a module on a target, measured by the same versions. */
int db_find_module(struct db *db, const db_id *workload, const char *target, uint64_t module_hash, const char *versions,
                   struct db_record *out, ms_error *err);
void db_short_id(struct db *db, const db_id *id, char out[DB_ID_TEXT]); /* shortest unique prefix, at least 7 digits */
void db_short_ids(struct db *db, const db_id *ids, size_t count, char (*out)[DB_ID_TEXT]); /* of many at once */
/* Records by run time, fastest first, those that are not measured last; workload or target NULL: all. visit returns
 * false to stop. A range read: the best k cost k. */
typedef bool db_visit(void *data, const struct db_record *record);
bool db_each_record(struct db *db, const db_id *workload, const char *target, db_visit *visit, void *data,
                    ms_error *err);
/* The same of a part of them: the first, then every step-th of the others. What is passed over costs its key. */
struct db_sample {
  uint64_t first, step;
};
bool db_each_sampled(struct db *db, const db_id *workload, const char *target, struct db_sample sample, db_visit *visit,
                     void *data, ms_error *err);
/* All records without their traces, which takes less. */
bool db_each_result(struct db *db, db_visit *visit, void *data, ms_error *err);
bool db_delete_record(struct db *db, const db_id *id, ms_error *err);

/* ---- Tasks: workloads on targets, by their summaries, whatever the number of their records */
enum { DB_MOST_BESTS = 16 };
struct db_best { /* what lists show of a record that was measured */
  db_id id;
  double seconds, limit_seconds;
  const char *versions, *limit;       /* limit: what it is, "" and limit_seconds 0: the record has none */
  bool unsafe, busy, pinned, ordered; /* ordered: the trace keeps the order of reductions */
};
struct db_task {
  db_id workload;
  const char *target; /* borrowed, as the devices */
  uint64_t counts[4]; /* of records, by status */
  int64_t last;       /* seconds since 1970 */
  bool has_best, has_pinned;
  db_id best, pinned;          /* the fastest that was measured; one that is pinned */
  double seconds;              /* of the best */
  const char *const *devices;  /* that records name; ends with NULL */
  const struct db_best *bests; /* the first so many of those that were measured, the fastest first; where there are more
                                  than DB_MOST_BESTS, at least some of them, or none */
  uint32_t best_count;
  bool has_limits; /* some record has a limit, or it is not known whether one has */
};
typedef bool db_task_visit(void *data, const struct db_task *task);
/* Those of a workload, or all; in an order of their own. visit must not call the store, and returns false to stop. */
bool db_each_task(struct db *db, const db_id *workload, db_task_visit *visit, void *data, ms_error *err);
/* Makes summaries that deletions or an older store left stale: until then they cost a walk over the records. */
bool db_refresh_tasks(struct db *db, ms_error *err);

/* ---- TVM's tuning records: lines of MetaSchedule's JSONDatabase, [workload, [trace, run_secs, target, args_info]] */
enum { DB_MOST_RANK = 32 };
struct db_tensor {
  char type[24];
  uint32_t rank;
  int64_t shape[DB_MOST_RANK];
};
struct db_tuning {
  uint64_t workload; /* its number among those that the lines go with */
  struct vm_trace *trace;
  double *seconds; /* of each run; none: it failed */
  uint32_t runs;
  char *target;           /* "llvm -mcpu=znver4 -num-cores=8"; NULL: the line does not say */
  struct db_tensor *args; /* none: the line does not say */
  uint32_t arg_count;
};
/* Reads a line, a stranger's bytes, which need not end with a zero. False: err is filled, and *out holds nothing. */
bool db_read_tuning(const char *text, size_t length, struct db_tuning *out, ms_error *err);
void db_clear_tuning(struct db_tuning *tuning); /* frees what it holds */
/* Without a newline; the caller's to free(). NULL: it has an instruction that TVM lacks, or a number that JSON lacks.
 */
char *db_write_tuning(const struct db_tuning *tuning);

/* The functions that they number: a line each of its database_workload.json, [hash, graph of nodes]. Reads one, a
 * stranger's bytes. NULL: err is filled. Owned by the caller. */
struct tir *db_read_workload(const char *text, size_t length, ms_error *err);
/* Such a line, without a newline; the caller's to free(). NULL: the function has what TVM lacks, and err says what. */
char *db_write_workload(const struct tir *ir, tir_func f, ms_error *err);

/* ---- Housekeeping */
/* Reads everything: each index entry has its record and the reverse, each trace decodes, each workload parses. Problems
 * go to `report`, a line each. Returns their number, or -1 with err. */
int64_t db_check(struct db *db, FILE *report, ms_error *err);
/* The same of the pages of a file, which no store has open in this process: a file with damaged ones cannot be opened.
 */
int64_t db_check_pages(const char *path, FILE *report, ms_error *err);
bool db_compact(struct db *db, ms_error *err); /* rewrites the file, atomically; no other process has it open */
/* Copies what the store holds now to a file that is not there yet, compacted, beside processes that write; it has the
 * name when it is whole, on disk and checked. Gives the problems of its entries, which the store has too, a line each
 * to `report`; -1: there is no copy, and err is filled. */
int64_t db_backup(struct db *db, const char *to, FILE *report, ms_error *err);
/* Which records of a task go: those that all rules given hold of; pinned ones stay, and the fastest that were
 * measured. */
struct db_prune {
  uint64_t keep;      /* how many of the fastest stay */
  int64_t before;     /* measured before this time; 0: any time */
  double within;      /* slower than so many times the task's best, or not measured; 0: any */
  const char *device; /* with this in the device's name, of one without a name in the target, in any case; NULL: any */
  bool dry;           /* none is deleted; they are counted */
};
struct db_pruned {
  uint64_t kept, deleted;
};
bool db_prune_task(struct db *db, const db_id *workload, const char *target, const struct db_prune *rule,
                   struct db_pruned *out, ms_error *err);
struct db_repair {
  bool needed;                                    /* else the file stays as it is */
  uint64_t pages, records, workloads, intrinsics; /* pages that are damaged; entries that were kept */
  uint64_t dropped;                               /* entries that are damaged, or lack what they name */
  char *backup;                                   /* the file as it was; the caller's to free() */
};
/* Writes what can be read of a file to a new one, which takes its place, with new indexes; also from pages that are
 * damaged or lost. What is damaged goes to `report`, a line each. No store has it open, here or in another process. */
bool db_repair_file(const char *path, FILE *report, struct db_repair *out, ms_error *err);
bool db_export_json(struct db *db, FILE *out, ms_error *err); /* lines: workloads, intrinsics, records */
/* A line each record, without its trace, behind one of the columns' names: RFC 4180. */
bool db_export_csv(struct db *db, FILE *out, ms_error *err);
struct db_workload {
  struct tir *ir;
  tir_func func;
  const char *why; /* it could not be read, where ir is NULL */
};
struct db_import {
  /* What TVM's tuning records need; all borrowed, or empty. */
  const struct db_workload *workloads; /* those that they name by number */
  uint32_t workload_count;
  const char *target; /* of those that name none */
  /* What traces name besides the shipped: kept by content, as those of a measurement are. NULL: none. */
  const struct vm_intrinsics *intrinsics;
  /* Makes a target's text canonical; where it says false, or is NULL, the text stays. */
  bool (*name_target)(const char *text, char *out, size_t size);
  /* Filled: */
  uint64_t added, refused;
  uint64_t lines; /* that are not blank */
  char *refusals; /* "file:line: why", a newline after each; the caller's to free(). NULL: none */
};
/* Takes lines of db_export_json and of TVM's tuning records. Those are replayed on their workloads, with the decisions
 * that fit. A line that cannot be taken is refused, the others are kept; a record that the store has of a later time
 * stays as it is. Lines are kept in batches. False: the store cannot be written; the batches before are kept. */
bool db_import_json(struct db *db, FILE *in, const char *file, struct db_import *import, ms_error *err);
struct db_merge {
  uint64_t added, known; /* records that were new, and that both stores had */
  uint64_t refused;      /* that lack what they name, or cannot be */
  char *refusals;        /* "record ID: why" of the first, a newline after each; the caller's to free(). NULL: none */
};
/* Takes what another store has, which is another file: workloads, intrinsics, records. Of a record that both have the
 * later is kept, pinned where one of the two is; a damaged one is left out. Records are kept in batches. False: one of
 * the stores cannot be read or written; the batches before are kept. */
bool db_merge(struct db *to, struct db *from, struct db_merge *out, ms_error *err);
/* Writes what was measured of a workload, or failed, as TVM's tuning records of workload `number`. Records that were
 * censored or not run, or hold instructions or tensor intrinsics that TVM lacks, are left out and counted. registered:
 * intrinsics that it has besides its own; NULL: none. */
bool db_export_tuning(struct db *db, const db_id *workload, uint64_t number, const struct vm_intrinsics *registered,
                      FILE *out, uint64_t *written, uint64_t *left_out, ms_error *err);

#ifdef __cplusplus
}
#endif
#endif
