/* Kernels for CUDA called from this process, on the fake driver (cuda/fake): several kernels with memory between them,
 * scalars, what is beside a buffer; which devices run what. */
#include "unit/cuda.h"

#include "jit/backend.h"
#include "jit/cuda/device/driver.h"

static struct jit_target target_of(const char *text) {
  struct jit_target target;
  ms_error err = {0};
  if (!jit_target_parse(text, &target, &err)) fail_msg("%s", err.message);
  return target;
}

/* Runs the function as it stands, its kernels on the device, and compares with the interpreter. */
static void run_as_interpreted(struct tir *ir) {
  struct jit_target target = target_of(CUDA_TARGET);
  struct tir_arguments expected, actual;
  ms_error err = {0};
  tir_func f = tir_find_func(ir, "main");
  assert_true(tir_make_arguments(ir, f, 1, &expected, &err));
  tir_copy_arguments(ir, f, &expected, &actual);
  assert_true(tir_run(ir, f, expected.args, expected.count, NULL, &err));
  if (!jit_run(ir, f, &target, NULL, actual.args, &err)) fail_msg("%s", err.message);
  if (!tir_same_arguments(ir, f, &expected, &actual, 0, &err)) fail_msg("%s", err.message);
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  tir_free(ir);
}

static void kernels_with_memory_between(void **state) {
  (void)state;
  run_as_interpreted(read_function(
      "A: T.Buffer((96,), \"float32\"), C: T.Buffer((96,), \"float32\")",
      "B = T.sblock_alloc_buffer((96,), \"float32\")", "for bx in T.thread_binding(3, thread=\"blockIdx.x\"):",
      "    for tx in T.thread_binding(32, thread=\"threadIdx.x\"):", "        with T.sblock(\"B\"):",
      "            v = T.axis.spatial(96, bx * 32 + tx)", "            B[v] = A[v] + T.float32(1)",
      "for bx in T.thread_binding(6, thread=\"blockIdx.x\"):",
      "    for tx in T.thread_binding(16, thread=\"threadIdx.x\"):", "        with T.sblock(\"C\"):",
      "            v = T.axis.spatial(96, bx * 16 + tx)", "            C[v] = B[95 - v] * T.float32(2)"));
}

/* Two buffers between kernels, of which each has its own place in the workspace. */
static void buffers_between_lie_apart(void **state) {
  (void)state;
  run_as_interpreted(
      read_function("A: T.Buffer((96,), \"float32\"), C: T.Buffer((96,), \"float32\")",
                    "B = T.sblock_alloc_buffer((96,), \"float32\")", "D = T.sblock_alloc_buffer((96,), \"float32\")",
                    "for tx in T.thread_binding(96, thread=\"threadIdx.x\"):", "    with T.sblock(\"B\"):",
                    "        v = T.axis.spatial(96, tx)", "        B[v] = A[v] + T.float32(1)",
                    "for tx in T.thread_binding(96, thread=\"threadIdx.x\"):", "    with T.sblock(\"D\"):",
                    "        v = T.axis.spatial(96, tx)", "        D[v] = A[95 - v] * T.float32(3)",
                    "for tx in T.thread_binding(96, thread=\"threadIdx.x\"):", "    with T.sblock(\"C\"):",
                    "        v = T.axis.spatial(96, tx)", "        C[v] = B[95 - v] - D[v]"));
}

/* More shared memory than a launch may have unasked. */
static void much_shared_memory_is_asked_for(void **state) {
  (void)state;
  run_as_interpreted(read_function(
      "A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float32\")",
      "for bx in T.thread_binding(2, thread=\"blockIdx.x\"):", "    S = T.alloc_buffer((13000,), scope=\"shared\")",
      "    for tx in T.thread_binding(32, thread=\"threadIdx.x\"):", "        S[tx * 400] = A[bx * 32 + tx]",
      "    for tx in T.thread_binding(32, thread=\"threadIdx.x\"):", "        C[bx * 32 + tx] = S[12400 - tx * 400]"));
}

