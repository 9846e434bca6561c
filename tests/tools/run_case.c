/* run_case [--seed N] [--verbose] [--peer] FILE…: judges cases by running them (support/case.h). Prints a line for each
 * that fails, its name first, then totals; exit status 1 if any failed. --peer: the module after the trace is not ours,
 * and a failure is the peer's: the status is 0. */
#include "support/case.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static void print_failure(const char *name, const char *message, bool whole) {
  printf("%s%c", name, whole ? '\n' : ' ');
  for (const char *c = message; *c && (whole || *c != '\n'); c++) putchar(*c);
  printf(whole ? "\n\n" : "\n");
}

int main(int argc, char **argv) {
  static const char *const names[CASE_VERDICTS] = {"equal", "refused", "unsafe", "failed"};
  uint32_t counts[CASE_VERDICTS] = {0};
  uint64_t seed = 1;
  bool verbose = false, peer = false;
  clock_t start = clock();
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      seed = strtoull(argv[++i], NULL, 0);
    else if (!strcmp(argv[i], "--verbose"))
      verbose = true;
    else if (!strcmp(argv[i], "--peer"))
      peer = true;
    else {
      ms_error err = {0};
      char *text = case_read_file(argv[i]);
      if (!text) {
        fprintf(stderr, "%s: cannot be read\n", argv[i]);
        return 2;
      }
      enum verdict verdict = case_judge(text, base_name(argv[i]), seed, &err);
      free(text);
      counts[verdict]++;
      if (verdict == CASE_FAILED) print_failure(base_name(argv[i]), err.message, verbose);
    }
  }
  for (int v = 0; v < CASE_VERDICTS; v++)
    fprintf(stderr, "%u %s%s", counts[v], names[v], v + 1 < CASE_VERDICTS ? ", " : "");
  fprintf(stderr, "; %.2f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
  return counts[CASE_FAILED] && !peer ? 1 : 0;
}
