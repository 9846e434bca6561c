/* Replaying traces, performing instructions one by one, handles, draws, queries. */
#include "support/gemm.h"
#include "vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tir *module(const char *text) {
  ms_error err = {0};
  struct tir *ir = tir_read(text, strlen(text), "test", &err);
  if (!ir) fail_msg("%s", err.message);
  return ir;
}

static struct vm_trace *trace(const char *text) {
  ms_error err = {0};
  struct vm_trace *t = vm_read_trace(text, strlen(text), &err);
  if (!t) fail_msg("%s", err.message);
  return t;
}

#define LOOK "[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\",\"l3\"]],"
static const char TILED[] = "[[" LOOK "[\"SamplePerfectTile\",[\"l1\"],[2,16],[\"v4\",\"v5\"]],"
                            "[\"Split\",[\"l1\",\"v4\",\"v5\"],[true,false],[\"l6\",\"l7\"]],"
                            "[\"SampleCategorical\",[],[[0,16,64],[0.5,0.25,0.25]],[\"v8\"]],"
                            "[\"Annotate\",[\"l6\",[\"v8\",1]],[\"note\"],[]],"
                            "[\"Reorder\",[\"l6\",\"l2\",\"l7\"],[],[]]],";

/* Applies a trace that must be refused at an instruction. */
static void refused(const char *text, enum vm_mode mode, enum ms_code code, int instruction, const char *words) {
  struct tir *ir = module(GEMM);
  struct vm_trace *t = trace(text);
  ms_error err = {0};
  struct vm_draws draws = {.mode = mode, .decisions = t};
  struct vm_schedule *sch = vm_apply(ir, t, &draws, &err);
  if (sch) fail_msg("accepted: %s", text);
  if (err.code != code || err.instruction != instruction || !strstr(err.message, words))
    fail_msg("%s, instruction %d: %s", ms_code_name(err.code), err.instruction, err.message);
  vm_trace_free(t);
  tir_free(ir);
}

static void test_refusals(void **state) {
  (void)state;
  refused("[[[\"GetSBlock\",[],[\"D\",\"main\"],[\"b0\"]]],[]]", VM_STRICT, MS_BLOCK_NOT_FOUND, 0,
          "instruction 0, GetSBlock: ");
  refused("[[[\"GetSBlock\",[],[\"C\",\"other\"],[\"b0\"]]],[]]", VM_STRICT, MS_FUNCTION_NOT_FOUND, 0, "other");
  refused("[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\"]]],[]]", VM_STRICT,
          MS_ARITY, 1, "gives 3 outputs, and gave 1");
  refused("[[" LOOK "[\"Fuse\",[\"l1\",\"l2\"],[1],[\"l4\"]],[\"Parallel\",[\"l1\"],[],[]]],[]]", VM_STRICT,
          MS_STALE_HANDLE, 3, "l1 is no longer in the module: instruction 2, Fuse, removed it");
  refused("[[" LOOK "[\"Split\",[\"l1\",4294967296,\"None\"],[1,0],[\"l4\",\"l5\"]]],[]]", VM_STRICT,
          MS_INVALID_ARGUMENT, 2, "4294967296");
  refused("[[" LOOK "[\"Split\",[\"l1\",-4,\"None\"],[1,0],[\"l4\",\"l5\"]]],[]]", VM_STRICT, MS_FACTOR_NOT_POSITIVE, 2,
          "");
  refused("[[" LOOK "[\"SamplePerfectTile\",[\"l1\"],[0,16],[\"v4\"]]],[]]", VM_STRICT, MS_INVALID_ARGUMENT, 2,
          "n is 0");
  refused("[[" LOOK "[\"SamplePerfectTile\",[\"l1\"],[2,-5],[\"v4\",\"v5\"]]],[]]", VM_STRICT, MS_INVALID_ARGUMENT, 2,
          "-5");
  refused("[[" LOOK "[\"SamplePerfectTile\",[\"l1\"],[2,16],[\"v4\"]]],[]]", VM_STRICT, MS_ARITY, 2, "gives 2");
  refused("[[[\"SampleCategorical\",[],[[1,2],[1.0]],[\"v0\"]]],[]]", VM_STRICT, MS_INVALID_ARGUMENT, 0,
          "2 candidates");
  refused("[[[\"SampleCategorical\",[],[[1],[0.0]],[\"v0\"]]],[]]", VM_STRICT, MS_INVALID_ARGUMENT, 0, "add up to");
  refused("[[" LOOK "[\"SampleComputeLocation\",[\"b0\"],[],[\"l4\"]],[\"Parallel\",[\"l4\"],[],[]]],[[2,-1]]]",
          VM_STRICT, MS_WRONG_OPERAND, 3, "leave the block at the root");
}

