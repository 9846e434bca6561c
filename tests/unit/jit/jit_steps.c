/* Addresses in innermost loops over vectors (case/lower/steps): what is not known in front of the loop is left in
 * it. */
#include "unit/script.h"

#include "jit/jit.h"

/* The LLVM module, before LLVM's passes, of a function for vectors of 256 bits; compiled for this machine it computes
 * what is interpreted, of a scalar parameter that is 0. Takes the module; free what is returned. */
static char *emitted(struct tir *ir) {
  struct jit_target target, native;
  struct tir_arguments expected, actual;
  char *text = NULL;
  size_t length = 0;
  struct jit_options options = {.dump_after = "emit", .dump = open_memstream(&text, &length)};
  tir_func f = tir_find_func(ir, "main");
  assert_non_null(options.dump);
  assert_accepted(jit_target_parse("llvm -mcpu=haswell", &target, err));
  struct jit_code *code = NULL;
  assert_accepted((code = jit_compile(ir, f, &target, &options, err)) != NULL);
  jit_code_free(code);
  fclose(options.dump);
  assert_accepted(jit_target_parse("native", &native, err));
  assert_accepted(tir_make_arguments(ir, f, 5, &expected, err));
  expected.args[3].scalar = 0;
  tir_copy_arguments(ir, f, &expected, &actual);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(jit_run(ir, f, &native, NULL, actual.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &actual, 1e-5, err));
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  tir_free(ir);
  return text;
}

/* A division that a condition guards is not done in front of the loop. */
static void guarded_divisions_stay_guarded(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((2048,), \"float32\"), B: T.Buffer((2048,), \"float32\"), C: T.Buffer((64,), \"float32\"), "
      "n: T.int32",
      "for k in range(16):", "    if n > 0:", "        for j in T.vectorized(8):",
      "            C[j] = C[j] + A[k * 8 + T.truncdiv(64, n) + j]");
  char *text = emitted(ir), *body = strstr(text, "\nbody:"), *division = strstr(text, "div i64");
  assert_true(body && division && division > body);
  assert_null(strstr(text, "step = phi"));
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(guarded_divisions_stay_guarded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
