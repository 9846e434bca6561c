/* A measurer of several functions: each candidate is compared with its own function, and none waits for another's. */
#include "unit/measurer.h"

#include <signal.h>

/* Adds `addend` to each of so many elements. */
static struct tir *adding(int extent, int addend) {
  char parameters[120], loop[40], axis[60], store[80];
  snprintf(parameters, sizeof parameters, "A: T.Buffer((%d,), \"float32\"), C: T.Buffer((%d,), \"float32\")", extent,
           extent);
  snprintf(loop, sizeof loop, "for i in range(%d):", extent);
  snprintf(axis, sizeof axis, "        vi = T.axis.spatial(%d, i)", extent);
  snprintf(store, sizeof store, "        C[vi] = A[vi] + T.float32(%d)", addend);
  return read_function(parameters, loop, "    with T.sblock(\"C\"):", axis, store);
}

/* Adds to the elements of its output in turn, so often. */
static struct tir *counting(int times) {
  char loop[40], axis[60];
  snprintf(loop, sizeof loop, "for i in range(%d):", times);
  snprintf(axis, sizeof axis, "        vi = T.axis.opaque(%d, i)", times);
  return read_function("C: T.Buffer((8,), \"float32\")", loop, "    with T.sblock(\"C\"):", axis,
                       "        T.reads(C[0:8])", "        T.writes(C[0:8])",
                       "        C[vi % 8] = C[vi % 8] + T.float32(1)");
}

/* Unscheduled it runs for minutes. */
static struct tir *endless(void) {
  return read_function("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",
                       "for i in range(1000000000000):", "    with T.sblock(\"C\"):",
                       "        vi = T.axis.opaque(1000000000000, i)", "        T.reads(A[0:8], C[0:8])",
                       "        T.writes(C[0:8])", "        C[vi % 8] = T.sqrt(C[vi % 8] + A[vi % 8])");
}

/* Unscheduled it leaves its buffer. */
static struct tir *failing(void) {
  return read_function("A: T.Buffer((64,), \"int32\"), C: T.Buffer((64,), \"int32\")",
                       "for i in range(64):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(64, i)",
                       "        C[A[vi] + 1000000] = A[vi]");
}

#define SPLIT(factors)                                                                                                 \
  "[[[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"GetLoops\", [\"b\"], [], [\"i\"]], [\"Split\", "              \
  "[\"i\", " factors "], [false, true], [\"i0\", \"i1\"]]], []]"
#define PLAIN "[[], []]"

static const struct jit_measurer_options patient = {.censor_factor = -1, .run_timeout = 60};

static uint32_t add(struct jit_measurer *m, struct tir *ir) {
  uint32_t task = jit_measurer_add(m, ir, tir_find_func(ir, "main"), NULL);
  tir_free(ir); /* all is copied */
  return task;
}

static struct jit_measurer *start(struct tir *first) {
  struct jit_measurer *m = start_measurer(first, &patient);
  tir_free(first);
  return m;
}

/* Takes so many results: each task's have the ids 1, 2, … in this order, and are of `outcomes`, by task and id. */
static void expect_in_order(struct jit_measurer *m, int count, const enum jit_outcome outcomes[2][3]) {
  uint64_t seen[2] = {0};
  for (int i = 0; i < count; i++) {
    struct jit_result r = next_result(m);
    assert_in_range(r.task, 0, 1);
    assert_in_range(seen[r.task], 0, 2);
    enum jit_outcome outcome = outcomes[r.task][seen[r.task]++];
    expect(&r, seen[r.task], outcome, NULL);
    assert_false(r.repeated); /* what one task measured is new to another */
  }
}

/* The helper's process, and the memory that it shares with its children, in KiB. */
static pid_t helper_of_this_process(void) {
  char command[80], line[40] = "";
  snprintf(command, sizeof command, "pgrep -P %d msched-helper", (int)getpid());
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  if (!fgets(line, sizeof line, pipe)) line[0] = 0;
  pclose(pipe);
  assert_true(atoi(line) > 1); /* it is signalled */
  return (pid_t)atoi(line);
}
static long shared_kilobytes(pid_t process) {
  char path[60], line[200];
  long kilobytes = -1;
  snprintf(path, sizeof path, "/proc/%d/status", (int)process);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) sscanf(line, "RssShmem: %ld", &kilobytes);
  fclose(file);
  return kilobytes;
}

/* A task that has ended takes no memory for its arguments; others go on, with another helper too. */
static void one_that_is_closed_gives_its_memory_back(void **state) {
  (void)state;
  struct jit_measurer *m = start(adding(1 << 21, 1)); /* 8 MiB an argument, and what is expected */
  assert_int_equal(add(m, adding(64, 2)), 1);
  struct jit_result r;
  submit_to(m, 0, 1, SPLIT("2048, 1024"));
  r = next_result(m);
  expect(&r, 1, JIT_MEASURED, NULL);
  pid_t helper = helper_of_this_process();
  assert_true(helper > 0 && shared_kilobytes(helper) > 16 * 1024);
  assert_int_equal(jit_measurer_waits_for(m, 0), 0);
  jit_measurer_close_task(m, 0);
  jit_measurer_close_task(m, 0);
  for (int round = 0; round < 2; round++) {
    submit_to(m, 1, 2, SPLIT("8, 8"));
    assert_int_equal(jit_measurer_waits_for(m, 1), 1);
    r = next_result(m);
    expect(&r, 2, JIT_MEASURED, NULL);
    assert_true(shared_kilobytes(helper) < 1024);
    kill(helper, SIGKILL); /* the next one has both tasks, of which one is closed */
    submit_to(m, 0, 3, SPLIT("2, 1048576"));
    r = next_result(m);
    expect(&r, 3, JIT_NO_REFERENCE, "closed");
    helper = helper_of_this_process();
  }
  jit_measurer_free(m);
}

