/* Lowering for GPUs: threads of unlike nests in one kernel, reductions across threads, shared memory, barriers. What is
 * lowered is run with threads that are real, and computes what the function does with loops in their order; so does its
 * source, compiled for the CPU. */
#define _GNU_SOURCE
#include "unit/kernels.h"

/* ---- Kernels ---- */

static void nests_of_unlike_threads_are_one_kernel(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(32), TX(32), "        S[tx] = A[bx * 32 + tx]", TX(20),
                               "        C[bx * 32 + tx] = S[31 - tx]", TX(7),
                               "        C[bx * 32 + tx + 20] = S[tx] + T.float32(1)"),
                 1, "if tx < 20:");
}

/* What stands outside of the loop of threads is done by one of them. */
static void what_no_thread_is_bound_to_one_does(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(1), "    S[0] = A[bx] + T.float32(3)", TX(32),
                               "        C[bx * 32 + tx] = S[0]", "    C[bx * 32] = C[bx * 32] + C[bx * 32 + 9]"),
                 2, "if tx == 0:");
}

static void kernels_follow_one_another(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, "G = T.alloc_buffer((64,))", "for b in T.thread_binding(4, thread=\"blockIdx.x\"):",
                               "    for t in T.thread_binding(16, thread=\"threadIdx.x\"):",
                               "        G[b * 16 + t] = A[b * 16 + t] + T.float32(1)",
                               "for i in range(64):", "    G[i] = G[i] * T.float32(2)", BX(2), TX(32),
                               "        C[bx * 32 + tx] = G[63 - bx * 32 - tx]"),
                 0, "annotations={\"one_thread\": 1}");
}

static void virtual_threads_are_written_out(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), "    for v in T.thread_binding(4, thread=\"vthread.x\"):",
                               "        for tx in T.thread_binding(8, thread=\"threadIdx.x\"):",
                               "            C[bx * 32 + v * 8 + tx] = A[bx * 32 + v * 8 + tx]"),
                 0, "C[bx * 32 + tx + 24] = A[bx * 32 + tx + 24]");
}

/* What all need is loaded once, what each sums up stays in memory of its own. */
static void virtual_threads_share_what_is_the_same(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((64, 20), \"float32\"), C: T.Buffer((64,), \"float32\")", BX(2),
                               "    for v in T.thread_binding(4, thread=\"vthread.x\"):",
                               "        L = T.alloc_buffer((8,), scope=\"local\")",
                               "        S = T.alloc_buffer((8,), scope=\"shared\")", "    " TX(8),
                               "            L[tx] = T.float32(0)", "        for k in range(20):", "        " TX(8),
                               "                S[tx] = A[tx, k]", "        " TX(8),
                               "                L[tx] = L[tx] + S[7 - tx] * A[bx * 32 + v * 8 + tx, k]", "    " TX(8),
                               "            C[bx * 32 + v * 8 + tx] = L[tx]"),
                 2, "L[3] = L[3] + S[7 - tx]");
}

/* What loops of threads are annotated with holds for those in them. */
static void annotations_of_threads_are_handed_down(void **state) {
  (void)state;
  expect_lowered(read_function(A_C,
                               "for bx in T.thread_binding(1, thread=\"blockIdx.x\", "
                               "annotations={\"pragma_auto_unroll_max_step\": 128, \"pragma_unroll_explicit\": 1}):",
                               "    for k in range(64):", "        C[bx * 64 + k] = A[bx * 64 + 63 - k]"),
                 0, "C[bx * 64 + 63] = A[bx * 64]");
}

