/* Runs of what a few outputs need: equal to a whole run where they wrote, and cut down where they can be. */
#include "unit/script.h"

enum { SAMPLES = 5 };
static const double UNTOUCHED = -77;

/* Runs whole and by samples; every element that the samples wrote is equal. Gives how many those are. */
static uint32_t run_both(struct tir *ir, struct tir_run_report *whole, struct tir_run_report *sampled) {
  struct tir_arguments expected, actual;
  ms_error err = {0};
  tir_func f = tir_find_func(ir, "main");
  struct tir_run_options options = {.report = whole};
  assert_true(tir_make_arguments(ir, f, 1, &expected, &err));
  uint32_t last = expected.count - 1, count = (uint32_t)(expected.args[last].bytes / sizeof(float)), written = 0;
  float *want = expected.args[last].data;
  for (uint32_t i = 0; i < count; i++) want[i] = (float)UNTOUCHED;
  tir_copy_arguments(ir, f, &expected, &actual);
  if (!tir_run(ir, f, expected.args, expected.count, &options, &err)) fail_msg("%s", err.message);
  options.report = sampled;
  if (!tir_run_samples(ir, f, actual.args, actual.count, &options, 1, SAMPLES, &err)) fail_msg("%s", err.message);
  float *got = actual.args[last].data;
  for (uint32_t i = 0; i < count; i++) {
    if (got[i] == (float)UNTOUCHED) continue;
    assert_true(got[i] == want[i]);
    written++;
  }
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  tir_free(ir);
  return written;
}

#define A_C "A: T.Buffer((32, 64), \"float32\"), C: T.Buffer((32, 64), \"float32\")"

static void cuts_a_chain(void **state) {
  (void)state;
  struct tir_run_report whole = {0}, sampled = {0};
  struct tir *ir = read_function(
      A_C, "B = T.sblock_alloc_buffer((32, 64), \"float32\")", "S = T.sblock_alloc_buffer((32,), \"float32\")",
      "for i, j in T.grid(32, 64):", "    with T.sblock(\"B\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        B[vi, vj] = A[vi, vj] + T.float32(1)",
      "for i, k in T.grid(32, 64):", "    with T.sblock(\"S\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            S[vi] = T.float32(0)", "        S[vi] = S[vi] + B[vi, vk]",
      "for i, j in T.grid(32, 64):", "    with T.sblock(\"C\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        C[vi, vj] = B[vi, vj] * S[vi]");
  assert_int_equal(run_both(ir, &whole, &sampled), SAMPLES);
  assert_true(sampled.steps * 20 < whole.steps); /* the last sample's: a row of B and its sum */
}

static void keeps_a_loop_that_reduces_elsewhere(void **state) {
  (void)state;
  struct tir_run_report whole, sampled;
  struct tir *ir = read_function(
      "A: T.Buffer((32, 64), \"float32\"), D: T.Buffer((32, 64), \"float32\"), C: T.Buffer((64,), \"float32\")",
      "for i, j in T.grid(32, 64):", "    with T.sblock(\"D\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        D[vi, vj] = A[vi, vj]", "    with T.sblock(\"C\"):", "        vi, vj = T.axis.remap(\"RS\", [i, j])",
      "        with T.init():", "            C[vj] = T.float32(0)", "        C[vj] = C[vj] + A[vi, vj]");
  assert_in_range(run_both(ir, &whole, &sampled), 2, SAMPLES); /* j is cut, i is not */
}

static void runs_whole_what_another_reads(void **state) {
  (void)state;
  struct tir_run_report whole, sampled;
  struct tir *ir =
      read_function("A: T.Buffer((32,), \"float32\"), B: T.Buffer((32,), \"float32\"), C: T.Buffer((32,), \"float32\")",
                    "for i in range(32):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(32, i)",
                    "        B[vi] = A[vi] + T.float32(1)",
                    "for i in range(32):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(32, i)",
                    "        C[vi] = B[31 - vi]");
  assert_int_equal(run_both(ir, &whole, &sampled), 32); /* B is an output that C reads: all of it, for each sample */
  assert_int_equal(sampled.steps, whole.steps);
}

/* A window over a window: what neighbours share is computed once a sample, not once for each that reads it. */
static void computes_once_what_windows_share(void **state) {
  (void)state;
  struct tir_run_report whole = {0}, sampled = {0};
  struct tir *ir = read_function(
      "A: T.Buffer((4096,), \"float32\"), D: T.Buffer((64,), \"float32\")",
      "B = T.sblock_alloc_buffer((4080,), \"float32\")", "C = T.sblock_alloc_buffer((4064,), \"float32\")",
      "for i, k in T.grid(4080, 16):", "    with T.sblock(\"B\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            B[vi] = T.float32(0)", "        B[vi] = B[vi] + A[vi + vk]",
      "for i, k in T.grid(4064, 16):", "    with T.sblock(\"C\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            C[vi] = T.float32(0)", "        C[vi] = C[vi] + B[vi + vk]",
      "for i, k in T.grid(64, 63):", "    with T.sblock(\"D\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            D[vi] = T.float32(0)", "        D[vi] = D[vi] + C[vi * 63 + vk]");
  assert_int_equal(run_both(ir, &whole, &sampled), SAMPLES);
  assert_true(sampled.steps * 20 < whole.steps); /* 63 of C, 78 of B */
}

/* Where each sample needs nearly everything, all of it is run, once. */
static void runs_whole_where_that_is_less(void **state) {
  (void)state;
  struct tir_run_report whole = {0}, sampled = {0};
  struct tir *ir = read_function(
      "A: T.Buffer((64,), \"float32\"), C: T.Buffer((6,), \"float32\")",
      "B = T.sblock_alloc_buffer((64,), \"float32\")",
      "for i in range(64):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(64, i)",
      "        B[vi] = A[vi] + T.float32(1)",
      "for i, k in T.grid(6, 64):", "    with T.sblock(\"C\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            C[vi] = T.float32(0)",
      "        C[vi] = C[vi] + B[vk] * T.cast(vi, \"float32\")");
  assert_int_equal(run_both(ir, &whole, &sampled), 6);
  assert_int_equal(sampled.steps, whole.steps);
}

static void runs_whole_without_blocks(void **state) {
  (void)state;
  struct tir_run_report whole, sampled;
  struct tir *ir = read_function(A_C, "for i, j in T.grid(32, 64):", "    C[i, j] = A[i, j]");
  assert_int_equal(run_both(ir, &whole, &sampled), 32 * 64);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cuts_a_chain),
      cmocka_unit_test(keeps_a_loop_that_reduces_elsewhere),
      cmocka_unit_test(runs_whole_what_another_reads),
      cmocka_unit_test(computes_once_what_windows_share),
      cmocka_unit_test(runs_whole_where_that_is_less),
      cmocka_unit_test(runs_whole_without_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
