/* The pool: the same candidates in the same order whatever the number of threads; refusals, script errors, interrupts.
 * Postprocessors are C here: the pool knows nothing of Lua. */
#include "search/search.h"
#include "support/gemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOOK "[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\",\"l3\"]]"
static const char TILED[] = "[[" LOOK ",[\"SamplePerfectTile\",[\"l1\"],[3,16],[\"v4\",\"v5\",\"v6\"]],"
                            "[\"Split\",[\"l1\",\"v4\",\"v5\",\"v6\"],[1,0],[\"l7\",\"l8\",\"l9\"]]],[]]";
static const char REFUSED[] = "[[" LOOK ",[\"Parallel\",[\"l3\"],[],[]]],[]]"; /* it is a reduction */

enum { JOBS = 96 };

struct fixture {
  struct tir *workload;
  struct vm_trace *tiled, *refused;
  struct search_job jobs[JOBS];
};

static struct vm_trace *read_trace(const char *text) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_trace(text, strlen(text), &err);
  if (!trace) fail_msg("%s", err.message);
  return trace;
}

/* Every tenth job is refused when it is replayed. */
static int set_up(void **state) {
  ms_error err = {0};
  struct fixture *f = calloc(1, sizeof *f);
  f->workload = tir_read(GEMM, strlen(GEMM), "test", &err);
  if (!f->workload) fail_msg("%s", err.message);
  f->tiled = read_trace(TILED), f->refused = read_trace(REFUSED);
  for (uint32_t i = 0; i < JOBS; i++)
    f->jobs[i] =
        (struct search_job){.trace = i % 10 == 9 ? f->refused : f->tiled, .seed = 7, .candidate = i, .resample = true};
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *f = *state;
  vm_trace_free(f->tiled);
  vm_trace_free(f->refused);
  tir_free(f->workload);
  free(f);
  return 0;
}

/* ---- Postprocessors ---- */

struct script {
  atomic_int opened, calls;
  int fails_at;      /* the call that ends with an error of the script; 0: none */
  volatile int stop; /* turns 1 after `stops_at` calls, unless that is 0 */
  int stops_at;
};

static void *open_state(void *data, ms_error *err) {
  (void)err;
  atomic_fetch_add(&((struct script *)data)->opened, 1);
  return data;
}
static void close_state(void *data, void *state) {
  (void)state;
  atomic_fetch_sub(&((struct script *)data)->opened, 1);
}

/* Runs the outermost loop in parallel; refuses a tile of one row. */
static bool postprocess(void *data, void *state, struct vm_schedule *schedule, char by[SEARCH_NAME], ms_error *err) {
  struct script *script = data;
  (void)state;
  int call = atomic_fetch_add(&script->calls, 1) + 1;
  if (call == script->stops_at) script->stop = true;
  if (call == script->fails_at) return ms_fail(err, MS_SCRIPT, "call %d fails", call);
  if (schedule->slots[6] == 1) {
    snprintf(by, SEARCH_NAME, "no_rows");
    return ms_fail(err, MS_POSTPROC, "one row");
  }
  struct vm_value loop = vm_ref(7);
  uint32_t first, count;
  return vm_call(schedule, VM_Parallel, &loop, 1, NULL, 0, NULL, 0, &first, &count, err);
}

static struct search_pool *open_pool(const struct fixture *f, struct script *script, uint32_t workers) {
  const struct search_script interface = {script, open_state, close_state, postprocess};
  ms_error err = {0};
  struct search_pool *pool = search_pool_new(&interface, NULL, workers, &err);
  if (!pool) fail_msg("%s", err.message);
  assert_int_equal(search_pool_add(pool, f->workload, tir_find_func(f->workload, "main")), 0);
  return pool;
}

static void replay(struct search_pool *pool, const struct fixture *f, struct script *script,
                   struct search_candidate *out) {
  ms_error err = {0};
  if (!search_pool_replay(pool, f->jobs, JOBS, true, out, &script->stop, &err)) fail_msg("%s", err.message);
}

static void free_candidates(struct search_candidate *list) {
  for (uint32_t i = 0; i < JOBS; i++) {
    vm_packed_free(list[i].trace);
    vm_trace_free(list[i].sketch);
    free(list[i].features);
  }
}

/* ---- Tests ---- */

static char *json_of(const struct vm_packed *packed) {
  struct vm_trace *trace = vm_unpack(packed);
  char *text = vm_write_json(trace);
  vm_trace_free(trace);
  return text;
}

static void assert_same(const struct search_candidate *a, const struct search_candidate *b) {
  assert_int_equal(a->ok, b->ok);
  assert_int_equal(a->err.code, b->err.code);
  assert_string_equal(a->refused_by, b->refused_by);
  if (!a->ok) return;
  assert_true(a->module_hash == b->module_hash);
  char *x = json_of(a->trace), *y = json_of(b->trace);
  assert_string_equal(x, y);
  free(x);
  free(y);
  assert_int_equal(a->feature_rows, b->feature_rows);
  assert_memory_equal(a->features, b->features, a->feature_rows * search_feature_count() * sizeof *a->features);
}