/* Of others it is said always, else where little is left; and how much of it was asked for in vain. */
static void memory_that_is_left_is_known(void **state) {
  (void)state;
  struct jit_target target = target_of(CUDA_TARGET);
  const struct jit_backend *backend = jit_backend_of(&target);
  struct jit_device *device;
  struct jit_ran_on on;
  ms_error err = {.instruction = -1};
  enum { BUFFER = 2 << 20, ZONES = 1024 };
  assert_true(backend->open(&target, 0, &device, &err));
  backend->describe(device, &on);
  assert_true(on.memory_left == 0 && on.others == 0 && on.others_bytes == 0);
  size_t left, all;
  char said[32];
  assert_int_equal(device->driver->memory_left(&left, &all), 0);
  snprintf(said, sizeof said, "%zu", all - left + BUFFER + ZONES + 100000);
  setenv("FAKE_CUDA_MEMORY", said, 1);
  void *at = backend->memory->get(device, BUFFER, &err);
  assert_non_null(at);
  backend->describe(device, &on);
  assert_int_equal(on.memory_left, 100000);
  assert_null(backend->memory->get(device, BUFFER, &err));
  assert_int_equal(err.code, MS_DEVICE_MEMORY);
  assert_non_null(strstr(err.message, "(CUDA_ERROR_OUT_OF_MEMORY): of 2.0 MiB; 0.1 of the device's "));
  backend->memory->release(device, at, BUFFER);
  unsetenv("FAKE_CUDA_MEMORY");
}

/* The number of blocks is an argument's, which is the caller's to launch. */
static void what_the_host_would_compute_is_not_launched(void **state) {
  (void)state;
  struct jit_target target = target_of(CUDA_TARGET);
  struct tir_arguments args;
  ms_error err = {0};
  struct tir *ir = read_function("C: T.Buffer((64,), \"int32\"), n: T.int32",
                                 "for bx in T.thread_binding(n, thread=\"blockIdx.x\"):",
                                 "    for tx in T.thread_binding(32, thread=\"threadIdx.x\"):", "        if bx < 2:",
                                 "            C[bx * 32 + tx] = tx");
  tir_func f = tir_find_func(ir, "main");
  assert_true(tir_make_arguments(ir, f, 1, &args, &err));
  assert_false(jit_run(ir, f, &target, NULL, args.args, &err));
  assert_int_equal(err.code, MS_NOT_LAUNCHED);
  assert_non_null(strstr(err.message, "number of blocks is no constant; .cu can be exported"));
  tir_arguments_free(&args);
  tir_free(ir);
}

static void scalars_reach_kernels(void **state) {
  (void)state;
  run_as_interpreted(read_function(
      "C: T.Buffer((64,), \"int32\"), n: T.int32", "for tx in T.thread_binding(64, thread=\"threadIdx.x\"):",
      "    with T.sblock(\"C\"):", "        v = T.axis.spatial(64, tx)", "        C[v] = v + n"));
}

static void agrees_on_real_numbers(void **state) {
  (void)state;
  struct jit_target target = target_of(CUDA_TARGET);
  struct tir *ir = doubling();
  struct jit_expected expected;
  ms_error err = {0};
  tir_func f = tir_find_func(ir, "main");
  if (jit_expect(ir, f, &target, JIT_REAL, 1, NULL, &expected, &err) != 1) fail_msg("%s", err.message);
  struct jit_code *code = jit_compile(ir, f, &target, NULL, &err);
  struct jit_kernel *kernel = code ? jit_load(code, &err) : NULL;
  if (!kernel || !jit_kernel_agrees(&expected, ir, f, kernel, NULL, NULL, &err)) fail_msg("%s", err.message);
  assert_null(jit_kernel_entry(kernel));
  jit_kernel_free(kernel);
  jit_code_free(code);
  jit_expected_free(&expected);
  tir_free(ir);
}

static double seconds_on(const char *text) {
  struct jit_target target = target_of(text);
  struct tir *ir = doubling();
  struct tir_arguments args;
  struct jit_timing timing;
  ms_error err = {0};
  tir_func f = tir_find_func(ir, "main");
  setenv("FAKE_CUDA_TIMES", "1=0.125", 1);
  assert_true(tir_make_arguments(ir, f, 1, &args, &err));
  struct jit_code *code = jit_compile(ir, f, &target, NULL, &err);
  struct jit_kernel *kernel = code ? jit_load(code, &err) : NULL;
  struct jit_call *call = kernel ? jit_call_new(kernel, ir, f, args.args, &err) : NULL;
  if (!call || !jit_call_time(call, 0.02, 1, &timing, &err)) fail_msg("%s", err.message);
  jit_call_free(call);
  jit_kernel_free(kernel);
  jit_code_free(code);
  tir_arguments_free(&args);
  tir_free(ir);
  unsetenv("FAKE_CUDA_TIMES");
  return timing.seconds;
}

