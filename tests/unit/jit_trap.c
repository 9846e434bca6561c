/* Kernels that fault in this process: the call ends with an error, on one thread and on many, and the next one runs. */
#include "script.h"

#include "jit/jit.h"

#include <string.h>

enum { COUNT = 64 };

static bool run(const char *loop, const char *store, const int64_t *at, int32_t *out, ms_error *err) {
  struct tir *ir = read_function("P: T.Buffer((64,), \"int64\"), Q: T.Buffer((64,), \"int32\")", loop, store);
  struct jit_target target;
  assert_true(jit_target_parse("native", &target, err));
  *err = (ms_error){.message = ""};
  struct tir_arg args[] = {{.data = (void *)at, .bytes = COUNT * sizeof *at},
                           {.data = out, .bytes = COUNT * sizeof *out}};
  bool done = jit_run(ir, tir_find_func(ir, "main"), &target, NULL, args, err);
  tir_free(ir);
  return done;
}

static const char *const loops[] = {"for i in range(64):", "for i in T.parallel(64):"};

static void faults_end_the_call(void **state) {
  (void)state;
  for (int l = 0; l < 2; l++)
    for (int bad = 0; bad < COUNT; bad += 21) {
      int64_t at[COUNT];
      int32_t out[COUNT];
      ms_error err;
      for (int i = 0; i < COUNT; i++) at[i] = i;
      at[bad] = (int64_t)1 << 44; /* no memory is there */
      assert_false(run(loops[l], "    Q[P[i]] = T.Cast(\"int32\", i)", at, out, &err));
      assert_int_equal(err.code, MS_KERNEL_FAULT);
      assert_non_null(strstr(err.message, "signal"));
      at[bad] = bad;
      assert_true(run(loops[l], "    Q[P[i]] = T.Cast(\"int32\", i)", at, out, &err));
      for (int i = 0; i < COUNT; i++) assert_int_equal(out[i], i);
    }
}

static void divisions_by_zero_end_the_call(void **state) {
  (void)state;
  int64_t at[COUNT] = {0};
  int32_t out[COUNT];
  ms_error err;
  assert_false(run(loops[0], "    Q[i] = T.Cast(\"int32\", T.truncdiv(T.int64(7), P[i]))", at, out, &err));
  assert_int_equal(err.code, MS_KERNEL_FAULT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(faults_end_the_call),
                                     cmocka_unit_test(divisions_by_zero_end_the_call)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