static void what_is_no_kernel_is_refused(void **state) {
  (void)state;
  expect_refused(read_function(A_C, "for k in range(4):", "    for bx in T.thread_binding(4, thread=\"blockIdx.x\"):",
                               "        C[bx] = C[bx] + A[k * 4 + bx]"),
                 MS_LOWER_KERNEL, "a loop of blocks stands in what is no loop");
  expect_refused(
      read_function(A_C, "for tx in T.thread_binding(8, thread=\"threadIdx.x\"):",
                    "    for bx in T.thread_binding(4, thread=\"blockIdx.x\"):",
                    "        for by in T.thread_binding(4, thread=\"blockIdx.x\"):", "            C[bx] = A[by]"),
      MS_LOWER_KERNEL, "bound to one axis");
  expect_refused(read_function(A_C, "for tx in T.thread_binding(4, thread=\"threadIdx.x\"):",
                               "    for ux in T.thread_binding(8, thread=\"threadIdx.x\"):", "        C[ux] = A[tx]"),
                 MS_LOWER_KERNEL, "more threads than the loop around it");
  expect_refused(
      read_function(
          "A: T.Buffer((2048,), \"float32\")", "for ty in T.thread_binding(2, thread=\"threadIdx.y\"):",
          "    for tx in T.thread_binding(1024, thread=\"threadIdx.x\"):", "        A[ty * 1024 + tx] = T.float32(0)"),
      MS_LOWER_KERNEL, "more threads than the target allows");
  expect_refused(read_function("a: T.handle", "n = T.int32()", "A = T.match_buffer(a, (n,), \"float32\")",
                               "for tx in T.thread_binding(n, thread=\"threadIdx.x\"):", "    A[tx] = T.float32(0)"),
                 MS_LOWER_KERNEL, "no constant");
  expect_refused(read_function(A_C, "L = T.alloc_buffer((64,), scope=\"local\")",
                               "for tx in T.thread_binding(64, thread=\"threadIdx.x\"):", "    L[tx] = A[tx]",
                               "for tx in T.thread_binding(64, thread=\"threadIdx.x\"):", "    C[tx] = L[tx]"),
                 MS_LOWER_KERNEL, "is allocated outside of a kernel");
  /* Of memory of the device, blocks have no copies: one element would be all blocks'. */
  expect_refused(read_function(A_C, "for i in T.thread_binding(64, thread=\"blockIdx.x\"):",
                               "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(64, i)",
                               "        G = T.sblock_alloc_buffer((1,))", "        with T.sblock(\"G\"):",
                               "            G[0] = A[vi]", "        with T.sblock(\"D\"):", "            C[vi] = G[0]"),
                 MS_LOWER_KERNEL, "blocks write the same elements");
}

/* Text may bind loops that the Bind instruction refuses. */
static void extents_beyond_an_axis_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *axis;
    unsigned extent, limit;
  } beyond[] = {{"blockIdx.y", 65536, 65535},
                {"blockIdx.z", 65536, 65535},
                {"threadIdx.x", 1025, 1024},
                {"threadIdx.y", 1025, 1024},
                {"threadIdx.z", 65, 64}};
  for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
    char params[60], loop[80], message[80];
    snprintf(params, sizeof params, "A: T.Buffer((%u,), \"float32\")", beyond[i].extent);
    snprintf(loop, sizeof loop, "for t in T.thread_binding(%u, thread=\"%s\"):", beyond[i].extent, beyond[i].axis);
    snprintf(message, sizeof message, "the loop has %u iterations, and %s at most %u", beyond[i].extent, beyond[i].axis,
             beyond[i].limit);
    expect_refused(read_function(params, loop, "    A[t] = T.float32(0)"), MS_AXIS_LIMIT, message);
  }
}

/* A launch of no blocks is an error of the driver's: it is left out where the extent is 0 when the function is
 * called. */
static void no_blocks_are_not_launched(void **state) {
  (void)state;
  struct tir *ir = read_function("a: T.handle, n: T.int32", "A = T.match_buffer(a, (n,), \"float32\")",
                                 "for bx in T.thread_binding(n, thread=\"blockIdx.x\"):", "    A[bx] = T.float32(0)");
  ms_error err = {0};
  assert_accepted(lower(ir, err));
  char *text = oracle_source(ir, tir_find_func(ir, "main"), "kernels", &err);
  assert_non_null(text);
  assert_non_null(strstr(text, "if (n > 0) cudaLaunchKernel("));
  free(text);
  tir_free(ir);
}

