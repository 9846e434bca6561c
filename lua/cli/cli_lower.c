/* msched lower: a function as the code generators see it, or after any pass of the lowering. */
#include "cli.h"
#include "lua/bind/state/visible.h"

#include "jit/jit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What a pass is called, of which this may be the name that it had. */
static const char *pass_named(const char *name) {
  static const char *const old[][2] = {
      {"version", "unswitch"}, {"share", "cse"}, {"shared", "shared_memory"}, {"vectors", "gpu_vectorize"}};
  for (size_t i = 0; name && i < sizeof old / sizeof *old; i++)
    if (!strcmp(name, old[i][0])) return old[i][1];
  return name;
}

/* The name of a pass for the device, "all", or NULL: after the last. */
static bool check_pass(enum tir_device device, const char *name, ms_error *err) {
  char list[800] = "";
  size_t length = 0;
  const char *what, *pass;
  if (!name || !strcmp(name, "all")) return true;
  for (uint32_t i = 0; (pass = tir_lower_pass(device, i, &what)) != NULL; i++) {
    if (!strcmp(pass, name)) return true;
    length += (size_t)snprintf(list + length, sizeof list - length, "%s ", pass);
    assert(length < sizeof list);
  }
  return ms_fail(err, MS_UNKNOWN_PASS, "no pass of the lowering is named `%s`; there are %sand all", name, list);
}

/* The scheduled function when a trace is given, else a copy of what was read. */
static struct tir *scheduled(struct tir *ir, const struct vm_trace *trace, const struct vm_intrinsics *intrinsics,
                             uint64_t seed, ms_error *err) {
  struct tir *out = NULL;
  if (!trace) {
    out = tir_new();
    tir_copy(out, ir);
    return out;
  }
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace, .seed = seed};
  struct vm_schedule *sch = vm_apply_with(ir, trace, intrinsics, &draws, err);
  if (sch) {
    out = tir_new();
    tir_copy(out, sch->ir);
  }
  vm_schedule_free(sch);
  return out;
}

/* Where the trace may have left the regions, none of the passes is held to them. */
static bool lower(struct tir *ir, const struct vm_trace *trace, const char *target_name, const char *after,
                  ms_error *err) {
  struct jit_target target;
  ms_error none = {0};
  if (!jit_target_parse(target_name, &target, err)) return false;
  tir_func f = tir_find_func(ir, "main");
  struct tir_lower_options options = jit_lower_options(&target);
  options.verify = !trace || tir_verify(ir, &none);
  options.dump_after = pass_named(after);
  options.dump = stdout;
  if (!check_pass(options.device, options.dump_after, err)) return false;
  if (!tir_lower(ir, f, &options, err)) return false;
  if (after) return true;
  char *text = tir_print(ir, f, 0);
  if (text) visible_put(text, VISIBLE_SCRIPT);
  free(text);
  return true;
}

int cli_lower(const struct cli_command *self, int argc, char **argv) {
  const char *trace_path = NULL, *target = "native", *after = NULL, *task = NULL;
  uint64_t seed = 1;
  struct cli_list files = {0}, rest = {0}, dims = {0}, weights = {0};
  const struct cli_place places[] = {
      {.key = "trace", .text = &trace_path},
      {.key = "target", .text = &target},
      {.key = "dump-after", .text = &after},
      {.key = "intrinsics", .list = &files},
      {.key = "seed", .whole = &seed},
      {.key = "task", .text = &task},
      {.key = "", .list = &rest},
      {.key = "dim", .list = &dims},
      {.key = "weights", .list = &weights},
  };
  int count;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  if (count != 1) return free(rest.at), free(dims.at), free(weights.at), cli_wrong_usage(self, "give one file");
  ms_error err = {.instruction = -1};
  struct vm_intrinsics *intrinsics = cli_read_intrinsics(&files, &err);
  struct tir *ir = intrinsics ? cli_read_function(argv[0], task, &rest, &dims, &weights, &err) : NULL;
  if (trace_path) ir = cli_for_trace(ir);
  struct vm_trace *trace = ir && trace_path ? cli_read_trace(trace_path, &err) : NULL;
  struct tir *ours = ir && (trace || !trace_path) ? scheduled(ir, trace, intrinsics, seed, &err) : NULL;
  bool done = ours && lower(ours, trace, target, after, &err);
  if (!done) cli_report(&err, trace, false);
  if (ours) tir_free(ours);
  vm_trace_free(trace);
  if (ir) tir_free(ir);
  vm_intrinsics_free(intrinsics);
  free(rest.at);
  free(dims.at);
  free(weights.at);
  return done ? CLI_DONE : CLI_FAILED;
}
