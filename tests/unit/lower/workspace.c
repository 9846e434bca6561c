/* The layout of the workspace: what lowering makes, what the verifier refuses, what the interpreter finds. */
#include "unit/script.h"

#include "jit/jit.h"

enum { THREADS = 3 };

static struct tir *lowered(const struct tir *ir) {
  struct tir_lower_options options = {.threads = THREADS, .stack_bytes = 1, .verify = true};
  struct tir *copy = tir_new();
  tir_copy(copy, ir);
  assert_accepted(tir_lower(copy, tir_find_func(copy, "main"), &options, err));
  return copy;
}

static struct tir_workspace workspace_of(const struct tir *ir) {
  return tir_workspace_of(ir, tir_find_func(ir, "main"));
}

/* Interpreted as it stands, lowered, and compiled with each allocation in the workspace, it gives the same. */
static struct tir_workspace check_and_free(struct tir *ir) {
  struct tir_arguments expected, actual, compiled;
  struct tir_arg flat[8];
  struct jit_target target;
  struct jit_options options = {.stack_bytes = 1, .verify = true};
  tir_func f = tir_find_func(ir, "main");
  struct tir *low = lowered(ir);
  assert_accepted(tir_make_arguments(ir, f, 5, &expected, err));
  tir_copy_arguments(ir, f, &expected, &actual);
  tir_copy_arguments(ir, f, &expected, &compiled);
  for (uint32_t i = 0; i < actual.count; i++) flat[i] = actual.args[i], flat[i].shape = NULL;
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(tir_run(low, f, flat, actual.count, &(struct tir_run_options){.lowered = true}, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &actual, 0, err));
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(jit_run(ir, f, &target, &options, compiled.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &compiled, 0, err));
  struct tir_workspace w = workspace_of(low);
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  tir_arguments_free(&compiled);
  tir_free(low);
  tir_free(ir);
  return w;
}

#define A_O_U                                                                                                          \
  "A: T.Buffer((6, 2), \"float32\"), O: T.Buffer((6, 2, 40), \"float32\"), U: T.Buffer((6, 2, 30), \"float32\")"
#define FILL_P                                                                                                         \
  "            for j in range(40):", "                P[j] = A[i, r] + T.Cast(\"float32\", j)",                        \
      "            for j in range(40):", "                O[i, r, j] = P[39 - j]"
#define FILL_Q                                                                                                         \
  "            for j in range(30):", "                Q[j] = A[i, r] * T.float32(3)",                                  \
      "            for j in range(30):", "                U[i, r, j] = Q[29 - j]"

/* Allocations of two sizes that follow one another in a parallel loop share a thread's piece, and no other's. */
static void a_thread_has_one_piece(void **state) {
  (void)state;
  struct tir_workspace w =
      check_and_free(read_function(A_O_U, "if True:", "    for i in T.parallel(6):", "        for r in range(2):",
                                   "            P = T.alloc_buffer((40,))", FILL_P,
                                   "        for r in range(2):", "            Q = T.alloc_buffer((30,))", FILL_Q));
  assert_int_equal(w.thread_bytes, 192); /* 160 bytes, in lines of 64 */
  assert_int_equal(w.bytes, THREADS * 192);
}

/* Both at once are in the piece one after the other; the next loop uses it again; what is outside lies before. */
static void what_lives_at_once_lies_apart(void **state) {
  (void)state;
  struct tir_workspace w =
      check_and_free(read_function(A_O_U, "S = T.alloc_buffer((6,))", "for i in range(6):", "    S[i] = A[i, 0]",
                                   "if True:", "    for i in T.parallel(6):", "        P = T.alloc_buffer((40,))",
                                   "        Q = T.alloc_buffer((30,))", "        for r in range(2):", FILL_P, FILL_Q,
                                   "    for i in T.parallel(6):", "        V = T.alloc_buffer((70,))",
                                   "        for j in range(40):", "            V[j] = O[i, 0, j] + S[5 - i]",
                                   "        for j in range(40):", "            O[i, 1, j] = V[39 - j]"));
  assert_int_equal(w.thread_bytes, 192 + 128);
  assert_int_equal(w.bytes, 64 + THREADS * (192 + 128));
}

#define ONE "A: T.Buffer((12, 8), \"float32\"), O: T.Buffer((12, 8), \"float32\")"

static void parallel_loops_nest(void **state) {
  (void)state;
  struct tir_workspace w = check_and_free(read_function(
      ONE, "for i in T.parallel(4):", "    P = T.alloc_buffer((3, 8))", "    for k in T.parallel(3):",
      "        Q = T.alloc_buffer((8,))", "        for j in range(8):", "            Q[j] = A[i * 3 + k, j]",
      "        for j in range(8):", "            P[k, j] = Q[7 - j]",
      "    for k in T.parallel(3):", "        for j in range(8):", "            O[i * 3 + k, j] = P[2 - k, j]"));
  assert_int_equal(w.bytes, THREADS * (128 + 64));
}

