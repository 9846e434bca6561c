/* What may become of a kernel on a device, each by a real helper on a driver that fails as it is asked (cuda/fake):
 * every fault by its name, after which a fresh process goes on; a kernel that never ends; a device that disappears;
 * two. */
#include "unit/cuda.h"

#include <fcntl.h>

static struct jit_measurer *start(struct tir *ir) {
  const struct jit_measurer_options options = {.censor_factor = 1e9, .run_timeout = 3, .builders = 2};
  return start_measurer_for(CUDA_TARGET, ir, &options);
}

static void every_fault_by_name(void **state) {
  (void)state;
  static const struct {
    int threads;
    enum jit_outcome outcome;
    const char *reason;
  } expected[] = {{1, JIT_MEASURED, NULL},
                  {2, JIT_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                  {4, JIT_MISALIGNED, "multiple of its size"},
                  {8, JIT_ILLEGAL_INSTRUCTION, NULL},
                  {16, JIT_RESOURCES, "LAUNCH_OUT_OF_RESOURCES"},
                  {32, JIT_NOT_LAUNCHED, "does not take the launch"},
                  {64, JIT_KERNEL_FAILED, "LAUNCH_FAILED"},
                  {128, JIT_RUN_TIMEOUT, "running took more than 3 s"},
                  {256, JIT_WRONG, NULL},
                  {512, JIT_NAN, NULL},
                  {1024, JIT_ILLEGAL_ADDRESS, "wrote before a buffer of 4096 bytes"},
                  {6, JIT_ILLEGAL_ADDRESS, "wrote past a buffer of 4096 bytes"},
                  {3, JIT_MEASURED, NULL},
                  {5, JIT_RUN_TIMEOUT, "LAUNCH_TIMEOUT"}};
  enum { COUNT = sizeof expected / sizeof *expected };
  setenv("FAKE_CUDA_FAULTS",
         "2=700 4=716 8=715 16=L701 32=L1 64=719 128=hang 256=wrong1 512=nan1 1024=past1 6=beyond1 5=702", 1);
  struct tir *ir = doubling();
  struct jit_measurer *m = start(ir);
  for (int i = 0; i < COUNT; i++) submit_bound(m, (uint64_t)i, expected[i].threads);
  for (int i = 0; i < COUNT; i++) {
    struct jit_result r = next_result(m);
    expect(&r, (uint64_t)i, expected[i].outcome, expected[i].reason);
  }
  jit_measurer_free(m);
  tir_free(ir);
  unsetenv("FAKE_CUDA_FAULTS");
}

/* The first run writes where it may, and one while it is timed does not. */
static void guards_are_checked_after_timing(void **state) {
  (void)state;
  setenv("FAKE_CUDA_FAULTS", "64=+2past1", 1);
  struct tir *ir = doubling();
  struct jit_measurer *m = start(ir);
  submit_bound(m, 1, 64);
  submit_bound(m, 2, 128);
  struct jit_result one = next_result(m), two = next_result(m);
  expect(&one, 1, JIT_ILLEGAL_ADDRESS, "wrote before a buffer of 4096 bytes");
  expect(&two, 2, JIT_MEASURED, NULL);
  jit_measurer_free(m);
  tir_free(ir);
  unsetenv("FAKE_CUDA_FAULTS");
}

static void times_are_the_devices(void **state) {
  (void)state;
  setenv("FAKE_CUDA_TIMES", "64=0.25 128=0.5", 1);
  struct tir *ir = doubling();
  struct jit_measurer *m = start(ir);
  submit_bound(m, 1, 64);
  submit_bound(m, 2, 128);
  struct jit_result one = next_result(m), two = next_result(m);
  expect(&one, 1, JIT_MEASURED, NULL);
  expect(&two, 2, JIT_MEASURED, NULL);
  assert_true(one.timing.seconds > 0.249e-3 && one.timing.seconds < 0.251e-3);
  assert_true(two.timing.seconds > 0.499e-3 && two.timing.seconds < 0.501e-3);
  jit_measurer_free(m);
  tir_free(ir);
  unsetenv("FAKE_CUDA_TIMES");
}

/* A clock that rises where data is small whole numbers: what candidates are timed with is not, unless the function
 * makes integers of floats; what they are compared by is. */
static void times_are_of_many_digits(void **state) {
  (void)state;
  setenv("FAKE_CUDA_TIMES", "64=0.25", 1);
  setenv("FAKE_CUDA_EASY", "0.5", 1);
  struct tir *functions[] = {doubling(),
                             read_function("A: T.Buffer((1024,), \"float32\"), C: T.Buffer((1024,), \"float32\")",
                                           "for i in range(1024):", "    with T.sblock(\"C\"):",
                                           "        vi = T.axis.spatial(1024, i)", "        C[vi] = T.floor(A[vi])")};
  static const double expected[] = {0.25e-3, 0.125e-3};
  for (int i = 0; i < 2; i++) {
    struct jit_measurer *m = start(functions[i]);
    submit_bound(m, 1, 64);
    struct jit_result r = next_result(m);
    expect(&r, 1, JIT_MEASURED, NULL);
    if (!(r.timing.seconds > 0.99 * expected[i] && r.timing.seconds < 1.01 * expected[i]))
      fail_msg("function %d: %g s", i, r.timing.seconds);
    jit_measurer_free(m);
    tir_free(functions[i]);
  }
  unsetenv("FAKE_CUDA_EASY");
  unsetenv("FAKE_CUDA_TIMES");
}

/* A builder may write more than its log holds; one that runs away is told so, and does not die of it. */
static void builders_write_files_up_to_a_limit(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    enum jit_outcome outcome;
    const char *reason;
  } expected[] = {{"65537", JIT_MEASURED, NULL},
                  {"16000000", JIT_MEASURED, NULL},
                  {"2199023255552", JIT_BUILD_FAILED, "File too large"}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    setenv("FAKE_NVRTC_WRITES", expected[i].bytes, 1);
    struct tir *ir = doubling();
    struct jit_measurer *m = start(ir);
    submit_bound(m, 1, 64);
    struct jit_result r = next_result(m);
    expect(&r, 1, expected[i].outcome, expected[i].reason);
    jit_measurer_free(m);
    tir_free(ir);
  }
  unsetenv("FAKE_NVRTC_WRITES");
}

