/* What may become of a candidate, each by a real helper: measured, refused, failed, wrong, crashed, hung. */
#include "unit/measurer.h"

static struct tir *gemm(void) {
  return read_function("A: T.Buffer((96, 64), \"float32\"), B: T.Buffer((64, 80), \"float32\"), C: T.Buffer((96, 80), "
                       "\"float32\")",
                       "for i, j, k in T.grid(96, 80, 64):", "    with T.sblock(\"C\"):",
                       "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                       "        with T.init():", "            C[vi, vj] = T.float32(0)",
                       "        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
}

#define LOOPS "[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"GetLoops\", [\"b\"], [], [\"i\", \"j\", \"k\"]]"
static const char plain[] = "[[" LOOPS "], []]";
static const char reordered[] = "[[" LOOPS ", [\"Reorder\", [\"i\", \"k\", \"j\"], [], []]], []]";
static const char threads[] = "[[" LOOPS ", [\"Reorder\", [\"i\", \"k\", \"j\"], [], []], [\"Parallel\", [\"i\"], [], "
                              "[]], [\"Vectorize\", [\"j\"], [], []]], []]";
static const char refused[] = "[[" LOOPS ", [\"Parallel\", [\"k\"], [], []]], []]";

static void measures_good_ones_in_order(void **state) {
  (void)state;
  struct tir *ir = gemm();
  struct jit_measurer_options options = {.censor_factor = 1e6};
  struct jit_measurer *m = start_measurer(ir, &options);
  submit(m, 7, plain);
  submit(m, 5, refused);
  submit(m, 9, threads);
  submit(m, 2, reordered);
  submit(m, 3, plain);
  ms_error err = {0};
  assert_true(jit_measurer_submit(m, 0, 4, "garbage", 7, &err));
  assert_true(jit_measurer_submit(m, 0, 6, "", 0, &err));
  struct jit_result r[7];
  for (int i = 0; i < 7; i++) r[i] = next_result(m);
  expect(&r[0], 7, JIT_MEASURED, NULL);
  expect(&r[1], 5, JIT_REFUSED, "instruction 2");
  expect(&r[2], 9, JIT_MEASURED, NULL);
  expect(&r[3], 2, JIT_MEASURED, NULL);
  expect(&r[4], 3, JIT_MEASURED, NULL);
  expect(&r[5], 4, JIT_REFUSED, NULL);
  expect(&r[6], 6, JIT_REFUSED, NULL);
  assert_true(r[0].timing.seconds > 0 && r[0].timing.low <= r[0].timing.seconds);
  assert_true(r[0].timing.high >= r[0].timing.seconds && r[0].timing.runs >= 3);
  assert_true(r[4].repeated && !r[0].repeated && r[4].timing.seconds == r[0].timing.seconds);
  assert_true(r[0].module_hash != 0 && r[0].module_hash == r[4].module_hash && r[0].module_hash != r[2].module_hash);
  struct jit_result none;
  assert_int_equal(jit_measurer_next(m, 0.01, &none, &err), 0);
  jit_measurer_free(m);
  tir_free(ir);
}

/* Each fault of a device has a name of its own. */
static void faults_have_names(void **state) {
  (void)state;
  static const struct {
    enum ms_code code;
    const char *name;
  } faults[] = {{MS_NOT_LAUNCHED, "not launched"},       {MS_EXCEEDS_DEVICE, "too many resources"},
                {MS_LAUNCH_TIMEOUT, "run timeout"},      {MS_MISALIGNED, "misaligned"},
                {MS_ILLEGAL_ADDRESS, "illegal address"}, {MS_ILLEGAL_INSTRUCTION, "illegal instruction"},
                {MS_NO_TILES, "illegal instruction"},    {MS_KERNEL_FAILED, "kernel failed"},
                {MS_DEVICE_MEMORY, "out of memory"},     {MS_NO_DEVICE, "no device"},
                {MS_ASSERTION, "wrong result"}};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    assert_string_equal(jit_outcome_text(jit_outcome_of(faults[i].code)), faults[i].name);
}

static void stops_slow_ones(void **state) {
  (void)state;
  struct tir *ir = gemm();
  struct jit_measurer *m = start_measurer(ir, NULL);
  jit_measurer_set_best(m, 0, 1e-9);
  submit(m, 1, plain);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_CENSORED, NULL);
  assert_true(r.timing.censored && r.timing.seconds > 3e-9);
  jit_measurer_free(m);
  tir_free(ir);
}

/* A function that stays within its buffer however often it runs; without its predicate a split runs too often. */
static struct tir *counting(void) {
  return read_function("C: T.Buffer((8,), \"float32\")",
                       "for i in range(8):", "    with T.sblock(\"C\"):", "        vi = T.axis.opaque(8, i)",
                       "        T.reads(C[0:8])", "        T.writes(C[0:8])",
                       "        C[vi % 8] = T.sqrt(C[vi % 8] + T.float32(1))");
}
#define SPLIT(factors)                                                                                                 \
  "[[[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"GetLoops\", [\"b\"], [], [\"i\"]], [\"Split\", "              \
  "[\"i\", " factors "], [false, true], [\"i0\", \"i1\"]]], []]"

struct candidate {
  const char *trace;
  enum jit_outcome outcome;
  const char *reason;
};

