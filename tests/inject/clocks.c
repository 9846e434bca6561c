/* A library to preload: the clock of the day, or the steady one, is wrong.
 *
 *   LD_PRELOAD=libclocks.so CLOCKS=HOW PROGRAM…
 *
 * HOW   late     the day is past the year 9999
 *       early    it is before 1970
 *       jumps    it jumps back and forth, by up to 50 hours a reading
 *       back     the steady clock runs backwards
 * The kernel's own waits are not changed. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int is_how(const char *how) {
  const char *asked = getenv("CLOCKS");
  return asked && !strcmp(asked, how);
}

static void change_day(struct timespec *t) {
  static unsigned readings;
  unsigned n = __sync_fetch_and_add(&readings, 1);
  if (is_how("late")) t->tv_sec = 9000000000000000000;
  if (is_how("early")) t->tv_sec = -5000000000;
  if (is_how("jumps")) t->tv_sec += ((long)(n * 7919 % 100) - 50) * 3600;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  int failed = (int)syscall(SYS_clock_gettime, clock, t);
  if (!failed && clock == CLOCK_REALTIME) change_day(t);
  if (!failed && clock == CLOCK_MONOTONIC && is_how("back")) t->tv_sec = 100000000 - t->tv_sec;
  return failed;
}

time_t time(time_t *out) {
  struct timespec t = {0};
  clock_gettime(CLOCK_REALTIME, &t);
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}
