/* Any bytes as lines to be taken into a store, our own or TVM's: it stays sound, and another takes all that it exports.
 */
#include "db/db.h"
#include "support/case.h"
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[40];
static char path[64];

static void remove_all(void) {
  char lock[80];
  snprintf(lock, sizeof lock, "%s-lock", path);
  unlink(path);
  unlink(lock);
  rmdir(folder);
}

/* An empty store. */
static struct db *open_store(void) {
  ms_error err = {0};
  char lock[80];
  if (!*path) {
    /* in memory where there is such a folder: each import is made sure on disk */
    snprintf(folder, sizeof folder, "%s/msched-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) fuzz_stop("mkdtemp", folder);
    snprintf(path, sizeof path, "%s/store", folder);
    atexit(remove_all);
  }
  snprintf(lock, sizeof lock, "%s-lock", path);
  unlink(path);
  unlink(lock);
  struct db *db = db_open(path, DB_CREATE, &err);
  if (!db) fuzz_stop("a store", err.message);
  return db;
}

static char *export_all(struct db *db, size_t *size) {
  ms_error err = {0};
  char *text = NULL;
  FILE *out = open_memstream(&text, size);
  if (!out || !db_export_json(db, out, &err)) fuzz_stop("the export", err.message);
  fclose(out);
  return text;
}

static void check_sound(struct db *db) {
  ms_error err = {0};
  char *report = NULL;
  size_t size;
  FILE *out = open_memstream(&report, &size);
  int64_t problems = db_check(db, out, &err);
  fclose(out);
  if (problems) fuzz_stop("the store", problems < 0 ? err.message : report);
  free(report);
}

/* What TVM's records are of. */
static struct db_workload workload(void) {
  static struct tir *ir;
  ms_error err = {0};
  if (!ir) {
    char *text = case_read_file(TEST_ROOT "/random/workloads/matmul_bias_relu.py");
    ir = text ? tir_read(text, strlen(text), "workload", &err) : NULL;
    if (!ir) fuzz_stop("the workload", err.message);
    free(text);
  }
  return (struct db_workload){.ir = ir, .func = tir_find_func(ir, "main")};
}

/* How many lines were refused. */
static uint64_t import(struct db *db, const char *text, size_t size) {
  struct db_workload records_of = workload();
  struct db_import import = {.workloads = &records_of, .workload_count = 1, .target = "llvm"};
  ms_error err = {0};
  FILE *in = fmemopen((void *)text, size, "r");
  if (!in) fuzz_stop("fmemopen", "");
  if (!db_import_json(db, in, "input", &import, &err)) fuzz_stop("the import", err.message);
  fclose(in);
  if (!import.refused != !import.refusals) fuzz_stop("the import", "a line is refused without a word");
  free(import.refusals);
  return import.refused;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  struct db *db = open_store();
  import(db, (const char *)data, size);
  check_sound(db);
  char *text = export_all(db, &size);
  db_close(db);
  db = open_store();
  if (size && import(db, text, size)) fuzz_stop("what was exported is refused", text);
  size_t again_size;
  char *again = export_all(db, &again_size);
  if (size != again_size || memcmp(text, again, size) != 0) fuzz_stop(text, again);
  free(text);
  free(again);
  db_close(db);
  return 0;
}
