/* Assert, If, Else, For, End: in replays, and in what they refuse. */
#include "vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char COPY[] = "@T.prim_func(s_tir=True)\n"
                           "def main(A: T.Buffer((64, 48), \"float32\"), C: T.Buffer((64, 48), \"float32\")):\n"
                           "    for i, j in T.grid(64, 48):\n"
                           "        with T.sblock(\"C\"):\n"
                           "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                           "            C[vi, vj] = A[vi, vj]\n";

/* b0, l1 l2 the loops, v3 v4 and v5 v6 tiles of them. */
#define TILES                                                                                                          \
  "[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\"]],"                           \
  "[\"SamplePerfectTile\",[\"l1\"],[2,-1],[\"v3\",\"v4\"]],[\"SamplePerfectTile\",[\"l2\"],[2,-1],[\"v5\",\"v6\"]],"
#define ASSERT(condition) "[\"Assert\",[],[\"" condition "\"],[]]"
#define IF(condition)     "[\"If\",[],[\"" condition "\"],[]],"
#define ELSE              "[\"Else\",[],[],[]],"
#define END               "[\"End\",[],[],[]]"
#define MARK(loop, key)   "[\"Annotate\",[\"" loop "\",1],[\"" key "\"],[]],"

static struct tir *workload(void) {
  ms_error err = {0};
  struct tir *ir = tir_read(COPY, strlen(COPY), "test", &err);
  if (!ir) fail_msg("%s", err.message);
  return ir;
}

static struct vm_trace *read_steps(const char *steps, const char *decisions) {
  char text[4096];
  ms_error err = {0};
  snprintf(text, sizeof text, "[[%s],[%s]]", steps, decisions);
  struct vm_trace *t = vm_read_json(text, strlen(text), &err);
  if (!t) fail_msg("%s", err.message);
  return t;
}

static struct vm_schedule *replay(const char *steps, const char *decisions, enum vm_mode mode, uint64_t seed,
                                  ms_error *err) {
  struct tir *ir = workload();
  struct vm_trace *t = read_steps(steps, decisions);
  struct vm_draws draws = {.mode = mode, .decisions = t, .seed = seed};
  struct vm_schedule *sch = vm_apply(ir, t, &draws, err);
  vm_trace_free(t);
  tir_free(ir);
  return sch;
}

static void expect_text(const char *steps, const char *decisions, const char *there, const char *not_there) {
  ms_error err = {0};
  struct vm_schedule *sch = replay(steps, decisions, VM_STRICT, 1, &err);
  if (!sch) fail_msg("%s", err.message);
  char *text = tir_print(sch->ir, TIR_NONE, 0);
  if (!strstr(text, there) || (*not_there && strstr(text, not_there))) fail_msg("%s", text);
  free(text);
  vm_schedule_free(sch);
}

static void expect_refused(const char *steps, const char *decisions, enum ms_code code, int instruction) {
  ms_error err = {0};
  struct vm_schedule *sch = replay(steps, decisions, VM_STRICT, 1, &err);
  if (sch) fail_msg("accepted: %s", steps);
  if (err.code != code || err.instruction != instruction)
    fail_msg("%s, instruction %d: %s", ms_code_name(err.code), err.instruction, err.message);
}

static void branches(void **state) {
  (void)state;
  const char *steps = TILES IF("v4 >= 8 and not v6 == 3") MARK("l1", "yes") ELSE MARK("l2", "no") END;
  expect_text(steps, "[2,[8,8]],[3,[12,4]]", "yes", "no\"");
  expect_text(steps, "[2,[16,4]],[3,[12,4]]", "no", "yes");
  expect_text(steps, "[2,[8,8]],[3,[16,3]]", "no", "yes");
  expect_text(TILES IF("v4 > 64 or v6 < 1") MARK("l1", "yes") END, "", "for i, j", "yes");
  expect_text(TILES IF("1") IF("0") MARK("l1", "inner") END "," MARK("l2", "outer") END, "", "outer", "inner");
}

static void rounds(void **state) {
  (void)state;
  const char *steps =
      TILES "[\"For\",[\"v4\"],[],[\"v7\"]],[\"Split\",[\"l1\",\"v7\",\"None\"],[1,0],[\"l8\",\"l9\"]]," END;
  expect_refused(steps, "[2,[64,1]]", MS_FACTOR_NOT_POSITIVE, 5); /* the first round is number 0 */
  const char *notes = TILES "[\"For\",[\"v4\"],[],[\"v7\"]]," IF("v7 == 2") MARK("l1", "third") END "," END;
  expect_text(notes, "[2,[16,4]]", "third", "");
  expect_text(notes, "[2,[32,2]]", "for i, j", "third");
  expect_refused(TILES "[\"For\",[100000],[],[\"v7\"]]," END, "", MS_INVALID_ARGUMENT, 4);
}

