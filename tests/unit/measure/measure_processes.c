/* The helper's processes: another takes the place of one that is killed, and none is left when the host goes. */
#include "unit/measurer.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

enum { MOST = 256 };
struct pids {
  pid_t at[MOST];
  int count;
};

/* From /proc/PID/stat; false: no such process, or only its status is left. */
static bool look(pid_t pid, pid_t *parent, pid_t *group) {
  char path[64], text[512], state;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  if (!file) return false;
  size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[n] = 0;
  const char *after = strrchr(text, ')');
  return after && sscanf(after + 1, " %c %d %d", &state, parent, group) == 3 && state != 'Z';
}

static void add_children(pid_t of, struct pids *out) {
  DIR *processes = opendir("/proc");
  assert_non_null(processes);
  for (struct dirent *e; (e = readdir(processes)) != NULL && out->count < MOST;) {
    pid_t parent, group, pid = (pid_t)atoi(e->d_name);
    if (pid > 0 && look(pid, &parent, &group) && parent == of) out->at[out->count++] = pid;
  }
  closedir(processes);
}

/* The helper of a host, and the helper's children. */
static struct pids helper_of(pid_t host) {
  struct pids found = {0};
  add_children(host, &found);
  assert_int_equal(found.count, 1);
  add_children(found.at[0], &found);
  return found;
}

/* Within three seconds. */
static void expect_gone(const struct pids *pids) {
  for (int i = 0; i < pids->count; i++) {
    pid_t parent, group;
    int tries = 0;
    while (look(pids->at[i], &parent, &group) && tries++ < 300) usleep(10000);
    if (tries >= 300) fail_msg("process %d of %d is left", i, pids->count);
  }
}

static struct tir *counting(void) {
  return read_function("C: T.Buffer((8,), \"float32\")",
                       "for i in range(8):", "    with T.sblock(\"C\"):", "        vi = T.axis.opaque(8, i)",
                       "        T.reads(C[0:8])", "        T.writes(C[0:8])",
                       "        C[vi % 8] = T.sqrt(C[vi % 8] + T.float32(1))");
}

/* Splits the loop; runs as often as the factors say. */
static void submit_split(struct jit_measurer *m, uint64_t id, int outer, int inner) {
  char json[400];
  snprintf(json, sizeof json,
           "[[[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"GetLoops\", [\"b\"], [], [\"i\"]], [\"Split\", "
           "[\"i\", %d, %d], [false, true], [\"i0\", \"i1\"]]], []]",
           outer, inner);
  submit(m, id, json);
}

static const struct jit_measurer_options patient = {.run_timeout = 60, .censor_factor = 1e9};

/* Its processes are all there once a candidate was measured. */
static struct jit_measurer *start_and_measure(struct tir *ir) {
  struct jit_measurer *m = start_measurer(ir, &patient);
  submit_split(m, 1, 2, 4);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_MEASURED, NULL);
  return m;
}

static void frees_all(void **state) {
  (void)state;
  struct tir *ir = counting();
  struct jit_measurer *m = start_and_measure(ir);
  submit_split(m, 2, 1, 2147483640); /* runs for seconds */
  struct jit_result none;
  assert_int_equal(jit_measurer_next(m, 0.1, &none, NULL), 0);
  struct pids pids = helper_of(getpid());
  assert_true(pids.count >= 3); /* helper, builder, runner */
  jit_measurer_free(m);
  expect_gone(&pids);
  tir_free(ir);
}

static void stands_apart_from_the_terminal(void **state) {
  (void)state;
  struct tir *ir = counting();
  struct jit_measurer *m = start_and_measure(ir);
  struct pids pids = helper_of(getpid());
  for (int i = 0; i < pids.count; i++) {
    pid_t parent, group;
    assert_true(look(pids.at[i], &parent, &group));
    assert_int_equal(group, pids.at[0]);
    assert_int_not_equal(group, getpgrp());
  }
  jit_measurer_free(m);
  tir_free(ir);
}