/* Views of allocations, by match_buffer and by their data, and a loop of an extent that only the call gives. */
static void views_and_symbolic_extents(void **state) {
  (void)state;
  check_and_free(read_function(
      "a: T.handle, n: T.int32, o: T.handle", "A = T.match_buffer(a, (n, 8))", "O = T.match_buffer(o, (n, 8))",
      "for i in T.parallel(n):", "    P = T.alloc_buffer((8,))", "    V = T.decl_buffer((8,), data=P.data)",
      "    for j in range(8):", "        P[j] = A[i, j]", "    for j in range(8):", "        O[i, j] = V[7 - j]"));
  check_and_free(read_function(
      ONE, "P = T.sblock_alloc_buffer((12, 8))", "for i in T.parallel(12):", "    with T.sblock(\"P\"):",
      "        vi = T.axis.spatial(12, i)", "        T.reads(A[vi, 0:8])", "        T.writes(P[vi, 0:8])",
      "        X = T.match_buffer(P[vi, 0:8], (8,), offset_factor=1)",
      "        for j in range(8):", "            X[j] = A[vi, 7 - j]",
      "    for j in range(8):", "        with T.sblock(\"O\"):", "            vi, vj = T.axis.remap(\"SS\", [i, j])",
      "            O[vi, vj] = P[vi, vj] + T.float32(1)"));
}

/* What was lowered is read again as it was printed, and may be compiled: lowered once more, it computes the same. */
static void lowered_text_is_a_function(void **state) {
  (void)state;
  struct tir *ir = read_function(A_O_U, "if True:", "    for i in T.parallel(6):", "        for r in range(2):",
                                 "            P = T.alloc_buffer((40,))", FILL_P);
  struct tir *low = lowered(ir);
  char *text = tir_print(low, TIR_NONE, 0);
  struct tir_arguments expected, actual;
  struct jit_target target;
  struct tir *again = NULL;
  tir_func f = tir_find_func(ir, "main");
  assert_accepted((again = tir_read(text, strlen(text), "again", err)) != NULL);
  assert_int_equal(workspace_of(again).thread_bytes, 192);
  assert_accepted(tir_make_arguments(ir, f, 5, &expected, err));
  tir_copy_arguments(ir, f, &expected, &actual);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(
      jit_run(again, tir_find_func(again, "main"), &target, &(struct jit_options){.stack_bytes = 1}, actual.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &actual, 0, err));
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  free(text);
  tir_free(again);
  tir_free(low);
  tir_free(ir);
}

/* ---- Layouts that are wrong ---- */

#define NUMBER "T.Cast(\"int64\", T.call_extern(\"int32\", \"omp_get_thread_num\"))"
#define WORKSPACE(bytes, piece)                                                                                        \
  "workspace = T.alloc_buffer((T.int64(" #bytes "),), \"uint8\", scope=\"workspace\", annotations={\"thread_bytes\": " \
  "T.int64(" #piece "), \"threads\": 3})"
#define VIEW(name, count, at) name " = T.decl_buffer((" #count ",), data=T.address_of(workspace[" at "]))"
#define LOWERED               "A: T.Buffer((12,), \"float32\"), O: T.Buffer((480,), \"float32\"), U: T.Buffer((360,), \"float32\")"

static void run_refuses(struct tir *ir, enum ms_code code, const char *said) {
  struct tir_arguments args;
  ms_error err = {0};
  tir_func f = tir_find_func(ir, "main");
  assert_accepted(tir_make_arguments(ir, f, 5, &args, err));
  bool ok = tir_run(ir, f, args.args, args.count, &(struct tir_run_options){.lowered = true}, &err);
  if (ok != (code == MS_OK)) fail_msg("%s", ok ? "the run passes" : err.message);
  assert_string_equal(ms_code_name(err.code), ms_code_name(code));
  if (!ok && !strstr(err.message, said)) fail_msg("\"%s\" does not say \"%s\"", err.message, said);
  tir_arguments_free(&args);
}

/* Allocations of two sizes at one offset, each thread's at a multiple of what is given. */
static struct tir *strided(const char *p, const char *q) {
  return read_function(LOWERED, WORKSPACE(576, 192), "for i in T.parallel(6):", "    for r in range(2):", p,
                       "        for j in range(40):", "            P[j] = A[i * 2 + r] + T.Cast(\"float32\", j)",
                       "        for j in range(40):", "            O[i * 80 + r * 40 + j] = P[39 - j]",
                       "    for r in range(2):", q,
                       "        for j in range(30):", "            Q[j] = A[i * 2 + r] * T.float32(3)",
                       "        for j in range(30):", "            U[i * 60 + r * 30 + j] = Q[29 - j]");
}