static void what_a_branch_gives(void **state) {
  (void)state;
  const char *steps = TILES IF("v4 == 8") "[\"Split\",[\"l1\",\"v3\",\"v4\"],[1,0],[\"l7\",\"l8\"]]," END
                                          ",[\"Unroll\",[\"l8\"],[],[]]";
  expect_text(steps, "[2,[8,8]]", "T.unroll(8)", "");
  expect_refused(steps, "[2,[16,4]]", MS_STALE_HANDLE, 7);
  /* a number that was not drawn is no open factor, and stands in no annotation */
  const char *drawn = TILES IF("v4 == 8") "[\"SampleCategorical\",[],[[2,4],[0.5,0.5]],[\"v7\"]]," END ",";
  char text[2048];
  snprintf(text, sizeof text, "%s%s", drawn, "[\"Split\",[\"l1\",\"v7\",32],[1,0],[\"l8\",\"l9\"]]");
  expect_refused(text, "[2,[16,4]]", MS_STALE_HANDLE, 7);
  snprintf(text, sizeof text, "%s%s", drawn, "[\"Annotate\",[\"l1\",[1,{\"a\":{\"\":\"v7\"}}]],[\"k\"],[]]");
  expect_refused(text, "[2,[16,4]]", MS_STALE_HANDLE, 7);
  expect_text(text, "[2,[8,8]],[5,1]", "{\"a\": 4}", "");
}

static void unbalanced(void **state) {
  (void)state;
  expect_refused(TILES IF("1") MARK("l1", "x") ELSE MARK("l1", "y") MARK("l1", "z") "[\"EnterPostproc\",[],[],[]]", "",
                 MS_UNBALANCED, 6);
  expect_refused(TILES END, "", MS_UNBALANCED, 4);
  expect_refused(TILES ELSE END, "", MS_UNBALANCED, 4);
  expect_refused(TILES "[\"For\",[2],[],[\"v7\"]]", "", MS_UNBALANCED, 4);
  expect_refused(TILES "[\"For\",[2],[],[\"v7\"]],[\"SampleCategorical\",[],[[1,2],[0.5,0.5]],[\"v8\"]]," END, "",
                 MS_DRAW_IN_FOR, 5);
}

static void conditions_without_a_value(void **state) {
  (void)state;
  expect_refused(TILES ASSERT("v4 // (v6 - v6) == 1"), "", MS_CONDITION_VALUE, 4);
  expect_refused(TILES ASSERT("v4 * 4611686018427387904 > 1"), "[2,[1,64]]", MS_CONDITION_VALUE, 4);
  expect_refused(TILES IF("0") "[\"SampleCategorical\",[],[[1,2],[0.5,0.5]],[\"v7\"]]," END "," ASSERT("v7 == 1"), "",
                 MS_CONDITION_VALUE, 7);
  const char *bad[] = {"v4 <", "v4 < l1", "v99 == 1", "lambda i: i", "1 < 2 < 3", "(v4", "v4 == 1 extra", ""};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[1024];
    ms_error err = {0};
    snprintf(text, sizeof text, "[[" TILES "[\"Assert\",[],[\"%s\"],[]]],[]]", bad[i]);
    assert_null(vm_read_json(text, strlen(text), &err));
    assert_string_equal(ms_code_name(err.code), "bad_formula");
  }
}

static void draws_satisfy_asserts(void **state) {
  (void)state;
  const char *steps = TILES ASSERT("v4 * v6 == 96") "," ASSERT("v4 > v6");
  bool seen[65] = {false};
  uint32_t distinct = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    ms_error err = {0};
    struct vm_schedule *sch = replay(steps, "", VM_STRICT, seed, &err);
    if (!sch) fail_msg("%s", err.message);
    int64_t a = sch->slots[4], b = sch->slots[6];
    assert_true(a * b == 96 && a > b && sch->slots[3] * a == 64);
    distinct += !seen[a];
    seen[a] = true;
    vm_schedule_free(sch);
  }
  assert_int_equal(distinct, 2); /* 16 x 6 and 32 x 3 are all there are */
}

