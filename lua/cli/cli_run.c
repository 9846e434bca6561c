/* msched run: a function, or its schedule, on the reference interpreter and compiled; the compiled one's results are
 * compared with the interpreter's, as far as it got, and everywhere with those of the unscheduled function, compiled;
 * then it is timed. */
#include "cli.h"

#include "jit/jit.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct options {
  bool json;
  uint64_t seed, steps;
  const char *trace, *target, *task;
  struct vm_intrinsics *intrinsics; /* that the trace uses, besides those shipped */
};

/* What is printed in the end. */
struct outcome {
  int64_t steps;
  double seconds; /* of the interpreter */
  bool sampled, scheduled, compiled, real_sampled;
  uint64_t results, elements, interpreted; /* elements of outputs; of these, compared with the interpreter's */
  uint32_t buffers;
  double real;                      /* the tolerance on real numbers */
  char no_whole[400], no_real[400]; /* why whole outputs, real numbers were not compared; "": they were */
  struct jit_timing timing;
  struct jit_notes notes;                     /* on the compiled one's loops */
  char target[JIT_TARGET_TEXT], reason[2000]; /* why it is not compiled */
};

/* Runs that take more steps than that, unless --steps says otherwise, are cut down to samples of the outputs. */
enum { MOST_STEPS = 200 * 1000 * 1000, SAMPLES = 16 };

/* Of every argument's bytes, so that two runs can be compared by eye. */
static uint64_t hash_of(const struct tir_arguments *args) {
  XXH64_hash_t hash = 0;
  for (uint32_t i = 0; i < args->count; i++)
    if (args->args[i].data) hash = XXH64(args->args[i].data, args->args[i].bytes, hash);
  return hash;
}

/* On the interpreter, whole or by samples; *tolerance: what may separate another run's results from these. */
static bool interpret(const struct tir *ir, tir_func f, const struct tir_arguments *before, struct tir_arguments *args,
                      const struct options *o, struct outcome *out, double *tolerance, ms_error *err) {
  struct tir_run_report report = {0};
  struct tir_run_options how = {.report = &report, .most_steps = (int64_t)o->steps};
  double start = vm_seconds();
  bool done = tir_run(ir, f, args->args, args->count, &how, err);
  if (!done && err->code == MS_RUN_STEPS) {
    tir_arguments_free(args);
    tir_copy_arguments(ir, f, before, args);
    out->sampled = true;
    done = tir_run_samples(ir, f, args->args, args->count, &how, o->seed, SAMPLES, err);
  }
  out->seconds = vm_seconds() - start;
  out->steps = report.steps;
  out->results = hash_of(args);
  *tolerance = tir_tolerance(ir, f, report.epsilon);
  return done;
}

/* What the samples did not write is taken from the other run, so that the rest is compared. */
static void fill_in(const struct tir *ir, tir_func f, const struct tir_arguments *before,
                    const struct tir_arguments *from, struct tir_arguments *to) {
  for (uint32_t i = 0; i < to->count; i++) {
    tir_buffer buffer = ir->params.at[ir->funcs.at[f].params.first + i].buffer;
    if (!buffer || !to->args[i].data) continue;
    size_t bytes = (size_t)tir_type_bytes(tir_buffer_at(ir, buffer)->type);
    char *at = to->args[i].data;
    const char *old = before->args[i].data, *other = from->args[i].data;
    for (size_t b = 0; b + bytes <= to->args[i].bytes; b += bytes)
      if (!memcmp(at + b, old + b, bytes)) memcpy(at + b, other + b, bytes);
  }
}

/* Elements that a run of samples changed. */
static uint64_t count_changed(const struct tir *ir, tir_func f, const struct tir_arguments *before,
                              const struct tir_arguments *after) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < before->count; i++) {
    tir_buffer buffer = ir->params.at[ir->funcs.at[f].params.first + i].buffer;
    if (!buffer || !before->args[i].data) continue;
    size_t bytes = (size_t)tir_type_bytes(tir_buffer_at(ir, buffer)->type);
    const char *x = before->args[i].data, *y = after->args[i].data;
    for (size_t b = 0; b + bytes <= before->args[i].bytes; b += bytes) count += memcmp(x + b, y + b, bytes) != 0;
  }
  return count;
}

