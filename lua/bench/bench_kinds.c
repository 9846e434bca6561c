/* msched bench kinds: what an instruction of each kind costs.
 *
 * The sketches of all workloads are replayed, their decisions resampled each time; then cases, files that hold a
 * function and a trace, with the decisions of the trace: there are kinds that no sketch has. Each replay starts from
 * the workload. What is shown of a kind is the average over all its instructions, where a trace's is the median of its
 * replays: other work of the machine falls on some of them. */
#include "lua/bind/bind.h"
#include "lua/cli/cli.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const targets[] = {"llvm", "cuda"};
enum { TARGETS = sizeof targets / sizeof *targets, MOST_SKETCHES = 32 };

/* Of one kind: instructions, and the ticks that they took. */
struct cost {
  uint64_t performed;
  double ticks;
};
struct kinds {
  struct vm_schedule *schedule;
  struct cost sketches[VM_KIND_COUNT], cases[VM_KIND_COUNT];
  double *samples; /* of each kind `count`: ticks of one instruction, in each replay that had any */
  uint64_t seed, count;
  double nanoseconds; /* a tick */
};

/* ---- Replaying ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void replay(struct kinds *k, struct tir *ir, const struct vm_trace *trace, bool resamples, struct cost *costs) {
  assert(trace && k->count && k->samples);
  struct vm_plan *plan = vm_prepare(ir, trace);
  uint64_t performed[VM_KIND_COUNT] = {0}, counts[VM_KIND_COUNT] = {0};
  for (uint64_t n = 0; n < k->count; n++) {
    struct vm_draws draws = {.mode = VM_STRICT, .decisions = resamples ? NULL : trace, .seed = k->seed, .candidate = n};
    struct vm_profile profile = {0};
    ms_error refusal;
    refusal.brief = true;
    k->schedule->profile = &profile;
    vm_replay(k->schedule, plan, &draws, &refusal);
    for (int kind = 0; kind < VM_KIND_COUNT; kind++) {
      assert(counts[kind] <= n && (profile.performed[kind] || !profile.ticks[kind]));
      if (!profile.performed[kind]) continue;
      performed[kind] += profile.performed[kind];
      k->samples[(uint64_t)kind * k->count + counts[kind]++] =
          (double)profile.ticks[kind] / (double)profile.performed[kind];
    }
  }
  for (int kind = 0; kind < VM_KIND_COUNT; kind++) {
    if (!counts[kind]) continue;
    double *samples = k->samples + (uint64_t)kind * k->count;
    qsort(samples, counts[kind], sizeof *samples, compare);
    costs[kind].performed += performed[kind];
    costs[kind].ticks += samples[counts[kind] / 2] * (double)performed[kind];
  }
  vm_plan_free(plan);
}

static bool replay_sketches_of(struct kinds *k, const char *data, const char *target, const char *name, ms_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s/workloads/%.*s.py", data, (int)strcspn(name, "."), name);
  struct tir *ir = cli_read_module(path, err);
  snprintf(path, sizeof path, "%s/%s/%s", data, target, name);
  struct vm_trace *traces[MOST_SKETCHES];
  uint32_t count = ir ? cli_read_traces(path, traces, MOST_SKETCHES, err) : 0;
  for (uint32_t i = 0; i < count; i++) {
    replay(k, ir, traces[i], true, k->sketches);
    vm_trace_free(traces[i]);
  }
  if (ir) tir_free(ir);
  return count > 0;
}

/* ---- Cases: the sections "### before" and "### trace" of a file ---- */

static char *section(char *text, const char *heading) {
  char *at = strstr(text, heading);
  return at ? at + strlen(heading) : NULL;
}

static bool replay_case(struct kinds *k, const char *path, ms_error *err) {
  size_t length;
  char *text = cli_read_file(path, &length, err);
  if (!text) return false;
  char *before = section(text, "### before\n"), *steps = section(text, "### trace\n"),
       *after = strstr(text, "\n### after");
  ms_error ignored = {.instruction = -1};
  if (before && steps && after && before < steps && steps < after) {
    *after = 0;
    steps[-1] = steps[-(ptrdiff_t)strlen("### trace\n")] = 0;
    struct tir *ir = tir_read(before, strlen(before), path, &ignored);
    struct vm_trace *trace = ir ? vm_read_trace(steps, strlen(steps), &ignored) : NULL;
    if (trace) replay(k, ir, trace, false, k->cases);
    vm_trace_free(trace);
    if (ir) tir_free(ir);
  }
  free(text);
  return true;
}

