/* Making what failed small: instructions are dropped as long as the same trouble comes of the rest. Each trial is a
 * process of its own, since trouble may be a crash. */
#include "random.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 60 };

void limit_time(void) { setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = MOST_SECONDS}, NULL); }

void run_apart(struct shared *shared, void (*work)(void *data), void *data, bool quiet) {
  fflush(stdout);
  fflush(stderr);
  pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    int null = quiet ? open("/dev/null", O_WRONLY) : -1;
    if (null >= 0) dup2(null, 2);
    work(data);
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (shared->trouble) return;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
    report(shared, HUNG, "it took more than %d seconds of a processor", MOST_SECONDS);
  else if (WIFSIGNALED(status))
    report(shared, CRASHED, "signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status))
    report(shared, CRASHED, "exit status %d", WEXITSTATUS(status));
}

/* ---- Performing a trace again ---- */

struct again {
  struct shared *shared;
  const struct workload *workload;
  const char *json, *dropped;
  uint64_t seed;
  enum built build;
};

/* A value of another trace's steps, in ours; variables by `map`. False: it names one that there is not. */
static bool translate(struct grow *g, const struct vm_steps *from, struct vm_value v, const uint32_t *map,
                      struct vm_value *out) {
  *out = v;
  if (v.kind == VM_REF) return out->ref = map[v.ref], out->ref != UINT32_MAX;
  if (v.kind == VM_STRING) {
    *out = vm_string(&g->schedule->trace, from->text + v.first, v.count);
    out->bare = v.bare;
    return true;
  }
  if (v.kind != VM_LIST && v.kind != VM_MAP && v.kind != VM_INDEX_MAP && v.kind != VM_APPLY) return true;
  struct vm_value *items = malloc((v.count + 1) * sizeof *items);
  bool ok = items != NULL;
  for (uint32_t i = 0; i < v.count && ok; i++) ok = translate(g, from, from->values[v.first + i], map, &items[i]);
  if (ok) *out = vm_list(&g->schedule->trace, v.kind, items, v.count);
  out->op = v.op, out->bare = v.bare;
  free(items);
  return ok;
}

static void perform_again(struct grow *g, const struct vm_trace *trace, uint32_t number, uint32_t *map) {
  const struct vm_steps *s = trace->steps;
  const struct vm_instruction *i = &s->instructions[number];
  struct vm_value values[256];
  uint32_t total = i->inputs + i->attrs, first = 0, count = 0;
  if (total > 256) return;
  for (uint32_t v = 0; v < total; v++)
    if (!translate(g, s, vm_inputs_of(s, i)[v], map, &values[v])) return;
  bool decided = i->draw != VM_NO_DRAW && trace->decided[i->decision] == VM_DECIDED;
  if (!perform_decided(g, i->kind, values, i->inputs, values + i->inputs, i->attrs,
                       decided ? trace->decisions + i->decision : NULL, decided ? i->outputs : 0, &first, &count))
    return;
  for (uint32_t o = 0; o < i->outputs && o < count; o++) map[i->first_output + o] = first + o;
}

/* An If or a For whose End was dropped is no trace. */
static bool is_whole(const struct vm_trace *trace) {
  int64_t open = 0;
  for (uint32_t i = 0; i < trace->steps->count; i++) {
    uint32_t kind = trace->steps->instructions[i].kind;
    open += (kind == VM_If || kind == VM_For) - (kind == VM_End);
  }
  return open == 0;
}

static void work_again(void *data) {
  const struct again *a = data;
  struct grow g;
  ms_error err = {0};
  limit_time();
  struct vm_trace *trace = vm_read_json(a->json, strlen(a->json), &err);
  grow_start(&g, a->workload, a->seed, a->shared);
  if (!trace) {
    report(a->shared, NOT_REPLAYED, "JSON: %s", err.message);
    return;
  }
  uint32_t *map = malloc((trace->steps->variables + 1) * sizeof *map);
  if (!map) abort();
  memset(map, 0xff, (trace->steps->variables + 1) * sizeof *map);
  for (uint32_t i = 0; i < trace->steps->count && !a->shared->trouble; i++)
    if (!a->dropped || !a->dropped[i]) perform_again(&g, trace, i, map);
  if (!a->shared->trouble && is_whole(&g.schedule->trace)) judge(&g, a->seed, a->build);
  free(map);
  vm_trace_free(trace);
  grow_end(&g);
}

void replay_apart(struct shared *shared, const struct workload *w, const char *json, const char *dropped, uint64_t seed,
                  enum built build) {
  struct again again = {shared, w, json, dropped, seed, build};
  shared->trouble = NO_TROUBLE;
  shared->log = true;
  run_apart(shared, work_again, &again, dropped != NULL);
  shared->log = false;
}

/* ---- Dropping ---- */

static uint32_t instruction_count(const char *json) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_json(json, strlen(json), &err);
  uint32_t count = trace ? trace->steps->count : 0;
  vm_trace_free(trace);
  return count;
}

/* Tries to do without instruction `number`; true: the same trouble, and *json is the shorter trace. */
static bool without(struct shared *shared, const struct workload *w, char **json, uint32_t number, uint32_t count,
                    enum trouble trouble, uint64_t seed, enum built build) {
  char *dropped = calloc(count + 1, 1);
  if (!dropped) abort();
  dropped[number] = 1;
  replay_apart(shared, w, *json, dropped, seed, build);
  free(dropped);
  if (shared->trouble != trouble || instruction_count(shared->json) >= count || !instruction_count(shared->json))
    return false;
  free(*json);
  *json = strdup(shared->json);
  return true;
}

void minimise(struct shared *shared, const struct workload *w, uint64_t seed, enum built build) {
  struct tally kept = shared->tally;
  enum trouble trouble = shared->trouble;
  char *json = strdup(shared->json), *message = strdup(shared->message);
  if (trouble == HUNG) goto done; /* each trial would take as long */
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (uint32_t i = instruction_count(json); i-- > 0;) {
      uint32_t count = instruction_count(json);
      if (i >= count || !without(shared, w, &json, i, count, trouble, seed, build)) continue;
      smaller = true;
      free(message);
      message = strdup(shared->message);
    }
  }
done:
  shared->tally = kept;
  shared->trouble = trouble;
  snprintf(shared->json, sizeof shared->json, "%s", json);
  snprintf(shared->message, sizeof shared->message, "%s", message);
  free(json);
  free(message);
}