static bool compare(const struct tir *ir, tir_func f, const struct tir_arguments *before,
                    const struct tir_arguments *expected, const struct tir_arguments *actual, bool sampled,
                    double tolerance, ms_error *err) {
  struct tir_arguments filled;
  tir_copy_arguments(ir, f, expected, &filled);
  if (sampled) fill_in(ir, f, before, actual, &filled);
  bool same = tir_same_arguments(ir, f, &filled, actual, tolerance, err);
  tir_arguments_free(&filled);
  return same;
}

/* ---- Compiled ---- */

static bool run_compiled(const struct jit_call *call, struct outcome *out, ms_error *err) {
  double start = vm_seconds();
  bool done = jit_call_run(call, err);
  out->timing.seconds = out->timing.low = out->timing.high = vm_seconds() - start;
  out->timing.runs = 1;
  return done;
}

/* A function that takes longer than this is not run again to be timed. */
static const double LONG_RUN = 1;

static bool time_compiled(const struct jit_call *call, struct outcome *out, ms_error *err) {
  return out->timing.seconds > LONG_RUN || jit_call_time(call, 0.02, 2, &out->timing, err);
}

/* Compiles; NULL: it cannot be, and out says why. */
static struct jit_kernel *compile(const struct tir *ir, tir_func f, const struct jit_target *target,
                                  struct outcome *out) {
  ms_error why = {.instruction = -1};
  struct jit_code *code = jit_compile(ir, f, target, NULL, &why);
  struct jit_kernel *kernel = code ? jit_load(code, &why) : NULL;
  if (code) out->notes = *jit_code_notes(code);
  jit_code_free(code);
  if (!kernel) snprintf(out->reason, sizeof out->reason, "%s", why.message);
  out->compiled = kernel != NULL;
  return kernel;
}

/* ---- With the unscheduled function, compiled ---- */

static bool say_which(enum jit_data data, const ms_error *why, ms_error *err) {
  return ms_fail(err, why->code, "on %s, not as the unscheduled function, compiled, has it: %s",
                 data == JIT_REAL ? "real numbers" : "small integers", why->message);
}

/* actual: what the compiled function made of the same arguments. */
static bool compare_whole(const struct tir *ir, tir_func f, const struct jit_target *target, uint64_t seed,
                          const struct tir_arguments *actual, struct outcome *out, ms_error *err) {
  struct jit_expected expected;
  ms_error why = {.instruction = -1};
  if (jit_expect(ir, f, target, JIT_WHOLE, seed, NULL, &expected, &why) <= 0) {
    snprintf(out->no_whole, sizeof out->no_whole, "%.390s", why.message);
    return true;
  }
  out->buffers = expected.buffers, out->elements = expected.elements;
  bool same = jit_agrees(&expected, ir, f, actual, NULL, &why);
  jit_expected_free(&expected);
  return same || say_which(JIT_WHOLE, &why, err);
}

static bool compare_real(const struct tir *ir, tir_func f, const struct jit_kernel *kernel,
                         const struct jit_target *target, uint64_t seed, struct outcome *out, ms_error *err) {
  struct jit_expected expected;
  ms_error why = {.instruction = -1};
  if (jit_expect(ir, f, target, JIT_REAL, seed, NULL, &expected, &why) <= 0) {
    snprintf(out->no_real, sizeof out->no_real, "%.390s", why.message);
    return true;
  }
  out->real = expected.tolerance, out->real_sampled = expected.sampled;
  bool same = jit_kernel_agrees(&expected, ir, f, kernel, NULL, NULL, &why);
  jit_expected_free(&expected);
  return same || say_which(JIT_REAL, &why, err);
}

/* ---- The command ---- */

