/* Mistakes that other compilers for GPUs made, by the pass that made them, on extents that do not divide. What
 * lower_kernels.c has of them is not here again: barriers and several threads of one element, copies that are filled,
 * threads that load in part; reductions along threadIdx.y, of 8 and 16 bits, and lanes beyond the extent; memory of one
 * time; vectors at odd elements. */
#define _GNU_SOURCE
#include "unit/kernels.h"

#define A_C_60 "A: T.Buffer((60,), \"float32\"), C: T.Buffer((60,), \"float32\")"

/* ---- Barriers (TVM: thread sync) ---- */

/* Equal text of an index with the innermost thread in it was taken for one thread's element. */
static void a_thread_in_an_index_is_no_proof(void **state) {
  (void)state;
  expect_lowered(read_function(A_C_60, BX(3), S(20), TX(20), "        S[tx] = A[bx * 20 + tx]", TX(20),
                               "        C[bx * 20 + tx] = S[tx // 3] + S[tx % 7]"),
                 1, NULL);
}

/* Writes after writes were never compared. */
static void a_write_after_a_write_is_kept_apart(void **state) {
  (void)state;
  expect_lowered(read_function(A_C_60, BX(3), S(20), TX(20), "        S[tx] = A[bx * 20 + tx]", TX(13),
                               "        S[19 - tx] = T.float32(7)", TX(20), "        C[bx * 20 + tx] = S[tx]"),
                 2, NULL);
}

/* A barrier within a condition was an assertion's failure, or was erased with it. */
static void a_condition_of_threads_keeps_its_barrier(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")", BX(1), S(40),
                               "    for ty in T.thread_binding(3, thread=\"threadIdx.y\"):", "        if ty < 2:",
                               "            for tx in T.thread_binding(20, thread=\"threadIdx.x\"):",
                               "                S[ty * 20 + tx] = A[ty * 20 + tx]",
                               "            for tx in T.thread_binding(13, thread=\"threadIdx.x\"):",
                               "                C[ty * 20 + tx] = S[ty * 20 + 19 - tx]"),
                 1, "if ty < 2:");
}

/* Two threads' axes: rows of 5, of which others' elements are read. */
static void two_axes_of_threads_are_told_apart(void **state) {
  (void)state;
  expect_lowered(read_function(A_C_60, BX(4), S(15), "    for ty in T.thread_binding(3, thread=\"threadIdx.y\"):",
                               "    " TX(5), "            S[ty * 5 + tx] = A[bx * 15 + ty * 5 + tx]",
                               "    for ty in T.thread_binding(3, thread=\"threadIdx.y\"):", "    " TX(5),
                               "            C[bx * 15 + ty * 5 + tx] = S[tx * 3 + ty]"),
                 1, NULL);
}

/* Threads of some blocks meet within a condition or a loop, those of others do not come there: that separates nothing
 * behind it. */
static void what_not_all_blocks_do_separates_nothing(void **state) {
  (void)state;
#define AROUND(line)                                                                                                   \
  read_function("A: T.Buffer((100,), \"float32\"), C: T.Buffer((60,), \"float32\"), D: T.Buffer((60,), \"float32\")",  \
                BX(3), S(20), "    U = T.alloc_buffer((20,), scope=\"shared\")", TX(20),                               \
                "        S[tx] = A[bx * 20 + tx]", line, "    " TX(20), "            U[tx] = A[tx + 7]",               \
                "    " TX(20), "            D[bx * 20 + tx] = U[19 - tx]", TX(20),                                     \
                "        C[bx * 20 + tx] = S[19 - tx]")
  expect_lowered(AROUND("    if bx < 2:"), 2, NULL);
  expect_lowered(AROUND("    for k in range(bx):"), 3, NULL);
}

/* A call that nothing is known of was taken to touch nothing. */
static void unknown_calls_read_and_write(void **state) {
  (void)state;
  struct tir *ir =
      read_function(A_C_60, BX(3), S(20), TX(20), "        S[tx] = A[bx * 20 + tx]", TX(20),
                    "        T.call_extern(\"int32\", \"touch\", S.data)", TX(20), "        C[bx * 20 + tx] = S[tx]");
  struct tir *lowered = lowered_copy(ir);
  assert_true(nth_barrier(lowered, 1) && !nth_barrier(lowered, 2));
  tir_free(lowered);
  tir_free(ir);
}

