/* msched bench replay: how many traces are replayed in a second on one core.
 *
 * A workload's sketches are replayed in turn, every decision drawn anew each time; draws that are refused take their
 * time and are not counted. A replay ends with the structural hash of the scheduled module; their exclusive or is
 * printed. One in a thousand goes through the verifier, and its decisions, given to a strict replay, must yield the
 * same hash. Nothing is remembered from one replay to the next. */
#include "bind.h"
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* By name in the folder of data, TARGET/NAME; without a target, llvm's. */
static const char *const usual[] = {"GMM1024", "C2D", "SFM", NULL};
static const char *const growing[] = {"growth/GMMx1", "growth/GMMx4", "growth/GMMx16", NULL}; /* once, 4, 16 times */
static const char *const all[] = {"llvm/C1D",      "llvm/C2D",     "llvm/C3D",  "llvm/CAP",
                                  "llvm/CBR",      "llvm/DEP",     "llvm/DIL",  "llvm/ELT",
                                  "llvm/GMM",      "llvm/GMM1024", "llvm/GMM2", "llvm/GRP",
                                  "llvm/GMM_RELU", "llvm/GMM_ROW", "llvm/NRM",  "llvm/POOL",
                                  "llvm/SFM",      "llvm/T2D",     "llvm/TBG",  "cuda/C1D",
                                  "cuda/C2D",      "cuda/C3D",     "cuda/CAP",  "cuda/CBR",
                                  "cuda/DEP",      "cuda/DIL",     "cuda/ELT",  "cuda/GMM",
                                  "cuda/GMM1024",  "cuda/GMM2",    "cuda/GRP",  "cuda/GMM_RELU",
                                  "cuda/GMM_ROW",  "cuda/NRM",     "cuda/POOL", "cuda/SFM",
                                  "cuda/T2D",      "cuda/TBG",     NULL};
enum { MOST_SKETCHES = 32, CHECK_EVERY = 1000 };

struct options {
  bool json, profile;
  uint64_t seconds, seed, count;
  const char *peer, *data;
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

static double read_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void unload(struct bench *b) {
  for (uint32_t i = 0; i < b->sketches; i++) {
    vm_plan_free(b->plans[i]);
    vm_trace_free(b->traces[i]);
  }
  if (b->ir) tir_free(b->ir);
}

/* NAME.py and NAME.0.json, NAME.1.json, … in the directory. */
static bool load(struct bench *b, const char *directory, const char *name, ms_error *err) {
  char path[4096], file[256];
  *b = (struct bench){0};
  snprintf(file, sizeof file, strchr(name, '/') ? "%s" : "llvm/%s", name);
  snprintf(path, sizeof path, "%s/%s.py", directory, file);
  b->ir = cli_read_module(path, err);
  if (!b->ir) return false;
  for (; b->sketches < MOST_SKETCHES; b->sketches++) {
    snprintf(path, sizeof path, "%s/%s.%u.json", directory, file, b->sketches);
    if (b->sketches && access(path, R_OK)) break;
    struct vm_trace *trace = cli_read_trace(path, err);
    if (!trace) return false;
    vm_forget_decisions(trace);
    b->traces[b->sketches] = trace;
    b->plans[b->sketches] = vm_prepare(b->ir, trace);
  }
  return true;
}

/* The verifier, and the decisions that were drawn in a strict replay on another schedule. */
static bool check(const struct vm_schedule *sch, const struct vm_plan *plan, uint64_t hash, ms_error *err) {
  if (!tir_verify(sch->ir, err)) return false;
  struct vm_schedule *again = vm_schedule_new(NULL, 0);
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = &sch->trace};
  bool done = vm_replay(again, plan, &draws, err);
  if (done && tir_structural_hash(again->ir, TIR_NONE) != hash)
    done = ms_fail(err, MS_DECISION, "the decisions drawn give another module when they are replayed");
  vm_schedule_free(again);
  return done;
}

