/* Software pipelines: loops whose statements run for several iterations side by side compute the same, on extents that
 * do not divide, and on extents shorter than the stages; copies are asynchronous until a wait. */
#define _GNU_SOURCE
#include "unit/kernels.h"

#define K(n, stages, order, ...)                                                                                       \
  "    for k in T.serial(" #n ", annotations={\"software_pipeline_stage\": " stages                                    \
  ", \"software_pipeline_order\": " order __VA_ARGS__ "}):"
#define ASYNC          ", \"software_pipeline_async_stages\": [0]"
#define L(n)           "    L = T.alloc_buffer((" #n ",), scope=\"local\")"
#define LOCAL(name, n) "        " name " = T.alloc_buffer((" #n ",), scope=\"shared\")"
#define DONE           TX(20), "        C[bx * 20 + tx] = L[tx]"
#define A_C_K(n)       "A: T.Buffer((" #n ", 60), \"float32\"), C: T.Buffer((60,), \"float32\")"
#define SUM            "    " TX(20), "            L[tx] = L[tx] + S[19 - tx]"

/* Rows of A are summed by way of S, turned round. */
#define ROWS(n, loop)                                                                                                  \
  read_function(A_C_K(n), BX(3), L(20), TX(20), "        L[tx] = T.float32(0)", loop, LOCAL("S", 20), "    " TX(20),   \
                "            S[tx] = A[k, bx * 20 + tx]", SUM, DONE)

static void a_loop_becomes_three(void **state) {
  (void)state;
  expect_lowered(ROWS(90, K(90, "[0, 1]", "[0, 1]")), 2, "S = T.decl_buffer((40,)");
  expect_lowered(ROWS(90, K(90, "[0, 2]", "[0, 1]")), 2, "S = T.decl_buffer((60,)");
  /* What is used first in a step leaves its place to what is written after it. */
  expect_lowered(ROWS(90, K(90, "[0, 2]", "[1, 0]")), 3, "S = T.decl_buffer((40,)");
  expect_lowered(ROWS(90, K(90, "[0, 1]", "[1, 0]")), 3, "S = T.decl_buffer((20,)");
  expect_lowered(ROWS(90, K(90, "[3, 5]", "[0, 1]")), 2, "S = T.decl_buffer((60,)"); /* stages count from the first */
  expect_lowered(ROWS(90, K(90, "[0, 0]", "[0, 1]")), 2, "S = T.decl_buffer((20,)");
}

static void extents_may_be_shorter_than_the_stages(void **state) {
  (void)state;
  expect_lowered(ROWS(1, K(1, "[0, 2]", "[0, 1]")), 1, "S = T.decl_buffer((20,)"); /* of one there is no pipeline */
  expect_lowered(ROWS(2, K(2, "[0, 2]", "[0, 1]")), 1, NULL);
  expect_lowered(ROWS(3, K(3, "[0, 3]", "[0, 1]")), 1, NULL);
  expect_lowered(ROWS(1, K(1, "[0, 3]", "[0, 1]", ASYNC)), 1, NULL);
  expect_lowered(ROWS(2, K(2, "[0, 3]", "[0, 1]", ASYNC)), 2, "T.ptx_wait_group(2)");
}

/* Blocks run 0, 2 and 4 iterations. */
static void extents_may_differ_between_blocks(void **state) {
  (void)state;
  for (int async = 0; async < 2; async++)
    for (int deep = 0; deep < 4; deep++) {
      char loop[200];
      snprintf(loop, sizeof loop,
               "    for k in T.serial(bx * 2, annotations={\"software_pipeline_stage\": [0, %d], "
               "\"software_pipeline_order\": [0, 1]%s}):",
               deep, async ? ASYNC : "");
      struct tir *ir = ROWS(6, loop), *lowered = lowered_copy(ir);
      ms_error err = {0};
      if (!same(ir, lowered, &err)) fail_msg("%s\n%s", err.message, tir_print(lowered, TIR_NONE, 0));
      keep_source(ir, lowered);
      tir_free(lowered);
    }
}

static void copies_go_on_by_themselves(void **state) {
  (void)state;
  expect_lowered(ROWS(90, K(90, "[0, 2]", "[0, 1]", ASYNC)), 3, "T.async_copy(A[");
  expect_lowered(ROWS(90, K(90, "[0, 3]", "[0, 1]", ASYNC)), 4, "T.ptx_wait_group(2)");
  expect_lowered(ROWS(90, K(90, "[0, 1]", "[1, 0]", ASYNC)), 3, "T.ptx_wait_group(0)");
  expect_lowered(ROWS(90, K(90, "[0, 0]", "[0, 1]", ASYNC)), 2,
                 "T.ptx_wait_group(0)"); /* waited for in the same step */
}