/* Floats that have no literal, in float32 and float64. */
static void infinite_constants_are_computed_with(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float64\")", BX(2), TX(32),
                               "        C[bx * 32 + tx] = T.if_then_else(A[bx * 32 + tx] < T.float32(0), "
                               "T.float64(\"-inf\"), T.float64(\"inf\"))"),
                 0, "inf");
  expect_lowered(read_function(A_C, BX(2), TX(32),
                               "        C[bx * 32 + tx] = T.if_then_else(A[bx * 32 + tx] < T.float32(0), "
                               "T.if_then_else(T.float32(\"nan\") < A[bx * 32 + tx], T.float32(1), "
                               "T.float32(\"-inf\")), T.float32(\"inf\"))"),
                 0, "inf");
  expect_lowered(read_function("A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float16\")", BX(2), TX(32),
                               "        C[bx * 32 + tx] = T.if_then_else(A[bx * 32 + tx] < T.float32(0), "
                               "T.float16(\"-inf\"), T.float16(\"inf\"))"),
                 0, "inf");
}

/* ---- What is shared out among threads ---- */

/* 48 threads load 16 x 20 elements, in 7 rounds of which the last is not whole: no rows past the 16th. */
static void what_threads_share_out_is_no_more_than_there_is(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((64, 20), \"float32\"), C: T.Buffer((64, 20), \"float32\")", BX(4),
                               "    S = T.alloc_buffer((64, 20), scope=\"shared\")",
                               "    for f in range(7):", "    " TX(48), "            if f * 48 + tx < 320:",
                               "                S[bx * 16 + (f * 48 + tx) // 20, (f * 48 + tx) % 20] = "
                               "A[bx * 16 + (f * 48 + tx) // 20, (f * 48 + tx) % 20]",
                               "    for j in range(20):", "    " TX(16),
                               "            C[bx * 16 + tx, 19 - j] = S[bx * 16 + tx, j]"),
                 1, "S = T.decl_buffer((320,)");
}

/* What is touched by pointers lives as long as calls have them: the tile of results lies where the inputs did. */
static void what_calls_touch_lives_while_they_do(void **state) {
  (void)state;
#define POINTER(type, buffer, mask)                                                                                    \
  "T.tvm_access_ptr(T.type_annotation(\"" type "\"), " buffer ".data, 0, 256, " mask ")"
#define FRAGMENT(name, type, scope) "    " name " = T.alloc_buffer((256,), \"" type "\", scope=\"wmma." scope "\")"
  expect_lowered(
      read_function(
          "A: T.Buffer((256,), \"float16\"), C: T.Buffer((256,), \"float32\")", BX(1),
          "    S = T.alloc_buffer((256,), \"float16\", scope=\"shared\")",
          "    U = T.alloc_buffer((256,), scope=\"shared\")", FRAGMENT("F", "float16", "matrix_a"),
          FRAGMENT("G", "float16", "matrix_b"), FRAGMENT("D", "float32", "accumulator"),
          "    for i in range(8):", "    " TX(32), "            S[i * 32 + tx] = A[i * 32 + tx]",
          "    T.tvm_fill_fragment(D.data, 16, 16, 16, 0, T.float32(0))",
          "    T.tvm_load_matrix_sync(F.data, 16, 16, 16, 0, " POINTER("float16", "S", "1") ", 16, \"row_major\")",
          "    T.tvm_load_matrix_sync(G.data, 16, 16, 16, 0, " POINTER("float16", "S", "1") ", 16, \"row_major\")",
          "    T.tvm_mma_sync(D.data, 0, F.data, 0, G.data, 0, D.data, 0)",
          "    T.tvm_store_matrix_sync(D.data, 16, 16, 16, 0, " POINTER("float32", "U", "2") ", 16, \"row_major\")",
          "    for i in range(8):", "    " TX(32), "            C[i * 32 + tx] = U[i * 32 + tx]"),
      3, "shared = T.alloc_buffer((1024,)");
}

