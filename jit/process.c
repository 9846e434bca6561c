/* Processes that this one started, and descriptors. */
#define _GNU_SOURCE
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

bool process_is_child(pid_t pid) { return pid > 1 && pid != getpid(); }

/* A signal that could not be sent is sent again, a wait that failed is repeated. */
enum { SIGNAL_TRIES = 3, END_TRIES = 500, PAUSE_US = 1000 };

bool process_signal(pid_t pid, int signal) {
  assert(process_is_child(pid));
  for (int tries = 0; tries < SIGNAL_TRIES && process_is_child(pid); tries++) {
    if (!kill(pid, signal)) return true;
    if (errno == ESRCH) return false;
    usleep(PAUSE_US);
  }
  return false;
}

bool process_wait(pid_t pid, int *status, int options) {
  int ignored;
  assert(process_is_child(pid));
  pid_t got;
  do got = waitpid(pid, status ? status : &ignored, options);
  while (got < 0 && errno == EINTR);
  assert(got <= 0 || got == pid);
  return got == pid;
}

int process_end(pid_t *pid) {
  int status = 0;
  if (!*pid) return 0;
  const pid_t child = *pid;
  *pid = 0;
  assert(process_is_child(child));
  for (int tries = 0; tries < END_TRIES && process_is_child(child); tries++) {
    bool sent = process_signal(child, SIGKILL) || errno == ESRCH;
    if (process_wait(child, &status, sent ? 0 : WNOHANG)) return status;
    if (sent && errno == ECHILD) return 0;
    usleep(PAUSE_US);
  }
  return 0;
}

void process_wait_stopped(pid_t pid) {
  siginfo_t info;
  assert(process_is_child(pid));
  while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) && errno == EINTR) {}
}

void descriptor_close(int *fd) {
  assert(fd != NULL && *fd >= -1);
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

const char *process_remedy(int error) {
  switch (error) {
  case EAGAIN: return "raise the limit of processes (ulimit -u, or pids.max of its control group), or end some";
  case ENOMEM: return "end what takes the machine's memory, or take smaller tensors";
  case EMFILE:
  case ENFILE: return "raise the limit of open files (ulimit -n)";
  default: return "see what forbids it: a sandbox, or a limit of this session";
  }
}
