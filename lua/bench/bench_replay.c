/* msched bench replay: how many traces are replayed in a second on one core.
 *
 * A workload's sketches are replayed in turn, every decision resampled each time; draws that are refused take their
 * time and are not counted. A replay ends with the structural hash of the scheduled module; their exclusive or is
 * printed. One in a thousand goes through the verifier, and its decisions, given to a strict replay, must yield the
 * same hash. Nothing is remembered from one replay to the next. */
#include "lua/bind/bind.h"
#include "lua/cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Sketches are named TARGET/NAME in the folder of data, where workloads/NAME.py is the function; without a target, they
 * are llvm's. */
static const char *const usual[] = {"GMM1024", "C2D", "SFM"};
static const char *const growing[] = {"growth/GMMx1", "growth/GMMx4", "growth/GMMx16"}; /* once, 4, 16 times */
static const char *const targets[] = {"llvm", "cuda"};
static const char *const operators[] = {"C1D", "C2D",  "C3D",     "CAP",  "CBR", "DEP",      "DIL",
                                        "ELT", "GMM",  "GMM1024", "GMM2", "GRP", "GMM_RELU", "GMM_ROW",
                                        "NRM", "POOL", "SFM",     "T2D",  "TBG"};
#define LENGTH(array) (sizeof(array) / sizeof *(array))
enum { MOST_SKETCHES = 32, CHECK_EVERY = 1000 };

struct options {
  bool json, profile;
  uint64_t seconds, seed, count;
  const char *tvm, *data;
};

struct bench {
  struct tir *ir;
  struct vm_trace *traces[MOST_SKETCHES];
  struct vm_plan *plans[MOST_SKETCHES];
  uint32_t sketches;
};

struct result {
  uint64_t replays, refused, checked, hash;
  double seconds, processor; /* on the clock, and of the processor */
};

static void unload(struct bench *b) {
  for (uint32_t i = 0; i < b->sketches; i++) {
    vm_plan_free(b->plans[i]);
    vm_trace_free(b->traces[i]);
  }
  if (b->ir) tir_free(b->ir);
}

/* workloads/NAME.py and TARGET/NAME.jsonl in the directory. */
static bool load_traces(struct bench *b, const char *directory, const char *sketches, ms_error *err) {
  char path[4096];
  assert(strchr(sketches, '/') && "a target and a name");
  *b = (struct bench){0};
  snprintf(path, sizeof path, "%s/workloads/%s.py", directory, strchr(sketches, '/') + 1);
  b->ir = cli_read_module(path, err);
  if (!b->ir) return false;
  snprintf(path, sizeof path, "%s/%s.jsonl", directory, sketches);
  b->sketches = cli_read_traces(path, b->traces, MOST_SKETCHES, err);
  for (uint32_t i = 0; i < b->sketches; i++) {
    vm_forget_decisions(b->traces[i]);
    b->plans[i] = vm_prepare(b->ir, b->traces[i]);
  }
  return b->sketches > 0;
}

/* The verifier, and the decisions that were drawn in a strict replay on another schedule. */
static bool check(const struct vm_schedule *sch, const struct vm_plan *plan, uint64_t hash, ms_error *err) {
  if (!vm_verify(&sch->trace, sch->ir, err)) return false;
  struct vm_schedule *again = vm_schedule_new(NULL, 0);
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = &sch->trace};
  assert(again->ir != sch->ir);
  bool done = vm_replay(again, plan, &draws, err);
  if (done && tir_structural_hash(again->ir, TIR_NONE) != hash)
    done = ms_fail(err, MS_DECISION, "the decisions drawn give another module when they are replayed");
  vm_schedule_free(again);
  return done;
}

