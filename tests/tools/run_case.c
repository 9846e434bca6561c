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

struct totals {
  uint32_t counts[CASE_VERDICTS];
  uint64_t seed;
  bool verbose;
};

static bool judge_file(const char *path, struct totals *totals) {
  char *text = case_read_file(path), title[64] = "after", name[256];
  if (!text) {
    fprintf(stderr, "%s: cannot be read\n", path);
    return false;
  }
  for (uint32_t n = 0; case_after(text, n, title) || n == 0; n++) {
    ms_error err = {0};
    enum verdict verdict = case_judge(text, title, base_name(path), totals->seed, &err);
    totals->counts[verdict]++;
    bool named = strcmp(title, "after");
    snprintf(name, sizeof name, "%s%s%s", base_name(path), named ? " " : "", named ? title : "");
    if (verdict == CASE_FAILED) print_failure(name, err.message, totals->verbose);
  }
  free(text);
  return true;
}

int main(int argc, char **argv) {
  static const char *const names[CASE_VERDICTS] = {"equal", "refused", "unsafe", "failed"};
  struct totals totals = {.seed = 1};
  bool peer = false;
  clock_t start = clock();
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      totals.seed = strtoull(argv[++i], NULL, 0);
    else if (!strcmp(argv[i], "--verbose"))
      totals.verbose = true;
    else if (!strcmp(argv[i], "--peer"))
      peer = true;
    else if (!judge_file(argv[i], &totals))
      return 2;
  }
  for (int v = 0; v < CASE_VERDICTS; v++)
    fprintf(stderr, "%u %s%s", totals.counts[v], names[v], v + 1 < CASE_VERDICTS ? ", " : "");
  fprintf(stderr, "; %.2f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
  return totals.counts[CASE_FAILED] && !peer ? 1 : 0;
}
