/* Plans of software pipelines, as passes and estimates read them: what annotations request, stage buffers, mbarriers,
 * registers by role. And memory scopes by name. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A loop with these annotations, of two statements; gives what is refused, or the plan. */
static bool read_plan(const char *annotations, struct tir_pipeline_plan *plan, ms_error *err) {
  char text[600];
  snprintf(text, sizeof text,
           "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n"
           "    for k in T.serial(64, annotations={%s}):\n        A[k] = T.float32(1)\n        B[k] = A[k]\n",
           annotations);
  struct tir *ir = tir_read(text, strlen(text), "plan", err);
  assert_non_null(ir);
  tir_stmt loop = tir_stmt_at(ir, ir->funcs.at[1].body)->first[TIR_BODY];
  while (!tir_is(ir, loop, TIR_LOOP)) loop = tir_stmt_at(ir, loop)->first[TIR_BODY];
  assert_true(tir_is_pipeline(ir, loop));
  *plan = (struct tir_pipeline_plan){.count = 2};
  bool ok = tir_read_pipeline(ir, loop, plan, err);
  tir_free(ir);
  return ok;
}

#define STAGES(stages, order) "\"software_pipeline_stage\": " stages ", \"software_pipeline_order\": " order

static void annotations_are_read(void **state) {
  (void)state;
  struct tir_pipeline_plan plan;
  ms_error err = {0};
  assert_true(
      read_plan(STAGES("[3, 5]", "[1, 0]") ", \"software_pipeline_async_stages\": [3], "
                                           "\"software_pipeline_products_in_flight\": 1, "
                                           "\"software_pipeline_tensor_copies\": 1, "
                                           "\"software_pipeline_producer\": 1, \"software_pipeline_blocks\": 132",
                &plan, &err));
  assert_int_equal(plan.depth, 2);
  assert_int_equal(plan.statements[0].stage, 0);
  assert_int_equal(plan.statements[0].order, 1);
  assert_true(plan.statements[0].async && !plan.statements[1].async);
  assert_true(plan.bulk && plan.producer && plan.in_flight == 1 && plan.blocks == 132);
  assert_true(read_plan(STAGES("[0, 1]", "[0, 1]"), &plan, &err));
  assert_true(!plan.bulk && !plan.producer && !plan.in_flight && !plan.blocks);
}

static void what_is_no_request_is_refused(void **state) {
  (void)state;
  static const char *const switches[] = {"software_pipeline_products_in_flight", "software_pipeline_tensor_copies",
                                         "software_pipeline_producer"};
  static const char *const values[] = {"2", "-1", "\"1\""};
  for (size_t s = 0; s < sizeof switches / sizeof *switches; s++)
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
      char annotations[200], says[100];
      struct tir_pipeline_plan plan;
      ms_error err = {0};
      snprintf(annotations, sizeof annotations, STAGES("[0, 1]", "[0, 1]") ", \"%s\": %s", switches[s], values[v]);
      snprintf(says, sizeof says, "%s is neither 0 nor 1", switches[s]);
      assert_false(read_plan(annotations, &plan, &err));
      assert_int_equal(err.code, MS_LOWER_PIPELINE);
      if (!strstr(err.message, says)) fail_msg("%s: %s", annotations, err.message);
    }
}

static uint32_t stage_buffers(const char *stages_and_order, bool doubles, int64_t in_flight) {
  struct tir_pipeline_plan plan;
  ms_error err = {0};
  const uint8_t uses[] = {TIR_STATEMENT_WRITES, TIR_STATEMENT_READS};
  assert_true(read_plan(stages_and_order, &plan, &err));
  plan.in_flight = in_flight;
  plan.statements[0].doubles = doubles, plan.statements[1].multiplies = in_flight > 0;
  return tir_stage_buffers(&plan, uses, NULL, NULL);
}

static bool always(void *data, uint32_t a, uint32_t b) {
  (void)data;
  return a != b;
}

static void stage_buffers_are_counted(void **state) {
  (void)state;
  assert_int_equal(stage_buffers(STAGES("[0, 0]", "[0, 1]"), false, 0), 1);
  assert_int_equal(stage_buffers(STAGES("[0, 0]", "[0, 1]"), true, 0), 2);
  assert_int_equal(stage_buffers(STAGES("[0, 2]", "[0, 1]"), false, 0), 3);
  assert_int_equal(stage_buffers(STAGES("[0, 2]", "[1, 0]"), false, 0), 2); /* read first in a step */
  assert_int_equal(stage_buffers(STAGES("[0, 2]", "[0, 1]"), false, 1), 4);
  assert_int_equal(stage_buffers(STAGES("[0, 0]", "[0, 1]"), false, 1), 1); /* nothing runs ahead */
  const uint8_t uses[] = {TIR_STATEMENT_WRITES, TIR_STATEMENT_READS};
  struct tir_pipeline_plan plan;
  ms_error err = {0};
  assert_true(read_plan(STAGES("[0, 2]", "[0, 1]"), &plan, &err));
  assert_int_equal(tir_stage_buffers(&plan, uses, always, NULL), 1);
}