/* Clock ticks of processor time; the process's own, all threads. */
static long ticks_of(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  size_t n = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[n] = 0;
  unsigned long user = 0, system = 0;
  const char *after = strrchr(text, ')');
  assert_int_equal(sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
  return (long)(user + system);
}

/* While a candidate runs, of all our processes only the runner does, however much there is to build. */
static void nothing_else_runs_meanwhile(void **state) {
  (void)state;
  struct tir *ir = counting();
  struct jit_measurer *m = start_and_measure(ir);
  struct jit_result none;
  submit_split(m, 2, 1, 2147483640); /* runs for seconds */
  assert_int_equal(jit_measurer_next(m, 0.3, &none, NULL), 0);
  for (int i = 0; i < 40; i++) submit_split(m, 3 + (uint64_t)i, 9 + i, 1000);
  assert_int_equal(jit_measurer_next(m, 0.02, &none, NULL), 0);
  struct pids pids = helper_of(getpid());
  long before[MOST];
  for (int i = 0; i < pids.count; i++) before[i] = ticks_of(pids.at[i]);
  usleep(200000);
  int busy = 0;
  for (int i = 0; i < pids.count; i++) busy += ticks_of(pids.at[i]) > before[i] + 1;
  assert_in_range(busy, 0, 1); /* none, where another program has the processor */
  jit_measurer_free(m);
  tir_free(ir);
}

static void goes_on_when_the_helper_is_killed(void **state) {
  (void)state;
  struct tir *ir = counting();
  struct jit_measurer *m = start_and_measure(ir);
  struct pids pids = helper_of(getpid());
  assert_true(pids.count > 0 && pids.at[0] > 1);
  kill(pids.at[0], SIGKILL);
  expect_gone(&pids); /* its children die with it */
  submit_split(m, 2, 4, 2);
  submit_split(m, 3, 8, 1);
  for (uint64_t id = 2; id <= 3; id++) {
    struct jit_result r = next_result(m);
    expect(&r, id, JIT_MEASURED, NULL);
  }
  jit_measurer_free(m);
  tir_free(ir);
}

static void runner_killed_from_outside_is_tried_again(void **state) {
  (void)state;
  struct tir *ir = counting();
  struct jit_measurer *m = start_measurer(ir, &patient);
  submit_split(m, 1, 2, 4);
  struct jit_result r = next_result(m);
  struct pids pids = helper_of(getpid());
  for (int i = 1; i < pids.count; i++) { /* builders and the runner */
    assert_true(pids.at[i] > 1);
    kill(pids.at[i], SIGKILL);
  }
  submit_split(m, 2, 4, 2);
  r = next_result(m);
  expect(&r, 2, JIT_MEASURED, NULL);
  jit_measurer_free(m);
  tir_free(ir);
}

/* A host in a process of its own: measures something endless until it is killed. */
static void be_host(int ready) {
  struct tir *ir = counting();
  struct jit_measurer *m = start_measurer(ir, &patient);
  struct jit_result r;
  submit_split(m, 1, 2, 4);
  if (jit_measurer_next(m, 60, &r, NULL) != 1) _exit(1);
  submit_split(m, 2, 1, 2147483640);
  submit_split(m, 3, 4, 2);
  jit_measurer_next(m, 0.1, &r, NULL);
  if (write(ready, "x", 1) != 1) _exit(1);
  pause();
  _exit(0);
}

static void leaves_nothing_when_the_host_is_killed(void **state) {
  (void)state;
  int ends[2];
  char byte;
  assert_int_equal(pipe(ends), 0);
  pid_t host = fork();
  assert_true(host >= 0);
  if (host == 0) be_host(ends[1]);
  assert_int_equal(read(ends[0], &byte, 1), 1);
  struct pids pids = helper_of(host);
  assert_true(pids.count >= 3);
  kill(host, SIGKILL);
  waitpid(host, NULL, 0);
  expect_gone(&pids);
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frees_all),
      cmocka_unit_test(stands_apart_from_the_terminal),
      cmocka_unit_test(nothing_else_runs_meanwhile),
      cmocka_unit_test(goes_on_when_the_helper_is_killed),
      cmocka_unit_test(runner_killed_from_outside_is_tried_again),
      cmocka_unit_test(leaves_nothing_when_the_host_is_killed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
