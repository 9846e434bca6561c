/* random_sequences [--workloads DIRECTORY] [--kinds KIND,…] [--seed N] [--count N] [--least N] [--keep-going]
 *                  [--workload NAME] [--trace FILE]
 *
 * Sequences of random instructions, a seed each, on the workloads in turn. Each ends when it has the length drawn for
 * it. What must hold: a refusal leaves the schedule as it was; after an instruction the verifier holds; the trace,
 * written and read, gives the module again; and the module computes what the unscheduled function does, by the
 * interpreter, and for one in eight also lowered and compiled. Prints what was proposed, accepted and refused, by kind.
 *
 * Runs seeds N, N + 1, … in processes of a few hundred. When one fails, its seed, its workload and its trace, made as
 * small as it gets, are printed; the status is 1. --least: every kind must have been accepted so many times, and the
 * mean length be 6. --kinds: only these are proposed. --keep-going: goes on after a failure. --trace: performs one
 * trace (JSON) instead. */
#include "random.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BATCH = 250, EXPENSIVE = 400000, BUILD_EVERY = 8 };

const struct row rows[] = {
#define ROW(kind, weight, proposer) {#kind, weight, propose_##proposer},
#include "kinds.def"
#undef ROW
};
const uint32_t row_count = sizeof rows / sizeof *rows;

/* The rows of kinds that there are and that are safe. */
struct choice {
  enum vm_kind kind[sizeof rows / sizeof *rows];
  uint32_t row[sizeof rows / sizeof *rows], count, total;
};

struct runner {
  struct workload workloads[MOST_WORKLOADS];
  uint32_t workload_count;
  struct vm_intrinsics *intrinsics;
  struct choice choice;
  struct shared *shared;
  uint64_t first, end; /* of a batch */
};

/* ---- Setting out ---- */

/* Whether a kind is in a list of names with commas between them; an empty list names all. */
static bool is_named(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
    if (strcspn(at, ",") == length && !memcmp(at, name, length)) return true;
  return !*list;
}

static bool choose_rows(struct choice *choice, const char *kinds) {
  bool known[VM_KIND_COUNT] = {false}, all = true;
  for (uint32_t i = 0; i < row_count; i++) {
    enum vm_kind kind = vm_find_kind(rows[i].kind, strlen(rows[i].kind));
    if (kind == VM_KIND_COUNT) continue;
    known[kind] = true;
    if (!vm_kind_info(kind)->safe || !rows[i].weight || !is_named(kinds, rows[i].kind)) continue;
    choice->kind[choice->count] = kind;
    choice->row[choice->count++] = i;
    choice->total += rows[i].weight;
  }
  for (enum vm_kind kind = 0; kind < VM_KIND_COUNT; kind++)
    if (!known[kind]) {
      fprintf(stderr, "%s has no row in tests/random/kinds.def\n", vm_kind_info(kind)->name);
      all = false;
    }
  return all;
}

static int is_script(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 3 && !strcmp(entry->d_name + length - 3, ".py");
}

static bool read_workload(struct runner *r, const char *directory, const char *name) {
  char path[1024];
  ms_error err = {0};
  struct workload *w = &r->workloads[r->workload_count];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  snprintf(w->name, sizeof w->name, "%.*s", (int)strlen(name) - 3, name);
  char *text = case_read_file(path);
  w->ir = text ? tir_read(text, strlen(text), path, &err) : NULL;
  free(text);
  if (!w->ir || !tir_verify(w->ir, &err)) {
    fprintf(stderr, "%s: %s\n", path, err.message);
    return false;
  }
  w->func = tir_find_func(w->ir, "main");
  w->cost = cost_of(w->ir, w->func);
  w->intrinsics = r->intrinsics;
  r->workload_count++;
  return true;
}

