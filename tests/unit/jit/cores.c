/* How many cores may be used: control groups of both versions, nested, as files in a folder say; affinity. */
#define _GNU_SOURCE
#include "jit/host/cores.h"
#include "jit/jit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/msched_cores_XXXXXX";

static void put(const char *path, const char *text) {
  char whole[400];
  snprintf(whole, sizeof whole, "%s%s", folder, path);
  for (char *at = whole + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
    *at = 0;
    mkdir(whole, 0777);
  }
  FILE *file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int start(void **state) {
  (void)state;
  strcpy(strrchr(folder, '_'), "_XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}
static int end(void **state) {
  (void)state;
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static void expect_quota(double expected) {
  double quota = cores_quota(folder);
  if (!(quota > expected - 1e-9 && quota < expected + 1e-9)) fail_msg("quota %g, not %g", quota, expected);
}

static const char second[] = "22 27 0:20 / /sys rw shared:7 - sysfs sysfs rw\n"
                             "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

static void second_version(void **state) {
  (void)state;
  expect_quota(0); /* nothing is there */
  put("/proc/self/mountinfo", second);
  put("/proc/self/cgroup", "0::/a/b\n");
  expect_quota(0);
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  expect_quota(0);
  put("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
  expect_quota(1.5);
  put("/sys/fs/cgroup/a/b/cpu.max", "25000 50000\n");
  expect_quota(0.5);
  put("/sys/fs/cgroup/a/b/cpu.max", "300000\n"); /* the period is the usual one */
  expect_quota(3);
}

/* The least of all around it counts, wherever that is. */
static void nested(void **state) {
  (void)state;
  put("/proc/self/mountinfo", second);
  put("/proc/self/cgroup", "0::/a/b/c\n");
  put("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  expect_quota(2); /* its own has no file, its parent no limit */
  put("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  expect_quota(2);
  put("/sys/fs/cgroup/a/b/cpu.max", "120000 100000\n");
  expect_quota(1.2);
  put("/sys/fs/cgroup/cpu.max", "110000 100000\n"); /* of a container, whose root has one */
  expect_quota(1.1);
}

/* A container sees its group as the root, of groups that it does not see. */
static void containers(void **state) {
  (void)state;
  put("/proc/self/mountinfo", "40 30 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  put("/proc/self/cgroup", "0::/docker/1f/inner\n");
  put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  expect_quota(4);
  put("/sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
  expect_quota(1);
  put("/proc/self/cgroup", "0::/docker/1f0\n"); /* begins alike, and is another: as far as is seen, the mount's */
  expect_quota(4);
  put("/proc/self/mountinfo", "40 30 0:26 / /with\\040space rw - cgroup2 cgroup rw\n");
  put("/proc/self/cgroup", "0::/\n");
  put("/with space/cpu.max", "700000 100000\n");
  expect_quota(7);
}

static const char first[] = "31 22 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                            "32 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";

static void first_version(void **state) {
  (void)state;
  put("/proc/self/mountinfo", first);
  put("/proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/a/b\n1:name=systemd:/a\n");
  put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  expect_quota(0);
  put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "250000\n");
  expect_quota(2.5);
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "75000\n");
  expect_quota(2.5); /* without a period it says nothing */
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "50000\n");
  expect_quota(1.5);
}

/* Both versions beside each other, as some systems have them: the second without the controller of processors. */
static void both_versions(void **state) {
  (void)state;
  char mounts[600];
  snprintf(mounts, sizeof mounts, "%s%s", second, first);
  put("/proc/self/mountinfo", mounts);
  put("/proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/b\n");
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  expect_quota(3);
  put("/sys/fs/cgroup/b/cpu.max", "200000 100000\n");
  expect_quota(2);
}

static void expect_bytes(double expected) {
  double bytes = cores_memory(folder);
  if (!(bytes > expected - 0.5 && bytes < expected + 0.5)) fail_msg("%g bytes, not %g", bytes, expected);
}

static void memory(void **state) {
  (void)state;
  expect_bytes(0);
  put("/proc/self/mountinfo", second);
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  expect_bytes(0);
  put("/sys/fs/cgroup/a/memory.max", "2147483648\n");
  expect_bytes(2147483648.0);
  put("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
  expect_bytes(1073741824.0);
  put("/proc/self/mountinfo", "31 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put("/proc/self/cgroup", "5:memory:/c\n0::/a/b\n");
  put("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "536870912\n");
  expect_bytes(536870912.0);
  assert_true(jit_usable_memory() > 0);
}

static void nonsense_sets_no_limit(void **state) {
  (void)state;
  static const char *const mounts[] = {"", "\n", "a b c\n", " - cgroup2\n", "1 2 3 / - cgroup2 x y\n", second};
  static const char *const groups[] = {"", "0\n", "0:\n", "::\n", "0::\n", "0::/\n", "0::/a/../..\n", "x::/a\n"};
  static const char *const limits[] = {"", "max", "-1 100000", "0 100000", "100000 0", "nan nan", "x y", "100000 -5"};
  for (size_t m = 0; m < sizeof mounts / sizeof *mounts; m++)
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
      for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        put("/proc/self/mountinfo", mounts[m]);
        put("/proc/self/cgroup", groups[g]);
        put("/sys/fs/cgroup/cpu.max", limits[l]);
        expect_quota(0);
      }
}

/* What stood on the stack before: escapes of a mount table. */
static void __attribute__((noinline)) leave_escapes(void) {
  volatile char left[1 << 16];
  for (size_t i = 0; i < sizeof left; i++) left[i] = "\\101"[i % 4];
}

/* Nothing is taken for a mount where there are none. */
static void no_groups_are_mounted(void **state) {
  (void)state;
  leave_escapes();
  expect_quota(0);
  put("/proc/self/mountinfo", "22 27 0:20 / /sys rw shared:7 - sysfs sysfs rw\n");
  leave_escapes();
  expect_quota(0);
  leave_escapes();
  expect_bytes(0);
}

static void fractions_are_left(void **state) {
  (void)state;
  assert_int_equal(cores_usable(8, 0), 8);
  assert_int_equal(cores_usable(8, 2), 2);
  assert_int_equal(cores_usable(8, 1.5), 1);
  assert_int_equal(cores_usable(8, 2.99), 2);
  assert_int_equal(cores_usable(8, 0.25), 1);
  assert_int_equal(cores_usable(2, 16), 2);
  assert_int_equal(cores_usable(1, 1e9), 1);
}

/* One processor of those that are allowed now: targets have one core. */
static void affinity_counts(void **state) {
  (void)state;
  cpu_set_t before, one;
  struct jit_cores cores;
  struct jit_target target;
  ms_error err;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  jit_count_cores(&cores);
  assert_true(jit_target_parse("native", &target, &err));
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
  assert_int_equal(cores.allowed, 1);
  assert_int_equal(cores.usable, 1);
  assert_true(cores.online >= CPU_COUNT(&before));
  assert_int_equal(target.cores, 1);
  assert_true(jit_target_parse("native -num-cores=3", &target, &err)); /* what is asked for is had */
  assert_int_equal(target.cores, 3);
  jit_count_cores(&cores);
  assert_int_equal(cores.allowed, CPU_COUNT(&before));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(second_version, start, end),
      cmocka_unit_test_setup_teardown(nested, start, end),
      cmocka_unit_test_setup_teardown(containers, start, end),
      cmocka_unit_test_setup_teardown(first_version, start, end),
      cmocka_unit_test_setup_teardown(both_versions, start, end),
      cmocka_unit_test_setup_teardown(memory, start, end),
      cmocka_unit_test_setup_teardown(nonsense_sets_no_limit, start, end),
      cmocka_unit_test_setup_teardown(no_groups_are_mounted, start, end),
      cmocka_unit_test(fractions_are_left),
      cmocka_unit_test(affinity_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
