/* random_sequences [--kinds KIND,…] [--unsafe] [--seed N] [--count N] [--instructions N] [--jobs N] [--least N] [--emit
 * N]
 *                  [--keep-going] [--lower-all] [--workloads DIRECTORY] [--workload NAME] [--trace FILE]
 *
 * Sequences of random instructions, a seed each, on the workloads in turn. Each ends when it has the length drawn for
 * it. What must hold: a refusal leaves the schedule as it was; after an instruction the verifier holds; the trace,
 * written and read, gives the module again; and the module computes what the unscheduled function does, by the
 * interpreter, and for one in eight also lowered and compiled. Prints what was proposed, accepted and refused, by kind,
 * and totals as the last line.
 *
 * Runs seeds N, N + 1, … in processes of a few hundred. When one fails, its seed, its workload and its trace, made as
 * small as it gets, are printed; the status is 1.
 * --unsafe: in one of four sequences, instructions are proposed too that may change what is computed; where one was
 *   accepted, results are not compared, but each form of the trace must give the module again; the verifier holds as
 *   vm_verify says.
 * --instructions: stops once so many instructions were performed, whatever --count says.
 * --jobs: so many processes at a time, each with its own seeds: its share of --count, or SEEDS_OF_JOB apart.
 * --emit: one in N of those that are compiled is too as C source, by cc. Without it, none is.
 * --least: every kind must have been accepted so many times, and the mean length be 6.
 * --kinds: only these are proposed.
 * --keep-going: goes on after a failure.
 * --lower-all: every sequence is made so that it can be lowered, and is lowered; one in eight is compiled still.
 * --trace: performs one trace (JSON) instead. */
#include "random.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 250, EXPENSIVE = 400000, BUILD_EVERY = 8, UNSAFE_EVERY = 4, MOST_JOBS = 64, SEEDS_OF_JOB = 10000000 };

const struct row rows[] = {
#define ROW(kind, weight, proposer) {#kind, weight, propose_##proposer},
#include "kinds.def"
#undef ROW
};
const uint32_t row_count = sizeof rows / sizeof *rows;

/* Rows of kinds that there are. */
struct choice {
  enum vm_kind kind[sizeof rows / sizeof *rows];
  uint32_t row[sizeof rows / sizeof *rows], count, total;
};

struct runner {
  struct workload workloads[MOST_WORKLOADS];
  uint32_t workload_count;
  struct vm_intrinsics *intrinsics;
  struct choice safe, all;
  bool unsafe, keep_going, lower_all;
  uint64_t instructions; /* that are performed at most; 0: any number */
  struct shared *shared; /* this job's */
  uint64_t first, end;   /* of a batch */
};

/* ---- Setting out ---- */

/* Whether a kind is in a list of names with commas between them; an empty list names all. */
static bool is_named(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
    if (strcspn(at, ",") == length && !memcmp(at, name, length)) return true;
  return !*list;
}

static void add_row(struct choice *choice, enum vm_kind kind, uint32_t row) {
  choice->kind[choice->count] = kind;
  choice->row[choice->count++] = row;
  choice->total += rows[row].weight;
}

