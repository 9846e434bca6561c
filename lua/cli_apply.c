/* msched apply: schedules functions by traces. */
#include "bind.h"
#include "cli.h"

#include <stdlib.h>
#include <string.h>

struct options {
  bool json;
  uint64_t seed;
  const struct vm_intrinsics *intrinsics; /* NULL: those shipped */
  struct vm_intrinsics *read;             /* from a file of sections */
  lua_State *L;                           /* whose script defined them */
};

static int print_result(const struct vm_schedule *sch, bool as_json) {
  char *script = tir_print(sch->ir, TIR_NONE, 0), *trace = as_json ? vm_write_json(&sch->trace) : NULL;
  if (as_json)
    cli_print_json(json_pack("{s:b, s:s, s:o}", "ok", 1, "script", script, "trace", json_loads(trace, 0, NULL)));
  else
    fputs(script, stdout);
  free(script);
  free(trace);
  return CLI_DONE;
}

static int apply(const char *ir_path, const char *trace_path, const struct options *o) {
  ms_error err = {.instruction = -1};
  struct tir *ir = cli_read_module(ir_path, &err);
  struct vm_trace *trace = ir ? cli_read_trace(trace_path, &err) : NULL;
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace, .seed = o->seed};
  struct vm_plan *plan = trace ? vm_prepare_with(ir, trace, o->intrinsics) : NULL;
  struct vm_schedule *sch = vm_schedule_new(NULL, o->seed);
  bool done = plan && vm_replay(sch, plan, &draws, &err);
  int status = done ? print_result(sch, o->json) : cli_report(&err, trace, o->json);
  vm_plan_free(plan);
  vm_schedule_free(sch);
  vm_trace_free(trace);
  tir_free(ir);
  return status;
}

/* A script that calls ms.intrinsic. */
static bool run_definitions(const char *path, struct options *o, ms_error *err) {
  o->L = script_new(NULL, err);
  if (!o->L || !script_run_file(o->L, path, 0, 0, err)) return false;
  o->intrinsics = bind_intrinsics(o->L);
  return true;
}

static bool read_sections(const char *path, struct options *o, ms_error *err) {
  size_t length;
  char *text = cli_read_file(path, &length, err);
  o->intrinsics = o->read = text ? vm_read_intrinsics(text, path, err) : NULL;
  free(text);
  return o->read != NULL;
}

static bool read_intrinsics(const char *path, struct options *o) {
  ms_error err = {.instruction = -1};
  size_t length = strlen(path);
  bool is_script = length > 4 && !strcmp(path + length - 4, ".lua");
  bool ok = is_script ? run_definitions(path, o, &err) : read_sections(path, o, &err);
  if (!ok) cli_report(&err, NULL, o->json);
  return ok;
}

static void free_intrinsics(struct options *o) {
  vm_intrinsics_free(o->read);
  if (o->L) script_close(o->L);
}

int cli_apply(const struct cli_command *self, int argc, char **argv) {
  struct options o = {0};
  const char *intrinsics = NULL;
  const struct cli_place places[] = {
      {.key = "json", .flag = &o.json},
      {.key = "seed", .whole = &o.seed},
      {.key = "intrinsics", .text = &intrinsics},
  };
  int count, status = CLI_DONE;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  if (!count || count % 2) return cli_wrong_usage(self, "give an IR file and a trace, any number of times");
  if (intrinsics && !read_intrinsics(intrinsics, &o)) count = 0, status = CLI_FAILED;
  for (int i = 0; i < count; i += 2)
    if (apply(argv[i], argv[i + 1], &o) != CLI_DONE) status = CLI_FAILED;
  free_intrinsics(&o);
  return status;
}