/* ---- Reductions ---- */

/* Rows of A are reduced by threads bound to `axes`, lines of loops over k. */
#define ROWS(type, zero, join, at, ...)                                                                                \
  read_function("A: T.Buffer((6, 84), \"" type "\"), C: T.Buffer((6,), \"" type "\")", __VA_ARGS__,                    \
                "            with T.sblock(\"C\"):", "                vi = T.axis.spatial(6, i)",                      \
                "                vk = T.axis.reduce(84, " at ")",                                                      \
                "                with T.init():", "                    C[vi] = " zero,                                 \
                "                C[vi] = " join)
#define SUM    "C[vi] + A[vi, vk]"
#define BLOCKS "for i in T.thread_binding(6, thread=\"blockIdx.x\"):"
#define ONCE   "        for u in range(1):"

static void threads_reduce_by_shuffles(void **state) {
  (void)state;
  expect_lowered(ROWS("float32", "T.float32(0)", SUM, "k", BLOCKS,
                      "    for k in T.thread_binding(84, thread=\"threadIdx.x\"):", ONCE),
                 1, "tvm_warp_shuffle_xor"); /* 84 threads, three warps */
}

/* Threads that the extent leaves out bring what is no value: a maximum of negative numbers stays negative. */
static void lanes_beyond_the_extent_bring_nothing(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((6, 20), \"float32\"), C: T.Buffer((6,), \"float32\")",
                               "for i in T.thread_binding(3, thread=\"threadIdx.y\"):", "    for j in range(2):",
                               "        for k in T.thread_binding(20, thread=\"threadIdx.x\"):",
                               "            with T.sblock(\"C\"):", "                vi = T.axis.spatial(6, i * 2 + j)",
                               "                vk = T.axis.reduce(20, k)", "                with T.init():",
                               "                    C[vi] = T.float32(-340282346638528859811704183484516925440.0)",
                               "                C[vi] = T.max(C[vi], A[vi, vk] - T.float32(1000))"),
                 0, "T.thread_binding(32, thread=\"threadIdx.x\")");
}

static void other_axes_reduce_in_shared_memory(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((12, 7), \"float32\"), C: T.Buffer((12,), \"float32\")",
                               "for i in T.thread_binding(12, thread=\"threadIdx.x\"):",
                               "    for k in T.thread_binding(7, thread=\"threadIdx.y\"):",
                               "        with T.sblock(\"C\"):", "            vi, vk = T.axis.remap(\"SR\", [i, k])",
                               "            with T.init():", "                C[vi] = T.float32(1)",
                               "            C[vi] = C[vi] * (A[vi, vk] + T.float32(1))"),
                 4, "C_part_threads");
}

static void short_types_are_shuffled_as_wide_ones(void **state) {
  (void)state;
  expect_lowered(ROWS("float16", "T.float16(0)", SUM, "k0 * 12 + k", BLOCKS,
                      "    for k0 in range(7):", "        for k in T.thread_binding(12, thread=\"threadIdx.x\"):"),
                 0, "T.Cast(\"float32\"");
}

static void two_values_are_reduced_together(void **state) {
  (void)state;
  expect_lowered(
      read_function(
          "A: T.Buffer((6, 40), \"float32\"), I: T.Buffer((6,), \"int32\"), V: T.Buffer((6,), \"float32\")", BLOCKS,
          "    for k in T.thread_binding(40, thread=\"threadIdx.x\"):", "        with T.sblock(\"V\"):",
          "            vi, vk = T.axis.remap(\"SR\", [i, k])",
          "            with T.init():", "                I[vi] = T.int32(-1)",
          "                V[vi] = T.float32(-340282346638528859811704183484516925440.0)",
          "            p: T.let[T.int32] = T.Select(V[vi] > A[vi, vk] or V[vi] == A[vi, vk] and I[vi] < vk, I[vi], vk)",
          "            q: T.let[T.float32] = T.Select(V[vi] > A[vi, vk], V[vi], A[vi, vk])", "            I[vi] = p",
          "            V[vi] = q"),
      1, "tvm_warp_shuffle_xor");
}