/* A condition that is taken apart does not guard what is loaded for all that follows. */
static void a_loaded_value_keeps_its_guard(void **state) {
  (void)state;
  expect_refused(read_function("A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")", BX(1), S(40),
                               "    for ty in T.thread_binding(3, thread=\"threadIdx.y\"):", "        if ty < 2:",
                               "            for tx in T.thread_binding(20, thread=\"threadIdx.x\"):",
                               "                S[ty * 20 + tx] = A[ty * 20 + tx]",
                               "            x: T.let[T.float32] = A[ty]",
                               "            for tx in T.thread_binding(13, thread=\"threadIdx.x\"):",
                               "                C[ty * 20 + tx] = S[ty * 20 + 19 - tx] + x"),
                 MS_LOWER_BARRIER, "a value is loaded that some of them do not have");
}

/* ---- Reductions across threads ---- */

/* The memory in which warps leave what they have was used again before all had read it. */
static void a_reduction_in_a_loop_waits_for_the_one_before(void **state) {
  (void)state;
  expect_lowered(
      read_function("A: T.Buffer((14, 70), \"float32\"), C: T.Buffer((14,), \"float32\")",
                    "for i in T.thread_binding(2, thread=\"blockIdx.x\"):", "    for j in range(7):",
                    "        for k in T.thread_binding(70, thread=\"threadIdx.x\"):",
                    "            with T.sblock(\"C\"):", "                vi = T.axis.spatial(14, i * 7 + j)",
                    "                vk = T.axis.reduce(70, k)", "                with T.init():",
                    "                    C[vi] = T.float32(0)", "                C[vi] = C[vi] + A[vi, vk]"),
      2, "tvm_warp_shuffle_xor");
}

/* Masks that were computed named lanes that did not come: ours name all, always. */
static void shuffles_are_of_all_lanes(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((5, 7, 3), \"float32\"), C: T.Buffer((5,), \"float32\")",
                               "for i in T.thread_binding(5, thread=\"blockIdx.x\"):",
                               "    for k in T.thread_binding(7, thread=\"threadIdx.x\"):",
                               "        for r in range(3):", "            with T.sblock(\"C\"):",
                               "                vi, vk, vr = T.axis.remap(\"SRR\", [i, k, r])",
                               "                with T.init():", "                    C[vi] = T.float32(0)",
                               "                C[vi] = C[vi] + A[vi, vk, vr]"),
                 0, "T.uint32(4294967295)");
}

#define SUMMED(a, c, rows, threads, type, zero, i)                                                                     \
  read_function("A: T.Buffer(" a ", \"" type "\"), C: T.Buffer((" c ",), \"" type "\")", rows, threads,                \
                "            with T.sblock(\"C\"):", "                vi = T.axis.spatial(" c ", " i ")",              \
                "                vk = T.axis.reduce(A.shape[1], k)",                                                   \
                "                with T.init():", "                    C[vi] = " zero,                                 \
                "                C[vi] = C[vi] + A[vi, vk]")

/* Rows of several warps side by side: each has its own part of the memory where warps leave what they have. */
static void rows_of_warps_do_not_mix(void **state) {
  (void)state;
  expect_lowered(SUMMED("(14, 70)", "14", BX(7),
                        "    for j in T.thread_binding(2, thread=\"threadIdx.y\"):\n"
                        "            for k in T.thread_binding(70, thread=\"threadIdx.x\"):",
                        "float32", "T.float32(0)", "bx * 2 + j"),
                 1, "tvm_warp_shuffle_xor");
}

/* Values of 8 bits are no registers to shuffle. */
static void bytes_are_shuffled_as_words(void **state) {
  (void)state;
  expect_lowered(SUMMED("(14, 20)", "14", BX(7),
                        "    for j in T.thread_binding(2, thread=\"threadIdx.y\"):\n"
                        "            for k in T.thread_binding(20, thread=\"threadIdx.x\"):",
                        "int8", "T.int8(0)", "bx * 2 + j"),
                 0, "T.tvm_warp_shuffle_xor(T.uint32(4294967295), T.Cast(\"int32\", ");
}

/* Seven rows of a warp, and 17 of 60 threads, which no block has room to fill up: numbers that halves leave a rest
 * of. */
