/* Processes that this one started, and descriptors. */
#define _GNU_SOURCE
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool process_is_child(pid_t pid) { return pid > 1 && pid != getpid(); }

/* Too many processes, or too little memory, may be so for a moment. */
static int spawn_patiently(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
                           const posix_spawnattr_t *attributes, char **words, char **environment) {
  enum { FIRST_PAUSE_US = 5000, LONGEST_PAUSE_US = 640000 };
  for (useconds_t pause = FIRST_PAUSE_US;; pause *= 2) {
    int failed = posix_spawn(pid, path, files, attributes, words, environment);
    if (failed) *pid = 0;
    if ((failed != EAGAIN && failed != ENOMEM) || pause > LONGEST_PAUSE_US) return failed;
    usleep(pause);
  }
}

int process_spawn(const char *path, char **words, char **environment, int socket, const int *as, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t all, none;
  int failed = 0;
  assert(socket >= 0 && words[0]);
  *pid = 0;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  for (; !failed && *as >= 0; as++) failed = posix_spawn_file_actions_adddup2(&files, socket, *as);
  if (!failed) failed = spawn_patiently(pid, path, &files, &attributes, words, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failed;
}

/* 0: this process was not started by another of the family. */
static pid_t noted_host;

void process_note_host(void) {
  assert(!noted_host);
  noted_host = getppid();
}

/* -1: there is no such process, or nobody says. */
static pid_t parent_of(pid_t pid) {
  char path[64], text[512];
  int parent;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "re");
  if (!file) return -1;
  size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[n] = 0;
  const char *name_end = strrchr(text, ')'); /* a name may have parentheses and spaces of its own */
  return name_end && sscanf(name_end, ") %*c %d", &parent) == 1 ? parent : -1;
}

bool process_is_family(pid_t pid) {
  const pid_t host = noted_host ? noted_host : getpid();
  if (pid <= 0) return false;
  if (pid == host || pid == getpid()) return true;
  const pid_t leader = getpgid(pid);
  return leader > 0 && parent_of(leader) == host;
}

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

/* Its number is the group's as long as nobody has waited for it. */
void process_end_group(pid_t *pid) {
  assert(!*pid || (process_is_child(*pid) && getpgrp() != *pid));
  if (process_is_child(*pid)) kill(-*pid, SIGKILL);
  process_end(pid);
}

void process_wait_stopped(pid_t pid) {
  siginfo_t info;
  assert(process_is_child(pid));
  while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) && errno == EINTR) {}
}

int descriptor_open_nowhere(void) {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  return nothing >= 0 ? nothing : open("/", O_PATH | O_CLOEXEC);
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
  case EFBIG: return "raise the limit of files' sizes (ulimit -f), which is one of shared memory too";
  default: return "see what forbids it: a sandbox, or a limit of this session";
  }
}
