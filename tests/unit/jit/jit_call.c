/* Calls of compiled functions: scalars of every type, assertions, workspaces, timing. */
#include "unit/script.h"

#include "jit/jit.h"
#include "jit/llvm/machine.h"

static void passes_scalars_of_every_type(void **state) {
  (void)state;
  struct tir *ir = read_function("B: T.Buffer((1,), \"float64\"), n: T.int32, w: T.int64, x: T.float32, y: T.float64, "
                                 "h: T.float16, g: T.bfloat16",
                                 "for i in range(1):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(1, i)",
                                 "        B[vi] = T.Cast(\"float64\", n) + T.Cast(\"float64\", w) + "
                                 "T.Cast(\"float64\", x) * y + T.Cast(\"float64\", h) + T.Cast(\"float64\", g)");
  double expected[1] = {0}, actual[1] = {0};
  struct tir_arg args[] = {{.data = expected, .bytes = sizeof expected},
                           {.scalar = -3},
                           {.scalar = 1ll << 40},
                           {.real = 0.75},
                           {.real = 1.5},
                           {.real = 2.5},
                           {.real = 64}};
  struct jit_target target;
  tir_func f = tir_find_func(ir, "main");
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(tir_run(ir, f, args, 7, NULL, err));
  args[0].data = actual;
  assert_accepted(jit_run(ir, f, &target, NULL, args, err));
  assert_true(expected[0] == (double)(1ll << 40) - 3 + 0.75 * 1.5 + 2.5 + 64);
  assert_true(actual[0] == expected[0]);
  tir_free(ir);
}

static struct jit_kernel *kernel_of(const struct tir *ir) {
  struct jit_target target;
  struct jit_code *code = NULL;
  struct jit_kernel *kernel = NULL;
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted((code = jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, err)) != NULL);
  assert_accepted((kernel = jit_load(code, err)) != NULL);
  jit_code_free(code);
  return kernel;
}

static void tells_a_failed_assertion(void **state) {
  (void)state;
  struct tir *ir = read_function("n: T.int32, B: T.Buffer((4,), \"int32\")", "assert n < 4, \"too many\"",
                                 "for i in range(4):", "    B[i] = n");
  struct jit_kernel *kernel = kernel_of(ir);
  int32_t b[4] = {0};
  for (int32_t n = 3; n < 5; n++) {
    struct tir_arg args[] = {{.scalar = n}, {.data = b, .bytes = sizeof b}};
    struct jit_call *call = NULL;
    assert_accepted((call = jit_call_new(kernel, ir, tir_find_func(ir, "main"), args, err)) != NULL);
    ms_error err = {0};
    struct jit_timing timing;
    assert_true(jit_call_run(call, &err) == (n < 4));
    assert_true(jit_call_time(call, 0.1, 0.01, &timing, &err) == (n < 4));
    if (n >= 4) assert_int_equal(err.code, MS_ASSERTION);
    jit_call_free(call);
  }
  assert_int_equal(b[3], 3);
  jit_kernel_free(kernel);
  tir_free(ir);
}

static void refuses_what_it_cannot_compile(void **state) {
  (void)state;
  struct tir *ir = read_function("B: T.Buffer((4,), \"float32\")",
                                 "for i in range(4):", "    B[i] = T.call_extern(\"float32\", \"flies\", B[i])");
  struct jit_target target;
  ms_error err = {0};
  assert_false(jit_target_parse("llvm -mcpu=abacus", &target, &err));
  assert_int_equal(err.code, MS_UNKNOWN_TARGET);
  assert_false(jit_target_parse("llvm -num-cores=0", &target, &err));
  assert_int_equal(err.code, MS_UNKNOWN_TARGET);
  assert_false(jit_target_parse("abacus", &target, &err));
  assert_int_equal(err.code, MS_UNKNOWN_TARGET);
  err.code = MS_OK;
  assert_true(jit_target_parse("native", &target, &err));
  assert_null(jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, &err));
  assert_int_equal(err.code, MS_NOT_COMPILABLE);
  tir_free(ir);
}

/* A buffer too large for the stack is the workspace's. */
static void has_a_workspace(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((65536,), \"float32\"), C: T.Buffer((65536,), \"float32\")", "B = T.alloc_buffer((65536,))",
      "for i in range(65536):", "    B[i] = A[i] + T.float32(1)", "for i in range(65536):", "    C[i] = B[65535 - i]");
  static float a[65536], c[65536];
  for (int i = 0; i < 65536; i++) a[i] = (float)i;
  struct jit_kernel *kernel = kernel_of(ir);
  assert_true(jit_kernel_workspace(kernel) >= sizeof a);
  struct tir_arg args[] = {{.data = a, .bytes = sizeof a}, {.data = c, .bytes = sizeof c}};
  struct jit_call *call = NULL;
  struct jit_timing timing;
  assert_accepted((call = jit_call_new(kernel, ir, tir_find_func(ir, "main"), args, err)) != NULL);
  assert_accepted(jit_call_time(call, 0.1, 0.01, &timing, err));
  for (int i = 0; i < 65536; i++) assert_true(c[i] == (float)(65536 - i));
  assert_true(timing.runs > 0 && timing.low <= timing.seconds && timing.seconds <= timing.high);
  jit_call_free(call);
  jit_kernel_free(kernel);
  tir_free(ir);
}

/* What an entry returns: each status has a message of its own. (lua/schedule/no_tiles.sh: an entry that is refused.) */
static void tells_refused_tiles(void **state) {
  (void)state;
  ms_error err = {0};
  assert_true(jit_passed(0, &err));
  assert_false(jit_passed(JIT_STATUS_NO_TILES, &err));
  assert_int_equal(err.code, MS_NO_TILES);
  assert_non_null(strstr(err.message, "ARCH_REQ_XCOMP_PERM"));
  assert_false(jit_passed(JIT_STATUS_ASSERTION, &err));
  assert_int_equal(err.code, MS_ASSERTION);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(passes_scalars_of_every_type),
      cmocka_unit_test(tells_a_failed_assertion),
      cmocka_unit_test(tells_refused_tiles),
      cmocka_unit_test(refuses_what_it_cannot_compile),
      cmocka_unit_test(has_a_workspace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