/* The module after a refusal is what the instructions before it made, also where that was performed which is refused:
 * it gave more than was recorded. */
static void test_refused_module(void **state) {
  (void)state;
  static const char text[] = "[[" LOOK "[\"Split\",[\"l1\",8,\"None\"],[true,false],[\"l4\",\"l5\"]],"
                             "[\"Split\",[\"l2\",8,\"None\"],[true,false],[\"l6\"]]],[]]";
  struct tir *ir = module(GEMM);
  struct vm_trace *t = trace(text), *head = vm_trace_head(t, 3);
  struct vm_plan *plan = vm_prepare(ir, t);
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = t}, before = {.mode = VM_STRICT, .decisions = head};
  struct vm_schedule *sch = vm_schedule_new(NULL, 0), *expected = vm_apply(ir, head, &before, NULL);
  ms_error err = {0};
  char why[200];
  assert_false(vm_replay(sch, plan, &draws, &err));
  assert_true(err.code == MS_ARITY && err.instruction == 3);
  assert_true(tir_structural_equal(sch->ir, TIR_NONE, expected->ir, TIR_NONE, why, sizeof why));
  vm_schedule_free(expected);
  vm_schedule_free(sch);
  vm_plan_free(plan);
  vm_trace_free(head);
  vm_trace_free(t);
  tir_free(ir);
}

static void test_strict_decisions(void **state) {
  (void)state;
  char text[2000];
  static const char *const wrong[] = {"[2,[8,9]]", "[2,[]]",           "[2,[0,64]]", "[2,[-8,-8]]",
                                      "[2,[8]]",   "[2,[64,1]],[4,3]", "[4,-1]"};
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(text, sizeof text, "%s[%s]]", TILED, wrong[i]);
    refused(text, VM_STRICT, MS_DECISION, i < 5 ? 2 : 4, "deci");
  }
}

static int64_t decided(const struct vm_schedule *sch, uint32_t instruction, uint32_t which) {
  return sch->trace.decisions[sch->trace.steps->instructions[instruction].decision + which];
}

/* A decision that does not fit becomes the nearest that does, and is what the trace then records. */
static void test_repair(void **state) {
  (void)state;
  static const struct {
    const char *given;
    int64_t outer, inner, choice;
  } cases[] = {{"[2,[8,8]],[4,1]", 8, 8, 1},
               {"[2,[8,9]],[4,9]", 1, 64, 2}, /* past the limit for what is drawn */
               {"[2,[3,8]],[4,-4]", 8, 8, 0}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[2000];
    snprintf(text, sizeof text, "%s[%s]]", TILED, cases[i].given);
    struct tir *ir = module(GEMM);
    struct vm_trace *t = trace(text);
    struct vm_draws draws = {.mode = VM_REPAIR, .decisions = t};
    struct vm_schedule *sch = vm_apply(ir, t, &draws, NULL);
    assert_non_null(sch);
    assert_int_equal(decided(sch, 2, 0), cases[i].outer);
    assert_int_equal(decided(sch, 2, 1), cases[i].inner);
    assert_int_equal(decided(sch, 4, 0), cases[i].choice);
    struct vm_draws recorded = {.mode = VM_STRICT, .decisions = &sch->trace};
    struct vm_schedule *again = vm_apply(ir, &sch->trace, &recorded, NULL);
    assert_non_null(again);
    vm_schedule_free(again);
    vm_schedule_free(sch);
    vm_trace_free(t);
    tir_free(ir);
  }
}