static void a_call_is_timed_by_events(void **state) {
  (void)state;
  double seconds = seconds_on(CUDA_TARGET);
  assert_true(seconds > 0.124e-3 && seconds < 0.126e-3);
}

/* The cache is flushed before each, which is not timed: a kernel that finds nothing there takes twice as long here. */
static void a_cold_call_finds_nothing_in_the_cache(void **state) {
  (void)state;
  double seconds = seconds_on(CUDA_TARGET " -timing=cold");
  assert_true(seconds > 0.249e-3 && seconds < 0.251e-3);
  char text[JIT_TARGET_TEXT];
  struct jit_target target = target_of(CUDA_TARGET " -timing=cold"), warm = target_of(CUDA_TARGET " -timing=warm");
  jit_target_text(&target, text, sizeof text);
  assert_string_equal(text, CUDA_TARGET " -timing=cold");
  jit_target_text(&warm, text, sizeof text);
  assert_string_equal(text, CUDA_TARGET);
}

static void expect_refused(const char *text, const char *why) {
  struct jit_target target = target_of(text);
  ms_error err = {0};
  assert_false(jit_target_runs_here(&target, &err));
  assert_int_equal(err.code, MS_NO_DEVICE);
  if (!strstr(err.message, why)) fail_msg("\"%s\" does not say \"%s\"", err.message, why);
}

static void devices_run_their_generation(void **state) {
  (void)state;
  struct jit_device_info all[4];
  ms_error err = {0};
  setenv("FAKE_CUDA_DEVICES", "80 86", 1);
  assert_int_equal(jit_devices(all, 4, &err), 2);
  assert_string_equal(all[1].name, "Fake 86");
  assert_int_equal(all[1].arch, 86);
  struct jit_target older = target_of("cuda -arch=sm_80");
  assert_true(jit_target_runs_here(&older, &err));
  expect_refused("cuda -arch=sm_90", "there is Fake 80 (sm_80), Fake 86 (sm_86)");
  expect_refused("cuda -arch=sm_75", "no CUDA device runs code for sm_75");
  unsetenv("FAKE_CUDA_DEVICES");
  setenv("FAKE_NVRTC_VERSION", "14020", 1);
  expect_refused(CUDA_TARGET, "the driver knows CUDA 13.0, and NVRTC is of 14.2");
  unsetenv("FAKE_NVRTC_VERSION");
}