static bool measure(const struct bench *b, struct vm_schedule *sch, const struct options *o, struct result *out,
                    ms_error *err) {
  double start = vm_seconds(), end = start + (double)o->seconds, used = vm_thread_seconds();
  assert(b->sketches > 0 && b->sketches <= MOST_SKETCHES);
  *out = (struct result){0};
  for (uint64_t n = 0; o->count ? n < o->count : n % 64 || vm_seconds() < end; n++) {
    const struct vm_plan *plan = b->plans[n % b->sketches];
    struct vm_draws draws = {.mode = VM_STRICT, .seed = o->seed, .candidate = n};
    ms_error refusal;
    refusal.brief = true;
    if (!vm_replay(sch, plan, &draws, &refusal)) {
      out->refused++;
      continue;
    }
    uint64_t hash = tir_structural_hash(sch->ir, TIR_NONE);
    out->hash ^= hash;
    if (out->replays++ % CHECK_EVERY) continue;
    out->checked++;
    if (!check(sch, plan, hash, err)) return false;
  }
  assert(out->checked <= out->replays);
  out->seconds = vm_seconds() - start;
  out->processor = vm_thread_seconds() - used;
  return true;
}

/* ---- TVM --------------------------------------------------------------------------------------------------------- */

/* Runs tvm_replay.py for one workload's sketches and reads its answer, one JSON object. */
static json_t *run_tvm(const struct options *o, const char *sketches, ms_error *err) {
  char script[4096], seconds[32];
  snprintf(script, sizeof script, "%s/tvm_replay.py", o->data);
  snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)o->seconds);
  char *argv[] = {(char *)o->tvm, script, (char *)o->data, (char *)sketches, seconds, NULL};
  int ends[2], status = -1;
  pid_t child;
  json_t *answer = NULL;
  if (pipe(ends)) return ms_fail(err, MS_IO, "%s", strerror(errno)), NULL;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int failed = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (!failed) failed = posix_spawn_file_actions_addclose(&actions, ends[0]);
  if (!failed) failed = posix_spawnp(&child, o->tvm, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (!failed) {
    FILE *from = fdopen(ends[0], "r");
    answer = from ? json_loadf(from, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    while (from && fgetc(from) != EOF) {} /* a process that writes on must not fail for want of a reader */
    if (from)
      fclose(from);
    else
      close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  } else {
    close(ends[0]);
  }
  if (!answer) ms_fail(err, MS_IO, "TVM does not answer: %s", failed ? strerror(failed) : "see its messages");
  return answer;
}

/* ---- Reports ----------------------------------------------------------------------------------------------------- */

static void print_profile(const char *name, const struct vm_profile *p, const struct result *r) {
  double all = (double)(r->replays + r->refused), scale = r->processor / (double)p->total / all;
  uint64_t within = p->copying;
  assert(p->copying <= p->replaying && p->replaying <= p->total);
  printf("%s: microseconds of the processor a replay\n  %-24s %8s %8.3f\n", name, "copy the workload", "",
         (double)p->copying * scale * 1e6);
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    if (!p->performed[k]) continue;
    within += p->ticks[k];
    printf("  %-24s %8.2f %8.3f  %.0f ns each\n", vm_kind_info((enum vm_kind)k)->name, (double)p->performed[k] / all,
           (double)p->ticks[k] * scale * 1e6, (double)p->ticks[k] * scale * all / (double)p->performed[k] * 1e9);
  }
  printf("  %-24s %8s %8.3f\n", "around the instructions", "", (double)(p->replaying - within) * scale * 1e6);
  printf("  %-24s %8s %8.3f\n", "structural hash, checks", "", (double)(p->total - p->replaying) * scale * 1e6);
}