static void reductions_that_threads_cannot_share_are_refused(void **state) {
  (void)state;
  expect_refused(ROWS("float32", "T.float32(0)", "C[vi] - A[vi, vk]", "k", BLOCKS,
                      "    for k in T.thread_binding(84, thread=\"threadIdx.x\"):", ONCE),
                 MS_NO_REDUCER, "no known reducer");
  expect_refused(read_function("A: T.Buffer((64,), \"float32\"), C: T.Buffer((8,), \"float32\")",
                               "for t in T.thread_binding(64, thread=\"threadIdx.x\"):", "    with T.sblock(\"C\"):",
                               "        vi = T.axis.spatial(8, t // 8)", "        vk = T.axis.reduce(8, t % 8)",
                               "        with T.init():", "            C[vi] = T.float32(0)",
                               "        C[vi] = C[vi] + A[vi * 8 + vk]"),
                 MS_LOWER_REDUCTION, "a loop drives what is reduced and where the result goes");
  expect_refused(ROWS("float32", "T.float32(0)", SUM, "k", BLOCKS, "    for k0 in range(7):",
                      "        for k in T.thread_binding(k0 * 12, k0 * 12 + 12, thread=\"threadIdx.x\"):"),
                 MS_LOWER_REDUCTION, "the range of a loop depends on another");
}

/* ---- Shared memory ---- */

static void memory_of_one_time_is_used_again(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(32), "    U = T.alloc_buffer((32,), scope=\"shared\")",
                               "    W = T.alloc_buffer((32,), scope=\"shared\")", TX(32),
                               "        S[tx] = A[bx * 32 + tx]", TX(32), "        U[tx] = S[31 - tx]", TX(32),
                               "        W[tx] = U[tx] + U[31 - tx]", TX(32), "        C[bx * 32 + tx] = W[31 - tx]"),
                 3, "shared = T.alloc_buffer((256,), \"uint8\"");
}

static void a_buffer_that_a_loop_carries_lives_as_long_as_the_loop(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(32), "    U = T.alloc_buffer((32,), scope=\"shared\")", TX(32),
                               "        S[tx] = A[bx * 32 + tx]", "    for k in range(20):", "    " TX(32),
                               "            U[tx] = S[31 - tx]", "    " TX(32),
                               "            S[tx] = U[tx] + T.float32(1)", TX(32), "        C[bx * 32 + tx] = S[tx]"),
                 2, "shared = T.alloc_buffer((256,), \"uint8\"");
}

static void much_shared_memory_is_asked_for(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(13000), TX(32), "        S[tx * 400] = A[bx * 32 + tx]", TX(32),
                               "        C[bx * 32 + tx] = S[12400 - tx * 400]"),
                 1, "scope=\"shared.dyn\"");
  expect_refused(read_function(A_C, BX(2), S(20000), TX(32), "        S[tx * 400] = A[bx * 32 + tx]", TX(32),
                               "        C[bx * 32 + tx] = S[tx * 600]"),
                 MS_LOWER_SHARED, "74432 bytes");
}

/* ---- Indices ---- */

static void expect_wide_indices(struct tir *ir) {
  struct tir *lowered = lowered_copy(ir);
  char *text = tir_print(lowered, TIR_NONE, TIR_PRINT_FUNCTION);
  assert_non_null(strstr(text, "\"index_bits\": 64"));
  free(text);
  tir_free(lowered);
  tir_free(ir);
}

