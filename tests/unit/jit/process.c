/* Processes and descriptors after calls that failed: nobody is signalled, nothing is closed that is not there. */
#define _GNU_SOURCE
#include "jit/host/process.h"
#include "unit/exported.h"
#include "unit/measurer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that sleeps until it is signalled. */
static pid_t sleeper(void) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child) return child;
  for (;;) pause();
}

/* What fork and others leave where they fail, and what is no child. Signal 0 reaches nobody, were it sent. */
static void signals_no_number_that_is_no_child(void **state) {
  (void)state;
  assert_false(process_is_child(getpid()));
  const pid_t numbers[] = {-1, 0, 1, -2, -getpgrp()};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int status;
    assert_false(process_is_child(numbers[i]));
    pid_t tries = fork();
    assert_true(tries >= 0);
    if (!tries) {
      setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
      signal(SIGABRT, SIG_DFL);
      close(STDERR_FILENO);
      process_signal(numbers[i], 0);
      _exit(0);
    }
    assert_int_equal(waitpid(tries, &status, 0), tries);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT); /* a bug asserts */
  }
}

static void ends_a_child_and_forgets_it(void **state) {
  (void)state;
  pid_t child = sleeper(), was = child;
  int status = process_end(&child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  assert_int_equal(child, 0);
  assert_int_equal(process_end(&child), 0); /* there is none */
  assert_int_equal(kill(was, 0), -1);
  child = was; /* a number that is nobody's any more */
  assert_int_equal(process_end(&child), 0);
  assert_int_equal(child, 0);
}

static void stops_a_child_before_it_returns(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    char path[64], text[256] = "";
    pid_t child = sleeper();
    assert_true(process_signal(child, SIGSTOP));
    process_wait_stopped(child);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_memory_equal(strrchr(text, ')'), ") T", 3);
    assert_true(process_signal(child, SIGCONT));
    int status = process_end(&child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
}

/* Of the group of one that this process started. */
static void knows_its_family(void **state) {
  (void)state;
  char *const words[] = {"/bin/sleep", "60", NULL};
  int ends[2];
  pid_t spawned, child = sleeper(); /* in this process's own group, as what a helper's parent started beside it is */
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  assert_int_equal(process_spawn(words[0], (char **)words, environ, ends[1], (const int[]){STDIN_FILENO, -1}, &spawned),
                   0);
  assert_true(process_is_family(getpid()) && process_is_family(spawned));
  assert_false(process_is_family(getppid()) || process_is_family(1) || process_is_family(0) || process_is_family(-1));
  pid_t other = fork(); /* another family, though it shares session and group */
  assert_true(other >= 0);
  if (!other) _exit(process_is_family(getpid()) && !process_is_family(child) && !process_is_family(spawned) ? 0 : 1);
  int status;
  assert_int_equal(waitpid(other, &status, 0), other);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  other = fork(); /* one that this process started, as a helper: of its family */
  assert_true(other >= 0);
  if (!other) {
    process_note_host();
    _exit(process_is_family(getpid()) && process_is_family(getppid()) && process_is_family(spawned) ? 0 : 1);
  }
  assert_int_equal(waitpid(other, &status, 0), other);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  process_end(&spawned);
  process_end(&child);
  descriptor_close(&ends[0]);
  descriptor_close(&ends[1]);
}

static void closes_a_descriptor_once(void **state) {
  (void)state;
  int fd = open("/dev/null", O_RDONLY), none = -1;
  assert_true(fd >= 0);
  const int was = fd;
  descriptor_close(&fd);
  assert_int_equal(fd, -1);
  assert_int_equal(fcntl(was, F_GETFD), -1);
  descriptor_close(&fd);
  descriptor_close(&none);
  assert_int_equal(none, -1);
}

static void says_what_to_do(void **state) {
  (void)state;
  static const int errors[] = {EAGAIN, ENOMEM, EMFILE, ENFILE, EPERM, 0};
  static const char *const words[] = {"ulimit -u", "memory", "ulimit -n", "ulimit -n", "sandbox", "sandbox"};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    assert_non_null(strstr(process_remedy(errors[i]), words[i]));
}

/* No descriptor is left for a helper's socket. */
static void measurer_says_which_limit(void **state) {
  (void)state;
  struct rlimit before;
  struct jit_target target;
  ms_error err = {.instruction = -1};
  find_helper();
  assert_true(jit_target_parse("native", &target, &err));
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  int next = dup(STDOUT_FILENO);
  close(next);
  struct rlimit few = {(rlim_t)next + 1, before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  struct jit_measurer *m = jit_measurer_new(&target, NULL, &err);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_null(m);
  assert_int_equal(err.code, MS_NO_PROCESS);
  assert_non_null(strstr(err.message, "ulimit -n"));
}

static int status_of(const char *text) {
  int status, fd;
  ms_error err = {.message = ""};
  struct jit_command *command = jit_command_new(text, JIT_COMMAND_ALONE, &fd, &err);
  if (!command) fail_msg("%s", err.message);
  while (!jit_command_wait(command, 1, &status)) {}
  jit_command_free(command);
  return status;
}

/* Nobody knows how its children end; libraries are linked all the same, and what failed is no success. */
static void serves_a_host_that_ignores_its_children(void **state) {
  (void)state;
  static const char text[] = "@T.prim_func\n"
                             "def main(A: T.Buffer((8,), \"float32\")):\n"
                             "    for i in range(8):\n"
                             "        A[i] = T.float32(1)\n";
  struct jit_target target;
  ms_error err = {.message = ""};
  size_t size = 0;
  assert_true(jit_target_parse("native", &target, &err));
  struct tir *ir = tir_read(text, sizeof text - 1, "text", &err);
  if (!ir) fail_msg("%s", err.message);
  assert_int_equal(WEXITSTATUS(status_of("exit 3")), 3);
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  assert_int_equal(status_of("exit 3"), -1);
  free(exported(ir, &target, NULL, ".so", &size));
  signal(SIGCHLD, before);
  assert_true(size > 0);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(signals_no_number_that_is_no_child), cmocka_unit_test(ends_a_child_and_forgets_it),
      cmocka_unit_test(stops_a_child_before_it_returns),    cmocka_unit_test(knows_its_family),
      cmocka_unit_test(closes_a_descriptor_once),           cmocka_unit_test(says_what_to_do),
      cmocka_unit_test(measurer_says_which_limit),          cmocka_unit_test(serves_a_host_that_ignores_its_children),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