/* A draw depends on seed, candidate and its own id; not on the draws before it, nor on what the schedule held. */
static void test_draws(void **state) {
  (void)state;
  struct tir *ir = module(GEMM);
  char text[2000];
  snprintf(text, sizeof text, "%s[]]", TILED);
  struct vm_trace *t = trace(text);
  struct vm_plan *plan = vm_prepare(ir, t);
  struct vm_schedule *a = vm_schedule_new(NULL, 0), *b = vm_schedule_new(NULL, 0);
  int different = 0;
  for (uint64_t n = 0; n < 50; n++) {
    struct vm_draws draws = {.seed = 5, .candidate = n};
    assert_true(vm_replay(a, plan, &draws, NULL));
    assert_true(decided(a, 2, 0) * decided(a, 2, 1) == 64 && decided(a, 2, 1) <= 16);
    int64_t choice = decided(a, 4, 0);
    different += choice != 0;
    vm_decide(t, 2, (int64_t[]){16, 4}, 2);
    draws.decisions = t;
    assert_true(vm_replay(b, plan, &draws, NULL));
    assert_true(decided(b, 4, 0) == choice);
    struct vm_trace *used = vm_trace_copy(&a->trace);
    draws = (struct vm_draws){.mode = VM_STRICT, .decisions = used};
    assert_true(vm_replay(b, plan, &draws, NULL));
    assert_true(tir_structural_equal(a->ir, TIR_NONE, b->ir, TIR_NONE, NULL, 0));
    vm_trace_free(used);
  }
  assert_in_range(different, 10, 40);
  vm_schedule_free(a), vm_schedule_free(b);
  vm_plan_free(plan), vm_trace_free(t), tir_free(ir);
}

/* A symbolic extent has one tile: the outermost factor is left open. */
static void test_symbolic_extent(void **state) {
  (void)state;
  struct tir *ir = module("@T.prim_func(s_tir=True)\n"
                          "def main(a: T.handle, b: T.handle):\n"
                          "    n = T.int32()\n"
                          "    A = T.match_buffer(a, (n,), \"float32\")\n"
                          "    B = T.match_buffer(b, (n,), \"float32\")\n"
                          "    for i in range(n):\n"
                          "        with T.sblock(\"C\"):\n"
                          "            vi = T.axis.spatial(n, i)\n"
                          "            B[vi] = A[vi] + T.float32(1.0)\n");
  struct vm_trace *t = trace("[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\"]],"
                             "[\"SamplePerfectTile\",[\"l1\"],[3,16],[\"v2\",\"v3\",\"v4\"]],"
                             "[\"Split\",[\"l1\",\"v2\",\"v3\",\"v4\"],[true,false],[\"l5\",\"l6\",\"l7\"]]],[]]");
  struct vm_draws draws = {.mode = VM_STRICT};
  ms_error err = {0};
  struct vm_schedule *sch = vm_apply(ir, t, &draws, &err);
  if (!sch) fail_msg("%s", err.message);
  assert_int_equal(decided(sch, 2, 0), -1);
  assert_int_equal(decided(sch, 2, 2), 1);
  assert_true(sch->slots[2] == VM_NIL && sch->slots[3] == 1);
  vm_schedule_free(sch), vm_trace_free(t), tir_free(ir);
}