static json_t *report_of(const struct outcome *r, const char *hash) {
  json_t *line = json_pack("{s:b, s:I, s:f, s:s, s:b, s:b}", "ok", 1, "steps", (json_int_t)r->steps, "seconds",
                           r->seconds, "results", hash, "sampled", r->sampled, "compiled", r->compiled);
  if (r->scheduled) json_object_set_new(line, "same", json_true());
  if (!r->compiled) json_object_set_new(line, "reason", json_string(r->reason));
  if (!r->compiled) return line;
  json_object_update_new(line, json_pack("{s:s, s:f, s:f, s:f, s:i, s:I, s:I}", "target", r->target, "compiled_seconds",
                                         r->timing.seconds, "low", r->timing.low, "high", r->timing.high, "runs",
                                         (int)r->timing.runs, "elements", (json_int_t)(*r->no_whole ? 0 : r->elements),
                                         "interpreted_elements", (json_int_t)r->interpreted));
  if (*r->no_whole) json_object_set_new(line, "no_whole", json_string(r->no_whole));
  if (*r->no_real) json_object_set_new(line, "no_real", json_string(r->no_real));
  if (r->real > 0) json_object_set_new(line, "real_tolerance", json_real(r->real));
  json_t *notes = json_array();
  for (uint32_t i = 0; i < r->notes.count; i++) json_array_append_new(notes, json_string(r->notes.at[i]));
  json_object_set_new(line, "notes", notes);
  return line;
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

/* What was compared with what, and how much of it. */
static void print_comparison(const struct outcome *r) {
  if (*r->no_whole)
    printf("whole outputs not compared with the unscheduled build's: %s\n", r->no_whole);
  else
    printf("whole outputs equal to the unscheduled build's (%u buffer%s, %llu element%s)\n", r->buffers,
           plural(r->buffers), (unsigned long long)r->elements, plural(r->elements));
  if (*r->no_real)
    printf("not compared on real numbers: %s\n", r->no_real);
  else if (r->real > 0)
    printf("so they are on real numbers, within %.2g of the largest%s\n", r->real,
           r->real_sampled ? ", at samples by the interpreter" : "");
  if (*r->no_whole || r->interpreted < r->elements)
    printf("equal to the interpreter's at %llu element%s", (unsigned long long)r->interpreted, plural(r->interpreted));
  else
    printf("equal to the interpreter's everywhere");
  if (!*r->no_whole && r->interpreted < r->elements) printf(" of %llu", (unsigned long long)r->elements);
  printf("\n");
}

static void report(const struct outcome *r, bool json) {
  char hash[20];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->results);
  if (json) {
    cli_print_json(report_of(r, hash));
    return;
  }
  printf("interpreted: %lld step%s in %.3f s%s; results %s\n", (long long)r->steps, plural((uint64_t)r->steps),
         r->seconds, r->sampled ? ", what samples of the outputs need" : "", hash);
  if (r->scheduled) printf("scheduled, interpreted: the same results\n");
  if (!r->compiled) {
    printf("not compiled: %s\n", r->reason);
    return;
  }
  printf("compiled for %s: the same results; %.3f us [%.3f, %.3f] in %u run%s%s\n", r->target, r->timing.seconds * 1e6,
         r->timing.low * 1e6, r->timing.high * 1e6, (unsigned)r->timing.runs, plural(r->timing.runs),
         r->timing.busy ? "; the machine was busy" : "");
  print_comparison(r);
  for (uint32_t i = 0; i < r->notes.count; i++) printf("note: %s\n", r->notes.at[i]);
}

/* before: the arguments; expected: what the unscheduled function makes of them. */
static bool run_on_both(const struct tir *ir, const struct tir *scheduled, tir_func f, const struct jit_target *target,
                        const struct options *o, const struct tir_arguments *before, struct tir_arguments *expected,
                        struct outcome *out, ms_error *err) {
  double tolerance, rounded = 0;
  if (!interpret(ir, f, before, expected, o, out, &tolerance, err)) return false;
  struct tir_arguments actual;
  bool done = true;
  if (scheduled && !out->sampled) { /* a schedule cannot be sampled: its loops are not the outputs' */
    struct outcome unused = {0};
    tir_copy_arguments(ir, f, before, &actual);
    done = interpret(scheduled, f, before, &actual, o, &unused, &rounded, err);
    tolerance = rounded > tolerance ? rounded : tolerance;
    done = done && compare(ir, f, before, expected, &actual, false, tolerance, err);
    out->scheduled = true;
    tir_arguments_free(&actual);
  }
  const struct tir *code = scheduled ? scheduled : ir;
  struct jit_kernel *kernel = done ? compile(code, f, target, out) : NULL;
  if (!kernel) return done;
  tir_copy_arguments(ir, f, before, &actual);
  struct jit_call *call = jit_call_new(kernel, code, f, actual.args, err);
  done = call && run_compiled(call, out, err) &&
         compare(ir, f, before, expected, &actual, out->sampled, tolerance, err) &&
         compare_whole(ir, f, target, o->seed, &actual, out, err) &&
         (!scheduled || compare_real(ir, f, kernel, target, o->seed, out, err)) &&
         jit_fill_for_timing(ir, f, target, o->seed, &actual, err) && time_compiled(call, out, err);
  out->interpreted = out->sampled ? count_changed(ir, f, before, expected) : out->elements;
  jit_call_free(call);
  tir_arguments_free(&actual);
  jit_kernel_free(kernel);
  return done;
}