static bool choose_rows(struct runner *r, const char *kinds) {
  bool known[VM_KIND_COUNT] = {false}, all = true;
  for (uint32_t i = 0; i < row_count; i++) {
    enum vm_kind kind = vm_find_kind(rows[i].kind, strlen(rows[i].kind));
    if (kind == VM_KIND_COUNT) continue;
    known[kind] = true;
    if (!rows[i].weight || !is_named(kinds, rows[i].kind)) continue;
    if (vm_kind_info(kind)->safe) add_row(&r->safe, kind, i);
    add_row(&r->all, kind, i);
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
  if (count > MOST_WORKLOADS) fprintf(stderr, "%s: more than %d workloads\n", directory, MOST_WORKLOADS), ok = false;
  for (int i = 0; i < count; i++) {
    ok = ok && read_workload(r, directory, entries[i]->d_name);
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

/* Not in step with the workloads; nor is the next. */
static bool builds(const struct runner *r, uint64_t seed) {
  return (seed + seed / r->workload_count) % BUILD_EVERY == 0;
}

static enum built built_of(const struct runner *r, uint64_t seed) {
  return builds(r, seed) ? COMPILED : r->lower_all ? LOWERED : INTERPRETED;
}

static bool is_unsafe(const struct runner *r, uint64_t seed) {
  return r->unsafe && seed / r->workload_count % UNSAFE_EVERY == UNSAFE_EVERY - 1;
}

static void run_sequence(struct runner *r, uint64_t seed) {
  struct shared *shared = r->shared;
  const struct workload *w = workload_of(r, seed);
  struct grow g;
  shared->seed = seed;
  grow_start(&g, w, seed, shared);
  enum built built = built_of(r, seed);
  g.plain = built != INTERPRETED;
  g.threads = !g.plain && once_in(&g, 2);
  g.unsafe = is_unsafe(r, seed);
  uint32_t want = 6 + below(&g, 7), tries = 0;
  while (!shared->trouble && !g.open && g.length < want && tries++ < want * 8) {
    propose_one(&g, g.unsafe ? &r->all : &r->safe);
    const struct tir *ir = g.schedule->ir;
    if (cost_of(ir, tir_find_func(ir, "main")) > EXPENSIVE + 4 * w->cost) break;
  }
  if (!shared->trouble && judge(&g, seed, built)) {
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
    minimise(shared, workload_of(r, seed), seed, built_of(r, seed));
  print_failure(r, seed, shared);
  shared->tally = kept;
}

static uint64_t performed(const struct tally *t) {
  uint64_t sum = 0;
  for (enum vm_kind kind = 0; kind < VM_KIND_COUNT; kind++) sum += t->accepted[kind];
  return sum;
}

static void run_seeds(struct runner *r, uint64_t first, uint64_t count) {
  struct shared *shared = r->shared;
  uint64_t seed = first, end = first + count;
  while (seed < end && (r->keep_going || !shared->tally.failures) &&
         (!r->instructions || performed(&shared->tally) < r->instructions)) {
    r->first = seed;
    r->end = end < seed + BATCH ? end : seed + BATCH;
    uint64_t stop = r->end;
    shared->trouble = NO_TROUBLE;
    shared->seed = seed;
    run_apart(shared, run_batch, r, false);
    if (!shared->trouble) {
      seed = stop;
      continue;
    }
    seed = shared->seed + 1;
    tell_failure(r, seed - 1);
    shared->tally.failures++;
  }
}

/* Each job is a process with its own memory and its own seeds; the first's tally becomes that of all. */
static void run_jobs(struct runner *r, struct shared *shares, uint32_t jobs, uint64_t first, uint64_t count) {
  uint64_t share = count ? (count + jobs - 1) / jobs : SEEDS_OF_JOB;
  pid_t children[MOST_JOBS];
  if (r->instructions) r->instructions = (r->instructions + jobs - 1) / jobs;
  fflush(stdout);
  for (uint32_t j = 0; j < jobs; j++) {
    uint64_t start = first + j * share, rest = count && j * share < count ? count - j * share : 0;
    r->shared = &shares[j];
    if ((children[j] = fork()) < 0) abort();
    if (children[j]) continue;
    run_seeds(r, start, !count || rest > share ? share : rest);
    fflush(stdout);
    _exit(0);
  }
  r->shared = shares;
  for (uint32_t j = 0; j < jobs; j++) {
    int status = 0;
    waitpid(children[j], &status, 0);
    shares[j].tally.failures += status != 0;
    if (j) add_tally(&shares[0].tally, &shares[j].tally);
  }
}

static bool accepted_enough(const struct runner *r, uint64_t least) {
  const struct choice *choice = r->unsafe ? &r->all : &r->safe;
  const struct tally *t = &r->shared->tally;
  bool enough = t->sequences > 0 && t->length >= 6 * t->sequences;
  if (!enough) fprintf(stderr, "the mean length is below 6\n");
  for (uint32_t i = 0; i < choice->count; i++) {
    if (t->accepted[choice->kind[i]] >= least) continue;
    fprintf(stderr, "%s was accepted less than %llu times\n", rows[choice->row[i]].kind, (unsigned long long)least);
    enough = false;
  }
  return enough;
}

static int run_trace(struct runner *r, const char *name, const char *path, uint64_t seed) {
  uint32_t i = 0;
  while (i < r->workload_count && strcmp(r->workloads[i].name, name) != 0) i++;
  char *json = case_read_file(path);
  if (i == r->workload_count || !json) {
    fprintf(stderr, "no workload %s, or no file %s\n", name, path);
    return 2;
  }
  replay_apart(r->shared, &r->workloads[i], json, NULL, seed, COMPILED);
  printf("%s: %s\n", trouble_names[r->shared->trouble], r->shared->trouble ? r->shared->message : "");
  free(json);
  return r->shared->trouble != NO_TROUBLE;
}

/* ---- The command line ---- */

struct options {
  const char *workloads, *kinds, *workload, *trace;
  uint64_t seed, count, instructions, jobs, least, emit;
  bool keep_going, unsafe, lower_all;
};

static bool read_option(struct options *o, const char *name, const char *value) {
  const struct {
    const char *name, **text;
    uint64_t *number;
  } known[] = {{"--workloads", &o->workloads, NULL}, {"--kinds", &o->kinds, NULL},
               {"--workload", &o->workload, NULL},   {"--trace", &o->trace, NULL},
               {"--seed", NULL, &o->seed},           {"--count", NULL, &o->count},
               {"--jobs", NULL, &o->jobs},           {"--instructions", NULL, &o->instructions},
               {"--least", NULL, &o->least},         {"--emit", NULL, &o->emit}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (!value || strcmp(known[i].name, name) != 0) continue;
    if (known[i].text)
      *known[i].text = value;
    else
      *known[i].number = strtoull(value, NULL, 0);
    return true;
  }
  fprintf(stderr, "unknown option %s, or it lacks its value\n", name);
  return false;
}

static bool read_options(struct options *o, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--keep-going"))
      o->keep_going = true;
    else if (!strcmp(argv[i], "--lower-all"))
      o->lower_all = true;
    else if (!strcmp(argv[i], "--unsafe"))
      o->unsafe = true;
    else if (!read_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
      return false;
    else
      i++;
  if (!o->count && !o->instructions) o->count = 200;
  return o->jobs >= 1 && o->jobs <= MOST_JOBS;
}

int main(int argc, char **argv) {
  static struct runner runner;
  struct options o = {.workloads = TEST_ROOT "/random/workloads", .kinds = "", .workload = "", .jobs = 1};
  if (!read_options(&o, argc, argv)) return 2;
  size_t size = o.jobs * sizeof(struct shared);
  struct shared *shares = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (uint64_t j = 0; shares != MAP_FAILED && j < o.jobs; j++) shares[j].emit_every = o.emit;
  runner.shared = shares;
  runner.unsafe = o.unsafe, runner.keep_going = o.keep_going, runner.lower_all = o.lower_all;
  runner.instructions = o.instructions;
  if (shares == MAP_FAILED || !choose_rows(&runner, o.kinds) ||
      !read_intrinsics(&runner, TEST_ROOT "/random/intrinsics.py") || !read_workloads(&runner, o.workloads))
    return 1;
  if (o.trace) return run_trace(&runner, o.workload, o.trace, o.seed);
  run_jobs(&runner, shares, (uint32_t)o.jobs, o.seed, o.count);
  bool enough = !o.least || accepted_enough(&runner, o.least);
  print_tally(&shares->tally);
  for (uint32_t i = 0; i < runner.workload_count; i++) tir_free(runner.workloads[i].ir);
  vm_intrinsics_free(runner.intrinsics);
  return shares->tally.failures || !enough;
}
