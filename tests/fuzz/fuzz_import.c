/* Any bytes as an export of a store, read into one: it stays sound, and what it exports is read by another. */
#include "db/db.h"
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

static bool import(struct db *db, const char *text, size_t size, ms_error *err) {
  uint64_t added;
  FILE *in = fmemopen((void *)text, size, "r");
  if (!in) fuzz_stop("fmemopen", "");
  bool done = db_import_json(db, in, "input", &added, err);
  fclose(in);
  return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ms_error err = {0};
  if (!size) return 0;
  struct db *db = open_store();
  if (!import(db, (const char *)data, size, &err)) fuzz_check_refusal(&err);
  check_sound(db);
  char *text = export_all(db, &size);
  db_close(db);
  db = open_store();
  if (size && !import(db, text, size, &err)) fuzz_stop(text, err.message);
  size_t again_size;
  char *again = export_all(db, &again_size);
  if (size != again_size || memcmp(text, again, size) != 0) fuzz_stop(text, again);
  free(text);
  free(again);
  db_close(db);
  return 0;
}