static void indices_take_as_many_bits_as_they_need(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((T.int64(64),), \"float32\"), C: T.Buffer((T.int64(64),), \"int64\")",
                               "for bx in T.thread_binding(T.int64(4), thread=\"blockIdx.x\"):",
                               "    for k in range(T.int64(16)):", "        if bx * T.int64(16) + k < T.int64(60):",
                               "            C[bx * T.int64(16) + k] = T.Cast(\"int64\", A[bx * T.int64(16) + k]) + k"),
                 0, "\"index_bits\": 32");
  expect_lowered(read_function("A: T.Buffer((T.int64(64),), \"int64\"), C: T.Buffer((T.int64(64),), \"int64\")",
                               "for bx in T.thread_binding(T.int64(4), thread=\"blockIdx.x\"):",
                               "    for k in range(T.int64(16)):", "        if k * bx < T.int64(33):",
                               "            C[bx * T.int64(16) + k] = A[bx * T.int64(16) + k]"),
                 0, "if bx * k < 33:");
  expect_wide_indices(read_function("A: T.Buffer((T.int64(4294967296),), \"int8\")",
                                    "for k in range(T.int64(4294967296)):", "    A[k] = T.int8(1)"));
  expect_wide_indices(read_function("A: T.Buffer((T.int64(4294967296),), \"int8\")",
                                    "for k in range(T.int64(65536)):", "    for j in range(T.int64(65536)):",
                                    "        A[k * T.int64(65536) + j] = T.int8(1)"));
}

/* ---- Vectors ---- */

#define COPY4(from) TX(8), "        for v in T.vectorized(4):", "            C[bx * 32 + tx * 4 + v] = A[" from "]"

static void vectors_are_aligned_accesses(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), COPY4("bx * 32 + 28 - tx * 4 + v")), 0, "tx * 4:bx * 32 + tx * 4 + 4] = A[");
  /* What begins at an odd element, or moves by more than one, is taken one by one. */
  expect_lowered(read_function(A_C, BX(2), COPY4("bx * 16 + tx * 4 + v + 1")), 0, "tx * 4 + 3] = A[");
  expect_lowered(read_function(A_C, BX(2), COPY4("bx * 16 + tx + v * 4")), 0, "tx * 4 + 3] = A[");
  expect_lowered(read_function(A_C, BX(2), TX(8), "        for v in T.vectorized(3):",
                               "            C[bx * 32 + tx * 3 + v] = A[bx * 32 + tx * 3 + v]"),
                 0, "tx * 3 + 2] = A[");
}

/* A fused copy of rows: all of a vector is of one row, and one condition is for all of it. */
static void vectors_of_rows_that_are_fused_stay(void **state) {
  (void)state;
  expect_lowered(
      read_function("A: T.Buffer((6, 12), \"float32\"), C: T.Buffer((64,), \"float32\")", BX(2),
                    "    S = T.alloc_buffer((48,), scope=\"shared\")", TX(8), "        for k in range(2):",
                    "            if k * 32 + tx * 4 < 48:", "                for v in T.vectorized(4):",
                    "                    S[k * 32 + tx * 4 + v] = T.if_then_else((k * 32 + tx * 4 + v) // 12 "
                    ">= 1 and (k * 32 + tx * 4 + v) // 12 < 3, A[bx * 2 + (k * 32 + tx * 4 + v) // 12, (k * 32 "
                    "+ tx * 4 + v) % 12], T.float32(0))",
                    TX(32), "        C[bx * 32 + tx] = S[47 - tx]"),
      1, "S[tx * 4:tx * 4 + 4] = T.if_then_else(3 <= tx");
  /* Not in rows of six, nor where the first element is no multiple. */
  expect_noted(read_function(A_C, BX(2), TX(8), "        for v in T.vectorized(4):",
                             "            C[bx * 32 + tx * 4 + v] = A[(tx * 4 + v) // 6 * 8 + (tx * 4 + v) % 6]"),
               "loop v is not vectorized");
  expect_noted(
      read_function(A_C, BX(2), TX(7), "        for v in T.vectorized(4):",
                    "            C[bx * 32 + tx * 4 + v] = A[(tx * 4 + v + 2) // 8 * 8 + (tx * 4 + v + 2) % 8]"),
      "loop v is not vectorized");
}

