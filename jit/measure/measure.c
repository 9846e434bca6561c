/* The measurer: the host's side. It starts the helper program, hands it candidates and takes results in order. */
#define _GNU_SOURCE
#include "measure.h"
#include "jit/backend.h"
#include "jit/host/process.h"
#include "vm/vm.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct pending {
  struct measure_candidate head;
  size_t bytes;
  void *trace;
};

/* A function that is measured: what a new helper must know of it. */
struct task {
  struct measure_task head;
  char *texts; /* the function's, then those of intrinsics */
  double best;
  bool is_known, failed; /* what it computes; failed: that cannot be */
  bool closed;
  char *failure; /* why, or a remark */
};

struct jit_measurer {
  struct channel channel;
  pid_t helper;
  struct measure_hello hello;
  struct task *tasks;
  uint32_t task_count, task_capacity;
  struct pending *pending; /* submitted, no result taken yet; kept so that another helper can go on */
  size_t count, capacity;
  uint32_t restarts;  /* in a row, with no result between them */
  uint32_t finalists; /* of the final re-measurement that was asked for; 0: there is none */
  bool failed;
  ms_error failure;
  char waits[400]; /* what is waited for, as was said last and was not taken yet; "": nothing */
};

const char *jit_outcome_text(enum jit_outcome outcome) {
  static const char *const texts[JIT_OUTCOMES] = {
#define JIT_OUTCOME(id, text) text,
#include "jit/outcomes.def"
  };
  return (unsigned)outcome < JIT_OUTCOMES ? texts[outcome] : "unknown";
}

enum jit_outcome jit_outcome_of(enum ms_code code) {
  switch (code) {
  case MS_NOT_LAUNCHED: return JIT_NOT_LAUNCHED;
  case MS_EXCEEDS_DEVICE: return JIT_RESOURCES;
  case MS_MISALIGNED: return JIT_MISALIGNED;
  case MS_ILLEGAL_ADDRESS: return JIT_ILLEGAL_ADDRESS;
  case MS_NO_TILES: /* the system withholds what the instructions need: nothing is known of the result */
  case MS_ILLEGAL_INSTRUCTION: return JIT_ILLEGAL_INSTRUCTION;
  case MS_KERNEL_FAILED: return JIT_KERNEL_FAILED;
  case MS_LAUNCH_TIMEOUT: return JIT_RUN_TIMEOUT;
  case MS_TOO_LARGE:
  case MS_DEVICE_MEMORY: return JIT_OUT_OF_MEMORY;
  case MS_NO_DEVICE: return JIT_NO_DEVICE;
  default: return JIT_WRONG;
  }
}

/* ---- Finding and starting the helper ---- */

static const char helper_name[] = "msched-helper";

static bool find_helper(char *out, size_t size, ms_error *err) {
  const char *named = getenv("MSCHED_HELPER");
  if (named && *named) {
    snprintf(out, size, "%s", named);
    return access(out, X_OK) == 0 || ms_fail(err, MS_NO_HELPER, "MSCHED_HELPER=%s cannot be run", named);
  }
  if (jit_find_near(helper_name, 0, out, size) || jit_find_near(MSCHED_LIBEXEC_NAME "/msched-helper", 2, out, size))
    return true;
  snprintf(out, size, "%s/%s", MSCHED_LIBEXEC, helper_name);
  return access(out, X_OK) == 0 ||
         ms_fail(err, MS_NO_HELPER, "%s is neither beside this program or library, nor in its prefix, nor in %s",
                 helper_name, MSCHED_LIBEXEC);
}

/* The helper's environment: ours without what would change how many threads a kernel gets, or how they wait. */
static char **helper_environment(void) {
  size_t n = 0, kept = 0;
  while (environ[n]) n++;
  char **out = calloc(n + 1, sizeof *out);
  if (!out) abort();
  for (size_t i = 0; i < n; i++)
    if (strncmp(environ[i], "OMP_", 4) != 0 && strncmp(environ[i], "GOMP_", 5) != 0) out[kept++] = environ[i];
  return out;
}

