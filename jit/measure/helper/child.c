/* Children of the helper: forked warm, limited, ended whatever they do. */
#define _GNU_SOURCE
#include "helper.h"
#include "jit/host/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOG_BYTES = 1 << 16, OWN_SOCKET = 3, UNBORN_STATUS = 71 };

/* ---- In the child, before its body ---- */

static bool lower_limit(int which, rlim_t most) {
  struct rlimit limit;
  if (getrlimit(which, &limit)) return false;
  if (most > limit.rlim_max) most = limit.rlim_max;
  return !setrlimit(which, &(struct rlimit){most, limit.rlim_max});
}

/* Of one file, in memory or on a disk. What is built may be as long as a message, and compilers write that to a
 * temporary file; one that runs away leaves half of what is free there. What is written past it fails with EFBIG: the
 * signal is ignored. */
static rlim_t most_written(void) {
  const char *folder = getenv("TMPDIR");
  struct statvfs there;
  rlim_t most = CHANNEL_MOST_BYTES;
  if (statvfs(folder && *folder ? folder : "/tmp", &there)) return most;
  rlim_t half = (rlim_t)there.f_bavail * there.f_frsize / 2, least = 16 << 20;
  return half < least ? least : half < most ? half : most;
}

/* Half of the machine's memory: what a candidate may ask for before it is refused. Shadow memory of a sanitizer is
 * larger than any limit. A backend lifts it that needs more addresses than memory. */
static bool limit_child(void) {
  bool ok = true;
#if !defined(__SANITIZE_ADDRESS__)
  ok = lower_limit(RLIMIT_AS, (rlim_t)sysconf(_SC_PHYS_PAGES) * (rlim_t)sysconf(_SC_PAGESIZE) / 2);
#endif
  signal(SIGXFSZ, SIG_IGN);
  return ok && lower_limit(RLIMIT_FSIZE, most_written()) && !setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

static void close_others(void) {
  if (!close_range(OWN_SOCKET + 1, ~0u, 0)) return;
  for (int fd = OWN_SOCKET + 1, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++) close(fd);
}

_Noreturn void child_give_up(struct note *note, const char *why) {
  note->stage = STAGE_STARTING;
  snprintf(note->said, sizeof note->said, "%s", why);
  _exit(UNBORN_STATUS);
}

/* It cannot be what it was forked for. */
static _Noreturn void be_unborn(struct note *note, const char *what) {
  char why[200];
  int error = errno;
  snprintf(why, sizeof why, "a process could not be limited or joined (%s: %s); %s", what, strerror(error),
           process_remedy(error));
  child_give_up(note, why);
}

static void become_child(int socket, int log, pid_t helper, struct note *note) {
  assert(socket > OWN_SOCKET && log > OWN_SOCKET);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL)) be_unborn(note, "prctl"); /* follows the helper's thread: it has only one */
  if (getppid() != helper) _exit(0);
  if (dup2(socket, OWN_SOCKET) != OWN_SOCKET || dup2(log, STDERR_FILENO) != STDERR_FILENO) be_unborn(note, "dup2");
  close_others();
  static const int fatal[] = {SIGPIPE, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL); /* a sanitizer's handlers go */
  if (!limit_child()) be_unborn(note, "setrlimit");
}

static _Noreturn void run_child(const struct child *c, int socket, pid_t helper, child_main *body,
                                const struct workloads *all) {
  struct channel channel;
  become_child(socket, c->log, helper, c->note);
  channel_open(&channel, OWN_SOCKET);
  if (channel.fd < 0) be_unborn(c->note, "fcntl");
  c->note->stage = STAGE_IDLE;
  body(&channel, all, c->note);
  _exit(0);
}

/* ---- Starting ---- */

/* What a child writes to its standard error, in memory that does not grow: what is past its end is refused. */
static int open_log(void) {
  int log = memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (log < 0) return -1;
  if (!ftruncate(log, LOG_BYTES) && fcntl(log, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) >= 0) return log;
  int error = errno;
  descriptor_close(&log);
  errno = error;
  return -1;
}

static bool fail_start(struct child *c, const char *what, ms_error *err) {
  int error = errno;
  descriptor_close(&c->log);
  return ms_fail(err, MS_NO_PROCESS, "could not %s: %s; %s", what, strerror(error), process_remedy(error));
}

bool child_start(struct child *c, child_main *body, const struct workloads *all, ms_error *err) {
  int ends[2];
  assert(!c->pid && !c->stopped && c->channel.fd < 0 && c->log < 0);
  if (!c->note) c->note = shared_new(sizeof *c->note);
  if (!c->note) return fail_start(c, "share memory with a process", err);
  memset(c->note, 0, sizeof *c->note);
  c->log = open_log();
  if (c->log < 0) return fail_start(c, "open memory for what a process says", err);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
    return fail_start(c, "open a socket", err);
  const pid_t helper = getpid(), pid = fork();
  if (pid == 0) run_child(c, ends[1], helper, body, all);
  int error = errno;
  descriptor_close(&ends[1]);
  if (pid < 0) {
    descriptor_close(&ends[0]);
    errno = error;
    return fail_start(c, "fork", err);
  }
  c->pid = pid;
  channel_open(&c->channel, ends[0]); /* where that fails, it is as a child that hung up */
  c->stopped = false, c->fresh = true, c->known = all->count;
  child_begin(c);
  return true;
}

static const double FIRST_PAUSE = 5e-3, LONGEST_PAUSE = 0.25, PATIENCE = 2; /* seconds */
enum { MOST_GIVEN_UP = 3 };