static void halves_of_odd_numbers_leave_a_rest(void **state) {
  (void)state;
  expect_lowered(SUMMED("(32, 7)", "32", BX(1),
                        "    for j in T.thread_binding(32, thread=\"threadIdx.x\"):\n"
                        "            for k in T.thread_binding(7, thread=\"threadIdx.y\"):",
                        "float32", "T.float32(0)", "bx * 32 + j"),
                 4, "C_part_threads");
  expect_lowered(SUMMED("(17, 60)", "17", BX(1),
                        "    for j in T.thread_binding(17, thread=\"threadIdx.y\"):\n"
                        "            for k in T.thread_binding(60, thread=\"threadIdx.x\"):",
                        "float32", "T.float32(0)", "bx * 17 + j"),
                 7, "T.thread_binding(60, thread=\"threadIdx.x\")");
}

/* Where not all threads come none can reduce with the others. */
static void who_does_not_come_reduces_nothing(void **state) {
  (void)state;
  expect_refused(read_function("A: T.Buffer((4, 4, 20), \"float32\"), C: T.Buffer((4, 4), \"float32\")",
                               "for i in T.thread_binding(4, thread=\"threadIdx.y\"):", "    for j in range(i):",
                               "        for k in T.thread_binding(20, thread=\"threadIdx.x\"):",
                               "            with T.sblock(\"C\"):",
                               "                vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                               "                with T.init():", "                    C[vi, vj] = T.float32(0)",
                               "                C[vi, vj] = C[vi, vj] + A[vi, vj, vk]"),
                 MS_LOWER_REDUCTION, "where not all of them come");
}

/* ---- Shared memory ---- */

/* What a loop touches was looked for in one iteration only: a buffer that is read in the next one was laid over. */
static void what_the_next_iteration_reads_is_not_laid_over(void **state) {
  (void)state;
  expect_lowered(read_function(A_C_60, BX(3), S(20), "    U = T.alloc_buffer((13,), scope=\"shared\")", TX(20),
                               "        S[tx] = A[bx * 20 + tx]", "    for k in range(20):", "    " TX(13),
                               "            U[tx] = S[19 - tx]", "    " TX(13),
                               "            S[tx] = U[12 - tx] + T.float32(1)", TX(20),
                               "        C[bx * 20 + tx] = S[tx]"),
                 2, "shared[96]");
}

/* What was written before a loop and is read in each of its iterations lives to the loop's end, beside what that has
 * alone. */
static void what_each_iteration_reads_is_not_laid_over(void **state) {
  (void)state;
  expect_lowered(read_function(A_C_60, BX(3), S(20), TX(20), "        S[tx] = A[bx * 20 + tx]",
                               "    for k in range(20):", "        U = T.alloc_buffer((13,), scope=\"shared\")",
                               "    " TX(13), "            U[tx] = S[19 - tx] + A[k]", "    " TX(13),
                               "            C[bx * 20 + tx] = C[bx * 20 + tx] + U[12 - tx]"),
                 2, "shared[96]");
}

/* A buffer behind one of an odd size begins where its vectors do. */
static void a_buffer_behind_an_odd_one_is_aligned(void **state) {
  (void)state;
  expect_lowered(
      read_function("A: T.Buffer((96,), \"float32\"), C: T.Buffer((60,), \"float32\")", BX(3), S(27),
                    "    U = T.alloc_buffer((20,), scope=\"shared\")", TX(27), "        S[tx] = A[tx]", TX(5),
                    "        for v in T.vectorized(4):", "            U[tx * 4 + v] = A[bx * 32 + tx * 4 + v]", TX(20),
                    "        C[bx * 20 + tx] = U[19 - tx] + S[tx % 7]"),
      1, "shared[128]");
}

/* ---- Loops that overwrite what they read (software pipelines) ---- */

/* With one place for all iterations, the next one's copy would come before this one's is read; the loop's own has
 * two. */