#define PIECE_P "        " VIEW("P", 40, NUMBER " * T.int64(192)")

/* A stride for each buffer: one thread's larger allocation lies over another's smaller one. */
static void a_stride_a_buffer_is_a_race(void **state) {
  (void)state;
  struct tir *good = strided(PIECE_P, "        " VIEW("Q", 30, NUMBER " * T.int64(192)"));
  assert_accepted(tir_verify(good, err));
  run_refuses(good, MS_OK, "");
  tir_free(good);
  struct tir *bad = strided(PIECE_P, "        " VIEW("Q", 30, NUMBER " * T.int64(128)"));
  run_refuses(bad, MS_RUN_RACE, "writes what another");
  expect_broken(bad, MS_VERIFY_WORKSPACE, "Q lies where another thread's memory may");
  struct tir *one = strided(PIECE_P, "        " VIEW("Q", 30, "T.int64(0)"));
  run_refuses(one, MS_RUN_RACE, "writes what another");
  expect_broken(one, MS_VERIFY_WORKSPACE, "Q lies where another thread's memory may");
}

static void an_allocation_leaves_its_piece(void **state) {
  (void)state;
  struct tir *next = strided(PIECE_P, "        " VIEW("Q", 30, NUMBER " * T.int64(192) + T.int64(128)"));
  run_refuses(next, MS_RUN_RACE, "writes what another");
  expect_broken(next, MS_VERIFY_WORKSPACE, "Q leaves the piece of its thread");
  struct tir *outside = strided(PIECE_P, "        " VIEW("Q", 30, NUMBER " * T.int64(192) + T.int64(512)"));
  run_refuses(outside, MS_RUN_OUT_OF_BOUNDS, "Q leaves the workspace");
  expect_broken(outside, MS_VERIFY_WORKSPACE, "Q leaves the piece of its thread");
  expect_broken(strided(PIECE_P, "        " VIEW("Q", 30, "T.Cast(\"int64\", r)")), MS_VERIFY_WORKSPACE,
                "at no place in the workspace that is known");
}

/* Two that live at once, at one place: what one was written is unwritten again where the other begins. */
static void allocations_that_live_at_once_overlap(void **state) {
  (void)state;
  struct tir *ir = read_function("A: T.Buffer((8,), \"float32\"), O: T.Buffer((8,), \"float32\")", WORKSPACE(64, 0),
                                 VIEW("P", 8, "T.int64(0)"), "for j in range(8):", "    P[j] = A[j]",
                                 VIEW("Q", 8, "T.int64(16)"), "for j in range(8):", "    O[j] = P[j] + T.float32(1)");
  run_refuses(ir, MS_RUN_UNWRITTEN, "P[4] is read before it is written");
  expect_broken(ir, MS_VERIFY_WORKSPACE, "Q overlaps with P");
  expect_broken(read_function("A: T.Buffer((8,), \"float32\"), O: T.Buffer((8,), \"float32\")", WORKSPACE(352, 96),
                              VIEW("P", 8, "T.int64(64)"), "for j in range(8):", "    O[j] = A[j]"),
                MS_VERIFY_WORKSPACE, "P leaves the part before the pieces of threads");
}

/* What another allocation left is not taken for something written. */
static void a_place_is_unwritten_when_it_is_taken(void **state) {
  (void)state;
  struct tir *ir = read_function("A: T.Buffer((8,), \"float32\"), O: T.Buffer((8,), \"float32\")", WORKSPACE(64, 0),
                                 "for r in range(2):", "    " VIEW("P", 8, "T.int64(0)"),
                                 "    for j in range(8):", "        if r == 0:", "            P[j] = A[j]",
                                 "    for j in range(8):", "        O[j] = P[j] + T.float32(1)");
  assert_accepted(tir_verify(ir, err));
  run_refuses(ir, MS_RUN_UNWRITTEN, "P[0] is read before it is written");
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_has_one_piece),
      cmocka_unit_test(what_lives_at_once_lies_apart),
      cmocka_unit_test(parallel_loops_nest),
      cmocka_unit_test(views_and_symbolic_extents),
      cmocka_unit_test(lowered_text_is_a_function),
      cmocka_unit_test(a_stride_a_buffer_is_a_race),
      cmocka_unit_test(an_allocation_leaves_its_piece),
      cmocka_unit_test(allocations_that_live_at_once_overlap),
      cmocka_unit_test(a_place_is_unwritten_when_it_is_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
