/* Buffers that are views of one memory: code does not take them for different memory, in parallel loops neither. */
#include "unit/script.h"

#include "jit/jit.h"

/* Compiled equals interpreted. Takes the module. */
static void check(struct tir *ir) {
  struct jit_target target;
  struct tir_arguments expected, actual;
  tir_func f = tir_find_func(ir, "main");
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(tir_make_arguments(ir, f, 5, &expected, err));
  tir_copy_arguments(ir, f, &expected, &actual);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(jit_run(ir, f, &target, NULL, actual.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &actual, 1e-5, err));
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  tir_free(ir);
}

#define PARAMETERS "A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")"

/* What is written by one name is read by the other, in the same iteration. */
static void parallel_body(void **state) {
  (void)state;
  check(read_function(PARAMETERS, "V = T.decl_buffer((64,), \"float32\", data=A.data)", "for i in T.parallel(4):",
                      "    for j in range(15):", "        A[i * 16 + j] = B[i * 16 + j] * T.float32(2)",
                      "        B[i * 16 + j] = V[i * 16 + j] + V[i * 16 + 15]"));
  check(read_function(PARAMETERS, "V = T.decl_buffer((64,), \"float32\", data=A.data)", "for i in T.parallel(4):",
                      "    for j in range(15):", "        V[i * 16 + j + 1] = A[i * 16 + j] + T.float32(1)"));
  /* A view of a view. */
  check(read_function(PARAMETERS, "V = T.decl_buffer((64,), \"float32\", data=A.data)",
                      "W = T.decl_buffer((32, 2), \"float32\", data=V.data)", "for i in T.parallel(4):",
                      "    for j in range(7):", "        W[i * 8 + j + 1, 0] = V[i * 16 + j * 2] + T.float32(1)"));
}

static void views_of_matches(void **state) {
  (void)state;
  check(read_function(PARAMETERS,
                      "for i in T.parallel(4):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(4, i)",
                      "        T.reads(A[vi * 16:vi * 16 + 16])", "        T.writes(A[vi * 16:vi * 16 + 16])",
                      "        X = T.match_buffer(A[vi * 16:vi * 16 + 16], (16,), offset_factor=1)",
                      "        Y = T.match_buffer(A[vi * 16 + 1:vi * 16 + 16], (15,), offset_factor=1)",
                      "        for j in range(15):", "            Y[j] = X[j] + T.float32(1)"));
}

static void sums_in_registers(void **state) {
  (void)state;
  check(read_function(PARAMETERS, "V = T.decl_buffer((64,), \"float32\", data=A.data)",
                      "for k in range(4):", "    A[0] = A[0] + V[0] + B[k]"));
  check(read_function(PARAMETERS, "V = T.decl_buffer((64,), \"float32\", data=A.data)", "for k in range(4):",
                      "    for i in T.vectorized(8):", "        A[i] = A[i] + V[i] + B[k * 8 + i]"));
  check(read_function(PARAMETERS, "V = T.decl_buffer((64,), \"float32\", data=A.data)", "for i in T.parallel(4):",
                      "    for k in range(4):", "        V[i * 16] = V[i * 16] + A[i * 16] + B[k]"));
}

/* A buffer keeps its shape where a view of it counts on that. */
static void shrinking(void **state) {
  (void)state;
  check(read_function(PARAMETERS, "for i in range(4):", "    C = T.alloc_buffer((64,))",
                      "    V = T.decl_buffer((64,), data=C.data)",
                      "    for j in range(16):", "        C[32 + j] = B[i * 16 + j]",
                      "    for j in range(16):", "        A[i * 16 + j] = V[32 + j]"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parallel_body), cmocka_unit_test(views_of_matches),
                                     cmocka_unit_test(sums_in_registers), cmocka_unit_test(shrinking)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