static bool measure(const struct bench *b, struct vm_schedule *sch, const struct options *o, struct result *out,
                    ms_error *err) {
  double start = read_clock(CLOCK_MONOTONIC), end = start + (double)o->seconds,
         used = read_clock(CLOCK_THREAD_CPUTIME_ID);
  *out = (struct result){0};
  for (uint64_t n = 0; o->count ? n < o->count : n % 64 || read_clock(CLOCK_MONOTONIC) < end; n++) {
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
  out->seconds = read_clock(CLOCK_MONOTONIC) - start;
  out->processor = read_clock(CLOCK_THREAD_CPUTIME_ID) - used;
  return true;
}

/* ---- The peer ---------------------------------------------------------------------------------------------------- */

/* Runs peer_replay.py for one workload and reads its answer, one JSON object. */
static json_t *run_peer(const struct options *o, const char *name, ms_error *err) {
  char script[4096], seconds[32], file[256];
  snprintf(script, sizeof script, "%s/peer_replay.py", o->data);
  snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)o->seconds);
  snprintf(file, sizeof file, strchr(name, '/') ? "%s" : "llvm/%s", name);
  char *argv[] = {(char *)o->peer, script, (char *)o->data, file, seconds, NULL};
  int ends[2], status = -1;
  pid_t child;
  json_t *answer = NULL;
  if (pipe(ends)) return ms_fail(err, MS_IO, "%s", strerror(errno)), NULL;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  int failed = posix_spawnp(&child, o->peer, &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (!failed) {
    FILE *from = fdopen(ends[0], "r");
    answer = from ? json_loadf(from, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (from) fclose(from);
    waitpid(child, &status, 0);
  } else {
    close(ends[0]);
  }
  if (!answer) ms_fail(err, MS_IO, "the peer does not answer: %s", failed ? strerror(failed) : "see its messages");
  return answer;
}

/* ---- Reports ----------------------------------------------------------------------------------------------------- */

static void print_profile(const char *name, const struct vm_profile *p, const struct result *r) {
  double all = (double)(r->replays + r->refused), scale = r->processor / (double)p->total / all;
  uint64_t within = p->copying;
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

static void report(const char *name, const struct result *r, json_t *peer, const struct options *o) {
  double rate = (double)r->replays / r->seconds, other = json_number_value(json_object_get(peer, "rate"));
  char hash[20];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->hash);
  if (o->json) {
    json_t *line = json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:f, s:f, s:s, s:I}", "bench", "replay", "workload", name,
                             "rate", rate, "replays", (json_int_t)r->replays, "refused", (json_int_t)r->refused,
                             "checked", (json_int_t)r->checked, "seconds", r->seconds, "processor_seconds",
                             r->processor, "hash", hash, "seed", (json_int_t)o->seed);
    if (peer) json_object_set_new(line, "peer_rate", json_real(other));
    if (peer) json_object_set_new(line, "ratio", json_real(rate / other));
    cli_print_json(line);
    return;
  }
  printf("%-13s %9.0f replays/s  %6.2f us each (%.2f of the processor)  %llu refused of %llu  %llu checked  hash %s",
         name, rate, 1e6 / rate, 1e6 * r->processor / (double)r->replays, (unsigned long long)r->refused,
         (unsigned long long)(r->refused + r->replays), (unsigned long long)r->checked, hash);
  if (peer) printf("  peer %.1f/s  ratio %.0f", other, rate / other);
  printf("\n");
}

static bool bench_workload(const char *name, const struct options *o, ms_error *err) {
  struct bench b;
  struct result r;
  struct vm_profile profile = {0};
  struct vm_schedule *sch = vm_schedule_new(NULL, 0);
  json_t *peer = NULL;
  if (o->profile) sch->profile = &profile;
  bool done = load(&b, o->data, name, err);
  uint64_t start = vm_ticks();
  done = done && measure(&b, sch, o, &r, err);
  profile.total = vm_ticks() - start;
  if (done && o->peer) done = (peer = run_peer(o, name, err)) != NULL;
  if (done) report(name, &r, peer, o);
  if (done && o->profile) print_profile(name, &profile, &r);
  json_decref(peer);
  vm_schedule_free(sch);
  unload(&b);
  return done;
}

/* False: a message was printed. */
static bool bench_list(const char *const *names, const struct options *o) {
  for (; *names; names++) {
    ms_error err = {.instruction = -1};
    if (!bench_workload(*names, o, &err)) return cli_report(&err, NULL, o->json), false;
  }
  return true;
}

static int bench_replay(const struct cli_command *self, int argc, char **argv) {
  char data[PATH_MAX];
  script_path("tests/bench", data, sizeof data);
  struct options o = {.seconds = 3, .seed = 1, .data = data};
  const struct cli_place places[] = {
      {.key = "json", .flag = &o.json},        {.key = "profile", .flag = &o.profile},
      {.key = "seconds", .whole = &o.seconds}, {.key = "seed", .whole = &o.seed},
      {.key = "count", .whole = &o.count},     {.key = "peer", .text = &o.peer},
      {.key = "data", .text = &o.data},
  };
  int count;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  bool done = count > 1 || bench_list(usual, &o);
  for (int i = 1; done && i < count; i++) {
    const char *one[] = {argv[i], NULL};
    done = bench_list(!strcmp(argv[i], "all") ? all : !strcmp(argv[i], "growth") ? growing : one, &o);
  }
  return done ? CLI_DONE : CLI_FAILED;
}

/* The other benchmarks tune, and are written in Lua (bench.lua). */
int cli_bench(const struct cli_command *self, int argc, char **argv) {
  const char *form = cli_words_of(self, argc, argv).form;
  return form && !strcmp(form, "replay") ? bench_replay(self, argc, argv) : cli_lua(self, argc, argv);
}