/* What is taken one by one where vectors were asked for is told. */
static void vectors_that_are_none_are_told(void **state) {
  (void)state;
  expect_noted(read_function(A_C, BX(2), COPY4("bx * 32 + 28 - tx * 4 + v")), "");
  expect_noted(read_function(A_C, BX(2), COPY4("bx * 16 + tx * 4 + v + 1")),
               "loop v is not vectorized: it has accesses that are not of a power of two of elements");
  expect_noted(read_function(A_C, BX(2), COPY4("bx * 16 + tx + v * 4")), "loop v is not vectorized");
}

/* A tail that takes whole vectors is a condition around them, another is none of vectors. */
static void tails_are_no_masks(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(1), TX(20), "        for v in T.vectorized(4):",
                               "            if tx * 4 + v < 64:", "                C[tx * 4 + v] = A[tx * 4 + v]"),
                 0, "C[tx * 4:tx * 4 + 4] = A[tx * 4:tx * 4 + 4]");
  expect_lowered(read_function(A_C, BX(1), TX(20), "        for v in T.vectorized(4):",
                               "            if tx * 4 + v < 63:", "                C[tx * 4 + v] = A[tx * 4 + v]"),
                 0, "C[tx * 4 + 3] = A[tx * 4 + 3]");
}

/* ---- Barriers ---- */

/* TVM's rule, that equal indices with a thread in them are one thread's, misses this one. */
static void several_threads_of_one_element_meet(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(32), TX(32),
                               "        if tx % 2 == 0:", "            S[tx // 2] = A[bx * 32 + tx]", TX(32),
                               "        C[bx * 32 + tx] = S[tx // 2]"),
                 1, NULL);
}

static void what_a_thread_left_for_itself_needs_none(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(64), TX(32),
                               "        for k in range(2):", "            S[k * 32 + tx] = A[bx * 32 + tx]", TX(32),
                               "        C[bx * 32 + tx] = S[tx] + S[tx + 32]"),
                 0, NULL);
}

/* Elements of a thread by quotients and remainders of blocks and threads, of which the last do nothing. */
static void elements_of_one_thread_need_none(void **state) {
  (void)state;
  expect_lowered(
      read_function(
          "A: T.Buffer((3, 20), \"float32\"), C: T.Buffer((3, 20), \"float32\")", BX(2), TX(32),
          "        if bx * 32 + tx < 60:", "            C[(bx * 32 + tx) // 20, (bx * 32 + tx) % 20] = T.float32(1)",
          "        for k in range(20):", "            if bx * 32 + tx < 60:",
          "                C[(bx * 32 + tx) // 20, (bx * 32 + tx) % 20] = C[(bx * 32 + tx) // 20, (bx * "
          "32 + tx) % 20] + A[(bx * 32 + tx) // 20, k]"),
      0, NULL);
}

/* Copy, then fill part of it by other threads. */
static void two_writes_are_kept_in_order(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(32), TX(32), "        S[tx] = A[bx * 32 + tx]", TX(8),
                               "        S[tx + 24] = T.float32(7)", TX(32), "        C[bx * 32 + tx] = S[tx]"),
                 2, NULL);
}

static void iterations_are_kept_apart(void **state) {
  (void)state;
  expect_lowered(read_function(A_C, BX(2), S(32), "    for k in range(20):", "    " TX(32),
                               "            S[tx] = A[k % 2 * 32 + tx]", "    " TX(32),
                               "            C[bx * 32 + tx] = S[31 - tx] + T.float32(1)"),
                 2, NULL);
}

/* 48 of 64 threads load; the barrier stands where all 64 come. */
static void a_barrier_is_for_all(void **state) {
  (void)state;
  expect_lowered(read_function(A_C_96, BX(2), S(64), TX(48), "        S[tx] = A[bx * 48 + tx]", TX(64),
                               "        if tx < 48:", "            C[bx * 48 + tx] = S[47 - tx]"),
                 1, NULL);
}