/* Once warm, a replay allocates nothing: the arrays stay where they are. */
static void test_no_growth(void **state) {
  (void)state;
  struct tir *ir = module(GEMM);
  char text[2000];
  snprintf(text, sizeof text, "%s[]]", TILED);
  struct vm_trace *t = trace(text);
  struct vm_plan *plan = vm_prepare(ir, t);
  struct vm_schedule *sch = vm_schedule_new(NULL, 0);
  struct vm_draws draws = {.seed = 1};
  for (draws.candidate = 0; draws.candidate < 100; draws.candidate++) assert_true(vm_replay(sch, plan, &draws, NULL));
  struct tir before = *sch->ir;
  const int64_t *slots = sch->slots;
  for (draws.candidate = 0; draws.candidate < 100; draws.candidate++) assert_true(vm_replay(sch, plan, &draws, NULL));
#define SAME(type, name) assert_ptr_equal(before.name.at, sch->ir->name.at);
  TIR_ARRAYS(SAME)
  assert_ptr_equal(slots, sch->slots);
  vm_schedule_free(sch), vm_plan_free(plan), vm_trace_free(t), tir_free(ir);
}

static void test_calls(void **state) {
  (void)state;
  struct tir *ir = module(GEMM);
  struct vm_schedule *sch = vm_schedule_new(ir, 3);
  ms_error err = {0};
  uint32_t first, count, loops;
  struct vm_value name = vm_string(&sch->trace, "C", 1);
  assert_true(vm_call(sch, VM_GetSBlock, NULL, 0, &name, 1, NULL, 0, &first, &count, &err));
  uint32_t block = first;
  struct vm_value in[4] = {vm_ref(block)};
  assert_true(vm_call(sch, VM_GetLoops, in, 1, NULL, 0, NULL, 0, &loops, &count, &err));
  assert_int_equal(count, 3);
  in[0] = vm_ref(loops);
  struct vm_value attrs[2] = {vm_int(2), vm_int(16)};
  assert_true(vm_call(sch, VM_SamplePerfectTile, in, 1, attrs, 2, (int64_t[]){16, 4}, 2, &first, &count, &err));
  assert_int_equal(sch->slots[first + 1], 4);
  in[1] = vm_ref(first), in[2] = vm_ref(first + 1);
  assert_true(vm_call(sch, VM_Split, in, 3, NULL, 0, NULL, 0, &first, &count, &err));
  assert_int_equal(vm_statement(sch, loops), TIR_NONE);
  assert_true(tir_is(sch->ir, vm_statement(sch, first), TIR_LOOP));
  /* a refusal changes neither the module nor the trace */
  uint32_t recorded = sch->trace.steps->count;
  assert_false(vm_call(sch, VM_Parallel, in, 1, NULL, 0, NULL, 0, &first, &count, &err));
  assert_int_equal(err.code, MS_STALE_HANDLE);
  assert_true(strstr(err.message, "instruction 3, Split, removed it") != NULL);
  assert_int_equal(sch->trace.steps->count, recorded);
  /* what was recorded gives the same module */
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = &sch->trace};
  struct vm_schedule *again = vm_apply(ir, &sch->trace, &draws, &err);
  assert_non_null(again);
  assert_true(tir_structural_equal(sch->ir, TIR_NONE, again->ir, TIR_NONE, NULL, 0));
  /* and goes on after a replay, on steps that others share */
  in[0] = vm_ref(block);
  assert_true(vm_call(again, VM_GetLoops, in, 1, NULL, 0, NULL, 0, &first, &count, &err));
  assert_int_equal(count, 4);
  assert_int_equal(sch->trace.steps->count, recorded);
  vm_schedule_free(again), vm_schedule_free(sch), tir_free(ir);
}