static void what_an_iteration_overwrites_was_read(void **state) {
  (void)state;
#define PIPELINE(before, within)                                                                                       \
  read_function("A: T.Buffer((20, 60), \"float32\"), C: T.Buffer((60,), \"float32\")", BX(3), before,                  \
                "    L = T.alloc_buffer((20,), scope=\"local\")", TX(20), "        L[tx] = T.float32(0)",              \
                "    for k in T.serial(20, annotations={\"software_pipeline_stage\": [0, 1], "                         \
                "\"software_pipeline_order\": [0, 1]}):",                                                              \
                within, "    " TX(20), "            S[tx] = A[k, bx * 20 + tx]", "    " TX(13),                        \
                "            L[tx] = L[tx] + S[19 - tx]", TX(20), "        C[bx * 20 + tx] = L[tx]")
  expect_lowered(PIPELINE("    # S", "    " S(20)), 2, "T.truncmod(k, 2)");
  expect_refused(PIPELINE(S(20), "        # S"), MS_LOWER_PIPELINE,
                 "statement 0 touches S, which is not the loop's own");
}

#undef PIPELINE
#define PIPELINE(n, k, places, loop)                                                                                   \
  "    for " k " in T.serial(" #n ", annotations={\"software_pipeline_stage\": " places                                \
  ", \"software_pipeline_order\": [0, 1], \"software_pipeline_async_stages\": [0]}):",                                 \
      loop

/* Loops beside each other had one depth; what is laid over their buffers was written before the last copies were read,
 * and copies were not seen as what they touch: the second loop's buffers and W lie where the first loop's do. */
static void loops_of_other_depths_follow_one_another(void **state) {
  (void)state;
  expect_lowered(
      read_function("A: T.Buffer((13, 60), \"float32\"), C: T.Buffer((60,), \"float32\")", BX(3),
                    "    L = T.alloc_buffer((20,), scope=\"local\")", "    W = T.alloc_buffer((20,), scope=\"shared\")",
                    TX(20), "        L[tx] = T.float32(0)",
                    PIPELINE(13, "k", "[0, 3]", "        S = T.alloc_buffer((20,), scope=\"shared\")"), "    " TX(20),
                    "            S[tx] = A[k, bx * 20 + tx]", "    " TX(20), "            L[tx] = L[tx] + S[19 - tx]",
                    PIPELINE(7, "j", "[0, 1]", "        U = T.alloc_buffer((20,), scope=\"shared\")"), "    " TX(20),
                    "            U[tx] = A[12 - j, bx * 20 + tx]", "    " TX(13),
                    "            L[tx] = L[tx] * T.float32(2) + U[12 - tx]", TX(20), "        W[19 - tx] = L[tx]",
                    TX(20), "        C[bx * 20 + tx] = W[tx]"),
      9, "U = T.decl_buffer((40,), data=T.address_of(shared[0])");
}

/* ---- Vectors ---- */

#define HALVES "A: T.Buffer((62,), \"float16\"), C: T.Buffer((60,), \"float16\")"

/* A pair of 16-bit floats was loaded from an odd element. */
static void pairs_begin_at_even_elements(void **state) {
  (void)state;
  expect_lowered(read_function(HALVES, BX(3), TX(10), "        for v in T.vectorized(2):",
                               "            C[bx * 20 + tx * 2 + v] = A[bx * 20 + tx * 2 + v + 1]"),
                 0, "C[bx * 20 + tx * 2] = A[");
  expect_lowered(read_function(HALVES, BX(3), TX(10), "        for v in T.vectorized(2):",
                               "            C[bx * 20 + tx * 2 + v] = A[bx * 20 + tx * 2 + v + 2]"),
                 0, "C[bx * 20 + tx * 2:bx * 20 + tx * 2 + 2] = A[");
}

/* A choice between what there is and nothing is each lane's own. */
static void choices_of_lanes_are_no_vector(void **state) {
  (void)state;
  expect_lowered(
      read_function("A: T.Buffer((58,), \"float32\"), C: T.Buffer((60,), \"float32\")", BX(3), TX(5),
                    "        for v in T.vectorized(4):",
                    "            C[bx * 20 + tx * 4 + v] = T.if_then_else(bx * 20 + tx * 4 + v < 58, A[bx * 20 "
                    "+ tx * 4 + v], T.float32(3))"),
      0, "C[bx * 20 + tx * 4 + 3] = ");
}

/* ---- Virtual threads ---- */