static void out_of_memory_by_name(void **state) {
  (void)state;
  setenv("FAKE_CUDA_MEMORY", "4096", 1);
  struct tir *ir = doubling();
  struct jit_measurer *m = start(ir);
  submit_bound(m, 1, 64);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_OUT_OF_MEMORY, "(CUDA_ERROR_OUT_OF_MEMORY): of 0.0 MiB; 0.0 of the device's 0.0 MiB are left");
  jit_measurer_free(m);
  tir_free(ir);
  unsetenv("FAKE_CUDA_MEMORY");
}

/* What is measured by then stays; the rest is reported once that nothing goes on. */
static void a_device_disappears(void **state) {
  (void)state;
  char mark[100];
  snprintf(mark, sizeof mark, "%s/gone", cuda_folder);
  setenv("FAKE_CUDA_GONE", mark, 1);
  setenv("FAKE_CUDA_FAULTS", "128=gone", 1);
  struct tir *ir = doubling();
  struct jit_measurer *m = start(ir);
  submit_bound(m, 1, 64);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_MEASURED, NULL);
  submit_bound(m, 2, 128);
  submit_bound(m, 3, 256);
  ms_error err = {0};
  assert_int_equal(jit_measurer_next(m, 60, &r, &err), -1);
  assert_int_equal(err.code, MS_NO_DEVICE);
  assert_non_null(strstr(err.message, "gone"));
  jit_measurer_free(m);
  tir_free(ir);
  unlink(mark);
  unsetenv("FAKE_CUDA_GONE");
  unsetenv("FAKE_CUDA_FAULTS");
}

/* A context that is lost is no candidate's fault: tried again by another process, then the run ends. */
static void a_context_is_lost(void **state) {
  (void)state;
  setenv("FAKE_CUDA_FAULTS", "128=L201", 1);
  struct tir *ir = doubling();
  struct jit_measurer *m = start(ir);
  submit_bound(m, 1, 128);
  struct jit_result r;
  ms_error err = {0};
  assert_int_equal(jit_measurer_next(m, 60, &r, &err), -1);
  assert_int_equal(err.code, MS_NO_DEVICE);
  assert_non_null(strstr(err.message, "CUDA_ERROR_INVALID_CONTEXT"));
  jit_measurer_free(m);
  tir_free(ir);
  unsetenv("FAKE_CUDA_FAULTS");
}

/* A runner each: a kernel that hangs on one holds up nothing on the other. */
static void two_devices(void **state) {
  (void)state;
  setenv("FAKE_CUDA_DEVICES", "90 90 80", 1);
  setenv("FAKE_CUDA_FAULTS", "128=hang", 1);
  struct tir *ir = doubling();
  struct jit_measurer *m = start(ir);
  submit_bound(m, 1, 128);
  for (int i = 0; i < 6; i++) submit_bound(m, (uint64_t)i + 2, 1 << i);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_RUN_TIMEOUT, NULL);
  for (int i = 0; i < 6; i++) {
    ms_error err = {0};
    assert_int_equal(jit_measurer_next(m, 10, &r, &err), 1);
    expect(&r, (uint64_t)i + 2, JIT_MEASURED, NULL);
  }
  jit_measurer_free(m);
  tir_free(ir);
  unsetenv("FAKE_CUDA_DEVICES");
  unsetenv("FAKE_CUDA_FAULTS");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_fault_by_name),
                                     cmocka_unit_test(guards_are_checked_after_timing),
                                     cmocka_unit_test(times_are_the_devices),
                                     cmocka_unit_test(times_are_of_many_digits),
                                     cmocka_unit_test(builders_write_files_up_to_a_limit),
                                     cmocka_unit_test(out_of_memory_by_name),
                                     cmocka_unit_test(a_device_disappears),
                                     cmocka_unit_test(a_context_is_lost),
                                     cmocka_unit_test(two_devices)};
  need_fakes();
  return cmocka_run_group_tests(tests, open_folder, close_folder);
}