static int spawn(const char *path, int socket, pid_t *pid) {
  static const int as[] = {MEASURE_SOCKET, -1};
  char *argv[] = {(char *)helper_name, NULL}, **environment = helper_environment();
  int failed = process_spawn(path, argv, environment, socket, as, pid);
  free(environment);
  return failed;
}

static void send_task(struct jit_measurer *m, const struct task *t) {
  channel_send(&m->channel, MEASURE_TASK, &t->head, sizeof t->head, t->texts, strlen(t->texts));
}

static void send_best(struct jit_measurer *m, uint32_t task) {
  const struct measure_best best = {task, m->tasks[task].best};
  channel_send(&m->channel, MEASURE_BEST, &best, sizeof best, NULL, 0);
}

static void send_close(struct jit_measurer *m, uint32_t task) {
  channel_send(&m->channel, MEASURE_CLOSE, &task, sizeof task, NULL, 0);
}

static void send_candidate(struct jit_measurer *m, const struct pending *p) {
  channel_send(&m->channel, MEASURE_CANDIDATE, &p->head, sizeof p->head, p->trace, p->bytes);
}

static void say_hello(struct jit_measurer *m) {
  channel_send(&m->channel, MEASURE_HELLO, &m->hello, sizeof m->hello, NULL, 0);
  for (uint32_t i = 0; i < m->task_count; i++) {
    send_task(m, &m->tasks[i]);
    if (m->tasks[i].best > 0) send_best(m, i);
    if (m->tasks[i].closed) send_close(m, i);
  }
  for (size_t i = 0; i < m->count; i++) send_candidate(m, &m->pending[i]);
}

/* Starts a helper and gives it all that is pending. */
static bool start(struct jit_measurer *m, ms_error *err) {
  char path[PATH_MAX];
  int ends[2];
  if (!find_helper(path, sizeof path, err)) return false;
  assert(!m->helper && m->channel.fd < 0);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
    int error = errno;
    return ms_fail(err, MS_NO_PROCESS, "no socket for the helper: %s; %s", strerror(error), process_remedy(error));
  }
  int failed = spawn(path, ends[1], &m->helper);
  descriptor_close(&ends[1]);
  channel_open(&m->channel, ends[0]);
  if (failed) {
    channel_close(&m->channel);
    m->helper = 0;
    bool missing = failed == ENOENT || failed == EACCES || failed == ENOEXEC;
    return missing ? ms_fail(err, MS_NO_HELPER, "%s: %s", path, strerror(failed))
                   : ms_fail(err, MS_NO_PROCESS, "could not start %s: %s; %s", path, strerror(failed),
                             process_remedy(failed));
  }
  assert(process_is_child(m->helper));
  say_hello(m);
  return true;
}

/* The helper ends, with its children, when its socket closes; what keeps it from that for long, the start of a process
 * or a task that it reads, is not waited for: it is killed, and its children die with it. */
static void stop(struct jit_measurer *m) {
  static const double ENDING = 0.3; /* seconds */
  channel_close(&m->channel);
  if (!m->helper) return;
  double end = measure_now() + ENDING;
  do {
    errno = 0;
    if (process_wait(m->helper, NULL, WNOHANG) || errno == ECHILD) {
      m->helper = 0;
      return;
    }
    usleep(1000);
  } while (measure_now() < end);
  process_end(&m->helper);
}

/* ---- Life ---- */

static void set_defaults(struct jit_measurer_options *o) {
  if (!o->build_timeout) o->build_timeout = 30;
  if (!o->run_timeout) o->run_timeout = JIT_RUN_SECONDS;
  if (!o->reference_timeout) o->reference_timeout = JIT_REFERENCE_SECONDS;
  if (!o->tolerance) o->tolerance = 0.02;
  if (!o->censor_factor) o->censor_factor = 3;
  o->code.dump_after = o->code.export_name = NULL;
  o->code.dump = NULL;
}

