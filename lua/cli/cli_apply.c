/* msched apply: schedules functions by traces. */
#include "cli.h"
#include "lua/bind/state/visible.h"

#include <stdlib.h>

struct options {
  bool json;
  uint64_t seed;
  struct vm_intrinsics *intrinsics; /* besides those shipped */
  struct cli_list dims, weights;
};

static int print_result(const struct vm_schedule *sch, bool as_json) {
  char *script = tir_print(sch->ir, TIR_NONE, 0), *trace = as_json ? vm_write_json(&sch->trace) : NULL;
  if (as_json)
    cli_print_json(json_pack("{s:b, s:s, s:o}", "ok", 1, "script", script, "trace", json_loads(trace, 0, NULL)));
  else
    visible_put(script, VISIBLE_SCRIPT);
  free(script);
  free(trace);
  return CLI_DONE;
}

/* A TVMScript file is a module, of one function or several. */
static struct tir *read_functions(const char *path, const struct options *o, ms_error *err) {
  const struct cli_list none = {0};
  bool one = o->dims.count || o->weights.count || cli_is_made_by_lua(path);
  return one ? cli_read_function(path, NULL, &none, &o->dims, &o->weights, err) : cli_read_module(path, err);
}

static int apply(const char *ir_path, const char *trace_path, const struct options *o) {
  ms_error err = {.instruction = -1};
  struct tir *ir = cli_for_trace(read_functions(ir_path, o, &err));
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

int cli_apply(const struct cli_command *self, int argc, char **argv) {
  struct options o = {0};
  struct cli_list intrinsics = {0};
  ms_error err = {.instruction = -1};
  const struct cli_place places[] = {
      {.key = "json", .flag = &o.json},           {.key = "seed", .whole = &o.seed},
      {.key = "intrinsics", .list = &intrinsics}, {.key = "dim", .list = &o.dims},
      {.key = "weights", .list = &o.weights},
  };
  int count, status = CLI_DONE;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count))
    status = CLI_USAGE;
  else if (!count || count % 2)
    status = cli_wrong_usage(self, "give a function and a trace, any number of times");
  else if (!(o.intrinsics = cli_read_intrinsics(&intrinsics, &err)))
    status = cli_report(&err, NULL, o.json);
  for (int i = 0; o.intrinsics && i < count; i += 2)
    if (apply(argv[i], argv[i + 1], &o) != CLI_DONE) status = CLI_FAILED;
  vm_intrinsics_free(o.intrinsics);
  free(o.dims.at);
  free(o.weights.at);
  return status;
}