static bool run(struct tir *ir, tir_func f, const struct vm_trace *trace, const struct options *o, ms_error *err) {
  assert(tir_is_func(ir, f));
  struct outcome out = {0};
  struct jit_target target;
  struct tir_arguments before, expected;
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace, .seed = o->seed};
  if (!jit_target_parse(o->target ? o->target : "native", &target, err) || !jit_target_runs_here(&target, err))
    return false;
  jit_target_text(&target, out.target, sizeof out.target);
  struct vm_schedule *sch = trace ? vm_apply_with(ir, trace, o->intrinsics, &draws, err) : NULL;
  if ((trace && !sch) || !tir_make_arguments(ir, f, o->seed, &before, err)) {
    vm_schedule_free(sch);
    return false;
  }
  tir_copy_arguments(ir, f, &before, &expected);
  bool done = run_on_both(ir, sch ? sch->ir : NULL, f, &target, o, &before, &expected, &out, err);
  if (done) report(&out, o->json);
  tir_arguments_free(&before);
  tir_arguments_free(&expected);
  vm_schedule_free(sch);
  return done;
}

/* Networks are run by Lua: they are plans of several functions. */
static bool is_network(const struct cli_command *self, int argc, char **argv) {
  struct cli_words words = cli_words_of(self, argc, argv);
  struct cli_word word;
  while (cli_next(&words, &word) == CLI_WORD) {
    size_t length = strlen(word.text ? word.text : "");
    if (!word.option && !word.rest) return length > 5 && !strcmp(word.text + length - 5, ".onnx");
  }
  return false;
}

int cli_run(const struct cli_command *self, int argc, char **argv) {
  if (is_network(self, argc, argv)) return cli_lua(self, argc, argv);
  struct options o = {.seed = 1, .steps = MOST_STEPS};
  struct cli_list files = {0}, rest = {0}, dims = {0}, weights = {0}, of_networks = {0};
  const char *folder = NULL, *store = NULL, *layout = NULL;
  const struct cli_place places[] = {
      {.key = "json", .flag = &o.json},       {.key = "seed", .whole = &o.seed},
      {.key = "steps", .whole = &o.steps},    {.key = "trace", .text = &o.trace},
      {.key = "target", .text = &o.target},   {.key = "intrinsics", .list = &files},
      {.key = "task", .text = &o.task},       {.key = "", .list = &rest},
      {.key = "dim", .list = &dims},          {.key = "shape", .list = &of_networks},
      {.key = "input", .list = &of_networks}, {.key = "passes", .list = &of_networks},
      {.key = "output", .text = &folder},     {.key = "db", .text = &store},
      {.key = "weights", .list = &weights},   {.key = "constant", .list = &of_networks},
      {.key = "layout", .text = &layout},
  };
  int count;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  bool asks_network = of_networks.count || folder || store || layout;
  free(of_networks.at);
  if (count != 1) return free(rest.at), free(dims.at), free(weights.at), cli_wrong_usage(self, "give one file");
  if (asks_network)
    return free(rest.at), free(dims.at), free(weights.at),
           cli_wrong_usage(
               self, "--shape, --constant, --input, --passes, --layout, --output and --db are for networks, FILE.onnx");
  if (!o.steps || o.steps > INT64_MAX)
    return free(rest.at), free(dims.at), free(weights.at), cli_wrong_usage(self, "--steps takes a number from 1 on");
  ms_error err = {.instruction = -1};
  o.intrinsics = cli_read_intrinsics(&files, &err);
  struct tir *ir = o.intrinsics ? cli_read_function(argv[0], o.task, &rest, &dims, &weights, &err) : NULL;
  if (o.trace) ir = cli_for_trace(ir);
  struct vm_trace *trace = ir && o.trace ? cli_read_trace(o.trace, &err) : NULL;
  tir_func f = ir ? tir_find_func(ir, "main") : TIR_NONE;
  bool done = ir && (trace || !o.trace);
  done = done && run(ir, f, trace, &o, &err);
  if (!done) cli_report(&err, trace, o.json);
  vm_trace_free(trace);
  if (ir) tir_free(ir);
  vm_intrinsics_free(o.intrinsics);
  free(rest.at);
  free(dims.at);
  free(weights.at);
  return done ? CLI_DONE : CLI_FAILED;
}