/* Results that say that the driver or the device is out of order blame no kernel. */
static void results_blame_who_is_at_fault(void **state) {
  (void)state;
  static const struct {
    enum ms_code code;
    int results[16];
  } expected[] = {{MS_NO_DEVICE, {3, 4, 34, 46, 100, 101, 102, 200, 201, 209, 214, 218, 220, 221, 222}},
                  {MS_NO_DEVICE, {226, 302, 303, 304, 400, 709, 800, 802, 803, 804, 805, 806, 911, 916, 999}},
                  {MS_DEVICE_MEMORY, {2}},
                  {MS_NOT_LAUNCHED, {1, 500, 801}},
                  {MS_EXCEEDS_DEVICE, {701}},
                  {MS_LAUNCH_TIMEOUT, {702}},
                  {MS_ILLEGAL_ADDRESS, {700, 714, 717}},
                  {MS_ILLEGAL_INSTRUCTION, {715, 718}},
                  {MS_MISALIGNED, {716}},
                  {MS_KERNEL_FAILED, {710, 719, 720 /* unlisted */}}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    for (const int *result = expected[i].results; *result; result++) {
      ms_error err = {0};
      assert_false(driver_check(*result, "testing", &err));
      if (err.code != expected[i].code) fail_msg("%d: %s", *result, err.message);
    }
  assert_true(driver_check(0, "testing", NULL));
}

/* What the real driver refuses, the tests' own does: what passes here is no luck of its leniency. */
static void the_driver_is_strict(void **state) {
  (void)state;
  ms_error err = {0};
  uint64_t at, other;
  void *event, *end;
  float milliseconds;
  const struct driver *d = driver_find(&err);
  assert_non_null(d);
  setenv("FAKE_CUDA_DEVICES", "90 90", 1);
  assert_int_equal(d->set_current(NULL), 0);
  assert_int_equal(d->allocate(&at, 64), 201);
  assert_true(driver_enter(driver_open(0, &err), &err));
  assert_int_equal(d->allocate(&at, 0), 1);
  assert_int_equal(d->allocate(&at, 64), 0);
  assert_int_equal(d->fill(at, 0, 65), 1);
  assert_int_equal(d->upload(at + 1, &other, 64), 1);
  assert_int_equal(d->release(at + 16), 1);
  assert_int_equal(d->release(at), 0);
  assert_int_equal(d->release(at), 1);
  assert_int_equal(d->launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 1);
  assert_int_equal(d->new_event(&event, 0), 0);
  assert_int_equal(d->new_event(&end, 0), 0);
  assert_int_equal(d->record(event, NULL), 0);
  assert_int_equal(d->elapsed(&milliseconds, event, end), 400);
  assert_true(driver_enter(driver_open(1, &err), &err));
  assert_int_equal(d->record(end, NULL), 400);
  assert_int_equal(d->free_event(event) + d->free_event(end), 0);
  unsetenv("FAKE_CUDA_DEVICES");
}

/* A tensor map of 64 x 64 floats with a boxDim of 32 x 8, one of its properties changed. */
static void maps_are_checked(void **state) {
  (void)state;
  static const struct {
    uint64_t address, extent, stride;
    uint32_t rank, columns, rows, step;
    int swizzle, expected;
  } cases[] = {
      {512, 64, 256, 2, 32, 8, 1, DRIVER_SWIZZLE_128, 0},       {520, 64, 256, 2, 32, 8, 1, DRIVER_SWIZZLE_128, 1},
      {512, 0, 256, 2, 32, 8, 1, DRIVER_SWIZZLE_128, 1},        {512, 64, 264, 2, 32, 8, 1, DRIVER_SWIZZLE_128, 1},
      {512, 64, 256, 6, 32, 8, 1, DRIVER_SWIZZLE_128, 1},       {512, 64, 256, 0, 32, 8, 1, DRIVER_SWIZZLE_128, 1},
      {512, 64, 256, 2, 36, 8, 1, DRIVER_SWIZZLE_128, 1},       {512, 64, 256, 2, 32, 8, 1, DRIVER_SWIZZLE_64, 1},
      {512, 64, 256, 2, 30, 8, 1, DRIVER_SWIZZLE_128, 1},       {512, 64, 256, 2, 32, 257, 1, DRIVER_SWIZZLE_128, 1},
      {512, 64, 256, 2, 32, 0, 1, DRIVER_SWIZZLE_128, 1},       {512, 64, 256, 2, 32, 8, 0, DRIVER_SWIZZLE_128, 1},
      {512, 64, 1ull << 40, 2, 32, 8, 1, DRIVER_SWIZZLE_128, 1}};
  const struct driver *d = driver_find(NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CUtensorMap map;
    const uint64_t extents[6] = {cases[i].extent, 64, 64, 64, 64, 64}, strides[5] = {cases[i].stride, 16, 16, 16, 16};
    const uint32_t box[6] = {cases[i].columns, cases[i].rows, 1, 1, 1, 1}, steps[6] = {cases[i].step, 1, 1, 1, 1, 1};
    int result = d->describe_tensor(&map, DRIVER_UNSIGNED_32, cases[i].rank, (void *)(uintptr_t)cases[i].address,
                                    extents, strides, box, steps, DRIVER_INTERLEAVE_NONE, cases[i].swizzle,
                                    DRIVER_PROMOTION_128, DRIVER_FILL_ZERO);
    if (result != cases[i].expected) fail_msg("map %zu: %d", i, result);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_with_memory_between),
                                     cmocka_unit_test(buffers_between_lie_apart),
                                     cmocka_unit_test(much_shared_memory_is_asked_for),
                                     cmocka_unit_test(what_the_host_would_compute_is_not_launched),
                                     cmocka_unit_test(scalars_reach_kernels),
                                     cmocka_unit_test(agrees_on_real_numbers),
                                     cmocka_unit_test(a_call_is_timed_by_events),
                                     cmocka_unit_test(a_cold_call_finds_nothing_in_the_cache),
                                     cmocka_unit_test(memory_that_is_left_is_known),
                                     cmocka_unit_test(devices_run_their_generation),
                                     cmocka_unit_test(results_blame_who_is_at_fault),
                                     cmocka_unit_test(the_driver_is_strict),
                                     cmocka_unit_test(maps_are_checked)};
  need_fakes();
  return cmocka_run_group_tests(tests, open_folder, close_folder);
}