/* Rows of threads do all of it or nothing: the condition comes to stand around each part. */
static void conditions_are_taken_apart(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((96,), \"float32\"), C: T.Buffer((96,), \"float32\")", BX(1), S(96),
                               "    for ty in T.thread_binding(4, thread=\"threadIdx.y\"):", "        if ty < 3:",
                               "            for k in range(20):", "            " TX(32),
                               "                    S[ty * 32 + tx] = A[ty * 32 + tx] + T.float32(1)",
                               "            " TX(32), "                    C[ty * 32 + tx] = S[ty * 32 + 31 - tx]"),
                 2, "if ty < 3:");
}

static void what_no_barrier_can_separate_is_refused(void **state) {
  (void)state;
  expect_refused(read_function(A_C, BX(2), S(33), TX(32), "        S[tx] = S[tx + 1] + A[tx]"), MS_LOWER_BARRIER,
                 "one statement writes what other threads read");
  expect_refused(read_function(A_C, BX(2), S(32), TX(32), "        for k in range(tx):", "            S[tx] = A[k]",
                               "            C[bx * 32 + tx] = S[k]"),
                 MS_LOWER_BARRIER, "some leave before others");
  expect_refused(read_function(A_C, BX(2), S(32), TX(32), "        if A[tx] < T.float32(3):",
                               "            S[tx] = A[tx]", "            C[bx * 32 + tx] = S[31 - tx]"),
                 MS_LOWER_BARRIER, "memory decides");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nests_of_unlike_threads_are_one_kernel),
      cmocka_unit_test(what_no_thread_is_bound_to_one_does),
      cmocka_unit_test(kernels_follow_one_another),
      cmocka_unit_test(virtual_threads_are_written_out),
      cmocka_unit_test(virtual_threads_share_what_is_the_same),
      cmocka_unit_test(annotations_of_threads_are_handed_down),
      cmocka_unit_test(what_is_no_kernel_is_refused),
      cmocka_unit_test(extents_beyond_an_axis_are_refused),
      cmocka_unit_test(no_blocks_are_not_launched),
      cmocka_unit_test(infinite_constants_are_computed_with),
      cmocka_unit_test(what_threads_share_out_is_no_more_than_there_is),
      cmocka_unit_test(what_calls_touch_lives_while_they_do),
      cmocka_unit_test(threads_reduce_by_shuffles),
      cmocka_unit_test(lanes_beyond_the_extent_bring_nothing),
      cmocka_unit_test(other_axes_reduce_in_shared_memory),
      cmocka_unit_test(short_types_are_shuffled_as_wide_ones),
      cmocka_unit_test(two_values_are_reduced_together),
      cmocka_unit_test(reductions_that_threads_cannot_share_are_refused),
      cmocka_unit_test(memory_of_one_time_is_used_again),
      cmocka_unit_test(a_buffer_that_a_loop_carries_lives_as_long_as_the_loop),
      cmocka_unit_test(much_shared_memory_is_asked_for),
      cmocka_unit_test(indices_take_as_many_bits_as_they_need),
      cmocka_unit_test(vectors_are_aligned_accesses),
      cmocka_unit_test(vectors_of_rows_that_are_fused_stay),
      cmocka_unit_test(vectors_that_are_none_are_told),
      cmocka_unit_test(tails_are_no_masks),
      cmocka_unit_test(several_threads_of_one_element_meet),
      cmocka_unit_test(what_a_thread_left_for_itself_needs_none),
      cmocka_unit_test(elements_of_one_thread_need_none),
      cmocka_unit_test(two_writes_are_kept_in_order),
      cmocka_unit_test(iterations_are_kept_apart),
      cmocka_unit_test(a_barrier_is_for_all),
      cmocka_unit_test(conditions_are_taken_apart),
      cmocka_unit_test(what_no_barrier_can_separate_is_refused),
      cmocka_unit_test(sources_compute_the_same_on_the_cpu),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
