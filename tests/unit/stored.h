/* A store with one workload, made for each test, and records for it. */
#ifndef MSCHED_TESTS_STORED_H
#define MSCHED_TESTS_STORED_H

#include "db/db.h"
#include "support/stored_function.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
  char folder[64], path[96];
  struct tir *ir;
  struct db *db;
  db_id workload;
  void *trace;
  size_t trace_bytes;
};

static struct db *open_store(struct fixture *x) {
  ms_error err;
  memset(&err, 0, sizeof err);
  struct db *db = db_open(x->path, DB_CREATE, &err);
  if (!db) fail_msg("%s", err.message);
  return db;
}

static int setup(void **state) {
  static struct fixture x;
  ms_error err = {0};
  memset(&x, 0, sizeof x);
  strcpy(x.folder, "/tmp/msched-db-XXXXXX");
  assert_non_null(mkdtemp(x.folder));
  snprintf(x.path, sizeof x.path, "%s/store.db", x.folder);
  x.ir = tir_read(FUNCTION, strlen(FUNCTION), "f", &err);
  assert_non_null(x.ir);
  x.db = open_store(&x);
  assert_true(db_put_workload(x.db, x.ir, 1, &x.workload, &err));
  struct vm_trace *trace = vm_trace_new();
  x.trace = vm_write_binary(trace, &x.trace_bytes);
  vm_trace_free(trace);
  *state = &x;
  return 0;
}

static int teardown(void **state) {
  struct fixture *x = *state;
  db_close(x->db);
  tir_free(x->ir);
  free(x->trace);
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", x->folder);
  return system(command);
}

static struct db_record record(struct fixture *x, uint64_t module, double seconds, enum db_status status) {
  return (struct db_record){.workload = x->workload,
                            .target = "llvm -mcpu=x",
                            .trace = x->trace,
                            .trace_bytes = x->trace_bytes,
                            .module_hash = module,
                            .status = status,
                            .seconds = seconds,
                            .low = seconds,
                            .high = seconds,
                            .runs = 3,
                            .reason = "",
                            .versions = "1",
                            .when = 5};
}

static inline bool count_record(void *data, const struct db_record *r) {
  assert_true(data && r);
  ++*(int *)data;
  return true;
}

/* Those that can be read. */
static inline int count_records(struct db *db) {
  int n = 0;
  ms_error err = {0};
  assert_true(db_each_record(db, NULL, NULL, count_record, &n, &err));
  return n;
}

#define STORED_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