static bool read_workloads(struct runner *r, const char *directory) {
  struct dirent **entries;
  int count = scandir(directory, &entries, is_script, alphasort);
  bool ok = count > 0;
  if (!ok) fprintf(stderr, "%s: no workloads\n", directory);
  for (int i = 0; i < count; i++) {
    ok = ok && r->workload_count < MOST_WORKLOADS && read_workload(r, directory, entries[i]->d_name);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  return ok;
}

static bool read_intrinsics(struct runner *r, const char *path) {
  ms_error err = {0};
  char *text = case_read_file(path);
  r->intrinsics = text ? vm_read_intrinsics(text, path, &err) : NULL;
  free(text);
  if (!r->intrinsics) fprintf(stderr, "%s: %s\n", path, err.message);
  return r->intrinsics;
}

/* ---- One sequence ---- */

static void propose_one(struct grow *g, const struct choice *choice) {
  uint32_t at = below(g, choice->total), i = 0;
  while (at >= rows[choice->row[i]].weight) at -= rows[choice->row[i++]].weight;
  rows[choice->row[i]].propose(g, choice->kind[i]);
}

static const struct workload *workload_of(const struct runner *r, uint64_t seed) {
  return &r->workloads[seed % r->workload_count];
}

/* Not in step with the workloads. */
static bool builds(const struct runner *r, uint64_t seed) {
  return (seed + seed / r->workload_count) % BUILD_EVERY == 0;
}

static void run_sequence(struct runner *r, uint64_t seed) {
  struct shared *shared = r->shared;
  const struct workload *w = workload_of(r, seed);
  struct grow g;
  shared->seed = seed;
  grow_start(&g, w, seed, shared);
  g.plain = builds(r, seed);
  g.threads = !g.plain && once_in(&g, 2);
  uint32_t want = 6 + below(&g, 7), tries = 0;
  while (!shared->trouble && !g.unfinished && g.length < want && tries++ < want * 8) {
    propose_one(&g, &r->choice);
    const struct tir *ir = g.schedule->ir;
    if (cost_of(ir, tir_find_func(ir, "main")) > EXPENSIVE + 4 * w->cost) break;
  }
  if (!shared->trouble && (g.unfinished || judge(&g, seed, g.plain))) {
    shared->tally.sequences++;
    shared->tally.length += g.length;
  } else if (!shared->json[0]) {
    char *json = vm_write_json(&g.schedule->trace);
    if (json) snprintf(shared->json, sizeof shared->json, "%s", json);
    free(json);
  }
  grow_end(&g);
}

static void run_batch(void *data) {
  struct runner *r = data;
  for (uint64_t seed = r->first; seed < r->end && !r->shared->trouble; seed++) {
    limit_time();
    run_sequence(r, seed);
  }
}

/* ---- All of them ---- */

static void print_failure(const struct runner *r, uint64_t seed, const struct shared *shared) {
  printf("FAILED: seed %llu, workload %s: %s\n%s\n%s\n\n", (unsigned long long)seed, workload_of(r, seed)->name,
         trouble_names[shared->trouble], shared->message, shared->json);
  fflush(stdout);
}

/* Runs it again with its trace written before each instruction, then makes that small. */
static void tell_failure(struct runner *r, uint64_t seed) {
  struct shared *shared = r->shared;
  struct tally kept = shared->tally;
  enum trouble trouble = shared->trouble;
  r->first = seed, r->end = seed + 1;
  shared->log = true;
  shared->trouble = NO_TROUBLE;
  run_apart(shared, run_batch, r, false);
  shared->log = false;
  if (!shared->trouble)
    report(shared, trouble, "only after the sequences from %llu on", (unsigned long long)(seed / BATCH * BATCH));
  else
    minimise(shared, workload_of(r, seed), seed, builds(r, seed));
  print_failure(r, seed, shared);
  shared->tally = kept;
}

static uint64_t run_seeds(struct runner *r, uint64_t first, uint64_t count, bool keep_going) {
  uint64_t failures = 0, seed = first, end = first + count;
  while (seed < end && (keep_going || !failures)) {
    r->first = seed;
    r->end = end < seed + BATCH ? end : seed + BATCH;
    uint64_t stop = r->end;
    r->shared->trouble = NO_TROUBLE;
    r->shared->seed = seed;
    run_apart(r->shared, run_batch, r, false);
    if (!r->shared->trouble) {
      seed = stop;
      continue;
    }
    failures++;
    seed = r->shared->seed + 1;
    tell_failure(r, seed - 1);
  }
  return failures;
}

static bool is_proposed(const struct choice *choice, enum vm_kind kind) {
  uint32_t i = 0;
  while (i < choice->count && choice->kind[i] != kind) i++;
  return i < choice->count;
}

static bool print_tally(const struct runner *r, uint64_t least) {
  const struct tally *t = &r->shared->tally;
  bool enough = true;
  printf("%-24s %10s %10s %10s\n", "kind", "proposed", "accepted", "refused");
  for (enum vm_kind kind = 0; kind < VM_KIND_COUNT; kind++) {
    printf("%-24s %10llu %10llu %10llu\n", vm_kind_info(kind)->name, (unsigned long long)t->proposed[kind],
           (unsigned long long)t->accepted[kind], (unsigned long long)t->refused[kind]);
    if (!is_proposed(&r->choice, kind) || t->accepted[kind] >= least) continue;
    fprintf(stderr, "%s was accepted less than %llu times\n", vm_kind_info(kind)->name, (unsigned long long)least);
    enough = false;
  }
  double mean = t->sequences ? (double)t->length / (double)t->sequences : 0;
  printf("%llu sequences, mean accepted length %.2f; %llu judged by the interpreter (%llu too large), %llu lowered, "
         "%llu compiled; %llu traces replayed; %llu texts compared after refusals\n",
         (unsigned long long)t->sequences, mean, (unsigned long long)t->judged, (unsigned long long)t->too_large,
         (unsigned long long)t->lowered, (unsigned long long)t->built, (unsigned long long)t->replayed,
         (unsigned long long)t->unchanged_texts);
  return enough && (!least || mean >= 6);
}

static int run_trace(struct runner *r, const char *name, const char *path, uint64_t seed) {
  uint32_t i = 0;
  while (i < r->workload_count && strcmp(r->workloads[i].name, name) != 0) i++;
  char *json = case_read_file(path);
  if (i == r->workload_count || !json) {
    fprintf(stderr, "no workload %s, or no file %s\n", name, path);
    return 2;
  }
  replay_apart(r->shared, &r->workloads[i], json, NULL, seed, true);
  printf("%s: %s\n", trouble_names[r->shared->trouble], r->shared->trouble ? r->shared->message : "");
  free(json);
  return r->shared->trouble != NO_TROUBLE;
}

int main(int argc, char **argv) {
  static struct runner runner;
  const char *directory = TEST_ROOT "/random/workloads", *kinds = "", *workload = "", *trace = NULL;
  uint64_t first = 0, count = 200, least = 0;
  bool keep_going = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--keep-going")) {
      keep_going = true;
      continue;
    }
    i++;
    if (!strcmp(argv[i - 1], "--workloads"))
      directory = value;
    else if (!strcmp(argv[i - 1], "--kinds"))
      kinds = value;
    else if (!strcmp(argv[i - 1], "--seed"))
      first = strtoull(value, NULL, 0);
    else if (!strcmp(argv[i - 1], "--count"))
      count = strtoull(value, NULL, 0);
    else if (!strcmp(argv[i - 1], "--least"))
      least = strtoull(value, NULL, 0);
    else if (!strcmp(argv[i - 1], "--workload"))
      workload = value;
    else if (!strcmp(argv[i - 1], "--trace"))
      trace = value;
    else
      return fprintf(stderr, "unknown option %s\n", argv[i - 1]), 2;
  }
  runner.shared = mmap(NULL, sizeof *runner.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (runner.shared == MAP_FAILED || !choose_rows(&runner.choice, kinds) ||
      !read_intrinsics(&runner, TEST_ROOT "/random/intrinsics.py") || !read_workloads(&runner, directory))
    return 1;
  if (trace) return run_trace(&runner, workload, trace, first);
  uint64_t failures = run_seeds(&runner, first, count, keep_going);
  bool enough = print_tally(&runner, least);
  for (uint32_t i = 0; i < runner.workload_count; i++) tir_free(runner.workloads[i].ir);
  vm_intrinsics_free(runner.intrinsics);
  return failures || !enough;
}
