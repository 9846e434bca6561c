/* The process's temporary files and folders. A signal that would end the process by default finds them in a table of
 * fixed size, whose handler makes system calls alone. */
#define _GNU_SOURCE
#include "jit/jit.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 16, DEEPEST = 8 };
static struct {
  int state; /* atomic: FREE, BEING_MADE, USED */
  char path[PATH_MAX];
} table[MOST];
enum { FREE, BEING_MADE, USED };

static pid_t owner; /* a child of a fork leaves them to its parent */

/* ---- Removing: system calls alone ---- */

struct entry { /* of getdents64. Source: getdents(2) */
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

static void remove_at(int folder, const char *name, int depth);

static void empty(int folder, int depth) {
  _Alignas(struct entry) char bytes[4096];
  for (long got; (got = syscall(SYS_getdents64, folder, bytes, sizeof bytes)) > 0;)
    for (long at = 0; at < got;) {
      const struct entry *e = (const void *)(bytes + at);
      if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0) remove_at(folder, e->name, depth);
      at += e->length;
    }
}

/* What still writes in a folder may be quicker once. */
static void remove_at(int folder, const char *name, int depth) {
  enum { TRIES = 3 };
  if (!unlinkat(folder, name, 0)) return;
  for (int i = 0; i < TRIES && unlinkat(folder, name, AT_REMOVEDIR); i++) {
    int inner = depth < DEEPEST ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (inner < 0) return;
    empty(inner, depth + 1);
    close(inner);
  }
}

void jit_end_temporaries(void) {
  for (int i = 0; i < MOST && owner == getpid(); i++)
    if (__atomic_exchange_n(&table[i].state, BEING_MADE, __ATOMIC_ACQ_REL) == USED)
      remove_at(AT_FDCWD, table[i].path, 0);
}

/* ---- Signals ---- */

static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGQUIT,
                              SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ}; /* not those of a fault, nor of timers */
enum { SIGNALS = sizeof signals / sizeof *signals };

static void on_end(int number) {
  jit_end_temporaries();
  signal(number, SIG_DFL);
  raise(number); /* once this returns */
}

/* Where a signal does something else, whoever handles it ends them. */
static void catch_signals(bool caught) {
  struct sigaction ours = {.sa_handler = on_end}, now;
  for (int i = 0; i < SIGNALS; i++) sigaddset(&ours.sa_mask, signals[i]);
  for (int i = 0; i < SIGNALS; i++) {
    if (sigaction(signals[i], NULL, &now)) continue;
    if (caught && now.sa_handler == SIG_DFL) sigaction(signals[i], &ours, NULL);
    if (!caught && now.sa_handler == on_end) signal(signals[i], SIG_DFL);
  }
}

/* ---- The table ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static int claim(void) {
  for (int i = 0; i < MOST; i++) {
    int expected = FREE;
    if (__atomic_compare_exchange_n(&table[i].state, &expected, BEING_MADE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return i;
  }
  return -1;
}

int jit_temporary(const char *path) {
  assert(path);
  if (strlen(path) >= PATH_MAX) return -1;
  pthread_mutex_lock(&lock);
  if (owner != getpid()) {
    for (int i = 0; i < MOST; i++) table[i].state = FREE;
    count = 0, owner = getpid();
  }
  int i = claim();
  if (i >= 0) {
    strcpy(table[i].path, path);
    if (count++ == 0) catch_signals(true);
    __atomic_store_n(&table[i].state, USED, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return i;
}

void jit_temporary_end(int temporary) {
  assert(temporary >= -1 && temporary < MOST);
  if (temporary < 0 || owner != getpid()) return;
  pthread_mutex_lock(&lock);
  remove_at(AT_FDCWD, table[temporary].path, 0);
  __atomic_store_n(&table[temporary].state, FREE, __ATOMIC_RELEASE);
  if (--count == 0) catch_signals(false);
  pthread_mutex_unlock(&lock);
}
