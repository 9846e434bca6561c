/* A program of a user: each module by its public header, and the measurer, which needs the installed helper. */
#include "db/db.h"
#include "jit/jit.h"
#include "search/search.h"
#include "vm/vm.h"

#include <stdlib.h>
#include <string.h>

static const char function[] = "@T.prim_func(s_tir=True)\n"
                               "def main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n"
                               "    for i in range(64):\n"
                               "        with T.sblock(\"B\"):\n"
                               "            vi = T.axis.spatial(64, i)\n"
                               "            B[vi] = A[vi] + T.float32(1.0)\n";
static const char trace[] = "[[[\"GetSBlock\",[],[\"B\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\"]],"
                            "[\"Split\",[\"l1\",\"None\",16],[1,0],[\"l2\",\"l3\"]],"
                            "[\"Vectorize\",[\"l3\"],[],[]]],[]]";

static int fail(const ms_error *err) {
  fprintf(stderr, "use: %s\n", err->message);
  return 1;
}

static int measure(const struct tir *ir, const struct vm_trace *steps, const struct jit_target *target) {
  ms_error err = {.instruction = -1};
  struct jit_result result;
  struct jit_measurer_options options = {.builders = 1};
  struct jit_measurer *m = jit_measurer_new(target, &options, &err);
  if (!m) return fail(&err);
  uint32_t task = jit_measurer_add(m, ir, tir_find_func(ir, "main"), NULL);
  size_t bytes;
  void *binary = vm_write_binary(steps, &bytes);
  int got = jit_measurer_submit(m, task, 1, binary, bytes, &err) ? jit_measurer_next(m, 60, &result, &err) : -1;
  free(binary);
  jit_measurer_free(m);
  if (got != 1) return fail(&err);
  printf("%s, %u features, records of %zu bytes\n", jit_outcome_text(result.outcome), search_feature_count(),
         sizeof(struct db_record));
  return result.outcome != JIT_MEASURED;
}

int main(void) {
  ms_error err = {.instruction = -1};
  struct jit_target target;
  struct tir *ir = tir_read(function, strlen(function), "use.c", &err);
  struct vm_trace *steps = vm_read_json(trace, strlen(trace), &err);
  struct vm_draws draws = {.mode = VM_STRICT};
  struct vm_schedule *schedule = ir && steps ? vm_apply(ir, steps, &draws, &err) : NULL;
  if (!schedule || !jit_target_parse("native", &target, &err)) return fail(&err);
  char *text = tir_print(schedule->ir, TIR_NONE, 0);
  fputs(text, stdout);
  free(text);
  int failed = measure(ir, steps, &target);
  vm_schedule_free(schedule);
  vm_trace_free(steps);
  tir_free(ir);
  return failed;
}