/* What the helper says of why it cannot start or go on. */
static bool take_failure(const struct message *message, ms_error *err) {
  uint32_t code = MS_NO_HELPER;
  size_t head = message->bytes < sizeof code ? message->bytes : sizeof code;
  if (head == sizeof code) memcpy(&code, message->data, sizeof code);
  return ms_fail(err, (enum ms_code)code, "%.*s", (int)(message->bytes - head), (const char *)message->data + head);
}

static bool wait_until_ready(struct jit_measurer *m, const volatile bool *stopped, ms_error *err) {
  static const double LOOK = 0.1; /* seconds */
  enum { LOOKS = 600 };           /* they count no time in which the process is stopped */
  struct message message;
  int got = 0;
  for (int looks = 0; !got && looks < LOOKS; looks++) {
    if (stopped && *stopped) return ms_fail(err, MS_NO_HELPER, "interrupted while the helper started");
    got = channel_wait(&m->channel, LOOK, &message);
  }
  if (got == 1 && message.type == MEASURE_READY) return true;
  if (got == 1 && message.type == MEASURE_FAILED) return take_failure(&message, err);
  return ms_fail(err, MS_NO_HELPER, "the helper %s", got == 0 ? "does not answer" : "ended as it started");
}

struct jit_measurer *jit_measurer_new(const struct jit_target *target, const struct jit_measurer_options *options,
                                      ms_error *err) {
  assert(target);
  if (!jit_target_runs_here(target, err)) return NULL;
  struct jit_measurer *m = calloc(1, sizeof *m);
  if (!m) abort();
  m->channel.fd = -1;
  m->hello = (struct measure_hello){.version = MEASURE_VERSION,
                                    .size = sizeof m->hello,
                                    .host = (int32_t)getpid(),
                                    .target = *target,
                                    .devices = jit_backend_of(target)->count(target)};
  if (options) m->hello.options = *options;
  set_defaults(&m->hello.options);
  if (start(m, err) && wait_until_ready(m, options ? options->stop : NULL, err)) return m;
  jit_measurer_free(m);
  return NULL;
}

void jit_measurer_free(struct jit_measurer *m) {
  if (!m) return;
  stop(m);
  for (size_t i = 0; i < m->count; i++) free(m->pending[i].trace);
  for (uint32_t i = 0; i < m->task_count; i++) {
    free(m->tasks[i].texts);
    free(m->tasks[i].failure);
  }
  free(m->pending);
  free(m->tasks);
  free(m);
}

/* ---- Tasks ---- */

static struct task task_of(const struct tir *workload, tir_func f, const struct vm_intrinsics *intrinsics) {
  char *first = tir_print(workload, TIR_NONE, 0), *second = vm_write_intrinsics(intrinsics, NULL);
  struct task t = {.head = {.function = f}};
  if (!first || !second || asprintf(&t.texts, "%s%s", first, second) < 0) abort();
  t.head.workload = strlen(first);
  free(first);
  free(second);
  return t;
}

uint32_t jit_measurer_add(struct jit_measurer *m, const struct tir *workload, tir_func f,
                          const struct vm_intrinsics *intrinsics) {
  assert(workload);
  if (m->task_count == m->task_capacity) {
    m->task_capacity = m->task_capacity ? 2 * m->task_capacity : 4;
    m->tasks = realloc(m->tasks, m->task_capacity * sizeof *m->tasks);
    if (!m->tasks) abort();
  }
  m->tasks[m->task_count] = task_of(workload, f, intrinsics);
  send_task(m, &m->tasks[m->task_count]);
  return m->task_count++;
}

