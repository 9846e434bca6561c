/* Commands of the shell, each in a process group of its own, which ends when whoever waits for it says so. */
#define _GNU_SOURCE
#include "jit/jit.h"
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct jit_command {
  pid_t pid; /* 0: it has ended, by itself or not */
  int status;
};

/* The child's end of a pipe; ours is *fd. An errno, where there is none. */
static int open_pipe(enum jit_command_pipe pipe, int *fd, int *end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return errno;
  *fd = ends[pipe == JIT_COMMAND_WRITTEN], *end = ends[pipe != JIT_COMMAND_WRITTEN];
  return 0;
}

struct jit_command *jit_command_new(const char *text, enum jit_command_pipe pipe, int *fd, ms_error *err) {
  assert(text && fd);
  char shell[] = "/bin/sh", option[] = "-c", *copy = strdup(text), *words[] = {shell, option, copy, NULL};
  const int none[] = {-1}, input[] = {STDIN_FILENO, -1}, output[] = {STDOUT_FILENO, -1};
  const int *as = pipe == JIT_COMMAND_ALONE ? none : pipe == JIT_COMMAND_READ ? output : input;
  struct jit_command *command = calloc(1, sizeof *command);
  if (!command || !copy) abort();
  int end = -1, failed;
  *fd = -1;
  failed = pipe == JIT_COMMAND_ALONE ? 0 : open_pipe(pipe, fd, &end);
  if (!failed) failed = process_spawn(shell, words, environ, end < 0 ? STDIN_FILENO : end, as, &command->pid);
  descriptor_close(&end);
  free(copy);
  if (!failed) return command;
  descriptor_close(fd);
  free(command);
  errno = failed;
  ms_fail(err, MS_SCRIPT, "a command cannot be started (%s): %s", strerror(failed), process_remedy(failed));
  return NULL;
}

bool jit_command_wait(struct jit_command *command, double seconds, int *status) {
  enum { FIRST_PAUSE_NS = 200000, LONGEST_PAUSE_NS = 12800000 };
  assert(command && status);
  double waited = 0;
  for (long pause = FIRST_PAUSE_NS; command->pid; pause = pause < LONGEST_PAUSE_NS ? 2 * pause : pause) {
    errno = 0;
    bool ended = process_wait(command->pid, &command->status, WNOHANG);
    if (!ended && errno == ECHILD) command->status = -1;
    if (ended || errno == ECHILD) command->pid = 0;
    if (!command->pid || waited >= seconds) break;
    nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
    waited += 1e-9 * (double)pause;
  }
  *status = command->status;
  return !command->pid;
}

void jit_command_free(struct jit_command *command) {
  if (!command) return;
  process_end_group(&command->pid);
  free(command);
}
