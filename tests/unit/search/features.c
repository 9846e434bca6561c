/* Features of stores, against values worked out by hand. */
#include "search/search.h"
#include "unit/script.h"
#include "vm/vm.h"

#include <math.h>

struct features {
  float *rows;
  uint32_t count;
};

static struct features features_of(struct tir *ir) {
  struct features f;
  ms_error err = {0};
  if (!search_features(ir, tir_find_func(ir, "main"), &f.rows, &f.count, &err)) fail_msg("%s", err.message);
  return f;
}

static double feature(const struct features *f, uint32_t row, const char *name) {
  assert_true(row < f->count);
  for (uint32_t i = 0; i < search_feature_count(); i++)
    if (!strcmp(search_feature_name(i), name)) return f->rows[row * search_feature_count() + i];
  fail_msg("there is no feature %s", name);
  return 0;
}

/* Of a number: its logarithm. */
static void expect_number(const struct features *f, uint32_t row, const char *name, double number) {
  double wanted = log2(1 + number), got = feature(f, row, name);
  if (fabs(got - wanted) > 1e-5) fail_msg("%s of row %u: %g, not %g", name, row, exp2(got) - 1, number);
}

static void expect_truth(const struct features *f, uint32_t row, const char *name, bool truth) {
  if (feature(f, row, name) != (truth ? 1 : 0)) fail_msg("%s of row %u: not %d", name, row, truth);
}