enum start child_try(struct child *c, child_main *body, const struct workloads *all, struct starts *starts) {
  ms_error err = {.instruction = -1};
  double now = measure_now();
  if (starts_fail(starts) && now < starts->next) return START_LATER;
  starts->failing = !child_start(c, body, all, &err);
  return starts->failing ? starts_failed(starts, err.message) : START_DONE;
}

void starts_worked(struct starts *starts) {
  if (starts->pause > 0 || starts->given_up || !starts->any) *starts = (struct starts){.any = true};
}

enum start starts_failed(struct starts *starts, const char *why) {
  snprintf(starts->why, sizeof starts->why, "%.290s", why);
  starts->failing = true;
  starts->patient += starts->pause;
  starts->pause = starts->pause > 0 ? fmin(2 * starts->pause, LONGEST_PAUSE) : FIRST_PAUSE;
  starts->next = measure_now() + starts->pause;
  if (starts->patient < PATIENCE) return START_LATER;
  starts->patient = 0;
  starts->given_up++;
  return START_GIVEN_UP;
}

bool starts_are_hopeless(const struct starts *starts) {
  return starts->given_up >= MOST_GIVEN_UP || (starts->given_up && !starts->any);
}

bool starts_fail(const struct starts *starts) { return starts->failing; }

double starts_wait(const struct starts *starts) {
  return starts_fail(starts) ? fmax(starts->next - measure_now(), 0) : 3600;
}

/* ---- How it ended ---- */

/* The last line that the child wrote. */
static void last_line(int log, char *out, size_t size) {
  char text[300];
  off_t end = lseek(log, 0, SEEK_CUR), from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
  ssize_t n = end > 0 ? pread(log, text, (size_t)(end - from), from) : 0;
  while (n > 0 && text[n - 1] == '\n') n--;
  text[n > 0 ? n : 0] = 0;
  const char *line = strrchr(text, '\n');
  snprintf(out, size, "%.290s", line ? line + 1 : text);
}

/* What such a signal says of what the child did, where it left no words of its own; "": nothing. */
static const char *explain_signal(int number, uint32_t stage) {
  bool built = stage == STAGE_BUILDING, ran = stage > STAGE_BUILDING;
  switch (number) {
  case SIGSEGV:
  case SIGBUS: return built ? "the compiler fell over" : ran ? "the kernel touched memory that is not its own" : "";
  case SIGILL:
    return built ? "the compiler fell over" : ran ? "the kernel has an instruction that this machine lacks" : "";
  case SIGFPE: return ran ? "the kernel divided by zero, or the least integer by -1" : "";
  case SIGXFSZ: return "a file reached the limit of its size";
  case SIGKILL: return "another process ended it, as the system does where memory is short";
  default: return "";
  }
}

static void say_how(const struct child *c, int status, char *out, size_t size) {
  char line[301];
  last_line(c->log, line, sizeof line);
  size_t n;
  if (WIFSIGNALED(status))
    n = (size_t)snprintf(out, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    n = (size_t)snprintf(out, size, "exit with status %d", WEXITSTATUS(status));
  const char *more = *c->note->said ? c->note->said : line;
  if (!*more && WIFSIGNALED(status)) more = explain_signal(WTERMSIG(status), c->note->stage);
  if (*more && n < size) snprintf(out + n, size - n, ": %s", more);
}

bool child_is_unborn(const struct child *c) { return c->note && c->note->stage == STAGE_STARTING; }

int child_end(struct child *c, char *reason, size_t size) {
  if (!c->pid) return 0;
  assert(c->note && c->log >= 0);
  channel_close(&c->channel); /* one that could not be signalled ends of this, if it does nothing */
  int status = process_end(&c->pid);
  if (reason) say_how(c, status, reason, size);
  descriptor_close(&c->log);
  c->stopped = false;
  return status;
}

/* ---- Stops ---- */

static double stopped; /* seconds in which the helper, and all that it started, did not run */

void child_note_sleep(double asked, double slept) {
  static const double SLACK = 0.25; /* seconds */
  if (slept > asked + SLACK) stopped += slept - asked;
}

static double clock_now(void) { return measure_now() - stopped; }

static double processor_seconds(pid_t pid) {
  clockid_t clock;
  return clock_getcpuclockid(pid, &clock) ? 0 : measure_clock(clock);
}

void child_begin(struct child *c) {
  c->since = clock_now(), c->spent = 0;
  c->processor = c->pid ? processor_seconds(c->pid) : 0;
}

void child_stop(struct child *c) {
  if (!c->pid || c->stopped) return;
  if (!process_signal(c->pid, SIGSTOP)) return;
  process_wait_stopped(c->pid);
  c->spent += clock_now() - c->since;
  c->stopped = true;
}

void child_continue(struct child *c) {
  if (!c->pid || !c->stopped) return;
  process_signal(c->pid, SIGCONT);
  c->since = clock_now();
  c->stopped = false;
}

double child_seconds(const struct child *c) { return c->spent + (c->stopped ? 0 : clock_now() - c->since); }

double child_left(const struct child *c, double limit) {
  double left = limit - child_seconds(c);
  if (left > 0 || !c->pid) return left;
  double worked = processor_seconds(c->pid) - c->processor;
  return fmin(limit - worked, left + (CHILD_MORE - 1) * limit);
}

static struct channel *told;

static void tell(const char *text) { channel_send(told, MEASURE_WAITS, text, strlen(text), NULL, 0); }

void child_say_waiting(struct channel *channel) {
  told = channel;
  jit_say_waiting(tell);
}