/* ---- Folders, in order of name ---- */

static int is_sketch(const struct dirent *entry) { return strstr(entry->d_name, ".jsonl") != NULL; }
static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static bool replay_sketches(struct kinds *k, const char *data, ms_error *err) {
  bool ok = true;
  for (int t = 0; ok && t < TARGETS; t++) {
    char folder[4096];
    struct dirent **entries;
    snprintf(folder, sizeof folder, "%s/%s", data, targets[t]);
    int count = scandir(folder, &entries, is_sketch, alphasort);
    if (count < 0) return ms_fail(err, MS_IO, "%s: cannot be read", folder);
    for (int i = 0; i < count; i++) {
      ok = ok && replay_sketches_of(k, data, targets[t], entries[i]->d_name, err);
      free(entries[i]);
    }
    free(entries);
  }
  return ok;
}

static bool replay_cases(struct kinds *k, const char *folder, ms_error *err) {
  struct dirent **entries;
  int count = scandir(folder, &entries, is_visible, alphasort);
  if (count < 0) return ms_fail(err, MS_IO, "%s: cannot be read", folder);
  bool ok = true;
  for (int i = 0; i < count; i++) {
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    bool below = !stat(path, &info) && S_ISDIR(info.st_mode);
    if (below || strstr(entries[i]->d_name, ".case")) ok = ok && (below ? replay_cases : replay_case)(k, path, err);
    free(entries[i]);
  }
  free(entries);
  return ok;
}

/* ---- Report ---- */

static double cost_of(const struct kinds *k, const struct cost *c) {
  assert(c->ticks >= 0 && k->nanoseconds > 0);
  return c->performed ? c->ticks * k->nanoseconds / (double)c->performed : 0;
}

static void report(const struct kinds *k, bool as_json) {
  if (!as_json) printf("%-24s %14s %10s %14s %10s\n", "kind", "in sketches", "ns each", "in cases", "ns each");
  for (int kind = 0; kind < VM_KIND_COUNT; kind++) {
    const char *name = vm_kind_info((enum vm_kind)kind)->name;
    uint64_t sketches = k->sketches[kind].performed, cases = k->cases[kind].performed;
    double in_sketches = cost_of(k, &k->sketches[kind]), in_cases = cost_of(k, &k->cases[kind]);
    if (as_json)
      cli_print_json(json_pack("{s:s, s:s, s:I, s:f, s:I, s:f}", "bench", "kinds", "kind", name, "sketches",
                               (json_int_t)sketches, "sketches_ns", in_sketches, "cases", (json_int_t)cases, "cases_ns",
                               in_cases));
    else
      printf("%-24s %14llu %10.0f %14llu %10.0f\n", name, (unsigned long long)sketches, in_sketches,
             (unsigned long long)cases, in_cases);
  }
}

int cli_bench_kinds(const struct cli_command *self, int argc, char **argv) {
  char data_path[4096], cases_path[4096];
  script_path("lua/bench/data", data_path, sizeof data_path);
  script_path("tests/case", cases_path, sizeof cases_path);
  const char *data = data_path, *cases = cases_path;
  bool as_json = false;
  struct kinds k = {.seed = 1, .count = 200};
  const struct cli_place places[] = {
      {.key = "json", .flag = &as_json}, {.key = "seed", .whole = &k.seed}, {.key = "count", .whole = &k.count},
      {.key = "data", .text = &data},    {.key = "cases", .text = &cases},
  };
  int count;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  if (!k.count || k.count > 1000000) return cli_wrong_usage(self, "--count takes a number from 1 to 1000000");
  if (count != 1) return cli_wrong_usage(self, "bench kinds takes no names");
  ms_error err = {.instruction = -1};
  k.schedule = vm_schedule_new(NULL, 0);
  k.samples = calloc(VM_KIND_COUNT * k.count, sizeof *k.samples);
  if (!k.samples) abort();
  uint64_t start_ticks = vm_ticks();
  double start = vm_seconds();
  bool done = replay_sketches(&k, data, &err) && replay_cases(&k, cases, &err);
  k.nanoseconds = 1e9 * (vm_seconds() - start) / (double)(vm_ticks() - start_ticks);
  vm_schedule_free(k.schedule);
  free(k.samples);
  if (!done) return cli_report(&err, NULL, as_json);
  report(&k, as_json);
  return CLI_DONE;
}
