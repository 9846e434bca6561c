/* A library to preload: counts system calls, and makes one of them fail once, where it is told.
 *
 *   LD_PRELOAD=libinject.so INJECT_STATE=FILE [INJECT_FAIL=ROLE:CALL:N:ERRNO] [INJECT_LOG=FILE] PROGRAM…
 *
 * INJECT_STATE   a file that all processes of a run share, made where it is missing: how often each call was used, by
 *                each role. A run that begins needs a new one.
 * INJECT_FAIL    the N-th use (from 1) of CALL in ROLE fails with ERRNO, a name or a number, and does nothing. The
 *                count is of all processes of the role together, so that it fails once, whoever is started again. N 0:
 *                every use fails.
 * INJECT_LOG     lines are added to this file: `failed ROLE CALL N` when that came to pass; `kill ROLE PID SIGNAL
 *                WHOSE` for each signal that is sent: `own` to a child or to itself, `foreign` to any other process,
 *                `all` to a group or to everyone (pid below 2). foreign and all are refused with EPERM. `done ROLE CALL
 *                COUNT` is written by `inject_counts`, a program of tests/tools that reads INJECT_STATE.
 *
 * Roles: `helper` is the program msched-helper, `child` what it forks, `host` any other program. Calls are the
 * functions of libc below, under the names without 64: what programs and libraries call by themselves. What libc does
 * within itself (malloc's mmap, fopen's open) is not seen. A store's calls are there too: open, pwrite, pwritev, pread,
 * fsync, fdatasync, msync, mmap, ftruncate, rename, unlink, flock, fcntl. */
#define _GNU_SOURCE
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct inject_state *state; /* NULL: nothing is counted */
static enum inject_role role;
static int log_file = -1;
static struct {
  bool any;
  enum inject_role role;
  enum inject_call call;
  uint32_t at; /* 0: each */
  int error;
} fault;

enum { MOST_CHILDREN = 4096 };
static pid_t children[MOST_CHILDREN]; /* 0: free */

/* ---- What is told ---- */

static const struct {
  const char *name;
  int number;
} errors[] = {{"EAGAIN", EAGAIN}, {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"EINTR", EINTR}, {"EIO", EIO},
              {"ENOSPC", ENOSPC}, {"EPERM", EPERM},   {"EACCES", EACCES}, {"EBADF", EBADF}, {"EINVAL", EINVAL},
              {"ECHILD", ECHILD}, {"ENOSYS", ENOSYS}, {"EFBIG", EFBIG},   {"EPIPE", EPIPE}, {"ENOENT", ENOENT}};

static int error_of(const char *name) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (!strcmp(errors[i].name, name)) return errors[i].number;
  return atoi(name);
}

static int find(const char *const *names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return i;
  return -1;
}

static void die(const char *what) {
  dprintf(STDERR_FILENO, "libinject: %s\n", what);
  _exit(99);
}

static void read_fault(const char *text) {
  char who[32], call[32], error[32];
  unsigned at;
  if (sscanf(text, "%31[^:]:%31[^:]:%u:%31s", who, call, &at, error) != 4) die("INJECT_FAIL is ROLE:CALL:N:ERRNO");
  int r = find(inject_roles, INJECT_ROLES, who), c = find(inject_calls, INJECT_CALLS, call);
  if (r < 0 || c < 0) die("INJECT_FAIL names no known role or call");
  fault.any = true, fault.role = (enum inject_role)r, fault.call = (enum inject_call)c, fault.at = at;
  fault.error = error_of(error);
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("INJECT_STATE"), *log = getenv("INJECT_LOG"), *fail = getenv("INJECT_FAIL");
  if (!path) return;
  role = strcmp(program_invocation_short_name, "msched-helper") ? INJECT_HOST : INJECT_HELPER;
  int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || syscall(SYS_ftruncate, file, sizeof *state)) die("INJECT_STATE cannot be opened");
  long at = syscall(SYS_mmap, NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (at == -1) die("INJECT_STATE cannot be mapped");
  if (log) log_file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log_file >= 0) { /* out of the way of numbers that programs count on, and of what they close */
    int high = (int)syscall(SYS_fcntl, log_file, F_DUPFD_CLOEXEC, 900);
    if (high >= 0) syscall(SYS_close, log_file), log_file = high;
  }
  if (fail && *fail) read_fault(fail);
  state = (struct inject_state *)at;
}

/* Opened again where a program has closed it. */
static void note(const char *format, ...) {
  char line[160];
  va_list args;
  int kept = errno;
  va_start(args, format);
  int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  const char *path = getenv("INJECT_LOG");
  if (!path || length <= 0) return;
  if (log_file < 0 || syscall(SYS_write, log_file, line, (size_t)length) != length) {
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file >= 0) syscall(SYS_write, file, line, (size_t)length), syscall(SYS_close, file);
  }
  errno = kept;
}