#define SEVERAL "A: T.Buffer((60,), \"float32\"), C: T.Buffer((15,), \"float32\"), D: T.Buffer((60,), \"float32\")"
#define VIRTUAL(first, then)                                                                                           \
  read_function(SEVERAL, BX(3), "    for v in T.thread_binding(4, thread=\"vthread.x\"):", "    " TX(5), first,        \
                "    " TX(5), then)

/* Statement by statement, the last one's would be what all find; or the first one's, what all had before. */
static void virtual_threads_do_not_share_what_they_pass_on(void **state) {
  (void)state;
  expect_lowered(VIRTUAL("            C[bx * 5 + tx] = A[bx * 20 + v * 5 + tx]",
                         "            D[bx * 20 + v * 5 + tx] = C[bx * 5 + tx] + T.float32(1)"),
                 0, "C[bx * 5 + tx] = A[bx * 20 + tx + 15]");
  expect_lowered(VIRTUAL("            D[bx * 20 + v * 5 + tx] = C[bx * 5 + tx] + T.float32(1)",
                         "            C[bx * 5 + tx] = A[bx * 20 + tx]"),
                 0, "D[bx * 20 + tx + 15] = C[bx * 5 + tx]");
}

/* One reached the source as a variable that nothing declares. */
static void a_virtual_thread_of_a_tail_is_written_out(void **state) {
  (void)state;
  expect_lowered(
      read_function(A_C_60, BX(3), "    for v in T.thread_binding(3, thread=\"vthread.x\"):",
                    "        for tx in T.thread_binding(7, thread=\"threadIdx.x\"):", "            if v * 7 + tx < 20:",
                    "                C[bx * 20 + v * 7 + tx] = A[bx * 20 + 19 - v * 7 - tx]"),
      0, "if tx < 6:");
}

/* ---- Types of less than a byte ---- */

/* Their bytes were rounded down, to an array of none. */
static void elements_of_half_bytes_are_refused(void **state) {
  (void)state;
  struct tir *ir = read_function("A: T.Buffer((60,), \"int4\"), C: T.Buffer((60,), \"int4\")", BX(3),
                                 "    S = T.alloc_buffer((1,), \"int4\", scope=\"shared\")", TX(1),
                                 "        S[0] = A[bx]", TX(1), "        C[bx] = S[0]");
  struct tir *lowered = lowered_copy(ir);
  ms_error err = {0};
  char *source = oracle_source(lowered, tir_find_func(lowered, "main"), "kernels", &err);
  assert_null(source);
  assert_string_equal(ms_code_name(err.code), ms_code_name(MS_NOT_COMPILABLE));
  tir_free(lowered);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_in_an_index_is_no_proof),
      cmocka_unit_test(a_write_after_a_write_is_kept_apart),
      cmocka_unit_test(a_condition_of_threads_keeps_its_barrier),
      cmocka_unit_test(two_axes_of_threads_are_told_apart),
      cmocka_unit_test(what_not_all_blocks_do_separates_nothing),
      cmocka_unit_test(unknown_calls_read_and_write),
      cmocka_unit_test(a_loaded_value_keeps_its_guard),
      cmocka_unit_test(a_reduction_in_a_loop_waits_for_the_one_before),
      cmocka_unit_test(shuffles_are_of_all_lanes),
      cmocka_unit_test(rows_of_warps_do_not_mix),
      cmocka_unit_test(bytes_are_shuffled_as_words),
      cmocka_unit_test(halves_of_odd_numbers_leave_a_rest),
      cmocka_unit_test(who_does_not_come_reduces_nothing),
      cmocka_unit_test(what_the_next_iteration_reads_is_not_laid_over),
      cmocka_unit_test(what_each_iteration_reads_is_not_laid_over),
      cmocka_unit_test(a_buffer_behind_an_odd_one_is_aligned),
      cmocka_unit_test(what_an_iteration_overwrites_was_read),
      cmocka_unit_test(loops_of_other_depths_follow_one_another),
      cmocka_unit_test(pairs_begin_at_even_elements),
      cmocka_unit_test(choices_of_lanes_are_no_vector),
      cmocka_unit_test(virtual_threads_do_not_share_what_they_pass_on),
      cmocka_unit_test(a_virtual_thread_of_a_tail_is_written_out),
      cmocka_unit_test(elements_of_half_bytes_are_refused),
      cmocka_unit_test(sources_compute_the_same_on_the_cpu),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