static void decisions_and_asserts(void **state) {
  (void)state;
  const char *steps = TILES ASSERT("v4 * v6 == 96");
  expect_refused(steps, "[2,[8,8]],[3,[12,4]]", MS_ASSERT_FAILS, 4);
  /* one is decided: the other is drawn to fit, or nothing does */
  ms_error err = {0};
  struct vm_schedule *sch = replay(steps, "[3,[8,6]]", VM_STRICT, 1, &err);
  if (!sch) fail_msg("%s", err.message);
  assert_int_equal(sch->slots[4], 16);
  vm_schedule_free(sch);
  expect_refused(steps, "[2,[64,1]]", MS_UNSATISFIABLE, 3);
  /* repair keeps what can stay */
  sch = replay(steps, "[2,[2,32]],[3,[12,4]]", VM_REPAIR, 1, &err);
  if (!sch) fail_msg("%s", err.message);
  assert_true(sch->slots[4] == 32 && sch->slots[6] == 3);
  vm_schedule_free(sch);
}

static void the_unsatisfiable_is_reported(void **state) {
  (void)state;
  expect_refused(TILES ASSERT("v4 * v6 == 97"), "", MS_UNSATISFIABLE, 2);
  expect_refused("[\"SampleCategorical\",[],[[1,2,3],[0.5,0.5,0.5]],[\"v0\"]]," ASSERT("v0 > 3"), "", MS_UNSATISFIABLE,
                 0);
}

/* What takes too long is given up: of a tile of so many factors there are hundreds of millions. */
static void the_search_ends(void **state) {
  (void)state;
  char steps[2048] = "[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\"]],"
                     "[\"SamplePerfectTile\",[\"l1\"],[64,-1],[\"v3\"";
  for (int i = 4; i < 67; i++) snprintf(steps + strlen(steps), sizeof steps - strlen(steps), ",\"v%d\"", i);
  strcat(steps, "]]," ASSERT("v3 > 1000"));
  expect_refused(steps, "", MS_UNSATISFIABLE, 2);
}

/* For in For: rounds are counted in all, and so is what they nest. */
static void rounds_in_all(void **state) {
  (void)state;
  const char *steps = TILES "[\"For\",[%d],[],[\"v7\"]],[\"For\",[%d],[],[\"v8\"]],"
                            "[\"AddUnitLoop\",[\"l1\"],[],[\"l9\"]]," END "," END;
  char text[2048];
  snprintf(text, sizeof text, steps, 8, 8);
  expect_text(text, "", "u", "");
  snprintf(text, sizeof text, steps, 1000, 1000);
  expect_refused(text, "", MS_INVALID_ARGUMENT, 7);
}

/* The second tile's loop comes of the first tile: going back must find the only first tile that leaves one. */
static void goes_back_through_loops(void **state) {
  (void)state;
  const char *steps = "[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\"]],"
                      "[\"SamplePerfectTile\",[\"l1\"],[2,-1],[\"v3\",\"v4\"]],"
                      "[\"Split\",[\"l1\",\"v3\",\"v4\"],[1,0],[\"l5\",\"l6\"]],"
                      "[\"SampleCategorical\",[],[[1,2],[0.5,0.5]],[\"v7\"]],"
                      "[\"SamplePerfectTile\",[\"l5\"],[2,-1],[\"v8\",\"v9\"]]," ASSERT("v9 == 64 and v7 == 2");
  for (uint64_t seed = 0; seed < 20; seed++) {
    ms_error err = {0};
    struct vm_schedule *sch = replay(steps, "", VM_STRICT, seed, &err);
    if (!sch) fail_msg("%s", err.message);
    assert_true(sch->slots[4] == 1 && sch->slots[7] == 2 && sch->slots[9] == 64);
    vm_schedule_free(sch);
  }
}

static void undoes_no_more_than_there_is(void **state) {
  (void)state;
  ms_error err = {0};
  struct vm_schedule *sch = replay(TILES ASSERT("v3 * v4 == 64"), "", VM_STRICT, 1, &err);
  if (!sch) fail_msg("%s", err.message);
  assert_false(vm_undo(sch, 1, &err));
  assert_int_equal(err.code, MS_CANNOT_UNDO);
  vm_schedule_free(sch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(branches),
      cmocka_unit_test(rounds),
      cmocka_unit_test(what_a_branch_gives),
      cmocka_unit_test(unbalanced),
      cmocka_unit_test(conditions_without_a_value),
      cmocka_unit_test(draws_satisfy_asserts),
      cmocka_unit_test(decisions_and_asserts),
      cmocka_unit_test(the_unsatisfiable_is_reported),
      cmocka_unit_test(the_search_ends),
      cmocka_unit_test(rounds_in_all),
      cmocka_unit_test(goes_back_through_loops),
      cmocka_unit_test(undoes_no_more_than_there_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