/* A number that pads a layout is one of the buffer's type: so it is recorded, and every form gives it again. */
static void test_pad_of_another_type(void **state) {
  (void)state;
  struct tir *ir = module("@T.prim_func(s_tir=True)\n"
                          "def main(A: T.Buffer((8, 6), \"float16\"), C: T.Buffer((8, 6), \"float16\")):\n"
                          "    for i, j in T.grid(8, 6):\n"
                          "        with T.sblock(\"C\"):\n"
                          "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                          "            C[vi, vj] = A[vi, vj]\n");
  struct vm_schedule *sch = vm_schedule_new(ir, 3);
  ms_error err = {0};
  uint32_t block, first, count;
  struct vm_value name = vm_string(&sch->trace, "C", 1);
  assert_true(vm_call(sch, VM_GetSBlock, NULL, 0, &name, 1, NULL, 0, &block, &count, &err));
  struct vm_value in[2] = {vm_ref(block), vm_string(&sch->trace, "lambda i, j: (j, i)", 19)};
  struct vm_value attrs[4] = {vm_int(0), vm_int(0), vm_real(0.1), vm_bool(false)};
  assert_true(vm_call(sch, VM_TransformLayout, in, 2, attrs, 4, NULL, 0, &first, &count, &err));
  char *json = vm_write_json(&sch->trace);
  assert_non_null(strstr(json, "float16"));
  struct vm_trace *read = trace(json);
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = read};
  struct vm_schedule *again = vm_apply(ir, read, &draws, &err);
  if (!again) fail_msg("%s", err.message);
  assert_true(tir_structural_equal(sch->ir, TIR_NONE, again->ir, TIR_NONE, NULL, 0));
  free(json);
  vm_schedule_free(again), vm_schedule_free(sch), vm_trace_free(read), tir_free(ir);
}

/* Asks, and gives the answer as text. */
static void asked(struct vm_schedule *sch, const char *query, const struct vm_value *args, uint32_t count,
                  const char *expected) {
  struct vm_trace *pool = vm_trace_new();
  struct vm_value given[4], answer;
  char text[600];
  ms_error err = {0};
  for (uint32_t i = 0; i < count; i++) {
    given[i] = args[i];
    if (args[i].kind == VM_STRING) given[i] = vm_string(pool, sch->trace.steps->text + args[i].first, args[i].count);
  }
  if (!vm_ask(sch, vm_find_query(query, strlen(query)), given, count, pool, &answer, &err))
    fail_msg("%s: %s", query, err.message);
  vm_print_value(pool->steps, &answer, text, sizeof text);
  assert_string_equal(text, expected);
  vm_trace_free(pool);
}