int jit_measurer_reference(const struct jit_measurer *m, uint32_t task, ms_error *err) {
  assert(task < m->task_count);
  const struct task *t = &m->tasks[task];
  if (!t->failed) return t->is_known;
  ms_fail(err, MS_NOT_MEASURABLE, "%s", t->failure);
  return -1;
}

const char *jit_measurer_remark(const struct jit_measurer *m, uint32_t task) {
  assert(task < m->task_count);
  const struct task *t = &m->tasks[task];
  return t->is_known && !t->failed && t->failure ? t->failure : "";
}

static void take_state(struct jit_measurer *m, const struct message *message) {
  struct measure_task_state state;
  if (message->bytes < sizeof state) return;
  memcpy(&state, message->data, sizeof state);
  if (state.task >= m->task_count) return;
  struct task *t = &m->tasks[state.task];
  t->is_known = true, t->failed = state.failed;
  free(t->failure);
  t->failure = strndup((const char *)message->data + sizeof state, message->bytes - sizeof state);
  if (!t->failure) abort();
}

/* ---- Candidates and results ---- */

static void take_waits(struct jit_measurer *m, const struct message *message) {
  snprintf(m->waits, sizeof m->waits, "%.*s", (int)message->bytes, (const char *)message->data);
}

bool jit_measurer_waiting(struct jit_measurer *m, char *out, size_t size) {
  bool waits = *m->waits;
  snprintf(out, size, "%s", m->waits);
  *m->waits = 0;
  return waits;
}

static const struct pending *keep(struct jit_measurer *m, struct measure_candidate head, const void *trace,
                                  size_t bytes) {
  if (m->count == m->capacity) {
    m->capacity = m->capacity ? 2 * m->capacity : 64;
    m->pending = realloc(m->pending, m->capacity * sizeof *m->pending);
    if (!m->pending) abort();
  }
  void *copy = malloc(bytes + 1);
  if (!copy) abort();
  if (bytes) memcpy(copy, trace, bytes);
  m->pending[m->count] = (struct pending){head, bytes, copy};
  /* cppcheck-suppress memleak ; the list owns it */
  return &m->pending[m->count++];
}

static bool fail_again(const struct jit_measurer *m, ms_error *err) {
  if (err) *err = m->failure;
  return false;
}

enum { MOST_TRACE = 1 << 24 };

bool jit_measurer_submit(struct jit_measurer *m, uint32_t task, uint64_t id, const void *trace, size_t bytes,
                         ms_error *err) {
  assert(task < m->task_count && (trace || !bytes));
  if (m->failed) return fail_again(m, err);
  if (bytes > MOST_TRACE) return ms_fail(err, MS_TOO_LARGE, "a trace of %zu bytes is too long to be measured", bytes);
  send_candidate(m, keep(m, (struct measure_candidate){id, task}, trace, bytes));
  return true;
}

void jit_measurer_set_best(struct jit_measurer *m, uint32_t task, double seconds) {
  assert(task < m->task_count && seconds >= 0);
  m->tasks[task].best = seconds;
  send_best(m, task);
}

uint32_t jit_measurer_waits_for(const struct jit_measurer *m, uint32_t task) {
  assert(task < m->task_count);
  uint32_t waited = 0;
  for (size_t i = 0; i < m->count; i++) waited += m->pending[i].head.task == task;
  return waited;
}

bool jit_measurer_is_remeasuring(const struct jit_measurer *m) { return m->finalists > 0; }

void jit_measurer_close_task(struct jit_measurer *m, uint32_t task) {
  assert(!jit_measurer_waits_for(m, task) && !jit_measurer_is_remeasuring(m));
  if (m->tasks[task].closed) return;
  m->tasks[task].closed = true;
  send_close(m, task);
}

enum { MOST_RESTARTS = 3 };

/* The helper is gone, killed by someone: another goes on with what is pending. */
static bool restart(struct jit_measurer *m) {
  stop(m);
  if (++m->restarts > MOST_RESTARTS) {
    m->failed = true;
    return ms_fail(&m->failure, MS_NO_HELPER, "the helper ended %d times with no result between", MOST_RESTARTS);
  }
  m->failed = !start(m, &m->failure);
  return !m->failed;
}

