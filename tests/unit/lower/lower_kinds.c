/* What lowering for a CPU does with threads that reduce together, with shapes and strides that are variables. */
#include "unit/script.h"

#include "jit/jit.h"

static char *lowered_text(struct tir *ir) {
  struct tir_lower_options options = {.verify = true};
  assert_accepted(tir_lower(ir, tir_find_func(ir, "main"), &options, err));
  char *text = tir_print(ir, TIR_NONE, TIR_PRINT_FUNCTION);
  assert_non_null(text);
  return text;
}

static void expect_lowered(struct tir *ir, const char *holds, const char *holds_not) {
  char *text = lowered_text(ir);
  if (holds && !strstr(text, holds)) fail_msg("no \"%s\" in\n%s", holds, text);
  if (holds_not && strstr(text, holds_not)) fail_msg("\"%s\" in\n%s", holds_not, text);
  free(text);
}

/* The scheduled function, interpreted, lowered with real threads, and compiled. */
static void expect_equal(struct tir *ir) {
  tir_func f = tir_find_func(ir, "main");
  struct tir_arguments expected, actual, again;
  struct tir_run_options real = {.lowered = true};
  struct jit_target target;
  struct tir *lowered = tir_new();
  tir_copy(lowered, ir);
  free(lowered_text(lowered));
  assert_accepted(tir_make_arguments(ir, f, 3, &expected, err));
  tir_copy_arguments(ir, f, &expected, &actual);
  tir_copy_arguments(ir, f, &expected, &again);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(jit_run(ir, f, &target, NULL, actual.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &actual, 0, err));
  struct tir_arg flat[2] = {again.args[0], again.args[1]}; /* their one extent follows from the size */
  flat[0].shape = flat[1].shape = NULL;
  assert_accepted(tir_run(lowered, f, flat, 2, &real, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &again, 0, err));
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  tir_arguments_free(&again);
  tir_free(lowered);
}

#define SUM(i_loop, k_loop)                                                                                            \
  read_function("A: T.Buffer((8, 16), \"float32\"), B: T.Buffer((8,), \"float32\")", i_loop, "    " k_loop,            \
                "        with T.sblock(\"B\"):", "            vi, vk = T.axis.remap(\"SR\", [i, k])",                  \
                "            with T.init():", "                B[vi] = T.float32(0)",                                  \
                "            B[vi] = B[vi] + A[vi, vk]")
#define I_THREAD "for i in T.thread_binding(8, thread=\"blockIdx.x\"):"
#define K_THREAD "for k in T.thread_binding(16, thread=\"threadIdx.x\"):"

static void threads_that_reduce_become_iterations(void **state) {
  (void)state;
  struct tir *ir = SUM("for i in range(8):", K_THREAD);
  expect_equal(ir);
  expect_lowered(ir, "B[i] = B[i] + A[", "thread_binding");
  tir_free(ir);
  ir = SUM(I_THREAD, K_THREAD); /* none of the kernel's threads is left */
  expect_equal(ir);
  expect_lowered(ir, "B[i] = B[i] + A[", "thread_binding");
  tir_free(ir);
}

static void other_threads_stay(void **state) {
  (void)state;
  struct tir *ir = SUM(I_THREAD, "for k in range(16):");
  expect_equal(ir);
  expect_lowered(ir, "thread=\"blockIdx.x\"", NULL);
  tir_free(ir);
}

#define STRIDED(extent)                                                                                                \
  "s = T.int32()", "A = T.match_buffer(a, (" extent ", 16), \"float32\", strides=(s, 1))",                             \
      "B = T.match_buffer(b, (" extent ", 16), \"float32\")", "for i, j in T.grid(" extent ", 16):",                   \
      "    with T.sblock(\"B\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])", "        B[vi, vj] = A[vi, vj]"

static void strides_that_nothing_tells_are_refused(void **state) {
  (void)state;
  struct tir *ir = read_function("a: T.handle, b: T.handle", STRIDED("16"));
  ms_error err = {0};
  assert_false(tir_lower(ir, tir_find_func(ir, "main"), NULL, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_LOWER_UNKNOWN_STRIDE));
  assert_non_null(strstr(err.message, "strides of A"));
  tir_free(ir);
  ir = read_function("a: T.handle, b: T.handle", STRIDED("16"));
  struct jit_target target;
  assert_accepted(jit_target_parse("native", &target, err));
  err = (ms_error){0};
  assert_null(jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_LOWER_UNKNOWN_STRIDE));
  tir_free(ir);
}

static void offsets_that_nothing_gives_are_refused(void **state) {
  (void)state;
  struct tir *ir =
      read_function("a: T.handle, b: T.handle", "A = T.match_buffer(a, (16,), \"float32\", offset_factor=1)",
                    "B = T.match_buffer(b, (16,), \"float32\")",
                    "for i in range(16):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(16, i)",
                    "        B[vi] = A[vi]");
  ms_error err = {0};
  assert_false(tir_lower(ir, tir_find_func(ir, "main"), NULL, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_LOWER_UNKNOWN_STRIDE));
  tir_free(ir);
}