static void test_queries(void **state) {
  (void)state;
  struct tir *ir = module(GEMM);
  struct vm_trace *t =
      trace("[[" LOOK "[\"Split\",[\"l1\",\"None\",4],[1,0],[\"l4\",\"l5\"]],[\"Parallel\",[\"l4\"],[],[]],"
            "[\"Annotate\",[\"l4\",[1,\"\\\"a\\\"\"]],[\"k\"],[]]],[]]");
  struct vm_draws draws = {.mode = VM_STRICT};
  struct vm_schedule *sch = vm_apply(ir, t, &draws, NULL);
  assert_non_null(sch);
  const struct vm_value block = vm_ref(0), j = vm_ref(2), k = vm_ref(3), outer = vm_ref(4);
  asked(sch, "block_names", NULL, 0, "[\"root\", \"C\"]");
  asked(sch, "iter_kinds", &block, 1, "[\"spatial\", \"spatial\", \"reduce\"]");
  asked(sch, "iter_extents", &block, 1, "[64, 16, 32]");
  asked(sch, "is_spatial", &block, 1, "false");
  asked(sch, "data_parallel_loops", (struct vm_value[]){block, vm_int(8), vm_int(16), vm_int(0)}, 4,
        "{\"parallel\": 0, \"vector\": 0, \"whole\": false, \"divides\": false, \"pieces\": false}"); /* k reduces */
  asked(sch, "has_init", &block, 1, "true");
  asked(sch, "reduction_blocks", NULL, 0, "[\"C\"]");
  asked(sch, "has_dynamic_loop", NULL, 0, "false");
  asked(sch, "loop_iter_kinds", &block, 1, "[\"spatial\", \"spatial\", \"spatial\", \"reduce\"]");
  asked(sch, "strides", (struct vm_value[]){block, j}, 2, "[0, 1, 1]");
  asked(sch, "strides", (struct vm_value[]){block, k}, 2, "[1, 16, 0]");
  asked(sch, "producers", &block, 1, "[]");
  asked(sch, "extent", &outer, 1, "16");
  asked(sch, "loop_kind", &outer, 1, "\"parallel\"");
  asked(sch, "loop_iter_kind", &outer, 1, "\"spatial\"");
  asked(sch, "loop_iter_kind", &k, 1, "\"reduce\"");
  asked(sch, "annotations", &outer, 1, "{\"k\": [1, \"a\"]}");
  asked(sch, "read_stride", (struct vm_value[]){block, vm_int(0), outer}, 3, "128");
  asked(sch, "read_stride", (struct vm_value[]){block, vm_int(0), j}, 3, "0");
  asked(sch, "read_stride", (struct vm_value[]){block, vm_int(1), k}, 3, "16");
  asked(sch, "write_stride", (struct vm_value[]){block, vm_int(0), j}, 3, "1");
  asked(sch, "writes", &block, 1,
        "[{\"buffer\": \"C\", \"type\": \"float32\", \"bytes\": 4, \"scope\": \"global\", \"shape\": [64, 16], "
        "\"extents\": [1, 1]}]");
  struct vm_trace *pool = vm_trace_new();
  struct vm_value answer, gone = vm_ref(1);
  ms_error err = {0};
  assert_false(vm_ask(sch, VM_ASK_extent, &gone, 1, pool, &answer, &err));
  assert_int_equal(err.code, MS_STALE_HANDLE);
  assert_false(vm_ask(sch, VM_ASK_extent, &block, 1, pool, &answer, &err));
  assert_int_equal(err.code, MS_WRONG_OPERAND);
  assert_false(vm_ask(sch, VM_ASK_extent, NULL, 0, pool, &answer, &err));
  vm_trace_free(pool), vm_schedule_free(sch), vm_trace_free(t), tir_free(ir);
}

static void test_intrinsics(void **state) {
  (void)state;
  char text[4000];
  ms_error err = {0};
  const struct tir *description, *implementation;
  snprintf(text, sizeof text, "# a comment\n### mac.desc\n%s\n### mac.impl\n%s", GEMM, GEMM);
  struct vm_intrinsics *table = vm_read_intrinsics(text, "file", &err);
  if (!table) fail_msg("%s", err.message);
  assert_true(vm_find_intrinsic(table, "mac", &description, &implementation));
  assert_false(vm_find_intrinsic(table, "other", &description, &implementation));
  vm_intrinsics_free(table);
  snprintf(text, sizeof text, "### mac.desc\n%s", GEMM);
  assert_null(vm_read_intrinsics(text, "file", &err));
  assert_int_equal(err.code, MS_BAD_INTRINSIC);
  snprintf(text, sizeof text, "### mac.desc\n%s\n### mac.desc\n%s", GEMM, GEMM);
  assert_null(vm_read_intrinsics(text, "file", &err));
  assert_int_equal(err.code, MS_BAD_INTRINSIC);
  err.code = MS_OK;
  assert_null(vm_read_intrinsics("### mac\n", "file", &err));
  assert_int_equal(err.code, MS_BAD_INTRINSIC);
  assert_null(vm_read_intrinsics("### mac.desc\ndef", "file", &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_refused_module),
      cmocka_unit_test(test_strict_decisions),
      cmocka_unit_test(test_repair),
      cmocka_unit_test(test_draws),
      cmocka_unit_test(test_no_growth),
      cmocka_unit_test(test_symbolic_extent),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_pad_of_another_type),
      cmocka_unit_test(test_queries),
      cmocka_unit_test(test_intrinsics),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
