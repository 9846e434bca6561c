/* Any bytes as a line of TVM's tuning records: what is read is written and read again, and its trace judged. */
#include "db/db.h"
#include "support/forms.h"
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* A target given as text may say what no object does, so the lines are compared. */
static void check_written(const struct db_tuning *tuning) {
  struct db_tuning again;
  ms_error err = {0};
  char *line = db_write_tuning(tuning);
  if (!line) return; /* what TVM or JSON lacks is in it */
  if (!db_read_tuning(line, strlen(line), &again, &err)) fuzz_stop(line, err.message);
  char *written = db_write_tuning(&again);
  if (!written || strcmp(line, written) != 0) fuzz_stop(line, written ? written : "is not written again");
  if (again.workload != tuning->workload || again.runs != tuning->runs || !same_trace(again.trace, tuning->trace))
    fuzz_stop("another record", line);
  free(written);
  free(line);
  db_clear_tuning(&again);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz_mutate(FUZZ_JSON, data, size, most, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct db_tuning tuning;
  ms_error err = {0};
  if (!db_read_tuning((const char *)data, size, &tuning, &err)) {
    fuzz_check_refusal(&err);
    return 0;
  }
  check_written(&tuning);
  fuzz_judge_trace(tuning.trace);
  db_clear_tuning(&tuning);
  return 0;
}
