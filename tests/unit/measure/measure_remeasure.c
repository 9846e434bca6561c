/* Final re-measurement: candidates timed again in alternating slices, by a real helper; one that cannot be run ends it,
 * and measuring goes on. */
#include "unit/measurer.h"

static struct tir *filling(void) {
  return read_function("A: T.Buffer((64,), \"float32\"), C: T.Buffer((1000,), \"float32\")",
                       "for i in range(1000):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(1000, i)",
                       "        C[vi] = A[vi % 64] + T.float32(1)");
}
#define LOOK           "[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"GetLoops\", [\"b\"], [], [\"i\"]]"
#define SPLIT(factors) "[[" LOOK ", [\"Split\", [\"i\", " factors "], [false, true], [\"i0\", \"i1\"]]], []]"

static struct jit_trace trace_of(const char *json) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_json(json, strlen(json), &err);
  if (!trace) fail_msg("%s", err.message);
  struct jit_trace made;
  made.data = vm_write_binary(trace, &made.bytes);
  vm_trace_free(trace);
  return made;
}

/* 1: `out` has the times, -1: there are none. */
static int hold(struct jit_measurer *m, const char *const *traces, uint32_t count, struct jit_timing *out) {
  struct jit_trace all[8] = {0};
  ms_error err = {0};
  for (uint32_t i = 0; i < count; i++) all[i] = trace_of(traces[i]);
  if (!jit_measurer_remeasure(m, 0, all, count, 0.01, &err)) fail_msg("%s", err.message);
  for (uint32_t i = 0; i < count; i++) free((void *)all[i].data);
  assert_true(jit_measurer_is_remeasuring(m));
  int got = 0;
  for (int waited = 0; !got && waited < 600; waited++) got = jit_measurer_remeasured(m, 0.1, out, &err);
  assert_true(!got == jit_measurer_is_remeasuring(m));
  return got;
}

static void expect_to_measure(struct jit_measurer *m, uint64_t id) {
  submit(m, id, SPLIT("8, 125"));
  struct jit_result r = next_result(m);
  expect(&r, id, JIT_MEASURED, NULL);
}

static void times_in_turn(void **state) {
  (void)state;
  struct tir *ir = filling();
  const struct jit_measurer_options options = {.censor_factor = -1};
  struct jit_measurer *m = start_measurer(ir, &options);
  const char *const traces[] = {SPLIT("100, 10"), SPLIT("10, 100"),
                                "[[" LOOK ", [\"Vectorize\", [\"i\"], [], []]], []]"};
  struct jit_timing times[3] = {0};
  expect_to_measure(m, 1);
  assert_int_equal(hold(m, traces, 3, times), 1);
  for (int i = 0; i < 3; i++)
    assert_true(times[i].seconds > 0 && times[i].low <= times[i].seconds && times[i].runs >= 8 && !times[i].censored);
  expect_to_measure(m, 2);
  jit_measurer_free(m);
  tir_free(ir);
}

static void one_that_cannot_be_run_ends_it(void **state) {
  (void)state;
  struct tir *ir = filling();
  const struct jit_measurer_options options = {.censor_factor = -1};
  struct jit_measurer *m = start_measurer(ir, &options);
  const char *const refused[] = {SPLIT("100, 10"), "[[[\"GetSBlock\", [], [\"none\", \"main\"], [\"b\"]]], []]"};
  const char *const crashing[] = {SPLIT("100, 10"), SPLIT("1000, 1000")};
  struct jit_timing times[2];
  assert_int_equal(hold(m, refused, 2, times), -1);
  assert_int_equal(hold(m, crashing, 2, times), -1);
  expect_to_measure(m, 1);
  ms_error err = {0};
  assert_false(jit_measurer_remeasure(m, 0, NULL, 0, 1, &err));
  jit_measurer_free(m);
  tir_free(ir);
}

/* A run that ends in the middle of a batch leaves results that no one waits for. */
static void refused_while_results_are_pending(void **state) {
  (void)state;
  struct tir *ir = filling();
  const struct jit_measurer_options options = {.censor_factor = -1};
  struct jit_measurer *m = start_measurer(ir, &options);
  struct jit_trace trace = trace_of(SPLIT("100, 10"));
  ms_error err = {0};
  submit(m, 1, SPLIT("8, 125"));
  assert_false(jit_measurer_remeasure(m, 0, &trace, 1, 0.01, &err));
  assert_int_equal(err.code, MS_INVALID_ARGUMENT);
  struct jit_result r = next_result(m);
  expect(&r, 1, JIT_MEASURED, NULL);
  free((void *)trace.data);
  jit_measurer_free(m);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(times_in_turn),
      cmocka_unit_test(one_that_cannot_be_run_ends_it),
      cmocka_unit_test(refused_while_results_are_pending),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
