/* What libinject counts, and where. */
#ifndef MSCHED_TEST_INJECT_H
#define MSCHED_TEST_INJECT_H

#include <stdbool.h>
#include <stdint.h>

/* CALL(name, errno that it is made to fail with where nothing else is said) */
#define INJECT_EACH_CALL(CALL)                                                                                         \
  CALL(fork, "EAGAIN")                                                                                                 \
  CALL(posix_spawn, "EAGAIN")                                                                                          \
  CALL(posix_spawnp, "EAGAIN")                                                                                         \
  CALL(pthread_create, "EAGAIN")                                                                                       \
  CALL(socketpair, "EMFILE")                                                                                           \
  CALL(pipe, "EMFILE")                                                                                                 \
  CALL(pipe2, "EMFILE")                                                                                                \
  CALL(memfd_create, "EMFILE")                                                                                         \
  CALL(mmap, "ENOMEM")                                                                                                 \
  CALL(munmap, "EINVAL")                                                                                               \
  CALL(mprotect, "ENOMEM")                                                                                             \
  CALL(madvise, "EINVAL")                                                                                              \
  CALL(msync, "EIO")                                                                                                   \
  CALL(ftruncate, "ENOSPC")                                                                                            \
  CALL(open, "EMFILE")                                                                                                 \
  CALL(dup, "EMFILE")                                                                                                  \
  CALL(dup2, "EMFILE")                                                                                                 \
  CALL(close_range, "ENOSYS")                                                                                          \
  CALL(fcntl, "EACCES")                                                                                                \
  CALL(read, "EIO")                                                                                                    \
  CALL(write, "EIO")                                                                                                   \
  CALL(pread, "EIO")                                                                                                   \
  CALL(pwrite, "ENOSPC")                                                                                               \
  CALL(pwritev, "ENOSPC")                                                                                              \
  CALL(lseek, "EINVAL")                                                                                                \
  CALL(fsync, "EIO")                                                                                                   \
  CALL(fdatasync, "EIO")                                                                                               \
  CALL(rename, "EACCES")                                                                                               \
  CALL(unlink, "EACCES")                                                                                               \
  CALL(mkdir, "ENOSPC")                                                                                                \
  CALL(flock, "EINTR")                                                                                                 \
  CALL(send, "ENOMEM")                                                                                                 \
  CALL(recv, "ENOMEM")                                                                                                 \
  CALL(poll, "ENOMEM")                                                                                                 \
  CALL(waitpid, "EINVAL")                                                                                              \
  CALL(waitid, "EINVAL")                                                                                               \
  CALL(kill, "EPERM")                                                                                                  \
  CALL(setrlimit, "EPERM")                                                                                             \
  CALL(getrlimit, "EINVAL")                                                                                            \
  CALL(sched_setaffinity, "EINVAL")                                                                                    \
  CALL(sched_getaffinity, "EINVAL")                                                                                    \
  CALL(setitimer, "EINVAL")                                                                                            \
  CALL(sigaltstack, "ENOMEM")                                                                                          \
  CALL(sigaction, "EINVAL")                                                                                            \
  CALL(prctl, "EINVAL")

#define INJECT_ENUM(name, error) INJECT_##name,
enum inject_call { INJECT_EACH_CALL(INJECT_ENUM) INJECT_CALLS };
#undef INJECT_ENUM

#define INJECT_NAME(name, error) #name,
static const char *const inject_calls[] = {INJECT_EACH_CALL(INJECT_NAME)};
#undef INJECT_NAME

enum inject_role { INJECT_HOST, INJECT_HELPER, INJECT_CHILD, INJECT_ROLES };
static const char *const inject_roles[] = {"host", "helper", "child"};

struct inject_state {
  uint32_t used[INJECT_ROLES][INJECT_CALLS];
};

#endif
