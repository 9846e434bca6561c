/* Kernels on the reference interpreter: threads, barriers, shared memory, races, cross-thread reductions. */
#include "unit/script.h"

static float a[64], c[64];
static struct tir_arg two[2] = {{.data = a, .bytes = sizeof a}, {.data = c, .bytes = sizeof c}};

static int fill(void **state) {
  (void)state;
  for (int i = 0; i < 64; i++) a[i] = (float)i, c[i] = -1;
  return 0;
}

static bool run(struct tir *ir, bool lowered, ms_error *err) {
  struct tir_run_options options = {.lowered = lowered};
  bool ok = tir_run(ir, tir_find_func(ir, "main"), two, 2, &options, err);
  tir_free(ir);
  return ok;
}

static void expect_ok(struct tir *ir) {
  ms_error err = {0};
  if (!run(ir, true, &err)) fail_msg("%s", err.message);
}

static void expect_code(struct tir *ir, enum ms_code code, const char *said) {
  ms_error err = {0};
  assert_false(run(ir, true, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(code));
  if (!strstr(err.message, said)) fail_msg("\"%s\" does not say \"%s\"", err.message, said);
}

#define A_C "A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float32\")"
#define THREADS                                                                                                        \
  "for bx in T.thread_binding(4, thread=\"blockIdx.x\"):", "    S = T.alloc_buffer((16,), scope=\"shared\")",          \
      "    for tx in T.thread_binding(16, thread=\"threadIdx.x\"):"
#define BARRIER "        T.tvm_storage_sync(\"shared\")"

/* Each thread writes one element of shared memory and reads its mirror image. */
static void threads_share_memory(void **state) {
  (void)state;
  expect_ok(
      read_function(A_C, THREADS, "        S[tx] = A[bx * 16 + tx]", BARRIER, "        C[bx * 16 + tx] = S[15 - tx]"));
  for (int i = 0; i < 64; i++) assert_true(c[i] == a[i / 16 * 16 + 15 - i % 16]);
}

static void a_missing_barrier_is_a_race(void **state) {
  (void)state;
  expect_code(read_function(A_C, THREADS, "        S[tx] = A[bx * 16 + tx]", "        C[bx * 16 + tx] = S[15 - tx]"),
              MS_RUN_RACE, "writes what another reads");
  expect_code(read_function(A_C, THREADS, "        S[tx] = A[bx * 16 + tx]", "        C[bx * 16 + tx] = S[0]"),
              MS_RUN_RACE, "reads what another writes");
  expect_code(read_function(A_C, THREADS, "        S[0] = A[tx]"), MS_RUN_RACE, "writes what another writes");
  expect_code(read_function(A_C, THREADS, "        S[tx] = A[tx]", BARRIER, "        C[bx * 16 + tx] = S[0]",
                            "        if tx == 15:", "            S[0] = T.float32(9)"),
              MS_RUN_RACE, "another reads");
}

/* All threads may write one value. */
static void writing_one_value_is_no_race(void **state) {
  (void)state;
  expect_ok(read_function(A_C, THREADS, "        S[0] = T.float32(5)", "        C[bx * 16 + tx] = S[0]"));
  assert_true(c[63] == 5);
}

static void blocks_have_no_order(void **state) {
  (void)state;
  expect_code(read_function(A_C, "for bx in T.thread_binding(4, thread=\"blockIdx.x\"):", "    C[bx] = A[bx]",
                            "    C[bx + 8] = C[0]"),
              MS_RUN_RACE, "reads what another writes");
}

/* Kernels are one after another. */
static void kernels_have_an_order(void **state) {
  (void)state;
  expect_ok(read_function(A_C, "for bx in T.thread_binding(4, thread=\"blockIdx.x\"):", "    C[bx] = A[bx + 1]",
                          "for bx in T.thread_binding(4, thread=\"blockIdx.x\"):", "    C[bx + 8] = C[0]"));
  assert_true(c[11] == 1);
}

static void a_barrier_is_for_all_threads(void **state) {
  (void)state;
  expect_code(read_function(A_C, THREADS, "        if tx < 8:", "            T.tvm_storage_sync(\"shared\")"),
              MS_RUN_BARRIER, "has ended");
  expect_code(read_function(A_C, THREADS, "        if tx < 8:", "            T.tvm_storage_sync(\"shared\")",
                            "        else:", "            T.tvm_storage_sync(\"shared\")"),
              MS_RUN_BARRIER, "waits elsewhere");
  expect_code(read_function(A_C, "T.tvm_storage_sync(\"shared\")"), MS_RUN_NEEDS_THREADS, "barrier");
  ms_error err = {0};
  assert_false(run(read_function(A_C, THREADS, BARRIER), false, &err));
  assert_int_equal(err.code, MS_RUN_NEEDS_THREADS);
}

/* Memory of a thread is its own. */
static void local_memory_is_a_threads_own(void **state) {
  (void)state;
  expect_ok(read_function(A_C, THREADS, "        L = T.alloc_buffer((2,), scope=\"local\")",
                          "        L[0] = A[bx * 16 + tx]", BARRIER, "        C[bx * 16 + tx] = L[0]"));
  for (int i = 0; i < 64; i++) assert_true(c[i] == a[i]);
}

/* Loops bound to one tag are one thread; tags in any order; virtual threads take turns. */
static void tags_are_threads(void **state) {
  (void)state;
  expect_ok(read_function(A_C, "for ty in T.thread_binding(4, thread=\"threadIdx.y\"):",
                          "    for vx in T.thread_binding(2, thread=\"vthread.x\"):",
                          "        for tx in T.thread_binding(8, thread=\"threadIdx.x\"):",
                          "            C[ty * 16 + vx * 8 + tx] = A[ty * 16 + vx * 8 + tx]",
                          "    for tx in T.thread_binding(8, thread=\"threadIdx.x\"):",
                          "        C[ty * 16 + tx] = C[ty * 16 + tx] + T.float32(1)"));
  for (int i = 0; i < 64; i++) assert_true(c[i] == a[i] + (i % 16 < 8));
  expect_code(read_function(A_C, "for tx in T.thread_binding(4, thread=\"threadIdx.x\"):", "    C[tx] = A[tx]",
                            "    for ux in T.thread_binding(8, thread=\"threadIdx.x\"):", "        C[ux] = A[ux]"),
              MS_RUN_NEEDS_THREADS, "have extents 8 and 4");
}

/* Before lowering, loops bound to one thread inside each other are loops. */
static void before_lowering_threads_are_loops(void **state) {
  (void)state;
  ms_error err = {0};
  assert_true(
      run(read_function(A_C, "for tx in T.thread_binding(4, thread=\"threadIdx.x\"):",
                        "    for ux in T.thread_binding(4, thread=\"threadIdx.x\"):", "        C[tx * 4 + ux] = A[tx]"),
          false, &err));
  for (int i = 0; i < 16; i++) assert_true(c[i] == a[i / 4]);
}

static void names_the_thread_that_fails(void **state) {
  (void)state;
  expect_code(read_function(A_C, THREADS, "        C[bx * 16 + tx + 1] = A[0]"), MS_RUN_OUT_OF_BOUNDS,
              "C[64] is out of bounds: the shape is (64) (block 3, 0, 0, thread 15, 0, 0)");
}

/* ---- Parallel loops ---- */

static void parallel_iterations_have_no_order(void **state) {
  (void)state;
  expect_code(read_function(A_C, "for i in T.parallel(8):", "    C[0] = A[i]"), MS_RUN_RACE,
              "iteration of the parallel loop at 1 writes what another writes");
  expect_code(read_function(A_C, "C[0] = T.float32(0)", "for i in T.parallel(8):", "    C[i + 1] = C[i]"), MS_RUN_RACE,
              "at 1 reads what another writes");
  expect_code(
      read_function(A_C, "S = T.alloc_buffer((1,))", "for i in T.parallel(8):", "    S[0] = A[i]", "    C[i] = S[0]"),
      MS_RUN_RACE, "the memory of S");
}

static void parallel_iterations_may_have_their_own(void **state) {
  (void)state;
  expect_ok(read_function(A_C, "for j in range(2):", "    for i in T.parallel(8):", "        S = T.alloc_buffer((1,))",
                          "        S[0] = A[j * 8 + i]", "        for k in T.parallel(4):",
                          "            C[k] = T.float32(2)", "        C[8 + j * 8 + i] = S[0] + C[0]"));
  for (int i = 0; i < 16; i++) assert_true(c[8 + i] == a[i] + 2);
  ms_error err = {0};
  assert_true(run(read_function(A_C, "for i in T.parallel(8):", "    C[0] = A[i]"), false, &err));
}

/* ---- Cross-thread reduction ---- */

/* Puts `attribute reduce_scope` of a sum around the statement that makes the call. */
static struct tir *add_reducer(struct tir *ir) {
  tir_stmt s = ir->funcs.at[1].body;
  while (!tir_is(ir, s, TIR_EVALUATE)) s = tir_next(ir, s, TIR_NONE);
  tir_var x = tir_new_var(ir, TIR_VAR_PLAIN, tir_name_of(ir, "x"), TIR_T_F32, TIR_NONE, TIR_NONE);
  tir_var y = tir_new_var(ir, TIR_VAR_PLAIN, tir_name_of(ir, "y"), TIR_T_F32, TIR_NONE, TIR_NONE);
  tir_expr left = tir_var_expr(ir, x), right = tir_var_expr(ir, y);
  tir_expr parts[4] = {left, right, tir_binary(ir, TIR_ADD, left, right), tir_float(ir, TIR_T_F32, 0)};
  tir_expr reducer = tir_call(ir, TIR_T_HANDLE, tir_symbol_of(ir, "comm_reducer"), parts, 4);
  tir_expr none = tir_int(ir, TIR_T_I32, 0);
  tir_stmt attr = tir_new_stmt(ir, TIR_ATTR);
  tir_stmt_at(ir, attr)->attr.node = reducer;
  tir_stmt_at(ir, attr)->attr.value = none;
  tir_stmt_at(ir, attr)->attr.key = tir_symbol_of(ir, "reduce_scope");
  tir_wrap(ir, s, attr);
  return ir;
}

static void reduces_across_threads(void **state) {
  (void)state;
  expect_ok(add_reducer(read_function(A_C, "for ty in T.thread_binding(4, thread=\"threadIdx.y\"):",
                                      "    for tx in T.thread_binding(16, thread=\"threadIdx.x\"):",
                                      "        L = T.alloc_buffer((1,), scope=\"local\")",
                                      "        T.tvm_thread_allreduce(T.uint32(1), A[ty * 16 + tx], tx < 15, L[0], tx)",
                                      "        C[ty * 16 + tx] = L[0]")));
  for (int i = 0; i < 64; i++) {
    float sum = 0;
    for (int k = 0; k < 15; k++) sum += a[i / 16 * 16 + k];
    assert_true(c[i] == sum);
  }
}

static void a_reduction_needs_its_function(void **state) {
  (void)state;
  expect_code(read_function(A_C, "for tx in T.thread_binding(16, thread=\"threadIdx.x\"):",
                            "    L = T.alloc_buffer((1,), scope=\"local\")",
                            "    T.tvm_thread_allreduce(T.uint32(1), A[tx], True, L[0], tx)"),
              MS_RUN_UNSUPPORTED, "no comm_reducer");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, fill)
  const struct CMUnitTest tests[] = {
      TEST(threads_share_memory),
      TEST(a_missing_barrier_is_a_race),
      TEST(writing_one_value_is_no_race),
      TEST(blocks_have_no_order),
      TEST(kernels_have_an_order),
      TEST(a_barrier_is_for_all_threads),
      TEST(local_memory_is_a_threads_own),
      TEST(tags_are_threads),
      TEST(before_lowering_threads_are_loops),
      TEST(names_the_thread_that_fails),
      TEST(parallel_iterations_have_no_order),
      TEST(parallel_iterations_may_have_their_own),
      TEST(reduces_across_threads),
      TEST(a_reduction_needs_its_function),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