/* Of 16 bytes where vectors are, else of an element; those of 2 bytes are done where they stand. */
static void copies_are_of_four_bytes_at_least(void **state) {
  (void)state;
#define VECTORS(type, lanes, at)                                                                                       \
  read_function("A: T.Buffer((40, 68), \"" type "\"), C: T.Buffer((64,), \"" type "\")", BX(2),                        \
                "    L = T.alloc_buffer((32,), \"" type "\", scope=\"local\")", TX(32),                                \
                "        L[tx] = T." type "(0)", K(40, "[0, 2]", "[0, 1]", ASYNC),                                     \
                "        S = T.alloc_buffer((32,), \"" type "\", scope=\"shared\")",                                   \
                "        for tx in T.thread_binding(32 // " #lanes ", thread=\"threadIdx.x\"):",                       \
                "            for v in T.vectorized(" #lanes "):",                                                      \
                "                S[tx * " #lanes " + v] = A[k, bx * 32 + tx * " #lanes " + v + " #at "]",              \
                "    " TX(32), "            L[tx] = L[tx] + S[31 - tx]", TX(32), "        C[bx * 32 + tx] = L[tx]")
  expect_lowered(VECTORS("float32", 4, 0), 3, "T.async_copy(A[k * 68 + bx * 32 + tx * 4:");
  expect_lowered(VECTORS("float32", 4, 2), 3,
                 "T.async_copy(A[k * 68 + bx * 32 + tx * 4 + 3])"); /* no vector: 4 copies */
  expect_lowered(VECTORS("float16", 2, 0), 3, "T.async_copy(A[k * 68 + bx * 32 + tx * 2:");
  expect_lowered(VECTORS("float16", 4, 4), 3, "T.async_copy(A[k * 68 + bx * 32 + tx * 4 + 4:");
  expect_lowered(VECTORS("float16", 2, 1), 3, "+ 1] = A[k * 68 + bx * 32 + tx * 2 + 2]");
  expect_noted(VECTORS("float16", 2, 1),
               "is not one all of whose copies are asynchronous: those are of 4, 8 or 16 bytes");
  expect_noted(VECTORS("float16", 4, 4), "");
  struct tir *ir = VECTORS("float16", 2, 1), *lowered = lowered_copy(ir);
  char *text = tir_print(lowered, TIR_NONE, TIR_PRINT_FUNCTION);
  assert_null(strstr(text, "async_copy"));
  assert_null(strstr(text, "ptx_")); /* no copy is asynchronous, none is waited for */
  free(text);
  tir_free(lowered);
  tir_free(ir);
}

/* What is not there is zero, by the number of bytes that are copied; what is no thread's is not copied. */
static void tails_are_filled_and_guarded(void **state) {
  (void)state;
  expect_lowered(
      read_function("A: T.Buffer((33, 50), \"float32\"), C: T.Buffer((60,), \"float32\")", BX(3), L(20), TX(20),
                    "        L[tx] = T.float32(0)", K(33, "[0, 2]", "[0, 1]", ASYNC), LOCAL("S", 20), "    " TX(20),
                    "            S[tx] = T.if_then_else(bx * 20 + tx < 50, A[k, bx * 20 + tx], T.float32(0))",
                    "    " TX(20), "            L[tx] = L[tx] + S[19 - tx]", TX(20), "        C[bx * 20 + tx] = L[tx]"),
      3, "T.async_copy(T.if_then_else(");
  expect_lowered(
      read_function(A_C_K(33), BX(3), L(20), TX(20), "        L[tx] = T.float32(0)", K(11, "[0, 2]", "[0, 1]", ASYNC),
                    LOCAL("S", 60), "        for j in range(2):", "        " TX(32),
                    "                if j * 32 + tx < 60:",
                    "                    S[j * 32 + tx] = A[k * 3 + (j * 32 + tx) // 20, bx * 20 + (j * 32 + tx) % 20]",
                    "        for j in range(3):", "        " TX(20),
                    "                L[tx] = L[tx] + S[j * 20 + 19 - tx]", TX(20), "        C[bx * 20 + tx] = L[tx]"),
      3, "if tx < 28:");
}