static void strides_that_shapes_give_are_lowered(void **state) {
  (void)state;
  struct tir *ir = read_function("a: T.handle, b: T.handle", STRIDED("s"));
  expect_lowered(ir, "A[j + s * i]", NULL);
  tir_free(ir);
  ir = read_function("A: T.Buffer((16, 16), \"float32\", strides=(32, 1)), B: T.Buffer((16, 16), \"float32\")",
                     "for i, j in T.grid(16, 16):", "    with T.sblock(\"B\"):",
                     "        vi, vj = T.axis.remap(\"SS\", [i, j])", "        B[vi, vj] = A[vi, vj]");
  expect_lowered(ir, "A[i * 32 + j]", NULL);
  tir_free(ir);
}

static void shapes_that_are_variables_stay(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "a: T.handle, b: T.handle", "n = T.int32()", "A = T.match_buffer(a, (n, 16), \"float32\")",
      "B = T.match_buffer(b, (n, 16), \"float32\")", "C = T.sblock_alloc_buffer((n, 16))",
      "for i, j in T.grid(n, 16):", "    with T.sblock(\"C\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        C[vi, vj] = A[vi, vj] + T.float32(1)",
      "for i, j in T.grid(n, 16):", "    with T.sblock(\"B\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        B[vi, vj] = C[vi, vj]");
  expect_lowered(ir, "C = T.alloc_buffer((n * 16,))", NULL);
  tir_free(ir);
}

static void other_functions_of_the_module_stay(void **state) {
  (void)state;
  static const char module[] =
      "@I.ir_module\nclass Module:\n"
      "    @T.prim_func(s_tir=True)\n"
      "    def main(A: T.Buffer((16, 16), \"float32\")):\n"
      "        for i, j in T.grid(16, 16):\n"
      "            A[i, j] = T.float32(1)\n"
      "    @T.prim_func(s_tir=True)\n"
      "    def other(B: T.Buffer((16, 16), \"float32\"), C: T.Buffer((16, 16), \"float32\")):\n"
      "        for i, j in T.grid(16, 16):\n"
      "            C[i, j] = B[j, i]\n";
  ms_error err = {0};
  struct tir *ir = tir_read(module, strlen(module), "test", &err);
  if (!ir) fail_msg("%s", err.message);
  free(lowered_text(ir));
  char *text = tir_print(ir, TIR_NONE, 0);
  assert_non_null(strstr(text, "A[i * 16 + j]"));
  assert_non_null(strstr(text, "C[i, j] = B[j, i]"));
  free(text);
  assert_accepted(tir_verify(ir, err));
  tir_free(ir);
}

/* Iterations of k that write nothing leave S as an earlier one wrote it: S lives as long as k runs. */
static void what_a_condition_keeps_from_being_written_stays(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8, 16), \"float32\"), B: T.Buffer((8,), \"float32\")", "S = T.sblock_alloc_buffer((8,))",
      "for i, k in T.grid(8, 4):", "    with T.sblock(\"S\"):", "        vi = T.axis.spatial(8, i)",
      "        T.where(k < 2)", "        S[vi] = A[vi, 3]",
      "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(8, i)", "        B[vi] = S[vi]");
  expect_equal(ir);
  tir_free(ir);
}

/* The outer loop has no vector form, or too few iterations for one: none is left that is marked. */
static void vectorized_loops_in_others_become_serial(void **state) {
  (void)state;
  static const char *const outer[] = {
      "for i in T.vectorized(8):", "for i in T.vectorized(1):", "for i in T.vectorized(0):"};
  for (size_t k = 0; k < sizeof outer / sizeof *outer; k++) {
    struct tir *ir = read_function("A: T.Buffer((8, 4), \"float32\"), B: T.Buffer((8, 4), \"float32\")", outer[k],
                                   "    for j in T.vectorized(4):", "        B[i, j] = A[i, j] + T.float32(1)");
    expect_equal(ir);
    expect_lowered(ir, NULL, "T.vectorized");
    tir_free(ir);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_that_reduce_become_iterations),
      cmocka_unit_test(other_threads_stay),
      cmocka_unit_test(strides_that_nothing_tells_are_refused),
      cmocka_unit_test(offsets_that_nothing_gives_are_refused),
      cmocka_unit_test(strides_that_shapes_give_are_lowered),
      cmocka_unit_test(shapes_that_are_variables_stay),
      cmocka_unit_test(other_functions_of_the_module_stay),
      cmocka_unit_test(what_a_condition_keeps_from_being_written_stays),
      cmocka_unit_test(vectorized_loops_in_others_become_serial),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