/* Counts a use; true: it fails, and errno is set. */
static bool fails(enum inject_call call) {
  if (!state) return false;
  uint32_t n = __atomic_add_fetch(&state->used[role][call], 1, __ATOMIC_RELAXED);
  if (!fault.any || fault.role != role || fault.call != call || (fault.at && fault.at != n)) return false;
  note("failed %s %s %u\n", inject_roles[role], inject_calls[call], n);
  errno = fault.error;
  return true;
}

static void *real(const char *name) {
  void *at = dlsym(RTLD_NEXT, name);
  if (!at) die(name);
  return at;
}

/* The function that a program meant, found once. */
#define REAL(type, name, ...)                                                                                          \
  static type (*real_##name)(__VA_ARGS__);                                                                             \
  if (!real_##name) real_##name = (type(*)(__VA_ARGS__))real(#name)

/* ---- Processes ---- */

static void adopt(pid_t pid) {
  for (int i = 0; pid > 0 && i < MOST_CHILDREN; i++)
    if (!children[i]) {
      children[i] = pid;
      return;
    }
}
static void disown(pid_t pid) {
  for (int i = 0; pid > 0 && i < MOST_CHILDREN; i++)
    if (children[i] == pid) children[i] = 0;
}
static bool is_own(pid_t pid) {
  if (pid == getpid()) return true;
  for (int i = 0; i < MOST_CHILDREN; i++)
    if (children[i] == pid) return true;
  return false;
}

pid_t fork(void) {
  REAL(pid_t, fork, void);
  if (fails(INJECT_fork)) return -1;
  pid_t pid = real_fork();
  if (!pid) {
    memset(children, 0, sizeof children);
    if (role == INJECT_HELPER) role = INJECT_CHILD;
  }
  adopt(pid);
  return pid;
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files, const posix_spawnattr_t *how,
                char *const argv[], char *const envp[]) {
  REAL(int, posix_spawn, pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
       char *const[], char *const[]);
  if (fails(INJECT_posix_spawn)) return errno;
  pid_t own;
  int failed = real_posix_spawn(pid ? pid : &own, path, files, how, argv, envp);
  if (!failed) adopt(pid ? *pid : own);
  return failed;
}

int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files, const posix_spawnattr_t *how,
                 char *const argv[], char *const envp[]) {
  REAL(int, posix_spawnp, pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
       char *const[], char *const[]);
  if (fails(INJECT_posix_spawnp)) return errno;
  pid_t own;
  int failed = real_posix_spawnp(pid ? pid : &own, path, files, how, argv, envp);
  if (!failed) adopt(pid ? *pid : own);
  return failed;
}

/* Nobody but a child is ever signalled, whatever the program asks for. */
int kill(pid_t pid, int number) {
  REAL(int, kill, pid_t, int);
  if (state) {
    const char *whose = pid <= 1 ? "all" : is_own(pid) ? "own" : "foreign";
    note("kill %s %d %d %s\n", inject_roles[role], (int)pid, number, whose);
    if (strcmp(whose, "own") != 0) {
      dprintf(STDERR_FILENO, "libinject: kill(%d, %d) refused\n", (int)pid, number);
      errno = EPERM;
      return -1;
    }
  }
  return fails(INJECT_kill) ? -1 : real_kill(pid, number);
}

int killpg(pid_t group, int number) {
  note("kill %s -%d %d all\n", inject_roles[role], (int)group, number);
  if (state) {
    errno = EPERM;
    return -1;
  }
  REAL(int, killpg, pid_t, int);
  return real_killpg(group, number);
}

pid_t waitpid(pid_t pid, int *status, int options) {
  REAL(pid_t, waitpid, pid_t, int *, int);
  if (fails(INJECT_waitpid)) return -1;
  int own = 0;
  pid_t got = real_waitpid(pid, status ? status : &own, options);
  int how = status ? *status : own;
  if (got > 0 && (WIFEXITED(how) || WIFSIGNALED(how))) disown(got);
  return got;
}

/* ---- The others: they fail, or are as they were ---- */

#define CALL(type, name, parameters, arguments, bad)                                                                   \
  type name parameters {                                                                                               \
    static type(*real_##name) parameters;                                                                              \
    if (!real_##name) real_##name = (type(*) parameters)real(#name);                                                   \
    return fails(INJECT_##name) ? bad : real_##name arguments;                                                         \
  }
/* One that is known under two names. */
#define CALL64(type, name, parameters, arguments, bad)                                                                 \
  CALL(type, name, parameters, arguments, bad)                                                                         \
  type name##64 parameters {                                                                                           \
    static type(*real_##name) parameters;                                                                              \
    if (!real_##name) real_##name = (type(*) parameters)real(#name "64");                                              \
    return fails(INJECT_##name) ? bad : real_##name arguments;                                                         \
  }

CALL(int, socketpair, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends), -1)
CALL(int, pipe, (int ends[2]), (ends), -1)
CALL(int, pipe2, (int ends[2], int flags), (ends, flags), -1)
CALL(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
CALL64(void *, mmap, (void *at, size_t bytes, int how, int flags, int file, off_t from),
       (at, bytes, how, flags, file, from), MAP_FAILED)
CALL(int, munmap, (void *at, size_t bytes), (at, bytes), -1)
CALL(int, mprotect, (void *at, size_t bytes, int how), (at, bytes, how), -1)
CALL(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice), -1)
CALL(int, msync, (void *at, size_t bytes, int flags), (at, bytes, flags), -1)
CALL64(int, ftruncate, (int file, off_t bytes), (file, bytes), -1)
CALL(int, dup, (int file), (file), -1)
CALL(int, dup2, (int file, int as), (file, as), -1)
CALL(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags), -1)
CALL(ssize_t, read, (int file, void *to, size_t bytes), (file, to, bytes), -1)
CALL(ssize_t, write, (int file, const void *from, size_t bytes), (file, from, bytes), -1)
CALL64(ssize_t, pread, (int file, void *to, size_t bytes, off_t at), (file, to, bytes, at), -1)
CALL64(ssize_t, pwrite, (int file, const void *from, size_t bytes, off_t at), (file, from, bytes, at), -1)
CALL64(ssize_t, pwritev, (int file, const struct iovec *from, int count, off_t at), (file, from, count, at), -1)
CALL64(off_t, lseek, (int file, off_t by, int whence), (file, by, whence), -1)
CALL(int, fsync, (int file), (file), -1)
CALL(int, fdatasync, (int file), (file), -1)
CALL(int, rename, (const char *from, const char *to), (from, to), -1)
CALL(int, unlink, (const char *path), (path), -1)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
CALL(int, flock, (int file, int how), (file, how), -1)
CALL(ssize_t, send, (int socket, const void *from, size_t bytes, int flags), (socket, from, bytes, flags), -1)
CALL(ssize_t, recv, (int socket, void *to, size_t bytes, int flags), (socket, to, bytes, flags), -1)
CALL(int, poll, (struct pollfd * at, nfds_t count, int milliseconds), (at, count, milliseconds), -1)
CALL(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit), (what, limit), -1)
CALL(int, getrlimit, (__rlimit_resource_t what, struct rlimit *limit), (what, limit), -1)
CALL(int, sched_setaffinity, (pid_t pid, size_t bytes, const cpu_set_t *set), (pid, bytes, set), -1)
CALL(int, sched_getaffinity, (pid_t pid, size_t bytes, cpu_set_t *set), (pid, bytes, set), -1)
CALL(int, setitimer, (__itimer_which_t which, const struct itimerval *to, struct itimerval *was), (which, to, was), -1)
CALL(int, sigaltstack, (const stack_t *restrict to, stack_t *restrict was), (to, was), -1)
CALL(int, sigaction, (int number, const struct sigaction *to, struct sigaction *was), (number, to, was), -1)
CALL(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options), -1)

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *data) {
  REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  return fails(INJECT_pthread_create) ? errno : real_pthread_create(thread, how, body, data);
}

/* ---- Those of any number of arguments ---- */

static long one_more(va_list args) { return va_arg(args, long); }

#define OPEN(name)                                                                                                     \
  int name(const char *path, int flags, ...) {                                                                         \
    REAL(int, name, const char *, int, ...);                                                                           \
    va_list args;                                                                                                      \
    va_start(args, flags);                                                                                             \
    long mode = flags & (O_CREAT | O_TMPFILE) ? one_more(args) : 0;                                                    \
    va_end(args);                                                                                                      \
    return fails(INJECT_open) ? -1 : real_##name(path, flags, (mode_t)mode);                                           \
  }
OPEN(open)
OPEN(open64)

#define FCNTL(name)                                                                                                    \
  int name(int file, int what, ...) {                                                                                  \
    REAL(int, name, int, int, ...);                                                                                    \
    va_list args;                                                                                                      \
    va_start(args, what);                                                                                              \
    long value = one_more(args);                                                                                       \
    va_end(args);                                                                                                      \
    return fails(INJECT_fcntl) ? -1 : real_##name(file, what, value);                                                  \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

int prctl(int what, ...) {
  REAL(int, prctl, int, ...);
  va_list args;
  va_start(args, what);
  long a = one_more(args), b = one_more(args), c = one_more(args), d = one_more(args);
  va_end(args);
  return fails(INJECT_prctl) ? -1 : real_prctl(what, a, b, c, d);
}
