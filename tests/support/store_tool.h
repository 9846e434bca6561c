/* What programs share that spoil a store from several processes: a workload, an empty trace, draws, an end by a
 * message. */
#ifndef MSCHED_TESTS_STORE_TOOL_H
#define MSCHED_TESTS_STORE_TOOL_H

#include "db/db.h"
#include "support/stored_function.h"
#include "vm/vm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state;

static inline uint32_t draw(uint32_t below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % below;
}

static inline _Noreturn void stop(const char *what, const ms_error *err) {
  fprintf(stderr, "%s: %s\n", what, err ? err->message : "");
  exit(1);
}

/* Puts the workload of all records. */
static inline void put_workload(struct db *db, db_id *out) {
  ms_error err = {0};
  struct tir *ir = tir_read(FUNCTION, strlen(FUNCTION), "f", &err);
  if (!ir || !db_put_workload(db, ir, 1, out, &err)) stop("a workload", &err);
  tir_free(ir);
}

/* A trace without instructions; the caller's to free(). */
static inline void *empty_trace(size_t *bytes) {
  struct vm_trace *empty = vm_trace_new();
  void *trace = vm_write_binary(empty, bytes);
  vm_trace_free(empty);
  return trace;
}

#endif