static void report(const char *name, const struct result *r, json_t *tvm, const struct options *o) {
  double rate = (double)r->replays / r->seconds, other = json_number_value(json_object_get(tvm, "rate"));
  char hash[20];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
  if (o->json) {
    json_t *line = json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:f, s:f, s:s, s:I}", "bench", "replay", "workload", name,
                             "rate", rate, "replays", (json_int_t)r->replays, "refused", (json_int_t)r->refused,
                             "checked", (json_int_t)r->checked, "seconds", r->seconds, "processor_seconds",
                             r->processor, "hash", hash, "seed", (json_int_t)o->seed);
    if (tvm) json_object_set_new(line, "tvm_rate", json_real(other));
    if (tvm) json_object_set_new(line, "ratio", json_real(rate / other));
    cli_print_json(line);
    return;
  }
  printf("%-13s %9.0f replays/s  %6.2f us each (%.2f of the processor)  %llu refused of %llu  %llu checked  hash %s",
         name, rate, 1e6 / rate, 1e6 * r->processor / (double)r->replays, (unsigned long long)r->refused,
         (unsigned long long)(r->refused + r->replays), (unsigned long long)r->checked, hash);
  if (tvm) printf("  TVM %.1f/s  ratio %.0f", other, rate / other);
  printf("\n");
}

static bool bench_workload(const char *name, const struct options *o, ms_error *err) {
  struct bench b;
  struct result r;
  struct vm_profile profile = {0};
  struct vm_schedule *sch = vm_schedule_new(NULL, 0);
  json_t *tvm = NULL;
  char sketches[256];
  snprintf(sketches, sizeof sketches, strchr(name, '/') ? "%s" : "llvm/%s", name);
  if (o->profile) sch->profile = &profile;
  bool done = load_traces(&b, o->data, sketches, err);
  uint64_t start = vm_ticks();
  done = done && measure(&b, sch, o, &r, err);
  profile.total = vm_ticks() - start;
  if (done && o->tvm) done = (tvm = run_tvm(o, sketches, err)) != NULL;
  if (done) report(name, &r, tvm, o);
  if (done && o->profile) print_profile(name, &profile, &r);
  json_decref(tvm);
  vm_schedule_free(sch);
  unload(&b);
  return done;
}

/* False: a message was printed. */
static bool bench_one(const char *name, const struct options *o) {
  ms_error err = {.instruction = -1};
  if (!bench_workload(name, o, &err)) return cli_report(&err, NULL, o->json), false;
  return true;
}

static bool bench_list(const char *const *names, size_t count, const struct options *o) {
  for (size_t i = 0; i < count; i++)
    if (!bench_one(names[i], o)) return false;
  return true;
}

static bool bench_all(const struct options *o) {
  char name[64];
  for (size_t i = 0; i < LENGTH(targets) * LENGTH(operators); i++) {
    snprintf(name, sizeof name, "%s/%s", targets[i / LENGTH(operators)], operators[i % LENGTH(operators)]);
    if (!bench_one(name, o)) return false;
  }
  return true;
}

static bool bench_named(const char *name, const struct options *o) {
  if (!strcmp(name, "all")) return bench_all(o);
  if (!strcmp(name, "growth")) return bench_list(growing, LENGTH(growing), o);
  return bench_one(name, o);
}

static int bench_replay(const struct cli_command *self, int argc, char **argv) {
  char data[PATH_MAX];
  script_path("lua/bench/data", data, sizeof data);
  struct options o = {.seconds = 3, .seed = 1, .data = data};
  const struct cli_place places[] = {
      {.key = "json", .flag = &o.json},        {.key = "profile", .flag = &o.profile},
      {.key = "seconds", .whole = &o.seconds}, {.key = "seed", .whole = &o.seed},
      {.key = "count", .whole = &o.count},     {.key = "tvm", .text = &o.tvm},
      {.key = "data", .text = &o.data},
  };
  int count;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  bool done = count > 1 || bench_list(usual, LENGTH(usual), &o);
  for (int i = 1; done && i < count; i++) done = bench_named(argv[i], &o);
  return done ? CLI_DONE : CLI_FAILED;
}

/* The other benchmarks search, and are written in Lua (bench.lua). */
int cli_bench(const struct cli_command *self, int argc, char **argv) {
  const char *form = cli_words_of(self, argc, argv).form;
  if (form && !strcmp(form, "replay")) return bench_replay(self, argc, argv);
  return form && !strcmp(form, "kinds") ? cli_bench_kinds(self, argc, argv) : cli_lua(self, argc, argv);
}