/* A copy that is cut short leaves zeros, and no negative ones: the value is then computed and stored. */
static void negative_zeros_are_not_copied(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((33, 50), \"float32\"), C: T.Buffer((60,), \"float32\")", BX(3), L(20), TX(20),
                    "        L[tx] = T.float32(0)", K(33, "[0, 2]", "[0, 1]", ASYNC), LOCAL("S", 20), "    " TX(20),
                    "            S[tx] = T.if_then_else(bx * 20 + tx < 50, A[k, bx * 20 + tx], T.float32(-0.0))",
                    "    " TX(20), "            L[tx] = L[tx] + S[19 - tx]", TX(20), "        C[bx * 20 + tx] = L[tx]");
  struct tir *lowered = lowered_copy(ir);
  char *text = tir_print(lowered, TIR_NONE, 0);
  assert_null(strstr(text, "async_copy"));
  assert_non_null(strstr(text, "T.if_then_else("));
  free(text);
  tir_free(lowered);
  tir_free(ir);
}

/* Of a vector of which nothing is to be copied the zeros are stored. */
static void vectors_of_nothing_are_zeros(void **state) {
  (void)state;
  expect_lowered(read_function("A: T.Buffer((33, 16), \"float32\"), C: T.Buffer((64,), \"float32\")", BX(1),
                               "    L = T.alloc_buffer((64,), scope=\"local\")", TX(16),
                               "        for i in range(4):", "            L[tx * 4 + i] = T.float32(0)",
                               K(33, "[0, 2]", "[0, 1]", ASYNC), LOCAL("S", 64), "        for j in T.unroll(2):",
                               "            for tx in T.thread_binding(8, thread=\"threadIdx.x\"):",
                               "                for v in T.vectorized(4):",
                               "                    S[j * 32 + tx * 4 + v] = T.if_then_else(j < 1 and tx < 4, "
                               "A[k, tx * 4 + v], T.float32(0))",
                               "    " TX(16), "            for i in range(4):",
                               "                L[tx * 4 + i] = L[tx * 4 + i] + S[63 - tx * 4 - i]", TX(16),
                               "        for i in range(4):", "            C[tx * 4 + i] = L[tx * 4 + i]"),
                 3, "= T.Broadcast(T.float32(0.0), 4)");
}

/* One of the tables of virtual threads is copied once, one apiece. */
static void virtual_threads_share_a_pipeline(void **state) {
  (void)state;
  expect_lowered(read_function(A_C_K(40), BX(3),
                               "    for v in T.thread_binding(2, thread=\"vthread.x\"):", "    " L(20), "    " TX(10),
                               "            L[tx] = T.float32(0)", "    " K(40, "[0, 2]", "[0, 1]", ASYNC),
                               "    " LOCAL("S", 20), "        " TX(20), "                S[tx] = A[k, bx * 20 + tx]",
                               "        " TX(10), "                L[tx] = L[tx] + S[v * 10 + 9 - tx]", "    " TX(10),
                               "            C[bx * 20 + v * 10 + tx] = L[tx]"),
                 3, "T.async_copy(A[");
}

/* Tiles go to shared memory by way of registers, and rows of them to registers: each loop is a pipeline, the inner
 * one's first statement is one of the outer one's first stage. */
#define NESTED(n, inner, outer_stages, outer_order)                                                                    \
  read_function("A: T.Buffer((" #n ", 60), \"float32\"), C: T.Buffer((60,), \"float32\")", BX(3), L(20), TX(20),       \
                "        L[tx] = T.float32(0)",                                                                        \
                "    for k in T.serial(" #n " // " #inner ", annotations={\"software_pipeline_stage\": " outer_stages  \
                ", \"software_pipeline_order\": " outer_order "}):",                                                   \
                "        S = T.alloc_buffer((" #inner ", 20), scope=\"shared\")",                                      \
                "        for i in range(" #inner "):", "        " TX(20), "                with T.sblock(\"S\"):",     \
                "                    vi = T.axis.spatial(" #n ", k * " #inner " + i)",                                 \
                "                    vj = T.axis.spatial(60, bx * 20 + tx)", "                    T.reads(A[vi, vj])", \
                "                    T.writes(S[vi % " #inner ", vj % 20])",                                           \
                "                    T.sblock_attr({\"tir.manifest_shared_memory_local_stage\": 1, "                   \
                "\"double_buffer_scope\": 0})",                                                                        \
                "                    S[vi % " #inner ", vj % 20] = A[vi, vj]",                                         \
                "        for i in T.serial(" #inner ", annotations={\"software_pipeline_stage\": [0, 1], "             \
                "\"software_pipeline_order\": [0, 1]}):",                                                              \
                "            R = T.alloc_buffer((20,), scope=\"local\")", "        " TX(20),                           \
                "                R[tx] = S[i, 19 - tx]", "        " TX(20), "                L[tx] = L[tx] + R[tx]",   \
                TX(20), "        C[bx * 20 + tx] = L[tx]")