/* Measures candidates of the workload, which it frees: each becomes what is said, whatever became of those before. */
static void becomes(struct tir *ir, const struct jit_measurer_options *options, const struct candidate *candidates,
                    uint64_t count) {
  struct jit_measurer *m = start_measurer(ir, options);
  for (uint64_t i = 0; i < count; i++) submit(m, i, candidates[i].trace);
  for (uint64_t i = 0; i < count; i++) {
    struct jit_result r = next_result(m);
    expect(&r, i, candidates[i].outcome, candidates[i].reason);
  }
  jit_measurer_free(m);
  tir_free(ir);
}

static void survives_wrong_and_endless_ones(void **state) {
  (void)state;
  const struct jit_measurer_options options = {.run_timeout = 0.25, .censor_factor = 1e9};
  const struct candidate candidates[] = {{SPLIT("2, 4"), JIT_MEASURED, NULL},
                                         {SPLIT("3, 4"), JIT_WRONG, "is expected"},
                                         {SPLIT("1, 2147483640"), JIT_RUN_TIMEOUT, "more than 0.25 s"},
                                         {SPLIT("4, 2"), JIT_MEASURED, NULL}};
  becomes(counting(), &options, candidates, 4);
}

static struct tir *filling(void) {
  return read_function("A: T.Buffer((64,), \"float32\"), C: T.Buffer((1000,), \"float32\")",
                       "for i in range(1000):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(1000, i)",
                       "        C[vi] = A[vi % 64] + T.float32(1)");
}

static void survives_crashes(void **state) {
  (void)state;
  const struct jit_measurer_options options = {.censor_factor = 1e9};
  const struct candidate candidates[] = {
      {SPLIT("100, 10"), JIT_MEASURED, NULL},
      {SPLIT("77, 13"), JIT_MEASURED, NULL}, /* past the end, within its 64 bytes */
      {SPLIT("1000, 1000"), JIT_CRASHED, "signal 11 (Segmentation fault): the kernel touched memory"},
      {SPLIT("10, 100"), JIT_MEASURED, NULL}};
  becomes(filling(), &options, candidates, 4);
}

/* Sums in float16: exact on small integers, so that only what would be the best is found wrong. */
static void tells_coarse_sums(void **state) {
  (void)state;
  struct tir *ir = gemm();
  const struct jit_measurer_options options = {.censor_factor = -1};
  const struct candidate candidates[] = {
      {"[[[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"CacheWrite\", [\"b\", []], [0, \"global\"], [\"c\"]], "
       "[\"UnsafeSetDType\", [\"b\"], [0, \"float16\"], []]], []]",
       JIT_WRONG, "on real numbers"},
      {plain, JIT_MEASURED, NULL}};
  becomes(ir, &options, candidates, 2);
}

/* No build is as quick as that; each costs a builder, and another takes its place. */
static void survives_endless_builds(void **state) {
  (void)state;
  struct tir *ir = gemm();
  struct jit_measurer_options options = {.build_timeout = 1e-4};
  struct jit_measurer *m = start_measurer(ir, &options);
  const char *const traces[] = {plain, reordered, threads};
  for (uint64_t i = 0; i < 3; i++) submit(m, i, traces[i]);
  for (uint64_t i = 0; i < 3; i++) {
    struct jit_result r = next_result(m);
    expect(&r, i, JIT_BUILD_TIMEOUT, "more than 0.0001 s");
  }
  jit_measurer_free(m);
  tir_free(ir);
}

/* A function that fails unscheduled has nothing to be compared with. */
static void gives_up_without_a_reference(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((64,), \"int32\"), C: T.Buffer((64,), \"int32\")",
                    "for i in range(64):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(64, i)",
                    "        C[A[vi] + 1000000] = A[vi]");
  struct jit_measurer *m = start_measurer(ir, NULL);
  submit(m, 1, "[[], []]");
  ms_error err = {0};
  assert_int_equal(jit_measurer_reference(m, 0, &err), 0);
  for (uint64_t id = 1; id <= 2; id++) { /* one that waited for it, and one that comes later */
    struct jit_result r = next_result(m);
    expect(&r, id, JIT_NO_REFERENCE, "the unscheduled function cannot be run");
    submit(m, id + 1, "[[], []]");
  }
  assert_int_equal(jit_measurer_reference(m, 0, &err), -1);
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_NOT_MEASURABLE));
  assert_non_null(strstr(err.message, "C["));
  jit_measurer_free(m);
  tir_free(ir);
}

static void says_when_there_is_no_helper(void **state) {
  (void)state;
  find_helper();
  char *kept = strdup(getenv("MSCHED_HELPER"));
  setenv("MSCHED_HELPER", "/no/such/helper", 1);
  struct jit_target target;
  ms_error err = {0};
  assert_true(jit_target_parse("native", &target, &err));
  assert_null(jit_measurer_new(&target, NULL, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_NO_HELPER));
  setenv("MSCHED_HELPER", kept, 1);
  free(kept);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(measures_good_ones_in_order),
      cmocka_unit_test(faults_have_names),
      cmocka_unit_test(stops_slow_ones),
      cmocka_unit_test(survives_wrong_and_endless_ones),
      cmocka_unit_test(survives_crashes),
      cmocka_unit_test(survives_endless_builds),
      cmocka_unit_test(tells_coarse_sums),
      cmocka_unit_test(gives_up_without_a_reference),
      cmocka_unit_test(says_when_there_is_no_helper),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