static bool take_result(struct jit_measurer *m, const struct message *message, struct jit_result *out) {
  if (message->type != MEASURE_RESULT || message->bytes != sizeof *out) return false;
  memcpy(out, message->data, sizeof *out);
  size_t at = 0;
  while (at < m->count && m->pending[at].head.task != out->task) at++; /* its task's first is the one answered */
  if (at == m->count || m->pending[at].head.id != out->id) return false;
  free(m->pending[at].trace);
  memmove(m->pending + at, m->pending + at + 1, (--m->count - at) * sizeof *m->pending);
  m->restarts = 0;
  return true;
}

int jit_measurer_next(struct jit_measurer *m, double wait, struct jit_result *out, ms_error *err) {
  double end = measure_now() + wait;
  while (!m->failed && m->count) {
    struct message message;
    double left = end - measure_now();
    int got = channel_wait(&m->channel, left > 0 ? left : 0, &message);
    if (got == 0) return 0;
    if (got < 0) {
      restart(m);
    } else if (message.type == MEASURE_FAILED) {
      m->failed = true;
      take_failure(&message, &m->failure);
    } else if (message.type == MEASURE_TASK_STATE) {
      take_state(m, &message);
    } else if (message.type == MEASURE_WAITS) {
      take_waits(m, &message);
      return 0;
    } else if (take_result(m, &message, out)) {
      return 1;
    }
  }
  if (!m->failed) return 0;
  fail_again(m, err);
  return -1;
}

/* ---- Final re-measurement ---- */

bool jit_measurer_remeasure(struct jit_measurer *m, uint32_t task, const struct jit_trace *traces, uint32_t count,
                            double seconds, ms_error *err) {
  assert(task < m->task_count);
  if (m->failed) return fail_again(m, err);
  if (m->count || m->finalists)
    return ms_fail(err, MS_INVALID_ARGUMENT, "results are waited for still: take them before others are timed in turn");
  if (!count || count > JIT_MOST_FINALISTS)
    return ms_fail(err, MS_INVALID_ARGUMENT, "from 1 to %d candidates are timed in turn", JIT_MOST_FINALISTS);
  const struct measure_finalists remeasure = {task, count, seconds};
  size_t bytes = sizeof remeasure;
  for (uint32_t i = 0; i < count; i++) bytes += sizeof(uint64_t) + traces[i].bytes;
  uint8_t *text = malloc(bytes), *at = text;
  if (!text) abort();
  memcpy(at, &remeasure, sizeof remeasure), at += sizeof remeasure;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t size = traces[i].bytes;
    memcpy(at, &size, sizeof size), at += sizeof size;
    memcpy(at, traces[i].data, size), at += size;
  }
  channel_send(&m->channel, MEASURE_REMEASURE, text, bytes, NULL, 0);
  free(text);
  m->finalists = count;
  return true;
}

int jit_measurer_remeasured(struct jit_measurer *m, double wait, struct jit_timing *out, ms_error *err) {
  struct message message;
  assert(m->finalists);
  int got;
  while ((got = channel_wait(&m->channel, wait, &message)) == 1 &&
         (message.type == MEASURE_TASK_STATE || message.type == MEASURE_WAITS))
    (message.type == MEASURE_WAITS ? take_waits : take_state)(m, &message);
  if (got == 0) return 0;
  uint32_t count = m->finalists;
  m->finalists = 0;
  if (got > 0 && message.type == MEASURE_REMEASURED && message.bytes == count * sizeof *out) {
    memcpy(out, message.data, message.bytes);
    return 1;
  }
  ms_fail(err, MS_NOT_MEASURABLE, got < 0 ? "the helper ended" : "one of them could not be built or run");
  return -1;
}
