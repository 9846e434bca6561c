/* The layout of the workspace: what the verifier refuses, what the interpreter finds, what was lowered lowered again.
 * What lowering makes: case/lower/workspace. */
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

/* What was lowered is read again as it was printed, and may be compiled: lowered once more, it computes the same. */
static void lowered_text_is_a_function(void **state) {
  (void)state;
  struct tir *ir =
      read_function("A: T.Buffer((6, 2), \"float32\"), O: T.Buffer((6, 2, 40), \"float32\")",
                    "for i in T.parallel(6):", "    for r in range(2):", "        P = T.alloc_buffer((40,))",
                    "        for j in range(40):", "            P[j] = A[i, r] + T.Cast(\"float32\", j)",
                    "        for j in range(40):", "            O[i, r, j] = P[39 - j]");
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

#define LOWERED "A: T.Buffer((12,), \"float32\"), O: T.Buffer((480,), \"float32\"), U: T.Buffer((360,), \"float32\")"

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
      cmocka_unit_test(lowered_text_is_a_function),
      cmocka_unit_test(a_stride_a_buffer_is_a_race),
      cmocka_unit_test(an_allocation_leaves_its_piece),
      cmocka_unit_test(allocations_that_live_at_once_overlap),
      cmocka_unit_test(a_place_is_unwritten_when_it_is_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
