/* Children of the helper: forked warm, limited, ended whatever they do. */
#define _GNU_SOURCE
#include "helper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_BYTES = 1 << 16, OWN_SOCKET = 3 };

/* Half of the machine's memory: what a candidate may ask for before it is refused. Shadow memory of a sanitizer is
 * larger than any limit. A backend lifts it that needs more addresses than memory. */
static void limit_memory(void) {
#if !defined(__SANITIZE_ADDRESS__)
  rlim_t most = (rlim_t)sysconf(_SC_PHYS_PAGES) * (rlim_t)sysconf(_SC_PAGESIZE) / 2;
  struct rlimit limit;
  if (!getrlimit(RLIMIT_AS, &limit))
    setrlimit(RLIMIT_AS, &(struct rlimit){most < limit.rlim_max ? most : limit.rlim_max, limit.rlim_max});
#endif
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){LOG_BYTES, LOG_BYTES});
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

static void become_child(int socket, int log, pid_t helper) {
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* follows the helper's thread, and it has only one */
  if (getppid() != helper) _exit(0);
  dup2(socket, OWN_SOCKET);
  dup2(log, STDERR_FILENO);
  close_range(OWN_SOCKET + 1, ~0u, 0);
  static const int fatal[] = {SIGPIPE, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL); /* a sanitizer's handlers go */
  limit_memory();
}

bool child_start(struct child *c, child_main *body, const struct workloads *all) {
  int ends[2];
  if (!c->note) c->note = shared_new(sizeof *c->note);
  memset(c->note, 0, sizeof *c->note);
  c->log = memfd_create("log", MFD_CLOEXEC);
  if (c->log < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return false;
  pid_t helper = getpid();
  c->pid = fork();
  if (c->pid == 0) {
    struct channel channel;
    become_child(ends[1], c->log, helper);
    channel_open(&channel, OWN_SOCKET);
    body(&channel, all, c->note);
    _exit(0);
  }
  close(ends[1]);
  channel_open(&c->channel, ends[0]);
  c->stopped = false, c->fresh = true, c->known = all->count;
  c->since = measure_now(), c->spent = 0;
  return c->pid > 0;
}

/* The last line that the child wrote. */
static void last_line(int log, char *out, size_t size) {
  char text[300];
  off_t end = lseek(log, 0, SEEK_END), from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
  ssize_t n = pread(log, text, sizeof text - 1, from);
  while (n > 0 && text[n - 1] == '\n') n--;
  text[n > 0 ? n : 0] = 0;
  const char *line = strrchr(text, '\n');
  snprintf(out, size, "%.290s", line ? line + 1 : text);
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
  if (*more && n < size) snprintf(out + n, size - n, ": %s", more);
}

int child_end(struct child *c, char *reason, size_t size) {
  int status = 0;
  if (!c->pid) return 0;
  kill(c->pid, SIGKILL); /* nothing to one that has ended */
  while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) continue;
  if (reason) say_how(c, status, reason, size);
  close(c->log);
  channel_close(&c->channel);
  c->pid = 0;
  c->stopped = false;
  return status;
}

void child_stop(struct child *c) {
  int status;
  if (!c->pid || c->stopped) return;
  kill(c->pid, SIGSTOP);
  while (waitpid(c->pid, &status, WUNTRACED | WNOWAIT) < 0 && errno == EINTR) continue;
  c->spent += measure_now() - c->since;
  c->stopped = true;
}

void child_continue(struct child *c) {
  if (!c->pid || !c->stopped) return;
  kill(c->pid, SIGCONT);
  c->since = measure_now();
  c->stopped = false;
}

double child_seconds(const struct child *c) { return c->spent + (c->stopped ? 0 : measure_now() - c->since); }
