/* The threads of parallel loops: every part once, and each told which it is; loops after loops of any number of parts,
 * from many threads at once, in parts, and in the child of a fork. */
#include "jit/team.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 1100, CALLERS = 6, LOOPS = 400 };

struct loop {
  unsigned count;
  int nested;
  unsigned char runs[MOST];
  int wrong;
};

static void note_part(void *closure) {
  struct loop *l = closure;
  int number = team_part();
  if (team_parts() != (int)l->count || number < 0 || number >= (int)l->count) {
    __atomic_store_n(&l->wrong, 1, __ATOMIC_RELAXED);
    return;
  }
  if (l->nested) {
    struct loop inner = {.count = 3};
    team_parallel(note_part, &inner, inner.count);
    for (unsigned i = 0; i < inner.count; i++)
      if (inner.runs[i] != 1 || inner.wrong) __atomic_store_n(&l->wrong, 1, __ATOMIC_RELAXED);
    if (team_part() != number) __atomic_store_n(&l->wrong, 1, __ATOMIC_RELAXED);
  }
  __atomic_fetch_add(&l->runs[number], 1, __ATOMIC_RELAXED);
}

static int runs_once(unsigned count, int nested) {
  struct loop l = {.count = count, .nested = nested};
  team_parallel(note_part, &l, count);
  for (unsigned i = 0; i < count; i++)
    if (l.runs[i] != 1) return 0;
  return !l.wrong && team_part() == 0 && team_parts() == 1;
}

static void runs_every_part_once(void **state) {
  (void)state;
  static const unsigned counts[] = {1, 2, 3, 8, 33, 1024, 1025, 2};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    for (int nested = 0; nested < 2; nested++) assert_true(runs_once(counts[i], nested));
}

static void *call_often(void *seed) {
  for (size_t i = 0; i < LOOPS; i++)
    if (!runs_once(1 + (unsigned)((i * 7 + (size_t)seed) % 9), i % 50 == 0)) return seed;
  return NULL;
}

/* The caller waits for all parts, its first too, which a worker may have taken. */
static void sleep_in_first(void *closure) {
  if (!team_part()) usleep(20);
  note_part(closure);
}

static void parts_that_take_long_are_waited_for(void **state) {
  (void)state;
  for (int i = 0; i < LOOPS * 5; i++) {
    struct loop l = {.count = 2 + (unsigned)i % 3};
    team_parallel(sleep_in_first, &l, l.count);
    for (unsigned k = 0; k < l.count; k++) assert_int_equal(l.runs[k], 1);
  }
}

static void many_threads_call_at_once(void **state) {
  (void)state;
  pthread_t threads[CALLERS];
  for (size_t i = 0; i < CALLERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, call_often, (void *)(i + 1)), 0);
  for (size_t i = 0; i < CALLERS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
}

static void the_child_of_a_fork_has_its_own(void **state) {
  (void)state;
  assert_true(runs_once(4, 0)); /* there are workers now, which the child has not */
  for (int i = 0; i < 10; i++) {
    pid_t child = fork();
    if (!child) _exit(call_often((void *)1) ? 1 : 0);
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_every_part_once), cmocka_unit_test(parts_that_take_long_are_waited_for),
      cmocka_unit_test(many_threads_call_at_once), cmocka_unit_test(the_child_of_a_fork_has_its_own)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
