/* msched run: a function on the reference interpreter, alone or against its schedule. */
#include "cli.h"

#include <stdlib.h>
#include <time.h>
#include <xxhash.h>

struct options {
  bool json;
  uint64_t seed;
  const char *trace;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs it once; the hash is of every argument's bytes afterwards, so that two runs can be compared by eye. */
static bool run_alone(const struct tir *ir, tir_func f, const struct options *o, ms_error *err) {
  struct tir_arguments args;
  struct tir_run_report report = {0};
  const struct tir_run_options how = {.report = &report};
  if (!tir_make_arguments(ir, f, o->seed, &args, err)) return false;
  double start = now();
  bool done = tir_run(ir, f, args.args, args.count, &how, err);
  double seconds = now() - start;
  XXH64_hash_t hash = 0;
  for (uint32_t i = 0; i < args.count && done; i++)
    if (args.args[i].data) hash = XXH64(args.args[i].data, args.args[i].bytes, hash);
  tir_arguments_free(&args);
  if (!done) return false;
  char text[20];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
  if (o->json)
    cli_print_json(json_pack("{s:b, s:I, s:f, s:s}", "ok", 1, "steps", (json_int_t)report.steps, "seconds", seconds,
                             "results", text));
  else
    printf("ran %lld steps in %.3f s; results %s\n", (long long)report.steps, seconds, text);
  return true;
}

static bool run_scheduled(struct tir *ir, tir_func f, const struct vm_trace *trace, const struct options *o,
                          ms_error *err) {
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace, .seed = o->seed};
  struct vm_schedule *sch = vm_apply(ir, trace, &draws, err);
  if (!sch) return false;
  double start = now();
  bool same = tir_equal_results(ir, f, NULL, sch->ir, f, NULL, o->seed, err);
  vm_schedule_free(sch);
  if (!same) return false;
  if (o->json)
    cli_print_json(json_pack("{s:b, s:b, s:f}", "ok", 1, "same", 1, "seconds", now() - start));
  else
    printf("the scheduled function gives the same results (%.3f s for both)\n", now() - start);
  return true;
}

int cli_run(const struct cli_command *self, int argc, char **argv) {
  struct options o = {.seed = 1};
  const struct cli_place places[] = {
      {.key = "json", .flag = &o.json},
      {.key = "seed", .whole = &o.seed},
      {.key = "trace", .text = &o.trace},
  };
  int count;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  if (count != 1) return cli_wrong_usage(self, "give one IR file");
  ms_error err = {.instruction = -1};
  struct tir *ir = cli_read_module(argv[0], &err);
  struct vm_trace *trace = ir && o.trace ? cli_read_trace(o.trace, &err) : NULL;
  tir_func f = ir ? tir_find_func(ir, "main") : TIR_NONE;
  bool done = ir && (trace || !o.trace);
  if (done && !f) done = ms_fail(&err, MS_FUNCTION_NOT_FOUND, "%s has several functions, and none is `main`", argv[0]);
  if (done) done = trace ? run_scheduled(ir, f, trace, &o, &err) : run_alone(ir, f, &o, &err);
  if (!done) cli_report(&err, trace, o.json);
  vm_trace_free(trace);
  if (ir) tir_free(ir);
  return done ? CLI_DONE : CLI_FAILED;
}