static void gives_the_same_with_any_number_of_threads(void **state) {
  const struct fixture *f = *state;
  struct search_candidate lists[3][JOBS];
  for (uint32_t workers = 1; workers <= 3; workers++) {
    struct script script = {0};
    struct search_pool *pool = open_pool(f, &script, workers);
    assert_int_equal(script.opened, workers);
    replay(pool, f, &script, lists[workers - 1]);
    search_pool_free(pool);
    assert_int_equal(script.opened, 0);
  }
  uint32_t accepted = 0;
  for (uint32_t i = 0; i < JOBS; i++) {
    accepted += lists[0][i].ok;
    for (int k = 1; k < 3; k++) assert_same(&lists[0][i], &lists[k][i]);
  }
  assert_in_range(accepted, JOBS / 4, JOBS - JOBS / 10 - 1);
  for (int k = 0; k < 3; k++) free_candidates(lists[k]);
}

/* What mutates is the trace before postprocessing, with the decisions that were drawn. */
static void gives_sketches_that_replay(void **state) {
  const struct fixture *f = *state;
  struct script script = {0};
  struct search_candidate list[JOBS], again[JOBS];
  struct search_pool *pool = open_pool(f, &script, 2);
  replay(pool, f, &script, list);
  struct search_job jobs[JOBS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < JOBS; i++) {
    if (!list[i].ok) continue;
    assert_ptr_equal(list[i].sketch->steps, f->tiled->steps);
    struct vm_trace *trace = vm_unpack(list[i].trace);
    assert_true(trace->steps->count > list[i].sketch->steps->count);
    vm_trace_free(trace);
    jobs[count++] = (struct search_job){.trace = list[i].sketch, .seed = 1, .candidate = i};
  }
  ms_error err = {0};
  assert_true(search_pool_replay(pool, jobs, count, false, again, NULL, &err));
  for (uint32_t i = 0, k = 0; k < count; i++)
    if (list[i].ok) assert_true(list[i].module_hash == again[k++].module_hash);
  struct search_costs costs = search_pool_costs(pool);
  assert_int_equal(costs.jobs, JOBS + count);
  assert_int_equal(costs.accepted, 2 * count);
  for (uint32_t k = 0; k < count; k++) vm_packed_free(again[k].trace), vm_trace_free(again[k].sketch);
  free_candidates(list);
  search_pool_free(pool);
}

static void names_who_refuses(void **state) {
  const struct fixture *f = *state;
  for (uint32_t workers = 1; workers <= 3; workers++) {
    struct script script = {0};
    struct search_candidate list[JOBS];
    struct search_pool *pool = open_pool(f, &script, workers);
    for (int round = 0; round < 2; round++) { /* each has its messages */
      replay(pool, f, &script, list);
      for (uint32_t i = 9; i < JOBS; i += 10) {
        assert_false(list[i].ok);
        assert_string_equal(list[i].refused_by, "Parallel");
        assert_int_equal(list[i].err.instruction, 2);
        assert_null(list[i].trace);
        assert_null(list[i].sketch);
      }
      assert_non_null(strstr(list[9].err.message, "Parallel")); /* of the first, the message */
      bool refused = false;
      for (uint32_t i = 0; i < JOBS; i++) refused |= !strcmp(list[i].refused_by, "no_rows");
      assert_true(refused);
      free_candidates(list);
    }
    search_pool_free(pool);
  }
}

static void ends_when_a_script_fails(void **state) {
  const struct fixture *f = *state;
  struct script script = {.fails_at = 20};
  struct search_candidate list[JOBS];
  struct search_pool *pool = open_pool(f, &script, 1);
  replay(pool, f, &script, list);
  uint32_t failed = 0, begun = 0;
  for (uint32_t i = 0; i < JOBS; i++) {
    failed += list[i].err.code == MS_SCRIPT;
    begun += list[i].ok || list[i].err.code != MS_OK;
  }
  assert_int_equal(failed, 1);
  assert_int_equal(script.calls, 20);
  assert_in_range(begun, 20, 23);
  free_candidates(list);
  replay(pool, f, &script, list); /* it can be used again */
  assert_true(list[0].ok || list[0].err.code == MS_POSTPROC);
  assert_true(script.calls > 60);
  free_candidates(list);
  search_pool_free(pool);
}

static void ends_when_it_is_interrupted(void **state) {
  const struct fixture *f = *state;
  struct script script = {.stops_at = 10};
  struct search_candidate list[JOBS];
  struct search_pool *pool = open_pool(f, &script, 1);
  replay(pool, f, &script, list);
  assert_int_equal(script.calls, 10);
  for (uint32_t i = 12; i < JOBS; i++) {
    assert_false(list[i].ok);
    assert_int_equal(list[i].err.code, MS_OK); /* not begun */
  }
  free_candidates(list);
  search_pool_free(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_the_same_with_any_number_of_threads),
      cmocka_unit_test(gives_sketches_that_replay),
      cmocka_unit_test(names_who_refuses),
      cmocka_unit_test(ends_when_a_script_fails),
      cmocka_unit_test(ends_when_it_is_interrupted),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