/* The same traces on functions that differ: what is right of one is wrong of another. */
static void compares_each_with_its_own(void **state) {
  (void)state;
  static const enum jit_outcome outcomes[2][3] = {{JIT_MEASURED, JIT_MEASURED, JIT_MEASURED},
                                                  {JIT_MEASURED, JIT_WRONG, JIT_WRONG}};
  struct jit_measurer *m = start(counting(12));
  assert_int_equal(add(m, counting(8)), 1);
  for (uint32_t task = 0; task < 2; task++) {
    submit_to(m, task, 1, PLAIN);
    submit_to(m, task, 2, SPLIT("3, 4"));
    submit_to(m, task, 3, SPLIT("6, 2"));
  }
  expect_in_order(m, 6, outcomes);
  jit_measurer_free(m);
}

static const enum jit_outcome good[2][3]; /* JIT_MEASURED is 0 */

/* Children that were there before a task serve it too, in that others take their place. */
static void takes_tasks_at_any_time(void **state) {
  (void)state;
  struct jit_measurer *m = start(adding(16, 1));
  submit_to(m, 0, 1, PLAIN);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_MEASURED, NULL);
  assert_int_equal(add(m, adding(64, 3)), 1);
  submit_to(m, 1, 1, SPLIT("8, 8"));
  r = next_result(m);
  assert_int_equal(r.task, 1);
  expect(&r, 1, JIT_MEASURED, NULL);
  assert_int_equal(jit_measurer_reference(m, 1, NULL), 1);
  jit_measurer_free(m);
}

/* What one computes takes long, and what another computes cannot be known: a third is measured meanwhile. */
static void holds_up_no_other(void **state) {
  (void)state;
  ms_error err = {0};
  struct jit_measurer *m = start(endless());
  assert_int_equal(add(m, failing()), 1);
  assert_int_equal(add(m, adding(16, 1)), 2);
  for (uint32_t task = 0; task < 3; task++) submit_to(m, task, 1, PLAIN);
  bool failed = false, measured = false;
  for (int i = 0; i < 2; i++) {
    struct jit_result r = next_result(m);
    if (r.task == 1) expect(&r, 1, JIT_NO_REFERENCE, "the unscheduled function cannot be run");
    if (r.task == 2) expect(&r, 1, JIT_MEASURED, NULL);
    failed = failed || r.task == 1, measured = measured || r.task == 2;
  }
  assert_true(failed && measured);
  assert_int_equal(jit_measurer_reference(m, 0, &err), 0);
  assert_int_equal(jit_measurer_reference(m, 1, &err), -1);
  assert_non_null(strstr(err.message, "C["));
  assert_int_equal(jit_measurer_reference(m, 2, &err), 1);
  jit_measurer_free(m);
}

/* A reference that is given up ends its task alone. */
static void gives_up_one_alone(void **state) {
  (void)state;
  const struct jit_measurer_options options = {.censor_factor = -1, .reference_timeout = 0.5};
  struct tir *ir = endless();
  struct jit_measurer *m = start_measurer(ir, &options);
  tir_free(ir);
  submit_to(m, 0, 1, PLAIN);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_NO_REFERENCE, "took more than 0.5 s");
  assert_int_equal(add(m, adding(16, 1)), 1);
  submit_to(m, 1, 1, PLAIN);
  r = next_result(m);
  expect(&r, 1, JIT_MEASURED, NULL);
  jit_measurer_free(m);
}

/* The helper of a process. */
static pid_t helper_of_this(void) {
  char path[80];
  int pid = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%d", &pid), 1);
  fclose(file);
  assert_true(pid > 1);
  return (pid_t)pid;
}

/* Another helper hears of every task and of what is pending of each. */
static void goes_on_with_all_when_the_helper_is_killed(void **state) {
  (void)state;
  struct jit_measurer *m = start(adding(64, 1));
  assert_int_equal(add(m, adding(64, 3)), 1);
  for (uint64_t id = 1; id <= 3; id++)
    for (uint32_t task = 0; task < 2; task++)
      submit_to(m, task, id, id == 1 ? PLAIN : id == 2 ? SPLIT("8, 8") : SPLIT("4, 16"));
  kill(helper_of_this(), SIGKILL);
  expect_in_order(m, 6, good);
  jit_measurer_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compares_each_with_its_own), cmocka_unit_test(one_that_is_closed_gives_its_memory_back),
      cmocka_unit_test(takes_tasks_at_any_time),    cmocka_unit_test(holds_up_no_other),
      cmocka_unit_test(gives_up_one_alone),         cmocka_unit_test(goes_on_with_all_when_the_helper_is_killed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