static struct tir *read_gemm(void) {
  return read_function("A: T.Buffer((64, 32), \"float32\"), B: T.Buffer((32, 16), \"float32\"), "
                       "C: T.Buffer((64, 16), \"float32\")",
                       "for i, j, k in T.grid(64, 16, 32):",                    /**/
                       "    with T.sblock(\"C\"):",                             /**/
                       "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])", /**/
                       "        T.reads(A[vi, vk], B[vk, vj])",                 /**/
                       "        T.writes(C[vi, vj])",                           /**/
                       "        with T.init():",                                /**/
                       "            C[vi, vj] = T.float32(0.0)",                /**/
                       "        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
}

enum { INIT, UPDATE };

static void counts_a_product(void **state) {
  (void)state;
  struct tir *ir = read_gemm();
  struct features f = features_of(ir);
  const double iterations = 64 * 16 * 32;
  assert_int_equal(f.count, 2);
  expect_number(&f, UPDATE, "float_multiply_add", iterations);
  expect_number(&f, UPDATE, "float_multiply", 0); /* it is part of the one before */
  expect_number(&f, UPDATE, "float_add_sub", 0);
  expect_number(&f, UPDATE, "loads", 3 * iterations);
  expect_number(&f, INIT, "float_multiply_add", 0);
  expect_number(&f, INIT, "loads", 0);
  expect_number(&f, UPDATE, "iterations", iterations);
  expect_number(&f, UPDATE, "serial_product", iterations);
  expect_number(&f, UPDATE, "loops", 3);
  expect_number(&f, UPDATE, "conditions", 0);
  expect_number(&f, UPDATE, "written_elements", 64 * 16);
  expect_number(&f, UPDATE, "written_bytes", 64 * 16 * 4);
  expect_number(&f, UPDATE, "unroll_step", 0);
  expect_truth(&f, UPDATE, "parallel_none", true);
  expect_number(&f, UPDATE, "parallel_product", 0);
  free(f.rows);
  tir_free(ir);
}

/* Most bytes are moved of C, which is read and written; then of A and B, in order of their numbers. */
static void measures_buffers(void **state) {
  (void)state;
  struct tir *ir = read_gemm();
  struct features f = features_of(ir);
  const double iterations = 64 * 16 * 32;
  expect_truth(&f, UPDATE, "buffer0_read_write", true);
  expect_truth(&f, UPDATE, "buffer0_write", false);
  expect_number(&f, UPDATE, "buffer0_bytes", 2 * 4 * iterations);
  expect_truth(&f, UPDATE, "buffer0_reuse_in_iteration", false); /* it is one place */
  expect_truth(&f, UPDATE, "buffer0_reuse_in_loop", true);
  expect_number(&f, UPDATE, "buffer0_reuse_distance_iterations", 1);
  expect_number(&f, UPDATE, "buffer0_reuse_distance_bytes", 3 * 4);
  expect_number(&f, UPDATE, "buffer0_reuse_count", 32);

  expect_truth(&f, UPDATE, "buffer1_read", true); /* A: strides 32, 0, 1 */
  expect_number(&f, UPDATE, "buffer1_bytes", 4 * iterations);
  expect_number(&f, UPDATE, "buffer1_unique_bytes", 4 * 64 * 32);
  expect_number(&f, UPDATE, "buffer1_lines", iterations / 16);
  expect_number(&f, UPDATE, "buffer1_unique_lines", 64 * 32 / 16);
  expect_number(&f, UPDATE, "buffer1_reuse_distance_iterations", 32); /* all of k */
  expect_number(&f, UPDATE, "buffer1_reuse_distance_bytes", 4 + 4 * 32 + 4 * 32);
  expect_number(&f, UPDATE, "buffer1_reuse_count", 16);
  expect_number(&f, UPDATE, "buffer1_bytes_by_reuse", 4 * iterations / 16);
  expect_number(&f, UPDATE, "buffer1_stride", 1);

  expect_number(&f, UPDATE, "buffer2_reuse_distance_iterations", 32 * 16); /* B: strides 0, 1, 16 */
  expect_number(&f, UPDATE, "buffer2_reuse_count", 64);
  expect_number(&f, UPDATE, "buffer3_bytes", 0); /* there is none */

  expect_truth(&f, INIT, "buffer0_write", true);
  expect_number(&f, INIT, "buffer0_bytes", 4 * iterations);
  /* two operations an iteration; all 6 KiB, 2 KiB and 4 KiB once */
  expect_number(&f, UPDATE, "intensity_10", 2 * iterations / (4.0 * (64 * 32 + 32 * 16 + 64 * 16)));
  free(f.rows);
  tir_free(ir);
}

static void tells_kinds_of_loops(void **state) {
  (void)state;
  struct tir *ir = read_function("A: T.Buffer((8, 4, 6), \"float32\"), B: T.Buffer((8, 6), \"float32\")",
                                 "for i in T.parallel(8, annotations={\"pragma_auto_unroll_max_step\": 64}):", /**/
                                 "    for k in T.unroll(4):",                                                  /**/
                                 "        for j in T.vectorized(6):",                                          /**/
                                 "            with T.sblock(\"B\"):",                                          /**/
                                 "                vi, vj = T.axis.remap(\"SS\", [i, j])",                      /**/
                                 "                vk = T.axis.reduce(4, k)",                                   /**/
                                 "                T.where(j < 5)",                                             /**/
                                 "                T.reads(A[vi, vk, vj])",                                     /**/
                                 "                T.writes(B[vi, vj])",                                        /**/
                                 "                B[vi, vj] = T.max(B[vi, vj], A[vi, vk, vj] * A[vi, 0, vj])");
  struct features f = features_of(ir);
  assert_int_equal(f.count, 1);
  expect_number(&f, 0, "parallel_number", 1);
  expect_number(&f, 0, "parallel_length", 8);
  expect_truth(&f, 0, "parallel_outer_spatial", true);
  expect_truth(&f, 0, "parallel_none", false);
  expect_number(&f, 0, "unrolled_product", 4);
  expect_truth(&f, 0, "unrolled_middle_reduce", true);
  expect_number(&f, 0, "vectorized_length", 6);
  expect_truth(&f, 0, "vectorized_inner_spatial", true);
  expect_number(&f, 0, "serial_product", 1);
  expect_number(&f, 0, "unroll_step", 64);
  expect_number(&f, 0, "conditions", 1);
  expect_number(&f, 0, "float_multiply", 8 * 4 * 6);
  expect_number(&f, 0, "float_compare", 8 * 4 * 6);
  expect_truth(&f, 0, "buffer0_reuse_in_iteration", true); /* A at k and at 0 */
  expect_number(&f, 0, "buffer0_reuse_count", 1);
  free(f.rows);
  tir_free(ir);
}

/* Blocks of a cluster, and what is bound to no axis. */
static void tells_axes_of_threads(void **state) {
  (void)state;
  struct tir *ir = read_function("A: T.Buffer((240,), \"float32\"), B: T.Buffer((240,), \"float32\")",
                                 "for b in T.thread_binding(5, thread=\"blockIdx.x\"):",           /**/
                                 "    for c in T.thread_binding(2, thread=\"clusterCtaIdx.x\"):",  /**/
                                 "        for t in T.thread_binding(24, thread=\"threadIdx.x\"):", /**/
                                 "            with T.sblock(\"B\"):",                              /**/
                                 "                vi = T.axis.spatial(240, b * 48 + c * 24 + t)",  /**/
                                 "                T.reads(A[vi])",                                 /**/
                                 "                T.writes(B[vi])",                                /**/
                                 "                B[vi] = A[vi]");
  struct features f = features_of(ir);
  expect_number(&f, 0, "blockIdx.x_extent", 5);
  expect_number(&f, 0, "clusterCtaIdx.x_extent", 2);
  expect_number(&f, 0, "threadIdx.x_extent", 24);
  expect_number(&f, 0, "threadIdx.y_extent", 0);
  free(f.rows);
  tir_free(ir);
}

static void names_every_column(void **state) {
  (void)state;
  char names[256][64];
  uint32_t count = search_feature_count();
  assert_true(count <= 256);
  for (uint32_t i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "%s", search_feature_name(i));
    for (uint32_t k = 0; k < i; k++) assert_string_not_equal(names[k], names[i]);
    assert_true(strlen(search_feature_doc(i)) > 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(counts_a_product), cmocka_unit_test(measures_buffers),
                                     cmocka_unit_test(tells_kinds_of_loops), cmocka_unit_test(tells_axes_of_threads),
                                     cmocka_unit_test(names_every_column)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