static void roles_share_a_block(void **state) {
  (void)state;
  struct tir_role_registers each;
  assert_false(tir_share_registers(TIR_GROUP, &each)); /* two warp groups have enough */
  for (int64_t consumers = 2 * TIR_GROUP; consumers + TIR_GROUP <= TIR_BLOCK_THREADS; consumers += TIR_GROUP) {
    assert_true(tir_share_registers(consumers, &each));
    assert_true(each.consumer > each.producer && each.producer >= TIR_LEAST_REGISTERS);
    assert_int_equal(each.consumer % TIR_REGISTERS_UNIT, 0);
    assert_true(each.consumer * consumers + each.producer * TIR_GROUP <= TIR_BLOCK_REGISTERS);
  }
  struct tir_pipeline_plan plan = {.ring = 4, .frees = true, .producer = true};
  assert_int_equal(tir_pipeline_mbarriers(&plan), 8);
  assert_int_equal(tir_first_empty_mbarrier(&plan), 4);
  assert_int_equal(tir_ring_of_mbarriers(8), 4);
  assert_int_equal(tir_pipeline_threads(&plan, 256), 384);
  plan.frees = plan.producer = false;
  assert_int_equal(tir_pipeline_mbarriers(&plan), 4);
  assert_int_equal(tir_pipeline_threads(&plan, 256), 256);
}

static void scopes_say_where_buffers_lie(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int scope, memory, rows;
    bool sized;
  } cases[] = {
      {"", TIR_SCOPE_GLOBAL, TIR_DEVICE_MEMORY, TIR_ROWS_PLAIN, false},
      {"global", TIR_SCOPE_GLOBAL, TIR_DEVICE_MEMORY, TIR_ROWS_PLAIN, false},
      {"global.texture", TIR_SCOPE_OTHER, TIR_DEVICE_MEMORY, TIR_ROWS_PLAIN, false},
      {"shared", TIR_SCOPE_SHARED, TIR_BLOCK_MEMORY, TIR_ROWS_PLAIN, false},
      {"shared.dyn", TIR_SCOPE_SHARED_DYNAMIC, TIR_BLOCK_MEMORY, TIR_ROWS_PLAIN, false},
      {"shared.dyn.panels", TIR_SCOPE_SHARED_DYNAMIC, TIR_BLOCK_MEMORY, TIR_ROWS_CANONICAL, false},
      {"shared.panels.128.64", TIR_SCOPE_SHARED, TIR_BLOCK_MEMORY, TIR_ROWS_CANONICAL, true},
      {"shared.swizzle.64", TIR_SCOPE_SHARED, TIR_BLOCK_MEMORY, TIR_ROWS_SWIZZLED, true},
      {"shared.swizzled", TIR_SCOPE_OTHER, TIR_BLOCK_MEMORY, TIR_ROWS_PLAIN, false},
      {"shared.mbarrier", TIR_SCOPE_MBARRIER, TIR_BLOCK_MEMORY, TIR_ROWS_PLAIN, false},
      {"local", TIR_SCOPE_LOCAL, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"local.swizzle", TIR_SCOPE_OTHER, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"warp", TIR_SCOPE_WARP, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"wmma.matrix_a", TIR_SCOPE_WMMA_A, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"mma.accumulator", TIR_SCOPE_MMA_C, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"m16n8k8.matrixC.lanes", TIR_SCOPE_MMA8_C, TIR_THREAD_MEMORY, TIR_ROWS_OF_LANES, false},
      {"wmma.matrix_a.lanes", TIR_SCOPE_OTHER, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"wgmma.accumulator", TIR_SCOPE_WGMMA, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"wgmma.matrix_a", TIR_SCOPE_WGMMA_A, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"wgmma.rows", TIR_SCOPE_WGMMA_ROWS, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
      {"amx.tmm", TIR_SCOPE_OTHER, TIR_THREAD_MEMORY, TIR_ROWS_PLAIN, false},
  };
  struct tir *ir = tir_new();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tir_symbol symbol = tir_symbol_of(ir, cases[i].name);
    const struct tir_symbol_node *n = &ir->symbols.at[symbol];
    if (n->memory_scope != cases[i].scope || n->memory != cases[i].memory || n->rows != cases[i].rows ||
        n->sized != cases[i].sized)
      fail_msg("%s: scope %d, memory %d, rows %d, sized %d", cases[i].name, n->memory_scope, n->memory, n->rows,
               n->sized);
  }
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(annotations_are_read),
                                     cmocka_unit_test(what_is_no_request_is_refused),
                                     cmocka_unit_test(stage_buffers_are_counted), cmocka_unit_test(roles_share_a_block),
                                     cmocka_unit_test(scopes_say_where_buffers_lie)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
