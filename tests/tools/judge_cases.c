/* judge_cases [--ours] [--lower|--lower-too] [--unsafe] [--seed N] [--verbose] [--theirs] FILE|DIRECTORY…: judges the
 * modules that cases hold by running them, before and after the trace (support/case.h). Prints a line for each that
 * fails, its name first, then totals; exit status 1 if any failed.
 *   --ours  judges what we make of the trace instead of the module in the case
 *   --lower lowers it first, and runs it with real threads; --lower-too: runs it as it is, and then so
 *   --unsafe judges cases with instructions that may change what is computed as if these did not
 *   --theirs the modules are not ours, and neither are the failures: the status is 0 */
#include "support/case.h"
#include "support/lowering.h"

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
  unsigned flags;
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
  bool judged = !lowering_is_case(text);
  for (uint32_t n = 0; judged && (case_after(text, n, title) || n == 0); n++) {
    ms_error err = {0};
    enum verdict verdict = case_judge(text, title, base_name(path), totals->flags, totals->seed, &err);
    totals->counts[verdict]++;
    bool named = strcmp(title, "after");
    snprintf(name, sizeof name, "%s%s%s", base_name(path), named ? " " : "", named ? title : "");
    if (verdict == CASE_FAILED) print_failure(name, err.message, totals->verbose);
  }
  free(text);
  return true;
}

/* A file, or the cases of a directory and those below it, in order of name. */
static bool judge_path(const char *path, struct totals *totals) {
  struct case_paths paths = case_find(path);
  bool ok = true;
  for (uint32_t i = 0; i < paths.count; i++) ok = ok && judge_file(paths.at[i], totals);
  case_free_paths(&paths);
  return ok;
}

int main(int argc, char **argv) {
  static const char *const names[CASE_VERDICTS] = {"equal", "refused", "unsafe", "failed"};
  struct totals totals = {.seed = 1};
  bool theirs = false;
  clock_t start = clock();
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      totals.seed = strtoull(argv[++i], NULL, 0);
    else if (!strcmp(argv[i], "--verbose"))
      totals.verbose = true;
    else if (!strcmp(argv[i], "--ours"))
      totals.flags |= CASE_OURS;
    else if (!strcmp(argv[i], "--lower"))
      totals.flags |= CASE_LOWERED;
    else if (!strcmp(argv[i], "--lower-too"))
      totals.flags |= CASE_LOWERED_TOO;
    else if (!strcmp(argv[i], "--unsafe"))
      totals.flags |= CASE_ANY;
    else if (!strcmp(argv[i], "--theirs"))
      theirs = true;
    else if (!judge_path(argv[i], &totals))
      return 2;
  }
  for (int v = 0; v < CASE_VERDICTS; v++)
    fprintf(stderr, "%u %s%s", totals.counts[v], names[v], v + 1 < CASE_VERDICTS ? ", " : "");
  fprintf(stderr, "; %.2f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
  return totals.counts[CASE_FAILED] && !theirs ? 1 : 0;
}