static void pipelines_stand_in_pipelines(void **state) {
  (void)state;
  expect_lowered(NESTED(120, 4, "[0, 0, 0, 1, 1]", "[0, 2, 3, 1, 4]"), 2, "in_registers = T.alloc_buffer((4,)");
  expect_lowered(NESTED(120, 4, "[0, 0, 1, 1, 1]", "[0, 4, 1, 2, 3]"), 2, "S = T.decl_buffer((160,)");
  expect_lowered(NESTED(5, 5, "[0, 0, 0, 1, 1]", "[0, 2, 3, 1, 4]"), 1, NULL);
  expect_lowered(NESTED(90, 1, "[0, 0, 0, 1, 1]", "[0, 2, 3, 1, 4]"), 2, NULL);
  struct tir *ir = NESTED(120, 4, "[0, 0, 0, 1, 1]", "[0, 2, 3, 1, 4]"), *lowered = lowered_copy(ir);
  char *text = tir_print(lowered, TIR_NONE, TIR_PRINT_FUNCTION);
  assert_non_null(strstr(text, "R = T.alloc_buffer((2,)")); /* the last of a tile and the first of the next are two */
  free(text);
  tir_free(lowered);
  tir_free(ir);
}

static void what_is_no_pipeline_is_refused(void **state) {
  (void)state;
#define REFUSED(ir, says) expect_refused(ir, MS_LOWER_PIPELINE, says)
  REFUSED(ROWS(9, K(9, "[0, 1, 1]", "[0, 1, 2]")), "2 statements, and is given 3 stages and 3 places");
  REFUSED(ROWS(9, K(9, "[0, 1]", "[0]")), "2 stages and 1 places");
  REFUSED(ROWS(9, K(9, "[0, 1]", "[1, 1]")), "two of its statements are given one place");
  REFUSED(ROWS(9, K(9, "[1, 0]", "[0, 1]")), "statement 1 touches S before statement 0 of the same iteration");
  REFUSED(ROWS(9, K(9, "[0, 0]", "[1, 0]")), "statement 1 touches S before statement 0 of the same iteration");
  REFUSED(ROWS(9, K(9, "[0, 9]", "[0, 1]")), "more stages than a pipeline may");
  REFUSED(ROWS(9, "    for k in T.unroll(9, annotations={\"software_pipeline_stage\": [0, 1]}):"), "0 places");
  REFUSED(read_function(A_C_K(9), BX(3), L(20), TX(20), "        L[tx] = T.float32(0)", K(9, "[0, 1]", "[0, 1]"),
                        "        u: T.let[T.int32] = k % 3", LOCAL("S", 20), "    " TX(20),
                        "            S[tx] = A[u, bx * 20 + tx]", SUM, DONE),
          "names a value");
  REFUSED(read_function("A: T.Buffer((60,), \"float32\"), C: T.Buffer((60,), \"float32\")",
                        "for i in T.parallel(60, annotations={\"software_pipeline_stage\": [0], "
                        "\"software_pipeline_order\": [0]}):",
                        "    C[i] = A[i]"),
          "no order");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_loop_becomes_three),
      cmocka_unit_test(extents_may_be_shorter_than_the_stages),
      cmocka_unit_test(extents_may_differ_between_blocks),
      cmocka_unit_test(copies_go_on_by_themselves),
      cmocka_unit_test(copies_are_of_four_bytes_at_least),
      cmocka_unit_test(tails_are_filled_and_guarded),
      cmocka_unit_test(negative_zeros_are_not_copied),
      cmocka_unit_test(vectors_of_nothing_are_zeros),
      cmocka_unit_test(virtual_threads_share_a_pipeline),
      cmocka_unit_test(pipelines_stand_in_pipelines),
      cmocka_unit_test(what_is_no_pipeline_is_refused),
      cmocka_unit_test(sources_compute_the_same_on_the_cpu),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
