/* What kernels take of a GPU, read from the assembler's log. The logs are ptxas' own, of CUDA 11.8 and 13.0, the
 * warnings of tensor units as users have reported them. */
#include "jit/cuda/resources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char of_13[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'f_kernel_1' for 'sm_90a'\n"
    "ptxas info    : Function properties for f_kernel_1\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 10 registers, used 1 barriers\n"
    "ptxas info    : Compile time = 10.910 ms\n"
    "ptxas info    : Compiling entry function 'f_kernel_0' for 'sm_90a'\n"
    "ptxas info    : Function properties for f_kernel_0\n"
    "ptxas         .     800 bytes stack frame, 2796 bytes spill stores, 2724 bytes spill loads\n"
    "ptxas info    : Used 40 registers, used 2 barriers, 800 bytes cumulative stack size, 400 bytes smem\n"
    "ptxas info    : Compile time = 114.210 ms\n";

static const char of_11[] = "ptxas info    : Compiling entry function 'f_kernel_0' for 'sm_80'\n"
                            "ptxas info    : Function properties for f_kernel_0\n"
                            "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                            "ptxas info    : Used 128 registers, 8448 bytes smem, 380 bytes cmem[0]\n";

static struct jit_target target(const char *text) {
  struct jit_target t;
  ms_error err = {0};
  if (!jit_target_parse(text, &t, &err)) fail_msg("%s", err.message);
  return t;
}

static void each_kernel_is_read_by_its_name(void **state) {
  (void)state;
  struct jit_target t = target("cuda -arch=sm_90a");
  struct jit_resources all[2] = {{.name = "f_kernel_0", .threads = 64, .shared_bytes = 400},
                                 {.name = "f_kernel_1", .threads = 64, .shared_bytes = 256, .dynamic_bytes = 256}};
  ms_error err = {0};
  if (!resources_note(of_13, &t, all, 2, &err)) fail_msg("%s", err.message);
  assert_true(all[0].compiled && all[1].compiled);
  assert_int_equal(all[0].registers, 40);
  assert_int_equal(all[0].barriers, 2);
  assert_int_equal(all[0].stack_bytes, 800);
  assert_int_equal(all[0].spill_stores, 2796);
  assert_int_equal(all[0].spill_loads, 2724);
  assert_int_equal(all[0].shared_bytes, 400);
  assert_int_equal(all[1].registers, 10);
  assert_int_equal(all[1].spill_stores, 0);
  assert_int_equal(all[1].shared_bytes, 256);
  assert_false(all[0].serialized || all[1].serialized);
}

static void a_log_of_another_version_is_read(void **state) {
  (void)state;
  struct jit_target t = target("cuda -arch=sm_80");
  struct jit_resources kernel = {.name = "f_kernel_0", .threads = 256};
  ms_error err = {0};
  assert_true(resources_note(of_11, &t, &kernel, 1, &err));
  assert_int_equal(kernel.registers, 128);
  assert_int_equal(kernel.barriers, 0);
  assert_int_equal(kernel.shared_bytes, 8448);
}

/* A kernel whose name only begins as another's is none of its. */
static void what_the_log_has_not_stays_unknown(void **state) {
  (void)state;
  struct jit_target t = target("cuda -arch=sm_90a");
  struct jit_resources all[2] = {{.name = "f_kernel_10", .threads = 64, .shared_bytes = 12},
                                 {.name = "f_kernel_", .threads = 64}};
  ms_error err = {0};
  assert_true(resources_note(of_13, &t, all, 2, &err) && resources_note(NULL, &t, all, 2, &err) &&
              resources_note("", &t, all, 2, &err));
  assert_false(all[0].compiled || all[1].compiled);
  assert_int_equal(all[0].shared_bytes, 12);
}

static void products_that_wait_are_noted(void **state) {
  (void)state;
  static const char *const warnings[] = {
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill "
      "formed "
      "pipeline stage in the function 'f_kernel_0'\n",
      "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
      "insufficient "
      "register resources for the wgmma pipeline in the function 'f_kernel_0'\n",
      "ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
      "non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in "
      "the function 'f_kernel_0'\n"};
  struct jit_target t = target("cuda -arch=sm_90a");
  for (size_t i = 0; i < sizeof warnings / sizeof *warnings; i++) {
    struct jit_resources all[2] = {{.name = "f_kernel_0", .threads = 64}, {.name = "f_kernel_1", .threads = 64}};
    char log[2000];
    ms_error err = {0};
    snprintf(log, sizeof log, "%s%s", warnings[i], of_13);
    assert_true(resources_note(log, &t, all, 2, &err));
    assert_true(all[0].serialized && !all[1].serialized);
  }
}

static void expect_refused(const char *target_text, int threads, int64_t shared, const char *says) {
  struct jit_target t = target(target_text);
  struct jit_resources kernel = {
      .name = "f_kernel_0", .threads = threads, .shared_bytes = shared, .dynamic_bytes = shared};
  ms_error err = {0};
  assert_false(resources_note(of_11, &t, &kernel, 1, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_EXCEEDS_DEVICE));
  if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

static void what_a_block_does_not_have_is_refused(void **state) {
  (void)state;
  expect_refused("cuda -arch=sm_80 -registers_per_block=32768", 288, 0,
                 "128 registers a thread, 36864 for a block of 288");
  expect_refused("cuda -arch=sm_80 -registers_per_block=4095", 1, 0, "4096 for a block of 1");
  expect_refused("cuda -arch=sm_80 -max_shared_memory_per_block=9000", 32, 600, "9048 bytes of shared memory a block");
  expect_refused("cuda -arch=sm_80 -max_threads_per_block=64", 65, 0, "65 threads a block; the target has 64");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_kernel_is_read_by_its_name), cmocka_unit_test(a_log_of_another_version_is_read),
      cmocka_unit_test(what_the_log_has_not_stays_unknown), cmocka_unit_test(products_that_wait_are_noted),
      cmocka_unit_test(what_a_block_does_not_have_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
