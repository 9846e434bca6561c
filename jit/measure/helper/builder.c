/* A builder: replays candidates' traces on the workload and compiles what comes of them. */
#include "helper.h"
#include "jit/cuda/resources.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vm/vm.h"

static struct note *fatal_note; /* LLVM's handler is given a reason and nothing else */

static void keep_last_words(const char *reason) {
  snprintf(fatal_note->said, sizeof fatal_note->said, "%s", reason);
  _exit(70);
}

/* What it needs of a task, made when its first candidate comes. */
struct building {
  struct channel *channel;
  const struct workload *w;
  struct tir *ir; /* the workload and the names of traces */
  struct vm_schedule *schedule;
};

static bool replay(struct building *b, const struct message *trace_bytes, struct measure_built *built) {
  ms_error err = {.instruction = -1};
  built->outcome = JIT_REFUSED;
  struct vm_trace *trace = vm_read_trace(trace_bytes->data, trace_bytes->bytes, &err);
  bool ok = false;
  if (trace) {
    struct vm_plan *plan = vm_prepare_with(b->ir, trace, b->w->intrinsics);
    struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace};
    ok = vm_replay(b->schedule, plan, &draws, &err);
    vm_plan_free(plan);
    vm_trace_free(trace);
  }
  if (!ok && err.instruction >= 0)
    snprintf(built->reason, sizeof built->reason, "instruction %d: %.370s", err.instruction, err.message);
  else if (!ok)
    snprintf(built->reason, sizeof built->reason, "%.390s", err.message);
  return ok;
}

static struct jit_code *compile(struct building *b, struct measure_built *built) {
  ms_error err = {.instruction = -1};
  struct jit_code *code = jit_compile(b->schedule->ir, b->w->f, &b->w->hello->target, &b->w->hello->options.code, &err);
  if (code && !jit_code_assemble(code, &err)) {
    jit_code_free(code);
    code = NULL;
  }
  built->outcome = code ? JIT_MEASURED : err.code == MS_EXCEEDS_DEVICE ? JIT_RESOURCES : JIT_BUILD_FAILED;
  if (!code) snprintf(built->reason, sizeof built->reason, "%.390s", err.message);
  return code;
}

/* Sends the module's hash and waits for leave to go on. */
static bool is_wanted(struct building *b) {
  struct message answer;
  uint64_t hash = tir_structural_hash(b->schedule->ir, TIR_NONE);
  channel_send(b->channel, MEASURE_REPLAYED, &hash, sizeof hash, NULL, 0);
  if (channel_wait(b->channel, -1, &answer) < 0) _exit(0);
  return answer.type == MEASURE_GO;
}

static struct jit_taken taken_by(const struct jit_code *code) {
  uint32_t count;
  const struct jit_resources *kernels = jit_code_resources(code, &count);
  return resources_most(kernels, count);
}

static void build(struct building *b, const struct message *trace) {
  struct measure_built built = {0};
  struct jit_code *code = NULL;
  double start = measure_now();
  assert(b->w && b->schedule && trace);
  if (replay(b, trace, &built)) {
    if (!is_wanted(b)) return;
    code = compile(b, &built);
  }
  built.seconds = measure_now() - start;
  size_t bytes = 0;
  const void *object = code ? jit_code_object(code, &bytes) : NULL;
  if (code) {
    built.workspace = code->workspace;
    built.packing = code->packing;
    built.taken = taken_by(code);
    snprintf(built.name, sizeof built.name, "%s", code->name);
  }
  channel_send(b->channel, MEASURE_BUILT, &built, sizeof built, object, bytes);
  channel_drain(b->channel);
  jit_code_free(code);
}

static struct building open_building(const struct workload *w, struct channel *channel) {
  struct building b = {.channel = channel, .w = w, .ir = tir_new()};
  tir_copy(b.ir, w->ir);
  b.schedule = vm_schedule_new(b.ir, 0);
  return b;
}

struct jit_code *builder_compile(const struct workload *w, const void *trace, size_t bytes) {
  struct building b = open_building(w, NULL);
  struct measure_built built = {0};
  const struct message message = {.data = trace, .bytes = bytes};
  struct jit_code *code = replay(&b, &message, &built) ? compile(&b, &built) : NULL;
  vm_schedule_free(b.schedule);
  tir_free(b.ir);
  return code;
}

void builder_main(struct channel *channel, const struct workloads *all, struct note *note) {
  fatal_note = note;
  jit_on_llvm_fault(keep_last_words);
  struct building *of = calloc(all->count + 1, sizeof *of); /* kept as long as the process lives, as all of it */
  if (!of) abort();
  struct message message;
  while (channel_wait(channel, -1, &message) == 1) {
    uint32_t task;
    if (message.bytes < sizeof task) return;
    memcpy(&task, message.data, sizeof task);
    if (task >= all->count) return;
    if (!of[task].w) of[task] = open_building(all->at[task], channel);
    const struct message trace = {.data = message.data + sizeof task, .bytes = message.bytes - sizeof task};
    note->stage = STAGE_BUILDING;
    build(&of[task], &trace);
    note->stage = STAGE_IDLE;
  }
}
