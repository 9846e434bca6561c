/* A program in a process of its own, asked line by line: what it opens may crash, or spoil its context on a device, and
 * the asking process goes on. */
#define _GNU_SOURCE
#include "jit/host/process.h"
#include "jit/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct jit_worker {
  pid_t pid;  /* 0: it has ended */
  int socket; /* its standard input and output; -1: it has ended */
  char *text; /* what it said, a line that was given before first */
  size_t given, length, room;
};

struct jit_worker *jit_worker_new(char **words, ms_error *err) {
  assert(words && words[0]);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
    ms_fail(err, MS_NO_HELPER, "no socket for a process: %s; %s", strerror(errno), process_remedy(errno));
    return NULL;
  }
  struct jit_worker *w = calloc(1, sizeof *w);
  if (!w) abort();
  w->socket = ends[0];
  static const int as[] = {STDIN_FILENO, STDOUT_FILENO, -1};
  int failed = process_spawn(words[0], words, environ, ends[1], as, &w->pid);
  descriptor_close(&ends[1]);
  if (!failed) return w;
  ms_fail(err, MS_NO_HELPER, "%s cannot be started: %s; %s", words[0], strerror(failed), process_remedy(failed));
  jit_worker_free(w);
  return NULL;
}

void jit_worker_free(struct jit_worker *w) {
  if (!w) return;
  descriptor_close(&w->socket);
  process_end(&w->pid);
  free(w->text);
  free(w);
}

static bool send_all(const struct jit_worker *w, const char *text, size_t length) {
  while (length) {
    ssize_t sent = send(w->socket, text, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text += sent, length -= (size_t)sent;
  }
  return true;
}

bool jit_worker_say(const struct jit_worker *w, const char *text, size_t length) {
  return w->socket >= 0 && send_all(w, text, length) && send_all(w, "\n", 1);
}

static bool read_more(struct jit_worker *w, const volatile int *stop) {
  enum { PIECE = 4096 };
  if (w->room - w->length < PIECE) {
    w->room = 2 * w->room + PIECE;
    w->text = realloc(w->text, w->room);
    if (!w->text) abort();
  }
  ssize_t got;
  do got = read(w->socket, w->text + w->length, w->room - w->length);
  while (got < 0 && errno == EINTR && !(stop && *stop));
  if (got > 0) w->length += (size_t)got;
  return got > 0;
}

const char *jit_worker_line(struct jit_worker *w, const volatile int *stop, size_t *length) {
  assert(w && length);
  if (w->given) memmove(w->text, w->text + w->given, w->length -= w->given);
  w->given = 0;
  while (w->socket >= 0) {
    const char *end = w->length ? memchr(w->text, '\n', w->length) : NULL;
    if (end) {
      *length = (size_t)(end - w->text);
      w->given = *length + 1;
      return w->text;
    }
    if (!read_more(w, stop)) break;
  }
  return NULL;
}

void jit_worker_end(struct jit_worker *w, char *text, size_t size) {
  int status = 0;
  descriptor_close(&w->socket);
  /* What closed its output is about to end. */
  enum { TRIES = 200, PAUSE_US = 5000 };
  for (int i = 0; i < TRIES && w->pid; i++) {
    if (process_wait(w->pid, &status, WNOHANG))
      w->pid = 0;
    else
      usleep(PAUSE_US);
  }
  if (w->pid) status = process_end(&w->pid);
  if (WIFSIGNALED(status))
    snprintf(text, size, "its process ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(text, size, "its process ended with status %d", WEXITSTATUS(status));
}
